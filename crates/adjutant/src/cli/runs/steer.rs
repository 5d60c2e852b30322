//! `runs cancel` and `runs pause`: stop a run, or hold it.

use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use adjutant_core::run::state::State;
use adjutant_core::run::status::Status;
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::words::{ours, short};
use crate::failure::{Exit, Failure};

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

pub(super) async fn cancel(context: &Context, place: &Place, args: Cancel) -> Result<Exit, Failure> {
    let instance = match place {
        Place::Here(instance) => instance,
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            remote.post(&["runs", &run, "cancel"], &json!({"reason": args.message})).await?;
            // The server ends it in order; what is told is how it ended.
            let ended = remote.get(&["runs", &run], &[("wait", "10")]).await?;
            tell(context, &run, ended["status"].as_str().unwrap_or_default(), "runs show");
            return Ok(Exit::Done);
        }
    };
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

pub(super) async fn pause(context: &Context, place: &Place, args: Pause) -> Result<Exit, Failure> {
    let instance = match place {
        Place::Here(instance) => instance,
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            let held = remote.post(&["runs", &run, "pause"], &json!({})).await?;
            tell(context, &run, held["status"].as_str().unwrap_or_default(), "runs resume");
            return Ok(Exit::Done);
        }
    };
    let run = find::run(instance, &args.run).await?;
    let command = Command::Pause { by: Actor::User(instance.home.user) };
    let state = instance.engine.command(instance.home.workspace, run, &command).await?;
    told(context, &state, "runs resume");
    Ok(Exit::Done)
}

fn told(context: &Context, state: &State, next: &str) {
    let run = state.start.as_ref().map(|start| start.run.to_string()).unwrap_or_default();
    tell(context, &run, state.status().word(), next);
}

fn tell(context: &Context, run: &str, status: &str, next: &str) {
    context.print(&json!({"id": run, "status": status}), || {
        let run = short(&run);
        vec![ours(&format!("{run} is {status}  (adjutant {next} {run})"))]
    });
}
