//! `completions`: a script that lets a shell complete our commands.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    shell: Shell,
}

pub(super) fn execute(args: &Args) -> Result<Exit, Failure> {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "adjutant", &mut std::io::stdout());
    Ok(Exit::Done)
}
