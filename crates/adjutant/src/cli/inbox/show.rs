//! `inbox show`: one item in full, as it stands in the log of its run.

use adjutant_core::guard::rule::Match;
use adjutant_engine::store::row::ApprovalRow;
use serde_json::Value;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::prompt::pretty;
use crate::cli::terminal::{Style, one_line, visible};
use crate::cli::words::short;
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, Secrets, Texts};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The item, or as much of its id as no other has
    id: String,
    /// Show the secrets in it too; that is recorded
    #[arg(long)]
    reveal: bool,
}

pub(super) async fn execute(context: &Context, place: &Place, args: Args) -> Result<Exit, Failure> {
    let item = if args.reveal { revealed(place, &args.id).await? } else { item(place, &args.id).await? };
    context.print(&item, || lines(&item, context.terminal.out));
    Ok(Exit::Done)
}

/// One item in its public form, with what was asked. A secret in it shows its kind and its length.
pub(super) async fn item(place: &Place, name: &str) -> Result<Value, Failure> {
    match place {
        Place::Here(instance) => {
            let row = find::approval(instance, name).await?;
            shown(instance, &row, Secrets::Hidden).await
        }
        Place::There(remote) => remote.get(&["approvals", &remote.approval_id(name).await?], &[]).await,
    }
}

/// The same with its secrets, which is recorded.
pub(super) async fn revealed(place: &Place, name: &str) -> Result<Value, Failure> {
    match place {
        Place::Here(instance) => {
            let row = find::approval(instance, name).await?;
            instance.engine.record_reveal(instance.home.workspace, instance.home.user, &row).await?;
            shown(instance, &row, Secrets::Shown).await
        }
        Place::There(remote) => {
            remote.get(&["approvals", &remote.approval_id(name).await?], &[("reveal", "true")]).await
        }
    }
}

async fn shown(instance: &Instance, row: &ApprovalRow, secrets: Secrets) -> Result<Value, Failure> {
    let state = instance.engine.run_state(instance.home.workspace, row.run).await?;
    let approval = state.approvals.get(&row.id);
    let events = approval.map(wire::events_of).unwrap_or_default();
    let texts = Texts::load(&instance.engine, instance.home.workspace, &events).await?;
    Ok(serde_json::json!(wire::approval(row, approval, &texts, secrets)))
}

fn lines(item: &Value, style: Style) -> Vec<String> {
    let word = |field: &str| visible(&one_line(item[field].as_str().unwrap_or_default()));
    let waits = word("status") == "pending";
    let mut lines = vec![
        format!("{}  {}  {}", style.bold(&word("id")), word("kind"), word("status")),
        word("summary"),
        format!("why: {} (rule {})   risk: {}", word("reason"), word("rule"), word("risk")),
        style.dim(&format!("asked {} by {} · run {}", word("created_at"), word("agent_id"), word("run_id"))),
    ];
    if waits && item["expires_at"].is_string() {
        let over = if item["kind"] == "budget" { "goes on by itself at" } else { "counts as no after" };
        lines.push(style.dim(&format!("{over} {}", word("expires_at"))));
    }
    if item["decision"].is_string() {
        lines.push(format!("decided: {} by {}", word("decision"), word("decided_by")));
    }
    if !item["arguments"].is_null() {
        lines.push(String::new());
        match item["diff"].as_str() {
            Some(diff) => lines.extend(style.diff(diff)),
            None => lines.push(visible(&pretty(&item["arguments"].to_string()))),
        }
    }
    let offers_more = item["allowed_scopes"].as_array().is_some_and(|scopes| scopes.len() > 1);
    if waits
        && offers_more
        && let Ok(place) = serde_json::from_value::<Match>(item["place"].clone())
    {
        let lasting =
            format!("a yes for longer (--for run|chat|always) would allow {}{}", word("tool_name"), place.in_words());
        lines.extend([String::new(), style.dim(&one_line(&lasting))]);
    }
    if item["hidden"] == true {
        let told = format!("secrets are hidden; adjutant inbox show {} --reveal shows them", short(&word("id")));
        lines.extend([String::new(), style.dim(&told)]);
    }
    if waits {
        let id = short(&word("id"));
        let next = match word("kind").as_str() {
            "budget" => format!(
                "adjutant inbox approve {id}    (or: inbox edit {id} --arguments '{{\"raise_usd\": 1}}', inbox reject {id})"
            ),
            "in_doubt" => format!("adjutant inbox resolve {id} happened|run|abandon"),
            _ => format!("adjutant inbox approve {id}"),
        };
        lines.extend([String::new(), next]);
    }
    lines
}
