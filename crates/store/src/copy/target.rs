//! The database that a copy is put into. Until the copy is whole it carries a mark, and no program opens it.

use std::collections::HashMap;
use std::path::Path;

use super::batch::Batch;
use super::line::Line;
use super::tables::{LEFT_OUT, names};
use crate::StoreError;
use crate::db::Dialect;
use crate::set::{Kind, SetSql};
use crate::value::{Value, args};
use crate::{fault, migrate};

/// The key of the mark in `meta`. Its value says how far the copy is: a line with the rows and the hash of each table.
pub(crate) const MARK: &str = "copying";

/// A database that is being filled.
pub struct Target {
    line: Line,
    inserts: HashMap<&'static str, SetSql>,
    there: Vec<(String, u64, String)>,
    resumed: bool,
}

impl Target {
    /// A SQLite file, made if there is none.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it holds something.
    pub async fn sqlite(file: &Path, schema: u64) -> Result<Self, StoreError> {
        Self::begin(Line::sqlite_to_write(file)?, schema).await
    }

    /// A PostgreSQL database.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when it holds something, [`StoreError::Unavailable`] when it does not answer.
    pub async fn postgres(url: &str, schema: u64) -> Result<Self, StoreError> {
        Self::begin(Line::postgres(url).await?, schema).await
    }

    async fn begin(mut line: Line, schema: u64) -> Result<Self, StoreError> {
        let there = line.tables().await?;
        let mark = if there.iter().any(|name| name == "meta") {
            line.value("SELECT value FROM meta WHERE key = $1", args![MARK]).await?
        } else {
            None
        };
        let (there, resumed) = match mark {
            Some(Value::Text(mark)) => (read_mark(&mark), true),
            Some(Value::Null | Value::Int(_) | Value::Bytes(_)) => return Err(StoreError::Corrupt("its mark".into())),
            None if !there.is_empty() => {
                return Err(StoreError::Conflict("the database that the copy was to go into is not empty".to_owned()));
            }
            None => {
                line.script("BEGIN").await?;
                for script in migrate::scripts(schema, line.dialect())? {
                    line.script(script).await?;
                }
                line.run("INSERT INTO meta (key, value) VALUES ($1, '')", args![MARK]).await?;
                line.script("COMMIT").await?;
                (Vec::new(), false)
            }
        };
        Ok(Self { line, inserts: HashMap::new(), there, resumed })
    }

    /// Whether an earlier copy into it did not come to its end.
    #[must_use]
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(super) fn line(&mut self) -> &mut Line {
        &mut self.line
    }

    /// What an earlier attempt copied of a table.
    pub(super) fn there(&self, table: &str) -> Option<(u64, String)> {
        self.there.iter().find(|(name, ..)| name == table).map(|(_, rows, hash)| (*rows, hash.clone()))
    }

    /// Puts rows in.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when they do not fit the table, and those of the database.
    pub async fn put(&mut self, batch: &Batch) -> Result<(), StoreError> {
        fault::point("copy.put");
        self.line.script("BEGIN").await?;
        self.insert(batch).await?;
        self.line.script("COMMIT").await
    }

    /// As [`Target::put`], and notes how far that is.
    pub(super) async fn put_marked(&mut self, batch: &Batch, rows: u64, hash: &str) -> Result<(), StoreError> {
        self.there.retain(|(name, ..)| name != batch.table());
        self.there.push((batch.table().to_owned(), rows, hash.to_owned()));
        let mark: Vec<_> = self.there.iter().map(|(name, rows, hash)| format!("{name} {rows} {hash}")).collect();
        fault::point("copy.put");
        self.line.script("BEGIN").await?;
        self.insert(batch).await?;
        self.line.run("UPDATE meta SET value = $1 WHERE key = $2", args![mark.join("\n"), MARK]).await?;
        self.line.script("COMMIT").await
    }

    async fn insert(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let table = batch.table();
        if !self.inserts.contains_key(table) {
            let known = self.line.columns(table).await?;
            if known != batch.columns {
                return Err(StoreError::Corrupt(format!("the columns of {table} are not those of this database")));
            }
            let columns: Vec<(&str, Kind)> = known.iter().map(|(name, kind)| (name.as_str(), *kind)).collect();
            self.inserts.insert(table, SetSql::insert(table, &columns, ""));
        }
        match self.inserts.get(table) {
            Some(sql) => self.line.insert(sql, &batch.args()).await,
            None => Err(StoreError::NotFound),
        }
    }

    /// The copy is whole, and somebody has looked: takes the mark away. Nobody drives its runs.
    ///
    /// # Errors
    /// Those of the database; then it still carries the mark.
    pub async fn finish(mut self) -> Result<(), StoreError> {
        fault::point("copy.finish");
        self.line.script("BEGIN").await?;
        self.line.run("UPDATE runs SET owner = NULL WHERE owner IS NOT NULL", vec![]).await?;
        self.line.run("DELETE FROM meta WHERE key = $1", args![MARK]).await?;
        self.line.script("COMMIT").await?;
        if self.line.dialect() == Dialect::Sqlite {
            // Into the one file, and onto the disk.
            self.line.rows("PRAGMA wal_checkpoint(TRUNCATE)", vec![]).await?;
        }
        self.line.close().await;
        fault::point("copy.finished");
        Ok(())
    }

    /// Takes everything out again, so that the database is as empty as before.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn discard(mut self) -> Result<(), StoreError> {
        // Whatever was under way; there may be nothing.
        let _ = self.line.script("ROLLBACK").await;
        let there = self.line.tables().await?;
        let ours: Vec<_> = names().chain(LEFT_OUT.iter().copied()).collect();
        for table in ours.into_iter().rev().filter(|table| there.iter().any(|name| name == table)) {
            self.line.run(&format!("DROP TABLE {table}"), vec![]).await?;
        }
        self.line.close().await;
        Ok(())
    }
}

fn read_mark(mark: &str) -> Vec<(String, u64, String)> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.to_owned()))
    };
    mark.lines().filter_map(line).collect()
}
