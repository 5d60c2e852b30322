//! How long to wait before a failed call is tried again. Pure: chance is an argument, and nobody sleeps here.

use std::time::Duration;

use adjutant_core::limits::{BACKOFF_FIRST, BACKOFF_MOST};

/// The wait after the failed attempt number `attempt` (the first is 1). `jitter` is a random number from 0 to 1.
///
/// Without word from the provider the wait doubles from [`BACKOFF_FIRST`] to [`BACKOFF_MOST`], and chance takes up to
/// half of it away. A provider that said when to come back is obeyed: chance then only adds, up to [`BACKOFF_FIRST`],
/// so that all who were told the same moment do not return in the same instant.
#[must_use]
pub fn backoff(attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 1.0 };
    match retry_after {
        Some(wanted) => wanted.saturating_add(BACKOFF_FIRST.mul_f64(jitter)),
        None => {
            let doublings = attempt.saturating_sub(1).min(16);
            let wait = BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_MOST);
            wait.mul_f64(0.5 + jitter / 2.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_one_second_to_ten() {
        let waits: Vec<_> = (0..=7).map(|attempt| backoff(attempt, None, 1.0).as_secs()).collect();
        assert_eq!(waits, [1, 1, 2, 4, 8, 10, 10, 10]);
        assert_eq!(backoff(u32::MAX, None, 1.0), BACKOFF_MOST);
    }

    #[test]
    fn chance_takes_at_most_half_of_the_wait() {
        assert_eq!(backoff(3, None, 0.0), Duration::from_secs(2));
        assert_eq!(backoff(3, None, 0.5), Duration::from_secs(3));
        assert_eq!(backoff(3, None, f64::NAN), Duration::from_secs(4));
        assert_eq!(backoff(3, None, -7.0), Duration::from_secs(2));
    }

    #[test]
    fn a_provider_that_names_a_time_is_never_called_before_it() {
        let wanted = Duration::from_secs(30);
        assert_eq!(backoff(1, Some(wanted), 0.0), wanted);
        assert_eq!(backoff(9, Some(wanted), 1.0), wanted + BACKOFF_FIRST);
        assert_eq!(backoff(1, Some(Duration::MAX), 1.0), Duration::MAX);
    }
}
