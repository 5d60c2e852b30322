//! Messages that wait, in memory.

use adjutant_core::id::{ChatId, RunId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use super::Memory;
use crate::StoreError;
use crate::row::{Change, WaitingRow};

impl Memory {
    pub(crate) fn add_waiting(&self, row: &WaitingRow) -> Result<(), StoreError> {
        self.state().waiting.insert((row.workspace, row.id), row.clone());
        self.tell(Change::Stream(StreamId::Run(row.id)));
        Ok(())
    }

    pub(crate) fn waiting_message(&self, workspace: WorkspaceId, id: RunId) -> Result<Option<WaitingRow>, StoreError> {
        Ok(self.state().waiting.get(&(workspace, id)).cloned())
    }

    pub(crate) fn find_waiting(&self, id: RunId) -> Result<Option<WorkspaceId>, StoreError> {
        Ok(self.state().waiting.keys().find(|(_, run)| *run == id).map(|(workspace, _)| *workspace))
    }

    pub(crate) fn next_waiting(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Option<WaitingRow>, StoreError> {
        let state = self.state();
        let mut rows = state.waiting.values().filter(|row| row.workspace == workspace && row.chat == chat);
        Ok(rows.find(|row| !row.failed).cloned())
    }

    pub(crate) fn fail_waiting(&self, row: &WaitingRow) -> Result<(), StoreError> {
        if let Some(known) = self.state().waiting.get_mut(&(row.workspace, row.id)) {
            *known = WaitingRow { failed: true, ..row.clone() };
        }
        self.tell(Change::Stream(StreamId::Run(row.id)));
        Ok(())
    }

    pub(crate) fn waiting_in(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        limit: u32,
    ) -> Result<Vec<WaitingRow>, StoreError> {
        let state = self.state();
        let rows = state.waiting.values().filter(|row| row.workspace == workspace && row.chat == chat);
        Ok(rows.take(limit as usize).cloned().collect())
    }

    pub(crate) fn remove_waiting(&self, workspace: WorkspaceId, id: RunId) -> Result<bool, StoreError> {
        Ok(self.state().waiting.remove(&(workspace, id)).is_some())
    }

    pub(crate) fn chats_waited_for(
        &self,
        limit: u32,
        skip: u32,
    ) -> Result<Vec<(WorkspaceId, ChatId, bool)>, StoreError> {
        let state = self.state();
        let mut found: Vec<(WorkspaceId, ChatId, bool)> = Vec::new();
        for row in state.waiting.values().filter(|row| !row.failed) {
            let Some(chat) = state.chats.get(&(row.workspace, row.chat)) else { continue };
            let ended = |run: &RunId| state.runs.get(run).is_some_and(|run| run.state.ended_at.is_some());
            let free = chat.tip.as_ref().is_none_or(ended);
            if !found.iter().any(|(_, known, _)| *known == row.chat) {
                found.push((row.workspace, row.chat, free));
            }
        }
        found.sort_by_key(|(_, _, free)| !free);
        Ok(found.into_iter().skip(skip as usize).take(limit as usize).collect())
    }
}
