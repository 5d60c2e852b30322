//! What a tool declares about itself, what it says before it acts, and what it answers.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::canonical;
use crate::content::Hash;
use crate::guard::rate::{Rate, usual_per_minute};
use crate::guard::scope::Action;
use crate::label::Labels;
use crate::limits;

/// What kind of thing a tool touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Reads files and folders.
    FileRead,
    /// Creates or changes files.
    FileWrite,
    /// Deletes files or folders.
    FileDelete,
    /// Runs code in a sandbox.
    CodeExecute,
    /// Fetches from the network.
    NetworkRead,
    /// Sends to the network.
    NetworkWrite,
    /// Runs system commands.
    System,
    /// Reads or writes the agent's own memory.
    Memory,
    /// Anything an administrator added.
    Custom,
}

/// How much right a tool needs; an agent has one level and reaches everything up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Nothing.
    None,
    /// Looking.
    Read,
    /// Changing.
    Write,
    /// Running.
    Execute,
    /// Administering.
    Admin,
}

/// What a call does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Changes nothing.
    Read,
    /// Makes something new.
    Create,
    /// Changes something.
    Write,
    /// Removes something.
    Delete,
    /// Runs something.
    Execute,
    /// Sends something out.
    Send,
}

/// What happens to a call that was started when the process died and whose end is not in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// It changes nothing: run it again.
    Pure,
    /// Running it twice is running it once: run it again with the same key.
    Idempotent,
    /// The tool can look whether it happened.
    Reconcile,
    /// Only a person can tell.
    AskHuman,
}

/// What the model is shown of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// The name to call it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema (2020-12) of its arguments.
    pub schema: Value,
}

impl ToolDefinition {
    /// The hash an approval is bound to.
    #[must_use]
    pub fn hash(&self) -> Hash {
        canonical::hash(&serde_json::json!({"name": self.name, "description": self.description, "schema": self.schema}))
    }
}

/// The tools that a model is shown. Every request of a run shows the same ones, so what is worked out of them is kept.
#[derive(Clone, Default)]
pub struct ToolDefinitions {
    list: Vec<ToolDefinition>,
    json: OnceLock<Box<RawValue>>,
    bytes: OnceLock<u64>,
}

impl ToolDefinitions {
    /// Bytes of all names, descriptions and schemas.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let size = |tool: &ToolDefinition| tool.name.len() + tool.description.len() + tool.schema.to_string().len();
        *self.bytes.get_or_init(|| self.list.iter().map(size).sum::<usize>() as u64)
    }
}

impl std::ops::Deref for ToolDefinitions {
    type Target = [ToolDefinition];

    fn deref(&self) -> &[ToolDefinition] {
        &self.list
    }
}

impl FromIterator<ToolDefinition> for ToolDefinitions {
    fn from_iter<I: IntoIterator<Item = ToolDefinition>>(definitions: I) -> Self {
        Self { list: definitions.into_iter().collect(), ..Self::default() }
    }
}

impl PartialEq for ToolDefinitions {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl std::fmt::Debug for ToolDefinitions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.list.fmt(f)
    }
}

impl Serialize for ToolDefinitions {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(json) = self.json.get() {
            return json.serialize(serializer);
        }
        let json = serde_json::value::to_raw_value(&self.list).map_err(serde::ser::Error::custom)?;
        self.json.get_or_init(|| json).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolDefinitions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from_iter)
    }
}

/// Everything a tool declares. A tool that declares nothing is admin-level and asks a person: see [`ToolSpec::undeclared`].
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// What the model is shown.
    pub definition: ToolDefinition,
    /// The group it is granted with.
    pub toolset: Arc<str>,
    /// What kind of thing it touches.
    pub category: Category,
    /// The right it needs.
    pub level: Level,
    /// What it does to the world.
    pub effect: Effect,
    /// Whether what it does can be taken back.
    pub undoable: bool,
    /// What happens to it after a crash.
    pub recovery: Recovery,
    /// Whether its arguments leave the house (I2).
    pub egress: bool,
    /// What its output adds to the run's labels.
    pub labels: Labels,
    /// Calls a minute, if limited.
    pub per_minute: Option<u32>,
    /// How long it may run.
    pub timeout: Duration,
    /// Bytes of output handed to the model.
    pub output_cap: usize,
    /// Arguments that are notebook paths, with what is done to them. A list of paths is judged element by element.
    pub paths: BTreeMap<Arc<str>, Action>,
    /// What else is asked of its arguments.
    pub checks: Arc<Checks>,
}

/// What is asked of arguments beside their schema, by the names of the arguments. A list is judged element by element.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checks {
    /// Paths that may name a file as well as a folder; without it a path names what its action is about.
    pub file_or_folder: Vec<Arc<str>>,
    /// Arguments that name a file in a folder, with that folder: what the call writes is made of it, so it counts as read.
    pub sources: Vec<(Arc<str>, Arc<str>)>,
    /// Web addresses: judged by the agent's hosts (U1 to U10).
    pub urls: Vec<Arc<str>>,
    /// Mail addresses: judged by the agent's mail domains (T7).
    pub emails: Vec<Arc<str>>,
    /// No control character and no line break, as in the header of a mail.
    pub single_line: Vec<Arc<str>>,
    /// Handed to a command: may not begin with `-`.
    pub no_option: Vec<Arc<str>>,
    /// Ids that must be the agent's own.
    pub own_ids: Vec<Arc<str>>,
    /// Keys of the agent's memory: reserved ones are never written (T9).
    pub memory_keys: Vec<Arc<str>>,
}

impl ToolSpec {
    /// A tool nothing is known about: the strictest class.
    #[must_use]
    pub fn undeclared(definition: ToolDefinition) -> Self {
        Self {
            definition,
            toolset: Arc::from("custom"),
            category: Category::Custom,
            level: Level::Admin,
            effect: Effect::Send,
            undoable: false,
            recovery: Recovery::AskHuman,
            egress: true,
            labels: Labels::PRIVATE.join(Labels::UNTRUSTED),
            per_minute: None,
            timeout: limits::TOOL_TIMEOUT,
            output_cap: limits::OUTPUT_BYTES,
            paths: BTreeMap::new(),
            checks: Arc::default(),
        }
    }

    /// How often it may be called: as it says itself, or as is usual for its name.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.per_minute.or_else(|| usual_per_minute(self.name())).map(Rate::per_minute)
    }

    /// The name of the tool.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }
}

/// The state of the things a call touches, seen when it was judged: a content hash per path, none where nothing is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Target(pub BTreeMap<String, Option<Hash>>);

impl Target {
    /// Whether the call touches nothing that has a state.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What stands for "a folder is here" where a content hash is expected.
#[must_use]
pub fn folder_hash() -> Hash {
    Hash::of(b"adjutant: a folder")
}

/// A path that a call reads or changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Touch {
    /// The notebook path, or a key with the toolset that keeps it, as in `kv:note`.
    pub path: String,
    /// Whether it may look different afterwards.
    pub changes: bool,
}

impl Touch {
    /// Whether one of two calls changes what the other sees: then they run in order. A folder is all below it, `kv:` every key.
    #[must_use]
    pub fn clashes(&self, other: &Self) -> bool {
        let under = |a: &str, b: &str| {
            a == b || a.strip_prefix(b.trim_end_matches(['/', ':'])).is_some_and(|rest| rest.starts_with(['/', ':']))
        };
        (self.changes || other.changes) && (under(&self.path, &other.path) || under(&other.path, &self.path))
    }
}

/// What a tool finds out before it acts, without changing anything.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Prepared {
    /// The state of what it would touch.
    pub target: Target,
    /// The state it would leave behind, if the tool can tell: how a crash is reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<Target>,
    /// One line for a person: what would happen.
    pub summary: String,
    /// A unified diff of what would change, if it is a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

/// Whether a started call took place, as far as the tool can see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probe {
    /// It took place; this is what it would have answered.
    Happened(ToolOutcome),
    /// It did not take place.
    NotHappened,
    /// The tool cannot tell.
    Unknown,
}

/// Something a call created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resource {
    /// `file`, `kv`, …
    pub kind: String,
    /// Its path or name.
    pub path: String,
    /// `created`, `changed` or `deleted`.
    pub action: ResourceAction,
    /// Whether it can be taken back.
    pub undoable: bool,
    /// What was there before: the block that holds it, none where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Hash>,
    /// The content hash of what is there now, none where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Hash>,
}

/// What was done to a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceAction {
    /// It is new.
    Created,
    /// It was there and is different now.
    Changed,
    /// It is gone.
    Deleted,
}

/// What a tool answers. A failure is an answer too: the model reads it and goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolOutcome {
    /// It did what was asked.
    Done(Done),
    /// It did not, and changed nothing.
    Failed {
        /// What happened, what was not done, what to do next.
        message: String,
        /// Whether trying again may help.
        retriable: bool,
    },
    /// It cannot tell whether it acted (a timeout, a broken connection).
    InDoubt {
        /// What is known.
        message: String,
    },
}

/// The answer of a call that did what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// What the model reads.
    pub output: String,
    /// Labels this very output adds (beyond what the tool declares).
    pub labels: Labels,
    /// What it created, changed or deleted.
    pub resources: Vec<Resource>,
    /// Contents to keep as blocks (pre-images for undo). Their hashes are in `resources`.
    pub keep: Vec<Vec<u8>>,
    /// The files that the output was taken from, as they were then; no hash where the tool cannot say it.
    pub read: Vec<(String, Option<Hash>)>,
}

impl ToolOutcome {
    /// A plain answer with no side effect.
    #[must_use]
    pub fn output(text: impl Into<String>) -> Self {
        Self::Done(Done { output: text.into(), ..Done::default() })
    }

    /// A failure that will not go away by itself.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed { message: message.into(), retriable: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_clash_when_one_changes_what_lies_in_the_reach_of_the_other() {
        let touch = |path: &str, changes| Touch { path: path.to_owned(), changes };
        assert!(touch("/a/b", true).clashes(&touch("/a", false)));
        assert!(touch("/a", false).clashes(&touch("/a/b", true)));
        assert!(touch("/", false).clashes(&touch("/a/b", true)));
        assert!(touch("/a", true).clashes(&touch("/a", true)));
        assert!(!touch("/a", false).clashes(&touch("/a", false)));
        assert!(!touch("/ab", true).clashes(&touch("/a", true)));
        assert!(touch("kv:a", true).clashes(&touch("kv:a", false)));
        assert!(touch("kv:", false).clashes(&touch("kv:a", true)));
        assert!(!touch("kv:a", true).clashes(&touch("kv:ab", true)));
    }
}
