//! `agents export`: an agent as the file that people keep, review and pass on.

use serde_json::json;

use super::config_of;
use crate::cli::Context;
use crate::cli::place::Place;
use crate::failure::{Exit, Failure};
use crate::{agent_file, instance};

pub(super) async fn execute(context: &Context, place: &Place, name: &str) -> Result<Exit, Failure> {
    let text = text(place, name).await?;
    context.print(&json!({ "text": text }), || text.lines().map(str::to_owned).collect());
    Ok(Exit::Done)
}

/// The file of an agent.
pub(super) async fn text(place: &Place, name: &str) -> Result<String, Failure> {
    match place {
        Place::Here(here) => {
            let row = here.engine.find_agent(here.home.workspace, name).await?;
            Ok(agent_file::write(&config_of(&row)?, &instance::known(here.engine.tools())))
        }
        Place::There(remote) => remote.text(&["agents", name, "file"], &[]).await,
    }
}
