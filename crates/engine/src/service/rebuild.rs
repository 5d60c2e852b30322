//! Making the tables about runs again from the logs. What people set up (agents, chats, rules, budgets) is no such table:
//! it is not told in the logs of runs, and stays as it is.

use std::collections::BTreeMap;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Actor;
use adjutant_core::run::state::State;
use adjutant_store::StoreError;
use adjutant_store::row::{RunFilter, RunRow};

use crate::audit::{AuditLog, run_rows};
use crate::base::state_at;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::{Recorded, RunLog};
use crate::{projection, spending};

/// Runs looked up at a time.
const PAGE: u32 = 256;

/// What was made again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rebuilt {
    /// Runs whose rows were made again.
    pub runs: usize,
    /// Of those, runs that had no row any more.
    pub found: usize,
    /// Runs whose logs were erased: their rows, if they have any, are all that is left.
    pub erased: usize,
    /// Runs whose logs cannot be followed, and why: their rows, if they have any, stay as they are.
    pub broken: BTreeMap<RunId, String>,
}

/// What became of the rows of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    Again,
    Erased,
    Broken,
}

impl Engine {
    /// Makes the rows of every run and of every audit log again, in all workspaces. It is recorded who asked for it. A run whose
    /// log cannot be followed does not keep the others from it: who asks for this may well have a damaged database.
    ///
    /// # Errors
    /// When an audit log cannot be followed, or the store cannot be written.
    pub async fn rebuild(&self, by: UserId) -> Result<Rebuilt, EngineError> {
        let what = "the tables beside the logs are made again from the logs";
        self.audit(AuditLog::Instance, Act::new(Deed::TablesRebuilt, Some(Actor::User(by)), what)).await?;
        self.rebuild_audit(AuditLog::Instance).await?;
        let mut workspaces = self.store().workspaces().await?;
        // Of those that were taken away there is nothing left to make anything from.
        workspaces.retain(|row| !row.is_closed());
        let mut rebuilt = Rebuilt::default();
        // The newest first: what replaced a run has its row again before that run is looked at.
        for (workspace, stream) in self.store().lost_logs().await?.into_iter().rev() {
            if let StreamId::Run(run) = stream
                && workspaces.iter().any(|row| row.id == workspace)
            {
                rebuilt.found += usize::from(self.made(workspace, run, &mut rebuilt.broken).await? == Made::Again);
            }
        }
        for workspace in workspaces {
            self.rebuild_audit(AuditLog::Workspace(workspace.id)).await?;
            let mut filter = RunFilter { superseded: true, ..RunFilter::default() };
            loop {
                let rows = self.store().runs(workspace.id, &filter, PAGE).await?;
                for row in &rows {
                    filter.before = Some(row.id);
                    match self.made(workspace.id, row.id, &mut rebuilt.broken).await? {
                        Made::Again => rebuilt.runs += 1,
                        Made::Erased => rebuilt.erased += 1,
                        Made::Broken => {}
                    }
                }
                if rows.len() < PAGE as usize {
                    break;
                }
            }
        }
        Ok(rebuilt)
    }

    /// Makes the rows of a run again, unless its log was erased or cannot be followed.
    async fn made(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        broken: &mut BTreeMap<RunId, String>,
    ) -> Result<Made, EngineError> {
        match self.rebuild_run(workspace, run).await {
            Ok(()) => Ok(Made::Again),
            Err(EngineError::Erased { .. }) => Ok(Made::Erased),
            Err(EngineError::BadLog { why, .. } | EngineError::Store(StoreError::Corrupt(why))) => {
                broken.insert(run, why);
                Ok(Made::Broken)
            }
            Err(other) => Err(other),
        }
    }

    /// Makes the rows of a run again from its log, also where it has none any more.
    ///
    /// # Errors
    /// When there is no such run, or its log cannot be followed.
    pub async fn rebuild_run(&self, workspace: WorkspaceId, run: RunId) -> Result<(), EngineError> {
        let log = RunLog::load(self.store(), self.env(), workspace, run).await?;
        let row = projection::run_row(&log.state, log.head).ok_or_else(|| EngineError::not_found("run", run))?;
        let superseded_by = match self.store().run(workspace, run).await? {
            Some(known) => known.superseded_by,
            None => self.replacement(&row).await?,
        };
        let row = RunRow { superseded_by, ..row };
        let (approvals, calls) = (projection::all_approval_rows(&log.state), projection::all_call_rows(&log.state));
        let recorded = self.recorded(workspace, run, 0, None).await?;
        let mut state = State::default();
        let mut model_calls = Vec::new();
        for Recorded { seq, at, event } in &recorded {
            model_calls.extend(spending::model_call(&state, event, *at));
            state.apply(event, *seq, *at).map_err(|bad| EngineError::impossible(run, &bad))?;
        }
        self.store().rebuild_run(row, approvals, calls, model_calls).await?;
        let rows = run_rows(&log.state, recorded.iter().map(|item| (item.seq, item.at, &item.event)));
        Ok(self.store().rebuild_audit(workspace, StreamId::Run(run), rows).await?)
    }

    /// The run that replaced one that has no row: the first later one of its chat that replaces it or what came before it.
    async fn replacement(&self, row: &RunRow) -> Result<Option<RunId>, EngineError> {
        let mut filter = RunFilter { chat: Some(row.chat), superseded: true, ..RunFilter::default() };
        let mut found = None;
        loop {
            let page = self.store().runs(row.workspace, &filter, PAGE).await?;
            for later in page.iter().take_while(|later| later.id > row.id) {
                filter.before = Some(later.id);
                let first = state_at(self, row.workspace, later.id, 1).await.ok().and_then(|state| state.start);
                if first.and_then(|start| start.supersedes).is_some_and(|replaced| replaced <= row.id) {
                    found = Some(later.id);
                }
            }
            if page.len() < PAGE as usize || page.last().is_none_or(|last| last.id <= row.id) {
                return Ok(found);
            }
        }
    }
}
