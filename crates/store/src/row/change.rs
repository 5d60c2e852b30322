//! What listeners are told about a commit.

use std::fmt;
use std::str::FromStr;

use adjutant_core::id::{ChatId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use super::{ChatRow, Writer};

/// Something was committed; read to see what. Never carries data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A stream has grown by what its owner did.
    Stream(StreamId),
    /// A stream has grown by a command: whoever drives its run has something to read.
    Command(StreamId),
    /// A chat was made, changed or taken away.
    Chat(ChangedChat),
    /// Some run may have become due.
    Due,
    /// Changes may have been missed: read again whatever matters.
    Reread,
}

/// A chat, and who may hear of it: one that is gone cannot be asked any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChangedChat {
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The chat.
    pub chat: ChatId,
    /// Who started it.
    pub owner: UserId,
    /// Whether everybody in the workspace could see it, or can.
    pub shared: bool,
}

impl From<&ChatRow> for ChangedChat {
    fn from(row: &ChatRow) -> Self {
        Self { workspace: row.workspace, chat: row.id, owner: row.owner, shared: row.shared }
    }
}

impl fmt::Display for ChangedChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workspace, chat, owner, shared } = self;
        write!(f, "{chat}/{workspace}/{owner}/{}", if *shared { "shared" } else { "own" })
    }
}

impl FromStr for ChangedChat {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or(());
        Ok(Self {
            chat: next()?.parse().map_err(drop)?,
            workspace: next()?.parse().map_err(drop)?,
            owner: next()?.parse().map_err(drop)?,
            shared: match next()? {
                "shared" => true,
                "own" => false,
                _ => return Err(()),
            },
        })
    }
}

impl Change {
    pub(crate) const fn of(writer: Writer, stream: StreamId) -> Self {
        match writer {
            Writer::Owner { .. } => Self::Stream(stream),
            Writer::Command => Self::Command(stream),
        }
    }
}
