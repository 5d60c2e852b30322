//! What is recorded beside the runs, and that nobody can change it unseen.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use adjutant_core::audit::{Act, AuditEvent, Deed};
use adjutant_core::content::Hash;
use adjutant_core::id::RunId;
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::command::Command;
use adjutant_core::run::event::{Actor, Decision, DoubtOutcome, Event};
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_core::tool::Recovery;
use adjutant_engine::store::row::{AuditFilter, AuditRow};
use adjutant_engine::{Agent, AuditLog, AuditVerified, Env, RunBodies, Source, verify_whole_export};
use serde_json::{Value, json};

use super::{Stage, gone};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// A clock that goes where it is put, and numbers that never repeat.
struct Clock {
    now: AtomicI64,
    count: AtomicU64,
}

impl Source for Clock {
    fn now(&self) -> Time {
        Time::from_millis(self.now.fetch_add(1, Ordering::Relaxed))
    }

    fn fill(&self, bytes: &mut [u8]) {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let hash = Hash::of(&count.to_le_bytes());
        for (byte, random) in bytes.iter_mut().zip(hash.0) {
            *byte = random;
        }
    }
}

impl Clock {
    fn new() -> Arc<Self> {
        Arc::new(Self { now: AtomicI64::new(1_763_200_000_000), count: AtomicU64::new(0) })
    }

    fn next_day(&self) {
        self.now.fetch_add(DAY, Ordering::Relaxed);
    }
}

const SCRIPT: &str = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: write_file, arguments: { path: /a.md, content: "${user}" } }]
"#;

async fn agent(stage: &Stage, clock: &Arc<Clock>) -> Agent {
    let env = Env::new(Arc::clone(clock) as Arc<dyn Source>);
    stage.agent(SCRIPT).env(env).on_approval(|_| Decision::Approve).build().await.unwrap()
}

async fn verified(agent: &Agent) -> AuditVerified {
    agent.engine().verify_all().await.unwrap()
}

async fn exported(agent: &Agent) -> String {
    let mut file = Vec::new();
    agent.engine().export_whole(RunBodies::Kept, &mut file).await.unwrap();
    String::from_utf8(file).unwrap()
}

/// Whether a check of this file finds something.
fn is_found(file: &[u8]) -> bool {
    verify_whole_export(file, None).map_or(true, |verified| !verified.problems.is_empty())
}

/// Three days, each with a run and a signed record.
async fn three_days(stage: &Stage) -> (Agent, Arc<Clock>) {
    let clock = Clock::new();
    let agent = agent(stage, &clock).await;
    for text in ["one", "two", "three"] {
        agent.run(text).await.unwrap();
        clock.next_day();
        assert!(agent.engine().close_days().await.unwrap());
        assert!(!agent.engine().close_days().await.unwrap(), "once a day");
    }
    (agent, clock)
}

#[tokio::test]
async fn a_day_that_is_over_is_signed_once_and_everything_verifies() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let clock = Clock::new();
    let agent = agent(&stage, &clock).await;
    agent.run("one").await.unwrap();
    assert!(!agent.engine().close_days().await.unwrap() || verified(&agent).await.days == 0, "today is not over");
    clock.next_day();
    let act = Act::new(Deed::SettingChanged, Some(Actor::User(agent.user())), "a new day");
    agent.engine().audit(AuditLog::Instance, act).await.unwrap();
    let found = verified(&agent).await;
    assert_eq!((found.problems.as_slice(), found.runs, found.logs, found.days), (&[][..], 1, 2, 1));
    assert_eq!(found.last_day.as_deref(), Some("2025-11-15"));
    assert_eq!(found.key, Some(agent.engine().audit_key().await.unwrap()));
    let log = agent.engine().audit_log(AuditLog::Instance).await.unwrap();
    let kinds: Vec<_> = log.iter().filter_map(|item| item.event.as_ref()).map(AuditEvent::kind).collect();
    assert_eq!(kinds, ["day_closed", "setting_changed"], "the day before is closed first");
}

#[tokio::test]
async fn a_file_of_all_logs_verifies_without_the_database_and_any_change_of_it_is_found() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let (agent, _) = three_days(&stage).await;
    let file = exported(&agent).await;
    let whole = verify_whole_export(file.as_bytes(), None).unwrap();
    assert_eq!((whole.problems.as_slice(), whole.runs, whole.days), (&[][..], 3, 3));
    let key = Some(agent.engine().audit_key().await.unwrap());
    assert!(verify_whole_export(file.as_bytes(), key).unwrap().problems.is_empty());
    let other = Some("00".repeat(32));
    assert!(!verify_whole_export(file.as_bytes(), other).unwrap().problems.is_empty());

    for at in (0..file.len()).step_by(499).chain(0..60) {
        let mut changed = file.clone().into_bytes();
        changed[at] ^= 1;
        assert!(is_found(&changed), "byte {at}: {}", &file[at.saturating_sub(40)..(at + 40).min(file.len())]);
    }
    let lines: Vec<&str> = file.lines().collect();
    for at in 0..lines.len() {
        let mut dropped = lines.clone();
        dropped.remove(at);
        assert!(is_found(dropped.join("\n").as_bytes()), "without line {at}: {}", lines[at]);
        if at + 1 < lines.len() && lines[at] != lines[at + 1] {
            let mut swapped = lines.clone();
            swapped.swap(at, at + 1);
            assert!(is_found(swapped.join("\n").as_bytes()), "line {at} swapped: {}", lines[at]);
        }
    }
}

#[tokio::test]
async fn a_file_without_what_was_said_in_runs_still_proves_when_it_was_said() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let (agent, _) = three_days(&stage).await;
    let mut file = Vec::new();
    agent.engine().export_whole(RunBodies::LeftOut, &mut file).await.unwrap();
    let whole = verify_whole_export(file.as_slice(), None).unwrap();
    assert_eq!((whole.problems.as_slice(), whole.days, whole.erased), (&[][..], 3, 0));
    assert!(!String::from_utf8(file).unwrap().contains("write_file"));
}

/// Makes the chain of one log again after a change, as somebody could who has the file but not the key.
fn forged(file: &str, stream: StreamId, change: impl Fn(&mut Vec<Value>)) -> String {
    let lines: Vec<Value> = file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let first = lines.iter().position(|line| line["stream"] == json!(stream)).unwrap();
    let many = lines[first + 1..].iter().take_while(|line| line["line"] == "event").count();
    let (mut before, mut rest) = (lines[..=first].to_vec(), lines[first + 1 + many..].to_vec());
    let mut events = lines[first + 1..=first + many].to_vec();
    change(&mut events);
    let mut head = Head::START;
    for event in &mut events {
        let time: Time = serde_json::from_value(event["time"].clone()).unwrap();
        let body = event["body"].as_str().unwrap().as_bytes().to_vec();
        let entry = Entry::next(stream, head, event["kind"].as_str().unwrap(), time, body);
        head = entry.head();
        event["seq"] = json!(entry.seq);
        event["hash"] = json!(entry.hash);
        event["body_hash"] = json!(entry.body_hash);
    }
    before[first]["head"] = json!(head);
    before.append(&mut events);
    before.append(&mut rest);
    before.iter().map(|line| format!("{line}\n")).collect()
}

#[tokio::test]
async fn a_history_that_was_made_again_without_the_key_does_not_fit_its_days() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let (agent, _) = three_days(&stage).await;
    let file = exported(&agent).await;
    assert!(!is_found(forged(&file, StreamId::System, |_| {}).as_bytes()), "the forger works");
    let is_day = |event: &Value| event["kind"] == "day_closed";
    let without_a_day = forged(&file, StreamId::System, |events| {
        let at = events.iter().position(is_day).unwrap();
        events.remove(at + 1);
    });
    assert!(is_found(without_a_day.as_bytes()));
    let without_the_first = forged(&file, StreamId::System, |events| {
        let at = events.iter().position(is_day).unwrap();
        events.remove(at);
    });
    assert!(is_found(without_the_first.as_bytes()));
    let run = file.lines().filter(|line| line.contains("\"run_")).find(|line| line.contains("\"line\":\"stream\""));
    let run: Value = serde_json::from_str(run.unwrap()).unwrap();
    let stream: StreamId = serde_json::from_value(run["stream"].clone()).unwrap();
    let another_answer = forged(&file, stream, |events| {
        let body = events[0]["body"].as_str().unwrap().replace("write_file", "mail_file");
        events[0]["body"] = json!(body);
    });
    assert!(is_found(another_answer.as_bytes()));
    let cut_short = forged(&file, stream, |events| events.truncate(3));
    assert!(is_found(cut_short.as_bytes()));
    let workspace = StreamId::Workspace(agent.workspace());
    let acts_gone = forged(&file, workspace, |events| events.retain(|event| event["kind"] != "agent_saved"));
    assert!(is_found(acts_gone.as_bytes()));
}

#[tokio::test]
async fn a_day_without_anything_is_skipped_and_the_next_one_still_follows() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let (agent, clock) = three_days(&stage).await;
    clock.next_day();
    clock.next_day();
    agent.run("later").await.unwrap();
    assert!(agent.engine().close_days().await.unwrap());
    let found = verified(&agent).await;
    assert_eq!((found.problems.as_slice(), found.days), (&[][..], 4));
}

#[tokio::test]
async fn what_people_do_to_runs_is_found_with_who_did_it() {
    let stage = Stage::new(&[("/a.md", "zero")]);
    let agent = stage.agent(SCRIPT).build().await.unwrap();
    let waiting = agent.run("one").await.unwrap();
    let by = || Actor::User(agent.user());
    agent.decide(waiting.pending_approvals[0], Decision::Approve).await.unwrap();
    agent.engine().command(agent.workspace(), waiting.id, &Command::Pause { by: by() }).await.unwrap();
    agent.engine().command(agent.workspace(), waiting.id, &Command::Resume { by: by() }).await.unwrap();
    agent.resume(waiting.id).await.unwrap();
    let rows = agent.engine().store().audit(Some(agent.workspace()), &AuditFilter::default(), 100).await.unwrap();
    let mut seen: Vec<_> = rows.iter().map(|row| (row.kind.as_str(), row.actor.is_some())).collect();
    seen.reverse();
    let expected = [
        ("agent_saved", true),
        ("run_started", true),
        ("approval_asked", false),
        ("approval_decided", true),
        ("paused", true),
        ("resumed", true),
        ("call_ended", false),
        ("run_ended", false),
    ];
    assert_eq!(seen, expected);
    let call = rows.iter().find(|row| row.kind == "call_ended").unwrap();
    assert_eq!((call.tool.as_deref(), call.target.as_deref()), (Some("write_file"), Some("/a.md")));
    assert_eq!((call.verdict.as_deref(), call.is_error), (Some("ask"), false), "a person was asked");

    agent.engine().rebuild_run(agent.workspace(), waiting.id).await.unwrap();
    agent.engine().rebuild_audit(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let again = agent.engine().store().audit(Some(agent.workspace()), &AuditFilter::default(), 100).await.unwrap();
    assert_eq!(again, rows, "the rows follow from the logs");
}

/// One call for each way in which one can end.
const EVERY_WAY: &str = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: no_such_tool, arguments: { path: /a.md } }
    - { name: read_file, arguments_raw: '{"path": "/a.md", "path": "/b.md"}' }
    - { name: read_file, arguments_raw: '{"path": "/a' }
    - { name: read_file, arguments: { path: /.git/config } }
    - { name: read_file, arguments: { path: /a.md } }
    - { name: read_file, arguments: { path: /missing.md } }
    - { name: write_file, arguments: { path: /a.md, content: "new" } }
    - { name: write_file, arguments: { path: /b.md, content: "newer" } }
"#;

async fn rows(agent: &Agent, filter: AuditFilter) -> Vec<AuditRow> {
    agent.engine().store().audit(Some(agent.workspace()), &filter, 100).await.unwrap()
}

/// The proposed calls of a run, and the entries of their ends: which tool, what the guard said, whether it failed.
async fn compared(agent: &Agent, run: RunId) -> (usize, Vec<(String, Option<String>, bool)>) {
    let events = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
    let (mut proposed, mut places) = (0, BTreeSet::new());
    for recorded in &events {
        match &recorded.event {
            Event::CallProposed(_) => proposed += 1,
            Event::CallEnded(body) => assert!(places.insert((body.call.clone(), recorded.seq)), "{body:?}"),
            _ => {}
        }
    }
    let ended = AuditFilter { kinds: vec!["call_ended".to_owned()], run: Some(run), ..AuditFilter::default() };
    let mut found = rows(agent, ended).await;
    found.sort_by_key(|row| row.seq);
    let mut seqs: Vec<_> = places.iter().map(|(_, seq)| *seq).collect();
    seqs.sort_unstable();
    assert_eq!(found.iter().map(|row| row.seq).collect::<Vec<_>>(), seqs, "one entry for each end, and no other");
    (proposed, found.into_iter().map(|row| (row.tool.unwrap(), row.verdict, row.is_error)).collect())
}

#[tokio::test]
async fn each_call_has_one_entry_whatever_came_of_it_and_is_found_while_it_waits() {
    let stage = Stage::new(&[("/a.md", "zero"), ("/b.md", "zero")]);
    let agent = stage.agent(EVERY_WAY).build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    let asks =
        AuditFilter { tool: Some("write_file".to_owned()), verdict: Some("ask".to_owned()), ..AuditFilter::default() };
    let asked = rows(&agent, asks.clone()).await;
    let mut seen: Vec<_> = asked.iter().map(|row| (row.kind.as_str(), row.target.as_deref().unwrap())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [("approval_asked", "/a.md"), ("approval_asked", "/b.md")]);
    for (approval, decision) in waiting.pending_approvals.iter().zip([Decision::Approve, Decision::Reject]) {
        agent.decide(*approval, decision).await.unwrap();
    }
    let report = agent.resume(waiting.id).await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    let (proposed, mut entries) = compared(&agent, report.id).await;
    entries.sort();
    let entry = |tool: &str, verdict: &str, is_error| (tool.to_owned(), Some(verdict.to_owned()), is_error);
    let expected = [
        entry("no_such_tool", "deny", true),
        entry("read_file", "allow", false),
        entry("read_file", "allow", true),
        entry("read_file", "deny", true),
        entry("read_file", "deny", true),
        entry("read_file", "deny", true),
        entry("write_file", "ask", false),
        entry("write_file", "ask", true),
    ];
    assert_eq!((proposed, entries.as_slice()), (8, &expected[..]));
    let kept = rows(&agent, AuditFilter::default()).await;
    agent.engine().rebuild_run(agent.workspace(), report.id).await.unwrap();
    assert_eq!(rows(&agent, AuditFilter::default()).await, kept, "the rows follow from the logs");
}

#[tokio::test]
async fn a_call_in_doubt_is_found_before_it_ends_and_once_when_it_has() {
    let stage = Stage::new(&[]);
    let (agent, run) = gone::died_in_a_call(&stage, Recovery::AskHuman).await;
    let report = agent.resume(run).await.unwrap();
    assert_eq!(report.status, Status::InDoubt);
    let doubts = AuditFilter { kinds: vec!["call_in_doubt".to_owned()], ..AuditFilter::default() };
    let doubt = rows(&agent, doubts).await;
    let doubt: Vec<_> = doubt.iter().map(|row| (row.tool.as_deref(), row.verdict.as_deref(), row.is_error)).collect();
    assert_eq!(doubt, [(Some("endless"), Some("allow"), false)]);
    assert_eq!(compared(&agent, run).await, (1, Vec::new()), "it has not ended");
    let call = report.actions[0].call_id.clone();
    let by = Actor::User(agent.user());
    let resolve = Command::Resolve { call, outcome: DoubtOutcome::Abandon, result: None, by };
    agent.engine().command(agent.workspace(), run, &resolve).await.unwrap();
    agent.resume(run).await.unwrap();
    assert_eq!(compared(&agent, run).await, (1, vec![("endless".to_owned(), Some("allow".to_owned()), true)]));
}
