//! Notebooks and workspaces that are taken away in memory, as the databases do it.

use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use super::{Memory, State};
use crate::StoreError;
use crate::row::{RunRow, WorkspaceRow};
use crate::runs::ERASED;
use crate::seal::Scope;

impl State {
    pub(super) fn may_remove_notebook(&self, workspace: WorkspaceId, id: NotebookId) -> Result<(), StoreError> {
        let works =
            |row: &RunRow| (row.workspace, row.notebook) == (workspace, Some(id)) && row.state.ended_at.is_none();
        if self.runs.values().any(works) {
            return Err(StoreError::Conflict("a run works on the notebook".to_owned()));
        }
        self.notebooks.get(&(workspace, id)).map(drop).ok_or(StoreError::NotFound)
    }

    pub(super) fn remove_notebook(&mut self, workspace: WorkspaceId, id: NotebookId) {
        self.notebooks.remove(&(workspace, id));
        self.files.retain(|(of, notebook, _), _| (*of, *notebook) != (workspace, id));
        self.marks.retain(|(of, mark)| (*of, mark.notebook) != (workspace, id));
    }

    pub(super) fn may_close_workspace(&self, id: WorkspaceId) -> Result<(), StoreError> {
        let stays = |row: &RunRow| row.workspace == id && (row.state.ended_at.is_none() || row.state.summary != ERASED);
        if self.runs.values().any(stays) {
            return Err(StoreError::Conflict("the workspace still has a run that is not erased".to_owned()));
        }
        self.assert_workspace(id)
    }

    pub(super) fn close_workspace(&mut self, id: WorkspaceId) {
        if let Some(row) = self.workspaces.get_mut(&id) {
            *row = WorkspaceRow { version: row.version, ..WorkspaceRow::new(id, id.to_string(), "", row.created_at) };
        }
        self.waiting.retain(|(of, _), _| *of != id);
        self.agents.retain(|(of, _), _| *of != id);
        self.rules.retain(|(of, _), _| *of != id);
        self.budgets.retain(|(of, ..), _| *of != id);
        self.notebooks.retain(|(of, _), _| *of != id);
    }
}

impl Memory {
    pub(crate) fn sweep_workspace(&self, id: WorkspaceId) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.workspaces.get(&id).is_none_or(|row| !row.is_closed()) {
            return Err(StoreError::Conflict("the workspace was not taken away".to_owned()));
        }
        let scope = Scope::Workspace(id);
        for entry in state.events.get_mut(&(scope, StreamId::Workspace(id))).into_iter().flatten() {
            entry.body = None;
        }
        state.files.retain(|(of, ..), _| *of != id);
        state.marks.retain(|(of, _)| *of != id);
        state.chats.retain(|(of, _), _| *of != id);
        state.kv.retain(|(of, ..), _| *of != id);
        state.audit.retain(|(of, _), _| *of != scope);
        state.refs.retain(|(of, ..)| *of != scope);
        state.blocks.retain(|(of, _), _| *of != scope);
        Ok(())
    }
}
