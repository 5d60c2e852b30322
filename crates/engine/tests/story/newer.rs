//! Logs that a newer program wrote into: nothing is guessed here, and whoever understands them may go on.

use std::time::Duration;

use adjutant_core::id::RunId;
use adjutant_core::run::chain::{Entry, StreamId};
use adjutant_engine::Agent;
use adjutant_engine::store::row::{Append, RunChange, RunRow, Writer};

use super::{Stage, ask};

/// Appends an event of a kind that only a newer program knows.
async fn write_from_the_future(agent: &Agent, run: RunId) {
    let (store, workspace, stream) = (agent.engine().store(), agent.workspace(), StreamId::Run(run));
    let expected = store.head(workspace, stream).await.unwrap();
    let state = store.run(workspace, run).await.unwrap().unwrap().state;
    let entry = Entry::next(stream, expected, "from_the_future", agent.engine().env().now(), b"{}".to_vec());
    let append = Append {
        workspace,
        stream,
        expected,
        writer: Writer::Command,
        entries: vec![entry],
        blocks: vec![],
        run: Some(RunChange::Update { state, release: false }),
        approvals: vec![],
        calls: vec![],
        rules: vec![],
        audit: vec![],
        marks: vec![],
        takings: vec![],
        under: None,
        model_calls: vec![],
        doing: None,
        spends: vec![],
    };
    store.append(append).await.unwrap();
}

/// Waits until the row of a run is as it should be.
async fn until(agent: &Agent, run: RunId, fits: impl Fn(&RunRow) -> bool) -> RunRow {
    let store = agent.engine().store();
    let mut changes = store.changes();
    let found = async {
        loop {
            let row = store.run(agent.workspace(), run).await.unwrap().unwrap();
            if fits(&row) {
                return row;
            }
            let _ = changes.recv().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.expect("it never came to that")
}

#[tokio::test]
async fn a_run_that_a_newer_program_wrote_into_is_given_back_once_and_others_go_on() {
    let stage = Stage::new(&[]);
    let agent = stage.agent("- text: Good day.").build().await.unwrap();
    let engine = agent.engine();
    let strange = engine.start_run(agent.workspace(), ask(&agent)).await.unwrap();
    write_from_the_future(&agent, strange).await;
    let worker = engine.start_worker().await.unwrap();
    until(&agent, strange, |row| row.epoch == 1 && row.owner.is_none()).await;
    let plain = engine.start_run(agent.workspace(), ask(&agent)).await.unwrap();
    until(&agent, plain, |row| row.state.status == "COMPLETED").await;
    assert_eq!(engine.store().next_due().await.unwrap(), None, "nobody here looks for it again and again");
    worker.stop().await;
    let row = engine.store().run(agent.workspace(), strange).await.unwrap().unwrap();
    assert_eq!((row.epoch, row.owner, row.state.status.as_str()), (1, None, "QUEUED"), "it is as it was");
}
