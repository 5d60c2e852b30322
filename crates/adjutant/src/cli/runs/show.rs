//! `runs show`: one run as a document, or as its story.

use std::fmt::Write;

use adjutant_engine::{ActionReport, RunReport};
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::terminal::{Style, clean, cut, one_line};
use crate::cli::words::{count, short, span, target};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Texts};

/// Characters of a failed action's answer.
const COMPLAINT: usize = 100;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
    /// Every public event instead of the summary
    #[arg(long)]
    events: bool,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let run = find::run(instance, &args.run).await?;
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    if args.events {
        engine.run_row(workspace, run).await?;
        let recorded = engine.recorded(workspace, run, 0, None).await?;
        let texts = Texts::load(engine, workspace, recorded.iter().map(|item| &item.event)).await?;
        let events: Vec<_> = recorded.iter().filter_map(|item| wire::event(run, item, &texts)).collect();
        context.print(&json!({"data": events, "has_more": false}), || {
            let line = |event: &wire::WireEvent| clean(&serde_json::to_string(event).unwrap_or_default());
            events.iter().map(line).collect()
        });
        return Ok(Exit::Done);
    }
    let report = engine.report(workspace, run).await?;
    let agent = engine.store().agent(workspace, report.agent_id).await?.map(|row| row.slug).unwrap_or_default();
    context.print(&serde_json::to_value(&report).unwrap_or_default(), || story(&report, &agent, context.terminal.out));
    Ok(Exit::Done)
}

fn story(report: &RunReport, agent: &str, style: Style) -> Vec<String> {
    let mut lines = vec![format!(
        "{}  {agent}  {}  {}  {}  {}",
        style.bold(&report.id.to_string()),
        report.status.word(),
        span(std::time::Duration::from_millis(report.metrics.duration_ms)),
        dollars(report),
        count(report.steps, "step", "steps"),
    )];
    lines.push(style.dim(&format!(
        "{} · model {} · agent version {} · {} · head {}",
        report.created_at,
        report.provenance.model,
        report.provenance.agent_version,
        report.chat_id,
        cut(&report.head_hash.to_string(), 13),
    )));
    lines.extend(report.actions.iter().map(|action| action_line(action, style)));
    if let Some(error) = &report.error {
        lines.push(style.bad(&format!("✖ {}: {}", error.code, one_line(&error.message))));
    }
    lines.extend(
        report
            .pending_approvals
            .iter()
            .map(|id| style.warn(&format!("⏸ waits for you: adjutant inbox show {}", short(id)))),
    );
    lines.extend(report.files_modified.iter().map(|path| format!("± {}", clean(path))));
    if let Some(next) = report.superseded_by {
        lines.push(style.dim(&format!("replaced by {next}")));
    }
    if !report.result.is_empty() {
        lines.extend([String::new(), clean(&report.result)]);
    }
    lines
}

fn dollars(report: &RunReport) -> String {
    let mut text = adjutant_core::money::MicroUsd(report.cost_microusd).to_string();
    if report.cost_estimated {
        text.push_str(" (estimated)");
    }
    text
}

fn action_line(action: &ActionReport, style: Style) -> String {
    let mut line = format!("{} {}", clean(&action.tool_name), target(&action.arguments));
    // Writing into a String does not fail.
    let _ = write!(line, "  {} ms", action.ms);
    if let (Some(verdict), Some(rule)) = (&action.verdict, &action.rule) {
        let _ = write!(line, "  {verdict} ({rule})");
    }
    match (&action.output, action.is_error) {
        (None, _) => style.warn(&format!("⏸ {line}")),
        (Some(output), true) => style.bad(&format!("✖ {line}  {}", cut(&one_line(output), COMPLAINT))),
        (Some(_), false) => format!("▸ {line}"),
    }
}
