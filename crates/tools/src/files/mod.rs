//! Toolset `files`: reading and changing the notebook. Every tool checks the scope itself for whatever it opens.

mod change;
mod create_file;
mod delete_file;
mod front_matter;
mod get_file_metadata;
mod index;
mod list_files;
mod pattern;
mod read_file;
mod search_content;
mod template;
mod update_file_properties;
mod write_file;
mod yaml;

#[cfg(test)]
mod change_tests;
#[cfg(test)]
mod read_tests;

use std::sync::Arc;

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::label::Labels;
use adjutant_core::tool::{Category, Effect, Level, Recovery, ToolDefinition, ToolOutcome, ToolSpec};

pub(crate) use create_file::CreateFile;
pub(crate) use delete_file::DeleteFile;
pub(crate) use get_file_metadata::GetFileMetadata;
pub use index::{Freshness, refresh};
pub(crate) use list_files::ListFiles;
pub(crate) use read_file::ReadFile;
pub(crate) use search_content::SearchContent;
pub(crate) use update_file_properties::UpdateFileProperties;
pub(crate) use write_file::WriteFile;

use crate::limits;
use crate::notebook::{FileError, Notebook};
use crate::world::World;

/// The name of the toolset.
const TOOLSET: &str = "files";

/// What every reading tool of this set declares.
fn reading(definition: ToolDefinition, paths: impl IntoIterator<Item = (&'static str, Action)>) -> ToolSpec {
    ToolSpec {
        definition,
        toolset: Arc::from(TOOLSET),
        category: Category::FileRead,
        level: Level::Read,
        effect: Effect::Read,
        undoable: true,
        recovery: Recovery::Pure,
        egress: false,
        labels: Labels::PRIVATE,
        per_minute: None,
        timeout: limits::FILE_TIMEOUT,
        output_cap: adjutant_core::limits::OUTPUT_BYTES,
        paths: paths.into_iter().map(|(name, action)| (Arc::from(name), action)).collect(),
        checks: Arc::default(),
    }
}

/// What every changing tool of this set declares: undoable, because what was there before is kept.
fn changing(definition: ToolDefinition, category: Category, effect: Effect, action: Action) -> ToolSpec {
    ToolSpec {
        category,
        level: Level::Write,
        effect,
        recovery: Recovery::Reconcile,
        labels: Labels::NONE,
        ..reading(definition, [("path", action)])
    }
}

/// The notebook of the run.
fn notebook(world: &World) -> Result<&Arc<Notebook>, ToolOutcome> {
    world.notebook.as_ref().ok_or_else(|| ToolOutcome::failed("This run has no notebook, so there are no files."))
}

/// A path as the model wrote it.
fn path(text: &str) -> Result<NotePath, ToolOutcome> {
    NotePath::parse(text).map_err(|invalid| {
        let shown: String = text.chars().take(200).flat_map(char::escape_debug).collect();
        ToolOutcome::failed(format!("`{shown}` is not a valid path: {invalid}."))
    })
}

/// Refuses what the scope does not allow, and to read what a standing rule holds.
fn allowed(world: &World, action: Action, path: &NotePath, kind: Kind, exists: Exists) -> Result<(), ToolOutcome> {
    world
        .scope
        .check(action, path, kind, exists == Exists::Yes)
        .map_err(|denied| ToolOutcome::failed(format!("Not allowed: {}.", denied.reason)))?;
    match world.held.holding(path).filter(|_| action == Action::Read) {
        Some(rule) => {
            Err(ToolOutcome::failed(format!("Not allowed: of {path} a standing rule says: {}.", rule.in_words())))
        }
        None => Ok(()),
    }
}

/// What a result says where rules hold places. It is there whatever was looked for: that something was left out would tell
/// of it.
fn left_out(world: &World) -> Option<&'static str> {
    (!world.held.is_empty()).then_some("(What standing rules deny or ask about is left out.)")
}

/// Refuses what the scope does not allow whatever lies at the path, so that nothing is looked at in vain, and a refusal
/// does not tell whether something is there.
fn reachable(world: &World, action: Action, path: &NotePath) -> Result<(), ToolOutcome> {
    let denied = match allowed(world, action, path, Kind::File, Exists::Yes) {
        Ok(()) => return Ok(()),
        Err(denied) => denied,
    };
    let otherwise = [(Kind::File, Exists::No), (Kind::Dir, Exists::Yes)];
    if otherwise.into_iter().any(|(kind, exists)| allowed(world, action, path, kind, exists).is_ok()) {
        return Ok(());
    }
    Err(denied)
}

/// Whether something lies at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exists {
    Yes,
    No,
}

/// A failure of the file layer as an answer to the model.
fn failed(path: &NotePath, error: &FileError) -> ToolOutcome {
    if matches!(error, FileError::Unconfirmed(_) | FileError::Lost) {
        return ToolOutcome::InDoubt { message: format!("{path}: {error}.") };
    }
    let message = if matches!(error, FileError::Changed) {
        format!("{path} changed since it was looked at, nothing was written. Read it again.")
    } else {
        format!("{path}: {error}.")
    };
    ToolOutcome::Failed { message, retriable: error.is_retriable() }
}
