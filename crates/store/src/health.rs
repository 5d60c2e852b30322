//! What the store says about itself: for `doctor` and the readiness probe.

use crate::db::Dialect;
use crate::migrate::KNOWN;
use crate::value::{Column, args};
use crate::{Sql, Store, StoreError};

/// The state of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `sqlite`, `postgres` or `memory`.
    pub backend: &'static str,
    /// The version of the database.
    pub version: String,
    /// The schema it holds.
    pub schema: u64,
    /// How it makes commits durable.
    pub journal: String,
    /// Its size.
    pub bytes: u64,
    /// Whether content is sealed at rest: enforced, or off.
    pub sealed: bool,
}

impl Store {
    /// Asks the database how it is; also proves that it answers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let sql = sql!(self, memory => memory.health());
        let schema: String = value(sql, "SELECT value FROM meta WHERE key = 'schema'").await?;
        let (backend, version, journal, bytes): (_, String, String, u64) = match sql.db.dialect() {
            Dialect::Sqlite => (
                "sqlite",
                value(sql, "SELECT sqlite_version()").await?,
                value(sql, "PRAGMA journal_mode").await?,
                value(sql, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").await?,
            ),
            Dialect::Postgres => (
                "postgres",
                value(sql, "SHOW server_version").await?,
                "wal".to_owned(),
                value(sql, "SELECT pg_database_size(current_database())").await?,
            ),
        };
        let schema = schema.parse().unwrap_or(KNOWN);
        Ok(Health { backend, version, schema, journal, bytes, sealed: sql.keys.is_on() })
    }

    /// Looks for damage: every page on SQLite; PostgreSQL checks its own pages whenever it reads them.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the first finding.
    pub async fn check_integrity(&self) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.check_integrity());
        match sql.db.dialect() {
            Dialect::Sqlite => {
                let found: String = value(sql, "PRAGMA quick_check(1)").await?;
                if found == "ok" { Ok(()) } else { Err(StoreError::Corrupt(found)) }
            }
            Dialect::Postgres => Ok(()),
        }
    }
}

async fn value<T: Column>(sql: &Sql, text: &'static str) -> Result<T, StoreError> {
    sql.db.read_one(text, args![]).await?.ok_or(StoreError::NotFound)?.take()
}
