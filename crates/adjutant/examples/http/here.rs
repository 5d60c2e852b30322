//! The runs in the process: an engine with a worker.

use std::sync::Arc;
use std::time::Instant;

use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::scope::{FolderEntry, ScopeSpec};
use adjutant_core::id::{AgentId, RunId};
use adjutant_core::run::event::Actor;
use adjutant_engine::models::{Model, Scripted};
use adjutant_engine::store::{Durability, MasterKey, Sealing, Store};
use adjutant_engine::tools::Registry;
use adjutant_engine::tools::net::Connector;
use adjutant_engine::{Engine, Env, FeedItem, Home, Parts, StartRun, Unpriced, Worker};
use tempfile::TempDir;

use crate::{Outcome, SCRIPT};

/// Model calls an hour: no rate of the agent is what is measured.
pub(crate) const CALLS: u32 = 1_000_000;

pub(crate) struct Here {
    engine: Engine,
    home: Home,
    agent: AgentId,
    _worker: Worker,
    _data: TempDir,
}

impl Here {
    pub(crate) async fn open() -> Outcome<Self> {
        let data = TempDir::new()?;
        let sealing = Sealing::On(MasterKey::new([7; 32]));
        let store = Store::open_sqlite(&data.path().join("adjutant.db"), Durability::Full, sealing).await?;
        let model: Arc<dyn Model> = Arc::new(Scripted::parse(SCRIPT)?);
        let engine = Engine::new(Parts {
            store,
            env: Env::system(),
            models: Arc::new(move |_: &str| Ok(Arc::clone(&model))),
            tools: Registry::builtin(),
            notebooks: data.path().join("notebooks"),
            default_model: "test/script".to_owned(),
            connector: Connector::default(),
            user_rate: None,
            max_runs: adjutant_core::limits::RUNS_PER_NODE,
            unpriced: Unpriced::Allow,
        })?;
        let home = engine.home().await?;
        let agent = engine.save_agent(home.workspace, Actor::User(home.user), agent(), 0).await?.id;
        let worker = engine.start_worker().await?;
        Ok(Self { engine, home, agent, _worker: worker, _data: data })
    }

    pub(crate) async fn start(&self, message: &str) -> Outcome<RunId> {
        let ask = StartRun::new(self.home.user, self.agent, message);
        Ok(self.engine.start_run(self.home.workspace, ask).await?)
    }

    pub(crate) async fn end(&self, run: RunId) -> Outcome {
        let mut follower = self.engine.follow(self.home.workspace, run, 1);
        while follower.next().await?.is_some() {}
        Ok(())
    }

    pub(crate) async fn run(&self, message: &str) -> Outcome {
        let run = self.start(message).await?;
        self.end(run).await
    }

    /// When the first piece of the answer was there; the run is over when this comes back.
    pub(crate) async fn first_piece(&self, message: &str) -> Outcome<Instant> {
        let run = self.start(message).await?;
        let mut follower = self.engine.follow(self.home.workspace, run, 0);
        let mut first = None;
        while let Some(item) = follower.next().await? {
            if matches!(item, FeedItem::Piece(_)) {
                first.get_or_insert_with(Instant::now);
            }
        }
        Ok(first.unwrap_or_else(Instant::now))
    }
}

/// Does everything by itself.
fn agent() -> AgentSpec {
    AgentSpec {
        name: "Bench".to_owned(),
        scope: Some(ScopeSpec {
            notebooks: Some(vec!["*".to_owned()]),
            folders: Some(vec![FolderEntry::Pattern("/".to_owned())]),
            ..ScopeSpec::default()
        }),
        toolsets: Some(["files", "kv"].map(str::to_owned).into()),
        autonomy: Some(Autonomy::Full),
        max_requests_per_hour: Some(CALLS),
        ..AgentSpec::default()
    }
}
