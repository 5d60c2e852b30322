//! `config show`: every setting, and with `--origin` where it comes from.

use serde_json::{Map, Value, json};

use super::Context;
use super::terminal::{clean, table};
use crate::failure::{Exit, Failure};
use crate::warnings;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Print the settings
    Show {
        /// Say where each comes from
        #[arg(long)]
        origin: bool,
    },
}

pub(super) fn execute(context: &Context, args: &Args) -> Result<Exit, Failure> {
    let origin = args.command.as_ref().is_some_and(|Command::Show { origin }| *origin);
    let config = context.config()?;
    let shown = config.shown();
    let entry = |(key, value, from): &(String, String, crate::config::Origin)| {
        let value = if origin { json!({"value": value, "origin": from.to_string()}) } else { json!(value) };
        (key.replace(' ', "_"), value)
    };
    let settings: Map<String, Value> = shown.iter().map(entry).collect();
    let warnings = warnings::of_config(&config);
    let document = json!({"file": config.file, "settings": settings, "warnings": warnings});
    context.print(&document, || {
        let row = |(key, value, from): &(String, String, crate::config::Origin)| {
            let mut row = vec![key.clone(), value.clone()];
            row.extend(origin.then(|| from.to_string()));
            row
        };
        let head: &[&str] = if origin { &["SETTING", "VALUE", "ORIGIN"] } else { &["SETTING", "VALUE"] };
        let mut lines = table(head, &shown.iter().map(row).collect::<Vec<_>>(), context.terminal.out);
        lines.extend(warnings.iter().map(|text| context.terminal.out.warn(&clean(&format!("! {text}")))));
        lines
    });
    Ok(Exit::Done)
}
