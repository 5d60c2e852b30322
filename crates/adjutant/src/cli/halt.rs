//! `halt`: the stop switch of a workspace or of the whole instance. While it is on, no run starts or goes on.

use adjutant_engine::{Halt, HaltOf};
use serde_json::{Value, json};

use super::Context;
use super::place::{Place, Work};
use super::terminal::{Style, one_line};
use super::words::{ago, count, ours};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say whether it is on
    Show,
    /// Turn it on: no run starts, and those under way hold before their next effect
    On {
        /// Why, for everybody who is stopped by it
        #[arg(long, default_value = "stopped by a person")]
        reason: String,
    },
    /// Turn it off: the runs that it held go on
    Off,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "halt", Work::Looks).await?;
    let command = args.command.unwrap_or(Command::Show);
    let switch = match &place {
        Place::Here(instance) => here(instance, context.workspace.as_deref(), &command).await,
        Place::There(remote) => {
            let path = match context.workspace.as_deref() {
                Some(name) => vec!["workspaces", name, "halt"],
                None => vec!["halt"],
            };
            match &command {
                Command::Show => remote.get(&path, &[]).await,
                Command::On { reason } => remote.post(&path, &json!({"reason": reason})).await,
                Command::Off => remote.delete(&path).await,
            }
        }
    };
    place.close().await;
    let switch = switch?;
    context.print(&switch, || lines(&switch, &command, context.terminal.out));
    Ok(Exit::Done)
}

async fn here(instance: &Instance, workspace: Option<&str>, command: &Command) -> Result<Value, Failure> {
    let (engine, user) = (&instance.engine, instance.home.user);
    let what = match workspace {
        None => HaltOf::Instance,
        Some(_) => HaltOf::Workspace(instance.home.workspace),
    };
    let shown = |halt: Option<Halt>| match halt {
        Some(Halt { by, at, reason, runs }) => {
            json!({"is_halted": true, "reason": reason, "by": by, "at": at, "runs": runs})
        }
        None => json!({"is_halted": false, "reason": null, "by": null, "at": null, "runs": []}),
    };
    Ok(match command {
        Command::Show => shown(engine.halt_of(what).await?),
        Command::On { reason } => shown(Some(engine.halt(what, user, reason.clone()).await?)),
        Command::Off => {
            let runs = engine.lift_halt(what, user).await?;
            json!({"is_halted": false, "reason": null, "by": null, "at": null, "runs": runs})
        }
    })
}

fn lines(switch: &Value, command: &Command, style: Style) -> Vec<String> {
    let runs = switch["runs"].as_array().map_or(0, Vec::len);
    if switch["is_halted"] == true {
        let (reason, at) = (switch["reason"].as_str().unwrap_or_default(), switch["at"].as_str().unwrap_or_default());
        let held = count(runs, "run is held", "runs are held");
        let line = format!("stopped since {}: {} ({held})", ago(at), one_line(reason));
        return vec![style.bad(&line), style.dim(&ours("adjutant halt off lets everything go on"))];
    }
    match command {
        Command::Off => vec![style.good(&format!("✔ off: {}", count(runs, "run goes on", "runs go on")))],
        Command::Show | Command::On { .. } => vec!["off: runs start and go on".to_owned()],
    }
}
