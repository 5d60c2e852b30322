//! Sealing at rest: what is written to the database is ciphertext bound to its place. Knows no SQL; never falls back to
//! plain text.

use std::fmt::{self, Write as _};

use adjutant_core::content::Hash;
use adjutant_core::id::WorkspaceId;
use adjutant_core::run::chain::StreamId;
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{KeyInit, Tag, XChaCha20Poly1305, XNonce};
use zeroize::Zeroizing;

use crate::StoreError;

/// The key that wraps the data keys. Has no `Debug` and no serialised form, and is wiped when dropped.
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// Takes 32 random bytes (from a file or a key service, never derived from a password).
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

/// Whether content is sealed. Recorded at the first start; the two are never mixed in one database.
pub enum Sealing {
    /// Under data keys that this key wraps.
    On(MasterKey),
    /// Plain bytes: the documented faster choice.
    Off,
}

/// Whose key seals something: a tenant's, or the instance's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Scope {
    Workspace(WorkspaceId),
    System,
}

impl Scope {
    /// The scope a stream is stored under; none when the stream belongs to another tenant.
    pub(crate) fn of(workspace: WorkspaceId, stream: StreamId) -> Option<Self> {
        match stream {
            StreamId::Run(_) => Some(Self::Workspace(workspace)),
            StreamId::Workspace(of) => (of == workspace).then_some(Self::Workspace(workspace)),
            StreamId::System => Some(Self::System),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace(id) => fmt::Display::fmt(id, f),
            Self::System => f.write_str("sys"),
        }
    }
}

/// Where a ciphertext belongs; moved anywhere else it does not open.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    Event { stream: StreamId, seq: u64 },
    Block(Hash),
    Column { table: &'static str, column: &'static str, id: &'a str },
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event { stream, seq } => write!(f, "event|{stream}|{seq}"),
            Self::Block(hash) => write!(f, "block|{hash}"),
            Self::Column { table, column, id } => write!(f, "column|{table}|{column}|{id}"),
        }
    }
}

const FORMAT: u8 = 1;
const NONCE: usize = 24;
const TAG: usize = 16;
/// Format, generation of the key, nonce.
const HEADER: usize = 1 + 2 + NONCE;

/// One key, ready to seal and open for one scope. Its generation is written into every record so that it can be rotated.
pub(crate) struct Key {
    scope: Scope,
    generation: u16,
    cipher: XChaCha20Poly1305,
    /// Another key, for hashes: one key is used for one thing.
    marks: Zeroizing<[u8; 32]>,
}

impl Key {
    /// The key that wraps data keys and the check value.
    pub(crate) fn master(key: &MasterKey) -> Self {
        Self::new(Scope::System, 0, &key.0)
    }

    pub(crate) fn new(scope: Scope, generation: u16, bytes: &[u8; 32]) -> Self {
        let marks = Zeroizing::new(blake3::derive_key("adjutant 2026-11 marks", bytes));
        Self { scope, generation, cipher: XChaCha20Poly1305::new(bytes.into()), marks }
    }

    pub(crate) fn mark(&self, text: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.marks, text.as_bytes())
    }

    fn binding(&self, place: Place<'_>) -> String {
        let mut text = String::with_capacity(128);
        // Writing into a String does not fail.
        let _ = write!(text, "{}|{}|{place}", self.scope, self.generation);
        text
    }

    pub(crate) fn seal(&self, place: Place<'_>, plain: &[u8]) -> Result<Vec<u8>, StoreError> {
        let mut nonce = [0_u8; NONCE];
        fill_random(&mut nonce)?;
        let mut record = Vec::with_capacity(HEADER + plain.len() + TAG);
        record.push(FORMAT);
        record.extend_from_slice(&self.generation.to_le_bytes());
        record.extend_from_slice(&nonce);
        record.extend_from_slice(plain);
        let tag = self
            .cipher
            .encrypt_inout_detached(
                &XNonce::from(nonce),
                self.binding(place).as_bytes(),
                (&mut record[HEADER..]).into(),
            )
            .map_err(|_| StoreError::other("content too long to seal"))?;
        record.extend_from_slice(&tag);
        Ok(record)
    }

    pub(crate) fn open(&self, place: Place<'_>, mut record: Vec<u8>) -> Result<Vec<u8>, StoreError> {
        let refused = || StoreError::Corrupt(format!("the sealed content of {place} does not open"));
        let end = record.len().checked_sub(TAG).filter(|end| *end >= HEADER).ok_or_else(refused)?;
        if record[0] != FORMAT || record[1..3] != self.generation.to_le_bytes() {
            return Err(refused());
        }
        let nonce: [u8; NONCE] = record[3..HEADER].try_into().map_err(|_| refused())?;
        let tag: [u8; TAG] = record[end..].try_into().map_err(|_| refused())?;
        self.cipher
            .decrypt_inout_detached(
                &XNonce::from(nonce),
                self.binding(place).as_bytes(),
                (&mut record[HEADER..end]).into(),
                &Tag::from(tag),
            )
            .map_err(|_| refused())?;
        record.truncate(end);
        record.drain(..HEADER);
        Ok(record)
    }
}

/// Random bytes from the operating system.
pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), StoreError> {
    getrandom::fill(bytes).map_err(|error| StoreError::other(format!("no randomness from the system: {error}")))
}

#[cfg(test)]
mod tests {
    use adjutant_core::time::Time;

    use super::*;

    fn key() -> Key {
        Key::new(Scope::Workspace(WorkspaceId::new(Time::from_millis(1), [1; 10])), 1, &[7; 32])
    }

    #[test]
    fn what_was_sealed_opens_only_in_its_place_and_unchanged() {
        let place = Place::Event { stream: StreamId::System, seq: 4 };
        let record = key().seal(place, b"hello").unwrap();
        assert_eq!(key().open(place, record.clone()).unwrap(), b"hello");
        assert!(key().open(Place::Event { stream: StreamId::System, seq: 5 }, record.clone()).is_err());
        assert!(Key::new(Scope::System, 1, &[7; 32]).open(place, record.clone()).is_err());
        for at in 0..record.len() {
            let mut changed = record.clone();
            changed[at] ^= 1;
            assert!(key().open(place, changed).is_err(), "byte {at}");
        }
        for end in 0..record.len() {
            assert!(key().open(place, record[..end].to_vec()).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn equal_contents_do_not_look_equal() {
        let place = Place::Block(Hash::ZERO);
        assert_ne!(key().seal(place, b"same").unwrap(), key().seal(place, b"same").unwrap());
    }
}
