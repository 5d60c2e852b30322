//! The little YAML that front matter needs: reading a mapping within tight limits, and writing a value on one line so that
//! every reader of YAML, old or new, takes it for what it is.

use serde_json::{Map, Value};

use crate::limits;

/// Plain words that some reader of YAML takes for something other than a string.
const RESERVED: &[&str] =
    &["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "none"];

/// Reads a mapping. Nothing but blanks and comments is an empty one.
pub(super) fn mapping(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > limits::FRONT_MATTER_BYTES {
        return Err(format!("it has more than {} bytes", limits::FRONT_MATTER_BYTES));
    }
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str_with_options::<Value>(text, options()) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Err("it is not a list of `key: value` lines".to_owned())
        }
        Err(error) => Err(first_line(&error.to_string())),
    }
}

/// Limits that a front matter of a person never meets and a bomb always does.
fn options() -> serde_saphyr::Options {
    let budget = serde_saphyr::budget! {
        max_events: 20_000,
        max_aliases: 100,
        max_anchors: 100,
        max_depth: 64,
        max_recorded_anchor_events: 20_000,
    };
    serde_saphyr::options! { budget: budget, strict_booleans: true, with_snippet: false }
}

/// Errors of the parser may run over several lines; the first says what is wrong and where.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

/// A value on one line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries: Vec<String> =
                map.iter().map(|(key, value)| format!("{}: {}", scalar(key), inline(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

/// A string, plain where nobody can misread it, else in double quotes.
pub(super) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    if is_date(text) {
        return true;
    }
    let inside = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '_' | '-' | '.' | '/');
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.chars().all(inside)
        && !text.ends_with(' ')
        && !RESERVED.contains(&text.to_ascii_lowercase().as_str())
}

/// A calendar day is written plain, as people write it and as note-taking programs recognise it.
fn is_date(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Line separators break a line in old YAML, and a byte order mark is swallowed anywhere.
            '\u{2028}' | '\u{2029}' | '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}' => {
                out.push_str(&format!("\\u{:04X}", u32::from(c)))
            }
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_written_on_one_line_and_reads_back_as_itself() {
        let values = [
            json!("plain words"),
            json!("2026-01-30"),
            json!("yes"),
            json!("No"),
            json!("12"),
            json!("1e3"),
            json!("~"),
            json!("a: b"),
            json!("# no comment"),
            json!("a\nb\tc"),
            json!("\u{7f}\u{85}\u{2028}\u{FEFF}"),
            json!(""),
            json!(" blank "),
            json!("- item"),
            json!("\"quoted\" \\ 'single'"),
            json!("ünïcode ✓"),
            json!("null"),
            json!(null),
            json!(true),
            json!(3),
            json!(-2.5),
            json!(1e100),
            json!([1, "two", ["three"], {}]),
            json!({"a": {"b": [true, "x: y"]}, "c d": "e, f", "on": "off"}),
            json!([]),
        ];
        for value in values {
            let line = inline(&value);
            assert!(!line.contains('\n'), "{line}");
            let read = mapping(&format!("k: {line}\n")).unwrap();
            assert_eq!(read.get("k"), Some(&value), "{line}");
        }
    }

    #[test]
    fn words_that_need_no_quotes_have_none() {
        assert_eq!(inline(&json!(["draft", "in review", "2026-01-30"])), "[draft, in review, 2026-01-30]");
        assert_eq!(inline(&json!("yes")), "\"yes\"");
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let alias = format!("*a{}", n - 1);
            text.push_str(&format!("a{n}: &a{n} [{}]\n", vec![alias; 9].join(", ")));
        }
        assert!(mapping(&text).is_err());
        assert!(mapping(&"[".repeat(5000)).is_err());
    }
}
