//! `audit verify`: is the record whole? Of the database, or of an exported file, which needs no database.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_engine::store::row::RunFilter;
use adjutant_engine::{
    ArchiveVerified, AuditProblem, AuditVerified, EngineError, ExportProblem, is_archive, is_whole_export,
    verify_archive, verify_export, verify_whole_export,
};
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::remote::Remote;
use crate::cli::terminal::one_line;
use crate::cli::words::count;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

/// Bytes within which the first line of a file ends.
const FIRST_LINE: u64 = 4096;
/// Runs looked up at a time.
const PAGE: u32 = 256;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file that `runs export`, `ws archive` or `audit export --whole` wrote
    pub(super) file: Option<PathBuf>,
    /// The public key that must have signed the days, as an earlier check of the database said it
    #[arg(long, value_name = "HEX", requires = "file")]
    pub(super) key: Option<String>,
}

pub(super) fn file(context: &Context, path: &Path, key: Option<String>) -> Result<Exit, Failure> {
    let unreadable = |error: &std::io::Error| {
        Failure::usage(format!("{} cannot be read: {error}. Nothing was verified.", path.display()))
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    let mut reader = BufReader::new(file);
    let first = first_line(&mut reader).map_err(|error| unreadable(&error))?;
    if is_archive(&first) {
        return match verify_archive(reader) {
            Ok(verified) => Ok(archive_told(context, path, &verified)),
            Err(problem) => Err(not_what_was_exported(path, &problem)),
        };
    }
    if is_whole_export(&first) {
        return match verify_whole_export(reader, key) {
            Ok(verified) => Ok(told(context, &json!({"file": path}), &verified)),
            Err(problem) => Err(not_what_was_exported(path, &problem)),
        };
    }
    match verify_export(reader) {
        Ok(verified) => {
            let document = json!({"file": path, "valid": true, "verified": verified});
            context.print(&document, || {
                let erased =
                    if verified.erased == 0 { String::new() } else { format!(", {} bodies erased", verified.erased) };
                let redacted = match verified.redacted.count {
                    0 => String::new(),
                    some => format!(", {some} without their secrets, for which no hash can speak"),
                };
                let line = format!(
                    "✔ {}: {} events and {} contents are whole{erased}{redacted}",
                    verified.stream, verified.events, verified.blocks
                );
                let mut lines = vec![context.terminal.out.good(&line)];
                if !verified.redacted.events.is_empty() {
                    let places: Vec<_> = verified.redacted.events.iter().map(u64::to_string).collect();
                    let line = format!("not proved: what events {} say", places.join(", "));
                    lines.push(context.terminal.out.warn(&line));
                }
                lines.push(context.terminal.out.dim(&format!("head {}", verified.head.hash)));
                lines
            });
            Ok(Exit::Done)
        }
        Err(ExportProblem::Unreadable(error)) if error.kind() != std::io::ErrorKind::InvalidData => {
            Err(unreadable(&error))
        }
        Err(problem) => Err(not_what_was_exported(path, &problem)),
    }
}

fn not_what_was_exported(path: &Path, problem: &ExportProblem) -> Failure {
    let message = format!("{} is not what was exported: {problem}.", path.display());
    Failure::new(Exit::Broken, "chain_broken", message).hint("export it again from its database, or trust it no more")
}

/// The first line of a file, which says what it holds.
fn first_line(reader: &mut BufReader<File>) -> Result<String, std::io::Error> {
    let mut first = String::new();
    // A line that is no text is for the check of its form to name.
    let _ = reader.by_ref().take(FIRST_LINE).read_line(&mut first);
    reader.seek(SeekFrom::Start(0))?;
    Ok(first)
}

fn archive_told(context: &Context, path: &Path, verified: &ArchiveVerified) -> Exit {
    context.print(&json!({"file": path, "valid": true, "verified": verified}), || {
        let runs = count(verified.runs.len(), "run", "runs");
        let (events, contents) = (verified.events, verified.blocks);
        let line = format!("✔ {}: {runs}, {events} events and {contents} contents are whole", verified.workspace);
        vec![context.terminal.out.good(&line)]
    });
    Exit::Done
}

/// What a check of many runs found.
#[derive(Debug, Default)]
pub(in crate::cli) struct Checked {
    pub(in crate::cli) runs: usize,
    pub(in crate::cli) events: u64,
    pub(in crate::cli) broken: Vec<(RunId, String)>,
}

/// Checks the chains of the newest runs of each workspace, at most as many as are wanted.
pub(in crate::cli) async fn check(instance: &Instance, most: usize) -> Result<Checked, Failure> {
    let mut checked = Checked::default();
    for workspace in instance.engine.store().workspaces().await? {
        check_workspace(instance, workspace.id, most, &mut checked).await?;
    }
    Ok(checked)
}

async fn check_workspace(
    instance: &Instance,
    workspace: WorkspaceId,
    most: usize,
    checked: &mut Checked,
) -> Result<(), Failure> {
    let engine = &instance.engine;
    let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
    let mut left = most;
    loop {
        let rows = engine.store().runs(workspace, &filter, PAGE).await?;
        let last = rows.len() < PAGE as usize;
        for row in rows {
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            filter.before = Some(row.id);
            checked.runs += 1;
            match engine.verify_run(workspace, row.id).await {
                Ok(verified) => {
                    checked.events += verified.events;
                }
                Err(EngineError::BadLog { run, why }) => checked.broken.push((run, why)),
                Err(EngineError::Store(adjutant_engine::store::StoreError::Corrupt(why))) => {
                    checked.broken.push((row.id, why))
                }
                Err(error) => return Err(error.into()),
            }
        }
        if last {
            return Ok(());
        }
    }
}

pub(super) async fn database(context: &Context, instance: &Instance) -> Result<Exit, Failure> {
    let verified = instance.engine.verify_all().await?;
    if verified.problems.is_empty() {
        // Only what is whole is signed.
        instance.engine.close_days().await?;
    }
    Ok(told(context, &json!({}), &verified))
}

/// The same at a server, for its owner.
pub(super) async fn at(context: &Context, remote: &Remote) -> Result<Exit, Failure> {
    let found: AuditVerified = remote.read(remote.get(&["audit", "verify"], &[]).await?)?;
    Ok(told(context, &json!({}), &found))
}

/// Says what a check of all logs found.
fn told(context: &Context, about: &Value, verified: &AuditVerified) -> Exit {
    let valid = verified.problems.is_empty();
    let broken: Vec<_> = verified.problems.iter().map(broken).collect();
    let mut document = json!({
        "valid": valid, "runs": verified.runs, "logs": verified.logs, "events": verified.events,
        "erased": verified.erased, "days": verified.days, "last_day": verified.last_day, "key": verified.key,
        "broken": broken,
    });
    if let (Some(document), Some(about)) = (document.as_object_mut(), about.as_object()) {
        document.extend(about.clone());
    }
    let style = context.terminal.out;
    context.print(&document, || {
        let mut bad: Vec<_> = verified.problems.iter().map(|problem| problem.stream).collect();
        bad.dedup();
        let whole = usize::try_from(verified.runs + verified.logs).unwrap_or(usize::MAX).saturating_sub(bad.len());
        let logs = count(whole, "log is whole", "logs are whole");
        let erased = if verified.erased == 0 { String::new() } else { format!(", {} bodies erased", verified.erased) };
        let line = format!("{logs} ({} of runs), {} events{erased}", verified.runs, verified.events);
        let mut lines = vec![if valid { style.good(&format!("✔ {line}")) } else { line }];
        if let (Some(day), Some(key)) = (&verified.last_day, &verified.key) {
            let days = count(usize::try_from(verified.days).unwrap_or(usize::MAX), "signed day", "signed days");
            lines.push(style.dim(&format!("{days}, the last {day}, key {key}")));
        }
        let line = |problem: &AuditProblem| format!("✖ {}: {}", problem.stream, one_line(&problem.reason));
        lines.extend(verified.problems.iter().map(|problem| style.bad(&line(problem))));
        lines
    });
    if valid { Exit::Done } else { Exit::Broken }
}

fn broken(problem: &AuditProblem) -> Value {
    let run = match problem.stream {
        StreamId::Run(run) => Some(run),
        StreamId::Workspace(_) | StreamId::System => None,
    };
    json!({"stream": problem.stream, "run_id": run, "reason": problem.reason})
}
