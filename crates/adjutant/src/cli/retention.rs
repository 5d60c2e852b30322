//! `ws erase` and `ws archive`: forgetting what was said in old runs, and taking it away as a file first. Without `--yes` both
//! only say what they would do.

use std::fs::File;
use std::io::{BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_engine::{ArchiveVerified, verify_archive};
use serde_json::{Value, json};

use super::Context;
use super::progress::Line;
use super::remote::Remote;
use super::words::{count, size};
use crate::failure::{Exit, Failure};

/// Runs of an archive that one request erases.
const PART: usize = 200;

#[derive(Debug, clap::Args)]
pub(super) struct Erase {
    /// The workspace: its id or short name
    workspace: String,
    /// Runs that ended before this: 90d ago, a day, or a time
    #[arg(long, value_name = "DATE")]
    before: String,
    /// Do it; without, only say what would be erased
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct Archive {
    /// The workspace: its id or short name
    workspace: String,
    /// Runs that ended before this: 90d ago, a day, or a time
    #[arg(long, value_name = "DATE")]
    before: String,
    /// The file to write; it must not be there yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Do it: write the file, check it, and erase what it holds; without, only say what would be done
    #[arg(long)]
    yes: bool,
}

pub(super) async fn erase(context: &Context, remote: &Remote, args: Erase) -> Result<Exit, Failure> {
    let planned = plan(remote, &args.workspace, &args.before).await?;
    let total = number(&planned, "runs");
    if !args.yes || total == 0 {
        context.print(&planned, || would(context, &planned, "erased"));
        return Ok(Exit::Done);
    }
    // The moment that was looked at, so that nothing becomes old on the way.
    let body = json!({"before": planned["before"], "confirm": true});
    let mut line = Line::new(context);
    let (mut runs, mut bodies) = (0, 0);
    loop {
        let part = remote.post(&["workspaces", &args.workspace, "erase"], &body).await;
        let part = part.map_err(|failure| interrupted(failure, runs))?;
        runs += number(&part, "runs");
        bodies += number(&part, "bodies");
        line.show("erasing", runs, total);
        if part["more"] != true {
            break;
        }
    }
    line.end();
    done(context, json!({"erased": true, "runs": runs, "bodies": bodies}), None);
    Ok(Exit::Done)
}

pub(super) async fn archive(context: &Context, remote: &Remote, args: Archive) -> Result<Exit, Failure> {
    let planned = plan(remote, &args.workspace, &args.before).await?;
    if !args.yes || number(&planned, "runs") == 0 {
        context.print(&planned, || would(context, &planned, "archived and then erased"));
        return Ok(Exit::Done);
    }
    let before = planned["before"].as_str().unwrap_or_default();
    let file = take(remote, &args, before).await;
    let verified = file.and_then(|()| check(&args.output)).map_err(|failure| {
        let file = args.output.display();
        failure.hint(format!("nothing was erased; {file} is not whole, if it is there: remove it and try again"))
    })?;
    let mut line = Line::new(context);
    let (mut runs, mut bodies) = (0, 0);
    for part in verified.runs.chunks(PART) {
        let body = json!({"runs": part, "confirm": true});
        let part = remote.post(&["workspaces", &args.workspace, "erase"], &body).await;
        let part = part.map_err(|failure| interrupted(failure, runs))?;
        runs += number(&part, "runs");
        bodies += number(&part, "bodies");
        line.show("erasing", runs, verified.runs.len() as u64);
    }
    line.end();
    let document = json!({"erased": true, "file": args.output, "archived": verified.runs.len(),
        "events": verified.events, "contents": verified.blocks, "runs": runs, "bodies": bodies});
    done(context, document, Some((&args.output, &verified)));
    Ok(Exit::Done)
}

/// How much a workspace holds, as lines; none where it was not told.
pub(super) fn sizes(held: &Value) -> Vec<String> {
    if held.is_null() {
        return Vec::new();
    }
    let bytes = |field: &str| size(number(held, field));
    let (runs, open, erased) = (runs_of(number(held, "runs")), number(held, "open_runs"), number(held, "erased_runs"));
    let mut lines = vec![
        format!("runs            {runs}, {open} not ended, {erased} erased"),
        format!(
            "holds           {}: {} of events, {} of contents, {} of audit",
            bytes("bytes"),
            bytes("event_bytes"),
            bytes("content_bytes"),
            bytes("audit_bytes")
        ),
    ];
    match number(held, "due_runs") {
        0 => {}
        due => lines.push(format!("to be erased    {}", runs_of(due))),
    }
    lines
}

/// What would be erased.
async fn plan(remote: &Remote, workspace: &str, before: &str) -> Result<Value, Failure> {
    remote.post(&["workspaces", workspace, "erase"], &json!({"before": before})).await
}

fn number(document: &Value, field: &str) -> u64 {
    document[field].as_u64().unwrap_or_default()
}

fn runs_of(number: u64) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), "run", "runs")
}

fn would(context: &Context, planned: &Value, done: &str) -> Vec<String> {
    let style = context.terminal.out;
    let mut lines = match number(planned, "runs") {
        0 => vec!["Nothing is left to erase.".to_owned()],
        runs => vec![
            format!(
                "What was said in {} would be {done}, for good: {}.",
                runs_of(runs),
                size(number(planned, "bytes"))
            ),
            "Nothing was done; --yes does it.".to_owned(),
        ],
    };
    let open = number(planned, "open_runs");
    if open > 0 {
        let words = format!("= {} from that time not ended or waiting for a decision, and staying", runs_of(open));
        lines.push(style.dim(&words));
    }
    lines
}

fn interrupted(failure: Failure, runs: u64) -> Failure {
    failure.hint(format!("{} erased so far; give the command again to go on", runs_of(runs)))
}

fn done(context: &Context, document: Value, file: Option<(&Path, &ArchiveVerified)>) {
    let style = context.terminal.out;
    context.print(&document, || {
        let mut lines = Vec::new();
        if let Some((path, verified)) = file {
            let runs = runs_of(verified.runs.len() as u64);
            let (events, contents) = (verified.events, verified.blocks);
            let line = format!("✔ {}: {runs}, {events} events and {contents} contents are whole", path.display());
            lines.push(style.good(&line));
        }
        let (runs, bodies) = (runs_of(number(&document, "runs")), number(&document, "bodies"));
        lines.push(style.good(&format!("✔ what was said in {runs} is erased ({bodies} events)")));
        lines
    });
}

/// Writes the file, for its owner alone: it holds everything the agents have seen. It is on the disk when this comes back.
async fn take(remote: &Remote, args: &Archive, before: &str) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        Failure::usage(format!("{} cannot be written: {error}. Nothing was erased.", args.output.display()))
    };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.output);
    let mut file = file.map_err(|error| failed(&error))?;
    let path = ["workspaces", &args.workspace, "archive"];
    remote
        .save(&path, &[("before", before)], &mut |bytes| file.write_all(bytes).map_err(|error| failed(&error)))
        .await?;
    file.sync_all().map_err(|error| failed(&error))
}

/// Reads the file again, as anybody could.
fn check(path: &Path) -> Result<ArchiveVerified, Failure> {
    let unreadable = |why: &dyn std::fmt::Display| {
        Failure::other(format!("{} is not whole: {why}. Nothing was erased.", path.display()))
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    verify_archive(BufReader::new(file)).map_err(|problem| unreadable(&problem))
}
