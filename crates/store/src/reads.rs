//! How much is read: counted by whoever reads, shown to whoever measures.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::value::Row;

/// How much was read since the database was opened, outside transactions that write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Statements.
    pub statements: u64,
    /// The rows that they gave.
    pub rows: u64,
}

/// The same, counted.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    statements: AtomicU64,
    rows: AtomicU64,
}

impl Counter {
    pub(crate) fn count(&self, rows: &[Row]) {
        self.statements.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(rows.len() as u64, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Reads {
        Reads { statements: self.statements.load(Ordering::Relaxed), rows: self.rows.load(Ordering::Relaxed) }
    }
}
