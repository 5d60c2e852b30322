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
    // Written by us: the generator would panic when its reader goes away.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Cli::command(), "adjutant", &mut script);
    super::output::say_piece(&String::from_utf8_lossy(&script));
    Ok(Exit::Done)
}
