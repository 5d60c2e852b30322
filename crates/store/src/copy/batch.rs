//! Rows on their way, and their form in a file: the table, its columns, then each value with its type and length.

use super::tables::{self, Table};
use crate::StoreError;
use crate::set::Kind;
use crate::value::{Arg, Args, Value};

const NULL: u8 = 0;
const INT: u8 = 1;
const TEXT: u8 = 2;
const BYTES: u8 = 3;

/// One column: its name and type.
pub(super) type Column = (String, Kind);

/// Rows of one table.
#[derive(Debug)]
pub struct Batch {
    table: &'static str,
    pub(super) columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
}

impl Batch {
    pub(super) fn new(table: &'static Table, columns: Vec<Column>, rows: Vec<Vec<Value>>) -> Self {
        Self { table: table.name, columns, rows }
    }

    /// The table they belong to.
    #[must_use]
    pub fn table(&self) -> &'static str {
        self.table
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &[Value]> {
        self.rows.iter().map(Vec::as_slice)
    }

    /// Leaves out the first ones.
    pub(super) fn leave_out(&mut self, first: usize) {
        self.rows.drain(..first.min(self.rows.len()));
    }

    /// The rows as a statement takes them.
    pub(super) fn args(&self) -> Vec<Args> {
        let arg = |(value, (_, kind)): (&Value, &Column)| match (value, kind) {
            (Value::Int(value), _) => Arg::Int(Some(*value)),
            (Value::Text(value), _) => Arg::Text(Some(value.as_str().into())),
            (Value::Bytes(value), _) => Arg::Bytes(Some(value.clone())),
            (Value::Null, Kind::Int) => Arg::Int(None),
            (Value::Null, Kind::Text) => Arg::Text(None),
            (Value::Null, Kind::Bytes) => Arg::Bytes(None),
        };
        self.rows.iter().map(|row| row.iter().zip(&self.columns).map(arg).collect()).collect()
    }

    /// The rows as a file keeps them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_text(&mut bytes, self.table);
        put_size(&mut bytes, self.columns.len());
        for (name, kind) in &self.columns {
            bytes.push(word(*kind));
            put_text(&mut bytes, name);
        }
        put_size(&mut bytes, self.rows.len());
        for row in &self.rows {
            bytes.extend(encode(row));
        }
        bytes
    }

    /// Rows that a file kept.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when they are not what [`Batch::to_bytes`] wrote, or of a table that we do not know.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let mut from = Reader(bytes);
        let name = from.text()?;
        let table = tables::by_name(&name).ok_or_else(|| StoreError::Corrupt(format!("there is no table {name}")))?;
        let columns = (0..from.size()?).map(|_| {
            let kind = match from.byte()? {
                INT => Kind::Int,
                TEXT => Kind::Text,
                BYTES => Kind::Bytes,
                _ => return Err(broken()),
            };
            Ok((from.text()?, kind))
        });
        let columns = columns.collect::<Result<Vec<_>, StoreError>>()?;
        let mut rows = Vec::new();
        for _ in 0..from.size()? {
            rows.push((0..columns.len()).map(|_| from.value()).collect::<Result<Vec<_>, _>>()?);
        }
        if from.0.is_empty() { Ok(Self { table: table.name, columns, rows }) } else { Err(broken()) }
    }
}

const fn word(kind: Kind) -> u8 {
    match kind {
        Kind::Int => INT,
        Kind::Text => TEXT,
        Kind::Bytes => BYTES,
    }
}

/// One row, the same whatever database it comes from.
pub(super) fn encode(row: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in row {
        match value {
            Value::Null => bytes.push(NULL),
            Value::Int(value) => {
                bytes.push(INT);
                bytes.extend(value.to_le_bytes());
            }
            Value::Text(value) => {
                bytes.push(TEXT);
                put_text(&mut bytes, value);
            }
            Value::Bytes(value) => {
                bytes.push(BYTES);
                put_size(&mut bytes, value.len());
                bytes.extend(value);
            }
        }
    }
    bytes
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put_size(bytes, text.len());
    bytes.extend(text.as_bytes());
}

fn put_size(bytes: &mut Vec<u8>, size: usize) {
    bytes.extend((size as u64).to_le_bytes());
}

fn broken() -> StoreError {
    StoreError::Corrupt("rows of a copy are not as they were written".to_owned())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(broken)?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, StoreError> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn number(&mut self) -> Result<[u8; 8], StoreError> {
        self.take(8)?.try_into().map_err(|_| broken())
    }

    fn size(&mut self) -> Result<usize, StoreError> {
        usize::try_from(u64::from_le_bytes(self.number()?)).map_err(|_| broken())
    }

    fn text(&mut self) -> Result<String, StoreError> {
        let size = self.size()?;
        String::from_utf8(self.take(size)?.to_vec()).map_err(|_| broken())
    }

    fn value(&mut self) -> Result<Value, StoreError> {
        Ok(match self.byte()? {
            NULL => Value::Null,
            INT => Value::Int(i64::from_le_bytes(self.number()?)),
            TEXT => Value::Text(self.text()?),
            BYTES => {
                let size = self.size()?;
                Value::Bytes(self.take(size)?.to_vec())
            }
            _ => return Err(broken()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_out_of_a_file_as_they_went_in_and_a_cut_is_found() {
        let Some(table) = tables::by_name("meta") else { panic!("meta") };
        let columns = vec![("a".to_owned(), Kind::Int), ("b".to_owned(), Kind::Text), ("c".to_owned(), Kind::Bytes)];
        let rows = vec![
            vec![Value::Int(-5), Value::Text("süß".to_owned()), Value::Bytes(vec![0, 255])],
            vec![Value::Null, Value::Null, Value::Null],
        ];
        let bytes = Batch::new(table, columns, rows).to_bytes();
        let read = Batch::from_bytes(&bytes).unwrap();
        assert_eq!((read.table(), read.len(), read.to_bytes()), ("meta", 2, bytes.clone()));
        for end in 0..bytes.len() {
            assert!(Batch::from_bytes(&bytes[..end]).is_err(), "cut at {end}");
        }
    }
}
