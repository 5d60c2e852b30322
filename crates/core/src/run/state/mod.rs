//! The state of a run: the fold of its events. No clock, no chance, no input or output; it never decides.

mod approval;
mod call;
mod fold;
mod permit;

use std::collections::{BTreeMap, BTreeSet};

pub use approval::Approval;
pub use call::{Answered, Call, Doubt, Judged};
pub use fold::Impossible;
pub use permit::NoPermit;

use crate::content::{Content, Hash};
use crate::guard::judge::Grant;
use crate::id::{ApprovalId, CallId};
use crate::label::Labels;
use crate::money::{MicroUsd, TokenUsage};
use crate::run::event::{
    CancelAsked, EndStatus, Errored, ModelAnswered, ModelFailed, ModelRequested, Paused, RunEnded, RunStarted, Thought,
};
use crate::run::status::Status;
use crate::time::Time;

/// Everything that is true of a run, read from its log.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct State {
    /// How it was started; none before its first event.
    pub start: Option<Box<RunStarted>>,
    /// When it was started.
    pub started_at: Time,
    /// When its last event was recorded.
    pub updated_at: Time,
    /// The sequence number of its last event.
    pub seq: u64,
    /// Its model turns, in order.
    pub turns: Vec<Turn>,
    /// The model call that is under way.
    pub asking: Option<ModelRequested>,
    /// The failed attempts at the present turn.
    pub failures: Vec<ModelFailed>,
    /// Its inbox items.
    pub approvals: BTreeMap<ApprovalId, Approval>,
    /// What approvals granted for the rest of the run.
    pub grants: Vec<Grant>,
    /// What it has seen.
    pub labels: Labels,
    /// Tokens so far.
    pub usage: TokenUsage,
    /// Whether some of them are estimates.
    pub estimated: bool,
    /// Money so far.
    pub cost: MicroUsd,
    /// Whether the price of some call is not known.
    pub unpriced: bool,
    /// Why it holds.
    pub pause: Option<Paused>,
    /// Who asked to cancel.
    pub cancel: Option<CancelAsked>,
    /// What went wrong.
    pub error: Option<Errored>,
    /// How it ended, and when.
    pub end: Option<(RunEnded, Time)>,
    /// Files it created, changed or deleted.
    pub files: BTreeSet<String>,
}

/// One model turn: what the model said and the calls it asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// Reasoning and text before calls, in order.
    pub thoughts: Vec<Thought>,
    /// The final answer.
    pub said: Option<Content>,
    /// Usage and the like; none while the answer is being written down.
    pub answered: Option<ModelAnswered>,
    /// The calls, in order.
    pub calls: Vec<Call>,
}

impl Turn {
    /// Whether each call has its one result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.answered.is_some() && self.calls.iter().all(|call| call.ended.is_some())
    }
}

impl State {
    /// Every call of the run, newest turn first.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.turns.iter().rev().flat_map(|turn| turn.calls.iter())
    }

    /// A call by its id.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&Call> {
        self.calls().find(|call| call.id == *id)
    }

    /// The calls that count against the limit: all but the refused ones.
    #[must_use]
    pub fn calls_spent(&self) -> usize {
        self.calls().filter(|call| call.started.is_some() || (call.ended.is_none() && call.judged.is_some())).count()
    }

    /// The last text the model wrote.
    #[must_use]
    pub fn last_text(&self) -> Content {
        let text = |turn: &Turn| turn.said.clone().or_else(|| turn.thoughts.last().map(|thought| thought.text.clone()));
        self.turns.iter().rev().find_map(text).unwrap_or_default()
    }

    /// How the run ended, if it did.
    #[must_use]
    pub fn end_status(&self) -> Option<EndStatus> {
        self.end.as_ref().map(|(end, _)| end.status)
    }

    /// The word for where the run is.
    #[must_use]
    pub fn status(&self) -> Status {
        Status::of(self)
    }

    /// The hash of the policy the run was started under.
    #[must_use]
    pub fn policy(&self) -> Hash {
        self.start.as_ref().map_or(Hash::ZERO, |start| start.policy)
    }
}
