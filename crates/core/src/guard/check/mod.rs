//! Cases for `adjutant check`: judged offline by the code that judges real calls, so that an operator can keep policy tests
//! in CI. Pure: what needs a real tree of files or a whole world of tools is added by the command.

pub mod calls;
pub mod cron;
pub mod mentions;
pub mod paths;
pub mod redact;
mod tools;
pub mod urls;
pub mod world;

use serde_json::{Map, Value};

use super::scope::Denied;

/// Bytes a case may grow to when its `$repeat`s are written out.
const EXPANDED_BYTES: usize = 64 * 1024 * 1024;

/// A case that cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the case cannot be read: {0}")]
pub struct BadCase(pub String);

/// What a case is about. Tool calls need a world and the whole guard, so they are judged elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseKind {
    /// Actions on paths.
    Paths,
    /// Requests.
    Urls,
    /// Texts with and without secrets.
    Redact,
    /// Texts that mention agents.
    Mentions,
    /// Schedules.
    Cron,
}

/// Judges one case by its text: the answer line, with `pass` where the case says what it expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(kind: CaseKind, case: &Value) -> Result<Value, BadCase> {
    match kind {
        CaseKind::Paths => paths::check(case),
        CaseKind::Urls => urls::check(case),
        CaseKind::Redact => redact::check(case),
        CaseKind::Mentions => mentions::check(case),
        CaseKind::Cron => cron::check(case),
    }
}

/// Reads one line of a file of cases and writes out its long texts. A lone surrogate, which no text of ours can hold,
/// becomes NUL: like it, no path or URL may hold that.
///
/// # Errors
/// Fails when the line is not JSON or cannot be written out.
pub fn read_line(line: &str) -> Result<Value, BadCase> {
    read_with(line, '\0')
}

/// Reads one line of a file of turns. What stands for a lone surrogate refuses the call it stands in.
///
/// # Errors
/// Fails when the line is not JSON or cannot be written out.
pub fn read_turn(line: &str) -> Result<Value, BadCase> {
    read_with(line, calls::LONE_SURROGATE)
}

fn read_with(line: &str, lone: char) -> Result<Value, BadCase> {
    let value = serde_json::from_str(line).or_else(|_| serde_json::from_str(&without_lone_surrogates(line, lone)));
    expand(value.map_err(|error: serde_json::Error| BadCase(error.to_string()))?)
}

/// The JSON text with another character for every escaped surrogate that stands alone.
fn without_lone_surrogates(json: &str, lone: char) -> String {
    let mut units = [0; 2];
    let lone: String = lone.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect();
    let unit = |text: &str| {
        let digits = text.strip_prefix("\\u")?.get(..4)?;
        u16::from_str_radix(digits, 16).ok()
    };
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let (kept, length) = match unit(escape) {
            Some(0xD800..=0xDBFF) if matches!(escape.get(6..).and_then(unit), Some(0xDC00..=0xDFFF)) => {
                (escape.get(..12), 12)
            }
            Some(0xD800..=0xDFFF) => (Some(lone.as_str()), 6),
            Some(_) => (escape.get(..6), 6),
            // A backslash and what it escapes.
            None => {
                let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
                (escape.get(..length), length)
            }
        };
        mended.push_str(kept.unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    mended + rest
}

/// The answer to a case of `paths` or `urls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It would be done.
    Allow,
    /// It would not.
    Deny(Denied),
}

impl Answer {
    /// `allow` or `deny`.
    #[must_use]
    pub const fn verdict(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny(_) => "deny",
        }
    }

    fn line(&self, case: &Value) -> Map<String, Value> {
        let (rule, code, reason) = match self {
            Self::Allow => ("ok", "ok", "ok"),
            Self::Deny(denied) => (denied.rule, denied.code, denied.reason.as_str()),
        };
        let mut line = line(case);
        line.insert("verdict".to_owned(), self.verdict().into());
        line.insert("rule".to_owned(), rule.into());
        line.insert("code".to_owned(), code.into());
        line.insert("reason".to_owned(), reason.into());
        line
    }
}

impl From<Result<(), Denied>> for Answer {
    fn from(result: Result<(), Denied>) -> Self {
        match result {
            Ok(()) => Self::Allow,
            Err(denied) => Self::Deny(denied),
        }
    }
}

/// The beginning of an answer line: the id of the case.
fn line(case: &Value) -> Map<String, Value> {
    Map::from_iter([("id".to_owned(), case.get("id").cloned().unwrap_or_default())])
}

fn finished(mut line: Map<String, Value>, pass: Option<bool>) -> Value {
    line.extend(pass.map(|pass| ("pass".to_owned(), Value::Bool(pass))));
    Value::Object(line)
}

fn read<T: serde::de::DeserializeOwned>(case: &Value) -> Result<T, BadCase> {
    serde_json::from_value(case.clone()).map_err(|error| BadCase(error.to_string()))
}

/// Writes out `{"$repeat":[s,n]}` and `{"$concat":[…]}`, which stand for long texts.
///
/// # Errors
/// Fails when one of them is malformed or the text gets too long.
pub fn expand(value: Value) -> Result<Value, BadCase> {
    match value {
        Value::Array(items) => items.into_iter().map(expand).collect::<Result<_, _>>().map(Value::Array),
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("$repeat") => {
            match fields.remove("$repeat").map(expand).transpose()? {
                Some(Value::Array(items)) => repeated(&items).map(Value::String),
                Some(_) | None => Err(BadCase("$repeat takes a list".to_owned())),
            }
        }
        Value::Object(mut fields) if fields.len() == 1 && fields.contains_key("$concat") => {
            match fields.remove("$concat").map(expand).transpose()? {
                Some(Value::Array(items)) => joined(&items).map(Value::String),
                Some(_) | None => Err(BadCase("$concat takes a list".to_owned())),
            }
        }
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, field)| Ok((key, expand(field)?)));
            fields.collect::<Result<_, BadCase>>().map(Value::Object)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(value),
    }
}

fn repeated(items: &[Value]) -> Result<String, BadCase> {
    let [Value::String(text), count] = items else {
        return Err(BadCase("$repeat takes a text and a number".to_owned()));
    };
    let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
    match count.filter(|count| text.len().saturating_mul(*count) <= EXPANDED_BYTES) {
        Some(count) => Ok(text.repeat(count)),
        None => Err(BadCase("$repeat is not a number of times, or too many".to_owned())),
    }
}

fn joined(items: &[Value]) -> Result<String, BadCase> {
    let texts = items.iter().map(|item| item.as_str().ok_or_else(|| BadCase("$concat joins texts only".to_owned())));
    let text = texts.collect::<Result<String, _>>()?;
    if text.len() > EXPANDED_BYTES { Err(BadCase("$concat gets too long".to_owned())) } else { Ok(text) }
}

/// A text that may be written as a list of its parts.
fn text_of(value: &Value) -> Result<String, BadCase> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => joined(parts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            Err(BadCase("a text was expected".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_a_character_that_is_refused() {
        let read = |line: &str| read_line(line).unwrap();
        assert_eq!(read(r#"{"a":"x\ud800y"}"#), json!({"a": "x\0y"}));
        assert_eq!(read(r#"{"a":"\udc00\ud83d\ude00\ud83d"}"#), json!({"a": "\0😀\0"}));
        assert_eq!(read(r#"{"a":"\\ud800 \ud800"}"#), json!({"a": "\\ud800 \0"}));
        assert!(read_line("{\"a\":").is_err());
    }

    #[test]
    fn long_texts_are_written_out() {
        let value = json!({"a": {"$concat": ["x", {"$repeat": ["ab", 3]}, "y"]}, "b": [{"$repeat": ["", 5]}], "c": {"$repeat": ["a", 1], "d": 1}});
        assert_eq!(expand(value).unwrap(), json!({"a": "xabababy", "b": [""], "c": {"$repeat": ["a", 1], "d": 1}}));
        for wrong in [
            json!({"$repeat": "a"}),
            json!({"$repeat": ["a", -1]}),
            json!({"$repeat": ["ab", 99_999_999_u64]}),
            json!({"$concat": [1]}),
        ] {
            assert!(expand(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
