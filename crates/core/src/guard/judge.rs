//! The verdict on one call: a pure function of what is recorded. It takes nothing, reads nothing and remembers nothing.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::content::Hash;
use crate::guard::path::NotePath;
use crate::guard::policy::{AgentConfig, Autonomy};
use crate::guard::scope::{Action, Kind, Scope};
use crate::run::event::{ApprovalAsked, Effects, GrantScope, Risk};
use crate::tool::{Category, Effect, Prepared, Target, ToolSpec};

/// Allow, ask or deny. Deny outranks ask, ask outranks allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// It may run.
    Allow,
    /// A person decides.
    Ask,
    /// It may not run.
    Deny,
}

impl Decision {
    /// The word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What the guard says, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Allow, ask or deny.
    pub decision: Decision,
    /// The deciding rule.
    pub rule: String,
    /// Why, in words a person understands.
    pub reason: String,
    /// The smallest grant that would change a deny or an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest_grant: Option<String>,
    /// How far an approval may reach; empty unless it asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<GrantScope>,
}

impl Verdict {
    fn allow(rule: &str, reason: &str) -> Self {
        Self {
            decision: Decision::Allow,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            smallest_grant: None,
            scopes: Vec::new(),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn deny(rule: &str, reason: impl Into<String>, smallest_grant: Option<String>) -> Self {
        Self {
            decision: Decision::Deny,
            rule: rule.to_owned(),
            reason: reason.into(),
            smallest_grant,
            scopes: Vec::new(),
        }
    }

    fn ask(rule: &str, reason: impl Into<String>, scopes: &[GrantScope]) -> Self {
        Self {
            decision: Decision::Ask,
            rule: rule.to_owned(),
            reason: reason.into(),
            smallest_grant: None,
            scopes: scopes.to_vec(),
        }
    }

    /// The refusal as the model reads it.
    #[must_use]
    pub fn for_model(&self) -> String {
        format!("Refused: {} Nothing was done.", self.reason)
    }
}

/// A standing yes of this run: the same tool, in the same folders or with the very same arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    tool: String,
    folders: Vec<String>,
    arguments: Option<Hash>,
}

impl Grant {
    /// The grant that an approval "for this run" gives: the folder of each path, or the exact arguments where there is
    /// no path.
    #[must_use]
    pub fn from_asked(asked: &ApprovalAsked) -> Self {
        let arguments = asked.target.is_empty().then(|| arguments_hash(&asked.arguments.text()));
        Self {
            tool: asked.tool.clone(),
            folders: asked.target.0.keys().map(|path| folder_of(path)).collect(),
            arguments,
        }
    }

    fn covers(&self, tool: &str, target: &Target, arguments: &Value) -> bool {
        let by_folder = !target.is_empty() && target.0.keys().all(|path| self.folders.contains(&folder_of(path)));
        self.tool == tool && self.arguments.map_or(by_folder, |exact| exact == canonical::hash(arguments))
    }
}

fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default()
}

fn arguments_hash(text: &str) -> Hash {
    serde_json::from_str::<Value>(text).map_or(Hash::ZERO, |value| canonical::hash(&value))
}

/// Everything a verdict depends on.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The agent's configuration, as it is now.
    pub agent: &'a AgentConfig,
    /// Its scope, compiled.
    pub scope: &'a Scope,
    /// The name the model wrote.
    pub tool: &'a str,
    /// The tool of exactly that name, if there is one.
    pub spec: Option<&'a ToolSpec>,
    /// The arguments, parsed and checked against the schema; or what is wrong with them.
    pub arguments: Result<&'a Value, &'a str>,
    /// What the tool saw, once it was allowed to look.
    pub prepared: Option<&'a Prepared>,
    /// What the person who started the run may do, and whether it acts at all.
    pub effects: Effects,
    /// Standing yeses of this run.
    pub grants: &'a [Grant],
    /// Whether a person approved this very call.
    pub answered: bool,
}

/// The verdict on one call.
#[must_use]
pub fn judge(question: &Question<'_>) -> Verdict {
    let agent = question.agent;
    let Some(spec) = question.spec.filter(|spec| agent.is_active && agent.grants_tool(spec.name(), spec.toolset))
    else {
        let grant = question.spec.map(|spec| format!("add `{}` to the agent's tools", spec.name()));
        return Verdict::deny("tool", format!("There is no tool `{}` for this agent.", shown(question.tool)), grant);
    };
    let arguments = match question.arguments {
        Ok(arguments) => arguments,
        Err(problem) => return Verdict::deny("arguments", problem, None),
    };
    if let Some(flag) = missing_flag(agent, spec) {
        return Verdict::deny(flag, format!("This agent lacks {flag}."), Some(format!("set {flag}")));
    }
    if spec.level > agent.permission_level {
        let needed = format!("{:?}", spec.level).to_lowercase();
        return Verdict::deny(
            "permission_level",
            format!("`{}` needs the level {needed}.", spec.name()),
            Some(format!("permission_level: {needed}")),
        );
    }
    if !agent.categories.contains(&spec.category) {
        return Verdict::deny(
            "categories",
            format!("`{}` is of a category this agent may not use.", spec.name()),
            None,
        );
    }
    if let Some(denied) = outside_scope(question, spec, arguments) {
        return denied;
    }
    if question.effects == Effects::Dry && spec.effect != Effect::Read {
        return Verdict::deny("dry_run", "This run only reads: nothing is changed.", None);
    }
    if question.answered {
        return Verdict::allow("approved", "A person approved this call.");
    }
    if agent.requires_approval.contains(spec.name()) {
        return Verdict::ask("requires_approval", format!("`{}` always asks.", spec.name()), &[GrantScope::Once]);
    }
    by_autonomy(question, spec, arguments)
}

/// The capability flag of the tool's category, if the agent lacks it (check 3).
fn missing_flag(agent: &AgentConfig, spec: &ToolSpec) -> Option<&'static str> {
    let (held, flag) = match spec.category {
        Category::FileRead => (agent.can_read, "can_read"),
        Category::FileWrite if spec.effect == Effect::Create => (agent.can_create, "can_create"),
        // A write to a file that is not there creates it; the scope check tells the two apart.
        Category::FileWrite => (agent.can_write || agent.can_create, "can_write"),
        Category::FileDelete => (agent.can_delete, "can_delete"),
        Category::CodeExecute | Category::System => (agent.can_execute_code, "can_execute_code"),
        Category::NetworkRead | Category::NetworkWrite | Category::Custom => {
            (agent.can_access_integrations, "can_access_integrations")
        }
        Category::Memory => (true, ""),
    };
    (!held).then_some(flag)
}

/// The first path that is not in scope (check 5).
fn outside_scope(question: &Question<'_>, spec: &ToolSpec, arguments: &Value) -> Option<Verdict> {
    for (name, action) in &spec.paths {
        for text in path_texts(spec, arguments, name) {
            let path = match NotePath::parse(&text) {
                Ok(path) => path,
                Err(invalid) => {
                    return Some(Verdict::deny(
                        "invalid_path",
                        format!("`{}` is not a valid path: {invalid}.", shown(&text)),
                        None,
                    ));
                }
            };
            if let Err(denied) = check_path(question, *action, &path) {
                return Some(denied);
            }
        }
    }
    None
}

fn check_path(question: &Question<'_>, action: Action, path: &NotePath) -> Result<(), Verdict> {
    let kind = if action == Action::List { Kind::Dir } else { Kind::File };
    let state = question.prepared.and_then(|prepared| prepared.target.0.get(path.as_str()));
    let check = |exists: bool| {
        question
            .scope
            .check(action, path, kind, exists)
            .map_err(|denied| Verdict::deny(denied.rule, denied.reason, denied.smallest_grant))
    };
    match state {
        Some(content) => check(content.is_some()),
        // Before anybody has looked, what would be allowed either way may be looked at.
        None => check(action != Action::Create).or_else(|denied| check(action == Action::Create).map_err(|_| denied)),
    }
}

/// The paths in an argument: a text, each of a list, or the default of the schema.
fn path_texts(spec: &ToolSpec, arguments: &Value, name: &str) -> Vec<String> {
    let default = || spec.definition.schema.get("properties")?.get(name)?.get("default");
    match arguments.get(name).or_else(default) {
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

/// What the call does, now that it is known what is there: writing what is not there is creating it.
fn effect_of(question: &Question<'_>, spec: &ToolSpec) -> Effect {
    let creates = question
        .prepared
        .is_some_and(|prepared| !prepared.target.is_empty() && prepared.target.0.values().all(Option::is_none));
    if spec.effect == Effect::Write && creates { Effect::Create } else { spec.effect }
}

fn by_autonomy(question: &Question<'_>, spec: &ToolSpec, arguments: &Value) -> Verdict {
    let effect = effect_of(question, spec);
    let free = match question.agent.autonomy {
        Autonomy::None => false,
        Autonomy::Low => effect == Effect::Read,
        Autonomy::Medium => match effect {
            Effect::Read | Effect::Create => true,
            Effect::Write => spec.undoable,
            Effect::Delete | Effect::Execute | Effect::Send => false,
        },
        Autonomy::High => effect == Effect::Read || spec.undoable,
        Autonomy::Full => true,
    };
    if free {
        return Verdict::allow("autonomy", "The agent may do this without asking.");
    }
    let nothing = Target::default();
    let target = question.prepared.map_or(&nothing, |prepared| &prepared.target);
    if question.grants.iter().any(|grant| grant.covers(spec.name(), target, arguments)) {
        return Verdict::allow("granted_for_run", "A person allowed this for the rest of the run.");
    }
    let verb = match effect {
        Effect::Read => "reads",
        Effect::Create => "creates",
        Effect::Write => "writes",
        Effect::Delete => "deletes",
        Effect::Execute => "running code",
        Effect::Send => "sending",
    };
    Verdict::ask("autonomy", format!("{verb} ask at this agent's autonomy."), &[GrantScope::Once, GrantScope::Run])
}

/// How much harm a call can do.
#[must_use]
pub const fn risk(spec: &ToolSpec) -> Risk {
    match spec.effect {
        Effect::Read | Effect::Create => Risk::Low,
        Effect::Write if spec.undoable => Risk::Medium,
        Effect::Delete if spec.undoable => Risk::Medium,
        Effect::Write | Effect::Delete | Effect::Execute | Effect::Send => Risk::High,
    }
}

/// A piece of model text, short enough and escaped enough to be shown in a sentence (rule A3).
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

/// What an approval is bound to (09: fingerprint).
#[must_use]
pub fn fingerprint(
    run: crate::id::RunId,
    call: &crate::id::CallId,
    spec: &ToolSpec,
    arguments: &Value,
    target: &Target,
) -> Hash {
    let bound = serde_json::json!({
        "run": run, "call": call, "tool": spec.name(), "definition": spec.definition.hash(),
        "arguments": arguments, "target": target,
    });
    let mut bytes = b"approval-v1".to_vec();
    bytes.extend(canonical::text(&bound).into_bytes());
    Hash::of(&bytes)
}
