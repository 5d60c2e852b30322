//! `agents enable`, `disable` and `rm`: switches an agent on or off, and takes one away. An agent that has a file in the data
//! directory is what the file says at every start, so the file has its part in both.

use std::path::PathBuf;

use adjutant_core::run::event::Actor;
use serde_json::{Value, json};

use super::{config_of, shown};
use crate::cli::place::Place;
use crate::cli::remote::Remote;
use crate::cli::{Context, prompt};
use crate::failure::{Exit, Failure};
use crate::instance;

/// The workspace whose agents may have files.
const HOME: &str = "home";

/// Whether an agent may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Debug, clap::Args)]
pub(super) struct Rm {
    /// Its short name or id
    name: String,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

pub(super) async fn switch(context: &Context, place: &Place, name: &str, to: Switch) -> Result<Exit, Failure> {
    let slug = slug(place, name).await?;
    if let Some(file) = file_of(context, place, name, &slug).await? {
        let what = format!("`{slug}` is what {} says at every start. Nothing was changed.", file.display());
        let word = to == Switch::On;
        return Err(Failure::usage(what).hint(format!("set is_active: {word} there: adjutant agents edit {slug}")));
    }
    let document = match place {
        Place::Here(here) => {
            let row = here.engine.find_agent(here.home.workspace, name).await?;
            let mut config = config_of(&row)?;
            let is_on = std::mem::replace(&mut config.is_active, to == Switch::On) == config.is_active;
            if is_on {
                shown(here, &row).await?
            } else {
                let next = here.engine.next_version(&row, &config)?;
                let saved = here.engine.put_agent(Actor::User(here.home.user), next, &config).await?;
                shown(here, &saved).await?
            }
        }
        Place::There(remote) => {
            remote.post(&["agents", name, "activate"], &json!({"active": to == Switch::On})).await?
        }
    };
    let word = if to == Switch::On { "on" } else { "off" };
    context.print(&document, || vec![context.terminal.out.good(&format!("✔ {slug} is switched {word}"))]);
    Ok(Exit::Done)
}

pub(super) async fn rm(context: &Context, place: &Place, args: &Rm) -> Result<Exit, Failure> {
    let (name, slug) = (args.name.as_str(), slug(place, &args.name).await?);
    let file = file_of(context, place, name, &slug).await?;
    if !args.yes {
        if !context.terminal.interactive {
            return Err(Failure::usage("Nobody can be asked here, so nothing was taken away.").hint("add --yes"));
        }
        let with = file.as_ref().map(|file| format!(" with {}", file.display())).unwrap_or_default();
        if !prompt::confirm(&format!("Take {slug} away{with}? Its runs and versions stay readable.")).await {
            return Ok(Exit::Rejected);
        }
    }
    // The agent first: a file without its agent would bring it back, an agent without its file is only switched off.
    match place {
        Place::Here(here) => {
            let row = here.engine.find_agent(here.home.workspace, name).await?;
            here.engine.delete_agent(Actor::User(here.home.user), &row).await?;
        }
        Place::There(remote) => remote.delete_any(&["agents", name]).await?,
    }
    if let Some(file) = &file {
        std::fs::remove_file(file).map_err(|error| instance::unusable(file, &error))?;
    }
    let document: Value = json!({"removed": slug});
    context.print(&document, || vec![context.terminal.out.good(&format!("✔ {slug} is taken away"))]);
    Ok(Exit::Done)
}

/// The short name of an agent.
pub(super) async fn slug(place: &Place, name: &str) -> Result<String, Failure> {
    match place {
        Place::Here(here) => Ok(here.engine.find_agent(here.home.workspace, name).await?.slug),
        Place::There(remote) => {
            let agent = remote.get(&["agents", name], &[]).await?;
            Ok(agent["slug"].as_str().unwrap_or(name).to_owned())
        }
    }
}

/// The file of an agent in the data directory, if that is ours and there is one. Files are about agents of the first workspace,
/// whatever those of others are called.
pub(super) async fn file_of(
    context: &Context,
    place: &Place,
    name: &str,
    slug: &str,
) -> Result<Option<PathBuf>, Failure> {
    if let Place::There(remote) = place {
        if !Remote::is_ours(context) {
            return Ok(None);
        }
        let agent = remote.get(&["agents", name], &[]).await?;
        // Whoever works in another workspace is shown that one alone.
        let Ok(home) = remote.get(&["workspaces", HOME], &[]).await else { return Ok(None) };
        if agent["workspace_id"] != home["id"] {
            return Ok(None);
        }
    }
    let file = context.config()?.data.value.join("agents").join(format!("{slug}.md"));
    Ok(file.is_file().then_some(file))
}
