//! Which rows a list shows.

use adjutant_core::id::{AgentId, ApprovalId, ChatId, RunId, UserId};

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only of this chat.
    pub chat: Option<ChatId>,
    /// Only in this status.
    pub status: Option<String>,
    /// Only started by this.
    pub trigger: Option<String>,
    /// Only made from this run.
    pub parent: Option<RunId>,
    /// Only what this person may see without being an admin: what they started, and shared chats.
    pub visible_to: Option<UserId>,
    /// Only older than this run (keyset cursor).
    pub before: Option<RunId>,
    /// Runs that an edit replaced, too.
    pub superseded: bool,
}

/// Which end of a list comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The oldest.
    #[default]
    OldestFirst,
    /// The newest.
    NewestFirst,
}

/// Which inbox items to list.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only in this status.
    pub status: Option<String>,
    /// Only in any status but this.
    pub except: Option<String>,
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only what this person may see without being an admin: of runs that they may see, of agents that are theirs,
    /// and of those whose approver they are.
    pub visible_to: Option<UserId>,
    /// Which comes first.
    pub order: Order,
    /// Only what comes after this one in that order (keyset cursor).
    pub after: Option<ApprovalId>,
}

/// Which chats to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct ChatFilter {
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only what this person may see without being an admin.
    pub visible_to: Option<UserId>,
    /// Only older than this one (keyset cursor).
    pub before: Option<ChatId>,
}
