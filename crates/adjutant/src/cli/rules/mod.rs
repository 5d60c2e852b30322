//! `rules`: what a person said once and for longer. A rule counts from the next judgement on, also for runs that go on.

mod add;

use std::collections::BTreeMap;

use adjutant_core::guard::rule::{Origin, Rule};
use serde_json::{Value, json};

pub(super) use add::span;

use super::place::{Place, Work};
use super::remote::Remote;
use super::terminal::{Style, clean, cut, one_line, table};
use super::words::{ours, short, until};
use super::{Context, find};
use crate::failure::{Exit, Failure};

/// Characters of a rule in the list.
const SAYS: usize = 70;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the rules that count
    Ls {
        /// Also those that have ended
        #[arg(long)]
        all: bool,
    },
    /// Show one rule in full
    Show {
        /// The rule, or as much of its id as no other has
        id: String,
    },
    /// Add a rule, if its examples hold
    Add(Box<add::Args>),
    /// Remove rules
    Rm {
        /// The rules, or as much of their ids as no other has
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
    },
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "rules", Work::Looks).await?;
    let exit = match args.command.unwrap_or(Command::Ls { all: false }) {
        Command::Ls { all } => ls(context, &place, all).await,
        Command::Show { id } => show(context, &place, &id).await,
        Command::Add(args) => add::execute(context, &place, *args).await,
        Command::Rm { ids } => rm(context, &place, &ids).await,
    };
    place.close().await;
    exit
}

/// A rule as its stored form, in one line too, and whether it counts.
fn wire(rule: &Rule, live: bool) -> Value {
    let mut shown = serde_json::to_value(rule).unwrap_or_default();
    shown["says"] = json!(rule.in_words());
    shown["live"] = json!(live);
    shown
}

/// Every rule, oldest first, and whether it counts.
async fn every(place: &Place) -> Result<Vec<(Rule, bool)>, Failure> {
    match place {
        Place::Here(instance) => {
            let mut rules = Vec::new();
            for rule in instance.engine.rules(instance.home.workspace).await? {
                let live = instance.engine.rule_counts(instance.home.workspace, &rule).await?;
                rules.push((rule, live));
            }
            Ok(rules)
        }
        Place::There(remote) => {
            let page = remote.get(&["rules"], &[]).await?;
            let rows = page["data"].as_array().cloned().unwrap_or_default();
            rows.into_iter().map(|row| Ok((read(remote, row.clone())?, row["live"] == true))).collect()
        }
    }
}

/// A rule in its public form, without what is only told about it.
fn read(remote: &Remote, mut document: Value) -> Result<Rule, Failure> {
    let told = ["workspace_id", "says", "live"];
    told.iter().for_each(|field| drop(document.as_object_mut().and_then(|fields| fields.remove(*field))));
    remote.read(document)
}

/// The rule a person means, and whether it counts.
async fn one(place: &Place, text: &str) -> Result<(Rule, bool), Failure> {
    find::rule(every(place).await?, text)
}

/// The short names of agents.
async fn agent_names(place: &Place) -> Result<BTreeMap<String, String>, Failure> {
    match place {
        Place::Here(instance) => {
            let rows = instance.engine.store().agents(instance.home.workspace).await?;
            Ok(rows.into_iter().map(|row| (row.id.to_string(), row.slug)).collect())
        }
        Place::There(remote) => {
            let page = remote.get(&["agents"], &[]).await?;
            let rows = page["data"].as_array().cloned().unwrap_or_default();
            let name = |row: Value| Some((row["id"].as_str()?.to_owned(), row["slug"].as_str()?.to_owned()));
            Ok(rows.into_iter().filter_map(name).collect())
        }
    }
}

async fn ls(context: &Context, place: &Place, all: bool) -> Result<Exit, Failure> {
    let mut rules = every(place).await?;
    rules.retain(|(_, live)| *live || all);
    let agents = agent_names(place).await?;
    let agent_of = |rule: &Rule| match rule.agent {
        None => "*".to_owned(),
        Some(id) => agents.get(&id.to_string()).cloned().unwrap_or_else(|| short(&id)),
    };
    let data: Vec<_> = rules.iter().map(|(rule, live)| wire(rule, *live)).collect();
    context.print(&json!({"data": data, "has_more": false}), || {
        if rules.is_empty() {
            return vec![ours(
                "There are no rules. Approve for longer (inbox approve --for always), or: adjutant rules add --help",
            )];
        }
        let row = |(rule, live): &(Rule, bool)| {
            let ends = match rule.expires_at {
                _ if !live => "ended".to_owned(),
                None => "never".to_owned(),
                Some(at) => until(&at.to_string()),
            };
            let from = match rule.origin {
                Origin::Person => "person",
                Origin::Approval(_) => "approval",
            };
            vec![short(&rule.id), agent_of(rule), from.to_owned(), ends, cut(&one_line(&rule.in_words()), SAYS)]
        };
        let cells: Vec<_> = rules.iter().map(row).collect();
        table(&["ID", "AGENT", "FROM", "ENDS", "SAYS"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

async fn show(context: &Context, place: &Place, id: &str) -> Result<Exit, Failure> {
    let (rule, live) = one(place, id).await?;
    context.print(&wire(&rule, live), || lines(&rule, live, context.terminal.out));
    Ok(Exit::Done)
}

fn lines(rule: &Rule, live: bool, style: Style) -> Vec<String> {
    let origin = match rule.origin {
        Origin::Person => "a person wrote it".to_owned(),
        Origin::Approval(id) => format!("a yes to {id} that lasts"),
    };
    let mut lines = vec![
        format!("{}  {}", style.bold(&rule.id.to_string()), if live { "counts" } else { "ended" }),
        one_line(&rule.in_words()),
        style.dim(&format!("{origin} · {} · {}", rule.owner, rule.created_at)),
    ];
    if !rule.note.is_empty() {
        lines.push(clean(&rule.note));
    }
    lines.push(String::new());
    lines.push(clean(&serde_json::to_string_pretty(rule).unwrap_or_default()));
    lines
}

async fn rm(context: &Context, place: &Place, ids: &[String]) -> Result<Exit, Failure> {
    let mut rules = Vec::new();
    for id in ids {
        rules.push(one(place, id).await?.0);
    }
    for rule in &rules {
        match place {
            Place::Here(instance) => {
                instance.engine.remove_rule(instance.home.workspace, instance.home.user, rule.id).await?;
            }
            Place::There(remote) => {
                remote.delete(&["rules", &rule.id.to_string()]).await?;
            }
        }
    }
    let data: Vec<_> = rules.iter().map(|rule| json!({"id": rule.id, "removed": true})).collect();
    context.print(&json!({"data": data}), || {
        let line = |rule: &Rule| format!("✔ removed: {}  ({})", one_line(&rule.in_words()), short(&rule.id));
        rules.iter().map(|rule| context.terminal.out.good(&line(rule))).collect()
    });
    Ok(Exit::Done)
}
