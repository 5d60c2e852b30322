//! `ws add` and `ws notebooks`: the folders that agents work in. Whoever holds the data directory is the owner of the instance.

use std::path::PathBuf;

use adjutant_engine::NewLink;
use adjutant_engine::store::row::{NotebookRow, WorkspaceRow};
use serde_json::{Value, json};

use super::Context;
use super::place::{Place, Work};
use super::terminal::{one_line, table};
use super::words::ours;
use crate::failure::{Exit, Failure};
use crate::instance::{Instance, own_places};

#[derive(Debug, clap::Args)]
pub(super) struct Add {
    /// The folder
    path: PathBuf,
    /// Its short name [default: made from the name of the folder]
    #[arg(long, value_name = "NAME")]
    slug: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// The workspace: its id or short name [default: the only one]
    workspace: Option<String>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Take a notebook away for good, with its files; one that is linked is only unlinked
    Rm {
        /// Its id or short name
        notebook: String,
        /// Its short name once more, as it is for good
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    match args.command {
        None => list(context, args.workspace.as_deref()).await,
        Some(Command::Rm { notebook, confirm }) => remove(context, &notebook, &confirm).await,
    }
}

async fn remove(context: &Context, notebook: &str, confirm: &str) -> Result<Exit, Failure> {
    let place = Place::find(context, "ws notebooks rm", Work::Looks).await?;
    let removed = match &place {
        Place::Here(instance) => remove_here(instance, notebook, confirm).await,
        Place::There(remote) => {
            let workspace = remote.only_workspace().await?;
            let query = [("confirm", confirm)];
            remote.delete_with(&["workspaces", &workspace, "notebooks", notebook], &query).await.map(drop)
        }
    };
    place.close().await;
    removed?;
    context.print(&json!({"removed": notebook}), || vec![format!("✔ gone: {}", one_line(notebook))]);
    Ok(Exit::Done)
}

async fn remove_here(instance: &Instance, name: &str, confirm: &str) -> Result<(), Failure> {
    let home = instance.home;
    let rows = instance.engine.store().notebooks(home.workspace).await?;
    let found = rows.iter().find(|row| row.slug == name || row.id.to_string() == name);
    let row = found.ok_or_else(|| Failure::not_found(format!("There is no notebook `{name}`. Nothing was done.")))?;
    Ok(instance.engine.remove_notebook(home.workspace, home.user, row.id, confirm).await?)
}

pub(super) async fn add(context: &Context, args: Add) -> Result<Exit, Failure> {
    let folder = std::path::absolute(&args.path)
        .map_err(|error| Failure::usage(format!("{}: {error}. Nothing was linked.", args.path.display())))?;
    let place = Place::find(context, "ws add", Work::Looks).await?;
    let made = match &place {
        Place::Here(instance) => {
            let link = NewLink { folder, slug: args.slug, own: own_places(&context.config()?) };
            link_here(instance, link).await
        }
        Place::There(remote) => {
            let workspace = remote.only_workspace().await?;
            let body = json!({"path": folder, "slug": args.slug});
            remote.post(&["workspaces", &workspace, "notebooks"], &body).await
        }
    };
    place.close().await;
    let made = made?;
    context.print(&made, || {
        let (slug, path) = (word(&made, "slug"), word(&made, "path"));
        vec![
            format!("✔ linked: {slug}  {path}"),
            ours(&format!(
                "agents whose scope names it may be started there: adjutant run AGENT \"task\" --notebook {slug}"
            )),
        ]
    });
    Ok(Exit::Done)
}

async fn link_here(instance: &Instance, link: NewLink) -> Result<Value, Failure> {
    let home = instance.home;
    Ok(document(&instance.engine.link_notebook(home.workspace, home.user, link).await?))
}

async fn list(context: &Context, named: Option<&str>) -> Result<Exit, Failure> {
    let place = Place::find(context, "ws notebooks", Work::Looks).await?;
    let page = match &place {
        Place::Here(instance) => list_here(instance, named).await,
        Place::There(remote) => {
            let workspace = match named {
                Some(name) => name.to_owned(),
                None => remote.only_workspace().await?,
            };
            remote.get(&["workspaces", &workspace, "notebooks"], &[]).await
        }
    };
    place.close().await;
    let page = page?;
    context.print(&page, || {
        let row = |row: &Value| vec![word(row, "slug"), word(row, "kind"), word(row, "path"), word(row, "id")];
        let cells: Vec<_> = page["data"].as_array().into_iter().flatten().map(row).collect();
        table(&["NOTEBOOK", "KIND", "FOLDER", "ID"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

async fn list_here(instance: &Instance, named: Option<&str>) -> Result<Value, Failure> {
    let workspace = workspace(instance, named).await?;
    let rows = instance.engine.store().notebooks(workspace.id).await?;
    let data: Vec<_> = rows.iter().map(document).collect();
    Ok(json!({"data": data, "has_more": false, "next_cursor": null}))
}

async fn workspace(instance: &Instance, named: Option<&str>) -> Result<WorkspaceRow, Failure> {
    let mut rows = instance.engine.store().workspaces().await?;
    rows.retain(|row| !row.is_closed());
    let home = instance.home.workspace;
    let meant =
        |row: &WorkspaceRow| named.map_or(row.id == home, |name| row.slug == name || row.id.to_string() == name);
    let found = rows.into_iter().find(meant);
    found.ok_or_else(|| Failure::not_found(format!("There is no workspace `{}`.", named.unwrap_or("home"))))
}

fn document(row: &NotebookRow) -> Value {
    let kind = if row.linked.is_some() { "linked" } else { "managed" };
    json!({
        "id": row.id, "workspace_id": row.workspace, "slug": row.slug, "kind": kind, "path": row.linked,
        "created_at": row.created_at,
    })
}

fn word(row: &Value, field: &str) -> String {
    one_line(row[field].as_str().unwrap_or_default())
}
