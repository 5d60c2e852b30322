//! `runs undo`: put files back as they were before a run.

use adjutant_core::id::CallId;
use adjutant_engine::{UndoMode, UndoOutcome, UndoReport, UndoneFile};
use serde_json::json;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::terminal::{Style, clean, one_line};
use crate::cli::words::{count, ours, short};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
    /// Only what this call did
    #[arg(long, value_name = "ID")]
    call: Option<String>,
    /// Show what would be put back, and change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let call = match &args.call {
        Some(text) => Some(CallId::parse(text).ok_or_else(|| Failure::usage(format!("`{text}` is not a call id.")))?),
        None => None,
    };
    let report = match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let mode = if args.dry_run { UndoMode::DryRun } else { UndoMode::Real };
            let home = instance.home;
            instance.engine.undo_run(home.workspace, home.user, run, call, mode).await?
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            let body = json!({"call_id": call, "dry_run": args.dry_run});
            remote.read(remote.post(&["runs", &run, "undo"], &body).await?)?
        }
    };
    context.print(&serde_json::to_value(&report).unwrap_or_default(), || story(&report, context.terminal.out));
    Ok(if report.is_partial() { Exit::Other } else { Exit::Done })
}

fn story(report: &UndoReport, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(at) = report.interrupted {
        let rest = if report.dry_run { "This is what is left of it." } else { "This one goes on from there." };
        lines.push(style.warn(&format!("An undo of this run was begun at {at} and never ended. {rest}")));
    }
    lines.extend(report.files.iter().map(|file| line(file, style)));
    lines.extend(report.beyond.iter().map(|what| style.dim(&format!("- {}  cannot be taken back", clean(what)))));
    lines.push(summary(report, style));
    lines
}

fn line(file: &UndoneFile, style: Style) -> String {
    let path = clean(&file.path);
    let what = match (file.left, file.back) {
        (Some(_), None) => "removed",
        (None, Some(_)) => "brought back",
        (None, None) | (Some(_), Some(_)) => "put back",
    };
    let why = file.why.as_deref().map(one_line).unwrap_or_default();
    match file.outcome {
        UndoOutcome::Planned => format!("± {path}  would be {what}"),
        UndoOutcome::Restored => format!("± {path}  {what}"),
        UndoOutcome::AlreadyBack => style.dim(&format!("= {path}  is as it was before")),
        UndoOutcome::Conflict => style.bad(&format!("✖ {path}  left alone: {why}")),
        UndoOutcome::Failed => style.bad(&format!("✖ {path}  not {what}: {why}")),
    }
}

fn summary(report: &UndoReport, style: Style) -> String {
    let run = short(&report.run_id);
    if report.files.is_empty() {
        return format!("{run} changed no files.");
    }
    if report.is_empty() {
        return format!("Nothing is left to undo in {run}.");
    }
    let number = |wanted| report.files.iter().filter(|file| file.outcome == wanted).count();
    if report.dry_run {
        let planned = count(number(UndoOutcome::Planned), "file would change", "files would change");
        return format!("{planned}, nothing was done  ({})", ours(&format!("adjutant runs undo {run}")));
    }
    let restored = count(number(UndoOutcome::Restored), "file is as it was before", "files are as they were before");
    if report.is_partial() {
        style.warn(&format!("! {restored} {run}; the rest was left alone"))
    } else {
        style.good(&format!("✔ {restored} {run}"))
    }
}
