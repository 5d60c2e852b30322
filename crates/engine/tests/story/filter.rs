//! The content filter at its five points: what it blocks does not happen, what it takes out is in no log, and all of it is
//! recorded.

use adjutant_core::guard::filter::{FilterEntry, FilterPoint};
use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::run::event::Event;
use adjutant_core::run::status::Status;
use adjutant_engine::{Agent, AuditLog, EngineError, FeedItem, WorkspaceChange};
use serde_json::{Value, json};

use super::{Stage, ask};

fn filter(entries: Value) -> impl FnOnce(&mut AgentSpec) {
    let entries: Vec<FilterEntry> = serde_json::from_value(entries).unwrap();
    move |spec| spec.content_filter = Some(entries)
}

/// Everything that is in the log of a run, as text; and the points at which the filter acted.
async fn log_of(agent: &Agent, run: adjutant_core::id::RunId) -> (String, Vec<FilterPoint>) {
    let events = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
    let points = events.iter().filter_map(|recorded| match &recorded.event {
        Event::ContentFiltered(body) => Some(body.point),
        _ => None,
    });
    (format!("{events:?}"), points.collect())
}

#[tokio::test]
async fn a_blocked_message_starts_nothing_and_that_it_was_tried_is_recorded() {
    let stage = Stage::new(&[]);
    let entries = json!([{"pattern": "(?i)merger", "points": ["prompt"], "action": "block"}]);
    let agent = stage.agent("- text: fine").configure(filter(entries)).build().await.unwrap();
    let Err(EngineError::ContentBlocked { entry: 0, .. }) = agent.run("tell me of the Merger").await else {
        panic!("it was taken");
    };
    let audit = agent.engine().audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let audit = format!("{audit:?}");
    assert_eq!(audit.matches("MessageBlocked").count(), 1, "{audit}");
    assert!(!audit.contains("Merger"), "what was said is not recorded: {audit}");
    assert_eq!(agent.run("hello").await.unwrap().result, "fine");
}

#[tokio::test]
async fn what_is_taken_out_of_messages_answers_arguments_and_outputs_is_in_no_log() {
    let script = r#"
- when: { turn: 2 }
  text: "the word is ${last_result} and xyzzy-3"
- calls: [{ name: write_file, arguments: { path: /notes/a.md, content: "say xyzzy-2" } }, { name: read_file, arguments: { path: /notes/b.md } }]
"#;
    let stage = Stage::new(&[("notes/b.md", "it is xyzzy-4")]);
    let entries = json!([{"pattern": "xyzzy-\\d", "points": ["prompt", "input", "output"], "action": "redact"}]);
    let full = |spec: &mut AgentSpec| spec.autonomy = Some(adjutant_core::guard::policy::Autonomy::Full);
    let builder = stage.agent(script).configure(full).configure(filter(entries));
    let agent = builder.build().await.unwrap();
    let report = agent.run("my word is xyzzy-1").await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert!(report.result.ends_with("[REDACTED:filter]"), "{}", report.result);
    assert_eq!(stage.read("notes/a.md"), "say [REDACTED:filter]");
    let (log, points) = log_of(&agent, report.id).await;
    assert!(!log.contains("xyzzy-"), "{log}");
    assert_eq!(points.iter().filter(|point| **point == FilterPoint::Prompt).count(), 1);
    assert_eq!(points.iter().filter(|point| **point == FilterPoint::Input).count(), 1);
    assert_eq!(points.iter().filter(|point| **point == FilterPoint::Output).count(), 2);
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

#[tokio::test]
async fn an_answer_that_may_be_held_back_is_not_shown_piece_by_piece() {
    let stage = Stage::new(&[]);
    let entries = json!([{"pattern": "launch code", "points": ["output"], "action": "block"}]);
    let agent = stage.agent("- text: the launch code is 7").configure(filter(entries)).build().await.unwrap();
    let run = agent.engine().start_run(agent.workspace(), ask(&agent)).await.unwrap();
    let mut follower = agent.engine().follow(agent.workspace(), run, 0);
    let report = agent.resume(run).await.unwrap();
    assert_eq!(report.result, "[withheld by entry 0 of the content filter]");
    while let Some(item) = follower.next().await.unwrap() {
        let FeedItem::Event(_) = item else { panic!("a piece was shown: {item:?}") };
    }
    assert!(!log_of(&agent, run).await.0.contains("launch code"));
}

#[tokio::test]
async fn a_call_that_the_filter_blocks_is_denied_and_one_it_asks_about_waits() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: kv_set, arguments: { key: a, value: "salary 7" } }
    - { name: kv_set, arguments: { key: b, value: "diagnosis x" } }
    - { name: kv_get, arguments: { key: "diagnosis" } }
"#;
    let stage = Stage::new(&[]);
    let entries = json!([
        {"pattern": "diagnosis", "points": ["memory"], "action": "block"},
        {"pattern": "salary", "points": ["input"], "action": "ask"},
    ]);
    let full = |spec: &mut AgentSpec| spec.autonomy = Some(adjutant_core::guard::policy::Autonomy::Full);
    let agent = stage.agent(script).configure(full).configure(filter(entries)).build().await.unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.status, Status::WaitingApproval, "{report:#?}");
    let rules: Vec<_> = report.actions.iter().map(|action| action.rule.as_deref()).collect();
    assert_eq!(report.actions[1].attempts, 0);
    assert_eq!(rules[1], Some("content_filter"), "{report:#?}");
    assert_eq!(report.actions[2].attempts, 1, "reading remembers nothing");
}

#[tokio::test]
async fn a_label_counts_at_each_of_the_five_points_and_nowhere_else() {
    let script = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: kv_set, arguments: { key: a, value: "a topic" } }]
"#;
    let full = |spec: &mut AgentSpec| spec.autonomy = Some(adjutant_core::guard::policy::Autonomy::Full);
    let points = [
        (FilterPoint::Prompt, "hello"),
        (FilterPoint::Tool, "kv_set"),
        (FilterPoint::Input, "topic"),
        (FilterPoint::Output, "done"),
        (FilterPoint::Memory, "topic"),
    ];
    for (point, pattern) in points {
        for (pattern, private) in [(pattern, true), ("nowhere", false)] {
            let stage = Stage::new(&[]);
            let entries = json!([{"pattern": pattern, "points": [point], "action": "label"}]);
            let agent = stage.agent(script).configure(full).configure(filter(entries)).build().await.unwrap();
            let report = agent.run("hello").await.unwrap();
            assert_eq!(report.status, Status::Completed, "{report:#?}");
            let state = agent.engine().run_state(agent.workspace(), report.id).await.unwrap();
            assert_eq!(state.labels.private, private, "{point:?}");
            let expected = if private { vec![point] } else { Vec::new() };
            assert_eq!(log_of(&agent, report.id).await.1, expected);
        }
    }
}

#[tokio::test]
async fn what_a_workspace_filters_counts_for_all_its_agents_from_the_next_step_on_and_replays() {
    let script = r#"
- when: { turn: 2 }
  text: "done: ${last_result}"
- calls: [{ name: read_file, arguments: { path: /notes/b.md } }]
"#;
    let stage = Stage::new(&[("notes/b.md", "it is xyzzy-4 for plugh")]);
    let own = json!([{"pattern": "plugh", "points": ["output"], "action": "redact"}]);
    let agent = stage.agent(script).configure(filter(own)).build().await.unwrap();
    let engine = agent.engine();
    let before = agent.run("read it").await.unwrap();
    assert!(before.result.contains("xyzzy-4"), "{}", before.result);

    let set = async |entries: Value| {
        let content_filter = Some(serde_json::from_value(entries).unwrap());
        let change = WorkspaceChange { content_filter, ..WorkspaceChange::default() };
        engine.change_workspace(agent.workspace(), agent.user(), change).await
    };
    let bad = set(json!([{"pattern": "(", "points": ["output"], "action": "redact"}])).await;
    assert!(matches!(&bad, Err(EngineError::Invalid(why)) if why.contains("content_filter[0]")), "{bad:?}");
    let row = set(json!([
        {"pattern": "xyzzy-\\d", "points": ["output"], "action": "redact"},
        {"pattern": "(?i)merger", "points": ["prompt"], "action": "block"},
    ]));
    assert_eq!(row.await.unwrap().version, 2);

    let after = agent.run("read it").await.unwrap();
    assert_eq!(after.result, "done: it is [REDACTED:filter] for [REDACTED:filter]");
    // Its entries are counted after the agent's own.
    let blocked = agent.run("tell me of the Merger").await;
    assert!(matches!(blocked, Err(EngineError::ContentBlocked { entry: 2, .. })), "{blocked:?}");
    for run in [before.id, after.id] {
        let replay = engine.replay(agent.workspace(), run).await.unwrap();
        assert!(replay.divergences.is_empty(), "{replay:#?}");
        assert_eq!((replay.verdicts, replay.skipped), (1, 0), "what the workspace adds is kept with the verdict");
    }
    let audit = engine.audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let changes = format!("{audit:?}").matches("its content filter has 2 entries").count();
    assert_eq!(changes, 1, "{audit:?}");
    set(json!([])).await.unwrap();
    assert!(agent.run("read it").await.unwrap().result.contains("xyzzy-4"));
}
