//! What the redactor takes and what it leaves.

use proptest::prelude::*;

use super::*;

/// Secrets are written in two parts, so that scanners of sources leave this file alone.
fn glue(text: &str) -> String {
    text.replace('¦', "")
}

#[track_caller]
fn takes(text: &str, secret: &str) {
    let (text, secret) = (glue(text), glue(secret));
    assert!(text.contains(&secret), "{text:?} does not hold {secret:?}");
    let clean = redact(&text, Mode::Standard);
    assert!(!clean.contains(&secret), "{text:?} became {clean:?}");
    let kept = text.split(secret.as_str()).all(|part| clean.contains(part));
    assert!(kept, "{text:?} lost its surroundings: {clean:?}");
    assert_eq!(redact(&clean, Mode::Standard), clean, "{text:?}");
}

#[track_caller]
fn keeps(text: &str) {
    let text = glue(text);
    assert_eq!(redact(&text, Mode::Standard), text);
}

const BODY: &str = "0123456789abcdefghijABCDEFGHIJ012345";

#[test]
fn s1_the_value_is_replaced_and_its_surroundings_stay() {
    let token = format!("ghp_{BODY}");
    assert_eq!(redact(&format!("token is {token} ok"), Mode::Standard), "token is [REDACTED:github] ok");
    assert_eq!(redact(&format!("{token},{token}"), Mode::Standard), "[REDACTED:github],[REDACTED:github]");
    assert_eq!(
        redact("DB_PASSWORD=hunter2\nPORT=5432\n", Mode::Standard),
        "DB_PASSWORD=[REDACTED:password]\nPORT=5432\n"
    );
    assert_eq!(
        redact("{\"password\":\"p\\\"q w\",\"x\":1}", Mode::Standard),
        "{\"password\":\"[REDACTED:password]\",\"x\":1}"
    );
    let found = find(&format!("é {token}"), Mode::Standard);
    assert_eq!(found, [Found { range: 3..3 + token.len(), kind: "github" }]);
}

#[test]
fn for_somebody_who_decides_the_length_is_said_too() {
    let text = "a password=hunter2é b";
    let sized = redact_as(text, Mode::Standard, Form::Sized);
    assert_eq!(sized, "a password=[REDACTED:password:8] b");
    assert_eq!(redact_as(&sized, Mode::Standard, Form::Sized), sized);
    assert_eq!(redact(&sized, Mode::Standard), sized);
    assert!(was_hidden(&sized) && was_hidden("[REDACTED:x] [REDACTED:password:8]"));
    for plain in ["[REDACTED:password]", "[REDACTED:password:]", "REDACTED:password:8]", "[REDACTED:password:8", "a:8]"]
    {
        assert!(!was_hidden(plain), "{plain}");
    }
    let mut value = serde_json::json!({"auth": {"password": "hunter2"}, "list": ["plain", text], "n": 1});
    redact_value(&mut value, Mode::Standard, Form::Sized);
    let hidden = "[REDACTED:password:7]";
    assert_eq!(value, serde_json::json!({"auth": {"password": hidden}, "list": ["plain", sized], "n": 1}));
}

#[test]
fn s1_applying_it_twice_changes_nothing_more() {
    for text in [
        "password=[REDACTED:password]",
        "Authorization: Bearer [REDACTED:authorization]",
        "Cookie: a=[REDACTED:cookie]; b=[REDACTED:cookie]",
        "https://u:[REDACTED:password]@h/?token=[REDACTED:token]&a=1",
        "-----BEGIN PRIVATE KEY-----\n[REDACTED:private_key]\n-----END PRIVATE KEY-----",
        "<password>[REDACTED:password]</password>",
        "x=[REDACTED:password]: [REDACTED:token] = 5",
    ] {
        keeps(text);
        assert_eq!(find(text, Mode::Standard), []);
    }
}

const SHAPED: &[&str] = &[
    "ghp_¦0123456789abcdefghijABCDEFGHIJ012345",
    "gho_¦0123456789abcdefghijABCDEFGHIJ012345",
    "ghs_¦0123456789abcdefghijABCDEFGHIJ012345",
    "github_pat_¦11ABCDEFG0123456789_abcdefghijklmnopqrstuvwxyz0123456789",
    "glpat-¦0123456789abcdefghij",
    "xoxb-¦123456789012-1234567890123-abcdefghijklmnopqrstuvwx",
    "xapp-¦1-A0123456789-1234567890123-0123456789abcdef",
    "sk_live_¦0123456789abcdefghijABCD",
    "rk_test_¦0123456789abcdefghijABCD",
    "whsec_¦0123456789abcdefghijABCDEFGHIJ01",
    "sk-¦0123456789abcdefghijABCDEFGHIJ0123456789abcdefgh",
    "sk-proj-¦0123456789abcdefghij-ABCDEFGHIJ_0123456789abcdefgh",
    "sk-ant-api03-¦0123456789abcdefghij-ABCDEFGHIJ_0123456789",
    "AIza¦SyA0123456789abcdefghijABCDEFGHIJ01",
    "ya29.¦a0AfH6SMBx0123456789abcdefghij",
    "GOCSPX-¦0123456789abcdefghijABCDEFGH",
    "AKIA¦IOSFODNN7EXAMPLE",
    "ASIA¦0123456789ABCDEF",
    "npm_¦0123456789abcdefghijABCDEFGHIJ012345",
    "pypi-¦AgEIcHlwaS5vcmcCJDAxMjM0NTY3LTg5YWItY2RlZi0wMTIz",
    "dckr_pat_¦0123456789abcdefghijABCDEFG",
    "hf_¦0123456789abcdefghijABCDEFGHIJ0123",
    "SG.¦0123456789abcdefghijAB.0123456789abcdefghijABCDEFGHIJ0123456789abc",
    "SK¦0123456789abcdef0123456789abcdef",
    "key-¦0123456789abcdef0123456789abcdef",
    "123456789:¦AAE0123456789abcdefghijABCDEFGHIJ01",
    "shpat_¦0123456789abcdef0123456789abcdef",
    "dop_v1_¦0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "dapi¦0123456789abcdef0123456789abcdef",
    "hvs.¦CAESIJ0123456789abcdefghij",
    "lin_api_¦0123456789abcdefghijABCDEFGHIJ0123456789",
    "gsk_¦0123456789abcdefghijABCDEFGHIJ0123456789",
    "AGE-SECRET-KEY-1¦QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
    "eyJhbGciOiJIUzI1NiJ9¦.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "adj_¦0123456789abcdefghijklmnopqrstuvwxyz",
];

#[test]
fn s2_tokens_with_a_known_shape_are_found_anywhere() {
    for token in SHAPED {
        for around in [
            "{}",
            "x {} y",
            "\"{}\"",
            "({}),",
            "a={};",
            "key:{}\n",
            "\\n{}\\n",
            "https://h/{}?x",
            "|{}|",
            "{}...",
            "{}…",
            "use {}... ok",
            "{}...ok",
        ] {
            takes(&around.replace("{}", token), token);
        }
    }
    takes(
        "https://hooks.slack.com/services/¦T00000000/B00000000/abcdefghijklmnopqrstuvwx",
        "T00000000/B00000000/abcdefghijklmnopqrstuvwx",
    );
}

#[test]
fn s2_private_keys_are_taken_whole_and_an_unclosed_one_to_the_end() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for line in ["\n", "\\n", "\r\n"] {
            takes(
                &format!("a -----BEGIN {label}-----{line}{body}{line}{body}{line}-----END {label}----- b"),
                &format!("{body}{line}{body}"),
            );
        }
        let open = redact(&format!("a -----BEGIN {label}-----\n{body}\nrest of it"), Mode::Standard).into_owned();
        assert_eq!(open, format!("a -----BEGIN {label}-----\n[REDACTED:private_key]"));
    }
    takes(
        &format!("---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n{body}\n---- END SSH2 ENCRYPTED PRIVATE KEY ----"),
        body,
    );
    takes(&format!("private_key: \"-----BEGIN PRIVATE KEY-----\\n{body}\\n-----END PRIVATE KEY-----\\n\""), body);
}

#[test]
fn s2_a_private_key_is_taken_though_something_beside_it_says_that_it_was_left_out() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEF";
    for text in [
        format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n[output cut...]"),
        format!("-----BEGIN PRIVATE KEY-----\n{body}…\n-----END PRIVATE KEY-----\n"),
        format!("-----BEGIN PRIVATE KEY-----\n{body}\n<snip>\nxxxxx\n"),
        format!("-----BEGIN PRIVATE KEY-----\n{body}\nlater: password=[REDACTED:password]"),
    ] {
        takes_from(&text, body);
    }
    takes_from("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADAN…\nlater: password=[REDACTED:password]", "MIIEvQIBADAN");
    for text in [
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ…\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nxxxxxxxxxxxxxxxxxxxxxxxx\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nyour key ...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----",
    ] {
        keeps(text);
    }
}

/// As [`takes`], where more than the secret goes.
#[track_caller]
fn takes_from(text: &str, secret: &str) {
    let clean = redact(text, Mode::Standard).into_owned();
    assert!(text.contains(secret) && !clean.contains(secret), "{text:?} became {clean:?}");
    assert_eq!(redact(&clean, Mode::Standard), clean, "{text:?}");
}

#[test]
fn s1_a_mark_hides_nothing_that_stands_beside_it() {
    for (text, expected) in [
        ("password=\"hunter2 [REDACTED:email]\"", "password=\"[REDACTED:password]\""),
        ("password=\"[REDACTED:email] hunter2 [REDACTED:email]\"", "password=\"[REDACTED:password]\""),
        ("password=\"[REDACTED:hunter2\"", "password=\"[REDACTED:password]\""),
        ("https://u:hunter2[REDACTED:x]@h/", "https://u:[REDACTED:password]@h/"),
        ("password=\"[REDACTED:email] [REDACTED:x]\"", "password=\"[REDACTED:email] [REDACTED:x]\""),
        ("https://[REDACTED:token]@h/", "https://[REDACTED:token]@h/"),
        ("https://abcdefghij0123456789x@h", "https://[REDACTED:token]@h"),
        ("[REDACTED:password:12345678]", "[REDACTED:password:12345678]"),
    ] {
        assert_eq!(redact(text, Mode::Standard), expected);
        assert_eq!(redact(expected, Mode::Standard), expected);
    }
}

#[test]
fn s3_only_blocks_that_are_public_keep_their_letters() {
    let (key, sum) = (glue("AKIA¦IOSFODNN7EXAMPLE"), "=njUN");
    for label in [
        "PUBLIC KEY",
        "TRUSTED CERTIFICATE",
        "PGP SIGNATURE",
        "DH PARAMETERS",
        "X509 CRL",
        "PGP MESSAGE",
        "PGP PUBLIC KEY BLOCK",
    ] {
        keeps(&format!("-----BEGIN {label}-----\n{key}==\n{sum}\n-----END {label}-----"));
        keeps(&format!("\"-----BEGIN {label}-----\\n{key}=\\n-----END {label}-----\\n\""));
        takes_from(&format!("-----BEGIN {label}-----\npassword=hunter2\n-----END {label}-----"), "hunter2");
        takes_from(&format!("-----BEGIN {label}-----\n{key}"), &key);
    }
    for label in ["X", "NOTES", "KEY", "DATA"] {
        takes_from(&format!("-----BEGIN {label}-----\n{key}\n-----END {label}-----"), &key);
    }
    // A secret between two public blocks, and one that begins in a block and goes on behind it.
    let block = |label: &str| format!("-----BEGIN {label}-----\n{key}\n-----END {label}-----\n");
    let two = format!("{}{key}\n{}", block("CERTIFICATE"), block("CERTIFICATE"));
    assert_eq!(
        redact(&two, Mode::Standard),
        format!("{}[REDACTED:aws]\n{}", block("CERTIFICATE"), block("CERTIFICATE"))
    );
}

#[test]
fn s2_an_authorization_header_is_taken_where_its_line_goes_on() {
    for (text, secret) in [
        ("{Authorization: Basic dXNlcjpwYXNzMTIz, Accept: */*}", "dXNlcjpwYXNzMTIz"),
        ("Authorization: Basic dXNlcjpwYXNz Host: x", "dXNlcjpwYXNz"),
        ("Authorization: Basic dXNlcg== Host: x", "dXNlcg=="),
        ("Authorization: token 0123456789abcdef0123 -X POST", "0123456789abcdef0123"),
        ("curl -H Authorization: abc123def456 -X POST", "abc123def456"),
        ("{Authorization: abc123def456, Accept: */*}", "abc123def456"),
        ("{Authorization: Basic dXNlcjpwYXNz, Cookie: sid=abcd}", "abcd"),
        ("{Authorization: Basic dXNlcjpwYXNz, X-Api-Key: abcdefgh}", "abcdefgh"),
        ("\"Authorization\":[\"Bearer abcdefgh\"],\"x\":[\"y\"]", "abcdefgh"),
        ("\"Cookie\": [\"a=bcde\", \"f=ghij\"], \"x\": \"y=z\"", "bcde"),
        ("\"Cookie\": [\"a=bcde\", \"f=ghij\"], \"x\": \"y=z\"", "ghij"),
    ] {
        let clean = redact(text, Mode::Standard).into_owned();
        assert!(!clean.contains(secret), "{text:?} became {clean:?}");
        assert_eq!(redact(&clean, Mode::Standard), clean);
    }
    assert_eq!(
        redact("{Authorization: Basic dXNlcjpwYXNzMTIz, Accept: */*}", Mode::Standard),
        "{Authorization: Basic [REDACTED:authorization], Accept: */*}"
    );
    assert_eq!(
        redact("\"Cookie\": [\"a=bcde\"], \"x\": \"y=z\"", Mode::Standard),
        "\"Cookie\": [\"a=[REDACTED:cookie]\"], \"x\": \"y=z\""
    );
    for text in [
        "Authorization: Basic authentication is used",
        "Authorization: Basic auth, Bearer tokens: both",
        "Authorization: Bearer JavaScript clients send it",
        "Authorization: Basic OAuth2 flows are used",
        "Authorization: OAuth2 is required here",
        "Authorization: Bearer <token> Host: x",
        "Authorization: Bearer YOUR_TOKEN Host: x",
        "Authorization: see RFC7235 for more",
    ] {
        keeps(text);
    }
}

#[test]
fn s2_a_name_that_is_a_value_itself_gives_away_the_value_beside_it() {
    for text in [
        "{\"name\":\"DB_PASSWORD\",\"value\":\"hunter2\"}",
        "{\"value\": \"hunter2\", \"name\": \"DB_PASSWORD\"}",
        "{\"Key\": \"api_key\",\n  \"type\": \"plain\", \"Value\": \"hunter2\"}",
        "{\\\"name\\\":\\\"DB_PASSWORD\\\",\\\"value\\\":\\\"hunter2\\\"}",
        "- name: DB_PASSWORD\n  value: hunter2\n- name: PORT",
        "<add key=\"DbPassword\" value=\"hunter2\"/>",
        "[\"--password\",\"hunter2\"]",
        "['login', '--api-key',\n  'hunter2']",
        "[\\\"-password\\\", \\\"hunter2\\\"]",
    ] {
        takes(text, "hunter2");
    }
    for text in [
        "{\"name\":\"PORT\",\"value\":\"5432\"}",
        "{\"name\":\"DB_PASSWORD\",\"value\":\"${DB_PASSWORD}\"}",
        "{\"a\":{\"name\":\"password\"},\"value\":\"hunter2\"}",
        "name: token\nvalue: counted",
        "{\"name\":\"password\",\"value\":\"The password is kept in the vault.\"}",
        "[\"--password\",\"--verbose\"]",
        "[\"--colour\",\"always\"]",
        "[\"password\",\"hunter2\"]",
        "the key: value: hunter2",
    ] {
        keeps(text);
    }
}

#[test]
fn s3_plain_names_that_begin_like_tokens_are_kept() {
    for text in [
        "adj_matrix_3x3_weights",
        "adj_list_of_40_neighbours_by_weight",
        "git checkout sk-1042-fix-login-timeout",
        "sk-2024_11_18_new-branch-name",
    ] {
        keeps(text);
    }
    takes("sk-¦0123456789abcdef", "sk-¦0123456789abcdef");
    takes("sk-¦Ab1-Cd2-Ef3-Gh4-Ij5", "sk-¦Ab1-Cd2-Ef3-Gh4-Ij5");
    let own = format!("adj_¦{}", "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdef");
    takes(&own, &own);
    keeps("glpat-abc...xyz0123456789 sk-abc...");
}

#[test]
fn s2_passwords_in_urls_are_taken() {
    takes("postgres://app:hunter2@db.internal:5432/app", "hunter2");
    takes("redis://:s3cr3t@cache/0", "s3cr3t");
    takes("https://bob:p%40ss@example.org/x", "p%40ss");
    takes("mongodb+srv://u:p@ss@cluster/x", "p@ss");
    takes("amqp:\\/\\/u:hunter2@h\\/v", "hunter2");
    takes("git clone https://x-access-token:abc123def456@github.com/a/b", "abc123def456");
    for text in [
        "https://example.org:8443/a@b",
        "ssh://git@github.com/a",
        "git@github.com:a/b.git",
        "http://h/?q=a:b@c",
        "mailto:a@b.org",
    ] {
        keeps(text);
    }
}

#[test]
fn s2_authorization_and_cookie_headers_are_taken() {
    takes("Authorization: Bearer abcDEF123456", "abcDEF123456");
    takes("authorization: Basic dXNlcjpwYXNz", "dXNlcjpwYXNz");
    takes("> Authorization: token 0123456789abcdef", "0123456789abcdef");
    takes("Proxy-Authorization: Basic dXNlcjpwYXNz\r\nHost: x", "dXNlcjpwYXNz");
    takes("curl -H \"Authorization: Bearer abcdefgh\" https://x", "abcdefgh");
    takes("curl -H 'authorization: abc123def456' https://x", "abc123def456");
    takes("{\"Authorization\": \"Bearer abcdefgh\", \"x\": 1}", "abcdefgh");
    takes("{\\\"Authorization\\\": \\\"Bearer abcdefgh\\\", \\\"x\\\": 1}", "abcdefgh");
    let signed = "Authorization: AWS4-HMAC-SHA256 Credential=x/20260130/eu/s3/aws4_request, Signature=0a1b2c3d4e5f";
    assert_eq!(redact(signed, Mode::Standard), "Authorization: AWS4-HMAC-SHA256 [REDACTED:authorization]");
    takes("sent Bearer 0123456789abcdef to it", "0123456789abcdef");
    assert_eq!(
        redact("Cookie: sid=abc; theme=dark1", Mode::Standard),
        "Cookie: sid=[REDACTED:cookie]; theme=[REDACTED:cookie]"
    );
    takes("Cookie: sid=abcdef", "abcdef");
    takes("Set-Cookie: sid=abcdef; Path=/; HttpOnly; Max-Age=60", "abcdef");
    takes("\"cookie\": \"sid=abcdef\"", "abcdef");
    for text in [
        "Authorization: required",
        "Authorization: Bearer <token>",
        "Authorization: Bearer $TOKEN",
        "\"Authorization\": \"Bearer \" + token",
        "\"Authorization\": f\"Bearer {token}\"",
        "The Authorization: header must be set",
        "Bearer token required",
        "the bearer of this note",
        "Authorization: Bearer YOUR_TOKEN",
        "Authorization: Basic authentication is used",
        "WWW-Authenticate: Basic realm=\"x\"",
        "Cookie: policy",
        "Authorization: Bearer",
        "cookies: 3",
    ] {
        keeps(text);
    }
}

#[test]
fn s2_secret_query_parameters_are_taken() {
    takes("GET /x?token=abcdef&page=2", "abcdef");
    takes("https://h/x?page=2&api_key=abcdef#top", "abcdef");
    takes("https://h/x?X-Amz-Signature=0a1b2c3d4e&x=1", "0a1b2c3d4e");
    takes("https://h/x?a=1&sig=Ab3%2Fx9&se=2", "Ab3%2Fx9");
    takes("https://maps/api?key=A1b2C3d4e5", "A1b2C3d4e5");
    takes("https://h/?access_token=abc&amp;client_secret=xyzw", "xyzw");
    takes("grant=x&password=hunter2&user=bob", "hunter2");
    keeps("https://h/x?page=2&sort=key&q=token&code=de&key=name");
}

const ASSIGNED: &[(&str, &str)] = &[
    ("API_KEY=abcdefgh", "abcdefgh"),
    ("export DB_PASSWORD=p@ss;w,rd)1", "p@ss;w,rd)1"),
    ("password: hunter2", "hunter2"),
    ("  password: swordfish  # old", "swordfish"),
    ("password = \"correct horse battery staple\"", "correct horse battery staple"),
    ("\"client_secret\": \"abcd-efgh\"", "abcd-efgh"),
    ("'apiKey': 'abcdefgh',", "abcdefgh"),
    ("const apiKey = `abcdefgh`;", "abcdefgh"),
    ("let token: &str = \"abcdefgh\";", "abcdefgh"),
    ("password: str = 'hunter2'", "hunter2"),
    ("PASSWORD := \"hunter2\"", "hunter2"),
    ("'password' => 'hunter2',", "hunter2"),
    ("config[\"secret\"] = \"abcdefgh\"", "abcdefgh"),
    ("spring.datasource.password=hunter", "hunter"),
    (concat!("//registry.npm", "js.org/:_authToken=abcdefgh"), "abcdefgh"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY¦EXAMPLEKEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCY¦EXAMPLEKEY"),
    ("X-Api-Key: abcdefgh", "abcdefgh"),
    ("curl -H 'X-Auth-Token: abcdefgh' x", "abcdefgh"),
    ("mysql --password=hunter2 -h x", "hunter2"),
    ("tool --token abcdefgh --verbose", "abcdefgh"),
    ("curl -u bob:hunter2 https://x", "hunter2"),
    ("<password>hunter2</password>", "hunter2"),
    ("<add key=\"x\" password=\"hunter2\"/>", "hunter2"),
    ("Server=x;User=sa;Password=hunter2;Encrypt=yes", "hunter2"),
    ("DefaultEndpointsProtocol=https;AccountKey=abcdEFGH1234==;x=y", "abcdEFGH1234=="),
    ("level=info password=hunter user=bob", "hunter"),
    ("{\\\"password\\\":\\\"hunter2\\\",\\\"x\\\":1}", "hunter2"),
    ("PASSWORD=abc\\nUSER=x", "abc"),
    ("My API key: abc123def", "abc123def"),
    ("the password: hunter2, then", "hunter2"),
    ("CREATE USER x IDENTIFIED BY 'hunter2';", "hunter2"),
    ("ALTER ROLE x WITH PASSWORD 'hunter2'", "hunter2"),
    ("machine h login bob password hunter2", "hunter2"),
    ("\"password\": 12345678", "12345678"),
    ("DB_PASS=\"\"\"hunter2\"\"\"", "hunter2"),
    ("password=\"unclosed value", "unclosed value"),
    ("ssn: 123456789", "123456789"),
    ("my password is hunter2, ok", "hunter2"),
    (
        "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access accident",
        "abandon ability able about above absent absorb abstract absurd abuse access accident",
    ),
    ("{\"auths\":{\"ghcr.io\":{\"auth\":\"dXNlcjpwYXNzd29yZDEy\"}}}", "dXNlcjpwYXNzd29yZDEy"),
    ("SECRET_KEY_BASE=abcdefgh", "abcdefgh"),
    ("STRIPE_SECRET_KEY_LIVE=abcdefgh", "abcdefgh"),
    ("dbpwd=hunter2", "hunter2"),
    ("dbpass=hunter2", "hunter2"),
    ("rootpw: hunter2", "hunter2"),
    ("ENCRYPTION_KEY_V2=abcdefgh", "abcdefgh"),
    ("API_KEYS=abcdefgh,ijklmnop", "abcdefgh,ijklmnop"),
    ("passwords: [\"hunter2\"]", "hunter2"),
];

#[test]
fn s2_values_of_names_that_promise_a_secret_are_taken() {
    for (text, secret) in ASSIGNED {
        takes(text, secret);
    }
}

/// Values that hold a sign which separates elsewhere, are quoted piece by piece, or stand below their name.
const WHOLE: &[(&str, &str)] = &[
    ("password: 'longpassword''tail9xQ'", "longpassword''tail9xQ"),
    ("password: 'it''s9xQ' # old", "it''s9xQ"),
    ("password = \"tell \"\"bob\"\" 9xQ\"\n", "tell \"\"bob\"\" 9xQ"),
    (r"PGPASSWORD='it'\''s9xQ' psql", r"it'\''s9xQ"),
    (r#"password='it'"'"'s9xQ' psql"#, r#"it'"'"'s9xQ"#),
    ("pass: Tr0ub4dor&3x", "Tr0ub4dor&3x"),
    ("pwd=Tr0ub4dor&3x and", "Tr0ub4dor&3x"),
    ("a user_password=Tr0ub4dor&3x\n", "Tr0ub4dor&3x"),
    ("PASS=Tr0ub4dor&3x", "Tr0ub4dor&3x"),
    ("password=hunter2,xyz9", "hunter2,xyz9"),
    ("say password=hunter2,xyz9, then", "hunter2,xyz9"),
    ("password=ab,xyz9qr", "ab,xyz9qr"),
    ("pwd=a&9xQlong", "a&9xQlong"),
    ("password: it's9xQ", "it's9xQ"),
    ("pass: Tr0ub;4dor)3<x", "Tr0ub;4dor)3<x"),
    ("DB_PASSWORD: |-\n  Tr0ub4dor&3x\nPORT: 1", "Tr0ub4dor&3x"),
    ("db:\n  password: > # folded\n\n    Tr0ub4dor&3x\n    plus more9\n\n  port: 1", "Tr0ub4dor&3x\n    plus more9"),
    ("- password: |2+\r\n      Tr0ub4dor&3x\r\n  port: 1", "Tr0ub4dor&3x"),
    ("{\"file\":\"password: |\\n  Tr0ub4dor&3x\\n\",\"b\":\"x\"}", "Tr0ub4dor&3x"),
    ("password:\n  Tr0ub4dor&3x\nport: 1", "Tr0ub4dor&3x"),
    ("{\n  \"password\":\n  \"hunter two\",\n  \"port\": 1}", "hunter two"),
    ("api_key = \n    \"abcd-efgh\"\n", "abcd-efgh"),
    ("\"password\": [\"hunter2\"]", "hunter2"),
    ("\"token\": [ \"abcd1234efgh\" ], \"x\": [\"y\"]", "abcd1234efgh"),
];

#[test]
fn s2_a_value_is_taken_to_its_end() {
    for (text, secret) in WHOLE {
        takes(text, secret);
    }
    let several =
        redact("\"password\": [\"hunter2\", \"\", 'p\"q w', \"${X}\", \"xyz9\"], \"a\": \"b\"", Mode::Standard);
    let hidden = "[REDACTED:password]";
    assert_eq!(
        several,
        format!("\"password\": [\"{hidden}\", \"\", '{hidden}', \"${{X}}\", \"{hidden}\"], \"a\": \"b\"")
    );
    let long = format!("secret: |\n{}", "  0123456789abcdef\n".repeat(2_000));
    assert_eq!(redact(&long, Mode::Standard), "secret: |\n  [REDACTED:secret]\n");
}

#[test]
fn s3_signs_that_separate_end_a_value() {
    for (text, secret) in [
        ("https://h/?password=hunter2&3x", "hunter2"),
        ("password=hunter2&user=bob", "hunter2"),
        ("pwd=hunter2&&ls", "hunter2"),
        ("<p>pwd=hunter2&quot;</p>", "hunter2"),
        ("password=hunter2,user=bob", "hunter2"),
        ("{password: hunter2,port:1}", "hunter2"),
        ("f(user,password=hunter2,5)", "hunter2"),
        ("user=bob, password=hunter2,2026-01-30", "hunter2"),
        ("[a password=hunter2,[1]]", "hunter2"),
        ("user=sa;pwd=hunter2;timeout 5", "hunter2"),
        ("'password=hunter2''", "hunter2"),
        ("password='hunter2'' and\nx", "hunter2"),
        ("password: \"hunter2\"\n  more", "hunter2"),
    ] {
        takes(text, secret);
    }
}

#[test]
fn s3_what_stands_below_a_name_may_be_no_value() {
    for text in [
        "password:\n  type: string",
        "\"password\":\n  \"type\": \"string\"",
        "secrets:\n  - db_password",
        "secrets:\n  github",
        "password:\nUSER: bob",
        "Enter your password:\n  hunter",
        "password: |\n  The password is kept in the vault.\n",
        "password: |\nport: 5432",
        "password: |\n  ${PASSWORD}\n",
        "password: !vault |\n  6162636465666768",
        "secrets: [\"db_password\", \"api_key\", \"github\"]",
        "password: [\"\", \"****\"]",
        "pw=a,b",
        "connect(password=pw,5)",
        "pass=e,foo(bar1234)",
        "PASSWORD=\nUSER=bob",
    ] {
        keeps(text);
    }
}

#[test]
fn a_field_under_a_name_that_promises_a_secret_goes_whole() {
    let mut value = serde_json::json!({
        "password": "correct horse, battery & staple", "token": ["abcd efgh 1234"], "secret": "the way is long",
        "pass": "hunter2 is the old one",
    });
    redact_value(&mut value, Mode::Standard, Form::Kind);
    let expected = serde_json::json!({
        "password": "[REDACTED:password]", "token": ["[REDACTED:token]"], "secret": "the way is long",
        "pass": "[REDACTED:password] is the old one",
    });
    assert_eq!(value, expected);
}

#[test]
fn s2_cards_accounts_and_social_security_numbers_are_taken_by_their_checks() {
    for card in [
        "4111 1111 1111 1111",
        "4111111111111111",
        "4111-1111-1111-1111",
        "5555555555554444",
        "378282246310005",
        "3782 822463 10005",
        "6011111111111117",
        "30569309025904",
        "3530111333300000",
        "2223003122003222",
    ] {
        takes(&format!("card {card} 12/27"), card);
        takes(&format!("({card})."), card);
    }
    takes("0000 4111 1111 1111 1111", "4111 1111 1111 1111");
    for account in [
        "DE89 3704 0044 0532 0130 00",
        "DE89370400440532013000",
        "GB82 WEST 1234 5698 7654 32",
        "NL91ABNA0417164300",
        "FR14 2004 1010 0505 0001 3M02 606",
    ] {
        takes(&format!("to {account}, thanks"), account);
    }
    takes("his number is 123-45-6789.", "123-45-6789");
}

#[test]
fn s3_numbers_that_do_not_check_are_kept() {
    for text in [
        "4111 1111 1111 1112",
        "1234567890123456",
        "0000 0000 0000 0000",
        "1769767200007",
        "978-3-16-148410-0",
        "0.4111111111111111",
        "a4111111111111111",
        "12345678-1234-1234-1234-123456789012",
        "DE89 3704 0044 0532 0130 01",
        "ZZ89370400440532013000",
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "123-00-4567",
        "123-45-0000",
        "123-45-67890",
        "2026-01-30",
        "192.168.100.200",
    ] {
        keeps(text);
    }
}

const PLACEHOLDERS: &[&str] = &[
    "API_KEY=changeme",
    "API_KEY=${API_KEY}",
    "API_KEY=$API_KEY",
    "password: ${{ secrets.PASSWORD }}",
    "password: {{ vault_password }}",
    "api_key = os.environ[\"API_KEY\"]",
    "api_key = os.getenv('API_KEY')",
    "const token = process.env.TOKEN;",
    "token=<key>",
    "token: <your token>",
    "password=****",
    "password: \"********\"",
    "password: xxxxxxxx",
    "API_KEY=YOUR_API_KEY",
    "API_KEY=your-api-key-here",
    "password=%PASSWORD%",
    "password=%s",
    "password = None",
    "\"password\": null",
    "\"password\": \"\"",
    "password=",
    "password: string",
    "password?: string;",
    "password: Option<String>,",
    "token: String,",
    "apiKey: string",
    "password=password",
    "user.password = password",
    "connect(password=db_password)",
    "token = get_token()",
    "secret = secrets.token_hex(32)",
    "password = getpass.getpass()",
    "password = input(\"Password: \")",
    "api_key=settings.api_key",
    "self.token = token",
    "password: !vault |",
    "password=op://vault/item/field",
    "PASSWORD=$(cat /run/secrets/db)",
    "password_file: /run/secrets/db",
    "password=/run/secrets/db_password",
    "sk-...",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "AKIAXXXXXXXXXXXXXXXX",
    "sk-spinner-double-bounce-container",
    "token: expired",
    "token: usize,",
    "brace_token: syn::token::Brace,",
    "TOKEN => Ok(x),",
    "the password is required",
    "the token is 512 long",
    "postgres://user:${DB_PASSWORD}@h/x",
    "postgres://user:****@h/x",
    "postgres://user:<password>@h/x",
    "https://user:password@example.org",
    "token=[REDACTED]",
    "--password <password>",
    "$password = $_POST['password'];",
    "password: *default_password",
    "key=#{ENV['KEY']}",
    "api_key=example",
    "token = request.headers['x']",
    "SECRET_KEY=replace-me",
];

#[test]
fn s3_references_and_placeholders_are_kept() {
    for text in PLACEHOLDERS {
        keeps(text);
    }
}

const PROSE: &[&str] = &[
    "The password must be at least 12 characters long.",
    "Password: must be at least 8 characters",
    "Enter your password:",
    "a strong password is important",
    "the secret: practice every day",
    "Token: a unit of text",
    "print(\"Password:\", x)",
    "\"password\": \"This field is required.\"",
    "tokens: 1234",
    "max_tokens=4096",
    "\"total_tokens\": 51",
    "token_count: 12",
    "token: 512",
    "Tokens used: 1,234",
    "next_page_token=abcdefgh",
    "eos_token = \"</s>\"",
    "keyboard: qwerty",
    "monkey=banana",
    "author: Jane",
    "passenger: Bob",
    "secretary: Ann",
    "tokenize=True",
    "primary_key: user_id",
    "key: value",
    "password_hash: $2b$12$abcdefghijklmnopqrstuv",
    "token_type=bearer",
    "pass the salt",
    "passed: 12 failed: 3",
    "Use the --token flag.",
    "Authority: none",
    "password reset link",
    "if password == \"\":",
    "def login(user, password):",
    "Token::new(x)",
    "https://example.org/token/reset",
    "keys: a, b",
    "api: v1",
    "session: 5",
];

#[test]
fn s3_prose_and_counts_are_kept() {
    for text in PROSE {
        keeps(text);
    }
}

#[test]
fn s3_public_keys_certificates_hashes_and_uuids_are_kept() {
    let body = "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAu1SU1LfVLPHCozMxH2Mo";
    for label in ["PUBLIC KEY", "CERTIFICATE", "RSA PUBLIC KEY", "CERTIFICATE REQUEST"] {
        keeps(&format!("-----BEGIN {label}-----\n{body}\n4111111111111111\n-----END {label}-----"));
    }
    for text in [
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ bob@host",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 4f3a1b2c5d6e7f8091a2b3c4d5e6f708192a3b4c",
        "\"integrity\": \"sha512-abcDEF0123456789+/==\"",
        "id=550e8400-e29b-41d4-a716-446655440000",
        "pk_live_0123456789abcdefghijABCD",
        "public_key = \"abcdefgh12345678\"",
        "etag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
        "run_01j9x8y7z6w5v4t3s2r1q0p9n8",
        "SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDoHcSGhLZNcr0bMPo",
        "adj_list",
    ] {
        keeps(text);
    }
}

#[test]
fn s4_only_strict_mode_takes_mail_addresses_and_phone_numbers() {
    for secret in [
        "ada@example.org",
        "a.b+c@sub.example.co.uk",
        "+49 30 12345678",
        "+1 (555) 123-4567",
        "(555) 123-4567",
        "555-123-4567",
        "030 1234567",
        "+15551234567",
    ] {
        let text = format!("call or write {secret}, please");
        keeps(&text);
        let strict = redact(&text, Mode::Strict);
        assert!(
            !strict.contains(secret) && strict.starts_with("call or write [REDACTED:") && strict.ends_with("], please"),
            "{strict}"
        );
    }
    for text in [
        "2026-01-30 10:15:00",
        "192.168.0.1",
        "v1.2.3",
        "@bot",
        "a@b",
        "1,234,567",
        "10.0.0.0/8",
        "port 5432",
        "1769767200007",
    ] {
        assert_eq!(redact(text, Mode::Strict), text);
    }
}

#[test]
fn s5_invisible_characters_do_not_hide_a_secret() {
    for hidden in
        ["\u{200B}", "\u{200C}", "\u{200D}", "\u{2060}", "\u{FEFF}", "\u{AD}", "\\u200b", "\\u00ad", "\u{200B}\u{AD}"]
    {
        let text = format!("a ghp_{}{hidden}{} b", &BODY[..12], &BODY[12..]);
        assert_eq!(redact(&text, Mode::Standard), "a [REDACTED:github] b", "{hidden:?}");
        let text = format!("pass{hidden}word=hunter2");
        assert_eq!(redact(&text, Mode::Standard), format!("pass{hidden}word=[REDACTED:password]"), "{hidden:?}");
        keeps(&format!("plain{hidden} text"));
    }
    let card =
        redact("4111\u{200B}1111 \u{AD}11111111 4111\u{200B}1111\u{AD}1111\u{FEFF}1111", Mode::Standard).into_owned();
    assert_eq!(card, "4111\u{200B}1111 \u{AD}11111111 [REDACTED:card]");
}

#[test]
fn s5_escapes_do_not_hide_a_secret() {
    let escaped: String = format!("ghp_{BODY}").chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    assert_eq!(redact(&format!("a {escaped} b"), Mode::Standard), "a [REDACTED:github] b");
    assert_eq!(redact(&format!("gh\\u0070_{BODY}"), Mode::Standard), "[REDACTED:github]");
    assert_eq!(
        redact("\\u0070assword\\u003dhunter2\\u0026x=1", Mode::Standard),
        "\\u0070assword\\u003d[REDACTED:password]\\u0026x=1"
    );
    assert_eq!(
        redact("{\"a\":\"line\\nghp_0123456789abcdefghijABCDEFGHIJ012345\\n\"}", Mode::Standard),
        "{\"a\":\"line\\n[REDACTED:github]\\n\"}"
    );
    keeps("C:\\new\\tables\\u12 \\\\server\\share \\u00e9");
}

/// Long enough that what is not linear takes minutes for a single piece, and is stopped by whoever runs the tests.
const LONG: usize = 40_000;

const PIECES: &[&str] = &[
    "a",
    "4",
    "\\",
    "-",
    "@",
    "eyJ",
    "eyJ.",
    "password=",
    "password='",
    "password: ",
    "a token:",
    "token=$",
    "Authorization: ",
    "authorization:",
    "Cookie: a=b;",
    "Bearer ",
    "-----BEGIN PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "://",
    "://a:",
    "a:b@",
    "sk-",
    "4111 ",
    "DE89 ",
    "\u{200B}",
    "\\u0041",
    "<password>",
    "key key key ",
    "--token ",
    "\\\"password\\\":\\\"",
    "123-45-",
    "+1 ",
    "x@x.",
    "ghp_0",
    "password=\"a ",
    "PASSWORD=a ",
    "[REDACTED:",
    "token=<",
    "password:b",
    "pw=a,b/",
    "pw=abcd&x/",
    "password='a''",
    "pw: |\n ",
    "pw: |\\n ",
    "pw: #",
    "pw:\n ",
    "token:[\"a\",",
    "token:[",
    "Authorization: Basic dXNlcjpwYXNz ",
    "Authorization: abc123 -x ",
    "\"cookie\":[\"a=b\",",
    "[REDACTED:x]",
    "pw='[REDACTED:x] ",
    "name:password,value:",
    "name:password,a:'",
    "\"--token\",",
    "glpat-0123456789abcdef..",
];

#[test]
fn s5_long_inputs_take_linear_time() {
    for piece in PIECES {
        let long = piece.repeat(LONG / piece.len());
        for text in [format!("a {long}"), format!("password=\"{long}")] {
            let clean = redact(&text, Mode::Strict);
            assert!(clean.starts_with(['a', 'p']), "{piece:?}");
        }
    }
}

#[test]
fn s5_many_blocks_take_linear_time() {
    let unclosed = format!("{}END ", "-----BEGIN A-----".repeat(LONG));
    let mut found = Vec::new();
    assert_eq!((pem::find(&unclosed, &mut found), found), (Vec::new(), Vec::new()));
    let public = "-----BEGIN CERTIFICATE-----\n4111111111111111\n-----END CERTIFICATE-----\n";
    let many = public.repeat(LONG / public.len());
    assert_eq!(redact(&many, Mode::Standard), many);
}

#[test]
fn s5_values_under_a_long_name_take_linear_time() {
    let name = format!("{}password", "a_".repeat(LONG));
    let mut value = serde_json::json!({&name: vec!["hunter2"; 20_000]});
    redact_value(&mut value, Mode::Standard, Form::Kind);
    assert_eq!(value[&name][19_999], "[REDACTED:password]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn redacting_is_idempotent_and_never_panics(
        text in "(password|token|secret|Bearer |Authorization: |Cookie: |api_key|://|sk-|ghp_[a-z0-9]{20}|eyJ|4111 1111 1111 1111|[=:@\"'<>;&?$\\\\ \\n.-]|\\[REDACTED:x\\]|[a-z0-9]{1,8}|\\\\u00[0-7][0-9a-f]|\u{200B}|\\PC){0,14}"
    ) {
        for mode in [Mode::Standard, Mode::Strict] {
            let once = redact(&text, mode).into_owned();
            prop_assert_eq!(redact(&once, mode).into_owned(), once);
        }
    }

    #[test]
    fn a_token_is_found_between_any_signs(before in "[ \"'(,;=\n|]{0,2}", after in "[ \"'),;\n|]{0,2}", body in "[a-z]{10}[A-Z]{10}[0-9]{16}") {
        let text = format!("{before}ghp_{body}{after}");
        prop_assert!(!redact(&text, Mode::Standard).contains(&body));
    }
}
