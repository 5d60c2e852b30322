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

    proptest! {
        #[test]
        fn any_flipped_bit_is_found(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..8),
            at in any::<prop::sample::Index>(), byte in any::<prop::sample::Index>(), bit in 0_u8..8, place in 0..5_u8,
        ) {
            let mut entries = chain(&bodies);
            prop_assert!(verify(&entries).is_ok());
            let index = at.index(entries.len());
            let entry = &mut entries[index];
            match place {
                0 => { let body = entry.body.as_mut().unwrap(); let i = byte.index(body.len()); body[i] ^= 1 << bit; }
                1 => entry.body_hash.0[byte.index(32)] ^= 1 << bit,
                2 => entry.hash.0[byte.index(32)] ^= 1 << bit,
                3 => entry.time = Time::from_millis(entry.time.millis() ^ (1 << bit)),
                _ => entry.kind.push('x'),
            }
            prop_assert!(verify(&entries).is_err());
        }

        #[test]
        fn a_dropped_or_reordered_event_is_found(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..9), 2..8),
            at in any::<prop::sample::Index>(),
        ) {
            let entries = chain(&bodies);
            let index = at.index(entries.len() - 1);
            let mut dropped = entries.clone();
            dropped.remove(index);
            prop_assert!(verify(&dropped).is_err());
            let mut swapped = entries.clone();
            swapped.swap(index, index + 1);
            prop_assert!(verify(&swapped).is_err());
        }
    }

    #[test]
    fn an_erased_body_leaves_the_chain_whole() {
        let mut entries = chain(&[b"one".to_vec(), b"two".to_vec()]);
        entries[0].body = None;
        assert!(verify(&entries).is_ok());
    }
}
