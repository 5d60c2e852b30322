//! `inbox show`: one item in full, as it stands in the log of its run.

use adjutant_core::guard::rule::Match;
use adjutant_engine::store::row::ApprovalRow;
use serde_json::Value;

use crate::cli::Context;
use crate::cli::find;
use crate::cli::place::Place;
use crate::cli::prompt::pretty;
use crate::cli::terminal::{Style, one_line, visible};
use crate::cli::words::{ours, short};
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

/// An item of the instance here, as the log of its run has it.
pub(super) async fn shown(instance: &Instance, row: &ApprovalRow, secrets: Secrets) -> Result<Value, Failure> {
    let state = instance.engine.run_state(instance.home.workspace, row.run).await?;
    let events = state.approvals.get(&row.id).map(wire::events_of).unwrap_or_default();
    let texts = Texts::load(&instance.engine, instance.home.workspace, &events).await?;
    Ok(serde_json::json!(wire::item(row, &state, &texts, secrets)))
}

/// The whole of an item: why it asks, and everything that would happen.
pub(super) fn lines(item: &Value, style: Style) -> Vec<String> {
    let word = |field: &str| visible(&one_line(item[field].as_str().unwrap_or_default()));
    let waits = word("status") == "pending";
    let mut lines = vec![
        format!("{}  {}  {}", style.bold(&word("id")), word("kind"), super::ls::state(item)),
        word("summary"),
        format!("why: {} (by {})   risk: {}", word("reason"), word("rule"), word("risk")),
    ];
    if item["context_summary"].is_string() {
        lines.push(format!("answering: “{}”", word("context_summary")));
    }
    lines.extend(seen(item, style));
    lines.push(style.dim(&format!("asked {} by {} · run {}", word("created_at"), word("agent_id"), word("run_id"))));
    if waits && item["expires_at"].is_string() {
        let over = if item["kind"] == "budget" { "goes on by itself at" } else { "counts as no after" };
        lines.push(style.dim(&format!("{over} {}", word("expires_at"))));
    }
    if item["decision"].is_string() {
        let decision = if item["decision"] == "edit" { "approved with changes".to_owned() } else { word("decision") };
        lines.push(format!("decided: {decision} by {}", word("decided_by")));
    }
    if item["message"].is_string() {
        lines.push(format!("message: {}", word("message")));
    }
    lines.extend(rule_lines(item));
    if !item["edited_arguments"].is_null() {
        let edited = visible(&pretty(&item["edited_arguments"].to_string()));
        lines.extend([String::new(), "approved with these arguments:".to_owned(), edited]);
        lines.extend([String::new(), "what was asked for:".to_owned()]);
    }
    if !item["arguments"].is_null() {
        if item["edited_arguments"].is_null() {
            lines.push(String::new());
        }
        match item["diff"].as_str() {
            Some(diff) => lines.extend(style.diff(diff)),
            None => lines.push(visible(&pretty(&item["arguments"].to_string()))),
        }
    }
    if waits {
        lines.extend(offers(item, style));
    }
    if item["hidden"] == true {
        let told = format!("secrets are hidden; adjutant inbox show {} --reveal shows them", short(&word("id")));
        lines.extend([String::new(), style.dim(&ours(&told))]);
    }
    lines
}

/// What the run had read when it asked, and where what nobody here wrote came from.
fn seen(item: &Value, style: Style) -> Vec<String> {
    let labels = words(&item["labels"]);
    if labels.is_empty() {
        return Vec::new();
    }
    let line = format!("has read: {}", labels.join(", "));
    let is_untrusted = labels.iter().any(|label| label == "untrusted");
    let mut lines = vec![if is_untrusted { style.warn(&line) } else { line }];
    lines.extend(words(&item["sources"]).iter().map(|source| format!("  untrusted: {source}")));
    lines
}

/// What may be answered, and how.
fn offers(item: &Value, style: Style) -> Vec<String> {
    let word = |field: &str| visible(&one_line(item[field].as_str().unwrap_or_default()));
    let (decisions, scopes) = (words(&item["allowed_decisions"]), words(&item["allowed_scopes"]));
    let mut lines = vec![String::new()];
    if !decisions.is_empty() {
        let scopes = if scopes.is_empty() { String::new() } else { format!("   a yes for: {}", scopes.join(", ")) };
        lines.push(style.dim(&format!("answers: {}{scopes}", decisions.join(", "))));
    }
    if scopes.len() > 1
        && let Ok(place) = serde_json::from_value::<Match>(item["place"].clone())
    {
        let longer = scopes[1..].join("|");
        let lasting =
            format!("a yes for longer (--for {longer}) would allow {}{}", word("tool_name"), place.in_words());
        lines.push(style.dim(&one_line(&lasting)));
    }
    let id = short(&word("id"));
    lines.push(ours(&match word("kind").as_str() {
        "budget" => format!(
            "adjutant inbox approve {id}    (or: inbox edit {id} --arguments '{{\"raise_usd\": 1}}', inbox reject {id})"
        ),
        "in_doubt" => format!("adjutant inbox resolve {id} happened|run|abandon"),
        _ => format!("adjutant inbox approve {id}"),
    }));
    lines
}

/// The rule that an answer has written, when it ends, and how to take it back.
pub(super) fn rule_lines(item: &Value) -> Vec<String> {
    let rule = &item["rule_written"];
    if rule.is_null() {
        return Vec::new();
    }
    let word = |field: &str| visible(&one_line(rule[field].as_str().unwrap_or_default()));
    let id = short(&word("id"));
    let ends = if rule["expires_at"].is_string() { word("expires_at") } else { "never".to_owned() };
    vec![
        format!("  rule: {}  ({id})", word("says")),
        ours(&format!("  ends: {ends}   to take it back: adjutant rules rm {id}")),
    ]
}

/// The texts of a list.
fn words(list: &Value) -> Vec<String> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| visible(&one_line(text))).collect()
}
