//! Runs that are taken back.

use adjutant_core::audit::{AuditEvent, Deed};
use adjutant_core::content::Hash;
use adjutant_core::run::event::Decision;
use adjutant_core::run::status::Status;
use adjutant_engine::{Agent, AuditLog, RunReport, UndoMode, UndoOutcome, UndoReport};

use super::Stage;

const CHANGES: &str = r#"
- when: { turn: 4 }
  text: done
- when: { turn: 3 }
  calls:
    - { name: delete_file, arguments: { path: /old.md } }
    - { name: write_file, arguments: { path: /a.md, content: three } }
- when: { turn: 2 }
  calls:
    - { name: write_file, arguments: { path: /a.md, content: two } }
    - { name: create_file, arguments: { path: /deep/new.md, content: fresh } }
- calls:
    - { name: update_file_properties, arguments: { path: /note.md, set: { done: true } } }
    - { name: delete_file, arguments: { path: /empty } }
    - { name: kv_set, arguments: { key: k, value: v } }
"#;

const FILES: &[(&str, &str)] =
    &[("/a.md", "one"), ("/old.md", "was here"), ("/note.md", "---\ndone: false\n---\ntext")];

/// A run that changes, makes and deletes.
async fn changed(stage: &Stage) -> (Agent, RunReport) {
    std::fs::create_dir(stage.path("/empty")).unwrap();
    let agent = stage
        .agent(CHANGES)
        .configure(|spec| {
            spec.can_create = Some(true);
            spec.can_delete = Some(true);
        })
        .on_approval(|_| Decision::Approve)
        .build()
        .await
        .unwrap();
    let report = agent.run("go").await.unwrap();
    assert_eq!(report.status, Status::Completed, "{report:#?}");
    assert!(report.actions.iter().all(|action| !action.is_error), "{:#?}", report.actions);
    assert_eq!((stage.read("/a.md"), stage.read("/deep/new.md")), ("three".to_owned(), "fresh".to_owned()));
    assert!(!stage.exists("/old.md") && !stage.exists("/empty") && stage.read("/note.md").contains("done: true"));
    (agent, report)
}

async fn undo(agent: &Agent, run: &RunReport, mode: UndoMode) -> UndoReport {
    agent.engine().undo_run(agent.workspace(), agent.user(), run.id, None, mode).await.unwrap()
}

fn outcome(report: &UndoReport, path: &str) -> UndoOutcome {
    report.files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("{path} in {report:#?}")).outcome
}

async fn deeds(agent: &Agent) -> Vec<Deed> {
    let log = agent.engine().audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let deed = |event: Option<AuditEvent>| match event {
        Some(AuditEvent::Act(act)) => Some(act.deed),
        Some(AuditEvent::Heads(_) | AuditEvent::Day(_)) | None => None,
    };
    log.into_iter().filter_map(|item| deed(item.event)).collect()
}

#[tokio::test]
async fn every_file_is_as_it_was_before_the_run_and_a_second_undo_finds_nothing() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    let report = undo(&agent, &run, UndoMode::Real).await;
    assert!(!report.is_partial() && !report.is_empty(), "{report:#?}");
    for (path, text) in FILES {
        assert_eq!(stage.read(path), *text, "{path}");
        assert_eq!(outcome(&report, path), UndoOutcome::Restored);
    }
    assert!(!stage.exists("/deep/new.md") && stage.path("/empty").is_dir());
    assert_eq!(report.beyond, ["kv_set k"]);
    assert_eq!(report.files.iter().find(|file| file.path == "/a.md").unwrap().calls.len(), 2, "both at once");

    let again = undo(&agent, &run, UndoMode::Real).await;
    assert!(again.is_empty() && !again.is_partial(), "{again:#?}");
    assert_eq!(
        deeds(&agent).await,
        [Deed::AgentSaved, Deed::UndoBegun, Deed::UndoEnded],
        "nothing done, nothing recorded"
    );
}

#[tokio::test]
async fn what_somebody_changed_since_is_left_alone_and_named() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    std::fs::write(stage.path("/a.md"), "a person's own").unwrap();
    std::fs::write(stage.path("/old.md"), "somebody made this").unwrap();
    let report = undo(&agent, &run, UndoMode::Real).await;
    assert!(report.is_partial());
    for path in ["/a.md", "/old.md"] {
        assert_eq!(outcome(&report, path), UndoOutcome::Conflict);
    }
    let why = report.files.iter().find(|file| file.path == "/a.md").unwrap().why.clone();
    assert_eq!(why.as_deref(), Some("it is not what the run left there"));
    assert_eq!((stage.read("/a.md"), stage.read("/old.md")), ("a person's own".into(), "somebody made this".into()));
    assert_eq!(outcome(&report, "/note.md"), UndoOutcome::Restored);
    assert!(!stage.exists("/deep/new.md"));
}

#[tokio::test]
async fn a_look_changes_nothing_and_records_nothing() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    std::fs::write(stage.path("/note.md"), "changed since").unwrap();
    let report = undo(&agent, &run, UndoMode::DryRun).await;
    assert_eq!(outcome(&report, "/a.md"), UndoOutcome::Planned);
    assert_eq!(outcome(&report, "/note.md"), UndoOutcome::Conflict);
    assert_eq!(stage.read("/a.md"), "three");
    assert_eq!(deeds(&agent).await, [Deed::AgentSaved]);
}

#[tokio::test]
async fn one_call_is_taken_back_unless_a_later_one_lies_on_top() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    let calls: Vec<_> = run.actions.iter().filter(|action| action.tool_name == "write_file").collect();
    let take_back = async |at: usize| {
        let call = Some(calls[at].call_id.clone());
        agent.engine().undo_run(agent.workspace(), agent.user(), run.id, call, UndoMode::Real).await.unwrap()
    };
    let early = take_back(0).await;
    assert_eq!(outcome(&early, "/a.md"), UndoOutcome::Conflict);
    assert!(early.files[0].why.as_ref().unwrap().contains(calls[1].call_id.as_str()), "{early:#?}");
    assert_eq!(stage.read("/a.md"), "three");
    take_back(1).await;
    assert_eq!(stage.read("/a.md"), "two");
    assert!(stage.exists("/deep/new.md"), "what other calls did stays");
    assert_eq!(undo(&agent, &run, UndoMode::Real).await.files.len(), 5);
    assert_eq!(stage.read("/a.md"), "two", "the file is not what the whole run left");
    let unknown = adjutant_core::id::CallId::parse("nobody");
    let refused = agent.engine().undo_run(agent.workspace(), agent.user(), run.id, unknown, UndoMode::Real).await;
    assert!(refused.unwrap_err().to_string().contains("there is no call"));
}

#[tokio::test]
async fn a_file_that_a_person_changed_between_two_calls_goes_back_to_what_the_person_wrote() {
    let script = r#"
- when: { turn: 3 }
  text: done
- when: { turn: 2 }
  calls: [{ name: write_file, arguments: { path: /a.md, content: second } }]
- calls: [{ name: write_file, arguments: { path: /a.md, content: first } }]
"#;
    let stage = Stage::new(&[("/a.md", "before")]);
    let file = stage.path("/a.md");
    let meddle = move |_: &_| {
        if std::fs::read_to_string(&file).unwrap() == "first" {
            std::fs::write(&file, "a person's").unwrap();
        }
        Decision::Approve
    };
    let agent = stage.agent(script).on_approval(meddle).build().await.unwrap();
    let run = agent.run("go").await.unwrap();
    assert_eq!(stage.read("/a.md"), "second", "{run:#?}");
    let report = undo(&agent, &run, UndoMode::Real).await;
    assert_eq!(stage.read("/a.md"), "a person's", "{report:#?}");
    let outcomes: Vec<_> = report.files.iter().map(|file| file.outcome).collect();
    assert_eq!(outcomes, [UndoOutcome::Restored, UndoOutcome::Conflict]);
}

#[tokio::test]
async fn a_run_that_goes_on_is_not_taken_back_and_one_that_waits_is() {
    let stage = Stage::new(&[("/a.md", "one")]);
    let agent =
        stage.agent("- calls: [{ name: write_file, arguments: { path: /a.md, content: two } }]").build().await.unwrap();
    let waiting = agent.run("go").await.unwrap();
    assert_eq!(waiting.status, Status::WaitingApproval);
    assert!(undo(&agent, &waiting, UndoMode::Real).await.files.is_empty());
    agent.decide(waiting.pending_approvals[0], Decision::Approve).await.unwrap();
    let refused = agent.engine().undo_run(agent.workspace(), agent.user(), waiting.id, None, UndoMode::Real).await;
    assert!(refused.unwrap_err().to_string().contains("still goes on"));
}

#[tokio::test]
async fn what_was_erased_cannot_be_brought_back_and_the_report_says_so() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    let stream = adjutant_core::run::chain::StreamId::Run(run.id);
    agent.engine().store().erase_bodies(agent.workspace(), stream).await.unwrap();
    let refused = agent.engine().undo_run(agent.workspace(), agent.user(), run.id, None, UndoMode::Real).await;
    assert!(refused.unwrap_err().to_string().contains("was erased"));
    assert_eq!(stage.read("/a.md"), "three");
}

#[tokio::test]
async fn the_record_names_who_what_and_how_it_ended() {
    let stage = Stage::new(FILES);
    let (agent, run) = changed(&stage).await;
    undo(&agent, &run, UndoMode::Real).await;
    let log = agent.engine().audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let acts: Vec<_> = log
        .into_iter()
        .filter_map(|item| match item.event {
            Some(AuditEvent::Act(act)) if act.run == Some(run.id) => Some(act),
            _ => None,
        })
        .collect();
    let by = adjutant_core::run::event::Actor::User(agent.user());
    assert!(acts.len() == 2 && acts.iter().all(|act| act.by.as_ref() == Some(&by)), "{acts:#?}");
    let of = |act: usize, path: &str| {
        let files = acts[act].detail["files"].as_array().unwrap().clone();
        files.into_iter().find(|file| file["path"] == path).unwrap()
    };
    assert_eq!(of(0, "/a.md")["outcome"], "planned");
    assert_eq!(of(0, "/a.md")["back"], Hash::of(b"one").to_string());
    assert_eq!(of(1, "/a.md")["outcome"], "restored");
}
