//! What the redactor takes of structured values.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn redacted(mut value: Value) -> Value {
    redact_value(&mut value, Mode::Standard, Form::Kind);
    value
}

#[test]
fn a_number_goes_like_a_text() {
    let value =
        json!({"password": 12345678, "card": 4111111111111111_u64, "list": [4111111111111111_u64], "ssn": 123456789});
    assert_eq!(
        redacted(value),
        json!({"password": "[REDACTED:password]", "card": "[REDACTED:card]", "list": ["[REDACTED:card]"], "ssn": "[REDACTED:ssn]"})
    );
    let plain = json!({"password": null, "token": 512, "max_tokens": 4096, "n": [1.5, true, 4111111111111112_u64], "password_set": true});
    assert_eq!(redacted(plain.clone()), plain);
}

#[test]
fn a_name_of_a_field_may_be_a_secret_and_none_is_lost_by_it() {
    let token = |end: &str| format!("ghp_0123456789abcdefghijABCDEFGHIJ0123{end}");
    let value = json!({token("45"): 1, token("46"): {token("47"): 2}, "x": 3});
    let expected = json!({"[REDACTED:github]": 1, "[REDACTED:github] 2": {"[REDACTED:github]": 2}, "x": 3});
    assert_eq!(redacted(value), expected);
    assert_eq!(redacted(expected.clone()), expected);
}

#[test]
fn a_field_beside_a_value_and_a_flag_before_it_say_what_it_is() {
    let value = json!([
        {"name": "DB_PASSWORD", "value": "hunter2"},
        {"Key": "db_password", "Value": 12345678, "other": "hunter2"},
        {"name": "PORT", "key": "api_key", "value": ["abcdefgh"]},
        ["login", "--password", "hunter2", "hunter2", "--token", "--verbose", "-n", "hunter2", "--token=abcdefgh"],
    ]);
    let hidden = "[REDACTED:password]";
    let expected = json!([
        {"name": "DB_PASSWORD", "value": hidden},
        {"Key": "db_password", "Value": hidden, "other": "hunter2"},
        {"name": "PORT", "key": "api_key", "value": ["[REDACTED:key]"]},
        ["login", "--password", hidden, "hunter2", "--token", "--verbose", "-n", "hunter2", "--token=[REDACTED:token]"],
    ]);
    assert_eq!(redacted(value), expected);
    let plain =
        json!([{"name": "PORT", "value": "5432"}, {"name": "password", "value": null}, ["--colour", "hunter2"]]);
    assert_eq!(redacted(plain.clone()), plain);
}

#[test]
fn a_long_name_is_judged_by_its_end() {
    let name = format!("é{}password", "é".repeat(100));
    assert_eq!(redacted(json!({&name: "hunter2"})), json!({&name: "[REDACTED:password]"}));
}

fn words() -> impl Strategy<Value = String> {
    let texts = [
        "a",
        "password",
        "DB_PASSWORD",
        "token",
        "api_key",
        "name",
        "key",
        "value",
        "Authorization",
        "Cookie",
        "x y",
        "--password",
        "--token",
        "-v",
        "hunter2",
        "correct horse",
        "sid=abcd",
        "Basic dXNlcjpwYXNz",
        "Bearer abc123def456",
        "4111 1111 1111 1111",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345",
        "password=hunter2",
        "https://u:hunter2@h/",
        "p\"q",
        "a\\b",
        "a\nb",
        "DE89370400440532013000",
        "abcd1234efgh",
        "",
        "...",
        "${X}",
        "true",
        "ssn",
        "123-45-6789",
        "user",
        "[REDACTED:x]",
        "hunter2 [REDACTED:email]",
    ];
    proptest::sample::select(texts.to_vec()).prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => words().prop_map(Value::from),
        1 => proptest::sample::select(vec![json!(null), json!(true), json!(12), json!(12345678), json!(4111111111111111_u64), json!(-1.5e300), json!(123456789)]),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((words(), inner), 0..5).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn the_text_of_a_redacted_value_holds_nothing_more_to_redact(value in values()) {
        let clean = redacted(value).to_string();
        prop_assert_eq!(redact(&clean, Mode::Standard), clean.as_str());
    }

    #[test]
    fn a_value_is_redacted_once_and_for_all(value in values()) {
        let clean = redacted(value);
        prop_assert_eq!(redacted(clean.clone()), clean);
    }
}
