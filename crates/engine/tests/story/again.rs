//! Calls that are started again: judged by what counts by then, and recorded with what allowed it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::rule::Match;
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::command::Decide;
use adjutant_core::run::event::{CallStarted, Decision as Answer, Event};
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Effect, Level, Recovery, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Agent, Engine, NewRule, RunReport};

use super::Stage;
use super::rules::deny;

/// A tool that fails once without an effect, and may bring a rule about meanwhile.
struct Flaky {
    spec: ToolSpec,
    brings: Option<Decision>,
    house: OnceLock<(Engine, WorkspaceId, UserId)>,
    ran: AtomicUsize,
}

#[async_trait::async_trait]
impl Tool for Flaky {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        if self.ran.fetch_add(1, Ordering::SeqCst) > 0 {
            return ToolOutcome::output("it worked");
        }
        if let Some(decision) = self.brings {
            let (engine, workspace, user) = self.house.get().unwrap();
            let rule = NewRule { when: Match::default(), decision, ..deny("flaky", "/") };
            engine.add_rule(*workspace, *user, rule).await.unwrap();
        }
        ToolOutcome::Failed { message: "Not now.".to_owned(), retriable: true }
    }
}

async fn agent(
    stage: &Stage,
    brings: Option<Decision>,
    autonomy: Autonomy,
    max_tool_calls: u32,
) -> (Agent, Arc<Flaky>) {
    let definition = ToolDefinition {
        name: "flaky".to_owned(),
        description: "Works the second time.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    let recovery = Recovery::AskHuman;
    let spec = ToolSpec { level: Level::Read, effect: Effect::Send, recovery, ..ToolSpec::undeclared(definition) };
    let tool = Arc::new(Flaky { spec, brings, house: OnceLock::new(), ran: AtomicUsize::new(0) });
    let configure = |spec: &mut AgentSpec| {
        (spec.autonomy, spec.can_access_integrations) = (Some(autonomy), Some(true));
        spec.max_tool_calls = Some(max_tool_calls);
    };
    let script = "- when: { turn: 2 }\n  text: \"${last_result}\"\n- calls: [{ name: flaky }]";
    let builder = stage.agent(script).tool(Arc::clone(&tool) as Arc<dyn Tool>).configure(configure);
    let agent = builder.build().await.unwrap();
    assert!(tool.house.set((agent.engine().clone(), agent.workspace(), agent.user())).is_ok());
    (agent, tool)
}

async fn run(brings: Option<Decision>, max_tool_calls: u32) -> (RunReport, Agent, usize) {
    let stage = Stage::new(&[]);
    let (agent, tool) = agent(&stage, brings, Autonomy::Full, max_tool_calls).await;
    let report = agent.run("go").await.unwrap();
    (report, agent, tool.ran.load(Ordering::SeqCst))
}

async fn starts(agent: &Agent, report: &RunReport) -> Vec<CallStarted> {
    let events = agent.engine().recorded(agent.workspace(), report.id, 0, None).await.unwrap();
    let started = |event| if let Event::CallStarted(body) = event { Some(body) } else { None };
    events.into_iter().filter_map(|recorded| started(recorded.event)).collect()
}

#[tokio::test]
async fn a_call_that_is_tried_again_is_recorded_with_what_allows_it_then() {
    // The one call that the run has is the one that is tried again.
    let (report, agent, ran) = run(None, 1).await;
    assert_eq!((report.status, report.result.as_str(), ran), (Status::Completed, "it worked", 2), "{report:#?}");
    let starts = starts(&agent, &report).await;
    assert_eq!(starts[0].again, None);
    let again = starts[1].again.as_ref().unwrap();
    let row = agent.engine().find_agent(agent.workspace(), "embedded").await.unwrap();
    let config: adjutant_core::guard::policy::AgentConfig = serde_json::from_str(&row.spec).unwrap();
    assert_eq!((again.rule.as_str(), again.policy), ("autonomy", config.hash()));
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

#[tokio::test]
async fn a_call_that_nobody_was_asked_about_is_not_tried_again_once_it_asks_or_is_forbidden() {
    for (decision, words) in
        [(Decision::Ask, "It asks a person by now"), (Decision::Deny, "A standing rule forbids it")]
    {
        let (report, agent, ran) = run(Some(decision), 200).await;
        assert_eq!((report.status, ran), (Status::Completed, 1), "{report:#?}");
        assert!(report.result.contains(words), "{}", report.result);
        assert_eq!(starts(&agent, &report).await.len(), 1);
    }
}

#[tokio::test]
async fn who_wrote_the_arguments_of_a_call_has_not_answered_what_asks_when_it_is_tried_again() {
    for (brings, tries) in [(None, 2), (Some(Decision::Ask), 1)] {
        let stage = Stage::new(&[]);
        let (agent, tool) = agent(&stage, brings, Autonomy::Low, 200).await;
        let asked = agent.run("go").await.unwrap();
        let edit = Decide {
            decision: Answer::Edit,
            arguments: Some("{}".to_owned()),
            ..super::approvals::no(asked.pending_approvals[0])
        };
        agent.engine().decide(agent.workspace(), edit).await.unwrap();
        let report = agent.resume(asked.id).await.unwrap();
        assert_eq!((report.status, tool.ran.load(Ordering::SeqCst)), (Status::Completed, tries), "{report:#?}");
        assert_eq!(report.result.contains("It asks a person by now"), brings.is_some(), "{}", report.result);
    }
}
