//! The narrow door to both databases: a statement, its values, its rows. Holds no SQL of its own beyond transactions.

use std::borrow::Cow;
use std::sync::Arc;

use sqlx::{
    AssertSqlSafe, Column as _, Postgres, Row as _, SqliteConnection, Transaction, TypeInfo as _, ValueRef as _,
};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::StoreError;
use crate::set::{SetSql, listed, pieces, transpose};
use crate::value::{Arg, Args, Row, Value};

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
    Sqlite { writer: Arc<Mutex<Writing>>, readers: sqlx::SqlitePool },
    /// One connection appends, the others serve everything else.
    Postgres { writer: sqlx::PgPool, pool: sqlx::PgPool },
}

/// The one connection that writes to a SQLite file. Behind a lock and not in a pool: a pool asks a connection whether it is
/// well after each use, and that would cost every commit two changes of threads.
pub(crate) struct Writing {
    connection: Option<SqliteConnection>,
    /// A transaction was begun and not ended: its owner went away.
    open: bool,
}

impl Writing {
    pub(crate) const fn new(connection: SqliteConnection) -> Self {
        Self { connection: Some(connection), open: false }
    }

    fn connection(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        self.connection.as_mut().ok_or_else(|| sqlx::Error::PoolClosed.into())
    }

    /// Ends what somebody left open.
    async fn ready(&mut self) -> Result<&mut SqliteConnection, StoreError> {
        if self.open {
            // SQLite may have ended it by itself; then there is nothing to roll back.
            let _ = sqlx::query("ROLLBACK").execute(self.connection()?).await;
            self.open = false;
        }
        self.connection()
    }

    async fn begin(&mut self) -> Result<(), StoreError> {
        self.ready().await?;
        // Set first: whoever goes away while it begins leaves it to be ended by the next.
        self.open = true;
        // A transaction that turns into a writer halfway could find that it read something old.
        sqlx::query("BEGIN IMMEDIATE").execute(self.connection()?).await?;
        Ok(())
    }

    async fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        sqlx::query(how).execute(self.connection()?).await?;
        self.open = false;
        Ok(())
    }
}

/// A transaction; dropped without [`Tx::commit`] it never happened.
pub(crate) enum Tx {
    Sqlite(OwnedMutexGuard<Writing>),
    Postgres(Transaction<'static, Postgres>),
}

macro_rules! query {
    ($sql:expr, $args:expr) => {{
        let mut query = sqlx::query(AssertSqlSafe($sql));
        for arg in $args {
            query = match arg {
                Arg::Int(value) => query.bind(value),
                Arg::Text(value) => query.bind(value),
                Arg::Bytes(value) => query.bind(value),
            };
        }
        query
    }};
}

impl Db {
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite { .. } => Dialect::Sqlite,
            Self::Postgres { .. } => Dialect::Postgres,
        }
    }

    /// Rows, read outside any transaction.
    pub(crate) async fn read(&self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite { readers, .. } => sqlite_rows(&query!(sql, args).fetch_all(readers).await?),
            Self::Postgres { pool, .. } => postgres_rows(&query!(sql, args).fetch_all(pool).await?),
        }
    }

    /// The only row, if there is one.
    pub(crate) async fn read_one(&self, sql: impl Into<Text>, args: Args) -> Result<Option<Row>, StoreError> {
        Ok(self.read(sql, args).await?.pop())
    }

    /// Rows that belong to a set of keys, read outside any transaction.
    pub(crate) async fn read_set(&self, sql: &'static SetSql, rows: &[&Args]) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::new();
        for rows in pieces(self.dialect(), rows) {
            let query = AssertSqlSafe(sql.text(self.dialect(), rows.len()));
            found.extend(match self {
                Self::Sqlite { readers, .. } => {
                    sqlite_rows(&listed!(sqlx::query(query), rows).fetch_all(readers).await?)?
                }
                Self::Postgres { pool, .. } => {
                    postgres_rows(&transpose!(sqlx::query(query), sql, rows).fetch_all(pool).await?)?
                }
            });
        }
        Ok(found)
    }

    /// One statement in a transaction of its own; says how many rows it touched.
    pub(crate) async fn write(&self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self {
            Self::Sqlite { writer, .. } => {
                let mut writing = writer.lock().await;
                query!(sql, args).execute(writing.ready().await?).await?.rows_affected()
            }
            Self::Postgres { pool, .. } => query!(sql, args).execute(pool).await?.rows_affected(),
        })
    }

    /// Begins a transaction that will write.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            Self::Sqlite { writer, .. } => {
                let mut writing = Arc::clone(writer).lock_owned().await;
                writing.begin().await?;
                Tx::Sqlite(writing)
            }
            Self::Postgres { pool, .. } => Tx::Postgres(pool.begin().await?),
        })
    }

    /// Begins a transaction of the writer task.
    pub(crate) async fn begin_append(&self) -> Result<Tx, StoreError> {
        match self {
            Self::Sqlite { .. } => self.begin().await,
            Self::Postgres { writer, .. } => Ok(Tx::Postgres(writer.begin().await?)),
        }
    }

    /// Closes every connection.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite { writer, readers } => {
                readers.close().await;
                // The last connection to close writes the log back into the database file.
                if let Some(connection) = writer.lock().await.connection.take()
                    && let Err(error) = sqlx::Connection::close(connection).await
                {
                    tracing::warn!(%error, "the database was not closed cleanly");
                }
            }
            Self::Postgres { writer, pool } => {
                writer.close().await;
                pool.close().await;
            }
        }
    }
}

impl Tx {
    pub(crate) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    pub(crate) async fn rows(&mut self, sql: impl Into<Text>, args: Args) -> Result<Vec<Row>, StoreError> {
        let sql = sql.into();
        match self {
            Self::Sqlite(tx) => sqlite_rows(&query!(sql, args).fetch_all(tx.connection()?).await?),
            Self::Postgres(tx) => postgres_rows(&query!(sql, args).fetch_all(&mut **tx).await?),
        }
    }

    pub(crate) async fn row(&mut self, sql: impl Into<Text>, args: Args) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, args).await?.pop())
    }

    pub(crate) async fn run(&mut self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self {
            Self::Sqlite(tx) => query!(sql, args).execute(tx.connection()?).await?.rows_affected(),
            Self::Postgres(tx) => query!(sql, args).execute(&mut **tx).await?.rows_affected(),
        })
    }

    /// Several statements without values: a migration.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx) => sqlx::raw_sql(sql).execute(tx.connection()?).await.map(drop)?,
            Self::Postgres(tx) => sqlx::raw_sql(sql).execute(&mut **tx).await.map(drop)?,
        }
        Ok(())
    }

    /// One statement over a set of rows, if there are any; says how many rows it touched.
    pub(crate) async fn run_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<u64, StoreError> {
        let mut touched = 0;
        for rows in pieces(self.dialect(), rows) {
            let query = AssertSqlSafe(sql.text(self.dialect(), rows.len()));
            touched += match self {
                Self::Sqlite(tx) => listed!(sqlx::query(query), rows).execute(tx.connection()?).await?.rows_affected(),
                Self::Postgres(tx) => {
                    transpose!(sqlx::query(query), sql, rows).execute(&mut **tx).await?.rows_affected()
                }
            };
        }
        Ok(touched)
    }

    /// One statement over a set of rows, and the rows it returns.
    pub(crate) async fn rows_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<Vec<Row>, StoreError> {
        let mut found = Vec::new();
        for rows in pieces(self.dialect(), rows) {
            let query = AssertSqlSafe(sql.text(self.dialect(), rows.len()));
            found.extend(match self {
                Self::Sqlite(tx) => sqlite_rows(&listed!(sqlx::query(query), rows).fetch_all(tx.connection()?).await?)?,
                Self::Postgres(tx) => {
                    postgres_rows(&transpose!(sqlx::query(query), sql, rows).fetch_all(&mut **tx).await?)?
                }
            });
        }
        Ok(found)
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(mut tx) => tx.end("COMMIT").await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }

    pub(crate) async fn roll_back(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(mut tx) => tx.end("ROLLBACK").await?,
            Self::Postgres(tx) => tx.rollback().await?,
        }
        Ok(())
    }
}

fn sqlite_rows(rows: &[sqlx::sqlite::SqliteRow]) -> Result<Vec<Row>, StoreError> {
    let read = |row: &sqlx::sqlite::SqliteRow| {
        let columns = row.columns().iter().map(|column| {
            let at = column.ordinal();
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            Ok(match raw.type_info().name() {
                "INTEGER" => Value::Int(row.try_get_unchecked(at)?),
                "TEXT" => Value::Text(row.try_get_unchecked(at)?),
                "BLOB" => Value::Bytes(row.try_get_unchecked(at)?),
                other => return Err(StoreError::Corrupt(format!("a column of type {other}"))),
            })
        });
        columns.collect::<Result<_, _>>().map(Row::new)
    };
    rows.iter().map(read).collect()
}

fn postgres_rows(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<Row>, StoreError> {
    let read = |row: &sqlx::postgres::PgRow| {
        let columns = row.columns().iter().map(|column| {
            let at = column.ordinal();
            let raw = row.try_get_raw(at)?;
            if raw.is_null() {
                return Ok(Value::Null);
            }
            Ok(match raw.type_info().name() {
                "INT8" => Value::Int(row.try_get_unchecked(at)?),
                "INT4" => Value::Int(row.try_get_unchecked::<i32, _>(at)?.into()),
                "TEXT" | "VARCHAR" | "NAME" => Value::Text(row.try_get_unchecked(at)?),
                "BYTEA" => Value::Bytes(row.try_get_unchecked(at)?),
                other => return Err(StoreError::Corrupt(format!("a column of type {other}"))),
            })
        });
        columns.collect::<Result<_, _>>().map(Row::new)
    };
    rows.iter().map(read).collect()
}
