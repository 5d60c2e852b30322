//! How long what was said is kept: sizes of a workspace, and forgetting runs that are old, part by part. What may be
//! forgotten has ended, and nobody is asked about it any more.

use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::guard::policy::parse_seconds;
use adjutant_core::id::{RunId, UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::row::{OldRuns, Sizes, WorkspaceRow};

use super::erase::Which;
use crate::engine::Engine;
use crate::error::EngineError;

/// How often somebody looks whether something is old, when nothing is known to become it sooner.
const LOOK: Duration = Duration::from_secs(60);
/// Wait after a part, so that runs that go on come first.
const PAUSE: Duration = Duration::from_millis(200);
/// Runs of a part that the clock forgets.
const PART: u32 = 64;
/// The chore of which one node at a time has charge.
const CHORE: &str = "retention";

/// A part of what was to be erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErasedPart {
    /// Runs whose words are gone.
    pub runs: u64,
    /// Bodies that are gone.
    pub bodies: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// How long a workspace keeps what was said in runs that have ended; none is for ever.
#[must_use]
pub fn kept_for(row: &WorkspaceRow) -> Option<Duration> {
    row.keep_runs.as_deref().and_then(parse_seconds).map(Duration::from_secs)
}

impl Engine {
    /// What a workspace holds.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn sizes(&self, workspace: WorkspaceId) -> Result<Sizes, EngineError> {
        Ok(self.store().sizes(workspace).await?)
    }

    /// How much there is of runs that ended before a moment. Changes nothing.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn old_runs(&self, workspace: WorkspaceId, before: Time) -> Result<OldRuns, EngineError> {
        Ok(self.store().old_runs(workspace, before).await?)
    }

    /// Erases what was said in some of the runs that ended before a moment, the oldest first. It is recorded before it begins
    /// and after it has ended; what was interrupted is gone on with by asking again.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn erase_old(
        &self,
        workspace: WorkspaceId,
        by: Actor,
        before: Time,
        most: u32,
    ) -> Result<ErasedPart, EngineError> {
        let old = self.store().list_old_runs(workspace, before, None, most).await?;
        let runs: Vec<_> = old.iter().map(|(_, run)| *run).collect();
        let summary = format!("runs that ended before {before}");
        let (erased, bodies) = self.erase_recorded(workspace, by, (summary, None), &runs, Which::Settled).await?;
        // A part of which nothing could be erased would come again for ever.
        let more = old.len() >= most as usize && erased > 0;
        Ok(ErasedPart { runs: erased, bodies, more })
    }

    /// Erases what was said in these runs, as far as they have ended and nobody is asked about them.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn erase_these(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        runs: &[RunId],
    ) -> Result<ErasedPart, EngineError> {
        let summary = format!("{} runs that were archived", runs.len());
        let (runs, bodies) =
            self.erase_recorded(workspace, Actor::User(by), (summary, None), runs, Which::Settled).await?;
        Ok(ErasedPart { runs, bodies, more: false })
    }

    /// Forgets what workspaces do not keep any longer. One node at a time does it. Says when to look again.
    ///
    /// # Errors
    /// When the store cannot be read or written: what was not forgotten then is the next time.
    pub async fn forget_old(&self) -> Result<Duration, EngineError> {
        let rows = self.store().workspaces().await?;
        // Another node may have taken one away: its key is not to stay here.
        rows.iter().filter(|row| row.is_closed()).for_each(|row| self.forget_workspace(row.id));
        let kept: Vec<_> = rows.iter().filter(|row| row.keep_runs.is_some()).map(|row| row.id).collect();
        if kept.is_empty() || !self.store().take_chore(CHORE, self.node()).await? {
            return Ok(LOOK);
        }
        let mut next = LOOK;
        for workspace in kept {
            next = next.min(self.forget_old_of(workspace).await?);
        }
        self.store().leave_chore(CHORE, self.node()).await?;
        Ok(next)
    }

    async fn forget_old_of(&self, workspace: WorkspaceId) -> Result<Duration, EngineError> {
        let mut forgotten = 0;
        loop {
            // Read each time: somebody may have thought better of it.
            let row = self.store().workspace(workspace).await?;
            let Some(kept) = row.as_ref().and_then(kept_for) else { return Ok(LOOK) };
            let now = self.settled_now().await?;
            let part = self.erase_old(workspace, Actor::Clock, now.before(kept), PART).await?;
            forgotten += part.runs;
            if !part.more {
                if forgotten > 0 {
                    tracing::info!(%workspace, runs = forgotten, "what was said in old runs was erased");
                }
                let oldest = self.store().list_old_runs(workspace, now, None, 1).await?;
                let due = oldest.first().map(|(ended, _)| ended.after(kept).since(now));
                return Ok(due.unwrap_or(LOOK).clamp(PAUSE, LOOK));
            }
            tokio::time::sleep(PAUSE).await;
            if !self.store().take_chore(CHORE, self.node()).await? {
                return Ok(LOOK);
            }
        }
    }

    /// The earlier of two clocks, this machine's and the database's: one that runs ahead must not make anybody forget.
    async fn settled_now(&self) -> Result<Time, EngineError> {
        Ok(self.env().now().min(self.store().clock().await?))
    }
}

/// Forgets, for as long as the node works, what is not kept any longer.
pub(crate) async fn forget(engine: Engine) {
    if let Err(error) = engine.sweep_workspaces().await {
        tracing::warn!(error = %causes(&error), "what was being taken away could not be taken away to its end");
    }
    loop {
        let pause = engine.forget_old().await.unwrap_or_else(|error| {
            tracing::warn!(error = %causes(&error), "what is not kept any longer could not be erased");
            LOOK
        });
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // How long something is kept was changed here.
            () = engine.kept_otherwise().notified() => {}
        }
    }
}
