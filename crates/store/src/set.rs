//! Statements over many rows at once: constant text, prepared once, one trip to the database. PostgreSQL takes one array
//! per column. SQLite takes a list of values whose length is a power of two; places that are left over stay NULL and are
//! skipped. (As JSON the rows would cost it twice the time: every column would parse its row again.)

use std::sync::OnceLock;

use crate::db::{Dialect, Text};
use crate::value::{Arg, Args};

/// The type of a column in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Bytes,
}

/// Rows one SQLite statement takes at the most; longer sets are written in several.
const ROWS: usize = 128;
/// How many powers of two there are up to [`ROWS`].
const SIZES: usize = ROWS.ilog2() as usize + 1;

/// A statement whose `{rows}` is a set of rows under the name `v`. The first column is never NULL.
pub(crate) struct SetSql {
    sqlite: String,
    columns: Vec<String>,
    sized: [OnceLock<String>; SIZES],
    postgres: String,
    pub(crate) kinds: Vec<Kind>,
}

impl SetSql {
    /// `columns` names what each row holds, in order.
    pub(crate) fn new(columns: &[(&str, Kind)], text: &str) -> Self {
        Self::by_dialect(columns, text, text)
    }

    /// As [`SetSql::new`], where the databases need different words.
    pub(crate) fn by_dialect(columns: &[(&str, Kind)], sqlite: &str, postgres: &str) -> Self {
        Self {
            sqlite: sqlite.to_owned(),
            columns: columns.iter().map(|(name, _)| format!("\"{name}\"")).collect(),
            sized: [const { OnceLock::new() }; SIZES],
            postgres: postgres.replace("{rows}", &array_rows(columns)),
            kinds: columns.iter().map(|(_, kind)| *kind).collect(),
        }
    }

    /// An insert of all columns into a table of the same column names.
    pub(crate) fn insert(table: &str, columns: &[(&str, Kind)], conflict: &str) -> Self {
        let names = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        // Without the WHERE, SQLite would read the ON of a conflict clause as that of a join.
        Self::new(columns, &format!("INSERT INTO {table} ({names}) SELECT {names} FROM {{rows}} WHERE true {conflict}"))
    }

    /// The text for `rows` rows, of which there are at most [`ROWS`] on SQLite.
    pub(crate) fn text(&'static self, dialect: Dialect, rows: usize) -> Text {
        Text::Borrowed(match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Sqlite => {
                let size = rows.next_power_of_two().min(ROWS);
                let make = || self.sqlite.replace("{rows}", &value_rows(&self.columns, size));
                self.sized[size.ilog2() as usize].get_or_init(make)
            }
        })
    }
}

/// The pieces in which a set is written.
pub(crate) fn pieces<'a, 'b>(dialect: Dialect, rows: &'b [&'a Args]) -> std::slice::Chunks<'b, &'a Args> {
    rows.chunks(match dialect {
        Dialect::Sqlite => ROWS,
        Dialect::Postgres => usize::MAX,
    })
}

fn value_rows(columns: &[String], rows: usize) -> String {
    let names = columns.iter().enumerate().map(|(at, name)| format!("column{} AS {name}", at + 1));
    let names = names.collect::<Vec<_>>().join(", ");
    let row = format!("({})", vec!["?"; columns.len()].join(", "));
    let rows = vec![row; rows].join(", ");
    format!("(SELECT {names} FROM (VALUES {rows}) WHERE column1 IS NOT NULL) AS v")
}

fn array_rows(columns: &[(&str, Kind)]) -> String {
    let arrays = columns.iter().enumerate().map(|(at, (_, kind))| {
        let kind = match kind {
            Kind::Text => "text",
            Kind::Int => "bigint",
            Kind::Bytes => "bytea",
        };
        format!("${}::{kind}[]", at + 1)
    });
    let arrays = arrays.collect::<Vec<_>>().join(", ");
    let names = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    format!("unnest({arrays}) AS v({names})")
}

/// Binds rows as SQLite takes them: value by value.
macro_rules! listed {
    ($query:expr, $rows:expr) => {{
        let mut query = $query;
        for arg in $rows.iter().copied().flatten() {
            query = match arg {
                Arg::Int(value) => query.bind(*value),
                Arg::Text(value) => query.bind(value.clone()),
                Arg::Bytes(value) => query.bind(value.as_deref()),
            };
        }
        query
    }};
}
pub(crate) use listed;

/// Binds rows as PostgreSQL takes them: one array per column.
macro_rules! transpose {
    ($query:expr, $sql:expr, $rows:expr) => {{
        let mut query = $query;
        for (at, kind) in $sql.kinds.iter().enumerate() {
            query = match kind {
                $crate::set::Kind::Text => {
                    query.bind($rows.iter().map(|row| $crate::set::text(row, at)).collect::<Vec<_>>())
                }
                $crate::set::Kind::Int => {
                    query.bind($rows.iter().map(|row| $crate::set::int(row, at)).collect::<Vec<_>>())
                }
                $crate::set::Kind::Bytes => {
                    query.bind($rows.iter().map(|row| $crate::set::bytes(row, at)).collect::<Vec<_>>())
                }
            };
        }
        query
    }};
}
pub(crate) use transpose;

pub(crate) fn text(row: &Args, at: usize) -> Option<&str> {
    match row.get(at) {
        Some(Arg::Text(text)) => text.as_deref(),
        Some(Arg::Int(_) | Arg::Bytes(_)) | None => None,
    }
}

pub(crate) fn int(row: &Args, at: usize) -> Option<i64> {
    match row.get(at) {
        Some(Arg::Int(value)) => *value,
        Some(Arg::Text(_) | Arg::Bytes(_)) | None => None,
    }
}

pub(crate) fn bytes(row: &Args, at: usize) -> Option<&[u8]> {
    match row.get(at) {
        Some(Arg::Bytes(bytes)) => bytes.as_deref(),
        Some(Arg::Int(_) | Arg::Text(_)) | None => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    static SQL: LazyLock<SetSql> =
        LazyLock::new(|| SetSql::insert("t", &[("a", Kind::Text), ("b", Kind::Int)], "ON CONFLICT DO NOTHING"));

    #[test]
    fn a_set_is_one_text_for_every_number_of_rows_up_to_the_next_power_of_two() {
        let three = SQL.text(Dialect::Sqlite, 3);
        assert_eq!(three, SQL.text(Dialect::Sqlite, 4));
        assert_eq!(three.matches("(?, ?)").count(), 4);
        assert_eq!(SQL.text(Dialect::Sqlite, 1).matches("(?, ?)").count(), 1);
        assert_eq!(SQL.text(Dialect::Sqlite, ROWS).matches("(?, ?)").count(), ROWS);
    }

    #[test]
    fn postgres_takes_one_array_per_column() {
        let text = SQL.text(Dialect::Postgres, 3);
        assert!(text.contains(r#"unnest($1::text[], $2::bigint[]) AS v("a", "b")"#), "{text}");
    }
}
