//! Searching the record, and forgetting what was said in it.

use adjutant_core::audit::filter::parse;
use adjutant_core::run::event::Decision;
use adjutant_engine::{Agent, AuditEntry, AuditLog, EngineError, EraseWhat, LogsOf, PageOf, Redaction, UndoMode};

use super::Stage;

const SCRIPT: &str = r#"
- when: { turn: 2 }
  text: done
- when: { user: secret }
  calls: [{ name: write_file, arguments: { path: /notes/b.md, content: "password=hunter2hunter2" } }]
- when: { user: leave }
  calls: [{ name: read_file, arguments: { path: /../etc/passwd } }]
- calls:
    - { name: write_file, arguments: { path: /drafts/a.md, content: "${user}" } }
    - { name: read_file, arguments: { path: /notes/b.md } }
"#;

async fn agent(stage: &Stage) -> Agent {
    stage.agent(SCRIPT).on_approval(|_| Decision::Approve).build().await.unwrap()
}

async fn found(agent: &Agent, text: &str) -> Vec<AuditEntry> {
    let wanted = parse(text, agent.engine().env().now()).unwrap();
    let page = PageOf { limit: 100, cursor: None, redaction: Redaction::On, logs: LogsOf::AndInstance };
    agent.engine().search_audit(agent.workspace(), &wanted, &page).await.unwrap().data
}

fn stage() -> Stage {
    Stage::new(&[("/drafts/a.md", "old"), ("/notes/b.md", "note")])
}

#[tokio::test]
async fn a_search_finds_calls_and_acts_by_what_was_done_to_what_and_by_whom() {
    let stage = stage();
    let agent = agent(&stage).await;
    let run = agent.run("one").await.unwrap();
    agent.run("leave").await.unwrap();
    let cases = [
        ("tool:write_file", vec!["call_ended", "approval_decided", "approval_asked"]),
        ("kind:call_ended path:/drafts", vec!["call_ended"]),
        ("path:/drafts/** kind:approval_decided", vec!["approval_decided"]),
        ("verdict:deny", vec!["call_ended"]),
        ("verdict:ask", vec!["call_ended", "approval_asked"]),
        ("outcome:error", vec!["call_ended"]),
        ("kind:run_started \"ONE\"", vec!["run_started"]),
        ("kind:agent_saved by:embedded", vec!["agent_saved"]),
        ("until:2020-01-01", vec![]),
        ("text:nowhere", vec![]),
    ];
    for (text, kinds) in cases {
        let seen: Vec<_> = found(&agent, text).await.into_iter().map(|entry| entry.kind).collect();
        assert_eq!(seen, kinds, "{text}");
    }
    let of_run = found(&agent, &format!("run:{}", run.id)).await;
    assert!(of_run.len() >= 5 && of_run.iter().all(|entry| entry.run_id == Some(run.id)), "{of_run:#?}");
    let denied = &found(&agent, "verdict:deny").await[0];
    assert_eq!((denied.tool.as_deref(), denied.is_error), (Some("read_file"), true));
    assert!(denied.rule.is_some() && denied.summary.contains("Refused"), "{denied:#?}");
    let wanted = parse("by:nobody", agent.engine().env().now()).unwrap();
    let page = PageOf { limit: 1, cursor: None, redaction: Redaction::On, logs: LogsOf::AndInstance };
    let unknown = agent.engine().search_audit(agent.workspace(), &wanted, &page).await;
    assert!(matches!(unknown, Err(EngineError::NotFound { .. })));
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap_or_a_repeat() {
    let stage = stage();
    let agent = agent(&stage).await;
    for text in ["one", "two", "three"] {
        agent.run(text).await.unwrap();
    }
    let all: Vec<_> = found(&agent, "").await.iter().map(|entry| (entry.stream, entry.seq)).collect();
    let wanted = parse("", agent.engine().env().now()).unwrap();
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = PageOf { limit: 2, cursor, redaction: Redaction::On, logs: LogsOf::AndInstance };
        let page = agent.engine().search_audit(agent.workspace(), &wanted, &page).await.unwrap();
        seen.extend(page.data.iter().map(|entry| (entry.stream, entry.seq)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert!(all.len() > 12);
    assert_eq!(seen, all);
    let page =
        PageOf { limit: 2, cursor: Some("made up".to_owned()), redaction: Redaction::On, logs: LogsOf::AndInstance };
    assert!(agent.engine().search_audit(agent.workspace(), &wanted, &page).await.is_err());
}

#[tokio::test]
async fn a_secret_is_neither_shown_nor_found_unless_it_is_asked_for_raw() {
    let stage = Stage::new(&[("/notes/b.md", "api_key=sk-abcdefghijklmnopqrstuvwx0123456789")]);
    let agent = agent(&stage).await;
    agent.run("password=hunter2hunter2").await.unwrap();
    let shown = serde_json::to_string(&found(&agent, "").await).unwrap();
    assert!(!shown.contains("hunter2hunter2") && shown.contains("[REDACTED:"), "{shown}");
    assert!(found(&agent, "text:hunter2hunter2").await.is_empty(), "nobody guesses a secret by searching for it");
    let wanted = parse("text:hunter2hunter2", agent.engine().env().now()).unwrap();
    let page = PageOf { limit: 9, cursor: None, redaction: Redaction::Raw, logs: LogsOf::AndInstance };
    let raw = agent.engine().search_audit(agent.workspace(), &wanted, &page).await.unwrap();
    assert!(raw.data.iter().any(|entry| entry.kind == "run_started"), "{raw:#?}");
}

#[tokio::test]
async fn erasing_takes_what_was_said_and_leaves_that_it_happened() {
    let stage = stage();
    let agent = agent(&stage).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let old = agent.run("the canary sings").await.unwrap();
    let border = engine.env().now();
    let young = agent.run("two").await.unwrap();
    let planned = engine.erasable(workspace, EraseWhat::Before(border)).await.unwrap();
    assert_eq!((planned.runs.as_slice(), planned.bodies), (&[old.id][..], 0));
    assert!(!found(&agent, "text:canary").await.is_empty(), "nothing was done yet");

    let report = engine.erase_runs(workspace, user, EraseWhat::Before(border)).await.unwrap();
    assert!(report.runs == [old.id] && report.bodies > 5, "{report:?}");
    assert!(found(&agent, &format!("run:{} text:canary", old.id)).await.is_empty());
    let left = found(&agent, &format!("run:{} kind:call_ended", old.id)).await;
    assert!(left.len() == 2 && left.iter().all(|entry| entry.erased && entry.path.is_none()), "{left:#?}");
    let verified = engine.verify_all().await.unwrap();
    assert_eq!((verified.problems.as_slice(), verified.erased), (&[][..], report.bodies));
    assert_eq!(engine.run_row(workspace, old.id).await.unwrap().state.status, "COMPLETED");
    assert!(matches!(engine.replay(workspace, old.id).await, Err(EngineError::Erased { .. })));
    let undone = engine.undo_run(workspace, user, old.id, None, UndoMode::Real).await;
    assert!(matches!(undone, Err(EngineError::Erased { .. })));
    assert!(engine.replay(workspace, young.id).await.is_ok());

    let again = engine.erase_runs(workspace, user, EraseWhat::Before(border)).await.unwrap();
    assert!(again.runs.is_empty());
    let acts = engine.audit_log(AuditLog::Workspace(workspace)).await.unwrap();
    let kinds: Vec<_> = acts.iter().filter_map(|item| item.event.as_ref()).map(|event| event.kind()).collect();
    assert_eq!(kinds, ["agent_saved", "erase_begun", "erase_ended"]);
}

#[tokio::test]
async fn a_run_that_has_not_ended_is_not_erased() {
    let stage = stage();
    let agent = stage.agent(SCRIPT).build().await.unwrap();
    let waiting = agent.run("one").await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let refused = engine.erase_runs(workspace, agent.user(), EraseWhat::Run(waiting.id)).await;
    assert!(refused.unwrap_err().to_string().contains("has not ended"));
    let later = engine.env().now().after(std::time::Duration::from_secs(60));
    let report = engine.erase_runs(workspace, agent.user(), EraseWhat::Before(later)).await.unwrap();
    assert!(report.runs.is_empty() && report.open == [waiting.id], "{report:?}");
    assert!(engine.run_state(workspace, waiting.id).await.is_ok());
}
