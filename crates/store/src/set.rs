//! Statements over many rows at once: constant text, prepared once. PostgreSQL takes one array per column and one trip;
//! SQLite is in this process and takes the rows one after the other, which is the cheapest it can do.

use crate::db::Dialect;
use crate::value::{Arg, Args};

/// The type of a column in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Bytes,
}

/// A statement whose `{rows}` is a set of rows under the name `v`. Text for SQLite may do without: then `v.name` stands for
/// the value itself.
pub(crate) struct SetSql {
    sqlite: String,
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
        let sqlite = if sqlite.contains("{rows}") {
            sqlite.replace("{rows}", &one_row(columns))
        } else {
            with_values(columns, sqlite)
        };
        let postgres = postgres.replace("{rows}", &array_rows(columns));
        Self { sqlite, postgres, kinds: columns.iter().map(|(_, kind)| *kind).collect() }
    }

    /// An insert of all columns into a table of the same column names.
    pub(crate) fn insert(table: &str, columns: &[(&str, Kind)], conflict: &str) -> Self {
        let names = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let values = columns.iter().map(|(name, _)| format!("v.{name}")).collect::<Vec<_>>().join(", ");
        Self::by_dialect(
            columns,
            &format!("INSERT INTO {table} ({names}) VALUES ({values}) {conflict}"),
            &format!("INSERT INTO {table} ({names}) SELECT {names} FROM {{rows}} WHERE true {conflict}"),
        )
    }

    /// The text: for one row on SQLite, for all on PostgreSQL.
    pub(crate) fn text(&self, dialect: Dialect) -> &str {
        match dialect {
            Dialect::Postgres => &self.postgres,
            Dialect::Sqlite => &self.sqlite,
        }
    }
}

fn one_row(columns: &[(&str, Kind)]) -> String {
    let values = columns.iter().map(|(name, _)| format!("? AS \"{name}\"")).collect::<Vec<_>>().join(", ");
    format!("(SELECT {values}) AS v")
}

/// Puts the place of each value where its name is.
fn with_values(columns: &[(&str, Kind)], text: &str) -> String {
    let mut pieces = text.split("v.");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(piece.len());
        let (name, rest) = piece.split_at(end);
        match columns.iter().position(|(column, _)| *column == name) {
            Some(at) => whole.push_str(&format!("?{}{rest}", at + 1)),
            None => whole.push_str(&format!("v.{piece}")),
        }
    }
    whole
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
    fn sqlite_takes_the_values_of_one_row() {
        let text = SQL.text(Dialect::Sqlite);
        assert_eq!(text, r#"INSERT INTO t ("a", "b") VALUES (?1, ?2) ON CONFLICT DO NOTHING"#);
        let set =
            with_values(&[("head", Kind::Int), ("head_seq", Kind::Int)], "SET a = v.head_seq, b = v.head WHERE c");
        assert_eq!(set, "SET a = ?2, b = ?1 WHERE c");
    }

    #[test]
    fn postgres_takes_one_array_per_column() {
        let text = SQL.text(Dialect::Postgres);
        assert!(text.contains(r#"unnest($1::text[], $2::bigint[]) AS v("a", "b")"#), "{text}");
    }
}
