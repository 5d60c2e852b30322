//! Rates: GCRA (the "virtual scheduling" form of the leaky bucket). One number per key says when the next call would be on
//! schedule; a burst of the whole allowance is free, more than it waits. There is no minute that can be straddled.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::AgentId;
use crate::limits::TRIGGERS_PER_MINUTE;
use crate::time::Time;

/// What the key begins with under which starts by triggers are counted.
pub const TRIGGER: &str = "trigger";

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
        let latest = now_us.saturating_add(self.window_us());
        // No call is ever scheduled so far ahead: the clock was, and has been set back since.
        let kept = scheduled.filter(|kept| *kept <= latest.saturating_add(self.window_us()));
        let next = kept.unwrap_or(0).max(now_us).saturating_add(self.spacing_us());
        if next <= latest { Ok(next) } else { Err(Duration::from_micros(next - latest)) }
    }
}

/// Calls a minute of tools that are dear or dangerous by their nature, unless they say something else themselves.
const USUAL: [(&str, u32); 6] = [
    ("execute_javascript", 10),
    ("execute_python", 10),
    ("execute_shell", 5),
    ("compile_code", 5),
    ("package_manager", 3),
    ("search_web", 20),
];

/// The calls a minute that a tool of this name usually gets.
#[must_use]
pub fn usual_per_minute(tool: &str) -> Option<u32> {
    USUAL.iter().find(|(name, _)| *name == tool).map(|(_, calls)| *calls)
}

/// One call against one rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Take {
    /// What is counted: the same key is the same allowance, on every node.
    pub key: String,
    /// The allowance.
    pub rate: Rate,
}

/// What one call takes: all of it, or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taking {
    /// When, by the clock of whoever takes.
    pub at: Time,
    /// From which allowances.
    pub takes: Vec<Take>,
}

impl Taking {
    /// What a start by a trigger takes: from those of its agent in a minute, whichever trigger it is.
    #[must_use]
    pub fn of_trigger(agent: AgentId, at: Time) -> Self {
        let key = format!("{TRIGGER}/{agent}");
        Self { at, takes: vec![Take { key, rate: Rate::per_minute(TRIGGERS_PER_MINUTE) }] }
    }
}

/// Why a call was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedUp {
    /// Which of the takings, by its place.
    pub taking: usize,
    /// The allowance that is used up.
    pub key: String,
    /// How long until there is room for one more.
    pub wait: Duration,
}

/// What is kept under each key.
pub type Kept = BTreeMap<String, u64>;

/// Takes calls in order, each as a whole. If all of them fit, says what is to be kept; otherwise says which do not fit, as
/// if those were left out, and nothing is to be kept. Nodes that share allowances share a clock, which counts instead of theirs.
///
/// # Errors
/// The takings that do not fit.
pub fn take_all(kept: &Kept, takings: &[Taking], clock: Option<Time>) -> Result<Kept, Vec<UsedUp>> {
    let mut after = kept.clone();
    let mut refused = Vec::new();
    for (index, taking) in takings.iter().enumerate() {
        match taking.on(&after, clock) {
            Ok(next) => after = next,
            Err((key, wait)) => refused.push(UsedUp { taking: index, key, wait }),
        }
    }
    if refused.is_empty() { Ok(after) } else { Err(refused) }
}

impl Taking {
    fn on(&self, kept: &Kept, clock: Option<Time>) -> Result<Kept, (String, Duration)> {
        let (mut after, now) = (kept.clone(), clock.unwrap_or(self.at));
        for Take { key, rate } in &self.takes {
            let next = rate.take(after.get(key).copied(), now).map_err(|wait| (key.clone(), wait))?;
            after.insert(key.clone(), next);
        }
        Ok(after)
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
    fn nodes_whose_clocks_differ_take_by_the_one_they_share() {
        let taking = |at| Taking {
            at: Time::from_millis(at),
            takes: vec![Take { key: "user".to_owned(), rate: Rate::per_minute(2) }],
        };
        let shared = Some(Time::from_millis(1_000_000));
        let (ahead, behind) = ([taking(1_040_000)], [taking(960_000)]);
        let kept = take_all(&Kept::new(), &ahead, shared).unwrap();
        let kept = take_all(&kept, &behind, shared).unwrap();
        assert_eq!(take_all(&kept, &ahead, shared).unwrap_err()[0].wait, Duration::from_secs(30));
    }

    #[test]
    fn a_clock_that_was_set_back_shuts_nothing_for_as_long() {
        let rate = Rate::per_minute(3);
        let kept = rate.take(None, Time::from_millis(90_000_000)).unwrap();
        let again = rate.take(Some(kept), Time::from_millis(1_000_000)).unwrap();
        assert_eq!(again, rate.take(None, Time::from_millis(1_000_000)).unwrap());
    }

    #[test]
    fn a_rate_of_nothing_lets_nothing_through() {
        assert!(Rate::per_minute(0).take(None, Time::from_millis(1_000_000)).is_err());
    }

    #[test]
    fn calls_are_taken_in_order_and_one_that_does_not_fit_spends_nothing() {
        let at = Time::from_millis(1_000_000);
        let take = |key: &str, calls| Take { key: key.to_owned(), rate: Rate::per_minute(calls) };
        let one = Taking { at, takes: vec![take("tool", 2), take("user", 3)] };
        let other = Taking { at, takes: vec![take("user", 3)] };
        let refused =
            take_all(&Kept::new(), &[one.clone(), one.clone(), one.clone(), other.clone(), other.clone()], None);
        let refused: Vec<_> = refused.unwrap_err().into_iter().map(|used| (used.taking, used.key)).collect();
        assert_eq!(refused, [(2, "tool".to_owned()), (4, "user".to_owned())], "what was refused took no room");
        let kept = take_all(&Kept::new(), &[one.clone(), one.clone(), other], None).unwrap();
        assert_eq!(take_all(&kept, &[one], None).unwrap_err()[0].wait, Duration::from_secs(30));
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
                prop_assert!(within < 2 * calls as usize, "{within} in a minute");
            }
            let long = passed.last().unwrap() - passed.first().unwrap();
            let most = calls as i64 + long * i64::from(calls) / 60_000 + 1;
            prop_assert!(passed.len() as i64 <= most);
        }
    }
}
