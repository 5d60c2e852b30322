//! The audit projection in memory.

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;

use super::Memory;
use crate::StoreError;
use crate::audit::scope_of;
use crate::row::{AuditFilter, AuditPlace, AuditRow};
use crate::seal::Scope;

/// The order of the databases, which compare the texts of the logs.
pub(super) fn order(place: AuditPlace) -> (Time, String, u64) {
    (place.time, place.stream.to_string(), place.seq)
}

impl Memory {
    pub(crate) fn audit(
        &self,
        workspace: Option<WorkspaceId>,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let same = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let wanted = |row: &&AuditRow| {
            (filter.kinds.is_empty() || filter.kinds.contains(&row.kind))
                && same(&filter.actor, &row.actor)
                && same(&filter.tool, &row.tool)
                && same(&filter.target, &row.target)
                && same(&filter.verdict, &row.verdict)
                && filter.agent.is_none_or(|agent| row.agent == Some(agent))
                && filter.run.is_none_or(|run| row.run == Some(run))
                && filter.is_error.is_none_or(|is_error| row.is_error == is_error)
                && filter.since.is_none_or(|since| row.time >= since)
                && filter.until.is_none_or(|until| row.time < until)
                && filter.before.is_none_or(|before| order(row.place()) < order(before))
        };
        let state = self.state();
        let scope = scope_of(workspace);
        let rows = state.audit.iter().filter(|(key, _)| key.0 == scope).map(|(_, row)| row);
        Ok(rows.rev().filter(wanted).take(limit as usize).cloned().collect())
    }

    pub(crate) fn head(&self, workspace: WorkspaceId, stream: StreamId) -> Result<Head, StoreError> {
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let state = self.state();
        let head = match stream {
            StreamId::Run(run) => state.runs.get(&run).filter(|row| row.workspace == workspace).map(|row| row.head),
            StreamId::Workspace(_) | StreamId::System => state.streams.get(&(scope, stream)).copied(),
        };
        Ok(head.unwrap_or(Head::START))
    }

    pub(crate) fn lost_logs(&self) -> Result<Vec<(WorkspaceId, StreamId)>, StoreError> {
        let state = self.state();
        let lost = state.events.keys().filter_map(|(scope, stream)| match (scope, stream) {
            (Scope::Workspace(workspace), StreamId::Run(run)) if !state.runs.contains_key(run) => {
                Some((*workspace, *stream))
            }
            (Scope::Workspace(_) | Scope::System, _) => None,
        });
        Ok(lost.collect())
    }

    pub(crate) fn moved_heads(
        &self,
        workspace: WorkspaceId,
        since: Time,
        after: Option<RunId>,
        limit: u32,
    ) -> Result<Vec<(RunId, Head)>, StoreError> {
        let state = self.state();
        let rows = state.runs.values().filter(|row| {
            row.workspace == workspace && row.state.updated_at >= since && after.is_none_or(|after| row.id > after)
        });
        Ok(rows.take(limit as usize).map(|row| (row.id, row.head)).collect())
    }

    pub(crate) fn rebuild_audit(
        &self,
        workspace: WorkspaceId,
        stream: StreamId,
        rows: Vec<AuditRow>,
    ) -> Result<(), StoreError> {
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let mut state = self.state();
        state.audit.retain(|key, row| key.0 != scope || row.stream != stream);
        for row in rows {
            state.audit.insert((scope, order(row.place())), row);
        }
        Ok(())
    }
}
