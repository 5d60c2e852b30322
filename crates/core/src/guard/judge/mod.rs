//! The verdict on one call: a pure function of what is recorded. It takes nothing, reads nothing and remembers nothing.

mod asks;
mod checks;
mod limit;
mod paths;
mod usual;
mod verdict;

use serde::Serialize;
use serde_json::Value;

pub use asks::is_free;
use asks::{asks, by_autonomy, flow, without_entry, without_rule};
pub use checks::Outside;
pub use limit::{Place, over_limit};
pub use paths::{keys, sources, touches};
pub use usual::usually;
pub use verdict::{Decision, Verdict};

use crate::canonical;
use crate::content::Hash;
use crate::guard::filter::{Filter, FilterPoint, Filtered};
use crate::guard::policy::{AgentConfig, Autonomy};
use crate::guard::rule::{Asked, Rule, Rules};
use crate::guard::scope::{Action, Scope};
use crate::guard::{meta, plane};
use crate::id::{AgentId, ChatId, NotebookId, RunId};
use crate::label::Labels;
use crate::run::event::{Effects, Risk};
use crate::time::Time;
use crate::tool::{Category, Effect, Prepared, Target, ToolSpec};

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
    /// Whether the run may still act.
    pub life: Life,
    /// Whether the tool is still the one that was admitted.
    pub definition: Definition,
    /// What the agent reaches outside its notebook.
    pub outside: &'a Outside,
    /// Whether the run acts at all.
    pub effects: Effects,
    /// Whether the run has a notebook that the scope admits.
    pub notebook: bool,
    /// What the run has seen.
    pub labels: Labels,
    /// What its texts may hold.
    pub filter: &'a Filter,
    /// The run's own autonomy, where it has one; it lowers the agent's and never raises it.
    pub autonomy: Option<Autonomy>,
    /// Who calls, where and when: what standing rules are about.
    pub caller: Caller,
    /// The standing rules of the workspace.
    pub rules: &'a Rules,
    /// What whoever started the run may do in its workspace.
    pub authority: Authority,
    /// What a person has said to this very call.
    pub answer: Answer,
}

/// What whoever started a run may do in its workspace now. No run does more, whatever its agent was granted (rule G6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// All that agents do.
    Acts,
    /// Only read.
    Reads,
    /// Nothing: they are no member any more, or switched off.
    Gone,
}

/// What a person has said to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing yet.
    None,
    /// Other arguments: they answer what asks whatever the arguments are, and nothing that depends on them.
    Edited,
    /// Yes to what was shown.
    Yes,
}

/// Whether a run may still act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It goes on.
    Running,
    /// It was cancelled, failed, or belongs to somebody else now: it executes nothing (T11).
    Over,
}

/// Whether the definition of a tool is the one that was pinned when it was admitted (T10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Definition {
    /// It is, or the tool is our own.
    AsPinned,
    /// Its server has changed it since.
    Changed,
}

/// Who calls, where and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caller {
    /// The agent.
    pub agent: AgentId,
    /// The chat.
    pub chat: ChatId,
    /// The run.
    pub run: RunId,
    /// Its notebook.
    pub notebook: Option<NotebookId>,
    /// The moment.
    pub now: Time,
}

/// The verdict on one call.
#[must_use]
pub fn judge(question: &Question<'_>) -> Verdict {
    let spec = match callable(question) {
        Ok(spec) => spec,
        Err(denied) => return denied,
    };
    let arguments = match question.arguments {
        Ok(arguments) => arguments,
        Err(problem) => return Verdict::deny("arguments", problem, None),
    };
    if let Some(denied) = beyond_authority(question.authority, spec) {
        return denied;
    }
    let always = plane::is_always_allowed(spec.name());
    if let Some(denied) = out_of_reach(question, spec).filter(|_| !always) {
        return denied;
    }
    let refused = paths::outside_scope(question, spec, arguments);
    if let Some(denied) = refused.or_else(|| checks::not_allowed(question, spec, arguments)) {
        return denied;
    }
    if question.effects == Effects::Dry && spec.effect != Effect::Read {
        let grant = Some("start the run without `dry_run`".to_owned());
        return Verdict::deny("dry_run", "This run only reads: nothing is changed.", grant);
    }
    let filtered = filtered(question.filter, spec, arguments);
    if let Some(entry) = filtered.blocked {
        let reason = format!("Entry {entry} of the content filter forbids it.");
        return Verdict::deny("content_filter", reason, Some(without_entry(entry)));
    }
    let rule = strongest_rule(question, spec, arguments);
    if let Some(rule) = rule.filter(|rule| rule.decision == Decision::Deny) {
        let reason = format!("A standing rule forbids it: {}.", rule.in_words());
        return Verdict::deny(&named(rule), reason, Some(without_rule(rule)));
    }
    let flow = flow(question, spec);
    if let Some(denied) = flow.as_ref().filter(|flow| flow.decision == Decision::Deny) {
        return denied.clone();
    }
    if question.answer == Answer::Yes {
        return Verdict::allow("approved", "A person approved this call.");
    }
    if let Some(asks) = asks(question, spec, rule, &filtered).or(flow) {
        return asks;
    }
    if question.answer == Answer::Edited {
        return Verdict::allow("approved", "A person wrote these arguments.");
    }
    if always {
        return Verdict::allow("always_allowed", "It has no effect outside the agent's own state.");
    }
    match by_autonomy(question, spec) {
        // An allow can only answer what autonomy asks; everything that could deny or ask came before.
        asks if asks.decision == Decision::Ask => match rule {
            Some(rule) => Verdict::allow(&named(rule), &format!("A standing rule allows it: {}.", rule.in_words())),
            None => asks,
        },
        free => free,
    }
}

/// The standing rule that counts for a call.
fn strongest_rule<'a>(question: &Question<'a>, spec: &ToolSpec, arguments: &Value) -> Option<&'a Rule> {
    question.rules.strongest(&Asked {
        caller: question.caller,
        tool: spec.name(),
        arguments,
        schema: &spec.definition.schema,
        touches: &paths::seen(question, spec, arguments),
        sources: &sources(spec, arguments),
    })
}

/// What is more than whoever started the run may do themselves.
fn beyond_authority(authority: Authority, spec: &ToolSpec) -> Option<Verdict> {
    let (reason, grant) = match authority {
        Authority::Acts => return None,
        Authority::Reads if spec.effect == Effect::Read => return None,
        Authority::Reads => ("Whoever started this run may only read in this workspace.", "the role write"),
        Authority::Gone => ("Whoever started this run is no member of this workspace any more.", "a membership"),
    };
    Some(Verdict::deny("role", reason, Some(format!("{grant} for whoever started the run"))))
}

/// A grant that the tool needs and the agent lacks: flag, level, category, notebook (checks 3 to 5).
fn out_of_reach(question: &Question<'_>, spec: &ToolSpec) -> Option<Verdict> {
    let agent = question.agent;
    if let Some(flag) = missing_flag(agent, spec) {
        return Some(Verdict::deny(flag, format!("This agent lacks {flag}."), Some(format!("set {flag}"))));
    }
    if spec.level > agent.permission_level {
        let needed = word(&spec.level);
        return Some(Verdict::deny(
            "permission_level",
            format!("`{}` needs the level {needed}.", spec.name()),
            Some(format!("permission_level: {needed}")),
        ));
    }
    if !agent.categories.contains(&spec.category) {
        return Some(Verdict::deny(
            "categories",
            format!("`{}` is of a category this agent may not use.", spec.name()),
            Some(format!("categories: {}", word(&spec.category))),
        ));
    }
    if !question.notebook && !spec.paths.is_empty() {
        let grant = Some("scope.notebooks".to_owned());
        return Some(Verdict::deny("notebook", "This run has no notebook that the agent's scope admits.", grant));
    }
    None
}

/// The points at which the arguments of a tool are looked at.
#[must_use]
pub fn filter_points(spec: &ToolSpec) -> &'static [FilterPoint] {
    match (spec.category == Category::Memory, spec.effect) {
        (true, Effect::Create | Effect::Write | Effect::Delete | Effect::Execute | Effect::Send) => {
            &[FilterPoint::Input, FilterPoint::Memory]
        }
        (true, Effect::Read) | (false, _) => &[FilterPoint::Input],
    }
}

/// What the content filter finds in the choice of a tool and in its arguments.
fn filtered(filter: &Filter, spec: &ToolSpec, arguments: &Value) -> Filtered<'static> {
    let mut found = filter.apply(FilterPoint::Tool, spec.name()).into_owned();
    for point in filter_points(spec).iter().filter(|point| filter.looks_at(**point)) {
        found.take_in(&filter.apply_to(*point, arguments).1);
    }
    found
}

fn named(rule: &Rule) -> String {
    format!("rule {}", rule.id)
}

/// The tool, if the run may act and the agent has it (check 1).
fn callable<'a>(question: &Question<'a>) -> Result<&'a ToolSpec, Verdict> {
    if question.life == Life::Over {
        return Err(Verdict::deny("run", "This run is over: it executes nothing.", None));
    }
    if !question.agent.is_active {
        return Err(Verdict::deny("agent", "This agent is switched off.", Some("is_active: true".to_owned())));
    }
    if question.tool == meta::USE_TOOL {
        let reason = "`use_tool` names one tool and its arguments as an object; a tool about tools is called directly.";
        return Err(Verdict::deny("use_tool", reason, None));
    }
    let spec = granted(question).ok_or_else(|| unknown(question))?;
    if question.definition == Definition::Changed {
        let reason = format!("The definition of `{}` is not the one that was admitted.", spec.name());
        return Err(Verdict::deny("definition_changed", reason, Some("admit the tool again".to_owned())));
    }
    Ok(spec)
}

/// The tool, if the agent has it under exactly the name the model wrote (check 1).
fn granted<'a>(question: &Question<'a>) -> Option<&'a ToolSpec> {
    let exact = question.spec.filter(|spec| spec.name() == question.tool);
    exact.filter(|spec| has(question.agent, spec))
}

/// Whether the agent has a tool: it was granted or is everybody's, and is not of the control plane (T2).
fn has(agent: &AgentConfig, spec: &ToolSpec) -> bool {
    let own = plane::is_always_allowed(spec.name()) && !agent.denied_tools.contains(spec.name());
    (own || agent.grants_tool(spec.name(), &spec.toolset)) && !plane::is_never_callable(spec.name())
}

/// A tool that is not granted and one that does not exist look alike to the model; the person reads what would help.
fn unknown(question: &Question<'_>) -> Verdict {
    let known = question.spec.filter(|spec| spec.name() == question.tool);
    // What no model may ever call is not made callable by a grant.
    let known = known.filter(|spec| !plane::is_never_callable(spec.name()));
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

/// Whether the agent is shown a tool: granted, and not out of reach by flag, level or category (rule G4). What every agent may
/// call is shown only to those it was given to.
#[must_use]
pub fn is_shown(agent: &AgentConfig, spec: &ToolSpec) -> bool {
    has(agent, spec)
        && agent.grants_tool(spec.name(), &spec.toolset)
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
        Category::Custom if agent.can_access_integrations => flag_of(agent, spec.effect),
        Category::NetworkRead | Category::NetworkWrite | Category::Custom => {
            (agent.can_access_integrations, "can_access_integrations")
        }
        Category::Memory => (true, ""),
    };
    (!held).then_some(flag)
}

/// The flag of what a tool does, for one whose category says nothing about that.
const fn flag_of(agent: &AgentConfig, effect: Effect) -> (bool, &'static str) {
    match effect {
        Effect::Read => (agent.can_read, "can_read"),
        Effect::Create => (agent.can_create, "can_create"),
        Effect::Write => (agent.can_write, "can_write"),
        Effect::Delete => (agent.can_delete, "can_delete"),
        Effect::Execute => (agent.can_execute_code, "can_execute_code"),
        Effect::Send => (agent.can_access_integrations, "can_access_integrations"),
    }
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

/// A piece of model text, short enough and escaped enough to be shown in a sentence (rule A3).
fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}
