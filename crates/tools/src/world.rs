//! What a tool can reach: the run's notebook and scope, and narrow handles on what the engine keeps. Nothing here can
//! reach another agent's keys or another notebook.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use adjutant_core::guard::judge::{Outside, is_shown};
use adjutant_core::guard::meta;
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::rule::Held;
use adjutant_core::guard::scope::Scope;
use adjutant_core::label::{Labelled, Labels};
use adjutant_core::time::Time;
use adjutant_core::tool::ToolSpec;
use async_trait::async_trait;
use jiff::tz::TimeZone;

use crate::net::Connector;
use crate::notebook::{Fence, Notebook};
use crate::registry::Registry;

/// The surroundings of one call.
#[derive(Clone)]
pub struct World {
    /// The run's notebook; none for a run without files.
    pub notebook: Option<Arc<Notebook>>,
    /// What the agent may do with which path.
    pub scope: Arc<Scope>,
    /// What standing rules hold: a call neither returns nor copies it.
    pub held: Arc<Held>,
    /// What it may reach outside.
    pub outside: Arc<Outside>,
    /// The door to the network.
    pub connector: Connector,
    /// The agent's own keys.
    pub kv: Arc<dyn KvHandle>,
    /// The search index of the notebook.
    pub index: Arc<dyn IndexHandle>,
    /// The tools the agent has, for tools about tools.
    pub catalog: Catalog,
    /// Whether the call may still act.
    pub fence: Fence,
    /// The moment of the call.
    pub now: Time,
    /// The zone in which the workspace counts its days.
    pub zone: TimeZone,
}

/// The tools of an instance, as one agent sees them.
#[derive(Debug, Clone)]
pub struct Catalog {
    tools: Arc<Registry>,
    agent: Arc<AgentConfig>,
}

impl Catalog {
    /// What this agent sees of these tools.
    #[must_use]
    pub const fn new(tools: Arc<Registry>, agent: Arc<AgentConfig>) -> Self {
        Self { tools, agent }
    }

    /// What the agent was granted and may use, but tools about tools, by name.
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        let specs = self.tools.iter().map(|tool| tool.spec());
        specs.filter(|spec| is_shown(&self.agent, spec) && !meta::is_meta(spec.name()))
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("now", &self.now).finish_non_exhaustive()
    }
}

/// Why a handle did not answer, one variant per reaction. The text reaches the model: it holds no internals.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandleError {
    /// Trying again may help.
    #[error("{0}")]
    Busy(String),
    /// There is no room for more.
    #[error("{0}")]
    Full(String),
    /// It will not work.
    #[error("{0}")]
    Failed(String),
}

/// The durable keys of one agent. Whatever is put there keeps the labels of the run that puts it, and gives them back.
#[async_trait]
pub trait KvHandle: Send + Sync {
    /// The value under a key.
    async fn get(&self, key: &str) -> Result<Option<Labelled>, HandleError>;
    /// Puts a value under a key, in place of an older one.
    async fn set(&self, key: &str, value: &str) -> Result<(), HandleError>;
    /// Removes a key; says whether it was there.
    async fn delete(&self, key: &str) -> Result<bool, HandleError>;
    /// The keys that begin with a prefix, in order, at most `limit`, each with the labels of what is under it.
    async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<(String, Labels)>, HandleError>;
}

/// By what a file is known to be unchanged without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// When it was last changed.
    pub modified: Time,
}

/// A file as the index takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    /// Where it is, with the leading `/`.
    pub path: String,
    /// What it looked like when it was read.
    pub stamp: Stamp,
    /// Its text; empty for a file that is not text or too large, which is only remembered so that it is not read again.
    pub text: String,
}

/// A file that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Where it is, with the leading `/`.
    pub path: String,
    /// A piece of its text around what was found.
    pub snippet: String,
}

/// The search index of one notebook. It holds the files of every agent's reach: what comes out of it must be filtered.
#[async_trait]
pub trait IndexHandle: Send + Sync {
    /// What is indexed, by path.
    async fn state(&self) -> Result<BTreeMap<String, Stamp>, HandleError>;
    /// Takes files in, in place of older states of them.
    async fn put(&self, files: Vec<IndexedFile>) -> Result<(), HandleError>;
    /// Forgets files.
    async fn remove(&self, paths: Vec<String>) -> Result<(), HandleError>;
    /// The best matches first, at most `limit`. Any text is a valid query.
    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, HandleError>;
}
