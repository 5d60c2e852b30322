//! Cases of `check redact`.

use serde::Deserialize;
use serde_json::Value;

use super::{BadCase, finished, line, read, text_of};
use crate::guard::redact::{Mode, redact};

#[derive(Debug, Deserialize)]
struct Case {
    text: Option<Value>,
    parts: Option<Value>,
    mode: Option<String>,
    expect: Option<String>,
    #[serde(default)]
    secrets: Vec<Value>,
    #[serde(default)]
    keep: Vec<Value>,
}

/// Redacts the text of a case and compares the outcome with what it expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(case: &Value) -> Result<Value, BadCase> {
    let parsed: Case = read(case)?;
    let text = text_of(parsed.text.as_ref().or(parsed.parts.as_ref()).unwrap_or(&Value::Null))?;
    let mode = match parsed.mode.as_deref() {
        None | Some("default" | "standard") => Mode::Standard,
        Some("strict") => Mode::Strict,
        Some(other) => return Err(BadCase(format!("there is no mode {other:?}"))),
    };
    let clean = redact(&text, mode);
    let texts = |values: &[Value]| values.iter().map(text_of).collect::<Result<Vec<_>, _>>();
    let (secrets, keep) = (texts(&parsed.secrets)?, texts(&parsed.keep)?);
    let pass = parsed.expect.as_deref().map(|expect| match expect {
        "keep" => clean == text,
        "redact" => {
            clean != text
                && !secrets.iter().any(|secret| clean.contains(secret.as_str()))
                && keep.iter().all(|kept| clean.contains(kept.as_str()))
        }
        _ => false,
    });
    let mut line = line(case);
    line.insert("text".to_owned(), clean.into());
    Ok(finished(line, pass))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_case_passes_when_secrets_are_gone_and_the_rest_is_there() {
        let case = |keep: &str| json!({"id": 1, "expect": "redact", "parts": ["password=", "hunter2", " x"], "secrets": [["hun", "ter2"]], "keep": [keep]});
        assert_eq!(
            check(&case(" x")).unwrap(),
            json!({"id": 1, "text": "password=[REDACTED:password] x", "pass": true})
        );
        assert_eq!(check(&case("y")).unwrap()["pass"], json!(false));
        assert_eq!(check(&json!({"id": 1, "expect": "keep", "text": "a@b.org"})).unwrap()["pass"], json!(true));
        assert_eq!(
            check(&json!({"id": 1, "expect": "keep", "text": "a@b.org", "mode": "strict"})).unwrap()["pass"],
            json!(false)
        );
        assert!(check(&json!({"id": 1, "text": "", "mode": "wild"})).is_err());
    }
}
