//! An agent as it is now: its configuration, what its workspace adds to it, and the rules that count, compiled once.

use std::collections::BTreeSet;
use std::sync::Arc;

use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::filter::{Filter, FilterEntry};
use adjutant_core::guard::judge::{Outside, Verdict};
use adjutant_core::guard::plane;
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::rule::Rules;
use adjutant_core::guard::scope::Scope;
use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_core::tool::ToolDefinitions;
use adjutant_models::Allowed;
use adjutant_store::row::{PolicyNames, Under, WorkspaceRow};
use serde::de::DeserializeOwned;

use crate::engine::{Engine, lock};
use crate::error::EngineError;

/// Agents that are kept compiled; with more than these, all are read again.
const AGENTS_KNOWN: usize = 1024;

/// An agent as it is now.
#[derive(Debug, Clone)]
pub struct CurrentAgent {
    /// The agent.
    pub id: AgentId,
    /// Its version.
    pub version: u64,
    /// Whose it is; none for one of the workspace.
    pub owner: Option<UserId>,
    /// The hash of that configuration.
    pub policy: Hash,
    /// Its configuration, with what its workspace filters for all.
    pub config: Arc<AgentConfig>,
    /// The same as text, where it is no version of the agent: then whatever is judged under it keeps it.
    pub kept: Option<Arc<str>>,
    /// What its model is shown of the tools.
    pub shown: ShownTools,
    /// Its scope, compiled.
    pub scope: Arc<Scope>,
    /// What it reaches outside its notebook.
    pub outside: Arc<Outside>,
    /// What its texts may hold, compiled.
    pub filter: Arc<Filter>,
    /// The standing rules it is judged by.
    pub rules: Arc<Rules>,
    /// The tools that it was granted and its workspace keeps from all its agents.
    pub withheld: Arc<BTreeSet<String>>,
    /// The providers whose models its workspace allows.
    pub providers: Arc<Allowed>,
    /// The names of all that.
    pub names: PolicyNames,
}

impl CurrentAgent {
    /// A verdict on a call of a tool that the workspace keeps back, with the grant that would change it.
    pub(crate) fn explained(&self, tool: &str, verdict: Verdict) -> Verdict {
        if verdict.rule != "tool" || !self.withheld.contains(tool) {
            return verdict;
        }
        Verdict { smallest_grant: Some(format!("add `{tool}` to the tools of the workspace")), ..verdict }
    }
}

/// The tools that a model is shown, and the same as it is recorded.
#[derive(Debug, Clone)]
pub struct ShownTools {
    /// The tools.
    pub definitions: Arc<ToolDefinitions>,
    /// As JSON.
    pub text: Content,
}

impl Engine {
    /// An agent as it is now. The store is asked each time what counts; what it names is read and compiled once.
    ///
    /// # Errors
    /// When there is none, or its stored configuration cannot be read (rule G2: then nothing is allowed).
    pub async fn current_agent(&self, workspace: WorkspaceId, agent: AgentId) -> Result<CurrentAgent, EngineError> {
        let policy = self.store().policy(workspace, agent, None, self.env().now()).await?;
        let policy = policy.ok_or_else(|| EngineError::not_found("agent", agent))?;
        self.named(workspace, agent, &policy.names).await
    }

    /// The same for a run of this person, with what an announcement of it is held to.
    pub(crate) async fn current_for(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        person: UserId,
    ) -> Result<(CurrentAgent, Under), EngineError> {
        let at = self.env().now();
        let policy = self.store().policy(workspace, agent, Some(person), at).await?;
        let policy = policy.ok_or_else(|| EngineError::not_found("agent", agent))?;
        let current = self.named(workspace, agent, &policy.names).await?;
        Ok((current, Under { agent, person, at, policy }))
    }

    async fn named(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        names: &PolicyNames,
    ) -> Result<CurrentAgent, EngineError> {
        let missing = || EngineError::not_found("agent", agent);
        if let Some(known) = lock(self.known_agents()).get(&(workspace, agent))
            && known.names == *names
        {
            return Ok(known.clone());
        }
        let row = self.store().agent(workspace, agent).await?.ok_or_else(missing)?;
        let mut config: AgentConfig = serde_json::from_str(&row.spec)
            .map_err(|bad| EngineError::Invalid(format!("the stored agent `{}` cannot be read: {bad}", row.slug)))?;
        let stored = config.hash();
        config.is_active &= row.active;
        let mut known = self.agent_of(workspace, row.id, row.version, config).await?;
        known.owner = row.owner;
        known.kept = (known.policy != stored).then(|| known.config.text().into());
        let agent = known.clone();
        let mut agents = lock(self.known_agents());
        if agents.len() >= AGENTS_KNOWN {
            agents.clear();
        }
        agents.insert((workspace, row.id), known);
        Ok(agent)
    }

    /// An agent as it would be under a draft of it. One that is there already keeps its standing rules.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn draft_agent(&self, workspace: WorkspaceId, draft: AgentConfig) -> Result<CurrentAgent, EngineError> {
        let known = self.store().agent_by_slug(workspace, &draft.slug).await?;
        let id = known.map_or_else(|| self.env().id(), |row| row.id);
        self.draft_of(workspace, id, draft).await
    }

    /// The same for a draft of this agent, whatever it is called in it.
    pub(crate) async fn draft_of(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        draft: AgentConfig,
    ) -> Result<CurrentAgent, EngineError> {
        self.agent_of(workspace, agent, 0, draft).await
    }

    async fn agent_of(
        &self,
        workspace: WorkspaceId,
        id: AgentId,
        version: u64,
        mut config: AgentConfig,
    ) -> Result<CurrentAgent, EngineError> {
        let tenant = self.store().workspace(workspace).await?;
        let tenant = tenant.ok_or_else(|| EngineError::not_found("workspace", workspace))?;
        // What a run was judged under is recorded as one configuration, so that it can be judged again alike.
        config.content_filter.extend(workspace_filter(&tenant)?);
        let withheld = self.withheld(&tenant, &config)?;
        config.denied_tools.extend(withheld.iter().cloned());
        let scope = Arc::new(config.compile_scope());
        let outside = Arc::new(config.compile_outside());
        let filter = Arc::new(Filter::new(&config.content_filter));
        let (rules, standing) = self.standing_rules(workspace, id, self.env().now()).await?;
        let (policy, shown) = (config.hash(), self.shown_tools(&config)?);
        let names = PolicyNames { agent: version, workspace: tenant.version, rules };
        let (config, rules, withheld) = (Arc::new(config), Arc::new(standing), Arc::new(withheld));
        let (providers, kept) = (Arc::new(allowed_providers(&tenant)?), None);
        Ok(CurrentAgent {
            id,
            version,
            owner: None,
            policy,
            config,
            kept,
            shown,
            scope,
            outside,
            filter,
            rules,
            withheld,
            providers,
            names,
        })
    }

    /// The tools that an agent was granted and its workspace keeps back. What has no effect outside stays everybody's.
    fn withheld(&self, tenant: &WorkspaceRow, config: &AgentConfig) -> Result<BTreeSet<String>, EngineError> {
        let Some(listed) = workspace_tools(tenant)? else { return Ok(BTreeSet::new()) };
        let granted =
            self.tools().iter().map(|tool| tool.spec()).filter(|spec| {
                config.grants_tool(spec.name(), &spec.toolset) && !plane::is_always_allowed(spec.name())
            });
        let kept = granted.filter(|spec| !listed.contains(spec.name()) && !listed.contains(&*spec.toolset));
        Ok(kept.map(|spec| spec.name().to_owned()).collect())
    }
}

/// The tools and toolsets there are for the agents of a workspace; none is all. A list that cannot be read lets nothing through
/// (rule G2).
///
/// # Errors
/// When it cannot be read.
pub fn workspace_tools(tenant: &WorkspaceRow) -> Result<Option<BTreeSet<String>>, EngineError> {
    tenant.tools.as_deref().map(|text| read(tenant, "the tools", text)).transpose()
}

/// What a workspace filters for all its agents. One that cannot be read lets nothing through (rule G2).
///
/// # Errors
/// When it cannot be read.
pub fn workspace_filter(tenant: &WorkspaceRow) -> Result<Vec<FilterEntry>, EngineError> {
    read(tenant, "the content filter", &tenant.content_filter)
}

/// The providers whose models a workspace allows. A list that cannot be read allows none (rule G2).
///
/// # Errors
/// When it cannot be read.
pub fn allowed_providers(tenant: &WorkspaceRow) -> Result<Allowed, EngineError> {
    let names = tenant.providers.as_deref().map(|text| read(tenant, "the providers", text)).transpose()?;
    Ok(names.map_or(Allowed::All, Allowed::These))
}

fn read<T: DeserializeOwned>(tenant: &WorkspaceRow, what: &str, text: &str) -> Result<T, EngineError> {
    serde_json::from_str(text)
        .map_err(|bad| EngineError::Invalid(format!("{what} of the workspace `{}` cannot be read: {bad}", tenant.slug)))
}
