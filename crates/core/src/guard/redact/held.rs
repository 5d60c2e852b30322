//! Credentials that are held here. They need no shape to be known by: wherever one of them turns up it is replaced.

use std::borrow::Cow;
use std::fmt;

use regex::{NoExpand, Regex, RegexBuilder};
use serde_json::Value;

/// What stands where a credential was.
pub(crate) const MARK: &str = "[REDACTED:credential]";
/// Shorter values are left alone: they would be found in words.
const SHORTEST: usize = 8;
/// Room for the automaton of as many and as long keys as a workspace may keep.
const AUTOMATON_BYTES: usize = 256 << 20;

/// The values of credentials, as something that finds them. It is not printed.
#[derive(Default)]
pub struct Held(Option<Regex>);

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

impl Held {
    /// Finds these values, as they are and as they are written inside of JSON.
    ///
    /// # Errors
    /// When they are too many or too long to be looked for.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Self, TooMuch> {
        let long = values.into_iter().map(str::trim).filter(|value| value.len() >= SHORTEST);
        let mut forms: Vec<String> = long.flat_map(|value| [value.to_owned(), in_json(value)]).collect();
        // The longest first: of two that begin alike, the whole of the longer one goes.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        if forms.is_empty() {
            return Ok(Self(None));
        }
        let pattern = forms.iter().map(|form| regex::escape(form)).collect::<Vec<_>>().join("|");
        let built = RegexBuilder::new(&pattern).size_limit(AUTOMATON_BYTES).build();
        // What went wrong would quote the pattern.
        built.map(|regex| Self(Some(regex))).map_err(|_| TooMuch)
    }

    /// The text without them.
    #[must_use]
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.0 {
            Some(regex) => regex.replace_all(text, NoExpand(MARK)),
            None => Cow::Borrowed(text),
        }
    }

    /// A JSON text without them, if there are any in it. Names of fields stay.
    pub(crate) fn clean_json(&self, json: &str) -> Option<Vec<u8>> {
        if !self.0.as_ref()?.is_match(json) {
            return None;
        }
        let mut value = serde_json::from_str(json).ok()?;
        self.clean_value(&mut value);
        serde_json::to_vec(&value).ok()
    }

    fn clean_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.clean(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.clean_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// There are too many credentials to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the keys that are held are too many or too long to be looked for in what is recorded")]
pub struct TooMuch;

fn in_json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_value_is_replaced_wherever_it_stands_and_nothing_else_is() {
        let held = Held::new(["correct-horse", "correct-horse-battery", "short", " padded-value\n"]).unwrap();
        let clean = |text: &str| held.clean(text).into_owned();
        assert_eq!(clean("a correct-horse."), "a [REDACTED:credential].");
        assert_eq!(clean("xcorrect-horse-batteryx"), "x[REDACTED:credential]x", "the longer one goes whole");
        assert_eq!(clean("padded-value short correct horse"), "[REDACTED:credential] short correct horse");
        assert_eq!(clean(&clean("correct-horse")), "[REDACTED:credential]");
        assert!(matches!(Held::default().clean("correct-horse"), Cow::Borrowed("correct-horse")));
        assert_eq!(format!("{held:?}"), "Held");
    }

    #[test]
    fn a_value_with_quotes_is_found_inside_of_json_too() {
        let held = Held::new([r#"a"b\c"d(e$1"#]).unwrap();
        let json = serde_json::json!({"deep": [{"text": r#"<a"b\c"d(e$1>"#}], "n": 1}).to_string();
        let clean: Value = serde_json::from_slice(&held.clean_json(&json).unwrap()).unwrap();
        assert_eq!(clean, serde_json::json!({"deep": [{"text": "<[REDACTED:credential]>"}], "n": 1}));
        assert_eq!(held.clean(&json), r#"{"deep":[{"text":"<[REDACTED:credential]>"}],"n":1}"#);
        assert_eq!(held.clean_json(r#"{"n":1}"#), None);
    }

    #[test]
    fn as_many_keys_as_a_workspace_may_keep_are_looked_for() {
        let keys: Vec<String> = (0..200).map(|n| format!("{n:04}{}", "k".repeat(4092))).collect();
        let held = Held::new(keys.iter().map(String::as_str)).unwrap();
        assert_eq!(held.clean(&keys[150]), MARK);
    }
}
