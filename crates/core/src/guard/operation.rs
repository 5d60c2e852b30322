//! The five operations that grants and flags are made of (P16).

use serde::{Deserialize, Serialize};

/// What a grant allows; actions are made of these (P16).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Reading and listing.
    Read,
    /// Changing what is there.
    Write,
    /// Making what is not there.
    Create,
    /// Removing.
    Delete,
    /// Running.
    Execute,
}

/// The file flags of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// `can_read`.
    pub read: bool,
    /// `can_write`.
    pub write: bool,
    /// `can_create`.
    pub create: bool,
    /// `can_delete`.
    pub delete: bool,
    /// `can_execute_code`.
    pub execute: bool,
}

/// A set of operations, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operations(u8);

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 5] = [Self::Read, Self::Write, Self::Create, Self::Delete, Self::Execute];

    /// The agent's flag that allows it.
    #[must_use]
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Read => "can_read",
            Self::Write => "can_write",
            Self::Create => "can_create",
            Self::Delete => "can_delete",
            Self::Execute => "can_execute_code",
        }
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Execute => "execute",
        })
    }
}

impl Caps {
    /// Every flag on.
    pub const ALL: Self = Self { read: true, write: true, create: true, delete: true, execute: true };
    /// Every flag off.
    pub const NONE: Self = Self { read: false, write: false, create: false, delete: false, execute: false };

    /// Whether the flag of this operation is on.
    #[must_use]
    pub const fn allows(self, operation: Operation) -> bool {
        match operation {
            Operation::Read => self.read,
            Operation::Write => self.write,
            Operation::Create => self.create,
            Operation::Delete => self.delete,
            Operation::Execute => self.execute,
        }
    }
}

impl FromIterator<Operation> for Caps {
    fn from_iter<T: IntoIterator<Item = Operation>>(operations: T) -> Self {
        let mut caps = Self::NONE;
        for operation in operations {
            match operation {
                Operation::Read => caps.read = true,
                Operation::Write => caps.write = true,
                Operation::Create => caps.create = true,
                Operation::Delete => caps.delete = true,
                Operation::Execute => caps.execute = true,
            }
        }
        caps
    }
}

impl Operations {
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(0b1_1111);
    pub(super) const READING: Self = Self::of(Operation::Read);

    pub(super) const fn of(operation: Operation) -> Self {
        Self(1 << operation as u8)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn contains_all(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    pub(super) fn iter(self) -> impl Iterator<Item = Operation> {
        Operation::ALL.into_iter().filter(move |operation| self.contains_all(Self::of(*operation)))
    }

    /// The first operation of this set that the other lacks.
    pub(super) fn first_outside(self, other: Self) -> Option<Operation> {
        if other.contains_all(self) { None } else { Self(self.0 & !other.0).iter().next() }
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<T: IntoIterator<Item = Operation>>(operations: T) -> Self {
        operations.into_iter().fold(Self::NONE, |set, operation| set.with(Self::of(operation)))
    }
}

impl From<Caps> for Operations {
    fn from(caps: Caps) -> Self {
        Operation::ALL.into_iter().filter(|operation| caps.allows(*operation)).collect()
    }
}
