//! Statements on a SQLite connection, on the thread that calls: a change of threads would cost more than most statements do.
//! Only what waits for the disk (a commit) is worth one.

use std::sync::{Arc, OnceLock};

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection};

use crate::StoreError;
use crate::error::unsynced;
use crate::kept::{Kept, Writes};
use crate::value::{Arg, Args, Row, Value};

/// The one connection that writes to a SQLite file.
pub(crate) struct Writing {
    connection: Option<Connection>,
    /// A transaction was begun and not ended: its owner went away.
    open: bool,
    /// What it writes.
    writes: Writes,
    /// What others have read, and what counts no more once something is set up.
    kept: Arc<Kept>,
    /// What is freed is overwritten, until the transaction ends.
    overwrites: bool,
    /// Set when the disk did not confirm a write: from then on nothing it says about later writes can be trusted.
    broken: Broken,
}

/// Why nothing is written any more, once nothing is. It can be asked while somebody writes.
pub(crate) type Broken = Arc<OnceLock<StoreError>>;

impl Writing {
    pub(crate) const fn new(connection: Connection, broken: Broken, kept: Arc<Kept>) -> Self {
        Self { connection: Some(connection), open: false, writes: Writes::Anything, kept, overwrites: false, broken }
    }

    /// The connection of a transaction that was begun.
    pub(crate) fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(|| StoreError::unavailable("the store is closed"))
    }

    /// The connection, after ending what somebody left open.
    pub(crate) fn ready(&mut self) -> Result<&Connection, StoreError> {
        if let Some(error) = self.broken.get() {
            return Err(error.clone());
        }
        if self.open {
            // SQLite may have ended it by itself; then there is nothing to roll back.
            let _ = changed(self.connection()?, "ROLLBACK", &[]);
            self.open = false;
        }
        if std::mem::take(&mut self.overwrites) {
            rows(self.connection()?, "PRAGMA secure_delete = FAST", &[])?;
        }
        self.connection()
    }

    /// Overwrites what is freed from here on, until the next transaction.
    pub(crate) fn overwrite(&mut self) -> Result<(), StoreError> {
        rows(self.connection()?, "PRAGMA secure_delete = ON", &[])?;
        self.overwrites = true;
        Ok(())
    }

    pub(crate) fn begin(&mut self, writes: Writes) -> Result<(), StoreError> {
        self.ready()?;
        self.writes = writes;
        // A transaction that turns into a writer halfway could find that it read something old.
        changed(self.connection()?, "BEGIN IMMEDIATE", &[])?;
        self.open = true;
        Ok(())
    }

    pub(crate) fn end(&mut self, how: &'static str) -> Result<(), StoreError> {
        let ended = changed(self.connection()?, how, &[]);
        // Also where it failed: nobody knows how far it came.
        self.kept.wrote(self.writes);
        self.note(ended)?;
        self.open = false;
        Ok(())
    }

    /// Runs a statement in a transaction of its own; says how many rows it touched.
    pub(crate) fn write(&mut self, sql: &str, args: &[Arg], writes: Writes) -> Result<u64, StoreError> {
        let written = changed(self.ready()?, sql, args);
        self.kept.wrote(writes);
        self.note(written)
    }

    /// Lets go of what is kept.
    pub(crate) fn forget_kept(&self) {
        self.kept.wrote(Writes::Anything);
    }

    /// Passes on how a write went, and writes nothing more once the disk did not confirm one.
    pub(crate) fn note<T>(&mut self, answer: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &answer
            && unsynced(error)
        {
            tracing::error!(?error, "the disk did not confirm a write; nothing more is written until a restart");
            let _ = self.broken.set(error.clone());
        }
        answer
    }

    /// Closes the connection. The last one to close writes the log back into the database file.
    pub(crate) fn close(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Err((_, error)) = connection.close()
        {
            tracing::warn!(%error, "the database was not closed cleanly");
        }
    }
}

/// The rows that a statement gives.
pub(crate) fn rows(connection: &Connection, sql: &str, args: &[Arg]) -> Result<Vec<Row>, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, sql, args)?;
    let mut found = Vec::new();
    collect(&mut statement, &mut found)?;
    Ok(found)
}

/// Runs a statement to its end; says how many rows it touched.
pub(crate) fn changed(connection: &Connection, sql: &str, args: &[Arg]) -> Result<u64, StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    bind(&mut statement, sql, args)?;
    finish(&mut statement)?;
    Ok(connection.changes())
}

/// One statement for each of many rows; says how many rows they touched together.
pub(crate) fn changed_each(connection: &Connection, sql: &str, each: &[&Args]) -> Result<u64, StoreError> {
    let mut touched = 0;
    if each.is_empty() {
        return Ok(touched);
    }
    let mut statement = connection.prepare_cached(sql)?;
    for args in each {
        bind(&mut statement, sql, args)?;
        finish(&mut statement)?;
        touched += connection.changes();
    }
    Ok(touched)
}

/// One statement for each of many rows, and the rows they give together.
pub(crate) fn rows_each(connection: &Connection, sql: &str, each: &[&Args]) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    if each.is_empty() {
        return Ok(found);
    }
    let mut statement = connection.prepare_cached(sql)?;
    for args in each {
        bind(&mut statement, sql, args)?;
        collect(&mut statement, &mut found)?;
    }
    Ok(found)
}

/// Binds values in their order, or by the number in a name like `$2`, which SQLite itself takes for any other name.
fn bind(statement: &mut CachedStatement<'_>, sql: &str, args: &[Arg]) -> Result<(), StoreError> {
    let named = sql.contains('$');
    for at in 1..=statement.parameter_count() {
        let number =
            if named { statement.parameter_name(at).and_then(|name| name.get(1..)?.parse().ok()) } else { None };
        let arg =
            args.get(number.unwrap_or(at) - 1).ok_or_else(|| StoreError::other("a statement has too few values"))?;
        match arg {
            Arg::Int(value) => statement.raw_bind_parameter(at, value)?,
            Arg::Text(value) => statement.raw_bind_parameter(at, value.as_deref())?,
            Arg::Bytes(value) => statement.raw_bind_parameter(at, value.as_deref())?,
        }
    }
    Ok(())
}

fn finish(statement: &mut CachedStatement<'_>) -> Result<(), StoreError> {
    let mut rows = statement.raw_query();
    while rows.next()?.is_some() {}
    Ok(())
}

fn collect(statement: &mut CachedStatement<'_>, found: &mut Vec<Row>) -> Result<(), StoreError> {
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        let values = (0..columns).map(|at| value(row.get_ref(at)?));
        found.push(Row::new(values.collect::<Result<_, StoreError>>()?));
    }
    Ok(())
}

fn value(value: ValueRef<'_>) -> Result<Value, StoreError> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => return Err(StoreError::Corrupt("a text that is none".into())),
        },
        ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Real(_) => return Err(StoreError::Corrupt("a column of type REAL".into())),
    })
}
