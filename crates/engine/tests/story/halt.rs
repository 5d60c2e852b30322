//! The stop switch, and a process that died while it turned it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use adjutant_core::audit::{AuditEvent, Deed};
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::event::Event;
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Effect, Level, Prepared, Probe, Recovery, Target, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Agent, AuditLog, Engine, Halt, HaltOf};
use serde_json::Value;
use tokio::sync::Notify;

use super::{Stage, ask};

pub(super) const CALL: &str = r#"
- when: { turn: 2 }
  text: "${last_result}"
- calls: [{ name: probe }]
"#;

pub(super) fn spec(effect: Effect, recovery: Recovery) -> ToolSpec {
    let definition = ToolDefinition {
        name: "probe".to_owned(),
        description: "Is watched.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    ToolSpec { level: Level::Read, effect, recovery, ..ToolSpec::undeclared(definition) }
}

pub(super) fn full(spec: &mut AgentSpec) {
    (spec.autonomy, spec.can_access_integrations) = (Some(Autonomy::Full), Some(true));
}

/// When a tool turns the switch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Looks,
    Runs,
}

/// A tool that turns the switch once, behind the back of every run.
struct Turning {
    spec: ToolSpec,
    when: When,
    house: OnceLock<(Engine, WorkspaceId, UserId)>,
    turned: AtomicBool,
    ran: AtomicUsize,
}

impl Turning {
    async fn turn(&self, now: When) {
        if now != self.when || self.turned.swap(true, Ordering::SeqCst) {
            return;
        }
        let (engine, workspace, by) = self.house.get().unwrap();
        let halt = Halt { by: *by, at: engine.env().now(), reason: "a drill".to_owned(), runs: Vec::new() };
        let stored = serde_json::to_vec(&halt).unwrap();
        engine.store().meta_set(&format!("stop {workspace}"), &stored).await.unwrap();
    }
}

#[async_trait::async_trait]
impl Tool for Turning {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn prepare(&self, _: &Value, _: &World) -> Result<Prepared, ToolOutcome> {
        self.turn(When::Looks).await;
        Ok(Prepared::default())
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.ran.fetch_add(1, Ordering::SeqCst);
        self.turn(When::Runs).await;
        ToolOutcome::output("it ran")
    }
}

async fn turning(stage: &Stage, when: When) -> (Arc<Turning>, Agent) {
    let spec = spec(Effect::Read, Recovery::Pure);
    let (house, turned, ran) = (OnceLock::new(), AtomicBool::new(false), AtomicUsize::new(0));
    let tool = Arc::new(Turning { spec, when, house, turned, ran });
    let agent = stage.agent(CALL).tool(Arc::clone(&tool) as Arc<dyn Tool>).configure(full).build().await.unwrap();
    assert!(tool.house.set((agent.engine().clone(), agent.workspace(), agent.user())).is_ok());
    (tool, agent)
}

#[tokio::test]
async fn a_call_that_was_allowed_before_the_switch_was_turned_is_not_started_after_it() {
    let stage = Stage::new(&[]);
    let (tool, agent) = turning(&stage, When::Looks).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    engine.drive_run(run).await.unwrap();
    assert_eq!(tool.ran.load(Ordering::SeqCst), 0);
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);
    let events = engine.recorded(workspace, run, 0, None).await.unwrap();
    assert!(!events.iter().any(|recorded| matches!(recorded.event, Event::CallStarted(_))), "nothing was announced");
    assert_eq!(engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap(), [run]);
    assert_eq!(agent.resume(run).await.unwrap().result, "it ran");
    assert_eq!(tool.ran.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_model_is_asked_once_the_switch_is_on() {
    let stage = Stage::new(&[]);
    let (_, agent) = turning(&stage, When::Runs).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    engine.drive_run(run).await.unwrap();
    let asked = async || {
        let events = engine.recorded(workspace, run, 0, None).await.unwrap();
        events.iter().filter(|recorded| matches!(recorded.event, Event::ModelRequested(_))).count()
    };
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);
    assert_eq!(asked().await, 1, "the call that ran is recorded, and nothing follows from it");
    engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
    assert_eq!(agent.resume(run).await.unwrap().status, Status::Completed);
    assert_eq!(asked().await, 2);
}

/// A tool that runs until somebody stops it.
pub(super) struct Endless {
    spec: ToolSpec,
    pub(super) began: Notify,
    pub(super) stopped: Arc<Notify>,
}

impl Endless {
    pub(super) fn new(effect: Effect, recovery: Recovery) -> Arc<Self> {
        Arc::new(Self { spec: spec(effect, recovery), began: Notify::new(), stopped: Arc::default() })
    }
}

struct Stopped(Arc<Notify>);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait::async_trait]
impl Tool for Endless {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        let _stopped = Stopped(Arc::clone(&self.stopped));
        self.began.notify_one();
        std::future::pending().await
    }

    async fn reconcile(&self, _: &Value, _: &Target, _: Option<&Target>, _: &World) -> Probe {
        Probe::NotHappened
    }
}

#[tokio::test]
async fn a_tool_that_runs_when_the_switch_is_turned_is_stopped_and_what_may_have_happened_is_asked_about() {
    for (effect, recovery) in [(Effect::Read, Recovery::Pure), (Effect::Send, Recovery::AskHuman)] {
        let tool = Endless::new(effect, recovery);
        let stage = Stage::new(&[]);
        let agent = stage.agent(CALL).tool(Arc::clone(&tool) as Arc<dyn Tool>).configure(full).build().await.unwrap();
        let (engine, workspace) = (agent.engine(), agent.workspace());
        let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
        let turn = async {
            tool.began.notified().await;
            engine.halt(HaltOf::Workspace(workspace), agent.user(), "a drill".to_owned()).await.unwrap()
        };
        let both = async { futures::join!(engine.drive_run(run), turn) };
        let (driven, halt) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
        driven.unwrap();
        assert_eq!(halt.runs, [run]);
        tokio::time::timeout(Duration::from_secs(60), tool.stopped.notified()).await.unwrap();
        let state = engine.run_state(workspace, run).await.unwrap();
        assert_eq!(state.status(), Status::Paused);
        let call = state.calls().next().unwrap();
        assert_eq!((call.ended.is_some(), call.is_in_doubt()), (effect == Effect::Read, effect == Effect::Send));
        engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
        let report = agent.resume(run).await.unwrap();
        if effect == Effect::Read {
            assert!(report.result.contains("The stop switch was turned"), "{}", report.result);
        } else {
            assert_eq!((report.status, report.actions[0].attempts), (Status::InDoubt, 1), "{report:#?}");
        }
    }
}

/// How often something was done, by the log of the workspace.
async fn recorded(agent: &Agent, deed: Deed) -> usize {
    let log = agent.engine().audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let is_it = |event: &AuditEvent| matches!(event, AuditEvent::Act(act) if act.deed == deed);
    log.iter().filter_map(|recorded| recorded.event.as_ref()).filter(|event| is_it(event)).count()
}

#[tokio::test]
async fn the_switch_and_its_record_are_there_together_or_not_at_all() {
    let full = "CREATE TRIGGER no_room BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'there is no room'); END";
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: done").build().await.unwrap();
    let (engine, workspace) = (agent.engine(), HaltOf::Workspace(agent.workspace()));
    let turn_on = async || engine.halt(workspace, agent.user(), "a drill".to_owned()).await;
    let is_on = async || engine.halt_of(workspace).await.unwrap().is_some();
    stage.tamper(full);
    turn_on().await.unwrap_err();
    assert!(!is_on().await, "what cannot be recorded does not happen");
    stage.tamper("DROP TRIGGER no_room");
    turn_on().await.unwrap();
    assert!(is_on().await);
    stage.tamper(full);
    engine.lift_halt(workspace, agent.user()).await.unwrap_err();
    assert!(is_on().await);
    stage.tamper("DROP TRIGGER no_room");
    let (one, two) =
        futures::join!(engine.lift_halt(workspace, agent.user()), engine.lift_halt(workspace, agent.user()));
    one.and(two).unwrap();
    assert!(!is_on().await);
    assert_eq!((recorded(&agent, Deed::Halted).await, recorded(&agent, Deed::HaltLifted).await), (1, 1));
}

#[tokio::test]
async fn a_run_that_the_switch_caught_late_goes_on_with_the_others() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent("- text: done").build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    // The switch is on, and whoever turned it had no time to look for the runs that are open.
    let halt = Halt { by: agent.user(), at: engine.env().now(), reason: "a drill".to_owned(), runs: Vec::new() };
    let stored = serde_json::to_vec(&halt).unwrap();
    engine.store().meta_set(&format!("stop {workspace}"), &stored).await.unwrap();
    engine.drive_run(run).await.unwrap();
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);

    let resumed = engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
    assert_eq!(resumed, [run]);
    assert_eq!(agent.resume(run).await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_run_that_a_person_held_before_the_switch_stays_held() {
    use adjutant_core::run::command::Command;
    use adjutant_core::run::event::Actor;
    let stage = Stage::new(&[("/a.md", "old")]);
    let clock = super::Clock::new();
    let agent = stage.agent("- text: done").env(clock.env()).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    engine.command(workspace, run, &Command::Pause { by: Actor::User(agent.user()) }).await.unwrap();
    clock.forward(1);
    engine.halt(HaltOf::Workspace(workspace), agent.user(), "a drill".to_owned()).await.unwrap();
    let resumed = engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
    assert_eq!(resumed, []);
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);
}
