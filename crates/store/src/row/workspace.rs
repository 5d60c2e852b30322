//! Tenants, and what counts in them.

use adjutant_core::id::{AgentId, RuleId, UserId, WorkspaceId};
use adjutant_core::time::Time;

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRow {
    /// The workspace.
    pub id: WorkspaceId,
    /// Its short name, unique.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// IANA time zone.
    pub time_zone: String,
    /// When it was made.
    pub created_at: Time,
    /// How often it was saved.
    pub version: u64,
    /// What texts may hold, for all its agents: a JSON array.
    pub content_filter: String,
    /// How long what was said in runs that have ended is kept, such as `90d`; none is for ever.
    pub keep_runs: Option<String>,
    /// The tools and toolsets there are for its agents, a JSON array; none is all.
    pub tools: Option<String>,
    /// The providers whose models may be asked: a JSON array of names; none is all of them.
    pub providers: Option<String>,
    /// The model of agents that leave it to the default; none is the instance's own.
    pub default_model: Option<String>,
}

impl WorkspaceRow {
    /// Whether it was taken away: then its name is free for another, and nothing of it is found any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.slug == self.id.to_string()
    }

    /// A new one, with nothing set.
    #[must_use]
    pub fn new(id: WorkspaceId, slug: impl Into<String>, name: impl Into<String>, created_at: Time) -> Self {
        let (slug, name) = (slug.into(), name.into());
        let (time_zone, content_filter) = ("UTC".to_owned(), "[]".to_owned());
        Self {
            id,
            slug,
            name,
            time_zone,
            created_at,
            version: 1,
            content_filter,
            keep_runs: None,
            tools: None,
            providers: None,
            default_model: None,
        }
    }
}

/// The names of everything that says what an agent may do at a moment: while they are the same, so is the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyNames {
    /// The version of the agent.
    pub agent: u64,
    /// The version of its workspace.
    pub workspace: u64,
    /// The rules that count.
    pub rules: Vec<RuleId>,
}

/// What counts for a run at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// What its agent may do.
    pub names: PolicyNames,
    /// What whoever started it is in the workspace; none where they are nobody, or switched off.
    pub role: Option<String>,
    /// Whether a stop switch is on. Then nothing is announced, whatever else counts.
    pub halted: bool,
}

/// What an append was concluded from. If something else counts by now, nothing is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Under {
    /// The agent.
    pub agent: AgentId,
    /// Whoever started the run.
    pub person: UserId,
    /// When that was read.
    pub at: Time,
    /// What counted.
    pub policy: Policy,
}
