//! Everything that a database holds at one moment, while others go on writing to it.

use std::path::Path;

use super::CopyFor;
use super::batch::{Batch, Column};
use super::line::Line;
use super::tables::{self, Table};
use super::target::MARK;
use crate::StoreError;
use crate::db::Dialect;
use crate::migrate::{KNOWN, is_ours};
use crate::queue::now;
use crate::value::{Arg, Args, Value, args};

/// A database as it is at one moment. It is read in order, once.
pub struct Snapshot {
    line: Line,
    cursor: Cursor,
    sealed: bool,
}

impl Snapshot {
    /// Of a SQLite file, which a server may have open at the same time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such file; else as [`Snapshot::of_postgres`].
    pub async fn of_sqlite(file: &Path, copy: CopyFor) -> Result<Self, StoreError> {
        Self::begin(Line::sqlite_to_read(file)?, copy).await
    }

    /// Of a PostgreSQL database, which nodes may use at the same time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::NewerSchema`], [`StoreError::OtherBuild`], [`StoreError::Conflict`] when it is older than this program
    /// or not whole itself.
    pub async fn of_postgres(url: &str, copy: CopyFor) -> Result<Self, StoreError> {
        Self::begin(Line::postgres(url).await?, copy).await
    }

    async fn begin(mut line: Line, copy: CopyFor) -> Result<Self, StoreError> {
        let begin = match line.dialect() {
            Dialect::Sqlite => "BEGIN",
            Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        line.script(begin).await?;
        if !line.tables().await?.iter().any(|name| name == "meta") {
            return Err(StoreError::NotFound);
        }
        if line.value("SELECT value FROM meta WHERE key = $1", args![MARK]).await?.is_some() {
            return Err(StoreError::Conflict("a copy into this database did not come to its end".to_owned()));
        }
        let schema = line.number("SELECT value FROM meta WHERE key = 'schema'").await?;
        if schema > KNOWN {
            return Err(StoreError::NewerSchema { found: schema, known: KNOWN });
        }
        if schema < KNOWN {
            let why = "this database is from an older Adjutant; start this one on it first";
            return Err(StoreError::Conflict(why.to_owned()));
        }
        let made = line.value("SELECT value FROM meta WHERE key = 'made_by'", vec![]).await?;
        let made = if let Some(Value::Text(made)) = &made { Some(made.as_str()) } else { None };
        if !is_ours(schema, made) {
            return Err(StoreError::OtherBuild);
        }
        let sealing = line.value("SELECT value FROM meta WHERE key = 'sealing'", vec![]).await?;
        let sealed = matches!(sealing, Some(Value::Text(word)) if word == "on");
        Ok(Self { line, cursor: Cursor::new(copy), sealed })
    }

    /// The schema it has.
    #[must_use]
    pub fn schema(&self) -> u64 {
        KNOWN
    }

    /// Whether its content needs a master key.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// How many rows there are to copy.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn count(&mut self) -> Result<u64, StoreError> {
        let mut rows = 0;
        for table in tables::of(self.cursor.copy) {
            rows += self.line.number(&format!("SELECT count(*) FROM {}", table.name)).await?;
        }
        Ok(rows)
    }

    /// How many nodes use it. Whoever asks about a SQLite file has its lock, so none does.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn living_nodes(&mut self) -> Result<u64, StoreError> {
        match self.line.dialect() {
            Dialect::Sqlite => Ok(0),
            dialect @ Dialect::Postgres => {
                self.line.number(&format!("SELECT count(*) FROM nodes WHERE expires > {}", now(dialect))).await
            }
        }
    }

    /// How many keys of providers there are, which no backup holds.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn provider_keys(&mut self) -> Result<u64, StoreError> {
        self.line.number("SELECT count(*) FROM provider_keys").await
    }

    /// The folders that notebooks are linked to: they lie outside.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn linked(&mut self) -> Result<Vec<String>, StoreError> {
        let rows =
            self.line.rows("SELECT linked FROM notebooks WHERE linked IS NOT NULL ORDER BY linked", vec![]).await?;
        rows.into_iter().map(|mut row| row.take()).collect()
    }

    /// The next rows; none at the end.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        self.cursor.next(&mut self.line).await
    }

    /// Lets go of the database.
    pub async fn close(self) {
        self.line.close().await;
    }
}

/// Where the reading of a database is.
pub(super) struct Cursor {
    copy: CopyFor,
    done: usize,
    columns: Vec<Column>,
    after: Option<Args>,
}

impl Cursor {
    pub(super) fn new(copy: CopyFor) -> Self {
        Self { copy, done: 0, columns: Vec::new(), after: None }
    }

    pub(super) async fn next(&mut self, line: &mut Line) -> Result<Option<Batch>, StoreError> {
        loop {
            let Some(table) = tables::of(self.copy).nth(self.done) else { return Ok(None) };
            if self.after.is_none() {
                self.columns = line.columns(table.name).await?;
            }
            let rows = line.rows(&self.statement(table), self.after.clone().unwrap_or_default()).await?;
            let rows: Vec<Vec<Value>> = rows.into_iter().map(crate::value::Row::rest).collect();
            match rows.last() {
                Some(last) => self.after = Some(self.key(table, last)),
                None => {
                    self.done += 1;
                    self.after = None;
                    continue;
                }
            }
            return Ok(Some(Batch::new(table, self.columns.clone(), rows)));
        }
    }

    fn statement(&self, table: &Table) -> String {
        let names = self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let key = table.key.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let mut conditions = Vec::new();
        if table.name == "meta" {
            conditions.push(format!("\"key\" <> '{MARK}'"));
        }
        if self.after.is_some() {
            let values = (1..=table.key.len()).map(|at| format!("${at}")).collect::<Vec<_>>().join(", ");
            conditions.push(format!("({key}) > ({values})"));
        }
        let wanted = if conditions.is_empty() { String::new() } else { format!("WHERE {}", conditions.join(" AND ")) };
        format!("SELECT {names} FROM {} {wanted} ORDER BY {key} LIMIT {}", table.name, table.page)
    }

    /// The key of a row, to go on behind it.
    fn key(&self, table: &Table, row: &[Value]) -> Args {
        let value = |name: &&str| {
            let at = self.columns.iter().position(|(column, _)| column == name);
            match at.and_then(|at| row.get(at)) {
                Some(Value::Int(value)) => Arg::Int(Some(*value)),
                Some(Value::Text(value)) => Arg::Text(Some(value.as_str().into())),
                Some(Value::Bytes(value)) => Arg::Bytes(Some(value.clone())),
                Some(Value::Null) | None => Arg::Text(None),
            }
        };
        table.key.iter().map(value).collect()
    }
}
