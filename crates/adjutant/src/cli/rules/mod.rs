//! `rules`: what a person said once and for longer. A rule counts from the next judgement on, also for runs that go on.

mod add;

use adjutant_core::guard::rule::{Origin, Rule};
use serde_json::{Value, json};

pub(super) use add::span;

use super::terminal::{Style, clean, cut, one_line, table};
use super::words::{self, short};
use super::{Context, find};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

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
    let instance = context.open("rules").await?;
    let exit = match args.command.unwrap_or(Command::Ls { all: false }) {
        Command::Ls { all } => ls(context, &instance, all).await,
        Command::Show { id } => show(context, &instance, &id).await,
        Command::Add(args) => add::execute(context, &instance, *args).await,
        Command::Rm { ids } => rm(context, &instance, &ids).await,
    };
    instance.close().await;
    exit
}

/// A rule as its stored form, in one line too, and whether it counts.
fn wire(rule: &Rule, live: bool) -> Value {
    let mut shown = serde_json::to_value(rule).unwrap_or_default();
    shown["says"] = json!(rule.in_words());
    shown["live"] = json!(live);
    shown
}

async fn ls(context: &Context, instance: &Instance, all: bool) -> Result<Exit, Failure> {
    let mut rules = Vec::new();
    for rule in instance.engine.rules(instance.home.workspace).await? {
        let live = instance.engine.rule_counts(instance.home.workspace, &rule).await?;
        if live || all {
            rules.push((rule, live));
        }
    }
    let agents = instance.engine.store().agents(instance.home.workspace).await?;
    let agent_of = |rule: &Rule| match rule.agent {
        None => "*".to_owned(),
        Some(id) => agents.iter().find(|row| row.id == id).map_or_else(|| short(&id), |row| row.slug.clone()),
    };
    let data: Vec<_> = rules.iter().map(|(rule, live)| wire(rule, *live)).collect();
    let now = instance.engine.env().now();
    context.print(&json!({"data": data, "has_more": false}), || {
        if rules.is_empty() {
            return vec![
                "There are no rules. Approve for longer (inbox approve --for always), or: adjutant rules add --help"
                    .to_owned(),
            ];
        }
        let row = |(rule, live): &(Rule, bool)| {
            let ends = match rule.expires_at {
                _ if !live => "ended".to_owned(),
                None => "never".to_owned(),
                Some(at) => format!("in {}", words::span(at.since(now))),
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

async fn show(context: &Context, instance: &Instance, id: &str) -> Result<Exit, Failure> {
    let rule = find::rule(instance, id).await?;
    let live = instance.engine.rule_counts(instance.home.workspace, &rule).await?;
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

async fn rm(context: &Context, instance: &Instance, ids: &[String]) -> Result<Exit, Failure> {
    let mut rules = Vec::new();
    for id in ids {
        rules.push(find::rule(instance, id).await?);
    }
    for rule in &rules {
        instance.engine.remove_rule(instance.home.workspace, instance.home.user, rule.id).await?;
    }
    let data: Vec<_> = rules.iter().map(|rule| json!({"id": rule.id, "removed": true})).collect();
    context.print(&json!({"data": data}), || {
        let line = |rule: &Rule| format!("✔ removed: {}  ({})", one_line(&rule.in_words()), short(&rule.id));
        rules.iter().map(|rule| context.terminal.out.good(&line(rule))).collect()
    });
    Ok(Exit::Done)
}
