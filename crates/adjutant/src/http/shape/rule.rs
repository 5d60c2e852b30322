//! A standing rule.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::words::Verdict;
use crate::wire::Moment;

/// A standing rule: what somebody said once and for longer.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct StandingRule {
    id: String,
    workspace_id: String,
    /// Who made it.
    owner: String,
    origin: RuleOrigin,
    /// The agent it is about; every agent without it.
    agent: Option<String>,
    /// The chat it is about; every chat without it.
    chat: Option<String>,
    /// The run it is about; every run without it.
    run: Option<String>,
    /// The notebook it is about; every notebook without it.
    notebook: Option<String>,
    /// The tool, or `*` for every tool.
    tool: String,
    when: Option<RuleMatch>,
    decision: Verdict,
    /// When it ends; never without it.
    expires_at: Option<Moment>,
    created_at: Moment,
    /// Why.
    note: Option<String>,
    must_allow: Option<Vec<RuleExample>>,
    must_deny: Option<Vec<RuleExample>>,
    /// What it says, in one line.
    says: String,
    /// Whether it counts now.
    live: bool,
}

/// Where a rule comes from: `person`, or the `approval` that was given for longer than once.
#[derive(Serialize, ToSchema)]
struct RuleOrigin {
    kind: String,
    id: Option<String>,
}

/// What a tool is called with; anything where it is empty.
#[derive(Serialize, ToSchema)]
struct RuleMatch {
    /// Folder patterns, at any depth.
    folders: Option<Vec<String>>,
    /// Folders: what is touched is one of them, or lies directly in one.
    directly_in: Option<Vec<String>>,
    /// Hosts of web addresses among the arguments.
    hosts: Option<Vec<String>>,
    /// Arguments by name, in which `*` stands for any characters.
    arguments: Option<BTreeMap<String, String>>,
    /// The arguments are exactly these, by their hash.
    exactly: Option<String>,
}

/// A call that a rule is checked against when it is saved.
#[derive(Serialize, ToSchema)]
struct RuleExample {
    tool: String,
    paths: Option<Vec<String>>,
    arguments: Option<serde_json::Value>,
}

/// A rule to be written.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"tool": "write_file", "decision": "allow", "when": {"folders": ["/drafts"]}}))]
pub(in crate::http) struct NewStandingRule {
    /// The agent it is about, by id or short name; every agent without it.
    agent: Option<String>,
    /// The chat it is about, by id; every chat without it.
    chat: Option<String>,
    /// The tool, or `*` for every tool.
    tool: String,
    when: Option<RuleMatch>,
    decision: Verdict,
    /// When it ends; never without it.
    expires_at: Option<Moment>,
    /// Why.
    note: Option<String>,
    /// Calls that it must let through.
    must_allow: Option<Vec<RuleExample>>,
    /// Calls that it must not let through.
    must_deny: Option<Vec<RuleExample>>,
}

/// What changes in a rule; what is not named stays, and `null` takes something away.
#[derive(Serialize, ToSchema)]
#[schema(example = json!({"decision": "ask", "expires_at": null}))]
pub(in crate::http) struct StandingRuleChange {
    /// The agent it is about, by id or short name; every agent without it.
    agent: Option<String>,
    /// The chat it is about, by id; every chat without it.
    chat: Option<String>,
    /// The tool, or `*` for every tool.
    #[schema(nullable = false)]
    tool: Option<String>,
    when: Option<RuleMatch>,
    #[schema(nullable = false)]
    decision: Option<Verdict>,
    /// When it ends; never without it.
    expires_at: Option<Moment>,
    /// Why.
    note: Option<String>,
    /// Calls that it must let through.
    must_allow: Option<Vec<RuleExample>>,
    /// Calls that it must not let through.
    must_deny: Option<Vec<RuleExample>>,
}
