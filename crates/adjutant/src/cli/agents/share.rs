//! `agents share`, `agents approvers`: who else sees and runs an agent, and who else decides what it asks.

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::run::event::Actor;
use adjutant_engine::store::row::AgentRow;
use serde_json::{Value, json};

use super::{config_of, shown};
use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::one_line;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Its short name or id
    name: String,
    /// Members, by name or id
    #[arg(required = true, value_name = "PERSON")]
    people: Vec<String>,
    /// Not these any more
    #[arg(long)]
    remove: bool,
}

/// What people have to do with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// They see it and run it.
    Shares,
    /// They decide what it asks.
    Decides,
}

impl Part {
    const fn field(self) -> &'static str {
        match self {
            Self::Shares => "shared_with",
            Self::Decides => "approvers",
        }
    }
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args, part: Part) -> Result<Exit, Failure> {
    let members = members(place, &args.name).await?;
    let document = match place {
        Place::Here(instance) => {
            let row = instance.engine.find_agent(instance.home.workspace, &args.name).await?;
            shown(instance, &row).await?
        }
        Place::There(remote) => remote.get(&["agents", &args.name], &[]).await?,
    };
    let listed = document[part.field()].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut ids: Vec<String> = listed.map(str::to_owned).collect();
    for person in &args.people {
        let found = members.iter().find(|(id, name)| id == person || name == person);
        let (id, _) = found.ok_or_else(|| {
            Failure::not_found(format!("`{person}` is no member of the workspace. Nothing was changed."))
        })?;
        ids.retain(|known| known != id);
        if !args.remove {
            ids.push(id.clone());
        }
    }
    let document = match place {
        Place::Here(instance) => save(instance, &args.name, part, &ids).await?,
        Place::There(remote) => remote.patch_any(&["agents", &args.name], &json!({ part.field(): ids })).await?,
    };
    let name = |id: &Value| members.iter().find(|(known, _)| id == known).map(|(_, name)| one_line(name));
    let names: Vec<_> = document[part.field()].as_array().into_iter().flatten().filter_map(name).collect();
    let (slug, names) = (document["slug"].as_str().unwrap_or_default().to_owned(), names.join(", "));
    let line = match (part, names.is_empty()) {
        (Part::Shares, false) => format!("✔ {slug} is shared with {names}"),
        (Part::Shares, true) => format!("✔ {slug} is shared with nobody"),
        (Part::Decides, false) => format!("✔ what {slug} asks may be decided by {names}, too"),
        (Part::Decides, true) => format!("✔ {slug} has no approvers of its own"),
    };
    context.print(&document, || vec![context.terminal.out.good(&line)]);
    Ok(Exit::Done)
}

/// The ids and names of those who are in the agent's workspace.
async fn members(place: &Place, agent: &str) -> Result<Vec<(String, String)>, Failure> {
    match place {
        Place::Here(instance) => {
            let rows = instance.engine.store().members(instance.home.workspace).await?;
            Ok(rows.into_iter().map(|row| (row.user.to_string(), row.name)).collect())
        }
        Place::There(remote) => {
            let agent = remote.get(&["agents", agent], &[]).await?;
            let workspace = agent["workspace_id"].as_str().unwrap_or_default().to_owned();
            let page = remote.get(&["workspaces", &workspace, "members"], &[]).await?;
            let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_owned();
            let rows = page["data"].as_array().into_iter().flatten();
            Ok(rows.map(|row| (text(row, "user_id"), text(row, "name"))).collect())
        }
    }
}

async fn save(instance: &Instance, name: &str, part: Part, ids: &[String]) -> Result<Value, Failure> {
    let (engine, workspace) = (&instance.engine, instance.home.workspace);
    let row = engine.find_agent(workspace, name).await?;
    let (ids, config) = (Some(ids.iter().cloned().collect()), config_of(&row)?);
    let named = match part {
        Part::Shares => AgentSpec { shared_with: ids, ..AgentSpec::default() },
        Part::Decides => AgentSpec { approvers: ids, ..AgentSpec::default() },
    };
    let people = engine.named_people(workspace, &named, &row.people).await?;
    let next = AgentRow { people, ..engine.next_version(&row, &config)? };
    shown(instance, &engine.put_agent(Actor::User(instance.home.user), next, &config).await?).await
}
