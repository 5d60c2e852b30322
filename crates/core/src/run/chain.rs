//! The stored form of an event and the hash chain over a stream. Nothing is serialised again to verify: bodies are bytes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::content::Hash;
use crate::id::{BadId, RunId, WorkspaceId};
use crate::time::Time;

/// What a log belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamId {
    /// The log of a run.
    Run(RunId),
    /// The audit log of a workspace: logins, policy changes, operator acts.
    Workspace(WorkspaceId),
    /// The audit log of the instance.
    System,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(id) => fmt::Display::fmt(id, f),
            Self::Workspace(id) => fmt::Display::fmt(id, f),
            Self::System => f.write_str("sys"),
        }
    }
}

impl FromStr for StreamId {
    type Err = BadId;
    fn from_str(text: &str) -> Result<Self, BadId> {
        if text == "sys" {
            return Ok(Self::System);
        }
        if text.starts_with(WorkspaceId::PREFIX) {
            return text.parse().map(Self::Workspace);
        }
        text.parse().map(Self::Run)
    }
}

impl Serialize for StreamId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StreamId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Where a stream ends: its last sequence number and hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The last sequence number; 0 before the first event.
    pub seq: u64,
    /// The hash of the last event.
    pub hash: Hash,
}

impl Head {
    /// The head of a stream with no event.
    pub const START: Self = Self { seq: 0, hash: Hash::ZERO };
}

/// One stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The log it belongs to.
    pub stream: StreamId,
    /// Its place there, from 1, without gaps.
    pub seq: u64,
    /// Its kind: the name under which its body is understood.
    pub kind: String,
    /// When it was recorded.
    pub time: Time,
    /// The hash of its body, kept when the body is erased.
    pub body_hash: Hash,
    /// The body: JSON bytes, exactly as they were hashed; none once erased.
    pub body: Option<Vec<u8>>,
    /// The hash of the chain up to and including this event.
    pub hash: Hash,
}

/// What is wrong with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BrokenChain {
    /// An event is missing, doubled or out of order.
    #[error("expected event {expected}, found {found}")]
    Sequence {
        /// The number that should follow.
        expected: u64,
        /// The number that is there.
        found: u64,
    },
    /// The body is not the one that was recorded.
    #[error("the body of event {seq} was changed")]
    Body {
        /// The event.
        seq: u64,
    },
    /// The head of the entry (stream, kind, time, body hash) is not the one that was recorded.
    #[error("event {seq} does not follow from the one before it")]
    Link {
        /// The event.
        seq: u64,
    },
}

impl Entry {
    /// The entry that follows `head` in `stream`.
    #[must_use]
    pub fn next(stream: StreamId, head: Head, kind: &str, time: Time, body: Vec<u8>) -> Self {
        let seq = head.seq + 1;
        let body_hash = Hash::of(&body);
        let hash = link(head.hash, stream, seq, kind, time, body_hash);
        Self { stream, seq, kind: kind.to_owned(), time, body_hash, body: Some(body), hash }
    }

    /// The head of the stream once this entry is in it.
    #[must_use]
    pub const fn head(&self) -> Head {
        Head { seq: self.seq, hash: self.hash }
    }

    /// Checks that this entry follows `head`.
    ///
    /// # Errors
    /// Says what does not fit.
    pub fn follows(&self, head: Head) -> Result<Head, BrokenChain> {
        let (seq, expected) = (self.seq, head.seq + 1);
        if seq != expected {
            return Err(BrokenChain::Sequence { expected, found: seq });
        }
        if self.body.as_ref().is_some_and(|body| Hash::of(body) != self.body_hash) {
            return Err(BrokenChain::Body { seq });
        }
        if self.hash != link(head.hash, self.stream, seq, &self.kind, self.time, self.body_hash) {
            return Err(BrokenChain::Link { seq });
        }
        Ok(self.head())
    }
}

fn link(before: Hash, stream: StreamId, seq: u64, kind: &str, time: Time, body_hash: Hash) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&before.0);
    hasher.update(stream.to_string().as_bytes());
    hasher.update(&seq.to_le_bytes());
    hasher.update(kind.as_bytes());
    hasher.update(&time.millis().to_le_bytes());
    hasher.update(&body_hash.0);
    Hash(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chain(bodies: &[Vec<u8>]) -> Vec<Entry> {
        let stream = StreamId::Run(RunId::new(Time::from_millis(5), [7; 10]));
        let mut head = Head::START;
        bodies
            .iter()
            .map(|body| {
                let entry = Entry::next(stream, head, "said", Time::from_millis(9), body.clone());
                head = entry.head();
                entry
            })
            .collect()
    }

    fn verify(entries: &[Entry]) -> Result<Head, BrokenChain> {
        entries.iter().try_fold(Head::START, |head, entry| entry.follows(head))
    }

    /// Whether these are all the entries up to a head that is known from elsewhere.
    fn is_whole(entries: &[Entry], head: Head) -> bool {
        verify(entries) == Ok(head)
    }

    fn flip(bytes: &mut [u8], at: prop::sample::Index, bit: u8) {
        bytes[at.index(bytes.len())] ^= 1 << bit;
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn any_flipped_bit_is_found(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..8),
            at in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(), bit in 0_u8..8, place in 0..8_u8,
        ) {
            let mut entries = chain(&bodies);
            let head = entries.last().unwrap().head();
            prop_assert!(is_whole(&entries, head));
            let index = at.index(entries.len());
            let entry = &mut entries[index];
            match place {
                0 => flip(entry.body.as_mut().unwrap(), byte, bit),
                1 => flip(&mut entry.body_hash.0, byte, bit),
                2 => flip(&mut entry.hash.0, byte, bit),
                3 => entry.time = Time::from_millis(entry.time.millis() ^ (1 << (byte.index(8) * 8 + usize::from(bit)))),
                4 => entry.seq ^= 1 << (byte.index(8) * 8 + usize::from(bit)),
                5 => {
                    // The uppermost bit of a letter would leave no text.
                    let mut kind = entry.kind.clone().into_bytes();
                    flip(&mut kind, byte, bit % 7);
                    entry.kind = String::from_utf8(kind).unwrap();
                }
                6 => {
                    let mut run = [7; 10];
                    // The bits before those say which kind of id it is.
                    flip(&mut run[3..], byte, bit);
                    entry.stream = StreamId::Run(RunId::new(Time::from_millis(5), run));
                }
                // The body goes, as if it were erased, and what is said of it is another.
                _ => {
                    entry.body = None;
                    flip(&mut entry.body_hash.0, byte, bit);
                }
            }
            prop_assert!(verify(&entries).is_err(), "{place}");
        }

        #[test]
        fn a_dropped_doubled_or_reordered_event_is_found(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..9), 2..8),
            at in any::<prop::sample::Index>(),
        ) {
            let entries = chain(&bodies);
            let head = entries.last().unwrap().head();
            let index = at.index(entries.len());
            let mut dropped = entries.clone();
            dropped.remove(index);
            prop_assert!(!is_whole(&dropped, head));
            let mut doubled = entries.clone();
            doubled.insert(index, entries[index].clone());
            prop_assert!(verify(&doubled).is_err());
            let mut swapped = entries.clone();
            swapped.swap(index, (index + 1) % entries.len());
            prop_assert!(verify(&swapped).is_err());
        }

        #[test]
        fn events_that_were_cut_off_are_found_by_whoever_knows_the_end(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..9), 1..8),
            at in any::<prop::sample::Index>(),
        ) {
            let entries = chain(&bodies);
            let head = entries.last().unwrap().head();
            let kept = &entries[..at.index(entries.len())];
            prop_assert!(verify(kept).is_ok(), "a shorter chain is one, too");
            prop_assert!(!is_whole(kept, head));
        }
    }

    #[test]
    fn an_erased_body_leaves_the_chain_whole() {
        let mut entries = chain(&[b"one".to_vec(), b"two".to_vec()]);
        entries[0].body = None;
        assert!(verify(&entries).is_ok());
    }
}
