//! Cases of `check mentions`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{BadCase, finished, line, read};
use crate::guard::mention::{AuthorKind, Known, MAX_HOPS, Post, mentions, triggers};

#[derive(Debug, Deserialize)]
struct Case {
    author: Option<Author>,
    text: String,
    /// The text before an edit.
    #[serde(alias = "previous", alias = "previous_text", alias = "old_text", alias = "edited_from")]
    before: Option<String>,
    #[serde(default)]
    known: Vec<Handle>,
    /// Handles that are known but may not be started.
    #[serde(default, alias = "paused")]
    inactive: Vec<String>,
    /// If given, the only handles that may be started.
    active: Option<Vec<String>>,
    #[serde(default)]
    chain: Vec<String>,
    max_hops: Option<usize>,
    expect: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Author {
    #[serde(rename = "type")]
    kind: String,
    handle: Option<String>,
}

/// A handle, alone or with what is known about it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Handle {
    Name(String),
    Full {
        handle: String,
        #[serde(default = "yes")]
        active: bool,
    },
}

const fn yes() -> bool {
    true
}

/// Finds whom the text of a case mentions and starts, and compares that with what it expects.
///
/// # Errors
/// Fails when the case cannot be read.
pub fn check(case: &Value) -> Result<Value, BadCase> {
    let parsed: Case = read(case)?;
    let listed = |list: &[String], handle: &str| list.iter().any(|name| name.eq_ignore_ascii_case(handle));
    let known: Vec<Known<'_>> = parsed
        .known
        .iter()
        .map(|known| {
            let (handle, active) = match known {
                Handle::Name(handle) => (handle, true),
                Handle::Full { handle, active } => (handle, *active),
            };
            let allowed = parsed.active.as_ref().is_none_or(|only| listed(only, handle));
            Known { handle, active: active && allowed && !listed(&parsed.inactive, handle) }
        })
        .collect();
    let post = Post {
        author: parsed.author.as_ref().map_or(AuthorKind::System, |author| kind(&author.kind)),
        author_handle: parsed.author.as_ref().and_then(|author| author.handle.as_deref()),
        text: &parsed.text,
        before: parsed.before.as_deref(),
        chain: &parsed.chain,
        max_hops: parsed.max_hops.unwrap_or(MAX_HOPS),
    };
    let (mentioned, started) = (json!(mentions(&parsed.text, &known)), json!(triggers(&post, &known)));
    let agrees = |expect: &Value, key: &str, found: &Value| expect.get(key).is_none_or(|expected| expected == found);
    let pass =
        parsed.expect.map(|expect| agrees(&expect, "mentions", &mentioned) && agrees(&expect, "triggers", &started));
    let mut line = line(case);
    line.insert("mentions".to_owned(), mentioned);
    line.insert("triggers".to_owned(), started);
    Ok(finished(line, pass))
}

/// An author of a kind that is not known starts nobody, as someone outside would.
fn kind(name: &str) -> AuthorKind {
    serde_json::from_value(Value::String(name.to_owned())).unwrap_or(AuthorKind::External)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(fields: Value) -> Value {
        let mut case = json!({"id": "m", "author": {"type": "human", "handle": "ada"}, "text": "@bot @scribe", "known": ["bot", "scribe"]});
        case.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        check(&case).unwrap()["triggers"].clone()
    }

    #[test]
    fn m4_the_fields_of_a_case_narrow_whom_it_starts() {
        assert_eq!(started(json!({})), json!(["bot", "scribe"]));
        assert_eq!(started(json!({"inactive": ["Bot"]})), json!(["scribe"]));
        assert_eq!(started(json!({"active": ["bot"]})), json!(["bot"]));
        assert_eq!(started(json!({"known": [{"handle": "bot", "active": false}, "scribe"]})), json!(["scribe"]));
        assert_eq!(started(json!({"chain": ["bot"]})), json!(["scribe"]));
        assert_eq!(started(json!({"chain": ["x"], "max_hops": 1})), json!([]));
        assert_eq!(started(json!({"before": "@bot"})), json!(["scribe"]));
        for author in [json!({"type": "external"}), json!({"type": "system"}), json!({"type": "alien"}), Value::Null] {
            assert_eq!(started(json!({"author": author})), json!([]));
        }
        assert_eq!(started(json!({"author": {"type": "agent", "handle": "bot"}})), json!(["scribe"]));
    }
}
