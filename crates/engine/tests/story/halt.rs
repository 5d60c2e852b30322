//! The stop switch, and a process that died while it turned it.

use adjutant_core::run::status::Status;
use adjutant_engine::{Halt, HaltOf};

use super::{Stage, ask};

#[tokio::test]
async fn a_run_that_the_switch_caught_late_goes_on_with_the_others() {
    let stage = Stage::new(&[("/a.md", "old")]);
    let agent = stage.agent("- text: done").build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    // The switch is on, and whoever turned it had no time to look for the runs that are open.
    let halt = Halt { by: agent.user(), at: engine.env().now(), reason: "a drill".to_owned(), runs: Vec::new() };
    let stored = serde_json::to_vec(&halt).unwrap();
    engine.store().meta_set(&format!("halt {workspace}"), &stored).await.unwrap();
    engine.drive_run(run).await.unwrap();
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);

    let resumed = engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
    assert_eq!(resumed, [run]);
    assert_eq!(agent.resume(run).await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_run_that_a_person_held_before_the_switch_stays_held() {
    use adjutant_core::run::command::Command;
    use adjutant_core::run::event::Actor;
    let stage = Stage::new(&[("/a.md", "old")]);
    let clock = super::Clock::new();
    let agent = stage.agent("- text: done").env(clock.env()).build().await.unwrap();
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    engine.command(workspace, run, &Command::Pause { by: Actor::User(agent.user()) }).await.unwrap();
    clock.forward(1);
    engine.halt(HaltOf::Workspace(workspace), agent.user(), "a drill".to_owned()).await.unwrap();
    let resumed = engine.lift_halt(HaltOf::Workspace(workspace), agent.user()).await.unwrap();
    assert_eq!(resumed, []);
    assert_eq!(engine.run_state(workspace, run).await.unwrap().status(), Status::Paused);
}
