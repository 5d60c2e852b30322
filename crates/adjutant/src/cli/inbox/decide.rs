//! The decisions: approve, edit, reject, respond, resolve. Each takes what it is told and records it; nothing is driven here.

use std::path::PathBuf;

use adjutant_core::content::Hash;
use adjutant_core::guard::redact::was_hidden;
use adjutant_core::id::ApprovalId;
use adjutant_core::run::command::{Command, Decide};
use adjutant_core::run::event::{Actor, Decision, DoubtOutcome, GrantScope};
use serde_json::{Value, json};

use super::show::{item, lines, revealed, rule_lines, shown};
use crate::cli::output::{document, say, tell};
use crate::cli::place::Place;
use crate::cli::remote::Remote;
use crate::cli::rules::span;
use crate::cli::terminal::one_line;
use crate::cli::words::{ours, short};
use crate::cli::{Context, editor, find, prompt};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::Secrets;

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

/// A decision about one item, wherever the item is.
struct Order {
    /// The item in its public form.
    item: Value,
    decision: Decision,
    scope: GrantScope,
    /// How long a yes lasts, as it was written.
    expires_in: Option<String>,
    message: Option<String>,
    arguments: Option<String>,
    /// Whether it is about what was just read, and about nothing that takes its place.
    bound: bool,
}

impl Order {
    const fn new(item: Value, decision: Decision, message: Option<String>) -> Self {
        Self { item, decision, scope: GrantScope::Once, expires_in: None, message, arguments: None, bound: false }
    }

    fn word(&self, field: &str) -> &str {
        self.item[field].as_str().unwrap_or_default()
    }

    /// Records it in the log of the run here. What the run is doing then, and the item as it stands.
    async fn here(&self, instance: &Instance) -> Result<(Option<String>, Value), Failure> {
        let approval: ApprovalId = self.word("id").parse().map_err(|_| find::no_approval(self.word("id")))?;
        let fingerprint: Option<Hash> = serde_json::from_value(self.item["fingerprint"].clone()).unwrap_or_default();
        let decide = Decide {
            approval,
            decision: self.decision,
            scope: self.scope,
            lasts: self.expires_in.as_deref().map(span).transpose()?,
            by: Actor::User(instance.home.user),
            arguments: self.arguments.clone(),
            message: self.message.clone(),
            fingerprint: fingerprint.filter(|_| self.bound),
        };
        let state = instance.engine.decide(instance.home.workspace, decide).await?;
        let row = find::approval(instance, self.word("id")).await?;
        Ok((Some(state.status().word().to_owned()), shown(instance, &row, Secrets::Hidden).await?))
    }

    /// Sends it to a server.
    async fn there(&self, remote: &Remote) -> Result<(Option<String>, Value), Failure> {
        let mut body = json!({"decision": self.decision, "message": self.message});
        if self.scope != GrantScope::Once {
            body["scope"] = json!(self.scope);
            body["expires_in"] = json!(self.expires_in);
        }
        if let Some(arguments) = &self.arguments {
            let read: Result<Value, _> = serde_json::from_str(arguments);
            body["arguments"] =
                read.map_err(|why| Failure::usage(format!("The arguments are no JSON: {why}. Nothing was recorded.")))?;
        }
        if self.bound {
            body["fingerprint"] = self.item["fingerprint"].clone();
        }
        let decided = remote.post(&["approvals", self.word("id"), "decision"], &body).await?;
        Ok((remote.status(self.word("run_id")).await?, decided))
    }
}

pub(super) async fn approve(context: &Context, place: &Place, args: Approve) -> Result<Exit, Failure> {
    let scope = match args.scope {
        Scope::Once => GrantScope::Once,
        Scope::Run => GrantScope::Run,
        Scope::Chat => GrantScope::Chat,
        Scope::Always => GrantScope::Always,
    };
    let (items, bound) = match &args.all_like {
        // A yes to many is a yes to what was found, not to what takes its place.
        Some(id) => (alike(place, id).await?, true),
        None => (find_all(place, &args.ids).await?, false),
    };
    if !saw(context, &items, "Approve").await {
        return Ok(Exit::Rejected);
    }
    // A yes at a terminal is a yes to what was on the screen.
    let bound = bound || context.terminal.interactive;
    let yes = |item| Order {
        scope,
        expires_in: args.expires_in.clone(),
        bound,
        ..Order::new(item, Decision::Approve, args.message.clone())
    };
    record_all(context, place, items.into_iter().map(yes).collect()).await
}

/// Shows a person at a terminal the whole of what they are about to let happen, and asks whether they mean it (rule A3).
/// Without a terminal there is nobody to show it to: a program has read the item, or takes what comes.
async fn saw(context: &Context, items: &[Value], verb: &str) -> bool {
    if !context.terminal.interactive {
        return true;
    }
    for item in items {
        lines(item, context.terminal.err).iter().for_each(|line| tell(line));
        tell("");
    }
    let which = if items.len() == 1 { "it".to_owned() } else { format!("these {}", items.len()) };
    let meant = prompt::confirm(&format!("{verb} {which}?")).await;
    if !meant {
        tell("Nothing was recorded.");
    }
    meant
}

/// What is like one item, each with what it is about at this moment.
async fn alike(place: &Place, id: &str) -> Result<Vec<Value>, Failure> {
    let model = item(place, id).await?;
    let id = model["id"].as_str().unwrap_or_default().to_owned();
    let ids: Vec<String> = match place {
        Place::Here(instance) => {
            let approval = id.parse().map_err(|_| find::no_approval(&id))?;
            let found = instance.engine.alike(instance.home.workspace, approval).await?;
            found.into_iter().map(|(row, _)| row.id.to_string()).collect()
        }
        Place::There(remote) => {
            let agent = model["agent_id"].as_str().unwrap_or_default();
            let query = [("status", "pending"), ("agent", agent), ("limit", "200")];
            let page = remote.get(&["approvals"], &query).await?;
            let rows = page["data"].as_array().cloned().unwrap_or_default();
            let same = |row: &&Value| ["tool_name", "kind"].iter().all(|field| row[*field] == model[*field]);
            rows.iter().filter(same).filter_map(|row| row["id"].as_str().map(str::to_owned)).collect()
        }
    };
    let mut items = find_all(place, &ids).await?;
    items.retain(|item| item["place"].is_object() && item["place"] == model["place"]);
    if items.is_empty() {
        return Err(Failure::usage(format!("Nothing that waits is like {id}. Nothing was recorded.")));
    }
    Ok(items)
}

pub(super) async fn reject(context: &Context, place: &Place, args: Reject) -> Result<Exit, Failure> {
    let decision = if args.stop { Decision::Stop } else { Decision::Reject };
    let items = find_all(place, &args.ids).await?;
    let orders = items.into_iter().map(|item| Order::new(item, decision, args.message.clone()));
    record_all(context, place, orders.collect()).await
}

pub(super) async fn respond(context: &Context, place: &Place, args: Respond) -> Result<Exit, Failure> {
    let item = item(place, &args.id).await?;
    record_all(context, place, vec![Order::new(item, Decision::Respond, Some(args.message))]).await
}

pub(super) async fn edit(context: &Context, place: &Place, args: Edit) -> Result<Exit, Failure> {
    let mut item = item(place, &args.id).await?;
    if item["hidden"] == true && args.arguments.is_none() && args.file.is_none() {
        // Whoever changes it in an editor has to see it.
        item = revealed(place, &args.id).await?;
    }
    if item["kind"] == "budget"
        && let Some(arguments) = &args.arguments
    {
        let arguments = Some(arguments.clone());
        let order = Order { arguments, ..Order::new(item, Decision::Edit, args.message) };
        return record_all(context, place, vec![order]).await;
    }
    if item["arguments"].is_null() {
        let id = item["id"].as_str().unwrap_or_default();
        return Err(Failure::usage(format!("{id} has no arguments to edit. Nothing was recorded.")));
    }
    let arguments = match (args.arguments, args.file) {
        (Some(text), _) => text,
        (None, Some(path)) => std::fs::read_to_string(&path).map_err(|error| {
            Failure::usage(format!("{} cannot be read: {error}. Nothing was recorded.", path.display()))
        })?,
        (None, None) => match editor::edit_arguments(&item["arguments"].to_string(), &context.env) {
            Ok(Some(edited)) => edited,
            Ok(None) => return Err(Failure::usage("Nothing was changed, so nothing was recorded.")),
            Err(why) => {
                return Err(
                    Failure::usage(format!("{why} Nothing was recorded.")).hint("give them with --arguments JSON")
                );
            }
        },
    };
    if was_hidden(&arguments) {
        let message = "The arguments hold the mark of a secret that was hidden. Nothing was recorded.";
        return Err(Failure::usage(message).hint("copy them from adjutant inbox show --reveal"));
    }
    let order = Order { arguments: Some(arguments), bound: true, ..Order::new(item, Decision::Edit, args.message) };
    record_all(context, place, vec![order]).await
}

pub(super) async fn resolve(context: &Context, place: &Place, args: Resolve) -> Result<Exit, Failure> {
    let item = item(place, &args.id).await?;
    let word = |field: &str| item[field].as_str().unwrap_or_default();
    let outcome = match args.outcome {
        Outcome::Happened => DoubtOutcome::Happened,
        Outcome::Run => DoubtOutcome::Run,
        Outcome::Abandon => DoubtOutcome::Abandon,
    };
    if outcome == DoubtOutcome::Run && !saw(context, std::slice::from_ref(&item), "Run").await {
        return Ok(Exit::Rejected);
    }
    let status = match place {
        Place::Here(instance) => {
            let (Ok(call), Ok(run)) = (serde_json::from_value(item["call_id"].clone()), word("run_id").parse()) else {
                return Err(Failure::usage(format!("{} is about no call. Nothing was recorded.", word("id"))));
            };
            let by = Actor::User(instance.home.user);
            let command = Command::Resolve { call, outcome, result: args.result, by };
            Some(instance.engine.command(instance.home.workspace, run, &command).await?.status().word().to_owned())
        }
        Place::There(remote) => {
            let body = json!({"decision": outcome, "message": args.result});
            remote.post(&["approvals", word("id"), "decision"], &body).await?;
            remote.status(word("run_id")).await?
        }
    };
    if context.json {
        document(&told(&item, "resolve", status.as_deref()));
    } else {
        say(&line(&item, "resolved", context));
        hint(&item, place, status.as_deref());
    }
    Ok(Exit::Done)
}

/// All the items that are meant, before any of them is decided.
async fn find_all(place: &Place, ids: &[String]) -> Result<Vec<Value>, Failure> {
    let mut items = Vec::new();
    for id in ids {
        items.push(item(place, id).await?);
    }
    Ok(items)
}

async fn record_all(context: &Context, place: &Place, orders: Vec<Order>) -> Result<Exit, Failure> {
    let (mut documents, mut last) = (Vec::new(), None);
    for order in &orders {
        let (word, past) = match order.decision {
            Decision::Approve => ("approve", "approved"),
            Decision::Edit => ("edit", "approved with changes"),
            Decision::Respond => ("respond", "answered"),
            Decision::Reject => ("reject", "rejected"),
            Decision::Stop => ("stop", "stopped"),
        };
        let (status, now) = match place {
            Place::Here(instance) => order.here(instance).await?,
            Place::There(remote) => order.there(remote).await?,
        };
        if !context.json {
            say(&line(&order.item, past, context));
            rule_lines(&now).iter().for_each(|line| say(line));
        }
        let mut document = told(&order.item, word, status.as_deref());
        if !now["rule_written"].is_null() {
            document["rule"] = now["rule_written"].clone();
        }
        documents.push(document);
        last = status;
    }
    if context.json {
        document(&json!({"data": documents}));
    } else if let Some(order) = orders.last() {
        hint(&order.item, place, last.as_deref());
    }
    Ok(Exit::Done)
}

fn told(item: &Value, decision: &str, status: Option<&str>) -> Value {
    json!({"id": item["id"], "run_id": item["run_id"], "decision": decision, "run_status": status})
}

fn line(item: &Value, past: &str, context: &Context) -> String {
    let word = |field: &str| item[field].as_str().unwrap_or_default();
    context.terminal.out.good(&format!("✔ {past}: {}  ({})", one_line(word("summary")), short(&word("id"))))
}

/// How to go on with the run, for whoever was told what it is doing.
fn hint(item: &Value, place: &Place, status: Option<&str>) {
    if status.is_none() {
        return;
    }
    let run = short(&item["run_id"].as_str().unwrap_or_default());
    tell(&ours(&match place {
        Place::Here(_) => format!("hint: adjutant runs watch {run} lets the run go on here"),
        Place::There(_) => format!("hint: adjutant runs watch {run} follows the run"),
    }));
}
