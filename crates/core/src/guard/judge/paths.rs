//! The paths of a call: judged one by one against the scope, and told to whoever runs calls side by side.

use std::sync::Arc;

use serde_json::Value;

use super::{Question, Verdict, shown};
use crate::guard::path::NotePath;
use crate::guard::scope::{Action, Kind};
use crate::tool::{Category, Effect, ToolSpec, Touch, folder_hash};

/// The first path that is not in scope (check 5).
pub(super) fn outside_scope(question: &Question<'_>, spec: &ToolSpec, arguments: &Value) -> Option<Verdict> {
    spec.paths.iter().find_map(|(name, action)| judge_argument(question, spec, arguments, name, *action).err())
}

fn judge_argument(
    question: &Question<'_>,
    spec: &ToolSpec,
    arguments: &Value,
    name: &str,
    action: Action,
) -> Result<(), Verdict> {
    let invalid = |reason: String| Verdict::deny("invalid_path", reason, None);
    let texts = path_texts(spec, arguments, name)
        .ok_or_else(|| invalid(format!("`{}` must be a path, or a list of paths.", shown(name))))?;
    for text in texts {
        let path = NotePath::parse(text)
            .map_err(|problem| invalid(format!("`{}` is not a valid path: {problem}.", shown(text))))?;
        let either = spec.checks.file_or_folder.iter().any(|listed| **listed == *name);
        check_path(question, action, &path, if either { Names::Either } else { Names::One })?;
    }
    Ok(())
}

/// What a path argument may name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// What its action is about: a folder for a listing, a file for the rest.
    One,
    /// A file or a folder.
    Either,
}

fn check_path(question: &Question<'_>, action: Action, path: &NotePath, names: Names) -> Result<(), Verdict> {
    let seen = question.prepared.map(|prepared| prepared.target.0.get(path.as_str()));
    let is_folder = seen.flatten().is_some_and(|content| *content == Some(folder_hash()));
    let kind = if action == Action::List || is_folder { Kind::Dir } else { Kind::File };
    let check_as = |kind: Kind, exists: bool| {
        question
            .scope
            .check(action, path, kind, exists)
            .map_err(|denied| Verdict::deny(denied.rule, denied.reason, denied.smallest_grant))
    };
    let check = |exists: bool| check_as(kind, exists);
    match (seen, action) {
        (Some(Some(content)), _) => check(content.is_some()),
        // The tool looked and did not say what is there: what would be allowed only one way is not allowed.
        (Some(None), Action::Write) => check(true).and_then(|()| check(false)),
        // Before anybody has looked, what would be allowed one way may be looked at.
        (None, Action::Write) => check(true).or_else(|denied| check(false).map_err(|_| denied)),
        (None, _) if names == Names::Either => {
            check(true).or_else(|denied| check_as(Kind::Dir, true).map_err(|_| denied))
        }
        (Some(None) | None, Action::Create) => check(false),
        (
            Some(None) | None,
            Action::Read | Action::List | Action::Delete | Action::Execute | Action::Move | Action::Copy,
        ) => check(true),
    }
}

/// The paths in an argument: a text, each of a list, or the default of the schema where the model gave none. None where
/// it is anything else, because what cannot be judged is not allowed.
fn path_texts<'a>(spec: &'a ToolSpec, arguments: &'a Value, name: &str) -> Option<Vec<&'a str>> {
    let default = || spec.definition.schema.get("properties")?.get(name)?.get("default");
    match arguments.get(name).filter(|value| !value.is_null()).or_else(default) {
        Some(Value::String(text)) => Some(vec![text]),
        Some(Value::Array(items)) => items.iter().map(Value::as_str).collect(),
        Some(Value::Null) | None => Some(Vec::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
    }
}

/// The paths a call reads or changes, so that calls that meet on one can wait for each other. What is no path is left out:
/// such a call is refused anyway.
#[must_use]
pub fn touches(spec: &ToolSpec, arguments: &Value) -> Vec<Touch> {
    let mut touches = Vec::new();
    for (name, action) in &spec.paths {
        let changes = match action {
            Action::Read | Action::List | Action::Copy => false,
            Action::Write | Action::Create | Action::Delete | Action::Execute | Action::Move => true,
        };
        let texts = path_texts(spec, arguments, name).unwrap_or_default();
        let paths = texts.into_iter().filter_map(|text| NotePath::parse(text).ok());
        touches.extend(paths.map(|path| Touch { path: path.as_str().to_owned(), changes }));
    }
    touches
}

/// What a call reads or changes of what its agent keeps, so that calls that meet on one key can wait for each other. One that
/// names no key looks at all of them.
#[must_use]
pub fn keys(spec: &ToolSpec, arguments: &Value) -> Vec<Touch> {
    if spec.category != Category::Memory {
        return Vec::new();
    }
    let named = spec.checks.memory_keys.iter().filter_map(|name| arguments.get(&**name)?.as_str());
    let touch = |key: &str| Touch { path: format!("{}:{key}", spec.toolset), changes: spec.effect != Effect::Read };
    let touched: Vec<_> = named.map(touch).collect();
    if touched.is_empty() { vec![touch("")] } else { touched }
}

/// The files whose text a call takes in, where no path argument names them (`Checks::sources`).
#[must_use]
pub fn sources(spec: &ToolSpec, arguments: &Value) -> Vec<NotePath> {
    let file = |(name, folder): &(Arc<str>, Arc<str>)| {
        let name = arguments.get(&**name)?.as_str()?;
        NotePath::parse(folder).ok()?.child(name).ok()
    };
    spec.checks.sources.iter().filter_map(file).collect()
}

/// The paths a rule is asked about: those of the arguments, and whatever else the tool found that it would touch.
pub(super) fn seen(question: &Question<'_>, spec: &ToolSpec, arguments: &Value) -> Vec<Touch> {
    let mut touched = touches(spec, arguments);
    let found = question.prepared.iter().flat_map(|prepared| prepared.target.0.keys());
    for path in found.filter(|path| path.starts_with('/')) {
        if !touched.iter().any(|touch| touch.path == *path) {
            touched.push(Touch { path: path.clone(), changes: true });
        }
    }
    touched
}
