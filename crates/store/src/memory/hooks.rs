//! What a simulation may do to a process's calls: hold them up, fail them, lose their answers.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;

use super::Memory;
use crate::StoreError;
use crate::row::{Change, Writer};

/// What a simulation hands in for one process.
#[derive(Clone)]
pub struct MemoryConfig {
    /// The clock that leases go by: the database's, so the same for all processes.
    pub clock: Arc<dyn Fn() -> Time + Send + Sync>,
    /// Asked before each append what shall happen to it.
    pub faults: Arc<dyn Fn(&FaultPoint) -> Fault + Send + Sync>,
    /// Asked before each call, appends too, whether it gets through.
    pub gate: Arc<dyn Fn() -> Gate + Send + Sync>,
    /// Whether this process hears of a change; a notice may always be lost.
    pub hears: Arc<Hears>,
    /// Told what really became of each append, whatever its caller hears.
    pub seen: Arc<Witness>,
}

/// Whoever says whether a change is heard of.
pub type Hears = dyn Fn(&Change) -> bool + Send + Sync;

/// Whoever is told what became of an append.
pub type Witness = dyn Fn(&FaultPoint, &Result<Head, StoreError>) + Send + Sync;

impl MemoryConfig {
    /// A store without faults.
    #[must_use]
    pub fn new(clock: Arc<dyn Fn() -> Time + Send + Sync>) -> Self {
        Self {
            clock,
            faults: Arc::new(|_| Fault::None),
            gate: Arc::new(|| Gate::Open),
            hears: Arc::new(|_| true),
            seen: Arc::new(|_, _| ()),
        }
    }
}

/// An append that is about to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPoint {
    /// The log.
    pub stream: StreamId,
    /// Who appends.
    pub writer: Writer,
    /// The sequence number it follows.
    pub after: u64,
    /// How many events it adds.
    pub events: usize,
    /// Whether it gives the run back.
    pub release: bool,
}

/// What happens to an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing unusual.
    None,
    /// Nothing is written, and the caller is told that the database is unavailable.
    FailBefore,
    /// Nothing is written, and the caller is told that the disk is full.
    Full,
    /// Nothing is written, and the caller is told that the disk failed.
    Broken,
    /// It is written, and the caller is told that the database is unavailable.
    LostReply,
    /// It is written, and the caller hears of it only later.
    SlowReply(Duration),
    /// It is delivered twice, and the caller hears what the second time was answered.
    Twice,
    /// The caller is told that the database is unavailable, and later it is written after all, if it still can be.
    Late(Duration),
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It is made at once.
    Open,
    /// It is made after others had their turn, or after a while.
    Wait(Duration),
    /// It is not made, and the caller is told that the database is unavailable.
    Shut,
    /// It is made, and the caller is told that the database is unavailable.
    LostReply,
}

impl Memory {
    /// Lets one call through, or not.
    pub(crate) async fn pass(&self) -> Result<Passed, StoreError> {
        match (self.config.gate)() {
            Gate::Open => Ok(Passed { answered: true }),
            Gate::Wait(Duration::ZERO) => {
                tokio::task::yield_now().await;
                Ok(Passed { answered: true })
            }
            Gate::Wait(time) => {
                tokio::time::sleep(time).await;
                Ok(Passed { answered: true })
            }
            Gate::Shut => Err(StoreError::unavailable("simulated: the call was not made")),
            Gate::LostReply => Ok(Passed { answered: false }),
        }
    }
}

/// A call that got through.
pub(crate) struct Passed {
    answered: bool,
}

impl Passed {
    /// What the caller hears.
    pub(crate) fn answer<T>(self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if self.answered { answer } else { Err(StoreError::unavailable("simulated: the reply was lost")) }
    }
}
