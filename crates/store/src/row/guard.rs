//! What the guard needs to be kept: standing rules, and marks on contents.

use adjutant_core::content::Hash;
use adjutant_core::id::{AgentId, NotebookId, RuleId, RunId, WorkspaceId};
use adjutant_core::time::Time;

/// A content of a file that was written by a run that had read untrusted content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MarkRow {
    /// The notebook.
    pub notebook: NotebookId,
    /// The file.
    pub path: String,
    /// The content.
    pub hash: Hash,
}

/// A standing rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRow {
    /// The rule.
    pub id: RuleId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The agent it is about; every agent when none.
    pub agent: Option<AgentId>,
    /// The run it is about; every run when none.
    pub run: Option<RunId>,
    /// When it ends; never when none.
    pub expires_at: Option<Time>,
    /// The whole rule: JSON, sealed at rest.
    pub body: String,
}
