//! Whose an agent is: who sees and runs it, who changes it, who decides what it asks. The one place that says so.

use std::collections::BTreeSet;

use adjutant_core::guard::policy::{AgentProblem, AgentSpec};
use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_core::limits::AGENT_PEOPLE;
use adjutant_store::row::{AgentPeople, AgentRow, MemberRow};

use super::Role;
use crate::engine::Engine;
use crate::error::EngineError;

/// A member of the workspace that an agent is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub user: UserId,
    /// What they are there.
    pub role: Role,
}

impl Member {
    /// Whether they see an agent, and, where their role lets them run any, run it: one of the workspace, their own, one that is
    /// shared with them, and for admins every one.
    #[must_use]
    pub fn sees(self, agent: &AgentRow) -> bool {
        agent.owner.is_none() || self.rules(agent) || agent.people.shared_with.contains(&self.user)
    }

    /// Whether they may change it for everybody: their own, and for admins every one.
    #[must_use]
    pub fn rules(self, agent: &AgentRow) -> bool {
        self.role == Role::Admin || agent.owner == Some(self.user)
    }

    /// Whether they may decide what it asks, whoever started the run: whoever rules it, and its approvers.
    #[must_use]
    pub fn decides_for(self, agent: &AgentRow) -> bool {
        self.rules(agent) || agent.people.approvers.contains(&self.user)
    }
}

impl Engine {
    /// Refuses somebody to whom an agent that is another's is not shown: for them there is none.
    pub(crate) async fn check_shared(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        user: UserId,
    ) -> Result<(), EngineError> {
        let row = self.store().agent(workspace, agent).await?;
        let role = self.role_now(workspace, user).await?;
        match (row, role) {
            (Some(row), Some(role)) if (Member { user, role }).sees(&row) => Ok(()),
            _ => Err(EngineError::not_found("agent", agent)),
        }
    }

    /// The people that a written agent names, by id or by name; those it had where it says nothing about them.
    ///
    /// # Errors
    /// [`EngineError::InvalidAgent`] when one of them is no member of the workspace, or they are too many.
    pub async fn named_people(
        &self,
        workspace: WorkspaceId,
        spec: &AgentSpec,
        before: &AgentPeople,
    ) -> Result<AgentPeople, EngineError> {
        let (shared, approvers) = (&spec.shared_with, &spec.approvers);
        if shared.is_none() && approvers.is_none() {
            return Ok(before.clone());
        }
        let members = self.store().members(workspace).await?;
        let mut problems = Vec::new();
        let mut find = |field: &str, names: &Option<BTreeSet<String>>, before: &BTreeSet<UserId>| match names {
            None => before.clone(),
            Some(names) => found(field, names, &members, &mut problems),
        };
        let people = AgentPeople {
            shared_with: find("shared_with", shared, &before.shared_with),
            approvers: find("approvers", approvers, &before.approvers),
        };
        if problems.is_empty() { Ok(people) } else { Err(EngineError::InvalidAgent(problems)) }
    }
}

fn found(
    field: &str,
    names: &BTreeSet<String>,
    members: &[MemberRow],
    problems: &mut Vec<AgentProblem>,
) -> BTreeSet<UserId> {
    let mut problem = |detail: String| problems.push(AgentProblem { field: field.to_owned(), detail });
    if names.len() > AGENT_PEOPLE {
        problem(format!("names more than {AGENT_PEOPLE} people"));
    }
    let mut people = BTreeSet::new();
    for name in names {
        match members.iter().find(|member| member.name == *name || member.user.to_string() == *name) {
            Some(member) => drop(people.insert(member.user)),
            None => problem(format!("`{name}` is no member of the workspace")),
        }
    }
    people
}
