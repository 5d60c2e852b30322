//! `runs cancel` and `runs pause`: stop a run, or hold it.

use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::words::short;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    /// The run, or as much of its id as no other has
    run: String,
    /// Why
    #[arg(short, long, default_value = "cancelled from the command line")]
    message: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct Pause {
    /// The run, or as much of its id as no other has
    run: String,
}

pub(super) async fn cancel(context: &Context, instance: &Instance, args: Cancel) -> Result<Exit, Failure> {
    let run = find::run(instance, &args.run).await?;
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let command = Command::Cancel { by: Actor::User(instance.home.user), reason: args.message };
    let mut state = engine.command(workspace, run, &command).await?;
    if state.status() == Status::Cancelling {
        // Whoever drives it ends it; where nobody does, that is us.
        let attendance = engine.attend().await?;
        let driven = engine.drive_run(run).await;
        attendance.leave().await;
        driven?;
        state = engine.run_state(workspace, run).await?;
    }
    told(context, &state, "runs show");
    Ok(Exit::Done)
}

pub(super) async fn pause(context: &Context, instance: &Instance, args: Pause) -> Result<Exit, Failure> {
    let run = find::run(instance, &args.run).await?;
    let command = Command::Pause { by: Actor::User(instance.home.user) };
    let state = instance.engine.command(instance.home.workspace, run, &command).await?;
    told(context, &state, "runs resume");
    Ok(Exit::Done)
}

fn told(context: &Context, state: &State, next: &str) {
    let run = state.start.as_ref().map(|start| start.run);
    let status = state.status();
    context.print(&json!({"id": run, "status": status}), || {
        let run = run.map(|run| short(&run)).unwrap_or_default();
        vec![format!("{run} is {}  (adjutant {next} {run})", status.word())]
    });
}
