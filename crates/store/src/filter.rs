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
    /// Only what this person may see without being an admin: what they started, and shared chats.
    pub visible_to: Option<UserId>,
    /// Only older than this run (keyset cursor).
    pub before: Option<RunId>,
    /// Runs that an edit replaced, too.
    pub superseded: bool,
}

/// Which inbox items to list, oldest first.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only in this status.
    pub status: Option<String>,
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only what this person may see without being an admin: of runs that they may see, and of agents that are theirs.
    pub visible_to: Option<UserId>,
    /// Only newer than this one (keyset cursor).
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
