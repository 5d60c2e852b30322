//! Text in an event: inline while it is short, a reference to a content-addressed block when it is long. Text whose block
//! was erased stays readable as a sentence that says so.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::limits::INLINE_BYTES;

/// A blake3 hash; hexadecimal in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// What comes before the first event of a stream.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Hash {
    type Err = BadHash;
    fn from_str(text: &str) -> Result<Self, BadHash> {
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| BadHash)
    }
}

/// The text is not a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash is 64 hexadecimal digits")]
pub struct BadHash;

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A text that may live in a block of its own.
#[derive(Clone)]
pub struct Content {
    text: Option<Arc<str>>,
    block: Option<Hash>,
    len: u64,
}

impl Content {
    /// Wraps a text; it becomes a block when it is longer than [`INLINE_BYTES`].
    #[must_use]
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let block = (text.len() > INLINE_BYTES).then(|| Hash::of(text.as_bytes()));
        Self { len: text.len() as u64, block, text: Some(text) }
    }

    /// How many bytes the text has, loaded or not.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Whether the text is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The block the text lives in, if it is not inline.
    #[must_use]
    pub const fn block(&self) -> Option<Hash> {
        self.block
    }

    /// The block to load before the text can be read, if any.
    #[must_use]
    pub fn missing(&self) -> Option<Hash> {
        if self.text.is_some() { None } else { self.block }
    }

    /// Gives the text of a block that was loaded; a text of another hash is not taken.
    pub fn fill(&mut self, text: &Arc<str>) {
        if self.block == Some(Hash::of(text.as_bytes())) {
            self.text = Some(Arc::clone(text));
        }
    }

    /// The text, or a sentence in its place when it is erased (or was not loaded).
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match &self.text {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(format!("[{} bytes, erased]", self.len)),
        }
    }

    /// The text, if it is here.
    #[must_use]
    pub fn loaded(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }

    /// The hash of the text, inline or not.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.block.unwrap_or_else(|| Hash::of(self.text().as_bytes()))
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::new("")
    }
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.hash() == other.hash()
    }
}

impl Eq for Content {}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            None => fmt::Debug::fmt(&self.text(), f),
            Some(hash) => write!(f, "block({hash}, {} bytes)", self.len),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Stored<'a> {
    Inline(#[serde(borrow)] Cow<'a, str>),
    Block { block: Hash, len: u64 },
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.block {
            None => Stored::Inline(self.text()),
            Some(block) => Stored::Block { block, len: self.len },
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Inline(text) => Self { len: text.len() as u64, block: None, text: Some(Arc::from(text)) },
            Stored::Block { block, len } => Self { text: None, block: Some(block), len },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_stored_inline_and_a_long_one_by_reference() {
        let short = Content::from("hello");
        assert_eq!(serde_json::to_string(&short).unwrap(), "\"hello\"");
        let text = "x".repeat(INLINE_BYTES + 1);
        let long = Content::from(text.as_str());
        let stored = serde_json::to_string(&long).unwrap();
        assert!(stored.len() < 128, "{stored}");
        let mut back: Content = serde_json::from_str(&stored).unwrap();
        assert_eq!(back, long);
        assert_eq!(back.text(), "[4097 bytes, erased]");
        back.fill(&Arc::from("another text"));
        assert!(back.missing().is_some());
        back.fill(&Arc::from(text.as_str()));
        assert_eq!(back.text(), text);
    }
}
