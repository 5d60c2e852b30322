//! Chance from one seed. Everything random in a schedule is drawn here, in an order that the seed alone decides.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A stream of random numbers (SplitMix64). Clones draw from the same stream.
#[derive(Clone)]
pub(crate) struct Dice(Arc<AtomicU64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed)))
    }

    /// A stream of its own, so that what draws from it does not depend on what others draw.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.number())
    }

    pub(crate) fn number(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 up to, but not including, `end`.
    pub(crate) fn below(&self, end: u64) -> u64 {
        self.number() % end.max(1)
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    pub(crate) fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Yes in so many of a thousand cases. A rate of zero draws nothing.
    pub(crate) fn per_mille(&self, rate: u64) -> bool {
        rate > 0 && self.below(1000) < rate
    }

    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        if from.is_empty() { None } else { from.get(self.below(from.len() as u64) as usize) }
    }

    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(self.between(from, to))
    }

    pub(crate) fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.number().to_le_bytes()[..chunk.len()]);
        }
    }
}
