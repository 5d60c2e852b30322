//! Purses: changed inside the transaction of the append that needs it, so that no two nodes can spend the same money.

use std::collections::BTreeSet;

use adjutant_core::budget::{Purse, Purses, Spend, spend_all};
use adjutant_core::money::MicroUsd;

use crate::commit::Verdicts;
use crate::db::Tx;
use crate::prepare::Prepared;
use crate::statements::{HOLD_PURSES, KEEP_PURSES};
use crate::value::{Args, Row, args};
use crate::{Store, StoreError};

impl Store {
    /// What is in a purse; nothing where it was never used.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn purse(&self, key: &str) -> Result<Purse, StoreError> {
        let sql = sql!(self, memory => memory.purse(key));
        let row = sql.db.read_one("SELECT spent, raised, alerted FROM purses WHERE key = $1", args![key]).await?;
        row.map_or(Ok(Purse::default()), read)
    }
}

fn read(mut row: Row) -> Result<Purse, StoreError> {
    let amounts: [u64; 3] = [row.take()?, row.take()?, row.take()?];
    let [spent, raised, alerted] = amounts.map(MicroUsd);
    Ok(Purse { spent, raised, alerted })
}

/// Reads the purses that appends which have passed so far want to change, held until the transaction ends.
pub(crate) async fn hold(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &Verdicts) -> Result<Purses, StoreError> {
    let passed = batch.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_ok());
    held(tx, passed.flat_map(|(append, _)| &append.spends)).await
}

async fn held(tx: &mut Tx, spends: impl Iterator<Item = &Spend>) -> Result<Purses, StoreError> {
    // Sorted by the set: every node holds purses in one order, so that two batches never wait for each other.
    let keys: BTreeSet<&str> = spends.map(|spend| spend.purse.as_str()).collect();
    let mut purses = Purses::new();
    if keys.is_empty() {
        return Ok(purses);
    }
    let rows: Vec<Args> = keys.iter().map(|key| args![*key]).collect();
    for mut row in tx.rows_set(&HOLD_PURSES, &rows.iter().collect::<Vec<_>>()).await? {
        purses.insert(row.take()?, read(row)?);
    }
    Ok(purses)
}

/// Changes purses for something outside of runs.
pub(crate) async fn change(tx: &mut Tx, spends: &[Spend]) -> Result<(), StoreError> {
    let before = held(tx, spends.iter()).await?;
    let after = spend_all(&before, spends).map_err(StoreError::Overspent)?;
    write(tx, &before, &after).await
}

/// What is in the purses after the appends that have passed so far, in their order. An append whose money is not there does
/// not pass.
pub(crate) fn spend(held: &Purses, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Purses {
    let mut purses = held.clone();
    for (append, verdict) in batch.iter().zip(verdicts) {
        if verdict.is_ok() && !append.spends.is_empty() {
            match spend_all(&purses, &append.spends) {
                Ok(after) => purses = after,
                Err(refused) => *verdict = Err(StoreError::Overspent(refused)),
            }
        }
    }
    purses
}

/// Writes what has changed.
pub(crate) async fn keep(
    tx: &mut Tx,
    held: &Purses,
    batch: &[Box<Prepared>],
    verdicts: &mut Verdicts,
) -> Result<(), StoreError> {
    let purses = spend(held, batch, verdicts);
    write(tx, held, &purses).await
}

async fn write(tx: &mut Tx, held: &Purses, purses: &Purses) -> Result<(), StoreError> {
    let changed = purses.iter().filter(|(key, purse)| held.get(*key) != Some(*purse));
    let row = |key: &String, purse: &Purse| args![key, purse.spent.0, purse.raised.0, purse.alerted.0];
    let rows: Vec<Args> = changed.map(|(key, purse)| row(key, purse)).collect();
    tx.run_set(&KEEP_PURSES, &rows.iter().collect::<Vec<_>>()).await.map(drop)
}
