//! `audit`: search the record, write it to a file, check that it is whole, forget what was said.

mod erase;
mod export;
mod search;
mod verify;

pub(super) use self::search::redaction;
pub(super) use self::verify::check;

use super::Context;
use super::place::{Place, Work};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Find out who did what, newest first
    Search(search::Args),
    /// Write what a search finds, or every log, to a file
    Export(export::Args),
    /// Check every chain and signed day of the database, or those of an exported file; exit 9 if one is broken
    Verify(verify::Args),
    /// Forget what was said in runs; that they happened stays on record
    Erase(erase::Args),
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    if let Command::Verify(verify::Args { file: Some(path), key }) = args.command {
        return verify::file(context, &path, key);
    }
    let place = Place::find(context, "audit", Work::Looks).await?;
    let exit = match (args.command, &place) {
        (Command::Search(args), _) => search::execute(context, &place, args).await,
        (Command::Export(args), Place::Here(instance)) => export::execute(context, instance, args).await,
        (Command::Export(args), Place::There(remote)) => export::at(context, remote, args).await,
        (Command::Verify(_), Place::Here(instance)) => verify::database(context, instance).await,
        (Command::Verify(_), Place::There(remote)) => verify::at(context, remote).await,
        (Command::Erase(args), Place::Here(instance)) => erase::execute(context, instance, args).await,
        (Command::Erase(_), Place::There(remote)) => Err(remote.only_here()),
    };
    place.close().await;
    exit
}
