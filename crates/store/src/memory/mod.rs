//! The back end for simulation: maps behind one lock, with the meaning of the databases, a clock that is handed in and
//! faults on request. Seals nothing, and is never in the shipped binary.

mod log;
mod queue;
mod runs;
mod search;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::content::Hash;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, NodeId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;
use tokio::sync::broadcast;

use crate::row::{
    AgentRow, ApprovalRow, CallEnd, CallRow, Change, ChatRow, IndexedFile, NotebookRow, RunRow, UserRow, WorkspaceRow,
};
use crate::seal::Scope;

/// What a simulation hands in.
#[derive(Clone)]
pub struct MemoryConfig {
    /// The clock that leases go by.
    pub clock: Arc<dyn Fn() -> Time + Send + Sync>,
    /// Asked before each append what shall happen to it.
    pub faults: Arc<dyn Fn(&FaultPoint) -> Fault + Send + Sync>,
}

impl MemoryConfig {
    /// A store without faults.
    #[must_use]
    pub fn new(clock: Arc<dyn Fn() -> Time + Send + Sync>) -> Self {
        Self { clock, faults: Arc::new(|_| Fault::None) }
    }
}

/// An append that is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPoint {
    /// The log.
    pub stream: StreamId,
    /// The sequence number it follows.
    pub after: u64,
    /// How many events it adds.
    pub events: usize,
}

/// What happens to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing unusual.
    None,
    /// Nothing is written, and the caller is told that the database is unavailable.
    FailBefore,
    /// It is written, and the caller is told that the database is unavailable.
    LostReply,
}

pub(crate) struct Memory {
    config: MemoryConfig,
    changes: broadcast::Sender<Change>,
    state: Mutex<State>,
}

/// The tables. Results are apart from calls, as in the databases.
#[derive(Default)]
struct State {
    workspaces: BTreeMap<WorkspaceId, WorkspaceRow>,
    users: BTreeMap<UserId, UserRow>,
    notebooks: BTreeMap<(WorkspaceId, NotebookId), NotebookRow>,
    chats: BTreeMap<(WorkspaceId, ChatId), ChatRow>,
    agents: BTreeMap<(WorkspaceId, AgentId), Vec<AgentRow>>,
    events: BTreeMap<(Scope, StreamId), Vec<Entry>>,
    streams: BTreeMap<(Scope, StreamId), Head>,
    blocks: BTreeMap<(Scope, Hash), Vec<u8>>,
    refs: BTreeSet<(Scope, Hash, StreamId)>,
    runs: BTreeMap<RunId, RunRow>,
    approvals: BTreeMap<(WorkspaceId, ApprovalId), ApprovalRow>,
    calls: BTreeMap<(RunId, CallId), CallRow>,
    results: BTreeMap<(RunId, CallId), CallEnd>,
    nodes: BTreeMap<NodeId, Time>,
    kv: BTreeMap<(WorkspaceId, AgentId, String), String>,
    marks: BTreeMap<(WorkspaceId, NotebookId, String), Hash>,
    instance: BTreeMap<String, Vec<u8>>,
    files: BTreeMap<(WorkspaceId, NotebookId, String), IndexedFile>,
}

impl Memory {
    pub(crate) fn new(config: MemoryConfig, changes: broadcast::Sender<Change>) -> Self {
        Self { config, changes, state: Mutex::default() }
    }

    /// Nothing to close: a simulated process that ends leaves its database behind.
    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) const fn close(&self) {}

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Time {
        (self.config.clock)()
    }

    fn tell(&self, change: Change) {
        // Nobody listening is no error.
        let _ = self.changes.send(change);
    }
}
