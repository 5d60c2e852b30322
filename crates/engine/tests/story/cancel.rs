//! Cancelling a run while one of its calls runs.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_core::tool::{Effect, Recovery};
use adjutant_engine::tools::Tool;

use super::halt::{CALL, Endless, full};
use super::{Stage, ask};

#[tokio::test]
async fn a_call_that_runs_is_stopped_with_its_run_and_nobody_says_that_it_had_no_effect() {
    for (effect, recovery) in [(Effect::Read, Recovery::Pure), (Effect::Write, Recovery::Reconcile)] {
        let tool = Endless::new(effect, recovery);
        let stage = Stage::new(&[]);
        let agent = stage.agent(CALL).tool(Arc::clone(&tool) as Arc<dyn Tool>).configure(full).build().await.unwrap();
        let (engine, workspace) = (agent.engine(), agent.workspace());
        let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
        let cancel = async {
            tool.began.notified().await;
            let cancel = Command::Cancel { by: Actor::User(agent.user()), reason: "enough".to_owned() };
            engine.command(workspace, run, &cancel).await.unwrap();
        };
        let both = async { futures::join!(engine.drive_run(run), cancel) };
        tokio::time::timeout(Duration::from_secs(60), both).await.unwrap().0.unwrap();
        tokio::time::timeout(Duration::from_secs(60), tool.stopped.notified()).await.unwrap();
        let report = engine.report(workspace, run).await.unwrap();
        assert_eq!((report.status, report.actions.len()), (Status::Cancelled, 1), "{report:#?}");
        let said = report.actions[0].output.clone().unwrap_or_default();
        let expected = match recovery {
            Recovery::Pure => "Given up: the run was cancelled.",
            // It gave its work to another thread, for all that anybody knows, and that may still be done.
            _ => "The run was cancelled while this ran: it is not known whether it happened.",
        };
        assert_eq!(said, expected);
    }
}
