//! The content filter of an agent: what texts may hold at five points of a run. It can block, redact, ask or label; it
//! can never allow. It is a hook for house rules, not a control against a hostile model: words can always be written otherwise.

use std::borrow::Cow;
use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redact::{self, Mode};
use crate::label::Labels;

/// Entries of one filter: each text is searched by all of them.
const ENTRIES: usize = 50;
/// Bytes a compiled pattern may take.
const PATTERN_BYTES: usize = 1024 * 1024;
/// What stands for text that a pattern took out.
const TAKEN_OUT: &str = "[REDACTED:filter]";

/// One entry of `content_filter`, as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FilterEntry {
    /// A regular expression; either this or a category.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// A kind of content that the redactor finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<FilterCategory>,
    /// Where it is looked for.
    pub points: BTreeSet<FilterPoint>,
    /// What becomes of it.
    pub action: FilterAction,
}

/// A kind of content that the redactor finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterCategory {
    /// Tokens, keys, passwords, card numbers (S2).
    Secrets,
    /// The same, and mail addresses and phone numbers (S4).
    Personal,
}

/// A point of a run at which texts are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterPoint {
    /// What a person says.
    Prompt,
    /// The name of the tool that the model chose.
    Tool,
    /// The arguments of a call.
    Input,
    /// What a tool answers, and what the model answers.
    Output,
    /// What is to be remembered.
    Memory,
}

/// What becomes of a text that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterAction {
    /// The message is not taken, the call not made, the answer not shown.
    Block,
    /// It is taken out of the text.
    Redact,
    /// A person is asked before the call is made.
    Ask,
    /// The run counts as having seen private data.
    Label,
}

/// What a filter found in a text, and what the text is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filtered<'a> {
    /// The text, without what was taken out.
    pub text: Cow<'a, str>,
    /// The entry that blocks it, by its place in the list.
    pub blocked: Option<usize>,
    /// The entry that asks.
    pub asks: Option<usize>,
    /// Entries that took something out.
    pub redacted: BTreeSet<usize>,
    /// What it adds to the run's labels.
    pub labels: Labels,
}

/// A filter made ready for many texts.
#[derive(Debug, Clone, Default)]
pub struct Filter(Vec<Entry>);

#[derive(Debug, Clone)]
struct Entry {
    finds: Finds,
    points: BTreeSet<FilterPoint>,
    action: FilterAction,
}

#[derive(Debug, Clone)]
enum Finds {
    Pattern(Regex),
    Redactor(Mode),
    /// A stored entry that cannot be read finds everything: a filter that fails must not let through (G2).
    Everything,
}

/// What stands for a text that an entry blocks.
#[must_use]
pub fn withheld(entry: usize) -> String {
    format!("[withheld by entry {entry} of the content filter]")
}

/// What is wrong with an entry. One with problems must not be saved.
#[must_use]
pub fn problems(entries: &[FilterEntry]) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    if entries.len() > ENTRIES {
        problems.push(("content_filter".to_owned(), format!("use at most {ENTRIES} entries")));
    }
    for (index, entry) in entries.iter().enumerate() {
        let mut add = |why: String| problems.push((format!("content_filter[{index}]"), why));
        match (&entry.pattern, entry.category) {
            (Some(_), Some(_)) | (None, None) => add("give a pattern or a category".to_owned()),
            (Some(pattern), None) => match compile(pattern) {
                Ok(found) if found.is_match("") => add("the pattern finds nothing at all, in every text".to_owned()),
                // Else a text that is looked at twice would change twice.
                Ok(found) if found.is_match(TAKEN_OUT) => add(format!("the pattern finds {TAKEN_OUT} too")),
                Ok(_) => {}
                Err(bad) => add(format!("the pattern cannot be used: {bad}")),
            },
            (None, Some(_)) => {}
        }
        if entry.points.is_empty() {
            add("name at least one of prompt, tool, input, output, memory".to_owned());
        }
        let at = |point| entry.points.contains(&point);
        match entry.action {
            FilterAction::Ask if at(FilterPoint::Prompt) || at(FilterPoint::Output) => {
                add("only calls can ask: use the points tool, input, memory".to_owned());
            }
            FilterAction::Redact if at(FilterPoint::Tool) => {
                add("the name of a tool cannot be redacted; block it".to_owned())
            }
            FilterAction::Ask | FilterAction::Redact | FilterAction::Block | FilterAction::Label => {}
        }
    }
    problems
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build()
}

impl Filter {
    /// A filter that finds nothing.
    #[must_use]
    pub fn none() -> &'static Self {
        static NONE: Filter = Filter(Vec::new());
        &NONE
    }

    /// Makes a filter ready.
    #[must_use]
    pub fn new(entries: &[FilterEntry]) -> Self {
        let entry = |entry: &FilterEntry| Entry {
            finds: match (&entry.pattern, entry.category) {
                (Some(pattern), None) => compile(pattern).map_or(Finds::Everything, Finds::Pattern),
                (None, Some(FilterCategory::Secrets)) => Finds::Redactor(Mode::Standard),
                (None, Some(FilterCategory::Personal)) => Finds::Redactor(Mode::Strict),
                (Some(_), Some(_)) | (None, None) => Finds::Everything,
            },
            points: entry.points.clone(),
            action: entry.action,
        };
        Self(entries.iter().map(entry).collect())
    }

    /// Whether any entry looks at this point.
    #[must_use]
    pub fn looks_at(&self, point: FilterPoint) -> bool {
        self.0.iter().any(|entry| entry.points.contains(&point))
    }

    /// Whether a text that is looked at here may come out of it as another, or not at all.
    #[must_use]
    pub fn may_change(&self, point: FilterPoint) -> bool {
        let changes = |entry: &&Entry| match entry.action {
            FilterAction::Block | FilterAction::Redact => true,
            FilterAction::Ask | FilterAction::Label => false,
        };
        self.0.iter().filter(|entry| entry.points.contains(&point)).any(|entry| changes(&entry))
    }

    /// Looks at one text.
    #[must_use]
    pub fn apply<'a>(&self, point: FilterPoint, text: &'a str) -> Filtered<'a> {
        let mut found = Filtered::untouched(text);
        for (index, entry) in self.0.iter().enumerate().filter(|(_, entry)| entry.points.contains(&point)) {
            let Some(without) = entry.finds.without(&found.text) else { continue };
            match entry.action {
                FilterAction::Block => found.blocked = found.blocked.or(Some(index)),
                FilterAction::Ask => found.asks = found.asks.or(Some(index)),
                FilterAction::Label => found.labels = found.labels.join(Labels::PRIVATE),
                FilterAction::Redact => {
                    found.text = Cow::Owned(without);
                    found.redacted.insert(index);
                }
            }
        }
        found
    }

    /// Looks at every text of a value, its keys too, and gives back the value without what was taken out of its texts.
    #[must_use]
    pub fn apply_to(&self, point: FilterPoint, value: &Value) -> (Value, Filtered<'static>) {
        let mut all = Filtered::untouched("");
        let changed = self.walk(point, value, &mut all);
        (changed, all)
    }

    fn walk(&self, point: FilterPoint, value: &Value, all: &mut Filtered<'static>) -> Value {
        match value {
            Value::String(text) => {
                let found = self.apply(point, text);
                all.take_in(&found);
                Value::String(found.text.into_owned())
            }
            Value::Array(items) => items.iter().map(|item| self.walk(point, item, all)).collect(),
            Value::Object(fields) => {
                let field = |(key, field): (&String, &Value)| {
                    // A key is looked at and kept: changing it would change what is asked for.
                    let found = self.apply(point, key);
                    all.take_in(&Filtered { redacted: BTreeSet::new(), ..found });
                    (key.clone(), self.walk(point, field, all))
                };
                Value::Object(fields.iter().map(field).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

impl Finds {
    /// The text without what is found in it; none if nothing is.
    fn without(&self, text: &str) -> Option<String> {
        match self {
            Self::Pattern(pattern) => match pattern.replace_all(text, TAKEN_OUT) {
                Cow::Borrowed(_) => None,
                Cow::Owned(without) => Some(without),
            },
            Self::Redactor(mode) => match redact::redact(text, *mode) {
                Cow::Borrowed(_) => None,
                Cow::Owned(without) => (without != text).then_some(without),
            },
            Self::Everything => Some(TAKEN_OUT.to_owned()),
        }
    }
}

impl<'a> Filtered<'a> {
    fn untouched(text: &'a str) -> Self {
        Self { text: Cow::Borrowed(text), blocked: None, asks: None, redacted: BTreeSet::new(), labels: Labels::NONE }
    }

    /// The finding, without the text it was found in.
    #[must_use]
    pub fn into_owned(self) -> Filtered<'static> {
        Filtered { text: Cow::Owned(self.text.into_owned()), ..self }
    }

    /// Adds what was found elsewhere.
    pub fn take_in(&mut self, other: &Filtered<'_>) {
        self.blocked = self.blocked.or(other.blocked);
        self.asks = self.asks.or(other.asks);
        self.redacted.extend(&other.redacted);
        self.labels = self.labels.join(other.labels);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filter(entries: Value) -> Filter {
        let entries: Vec<FilterEntry> = serde_json::from_value(entries).unwrap();
        assert_eq!(problems(&entries), []);
        Filter::new(&entries)
    }

    #[test]
    fn each_action_does_its_own_thing_at_its_own_points() {
        let filter = filter(json!([
            {"pattern": "(?i)project-x", "points": ["prompt", "output"], "action": "redact"},
            {"pattern": "forbidden", "points": ["prompt"], "action": "block"},
            {"pattern": "salary", "points": ["input"], "action": "ask"},
            {"pattern": "diagnosis", "points": ["output"], "action": "label"},
        ]));
        let found = filter.apply(FilterPoint::Prompt, "about Project-X and project-x");
        assert_eq!(found.text, "about [REDACTED:filter] and [REDACTED:filter]");
        assert_eq!(found.redacted, BTreeSet::from([0]));
        assert_eq!(filter.apply(FilterPoint::Input, "project-x").text, "project-x");
        assert_eq!(filter.apply(FilterPoint::Prompt, "forbidden").blocked, Some(1));
        assert_eq!(filter.apply(FilterPoint::Input, "the salary").asks, Some(2));
        assert_eq!(filter.apply(FilterPoint::Output, "a diagnosis").labels, Labels::PRIVATE);
        assert!(filter.looks_at(FilterPoint::Input) && !filter.looks_at(FilterPoint::Memory));
    }

    #[test]
    fn a_category_is_what_the_redactor_finds() {
        let entry = |category: &str| filter(json!([{"category": category, "points": ["output"], "action": "redact"}]));
        let text = "write to write@adjutant.dev, password=q9X2mL8vR4tZ";
        let secrets = entry("secrets").apply(FilterPoint::Output, text).text.into_owned();
        assert!(secrets.contains("write@adjutant.dev") && !secrets.contains("q9X2mL8vR4tZ"), "{secrets}");
        let personal = entry("personal").apply(FilterPoint::Output, text).text.into_owned();
        assert!(!personal.contains("write@adjutant.dev") && !personal.contains("q9X2mL8vR4tZ"), "{personal}");
    }

    #[test]
    fn every_text_of_the_arguments_is_looked_at() {
        let filter = filter(
            json!([{"pattern": "x+y", "points": ["input"], "action": "redact"}, {"pattern": "key", "points": ["input"], "action": "block"}]),
        );
        let (value, found) = filter.apply_to(FilterPoint::Input, &json!({"a": ["xxy", {"b": "1 xy 2"}], "n": 7}));
        assert_eq!(value, json!({"a": ["[REDACTED:filter]", {"b": "1 [REDACTED:filter] 2"}], "n": 7}));
        assert_eq!((found.redacted, found.blocked), (BTreeSet::from([0]), None));
        assert_eq!(filter.apply_to(FilterPoint::Input, &json!({"the key": 1})).1.blocked, Some(1));
    }

    #[test]
    fn what_cannot_work_is_not_saved_and_a_stored_entry_that_cannot_be_read_finds_everything() {
        let wrong = json!([
            {"points": ["input"], "action": "block"},
            {"pattern": "a", "category": "secrets", "points": ["input"], "action": "block"},
            {"pattern": "(", "points": ["input"], "action": "block"},
            {"pattern": "a*", "points": ["input"], "action": "block"},
            {"pattern": "a", "points": [], "action": "block"},
            {"pattern": "a", "points": ["prompt"], "action": "ask"},
            {"pattern": "a", "points": ["tool"], "action": "redact"},
        ]);
        let entries: Vec<FilterEntry> = serde_json::from_value(wrong).unwrap();
        let places: Vec<_> = problems(&entries).into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, (0..7).map(|index| format!("content_filter[{index}]")).collect::<Vec<_>>());
        let broken = Filter::new(&entries[2..3]);
        assert_eq!(broken.apply(FilterPoint::Input, "harmless").blocked, Some(0));
        assert!(!problems(&vec![entries[4].clone(); 51]).is_empty());
        assert!(
            serde_json::from_value::<FilterEntry>(json!({"pattern": "a", "points": ["input"], "action": "allow"}))
                .is_err()
        );
    }
}
