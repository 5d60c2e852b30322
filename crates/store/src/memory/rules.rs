//! Standing rules and rates in memory.

use adjutant_core::id::{AgentId, RuleId, WorkspaceId};
use adjutant_core::time::Time;

use super::Memory;
use crate::StoreError;
use crate::row::{AgentRow, PolicyNames, RuleRow, WorkspaceRow};

impl Memory {
    pub(crate) fn scheduled(&self, key: &str) -> Result<Option<u64>, StoreError> {
        Ok(self.state().rates.get(key).copied())
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
        let wanted =
            |row: &RuleRow| row.agent.is_none_or(|about| about == agent) && row.expires_at.is_none_or(|end| end > now);
        Ok(self.rules(workspace)?.into_iter().filter(wanted).collect())
    }

    pub(crate) fn policy(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        now: Time,
    ) -> Result<Option<PolicyNames>, StoreError> {
        let rules = self.rules_for(workspace, agent, now)?.iter().map(|row| row.id).collect();
        let names = |(agent, tenant): (AgentRow, WorkspaceRow)| PolicyNames {
            agent: agent.version,
            workspace: tenant.version,
            rules,
        };
        Ok(self.agent(workspace, agent)?.zip(self.workspace(workspace)?).map(names))
    }
}
