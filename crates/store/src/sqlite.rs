//! Opening a SQLite file: safe settings, one connection that writes, several that read. Holds no statements of the store.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;

use crate::db::Db;
use crate::error::{cannot_open, unconfirmed};
use crate::kept::Kept;
use crate::lite::{Broken, Writing};
use crate::reads::Counter;
use crate::{Durability, StoreError};

/// Older libraries have a race that silently damages a database with several connections.
const OLDEST: (u32, u32, u32) = (3, 51, 3);
/// Connections for reading that are kept. Reads are short; more would only compete for the processor.
const READERS: usize = 4;
/// Nobody else writes to the file; a wait this long means that something is badly wrong.
pub(crate) const BUSY: Duration = Duration::from_secs(10);
/// Pages of the write-ahead log before it is written back: 16 MiB, so that busy times are not spent copying.
const CHECKPOINT_PAGES: c_int = 4000;
/// Prepared statements that a connection keeps: more than the store has.
const STATEMENTS: usize = 256;
/// Kibibytes of page cache of a connection (negative is SQLite's way to say kibibytes). What is busy is the end of a few
/// trees; the rest is in the system's own cache.
const WRITER_CACHE: i64 = -4096;
const READER_CACHE: i64 = -1024;

/// Opens the file. What is done here waits for the disk, so it has a thread of its own.
pub(crate) async fn open(file: &Path, durability: Durability) -> Result<Db, StoreError> {
    let file = file.to_owned();
    let opening = tokio::task::spawn_blocking(move || open_both(file, durability));
    let (writer, readers) = opening.await.map_err(|_| StoreError::other("opening the database was given up"))??;
    let broken = Broken::default();
    let writer = Writing::new(writer, Arc::clone(&broken), Arc::clone(&readers.kept));
    Ok(Db::Sqlite { writer: Arc::new(tokio::sync::Mutex::new(writer)), readers: Arc::new(readers), broken })
}

impl Db {
    /// Whether this process has given up writing to a SQLite file. Of a server it says nothing.
    pub(crate) fn is_read_only(&self) -> bool {
        match self {
            Self::Sqlite { broken, .. } => broken.get().is_some(),
            Self::Postgres { .. } => false,
        }
    }
}

fn open_both(file: PathBuf, durability: Durability) -> Result<(Connection, Readers), StoreError> {
    touch(&file)?;
    let writer = connect(&file, durability).map_err(opening)?;
    writer.pragma_update(None, "cache_size", WRITER_CACHE)?;
    if !recent(rusqlite::version()) {
        return Err(StoreError::other(format!("SQLite {} is too old: 3.51.3 or later is needed", rusqlite::version())));
    }
    let idle = Mutex::new(Some(Vec::new()));
    let readers = Readers { file, durability, idle, kept: Arc::default(), reads: Counter::default() };
    readers.with(|_| Ok(()))?;
    Ok((writer, readers))
}

pub(crate) fn connect(file: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Without it a statement with a value after LIMIT would be prepared anew each time it is used.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(
        None,
        "synchronous",
        match durability {
            Durability::Full => "full",
            Durability::Normal => "normal",
        },
    )?;
    connection.pragma_update(None, "foreign_keys", "on")?;
    connection.pragma_update(None, "temp_store", "memory")?;
    connection.pragma_update(None, "secure_delete", "fast")?;
    connection.wal_hook(Some(write_back));
    Ok(connection)
}

/// Writes the log back once it is long. SQLite would do so by itself, and keep it to itself when the disk does not confirm that.
fn write_back(log: &Wal, pages: c_int) -> rusqlite::Result<()> {
    if pages < CHECKPOINT_PAGES {
        return Ok(());
    }
    match log.checkpoint() {
        Err(error) if unconfirmed(&error) => Err(error),
        // Somebody reads, or there is no room: what is committed is safe in the log, which grows until it can be written back.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Connections that only read. Nobody waits for one: whoever finds none opens another, so there are at most as many as
/// threads that read at one time.
pub(crate) struct Readers {
    file: PathBuf,
    durability: Durability,
    /// Those nobody uses; none once the store is closed.
    idle: Mutex<Option<Vec<Connection>>>,
    /// Answers that count until something is set up.
    pub(crate) kept: Arc<Kept>,
    /// What was read by them.
    pub(crate) reads: Counter,
}

impl Readers {
    /// A file beside the database, of its name and one more word.
    pub(crate) fn beside(&self, word: &str) -> PathBuf {
        let mut name = self.file.clone().into_os_string();
        name.push(format!(".{word}"));
        name.into()
    }

    /// Reads on the caller's thread.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection = match self.idle().as_mut() {
            None => return Err(StoreError::unavailable("the store is closed")),
            Some(idle) => idle.pop(),
        };
        let connection = match connection {
            Some(connection) => connection,
            None => {
                let connection = connect(&self.file, self.durability)?;
                connection.pragma_update(None, "query_only", "on")?;
                connection.pragma_update(None, "cache_size", READER_CACHE)?;
                connection
            }
        };
        let answer = read(&connection);
        if let Some(idle) = self.idle().as_mut().filter(|idle| idle.len() < READERS) {
            idle.push(connection);
        }
        answer
    }

    /// Closes what nobody uses, and lets nobody read any more.
    pub(crate) fn close(&self) {
        self.idle().take();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Option<Vec<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file itself could be opened a moment ago: if SQLite cannot, it may not make the files beside it.
fn opening(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(source) if cannot_open(&source) => StoreError::ReadOnly(source),
        _ => error,
    }
}

/// Makes the file, readable by its owner only; SQLite gives the files beside it the same mode. Also tells a directory that
/// cannot be written from a database that cannot be opened.
pub(crate) fn touch(file: &Path) -> Result<(), StoreError> {
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
    use crate::kept::Writes;
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
    async fn nothing_more_is_written_once_the_disk_did_not_confirm_a_write() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        let db = open(&file, Durability::Full).await.unwrap();
        db.write("CREATE TABLE t (a)", vec![]).await.unwrap();
        let Db::Sqlite { writer, .. } = &db else { unreachable!("it was opened as SQLite") };
        // What SQLite says when the system refuses to write its pages down (SQLITE_IOERR_FSYNC).
        let refused = rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(1034), None);
        assert!(!db.is_read_only());
        assert!(writer.lock().await.note::<()>(Err(refused.into())).is_err());
        assert!(db.is_read_only(), "whoever asks is told");
        assert!(db.write("INSERT INTO t VALUES ($1)", args![1_i64]).await.is_err());
        assert!(db.begin().await.is_err() && db.begin_append(Writes::Work).await.is_err());
        assert_eq!(db.read("SELECT a FROM t", vec![]).await.unwrap().len(), 0, "reading goes on");
        db.close().await;
        let again = open(&file, Durability::Full).await.unwrap();
        assert_eq!(again.write("INSERT INTO t VALUES ($1)", args![1_i64]).await.unwrap(), 1);
        again.close().await;
    }

    #[tokio::test]
    async fn a_log_that_grew_long_is_written_back_into_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        let db = open(&file, Durability::Full).await.unwrap();
        db.write("CREATE TABLE t (a)", vec![]).await.unwrap();
        let size = || std::fs::metadata(&file).unwrap().len();
        let before = size();
        for _ in 0..20 {
            db.write("INSERT INTO t VALUES ($1)", args![vec![7_u8; 1024 * 1024]]).await.unwrap();
        }
        assert!(size() > before + 15 * 1024 * 1024, "{} bytes", size());
        db.close().await;
    }

    #[test]
    fn only_what_the_disk_did_not_confirm_makes_a_commit_fail_that_is_in_the_log() {
        let said = |code| rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        assert!(unconfirmed(&said(1034)) && unconfirmed(&said(1290)));
        for passing in [5, 13, 778, 266] {
            assert!(!unconfirmed(&said(passing)), "{passing}");
        }
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
