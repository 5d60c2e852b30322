//! `tokens`, `users` and `ws`: who comes in, with what, and where. But for notebooks, all of it is the server's, so one has to be
//! running.

use adjutant_engine::Env;
use serde_json::{Value, json};

use super::Context;
use super::notebooks;
use super::remote::Remote;
use super::rules::span;
use super::terminal::{one_line, table};
use super::words::{ago, until};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Tokens {
    /// List your tokens
    Ls,
    /// Make a token; its secret is printed this once
    New {
        /// What it is for
        name: String,
        /// A right it has: read, run, write, approvals:decide, admin [default: read, run, write]
        #[arg(long = "scope", value_name = "RIGHT")]
        scopes: Vec<String>,
        /// The only workspace it opens
        #[arg(long, value_name = "WORKSPACE")]
        workspace: Option<String>,
        /// When it ends, such as 30d
        #[arg(long, value_name = "SPAN")]
        expires_in: Option<String>,
    },
    /// Take a token away; its streams end within a second
    Rm {
        /// Its id
        id: String,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Users {
    /// List everybody
    Ls,
    /// Make a link by which somebody comes into a workspace
    Invite {
        /// The workspace: its id or short name
        workspace: String,
        /// What they may do there
        #[arg(value_parser = ["read", "write", "admin"], default_value = "write")]
        role: String,
    },
    /// Make a link by which somebody chooses a new password
    Reset {
        /// Their name or id
        name: String,
    },
    /// Switch somebody off: their sessions end within a second
    Off {
        /// Their name or id
        name: String,
    },
    /// Switch somebody on again
    On {
        /// Their name or id
        name: String,
    },
}

#[derive(Debug, clap::Subcommand)]
pub(super) enum Ws {
    /// List the workspaces you are in
    Ls,
    /// Make a workspace
    New {
        /// Its name
        name: String,
    },
    /// Link a folder you have as a notebook: agents work on it where it is, within their scope
    Add(notebooks::Add),
    /// List the notebooks of a workspace, and where linked ones lie
    Notebooks(notebooks::List),
    /// List who is in a workspace
    Members {
        /// Its id or short name
        workspace: String,
    },
}

async fn server(context: &Context) -> Result<Remote, Failure> {
    Remote::found(context).await?.ok_or_else(|| {
        Failure::new(
            Exit::Unreachable,
            "unreachable",
            "People, tokens and workspaces are the server's, and none runs here.",
        )
        .hint("adjutant serve starts one; --url names another")
    })
}

fn rows(page: &Value) -> &[Value] {
    page["data"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn word(row: &Value, field: &str) -> String {
    one_line(row[field].as_str().unwrap_or_default())
}

pub(super) async fn tokens(context: &Context, command: Tokens) -> Result<Exit, Failure> {
    let remote = server(context).await?;
    match command {
        Tokens::Ls => {
            let page = remote.get(&["tokens"], &[]).await?;
            context.print(&page, || {
                let row = |row: &Value| {
                    let scopes = row["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
                    let scopes: Vec<_> = scopes.iter().filter_map(Value::as_str).collect();
                    let ends = match row["expires_at"].as_str() {
                        Some(at) => until(at),
                        None => "never".to_owned(),
                    };
                    let used = row["last_used_at"].as_str().map(ago).unwrap_or_default();
                    vec![word(row, "id"), word(row, "name"), word(row, "hint"), scopes.join(" "), ends, used]
                };
                let cells: Vec<_> = rows(&page).iter().map(row).collect();
                table(&["ID", "NAME", "TOKEN", "MAY", "ENDS", "USED"], &cells, context.terminal.out)
            });
        }
        Tokens::New { name, scopes, workspace, expires_in } => {
            let ends = expires_in.as_deref().map(span).transpose()?.map(|span| Env::system().now().after(span));
            let mut body = json!({"name": name, "workspace_id": workspace, "expires_at": ends});
            if !scopes.is_empty() {
                body["scopes"] = json!(scopes);
            }
            let made = remote.post(&["tokens"], &body).await?;
            context.print(&made, || vec![word(&made, "token")]);
        }
        Tokens::Rm { id } => {
            remote.delete(&["tokens", &id]).await?;
            context.print(&json!({"id": id, "removed": true}), || vec![format!("✔ removed: {id}")]);
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn users(context: &Context, command: Users) -> Result<Exit, Failure> {
    let remote = server(context).await?;
    let switched = async |name: &str, on: bool| remote.patch(&["users", name], &json!({"is_active": on})).await;
    match command {
        Users::Ls => {
            let page = remote.get(&["users"], &[]).await?;
            context.print(&page, || {
                let row = |row: &Value| {
                    let state = if row["is_active"] == true { "on" } else { "off" };
                    let owner = if row["is_owner"] == true { "owner" } else { "" };
                    vec![
                        word(row, "name"),
                        state.to_owned(),
                        owner.to_owned(),
                        ago(&word(row, "created_at")),
                        word(row, "id"),
                    ]
                };
                let cells: Vec<_> = rows(&page).iter().map(row).collect();
                table(&["NAME", "STATE", "", "SINCE", "ID"], &cells, context.terminal.out)
            });
        }
        Users::Invite { workspace, role } => {
            let invited = remote.post(&["workspaces", &workspace, "invites"], &json!({"role": role})).await?;
            context.print(&invited, || vec![remote.link(&word(&invited, "link"))]);
        }
        Users::Reset { name } => {
            let invited = remote.post(&["users", &name, "reset"], &json!({})).await?;
            context.print(&invited, || vec![remote.link(&word(&invited, "link"))]);
        }
        Users::Off { name } => {
            let user = switched(&name, false).await?;
            context.print(&user, || vec![format!("✔ {} is off", word(&user, "name"))]);
        }
        Users::On { name } => {
            let user = switched(&name, true).await?;
            context.print(&user, || vec![format!("✔ {} is on", word(&user, "name"))]);
        }
    }
    Ok(Exit::Done)
}

pub(super) async fn ws(context: &Context, command: Ws) -> Result<Exit, Failure> {
    let command = match command {
        Ws::Add(args) => return notebooks::add(context, args).await,
        Ws::Notebooks(args) => return notebooks::list(context, args).await,
        other => other,
    };
    let remote = server(context).await?;
    match command {
        // Done above: these need no server.
        Ws::Add(_) | Ws::Notebooks(_) => {}
        Ws::Ls => {
            let page = remote.get(&["workspaces"], &[]).await?;
            context.print(&page, || {
                let row = |row: &Value| vec![word(row, "slug"), word(row, "name"), word(row, "role"), word(row, "id")];
                let cells: Vec<_> = rows(&page).iter().map(row).collect();
                table(&["WORKSPACE", "NAME", "YOU", "ID"], &cells, context.terminal.out)
            });
        }
        Ws::New { name } => {
            let made = remote.post(&["workspaces"], &json!({"name": name})).await?;
            context.print(&made, || vec![format!("✔ made: {}  ({})", word(&made, "slug"), word(&made, "id"))]);
        }
        Ws::Members { workspace } => {
            let page = remote.get(&["workspaces", &workspace, "members"], &[]).await?;
            context.print(&page, || {
                let row = |row: &Value| vec![word(row, "name"), word(row, "role"), word(row, "user_id")];
                let cells: Vec<_> = rows(&page).iter().map(row).collect();
                table(&["NAME", "ROLE", "ID"], &cells, context.terminal.out)
            });
        }
    }
    Ok(Exit::Done)
}
