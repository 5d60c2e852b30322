//! The narrow door to both databases: a statement, its values, its rows. Holds no SQL of its own beyond transactions.

use std::borrow::Cow;

use sqlx::{AssertSqlSafe, Column as _, Postgres, Row as _, Sqlite, Transaction, TypeInfo as _, ValueRef as _};

use crate::StoreError;
use crate::set::{SetSql, pack, transpose};
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
    Sqlite { writer: sqlx::SqlitePool, readers: sqlx::SqlitePool },
    /// One connection appends, the others serve everything else.
    Postgres { writer: sqlx::PgPool, pool: sqlx::PgPool },
}

/// A transaction; dropped without [`Tx::commit`] it never happened.
pub(crate) enum Tx {
    Sqlite(Transaction<'static, Sqlite>),
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
        let text = sql.text(self.dialect());
        match self {
            Self::Sqlite { readers, .. } => {
                let (json, arena) = pack(rows.iter().copied());
                sqlite_rows(&sqlx::query(AssertSqlSafe(text)).bind(json).bind(arena).fetch_all(readers).await?)
            }
            Self::Postgres { pool, .. } => {
                postgres_rows(&transpose!(sqlx::query(AssertSqlSafe(text)), sql, rows).fetch_all(pool).await?)
            }
        }
    }

    /// One statement in a transaction of its own; says how many rows it touched.
    pub(crate) async fn write(&self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self {
            Self::Sqlite { writer, .. } => query!(sql, args).execute(writer).await?.rows_affected(),
            Self::Postgres { pool, .. } => query!(sql, args).execute(pool).await?.rows_affected(),
        })
    }

    /// Begins a transaction that will write.
    pub(crate) async fn begin(&self) -> Result<Tx, StoreError> {
        Ok(match self {
            // A transaction that turns into a writer halfway could find that it read something old.
            Self::Sqlite { writer, .. } => Tx::Sqlite(writer.begin_with("BEGIN IMMEDIATE").await?),
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
                writer.close().await;
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
            Self::Sqlite(tx) => sqlite_rows(&query!(sql, args).fetch_all(&mut **tx).await?),
            Self::Postgres(tx) => postgres_rows(&query!(sql, args).fetch_all(&mut **tx).await?),
        }
    }

    pub(crate) async fn row(&mut self, sql: impl Into<Text>, args: Args) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, args).await?.pop())
    }

    pub(crate) async fn run(&mut self, sql: impl Into<Text>, args: Args) -> Result<u64, StoreError> {
        let sql = sql.into();
        Ok(match self {
            Self::Sqlite(tx) => query!(sql, args).execute(&mut **tx).await?.rows_affected(),
            Self::Postgres(tx) => query!(sql, args).execute(&mut **tx).await?.rows_affected(),
        })
    }

    /// Several statements without values: a migration.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx) => sqlx::raw_sql(sql).execute(&mut **tx).await.map(drop)?,
            Self::Postgres(tx) => sqlx::raw_sql(sql).execute(&mut **tx).await.map(drop)?,
        }
        Ok(())
    }

    /// One statement over a set of rows; does nothing when there are none.
    pub(crate) async fn run_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<(), StoreError> {
        if rows.is_empty() {
            return Ok(());
        }
        let text = sql.text(self.dialect());
        match self {
            Self::Sqlite(tx) => {
                let (json, arena) = pack(rows.iter().copied());
                sqlx::query(AssertSqlSafe(text)).bind(json).bind(arena).execute(&mut **tx).await?;
            }
            Self::Postgres(tx) => {
                transpose!(sqlx::query(AssertSqlSafe(text)), sql, rows).execute(&mut **tx).await?;
            }
        }
        Ok(())
    }

    /// One statement over a set of rows, and the rows it returns.
    pub(crate) async fn rows_set(&mut self, sql: &'static SetSql, rows: &[&Args]) -> Result<Vec<Row>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let text = sql.text(self.dialect());
        match self {
            Self::Sqlite(tx) => {
                let (json, arena) = pack(rows.iter().copied());
                sqlite_rows(&sqlx::query(AssertSqlSafe(text)).bind(json).bind(arena).fetch_all(&mut **tx).await?)
            }
            Self::Postgres(tx) => {
                postgres_rows(&transpose!(sqlx::query(AssertSqlSafe(text)), sql, rows).fetch_all(&mut **tx).await?)
            }
        }
    }

    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx) => tx.commit().await?,
            Self::Postgres(tx) => tx.commit().await?,
        }
        Ok(())
    }

    pub(crate) async fn roll_back(self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(tx) => tx.rollback().await?,
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
