//! `agents reach`: how much of a notebook an agent reaches, by verb, and what lies just outside.

use adjutant_core::id::NotebookId;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::{clean, table};
use crate::cli::words::count;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The agent's short name or id
    agent: String,
    /// The notebook, if not the one a run would get
    #[arg(long, value_name = "NAME")]
    notebook: Option<String>,
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let document = match place {
        Place::Here(instance) => {
            let row = instance.engine.find_agent(instance.home.workspace, &args.agent).await?;
            let agent = instance.engine.current_agent(instance.home.workspace, row.id).await?;
            let notebook = notebook(instance, args.notebook.as_deref()).await?;
            wire::reach(&instance.engine.reach(instance.home.workspace, &agent, notebook).await?)
        }
        Place::There(remote) => {
            let mut draft = remote.get(&["agents", &args.agent], &[]).await?;
            if let Some(notebook) = &args.notebook {
                draft["notebook_id"] = json!(notebook);
            }
            remote.post(&["scope", "preview"], &draft).await?
        }
    };
    context.print(&document, || lines(context, &document));
    Ok(Exit::Done)
}

/// The notebook a person means by its short name or id.
pub(super) async fn notebook(instance: &Instance, name: Option<&str>) -> Result<Option<NotebookId>, Failure> {
    let Some(name) = name else { return Ok(None) };
    let rows = instance.engine.store().notebooks(instance.home.workspace).await?;
    let found = rows.iter().find(|row| row.slug == name || row.id.to_string() == name);
    found.map(|row| Some(row.id)).ok_or_else(|| Failure::not_found(format!("There is no notebook `{name}`.")))
}

/// The verbs in the order a person reads them, with what they count.
const VERBS: [(&str, &str, &str); 5] = [
    ("read", "file", "files"),
    ("list", "folder", "folders"),
    ("write", "file", "files"),
    ("create", "folder", "folders"),
    ("delete", "file", "files"),
];

fn number(value: &Value) -> usize {
    value.as_u64().and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn lines(context: &Context, document: &Value) -> Vec<String> {
    let style = context.terminal.out;
    let Some(notebook) = document["notebook"].as_str() else {
        return vec!["The agent's scope admits no notebook: it reaches no file.".to_owned()];
    };
    let more = if document["cut"] == true { ", and more that were not looked at" } else { "" };
    let entries = count(number(&document["entries"]), "entry", "entries");
    let mut lines = vec![format!("{}: {entries}{more}", style.bold(&clean(notebook)))];
    let row = |(name, one, many): (&str, &str, &str)| {
        let found = &document["reach"][name];
        let asks = match found["first"]["verdict"].as_str() {
            Some("allow") => "free",
            Some("ask") => "asks",
            Some(_) => "no tool does it",
            None => "",
        };
        let samples = list(&found["samples"]).iter().filter_map(Value::as_str).map(clean).collect::<Vec<_>>();
        vec![name.to_owned(), count(number(&found["count"]), one, many), asks.to_owned(), samples.join("  ")]
    };
    lines.extend(table(&["VERB", "REACHES", "FIRST", "SAMPLES"], &VERBS.map(row), style));
    let outside = &document["just_outside"];
    if !list(&outside["samples"]).is_empty() {
        lines.push(format!("just outside: {}", count(number(&outside["count"]), "thing", "things")));
        lines.extend(list(&outside["samples"]).iter().map(|thing| {
            let text = |field: &str| thing[field].as_str().map(clean).unwrap_or_default();
            let grant = thing["smallest_grant"].as_str().map(|grant| format!("  → {}", clean(grant)));
            format!("  {}  {}{}", text("path"), style.dim(&text("rule")), grant.unwrap_or_default())
        }));
    }
    lines
}
