//! Tokens and cookies that were no good, counted by where they came from. Whoever shows too many is not looked up any more for a
//! while; whoever was let in before is, so that a stranger in the same house locks nobody out.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use adjutant_core::content::Hash;

/// The stretch of time in which they are counted.
const SLOT: Duration = Duration::from_secs(15 * 60);
/// How many are looked up in it.
const MOST: u32 = 300;
/// Addresses, and credentials that were good, remembered at the most.
const REMEMBERED: usize = 10_000;

/// What is remembered of strangers.
#[derive(Default)]
pub(super) struct Strangers(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    refused: HashMap<IpAddr, (Instant, u32)>,
    good: HashSet<Hash>,
}

impl Strangers {
    /// How long a credential has to wait before it is looked up; none when it is now.
    pub(super) fn wait(&self, from: IpAddr, credential: &Hash, now: Instant) -> Option<Duration> {
        let seen = self.seen();
        let (since, count) = *seen.refused.get(&house(from))?;
        let left = SLOT.checked_sub(now.saturating_duration_since(since))?;
        (count >= MOST && !seen.good.contains(credential)).then_some(left)
    }

    /// Notes how it went.
    pub(super) fn note(&self, from: IpAddr, credential: Hash, good: bool, now: Instant) {
        let mut seen = self.seen();
        if good {
            if seen.good.len() >= REMEMBERED && !seen.good.contains(&credential) {
                seen.good.clear();
            }
            seen.good.insert(credential);
            return;
        }
        if seen.refused.len() >= REMEMBERED {
            seen.refused.retain(|_, (since, _)| now.saturating_duration_since(*since) < SLOT);
            if seen.refused.len() >= REMEMBERED {
                seen.refused.clear();
            }
        }
        let (since, count) = seen.refused.entry(house(from)).or_insert((now, 0));
        if now.saturating_duration_since(*since) >= SLOT {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts as one address: of IPv6 the network, because each house has as many addresses there as it likes.
pub(super) fn house(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_guesses_has_to_wait_and_locks_nobody_out() {
        let (strangers, begun) = (Strangers::default(), Instant::now());
        let (here, there) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let (guess, known, new) = (Hash::of(b"guess"), Hash::of(b"known"), Hash::of(b"new"));
        strangers.note(here, known, true, begun);
        for _ in 0..MOST {
            assert_eq!(strangers.wait(here, &guess, begun), None);
            strangers.note(here, guess, false, begun);
        }
        let later = begun + Duration::from_secs(60);
        assert_eq!(strangers.wait(here, &guess, later), Some(SLOT - Duration::from_secs(60)));
        assert_eq!(strangers.wait(here, &new, later), Some(SLOT - Duration::from_secs(60)));
        assert_eq!(strangers.wait(here, &known, later), None, "whoever was let in before is looked up");
        assert_eq!(strangers.wait(there, &guess, later), None);
        assert_eq!(strangers.wait(here, &guess, begun + SLOT + Duration::from_secs(1)), None);
        strangers.note(here, guess, false, begun + SLOT);
        assert_eq!(strangers.wait(here, &guess, begun + SLOT), None, "another stretch begins");
    }

    #[test]
    fn a_house_of_ipv6_is_one_address() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let guess = Hash::of(b"guess");
        for n in 0..MOST {
            let address = format!("2001:db8::{n:x}").parse().unwrap();
            strangers.note(address, guess, false, now);
        }
        assert!(strangers.wait("2001:db8::ffff:1".parse().unwrap(), &guess, now).is_some());
        assert!(strangers.wait("2001:db8:0:1::1".parse().unwrap(), &guess, now).is_none());
    }
}
