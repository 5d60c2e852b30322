//! A change of one file, the same for every tool that makes one: looked at first, bound to what was seen, carried out only
//! if that is still there, and recognised after a crash by the content it leaves behind.

use std::collections::BTreeMap;

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::scope::{Action, Kind};
use adjutant_core::tool::{Done, Prepared, Probe, Resource, ResourceAction, Target, ToolOutcome};
use serde_json::Value;

use super::{Exists, allowed, failed, front_matter, notebook, reachable};
use crate::diff;
use crate::notebook::{FileError, Notebook, State, folder_hash, text_of};
use crate::world::World;

/// What is at a path that the scope lets this action reach.
pub(super) async fn look(world: &World, action: Action, path: &NotePath) -> Result<State, ToolOutcome> {
    reachable(world, action, path)?;
    let looked = path.clone();
    let state =
        notebook(world)?.run(move |notebook| notebook.state(&looked)).await.map_err(|error| failed(path, &error))?;
    match &state {
        State::Absent => allowed(world, action, path, Kind::File, Exists::No)?,
        State::File(_) => allowed(world, action, path, Kind::File, Exists::Yes)?,
        State::Folder => allowed(world, action, path, Kind::Dir, Exists::Yes)?,
    }
    Ok(state)
}

/// A front matter that cannot be edited, as an answer to the model.
pub(super) fn malformed(path: &NotePath, malformed: &front_matter::Malformed) -> ToolOutcome {
    ToolOutcome::failed(format!("{path}: {malformed}. Nothing was changed."))
}

/// What a call would do to a file.
#[derive(Debug, Clone)]
pub(super) struct Change {
    /// The file.
    pub(super) path: NotePath,
    /// What is there now.
    pub(super) before: State,
    /// What will be there; none when it is deleted.
    pub(super) after: Option<Vec<u8>>,
}

impl Change {
    /// What a person and the guard are shown.
    pub(super) async fn prepared(self, tool: &'static str) -> Result<Prepared, ToolOutcome> {
        // Comparing two long texts takes a while, so it does not happen where others wait.
        tokio::task::spawn_blocking(move || self.preview(tool))
            .await
            .map_err(|_| ToolOutcome::failed("The change could not be compared with what is there."))
    }

    fn preview(&self, tool: &str) -> Prepared {
        let path = self.path.as_str();
        let before = match &self.before {
            State::Absent => None,
            State::File(content) => Some(content.bytes.as_slice()),
            State::Folder => {
                let summary = format!("{tool} {path}/ (an empty folder)");
                return Prepared { target: self.target(), intended: Some(self.intended()), summary, diff: None };
            }
        };
        let difference = diff::compare(path, before, self.after.as_deref());
        Prepared {
            target: self.target(),
            intended: Some(self.intended()),
            summary: format!("{tool} {path} {}", difference.counts),
            diff: difference.unified,
        }
    }

    fn target(&self) -> Target {
        Target(BTreeMap::from([(self.path.as_str().to_owned(), self.before.hash())]))
    }

    fn after_hash(&self) -> Option<Hash> {
        self.after.as_deref().map(Hash::of)
    }

    fn intended(&self) -> Target {
        Target(BTreeMap::from([(self.path.as_str().to_owned(), self.after_hash())]))
    }

    /// Whether what is there, and what would come of it, are what was looked at.
    fn still_fits(&self, target: &Target, intended: Option<&Target>) -> Result<(), ToolOutcome> {
        let path = self.path.as_str();
        if target.0.get(path) != Some(&self.before.hash()) {
            return Err(failed(&self.path, &FileError::Changed));
        }
        if intended.and_then(|intended| intended.0.get(path)).is_some_and(|hash| *hash != self.after_hash()) {
            let message =
                format!("{path} would not become what was looked at: a template changed. Nothing was written.");
            return Err(ToolOutcome::failed(message));
        }
        Ok(())
    }

    /// Makes the change, if what is there and what would come of it are what the permit was given for.
    pub(super) async fn carry_out(self, permit: &Permit, world: &World) -> ToolOutcome {
        if let Err(outcome) = self.still_fits(permit.target(), permit.intended()) {
            return outcome;
        }
        let notebook = match notebook(world) {
            Ok(notebook) => notebook,
            Err(outcome) => return outcome,
        };
        let report = Report::of(&self.before, self.after.as_deref());
        let path = self.path.clone();
        match notebook.run(move |notebook| act(notebook, &self)).await {
            Ok(kept) => ToolOutcome::Done(report.done(&path, kept)),
            Err(error) => failed(&path, &error),
        }
    }
}

/// Does it, and gives back what was there before, where something was.
fn act(notebook: &Notebook, change: &Change) -> Result<Option<Vec<u8>>, FileError> {
    match (&change.before, &change.after) {
        (State::Absent, None) => Err(FileError::NotFound),
        (State::Absent, Some(bytes)) => notebook.create(&change.path, bytes).map(|()| None),
        (State::File(content), Some(bytes)) if content.bytes == *bytes => Ok(None),
        (State::File(content), Some(bytes)) => {
            notebook.replace(&change.path, bytes, content.hash).map(|before| Some(before.bytes))
        }
        (State::File(content), None) => notebook.delete(&change.path, content.hash).map(|before| Some(before.bytes)),
        (State::Folder, Some(_)) => Err(FileError::IsFolder),
        (State::Folder, None) => notebook.delete_folder(&change.path).map(|()| None),
    }
}

/// What a change will replace or delete: the content of the file, if it still is the one that was looked at.
pub(super) async fn keepsakes(arguments: &Value, target: &Target, world: &World) -> Vec<Vec<u8>> {
    let path = arguments["path"].as_str().and_then(|path| NotePath::parse(path).ok());
    let (Some(path), Ok(notebook)) = (path, notebook(world)) else { return Vec::new() };
    let looked = path.clone();
    match notebook.run(move |notebook| notebook.state(&looked)).await {
        Ok(State::File(content)) if target.0.get(path.as_str()) == Some(&Some(content.hash)) => vec![content.bytes],
        Ok(State::File(_) | State::Folder | State::Absent) | Err(_) => Vec::new(),
    }
}

/// Looks whether a change that was started took place: by what is there, compared with what was meant to be and what was.
pub(super) async fn probe(arguments: &Value, target: &Target, intended: Option<&Target>, world: &World) -> Probe {
    let Some(path) = arguments["path"].as_str().and_then(|path| NotePath::parse(path).ok()) else {
        return Probe::Unknown;
    };
    let Ok(notebook) = notebook(world) else { return Probe::Unknown };
    let looked = path.clone();
    let Ok(now) = notebook.run(move |notebook| notebook.state(&looked)).await else { return Probe::Unknown };
    let Some(before) = target.0.get(path.as_str()) else { return Probe::Unknown };
    let beside = path.clone();
    // What a process that died has left half-written is in nobody's way, so a failure to remove it is no reason to stop.
    let _ = notebook.run(move |notebook| notebook.sweep_beside(&beside)).await;
    if intended.and_then(|intended| intended.0.get(path.as_str())) == Some(&now.hash()) {
        let after = match &now {
            State::File(content) => Some(content.bytes.as_slice()),
            State::Absent | State::Folder => None,
        };
        let report = Report { before: *before, after: after.map(Hash::of), text: describe(after) };
        return Probe::Happened(ToolOutcome::Done(report.done(&path, None)));
    }
    if *before == now.hash() { Probe::NotHappened } else { Probe::Unknown }
}

/// What is said of a change that took place: the same whether it was seen or found out later.
struct Report {
    before: Option<Hash>,
    after: Option<Hash>,
    text: String,
}

impl Report {
    fn of(before: &State, after: Option<&[u8]>) -> Self {
        Self { before: before.hash(), after: after.map(Hash::of), text: describe(after) }
    }

    /// The answer, with what was there before where it was seen. After a crash it is only known by its hash: its content was
    /// kept before the change was begun.
    fn done(self, path: &NotePath, kept: Option<Vec<u8>>) -> Done {
        let was_folder = self.before == Some(folder_hash());
        let shown = if was_folder { format!("{path}/") } else { path.to_string() };
        let (action, output) = match (self.before, self.after) {
            (before, after) if before == after => {
                return Done {
                    output: format!("{shown} already has this content; nothing was changed."),
                    ..Done::default()
                };
            }
            (None, _) => (ResourceAction::Created, format!("Created {shown} ({}).", self.text)),
            (Some(_), Some(_)) => (ResourceAction::Changed, format!("Wrote {shown} ({}).", self.text)),
            (Some(_), None) => (ResourceAction::Deleted, format!("Deleted {shown}.")),
        };
        let resource = Resource {
            kind: if was_folder { "folder" } else { "file" }.to_owned(),
            path: path.as_str().to_owned(),
            action,
            undoable: true,
            before: self.before,
            after: self.after,
        };
        Done { output, resources: vec![resource], keep: kept.into_iter().collect(), ..Done::default() }
    }
}

fn describe(content: Option<&[u8]>) -> String {
    let bytes = content.unwrap_or_default();
    match text_of(bytes) {
        Ok(text) => format!("{}, {}", counted(text.lines().count(), "line"), counted(bytes.len(), "byte")),
        Err(_) => counted(bytes.len(), "byte"),
    }
}

fn counted(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::message;

    #[test]
    fn a_change_that_would_give_something_else_than_was_shown_is_not_made() {
        let path = NotePath::parse("/a.md").unwrap();
        let shown = Change { path: path.clone(), before: State::Absent, after: Some(b"shown".to_vec()) };
        let other = Change { path, before: State::Absent, after: Some(b"other".to_vec()) };
        assert_eq!(shown.still_fits(&shown.target(), Some(&shown.intended())), Ok(()));
        assert_eq!(other.still_fits(&shown.target(), None), Ok(()));
        let refused = other.still_fits(&shown.target(), Some(&shown.intended())).unwrap_err();
        assert!(message(refused).ends_with("Nothing was written."));
        assert!(shown.still_fits(&Target::default(), None).is_err());
    }
}
