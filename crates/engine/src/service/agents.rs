//! Agents: saving and finding them.

use std::collections::BTreeSet;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::guard::policy::{AgentConfig, AgentProblem, AgentSpec};
use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_store::row::{AgentPeople, AgentRow, Doing};

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// Saves an agent: a new one when `expected` is 0, else the version after `expected`.
    ///
    /// # Errors
    /// When the configuration cannot be used, or somebody saved another version meanwhile.
    pub async fn save_agent(
        &self,
        workspace: WorkspaceId,
        by: Actor,
        spec: AgentSpec,
        expected: u64,
    ) -> Result<AgentRow, EngineError> {
        let named = spec.clone();
        let config = self.complete_agent(spec)?;
        let row = match self.store().agent_by_slug(workspace, &config.slug).await? {
            Some(known) => self.next_version(&AgentRow { version: expected, ..known }, &config)?,
            None => AgentRow { version: expected + 1, ..self.new_agent(workspace, &config)? },
        };
        let people = self.named_people(workspace, &named, &row.people).await?;
        self.put_agent(by, AgentRow { people, ..row }, &config).await
    }

    /// An agent with its defaults written out, if it can be used here: a tool that does not exist would neither be granted nor
    /// be kept away by its name (rule G2).
    ///
    /// # Errors
    /// [`EngineError::InvalidAgent`] with everything that is wrong.
    pub fn complete_agent(&self, spec: AgentSpec) -> Result<AgentConfig, EngineError> {
        let config = spec.complete().map_err(EngineError::InvalidAgent)?;
        let tools = self.tools();
        let limited: BTreeSet<String> = config.tool_limits.keys().cloned().collect();
        let by_tool = [
            ("tools", &config.tools),
            ("denied_tools", &config.denied_tools),
            ("requires_approval", &config.requires_approval),
            ("tool_limits", &limited),
        ];
        let unknown = |field: &str, what: &str, name: &String| AgentProblem {
            field: field.to_owned(),
            detail: format!("there is no {what} `{name}`"),
        };
        let mut problems = Vec::new();
        for (field, names) in by_tool {
            problems.extend(names.iter().filter(|name| !tools.knows(name)).map(|name| unknown(field, "tool", name)));
        }
        let sets = config.toolsets.iter().filter(|name| !tools.knows_toolset(name));
        problems.extend(sets.map(|name| unknown("toolsets", "toolset", name)));
        if problems.is_empty() { Ok(config) } else { Err(EngineError::InvalidAgent(problems)) }
    }

    /// The first version of a new agent. It belongs to the workspace, and nobody else has to do with it.
    ///
    /// # Errors
    /// When the configuration cannot be written.
    pub fn new_agent(&self, workspace: WorkspaceId, config: &AgentConfig) -> Result<AgentRow, EngineError> {
        Ok(AgentRow {
            id: self.env().id(),
            workspace,
            slug: config.slug.clone(),
            version: 1,
            active: config.is_active,
            spec: written(config)?,
            saved_at: self.env().now(),
            owner: None,
            created_by: None,
            people: AgentPeople::default(),
        })
    }

    /// The version of an agent after this one. It stays whose it is.
    ///
    /// # Errors
    /// When the configuration cannot be written.
    pub fn next_version(&self, row: &AgentRow, config: &AgentConfig) -> Result<AgentRow, EngineError> {
        Ok(AgentRow {
            slug: config.slug.clone(),
            version: row.version + 1,
            active: config.is_active,
            spec: written(config)?,
            saved_at: self.env().now(),
            ..row.clone()
        })
    }

    /// Saves the next version of an agent.
    ///
    /// # Errors
    /// When somebody saved another version meanwhile, the short name is taken, or it names a key that it could never use.
    pub async fn put_agent(&self, by: Actor, row: AgentRow, config: &AgentConfig) -> Result<AgentRow, EngineError> {
        self.check_agent_key(row.workspace, row.id, config.provider_key_id).await?;
        let maker = match &by {
            Actor::User(user) if row.version == 1 => Some(*user),
            Actor::User(_) | Actor::Clock | Actor::Rule(_) => row.created_by,
        };
        let row = AgentRow { created_by: maker, ..row };
        let act = Act::new(Deed::AgentSaved, Some(by), format!("{} version {}", row.slug, row.version))
            .agent(row.id)
            .with("version", row.version)
            .with("active", row.active)
            .with("owner", row.owner.map(|owner| owner.to_string()))
            .with("shared_with", ids(&row.people.shared_with))
            .with("approvers", ids(&row.people.approvers))
            .with("policy", config.hash().to_string());
        self.record_agent(act, row).await
    }

    async fn record_agent(&self, act: Act, row: AgentRow) -> Result<AgentRow, EngineError> {
        let done = Done { doing: Some(Doing::SaveAgent(Box::new(row.clone()))), ..Done::default() };
        self.audit_done(AuditLog::Workspace(row.workspace), act, done).await?;
        Ok(row)
    }

    /// Takes an agent away. Its versions and its runs stay readable.
    ///
    /// # Errors
    /// When somebody saved another version meanwhile.
    pub async fn delete_agent(&self, by: Actor, row: &AgentRow) -> Result<(), EngineError> {
        let act = Act::new(Deed::AgentRemoved, Some(by), row.slug.clone()).agent(row.id).with("version", row.version);
        let done = Done { doing: Some(Doing::DeleteAgent(row.id, row.version)), ..Done::default() };
        self.audit_done(AuditLog::Workspace(row.workspace), act, done).await.map(drop)
    }

    /// Switches an agent on or off, as its next version.
    ///
    /// # Errors
    /// When somebody saved another version meanwhile.
    pub async fn switch_agent(&self, by: Actor, row: AgentRow, active: bool) -> Result<AgentRow, EngineError> {
        let row = AgentRow { active, version: row.version + 1, saved_at: self.env().now(), ..row };
        let word = if active { "on" } else { "off" };
        let act = Act::new(Deed::AgentSwitched, Some(by), format!("{} {word}", row.slug))
            .agent(row.id)
            .with("version", row.version)
            .with("active", active);
        self.record_agent(act, row).await
    }

    /// Finds an agent by its id or short name.
    ///
    /// # Errors
    /// When there is none.
    pub async fn find_agent(&self, workspace: WorkspaceId, name: &str) -> Result<AgentRow, EngineError> {
        let row = match name.parse::<AgentId>() {
            Ok(id) => self.store().agent(workspace, id).await?,
            Err(_) => self.store().agent_by_slug(workspace, name).await?,
        };
        row.ok_or_else(|| EngineError::not_found("agent", name))
    }
}

fn written(config: &AgentConfig) -> Result<String, EngineError> {
    serde_json::to_string(config).map_err(|bad| EngineError::Invalid(bad.to_string()))
}

fn ids(people: &BTreeSet<UserId>) -> Vec<String> {
    people.iter().map(ToString::to_string).collect()
}
