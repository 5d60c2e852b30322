//! Standing rules and rates in memory.

use std::time::Duration;

use adjutant_core::guard::rate::{Taking, take_all};
use adjutant_core::id::{AgentId, RuleId, WorkspaceId};
use adjutant_core::time::Time;

use super::{Memory, State};
use crate::StoreError;
use crate::meta::halt_key;
use crate::row::{Policy, PolicyNames, RuleRow, Under};

impl Memory {
    pub(crate) fn wait_for(&self, taking: &Taking) -> Result<Option<Duration>, StoreError> {
        let taken = take_all(&self.state().rates, std::slice::from_ref(taking), Some(self.now()));
        Ok(taken.err().map(|refused| refused[0].wait))
    }

    pub(crate) fn rule(&self, workspace: WorkspaceId, id: RuleId) -> Result<Option<RuleRow>, StoreError> {
        Ok(self.state().rules.get(&(workspace, id)).cloned())
    }

    pub(crate) fn rules(&self, workspace: WorkspaceId) -> Result<Vec<RuleRow>, StoreError> {
        Ok(self.state().rules.values().filter(|row| row.workspace == workspace).cloned().collect())
    }

    pub(crate) fn rules_for(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<Vec<RuleRow>, StoreError> {
        Ok(self.state().rules_for(workspace, agent, now).cloned().collect())
    }

    pub(crate) fn policy(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<Option<Policy>, StoreError> {
        Ok(self.state().policy(workspace, agent, now))
    }
}

impl State {
    fn rules_for(&self, workspace: WorkspaceId, agent: AgentId, now: Time) -> impl Iterator<Item = &RuleRow> {
        let about = move |row: &&RuleRow| row.workspace == workspace && row.agent.is_none_or(|about| about == agent);
        self.rules.values().filter(about).filter(move |row| row.expires_at.is_none_or(|end| end > now))
    }

    fn policy(&self, workspace: WorkspaceId, agent: AgentId, now: Time) -> Option<Policy> {
        let version = self.agents.get(&(workspace, agent))?.last()?.version;
        let rules = self.rules_for(workspace, agent, now).map(|row| row.id).collect();
        let names = PolicyNames { agent: version, workspace: self.workspaces.get(&workspace)?.version, rules };
        // Nobody signs in here: whoever embeds it is who it belongs to.
        let halted = [None, Some(workspace)].iter().any(|of| self.instance.contains_key(&halt_key(*of)));
        Some(Policy { names, role: Some("admin".to_owned()), halted })
    }

    /// Refuses what was concluded from what no longer counts.
    pub(super) fn hold_to(&self, workspace: WorkspaceId, under: Option<&Under>) -> Result<(), StoreError> {
        let counts = |under: &Under| self.policy(workspace, under.agent, under.at).as_ref() == Some(&under.policy);
        let holds = |under: &Under| counts(under) && !under.policy.halted;
        if under.is_none_or(holds) { Ok(()) } else { Err(StoreError::Stale { fenced: false }) }
    }
}
