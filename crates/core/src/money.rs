//! Money is an integer number of micro-dollars; tokens are counted by class.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Millionths of a US dollar.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// The amount in dollars, for display and for the `cost_usd` field only.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "display only; sums are kept as integers")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dollars, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros % 10_000 == 0 {
            write!(f, "${dollars}.{:02}", micros / 10_000)
        } else {
            write!(f, "${dollars}.{:04}", micros.div_ceil(100))
        }
    }
}

impl fmt::Debug for MicroUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Add for MicroUsd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for MicroUsd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for MicroUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// Tokens of one model call, or of a whole run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Everything the model read, cached or not.
    pub input: u64,
    /// Everything it wrote, reasoning included.
    pub output: u64,
    /// The part of `input` that came from the provider's cache.
    pub cached: u64,
    /// The part of `output` that was reasoning.
    pub reasoning: u64,
    /// The part of `input` that was put into the provider's cache, which some ask more for.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_shown_with_as_many_digits_as_it_needs() {
        assert_eq!(MicroUsd(500_000).to_string(), "$0.50");
        assert_eq!(MicroUsd(0).to_string(), "$0.00");
        assert_eq!(MicroUsd(12_345).to_string(), "$0.0124");
        assert_eq!(MicroUsd(20_000_000).to_string(), "$20.00");
    }
}
