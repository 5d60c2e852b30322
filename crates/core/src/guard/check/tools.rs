//! The agent and the tools of a world, in the form that real ones have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::BadCase;
use super::world::{World, WorldTool};
use crate::guard::arguments::Schema;
use crate::guard::host::HostPolicy;
use crate::guard::judge::Outside;
use crate::guard::meta;
use crate::guard::policy::{AgentConfig, AgentSpec, Autonomy};
use crate::guard::scope::{Action, Scope};
use crate::tool::{Category, Checks, Effect, Level, Recovery, ToolDefinition, ToolSpec};

/// The tools of a world, by name.
#[derive(Debug)]
pub(super) struct Toolset(BTreeMap<String, (ToolSpec, Schema, bool)>);

impl Toolset {
    pub(super) fn new(world: &World) -> Result<Self, BadCase> {
        let hidden = |name: &str| world.control_plane.contains(name) || world.registered_not_granted.contains(name);
        let tools = world.tools.iter().filter(|(name, _)| !hidden(name)).map(|(name, tool)| {
            let schema = Schema::compile(&tool.schema).map_err(|bad| BadCase(format!("tools.{name}: {bad}")))?;
            Ok((name.clone(), (spec(name, tool), schema, tool.meta || meta::is_meta(name))))
        });
        Ok(Self(tools.collect::<Result<_, BadCase>>()?))
    }

    pub(super) fn spec(&self, name: &str) -> Option<&ToolSpec> {
        self.0.get(name).map(|(spec, _, _)| spec)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a tool is about other tools.
    pub(super) fn is_meta(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|(_, _, meta)| *meta)
    }

    /// Holds arguments against the schema of a tool; what is not there has none.
    pub(super) fn fit(&self, name: &str, arguments: &Value) -> Result<(), String> {
        let Some((_, schema, _)) = self.0.get(name) else { return Ok(()) };
        schema.validate(arguments).map_err(|problems| {
            let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
            format!("The arguments do not fit: {}.", list.join("; "))
        })
    }
}

/// A world is a complete policy: what it does not state is not checked.
pub(super) fn agent(world: &World) -> Result<AgentConfig, BadCase> {
    let written = &world.agent;
    let autonomy = written.autonomy.clone().map(|word| serde_json::from_value::<Autonomy>(Value::String(word)));
    let autonomy = autonomy.transpose().map_err(|error| BadCase(format!("agent.autonomy: {error}")))?;
    let asking = world.tools.iter().filter(|(_, tool)| tool.approval).map(|(name, _)| name.clone());
    let spec = AgentSpec {
        name: "checked".to_owned(),
        // A broken entry grants nothing here as everywhere; only saving an agent refuses it.
        scope: None,
        // Its capabilities are about files, and so are in the scope.
        can_read: Some(true),
        can_write: Some(true),
        can_create: Some(true),
        can_delete: Some(true),
        can_execute_code: Some(true),
        can_access_integrations: Some(true),
        permission_level: Some(written.level.unwrap_or(Level::Admin)),
        tools: Some(world.tools.keys().cloned().collect()),
        toolsets: Some(BTreeSet::new()),
        autonomy: Some(autonomy.unwrap_or(Autonomy::Full)),
        requires_approval: Some(asking.collect()),
        ..AgentSpec::default()
    };
    let mut config = spec.complete().map_err(|problems| BadCase(format!("agent: {problems:?}")))?;
    config.scope = written.scope.clone();
    Ok(config)
}

/// What the agent of a world may do with which path.
pub(super) fn scope(world: &World) -> Scope {
    Scope::compile(&world.agent.scope, world.agent.caps.iter().copied().collect())
}

pub(super) fn outside(world: &World) -> Outside {
    Outside {
        hosts: HostPolicy::compile(&world.agent.net),
        mail_domains: world.agent.mail_domains.iter().cloned().collect(),
        own_ids: world.own_ids.clone(),
        reserved_memory: world.reserved_memory.clone(),
    }
}

fn spec(name: &str, tool: &WorldTool) -> ToolSpec {
    let remembers = name == "remember";
    let names = |list: &[String]| list.iter().map(|name| Arc::from(name.as_str())).collect();
    let definition = ToolDefinition { name: name.to_owned(), description: String::new(), schema: tool.schema.clone() };
    ToolSpec {
        toolset: Arc::from("world"),
        // Listing a tool grants it with its category and level: only what a world states is checked.
        category: if remembers { Category::Memory } else { Category::Custom },
        level: tool.level.unwrap_or(Level::None),
        effect: tool.effect.unwrap_or_else(|| effect(tool, remembers)),
        undoable: tool.undoable,
        recovery: Recovery::AskHuman,
        egress: tool.egress,
        labels: tool.added_labels(),
        paths: tool.paths.iter().map(|(name, action)| (Arc::from(name.as_str()), *action)).collect(),
        checks: Arc::new(Checks {
            sources: Vec::new(),
            urls: names(&tool.urls),
            emails: names(&tool.emails),
            single_line: names(&tool.single_line),
            no_option: names(&tool.no_option),
            own_ids: names(&tool.own_ids),
            memory_keys: if remembers { vec![Arc::from("key")] } else { Vec::new() },
            file_or_folder: Vec::new(),
        }),
        ..ToolSpec::undeclared(definition)
    }
}

/// What a tool does, from what its arguments are; where that says nothing, it counts as a change.
fn effect(tool: &WorldTool, remembers: bool) -> Effect {
    let does = |wanted: &[Action]| tool.paths.values().any(|action| wanted.contains(action));
    if does(&[Action::Execute]) {
        Effect::Execute
    } else if does(&[Action::Delete, Action::Move]) {
        Effect::Delete
    } else if does(&[Action::Write]) || remembers {
        Effect::Write
    } else if does(&[Action::Create]) {
        Effect::Create
    } else if !tool.emails.is_empty() || (tool.egress && tool.approval) {
        Effect::Send
    } else if !tool.paths.is_empty() || !tool.urls.is_empty() || !tool.labels.is_empty() || tool.meta {
        Effect::Read
    } else {
        Effect::Write
    }
}
