//! One connection of its own to a database that may be in use: a copy is one long transaction, and nobody waits behind it.

use std::path::Path;
use std::str::FromStr as _;

use rusqlite::{Connection, OpenFlags};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection};

use super::batch::Column;
use crate::db::{Dialect, query};
use crate::lent::postgres_rows;
use crate::set::{Kind, SetSql, transpose};
use crate::value::{Arg, Args, Row, Value};
use crate::{Durability, StoreError, lite, sqlite};

pub(super) enum Line {
    Sqlite(Connection),
    Postgres(Box<PgConnection>),
}

impl Line {
    /// A file that is there already.
    pub(super) fn sqlite_to_read(file: &Path) -> Result<Self, StoreError> {
        if !file.is_file() {
            return Err(StoreError::NotFound);
        }
        // Not opened read-only: SQLite has to make the files beside it when nobody else has it open.
        let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.busy_timeout(sqlite::BUSY)?;
        connection.pragma_update(None, "query_only", "on")?;
        Ok(Self::Sqlite(connection))
    }

    /// A file that is made if there is none.
    pub(super) fn sqlite_to_write(file: &Path) -> Result<Self, StoreError> {
        sqlite::touch(file)?;
        sqlite::connect(file, Durability::Normal).map(Self::Sqlite)
    }

    pub(super) async fn postgres(url: &str) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url)?.application_name("adjutant copy").disable_statement_logging();
        Ok(Self::Postgres(Box::new(options.connect().await?)))
    }

    pub(super) const fn dialect(&self) -> Dialect {
        match self {
            Self::Sqlite(_) => Dialect::Sqlite,
            Self::Postgres(_) => Dialect::Postgres,
        }
    }

    pub(super) async fn rows(&mut self, sql: &str, args: Args) -> Result<Vec<Row>, StoreError> {
        match self {
            Self::Sqlite(connection) => lite::rows(connection, sql, &args),
            Self::Postgres(connection) => {
                postgres_rows(&query!(sql.to_owned(), args).fetch_all(&mut **connection).await?)
            }
        }
    }

    /// The first column of the only row.
    pub(super) async fn value(&mut self, sql: &str, args: Args) -> Result<Option<Value>, StoreError> {
        Ok(self.rows(sql, args).await?.pop().and_then(|row| row.rest().into_iter().next()))
    }

    pub(super) async fn number(&mut self, sql: &str) -> Result<u64, StoreError> {
        let number = match self.value(sql, vec![]).await? {
            Some(Value::Int(number)) => u64::try_from(number).ok(),
            Some(Value::Text(text)) => text.parse().ok(),
            Some(Value::Null | Value::Bytes(_)) | None => None,
        };
        number.ok_or_else(|| StoreError::Corrupt("it does not say what it holds".into()))
    }

    pub(super) async fn run(&mut self, sql: &str, args: Args) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(connection) => lite::changed(connection, sql, &args).map(drop),
            Self::Postgres(connection) => {
                query!(sql.to_owned(), args).execute(&mut **connection).await?;
                Ok(())
            }
        }
    }

    pub(super) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(connection) => connection.execute_batch(sql)?,
            Self::Postgres(connection) => sqlx::raw_sql(sql).execute(&mut **connection).await.map(drop)?,
        }
        Ok(())
    }

    pub(super) async fn insert(&mut self, sql: &SetSql, rows: &[Args]) -> Result<(), StoreError> {
        let rows: Vec<&Args> = rows.iter().collect();
        let text = sql.text(self.dialect()).to_owned();
        match self {
            Self::Sqlite(connection) => lite::changed_each(connection, &text, &rows).map(drop),
            Self::Postgres(connection) => {
                let query = sqlx::query(AssertSqlSafe(text));
                transpose!(query, sql, rows).execute(&mut **connection).await?;
                Ok(())
            }
        }
    }

    /// The names of the tables that are there.
    pub(super) async fn tables(&mut self) -> Result<Vec<String>, StoreError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
            Dialect::Postgres => {
                "SELECT CAST(table_name AS TEXT) FROM information_schema.tables WHERE table_schema = current_schema()"
            }
        };
        self.rows(sql, vec![]).await?.into_iter().map(|mut row| row.take()).collect()
    }

    /// The columns of a table by name, the same in both databases.
    pub(super) async fn columns(&mut self, table: &'static str) -> Result<Vec<Column>, StoreError> {
        let sql = match self.dialect() {
            Dialect::Sqlite => "SELECT name, type FROM pragma_table_info($1) ORDER BY name",
            Dialect::Postgres => {
                "SELECT CAST(column_name AS TEXT), CAST(data_type AS TEXT) FROM information_schema.columns \
                 WHERE table_schema = current_schema() AND table_name = $1 \
                 ORDER BY CAST(column_name AS TEXT) COLLATE \"C\""
            }
        };
        let rows = self.rows(sql, vec![Arg::from(table)]).await?;
        let columns = rows.into_iter().map(|mut row| {
            let (name, kind): (String, String) = (row.take()?, row.take()?);
            let kind = match kind.as_str() {
                "INTEGER" | "bigint" => Kind::Int,
                "TEXT" | "text" => Kind::Text,
                "BLOB" | "bytea" => Kind::Bytes,
                other => return Err(StoreError::Corrupt(format!("a column of type {other} in {table}"))),
            };
            Ok((name, kind))
        });
        columns.collect()
    }

    pub(super) async fn close(self) {
        match self {
            // The last one to close writes the log back into the file.
            Self::Sqlite(connection) => drop(connection),
            Self::Postgres(connection) => {
                // A connection that is gone is as good as closed.
                let _ = connection.close().await;
            }
        }
    }
}
