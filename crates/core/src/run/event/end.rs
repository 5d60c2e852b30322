//! What is recorded of the run as a whole after its start: what it has seen, that it holds, how it ends.

use serde::{Deserialize, Serialize};

use super::approval::Actor;
use crate::budget::{BudgetAsk, Raise};
use crate::content::Content;
use crate::label::Labels;
use crate::money::{MicroUsd, TokenUsage};
use crate::time::Time;

/// The run has seen content of a new kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelsRaised {
    /// What was added.
    pub labels: Labels,
    /// Where it came from.
    pub source: String,
}

/// Why a run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody asked.
    Person,
    /// A budget is used up.
    Budget,
    /// A rate is used up.
    Rate,
}

/// The run holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    /// Why.
    pub reason: PauseReason,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
    /// Who asked, if somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Actor>,
    /// What is asked for, where the money is used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ask: Option<Box<BudgetAsk>>,
}

impl Paused {
    /// Whether it has gone on by itself.
    #[must_use]
    pub fn is_over(&self, now: Time) -> bool {
        self.until.is_some_and(|until| until <= now)
    }
}

/// The run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Who said so.
    pub by: Actor,
    /// The money they added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised: Option<Raise>,
    /// The model without a known price that they let the run ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
}

/// Spending has reached an amount that somebody wanted to hear of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BudgetAlerted {
    /// The purse.
    pub purse: String,
    /// The amount.
    pub at: MicroUsd,
    /// What was spent then.
    pub spent: MicroUsd,
}

/// Somebody asked to cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelAsked {
    /// Who.
    pub by: Actor,
    /// Why.
    pub reason: String,
}

/// The run was cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Why.
    pub reason: String,
}

/// Something went wrong that ends the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Errored {
    /// The machine's word.
    pub code: String,
    /// What happened, what was not done, what to do next.
    pub message: String,
    /// Whether starting again may help.
    #[serde(default)]
    pub retryable: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndStatus {
    /// With an answer.
    Completed,
    /// With an error.
    Failed,
    /// By request.
    Cancelled,
}

/// The run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// How.
    pub status: EndStatus,
    /// The answer, or the last text.
    pub result: Content,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// Money in all.
    pub cost: MicroUsd,
    /// Files it created, changed or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
}
