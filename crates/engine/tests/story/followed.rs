//! What a run takes over from the one it follows: what somebody asked for, beside what its agent says by now.

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::id::RunId;
use adjutant_core::money::MicroUsd;
use adjutant_core::options::ToolChoice;
use adjutant_core::routing::ModelChoice;
use adjutant_core::run::event::{Actor, RunStarted};
use adjutant_engine::{Agent, Fork, StartRun, WorkspaceChange};

use super::money::{Shelf, agent, budget, in_order};
use super::{Clock, Stage, ask};

async fn started(agent: &Agent, run: RunId) -> RunStarted {
    *agent.engine().run_state(agent.workspace(), run).await.unwrap().start.clone().unwrap()
}

async fn done(agent: &Agent, ask: StartRun) -> RunId {
    let run = agent.engine().start_run(agent.workspace(), ask).await.unwrap();
    agent.resume(run).await.unwrap();
    run
}

#[tokio::test]
async fn an_edit_and_a_fork_keep_the_limits_and_the_model_that_somebody_asked_for() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let (max_cost, model) = (Some(MicroUsd(400_000)), Some("c/three".to_owned()));
    let run = done(&agent, StartRun { max_cost, max_turns: Some(3), model, ..ask(&agent) }).await;
    let edited = engine.edit_run(workspace, user, run, "again").await.unwrap();
    let forked = engine.fork_run(workspace, user, run, Fork::default()).await.unwrap();
    for follower in [edited, forked] {
        let start = started(&agent, follower).await;
        assert_eq!((start.budget, start.limits.turns, start.model.as_str()), (max_cost, 3, "c/three"));
    }
    let other = Fork { model: Some("b/two".to_owned()), ..Fork::default() };
    let forked = engine.fork_run(workspace, user, run, other).await.unwrap();
    assert_eq!(started(&agent, forked).await.model, "b/two");
}

#[tokio::test]
async fn what_nobody_asked_for_is_as_the_agent_has_it_by_now() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, in_order(&["a/one", "b/two"])).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let run = done(&agent, ask(&agent)).await;
    let row = engine.find_agent(workspace, "embedded").await.unwrap();
    let spec = AgentSpec {
        name: "Tester".to_owned(),
        slug: Some("embedded".to_owned()),
        scope: Some(serde_json::from_str(r#"{"notebooks":["*"],"folders":["/"]}"#).unwrap()),
        model: Some(ModelChoice::InOrder(vec!["d/four".to_owned(), "b/two".to_owned()])),
        budget: Some(budget(r#"{"run_usd":2}"#)),
        max_turns: Some(7),
        ..AgentSpec::default()
    };
    engine.save_agent(workspace, Actor::User(user), spec, row.version).await.unwrap();
    let edited = engine.edit_run(workspace, user, run, "again").await.unwrap();
    let start = started(&agent, edited).await;
    assert_eq!((start.budget, start.limits.turns), (Some(MicroUsd(2_000_000)), 7));
    assert_eq!((start.model.as_str(), &start.fallbacks[..]), ("d/four", &["b/two".to_owned()][..]));
    // It goes on where it was, with those that stood in for its model then.
    let forked = engine.fork_run(workspace, user, run, Fork::default()).await.unwrap();
    let start = started(&agent, forked).await;
    assert_eq!((start.model.as_str(), &start.fallbacks[..]), ("a/one", &["b/two".to_owned()][..]));
}

#[tokio::test]
async fn the_default_of_a_workspace_is_nothing_that_somebody_asked_for() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let default = |model: &str| WorkspaceChange { default_model: Some(model.to_owned()), ..WorkspaceChange::default() };
    engine.change_workspace(workspace, user, default("b/two")).await.unwrap();
    let run = done(&agent, ask(&agent)).await;
    assert_eq!(started(&agent, run).await.model, "b/two");
    let row = engine.find_agent(workspace, "embedded").await.unwrap();
    let spec = AgentSpec {
        name: "Tester".to_owned(),
        slug: Some("embedded".to_owned()),
        scope: Some(serde_json::from_str(r#"{"notebooks":["*"],"folders":["/"]}"#).unwrap()),
        model: Some(ModelChoice::InOrder(vec!["d/four".to_owned()])),
        ..AgentSpec::default()
    };
    engine.save_agent(workspace, Actor::User(user), spec, row.version).await.unwrap();
    let edited = engine.edit_run(workspace, user, run, "again").await.unwrap();
    assert_eq!(started(&agent, edited).await.model, "d/four");
}

#[tokio::test]
async fn a_seed_and_a_choice_of_a_tool_are_a_runs_own_and_stay_with_what_follows_it() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, in_order(&["a/one"])).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let asked = StartRun { seed: Some(7), tool_choice: Some(ToolChoice::None), ..ask(&agent) };
    let run = done(&agent, asked).await;
    let account = engine.report(workspace, run).await.unwrap().account;
    assert_eq!((account.seed, account.tool_choice), (Some(7), Some(ToolChoice::None)));
    let edited = engine.edit_run(workspace, user, run, "again").await.unwrap();
    let forked = engine.fork_run(workspace, user, run, Fork::default()).await.unwrap();
    for next in [edited, forked] {
        let options = started(&agent, next).await.options;
        assert_eq!((options.seed, options.tool_choice), (Some(7), Some(ToolChoice::None)));
    }
    let plain = done(&agent, ask(&agent)).await;
    assert_eq!(started(&agent, plain).await.options.seed, None);
    let unknown = StartRun { tool_choice: Some(ToolChoice::Tool("no_such_tool".to_owned())), ..ask(&agent) };
    assert!(engine.start_run(workspace, unknown).await.is_err());
}
