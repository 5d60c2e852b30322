//! Standing rules: what a person said once and for longer, and how it ends.

use std::time::Duration;

use adjutant_core::audit::{AuditEvent, Deed};
use adjutant_core::guard::judge::Decision as Word;
use adjutant_core::guard::policy::{AgentSpec, Autonomy};
use adjutant_core::guard::rule::{Example, Match, Origin};
use adjutant_core::id::ApprovalId;
use adjutant_core::run::command::{Decide, Refusal};
use adjutant_core::run::event::{Actor, Decision, GrantScope};
use adjutant_core::run::status::Status;
use adjutant_engine::{Agent, AuditLog, EngineError, NewRule, Redaction};

use super::{Clock, Stage};

/// Writes the file that the message names.
const WRITE: &str = r#"
- when: { result: { is_error: true } }
  text: "It failed: ${last_result}"
- when: { result: { name: write_file } }
  text: done
- calls: [{ name: write_file, arguments: { path: "${user}", content: new } }]
"#;

fn stage() -> Stage {
    Stage::new(&[("/x/a.md", "old"), ("/x/b.md", "old"), ("/y/a.md", "old")])
}

pub(super) async fn says_yes(
    agent: &Agent,
    approval: ApprovalId,
    scope: GrantScope,
    lasts: Option<Duration>,
) -> Result<(), EngineError> {
    let decide = Decide {
        approval,
        decision: Decision::Approve,
        scope,
        lasts,
        by: Actor::User(agent.user()),
        arguments: None,
        message: None,
        fingerprint: None,
    };
    agent.engine().decide(agent.workspace(), decide).await.map(drop)
}

pub(super) fn deny(tool: &str, folder: &str) -> NewRule {
    NewRule {
        agent: None,
        chat: None,
        tool: tool.to_owned(),
        when: Match { folders: vec![folder.to_owned()], ..Match::default() },
        decision: Word::Deny,
        expires_at: None,
        note: String::new(),
        must_allow: Vec::new(),
        must_deny: Vec::new(),
    }
}

async fn status(agent: &Agent, path: &str) -> Status {
    agent.run(path).await.unwrap().status
}

#[tokio::test]
async fn a_yes_for_always_lasts_until_its_rule_is_removed() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Always, None).await.unwrap();
    assert_eq!(agent.resume(asked.id).await.unwrap().status, Status::Completed);
    assert_eq!(status(&agent, "/x/b.md").await, Status::Completed, "the same folder, another run, another chat");
    assert_eq!(stage.read("/x/b.md"), "new");
    assert_eq!(status(&agent, "/y/a.md").await, Status::WaitingApproval, "another folder asks");
    assert_eq!(stage.read("/y/a.md"), "old");

    let rules = agent.engine().rules(agent.workspace()).await.unwrap();
    let [rule] = rules.as_slice() else { panic!("{rules:?}") };
    assert_eq!((rule.owner, rule.agent), (agent.user(), Some(agent.id())));
    assert_eq!(rule.origin, Origin::Approval(asked.pending_approvals[0]));
    agent.engine().remove_rule(agent.workspace(), agent.user(), rule.id).await.unwrap();
    assert_eq!(status(&agent, "/x/b.md").await, Status::WaitingApproval);
}

#[tokio::test]
async fn a_yes_for_the_chat_ends_with_the_chat_and_one_for_the_run_with_the_run() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Chat, None).await.unwrap();
    let report = agent.resume(asked.id).await.unwrap();
    let next = agent.run_in(Some(report.chat_id), "/x/b.md").await.unwrap();
    assert_eq!(next.status, Status::Completed, "{next:#?}");
    assert_eq!(status(&agent, "/x/b.md").await, Status::WaitingApproval, "a new chat asks");

    let asked = agent.run("/y/a.md").await.unwrap();
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Run, None).await.unwrap();
    let report = agent.resume(asked.id).await.unwrap();
    let again = agent.run_in(Some(report.chat_id), "/y/a.md").await.unwrap();
    assert_eq!(again.status, Status::WaitingApproval, "the next run of the chat asks");
    let rules = agent.engine().rules(agent.workspace()).await.unwrap();
    let counts = async |at: usize| agent.engine().rule_counts(agent.workspace(), &rules[at]).await.unwrap();
    assert!(counts(0).await && !counts(1).await, "a rule of an ended run is over");
}

#[tokio::test]
async fn a_lasting_yes_is_over_when_its_time_is() {
    let stage = stage();
    let clock = Clock::new();
    let agent = stage.agent(WRITE).env(clock.env()).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    let hour = Some(Duration::from_secs(3600));
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Always, hour).await.unwrap();
    agent.resume(asked.id).await.unwrap();
    clock.forward(3599);
    assert_eq!(status(&agent, "/x/b.md").await, Status::Completed);
    clock.forward(1);
    assert_eq!(status(&agent, "/x/a.md").await, Status::WaitingApproval);
}

#[tokio::test]
async fn what_always_asks_offers_this_once_and_no_more() {
    let stage = stage();
    let always = |spec: &mut AgentSpec| spec.requires_approval = Some(["write_file".to_owned()].into());
    let agent = stage.agent(WRITE).configure(always).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    for scope in [GrantScope::Run, GrantScope::Chat, GrantScope::Always] {
        let refused = says_yes(&agent, asked.pending_approvals[0], scope, None).await.unwrap_err();
        assert!(matches!(refused, EngineError::Refused(Refusal::ScopeNotOffered)), "{scope:?}: {refused}");
    }
    assert!(agent.engine().rules(agent.workspace()).await.unwrap().is_empty());
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Once, None).await.unwrap();
    assert_eq!(agent.resume(asked.id).await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_rule_that_comes_between_an_approval_and_its_call_stops_the_call() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Always, None).await.unwrap();
    let rule = agent.engine().add_rule(agent.workspace(), agent.user(), deny("write_file", "/x")).await.unwrap();
    let log = agent.engine().audit_log(AuditLog::Workspace(agent.workspace())).await.unwrap();
    let acts = log.iter().filter_map(|item| match item.event.as_ref()? {
        AuditEvent::Act(act) => Some((act.deed, act.summary.as_str())),
        _ => None,
    });
    assert!(acts.into_iter().any(|act| act == (Deed::RuleSaved, "deny write_file in /x")), "{log:?}");
    let report = agent.resume(asked.id).await.unwrap();
    assert_eq!(report.actions[0].rule.as_deref(), Some(format!("rule {}", rule.id).as_str()), "{report:#?}");
    assert_eq!((report.actions[0].attempts, stage.read("/x/a.md")), (0, "old".to_owned()));
}

#[tokio::test]
async fn a_rule_whose_examples_do_not_hold_is_not_saved_and_the_example_is_named() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let example = |path: &str| Example {
        tool: "write_file".to_owned(),
        paths: vec![path.to_owned()],
        arguments: serde_json::Value::Null,
    };
    let wrong = NewRule {
        must_deny: vec![example("/x/a.md"), example("/y/a.md")],
        must_allow: vec![example("/z/a.md")],
        ..deny("write_file", "/x")
    };
    let refused = agent.engine().add_rule(agent.workspace(), agent.user(), wrong).await.unwrap_err();
    let EngineError::InvalidRule(problems) = refused else { panic!("{refused}") };
    assert_eq!(problems, ["must_deny[1]: the rule lets through `write_file /y/a.md`"]);
    let unknown = agent.engine().add_rule(agent.workspace(), agent.user(), deny("no_such_tool", "/x")).await;
    assert!(unknown.unwrap_err().to_string().contains("no tool `no_such_tool`"));
    assert!(agent.engine().rules(agent.workspace()).await.unwrap().is_empty());
}

#[tokio::test]
async fn questions_of_one_tool_in_one_folder_are_alike() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let mut asked = Vec::new();
    for path in ["/x/a.md", "/x/b.md", "/y/a.md"] {
        asked.push(agent.run(path).await.unwrap().pending_approvals[0]);
    }
    let alike = agent.engine().alike(agent.workspace(), asked[0]).await.unwrap();
    assert_eq!(alike.iter().map(|(row, _)| row.id).collect::<Vec<_>>(), asked[..2]);
}

#[tokio::test]
async fn what_a_rule_decided_is_judged_again_in_replay_also_after_it_was_removed() {
    let stage = stage();
    let agent = stage.agent(WRITE).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let rule = engine.add_rule(workspace, agent.user(), deny("write_file", "/x")).await.unwrap();
    let refused = agent.run("/x/a.md").await.unwrap();
    let by_rule = format!("rule {}", rule.id);
    assert_eq!(refused.actions[0].rule.as_deref(), Some(by_rule.as_str()), "{refused:#?}");
    let there = engine.replay(workspace, refused.id).await.unwrap();
    assert!(there.verdicts == 1 && there.divergences.is_empty(), "{there:#?}");
    engine.remove_rule(workspace, agent.user(), rule.id).await.unwrap();
    let gone = engine.replay(workspace, refused.id).await.unwrap();
    assert!(gone.verdicts == 1 && gone.divergences.is_empty(), "{gone:#?}");
}

/// Looks for a word, lists everything and makes a file from a template.
const LOOK: &str = r#"
- when: { result: { name: create_file } }
  text: done
- calls:
    - { name: search_content, arguments: { query: banana } }
    - { name: list_files, arguments: { path: "/", recursive: true } }
    - { name: create_file, arguments: { path: "/out.md", template: t.md } }
"#;

#[tokio::test]
async fn what_a_rule_forbids_or_asks_about_is_not_found_listed_or_copied_by_another_way() {
    for decision in [Word::Deny, Word::Ask] {
        let stage = Stage::new(&[
            ("/open.md", "a banana"),
            ("/private/payroll.md", "banana: xyzzy plugh"),
            ("/templates/t.md", "template 67890"),
        ]);
        let agent = stage.agent(LOOK).autonomy(Autonomy::Full).build().await.unwrap();
        let when = Match { folders: vec!["/private".to_owned(), "/templates".to_owned()], ..Match::default() };
        let rule = NewRule { when, decision, ..deny("*", "/") };
        agent.engine().add_rule(agent.workspace(), agent.user(), rule).await.unwrap();
        let report = agent.run("look").await.unwrap();
        let log = agent.engine().export_run(agent.workspace(), report.id, Redaction::Raw).await.unwrap().join("\n");
        assert!(log.contains("/open.md: "), "{log}");
        assert!(!log.contains("payroll") && !log.contains("plugh"), "{decision:?}: {log}");
        assert!(!stage.exists("/out.md"), "{decision:?}: {report:#?}");
        let waits = (decision == Word::Ask).then_some(Status::WaitingApproval);
        assert_eq!(report.status, waits.unwrap_or(Status::Completed), "making a file of a template is reading it");
    }
}

#[tokio::test]
async fn a_rule_about_a_path_holds_however_the_path_is_written() {
    let stage = Stage::new(&[("/x/a.md", "old")]);
    let agent = stage.agent(WRITE).autonomy(Autonomy::Full).build().await.unwrap();
    let when = Match { arguments: [("path".to_owned(), "/x/*".to_owned())].into(), ..Match::default() };
    let rule = NewRule { when, ..deny("write_file", "/") };
    let rule = agent.engine().add_rule(agent.workspace(), agent.user(), rule).await.unwrap();
    for path in ["/x/a.md", "x/a.md", "//x//a.md", "/./x/a.md"] {
        let report = agent.run(path).await.unwrap();
        assert_eq!(report.actions[0].rule.as_deref(), Some(format!("rule {}", rule.id).as_str()), "{path}");
    }
    assert_eq!(stage.read("/x/a.md"), "old");
}

#[tokio::test]
async fn a_lasting_yes_in_one_notebook_is_none_in_another() {
    let (stage, other) = (stage(), stage());
    let agent = stage.agent(WRITE).build().await.unwrap();
    let asked = agent.run("/x/a.md").await.unwrap();
    says_yes(&agent, asked.pending_approvals[0], GrantScope::Always, None).await.unwrap();
    assert_eq!(agent.resume(asked.id).await.unwrap().status, Status::Completed);
    let rules = agent.engine().rules(agent.workspace()).await.unwrap();
    assert!(rules[0].notebook.is_some() && rules[0].in_words().contains("in this notebook"), "{rules:?}");
    let changed = agent.engine().replace_rule(agent.workspace(), agent.user(), &rules[0], NewRule::of(&rules[0])).await;
    assert_eq!(changed.unwrap().notebook, rules[0].notebook, "a change of the rule does not widen it");
    let id = agent.id();
    drop(agent);
    let there = stage.agent(WRITE).notebook(other.folder.path(), ["/"]).build().await.unwrap();
    assert_eq!(there.id(), id, "the same agent");
    assert_eq!(status(&there, "/x/b.md").await, Status::WaitingApproval);
    assert_eq!(other.read("/x/b.md"), "old");
}
