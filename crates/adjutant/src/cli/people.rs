//! `tokens`, `users` and `ws`: who comes in, with what, and where. But for notebooks, all of it is the server's, so one has to be
//! running.

use std::path::{Path, PathBuf};

use adjutant_engine::Env;
use serde_json::{Value, json};

use super::Context;
use super::notebooks;
use super::remote::Remote;
use super::retention;
use super::rules::span;
use super::terminal::{one_line, table};
use super::words::{ago, ours, until};
use crate::failure::{Exit, Failure};

#[derive(Debug, clap::Subcommand)]
pub(super) enum Tokens {
    /// List your tokens
    Ls,
    /// Make a token; its secret is printed this once. With --workspace it opens only that one
    New {
        /// What it is for
        name: String,
        /// A right it has: read, run, write, approvals:decide, admin [default: read, run, write]
        #[arg(long = "scope", value_name = "RIGHT", value_delimiter = ',')]
        scopes: Vec<String>,
        /// When it ends, such as 30d
        #[arg(long, value_name = "SPAN")]
        expires_in: Option<String>,
    },
    /// Take a token away; its streams end within a second
    #[command(visible_alias = "revoke")]
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
    /// List the links of a workspace that nobody has used
    Invites {
        /// The workspace: its id or short name
        workspace: String,
    },
    /// Take a link back that nobody has used
    Withdraw {
        /// The workspace: its id or short name
        workspace: String,
        /// The id of the link, as `invites` lists it
        id: String,
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
    /// List the notebooks of a workspace, and where linked ones lie; `rm` takes one away
    Notebooks(notebooks::Args),
    /// Take a workspace away for good, with all that is in it; linked folders stay as they are
    Rm {
        /// Its id or short name
        workspace: String,
        /// Its short name once more, as it is for good
        #[arg(long, value_name = "NAME")]
        confirm: String,
    },
    /// Set something for a whole workspace; it counts from the next step of every run on
    Set {
        /// Its id or short name
        workspace: String,
        /// Its name
        #[arg(long)]
        name: Option<String>,
        /// The IANA time zone of its days and months, such as Europe/Berlin
        #[arg(long, value_name = "ZONE")]
        time_zone: Option<String>,
        /// What texts may hold, for all its agents: a file with a JSON array of entries, or - for standard input
        #[arg(long, value_name = "FILE")]
        content_filter: Option<PathBuf>,
        /// How long what was said in runs that have ended is kept, such as 90d, after which it is erased for good; or forever
        #[arg(long, value_name = "SPAN")]
        keep_runs: Option<String>,
        /// The tools and toolsets there are for its agents, with commas between them; '*' is all
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        tools: Option<Vec<String>>,
        /// The providers whose models may be asked, with commas between them, or * for all of them
        #[arg(long, value_name = "NAMES", value_delimiter = ',')]
        providers: Option<Vec<String>>,
        /// The model of agents that leave it to the default; `default` for the instance's own
        #[arg(long, value_name = "MODEL")]
        model: Option<String>,
    },
    /// Forget what was said in runs that ended before a day; that they happened stays on record
    Erase(retention::Erase),
    /// Write runs that ended before a day to a file that verifies anywhere, and forget what was said in them
    Archive(retention::Archive),
    /// Show what is set for a workspace, and how much it holds
    Show {
        /// Its id or short name
        workspace: String,
    },
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
                if rows(&page).is_empty() {
                    return vec![ours("You have no tokens.  adjutant tokens new NAME")];
                }
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
        Tokens::New { name, scopes, expires_in } => {
            let ends = expires_in.as_deref().map(span).transpose()?.map(|span| Env::system().now().after(span));
            let mut body = json!({"name": name, "workspace_id": context.workspace, "expires_at": ends});
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
        Users::Invites { workspace } => {
            let page = remote.get(&["workspaces", &workspace, "invites"], &[]).await?;
            context.print(&page, || {
                let row = |row: &Value| vec![word(row, "id"), word(row, "role"), until(&word(row, "expires_at"))];
                let cells: Vec<_> = rows(&page).iter().map(row).collect();
                table(&["ID", "ROLE", "ENDS"], &cells, context.terminal.out)
            });
        }
        Users::Withdraw { workspace, id } => {
            remote.delete(&["workspaces", &workspace, "invites", &id]).await?;
            context.print(&json!({"id": id, "removed": true}), || vec![format!("✔ taken back: {id}")]);
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
        Ws::Notebooks(args) => return notebooks::execute(context, args).await,
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
        Ws::Rm { workspace, confirm } => {
            remote.delete_with(&["workspaces", &workspace], &[("confirm", confirm.as_str())]).await?;
            context.print(&json!({"removed": workspace}), || vec![format!("✔ gone: {}", one_line(&workspace))]);
        }
        Ws::Erase(args) => return retention::erase(context, &remote, args).await,
        Ws::Archive(args) => return retention::archive(context, &remote, args).await,
        Ws::Set { workspace, name, time_zone, content_filter, keep_runs, tools, providers, model } => {
            let mut body = serde_json::Map::new();
            body.extend(name.map(|name| ("name".to_owned(), json!(name))));
            body.extend(time_zone.map(|zone| ("time_zone".to_owned(), json!(zone))));
            let filter = content_filter.as_deref().map(entries).transpose()?;
            body.extend(filter.map(|entries| ("content_filter".to_owned(), entries)));
            body.extend(keep_runs.map(|span| ("keep_runs".to_owned(), json!(span))));
            body.extend(tools.map(|names| ("tools".to_owned(), json!(names))));
            body.extend(providers.map(|names| ("allowed_providers".to_owned(), json!(names))));
            body.extend(model.map(|model| ("default_model".to_owned(), json!(model))));
            let row = remote.patch(&["workspaces", &workspace], &Value::Object(body)).await?;
            context.print(&row, || settings(&row));
        }
        Ws::Show { workspace } => {
            let mut row = remote.get(&["workspaces", &workspace], &[]).await?;
            // Only admins are told.
            row["size"] = remote.get(&["workspaces", &workspace, "size"], &[]).await.unwrap_or_default();
            context.print(&row, || settings(&row));
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

/// The entries of a content filter, as they are in a file.
fn entries(file: &Path) -> Result<Value, Failure> {
    let text =
        if file == Path::new("-") { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let refused = |why: String| Failure::usage(format!("{}: {why}. Nothing was changed.", file.display()));
    let text = text.map_err(|why| refused(why.to_string()))?;
    serde_json::from_str(&text).map_err(|why| refused(format!("not a JSON array of entries: {why}")))
}

/// The names that a workspace allows, in words.
fn allowed(row: &Value, field: &str, none: &str) -> String {
    let names: Vec<_> = row[field].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    match names[..] {
        [] => none.to_owned(),
        ["*"] => "all".to_owned(),
        [..] => one_line(&names.join(", ")),
    }
}

/// What is set for a workspace, as lines.
fn settings(row: &Value) -> Vec<String> {
    let mut lines = vec![
        format!("workspace       {}  ({})", word(row, "slug"), word(row, "id")),
        format!("name            {}", word(row, "name")),
        format!("time zone       {}", word(row, "time_zone")),
        format!("keeps runs      {}", word(row, "keep_runs")),
        format!("tools           {}", allowed(row, "tools", "none")),
        format!("providers       {}", allowed(row, "allowed_providers", "none but the built-in one")),
        format!("model           {}", word(row, "default_model")),
    ];
    lines.extend(retention::sizes(&row["size"]));
    let entries = row["content_filter"].as_array().map(Vec::as_slice).unwrap_or_default();
    let first = if entries.is_empty() { "nothing for all agents" } else { "" };
    lines.push(format!("content filter  {first}").trim_end().to_owned());
    lines.extend(entries.iter().map(|entry| {
        let finds = entry["pattern"]
            .as_str()
            .map_or_else(|| word(entry, "category"), |pattern| format!("/{}/", one_line(pattern)));
        let points: Vec<_> = entry["points"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        format!("  {} {finds} in {}", word(entry, "action"), points.join(", "))
    }));
    lines
}
