//! The verdict on one call: a pure function of what is recorded. It takes nothing, reads nothing and remembers nothing.

#![warn(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::canonical;
use crate::content::Hash;
use crate::guard::path::NotePath;
use crate::guard::policy::{AgentConfig, Autonomy};
use crate::guard::scope::{Action, Kind, Scope};
use crate::run::event::{ApprovalAsked, Effects, GrantScope, Risk};
use crate::tool::{Category, Effect, Prepared, Target, ToolSpec, Touch};

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
        let stop = if self.reason.ends_with(['.', '!', '?']) { "" } else { "." };
        format!("Refused: {}{stop} Nothing was done.", self.reason)
    }
}

/// A standing yes of this run: the same tool, in the same folders or with the very same arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    tool: String,
    reach: Reach,
}

/// What a standing yes covers.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Reach {
    /// Calls whose paths all lie directly in these folders.
    Folders(BTreeSet<String>),
    /// Calls with the very same arguments; none covers nothing.
    Arguments(Option<Hash>),
}

impl Grant {
    /// The grant that an approval "for this run" gives: the folder of each path, or the exact arguments where there is
    /// no path. Arguments that live in a block are too long to be told apart here: such a grant covers nothing.
    #[must_use]
    pub fn from_asked(asked: &ApprovalAsked) -> Self {
        let arguments = match asked.arguments.block() {
            None => serde_json::from_str(&asked.arguments.text()).ok().map(|value: Value| canonical::hash(&value)),
            Some(_) => None,
        };
        let reach = match folders(&asked.target) {
            Some(folders) => Reach::Folders(folders),
            None => Reach::Arguments(arguments),
        };
        Self { tool: asked.tool.clone(), reach }
    }

    fn covers(&self, tool: &str, target: &Target, arguments: &Value) -> bool {
        let reached = match &self.reach {
            Reach::Folders(granted) => folders(target).is_some_and(|wanted| wanted.is_subset(granted)),
            Reach::Arguments(exact) => *exact == Some(canonical::hash(arguments)),
        };
        self.tool == tool && reached
    }
}

/// The folders of a target that is made of paths; none of any other.
fn folders(target: &Target) -> Option<BTreeSet<String>> {
    let folder = |path: &String| path.starts_with('/').then(|| folder_of(path));
    target.0.keys().map(folder).collect::<Option<BTreeSet<_>>>().filter(|folders| !folders.is_empty())
}

fn folder_of(path: &str) -> String {
    path.rsplit_once('/').map(|(folder, _)| folder.to_owned()).unwrap_or_default()
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
    /// Whether the run acts at all.
    pub effects: Effects,
    /// Whether the run has a notebook that the scope admits.
    pub notebook: bool,
    /// Standing yeses of this run.
    pub grants: &'a [Grant],
    /// Whether a person approved this very call.
    pub answered: bool,
}

/// The verdict on one call.
#[must_use]
pub fn judge(question: &Question<'_>) -> Verdict {
    let agent = question.agent;
    if !agent.is_active {
        return Verdict::deny("agent", "This agent is switched off.", Some("is_active: true".to_owned()));
    }
    let Some(spec) = granted(question) else { return unknown(question) };
    let arguments = match question.arguments {
        Ok(arguments) => arguments,
        Err(problem) => return Verdict::deny("arguments", problem, None),
    };
    if let Some(flag) = missing_flag(agent, spec) {
        return Verdict::deny(flag, format!("This agent lacks {flag}."), Some(format!("set {flag}")));
    }
    if spec.level > agent.permission_level {
        let needed = word(&spec.level);
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
            Some(format!("categories: {}", word(&spec.category))),
        );
    }
    if !question.notebook && !spec.paths.is_empty() {
        let grant = Some("scope.notebooks".to_owned());
        return Verdict::deny("notebook", "This run has no notebook that the agent's scope admits.", grant);
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

/// The tool, if the agent has it under exactly the name the model wrote (check 1).
fn granted<'a>(question: &Question<'a>) -> Option<&'a ToolSpec> {
    let exact = question.spec.filter(|spec| spec.name() == question.tool);
    exact.filter(|spec| question.agent.grants_tool(spec.name(), spec.toolset))
}

/// A tool that is not granted and one that does not exist look alike to the model; the person reads what would help.
fn unknown(question: &Question<'_>) -> Verdict {
    let known = question.spec.filter(|spec| spec.name() == question.tool);
    let grant = known.map(|spec| {
        if question.agent.denied_tools.contains(spec.name()) {
            format!("take `{}` off denied_tools", spec.name())
        } else {
            format!("add `{}` to the agent's tools", spec.name())
        }
    });
    Verdict::deny("tool", format!("There is no tool `{}` for this agent.", shown(question.tool)), grant)
}

/// The stored word of a unit enum.
fn word(value: &impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Whether the agent is shown a tool: granted, and not out of reach by flag, level or category (design G4).
#[must_use]
pub fn is_shown(agent: &AgentConfig, spec: &ToolSpec) -> bool {
    agent.grants_tool(spec.name(), spec.toolset)
        && missing_flag(agent, spec).is_none()
        && spec.level <= agent.permission_level
        && agent.categories.contains(&spec.category)
}

/// The capability flag of the tool's category, if the agent lacks it (check 3).
fn missing_flag(agent: &AgentConfig, spec: &ToolSpec) -> Option<&'static str> {
    // A write to a file that is not there creates it; the scope check tells the two apart, where there is a path.
    let creates = agent.can_create && spec.paths.values().any(|action| *action == Action::Write);
    let (held, flag) = match spec.category {
        Category::FileRead => (agent.can_read, "can_read"),
        Category::FileWrite if spec.effect == Effect::Create => (agent.can_create, "can_create"),
        Category::FileWrite => (agent.can_write || creates, "can_write"),
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
    spec.paths.iter().find_map(|(name, action)| judge_argument(question, spec, arguments, name, *action).err())
}

fn judge_argument(
    question: &Question<'_>,
    spec: &ToolSpec,
    arguments: &Value,
    name: &str,
    action: Action,
) -> Result<(), Verdict> {
    let invalid = |reason: String| Verdict::deny("invalid_path", reason, None);
    let texts = path_texts(spec, arguments, name)
        .ok_or_else(|| invalid(format!("`{}` must be a path, or a list of paths.", shown(name))))?;
    for text in texts {
        let path = NotePath::parse(text)
            .map_err(|problem| invalid(format!("`{}` is not a valid path: {problem}.", shown(text))))?;
        check_path(question, action, &path)?;
    }
    Ok(())
}

fn check_path(question: &Question<'_>, action: Action, path: &NotePath) -> Result<(), Verdict> {
    let kind = if action == Action::List { Kind::Dir } else { Kind::File };
    let check = |exists: bool| {
        question
            .scope
            .check(action, path, kind, exists)
            .map_err(|denied| Verdict::deny(denied.rule, denied.reason, denied.smallest_grant))
    };
    let seen = question.prepared.map(|prepared| prepared.target.0.get(path.as_str()));
    match (seen, action) {
        (Some(Some(content)), _) => check(content.is_some()),
        // The tool looked and did not say what is there: what would be allowed only one way is not allowed.
        (Some(None), Action::Write) => check(true).and_then(|()| check(false)),
        // Before anybody has looked, what would be allowed one way may be looked at.
        (None, Action::Write) => check(true).or_else(|denied| check(false).map_err(|_| denied)),
        (Some(None) | None, Action::Create) => check(false),
        (
            Some(None) | None,
            Action::Read | Action::List | Action::Delete | Action::Execute | Action::Move | Action::Copy,
        ) => check(true),
    }
}

/// The paths in an argument: a text, each of a list, or the default of the schema where the model gave none. None where
/// it is anything else, because what cannot be judged is not allowed.
fn path_texts<'a>(spec: &'a ToolSpec, arguments: &'a Value, name: &str) -> Option<Vec<&'a str>> {
    let default = || spec.definition.schema.get("properties")?.get(name)?.get("default");
    match arguments.get(name).filter(|value| !value.is_null()).or_else(default) {
        Some(Value::String(text)) => Some(vec![text]),
        Some(Value::Array(items)) => items.iter().map(Value::as_str).collect(),
        Some(Value::Null) | None => Some(Vec::new()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
    }
}

/// The paths a call reads or changes, so that calls that meet on one can wait for each other. What is no path is left out:
/// such a call is refused anyway.
#[must_use]
pub fn touches(spec: &ToolSpec, arguments: &Value) -> Vec<Touch> {
    let mut touches = Vec::new();
    for (name, action) in &spec.paths {
        let changes = match action {
            Action::Read | Action::List | Action::Copy => false,
            Action::Write | Action::Create | Action::Delete | Action::Execute | Action::Move => true,
        };
        let texts = path_texts(spec, arguments, name).unwrap_or_default();
        let paths = texts.into_iter().filter_map(|text| NotePath::parse(text).ok());
        touches.extend(paths.map(|path| Touch { path: path.as_str().to_owned(), changes }));
    }
    touches
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
    let doing = match effect {
        Effect::Read => "reading",
        Effect::Create => "creating",
        Effect::Write => "writing",
        Effect::Delete => "deleting",
        Effect::Execute => "running code",
        Effect::Send => "sending",
    };
    let reason = format!("At this agent's autonomy, {doing} asks.");
    Verdict::ask("autonomy", reason, &[GrantScope::Once, GrantScope::Run])
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

/// What an approval is bound to: if any of it changes, the approval is void (rule A1).
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
