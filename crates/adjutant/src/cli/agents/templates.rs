//! `agents templates` and `agents resync`: the agents that come with Adjutant, and putting them into a workspace.

use adjutant_core::run::event::Actor;
use adjutant_engine::{Resync, templates};
use serde_json::{Value, json};

use super::import;
use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::{one_line, table};
use crate::failure::{Exit, Failure};

pub(super) async fn ls(context: &Context, place: &Place) -> Result<Exit, Failure> {
    let page = match place {
        Place::Here(_) => {
            let shown = |spec| {
                let mut body: Value = serde_json::to_value(spec).unwrap_or_default();
                if let Some(fields) = body.as_object_mut() {
                    fields.retain(|_, value| !value.is_null());
                }
                body
            };
            json!({"data": templates().iter().map(shown).collect::<Vec<_>>(), "has_more": false})
        }
        Place::There(remote) => remote.get(&["agents", "templates"], &[]).await?,
    };
    context.print(&page, || {
        let word = |row: &Value, field: &str| one_line(row[field].as_str().unwrap_or_default());
        let what = |row: &Value| format!("{} {}", word(row, "emoji"), word(row, "description"));
        let row = |row: &Value| vec![word(row, "slug"), word(row, "category"), what(row)];
        let cells: Vec<_> = page["data"].as_array().map(Vec::as_slice).unwrap_or_default().iter().map(row).collect();
        table(&["TEMPLATE", "CATEGORY", "FOR"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

pub(super) async fn resync(context: &Context, place: &Place, dry_run: bool) -> Result<Exit, Failure> {
    let changes = changes(place).await?;
    let page = match place {
        Place::Here(instance) => {
            let mode = if dry_run { Resync::DryRun } else { Resync::Real };
            let (workspace, by) = (instance.home.workspace, Actor::User(instance.home.user));
            let done = instance.engine.resync_agents(workspace, by, mode).await?;
            json!({"data": done, "has_more": false})
        }
        Place::There(remote) => {
            let workspace = remote.only_workspace().await?;
            let dry = if dry_run { "true" } else { "false" };
            let query = [("workspace_id", workspace.as_str()), ("dry_run", dry)];
            remote.post_with(&["agents", "resync"], &query, &json!({})).await?
        }
    };
    context.print(&page, || {
        let word = |row: &Value, field: &str| one_line(row[field].as_str().unwrap_or_default());
        let row = |row: &Value| vec![word(row, "slug"), word(row, "change")];
        let rows = page["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let cells: Vec<_> = rows.iter().map(row).collect();
        let mut lines = table(&["AGENT", if dry_run { "WOULD BE" } else { "IS" }], &cells, context.terminal.out);
        // An agent that is left alone, such as somebody's own of that name, changes in nothing.
        let changed = |slug: &str| rows.iter().any(|row| row["slug"] == slug && row["change"] == "changed");
        lines.extend(changes.iter().filter(|(slug, _)| changed(slug)).map(|(_, line)| one_line(line)));
        lines
    });
    Ok(Exit::Done)
}

/// What the templates would change in what the agents of their names may do, a line for each thing, with the name.
async fn changes(place: &Place) -> Result<Vec<(String, String)>, Failure> {
    let mut lines = Vec::new();
    for template in templates().into_iter().filter_map(|spec| spec.complete().ok()) {
        if let Some((_, Some(now))) = import::before(place, &template.slug).await? {
            let changed = template.changes_since(&now);
            lines.extend(changed.iter().map(|line| (template.slug.clone(), format!("{}: {line}", template.slug))));
        }
    }
    Ok(lines)
}
