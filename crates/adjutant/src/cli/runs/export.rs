//! `runs export`: a run as a file, one JSON document a line, that `audit verify FILE` can check anywhere.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::cli::Context;
use crate::cli::audit::redaction;
use crate::cli::find;
use crate::cli::output::{say, tell};
use crate::cli::place::Place;
use crate::cli::words::short;
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The run, or as much of its id as no other has
    run: String,
    /// Leave what looks like a secret in it; for admins, and recorded
    #[arg(long)]
    raw: bool,
    /// The file to write; without it, standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let (run, lines) = match place {
        Place::Here(instance) => {
            let run = find::run(instance, &args.run).await?;
            let (engine, home) = (&instance.engine, instance.home);
            if args.raw {
                engine.record_raw(home.workspace, home.user, "in the file of a run".to_owned(), Some(run)).await?;
            }
            (run.to_string(), engine.export_run(home.workspace, run, redaction(args.raw)).await?)
        }
        Place::There(remote) => {
            let run = remote.run_id(&args.run).await?;
            let query = if args.raw { vec![("raw", "true")] } else { Vec::new() };
            let text = remote.text(&["runs", &run, "export"], &query).await?;
            (run, text.lines().map(str::to_owned).collect())
        }
    };
    match &args.output {
        None => lines.iter().for_each(|line| say(line)),
        Some(path) => {
            write(path, &lines)?;
            let (path, style) = (path.display(), context.terminal.err);
            tell(&style.good(&format!("✔ {} is in {path}; check it with: adjutant audit verify {path}", short(&run))));
        }
    }
    Ok(Exit::Done)
}

/// Writes a new file that only this person can read: it holds everything the agent has seen.
fn write(path: &Path, lines: &[String]) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|file| {
        let mut file = std::io::BufWriter::new(file);
        for line in lines {
            writeln!(file, "{line}")?;
        }
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
    });
    written.map_err(|error| {
        let failure =
            Failure::usage(format!("{} cannot be written: {error}. The run is not exported.", path.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure.hint("nothing is overwritten; choose another name"),
            _ => failure,
        }
    })
}
