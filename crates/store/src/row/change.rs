//! What listeners are told about a commit.

use adjutant_core::run::chain::StreamId;

use super::Writer;

/// Something was committed; read the log to see what. Never carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A stream has grown by what its owner did.
    Stream(StreamId),
    /// A stream has grown by a command: whoever drives its run has something to read.
    Command(StreamId),
    /// Some run may have become due.
    Due,
    /// Changes may have been missed: read again whatever matters.
    Reread,
}

impl Change {
    pub(crate) const fn of(writer: Writer, stream: StreamId) -> Self {
        match writer {
            Writer::Owner { .. } => Self::Stream(stream),
            Writer::Command => Self::Command(stream),
        }
    }
}
