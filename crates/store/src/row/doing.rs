//! What an append does beside recording it: both happen, or neither.

use adjutant_core::budget::Spend;
use adjutant_core::id::{AgentId, NotebookId, RuleId, RunId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use super::{Admission, AgentRow, KeyChange, NewTenant, NotebookRow, Rewrapped, WorkspaceRow};

/// A stop switch as it is to be: kept while it is on, gone when it is off. Made by
/// [`Store::switch`](crate::Store::switch).
#[derive(Debug, Clone)]
pub struct Switch {
    pub(crate) key: String,
    pub(crate) value: Option<Vec<u8>>,
}

/// Something that is done in the transaction that records it.
#[derive(Debug, Clone)]
pub enum Doing {
    /// Saves a version of an agent; the one before it must be the current one.
    SaveAgent(Box<AgentRow>),
    /// Takes an agent away, whose current version this must be. Its versions stay, because runs refer to them.
    DeleteAgent(AgentId, u64),
    /// Removes a rule, which must be there.
    RemoveRule(RuleId),
    /// Takes a message away that waits, which must be there: it becomes the run that starts with these events.
    StartWaiting(RunId),
    /// Changes who may come in; recorded in the log of the instance.
    Admit(Admission),
    /// Changes the keys of the workspace.
    Key(KeyChange),
    /// Adds a notebook to the workspace.
    AddNotebook(Box<NotebookRow>),
    /// Gives a notebook of the workspace another short name, which must be free.
    RenameNotebook(NotebookId, String),
    /// Takes a notebook away from the workspace, which must be there and have no run that goes on.
    RemoveNotebook(NotebookId),
    /// Takes a workspace away, of which every run must have ended and be erased; recorded in the log of the instance.
    CloseWorkspace(WorkspaceId),
    /// Makes a workspace; recorded in the log of the instance.
    AddWorkspace(Box<NewTenant>),
    /// Gives the instance another master key; recorded in its log. No node may be alive.
    ReplaceMaster(Rewrapped),
    /// Saves the settings of the workspace; the version before this one must be the current one.
    SaveWorkspace(Box<WorkspaceRow>),
    /// Turns a stop switch on or off; off, it must have been on. Recorded in the log of what it stops.
    Halt(Switch),
    /// Puts money aside for something outside of runs, or settles it. If one change is refused, nothing is written.
    Spend(Vec<Spend>),
}

impl Doing {
    /// Whether it is recorded in such a log: what starts is, in the run's own; everything else is in an audit log.
    pub(crate) fn goes_with(&self, stream: StreamId) -> bool {
        match (self, stream) {
            (Self::StartWaiting(run), StreamId::Run(started)) => *run == started,
            (Self::Admit(_) | Self::AddWorkspace(_) | Self::CloseWorkspace(_) | Self::ReplaceMaster(_), stream) => {
                stream == StreamId::System
            }
            (
                Self::Key(_)
                | Self::AddNotebook(_)
                | Self::RenameNotebook(..)
                | Self::RemoveNotebook(_)
                | Self::SaveWorkspace(_)
                | Self::Spend(_),
                stream,
            ) => matches!(stream, StreamId::Workspace(_)),
            (Self::StartWaiting(_), _) | (_, StreamId::Run(_)) => false,
            _ => true,
        }
    }

    /// Whether calls may be judged differently afterwards, or runs started that were not before or are not any more.
    pub(crate) const fn changes_policy(&self) -> bool {
        match self {
            Self::SaveAgent(_)
            | Self::DeleteAgent(..)
            | Self::RemoveRule(_)
            | Self::Admit(_)
            | Self::SaveWorkspace(_)
            | Self::Halt(_)
            | Self::RenameNotebook(..)
            | Self::RemoveNotebook(_)
            | Self::CloseWorkspace(_)
            | Self::ReplaceMaster(_) => true,
            Self::StartWaiting(_) | Self::Key(_) | Self::AddNotebook(_) | Self::AddWorkspace(_) | Self::Spend(_) => {
                false
            }
        }
    }

    /// Whether it is about something of this workspace.
    pub(crate) fn is_of(&self, workspace: WorkspaceId) -> bool {
        match self {
            Self::SaveAgent(row) => row.workspace == workspace,
            Self::AddNotebook(row) => row.workspace == workspace,
            Self::SaveWorkspace(row) => row.id == workspace,
            Self::Key(KeyChange::Add(row, _) | KeyChange::Rotate(row, _)) => row.workspace == workspace,
            Self::DeleteAgent(..)
            | Self::RemoveRule(_)
            | Self::StartWaiting(_)
            | Self::Admit(_)
            | Self::RenameNotebook(..)
            | Self::RemoveNotebook(_)
            | Self::AddWorkspace(_)
            | Self::CloseWorkspace(_)
            | Self::ReplaceMaster(_)
            | Self::Halt(_)
            | Self::Spend(_)
            | Self::Key(KeyChange::Remove(_)) => true,
        }
    }
}
