//! Two that come at once: whoever is first decides, and the other is told.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use adjutant_core::guard::permit::Permit;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::rule::Match;
use adjutant_core::id::{ApprovalId, UserId, WorkspaceId};
use adjutant_core::run::command::{Command, Decide, Refusal};
use adjutant_core::run::event::{Actor, Decision, Event, GrantScope};
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Effect, Level, Prepared, ToolDefinition, ToolOutcome, ToolSpec};
use adjutant_engine::tools::{Tool, World};
use adjutant_engine::{Agent, Engine, EngineError, NewRule, RunReport};
use serde_json::Value;

use super::rules::deny;
use super::{Clock, Stage};

const WRITE: &str = r#"
- when: { turn: 2 }
  text: "${last_result}"
- calls: [{ name: write_file, arguments: { path: /a.md, content: new } }]
"#;

fn stage() -> Stage {
    Stage::new(&[("/a.md", "old")])
}

fn decide(agent: &Agent, approval: ApprovalId, decision: Decision) -> Decide {
    Decide {
        approval,
        decision,
        scope: GrantScope::Once,
        lasts: None,
        by: Actor::User(agent.user()),
        arguments: None,
        message: None,
        fingerprint: None,
    }
}

async fn decisions(agent: &Agent, report: &RunReport) -> usize {
    let events = agent.engine().recorded(agent.workspace(), report.id, 0, None).await.unwrap();
    events.iter().filter(|recorded| matches!(recorded.event, Event::ApprovalDecided(_))).count()
}

#[tokio::test]
async fn of_two_who_answer_at_once_one_decides_and_the_other_is_told() {
    for pair in [[Decision::Approve, Decision::Reject], [Decision::Reject, Decision::Approve]] {
        let stage = stage();
        let agent = stage.agent(WRITE).build().await.unwrap();
        let asked = agent.run("go").await.unwrap();
        let approval = asked.pending_approvals[0];
        let answer = |decision| agent.engine().decide(agent.workspace(), decide(&agent, approval, decision));
        let (one, two) = futures::join!(answer(pair[0]), answer(pair[1]));
        let (winner, loser) = match (one, two) {
            (Ok(_), Err(loser)) => (pair[0], loser),
            (Err(loser), Ok(_)) => (pair[1], loser),
            both => panic!("{both:?}"),
        };
        let EngineError::Refused(Refusal::AlreadyDecided(earlier)) = loser else { panic!("{loser}") };
        assert_eq!(earlier.decision, winner, "whoever is late hears what was decided");
        let report = agent.resume(asked.id).await.unwrap();
        assert_eq!(report.status, Status::Completed);
        assert_eq!(decisions(&agent, &report).await, 1);
        assert_eq!(stage.read("/a.md") == "new", winner == Decision::Approve);
    }
}

#[tokio::test]
async fn a_yes_counts_until_the_moment_the_question_expires_and_not_at_it() {
    let day = 24 * 60 * 60;
    for (waited, in_time) in [(day - 1, true), (day, false)] {
        let stage = stage();
        let clock = Clock::new();
        let agent = stage.agent(WRITE).env(clock.env()).build().await.unwrap();
        let asked = agent.run("go").await.unwrap();
        clock.forward(waited);
        let yes = decide(&agent, asked.pending_approvals[0], Decision::Approve);
        // The driver would expire it at the very moment the person says yes.
        let (answer, driven) = futures::join!(agent.engine().decide(agent.workspace(), yes), agent.resume(asked.id));
        driven.unwrap();
        assert_eq!(answer.is_ok(), in_time, "{answer:?}");
        let report = agent.resume(asked.id).await.unwrap();
        assert_eq!(report.status, Status::Completed, "{report:#?}");
        assert_eq!(decisions(&agent, &report).await, 1);
        assert_eq!(stage.read("/a.md") == "new", in_time);
        if !in_time {
            assert!(report.result.contains("Nobody approved this call in time"), "{}", report.result);
        }
    }
}

#[tokio::test]
async fn a_question_waits_as_long_as_its_agent_says() {
    let stage = stage();
    let clock = Clock::new();
    let short = |spec: &mut AgentSpec| spec.approval_expires_in = Some("2m".to_owned());
    let agent = stage.agent(WRITE).env(clock.env()).configure(short).build().await.unwrap();
    let asked = agent.run("go").await.unwrap();
    clock.forward(119);
    assert_eq!(agent.resume(asked.id).await.unwrap().status, Status::WaitingApproval);
    clock.forward(1);
    let report = agent.resume(asked.id).await.unwrap();
    assert!(report.result.contains("Nobody approved this call in time"), "{}", report.result);
}

#[tokio::test]
async fn a_yes_is_asked_for_again_where_its_question_has_expired_before_the_call_runs() {
    let stage = stage();
    let clock = Clock::new();
    let short = |spec: &mut AgentSpec| spec.approval_expires_in = Some("2m".to_owned());
    let agent = stage.agent(WRITE).env(clock.env()).configure(short).build().await.unwrap();
    let asked = agent.run("go").await.unwrap();
    clock.forward(60);
    agent
        .engine()
        .decide(agent.workspace(), decide(&agent, asked.pending_approvals[0], Decision::Approve))
        .await
        .unwrap();
    // Nobody drove the run meanwhile.
    clock.forward(60);
    let again = agent.resume(asked.id).await.unwrap();
    assert_eq!((again.status, stage.read("/a.md")), (Status::WaitingApproval, "old".to_owned()), "{again:#?}");
    assert_ne!(again.pending_approvals, asked.pending_approvals, "it is a question of its own");
    agent
        .engine()
        .decide(agent.workspace(), decide(&agent, again.pending_approvals[0], Decision::Approve))
        .await
        .unwrap();
    clock.forward(119);
    assert_eq!(agent.resume(asked.id).await.unwrap().status, Status::Completed);
    assert_eq!(stage.read("/a.md"), "new");
}

#[tokio::test]
async fn a_cancel_that_meets_a_yes_ends_the_run_and_every_call_has_one_result() {
    for cancel_first in [true, false] {
        let stage = stage();
        let agent = stage.agent(WRITE).build().await.unwrap();
        let asked = agent.run("go").await.unwrap();
        let yes = decide(&agent, asked.pending_approvals[0], Decision::Approve);
        let cancel = Command::Cancel { by: Actor::User(agent.user()), reason: "enough".to_owned() };
        let cancelling = agent.engine().command(agent.workspace(), asked.id, &cancel);
        let approving = agent.engine().decide(agent.workspace(), yes);
        let (cancelled, approved) = if cancel_first {
            futures::join!(cancelling, approving)
        } else {
            let (approved, cancelled) = futures::join!(approving, cancelling);
            (cancelled, approved)
        };
        cancelled.unwrap();
        approved.unwrap();
        let events = agent.engine().recorded(agent.workspace(), asked.id, 0, None).await.unwrap();
        let place = |kind: &str| events.iter().position(|recorded| recorded.event.kind() == kind).unwrap();
        assert_eq!(place("cancel_asked") < place("approval_decided"), cancel_first, "whoever came first is first");
        let report = agent.resume(asked.id).await.unwrap();
        assert_eq!(report.status, Status::Cancelled, "{report:#?}");
        assert_eq!((report.actions[0].attempts, stage.read("/a.md")), (0, "old".to_owned()));
        let events = agent.engine().recorded(agent.workspace(), asked.id, 0, None).await.unwrap();
        assert_eq!(events.iter().filter(|recorded| recorded.event.kind() == "call_ended").count(), 1);
        agent.engine().verify_run(agent.workspace(), asked.id).await.unwrap();
    }
}

#[tokio::test]
async fn a_right_that_is_taken_away_between_a_yes_and_its_call_stops_the_call() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("go").await.unwrap();
    agent.decide(asked.pending_approvals[0], Decision::Approve).await.unwrap();
    let row = agent.engine().find_agent(agent.workspace(), "embedded").await.unwrap();
    let scope = serde_json::from_str(r#"{"notebooks":["*"],"folders":["/elsewhere"]}"#).unwrap();
    let narrowed = AgentSpec {
        name: "Tester".to_owned(),
        slug: Some("embedded".to_owned()),
        scope: Some(scope),
        can_write: Some(true),
        can_create: Some(true),
        ..AgentSpec::default()
    };
    agent.engine().save_agent(agent.workspace(), Actor::User(agent.user()), narrowed, row.version).await.unwrap();
    let report = agent.resume(asked.id).await.unwrap();
    assert_eq!((report.actions[0].attempts, stage.read("/a.md")), (0, "old".to_owned()));
    assert_eq!(report.actions[0].rule.as_deref(), Some("P11"), "{report:#?}");
}

/// A tool that is forbidden while it looks at what it would do.
struct Slow {
    spec: ToolSpec,
    house: OnceLock<(Engine, WorkspaceId, UserId)>,
    ran: AtomicUsize,
}

#[async_trait::async_trait]
impl Tool for Slow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn prepare(&self, _: &Value, _: &World) -> Result<Prepared, ToolOutcome> {
        let (engine, workspace, user) = self.house.get().unwrap();
        let forbid = NewRule { when: Match::default(), ..deny("slow", "/") };
        engine.add_rule(*workspace, *user, forbid).await.unwrap();
        Ok(Prepared::default())
    }

    async fn run(&self, _: Permit, _: &World) -> ToolOutcome {
        self.ran.fetch_add(1, Ordering::SeqCst);
        ToolOutcome::output("it ran")
    }
}

#[tokio::test]
async fn what_is_forbidden_between_the_verdict_and_the_start_of_a_call_is_not_started() {
    let definition = ToolDefinition {
        name: "slow".to_owned(),
        description: "Takes its time.".to_owned(),
        schema: serde_json::json!({"type": "object", "properties": {}}),
    };
    let spec = ToolSpec { level: Level::Read, effect: Effect::Read, ..ToolSpec::undeclared(definition) };
    let slow = Arc::new(Slow { spec, house: OnceLock::new(), ran: AtomicUsize::new(0) });
    let script = r#"
- when: { turn: 2 }
  text: "${last_result}"
- calls: [{ name: slow }]
"#;
    let stage = stage();
    let full = |spec: &mut AgentSpec| {
        (spec.autonomy, spec.can_access_integrations) = (Some(Autonomy::Full), Some(true));
    };
    let agent = stage.agent(script).tool(Arc::clone(&slow) as Arc<dyn Tool>).configure(full).build().await.unwrap();
    assert!(slow.house.set((agent.engine().clone(), agent.workspace(), agent.user())).is_ok());
    let report = agent.run("go").await.unwrap();
    assert_eq!(slow.ran.load(Ordering::SeqCst), 0, "{report:#?}");
    assert!(report.result.contains("A standing rule forbids it"), "{}", report.result);
    assert_eq!((report.status, report.actions[0].attempts), (Status::Completed, 0));
}

#[tokio::test]
async fn a_call_that_waited_for_another_is_judged_again_before_it_runs() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: write_file, arguments: { path: /a.md, content: new } }
    - { name: read_file, arguments: { path: /a.md } }
"#;
    let stage = stage();
    let agent = stage.agent(script).build().await.unwrap();
    let asked = agent.run("go").await.unwrap();
    assert_eq!(asked.actions[1].output, None, "reading waits for what is about to be written");
    let no_reading = adjutant_engine::NewRule {
        agent: None,
        chat: None,
        tool: "read_file".to_owned(),
        when: adjutant_core::guard::rule::Match::default(),
        decision: adjutant_core::guard::judge::Decision::Deny,
        expires_at: None,
        note: String::new(),
        must_allow: Vec::new(),
        must_deny: Vec::new(),
    };
    agent.engine().add_rule(agent.workspace(), agent.user(), no_reading).await.unwrap();
    // Rejecting the write changes nothing that the read has seen: only time went by.
    agent.decide(asked.pending_approvals[0], Decision::Reject).await.unwrap();
    let report = agent.resume(asked.id).await.unwrap();
    assert_eq!(report.actions[1].attempts, 0, "{report:#?}");
    assert!(report.actions[1].rule.as_deref().is_some_and(|rule| rule.starts_with("rule ")));
}

#[tokio::test]
async fn a_lasting_yes_that_loses_its_race_writes_no_rule() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("go").await.unwrap();
    let approval = asked.pending_approvals[0];
    let no = decide(&agent, approval, Decision::Reject);
    let lasts = Some(Duration::from_secs(3600));
    let yes = Decide { scope: GrantScope::Always, lasts, ..decide(&agent, approval, Decision::Approve) };
    let (no, yes) =
        futures::join!(agent.engine().decide(agent.workspace(), no), agent.engine().decide(agent.workspace(), yes),);
    assert_ne!(no.is_ok(), yes.is_ok());
    let rules = agent.engine().rules(agent.workspace()).await.unwrap();
    assert_eq!(rules.len(), usize::from(yes.is_ok()));
}
