//! Opening a SQLite file: safe settings, one connection that writes, several that read. Holds no statements of the store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::Mutex;

use crate::db::{Db, Writing};
use crate::error::cannot_open;
use crate::{Durability, StoreError};

/// Older libraries have a race that silently damages a database with several connections.
const OLDEST: (u32, u32, u32) = (3, 51, 3);
/// Reads are short; more connections would only compete for the processor.
const READERS: u32 = 4;
/// Nobody else writes to the file; a wait this long means that something is badly wrong.
const BUSY: Duration = Duration::from_secs(10);
/// Pages of the write-ahead log before it is written back: 16 MiB, so that busy times are not spent copying.
const CHECKPOINT_PAGES: &str = "4000";
/// Prepared statements kept: every statement over a set has one for each size.
const STATEMENTS: usize = 256;
/// Kibibytes of page cache of the writing connection (negative is SQLite's way to say kibibytes).
const WRITER_CACHE: &str = "-16384";

pub(crate) async fn open(file: &Path, durability: Durability) -> Result<Db, StoreError> {
    touch(file)?;
    let options = SqliteConnectOptions::new()
        .filename(file)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match durability {
            Durability::Full => SqliteSynchronous::Full,
            Durability::Normal => SqliteSynchronous::Normal,
        })
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .statement_cache_capacity(STATEMENTS)
        .pragma("temp_store", "memory")
        .pragma("secure_delete", "fast")
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .disable_statement_logging();
    let mut writer =
        SqliteConnection::connect_with(&options.clone().pragma("cache_size", WRITER_CACHE)).await.map_err(opening)?;
    let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut writer).await?;
    if !recent(&version) {
        return Err(StoreError::other(format!("SQLite {version} is too old: 3.51.3 or later is needed")));
    }
    // A connection to a file does not go stale, so none is tested or replaced.
    let readers = SqlitePoolOptions::new()
        .max_connections(READERS)
        .min_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .test_before_acquire(false)
        .connect_with(options.pragma("query_only", "on"))
        .await?;
    Ok(Db::Sqlite { writer: Arc::new(Mutex::new(Writing::new(writer))), readers })
}

/// The file itself could be opened a moment ago: if SQLite cannot, it may not make the files beside it.
fn opening(error: sqlx::Error) -> StoreError {
    let error = StoreError::from(error);
    match error {
        StoreError::Unavailable(source) if cannot_open(&source) => StoreError::ReadOnly(source),
        _ => error,
    }
}

/// Makes the file, readable by its owner only; SQLite gives the files beside it the same mode. Also tells a directory that
/// cannot be written from a database that cannot be opened.
fn touch(file: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.open(file).map(drop).map_err(StoreError::file)
}

fn recent(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let mut next = || parts.next().unwrap_or(0);
    (next(), next(), next()) >= OLDEST
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::args;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(recent("3.51.3") && recent("3.100.0") && recent("4.0.0"));
        assert!(!recent("3.51.2") && !recent("3.6.23") && !recent("nonsense"));
    }

    #[tokio::test]
    async fn a_full_disk_and_a_connection_that_only_reads_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("a.db"), Durability::Full).await.unwrap();
        db.write("CREATE TABLE t (a)", vec![]).await.unwrap();
        let read_only = db.read("INSERT INTO t VALUES ($1)", args![1_i64]).await;
        assert!(matches!(read_only, Err(StoreError::ReadOnly(_))), "{read_only:?}");

        // SQLite's own limit on the file stands in for the end of a disk.
        db.write("PRAGMA max_page_count = 4", vec![]).await.unwrap();
        let full = db.write("INSERT INTO t VALUES ($1)", args![vec![0_u8; 100_000]]).await;
        assert!(matches!(full, Err(StoreError::Full(_))), "{full:?}");
        db.write("INSERT INTO t VALUES ($1)", args![1_i64]).await.unwrap();
        db.close().await;
    }

    #[tokio::test]
    async fn a_transaction_whose_owner_went_away_never_happened() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(&dir.path().join("a.db"), Durability::Full).await.unwrap();
        db.write("CREATE TABLE t (a)", vec![]).await.unwrap();
        let mut gone = db.begin().await.unwrap();
        gone.run("INSERT INTO t VALUES (1)", vec![]).await.unwrap();
        drop(gone);
        db.write("INSERT INTO t VALUES (2)", vec![]).await.unwrap();
        let rows = db.read("SELECT a FROM t", vec![]).await.unwrap();
        let values: Vec<i64> = rows.into_iter().map(|mut row| row.take().unwrap()).collect();
        assert_eq!(values, [2]);
        db.close().await;
    }
}
