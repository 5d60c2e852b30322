//! Identifiers: `prefix_` + 26 characters of lower-case Crockford base32 over a UUIDv7. Makes no randomness and reads no
//! clock: both are arguments.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Time;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;

/// A UUIDv7: 48 bits of milliseconds, version and variant bits, 74 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid7(u128);

impl Uuid7 {
    /// Builds an id from the moment it is made and ten random bytes.
    #[must_use]
    pub fn new(at: Time, random: [u8; 10]) -> Self {
        let mut bytes = [0_u8; 16];
        let millis = at.millis().max(0).to_be_bytes();
        bytes[..6].copy_from_slice(&millis[2..]);
        bytes[6..].copy_from_slice(&random);
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(u128::from_be_bytes(bytes))
    }

    /// The moment it was made.
    fn made_at(self) -> Time {
        Time::from_millis(i64::try_from(self.0 >> 80).unwrap_or_default())
    }

    fn write(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0_u8; TEXT_LEN];
        let mut rest = self.0;
        for slot in text.iter_mut().rev() {
            *slot = ALPHABET[usize::from((rest & 31) as u8)];
            rest >>= 5;
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() != TEXT_LEN || text.as_bytes().first().is_none_or(|first| *first > b'7') {
            return None;
        }
        let mut value = 0_u128;
        for byte in text.bytes() {
            let digit = ALPHABET.iter().position(|known| *known == byte)?;
            value = (value << 5) | digit as u128;
        }
        Some(Self(value))
    }
}

/// The text is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {kind} id (expected `{prefix}` and 26 characters)")]
pub struct BadId {
    text: String,
    kind: &'static str,
    prefix: &'static str,
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal $kind:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid7);

        impl $name {
            /// The text every id of this kind begins with.
            pub const PREFIX: &'static str = $prefix;

            /// Builds an id from the moment it is made and ten random bytes.
            #[must_use]
            pub fn new(at: Time, random: [u8; 10]) -> Self {
                Self(Uuid7::new(at, random))
            }

            /// The moment it was made.
            #[must_use]
            pub fn made_at(self) -> Time {
                self.0.made_at()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($prefix)?;
                self.0.write(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                text.strip_prefix($prefix)
                    .and_then(Uuid7::parse)
                    .map(Self)
                    .ok_or_else(|| BadId { text: text.to_owned(), kind: $kind, prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A person.
    UserId "usr_" "user";
    /// A tenant.
    WorkspaceId "ws_" "workspace";
    /// A folder tree of files inside a workspace.
    NotebookId "nb_" "notebook";
    /// A versioned agent configuration.
    AgentId "agent_" "agent";
    /// A thread of runs.
    ChatId "chat_" "chat";
    /// One execution.
    RunId "run_" "run";
    /// A parked decision that a person takes.
    ApprovalId "approval_" "approval";
    /// A standing rule.
    RuleId "rule_" "rule";
    /// A provider's key that somebody brought.
    KeyId "key_" "key";
    /// Something a program signs in with.
    TokenId "tok_" "token";
    /// A process that drives runs.
    NodeId "node_" "node";
}

impl From<ApprovalId> for RuleId {
    /// The rule that an approval wrote: it has the same number, so that there is only one.
    fn from(approval: ApprovalId) -> Self {
        Self(approval.0)
    }
}

/// The id of one tool call inside a run: 1 to 128 visible ASCII characters, unique in the run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct CallId(String);

impl CallId {
    /// The longest id that is accepted, in bytes.
    pub const MAX_LEN: usize = 128;

    /// Accepts an id in internal form (rule T5).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=Self::MAX_LEN).contains(&text.len());
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && visible).then(|| Self(text.to_owned()))
    }

    /// Makes an id of our own.
    #[must_use]
    pub fn new(at: Time, random: [u8; 10]) -> Self {
        struct Shown(Uuid7);
        impl fmt::Display for Shown {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write(f)
            }
        }
        Self(format!("call_{}", Shown(Uuid7::new(at, random))))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("a call id is 1 to 128 visible ASCII characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_as_itself_and_sorts_by_time() {
        let early = RunId::new(Time::from_millis(1_700_000_000_000), [0xff; 10]);
        let late = RunId::new(Time::from_millis(1_700_000_000_001), [0; 10]);
        assert_eq!(early.to_string().parse(), Ok(early));
        assert_eq!(early.to_string().len(), 30);
        assert_eq!((early.made_at().millis(), late.made_at().millis()), (1_700_000_000_000, 1_700_000_000_001));
        assert!(early < late && early.to_string() < late.to_string());
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        let id = RunId::new(Time::from_millis(1), [1; 10]).to_string();
        assert!(id.parse::<ChatId>().is_err());
        assert!(id.replace("run_", "chat_").parse::<ChatId>().is_ok());
        for bad in ["run_", "run_8zzzzzzzzzzzzzzzzzzzzzzzzz", "run_ILOU0000000000000000000000"] {
            assert!(bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_call_id_is_visible_ascii_of_limited_length() {
        assert!(CallId::parse("call#f#0").is_some());
        for bad in ["", " ", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(CallId::parse(bad).is_none(), "{bad:?}");
        }
    }
}
