//! A disk that has no room when a call has just had its effect, and gets some again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::run::event::{Actor, Event};
use adjutant_core::time::Time;
use adjutant_core::tool::{Effect, Level, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::models::{Model, Scripted};
use adjutant_engine::tools::{Registry, Tool, World};
use adjutant_engine::{Engine, Env, Exit, Parts, StartRun, Unpriced};
use adjutant_store::row::{UserRow, WorkspaceRow};
use adjutant_store::{Fault, MemoryConfig, Store};

const SCRIPT: &str = "- when: { turn: 2 }\n  text: \"${last_result}\"\n- calls: [{ name: send }]";

/// A tool of which only a person could say whether it happened. When it has, there is no room for so many appends.
struct Send {
    spec: ToolSpec,
    sent: AtomicUsize,
    refusals: Arc<AtomicUsize>,
}

#[async_trait::async_trait]
impl Tool for Send {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.sent.fetch_add(1, Ordering::SeqCst);
        self.refusals.store(3, Ordering::SeqCst);
        ToolOutcome::output("it was sent")
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_is_kept_until_a_full_disk_has_room_again() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let left = Arc::clone(&refusals);
    let take = move || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
    let dawn = Env::system().now();
    let from = tokio::time::Instant::now();
    let clock = move || Time::from_millis(dawn.millis()).after(from.elapsed());
    let config = MemoryConfig {
        faults: Arc::new(move |_| if take() { Fault::Full } else { Fault::None }),
        ..MemoryConfig::new(Arc::new(clock))
    };
    let definition = ToolDefinition {
        name: "send".to_owned(),
        description: "Sends something.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    let spec = ToolSpec { level: Level::Read, effect: Effect::Send, ..ToolSpec::undeclared(definition) };
    let send = Arc::new(Send { spec, sent: AtomicUsize::new(0), refusals });
    let mut tools = Registry::default();
    tools.add(Arc::clone(&send) as Arc<dyn Tool>);
    let model: Arc<dyn Model> = Arc::new(Scripted::parse(SCRIPT).unwrap());
    let engine = Engine::new(Parts {
        store: Store::memory(config),
        env: Env::system(),
        models: Arc::new(move |_: &str| Ok(Arc::clone(&model))),
        tools,
        notebooks: PathBuf::from("/nowhere"),
        default_model: "sim/model".to_owned(),
        connector: adjutant_tools::net::Connector::default(),
        user_rate: None,
        max_runs: adjutant_core::limits::RUNS_PER_NODE,
        unpriced: Unpriced::Allow,
    })
    .unwrap();
    let user = UserRow { id: engine.env().id(), name: "somebody".to_owned(), created_at: dawn };
    let workspace = WorkspaceRow::new(engine.env().id(), "home", "Home", dawn);
    engine.store().create_user(&user).await.unwrap();
    engine.store().create_workspace(&workspace).await.unwrap();
    let agent = AgentSpec {
        name: "Sender".to_owned(),
        tools: Some(["send".to_owned()].into()),
        can_write: Some(true),
        can_access_integrations: Some(true),
        autonomy: Some(Autonomy::Full),
        ..AgentSpec::default()
    };
    let agent = engine.save_agent(workspace.id, Actor::Clock, agent, 0).await.unwrap();
    let run = engine.start_run(workspace.id, StartRun::new(user.id, agent.id, "go")).await.unwrap();
    assert_eq!(engine.drive_run(run).await.unwrap(), Exit::Ended);
    let events = engine.recorded(workspace.id, run, 0, None).await.unwrap();
    let results: Vec<_> = events
        .iter()
        .filter_map(|item| match &item.event {
            Event::CallEnded(body) => Some(body.output.text().into_owned()),
            _ => None,
        })
        .collect();
    assert_eq!((results, send.sent.load(Ordering::SeqCst)), (vec!["it was sent".to_owned()], 1), "{events:#?}");
    assert!(!events.iter().any(|item| matches!(item.event, Event::CallInDoubt(_))));
}
