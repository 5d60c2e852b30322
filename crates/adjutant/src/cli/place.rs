//! Where a command does its work: on the data directory itself, or at the server that has it.

use super::Context;
use super::remote::Remote;
use crate::failure::Failure;
use crate::instance::Instance;

/// Where a command does its work.
pub(super) enum Place {
    /// Here: the data directory is ours until the command ends.
    Here(Box<Instance>),
    /// At a server.
    There(Remote),
}

/// What a command does with runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// It looks, or records a command.
    Looks,
    /// It makes runs go on, for which every agent has to be readable.
    Drives,
}

impl Place {
    /// The server if there is one, else the data directory.
    pub(super) async fn find(context: &Context, what: &str, work: Work) -> Result<Self, Failure> {
        if let Some(remote) = Remote::found(context).await? {
            return Ok(Self::There(remote));
        }
        let instance = match work {
            Work::Looks => context.open(what).await?,
            Work::Drives => context.open_to_drive(what).await?,
        };
        Ok(Self::Here(Box::new(instance)))
    }

    pub(super) async fn close(self) {
        match self {
            Self::Here(instance) => instance.close().await,
            Self::There(_) => {}
        }
    }
}
