//! From a stored event to a public one: at most one each, and nothing but what the event itself says.

use std::borrow::Cow;

use adjutant_core::id::RunId;
use adjutant_core::label::Labels;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::{
    Actor, ApprovalAsked, ApprovalDecided, BudgetAlerted, CallEnded, CallInDoubt, CallJudged, CallStarted,
    ContentFiltered, Decision, Errored, Event, ModelAnswered, ModelFailed, ModelRequested, Paused, Resumed, RunEnded,
    RunStarted, Said, Thought,
};
use adjutant_core::time::Time;
use adjutant_engine::Recorded;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::failed;
use super::item::{hide, hide_arguments, hide_value};
use super::texts::Texts;
use crate::failure::title;

/// One public event, as a line of `--json` and as a server-sent event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct WireEvent {
    pub(crate) event: Cow<'static, str>,
    /// The place in the log.
    pub(crate) id: u64,
    pub(crate) data: Value,
}

impl WireEvent {
    /// A text of it; empty where there is none.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.data[field].as_str().unwrap_or_default()
    }

    /// Whether a field of it says yes.
    pub(crate) fn is(&self, field: &str) -> bool {
        self.data[field].as_bool().unwrap_or_default()
    }

    /// A moment of it.
    pub(crate) fn time(&self, field: &str) -> Option<Time> {
        self.data[field].as_str()?.parse().ok()
    }
}

/// The public form of a stored event; none where the kind is nobody's business but ours.
pub(crate) fn event(run: RunId, recorded: &Recorded, texts: &Texts) -> Option<WireEvent> {
    let (name, mut data) = payload(run, &recorded.event, texts)?;
    data.insert("run_id".to_owned(), json!(run));
    data.insert("seq".to_owned(), json!(recorded.seq));
    data.insert("ts".to_owned(), json!(recorded.at));
    Some(WireEvent { event: name.into(), id: recorded.seq, data: Value::Object(data) })
}

type Payload = (&'static str, Map<String, Value>);

fn payload(run: RunId, event: &Event, texts: &Texts) -> Option<Payload> {
    Some(match event {
        Event::RunStarted(body) => started(body, texts),
        Event::Thought(body) => thinking(body, texts),
        Event::Said(Said { turn, text }) => {
            ("answer", object(json!({"type": "ANSWER", "content": texts.of(text), "turn": turn})))
        }
        Event::ModelAnswered(body) => usage(body),
        Event::ModelFailed(body) => return retrying(body),
        Event::BudgetAlerted(body) => budget_alert(body),
        Event::CallJudged(body) => return denied(body),
        Event::ApprovalAsked(body) => approval_required(body, texts),
        Event::ApprovalDecided(body) => decided(body),
        Event::CallStarted(body) => tool_call(body, texts),
        Event::CallEnded(body) => tool_result(body, texts),
        Event::CallInDoubt(body) => in_doubt(body, texts),
        Event::ContentFiltered(body) => filtered(body),
        Event::Paused(body) => paused(body),
        Event::Resumed(body) => resumed(body),
        Event::Cancelled(body) => ("cancelled", object(json!({"reason": body.reason}))),
        Event::Errored(body) => error(body),
        Event::RunEnded(body) => complete(run, body, texts),
        Event::ModelRequested(body) => return compacted(body),
        Event::CallProposed(_) | Event::InDoubtResolved(_) | Event::LabelsRaised(_) | Event::CancelAsked(_) => {
            return None;
        }
    })
}

/// The members of a literal object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

/// Adds a member that is left out when there is none.
fn add(map: &mut Map<String, Value>, name: &str, value: Option<impl Serialize>) {
    if let Some(value) = value.and_then(|value| serde_json::to_value(value).ok()) {
        map.insert(name.to_owned(), value);
    }
}

fn started(body: &RunStarted, texts: &Texts) -> Payload {
    let mut data = object(json!({
        "interaction_id": body.run,
        "chat_id": body.chat,
        "agent_id": body.agent,
        "model": body.model,
        "user_message": body.user_message.as_ref().map(|text| texts.of(text)),
    }));
    // A run that goes on without a message of its own is a fork; otherwise the base is only the chat so far.
    add(&mut data, "parent_run_id", body.base.filter(|_| body.user_message.is_none()).map(|base| base.run));
    add(&mut data, "supersedes", body.supersedes);
    let files = body.attachments.iter().map(|file| json!({"path": file.path, "media_type": file.media_type}));
    add(&mut data, "attachments", Some(files.collect::<Vec<_>>()).filter(|files| !files.is_empty()));
    ("interaction_started", data)
}

fn thinking(body: &Thought, texts: &Texts) -> Payload {
    let content = texts.of(&body.text);
    ("thinking", object(json!({"type": "THINKING", "content": content, "kind": body.form, "turn": body.turn})))
}

fn usage(body: &ModelAnswered) -> Payload {
    let mut data = object(json!({
        "turn": body.turn,
        "model": body.served_model,
        "usage": tokens(body.usage),
        "estimated": body.estimated,
        "finish_reason": body.finish,
        "ms": body.ms,
    }));
    add_cost(&mut data, body.cost);
    add(&mut data, "price_version", body.price_version.as_ref());
    ("usage", data)
}

fn tokens(usage: TokenUsage) -> Value {
    json!({"input": usage.input, "output": usage.output, "cached": usage.cached, "reasoning": usage.reasoning})
}

fn add_cost(data: &mut Map<String, Value>, cost: Option<MicroUsd>) {
    add(data, "cost_usd", cost.map(MicroUsd::dollars));
    add(data, "cost_microusd", cost);
}

/// A failure that is tried again. One that is not shows as the error that ends the run.
fn retrying(body: &ModelFailed) -> Option<Payload> {
    let at = body.retry_at?;
    let mut data = object(
        json!({"turn": body.turn, "attempt": body.attempt, "code": body.class, "reason": body.message, "retry_at": at}),
    );
    add(&mut data, "from", Some(&body.model).filter(|model| !model.is_empty()));
    add(&mut data, "to", body.next.as_ref());
    Some((if body.next.is_some() { "fallback" } else { "retrying" }, data))
}

fn budget_alert(body: &BudgetAlerted) -> Payload {
    let data = json!({
        "purse": body.purse,
        "at_usd": body.at.dollars(),
        "at_microusd": body.at,
        "spent_usd": body.spent.dollars(),
        "spent_microusd": body.spent,
    });
    ("budget_alert", object(data))
}

fn denied(body: &CallJudged) -> Option<Payload> {
    use adjutant_core::guard::judge::Decision as Verdict;
    match body.verdict.decision {
        Verdict::Allow | Verdict::Ask => None,
        Verdict::Deny => {
            let mut data = object(json!({"id": body.call, "rule": body.verdict.rule, "reason": body.verdict.reason}));
            add(&mut data, "smallest_grant", body.verdict.smallest_grant.as_ref());
            Some(("denied", data))
        }
    }
}

fn approval_required(body: &ApprovalAsked, texts: &Texts) -> Payload {
    let (arguments, diff) = (texts.of(&body.arguments), body.diff.as_ref().map(|diff| texts.of(diff)));
    let hidden = (hide_arguments(&arguments), hide(&body.summary), diff.as_deref().map(hide));
    let is_hidden = hidden != (arguments, body.summary.clone(), diff);
    let (arguments, summary, diff) = hidden;
    let mut data = object(json!({
        "approval_id": body.approval,
        "kind": body.kind,
        "call_id": body.call,
        "action": body.tool,
        "tool_name": body.tool,
        "tool_input": arguments,
        "summary": summary,
        "fingerprint": body.fingerprint,
        "risk": body.risk,
        "reason": body.reason,
        "rule": body.rule,
        "labels": labels(body.labels),
        "allowed_decisions": ALLOWED_DECISIONS,
        "allowed_scopes": body.allowed_scopes,
        "expires_at": body.expires_at,
    }));
    add(&mut data, "diff", diff);
    add(&mut data, "place", body.place.as_ref().map(|place| hide_value(&json!(place))));
    add(&mut data, "hidden", is_hidden.then_some(true));
    ("approval_required", data)
}

/// What a person may answer to a held call.
pub(super) const ALLOWED_DECISIONS: [&str; 5] = ["approve", "edit", "respond", "reject", "stop"];

/// What a person may say of a call in doubt.
pub(super) const ALLOWED_OUTCOMES: [&str; 3] = ["happened", "run", "abandon"];

/// The labels as words.
pub(crate) fn labels(labels: Labels) -> Vec<&'static str> {
    let all = [(labels.private, "private"), (labels.untrusted, "untrusted")];
    all.into_iter().filter(|(set, _)| *set).map(|(_, word)| word).collect()
}

/// Who did something.
pub(crate) fn actor(actor: &Actor) -> String {
    match actor {
        Actor::User(id) => id.to_string(),
        Actor::Clock => "clock".to_owned(),
        Actor::Rule(name) => format!("rule {name}"),
    }
}

fn decided(body: &ApprovalDecided) -> Payload {
    let name = match body.decision {
        Decision::Approve | Decision::Edit => "approved",
        Decision::Respond | Decision::Reject | Decision::Stop => "rejected",
    };
    let mut data = object(json!({
        "approval_id": body.approval,
        "call_id": body.call,
        "decision": body.decision,
        "decided_by": actor(&body.by),
        "scope": body.scope,
        "edited": body.decision == Decision::Edit,
    }));
    add(&mut data, "message", body.message.as_ref());
    add(&mut data, "rule_id", body.rule.as_ref().map(|rule| rule.id));
    add(&mut data, "reason", (body.by == Actor::Clock).then_some("expired"));
    (name, data)
}

fn tool_call(body: &CallStarted, texts: &Texts) -> Payload {
    let input = texts.of(&body.arguments);
    let data = json!({"type": "TOOL_CALL", "id": body.call, "tool_name": body.tool, "tool_input": input, "attempt": body.attempt});
    ("tool_call", object(data))
}

fn tool_result(body: &CallEnded, texts: &Texts) -> Payload {
    let mut data = object(json!({
        "type": "TOOL_RESULT",
        "id": body.call,
        "tool_name": body.tool,
        "tool_output": texts.of(&body.output),
        "is_error": body.is_error,
        "ms": body.ms,
        "allowed": body.allowed,
    }));
    add(&mut data, "rule", body.rule.as_ref());
    add(&mut data, "labels", Some(labels(body.labels)).filter(|labels| !labels.is_empty()));
    add(&mut data, "resources", Some(&body.resources).filter(|made| !made.is_empty()));
    ("tool_result", data)
}

fn in_doubt(body: &CallInDoubt, texts: &Texts) -> Payload {
    let arguments = body.arguments.as_ref().map(|arguments| texts.of(arguments));
    let hidden = (arguments.as_deref().map(hide_arguments), hide(&body.summary));
    let is_hidden = hidden != (arguments, body.summary.clone());
    let (arguments, summary) = hidden;
    let mut data = object(json!({
        "approval_id": body.approval,
        "call_id": body.call,
        "tool_name": body.tool,
        "summary": summary,
        "reason": body.message,
        "allowed_outcomes": ALLOWED_OUTCOMES,
    }));
    add(&mut data, "tool_input", arguments);
    add(&mut data, "hidden", is_hidden.then_some(true));
    ("in_doubt", data)
}

fn filtered(body: &ContentFiltered) -> Payload {
    let mut data = object(json!({"point": body.point, "redacted": body.redacted, "labels": body.labels}));
    add(&mut data, "call_id", body.call.as_ref());
    add(&mut data, "blocked", body.blocked);
    ("content_filtered", data)
}

fn resumed(body: &Resumed) -> Payload {
    let mut data = object(json!({"by": actor(&body.by)}));
    add(&mut data, "raised_microusd", body.raised.as_ref().map(|raise| raise.amount));
    add(&mut data, "unpriced_model", body.unpriced.as_ref());
    ("resumed", data)
}

fn paused(body: &Paused) -> Payload {
    let mut data = object(json!({"reason": body.reason}));
    add(&mut data, "until", body.until);
    if let Some(ask) = &body.ask {
        add(&mut data, "approval_id", Some(ask.approval));
        add(&mut data, "summary", Some(ask.summary()));
        add(&mut data, "purse", Some(&ask.purse));
        add(&mut data, "limit_microusd", Some(ask.limit));
        add(&mut data, "spent_microusd", Some(ask.spent));
        add(&mut data, "needed_microusd", Some(ask.needed));
        add(&mut data, "raise_microusd", Some(ask.raise));
        add(&mut data, "unpriced_model", ask.unpriced.as_ref());
    }
    ("paused", data)
}

/// Whether something old was left out of a request so that it fits the window; otherwise nobody has to know of it.
fn compacted(body: &ModelRequested) -> Option<Payload> {
    let data = json!({"turn": body.turn, "attempt": body.attempt, "model": body.model, "dropped_bytes": body.dropped});
    (body.dropped > 0).then(|| ("context_compacted", object(data)))
}

fn error(body: &Errored) -> Payload {
    // A code that nobody knows any more leads to the page of what nobody meant.
    let (page, status) = failed::meaning(&body.code).map_or(("internal", 500), |(status, _)| (&*body.code, status));
    let problem = json!({
        "type": format!("/problems/{page}"),
        "title": title(&body.code),
        "status": status,
        "detail": body.message,
        "code": body.code,
    });
    let data = json!({"error": body.message, "problem": problem, "retryable": body.retryable, "fatal": true});
    ("error", object(data))
}

fn complete(run: RunId, body: &RunEnded, texts: &Texts) -> Payload {
    let mut data = object(json!({
        "interaction_id": run,
        "status": body.status,
        "usage": tokens(body.usage),
        "files_modified": body.files_modified,
        "result": texts.of(&body.result),
    }));
    add_cost(&mut data, Some(body.cost));
    ("interaction_complete", data)
}

#[cfg(test)]
mod tests;
