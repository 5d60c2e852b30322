//! Time and chance as values, so that tests and simulation can own both. The only place that reads a clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use adjutant_core::id::CallId;
use adjutant_core::time::Time;

/// Where time and randomness come from.
pub trait Source: Send + Sync {
    /// The present moment.
    fn now(&self) -> Time;
    /// Fills a buffer with random bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// Time and chance of one engine.
#[derive(Clone)]
pub struct Env(Arc<dyn Source>);

impl std::fmt::Debug for Env {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Env")
    }
}

impl Env {
    /// The machine's clock and random numbers.
    #[must_use]
    pub fn system() -> Self {
        Self(Arc::new(System))
    }

    /// Another source.
    #[must_use]
    pub fn new(source: Arc<dyn Source>) -> Self {
        Self(source)
    }

    /// The present moment.
    #[must_use]
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// Random bytes.
    #[must_use]
    pub fn random<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }

    /// A new id, of the kind that is asked for.
    #[must_use]
    pub fn id<Id: FromParts>(&self) -> Id {
        Id::from_parts(self.now(), self.random())
    }

    /// A number from 0 up to 1, for jitter.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        f64::from(u16::from_le_bytes(self.random())) / 65536.0
    }
}

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
