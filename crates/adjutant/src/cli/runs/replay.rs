//! `runs replay`: walk a recorded run again with the present code, without a model, a tool or a network.

use crate::cli::Context;
use crate::cli::find;
use crate::cli::terminal::one_line;
use crate::cli::words::{count, short};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let run = find::run(instance, &args.run).await?;
    let replay = instance.engine.replay(instance.home.workspace, run).await?;
    let style = context.terminal.out;
    context.print(&serde_json::to_value(&replay).unwrap_or_default(), || {
        let walked = format!(
            "{} · {} · {} · ends {}",
            count(replay.events, "event", "events"),
            count(replay.requests, "model request", "model requests"),
            count(replay.verdicts, "verdict", "verdicts"),
            replay.status.word(),
        );
        if replay.divergences.is_empty() {
            return vec![style.good(&format!("✔ {} comes out the same: {walked}", short(&run)))];
        }
        let mut lines = vec![style.bad(&format!("✖ {} comes out differently: {walked}", short(&run)))];
        lines.extend(replay.divergences.iter().map(|found| {
            format!(
                "  event {} ({}): recorded {}, found {}",
                found.seq,
                found.kind,
                one_line(&found.recorded),
                one_line(&found.found)
            )
        }));
        lines
    });
    Ok(if replay.divergences.is_empty() { Exit::Done } else { Exit::Broken })
}
