//! Runs whose process died in the middle of a call, and whose agent or notebook is gone when somebody takes them up.

use std::sync::Arc;

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::id::RunId;
use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Effect, Level, Recovery, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Agent, AgentBuilder, RunReport};
use tokio::sync::Notify;

use super::{Stage, ask};

const CALL: &str = "- when: { turn: 2 }\n  text: done\n- calls: [{ name: endless }]";

/// A tool that says when it has begun, and does not come back.
struct Endless {
    spec: ToolSpec,
    begun: Arc<Notify>,
}

#[async_trait::async_trait]
impl Tool for Endless {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.begun.notify_one();
        std::future::pending().await
    }
}

/// The same agent with such a tool.
fn with_endless(agent: AgentBuilder, recovery: Recovery, begun: &Arc<Notify>) -> AgentBuilder {
    let definition = ToolDefinition {
        name: "endless".to_owned(),
        description: "Does not come back.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    let effect = if recovery == Recovery::Pure { Effect::Read } else { Effect::Write };
    let spec = ToolSpec { level: Level::Read, effect, recovery, ..ToolSpec::undeclared(definition) };
    let full = |spec: &mut AgentSpec| {
        (spec.autonomy, spec.can_access_integrations) = (Some(Autonomy::Full), Some(true));
    };
    agent.tool(Arc::new(Endless { spec, begun: Arc::clone(begun) })).configure(full)
}

/// A run whose process died while that tool ran.
pub(super) async fn died_in_a_call(stage: &Stage, recovery: Recovery) -> (Agent, RunId) {
    let begun = Arc::new(Notify::new());
    let agent = with_endless(stage.agent(CALL), recovery, &begun).build().await.unwrap();
    let run = agent.engine().start_run(agent.workspace(), ask(&agent)).await.unwrap();
    tokio::select! {
        driven = agent.engine().drive_run(run) => panic!("{driven:?}"),
        () = begun.notified() => {}
    }
    // Its node counts as dead.
    agent.engine().store().leave(agent.engine().node()).await.unwrap();
    (agent, run)
}

async fn delete(agent: &Agent) {
    let row = agent.engine().find_agent(agent.workspace(), "embedded").await.unwrap();
    agent.engine().delete_agent(Actor::User(agent.user()), &row).await.unwrap();
}

async fn cancel(agent: &Agent, run: RunId) {
    let cancel = Command::Cancel { by: Actor::User(agent.user()), reason: "enough".to_owned() };
    agent.engine().command(agent.workspace(), run, &cancel).await.unwrap();
}

/// The run has ended, its call has one result, and its log holds.
async fn ended(agent: &Agent, report: &RunReport, status: Status) {
    assert_eq!(report.status, status, "{report:#?}");
    assert!(report.actions.iter().all(|action| action.output.is_some()), "{report:#?}");
    assert!(report.pending_approvals.is_empty(), "nobody is asked about a run that is over");
    agent.engine().verify_run(agent.workspace(), report.id).await.unwrap();
}

#[tokio::test]
async fn a_run_that_died_in_a_call_and_whose_agent_is_deleted_fails_and_says_so() {
    for recovery in [Recovery::Pure, Recovery::Idempotent, Recovery::Reconcile] {
        let stage = Stage::new(&[]);
        let (agent, run) = died_in_a_call(&stage, recovery).await;
        delete(&agent).await;
        let report = agent.resume(run).await.unwrap();
        ended(&agent, &report, Status::Failed).await;
        assert!(report.error.unwrap().message.contains("there is no agent"));
    }
}

#[tokio::test]
async fn a_run_that_died_in_a_call_and_whose_agent_is_deleted_can_be_cancelled() {
    for recovery in [Recovery::Pure, Recovery::Idempotent, Recovery::Reconcile, Recovery::AskHuman] {
        let stage = Stage::new(&[]);
        let (agent, run) = died_in_a_call(&stage, recovery).await;
        delete(&agent).await;
        cancel(&agent, run).await;
        let report = agent.resume(run).await.unwrap();
        ended(&agent, &report, Status::Cancelled).await;
    }
}

#[tokio::test]
async fn a_call_in_doubt_of_a_deleted_agent_does_not_keep_its_run_from_being_cancelled() {
    for recovery in [Recovery::Reconcile, Recovery::AskHuman] {
        let stage = Stage::new(&[]);
        let (agent, run) = died_in_a_call(&stage, recovery).await;
        assert_eq!(agent.resume(run).await.unwrap().status, Status::InDoubt);
        delete(&agent).await;
        cancel(&agent, run).await;
        let report = agent.resume(run).await.unwrap();
        ended(&agent, &report, Status::Cancelled).await;
        assert!(report.actions[0].output.as_ref().unwrap().contains("not known whether it happened"), "{report:#?}");
    }
}

#[tokio::test]
async fn a_run_that_died_in_a_call_and_whose_notebook_is_gone_fails_and_says_so() {
    for recovery in [Recovery::Pure, Recovery::Reconcile] {
        let stage = Stage::new(&[("/a.md", "x")]);
        let (agent, run) = died_in_a_call(&stage, recovery).await;
        let moved = stage.path("/").with_extension("moved");
        std::fs::rename(stage.path("/"), &moved).unwrap();
        drop(agent);
        let agent = with_endless(stage.elsewhere(CALL), recovery, &Arc::default()).build().await.unwrap();
        let report = agent.resume(run).await.unwrap();
        std::fs::rename(&moved, stage.path("/")).unwrap();
        ended(&agent, &report, Status::Failed).await;
        assert!(report.error.unwrap().message.contains("cannot be opened"));
    }
}
