//! `agents test`: a task for an agent that only reads. Each call it tries is shown with what the guard says to it.

use adjutant_engine::Wish;
use serde_json::{Value, json};

use super::can::asked;
use crate::cli::output::say;
use crate::cli::place::{Place, Work};
use crate::cli::terminal::{one_line, table};
use crate::cli::words::target;
use crate::cli::{Context, run};
use crate::failure::{Exit, Failure};

/// The rule that answers what a run that only reads does not do.
const ONLY_READS: &str = "dry_run";

#[derive(Debug, clap::Args)]
#[command(after_help = "adjutant agents test guide \"tidy the welcome notes\"")]
pub(super) struct Args {
    /// The agent's short name or id
    agent: String,
    /// What it shall try
    task: String,
    /// Use this model instead of the agent's, as in demo/guide
    #[arg(long)]
    model: Option<String>,
    /// The notebook to work in: its id or short name
    #[arg(long, value_name = "NOTEBOOK")]
    notebook: Option<String>,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "agents", Work::Drives).await?;
    let exit = tried(context, &place, args).await;
    place.close().await;
    exit
}

async fn tried(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let words = vec![args.agent.clone(), args.task];
    let (run, exit) = run::stay(context, place, &run::Args::dry(words, args.model, args.notebook.clone())).await?;
    let report = match place {
        Place::Here(instance) => {
            let id = run.parse().map_err(|_| Failure::not_found(format!("There is no run `{run}`.")))?;
            instance.engine.report(instance.home.workspace, id).await?.document()
        }
        Place::There(remote) => remote.get(&["runs", &run], &[]).await?,
    };
    let mut calls = Vec::new();
    for action in report["actions"].as_array().into_iter().flatten() {
        calls.push(judged(place, &args.agent, args.notebook.as_deref(), action).await?);
    }
    if context.json {
        // A line like those of the run before it.
        say(&json!({"event": "verdicts", "id": null, "data": {"run_id": run, "calls": calls}}).to_string());
    } else {
        lines(context, &calls).iter().for_each(|line| say(line));
    }
    Ok(exit)
}

/// A call, and what the guard says to it: also to what this run does not do because it only reads.
async fn judged(place: &Place, agent: &str, notebook: Option<&str>, action: &Value) -> Result<Value, Failure> {
    let word = |field: &str| action[field].as_str().unwrap_or_default();
    let (mut verdict, mut rule) = (word("verdict").to_owned(), word("rule").to_owned());
    if rule == ONLY_READS
        && let Ok(arguments) = adjutant_core::guard::arguments::parse(word("arguments"))
    {
        let wish = Wish::Call { tool: word("tool_name").to_owned(), arguments };
        let said = asked(place, agent, notebook, &wish).await?;
        let text = |field: &str| said[field].as_str().unwrap_or_default().to_owned();
        (verdict, rule) = (text("verdict"), text("rule"));
    }
    let ran = word("rule") != ONLY_READS && action["is_error"] == false;
    Ok(json!({"tool_name": word("tool_name"), "target": target(word("arguments")), "verdict": verdict, "rule": rule,
        "ran": ran}))
}

fn lines(context: &Context, calls: &[Value]) -> Vec<String> {
    if calls.is_empty() {
        return vec!["It called no tool.".to_owned()];
    }
    let row = |call: &Value| {
        let word = |field: &str| one_line(call[field].as_str().unwrap_or_default());
        let ran = if call["ran"] == true { "yes" } else { "no" };
        vec![word("tool_name"), word("target"), word("verdict"), word("rule"), ran.to_owned()]
    };
    let cells: Vec<_> = calls.iter().map(row).collect();
    table(&["TOOL", "TARGET", "GUARD SAYS", "RULE", "RAN"], &cells, context.terminal.out)
}
