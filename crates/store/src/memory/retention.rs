//! What is kept, in memory.

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Entry, StreamId};
use adjutant_core::time::Time;

use super::{Memory, State};
use crate::StoreError;
use crate::retention::{ERASED_TITLE, OldPlace, OldRuns, Sizes};
use crate::row::RunRow;
use crate::runs::ERASED;
use crate::seal::Scope;

impl State {
    fn may_erase(&self, row: &RunRow) -> bool {
        let asked = self.approvals.values().any(|item| item.run == row.id && item.status == "pending");
        row.state.ended_at.is_some() && row.state.summary != ERASED && !asked
    }

    fn bodies(&self, workspace: WorkspaceId, stream: StreamId) -> u64 {
        let entries = self.events.get(&(Scope::Workspace(workspace), stream)).into_iter().flatten();
        entries.map(|entry: &Entry| entry.body.as_ref().map_or(0, Vec::len) as u64).sum()
    }

    fn of(&self, workspace: WorkspaceId) -> impl Iterator<Item = &RunRow> {
        self.runs.values().filter(move |row| row.workspace == workspace)
    }
}

impl Memory {
    pub(crate) fn clock(&self) -> Result<Time, StoreError> {
        Ok(self.now())
    }

    pub(crate) fn sizes(&self, workspace: WorkspaceId) -> Result<Sizes, StoreError> {
        let state = self.state();
        let blocks = || state.blocks.iter().filter(|(key, _)| key.0 == Scope::Workspace(workspace));
        Ok(Sizes {
            runs: state.of(workspace).count() as u64,
            open: state.of(workspace).filter(|row| row.state.ended_at.is_none()).count() as u64,
            erased: state.of(workspace).filter(|row| row.state.summary == ERASED).count() as u64,
            events: state.of(workspace).map(|row| row.head.seq).sum(),
            event_bytes: state.of(workspace).map(|row| state.bodies(workspace, StreamId::Run(row.id))).sum(),
            contents: blocks().count() as u64,
            content_bytes: blocks().map(|(_, bytes)| bytes.len() as u64).sum(),
            audit_bytes: state.bodies(workspace, StreamId::Workspace(workspace)),
        })
    }

    pub(crate) fn old_runs(&self, workspace: WorkspaceId, before: Time) -> Result<OldRuns, StoreError> {
        let old = self.list_old_runs(workspace, before, None, u32::MAX)?;
        let state = self.state();
        let is_old = |stream: &StreamId| old.iter().any(|(_, run)| *stream == StreamId::Run(*run));
        let bodies: u64 = old.iter().map(|(_, run)| state.bodies(workspace, StreamId::Run(*run))).sum();
        let contents = state.blocks.iter().filter(|(key, _)| {
            let mut users = state.refs.iter().filter(|held| (held.0, held.1) == **key).peekable();
            key.0 == Scope::Workspace(workspace) && users.peek().is_some() && users.all(|held| is_old(&held.2))
        });
        let bytes = bodies + contents.map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        let began = state.of(workspace).filter(|row| row.created_at < before && row.state.summary != ERASED);
        let open = began.filter(|row| !state.may_erase(row)).count() as u64;
        Ok(OldRuns { runs: old.len() as u64, bytes, open })
    }

    pub(crate) fn list_old_runs(
        &self,
        workspace: WorkspaceId,
        before: Time,
        after: Option<OldPlace>,
        limit: u32,
    ) -> Result<Vec<OldPlace>, StoreError> {
        let state = self.state();
        let ended = state.of(workspace).filter(|row| state.may_erase(row));
        let mut old: Vec<_> = ended.filter_map(|row| Some((row.state.ended_at?, row.id))).collect();
        old.retain(|place| place.0 < before && after.is_none_or(|after| *place > after));
        old.sort_unstable();
        old.truncate(limit as usize);
        Ok(old)
    }

    pub(crate) fn erase_run(&self, workspace: WorkspaceId, run: RunId) -> Result<Option<u64>, StoreError> {
        let may = {
            let state = self.state();
            state.of(workspace).find(|row| row.id == run).is_some_and(|row| state.may_erase(row))
        };
        if !may {
            return Ok(None);
        }
        let erased = self.erase_bodies(workspace, StreamId::Run(run))?;
        let mut state = self.state();
        let chat = state.runs.get(&run).map(|row| row.chat);
        if state.of(workspace).all(|row| Some(row.chat) != chat || row.state.summary == ERASED)
            && let Some(row) = chat.and_then(|chat| state.chats.get_mut(&(workspace, chat)))
        {
            (row.title, row.metadata) = (ERASED_TITLE.to_owned(), None);
        }
        Ok(Some(erased))
    }
}
