//! `audit verify`: is the record whole? Of the database, or of an exported file, which needs no database.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use adjutant_core::id::RunId;
use adjutant_engine::store::row::RunFilter;
use adjutant_engine::{EngineError, ExportProblem, verify_export};
use serde_json::json;

use super::Context;
use super::terminal::one_line;
use super::words::{count, short};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

/// Runs looked up at a time.
const PAGE: u32 = 256;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check every chain of the database, or that of an exported file; exit 9 if one is broken
    Verify {
        /// A file that `runs export` wrote
        file: Option<PathBuf>,
    },
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let Command::Verify { file } = args.command;
    if let Some(path) = file {
        return verify_file(context, &path);
    }
    let instance = context.open("audit").await?;
    let exit = verify_database(context, &instance).await;
    instance.close().await;
    exit
}

fn verify_file(context: &Context, path: &Path) -> Result<Exit, Failure> {
    let unreadable = |error: &std::io::Error| {
        Failure::usage(format!("{} cannot be read: {error}. Nothing was verified.", path.display()))
    };
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    match verify_export(BufReader::new(file)) {
        Ok(verified) => {
            let document = json!({"file": path, "valid": true, "verified": verified});
            context.print(&document, || {
                let erased =
                    if verified.erased == 0 { String::new() } else { format!(", {} bodies erased", verified.erased) };
                let line = format!(
                    "✔ {}: {} events and {} contents are whole{erased}",
                    verified.stream, verified.events, verified.blocks
                );
                vec![
                    context.terminal.out.good(&line),
                    context.terminal.out.dim(&format!("head {}", verified.head.hash)),
                ]
            });
            Ok(Exit::Done)
        }
        Err(ExportProblem::Unreadable(error)) if error.kind() != std::io::ErrorKind::InvalidData => {
            Err(unreadable(&error))
        }
        Err(problem) => {
            let message = format!("{} is not what was exported: {problem}.", path.display());
            Err(Failure::new(Exit::Broken, "chain_broken", message)
                .hint("export the run again from its database, or trust it no more"))
        }
    }
}

/// What a check of many runs found.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) runs: usize,
    pub(super) events: u64,
    pub(super) erased: u64,
    pub(super) broken: Vec<(RunId, String)>,
}

/// Checks the chains of the newest runs, at most as many as are wanted.
pub(super) async fn check(instance: &Instance, most: usize) -> Result<Checked, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let mut checked = Checked::default();
    let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
    loop {
        let rows = engine.store().runs(workspace, &filter, PAGE).await?;
        let last = rows.len() < PAGE as usize;
        for row in rows {
            if checked.runs == most {
                return Ok(checked);
            }
            filter.before = Some(row.id);
            checked.runs += 1;
            match engine.verify_run(workspace, row.id).await {
                Ok(verified) => {
                    checked.events += verified.events;
                    checked.erased += verified.erased;
                }
                Err(EngineError::BadLog { run, why }) => checked.broken.push((run, why)),
                Err(EngineError::Store(adjutant_engine::store::StoreError::Corrupt(why))) => {
                    checked.broken.push((row.id, why))
                }
                Err(error) => return Err(error.into()),
            }
        }
        if last {
            return Ok(checked);
        }
    }
}

async fn verify_database(context: &Context, instance: &Instance) -> Result<Exit, Failure> {
    let checked = check(instance, usize::MAX).await?;
    let broken: Vec<_> = checked.broken.iter().map(|(run, why)| json!({"run_id": run, "reason": why})).collect();
    let valid = broken.is_empty();
    let document = json!({"valid": valid, "runs": checked.runs, "events": checked.events, "erased": checked.erased, "broken": broken});
    let style = context.terminal.out;
    context.print(&document, || {
        let whole = format!(
            "{}, {} events",
            count(checked.runs - checked.broken.len(), "run is whole", "runs are whole"),
            checked.events
        );
        let mut lines = vec![if valid { style.good(&format!("✔ {whole}")) } else { whole }];
        lines
            .extend(checked.broken.iter().map(|(run, why)| style.bad(&format!("✖ {}: {}", short(run), one_line(why)))));
        lines
    });
    Ok(if valid { Exit::Done } else { Exit::Broken })
}
