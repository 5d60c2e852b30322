//! Lists: a run and an agent as one row each.

use adjutant_core::guard::host::HostSpec;
use adjutant_core::guard::policy::{AgentConfig, Memory, span_of};
use adjutant_core::guard::scope::ScopeSpec;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_engine::store::row::{AgentRow, RunRow};
use adjutant_engine::{Pause, RunSummary};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::moment::Moment;

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
    /// The run it was made from: forked, edited, or extended after a limit.
    parent_run_id: Option<String>,
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
        parent_run_id: row.parent.map(|run| run.to_string()),
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

/// An agent with its whole configuration, and why it starts no runs, if it does not.
pub(crate) fn agent(row: &AgentRow, config: &AgentConfig, pause: Option<Pause>) -> Value {
    let mut shown = written(config);
    shown["id"] = json!(row.id);
    shown["version"] = json!(row.version);
    shown["created_at"] = json!(row.id.made_at());
    shown["updated_at"] = json!(row.saved_at);
    shown["created_by"] = json!(row.created_by);
    shown["reach"] = json!(config.reach());
    shown["shared_with"] = json!(row.people.shared_with);
    shown["approvers"] = json!(row.people.approvers);
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

/// The configuration of an agent as it is taken, with nothing left out: what is answered can be sent back.
pub(crate) fn written(config: &AgentConfig) -> Value {
    let mut body = serde_json::to_value(config).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.remove("approval_expires_secs");
    }
    body["approval_expires_in"] = json!(span_of(config.approval_expires_secs));
    body["model_options"] = json!(config.model_options);
    body["requires"] = json!(config.requires);
    body["provider_key_id"] = json!(config.provider_key_id);
    body["max_concurrent_runs"] = json!(config.max_concurrent_runs);
    body["data_access"] = json!(config.data_access);
    body["memory"] = json!(config.memory.unwrap_or(Memory { enabled: false }));
    let ScopeSpec { notebooks, folders, file_types, operations } = &config.scope;
    body["scope"] = json!({
        "notebooks": notebooks.as_deref().unwrap_or_default(),
        "folders": folders.as_deref().unwrap_or_default(),
        // Without these two nothing is narrowed; an empty list would leave nothing.
        "file_types": file_types,
        "operations": operations,
    });
    let plain = HostSpec { hosts: config.allowed_hosts.hosts.clone(), ..HostSpec::default() };
    if plain == config.allowed_hosts {
        body["allowed_hosts"] = json!(plain.hosts.unwrap_or_default());
    }
    body
}
