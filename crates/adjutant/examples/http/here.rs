//! The runs in the process: an engine with a worker.

use std::sync::Arc;
use std::time::Instant;

use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::scope::{FolderEntry, ScopeSpec};
use adjutant_core::id::{AgentId, RunId};
use adjutant_core::run::event::{Actor, EndStatus, Event};
use adjutant_core::tool::Level;
use adjutant_engine::models::{Model, Scripted};
use adjutant_engine::store::{Durability, MasterKey, Sealing, Store};
use adjutant_engine::tools::Registry;
use adjutant_engine::tools::net::Connector;
use adjutant_engine::{Engine, Env, FeedItem, Home, Parts, StartRun, Unpriced, Worker};
use tempfile::TempDir;

use crate::SCRIPT;
use crate::common::{MANY, Outcome};

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

    /// The end of a run, which has to have done so many calls.
    pub(crate) async fn end(&self, run: RunId, calls: usize) -> Outcome {
        let mut follower = self.engine.follow(self.home.workspace, run, 1);
        let (mut done, mut status) = (0, None);
        while let Some(item) = follower.next().await? {
            let FeedItem::Event(recorded) = item else { continue };
            if let Event::CallEnded(call) = &recorded.event {
                done += usize::from(!call.is_error);
            } else if let Event::RunEnded(ended) = &recorded.event {
                status = Some(ended.status);
            }
        }
        if status == Some(EndStatus::Completed) && done == calls {
            Ok(())
        } else {
            Err(format!("a run did not end well, with {done} of {calls} calls: {status:?}").into())
        }
    }

    pub(crate) async fn run(&self, message: &str, calls: usize) -> Outcome {
        let run = self.start(message).await?;
        self.end(run, calls).await
    }

    /// When the first piece of the answer was there, or all of it where it came before anybody could listen; the run is over when
    /// this comes back.
    pub(crate) async fn first_piece(&self, message: &str) -> Outcome<Instant> {
        let run = self.start(message).await?;
        let mut follower = self.engine.follow(self.home.workspace, run, 0);
        let mut first = None;
        while let Some(item) = follower.next().await? {
            let answers = match &item {
                FeedItem::Event(recorded) => matches!(recorded.event, Event::ModelAnswered(_)),
                FeedItem::Piece(_) => true,
            };
            if answers {
                first.get_or_insert_with(Instant::now);
            }
        }
        first.ok_or_else(|| "a run did not answer".into())
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
        permission_level: Some(Level::Write),
        autonomy: Some(Autonomy::Full),
        max_requests_per_hour: Some(MANY),
        max_concurrent_runs: Some(10_000),
        ..AgentSpec::default()
    }
}
