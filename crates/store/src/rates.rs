//! Rates: taken inside the transaction of the append that needs them, so that no two nodes can take the same room.

use std::collections::BTreeSet;
use std::time::Duration;

use adjutant_core::guard::rate::{Kept, Taking, take_all};
use adjutant_core::time::Time;

use crate::commit::Verdicts;
use crate::db::{Dialect, Tx};
use crate::prepare::Prepared;
use crate::queue::now;
use crate::statements::{HOLD_RATES, KEEP_RATES};
use crate::value::{Args, Row, args};
use crate::{Store, StoreError};

impl Store {
    /// How long to wait until a call would be taken, if it would not be now. Nothing is taken.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn wait_for(&self, taking: &Taking) -> Result<Option<Duration>, StoreError> {
        let sql = sql!(self, memory => memory.wait_for(taking));
        let select = format!("SELECT key, scheduled, {} FROM rates WHERE key = $1", clock(sql.db.dialect()));
        let mut held = Held::default();
        for take in &taking.takes {
            if let Some(row) = sql.db.read_one(select.clone(), args![take.key.as_str()]).await? {
                held.add(row)?;
            }
        }
        Ok(take_all(&held.kept, std::slice::from_ref(taking), held.clock).err().map(|refused| refused[0].wait))
    }
}

/// The clock that rates go by, in milliseconds. Nodes that share a database share its clock: one whose own is wrong neither shuts
/// others out nor gets more than they do. A database of one process has none but that process's.
pub(crate) const fn clock(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "NULL",
        Dialect::Postgres => now(dialect),
    }
}

/// What is kept under the keys that somebody takes from, and when it was looked at.
#[derive(Default)]
struct Held {
    kept: Kept,
    clock: Option<Time>,
}

impl Held {
    fn add(&mut self, mut row: Row) -> Result<(), StoreError> {
        self.kept.insert(row.take()?, row.take()?);
        self.clock = row.take()?;
        Ok(())
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
    let mut held = Held::default();
    for row in tx.rows_set(&HOLD_RATES, &rows.iter().collect::<Vec<_>>()).await? {
        held.add(row)?;
    }
    let Held { mut kept, clock } = held;
    let before = kept.clone();
    for at in takers {
        match take_all(&kept, &batch[at].takings, clock) {
            Ok(after) => kept = after,
            Err(refused) => verdicts[at] = Err(StoreError::UsedUp(refused)),
        }
    }
    let changed = kept.iter().filter(|(key, scheduled)| before.get(*key) != Some(*scheduled));
    let rows: Vec<Args> = changed.map(|(key, scheduled)| args![key, *scheduled]).collect();
    tx.run_set(&KEEP_RATES, &rows.iter().collect::<Vec<_>>()).await.map(drop)
}
