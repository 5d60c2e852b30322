//! A disk that has no room, or fails, when a call has just had its effect, and recovers, or does not.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::tool::{Effect, Level, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::models::{Model, Scripted};
use adjutant_engine::tools::{Registry, Tool, World};
use adjutant_engine::{Engine, EngineError, Env, Exit, Parts, StartRun, Unpriced};
use adjutant_store::row::{UserRow, WorkspaceRow};
use adjutant_store::{Fault, Gate, MemoryConfig, Store, StoreError};

const SCRIPT: &str = "- when: { turn: 2 }\n  text: \"${last_result}\"\n- calls: [{ name: send }]";

/// A tool of which only a person could say whether it happened. When it has, so many appends fail.
struct Send {
    spec: ToolSpec,
    sent: AtomicUsize,
    refusals: usize,
    left: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Tool for Send {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.sent.fetch_add(1, Ordering::SeqCst);
        self.left.store(self.refusals, Ordering::SeqCst);
        ToolOutcome::output("it was sent")
    }
}

/// A node whose disk does this to so many appends once the tool has run, and a run of it.
pub(crate) struct Stage {
    pub(crate) engine: Engine,
    send: Arc<Send>,
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
}

pub(crate) async fn stage(fault: Fault, refusals: usize, notebooks: &Path) -> Stage {
    let left = Arc::new(AtomicUsize::new(0));
    let some = Arc::clone(&left);
    let take = move || some.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    let (dawn, from) = (Env::system().now(), tokio::time::Instant::now());
    let config = MemoryConfig {
        // Others get their turn at each call.
        gate: Arc::new(|| Gate::Wait(Duration::ZERO)),
        faults: Arc::new(move |_| if take() { fault } else { Fault::None }),
        ..MemoryConfig::new(Arc::new(move || dawn.after(from.elapsed())))
    };
    let send = Arc::new(Send { spec: spec(), sent: AtomicUsize::new(0), refusals, left });
    let tool = Arc::clone(&send) as Arc<dyn Tool>;
    let (engine, workspace, run) = sending(Store::memory(config), Env::system(), tool, notebooks).await;
    Stage { engine, send, workspace, run }
}

/// What a tool called `send` declares: nobody but a person could say whether it happened.
pub(crate) fn spec() -> ToolSpec {
    let definition = ToolDefinition {
        name: "send".to_owned(),
        description: "Sends something.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    ToolSpec { level: Level::Read, effect: Effect::Send, ..ToolSpec::undeclared(definition) }
}

/// A node on this store, and a run that calls this tool once.
pub(crate) async fn sending(
    store: Store,
    env: Env,
    send: Arc<dyn Tool>,
    notebooks: &Path,
) -> (Engine, WorkspaceId, RunId) {
    let mut tools = Registry::default();
    tools.add(send);
    let model: Arc<dyn Model> = Arc::new(Scripted::parse(SCRIPT).unwrap());
    let engine = Engine::new(Parts {
        store,
        env,
        models: Arc::new(move |_: &str| Ok(Arc::clone(&model))),
        tools,
        notebooks: notebooks.to_owned(),
        default_model: "sim/model".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: adjutant_core::limits::RUNS_PER_NODE,
        unpriced: Unpriced::Allow,
    })
    .unwrap();
    let dawn = engine.env().now();
    let user = UserRow { id: engine.env().id(), name: "somebody".to_owned(), created_at: dawn };
    let row = WorkspaceRow::new(engine.env().id(), "home", "Home", dawn);
    engine.store().create_user(&user).await.unwrap();
    engine.store().create_workspace(&row).await.unwrap();
    let agent = AgentSpec {
        name: "Sender".to_owned(),
        tools: Some(["send".to_owned()].into()),
        can_write: Some(true),
        can_access_integrations: Some(true),
        autonomy: Some(Autonomy::Full),
        ..AgentSpec::default()
    };
    let agent = engine.save_agent(row.id, Actor::Clock, agent, 0).await.unwrap();
    let run = engine.start_run(row.id, StartRun::new(user.id, agent.id, "go")).await.unwrap();
    (engine, row.id, run)
}

impl Stage {
    async fn events(&self) -> Vec<Event> {
        let events = self.engine.recorded(self.workspace, self.run, 0, None).await.unwrap();
        events.into_iter().map(|item| item.event).collect()
    }
}

fn kept(notebooks: &Path) -> usize {
    std::fs::read_dir(notebooks.join(".unrecorded")).map_or(0, Iterator::count)
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_until_the_disk_takes_it() {
    for fault in [Fault::Full, Fault::Broken] {
        let notebooks = tempfile::tempdir().unwrap();
        let stage = stage(fault, 3, notebooks.path()).await;
        assert_eq!(stage.engine.drive_run(stage.run).await.unwrap(), Exit::Ended);
        let events = stage.events().await;
        let result = |event: &Event| match event {
            Event::CallEnded(body) => Some(body.output.text().into_owned()),
            _ => None,
        };
        let results: Vec<_> = events.iter().filter_map(result).collect();
        let sent = stage.send.sent.load(Ordering::SeqCst);
        assert_eq!((results, sent), (vec!["it was sent".to_owned()], 1), "{events:#?}");
        assert!(!events.iter().any(|event| matches!(event, Event::CallInDoubt(_))));
        assert_eq!(kept(notebooks.path()), 0, "what is recorded is kept nowhere else");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_seen_and_never_recorded_is_shown_to_whoever_is_asked() {
    for fault in [Fault::Full, Fault::Broken] {
        let notebooks = tempfile::tempdir().unwrap();
        let stage = stage(fault, usize::MAX, notebooks.path()).await;
        let driven = stage.engine.drive_run(stage.run).await;
        assert!(
            matches!(driven, Err(EngineError::Store(StoreError::Full(_) | StoreError::Other(_)))),
            "{fault:?}: {driven:?}"
        );
        assert_eq!(kept(notebooks.path()), 1, "{fault:?}");
        stage.send.left.store(0, Ordering::SeqCst);
        stage.engine.store().leave(stage.engine.node()).await.unwrap();
        assert_eq!(stage.engine.drive_run(stage.run).await.unwrap(), Exit::Parked);
        let events = stage.events().await;
        let asked = |event: &Event| match event {
            Event::CallInDoubt(body) => Some(body.message.clone()),
            _ => None,
        };
        let asked: Vec<_> = events.iter().filter_map(asked).collect();
        assert!(asked.len() == 1 && asked[0].ends_with("could not record it: it was sent"), "{asked:?}");
        assert_eq!((kept(notebooks.path()), stage.send.sent.load(Ordering::SeqCst)), (0, 1));
    }
}
