//! What the store says about itself: for `doctor` and the readiness probe.

use adjutant_core::time::Time;

use crate::db::Dialect;
use crate::migrate::KNOWN;
use crate::queue::now;
use crate::reads::Reads;
use crate::value::{Column, args};
use crate::{Backend, Sql, Store, StoreError};

/// The state of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `sqlite`, `postgres` or `memory`.
    pub backend: &'static str,
    /// The version of the database.
    pub version: String,
    /// The schema it holds.
    pub schema: u64,
    /// Whether it can be written.
    pub writable: bool,
    /// How it makes commits durable.
    pub journal: String,
    /// Its size.
    pub bytes: u64,
    /// Whether content is sealed at rest: enforced, or off.
    pub sealed: bool,
}

/// Whether the store can work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness {
    /// `sqlite`, `postgres` or `memory`.
    pub backend: &'static str,
    /// The schema it holds.
    pub schema: u64,
    /// Whether it can be written: not after a disk refused to confirm a write, nor at a server that only reads.
    pub writable: bool,
}

/// How what is written is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// Whether content is sealed at rest.
    pub sealed: bool,
    /// Whether a commit survives a power cut.
    pub durable: bool,
}

/// How much is going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tallies {
    /// Runs that have not ended, by status.
    pub runs: Vec<(String, u64)>,
    /// Inbox items that wait.
    pub approvals: u64,
    /// Runs that could go on and that nobody drives.
    pub queued: u64,
    /// Messages that wait until their chat is free.
    pub waiting: u64,
}

impl Store {
    /// Whether the database answers and can be written. One short statement: it is asked often.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn readiness(&self) -> Result<Readiness, StoreError> {
        let sql = sql!(self, memory => memory.readiness());
        let (backend, text) = match sql.db.dialect() {
            Dialect::Sqlite => ("sqlite", "SELECT value, 0 FROM meta WHERE key = 'schema'"),
            Dialect::Postgres => (
                "postgres",
                "SELECT value, (CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' \
                 THEN 1 ELSE 0 END)::BIGINT FROM meta WHERE key = 'schema'",
            ),
        };
        let mut row = sql.db.read_one(text, vec![]).await?.ok_or(StoreError::NotFound)?;
        let (schema, only_reads): (String, u64) = (row.take()?, row.take()?);
        let writable = only_reads == 0 && !sql.db.is_read_only();
        Ok(Readiness { backend, schema: schema.parse().unwrap_or(KNOWN), writable })
    }

    /// How what is written is kept.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn keeping(&self) -> Result<Keeping, StoreError> {
        let sql = sql!(self, memory => Ok(Keeping { sealed: true, durable: true }));
        // What SQLite calls 2 is `full`; PostgreSQL is asked for the same number.
        let text = match sql.db.dialect() {
            Dialect::Sqlite => "PRAGMA synchronous",
            Dialect::Postgres => {
                "SELECT (CASE WHEN current_setting('fsync') = 'on' \
                 AND current_setting('synchronous_commit') <> 'off' THEN 2 ELSE 1 END)::BIGINT"
            }
        };
        Ok(Keeping { sealed: sql.keys.is_on(), durable: value::<u64>(sql, text).await? >= 2 })
    }

    /// Asks the database how it is; also proves that it answers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn health(&self) -> Result<Health, StoreError> {
        let Readiness { backend, schema, writable } = self.readiness().await?;
        let sql = sql!(self, memory => memory.health());
        let (version, journal, bytes): (String, String, u64) = match sql.db.dialect() {
            Dialect::Sqlite => (
                value(sql, "SELECT sqlite_version()").await?,
                value(sql, "PRAGMA journal_mode").await?,
                value(sql, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").await?,
            ),
            Dialect::Postgres => (
                value(sql, "SHOW server_version").await?,
                "wal".to_owned(),
                value(sql, "SELECT pg_database_size(current_database())").await?,
            ),
        };
        Ok(Health { backend, version, schema, writable, journal, bytes, sealed: sql.keys.is_on() })
    }

    /// How much was read since the store was opened; nothing is counted in memory.
    #[must_use]
    pub fn reads(&self) -> Reads {
        match &self.inner.backend {
            Backend::Sql(sql) => sql.db.reads(),
            #[cfg(feature = "sim")]
            Backend::Memory(_) => Reads::default(),
        }
    }

    /// What time it is by the database's clock.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn clock(&self) -> Result<Time, StoreError> {
        let sql = sql!(self, memory => memory.clock());
        let row = sql.db.read_one(format!("SELECT {}", now(sql.db.dialect())), vec![]).await?;
        row.ok_or(StoreError::NotFound)?.take()
    }

    /// How many runs are in each status that is not an end, and how many inbox items wait: for the operator's numbers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn tallies(&self, now: Time) -> Result<Tallies, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        // By the index of each workspace: what has ended is not looked at.
        let text = "SELECT runs.status, COUNT(*) FROM workspaces JOIN runs ON runs.workspace = workspaces.id \
                    AND runs.status IN ('QUEUED', 'RUNNING', 'WAITING_APPROVAL', 'PAUSED', 'IN_DOUBT', 'CANCELLING') \
                    GROUP BY runs.status ORDER BY runs.status";
        let mut runs = Vec::new();
        for mut row in sql.db.scan(text, vec![]).await? {
            runs.push((row.take()?, row.take()?));
        }
        let text = "SELECT COUNT(*) FROM workspaces JOIN approvals ON approvals.workspace = workspaces.id \
                    AND approvals.status = 'pending'";
        let approvals = value(sql, text).await?;
        let waiting = value(sql, "SELECT COUNT(*) FROM waiting_messages").await?;
        let text = "SELECT COUNT(*) FROM runs WHERE owner IS NULL AND due IS NOT NULL AND due <= $1";
        let row = sql.db.scan(text, args![now]).await?.pop();
        Ok(Tallies { runs, approvals, queued: row.map_or(Ok(0), |mut row| row.take())?, waiting })
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
    sql.db.scan(text, args![]).await?.pop().ok_or(StoreError::NotFound)?.take()
}
