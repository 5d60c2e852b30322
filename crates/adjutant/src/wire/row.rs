//! Lists: a run, an inbox item and an agent as one row each.

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::redact::{Form, Mode, redact_as, redact_value};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::{Event, GrantScope};
use adjutant_core::run::state::Approval;
use adjutant_engine::store::row::{AgentRow, ApprovalRow, RunRow};
use adjutant_engine::{Card, Pause, RunSummary};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::event::{ALLOWED_DECISIONS, ALLOWED_OUTCOMES, labels};
use super::moment::Moment;
use super::texts::Texts;

/// Tokens by class; `cached` and `cache_write` are parts of `input`, `reasoning` of `output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct TokenSum {
    input: u64,
    output: u64,
    cached: u64,
    reasoning: u64,
    /// Left out where it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write: Option<u64>,
}

impl From<TokenUsage> for TokenSum {
    fn from(usage: TokenUsage) -> Self {
        let TokenUsage { input, output, cached, reasoning, cache_write } = usage;
        Self { input, output, cached, reasoning, cache_write: Some(cache_write).filter(|tokens| *tokens > 0) }
    }
}

/// A run as a list shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunLine {
    id: String,
    chat_id: String,
    agent_id: String,
    /// The short name of its agent.
    agent: String,
    /// `QUEUED`, `RUNNING`, `WAITING_APPROVAL`, `PAUSED`, `IN_DOUBT`, `CANCELLING`, `COMPLETED`, `FAILED`, `CANCELLED`.
    status: String,
    /// What the person said, cut short.
    title: String,
    /// The answer, cut short.
    result: Option<String>,
    /// What went wrong.
    error: Option<String>,
    created_at: Moment,
    updated_at: Moment,
    finished_at: Option<Moment>,
    /// Model turns.
    steps: u32,
    /// Tool calls.
    calls: u32,
    token_usage: TokenSum,
    cost_usd: f64,
    cost_microusd: u64,
    /// Whether tokens or prices of some call are estimated or not known.
    cost_estimated: bool,
    /// The run that replaced it.
    superseded_by: Option<String>,
    /// The number of its last event.
    head_seq: u64,
}

/// A run as a list shows it.
pub(crate) fn run(row: &RunRow, agent: &str) -> RunLine {
    let summary: RunSummary = serde_json::from_str(&row.state.summary).unwrap_or_default();
    RunLine {
        id: row.id.to_string(),
        chat_id: row.chat.to_string(),
        agent_id: row.agent.to_string(),
        agent: agent.to_owned(),
        status: row.state.status.clone(),
        title: summary.title,
        result: summary.result,
        error: summary.error,
        created_at: row.created_at.into(),
        updated_at: row.state.updated_at.into(),
        finished_at: row.state.ended_at.map(Moment::from),
        steps: row.state.turns,
        calls: row.state.calls,
        token_usage: row.state.usage.into(),
        cost_usd: row.state.cost.dollars(),
        cost_microusd: row.state.cost.0,
        cost_estimated: summary.cost_estimated,
        superseded_by: row.superseded_by.map(|run| run.to_string()),
        head_seq: row.head.seq,
    }
}

/// Money for a person: a price that is not known is not shown as nothing.
pub(crate) fn cost(cost: MicroUsd, estimated: bool) -> String {
    match (estimated, cost) {
        (true, MicroUsd::ZERO) => "?".to_owned(),
        (true, cost) => format!("~{cost}"),
        (false, cost) => cost.to_string(),
    }
}

/// An inbox item: something that waits for a person, or that a person decided.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Item {
    id: String,
    /// `call`, `in_doubt` or `budget`.
    kind: String,
    workspace_id: String,
    run_id: String,
    chat_id: String,
    agent_id: String,
    call_id: Option<String>,
    /// `pending`, `approved`, `rejected`, `expired` or `superseded`.
    status: String,
    tool_name: Option<String>,
    /// One line: what would happen, or what is known.
    pub(crate) summary: Option<String>,
    /// `low`, `medium` or `high`.
    risk: Option<String>,
    /// Why it asks.
    reason: Option<String>,
    /// The rule that asks.
    rule: Option<String>,
    created_at: Moment,
    /// When silence counts as no.
    expires_at: Option<Moment>,
    decided_at: Option<Moment>,
    decision: Option<String>,
    decided_by: Option<String>,
    /// Whether you may decide it now. Only over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) may_decide: Option<bool>,
    /// What a yes adds, where a budget is used up.
    #[serde(skip_serializing_if = "Option::is_none")]
    raise_usd: Option<f64>,
    /// The model whose price is not known, where a yes lets it be asked without counting it.
    #[serde(skip_serializing_if = "Option::is_none")]
    unpriced_model: Option<String>,
    /// The arguments that a person put in place of what was asked. Never in lists.
    #[schema(value_type = Option<Object>)]
    pub(crate) edited_arguments: Option<Value>,
    /// What a person added to the decision. Never in lists.
    pub(crate) message: Option<String>,
    /// What the agent was answering, cut short. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_summary: Option<String>,
    /// The arguments that would run. This and what follows is not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// What would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// What a decision is bound to.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// What the run has seen so far: `private`, `untrusted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    labels: Option<Vec<&'static str>>,
    /// Where what is untrusted came from: calls that read it before this was asked, and attached files, each in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<Vec<String>>,
    /// What may be answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_decisions: Option<Vec<&'static str>>,
    /// How far a yes may reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub(crate) allowed_scopes: Option<Vec<GrantScope>>,
    /// Where a yes would hold that lasts longer than this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    place: Option<Value>,
    /// Whether secrets are hidden here, each behind its kind and length; `reveal` shows them to whoever may decide.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
}

/// What becomes of the secrets in what is asked (rule R1). What a decision is bound to is the real thing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Each shows its kind and its length.
    Hidden,
    /// They are shown: somebody who may decide asked for them.
    Shown,
}

/// The events that tell an inbox item: what is asked or in doubt, and what was decided.
pub(crate) fn events_of(approval: &Approval) -> Vec<Event> {
    let asked = approval.asked.clone().map(Event::from);
    let doubt = approval.doubt.clone().map(Event::from);
    let decided = approval.decided.clone().map(|(decided, _)| Event::from(decided));
    [asked, doubt, decided].into_iter().flatten().collect()
}

/// What the row of an inbox item says; nothing where it was erased.
pub(crate) fn card(row: &ApprovalRow) -> Option<Card> {
    serde_json::from_str(&row.card).ok()
}

/// An inbox item; with what is asked or in doubt, where the caller has read it from the run's log.
pub(crate) fn approval(row: &ApprovalRow, approval: Option<&Approval>, texts: &Texts, secrets: Secrets) -> Item {
    let asked = approval.and_then(|approval| approval.asked.as_ref());
    let doubt = approval.and_then(|approval| approval.doubt.as_ref());
    let would_run = asked.map(|asked| &asked.arguments).or_else(|| doubt.and_then(|doubt| doubt.arguments.as_ref()));
    let card = card(row);
    let ask = card.as_ref().and_then(|card| card.ask.as_ref());
    let word = |pick: fn(&Card) -> &String| card.as_ref().map(pick).cloned();
    let item = Item {
        id: row.id.to_string(),
        kind: row.kind.clone(),
        workspace_id: row.workspace.to_string(),
        run_id: row.run.to_string(),
        chat_id: row.chat.to_string(),
        agent_id: row.agent.to_string(),
        call_id: row.call.as_ref().map(ToString::to_string),
        status: row.status.clone(),
        tool_name: row.tool.clone(),
        summary: word(|card| &card.summary),
        risk: word(|card| &card.risk),
        reason: word(|card| &card.reason),
        rule: word(|card| &card.rule),
        created_at: row.created_at.into(),
        expires_at: row.expires_at.map(Moment::from),
        decided_at: row.decided_at.map(Moment::from),
        decision: card.as_ref().and_then(|card| card.decision.clone()),
        decided_by: card.as_ref().and_then(|card| card.decided_by.clone()),
        may_decide: None,
        raise_usd: ask.filter(|ask| ask.unpriced.is_none()).map(|ask| ask.raise.dollars()),
        unpriced_model: ask.and_then(|ask| ask.unpriced.clone()),
        edited_arguments: None,
        message: None,
        context_summary: None,
        arguments: would_run.map(|text| arguments(&texts.of(text))),
        diff: asked.and_then(|asked| asked.diff.as_ref()).map(|diff| texts.of(diff)),
        fingerprint: asked.map(|asked| asked.fingerprint.to_string()),
        labels: asked.map(|asked| labels(asked.labels)),
        sources: None,
        allowed_decisions: asked.map(|_| ALLOWED_DECISIONS.to_vec()).or(doubt.map(|_| ALLOWED_OUTCOMES.to_vec())),
        allowed_scopes: asked.map(|asked| asked.allowed_scopes.clone()),
        place: asked.and_then(|asked| asked.place.as_ref()).map(|place| json!(place)),
        hidden: false,
    };
    match secrets {
        Secrets::Shown => item,
        Secrets::Hidden => item.hide(),
    }
}

impl Item {
    fn hide(self) -> Self {
        let (summary, diff) = (self.summary.as_deref().map(hide), self.diff.as_deref().map(hide));
        let (arguments, place) = (self.arguments.as_ref().map(hide_value), self.place.as_ref().map(hide_value));
        let same = summary == self.summary && diff == self.diff && arguments == self.arguments && place == self.place;
        Self { hidden: !same, summary, diff, arguments, place, ..self }
    }
}

/// A text without its secrets, each behind its kind and length.
pub(crate) fn hide(text: &str) -> String {
    redact_as(text, Mode::Standard, Form::Sized).into_owned()
}

pub(super) fn hide_value(value: &Value) -> Value {
    let mut value = value.clone();
    redact_value(&mut value, Mode::Standard, Form::Sized);
    value
}

/// The text of arguments without their secrets; the same text where there are none.
pub(crate) fn hide_arguments(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => {
            let hidden = hide_value(&value);
            if hidden == value { text.to_owned() } else { hidden.to_string() }
        }
        Err(_) => hide(text),
    }
}

/// Arguments as JSON where they are, as text where they are not.
pub(crate) fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// An agent with its whole configuration, and why it starts no runs, if it does not.
pub(crate) fn agent(row: &AgentRow, config: &AgentConfig, pause: Option<Pause>) -> Value {
    let mut shown = serde_json::to_value(config).unwrap_or_default();
    shown["id"] = json!(row.id);
    shown["version"] = json!(row.version);
    shown["created_at"] = json!(row.id.made_at());
    shown["updated_at"] = json!(row.saved_at);
    shown["created_by"] = json!(row.created_by);
    shown["reach"] = json!(config.reach());
    let (paused_at, reason, resumes_at) = match pause {
        None => (None, None, None),
        Some(Pause::SwitchedOff { at }) => (Some(at), Some("switched_off"), None),
        Some(Pause::Budget { until }) => (None, Some("budget"), Some(until)),
        Some(Pause::WorkspaceBudget { until }) => (None, Some("workspace_budget"), Some(until)),
    };
    let (active, at, until) = (reason.is_none(), json!(paused_at), json!(resumes_at));
    shown["state"] = json!({"active": active, "paused_at": at, "paused_reason": reason, "resumes_at": until});
    shown
}
