//! What a run amounts to, in one document: the result, every action, every model call, and what they cost.

mod account;
mod calls;

use std::collections::BTreeMap;

use adjutant_core::content::{Content, Hash};
use adjutant_core::id::{AgentId, CallId, ChatId, NotebookId, RunId, WorkspaceId};
use adjutant_core::money::TokenUsage;
use adjutant_core::run::event::{Errored, RunStarted};
use adjutant_core::run::output;
use adjutant_core::run::state::{Call, State};
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_core::tool::{Recovery, Resource};
use serde::Serialize;

pub use self::account::Account;
pub use self::calls::ModelCallReport;
use self::calls::model_calls;
use crate::engine::Engine;
use crate::env::millis;
use crate::error::EngineError;
use crate::log::Recorded;

/// A run as a document (the fields of the public `GET /runs/{id}`).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunReport {
    /// The run.
    pub id: RunId,
    /// Its chat.
    pub chat_id: ChatId,
    /// The same chat, under the name older clients use.
    pub session_id: ChatId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Where it is.
    pub status: Status,
    /// Whether it ended with an answer.
    pub success: bool,
    /// The answer, or the last text.
    pub result: String,
    /// The answer as JSON, where it had to fit a schema.
    #[serde(skip)]
    pub output: Option<serde_json::Value>,
    /// What went wrong.
    pub error: Option<ErrorReport>,
    /// Whether it was cancelled.
    pub aborted: bool,
    /// When it was asked for.
    pub created_at: Time,
    /// When it was taken up.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// Model turns.
    pub steps: usize,
    /// Tool calls, in order.
    pub actions: Vec<ActionReport>,
    /// Model calls, in order.
    pub model_calls: Vec<ModelCallReport>,
    /// Tokens in all.
    pub token_usage: TokenUsage,
    /// Money in all.
    pub cost_usd: f64,
    /// The same in millionths.
    pub cost_microusd: u64,
    /// What it may cost in millionths of a dollar; none is no limit of its own.
    pub budget_microusd: Option<u64>,
    /// Whether tokens or prices were estimated or not known.
    pub cost_estimated: bool,
    /// Files it created, changed or deleted.
    pub files_modified: Vec<String>,
    /// Everything it created, changed or deleted.
    pub resources: Vec<Made>,
    /// Inbox items that wait.
    pub pending_approvals: Vec<adjutant_core::id::ApprovalId>,
    /// What it was made from.
    pub provenance: Provenance,
    /// How long things took.
    pub metrics: Metrics,
    /// The run it was built on, if it is a fork or continues a chat.
    pub base_run_id: Option<RunId>,
    /// The run that replaced it.
    pub superseded_by: Option<RunId>,
    /// The hash of its last event.
    pub head_hash: Hash,
    /// What there is to say beside the answer.
    #[serde(flatten)]
    pub account: Account,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorReport {
    /// The machine's word.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What else is known.
    pub info: ErrorInfo,
}

/// What else is known of what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorInfo {
    /// Whether starting again may help.
    pub retryable: bool,
}

/// What a run was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The version of the agent.
    pub agent_version: u64,
    /// The hash of its configuration.
    pub policy_hash: Hash,
    /// The hash of the system prompt.
    pub prompt_hash: Hash,
    /// The versions of the texts that the system prompt is composed of.
    pub prompt_versions: BTreeMap<String, u64>,
    /// The model that was asked for.
    pub model: String,
}

/// How long things took.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Metrics {
    /// From the request to the end, or to the last event.
    pub duration_ms: u64,
    /// In model calls.
    pub model_ms: u64,
    /// In tools, added up.
    pub tool_ms: u64,
    /// Waiting for a person, or held.
    pub wait_ms: u64,
    /// In each tool.
    pub tool_latency_ms: BTreeMap<String, u64>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ActionReport {
    /// The call.
    pub call_id: CallId,
    /// The tool.
    pub tool_name: String,
    /// The arguments that ran, or were asked for.
    pub arguments: String,
    /// What it answered.
    pub output: Option<String>,
    /// Whether it failed or was refused.
    pub is_error: bool,
    /// What the guard said.
    pub verdict: Option<String>,
    /// The deciding rule.
    pub rule: Option<String>,
    /// Its inbox item.
    pub approval_id: Option<adjutant_core::id::ApprovalId>,
    /// How often it was started.
    pub attempts: u32,
    /// What becomes of it after a crash.
    pub recovery: Option<Recovery>,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub finished_at: Option<Time>,
    /// How long it ran.
    pub ms: u64,
}

/// Something that a run created, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// What names it among everything of the workspace.
    pub id: String,
    /// What it is, and what was done to it.
    #[serde(flatten)]
    pub resource: Resource,
}

impl RunReport {
    /// The report as people and programs read it: an answer that had to fit a schema is what it holds.
    #[must_use]
    pub fn document(&self) -> serde_json::Value {
        let mut document = serde_json::to_value(self).unwrap_or_default();
        if let Some(output) = &self.output {
            document["result"] = output.clone();
        }
        document
    }
}

impl Engine {
    /// A run as a document.
    ///
    /// # Errors
    /// When there is no such run, or its log cannot be followed.
    pub async fn report(&self, workspace: WorkspaceId, run: RunId) -> Result<RunReport, EngineError> {
        let row = self.run_row(workspace, run).await?;
        let recorded = self.recorded(workspace, run, 0, None).await?;
        let mut state = State::default();
        for item in &recorded {
            state.apply(&item.event, item.seq, item.at).map_err(|bad| EngineError::impossible(run, &bad))?;
        }
        let start = state.start.clone().ok_or_else(|| EngineError::not_found("run", run))?;
        let mut result = state.end.as_ref().map_or_else(|| state.last_text(), |(end, _)| end.result.clone());
        let mut calls: Vec<Call> = state.turns.iter().flat_map(|turn| turn.calls.iter().cloned()).collect();
        let mut contents: Vec<&mut Content> = vec![&mut result];
        for call in &mut calls {
            contents.push(&mut call.arguments);
            contents.extend(call.ended.as_mut().map(|(ended, _, _)| &mut ended.output));
        }
        self.load_texts(workspace, &mut contents).await?;
        let mut model_calls = model_calls(&recorded);
        self.name_keys(workspace, &mut model_calls).await?;
        let actions: Vec<_> = calls.iter().map(action).collect();
        let finished_at = state.end.as_ref().map(|(_, at)| *at);
        let metrics = metrics(&state, &recorded, &actions, &model_calls);
        Ok(RunReport {
            id: run,
            chat_id: start.chat,
            session_id: start.chat,
            agent_id: start.agent,
            status: state.status(),
            success: state.status() == Status::Completed,
            // What did not fit its schema ended no run.
            output: start
                .output_schema
                .as_deref()
                .filter(|_| state.status() == Status::Completed)
                .and_then(|_| output::held(&result.text())),
            result: result.text().into_owned(),
            error: state.error.as_ref().map(ErrorReport::of),
            aborted: state.status() == Status::Cancelled,
            created_at: state.started_at,
            started_at: recorded.get(1).map(|item| item.at),
            finished_at,
            steps: state.turns.len(),
            metrics,
            actions,
            model_calls,
            token_usage: state.usage,
            cost_usd: state.cost.dollars(),
            cost_microusd: state.cost.0,
            budget_microusd: start.budget.map(|budget| (budget + state.raised).0),
            cost_estimated: state.estimated || state.unpriced,
            files_modified: state.files.iter().cloned().collect(),
            resources: calls.iter().flat_map(|call| made(call, start.notebook)).collect(),
            pending_approvals: pending(&state),
            provenance: Provenance::of(&start),
            base_run_id: start.base.map(|base| base.run),
            superseded_by: row.superseded_by,
            head_hash: row.head.hash,
            account: Account::of(*start, &state, &recorded, row.parent),
        })
    }

    /// Says which keys model calls were made with, of those that are still kept.
    async fn name_keys(&self, workspace: WorkspaceId, calls: &mut [ModelCallReport]) -> Result<(), EngineError> {
        if calls.iter().all(|call| call.key.is_none()) {
            return Ok(());
        }
        let rows = self.store().provider_keys(workspace).await?;
        for call in calls {
            call.key_hint = rows.iter().find(|row| Some(row.id) == call.key).map(|row| row.hint.clone());
        }
        Ok(())
    }
}

/// What a call created, changed or deleted.
fn made(call: &Call, notebook: Option<NotebookId>) -> Vec<Made> {
    let resources = call.ended.iter().flat_map(|(ended, _, _)| &ended.resources);
    resources.map(|resource| Made { id: id_of(resource, notebook), resource: resource.clone() }).collect()
}

/// What names it: a file its notebook and path, anything else its kind and name.
fn id_of(resource: &Resource, notebook: Option<NotebookId>) -> String {
    match notebook {
        Some(notebook) if resource.kind == "file" => format!("{notebook}{}", resource.path),
        Some(_) | None => format!("{}:{}", resource.kind, resource.path),
    }
}

/// The inbox items that wait: about calls, and about money.
fn pending(state: &State) -> Vec<adjutant_core::id::ApprovalId> {
    let calls = state.approvals.iter().filter(|(_, approval)| approval.is_pending()).map(|(id, _)| *id);
    let money = state.budget_items.iter().filter(|(_, item)| item.is_pending()).map(|(id, _)| *id);
    calls.chain(money).collect()
}

fn metrics(state: &State, recorded: &[Recorded], actions: &[ActionReport], model_calls: &[ModelCallReport]) -> Metrics {
    let mut tool_latency_ms = BTreeMap::new();
    for action in actions {
        *tool_latency_ms.entry(action.tool_name.clone()).or_default() += action.ms;
    }
    Metrics {
        duration_ms: millis(state.updated_at.since(state.started_at)),
        model_ms: model_calls.iter().map(|call| call.ms).sum(),
        tool_ms: actions.iter().map(|action| action.ms).sum(),
        wait_ms: account::waited(recorded),
        tool_latency_ms,
    }
}

impl ErrorReport {
    fn of(error: &Errored) -> Self {
        let info = ErrorInfo { retryable: error.retryable };
        Self { code: error.code.clone(), message: error.message.clone(), info }
    }
}

impl Provenance {
    fn of(start: &RunStarted) -> Self {
        Self {
            agent_version: start.agent_version,
            policy_hash: start.policy,
            prompt_hash: start.system_prompt.hash(),
            prompt_versions: BTreeMap::new(),
            model: start.model.clone(),
        }
    }
}

fn action(call: &Call) -> ActionReport {
    let ended = call.ended.as_ref();
    ActionReport {
        call_id: call.id.clone(),
        tool_name: call.tool.clone(),
        arguments: call.arguments.text().into_owned(),
        output: ended.map(|(ended, _, _)| ended.output.text().into_owned()),
        is_error: ended.is_some_and(|(ended, _, _)| ended.is_error),
        verdict: call.judged.as_ref().map(|judged| judged.verdict.decision.word().to_owned()),
        rule: call.judged.as_ref().map(|judged| judged.verdict.rule.clone()),
        approval_id: call.approval,
        attempts: call.started.as_ref().map_or(0, |started| started.attempt),
        recovery: call.recovery(),
        started_at: call.started_at,
        finished_at: ended.map(|(_, _, at)| *at),
        ms: ended.map_or(0, |(ended, _, _)| ended.ms),
    }
}
