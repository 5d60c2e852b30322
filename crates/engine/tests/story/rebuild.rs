//! Tables that are made again from the logs.

use adjutant_core::run::chain::StreamId;
use adjutant_engine::store::row::{RunFilter, RunRow};
use adjutant_engine::{Agent, Rebuilt};

use super::Stage;

/// Every run of the workspace; how often each was claimed is in no log.
async fn rows(agent: &Agent) -> Vec<RunRow> {
    let filter = RunFilter { superseded: true, ..RunFilter::default() };
    let rows = agent.engine().store().runs(agent.workspace(), &filter, 100).await.unwrap();
    rows.into_iter().map(|row| RunRow { epoch: 0, ..row }).collect()
}

#[tokio::test]
async fn runs_that_are_gone_from_the_tables_are_missed_and_made_again_as_they_were() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let first = agent.run("one").await.unwrap();
    let second = agent.run_in(Some(first.chat_id), "two").await.unwrap();
    agent.run_in(Some(first.chat_id), "three").await.unwrap();
    let edited = engine.edit_run(workspace, agent.user(), second.id, "zwei").await.unwrap();
    agent.resume(edited).await.unwrap();
    agent.run_in(Some(first.chat_id), "vier").await.unwrap();
    let before = rows(&agent).await;
    assert_eq!(before.iter().filter(|row| row.superseded_by == Some(edited)).count(), 2);

    stage.tamper("DELETE FROM runs; DELETE FROM calls; DELETE FROM model_calls");
    let missed = engine.verify_all().await.unwrap().problems;
    assert!(
        missed.len() == 5 && missed.iter().all(|problem| problem.reason.starts_with("no row knows it")),
        "{missed:#?}"
    );
    assert_eq!(engine.rebuild(agent.user()).await.unwrap(), Rebuilt { runs: 5, found: 5, ..Rebuilt::default() });
    assert_eq!(rows(&agent).await, before);
    assert!(engine.verify_all().await.unwrap().problems.is_empty());
    let next = agent.run_in(Some(first.chat_id), "and so on").await.unwrap();
    assert_eq!(next.base_run_id, Some(before[0].id));
}

#[tokio::test]
async fn a_run_that_was_erased_is_left_as_it_is() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let (erased, kept) = (agent.run("one").await.unwrap(), agent.run("two").await.unwrap());
    let store = agent.engine().store();
    store.erase_bodies(agent.workspace(), StreamId::Run(erased.id)).await.unwrap();
    let before = rows(&agent).await;
    assert_eq!(
        agent.engine().rebuild(agent.user()).await.unwrap(),
        Rebuilt { runs: 1, erased: 1, ..Rebuilt::default() }
    );
    assert_eq!(rows(&agent).await, before);
    assert_eq!(before[0].id, kept.id);
}

#[tokio::test]
async fn a_log_that_cannot_be_followed_is_named_and_the_others_are_made_again() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: yes").build().await.unwrap();
    let (engine, user) = (agent.engine(), agent.user());
    let (first, spoilt, last) =
        (agent.run("one").await.unwrap(), agent.run("two").await.unwrap(), agent.run("three").await.unwrap());
    let before = rows(&agent).await;
    stage.tamper(&format!(
        "UPDATE events SET hash = zeroblob(32) WHERE stream = '{}' AND seq = 2; UPDATE runs SET status = 'RUNNING'",
        spoilt.id
    ));
    let rebuilt = engine.rebuild(user).await.unwrap();
    assert_eq!((rebuilt.runs, rebuilt.broken.keys().copied().collect::<Vec<_>>()), (2, vec![spoilt.id]));
    let after = rows(&agent).await;
    let same = |id| before.iter().find(|row| row.id == id) == after.iter().find(|row| row.id == id);
    assert_eq!([first.id, spoilt.id, last.id].map(same), [true, false, true], "what is broken stays as it was found");
}
