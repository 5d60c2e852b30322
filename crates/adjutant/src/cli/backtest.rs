//! `backtest`: which past calls of an agent would come out differently under a draft of it.

use std::path::PathBuf;

use adjutant_core::audit::filter::moment;
use adjutant_core::guard::judge::Decision;
use adjutant_engine::{Backtest, BacktestChange};
use serde_json::json;

use super::Context;
use super::terminal::{Style, clean, one_line};
use super::words::{count, short};
use crate::agent_file;
use crate::failure::{Exit, Failure, sentence};
use crate::instance::{Instance, known};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent whose past is judged
    #[arg(long, value_name = "AGENT")]
    agent: String,
    /// The agent file to judge it under; nothing is saved
    #[arg(long, value_name = "FILE")]
    draft: PathBuf,
    /// Only runs since then: 30d, a day, or a time
    #[arg(long, value_name = "DATE")]
    since: Option<String>,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let instance = context.open("backtest").await?;
    let exit = go(context, &instance, args).await;
    instance.close().await;
    exit
}

async fn go(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let agent = engine.find_agent(workspace, &args.agent).await?;
    let draft = agent_file::read(&args.draft, &known(engine.tools())).map_err(|problems| {
        Failure::usage("The draft cannot be used; nothing was judged.")
            .problems(problems.iter().map(ToString::to_string).collect())
    })?;
    let since = args.since.as_deref().map(|text| moment(text, engine.env().now())).transpose();
    let since = since.map_err(|why| Failure::usage(sentence(&why)))?;
    let found = engine.backtest(workspace, agent.id, &draft.config, since).await?;
    let mut document = serde_json::to_value(&found).unwrap_or_default();
    document["newly"] = json!({
        "allowed": found.newly(Decision::Allow),
        "asked": found.newly(Decision::Ask),
        "denied": found.newly(Decision::Deny),
    });
    context.print(&document, || story(&found, context.terminal.out));
    Ok(Exit::Done)
}

fn story(found: &Backtest, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    let parts = [(Decision::Deny, "Newly denied"), (Decision::Ask, "Newly asked"), (Decision::Allow, "Newly allowed")];
    for (decision, title) in parts {
        let changes: Vec<_> = found.changes.iter().filter(|change| change.would_be == decision).collect();
        if !changes.is_empty() {
            lines.push(style.bold(&format!("{title} ({})", changes.len())));
            lines.extend(changes.iter().map(|change| line(change)));
        }
    }
    let judged = count(found.calls, "call", "calls");
    let runs = count(found.runs, "run", "runs");
    let mut summary = format!(
        "{judged} of {runs} judged again: {} newly denied, {} newly asked, {} newly allowed",
        found.newly(Decision::Deny),
        found.newly(Decision::Ask),
        found.newly(Decision::Allow)
    );
    if found.skipped > 0 {
        summary += &format!("; {} not the guard\'s to decide", count(found.skipped, "call was", "calls were"));
    }
    if found.erased > 0 {
        summary += &format!("; {} erased", count(found.erased, "run is", "runs are"));
    }
    lines.push(summary);
    lines
}

fn line(change: &BacktestChange) -> String {
    let path = change.path.as_deref().map(clean).unwrap_or_default();
    format!(
        "  {} {path}  {} → {}  ({}) {}  {}",
        clean(&change.tool),
        change.was.word(),
        change.would_be.word(),
        change.rule,
        one_line(&change.reason),
        short(&change.run_id)
    )
}
