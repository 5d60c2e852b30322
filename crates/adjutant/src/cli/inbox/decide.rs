//! The decisions: approve, edit, reject, respond, resolve. Each takes what it is told and records it; nothing is driven here.

use std::path::PathBuf;

use adjutant_core::content::Hash;
use adjutant_core::guard::rule::Rule;
use adjutant_core::run::command::{Command, Decide};
use adjutant_core::run::event::{Actor, Decision, DoubtOutcome, GrantScope};
use adjutant_core::run::state::State;
use adjutant_engine::store::row::ApprovalRow;
use serde_json::{Value, json};

use super::show::asked;
use crate::cli::output::document;
use crate::cli::output::{say, tell};
use crate::cli::rules::span;
use crate::cli::terminal::one_line;
use crate::cli::words::short;
use crate::cli::{Context, editor, find};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Scope {
    /// This call.
    Once,
    /// The same tool in the same place, for the rest of the run.
    Run,
    /// The same, in every run of the chat.
    Chat,
    /// The same, in every run of the agent.
    Always,
}

#[derive(Debug, clap::Args)]
pub(super) struct Approve {
    /// The items, or as much of their ids as no other has
    #[arg(required_unless_present = "all_like", value_name = "ID")]
    ids: Vec<String>,
    /// Every open item of the same agent and tool in the same folder as this one
    #[arg(long, value_name = "ID", conflicts_with = "ids")]
    all_like: Option<String>,
    /// How far the yes reaches; further than once it writes a rule (adjutant rules)
    #[arg(long = "for", visible_alias = "scope", value_enum, default_value = "once")]
    scope: Scope,
    /// How long a yes lasts that reaches further than once, such as 7d; 30d at the most
    #[arg(long, value_name = "SPAN")]
    expires_in: Option<String>,
    /// A word to the agent
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Edit {
    /// The item, or as much of its id as no other has
    id: String,
    /// The arguments to run instead, a JSON object; without it your editor opens
    #[arg(long, value_name = "JSON", conflicts_with = "file")]
    arguments: Option<String>,
    /// A file with the arguments to run instead
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// A word to the agent
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Reject {
    /// The items, or as much of their ids as no other has
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    /// Why, for the agent
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Also end the run
    #[arg(long)]
    stop: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Respond {
    /// The item, or as much of its id as no other has
    id: String,
    /// What the agent is told in place of a result
    #[arg(short, long, value_name = "TEXT")]
    message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Outcome {
    /// It happened.
    Happened,
    /// It did not: run it.
    Run,
    /// Leave it.
    Abandon,
}

#[derive(Debug, clap::Args)]
pub(super) struct Resolve {
    /// The item, or as much of its id as no other has
    id: String,
    /// What became of it
    #[arg(value_enum)]
    outcome: Outcome,
    /// Its result, if it happened
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
}

fn decide(instance: &Instance, row: &ApprovalRow, decision: Decision) -> Decide {
    let by = Actor::User(instance.home.user);
    Decide {
        approval: row.id,
        decision,
        scope: GrantScope::Once,
        lasts: None,
        by,
        arguments: None,
        message: None,
        fingerprint: None,
    }
}

pub(super) async fn approve(context: &Context, instance: &Instance, args: Approve) -> Result<Exit, Failure> {
    let scope = match args.scope {
        Scope::Once => GrantScope::Once,
        Scope::Run => GrantScope::Run,
        Scope::Chat => GrantScope::Chat,
        Scope::Always => GrantScope::Always,
    };
    let lasts = args.expires_in.as_deref().map(span).transpose()?;
    let (rows, prints) = match &args.all_like {
        Some(id) => alike(instance, id).await?,
        None => {
            let rows = find_all(instance, &args.ids).await?;
            let prints = rows.iter().map(|_| None).collect();
            (rows, prints)
        }
    };
    let yes = |(row, fingerprint): (&ApprovalRow, Option<Hash>)| {
        let message = args.message.clone();
        Decide { scope, lasts, message, fingerprint, ..decide(instance, row, Decision::Approve) }
    };
    let asked: Vec<_> = rows.iter().zip(prints).map(yes).collect();
    record_all(context, instance, &rows, asked).await
}

/// What is like one item, each with what it is about at this moment: a yes to many is a yes to what was found, not to what
/// takes its place.
async fn alike(instance: &Instance, id: &str) -> Result<(Vec<ApprovalRow>, Vec<Option<Hash>>), Failure> {
    let row = find::approval(instance, id).await?;
    let found = instance.engine.alike(instance.home.workspace, row.id).await?;
    if found.is_empty() {
        return Err(Failure::usage(format!("Nothing that waits is like {}. Nothing was recorded.", row.id)));
    }
    Ok(found.into_iter().map(|(row, asked)| (row, Some(asked.fingerprint))).unzip())
}

pub(super) async fn reject(context: &Context, instance: &Instance, args: Reject) -> Result<Exit, Failure> {
    let decision = if args.stop { Decision::Stop } else { Decision::Reject };
    let rows = find_all(instance, &args.ids).await?;
    let asked: Vec<_> =
        rows.iter().map(|row| Decide { message: args.message.clone(), ..decide(instance, row, decision) }).collect();
    record_all(context, instance, &rows, asked).await
}

pub(super) async fn respond(context: &Context, instance: &Instance, args: Respond) -> Result<Exit, Failure> {
    let rows = find_all(instance, &[args.id]).await?;
    let asked: Vec<_> = rows
        .iter()
        .map(|row| Decide { message: Some(args.message.clone()), ..decide(instance, row, Decision::Respond) })
        .collect();
    record_all(context, instance, &rows, asked).await
}

pub(super) async fn edit(context: &Context, instance: &Instance, args: Edit) -> Result<Exit, Failure> {
    let row = find::approval(instance, &args.id).await?;
    let (asked, texts) = asked(instance, &row).await?;
    let Some(asked) = asked else {
        return Err(Failure::usage(format!("{} has no arguments to edit. Nothing was recorded.", row.id)));
    };
    let arguments = match (args.arguments, args.file) {
        (Some(text), _) => text,
        (None, Some(path)) => std::fs::read_to_string(&path).map_err(|error| {
            Failure::usage(format!("{} cannot be read: {error}. Nothing was recorded.", path.display()))
        })?,
        (None, None) => match editor::edit_arguments(&texts.of(&asked.arguments), &context.env) {
            Ok(Some(edited)) => edited,
            Ok(None) => return Err(Failure::usage("Nothing was changed, so nothing was recorded.")),
            Err(why) => {
                return Err(
                    Failure::usage(format!("{why} Nothing was recorded.")).hint("give them with --arguments JSON")
                );
            }
        },
    };
    let fingerprint = Some(asked.fingerprint);
    let edited = Decide {
        arguments: Some(arguments),
        message: args.message,
        fingerprint,
        ..decide(instance, &row, Decision::Edit)
    };
    record_all(context, instance, &[row], vec![edited]).await
}

pub(super) async fn resolve(context: &Context, instance: &Instance, args: Resolve) -> Result<Exit, Failure> {
    let row = find::approval(instance, &args.id).await?;
    let Some(call) = row.call.clone() else {
        return Err(Failure::usage(format!("{} is about no call. Nothing was recorded.", row.id)));
    };
    let outcome = match args.outcome {
        Outcome::Happened => DoubtOutcome::Happened,
        Outcome::Run => DoubtOutcome::Run,
        Outcome::Abandon => DoubtOutcome::Abandon,
    };
    let command = Command::Resolve { call, outcome, result: args.result, by: Actor::User(instance.home.user) };
    let state = instance.engine.command(instance.home.workspace, row.run, &command).await?;
    if context.json {
        document(&told(&row, "resolve", &state));
    } else {
        say(&line(&row, "resolved", context));
        hint(&row);
    }
    Ok(Exit::Done)
}

/// All the items that are meant, before any of them is decided.
async fn find_all(instance: &Instance, ids: &[String]) -> Result<Vec<ApprovalRow>, Failure> {
    let mut rows = Vec::new();
    for id in ids {
        rows.push(find::approval(instance, id).await?);
    }
    Ok(rows)
}

async fn record_all(
    context: &Context,
    instance: &Instance,
    rows: &[ApprovalRow],
    asked: Vec<Decide>,
) -> Result<Exit, Failure> {
    let mut documents = Vec::new();
    for (row, decide) in rows.iter().zip(asked) {
        let (word, past) = match decide.decision {
            Decision::Approve => ("approve", "approved"),
            Decision::Edit => ("edit", "approved with changes"),
            Decision::Respond => ("respond", "answered"),
            Decision::Reject => ("reject", "rejected"),
            Decision::Stop => ("stop", "stopped"),
        };
        let state = instance.engine.decide(instance.home.workspace, decide).await?;
        let rule = written(&state, row);
        let mut document = told(row, word, &state);
        if let Some(rule) = rule {
            document["rule"] = json!({"id": rule.id, "says": rule.in_words(), "expires_at": rule.expires_at});
        }
        documents.push(document);
        if !context.json {
            say(&line(row, past, context));
            if let Some(rule) = rule {
                say(&format!("  rule: {}  ({})", one_line(&rule.in_words()), short(&rule.id)));
            }
        }
    }
    if context.json {
        document(&json!({"data": documents}));
    } else if let Some(row) = rows.last() {
        hint(row);
    }
    Ok(Exit::Done)
}

/// The rule that a decision wrote.
fn written<'a>(state: &'a State, row: &ApprovalRow) -> Option<&'a Rule> {
    let (decided, _) = state.approvals.get(&row.id)?.decided.as_ref()?;
    decided.rule.as_deref()
}

fn told(row: &ApprovalRow, decision: &str, state: &State) -> Value {
    json!({"id": row.id, "run_id": row.run, "decision": decision, "run_status": state.status()})
}

fn line(row: &ApprovalRow, past: &str, context: &Context) -> String {
    let card: Option<adjutant_engine::Card> = serde_json::from_str(&row.card).ok();
    let what = card.map(|card| one_line(&card.summary)).unwrap_or_default();
    context.terminal.out.good(&format!("✔ {past}: {what}  ({})", short(&row.id)))
}

fn hint(row: &ApprovalRow) {
    tell(&format!("hint: adjutant runs watch {} lets the run go on here", short(&row.run)));
}
