//! A log that is read while it grows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_engine::{Exit, Redaction, verify_export};
use adjutant_store::Fault;

use crate::full;

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_while_it_is_verified_or_exported_is_whole() {
    let notebooks = tempfile::tempdir().unwrap();
    let stage = full::stage(Fault::Full, 0, notebooks.path()).await;
    let (engine, workspace, run) = (&stage.engine, stage.workspace, stage.run);
    let over = AtomicBool::new(false);
    let driving = async {
        assert_eq!(engine.drive_run(run).await.unwrap(), Exit::Ended);
        over.store(true, Ordering::SeqCst);
    };
    let verifying = async {
        let mut ends = BTreeSet::new();
        while !over.load(Ordering::SeqCst) {
            ends.insert(engine.verify_run(workspace, run).await.unwrap().events);
        }
        ends
    };
    let exporting = async {
        while !over.load(Ordering::SeqCst) {
            let lines = engine.export_run(workspace, run, Redaction::Raw).await.unwrap();
            verify_export(lines.join("\n").as_bytes()).unwrap();
        }
    };
    let ((), ends, ()) = futures::join!(driving, verifying, exporting);
    assert!(ends.len() > 2, "it was looked at while it grew: {ends:?}");
}
