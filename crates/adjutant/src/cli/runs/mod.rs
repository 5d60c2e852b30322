//! `runs`: look at runs, follow them, steer them. One file for each kind of thing that can be done.

mod export;
mod follow;
mod ls;
mod replay;
mod seen;
mod show;
mod steer;
mod undo;

use super::Context;
use super::place::{Place, Work};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List runs, newest first
    Ls(ls::Args),
    /// Show one run: its steps, its cost, its result
    Show(show::Args),
    /// Follow a run, and drive it if nobody else does
    Watch(follow::Watch),
    /// Let a paused or interrupted run go on
    Resume(follow::Resume),
    /// Go on from a point of a run in a new one; the old one stays as it is
    Fork(follow::Fork),
    /// Stop a run
    Cancel(steer::Cancel),
    /// Hold a run: nothing new is started
    Pause(steer::Pause),
    /// Walk a recorded run again without doing anything; exit 9 if it comes out differently
    Replay(replay::Args),
    /// Put files back as they were before a run; what somebody changed since is left alone
    Undo(undo::Args),
    /// Write a run as a file that can be verified anywhere
    Export(export::Args),
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    // Cancelling only ends a run, so a broken agent file does not stand in its way.
    let command = args.command.unwrap_or(Command::Ls(ls::Args::default()));
    let drives = matches!(command, Command::Watch(_) | Command::Resume(_) | Command::Fork(_));
    let place = Place::find(context, "runs", if drives { Work::Drives } else { Work::Looks }).await?;
    let exit = match command {
        Command::Ls(args) => ls::execute(context, &place, args).await,
        Command::Show(args) => show::execute(context, &place, args).await,
        Command::Watch(args) => follow::watch(context, &place, args).await,
        Command::Resume(args) => follow::resume(context, &place, args).await,
        Command::Fork(args) => follow::fork(context, &place, args).await,
        Command::Cancel(args) => steer::cancel(context, &place, args).await,
        Command::Pause(args) => steer::pause(context, &place, args).await,
        Command::Replay(args) => replay::execute(context, &place, args).await,
        Command::Undo(args) => undo::execute(context, &place, args).await,
        Command::Export(args) => export::execute(context, &place, args).await,
    };
    place.close().await;
    exit
}
