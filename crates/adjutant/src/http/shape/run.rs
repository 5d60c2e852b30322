//! A run as a document, its events, and what is found out about it.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::account::{AttachmentShape, Initiator, MemoryDelta, RetryInfo, RunDiagnostics, RunEnforcement};
use super::words::RunStatus;
use crate::wire::{Moment, TokenSum};

/// A run as one document.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct RunDocument {
    id: String,
    workspace_id: String,
    chat_id: String,
    /// The chat, under the name that older clients use.
    session_id: String,
    agent_id: String,
    status: RunStatus,
    /// Whether it ended with an answer.
    success: bool,
    /// The answer, or the last text; where the answer had to fit a schema, what it holds.
    result: serde_json::Value,
    error: Option<RunError>,
    /// Whether it was cancelled.
    aborted: bool,
    created_at: Moment,
    started_at: Option<Moment>,
    finished_at: Option<Moment>,
    /// Model turns.
    steps: u64,
    /// Tool calls, in order.
    actions: Vec<Action>,
    /// Model calls, in order.
    model_calls: Vec<ModelCall>,
    token_usage: TokenSum,
    cost_usd: f64,
    cost_microusd: u64,
    /// What it may cost; none is no limit of its own.
    budget_microusd: Option<u64>,
    /// Whether tokens or prices were estimated or not known.
    cost_estimated: bool,
    /// Files it created, changed or deleted.
    files_modified: Vec<String>,
    /// Everything it created, changed or deleted.
    resources: Vec<Resource>,
    /// Inbox items that wait.
    pending_approvals: Vec<String>,
    provenance: RunProvenance,
    metrics: RunMetrics,
    /// The run it was built on.
    base_run_id: Option<String>,
    /// The run that replaced it.
    superseded_by: Option<String>,
    /// The hash of its last event.
    head_hash: String,
    /// Where its events are.
    event_stream: String,
    /// What it wrote into what its agent remembers.
    memory_deltas: Vec<MemoryDelta>,
    diagnostics: RunDiagnostics,
    /// The run it was made from: forked, edited, or extended after a limit.
    parent_run_id: Option<String>,
    enforcement: RunEnforcement,
    retry_info: RetryInfo,
    /// The seed that its model was given.
    seed: Option<u64>,
    /// `auto`, `none`, `required` or the name of a tool: whether its first answer had to use one, where that was said.
    tool_choice: Option<String>,
    /// Whether the same request would be answered the same.
    deterministic: bool,
    /// The files that came with its message, by path.
    attachments: BTreeMap<String, AttachmentShape>,
    initiated_by: Initiator,
    /// What began it: `message`, …
    trigger: String,
    /// The task it works on.
    task_id: Option<String>,
    /// When it was put into the queue.
    queued_at: Moment,
    /// Free fields of whoever began it.
    metadata: BTreeMap<String, String>,
}

/// What went wrong.
#[derive(Serialize, ToSchema)]
struct RunError {
    /// The kind, as a word that programs may rely on.
    code: String,
    message: String,
    info: RunErrorInfo,
}

/// What else is known of what went wrong.
#[derive(Serialize, ToSchema)]
struct RunErrorInfo {
    /// Whether starting again may help.
    retryable: bool,
}

/// What a run was made from.
#[derive(Serialize, ToSchema)]
struct RunProvenance {
    agent_version: u64,
    /// The hash of the agent's configuration.
    policy_hash: String,
    /// The hash of the system prompt.
    prompt_hash: String,
    /// The versions of the texts that the system prompt is composed of.
    prompt_versions: BTreeMap<String, u64>,
    /// The model that was asked for.
    model: String,
}

/// How long things took.
#[derive(Serialize, ToSchema)]
struct RunMetrics {
    /// From the request to the end, or to the last event.
    duration_ms: u64,
    model_ms: u64,
    tool_ms: u64,
    /// Waiting for a person, or held.
    wait_ms: u64,
    /// In each tool.
    tool_latency_ms: BTreeMap<String, u64>,
}

/// One tool call.
#[derive(Serialize, ToSchema)]
struct Action {
    call_id: String,
    tool_name: String,
    /// The arguments that ran, or were asked for, as JSON text.
    arguments: String,
    /// What it answered.
    output: Option<String>,
    /// Whether it failed or was refused.
    is_error: bool,
    /// What the guard said.
    verdict: Option<String>,
    /// The deciding rule.
    rule: Option<String>,
    approval_id: Option<String>,
    /// How often it was started.
    attempts: u32,
    /// What becomes of it after a crash: `pure`, `idempotent`, `reconcile`, `ask_human`.
    recovery: Option<String>,
    started_at: Option<Moment>,
    finished_at: Option<Moment>,
    ms: u64,
}

/// One model call.
#[derive(Serialize, ToSchema)]
struct ModelCall {
    /// Its number, from 1.
    n: u64,
    provider: String,
    model_asked: String,
    model_served: Option<String>,
    /// The hash of the request.
    prompt_hash: String,
    /// Which attempt at its turn it was, from 1.
    attempt: u32,
    /// How many attempts its turn had taken by then.
    attempts: u32,
    /// The last letters of the stored key it was made with.
    key_hint: Option<String>,
    usage: TokenSum,
    /// In dollars; none where the price is not known.
    cost: Option<f64>,
    /// None where the price is not known.
    cost_microusd: Option<u64>,
    /// The state of the prices it was reckoned with.
    price_version: Option<String>,
    /// The most it could have cost, put aside before it was made.
    reserved_microusd: Option<u64>,
    /// The model that was asked next, because this one failed.
    fallback: Option<String>,
    /// Why it stopped, or what kind of failure it was.
    outcome: String,
    /// `stop`, `tool_calls`, `length`, `content_filter`, `refusal` or `error`.
    finish_reason: String,
    /// How long the first piece of the answer took, where that was measured.
    first_token_ms: Option<u64>,
    started_at: Moment,
    ms: u64,
}

/// Something that a run created, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Resource {
    /// What names it in its workspace: the notebook and path of a file, otherwise the kind and the name.
    id: String,
    /// `file`, `kv`, …
    kind: String,
    /// Its path or name.
    path: String,
    /// `created`, `changed` or `deleted`.
    action: String,
    /// Whether it can be taken back.
    undoable: bool,
    /// The hash of what was there before.
    before: Option<String>,
    /// The hash of what is there now.
    after: Option<String>,
}

/// One event of a run, as the stream sends it.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"event": "answer", "id": 7, "data": {"type": "ANSWER", "content": "Done.", "turn": 1, "run_id": "run_01m7", "seq": 7, "ts": "2026-01-31T12:00:00.000Z"}}))]
pub(in crate::http) struct EventLine {
    /// Its name, such as `interaction_started`, `tool_call`, `approval_required`, `answer`, `interaction_complete`.
    event: String,
    /// Its place in the log.
    id: u64,
    /// Its payload, always with `run_id`, `seq` and `ts`.
    #[schema(value_type = Object)]
    data: serde_json::Value,
}

/// A chat with its runs, as a file.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ChatExport {
    id: String,
    workspace_id: String,
    agent_id: String,
    notebook_id: Option<String>,
    owner_id: String,
    title: String,
    is_shared: bool,
    last_run_id: Option<String>,
    forked_from: Option<String>,
    alias: Option<String>,
    model: Option<String>,
    /// Free fields of whoever made it.
    metadata: BTreeMap<String, String>,
    created_at: Moment,
    /// Runs as documents, each with its `user_message`, oldest first.
    #[schema(value_type = Vec<Object>)]
    runs: Vec<serde_json::Value>,
    /// Whether there are older runs: `?before=` the first of these gives them.
    truncated: bool,
}

/// What the model saw in one of its calls.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct SeenCall {
    n: u64,
    turn: u32,
    attempt: u32,
    model: String,
    /// The recorded hash of the request.
    request_hash: String,
    /// Whether what is shown has that hash.
    same: bool,
    /// Bytes of old content that were left out to fit the window.
    dropped_bytes: u64,
    /// Output tokens at the most.
    max_tokens: u32,
    sizes: SeenSizes,
    /// The system prompt.
    system: String,
    /// The tools it was shown, by name.
    tools: Vec<String>,
    messages: Vec<SeenMessage>,
    /// What went over the wire (`>`) and what came (`<`), a line each: where the run was started with `debug`, and `frames` asks for it. Without keys and other secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    frames: Option<String>,
}

/// How large the parts of a request are.
#[derive(Serialize, ToSchema)]
struct SeenSizes {
    system_bytes: u64,
    tools_bytes: u64,
    messages_bytes: u64,
    /// About how many tokens the system prompt is.
    system_tokens: u64,
    /// About how many the tool definitions are.
    tools_tokens: u64,
    /// About how many the conversation is.
    messages_tokens: u64,
    /// About how many tokens it is in all, with what stands between its parts.
    estimated_tokens: u64,
    /// Whether the texts are counted by the tokenizer of the model, and not by what its provider has counted lately.
    exact: bool,
}

/// One message of a request.
#[derive(Serialize, ToSchema)]
struct SeenMessage {
    /// `user`, `assistant` or `tool`.
    role: String,
    parts: Vec<SeenPart>,
}

/// One part of a message.
#[derive(Serialize, ToSchema)]
struct SeenPart {
    /// `text`, `image`, `thinking`, `call` or `result`.
    kind: String,
    /// The tool, for a call or a result.
    tool: Option<String>,
    /// Its text; of an image only what it is.
    text: String,
    bytes: u64,
    /// About how many tokens it is; none of an image, which is no text.
    tokens: u64,
}

/// What a replay found.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ReplayAnswer {
    run_id: String,
    /// The events that were walked.
    events: u64,
    /// Model requests that were built again and compared.
    requests: u64,
    /// Verdicts that were given again and compared.
    verdicts: u64,
    /// Verdicts that were not the guard's alone, or whose policy is not kept: they were taken as they are.
    skipped: u64,
    status: RunStatus,
    /// What came out differently.
    divergences: Vec<Divergence>,
}

/// Something that came out differently.
#[derive(Serialize, ToSchema)]
struct Divergence {
    /// The event.
    seq: u64,
    kind: String,
    recorded: String,
    found: String,
}

/// Whether the hash chain of a run is whole.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ChainCheck {
    /// The log.
    stream: String,
    is_whole: bool,
    /// What does not fit.
    reason: Option<String>,
    /// Where the chain ends.
    head: Option<ChainHead>,
    events: Option<u64>,
    /// Bodies that were erased.
    erased: Option<u64>,
    /// Contents beside the events.
    blocks: Option<u64>,
}

/// Where a chain ends.
#[derive(Serialize, ToSchema)]
struct ChainHead {
    seq: u64,
    hash: String,
}
