//! `agents`: see, check and import them.

mod can;
mod import;
mod reach;
mod validate;

use adjutant_core::guard::policy::AgentConfig;
use adjutant_engine::store::row::AgentRow;
use serde_json::json;

use super::Context;
use super::terminal::{Style, clean, cut, one_line, table};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire;

/// Characters of what an agent may touch in the list.
const REACH: usize = 60;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the agents and what they may touch
    Ls,
    /// Show one agent in full
    Show {
        /// Its short name or id
        name: String,
    },
    /// Say whether an agent may do something, by which rule, and what would change it
    Can(can::Args),
    /// Say how much of a notebook an agent reaches, and what lies just outside
    Reach(reach::Args),
    /// Check agent files; nothing is loaded
    Validate(validate::Args),
    /// Copy agent files into the data directory, after showing what each could touch
    Import(import::Args),
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let looking = match args.command {
        Command::Validate(args) => return validate::execute(context, &args),
        Command::Import(args) => return import::execute(context, args).await,
        Command::Ls => Looking::All,
        Command::Show { name } => Looking::One(name),
        Command::Can(args) => Looking::Can(args),
        Command::Reach(args) => Looking::Reach(args),
    };
    let instance = context.open("agents").await?;
    let exit = match looking {
        Looking::All => ls(context, &instance).await,
        Looking::One(name) => show(context, &instance, &name).await,
        Looking::Can(args) => can::execute(context, &instance, &args).await,
        Looking::Reach(args) => reach::execute(context, &instance, &args).await,
    };
    instance.close().await;
    exit
}

/// What needs the instance open.
enum Looking {
    All,
    One(String),
    Can(can::Args),
    Reach(reach::Args),
}

fn config_of(row: &AgentRow) -> Result<AgentConfig, Failure> {
    let config: Result<AgentConfig, _> = serde_json::from_str(&row.spec);
    let mut config = config.map_err(|bad| {
        Failure::other(format!("The stored agent `{}` cannot be read: {bad}. It is not used.", row.slug))
    })?;
    config.is_active &= row.active;
    Ok(config)
}

async fn ls(context: &Context, instance: &Instance) -> Result<Exit, Failure> {
    let rows = instance.engine.store().agents(instance.home.workspace).await?;
    let agents = rows.iter().map(|row| Ok((row, config_of(row)?))).collect::<Result<Vec<_>, Failure>>()?;
    let data: Vec<_> = agents.iter().map(|(row, config)| wire::agent(row, config)).collect();
    context.print(&json!({"data": data, "has_more": false}), || {
        let row = |(row, config): &(&AgentRow, AgentConfig)| {
            let state = if config.is_active { "on" } else { "off" };
            let reach = cut(&config.reach(), REACH);
            vec![
                row.slug.clone(),
                state.to_owned(),
                config.model.clone(),
                word(&config.autonomy),
                reach,
                one_line(&config.description),
            ]
        };
        let cells: Vec<_> = agents.iter().map(row).collect();
        table(&["AGENT", "STATE", "MODEL", "AUTONOMY", "MAY", "FOR"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

async fn show(context: &Context, instance: &Instance, name: &str) -> Result<Exit, Failure> {
    let row = instance.engine.find_agent(instance.home.workspace, name).await?;
    let config = config_of(&row)?;
    context.print(&wire::agent(&row, &config), || {
        let mut lines = vec![format!("{}  {}  version {}", context.terminal.out.bold(&row.slug), row.id, row.version)];
        lines.extend(summary(&config, context.terminal.out));
        if !config.system_prompt.is_empty() {
            lines.extend([String::new(), clean(&config.system_prompt)]);
        }
        lines
    });
    Ok(Exit::Done)
}

/// What an agent is and may do, in a few lines.
pub(super) fn summary(config: &AgentConfig, style: Style) -> Vec<String> {
    let list = |names: &std::collections::BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
    let line = |key: &str, value: String| {
        (!value.is_empty()).then(|| format!("{} {}", style.dim(&format!("{key:<10}")), one_line(&value)))
    };
    let notebooks = config.scope.notebooks.as_ref().map(|names| names.join(", ")).unwrap_or_default();
    let asks = match config.autonomy {
        adjutant_core::guard::policy::Autonomy::None => "every call asks",
        adjutant_core::guard::policy::Autonomy::Low => "reads are free, the rest asks",
        adjutant_core::guard::policy::Autonomy::Medium => "reads, creates and undoable writes are free, the rest asks",
        adjutant_core::guard::policy::Autonomy::High => "only what cannot be undone asks",
        adjutant_core::guard::policy::Autonomy::Full => "nothing asks",
    };
    [
        line("name", format!("{} {}", config.emoji, config.name)),
        line("for", config.description.clone()),
        line("state", if config.is_active { "on".to_owned() } else { "off".to_owned() }),
        line("model", config.model.clone()),
        line("may", config.reach()),
        line("notebooks", notebooks),
        line(
            "tools",
            [list(&config.toolsets), list(&config.tools)]
                .into_iter()
                .filter(|names| !names.is_empty())
                .collect::<Vec<_>>()
                .join(", "),
        ),
        line("never", list(&config.denied_tools)),
        line("asks", format!("{} ({asks})", word(&config.autonomy))),
        line("always asks", list(&config.requires_approval)),
        line("limits", format!("{} turns, {} tool calls", config.max_turns, config.max_tool_calls)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The stored word of a value.
fn word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
