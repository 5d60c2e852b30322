//! The engine: one handle on everything that makes runs happen. Cheap to clone; it holds no run in memory that nobody drives.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use adjutant_core::content::Hash;
use adjutant_core::guard::arguments::Schema;
use adjutant_core::guard::rate::Rate;
use adjutant_core::id::{AgentId, NodeId, NotebookId, RunId, WorkspaceId};
use adjutant_core::tool::ToolDefinitions;
use adjutant_models::tokens::Ratios;
use adjutant_models::{Model, ModelError, ModelSource};
use adjutant_store::{Keeping, Store};
use adjutant_tools::net::Connector;
use adjutant_tools::{Catalog, FileError, Notebook, Registry};
use tokio::sync::Notify;

use crate::base::Bases;
use crate::claims::Claims;
use crate::current::CurrentAgent;
use crate::env::Env;
use crate::error::EngineError;
use crate::feed::Feed;
use crate::handles::OpenNotebook;
use crate::held::HeldKeys;
use crate::lease::Lease;
use crate::meter::Meter;
use crate::spending::Unpriced;

/// What an engine is made of.
pub struct Parts {
    /// Where everything is kept.
    pub store: Store,
    /// Time and chance.
    pub env: Env,
    /// The models.
    pub models: Arc<dyn ModelSource>,
    /// The tools.
    pub tools: Registry,
    /// The folder of the managed notebooks.
    pub notebooks: PathBuf,
    /// The model of agents that say `default`.
    pub default_model: String,
    /// The door to the network.
    pub connector: Connector,
    /// Tool calls of one person's runs, over all agents and tools; none is no limit.
    pub user_rate: Option<Rate>,
    /// Runs that this node drives at the same time.
    pub max_runs: usize,
    /// What becomes of model calls without a known price where there is a limit.
    pub unpriced: Unpriced,
}

/// One handle on everything that makes runs happen.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

struct Inner {
    parts: Parts,
    schemas: BTreeMap<String, Schema>,
    catalog: Arc<Registry>,
    node: NodeId,
    feed: Feed,
    lease: Lease,
    drivers: Mutex<BTreeMap<RunId, Arc<Notify>>>,
    claims: Claims,
    open: Mutex<HashMap<(WorkspaceId, NotebookId), Arc<Notebook>>>,
    bases: Bases,
    held: HeldKeys,
    /// Agents that were read, with the names they were read under.
    agents: Mutex<HashMap<(WorkspaceId, AgentId), CurrentAgent>>,
    /// Tools that runs show their models, by the hash of what is recorded.
    definitions: Mutex<HashMap<Hash, Arc<ToolDefinitions>>>,
    audit: tokio::sync::Mutex<()>,
    /// Whether somebody may wait for a chat to be free.
    waiting: AtomicBool,
    /// How long something is kept was changed.
    kept_otherwise: Notify,
    meter: Meter,
    /// How many bytes make a token, as providers have counted since the process began.
    ratios: Ratios,
    /// The day before which every day is known to be closed.
    closed: Mutex<String>,
    /// How the store keeps what is written, once that was asked: it stays so while it is open.
    keeping: OnceLock<Keeping>,
}

/// Sets of tools that are kept as they were read; with more than these, all are read again.
const TOOLS_KNOWN: usize = 64;

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("node", &self.0.node).finish_non_exhaustive()
    }
}

impl Engine {
    /// Puts an engine together. Nothing runs until a worker is started or a run is driven.
    ///
    /// # Errors
    /// When a tool's schema is not a JSON Schema.
    pub fn new(parts: Parts) -> Result<Self, EngineError> {
        let mut schemas = BTreeMap::new();
        for tool in parts.tools.iter() {
            let definition = &tool.spec().definition;
            let schema = Schema::compile(&definition.schema).map_err(|bad| {
                EngineError::Invalid(format!("the tool `{}` has no usable schema: {bad}", definition.name))
            })?;
            schemas.insert(definition.name.clone(), schema);
        }
        let catalog = Arc::new(parts.tools.clone());
        let node = parts.env.id();
        let lease = Lease::new(parts.env.clone());
        Ok(Self(Arc::new(Inner {
            parts,
            meter: Meter::new(schemas.keys().cloned()),
            ratios: Ratios::default(),
            schemas,
            catalog,
            node,
            feed: Feed::default(),
            lease,
            drivers: Mutex::default(),
            claims: Claims::default(),
            open: Mutex::default(),
            bases: Bases::default(),
            held: HeldKeys::default(),
            agents: Mutex::default(),
            definitions: Mutex::default(),
            audit: tokio::sync::Mutex::default(),
            waiting: AtomicBool::new(true),
            kept_otherwise: Notify::new(),
            closed: Mutex::default(),
            keeping: OnceLock::new(),
        })))
    }

    /// How many bytes make a token, learned for each model.
    pub(crate) fn ratios(&self) -> &Ratios {
        &self.0.ratios
    }

    /// Where everything is kept.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.0.parts.store
    }

    /// Time and chance.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.0.parts.env
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &Registry {
        &self.0.parts.tools
    }

    /// The tools, as one agent sees them.
    pub(crate) fn catalog(&self, agent: &CurrentAgent) -> Catalog {
        Catalog::new(Arc::clone(&self.0.catalog), Arc::clone(&agent.config))
    }

    /// This process among those that share the store.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.0.node
    }

    /// Told when how long something is kept was changed here.
    pub(crate) fn kept_otherwise(&self) -> &Notify {
        &self.0.kept_otherwise
    }

    /// Whether somebody may wait for a chat to be free.
    pub(crate) fn waiting(&self) -> &AtomicBool {
        &self.0.waiting
    }

    /// What this process has done, in numbers.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.0.meter
    }

    /// The model of agents that say `default`.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.0.parts.default_model
    }

    pub(crate) fn connector(&self) -> Connector {
        self.0.parts.connector.clone()
    }

    pub(crate) fn max_runs(&self) -> usize {
        self.0.parts.max_runs
    }

    pub(crate) fn user_rate(&self) -> Option<Rate> {
        self.0.parts.user_rate
    }

    /// How the store keeps what is written.
    pub(crate) async fn keeping(&self) -> Result<Keeping, EngineError> {
        if let Some(known) = self.0.keeping.get() {
            return Ok(*known);
        }
        let keeping = self.store().keeping().await?;
        Ok(*self.0.keeping.get_or_init(|| keeping))
    }

    pub(crate) fn unpriced(&self) -> Unpriced {
        self.0.parts.unpriced
    }

    pub(crate) fn lease(&self) -> &Lease {
        &self.0.lease
    }

    pub(crate) fn claims(&self) -> &Claims {
        &self.0.claims
    }

    pub(crate) fn bases(&self) -> &Bases {
        &self.0.bases
    }

    pub(crate) fn held_keys(&self) -> &HeldKeys {
        &self.0.held
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.0.feed
    }

    pub(crate) fn schema(&self, tool: &str) -> Option<&Schema> {
        self.0.schemas.get(tool)
    }

    /// Finds a model by its name.
    ///
    /// # Errors
    /// When there is no such model.
    pub fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.0.parts.models.model(name)
    }

    /// Where models come from.
    #[must_use]
    pub fn models(&self) -> &dyn ModelSource {
        &*self.0.parts.models
    }

    /// Agents that were read before.
    pub(crate) fn known_agents(&self) -> &Mutex<HashMap<(WorkspaceId, AgentId), CurrentAgent>> {
        &self.0.agents
    }

    /// The tools of this text, if they were read before.
    pub(crate) fn known_definitions(&self, text: Hash) -> Option<Arc<ToolDefinitions>> {
        lock(&self.0.definitions).get(&text).cloned()
    }

    /// Keeps tools as they were read.
    pub(crate) fn keep_definitions(&self, text: Hash, definitions: &Arc<ToolDefinitions>) {
        let mut known = lock(&self.0.definitions);
        if known.len() >= TOOLS_KNOWN {
            known.clear();
        }
        known.insert(text, Arc::clone(definitions));
    }

    /// A notebook, opened once. Whether it is still there, and what it is called, is asked each time: another node may have taken
    /// it away or renamed it, and by its name an agent reaches it or does not.
    ///
    /// # Errors
    /// When there is none, or its folder cannot be opened.
    pub async fn notebook(&self, workspace: WorkspaceId, id: NotebookId) -> Result<OpenNotebook, EngineError> {
        let Some(row) = self.store().notebook(workspace, id).await? else {
            self.close_notebook(workspace, id);
            return Err(EngineError::not_found("notebook", id));
        };
        if let Some(files) = lock(&self.0.open).get(&(workspace, id)) {
            return Ok(OpenNotebook { slug: row.slug, files: Arc::clone(files) });
        }
        let managed = row.linked.is_none();
        let folder = row.linked.map_or_else(|| self.notebook_folder(id), PathBuf::from);
        let unusable = |why: FileError| {
            let why = match why {
                FileError::NotFound if managed => self.elsewhere(),
                other => other.to_string(),
            };
            EngineError::Notebook { name: row.slug.clone(), why }
        };
        let files = Notebook::open(&folder).map_err(unusable)?;
        let files = Arc::new(if self.store().is_alone() { files } else { files.shared() });
        lock(&self.0.open).insert((workspace, id), Arc::clone(&files));
        Ok(OpenNotebook { slug: row.slug, files })
    }

    /// What is said where the folder of a managed notebook is not there: most often the folder of all of them is the wrong one.
    fn elsewhere(&self) -> String {
        let folder = self.notebooks_folder().display();
        let all = if self.store().is_shared() { "; all nodes share one folder" } else { "" };
        format!("it is not in {folder}, which may be the wrong folder{all}")
    }

    /// Forgets a notebook that is gone.
    pub(crate) fn close_notebook(&self, workspace: WorkspaceId, id: NotebookId) {
        lock(&self.0.open).remove(&(workspace, id));
    }

    /// Forgets what is kept ready of a workspace that is gone.
    pub(crate) fn forget_workspace(&self, workspace: WorkspaceId) {
        self.store().forget_key(workspace);
        lock(&self.0.open).retain(|(of, _), _| *of != workspace);
        lock(&self.0.agents).retain(|(of, _), _| *of != workspace);
    }

    /// Where the managed notebooks are.
    #[must_use]
    pub fn notebooks_folder(&self) -> &std::path::Path {
        &self.0.parts.notebooks
    }

    /// The folder of a managed notebook.
    #[must_use]
    pub fn notebook_folder(&self, id: NotebookId) -> PathBuf {
        self.0.parts.notebooks.join(id.to_string())
    }

    /// The turn of whoever writes an audit log.
    pub(crate) async fn audit_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.0.audit.lock().await
    }

    /// Whether every day before this one is known to be closed.
    pub(crate) fn closed_before(&self, today: &str) -> bool {
        lock(&self.0.closed).as_str() >= today
    }

    /// Notes that every day before this one is closed.
    pub(crate) fn note_closed(&self, today: String) {
        *lock(&self.0.closed) = today;
    }

    /// Says to whoever drives a run here that a command is in its log.
    pub(crate) fn poke(&self, run: RunId) {
        if let Some(notify) = lock(&self.0.drivers).get(&run) {
            notify.notify_one();
        }
    }

    /// Says to everybody who drives a run here that commands may be in their logs.
    pub(crate) fn poke_all(&self) {
        for notify in lock(&self.0.drivers).values() {
            notify.notify_one();
        }
    }

    /// Notes that a run is driven here.
    pub(crate) fn driving(&self, run: RunId) -> Driving {
        let notify = Arc::new(Notify::new());
        lock(&self.0.drivers).insert(run, Arc::clone(&notify));
        Driving { engine: self.clone(), run, notify }
    }
}

/// A run is driven here while this lives.
pub(crate) struct Driving {
    engine: Engine,
    run: RunId,
    pub(crate) notify: Arc<Notify>,
}

impl Drop for Driving {
    fn drop(&mut self) {
        // Another may drive it by now: one that was fenced takes its time to end.
        let mut drivers = lock(&self.engine.0.drivers);
        if drivers.get(&self.run).is_some_and(|notify| Arc::ptr_eq(notify, &self.notify)) {
            drivers.remove(&self.run);
        }
        drop(drivers);
        self.engine.feed().cannot_tell(self.run);
    }
}

/// The lock of a map that is never left half-changed, so that a panic elsewhere does not matter here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
