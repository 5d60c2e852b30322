//! The back end for simulation: maps behind one lock, with the meaning of the databases, a clock that is handed in and
//! faults on request. Several processes may share the maps. Seals nothing, and is never in the shipped binary.

mod audit;
mod hooks;
mod log;
mod money;
mod queue;
mod removal;
mod retention;
mod rules;
mod runs;
mod search;
mod tables;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use adjutant_core::budget::Purses;
use adjutant_core::content::Hash;
use adjutant_core::guard::rate::Kept;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, NodeId, NotebookId, RuleId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labelled;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;
use tokio::sync::broadcast;

use crate::row::{
    AgentRow, ApprovalRow, AuditRow, BudgetRow, CallEnd, CallRow, Change, ChatRow, IndexedFile, MarkRow, ModelCallRow,
    NotebookRow, RuleRow, RunRow, UserRow, WaitingRow, WorkspaceRow,
};
use crate::seal::Scope;

pub use hooks::{Fault, FaultPoint, Gate, Hears, MemoryConfig, Witness};

/// One process's way to the shared tables.
pub(crate) struct Memory {
    config: MemoryConfig,
    shared: Arc<Shared>,
}

/// What outlives every process.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    peers: Mutex<Vec<Peer>>,
}

/// A process that hears of changes, until it ends. Only the process keeps its ears: what it was handed may hold these very
/// tables, which would then hold themselves for ever.
struct Peer {
    hears: Weak<Hears>,
    changes: broadcast::WeakSender<Change>,
}

/// The tables. Results are apart from calls, as in the databases.
#[derive(Default)]
struct State {
    workspaces: BTreeMap<WorkspaceId, WorkspaceRow>,
    erasures: BTreeMap<WorkspaceId, u64>,
    users: BTreeMap<UserId, UserRow>,
    notebooks: BTreeMap<(WorkspaceId, NotebookId), NotebookRow>,
    chats: BTreeMap<(WorkspaceId, ChatId), ChatRow>,
    waiting: BTreeMap<(WorkspaceId, RunId), WaitingRow>,
    agents: BTreeMap<(WorkspaceId, AgentId), Vec<AgentRow>>,
    events: BTreeMap<(Scope, StreamId), Vec<Entry>>,
    streams: BTreeMap<(Scope, StreamId), Head>,
    blocks: BTreeMap<(Scope, Hash), Vec<u8>>,
    refs: BTreeSet<(Scope, Hash, StreamId)>,
    runs: BTreeMap<RunId, RunRow>,
    /// Those whose logs could not be followed.
    beyond: BTreeSet<RunId>,
    places: BTreeMap<RunId, u32>,
    approvals: BTreeMap<(WorkspaceId, ApprovalId), ApprovalRow>,
    calls: BTreeMap<(RunId, CallId), CallRow>,
    results: BTreeMap<(RunId, CallId), CallEnd>,
    audit: BTreeMap<(Scope, (Time, String, u64)), AuditRow>,
    nodes: BTreeMap<NodeId, Time>,
    kv: BTreeMap<(WorkspaceId, AgentId, String), Labelled>,
    rates: Kept,
    purses: Purses,
    model_calls: BTreeMap<(StreamId, u32, u32), ModelCallRow>,
    budgets: BTreeMap<(WorkspaceId, String, String), BudgetRow>,
    rules: BTreeMap<(WorkspaceId, RuleId), RuleRow>,
    marks: BTreeSet<(WorkspaceId, MarkRow)>,
    instance: BTreeMap<String, Vec<u8>>,
    files: BTreeMap<(WorkspaceId, NotebookId, String), IndexedFile>,
}

impl Memory {
    pub(crate) fn new(config: MemoryConfig, changes: &broadcast::Sender<Change>) -> Self {
        Self::on(Arc::default(), config, changes)
    }

    /// Another process on the same tables.
    pub(crate) fn peer(&self, config: MemoryConfig, changes: &broadcast::Sender<Change>) -> Self {
        Self::on(Arc::clone(&self.shared), config, changes)
    }

    fn on(shared: Arc<Shared>, config: MemoryConfig, changes: &broadcast::Sender<Change>) -> Self {
        lock(&shared.peers).push(Peer { hears: Arc::downgrade(&config.hears), changes: changes.downgrade() });
        Self { config, shared }
    }

    /// Nothing to close: a simulated process that ends leaves its database behind.
    #[allow(clippy::unused_self, reason = "it stands beside the databases' own")]
    pub(crate) const fn close(&self) {}

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.shared.state)
    }

    fn now(&self) -> Time {
        (self.config.clock)()
    }

    pub(crate) fn tell(&self, change: Change) {
        self.shared.tell(change);
    }
}

impl Shared {
    fn tell(&self, change: Change) {
        lock(&self.peers).retain(|peer| {
            let (Some(hears), Some(changes)) = (peer.hears.upgrade(), peer.changes.upgrade()) else { return false };
            if hears(&change) {
                // Nobody listening is no error.
                let _ = changes.send(change);
            }
            true
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
