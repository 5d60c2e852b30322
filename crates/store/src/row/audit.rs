//! What an audit reads, across runs and audit logs.

use adjutant_core::id::{AgentId, RunId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

/// One entry of the audit: an event of a run or of an audit log, by what it can be found by. Its words are in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRow {
    /// The log it stands in.
    pub stream: StreamId,
    /// Its place there.
    pub seq: u64,
    /// When it was recorded.
    pub time: Time,
    /// The kind of the event.
    pub kind: String,
    /// Who did it; none where the agent itself or the instance did.
    pub actor: Option<String>,
    /// The agent it is about.
    pub agent: Option<AgentId>,
    /// The run it is about.
    pub run: Option<RunId>,
    /// The tool, of a call.
    pub tool: Option<String>,
    /// The first path that a call touches.
    pub target: Option<String>,
    /// What the guard said of a call: `allow`, `ask` or `deny`.
    pub verdict: Option<String>,
    /// Whether it failed or was refused.
    pub is_error: bool,
}

impl AuditRow {
    /// Its place in the order of the audit.
    #[must_use]
    pub fn place(&self) -> AuditPlace {
        AuditPlace { time: self.time, stream: self.stream, seq: self.seq }
    }
}

/// A place in the order of the audit: by time, then by log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditPlace {
    /// When it was recorded.
    pub time: Time,
    /// The log.
    pub stream: StreamId,
    /// The place in the log.
    pub seq: u64,
}

/// Which entries of the audit to list, newest first.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of these kinds, if any are named.
    pub kinds: Vec<String>,
    /// Only what this one did.
    pub actor: Option<String>,
    /// Only about this agent.
    pub agent: Option<AgentId>,
    /// Only about this run.
    pub run: Option<RunId>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only what touches this path first.
    pub target: Option<String>,
    /// Only calls of which the guard said this.
    pub verdict: Option<String>,
    /// Only what failed, or only what did not.
    pub is_error: Option<bool>,
    /// Not before this moment.
    pub since: Option<Time>,
    /// Before this moment.
    pub until: Option<Time>,
    /// Only older than this entry (keyset cursor).
    pub before: Option<AuditPlace>,
}
