//! Taking a whole database from one place to another, row by row as it is stored: into a file, out of one, or straight into
//! another database. Nothing is opened on the way: what is sealed stays sealed, so no key is needed.

mod batch;
mod line;
mod snapshot;
mod tables;
mod target;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::StoreError;

pub use batch::Batch;
pub use snapshot::Snapshot;
pub(crate) use target::MARK;
pub use target::Target;

/// Where a copy goes, which decides what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFor {
    /// Into a file that may lie anywhere: no sign-ins, no links that are still good, no keys of providers.
    Backup,
    /// Into another database that takes the place of this one: everything.
    Move,
}

/// The rows of one table that were seen so far.
#[derive(Clone, Default)]
struct Tally {
    rows: u64,
    hasher: blake3::Hasher,
}

impl Tally {
    fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.hasher.update(row);
    }

    fn hash(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

/// How a copy from one database to another went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// Every row is there, read back and compared.
    Whole {
        /// How many.
        rows: u64,
    },
    /// What an earlier attempt had copied is not in the source any more: discard the target and begin again.
    Outdated,
}

/// Copies everything that is not in the target yet, then reads it back and compares. What an earlier attempt copied counts,
/// if it is still the same. `tell` hears how many rows were looked at.
///
/// # Errors
/// Those of the databases; the target then still says that it is not whole.
pub async fn copy(
    from: &mut Snapshot,
    to: &mut Target,
    tell: &mut (dyn FnMut(u64) + Send),
) -> Result<Copied, StoreError> {
    let mut tallies = BTreeMap::<&'static str, Tally>::new();
    let mut rows = 0;
    while let Some(mut batch) = from.next().await? {
        rows += batch.len() as u64;
        let tally = tallies.entry(batch.table()).or_default();
        let there = to.there(batch.table());
        let mut skip = 0;
        for row in batch.rows() {
            let known = there.as_ref().is_some_and(|(count, _)| tally.rows < *count);
            skip += usize::from(known);
            tally.add(&batch::encode(row));
            if there.as_ref().is_some_and(|(count, hash)| tally.rows == *count && tally.hash() != *hash) {
                return Ok(Copied::Outdated);
            }
        }
        batch.leave_out(skip);
        if !batch.is_empty() {
            to.put_marked(&batch, tally.rows, &tally.hash()).await?;
        }
        tell(rows);
    }
    if tables::names()
        .any(|name| to.there(name).is_some_and(|(count, _)| tallies.get(name).map_or(0, |seen| seen.rows) < count))
    {
        return Ok(Copied::Outdated);
    }
    compare(&tallies, to, tell, rows).await?;
    Ok(Copied::Whole { rows })
}

/// Reads the target back.
async fn compare(
    wanted: &BTreeMap<&'static str, Tally>,
    to: &mut Target,
    tell: &mut (dyn FnMut(u64) + Send),
    rows: u64,
) -> Result<(), StoreError> {
    let mut found = BTreeMap::<&'static str, Tally>::new();
    let mut cursor = snapshot::Cursor::new(CopyFor::Move);
    let mut seen = 0;
    while let Some(batch) = cursor.next(to.line()).await? {
        seen += batch.len() as u64;
        let tally = found.entry(batch.table()).or_default();
        batch.rows().for_each(|row| tally.add(&batch::encode(row)));
        tell(rows + seen);
    }
    for (table, tally) in wanted {
        if found.get(table).map(Tally::hash) != Some(tally.hash()) {
            return Err(StoreError::Corrupt(format!("the rows of {table} did not arrive as they were")));
        }
    }
    Ok(())
}
