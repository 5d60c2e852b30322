//! Lists: a run, an inbox item and an agent as one row each.

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::ApprovalAsked;
use adjutant_engine::store::row::{AgentRow, ApprovalRow, RunRow};
use adjutant_engine::{Card, RunSummary};
use serde_json::{Value, json};

use super::event::{ALLOWED_DECISIONS, labels};
use super::texts::Texts;

/// A run as a list shows it.
pub(crate) fn run(row: &RunRow, agent: &str) -> Value {
    let summary: RunSummary = serde_json::from_str(&row.state.summary).unwrap_or_default();
    json!({
        "id": row.id,
        "chat_id": row.chat,
        "agent_id": row.agent,
        "agent": agent,
        "status": row.state.status,
        "title": summary.title,
        "result": summary.result,
        "error": summary.error,
        "created_at": row.created_at,
        "updated_at": row.state.updated_at,
        "finished_at": row.state.ended_at,
        "steps": row.state.turns,
        "calls": row.state.calls,
        "token_usage": row.state.usage,
        "cost_usd": row.state.cost.dollars(),
        "cost_microusd": row.state.cost,
        "cost_estimated": summary.cost_estimated,
        "superseded_by": row.superseded_by,
        "head_seq": row.head.seq,
    })
}

/// Money for a person: a price that is not known is not shown as nothing.
pub(crate) fn cost(cost: MicroUsd, estimated: bool) -> String {
    match (estimated, cost) {
        (true, MicroUsd::ZERO) => "?".to_owned(),
        (true, cost) => format!("~{cost}"),
        (false, cost) => cost.to_string(),
    }
}

/// An inbox item; with what was asked, where the caller has read it from the run's log.
pub(crate) fn approval(row: &ApprovalRow, asked: Option<&ApprovalAsked>, texts: &Texts) -> Value {
    let card: Option<Card> = serde_json::from_str(&row.card).ok();
    let word = |pick: fn(&Card) -> &String| card.as_ref().map(pick);
    let mut shown = json!({
        "id": row.id,
        "kind": row.kind,
        "run_id": row.run,
        "chat_id": row.chat,
        "agent_id": row.agent,
        "call_id": row.call,
        "status": row.status,
        "tool_name": row.tool,
        "summary": word(|card| &card.summary),
        "risk": word(|card| &card.risk),
        "reason": word(|card| &card.reason),
        "rule": word(|card| &card.rule),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "decided_at": row.decided_at,
        "decision": card.as_ref().and_then(|card| card.decision.as_ref()),
        "decided_by": card.as_ref().and_then(|card| card.decided_by.as_ref()),
    });
    if let Some(asked) = asked {
        shown["arguments"] = arguments(&texts.of(&asked.arguments));
        shown["diff"] = json!(asked.diff.as_ref().map(|diff| texts.of(diff)));
        shown["fingerprint"] = json!(asked.fingerprint);
        shown["labels"] = json!(labels(asked.labels));
        shown["allowed_decisions"] = json!(ALLOWED_DECISIONS);
        shown["allowed_scopes"] = json!(asked.allowed_scopes);
        shown["place"] = json!(asked.place);
    }
    shown
}

/// Arguments as JSON where they are, as text where they are not.
fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// An agent with its whole configuration.
pub(crate) fn agent(row: &AgentRow, config: &AgentConfig) -> Value {
    let mut shown = serde_json::to_value(config).unwrap_or_default();
    shown["id"] = json!(row.id);
    shown["version"] = json!(row.version);
    shown["updated_at"] = json!(row.saved_at);
    shown["reach"] = json!(config.reach());
    shown
}
