//! Brings the schema forward, one transaction per step, and refuses what it must not touch. Never goes back.

use crate::StoreError;
use crate::copy::MARK;
use crate::db::{Db, Dialect, Tx};
use crate::keys;
use crate::seal::Sealing;
use crate::value::args;

struct Migration {
    sqlite: &'static str,
    postgres: &'static str,
    /// The oldest program, by the schema it knows, that may still use the database afterwards.
    min_binary: u64,
}

/// In order; the number of a migration is its place, from 1. What was released is never edited.
const MIGRATIONS: &[Migration] = &[Migration {
    sqlite: include_str!("../migrations/sqlite/0001_ground.sql"),
    postgres: include_str!("../migrations/postgres/0001_ground.sql"),
    min_binary: 1,
}];

/// The schema this program knows.
pub(crate) const KNOWN: u64 = MIGRATIONS.len() as u64;

/// Nodes that start together on PostgreSQL take turns; the number only has to be ours.
const TURN: &str = "SELECT pg_advisory_xact_lock(4703911)";

/// Brings the database to [`KNOWN`] and checks that it is sealed as the caller says.
pub(crate) async fn migrate(db: &Db, sealing: &Sealing) -> Result<(), StoreError> {
    loop {
        let mut tx = db.begin().await?;
        if tx.dialect() == Dialect::Postgres {
            tx.run(TURN, vec![]).await?;
        }
        let schema = schema(&mut tx).await?;
        let Some(next) = usize::try_from(schema).ok().and_then(|done| MIGRATIONS.get(done)) else {
            keys::check(&mut tx, sealing).await?;
            return tx.commit().await;
        };
        tx.script(match tx.dialect() {
            Dialect::Sqlite => next.sqlite,
            Dialect::Postgres => next.postgres,
        })
        .await?;
        put(&mut tx, "schema", &(schema + 1).to_string()).await?;
        put(&mut tx, "min_binary", &next.min_binary.to_string()).await?;
        tx.commit().await?;
    }
}

/// What makes the tables of a schema that this program knows, and of no later one.
pub(crate) fn scripts(schema: u64, dialect: Dialect) -> Result<Vec<&'static str>, StoreError> {
    let count = usize::try_from(schema).unwrap_or(usize::MAX);
    let steps = MIGRATIONS.get(..count).ok_or(StoreError::NewerSchema { found: schema, known: KNOWN })?;
    let text = |step: &Migration| match dialect {
        Dialect::Sqlite => step.sqlite,
        Dialect::Postgres => step.postgres,
    };
    Ok(steps.iter().map(text).collect())
}

/// The schema of the database, 0 for an empty one.
async fn schema(tx: &mut Tx) -> Result<u64, StoreError> {
    let tables = match tx.dialect() {
        Dialect::Sqlite => "SELECT count(*) FROM sqlite_master WHERE name = 'meta'",
        Dialect::Postgres => "SELECT count(*) FROM pg_class WHERE oid = to_regclass('meta')",
    };
    if count(tx, tables).await? == 0 {
        let strange = tx.dialect() == Dialect::Sqlite && count(tx, "SELECT count(*) FROM sqlite_master").await? > 0;
        return if strange { Err(StoreError::Corrupt("it belongs to another program".into())) } else { Ok(0) };
    }
    if get(tx, MARK).await?.is_some() {
        let why = "a copy into this database did not come to its end; let it go on, or empty the database";
        return Err(StoreError::Conflict(why.to_owned()));
    }
    let min_binary = number(tx, "min_binary").await?;
    if min_binary > KNOWN {
        return Err(StoreError::NewerSchema { found: min_binary, known: KNOWN });
    }
    number(tx, "schema").await
}

async fn count(tx: &mut Tx, sql: &'static str) -> Result<u64, StoreError> {
    tx.row(sql, vec![]).await?.ok_or(StoreError::NotFound)?.take()
}

async fn number(tx: &mut Tx, key: &str) -> Result<u64, StoreError> {
    let text = get(tx, key).await?;
    text.and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::Corrupt(format!("`{key}` is missing in meta")))
}

pub(crate) async fn get(tx: &mut Tx, key: &str) -> Result<Option<String>, StoreError> {
    tx.row("SELECT value FROM meta WHERE key = $1", args![key]).await?.map(|mut row| row.take()).transpose()
}

pub(crate) async fn put(tx: &mut Tx, key: &str, value: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    tx.run(sql, args![key, value]).await.map(drop)
}
