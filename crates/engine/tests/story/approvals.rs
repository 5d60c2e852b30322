//! Runs that ask.

use std::sync::{Arc, Mutex};

use adjutant_core::guard::judge::Decision as Word;
use adjutant_core::id::ApprovalId;
use adjutant_core::run::command::Decide;
use adjutant_core::run::event::{Actor, Decision, Event, GrantScope};
use adjutant_core::run::status::Status;
use adjutant_engine::NewRule;
use adjutant_engine::models::demo::sample_files;

use super::Stage;
use super::rules::deny;

const WRITE: &str = r#"
- when: { result: { contains: rejected } }
  text: "I was told no: ${last_result}"
- when: { result: { contains: "answered instead" } }
  text: "I was told: ${last_result}"
- when: { result: { is_error: true } }
  text: "It failed: ${last_result}"
- when: { result: { name: write_file } }
  text: done
- when: { user: write }
  text: I will write it.
  calls:
    - { name: write_file, arguments: { path: /a.md, content: new } }
"#;

pub(crate) fn no(approval: ApprovalId) -> Decide {
    Decide {
        approval,
        decision: Decision::Reject,
        scope: GrantScope::Once,
        lasts: None,
        by: Actor::Rule("test".to_owned()),
        arguments: None,
        message: None,
        fingerprint: None,
    }
}

#[tokio::test]
async fn the_demo_asks_before_it_writes_and_writes_once_it_may() {
    let stage = Stage::new(sample_files());
    let untouched = stage.read("/todo.md");
    let agent = stage.bare().build().await.unwrap();
    let report = agent.run("tidy the welcome notes").await.unwrap();
    assert_eq!(report.status, Status::WaitingApproval, "{report:#?}");
    assert_eq!(stage.read("/todo.md"), untouched);
    agent.decide(report.pending_approvals[0], Decision::Approve).await.unwrap();
    let report = agent.resume(report.id).await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert_ne!(stage.read("/todo.md"), untouched);
    assert_eq!(report.files_modified, ["/todo.md"]);
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty() && replay.requests > 2 && replay.verdicts > 2, "{replay:#?}");
    agent.engine().verify_run(agent.workspace(), report.id).await.unwrap();
}

#[tokio::test]
async fn a_rejected_call_changes_nothing_and_the_model_is_told() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).on_approval(|_| Decision::Reject).build().await.unwrap();
    let report = agent.run("write").await.unwrap();
    assert_eq!(report.status, Status::Completed);
    assert!(report.result.starts_with("I was told no"), "{}", report.result);
    assert_eq!(stage.read("/a.md"), "old");
    assert_eq!(report.actions[0].attempts, 0);
}

#[tokio::test]
async fn an_answer_in_place_of_an_approval_reaches_the_model() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).build().await.unwrap();
    let waiting = agent.run("write").await.unwrap();
    let decide = Decide {
        approval: waiting.pending_approvals[0],
        decision: Decision::Respond,
        scope: GrantScope::Once,
        lasts: None,
        by: Actor::Rule("test".to_owned()),
        arguments: None,
        message: Some("use another file".to_owned()),
        fingerprint: None,
    };
    agent.engine().decide(agent.workspace(), decide).await.unwrap();
    let report = agent.resume(waiting.id).await.unwrap();
    assert!(report.result.contains("use another file"), "{}", report.result);
    assert_eq!(stage.read("/a.md"), "old");
}

#[tokio::test]
async fn an_edited_call_runs_with_the_edited_arguments_and_only_inside_the_scope() {
    for (path, written) in [("/b.md", true), ("/../b.md", false)] {
        let stage = Stage::new(&[("/a.md", "old")]);
        let agent = stage.agent(WRITE).build().await.unwrap();
        let waiting = agent.run("write").await.unwrap();
        let decide = Decide {
            approval: waiting.pending_approvals[0],
            decision: Decision::Edit,
            scope: GrantScope::Once,
            lasts: None,
            by: Actor::Rule("test".to_owned()),
            arguments: Some(format!(r#"{{"path":"{path}","content":"edited"}}"#)),
            message: None,
            fingerprint: None,
        };
        agent.engine().decide(agent.workspace(), decide).await.unwrap();
        let report = agent.resume(waiting.id).await.unwrap();
        assert_eq!(report.status, Status::Completed, "{report:#?}");
        assert_eq!(stage.read("/a.md"), "old");
        assert_eq!(stage.exists("/b.md"), written, "{path}");
        assert_eq!(report.actions[0].is_error, !written, "{path}");
    }
}

#[tokio::test]
async fn an_edit_answers_no_rule_that_asks_about_what_was_written_instead() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).build().await.unwrap();
    let about = NewRule { decision: Word::Ask, ..deny("write_file", "/secret") };
    agent.engine().add_rule(agent.workspace(), agent.user(), about).await.unwrap();
    let waiting = agent.run("write").await.unwrap();
    let edited = Decide {
        decision: Decision::Edit,
        arguments: Some(r#"{"path":"/secret/b.md","content":"edited"}"#.to_owned()),
        ..no(waiting.pending_approvals[0])
    };
    agent.engine().decide(agent.workspace(), edited).await.unwrap();
    let again = agent.resume(waiting.id).await.unwrap();
    assert_eq!((again.status, stage.exists("/secret/b.md")), (Status::WaitingApproval, false), "{again:#?}");
    agent.decide(again.pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(waiting.id).await.unwrap().status, Status::Completed);
    assert_eq!(stage.read("/secret/b.md"), "edited");
}

#[tokio::test]
async fn after_three_times_no_to_much_the_same_nobody_is_asked_again() {
    let script = r#"
- when: { turn: 6 }
  text: "${last_result}"
- when: { turn: 5 }
  calls: [{ name: write_file, arguments: { path: /b.md, content: elsewhere } }]
- calls: [{ name: write_file, arguments: { path: /a.md, content: "try ${turn}" } }]
"#;
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(script).build().await.unwrap();
    let mut report = agent.run("write").await.unwrap();
    for asked in 1..=3 {
        assert_eq!(report.status, Status::WaitingApproval, "{asked}");
        agent.engine().decide(agent.workspace(), no(report.pending_approvals[0])).await.unwrap();
        report = agent.resume(report.id).await.unwrap();
    }
    assert_eq!(report.actions[3].rule.as_deref(), Some("rejected_before"), "{report:#?}");
    assert_eq!(report.status, Status::WaitingApproval, "another file is another question");
    agent.decide(report.pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(report.id).await.unwrap().status, Status::Completed);
    assert_eq!((stage.read("/a.md"), stage.read("/b.md")), ("old".to_owned(), "elsewhere".to_owned()));
}

#[tokio::test]
async fn three_times_no_to_different_values_does_not_silence_the_tool() {
    let script = r#"
- when: { turn: 5 }
  text: done
- calls: [{ name: kv_set, arguments: { key: "k${turn}", value: v } }]
"#;
    let stage = Stage::new(&[]);
    let agent = stage.agent(script).toolsets(["kv"]).build().await.unwrap();
    let mut report = agent.run("keep").await.unwrap();
    for asked in 1..=4 {
        assert_eq!(report.status, Status::WaitingApproval, "{asked}: {report:#?}");
        agent.engine().decide(agent.workspace(), no(report.pending_approvals[0])).await.unwrap();
        report = agent.resume(report.id).await.unwrap();
    }
    assert_eq!(report.status, Status::Completed, "{report:#?}");
}

#[tokio::test]
async fn a_value_that_changed_after_the_preview_is_asked_about_again() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: kv_set, arguments: { key: plan, value: new } }]
"#;
    let stage = Stage::new(&[]);
    let agent = stage.agent(script).toolsets(["kv"]).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let first = agent.run("keep").await.unwrap();
    let other = agent.run("keep").await.unwrap();
    agent.decide(other.pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(other.id).await.unwrap().status, Status::Completed);
    agent.decide(first.pending_approvals[0], Decision::Approve).await.unwrap();
    let again = agent.resume(first.id).await.unwrap();
    assert_eq!(again.status, Status::WaitingApproval, "{again:#?}");
    let state = engine.run_state(workspace, first.id).await.unwrap();
    let item = &state.approvals[&again.pending_approvals[0]];
    assert_eq!(item.asked.as_ref().unwrap().rule, "target_changed");
    agent.decide(again.pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(first.id).await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_file_that_changed_after_the_preview_is_asked_about_again() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).build().await.unwrap();
    let first = agent.run("write").await.unwrap();
    std::fs::write(stage.path("/a.md"), "changed by a person").unwrap();
    agent.decide(first.pending_approvals[0], Decision::Approve).await.unwrap();
    let second = agent.resume(first.id).await.unwrap();
    assert_eq!(second.status, Status::WaitingApproval);
    assert_ne!(second.pending_approvals, first.pending_approvals);
    assert_eq!(stage.read("/a.md"), "changed by a person");
    agent.decide(second.pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(first.id).await.unwrap().status, Status::Completed);
    assert_eq!(stage.read("/a.md"), "new");
}

#[tokio::test]
async fn an_approval_is_decided_once() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).build().await.unwrap();
    let waiting = agent.run("write").await.unwrap();
    agent.decide(waiting.pending_approvals[0], Decision::Reject).await.unwrap();
    let again = agent.decide(waiting.pending_approvals[0], Decision::Approve).await;
    assert!(again.unwrap_err().to_string().contains("decided already"));
}

#[tokio::test]
async fn stopping_at_an_approval_ends_the_run() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent(WRITE).on_approval(|_| Decision::Stop).build().await.unwrap();
    let report = agent.run("write").await.unwrap();
    assert_eq!((report.status, report.aborted), (Status::Cancelled, true));
    assert_eq!(stage.read("/a.md"), "old");
}

#[tokio::test]
async fn two_equal_calls_of_a_turn_make_one_approval() {
    let script = r#"
- when: { turn: 2 }
  text: "${result:create_file}"
- calls:
    - { name: create_file, arguments: { path: /n.md, content: x } }
    - { name: create_file, arguments: { content: x, path: /n.md } }
"#;
    let stage = Stage::new(&[]);
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let approve = move |_: &_| {
        *count.lock().unwrap() += 1;
        Decision::Approve
    };
    let report = stage.agent(script).on_approval(approve).build().await.unwrap().run("go").await.unwrap();
    assert_eq!(*asked.lock().unwrap(), 1);
    assert_eq!(report.actions.iter().filter(|action| action.attempts == 1).count(), 1);
    assert_eq!(report.actions[1].rule.as_deref(), Some("same_call"));
}

#[tokio::test]
async fn reads_go_on_while_a_write_waits_and_a_write_to_the_same_file_comes_after_it() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: write_file, arguments: { path: /a.md, content: one } }
    - { name: read_file, arguments: { path: /b.md } }
    - { name: read_file, arguments: { path: /a.md } }
"#;
    let stage = Stage::new(&[("/a.md", "old"), ("/b.md", "other")]);
    let agent = stage.agent(script).build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    assert_eq!(waiting.status, Status::WaitingApproval);
    assert_eq!(waiting.actions[1].output.as_deref(), Some("other"));
    assert_eq!(waiting.actions[2].output, None, "a read of what is about to be written waits for it");
    agent.decide(waiting.pending_approvals[0], Decision::Approve).await.unwrap();
    let report = agent.resume(waiting.id).await.unwrap();
    assert_eq!(report.actions[2].output.as_deref(), Some("one"));
}

#[tokio::test]
async fn a_yes_for_the_run_covers_the_same_tool_in_the_same_folder_only() {
    let script = r#"
- when: { turn: 4 }
  text: done
- when: { turn: 3 }
  calls: [{ name: write_file, arguments: { path: /y/a.md, content: three } }]
- when: { turn: 2 }
  calls: [{ name: write_file, arguments: { path: /x/b.md, content: two } }]
- calls: [{ name: write_file, arguments: { path: /x/a.md, content: one } }]
"#;
    let stage = Stage::new(&[("/x/a.md", ""), ("/x/b.md", ""), ("/y/a.md", "")]);
    let agent = stage.agent(script).build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    let decide = Decide {
        approval: waiting.pending_approvals[0],
        decision: Decision::Approve,
        scope: GrantScope::Run,
        lasts: None,
        by: Actor::User(agent.user()),
        arguments: None,
        message: None,
        fingerprint: None,
    };
    agent.engine().decide(agent.workspace(), decide).await.unwrap();
    let next = agent.resume(waiting.id).await.unwrap();
    assert_eq!(next.status, Status::WaitingApproval);
    assert_eq!(
        (stage.read("/x/a.md"), stage.read("/x/b.md"), stage.read("/y/a.md")),
        ("one".into(), "two".into(), String::new())
    );
}

#[tokio::test]
async fn what_the_agent_may_not_reach_is_neither_read_nor_shown() {
    let script = r#"
- when: { turn: 2 }
  text: "${last_result}"
- calls: [{ name: read_file, arguments: { path: "${user}" } }]
"#;
    for path in ["/secret/key.md", "secret/key.md", "/ok/../secret/key.md", "/.git/config", "/ok/./../secret/key.md"] {
        let stage = Stage::new(&[("/secret/key.md", "CANARY"), ("/ok/a.md", "fine"), ("/.git/config", "CANARY")]);
        let narrow = |spec: &mut adjutant_core::guard::policy::AgentSpec| {
            let folder = adjutant_core::guard::scope::FolderEntry::Pattern("/ok".to_owned());
            spec.scope.as_mut().unwrap().folders = Some(vec![folder]);
        };
        let agent = stage.agent(script).configure(narrow).build().await.unwrap();
        let report = agent.run(path).await.unwrap();
        assert!(report.result.starts_with("Refused"), "{path}: {}", report.result);
        assert!(!report.result.contains("CANARY"), "{path}");
        assert_eq!(report.actions[0].attempts, 0, "{path}");
        let fine = agent.run("/ok/a.md").await.unwrap();
        assert_eq!(fine.result, "fine");
    }
}

#[tokio::test]
async fn each_event_is_seen_once_and_in_order() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let push = Arc::clone(&seen);
    let agent = stage
        .agent(WRITE)
        .on_approval(|_| Decision::Approve)
        .on_event(move |recorded| push.lock().unwrap().push((recorded.seq, recorded.event.kind())))
        .build()
        .await
        .unwrap();
    agent.run("write").await.unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.iter().map(|(seq, _)| *seq).eq(1..=seen.len() as u64));
    let kinds: Vec<_> = seen.iter().map(|(_, kind)| *kind).collect();
    assert_eq!(
        kinds,
        [
            "run_started",
            "model_requested",
            "thought",
            "model_answered",
            "call_proposed",
            "call_judged",
            "approval_asked",
            "approval_decided",
            "call_judged",
            "call_started",
            "call_ended",
            "model_requested",
            "said",
            "model_answered",
            "run_ended"
        ]
    );
    assert!(Event::KINDS.contains(&kinds[0]));
}
