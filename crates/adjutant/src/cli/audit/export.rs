//! `audit export`: what a search finds, as JSON lines or CSV; or every log, as a file that can be verified anywhere.

use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use adjutant_core::audit::{Act, Deed};
use adjutant_core::run::event::Actor;
use adjutant_engine::{AuditLog, LogsOf, PageOf, RunBodies};

use super::search;
use crate::cli::Context;
use crate::cli::output::tell;
use crate::cli::remote::Remote;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire;

/// Entries read at a time.
const PAGE: usize = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON document a line, with everything that was recorded.
    Jsonl,
    /// A table, one line an entry.
    Csv,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to look for, as for `audit search`; everything without
    #[arg(value_name = "WORD")]
    words: Vec<String>,
    /// The form of the file
    #[arg(long, value_enum, default_value = "jsonl", conflicts_with = "whole")]
    format: Format,
    /// Show what looks like a secret, too; with --whole, also what was said in runs
    #[arg(long)]
    raw: bool,
    /// Every log with its chain and its signed days, for `audit verify`
    #[arg(long, conflicts_with = "words")]
    whole: bool,
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn execute(context: &Context, instance: &Instance, args: Args) -> Result<Exit, Failure> {
    let wanted = search::wanted(instance, &args.words).await?;
    // Opened before it is recorded: an export that cannot be written did not happen.
    let mut out = open(args.output.as_deref())?;
    let summary = if args.whole { "every log".to_owned() } else { args.words.join(" ") };
    let act = Act::new(Deed::AuditExported, Some(Actor::User(instance.home.user)), summary).with("raw", args.raw);
    instance.engine.audit(AuditLog::Workspace(instance.home.workspace), act).await?;
    if args.whole {
        let bodies = if args.raw { RunBodies::Kept } else { RunBodies::LeftOut };
        instance.engine.export_whole(bodies, &mut *out).await?;
    } else {
        if args.format == Format::Csv {
            line(&mut *out, &wire::AUDIT_COLUMNS.join(","))?;
        }
        let mut page =
            PageOf { limit: PAGE, cursor: None, redaction: search::redaction(args.raw), logs: LogsOf::AndInstance };
        loop {
            let found = instance.engine.search_audit(instance.home.workspace, &wanted, &page).await?;
            for entry in &found.data {
                let text = match args.format {
                    Format::Jsonl => serde_json::to_string(entry).unwrap_or_default(),
                    Format::Csv => wire::audit_row(entry),
                };
                line(&mut *out, &text)?;
            }
            if found.next_cursor.is_none() {
                break;
            }
            page.cursor = found.next_cursor;
        }
    }
    out.flush().map_err(|error| unwritten(&error))?;
    done(context, &args);
    Ok(Exit::Done)
}

/// What a search finds, written at a server. Every log at once is only for whoever holds the data directory.
pub(super) async fn at(context: &Context, remote: &Remote, args: Args) -> Result<Exit, Failure> {
    if args.whole {
        return Err(remote.only_here());
    }
    let (workspace, words) = (remote.only_workspace().await?, search::text(&args.words));
    let format = match args.format {
        Format::Jsonl => "jsonl",
        Format::Csv => "csv",
    };
    let mut query = vec![("workspace_id", workspace.as_str()), ("q", &words), ("format", format)];
    query.extend(args.raw.then_some(("raw", "true")));
    let text = remote.text(&["audit", "export"], &query).await?;
    let mut out = open(args.output.as_deref())?;
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| unwritten(&error))?;
    done(context, &args);
    Ok(Exit::Done)
}

fn done(context: &Context, args: &Args) {
    if let Some(path) = &args.output {
        let check = if args.whole {
            format!("; check it with: adjutant audit verify {}", path.display())
        } else {
            String::new()
        };
        tell(&context.terminal.err.good(&format!("✔ the audit is in {}{check}", path.display())));
    }
}

/// A new file that only this person can read, or standard output.
fn open(path: Option<&Path>) -> Result<Box<dyn Write + Send>, Failure> {
    let Some(path) = path else { return Ok(Box::new(BufWriter::new(std::io::stdout()))) };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.map_err(|error| {
        let failure = Failure::usage(format!("{} cannot be written: {error}. Nothing was exported.", path.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.hint("nothing is overwritten; choose another name"),
            _ => failure,
        }
    })?;
    Ok(Box::new(BufWriter::new(file)))
}

fn line(out: &mut (dyn Write + Send), text: &str) -> Result<(), Failure> {
    writeln!(out, "{text}").map_err(|error| unwritten(&error))
}

fn unwritten(error: &std::io::Error) -> Failure {
    Failure::other(format!("The audit cannot be written to its end: {error}. What is there is cut short."))
}
