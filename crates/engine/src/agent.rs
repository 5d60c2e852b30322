//! The embeddable library: `Agent::builder()…build().await?.run("…")`. The same store, guard, log and driver as the server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::rate::Rate;
use adjutant_core::guard::scope::{FolderEntry, ScopeSpec};
use adjutant_core::id::{AgentId, ApprovalId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::limits;
use adjutant_core::run::command::Decide;
use adjutant_core::run::event::{Actor, ApprovalAsked, Decision, GrantScope};
use adjutant_models::{Model, ModelError, ModelSource};
use adjutant_store::row::{NotebookRow, UserRow, WorkspaceRow};
use adjutant_store::{Durability, MasterKey, Sealing, Store};
use adjutant_tools::net::Connector;
use adjutant_tools::{Registry, Tool};

use crate::engine::{Engine, Parts};
use crate::env::Env;
use crate::error::EngineError;
use crate::log::Recorded;
use crate::service::{Role, RunReport, StartRun};
use crate::spending::Unpriced;
use crate::worker::Attendance;

/// Answers approvals in place of a person at a screen.
pub type Approver = Arc<dyn Fn(&ApprovalAsked) -> Decision + Send + Sync>;
/// Sees every durable event of a run.
pub type Observer = Arc<dyn Fn(&Recorded) + Send + Sync>;

/// The name under which a builder's own model is known.
const EMBEDDED_MODEL: &str = "embedded/model";

/// Puts an agent together.
#[must_use]
pub struct AgentBuilder {
    spec: AgentSpec,
    model: Option<Arc<dyn Model>>,
    models: Option<(Arc<dyn ModelSource>, String)>,
    tools: Registry,
    notebook: Option<PathBuf>,
    data: Option<PathBuf>,
    key: Option<[u8; 32]>,
    approver: Option<Approver>,
    observer: Option<Observer>,
    connector: Connector,
    user_rate: Option<Rate>,
    env: Env,
}

/// An agent inside another program.
pub struct Agent {
    engine: Engine,
    workspace: WorkspaceId,
    user: UserId,
    id: AgentId,
    notebook: Option<NotebookId>,
    approver: Option<Approver>,
    observer: Option<Observer>,
    /// Renews the lease and tells readers of what is committed, for as long as the agent lives.
    _attendance: Attendance,
    /// Nobody else may write to the same data folder meanwhile.
    _lock: std::fs::File,
}

impl Agent {
    /// Starts to put an agent together.
    pub fn builder(name: impl Into<String>) -> AgentBuilder {
        AgentBuilder {
            spec: AgentSpec { name: name.into(), slug: Some("embedded".to_owned()), ..AgentSpec::default() },
            model: None,
            models: None,
            tools: Registry::builtin(),
            notebook: None,
            data: None,
            key: None,
            approver: None,
            observer: None,
            connector: Connector::default(),
            user_rate: Some(Rate::per_minute(limits::USER_CALLS_PER_MINUTE)),
            env: Env::system(),
        }
    }

    /// Runs one task, in a chat of its own, until it ends or waits for a decision that nobody here gives.
    ///
    /// # Errors
    /// When the run cannot be started or driven. A run that fails is not an error: its report says so.
    pub async fn run(&self, task: &str) -> Result<RunReport, EngineError> {
        self.run_in(None, task).await
    }

    /// Runs one task as the next message of a chat.
    ///
    /// # Errors
    /// As [`Agent::run`]; also when the chat is busy.
    pub async fn run_in(&self, chat: Option<ChatId>, task: &str) -> Result<RunReport, EngineError> {
        let ask = StartRun { chat, notebook: self.notebook, ..StartRun::new(self.user, self.id, task) };
        let run = self.engine.start_run(self.workspace, ask).await?;
        self.go_on(run).await
    }

    /// Goes on with a run that was left, for example by a process that died.
    ///
    /// # Errors
    /// As [`Agent::run`].
    pub async fn resume(&self, run: RunId) -> Result<RunReport, EngineError> {
        self.go_on(run).await
    }

    /// Decides an approval and leaves the run to [`Agent::resume`].
    ///
    /// # Errors
    /// When it cannot be decided any more.
    pub async fn decide(&self, approval: ApprovalId, decision: Decision) -> Result<(), EngineError> {
        self.engine.decide(self.workspace, self.decision(approval, decision)).await.map(drop)
    }

    /// The engine underneath, for everything else.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tenant the agent lives in.
    #[must_use]
    pub fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The person the agent acts for.
    #[must_use]
    pub fn user(&self) -> UserId {
        self.user
    }

    /// The agent itself.
    #[must_use]
    pub fn id(&self) -> AgentId {
        self.id
    }

    fn decision(&self, approval: ApprovalId, decision: Decision) -> Decide {
        Decide {
            approval,
            decision,
            scope: GrantScope::Once,
            lasts: None,
            by: Actor::User(self.user),
            arguments: None,
            message: None,
            fingerprint: None,
        }
    }

    async fn go_on(&self, run: RunId) -> Result<RunReport, EngineError> {
        let mut after = 0;
        loop {
            self.engine.drive_run(run).await?;
            if let Some(observer) = &self.observer {
                for recorded in self.engine.recorded(self.workspace, run, after, None).await? {
                    after = recorded.seq;
                    observer(&recorded);
                }
            }
            let state = self.engine.run_state(self.workspace, run).await?;
            let open = state.approvals.values().filter(|approval| approval.is_pending());
            let asked: Vec<_> = open.filter_map(|approval| approval.asked.clone()).collect();
            let Some(approver) = self.approver.as_ref().filter(|_| !asked.is_empty()) else { break };
            for question in asked {
                let decide = self.decision(question.approval, approver(&question));
                match self.engine.decide(self.workspace, decide).await {
                    // Somebody else, or the clock, may have been faster; and a "stop" settles the rest.
                    Ok(_) | Err(EngineError::Refused(_)) => {}
                    Err(other) => return Err(other),
                }
            }
        }
        self.engine.report(self.workspace, run).await
    }

    /// Follows a run of this agent while it is driven, live pieces included.
    #[must_use]
    pub fn follow(&self, run: RunId) -> crate::feed::Follower {
        self.engine.follow(self.workspace, run, 0)
    }
}

impl AgentBuilder {
    /// What the agent is told.
    pub fn instructions(mut self, text: impl Into<String>) -> Self {
        self.spec.system_prompt = Some(text.into());
        self
    }

    /// The model that answers. Without one, the built-in demo model does.
    pub fn model(self, model: impl Model + 'static) -> Self {
        self.shared_model(Arc::new(model))
    }

    /// The same, for a model that others use as well.
    pub fn shared_model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// Several models by name, with what is known about them (prices, windows), and the one to ask by default.
    pub fn models(mut self, source: Arc<dyn ModelSource>, default: impl Into<String>) -> Self {
        self.models = Some((source, default.into()));
        self
    }

    /// Adds a tool of your own and grants it.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        let name = tool.spec().name().to_owned();
        self.spec.tools.get_or_insert_default().insert(name);
        self.tools.add(tool);
        self
    }

    /// Grants groups of built-in tools.
    pub fn toolsets<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.spec.toolsets = Some(names.map(str::to_owned).into());
        self
    }

    /// The folder the agent works in, and the patterns inside it that it may reach.
    pub fn notebook<const N: usize>(mut self, folder: impl Into<PathBuf>, patterns: [&str; N]) -> Self {
        self.notebook = Some(folder.into());
        self.spec.scope = Some(ScopeSpec {
            notebooks: Some(vec!["*".to_owned()]),
            folders: Some(patterns.map(|pattern| FolderEntry::Pattern(pattern.to_owned())).into()),
            ..ScopeSpec::default()
        });
        self
    }

    /// Lets the agent change and create files (deleting is another right).
    pub fn can_write(mut self) -> Self {
        self.spec.can_write = Some(true);
        self.spec.can_create = Some(true);
        self
    }

    /// How much it does without asking.
    pub fn autonomy(mut self, autonomy: Autonomy) -> Self {
        self.spec.autonomy = Some(autonomy);
        self
    }

    /// Changes anything else of the configuration.
    pub fn configure(mut self, change: impl FnOnce(&mut AgentSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Where the log is kept. Without it, in a folder of the system's temporary files, made for this agent.
    pub fn data(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data = Some(folder.into());
        self
    }

    /// Seals what is kept under this key. Without one, the log is as readable as the folder it lies in.
    pub fn master_key(mut self, key: [u8; 32]) -> Self {
        self.key = Some(key);
        self
    }

    /// Answers approvals. Without it, a run that asks stops and waits.
    pub fn on_approval(mut self, approver: impl Fn(&ApprovalAsked) -> Decision + Send + Sync + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// Sees every durable event, in order.
    pub fn on_event(mut self, observer: impl Fn(&Recorded) + Send + Sync + 'static) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }

    /// How many tool calls all runs together may make in a minute; 600 unless said here. None is no limit.
    pub fn calls_per_minute(mut self, calls: Option<u32>) -> Self {
        self.user_rate = calls.map(Rate::per_minute);
        self
    }

    /// The door to the network; without it only public addresses are reached.
    pub fn connector(mut self, connector: Connector) -> Self {
        self.connector = connector;
        self
    }

    /// Time and chance, for tests that must come out the same each time.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Opens the store and saves the agent.
    ///
    /// # Errors
    /// When the configuration cannot be used or the store cannot be opened.
    pub async fn build(self) -> Result<Agent, EngineError> {
        let unique: RunId = self.env.id();
        let data = self.data.unwrap_or_else(|| std::env::temp_dir().join(format!("adjutant-{unique}")));
        let failed = |why: std::io::Error| EngineError::Invalid(format!("the data folder cannot be made: {why}"));
        std::fs::create_dir_all(&data).map_err(failed)?;
        let lock = std::fs::File::create(data.join("lock")).map_err(failed)?;
        lock.try_lock().map_err(|_| EngineError::Invalid("another process uses this data folder".to_owned()))?;
        if let Some(folder) = &self.notebook {
            check_apart(folder, &data)?;
        }
        let sealing = self.key.map_or(Sealing::Off, |key| Sealing::On(MasterKey::new(key)));
        let store = Store::open_sqlite(&data.join("adjutant.db"), Durability::Full, sealing).await?;
        let model = self.model.unwrap_or_else(|| Arc::new(adjutant_models::demo::Demo::default()));
        let models = move |name: &str| {
            let unknown = || ModelError::UnknownModel { model: name.to_owned(), hint: String::new() };
            if name == EMBEDDED_MODEL { Ok(Arc::clone(&model)) } else { Err(unknown()) }
        };
        // A program that brings one model of its own knows what that costs, and there is nobody else to ask.
        let unpriced = if self.models.is_some() { Unpriced::Ask } else { Unpriced::Allow };
        let (models, default_model) =
            self.models.unwrap_or_else(|| (Arc::new(models) as Arc<dyn ModelSource>, EMBEDDED_MODEL.to_owned()));
        let parts = Parts {
            store,
            env: self.env,
            models,
            tools: self.tools,
            notebooks: data.join("notebooks"),
            default_model,
            connector: self.connector,
            user_rate: self.user_rate,
            max_runs: limits::RUNS_PER_NODE,
            unpriced,
        };
        let engine = Engine::new(parts)?;
        let (workspace, user) = tenant(&engine).await?;
        let notebook = match self.notebook {
            Some(folder) => Some(link(&engine, workspace, &folder).await?),
            None => None,
        };
        let known = engine.store().agent_by_slug(workspace, "embedded").await?.map_or(0, |row| row.version);
        let id = engine.save_agent(workspace, Actor::User(user), self.spec, known).await?.id;
        let _attendance = engine.attend().await?;
        let (approver, observer) = (self.approver, self.observer);
        Ok(Agent { engine, workspace, user, id, notebook, approver, observer, _attendance, _lock: lock })
    }
}

/// An agent must not reach the log it is recorded in, nor the keys beside it (design F6, G7).
fn check_apart(notebook: &Path, data: &Path) -> Result<(), EngineError> {
    let real =
        |path: &Path| path.canonicalize().map_err(|why| EngineError::Invalid(format!("{}: {why}", path.display())));
    let (notebook, data) = (real(notebook)?, real(data)?);
    if data.starts_with(&notebook) || notebook.starts_with(&data) {
        return Err(EngineError::Invalid("the data folder and the notebook must not lie in one another".to_owned()));
    }
    Ok(())
}

async fn tenant(engine: &Engine) -> Result<(WorkspaceId, UserId), EngineError> {
    let created_at = engine.env().now();
    let user = match engine.store().user_by_name("embedded").await? {
        Some(user) => user.id,
        None => {
            let row = UserRow { id: engine.env().id(), name: "embedded".to_owned(), created_at };
            engine.store().create_user(&row).await?;
            row.id
        }
    };
    let workspace = match engine.store().workspace_by_slug("embedded").await? {
        Some(workspace) => workspace.id,
        None => {
            let row = WorkspaceRow::new(engine.env().id(), "embedded", "Embedded", created_at);
            engine.store().create_workspace(&row).await?;
            row.id
        }
    };
    engine.store().put_member(workspace, user, Role::Admin.word(), created_at).await?;
    Ok((workspace, user))
}

/// The notebook that stands for a folder of the host; made when it is not known yet.
async fn link(engine: &Engine, workspace: WorkspaceId, folder: &Path) -> Result<NotebookId, EngineError> {
    let unusable =
        |why: std::io::Error| EngineError::Notebook { name: folder.display().to_string(), why: why.to_string() };
    let folder = folder.canonicalize().map_err(unusable)?.display().to_string();
    let rows = engine.store().notebooks(workspace).await?;
    if let Some(known) = rows.iter().find(|row| row.linked.as_ref() == Some(&folder)) {
        return Ok(known.id);
    }
    let slug = format!("folder-{}", rows.len() + 1);
    let row =
        NotebookRow { id: engine.env().id(), workspace, slug, linked: Some(folder), created_at: engine.env().now() };
    engine.store().create_notebook(&row).await?;
    Ok(row.id)
}
