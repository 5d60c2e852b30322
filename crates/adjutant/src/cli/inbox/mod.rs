//! `inbox`: what waits for a person, and their decisions. A decision is recorded in the run's log; whoever drives the run
//! takes it from there.

mod decide;
mod ls;
mod show;

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
    /// List what waits for you
    Ls(ls::Args),
    /// Show what waits, and what comes, until Ctrl-C
    Watch,
    /// Show one item: what would happen, and why it asks
    Show(show::Args),
    /// Let it happen
    Approve(decide::Approve),
    /// Let it happen with other arguments
    Edit(decide::Edit),
    /// Do not let it happen
    Reject(decide::Reject),
    /// Do not let it happen, and answer the agent instead
    Respond(decide::Respond),
    /// Say what became of a call that nobody saw the end of
    Resolve(decide::Resolve),
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "inbox", Work::Looks).await?;
    let exit = match args.command.unwrap_or(Command::Ls(ls::Args::default())) {
        Command::Ls(args) => ls::execute(context, &place, args).await,
        Command::Watch => ls::watch(context, &place).await,
        Command::Show(args) => show::execute(context, &place, args).await,
        Command::Approve(args) => decide::approve(context, &place, args).await,
        Command::Edit(args) => decide::edit(context, &place, args).await,
        Command::Reject(args) => decide::reject(context, &place, args).await,
        Command::Respond(args) => decide::respond(context, &place, args).await,
        Command::Resolve(args) => decide::resolve(context, &place, args).await,
    };
    place.close().await;
    exit
}
