//! An agent, as it is written and as it is answered.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::words::{Autonomy, DataFlow, FileOperation, PermissionLevel, RoutingStrategy, ToolCategory};
use crate::wire::Moment;

/// An agent: a versioned configuration, with every default written out.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct Agent {
    id: String,
    workspace_id: String,
    /// `user` for a person's own, `workspace` for everybody's.
    owner: String,
    /// The person it belongs to.
    owner_id: Option<String>,
    /// The members (ids) who see it and run it beside its owner and the admins.
    shared_with: Vec<String>,
    /// The members (ids) who may decide what it asks, beside its owner, the admins and whoever started the run.
    approvers: Vec<String>,
    /// Raised by each change.
    version: u64,
    created_at: Moment,
    updated_at: Moment,
    /// The person who made it; none where nobody did.
    created_by: Option<String>,
    /// Whether it starts runs now.
    state: AgentState,
    /// What it may touch, in words.
    reach: String,
    name: String,
    slug: String,
    description: String,
    /// A picture for lists.
    emoji: String,
    /// What kind of work it does, for lists.
    category: String,
    /// Words in a message that speak for this agent when none is named.
    keywords: Vec<String>,
    /// A model by name, `default`, or `auto`.
    model: String,
    /// Models that may stand in for it, in order.
    fallback_models: Vec<String>,
    routing: Option<RoutingStrategy>,
    /// Sampling temperature; none is the provider's own.
    temperature: Option<f64>,
    /// How its model is asked beyond that.
    model_options: AgentModelOptions,
    /// What a model has to be able to do to be chosen, or to stand in (`tools`, `images`, `structured`, `reasoning`), and what has
    /// to be enforced for a run to start (`encryption`, `durability`, `audit_chain`, `egress_filter`, `price_known`, `sandbox`).
    requires: Vec<String>,
    /// The stored key that its runs use for the provider it is for.
    provider_key_id: Option<String>,
    /// The JSON Schema that its answers have to fit, unless a run brings one of its own.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Its instructions.
    system_prompt: String,
    scope: AgentScope,
    can_read: bool,
    can_write: bool,
    can_create: bool,
    can_delete: bool,
    can_execute_code: bool,
    can_access_integrations: bool,
    permission_level: PermissionLevel,
    categories: Vec<ToolCategory>,
    tools: Vec<String>,
    toolsets: Vec<String>,
    denied_tools: Vec<String>,
    /// A list, or a whole policy where it is more than that.
    allowed_hosts: HostChoice,
    autonomy: Autonomy,
    flow: DataFlow,
    /// Tools that always ask.
    requires_approval: Vec<String>,
    max_turns: u32,
    max_tool_calls: u32,
    /// Output tokens of one model call.
    max_tokens_per_request: u32,
    /// Model calls in one hour, over all its runs.
    max_requests_per_hour: u32,
    /// Runs that are driven at the same time; more are queued. One that waits for a person takes no place.
    max_concurrent_runs: u32,
    /// Calls a minute of single tools, by name.
    tool_limits: BTreeMap<String, u32>,
    /// What texts may hold at points of a run.
    content_filter: Vec<ContentFilter>,
    /// How long a question waits, such as `24h`.
    approval_expires_in: String,
    budget: AgentBudget,
    /// Whether it remembers.
    memory: AgentMemory,
    /// The kinds of data it is meant for. No tool asks for one yet, so it narrows nothing.
    data_access: Vec<String>,
    /// Whether it may run.
    is_active: bool,
    /// Free fields, never shown to a model.
    metadata: BTreeMap<String, String>,
}

/// Whether an agent starts runs now, and if not, why. Worked out when it is asked for.
#[derive(Serialize, ToSchema)]
struct AgentState {
    active: bool,
    /// When it was switched off; not known where a budget is used up.
    paused_at: Option<Moment>,
    /// `switched_off`, `budget` or `workspace_budget`.
    paused_reason: Option<String>,
    /// When the budget that is used up begins anew.
    resumes_at: Option<Moment>,
}

/// What an agent may touch: nothing that is not named.
#[derive(Serialize, ToSchema)]
struct AgentScope {
    /// The notebooks it may be started on: ids, short names, or `*` for all.
    notebooks: Option<Vec<String>>,
    /// The folders it reaches.
    folders: Option<Vec<AgentFolder>>,
    /// The file names it reaches; without it, or with `null`, every name.
    file_types: Option<Vec<String>>,
    /// What it may do there; without it, or with `null`, whatever its flags allow.
    operations: Option<Vec<FileOperation>>,
}

/// A folder pattern, for every operation or for some.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum AgentFolder {
    Pattern(String),
    Narrowed(NarrowedFolder),
}

/// A folder pattern that grants some operations only.
#[derive(Serialize, ToSchema)]
struct NarrowedFolder {
    path: String,
    operations: Vec<FileOperation>,
}

/// The hosts an agent may reach.
#[derive(Serialize, ToSchema)]
struct AgentHosts {
    /// `name`, `*.name` for every sub-domain, an address, or `*` for every public name.
    hosts: Option<Vec<String>>,
    schemes: Option<Vec<String>>,
    ports: Option<Vec<u16>>,
    /// Networks that are not public and may be reached all the same.
    allow_private: Option<Vec<String>>,
    /// What the path must begin with.
    path_prefix: Option<String>,
}

/// One entry of a content filter: a pattern or a category.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ContentFilter {
    /// A regular expression.
    pattern: Option<String>,
    /// `secrets` or `personal`.
    category: Option<String>,
    /// `prompt`, `tool`, `input`, `output`, `memory`.
    points: Vec<String>,
    /// `block`, `redact`, `ask` or `label`.
    action: String,
}

/// What an agent may spend, in dollars; none is no limit.
#[derive(Serialize, ToSchema)]
struct AgentBudget {
    run_usd: Option<f64>,
    day_usd: Option<f64>,
    month_usd: Option<f64>,
    /// Where spending in a month is pointed out.
    alert_at_usd: Option<Vec<f64>>,
    /// From this spending in a month on, new runs use `cheaper_model`.
    soft_usd: Option<f64>,
    cheaper_model: Option<String>,
    /// Whether models without a known price are asked although there is a limit.
    allow_unpriced: Option<bool>,
}

/// How a model is asked beyond what every request has. What a provider has no word for is left out.
#[derive(Serialize, ToSchema)]
struct AgentModelOptions {
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`: how much to think, where a model does.
    reasoning_effort: Option<String>,
    /// Tokens to think, part of `max_tokens_per_request`; a quarter of that stays for the answer.
    thinking_tokens: Option<u32>,
    top_p: Option<f64>,
    /// Up to 4 texts at which it stops.
    stop: Option<Vec<String>>,
    seed: Option<u32>,
    /// `auto`, `none`, `required`, or the name of a tool: for the first answer of a run.
    tool_choice: Option<String>,
    /// Headers beyond those that are sent, never such that prove who calls. For admins.
    extra_headers: Option<BTreeMap<String, String>>,
    /// Fields of the body beyond those that are known here. For admins.
    #[schema(value_type = Option<Object>)]
    extra_body: Option<Value>,
}

/// An agent as a person writes it. Only the name is needed; what is left out gets its default, and a default grants nothing but
/// reading inside the scope. What answers add is taken back unread, so that an agent can be sent back as it came.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"name": "Research", "scope": {"notebooks": ["*"], "folders": ["/notes"]}, "can_write": true}))]
pub(in crate::http) struct AgentBody {
    /// The workspace (id or short name); your only one without it.
    workspace_id: Option<String>,
    /// `user` (the default) or `workspace`. An admin gives an agent that is there to another member by their id.
    owner: Option<String>,
    /// Members (ids or names) who see it and run it beside its owner and the admins; as before when it is left out.
    shared_with: Option<Vec<String>>,
    /// Members (ids or names) who may decide what it asks; as before when it is left out.
    approvers: Option<Vec<String>>,
    name: Option<String>,
    slug: Option<String>,
    description: Option<String>,
    emoji: Option<String>,
    category: Option<String>,
    keywords: Option<Vec<String>>,
    /// A model, several in order, a strategy, or `default`.
    model: Option<ModelChoice>,
    /// The provider of a `model` that names none, as older clients write it.
    provider: Option<String>,
    fallback_models: Option<Vec<String>>,
    routing: Option<RoutingStrategy>,
    temperature: Option<f64>,
    model_options: Option<AgentModelOptions>,
    /// What a model has to be able to do to be chosen, or to stand in (`tools`, `images`, `structured`, `reasoning`), and what has
    /// to be enforced for a run to start (`encryption`, `durability`, `audit_chain`, `egress_filter`, `price_known`, `sandbox`).
    requires: Option<Vec<String>>,
    /// The stored key that its runs use for the provider it is for: the workspace's, the agent's own, or the one of whoever
    /// starts a run.
    provider_key_id: Option<String>,
    /// The JSON Schema that its answers have to fit, at most 16 KiB; a run may bring another.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    system_prompt: Option<String>,
    scope: Option<AgentScope>,
    can_read: Option<bool>,
    can_write: Option<bool>,
    can_create: Option<bool>,
    can_delete: Option<bool>,
    can_execute_code: Option<bool>,
    can_access_integrations: Option<bool>,
    permission_level: Option<PermissionLevel>,
    categories: Option<Vec<ToolCategory>>,
    /// A bundle of flags, level and categories, written out at save; what is named beside it counts instead.
    preset: Option<Preset>,
    tools: Option<Vec<String>>,
    toolsets: Option<Vec<String>>,
    denied_tools: Option<Vec<String>>,
    /// A list of hosts, or a whole policy.
    allowed_hosts: Option<HostChoice>,
    autonomy: Option<Autonomy>,
    flow: Option<DataFlow>,
    requires_approval: Option<Vec<String>>,
    max_turns: Option<u32>,
    max_tool_calls: Option<u32>,
    max_tokens_per_request: Option<u32>,
    max_requests_per_hour: Option<u32>,
    /// 1 to 10000, 4 unless it is said: more are queued.
    max_concurrent_runs: Option<u32>,
    tool_limits: Option<BTreeMap<String, u32>>,
    content_filter: Option<Vec<ContentFilter>>,
    /// How long a question waits, such as `24h`.
    approval_expires_in: Option<String>,
    budget: Option<AgentBudget>,
    /// Agents do not remember yet: `enabled` is false, or it is refused.
    memory: Option<AgentMemory>,
    /// The kinds of data it is meant for, up to 32 in words of your own. Kept for people: no tool asks for one yet.
    data_access: Option<Vec<String>>,
    is_active: Option<bool>,
    metadata: Option<BTreeMap<String, String>>,
}

/// Whether an agent remembers from run to run.
#[derive(Serialize, ToSchema)]
struct AgentMemory {
    enabled: bool,
}

/// A bundle of grants.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum Preset {
    ReadOnly,
    Standard,
    Full,
}

/// A model, or several in order.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum ModelChoice {
    One(String),
    InOrder(Vec<String>),
}

/// A list of hosts, or a whole policy.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
enum HostChoice {
    List(Vec<String>),
    Policy(AgentHosts),
}

/// What became of an agent that comes from a template.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct ResyncedAgent {
    slug: String,
    /// `made`, `changed`, `same`; `taken` where somebody's own agent has the short name, and is left alone.
    change: String,
    agent_id: Option<String>,
    /// The fields that differ from the template.
    fields: Vec<String>,
}
