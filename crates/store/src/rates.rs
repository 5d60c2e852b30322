//! Rates: taken inside the transaction of the append that needs them, so that no two nodes can take the same room.

use std::collections::BTreeSet;

use adjutant_core::guard::rate::{Kept, take_all};

use crate::commit::Verdicts;
use crate::db::Tx;
use crate::prepare::Prepared;
use crate::statements::{HOLD_RATES, KEEP_RATES};
use crate::value::{Args, args};
use crate::{Store, StoreError};

impl Store {
    /// What is kept under a key: for telling somebody how long to wait. Nothing is taken.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn scheduled(&self, key: &str) -> Result<Option<u64>, StoreError> {
        let sql = sql!(self, memory => memory.scheduled(key));
        let row = sql.db.read_one("SELECT scheduled FROM rates WHERE key = $1", args![key]).await?;
        row.map(|mut row| row.take()).transpose()
    }
}

/// Takes what the appends need that have passed so far, in their order. An append whose calls do not all fit does not pass,
/// and takes nothing.
pub(crate) async fn take(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Result<(), StoreError> {
    let passed = |at: usize, verdicts: &Verdicts| verdicts[at].is_ok() && !batch[at].takings.is_empty();
    let takers: Vec<usize> = (0..batch.len()).filter(|at| passed(*at, verdicts)).collect();
    let takings = takers.iter().flat_map(|at| &batch[*at].takings);
    let keys: BTreeSet<&str> = takings.flat_map(|taking| &taking.takes).map(|take| take.key.as_str()).collect();
    if keys.is_empty() {
        return Ok(());
    }
    // Sorted by the set: every node holds keys in one order, so that two batches never wait for each other.
    let rows: Vec<Args> = keys.iter().map(|key| args![*key]).collect();
    let mut kept = Kept::new();
    for mut row in tx.rows_set(&HOLD_RATES, &rows.iter().collect::<Vec<_>>()).await? {
        kept.insert(row.take()?, row.take()?);
    }
    let before = kept.clone();
    for at in takers {
        match take_all(&kept, &batch[at].takings) {
            Ok(after) => kept = after,
            Err(refused) => verdicts[at] = Err(StoreError::UsedUp(refused)),
        }
    }
    let changed = kept.iter().filter(|(key, scheduled)| before.get(*key) != Some(*scheduled));
    let rows: Vec<Args> = changed.map(|(key, scheduled)| args![key, *scheduled]).collect();
    tx.run_set(&KEEP_RATES, &rows.iter().collect::<Vec<_>>()).await.map(drop)
}
