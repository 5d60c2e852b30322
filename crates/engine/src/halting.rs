//! The stop switch, inside a run that is under way: nothing more is started, and what runs is stopped.

use std::time::Duration;

use adjutant_core::id::CallId;
use adjutant_core::tool::{Probe, Recovery, ToolOutcome};
use adjutant_store::StoreError;

use crate::driver::Driver;
use crate::error::EngineError;
use crate::log::Flushed;
use crate::patience::Hold;
use crate::work::{Work, WorkEnded};

/// How long calls that change something may go on after the switch was turned: what ends so soon is better known than asked
/// about.
const GRACE: Duration = Duration::from_secs(1);
/// Wait after the store did not answer while calls go on.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// What is known of a call that the switch stopped.
const STOPPED: &str = "The stop switch was turned while this ran, so it was stopped: it may or may not have happened.";
/// What a call is told that had no effect.
pub(crate) const NOTHING_CHANGED: &str = "The stop switch was turned before this ended. Nothing was changed.";

impl Driver {
    /// Holds the run because what was last read says that a stop switch is on. If it is off again by now, the run goes on.
    pub(crate) async fn hold_for_switch(&mut self) -> Result<Flushed, EngineError> {
        self.toolbox.age();
        let flushed = self.flush(Hold::Keep).await?;
        if flushed != Flushed::Written {
            return Ok(flushed);
        }
        self.engine.hold_if_halted(self.log.workspace, self.log.run).await?;
        self.hear().await
    }

    /// Stops what runs if the run is held by a stop switch. What another hold finds running may end.
    pub(crate) async fn stop_if_halted(&mut self) -> Result<Flushed, EngineError> {
        if self.state().pause.is_none() || self.running.is_empty() {
            return Ok(Flushed::Written);
        }
        match self.engine.halted(self.log.workspace).await {
            Ok(Some(_)) => self.stop_running().await,
            Ok(None) => Ok(Flushed::Written),
            Err(EngineError::Store(StoreError::Unavailable(why))) => {
                tracing::warn!(run = %self.log.run, error = %why, "the stop switch cannot be read at the moment");
                tokio::time::sleep(STORE_PAUSE).await;
                self.look_again();
                Ok(Flushed::Written)
            }
            Err(other) => Err(other),
        }
    }

    /// Stops every call that runs. What only reads ends with that; of the rest is recorded what it answers in time or what a
    /// look at the world says, and otherwise a person is asked.
    async fn stop_running(&mut self) -> Result<Flushed, EngineError> {
        let until = tokio::time::Instant::now() + GRACE;
        for (id, work) in std::mem::take(&mut self.running) {
            match ended_by(work, until).await {
                Some(ended) => self.record_final(id, ended).await?,
                None => self.doubt_stopped(&id).await?,
            }
        }
        self.flush(Hold::Keep).await
    }

    async fn doubt_stopped(&mut self, id: &CallId) -> Result<(), EngineError> {
        let recovery = self.state().call(id).and_then(|call| call.recovery());
        let probe = if recovery == Some(Recovery::Reconcile) { self.probe(id).await? } else { Probe::Unknown };
        match probe {
            Probe::Happened(outcome) => {
                self.record_final(id.clone(), WorkEnded::seen(outcome, Recovery::Reconcile)).await
            }
            // What was given to another thread may still be written.
            Probe::NotHappened | Probe::Unknown => self.doubt(id, STOPPED).await,
        }
    }
}

/// How a call ended that is to stop; none where nobody knows. Dropping the work is what stops it.
async fn ended_by(mut work: Work, until: tokio::time::Instant) -> Option<WorkEnded> {
    if work.recovery == Recovery::Pure && !work.task.is_finished() {
        return Some(WorkEnded::seen(ToolOutcome::failed(NOTHING_CHANGED), Recovery::Pure));
    }
    let ended = tokio::time::timeout_at(until, work.ended()).await.ok()?;
    (!ended.is_in_doubt()).then_some(ended)
}
