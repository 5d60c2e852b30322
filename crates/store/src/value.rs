//! What goes into a statement and comes out of a row, the same for both databases. Texts are shared, because a run's id is
//! in every row that its append writes.

use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::id::{
    AgentId, ApprovalId, CallId, ChatId, KeyId, NodeId, NotebookId, RuleId, RunId, TokenId, UserId, WorkspaceId,
};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use crate::StoreError;
use crate::seal::Scope;

/// One bound value. Each variant may be NULL, because PostgreSQL wants the type of a NULL, too.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Arg {
    Int(Option<i64>),
    Text(Option<Arc<str>>),
    Bytes(Option<Vec<u8>>),
}

impl Arg {
    /// The bytes of its text.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Int(_) => 0,
            Self::Text(text) => text.as_ref().map_or(0, |text| text.len()),
            Self::Bytes(bytes) => bytes.as_ref().map_or(0, Vec::len),
        }
    }
}

/// The bound values of one statement, or the columns of one row to write.
pub(crate) type Args = Vec<Arg>;

/// Lists values of any bindable type.
macro_rules! args {
    ($($value:expr),* $(,)?) => { vec![$($crate::value::Arg::from($value)),*] };
}
pub(crate) use args;

/// One column of an answer.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// One row of an answer; columns are taken in the order the statement names them.
#[derive(Debug, Clone)]
pub(crate) struct Row(std::vec::IntoIter<Value>);

impl Row {
    pub(crate) fn new(values: Vec<Value>) -> Self {
        Self(values.into_iter())
    }

    /// The bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let of = |value: &Value| match value {
            Value::Null | Value::Int(_) => 0,
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
        };
        self.0.as_slice().iter().map(of).sum()
    }

    /// The columns that are left.
    pub(crate) fn rest(self) -> Vec<Value> {
        self.0.collect()
    }

    /// The next column.
    pub(crate) fn take<T: Column>(&mut self) -> Result<T, StoreError> {
        let value = self.0.next().ok_or_else(|| StoreError::Corrupt("a row has too few columns".into()))?;
        T::read(value).ok_or_else(|| StoreError::Corrupt(format!("a column is no {}", std::any::type_name::<T>())))
    }
}

/// A type that a column can hold.
pub(crate) trait Column: Sized {
    fn read(value: Value) -> Option<Self>;
}

impl<T: Column> Column for Option<T> {
    fn read(value: Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value @ (Value::Int(_) | Value::Text(_) | Value::Bytes(_)) => T::read(value).map(Some),
        }
    }
}

impl Column for i64 {
    fn read(value: Value) -> Option<Self> {
        if let Value::Int(value) = value { Some(value) } else { None }
    }
}

impl Column for u64 {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).and_then(|value| Self::try_from(value).ok())
    }
}

impl Column for u32 {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).and_then(|value| Self::try_from(value).ok())
    }
}

impl Column for bool {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).map(|value| value != 0)
    }
}

impl Column for Time {
    fn read(value: Value) -> Option<Self> {
        i64::read(value).map(Self::from_millis)
    }
}

impl Column for String {
    fn read(value: Value) -> Option<Self> {
        if let Value::Text(value) = value { Some(value) } else { None }
    }
}

impl Column for Vec<u8> {
    fn read(value: Value) -> Option<Self> {
        if let Value::Bytes(value) = value { Some(value) } else { None }
    }
}

impl Column for Hash {
    fn read(value: Value) -> Option<Self> {
        Vec::read(value).and_then(|bytes| bytes.try_into().ok()).map(Self)
    }
}

impl Column for CallId {
    fn read(value: Value) -> Option<Self> {
        String::read(value).and_then(|text| Self::parse(&text))
    }
}

impl From<i64> for Arg {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<u32> for Arg {
    fn from(value: u32) -> Self {
        Self::Int(Some(i64::from(value)))
    }
}

impl From<u64> for Arg {
    /// Counters that leave the databases' integers stay at the top instead of wrapping.
    fn from(value: u64) -> Self {
        Self::Int(Some(i64::try_from(value).unwrap_or(i64::MAX)))
    }
}

impl From<bool> for Arg {
    fn from(value: bool) -> Self {
        Self::Int(Some(i64::from(value)))
    }
}

impl From<Time> for Arg {
    fn from(value: Time) -> Self {
        Self::Int(Some(value.millis()))
    }
}

impl From<&str> for Arg {
    fn from(value: &str) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl From<String> for Arg {
    fn from(value: String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl From<&String> for Arg {
    fn from(value: &String) -> Self {
        Self::Text(Some(value.as_str().into()))
    }
}

impl From<&Arc<str>> for Arg {
    fn from(value: &Arc<str>) -> Self {
        Self::Text(Some(Arc::clone(value)))
    }
}

impl From<Vec<u8>> for Arg {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value))
    }
}

impl From<Option<Vec<u8>>> for Arg {
    fn from(value: Option<Vec<u8>>) -> Self {
        Self::Bytes(value)
    }
}

impl From<Hash> for Arg {
    fn from(value: Hash) -> Self {
        Self::Bytes(Some(value.0.to_vec()))
    }
}

impl From<Option<Time>> for Arg {
    fn from(value: Option<Time>) -> Self {
        Self::Int(value.map(Time::millis))
    }
}

impl From<Option<u64>> for Arg {
    fn from(value: Option<u64>) -> Self {
        value.map_or(Self::Int(None), Self::from)
    }
}

impl From<Option<String>> for Arg {
    fn from(value: Option<String>) -> Self {
        Self::Text(value.map(Arc::from))
    }
}

impl From<&Option<String>> for Arg {
    fn from(value: &Option<String>) -> Self {
        Self::Text(value.as_deref().map(Arc::from))
    }
}

/// Ids are stored as the text everybody sees.
macro_rules! as_text {
    ($($id:ty),* $(,)?) => {$(
        impl From<$id> for Arg {
            fn from(value: $id) -> Self {
                Self::Text(Some(value.to_string().into()))
            }
        }

        impl From<&$id> for Arg {
            fn from(value: &$id) -> Self {
                Self::Text(Some(value.to_string().into()))
            }
        }

        impl From<Option<$id>> for Arg {
            fn from(value: Option<$id>) -> Self {
                Self::Text(value.map(|id| id.to_string().into()))
            }
        }
    )*};
}

macro_rules! from_text {
    ($($id:ty),* $(,)?) => {$(
        impl Column for $id {
            fn read(value: Value) -> Option<Self> {
                String::read(value).and_then(|text| text.parse().ok())
            }
        }
    )*};
}

as_text!(
    KeyId,
    TokenId,
    WorkspaceId,
    UserId,
    NotebookId,
    AgentId,
    ChatId,
    RunId,
    ApprovalId,
    RuleId,
    NodeId,
    CallId,
    StreamId,
    Scope
);
from_text!(
    KeyId,
    TokenId,
    WorkspaceId,
    UserId,
    NotebookId,
    AgentId,
    ChatId,
    RunId,
    ApprovalId,
    RuleId,
    NodeId,
    StreamId
);
