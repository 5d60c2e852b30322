//! `runs ls`: runs, newest first.

use std::collections::BTreeMap;

use adjutant_core::id::AgentId;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{RunFilter, RunRow};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::terminal::{Style, cut, one_line, table};
use crate::cli::words::{ago, ours, short};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::{suggest, wire};

/// Characters of a run's message in the list.
const TITLE: usize = 44;
/// Runs of a list where nobody says how many.
const RUNS: u32 = 20;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only in this status, as in WAITING_APPROVAL
    #[arg(long)]
    status: Option<String>,
    /// Only made from this run: its forks, its edits, and what went on after it at a limit
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    /// How many
    #[arg(long, default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Also those that an edit replaced
    #[arg(long)]
    all: bool,
}

impl Default for Args {
    fn default() -> Self {
        Self { agent: None, status: None, parent: None, limit: RUNS, all: false }
    }
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let status = args.status.as_deref().map(status).transpose()?;
    let document = match place {
        Place::Here(instance) => here(instance, &args, status).await?,
        Place::There(remote) => {
            let (limit, all) = (args.limit.min(200).to_string(), args.all.to_string());
            let mut query = vec![("limit", limit.as_str()), ("superseded", all.as_str())];
            query.extend(args.agent.as_deref().map(|agent| ("agent", agent)));
            query.extend(status.as_deref().map(|status| ("status", status)));
            let parent = match &args.parent {
                Some(run) => Some(remote.run_id(run).await?),
                None => None,
            };
            query.extend(parent.as_deref().map(|run| ("parent", run)));
            remote.get(&["runs"], &query).await?
        }
    };
    context.print(&document, || lines(&document, context.terminal.out));
    Ok(Exit::Done)
}

async fn here(instance: &Instance, args: &Args, status: Option<String>) -> Result<Value, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let agent = match &args.agent {
        Some(name) => Some(engine.find_agent(workspace, name).await?.id),
        None => None,
    };
    let parent = match &args.parent {
        Some(run) => Some(find::run(instance, run).await?),
        None => None,
    };
    let filter = RunFilter { agent, status, parent, superseded: args.all, ..RunFilter::default() };
    // One more than is shown tells whether there are more.
    let mut rows = engine.store().runs(workspace, &filter, args.limit + 1).await?;
    let more = rows.len() > args.limit as usize;
    rows.truncate(args.limit as usize);
    let agents: BTreeMap<AgentId, String> =
        engine.store().agents(workspace).await?.into_iter().map(|row| (row.id, row.slug)).collect();
    let name = |row: &RunRow| agents.get(&row.agent).cloned().unwrap_or_default();
    let data: Vec<_> = rows.iter().map(|row| wire::run(row, &name(row))).collect();
    Ok(json!({"data": data, "has_more": more}))
}

fn lines(document: &Value, style: Style) -> Vec<String> {
    let rows = document["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return vec![ours("No runs yet.  adjutant run guide \"tidy the welcome notes\"")];
    }
    let row = |row: &Value| {
        let word = |field: &str| row[field].as_str().unwrap_or_default();
        vec![
            short(&word("id")),
            word("agent").to_owned(),
            word("status").to_owned(),
            row["steps"].to_string(),
            wire::cost(MicroUsd(row["cost_microusd"].as_u64().unwrap_or_default()), row["cost_estimated"] == true),
            ago(word("created_at")),
            cut(&one_line(word("title")), TITLE),
        ]
    };
    let cells: Vec<_> = rows.iter().map(row).collect();
    table(&["ID", "AGENT", "STATUS", "STEPS", "COST", "STARTED", "TASK"], &cells, style)
}

fn status(word: &str) -> Result<String, Failure> {
    let upper = word.to_ascii_uppercase();
    match Status::parse(&upper) {
        Some(status) => Ok(status.word().to_owned()),
        None => {
            let known = Status::ALL.map(Status::word);
            Err(Failure::usage(format!("There is no status `{word}`, {}", suggest::advice(&upper, &known))))
        }
    }
}
