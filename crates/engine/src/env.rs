//! Time and chance as values, so that tests and simulation can own both. The only place that reads a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adjutant_core::id::CallId;
use adjutant_core::time::Time;

/// Where time and randomness come from.
pub trait Source: Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
    /// How long the machine has been on, also asleep: a clock that nobody sets, for what must have ended by then.
    fn steady(&self) -> Duration {
        let up = rustix::time::clock_gettime(STEADY);
        Duration::new(up.tv_sec.try_into().unwrap_or_default(), up.tv_nsec.try_into().unwrap_or_default())
    }
    /// Fills a buffer with random bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// Time and chance of one engine.
#[derive(Clone)]
pub struct Env {
    source: Arc<dyn Source>,
    /// The millisecond of the last id, and how many were made in it before: lists are in the order of ids, so what one turn
    /// asks for has to stand there in the order in which it was asked.
    last: Arc<AtomicU64>,
}

/// How many bits of an id, behind its moment, count within a millisecond; behind them all is chance. They are within the
/// characters that lists show of an id.
const COUNT_BITS: u32 = 11;

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

impl Env {
    /// The machine's clock and random numbers.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Arc::new(System))
    }

    /// Another source.
    #[must_use]
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self { source, last: Arc::default() }
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Time {
        self.source.now()
    }

    /// How long the machine has been on: it never jumps, and goes on while the machine sleeps.
    #[must_use]
    pub fn steady(&self) -> Duration {
        self.source.steady()
    }

    /// Random bytes.
    #[must_use]
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.source.fill(&mut bytes);
        bytes
    }

    /// A new id, of the kind that is asked for. Those of one millisecond are in the order in which they were made.
    #[must_use]
    pub fn id<Id: FromParts>(&self) -> Id {
        let (at, mut random) = (self.now(), self.random::<10>());
        // Four bits of the first byte make room for the version, so the count ends one bit before the end of the second.
        let [.., high, low] = (self.count_within(at) << 1).to_be_bytes();
        (random[0], random[1]) = (high, low | (random[1] & 1));
        Id::from_parts(at, random)
    }

    fn count_within(&self, at: Time) -> u64 {
        let start = u64::try_from(at.millis()).unwrap_or_default() << COUNT_BITS;
        let next = |last: u64| if last >> COUNT_BITS == start >> COUNT_BITS { last + 1 } else { start };
        let step = |last| Some(next(last));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or_else(|same| same);
        next(last) & ((1 << COUNT_BITS) - 1)
    }

    /// A number from 0 up to 1, for jitter.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(u16::from_le_bytes(self.random())) / 65536.0
    }
}

/// On Linux the plain monotonic clock stands still while the machine sleeps; elsewhere it goes on.
#[cfg(target_os = "linux")]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const STEADY: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

struct System;

impl Source for System {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn fill(&self, bytes: &mut [u8]) {
        // Without randomness nothing we make is unguessable: stopping is the only safe answer.
        #[allow(clippy::expect_used, reason = "an operating system without randomness is not one we can run on")]
        getrandom::fill(bytes).expect("the operating system gives random bytes");
    }
}

/// A stretch of time as it is recorded, in milliseconds.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Ids that are made from a moment and ten random bytes.
pub trait FromParts {
    /// Makes the id.
    fn from_parts(at: Time, random: [u8; 10]) -> Self;
}

macro_rules! from_parts {
    ($($id:ident),*) => {$(
        impl FromParts for $id {
            fn from_parts(at: Time, random: [u8; 10]) -> Self { Self::new(at, random) }
        }
    )*};
}

use adjutant_core::id::{
    AgentId, ApprovalId, ChatId, KeyId, NodeId, NotebookId, RuleId, RunId, TokenId, UserId, WorkspaceId,
};
from_parts!(
    AgentId,
    ApprovalId,
    CallId,
    ChatId,
    NodeId,
    NotebookId,
    KeyId,
    RuleId,
    RunId,
    TokenId,
    UserId,
    WorkspaceId
);

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that stands still.
    struct Still;

    impl Source for Still {
        fn now(&self) -> Time {
            Time::from_millis(1_000)
        }

        fn fill(&self, bytes: &mut [u8]) {
            System.fill(bytes);
        }
    }

    #[test]
    fn ids_of_one_millisecond_are_in_the_order_in_which_they_were_made() {
        let env = Env::new(Arc::new(Still));
        let made: Vec<ApprovalId> = (0..1_000).map(|_| env.id()).collect();
        assert!(made.is_sorted());
        assert!(made.iter().all(|id| id.made_at() == Time::from_millis(1_000)));
        // What lists show of an id is enough to name it.
        let shown = made.iter().map(|id| id.to_string()[..ApprovalId::PREFIX.len() + 13].to_owned());
        assert_eq!(shown.collect::<std::collections::BTreeSet<_>>().len(), made.len());
    }
}
