//! That no table is forgotten, and that a copy which was cut off goes on or begins again, and is never taken for a whole one.

use std::path::Path;

use super::tables::{LEFT_OUT, TABLES};
use super::*;
use crate::migrate::KNOWN;
use crate::{Durability, MasterKey, Sealing, Store};

#[test]
fn every_table_is_copied_or_left_out_on_purpose() {
    let mut ours: Vec<_> = TABLES.iter().map(|table| table.name).chain(LEFT_OUT.iter().copied()).collect();
    ours.sort_unstable();
    for sql in [
        include_str!("../../migrations/sqlite/0001_ground.sql"),
        include_str!("../../migrations/postgres/0001_ground.sql"),
    ] {
        let made = sql.lines().filter_map(|line| {
            line.strip_prefix("CREATE TABLE ").or_else(|| line.strip_prefix("CREATE VIRTUAL TABLE "))?.split(' ').next()
        });
        let mut made: Vec<_> = made.collect();
        if !made.contains(&"files_text") {
            made.push("files_text");
        }
        made.sort_unstable();
        assert_eq!(made, ours);
    }
}

async fn open(file: &Path) -> Result<Store, StoreError> {
    Store::open_sqlite(file, Durability::Normal, Sealing::On(MasterKey::new([7; 32]))).await
}

/// A database with more rows than are read at a time.
async fn filled(file: &Path) -> Store {
    let store = open(file).await.unwrap();
    for number in 0..700 {
        store.meta_set(&format!("key {number:03}"), b"value").await.unwrap();
    }
    store
}

#[tokio::test]
async fn a_copy_that_was_cut_off_goes_on_and_is_not_opened_before_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from.db"), dir.path().join("to.db"));
    let store = filled(&from).await;
    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Move).await.unwrap();
    let mut target = Target::sqlite(&to, KNOWN).await.unwrap();
    let mut tally = (String::new(), Tally::default());
    for _ in 0..4 {
        let batch = snapshot.next().await.unwrap().unwrap();
        if tally.0 != batch.table() {
            tally = (batch.table().to_owned(), Tally::default());
        }
        batch.rows().for_each(|row| tally.1.add(&batch::encode(row)));
        target.put_marked(&batch, tally.1.rows, &tally.1.hash()).await.unwrap();
    }
    assert_eq!(tally.0, "instance", "it was cut off within a table");
    drop(target);
    let refused = open(&to).await.err();
    assert!(matches!(refused, Some(StoreError::Conflict(_))), "{refused:?}");
    assert!(matches!(Snapshot::of_sqlite(&to, CopyFor::Move).await.err(), Some(StoreError::Conflict(_))));

    let mut target = Target::sqlite(&to, KNOWN).await.unwrap();
    assert!(target.is_resumed());
    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Move).await.unwrap();
    let wanted = snapshot.count().await.unwrap();
    let copied = copy(&mut snapshot, &mut target, &mut |_| ()).await.unwrap();
    assert_eq!(copied, Copied::Whole { rows: wanted });
    target.finish().await.unwrap();
    let moved = open(&to).await.unwrap();
    assert_eq!(moved.meta_get("key 699").await.unwrap().as_deref(), Some(b"value".as_slice()));
    moved.close().await;
    store.close().await;
    let filled = Target::sqlite(&to, KNOWN).await.err();
    assert!(matches!(filled, Some(StoreError::Conflict(_))), "{filled:?}");
}

#[tokio::test]
async fn what_changed_since_a_copy_was_cut_off_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("from.db"), dir.path().join("to.db"));
    let store = filled(&from).await;
    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Move).await.unwrap();
    let mut target = Target::sqlite(&to, KNOWN).await.unwrap();
    copy(&mut snapshot, &mut target, &mut |_| ()).await.unwrap();
    drop((snapshot, target));
    store.meta_set("key 003", b"another").await.unwrap();

    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Move).await.unwrap();
    let mut target = Target::sqlite(&to, KNOWN).await.unwrap();
    assert_eq!(copy(&mut snapshot, &mut target, &mut |_| ()).await.unwrap(), Copied::Outdated);
    target.discard().await.unwrap();
    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Move).await.unwrap();
    let mut target = Target::sqlite(&to, KNOWN).await.unwrap();
    assert!(!target.is_resumed());
    assert!(matches!(copy(&mut snapshot, &mut target, &mut |_| ()).await.unwrap(), Copied::Whole { .. }));
    target.finish().await.unwrap();
    assert_eq!(open(&to).await.unwrap().meta_get("key 003").await.unwrap().as_deref(), Some(b"another".as_slice()));
    store.close().await;
}

#[tokio::test]
async fn a_snapshot_stays_as_it_was_while_others_write() {
    let dir = tempfile::tempdir().unwrap();
    let from = dir.path().join("from.db");
    let store = filled(&from).await;
    let mut snapshot = Snapshot::of_sqlite(&from, CopyFor::Backup).await.unwrap();
    let before = snapshot.count().await.unwrap();
    store.meta_set("key 999", b"later").await.unwrap();
    let mut rows = 0;
    while let Some(batch) = snapshot.next().await.unwrap() {
        rows += batch.len() as u64;
    }
    assert_eq!(rows, before);
    store.close().await;
}
