//! `agents transfer`: gives an agent to another member, or to the workspace.

use adjutant_core::run::event::Actor;
use adjutant_engine::store::row::AgentRow;
use serde_json::{Value, json};

use super::{config_of, shown};
use crate::cli::Context;
use crate::cli::place::Place;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its short name or id
    name: String,
    /// The member who gets it, by name
    #[arg(long, value_name = "PERSON", required_unless_present = "to_workspace")]
    to: Option<String>,
    /// It is nobody's own any more: every member with the role `write` may run it
    #[arg(long, conflicts_with = "to")]
    to_workspace: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let to = args.to.as_deref();
    let document = match place {
        Place::Here(instance) => here(instance, &args.name, to).await?,
        Place::There(remote) => {
            let agent = remote.get(&["agents", &args.name], &[]).await?;
            let workspace = agent["workspace_id"].as_str().unwrap_or_default().to_owned();
            let owner = match to {
                Some(person) => {
                    let page = remote.get(&["workspaces", &workspace, "members"], &[]).await?;
                    let members = page["data"].as_array().cloned().unwrap_or_default();
                    let found = members.iter().find(|member| member["name"] == person || member["user_id"] == person);
                    found.map(|member| member["user_id"].clone()).ok_or_else(|| nobody(person))?
                }
                None => json!("workspace"),
            };
            remote.patch_any(&["agents", &args.name], &json!({"owner": owner})).await?
        }
    };
    let whose = to.map_or_else(|| "the workspace".to_owned(), str::to_owned);
    let line = |document: &Value| format!("✔ {} belongs to {whose}", document["slug"].as_str().unwrap_or_default());
    context.print(&document, || vec![context.terminal.out.good(&line(&document))]);
    Ok(Exit::Done)
}

async fn here(instance: &Instance, name: &str, to: Option<&str>) -> Result<Value, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let owner = match to {
        Some(person) => {
            let members = engine.store().members(workspace).await?;
            let found = members.iter().find(|member| member.name == person || member.user.to_string() == person);
            Some(found.ok_or_else(|| nobody(person))?.user)
        }
        None => None,
    };
    let row = engine.find_agent(workspace, name).await?;
    let config = config_of(&row)?;
    let next = AgentRow { owner, ..engine.next_version(&row, &config)? };
    let saved = engine.put_agent(Actor::User(instance.home.user), next, &config).await?;
    shown(instance, &saved).await
}

fn nobody(person: &str) -> Failure {
    Failure::not_found(format!("`{person}` is no member of the workspace. Nothing was changed."))
}
