//! Rates: GCRA (the "virtual scheduling" form of the leaky bucket). One number per key says when the next call would be on
//! schedule; a burst of the whole allowance is free, more than it waits. There is no minute that can be straddled.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// So many calls in so long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Calls.
    pub calls: u32,
    /// In this long, in milliseconds.
    pub period_ms: u64,
}

impl Rate {
    /// So many calls a minute.
    #[must_use]
    pub const fn per_minute(calls: u32) -> Self {
        Self { calls, period_ms: 60_000 }
    }

    /// So many calls an hour.
    #[must_use]
    pub const fn per_hour(calls: u32) -> Self {
        Self { calls, period_ms: 3_600_000 }
    }

    /// How far one call moves the schedule, in microseconds: milliseconds would round high rates away.
    #[must_use]
    pub const fn spacing_us(self) -> u64 {
        match self.calls {
            // A rate of nothing never comes free.
            0 => u64::MAX / 4,
            calls => (self.period_ms.saturating_mul(1000)).div_ceil(calls as u64),
        }
    }

    /// How far ahead of now the schedule may run: the whole allowance at once.
    #[must_use]
    pub const fn window_us(self) -> u64 {
        match self.calls {
            0 => 0,
            calls => self.spacing_us().saturating_mul(calls as u64),
        }
    }

    /// Takes one call. `scheduled` is the number kept under the key, in microseconds since the epoch.
    ///
    /// # Errors
    /// How long to wait until a call would be on schedule. Nothing is taken then.
    pub fn take(self, scheduled: Option<u64>, now: Time) -> Result<u64, Duration> {
        let now_us = u64::try_from(now.millis()).unwrap_or(0).saturating_mul(1000);
        let next = scheduled.unwrap_or(0).max(now_us).saturating_add(self.spacing_us());
        let latest = now_us.saturating_add(self.window_us());
        if next <= latest { Ok(next) } else { Err(Duration::from_micros(next - latest)) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(rate: Rate, moments: &[i64]) -> Vec<i64> {
        let mut kept = None;
        let mut passed = Vec::new();
        for at in moments {
            if let Ok(next) = rate.take(kept, Time::from_millis(*at)) {
                kept = Some(next);
                passed.push(*at);
            }
        }
        passed
    }

    #[test]
    fn the_allowance_may_be_used_at_once_and_comes_back_bit_by_bit() {
        let rate = Rate::per_minute(3);
        assert_eq!(passed(rate, &[1_000_000; 5]).len(), 3);
        assert_eq!(passed(rate, &[1_000_000, 1_000_000, 1_000_000, 1_019_999, 1_020_000, 1_020_001]).len(), 4);
    }

    #[test]
    fn who_comes_too_early_is_told_how_long_to_wait() {
        let rate = Rate::per_minute(1);
        let kept = rate.take(None, Time::from_millis(1_000_000)).unwrap();
        let wait = rate.take(Some(kept), Time::from_millis(1_010_000)).unwrap_err();
        assert_eq!(wait, Duration::from_secs(50));
        assert!(rate.take(Some(kept), Time::from_millis(1_060_000)).is_ok());
    }

    #[test]
    fn a_rate_of_nothing_lets_nothing_through() {
        assert!(Rate::per_minute(0).take(None, Time::from_millis(1_000_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_period_holds_more_than_twice_less_one_and_none_from_rest_more_than_the_allowance(
            calls in 1_u32..20, gaps in proptest::collection::vec(0_i64..9_000, 1..200),
        ) {
            let rate = Rate::per_minute(calls);
            let mut at = 1_000_000_000;
            let moments: Vec<_> = gaps.iter().map(|gap| { at += gap; at }).collect();
            let passed = passed(rate, &moments);
            for (index, start) in passed.iter().enumerate() {
                let within = passed[index..].iter().take_while(|later| **later - start < 60_000).count();
                prop_assert!(within < 2 * calls as usize + 1, "{within} in a minute");
            }
            let long = passed.last().unwrap() - passed.first().unwrap();
            let most = calls as i64 + long * i64::from(calls) / 60_000 + 1;
            prop_assert!(passed.len() as i64 <= most);
        }
    }
}
