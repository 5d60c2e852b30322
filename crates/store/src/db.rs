//! The narrow door to both databases: a statement, its values, its rows. Holds no SQL of its own beyond transactions.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits::LEASE_RENEWAL;
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::StoreError;
use crate::kept::Writes;
use crate::lent::{Lent, within};
use crate::lite::{self, Broken, Writing};
use crate::reads::{Counter, Reads};
use crate::set::{SetSql, transpose};
use crate::sqlite::Readers;
use crate::value::{Arg, Args, Row};

/// How long PostgreSQL may take for a statement that looks at more than a few rows: of a large instance that takes minutes.
const SCAN: Duration = Duration::from_secs(15 * 60);

/// Statement text: constant, or put together from constant pieces. Never holds a value.
pub(crate) type Text = Cow<'static, str>;

/// Which SQL is spoken, where the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// The connections to a database.
pub(crate) enum Db {
    /// One connection writes, the others only read.
    Sqlite { writer: Arc<Mutex<Writing>>, readers: Arc<Readers>, broken: Broken },
    /// One connection appends, one tells other nodes of it, one keeps this node alive, the others serve everything else.
    Postgres { writer: sqlx::PgPool, teller: sqlx::PgPool, lease: sqlx::PgPool, pool: sqlx::PgPool, reads: Counter },
}

/// A transaction; dropped without [`Tx::commit`] it never happened.
pub(crate) enum Tx {
    Sqlite(OwnedMutexGuard<Writing>, Disk),
    Postgres(Lent),
}

/// Where a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disk {
    /// On the caller's thread, which is there for nothing else.
    Here,
    /// On a thread that may wait.
    Apart,
}

/// A statement with its values, for PostgreSQL.
macro_rules! query {
    ($sql:expr, $args:expr) => {{
        let mut query = sqlx::query(sqlx::AssertSqlSafe($sql));
        for arg in $args {
            query = match arg {
                $crate::value::Arg::Int(value) => query.bind(value),
                $crate::value::Arg::Text(value) => query.bind(value),
                $crate::value::Arg::Bytes(value) => query.bind(value),
            };
        }
        query
    }};
}
pub(crate) use query;

impl Db {
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite { .. } => Dialect::Sqlite,
            Self::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// How much was read so far.
    pub(crate) fn reads(&self) -> Reads {
        self.counter().read()
    }

    fn counter(&self) -> &Counter {
        match self {
            Self::Sqlite { readers, .. } => &readers.reads,
            Self::Postgres { reads, .. } => reads,
        }
    }

    fn counted(&self, rows: Vec<Row>) -> Vec<Row> {
        self.counter().count(&rows);
        rows
    }

    /// Rows that are found by their keys, read outside any transaction.
    pub(crate) async fn read(&self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        let rows = match self {
            Self::Sqlite { readers, .. } => readers.with(|connection| lite::rows(connection, &sql, &args))?,
            Self::Postgres { pool, .. } => Lent::from(pool).await?.fetch(query!(sql, args)).await?,
        };
        Ok(self.counted(rows))
    }

    /// As [`Db::read`], for what only people change. On SQLite, where nobody else writes, it is read once and kept until something is
    /// set up; whatever changes such a table goes through [`Db::write`], [`Db::begin`] or an append that carries something out.
    pub(crate) async fn read_kept(&self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let Self::Sqlite { readers, .. } = self else { return self.read(sql, args).await };
        let question = (sql.into(), args);
        let moment = match readers.kept.get(&question) {
            Ok(answer) => return Ok(answer),
            Err(moment) => moment,
        };
        let rows = readers.with(|connection| lite::rows(connection, &question.0, &question.1))?;
        readers.kept.keep(question, &rows, moment);
        Ok(self.counted(rows))
    }

    /// As [`Db::read`], for what looks at more than a few rows: others are not held up meanwhile.
    pub(crate) async fn scan(&self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        let rows = match self {
            Self::Sqlite { readers, .. } => {
                let readers = Arc::clone(readers);
                apart(move || readers.with(|connection| lite::rows(connection, &sql, &args))).await?
            }
            Self::Postgres { pool, .. } => Lent::from(pool).await?.fetch_within(SCAN, query!(sql, args)).await?,
        };
        Ok(self.counted(rows))
    }

    /// The only row, if there is one.
    pub(crate) async fn read_one(&self, sql: impl Into<Text>, args: Args) -> Result<Option<Row>, StoreError> {
        Ok(self.read(sql, args).await?.pop())
    }

    /// Rows that belong to a set of keys, read outside any transaction.
    pub(crate) async fn read_set(&self, sql: &'static SetSql, rows: &[&Args]) -> Result<Vec<Row>, StoreError> {
        let text = sql.text(self.dialect());
        let found = match self {
            _ if rows.is_empty() => return Ok(Vec::new()),
            Self::Sqlite { readers, .. } => readers.with(|connection| lite::rows_each(connection, text, rows))?,
            Self::Postgres { pool, .. } => {
                Lent::from(pool).await?.fetch(transpose!(sqlx::query(text), sql, rows)).await?
            }
        };
        Ok(self.counted(found))
    }

    /// One statement in a transaction of its own; says how many rows it touched.
    pub(crate) async fn write(&self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        self.write_one(sql.into(), args, Writes::Anything).await
    }

    /// As [`Db::write`], for tables that no [`Db::read_kept`] looks at.
    pub(crate) async fn write_work(&self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        self.write_one(sql.into(), args, Writes::Work).await
    }

    async fn write_one(&self, sql: Text, args: Args, writes: Writes) -> Result<u64, StoreError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => {
                let mut writing = Arc::clone(writer).lock_owned().await;
                apart(move || writing.write(&sql, &args, writes)).await?
            }
            Self::Postgres { pool, .. } => Lent::from(pool).await?.execute(query!(sql, args)).await?,
        })
    }

    /// As [`Db::write`], for what keeps this node alive: however busy the others are, it waits for none of them, and for the
    /// server no longer than it would be of use.
    pub(crate) async fn write_lease(&self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let Self::Postgres { lease, .. } = self else { return self.write_work(sql, args).await };
        let sql = sql.into();
        // A new connection may take longer than that where the machine is busy; given up each time, there would never be one.
        let mut lent = Lent::from(lease).await?;
        within(LEASE_RENEWAL, lent.execute(query!(sql, args))).await
    }

    /// Begins a transaction that will write.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        self.begin_for(Writes::Anything).await
    }

    /// As [`Db::begin`], for tables that no [`Db::read_kept`] looks at.
    pub(crate) async fn begin_work(&self) -> Result<Tx, StoreError> {
        self.begin_for(Writes::Work).await
    }

    async fn begin_for(&self, writes: Writes) -> Result<Tx, StoreError> {
        match self {
            Self::Sqlite { writer, .. } => begin(writer, Disk::Apart, writes).await,
            Self::Postgres { pool, .. } => Ok(Tx::Postgres(Lent::begin(pool).await?)),
        }
    }

    /// Begins a transaction of the writer task.
    pub(crate) async fn begin_append(&self, writes: Writes) -> Result<Tx, StoreError> {
        match self {
            Self::Sqlite { writer, .. } => begin(writer, Disk::Here, writes).await,
            Self::Postgres { writer, .. } => Ok(Tx::Postgres(Lent::begin(writer).await?)),
        }
    }

    /// Writes a copy of a SQLite database beside its file, in place of one of that name. PostgreSQL has its own ways.
    pub(crate) async fn keep_copy(&self, name: &str) -> Result<(), StoreError> {
        let Self::Sqlite { writer, readers, .. } = self else { return Ok(()) };
        let mut writing = Arc::clone(writer).lock_owned().await;
        let (part, copy) = (readers.beside("part"), readers.beside(name));
        apart(move || {
            let _ = std::fs::remove_file(&part);
            crate::sqlite::touch(&part)?;
            let path = part.to_string_lossy().into_owned();
            lite::changed(writing.ready()?, "VACUUM INTO $1", &[Arg::from(path)])?;
            std::fs::File::open(&part).and_then(|file| file.sync_all()).map_err(StoreError::file)?;
            std::fs::rename(&part, &copy).map_err(StoreError::file)
        })
        .await
    }

    /// Writes the log of SQLite back into its file and empties it, as far as nobody reads from it just now. PostgreSQL sees to
    /// its own.
    pub(crate) async fn write_back(&self) -> Result<(), StoreError> {
        let Self::Sqlite { writer, .. } = self else { return Ok(()) };
        let mut writing = Arc::clone(writer).lock_owned().await;
        apart(move || {
            let written = lite::rows(writing.ready()?, "PRAGMA wal_checkpoint(TRUNCATE)", &[]).map(drop);
            writing.note(written)
        })
        .await
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers, .. } => {
                let (mut writing, readers) = (Arc::clone(writer).lock_owned().await, Arc::clone(readers));
                let closed = apart(move || {
                    readers.close();
                    writing.close();
                    Ok(())
                });
                if let Err(error) = closed.await {
                    tracing::warn!(%error, "the database was not closed cleanly");
                }
            }
            Self::Postgres { writer, teller, lease, pool, .. } => {
                writer.close().await;
                teller.close().await;
                lease.close().await;
                pool.close().await;
            }
        }
    }
}

async fn begin(writer: &Arc<Mutex<Writing>>, disk: Disk, writes: Writes) -> Result<Tx, StoreError> {
    let mut writing = Arc::clone(writer).lock_owned().await;
    writing.begin(writes)?;
    Ok(Tx::Sqlite(writing, disk))
}

/// Does something that may take a while on a thread that may wait. It happens even when the caller stops waiting.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| StoreError::unavailable("the program is ending"))?
}

impl Tx {
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(..) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    /// Lets go of what is kept of a SQLite file, where it turned out to be wrong.
    pub(crate) fn forget_kept(&mut self) {
        match self {
            Self::Sqlite(tx, _) => tx.forget_kept(),
            Self::Postgres(_) => {}
        }
    }

    pub(crate) async fn rows(&mut self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(tx, _) => lite::rows(tx.connection()?, &sql, &args),
            Self::Postgres(tx) => tx.fetch(query!(sql, args)).await,
        }
    }

    pub(crate) async fn row(&mut self, sql: impl Into<Text>, args: Args) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, args).await?.pop())
    }

    pub(crate) async fn run(&mut self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(tx, _) => lite::changed(tx.connection()?, &sql, &args),
            Self::Postgres(tx) => tx.execute(query!(sql, args)).await,
        }
    }

    /// From here to its end, a transaction on SQLite overwrites what it frees: a file keeps what its unused pages hold.
    pub(crate) async fn overwrite(&mut self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx, _) => tx.overwrite(),
            Self::Postgres(_) => Ok(()),
        }
    }

    /// Waits in PostgreSQL until others are done, however long they take.
    pub(crate) async fn queue(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(..) => {}
            Self::Postgres(tx) => tx.script(sql).await?,
        }
        Ok(())
    }

    /// Several statements without values: a migration.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx, _) => tx.connection()?.execute_batch(sql)?,
            // However long it takes.
            Self::Postgres(tx) => tx.script(sql).await?,
        }
        Ok(())
    }

    /// A statement over a set of rows, if there are any; says how many rows it touched.
    pub(crate) async fn run_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<u64, StoreError> {
        let text = sql.text(self.dialect());
        match self {
            _ if rows.is_empty() => Ok(0),
            Self::Sqlite(tx, _) => lite::changed_each(tx.connection()?, text, rows),
            Self::Postgres(tx) => tx.execute(transpose!(sqlx::query(text), sql, rows)).await,
        }
    }

    /// A statement over a set of rows, and the rows it returns.
    pub(crate) async fn rows_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<Vec<Row>, StoreError> {
        let text = sql.text(self.dialect());
        match self {
            _ if rows.is_empty() => Ok(Vec::new()),
            Self::Sqlite(tx, _) => lite::rows_each(tx.connection()?, text, rows),
            Self::Postgres(tx) => tx.fetch(transpose!(sqlx::query(text), sql, rows)).await,
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(mut tx, Disk::Here) => tx.end("COMMIT"),
            Self::Sqlite(mut tx, Disk::Apart) => apart(move || tx.end("COMMIT")).await,
            Self::Postgres(tx) => tx.end("COMMIT").await,
        }
    }

    pub(crate) async fn roll_back(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(mut tx, _) => tx.end("ROLLBACK"),
            Self::Postgres(tx) => tx.end("ROLLBACK").await,
        }
    }
}
