//! The past under another policy.

use adjutant_core::guard::judge::Decision as Said;
use adjutant_core::guard::policy::{AgentConfig, Autonomy};
use adjutant_core::run::event::Decision;
use adjutant_engine::Agent;
use adjutant_engine::{Backtest, EraseWhat};

use super::Stage;

const SCRIPT: &str = r#"
- when: { turn: 2 }
  text: done
- calls:
    - { name: write_file, arguments: { path: /drafts/a.md, content: new } }
    - { name: write_file, arguments: { path: /notes/b.md, content: new } }
    - { name: read_file, arguments: { path: /notes/b.md } }
    - { name: delete_file, arguments: { path: /drafts/c.md } }
"#;

async fn agent(stage: &Stage) -> Agent {
    stage.agent(SCRIPT).on_approval(|_| Decision::Approve).build().await.unwrap()
}

async fn config(agent: &Agent) -> AgentConfig {
    let agent = agent.engine().current_agent(agent.workspace(), agent.id()).await.unwrap();
    AgentConfig::clone(&agent.config)
}

async fn judged(agent: &Agent, draft: &AgentConfig) -> Backtest {
    agent.engine().backtest(agent.workspace(), agent.id(), draft, None).await.unwrap()
}

fn stage() -> Stage {
    Stage::new(&[("/drafts/a.md", "a"), ("/notes/b.md", "b"), ("/drafts/c.md", "c")])
}

#[tokio::test]
async fn the_same_policy_changes_nothing() {
    let stage = stage();
    let agent = agent(&stage).await;
    agent.run("go").await.unwrap();
    let found = judged(&agent, &config(&agent).await).await;
    assert_eq!((found.runs, found.calls, found.changes.as_slice()), (1, 4, &[][..]), "each call once: {found:#?}");
}

#[tokio::test]
async fn a_narrower_scope_and_a_freer_hand_are_told_call_by_call() {
    let stage = stage();
    let agent = agent(&stage).await;
    agent.run("go").await.unwrap();
    let mut draft = config(&agent).await;
    draft.scope = serde_json::from_str(r#"{"notebooks":["*"],"folders":["/drafts"]}"#).unwrap();
    draft.autonomy = Autonomy::Medium;
    draft.can_delete = true;
    let found = judged(&agent, &draft).await;
    let seen: Vec<_> = found
        .changes
        .iter()
        .map(|change| (change.tool.as_str(), change.path.as_deref().unwrap_or(""), change.was, change.would_be))
        .collect();
    let expected = [
        ("write_file", "/drafts/a.md", Said::Ask, Said::Allow),
        ("write_file", "/notes/b.md", Said::Ask, Said::Deny),
        ("read_file", "/notes/b.md", Said::Allow, Said::Deny),
        ("delete_file", "/drafts/c.md", Said::Deny, Said::Ask),
    ];
    assert_eq!(seen, expected);
    assert_eq!([Said::Allow, Said::Ask, Said::Deny].map(|said| found.newly(said)), [1, 1, 2]);
    assert!(found.changes.iter().all(|change| !change.rule.is_empty() && !change.reason.is_empty()));
    assert_eq!(stage.read("/notes/b.md"), "new", "nothing happens to the files");
}

#[tokio::test]
async fn an_agent_that_would_be_off_would_have_done_nothing() {
    let stage = stage();
    let agent = agent(&stage).await;
    agent.run("go").await.unwrap();
    let mut draft = config(&agent).await;
    draft.is_active = false;
    let found = judged(&agent, &draft).await;
    assert_eq!(found.newly(Said::Deny), 3, "what was denied stays denied: {found:#?}");
}

#[tokio::test]
async fn runs_before_the_border_and_erased_ones_are_left_out() {
    let stage = stage();
    let agent = agent(&stage).await;
    let first = agent.run("go").await.unwrap();
    let border = agent.engine().env().now();
    agent.run("go").await.unwrap();
    let (engine, workspace, draft) = (agent.engine(), agent.workspace(), config(&agent).await);
    let recent = engine.backtest(workspace, agent.id(), &draft, Some(border)).await.unwrap();
    assert_eq!(recent.runs, 1);
    engine.erase_runs(workspace, agent.user(), EraseWhat::Run(first.id)).await.unwrap();
    let rest = judged(&agent, &draft).await;
    assert_eq!((rest.runs, rest.erased), (1, 1));
}
