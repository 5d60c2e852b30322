//! `agents can`: what the guard would say to one action of an agent, by which rule, and what would change it.

use adjutant_core::guard::judge::Decision;
use adjutant_core::guard::scope::Action;
use adjutant_engine::Wish;
use adjutant_engine::tools::Registry;
use serde_json::{Value, json};

use crate::cli::Context;
use crate::cli::place::Place;
use crate::cli::terminal::clean;
use crate::failure::{Exit, Failure};
use crate::instance;
use crate::wire;

#[derive(Debug, clap::Args)]
#[command(after_help = "adjutant agents can guide write /todo.md\n\
    adjutant agents can guide kv_set '{\"key\": \"colour\", \"value\": \"green\"}'")]
pub(super) struct Args {
    /// The agent's short name or id
    agent: String,
    /// read, list, write, create, delete, execute, move, copy; or the name of a tool
    action: String,
    /// The path; or the arguments of the tool as JSON
    target: String,
    /// The notebook, if not the one a run would get
    #[arg(long, value_name = "NAME")]
    notebook: Option<String>,
}

pub(super) async fn execute(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let wish = wish(&args.action, &args.target)?;
    let document = asked(place, &args.agent, args.notebook.as_deref(), &wish).await?;
    let denied = document["verdict"] == Decision::Deny.word();
    context.print(&document, || {
        let style = context.terminal.out;
        let field = |name: &str| document[name].as_str().map(clean);
        let word = match document["verdict"].as_str() {
            Some("allow") => style.good("yes"),
            Some("ask") => style.bold("yes, after asking"),
            Some(_) | None => style.bad("no"),
        };
        let (reason, rule) = (field("reason").unwrap_or_default(), field("rule").unwrap_or_default());
        let mut lines = vec![format!("{word}: {reason}"), format!("rule   {rule}")];
        lines.extend(field("tool").map(|tool| format!("tool   {tool}")));
        lines.extend(field("smallest_grant").map(|grant| format!("grant  {grant}")));
        lines
    });
    Ok(if denied { Exit::Rejected } else { Exit::Done })
}

/// What the guard says to a wish of an agent, as it is answered.
pub(super) async fn asked(place: &Place, agent: &str, notebook: Option<&str>, wish: &Wish) -> Result<Value, Failure> {
    match place {
        Place::Here(instance) => {
            let row = instance.engine.find_agent(instance.home.workspace, agent).await?;
            let agent = instance.engine.current_agent(instance.home.workspace, row.id).await?;
            let notebook = super::reach::notebook(instance, notebook).await?;
            Ok(wire::can(&instance.engine.can(instance.home.workspace, &agent, notebook, wish).await?))
        }
        Place::There(remote) => {
            let mut body = match wish {
                Wish::Path { action, path } => json!({"action": action, "path": path}),
                Wish::Call { tool, arguments } => json!({"tool": tool, "arguments": arguments}),
            };
            if let Some(notebook) = notebook {
                body["notebook_id"] = json!(notebook);
            }
            remote.post(&["agents", agent, "can"], &body).await
        }
    }
}

fn wish(action: &str, target: &str) -> Result<Wish, Failure> {
    if let Ok(action) = serde_json::from_value::<Action>(Value::String(action.to_owned())) {
        return Ok(Wish::Path { action, path: target.to_owned() });
    }
    let known = instance::known(&Registry::builtin()).tools;
    let arguments = adjutant_core::guard::arguments::parse(target).map_err(|bad| {
        if !known.iter().any(|tool| tool == action) {
            let actions =
                "read, list, write, create, delete, execute, move, copy, or a tool with its arguments as JSON";
            return Failure::usage(format!("There is no action or tool `{action}`. Nothing was asked.")).hint(actions);
        }
        Failure::usage(format!("`{action}` is taken for a tool, and its arguments cannot be read: {bad}."))
            .hint("write the arguments as JSON, or one of read, list, write, create, delete, execute, move, copy")
    })?;
    Ok(Wish::Call { tool: action.to_owned(), arguments })
}
