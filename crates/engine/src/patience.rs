//! Making what happened durable, with patience: a store that cannot be written for a moment must not cost a result.

use std::time::Duration;

use adjutant_store::StoreError;

use crate::driver::Driver;
use crate::error::EngineError;
use crate::log::Flushed;

/// How long an append is tried again while the store cannot be written: as long as the lease could live.
const STORE_PATIENCE: Duration = Duration::from_secs(30);

/// Whether a flush keeps the run or gives it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Keep,
    Release,
}

impl Driver {
    /// Writes what is pending. While the store cannot take it, it is tried again: what happened must not be lost.
    pub(crate) async fn flush(&mut self, hold: Hold) -> Result<Flushed, EngineError> {
        let release = match hold {
            Hold::Keep => false,
            Hold::Release => true,
        };
        let (tally, watched, begun) = (self.log.tally(), self.watched(), tokio::time::Instant::now());
        let mut waited = Duration::ZERO;
        let mut attempt = 1;
        loop {
            if release || !self.log.is_flushed() {
                self.engine.feed().will_tell(self.log.run);
            }
            let flushed = self.log.flush(self.owner.into(), release).await;
            self.tell_followers(&flushed);
            match flushed {
                Ok(flushed @ (Flushed::Written | Flushed::Overtaken)) => {
                    self.engine.meter().committed(&tally, begun.elapsed());
                    self.show(&watched);
                    self.drop_evidence();
                    return Ok(flushed);
                }
                Err(EngineError::Store(why)) if waited < STORE_PATIENCE && self.is_worth_a_wait(&why) => {
                    let pause = adjutant_models::retry::backoff(attempt, None, self.engine.env().fraction());
                    tracing::warn!(run = %self.log.run, error = %why, "the store cannot be written; trying again");
                    // What happened is not in the log yet, and this process may end before it is.
                    self.keep_evidence().await;
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    /// Tells whoever follows the run what its log has grown by, so that nobody has to read it; or to read it, where that is not
    /// certain.
    fn tell_followers(&mut self, flushed: &Result<Flushed, EngineError>) {
        let (run, written) = (self.log.run, self.log.take_written());
        match flushed {
            Ok(Flushed::Written) => self.engine.feed().recorded(run, written),
            Ok(Flushed::Rebased | Flushed::Fenced | Flushed::Overtaken) | Err(_) => {
                self.engine.feed().cannot_tell(run);
            }
        }
    }

    /// Whether what keeps the store from being written may pass in time. A disk that has no room or fails is waited for only where
    /// something that has happened would be forgotten, which is kept beside the store meanwhile; whatever else is pending can be
    /// concluded again.
    fn is_worth_a_wait(&self, error: &StoreError) -> bool {
        match error {
            StoreError::Unavailable(_) => true,
            StoreError::Full(_) | StoreError::ReadOnly(_) | StoreError::Corrupt(_) | StoreError::Other(_) => {
                self.log.holds_facts()
            }
            StoreError::Stale { .. }
            | StoreError::Conflict(_)
            | StoreError::UsedUp(_)
            | StoreError::Overspent(_)
            | StoreError::NotFound
            | StoreError::NewerSchema { .. }
            | StoreError::OtherBuild
            | StoreError::WrongKey => false,
        }
    }
}
