//! `runs replay`: walk a recorded run again with the present code, without a model, a tool or a network.

use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::terminal::{Style, one_line};
use crate::cli::words::{count, short};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let replay = match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let replay = instance.engine.replay(instance.home.workspace, run).await?;
            serde_json::to_value(&replay).unwrap_or_default()
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            remote.post(&["runs", &run, "replay"], &json!({"mode": "strict"})).await?
        }
    };
    let found = replay["divergences"].as_array().cloned().unwrap_or_default();
    context.print(&replay, || lines(&replay, &found, context.terminal.out));
    Ok(if found.is_empty() { Exit::Done } else { Exit::Broken })
}

fn lines(replay: &Value, found: &[Value], style: Style) -> Vec<String> {
    let number = |field: &str| replay[field].as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    let skipped = match number("skipped") {
        0 => String::new(),
        skipped => format!(" ({skipped} more not the guard's to give again)"),
    };
    let walked = format!(
        "{} · {} · {}{skipped} · ends {}",
        count(number("events"), "event", "events"),
        count(number("requests"), "model request", "model requests"),
        count(number("verdicts"), "verdict", "verdicts"),
        replay["status"].as_str().unwrap_or_default(),
    );
    let run = short(&replay["run_id"].as_str().unwrap_or_default());
    if found.is_empty() {
        return vec![style.good(&format!("✔ {run} comes out the same: {walked}"))];
    }
    let mut lines = vec![style.bad(&format!("✖ {run} comes out differently: {walked}"))];
    lines.extend(found.iter().map(|found| {
        let word = |field: &str| one_line(found[field].as_str().unwrap_or_default());
        format!("  event {} ({}): recorded {}, found {}", found["seq"], word("kind"), word("recorded"), word("found"))
    }));
    lines
}
