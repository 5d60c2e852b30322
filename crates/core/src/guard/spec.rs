//! A scope as people write and store it. Loading never fails on a broken entry, because it then grants nothing and spoils
//! no other (P9); saving must ask [`ScopeSpec::problems`] first.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::operation::Operation;
use super::pattern::{NamePattern, Pattern, PatternError};

/// What an agent's policy says about notebooks and files. Every field that is missing grants nothing, but `file_types` and
/// `operations`, which only narrow what others grant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeSpec {
    /// The notebooks the agent may be started on: ids, slugs, or `*` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebooks: Option<Vec<String>>,
    /// The folders it reaches.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "folders")]
    pub folders: Option<Vec<FolderEntry>>,
    /// The file names it reaches; missing is no restriction, an empty list is nothing (P15).
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "file_types")]
    pub file_types: Option<Vec<String>>,
    /// What it may do there; missing is whatever its flags allow, an empty list is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<Operation>>,
}

/// One entry of `folders`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FolderEntry {
    /// A pattern, for every operation.
    Pattern(String),
    /// A pattern, for some operations.
    Narrowed(NarrowedFolder),
    /// Anything else: it grants nothing.
    Broken(Value),
}

/// A folder pattern that grants some operations only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NarrowedFolder {
    /// The pattern.
    pub path: String,
    /// What is granted there.
    pub operations: Vec<Operation>,
}

/// An entry that must not be saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct BadPattern {
    /// Where it stands, as in `folders[2]`.
    pub field: String,
    /// The entry as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ScopeSpec {
    /// Every entry that is broken. A scope with problems must not be saved (P9).
    #[must_use]
    pub fn problems(&self) -> Vec<BadPattern> {
        let bad = |list: &str, index: usize, entry: String, error: PatternError| BadPattern {
            field: format!("{list}[{index}]"),
            entry,
            reason: error.to_string(),
        };
        let folders = self.folders.iter().flatten().enumerate().filter_map(|(index, entry)| {
            entry.pattern().err().map(|error| bad("folders", index, entry.written(), error))
        });
        let types = self.file_types.iter().flatten().enumerate().filter_map(|(index, text)| {
            NamePattern::parse(text).err().map(|error| bad("file_types", index, text.clone(), error))
        });
        let notebooks = self.notebooks.iter().flatten().enumerate().filter_map(|(index, name)| {
            let error = if name.is_empty() { Some(PatternError::Empty) } else { None };
            error.map(|error| bad("notebooks", index, name.clone(), error))
        });
        notebooks.chain(folders).chain(types).collect()
    }
}

impl FolderEntry {
    /// The pattern of the entry, if it has a valid one.
    pub(super) fn pattern(&self) -> Result<Pattern, PatternError> {
        match self {
            Self::Pattern(text) => Pattern::parse(text),
            Self::Narrowed(entry) => Pattern::parse(&entry.path),
            Self::Broken(_) => Err(PatternError::NotAPattern),
        }
    }

    fn written(&self) -> String {
        match self {
            Self::Pattern(text) => text.clone(),
            Self::Narrowed(entry) => entry.path.clone(),
            Self::Broken(value) => value.to_string(),
        }
    }
}

impl From<&str> for FolderEntry {
    fn from(pattern: &str) -> Self {
        Self::Pattern(pattern.to_owned())
    }
}

/// Reads a list. What is not a list becomes a list of that one thing, so that `"folders": "/drafts"` grants nothing instead
/// of failing the whole policy.
pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Result<Vec<Value>, Value>>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::Array(items) => Some(Ok(items)),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => Some(Err(other)),
    })
}

/// Reads a list of texts. What is not a text is kept as its JSON behind a sign that makes it match nothing and fail a save.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D, sign: char) -> Result<Option<Vec<String>>, D::Error> {
    let entry = |item: Value| item.as_str().map_or_else(|| format!("{sign}{item}"), str::to_owned);
    Ok(list(deserializer)?.map(|list| match list {
        Ok(items) => items.into_iter().map(entry).collect(),
        Err(other) => vec![format!("{sign}{other}")],
    }))
}

fn folders<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<FolderEntry>>, D::Error> {
    let entry = |item| serde_json::from_value(item).map_err(serde::de::Error::custom);
    match list(deserializer)? {
        None => Ok(None),
        Some(Ok(items)) => items.into_iter().map(entry).collect::<Result<_, _>>().map(Some),
        Some(Err(other)) => Ok(Some(vec![FolderEntry::Broken(other)])),
    }
}

/// No name holds a slash.
fn file_types<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    texts(deserializer, '/')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(value: Value) -> ScopeSpec {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn p9_a_broken_entry_loads_and_is_kept_as_it_was_written() {
        let written = json!({"folders": ["/a", 7, null, {"path": "/b"}, {"path": "/c", "operations": ["fly"]},
            {"path": "/d", "operations": ["read"], "more": 1}, {"path": "/e", "operations": ["read"]}],
            "file_types": ["*.md"]});
        let spec = spec(written.clone());
        let broken = |entry: &FolderEntry| matches!(entry, FolderEntry::Broken(_));
        assert_eq!(
            spec.folders.iter().flatten().map(broken).collect::<Vec<_>>(),
            [false, true, true, true, true, true, false]
        );
        assert_eq!(serde_json::to_value(&spec).unwrap(), written);
    }

    #[test]
    fn p9_saving_names_every_broken_entry_by_its_place() {
        let spec = spec(json!({"notebooks": ["x", ""], "folders": ["/ok", "/a**", 7], "file_types": ["*.md", "a/b"]}));
        let fields: Vec<_> = spec.problems().into_iter().map(|bad| (bad.field, bad.entry)).collect();
        let expected = [("notebooks[1]", ""), ("folders[1]", "/a**"), ("folders[2]", "7"), ("file_types[1]", "a/b")];
        assert_eq!(fields, expected.map(|(field, entry)| (field.to_owned(), entry.to_owned())));
        assert_eq!(ScopeSpec::default().problems(), []);
    }

    #[test]
    fn p9_a_list_of_the_wrong_type_is_one_broken_entry() {
        let spec = spec(json!({"folders": "/drafts", "file_types": {"a": 1}}));
        assert_eq!(spec.folders, Some(vec![FolderEntry::Broken(json!("/drafts"))]));
        assert_eq!(spec.file_types, Some(vec!["/{\"a\":1}".to_owned()]));
        assert_eq!(spec.problems().len(), 2);
    }

    #[test]
    fn a_misspelt_field_or_operation_is_refused() {
        for wrong in [json!({"folder": ["/a"]}), json!({"operations": ["fly"]}), json!({"operations": "read"})] {
            assert!(serde_json::from_value::<ScopeSpec>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
