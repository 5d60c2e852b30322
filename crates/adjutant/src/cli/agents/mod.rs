//! `agents`: see, check and import them.

mod can;
mod edit;
mod export;
mod import;
mod new;
mod reach;
mod share;
mod templates;
mod tend;
mod test;
mod transfer;
mod validate;

use adjutant_core::guard::policy::{AgentConfig, AgentSpec};
use adjutant_engine::store::row::AgentRow;
use serde_json::{Value, json};

use self::share::Part;
use self::tend::Switch;
use super::Context;
use super::place::{Place, Work};
use super::terminal::{Style, clean, cut, one_line, table};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire;

/// Characters of what an agent may touch in the list.
const REACH: usize = 60;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
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
    /// Make an agent from one that comes with Adjutant, after showing what it could touch
    New(new::Args),
    /// Let runs of an agent start again
    Enable {
        /// Its short name or id
        name: String,
    },
    /// Let no more runs of an agent start
    Disable {
        /// Its short name or id
        name: String,
    },
    /// Change an agent as a file in your editor (EDITOR), and show what that changes
    Edit(edit::Args),
    /// Take an agent away; its runs and versions stay readable
    Rm(tend::Rm),
    /// Print an agent as a file, to keep, review or pass on
    Export {
        /// Its short name or id
        name: String,
    },
    /// Say whether an agent may do something, by which rule, and what would change it
    Can(can::Args),
    /// Give an agent a task that it only reads for, and say what the guard says to each call it tries
    Test(test::Args),
    /// Say how much of a notebook an agent reaches, and what lies just outside
    Reach(reach::Args),
    /// List the agents that come with Adjutant
    Templates,
    /// Make the agents that come with Adjutant as their templates are
    Resync {
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
    },
    /// Give an agent to another member, or to the workspace
    Transfer(transfer::Args),
    /// Let other members see and run an agent that is somebody's own
    Share(share::Args),
    /// Let other members decide what an agent asks
    Approvers(share::Args),
    /// Check agent files; nothing is loaded
    Validate(validate::Args),
    /// Copy agent files into the data directory, after showing what each could touch
    Import(import::Args),
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let looking = match args.command.unwrap_or(Command::Ls) {
        Command::Validate(args) => return validate::execute(context, &args),
        Command::Import(args) => return import::execute(context, args).await,
        Command::Test(args) => return test::execute(context, args).await,
        Command::Ls => Looking::All,
        Command::Show { name } => Looking::One(name),
        Command::New(args) => Looking::New(args),
        Command::Enable { name } => Looking::Switch(name, Switch::On),
        Command::Disable { name } => Looking::Switch(name, Switch::Off),
        Command::Edit(args) => Looking::Edit(args),
        Command::Rm(args) => Looking::Rm(args),
        Command::Export { name } => Looking::Export(name),
        Command::Can(args) => Looking::Can(args),
        Command::Reach(args) => Looking::Reach(args),
        Command::Templates => Looking::Templates,
        Command::Resync { dry_run } => Looking::Resync { dry_run },
        Command::Transfer(args) => Looking::Transfer(args),
        Command::Share(args) => Looking::People(args, Part::Shares),
        Command::Approvers(args) => Looking::People(args, Part::Decides),
    };
    let place = Place::find(context, "agents", Work::Looks).await?;
    let exit = match looking {
        Looking::All => ls(context, &place).await,
        Looking::One(name) => show(context, &place, &name).await,
        Looking::New(args) => new::execute(context, &place, &args).await,
        Looking::Switch(name, to) => tend::switch(context, &place, &name, to).await,
        Looking::Edit(args) => edit::execute(context, &place, &args).await,
        Looking::Rm(args) => tend::rm(context, &place, &args).await,
        Looking::Export(name) => export::execute(context, &place, &name).await,
        Looking::Can(args) => can::execute(context, &place, &args).await,
        Looking::Reach(args) => reach::execute(context, &place, &args).await,
        Looking::Templates => templates::ls(context, &place).await,
        Looking::Resync { dry_run } => templates::resync(context, &place, dry_run).await,
        Looking::Transfer(args) => transfer::execute(context, &place, &args).await,
        Looking::People(args, part) => share::execute(context, &place, &args, part).await,
    };
    place.close().await;
    exit
}

/// What needs the instance open.
enum Looking {
    All,
    One(String),
    New(new::Args),
    Switch(String, Switch),
    Edit(edit::Args),
    Rm(tend::Rm),
    Export(String),
    Can(can::Args),
    Reach(reach::Args),
    Templates,
    Resync { dry_run: bool },
    Transfer(transfer::Args),
    People(share::Args, Part),
}

fn config_of(row: &AgentRow) -> Result<AgentConfig, Failure> {
    let config: Result<AgentConfig, _> = serde_json::from_str(&row.spec);
    let mut config = config.map_err(|bad| {
        Failure::other(format!("The stored agent `{}` cannot be read: {bad}. It is not used.", row.slug))
    })?;
    config.is_active &= row.active;
    Ok(config)
}

/// An agent as it is answered.
async fn shown(instance: &Instance, row: &AgentRow) -> Result<Value, Failure> {
    let config = config_of(row)?;
    let pauses = instance.engine.pauses(row.workspace, &[(row, &config)]).await?;
    Ok(wire::agent(row, &config, pauses.into_iter().next().flatten()))
}

async fn ls(context: &Context, place: &Place) -> Result<Exit, Failure> {
    let document = match place {
        Place::Here(instance) => {
            let rows = instance.engine.store().agents(instance.home.workspace).await?;
            let mut data = Vec::with_capacity(rows.len());
            for row in &rows {
                data.push(shown(instance, row).await?);
            }
            json!({"data": data, "has_more": false})
        }
        Place::There(remote) => remote.get(&["agents"], &[]).await?,
    };
    context.print(&document, || {
        let row = |row: &Value| {
            let text = |field: &str| row[field].as_str().unwrap_or_default();
            let state = match row["state"]["paused_reason"].as_str() {
                None if row["is_active"] == true => "on",
                Some("budget" | "workspace_budget") => "held: budget",
                Some(_) | None => "off",
            };
            vec![
                text("slug").to_owned(),
                state.to_owned(),
                text("model").to_owned(),
                text("autonomy").to_owned(),
                cut(text("reach"), REACH),
                one_line(text("description")),
            ]
        };
        let rows = document["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let cells: Vec<_> = rows.iter().map(row).collect();
        table(&["AGENT", "STATE", "MODEL", "AUTONOMY", "MAY", "FOR"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

async fn show(context: &Context, place: &Place, name: &str) -> Result<Exit, Failure> {
    let document = match place {
        Place::Here(instance) => {
            let row = instance.engine.find_agent(instance.home.workspace, name).await?;
            shown(instance, &row).await?
        }
        Place::There(remote) => remote.get(&["agents", name], &[]).await?,
    };
    context.print(&document, || {
        let text = |field: &str| document[field].as_str().unwrap_or_default();
        let slug = context.terminal.out.bold(text("slug"));
        let mut lines = vec![format!("{slug}  {}  version {}", text("id"), document["version"])];
        match config_in(&document) {
            Some(config) => lines.extend(summary(&config, context.terminal.out)),
            None => lines.push("Its configuration is of another version of Adjutant; --json shows it.".to_owned()),
        }
        if !text("system_prompt").is_empty() {
            lines.extend([String::new(), clean(text("system_prompt"))]);
        }
        lines
    });
    Ok(Exit::Done)
}

/// The configuration in the public form of an agent, without what is only told about it.
fn config_in(document: &Value) -> Option<AgentConfig> {
    let mut written = document.clone();
    let told = [
        "id",
        "version",
        "created_at",
        "updated_at",
        "created_by",
        "state",
        "reach",
        "workspace_id",
        "owner",
        "owner_id",
    ];
    told.iter().for_each(|field| drop(written.as_object_mut().and_then(|fields| fields.remove(*field))));
    serde_json::from_value::<AgentSpec>(written).ok()?.complete().ok()
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
