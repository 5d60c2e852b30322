//! The projections in memory: runs, calls and the inbox.

use adjutant_core::id::{ApprovalId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use super::{Memory, State};
use crate::StoreError;
use crate::row::{ApprovalFilter, ApprovalRow, CallRow, ModelCallRow, Order, RunFilter, RunRow};

impl Memory {
    pub(crate) fn run(&self, workspace: WorkspaceId, run: RunId) -> Result<Option<RunRow>, StoreError> {
        Ok(self.state().runs.get(&run).filter(|row| row.workspace == workspace).cloned())
    }

    pub(crate) fn find_run(&self, run: RunId) -> Result<Option<WorkspaceId>, StoreError> {
        Ok(self.state().runs.get(&run).map(|row| row.workspace))
    }

    pub(crate) fn runs(
        &self,
        workspace: WorkspaceId,
        filter: &RunFilter,
        limit: u32,
    ) -> Result<Vec<RunRow>, StoreError> {
        let state = self.state();
        let wanted = |row: &&RunRow| {
            row.workspace == workspace
                && filter.visible_to.is_none_or(|person| seen(&state, row, person))
                && filter.agent.is_none_or(|agent| row.agent == agent)
                && filter.chat.is_none_or(|chat| row.chat == chat)
                && filter.status.as_ref().is_none_or(|status| row.state.status == *status)
                && filter.trigger.as_ref().is_none_or(|trigger| row.trigger == *trigger)
                && filter.parent.is_none_or(|parent| row.parent == Some(parent))
                && filter.before.is_none_or(|before| row.id < before)
                && (filter.superseded || row.superseded_by.is_none())
        };
        Ok(state.runs.values().rev().filter(wanted).take(limit as usize).cloned().collect())
    }

    pub(crate) fn calls(&self, workspace: WorkspaceId, run: RunId) -> Result<Vec<CallRow>, StoreError> {
        let state = self.state();
        let calls = state.calls.values().filter(|row| row.run == run && row.workspace == workspace);
        let ended = |row: &CallRow| state.results.get(&(run, row.call.clone())).copied();
        let mut calls: Vec<_> = calls.map(|row| CallRow { ended: ended(row), ..row.clone() }).collect();
        calls.sort_by(|a, b| (a.proposed_at, &a.call).cmp(&(b.proposed_at, &b.call)));
        Ok(calls)
    }

    pub(crate) fn approval(&self, workspace: WorkspaceId, id: ApprovalId) -> Result<Option<ApprovalRow>, StoreError> {
        Ok(self.state().approvals.get(&(workspace, id)).cloned())
    }

    pub(crate) fn approvals(
        &self,
        workspace: WorkspaceId,
        filter: &ApprovalFilter,
        limit: u32,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        let state = self.state();
        let visible = |run: RunId, person| state.runs.get(&run).is_some_and(|row| seen(&state, row, person));
        let rules = |agent, person| {
            let versions = state.agents.get(&(workspace, agent));
            let row = versions.and_then(|versions| versions.last());
            row.is_some_and(|row| row.owner == Some(person) || row.people.approvers.contains(&person))
        };
        let wanted = |row: &&ApprovalRow| {
            row.workspace == workspace
                && filter.visible_to.is_none_or(|person| visible(row.run, person) || rules(row.agent, person))
                && filter.status.as_ref().is_none_or(|status| row.status == *status)
                && filter.except.as_ref().is_none_or(|status| row.status != *status)
                && filter.run.is_none_or(|run| row.run == run)
                && filter.agent.is_none_or(|agent| row.agent == agent)
                && filter.after.is_none_or(|after| match filter.order {
                    Order::OldestFirst => row.id > after,
                    Order::NewestFirst => row.id < after,
                })
        };
        let rows = state.approvals.values();
        Ok(match filter.order {
            Order::OldestFirst => rows.filter(wanted).take(limit as usize).cloned().collect(),
            Order::NewestFirst => rows.rev().filter(wanted).take(limit as usize).cloned().collect(),
        })
    }

    pub(crate) fn rebuild_run(
        &self,
        row: RunRow,
        approvals: Vec<ApprovalRow>,
        calls: Vec<CallRow>,
        model_calls: Vec<ModelCallRow>,
    ) -> Result<(), StoreError> {
        let mut state = self.state();
        let run = row.id;
        state.approvals.retain(|_, old| old.run != run);
        state.calls.retain(|key, _| key.0 != run);
        state.results.retain(|key, _| key.0 != run);
        state.replace_model_calls(StreamId::Run(run), model_calls);
        let owned = state.runs.get(&run).map(|old| (old.owner, old.epoch));
        let (owner, epoch) = owned.unwrap_or((row.owner, row.epoch));
        state.runs.insert(run, RunRow { owner, epoch, ..row });
        for row in approvals {
            state.approvals.insert((row.workspace, row.id), row);
        }
        for row in calls {
            if let Some(end) = row.ended {
                state.results.insert((run, row.call.clone()), end);
            }
            state.calls.insert((run, row.call.clone()), CallRow { ended: None, ..row });
        }
        Ok(())
    }
}

/// Whether somebody who is no admin may see a run.
fn seen(state: &State, row: &RunRow, person: UserId) -> bool {
    row.initiator == person || state.chats.get(&(row.workspace, row.chat)).is_some_and(|chat| chat.shared)
}
