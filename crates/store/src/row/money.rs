//! Rows about money: model calls, budgets, keys.

use adjutant_core::id::{AgentId, KeyId, RunId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

/// One attempt to call a model, once it is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCallRow {
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// The log it is recorded in: a run's, or the workspace's for calls outside of runs.
    pub log: StreamId,
    /// The turn, from 1; outside of runs the number of its entry in the log.
    pub turn: u32,
    /// The attempt at it, from 1.
    pub attempt: u32,
    /// The agent; none outside of runs.
    pub agent: Option<AgentId>,
    /// The person it was made for.
    pub person: UserId,
    /// The stored key it was made with.
    pub key: Option<KeyId>,
    /// The model that was asked.
    pub model: String,
    /// The model that answered, or began to.
    pub served: Option<String>,
    /// When it was over.
    pub at: Time,
    /// Why it stopped, or what kind of failure it was.
    pub outcome: String,
    /// Tokens.
    pub usage: TokenUsage,
    /// Whether they are our estimate.
    pub estimated: bool,
    /// What it cost; none where the price is not known.
    pub cost: Option<MicroUsd>,
    /// The state of the prices it was reckoned with.
    pub price_version: Option<String>,
    /// How long it took.
    pub ms: u64,
}

/// Why calls stop that were answered; every other word is a kind of failure.
pub(crate) const ANSWERED: [&str; 6] = ["stop", "tool_calls", "length", "content_filter", "refusal", "error"];

impl ModelCallRow {
    /// Whether no whole answer came. Which model began to answer may be known all the same.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        !ANSWERED.contains(&self.outcome.as_str())
    }
}

/// Which model calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// From this moment on.
    pub from: Option<Time>,
    /// Before this moment.
    pub to: Option<Time>,
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only of this agent.
    pub agent: Option<AgentId>,
    /// Only for this person.
    pub person: Option<UserId>,
    /// Only with this key.
    pub key: Option<KeyId>,
    /// Only of this model.
    pub model: Option<String>,
}

/// Model calls that are alike in everything usage is grouped by, within a quarter of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRow {
    /// The agent; none outside of runs.
    pub agent: Option<AgentId>,
    /// The person.
    pub person: UserId,
    /// The stored key.
    pub key: Option<KeyId>,
    /// The model that was asked.
    pub model: String,
    /// When the quarter of an hour began.
    pub at: Time,
    /// How many.
    pub calls: u64,
    /// How many of them failed.
    pub failed: u64,
    /// How many have no known price.
    pub unpriced: u64,
    /// How many have estimated tokens.
    pub estimated: u64,
    /// Tokens.
    pub usage: TokenUsage,
    /// What they cost, as far as it is known.
    pub cost: MicroUsd,
}

/// What somebody may spend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetRow {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// `workspace`, `person` or `key`.
    pub kind: String,
    /// Which.
    pub subject: String,
    /// The budget: JSON.
    pub body: String,
    /// When it was saved.
    pub saved_at: Time,
}

/// A provider's key that somebody brought, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderKeyRow {
    /// The key.
    pub id: KeyId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Whose it is: `workspace`, `person` or `agent`.
    pub kind: String,
    /// Which.
    pub subject: String,
    /// The provider it is for.
    pub provider: String,
    /// What people call it.
    pub name: String,
    /// Its last four characters.
    pub hint: String,
    /// The hosts it may go to.
    pub hosts: Vec<String>,
    /// Who brought it.
    pub created_by: UserId,
    /// When.
    pub created_at: Time,
    /// When its value was last replaced.
    pub rotated_at: Option<Time>,
}
