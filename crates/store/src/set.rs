//! Statements over many rows at once: constant text, one round trip. SQLite takes the rows as one JSON text (and one blob
//! for the bytes in them, so that nothing is written as hexadecimal); PostgreSQL takes one array per column.

use std::fmt::Write as _;

use crate::db::{Dialect, Text};
use crate::value::{Arg, Args};

/// The type of a column in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Int,
    Bytes,
}

/// A statement whose `{rows}` is a set of rows under the name `v`.
pub(crate) struct SetSql {
    sqlite: String,
    postgres: String,
    pub(crate) kinds: Vec<Kind>,
}

impl SetSql {
    /// Puts the text together once; `columns` names what each row holds, in order.
    pub(crate) fn new(columns: &[(&str, Kind)], text: &str) -> Self {
        Self::by_dialect(columns, text, text)
    }

    /// As [`SetSql::new`], where the databases need different words.
    pub(crate) fn by_dialect(columns: &[(&str, Kind)], sqlite: &str, postgres: &str) -> Self {
        Self {
            sqlite: sqlite.replace("{rows}", &json_rows(columns)),
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

    pub(crate) fn text(&'static self, dialect: Dialect) -> Text {
        match dialect {
            Dialect::Sqlite => Text::Borrowed(&self.sqlite),
            Dialect::Postgres => Text::Borrowed(&self.postgres),
        }
    }
}

fn json_rows(columns: &[(&str, Kind)]) -> String {
    let mut at = 0;
    let mut names = Vec::with_capacity(columns.len());
    for (name, kind) in columns {
        names.push(match kind {
            Kind::Text | Kind::Int => format!("value->>{at} AS \"{name}\""),
            Kind::Bytes => format!("substr($2, value->>{at}, value->>{}) AS \"{name}\"", at + 1),
        });
        at += if *kind == Kind::Bytes { 2 } else { 1 };
    }
    format!("(SELECT {} FROM json_each($1)) AS v", names.join(", "))
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

/// Rows as SQLite takes them: a JSON array of arrays, where bytes are a place and a length in the blob beside it.
pub(crate) fn pack<'a>(rows: impl Iterator<Item = &'a Args>) -> (String, Vec<u8>) {
    let mut json = String::from("[");
    let mut arena = Vec::new();
    for row in rows {
        json.push_str(if json.len() > 1 { ",[" } else { "[" });
        for (at, arg) in row.iter().enumerate() {
            if at > 0 {
                json.push(',');
            }
            // Writing into a String does not fail.
            let _ = match arg {
                Arg::Int(Some(value)) => write!(json, "{value}"),
                Arg::Text(Some(text)) => write!(json, "{}", Quoted(text)),
                Arg::Bytes(Some(bytes)) => {
                    let start = arena.len() + 1;
                    arena.extend_from_slice(bytes);
                    write!(json, "{start},{}", bytes.len())
                }
                Arg::Int(None) | Arg::Text(None) => json.write_str("null"),
                Arg::Bytes(None) => json.write_str("null,null"),
            };
        }
        json.push(']');
    }
    json.push(']');
    (json, arena)
}

struct Quoted<'a>(&'a str);

impl std::fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plain = self.0.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\');
        if plain {
            return write!(f, "\"{}\"", self.0);
        }
        f.write_str(&serde_json::to_string(self.0).map_err(|_| std::fmt::Error)?)
    }
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
    use super::*;
    use crate::value::args;

    #[test]
    fn rows_become_one_json_text_and_one_blob() {
        let rows = [args!["a \"quoted\"\n text", 7_i64, vec![1_u8, 2]], args![None::<String>, -1_i64, None::<Vec<u8>>]];
        let (json, arena) = pack(rows.iter());
        assert_eq!(json, r#"[["a \"quoted\"\n text",7,1,2],[null,-1,null,null]]"#);
        assert_eq!(arena, [1, 2]);
    }
}
