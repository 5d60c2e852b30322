//! The state of a run: the fold of its events. No clock, no chance, no input or output; it never decides.

mod approval;
mod budget;
mod call;
mod fold;
mod permit;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use approval::Approval;
pub use budget::{BudgetItem, Settled};
pub use call::{Answered, Call, Doubt, Judged, Seen};
pub use fold::Impossible;
pub use permit::NoPermit;

use crate::content::{Content, Hash};
use crate::id::{ApprovalId, CallId};
use crate::label::Labels;
use crate::limits::{OUTPUT_REPAIRS, RUN_GAP};
use crate::message::FinishReason;
use crate::money::{MicroUsd, TokenUsage};
use crate::run::event::{
    CancelAsked, EndStatus, Errored, ModelAnswered, ModelFailed, ModelRequested, Paused, RunEnded, RunStarted, Thought,
    ThoughtForm,
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
    /// How long it went on until then, not counting the time it waited for a person.
    pub went_on: Duration,
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
    /// What it asked for when its money was used up.
    pub budget_items: BTreeMap<ApprovalId, BudgetItem>,
    /// What people added to its own budget.
    pub raised: MicroUsd,
    /// Models without a known price that people let it ask.
    pub priceless: BTreeSet<String>,
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
    /// What the model said in it, to a person or before its calls. Its reasoning is not that.
    #[must_use]
    pub fn words(&self) -> Option<&Content> {
        let before_calls = self.thoughts.iter().rev().find(|thought| thought.form == ThoughtForm::Text);
        self.said.as_ref().or_else(|| before_calls.map(|thought| &thought.text)).filter(|text| !text.is_empty())
    }

    /// Why its answer does not fit the schema of the run.
    #[must_use]
    pub fn unfit(&self) -> Option<&str> {
        self.answered.as_ref().filter(|_| self.calls.is_empty())?.unfit.as_deref()
    }

    /// Whether the answer was heard out: every call it announced is there.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.answered.as_ref().is_some_and(|answered| self.calls.len() >= answered.calls as usize)
    }

    /// Whether each call has its one result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_whole() && self.calls.iter().all(|call| call.ended.is_some())
    }
}

impl State {
    /// Whether only a person can let it go on.
    #[must_use]
    pub fn waits_for_person(&self) -> bool {
        self.pause.is_some() || self.approvals.values().any(Approval::is_pending)
    }

    /// How long it has gone on by now, not counting the time it waited for a person, or lay where nobody drove it.
    #[must_use]
    pub fn went_on_until(&self, now: Time) -> Duration {
        if self.waits_for_person() { self.went_on } else { self.went_on + now.since(self.updated_at).min(RUN_GAP) }
    }

    /// The earlier call of the turn that a person is asked about and that asks for the very same thing (T8). How its
    /// arguments are written does not make it another.
    #[must_use]
    pub fn twin(&self, call: &CallId) -> Option<&CallId> {
        let read = |call: &Call| serde_json::from_str::<serde_json::Value>(&call.arguments.text()).ok();
        let turn = self.turns.last()?;
        let own = turn.calls.iter().find(|other| other.id == *call)?;
        let arguments = read(own)?;
        let mut earlier = turn.calls.iter().take_while(|other| other.id != *call);
        let twin = earlier.find(|other| {
            other.tool == own.tool && other.approval.is_some() && read(other).as_ref() == Some(&arguments)
        });
        twin.map(|twin| &twin.id)
    }

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
        self.calls().filter(|call| call.is_spent()).count()
    }

    /// Whether the model is asked again, because its last answer does not fit the schema of the run.
    #[must_use]
    pub fn wants_fitting_answer(&self) -> bool {
        let Some(last) = self.turns.last().filter(|turn| turn.unfit().is_some()) else { return false };
        let finish = last.answered.as_ref().map(|answered| answered.finish);
        let tried = self.turns.iter().filter(|turn| turn.unfit().is_some()).count();
        matches!(finish, Some(FinishReason::Stop | FinishReason::Length)) && tried <= OUTPUT_REPAIRS
    }

    /// The number of the next turn, from 1.
    #[must_use]
    pub fn next_turn(&self) -> u32 {
        u32::try_from(self.turns.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The last text the model wrote for people; its reasoning is not.
    #[must_use]
    pub fn last_text(&self) -> Content {
        self.turns.iter().rev().find_map(Turn::words).cloned().unwrap_or_default()
    }

    /// The blocks that have to be loaded before the calls that are still open can be judged or run: their arguments.
    #[must_use]
    pub fn missing(&self) -> Vec<Hash> {
        let open = self.calls().filter(|call| call.ended.is_none());
        open.filter_map(|call| call.arguments.missing()).collect()
    }

    /// Fills in texts that were loaded; a block that is not among them was erased.
    pub fn fill(&mut self, texts: &HashMap<Hash, Arc<str>>) {
        for call in self.calls_mut().filter(|call| call.ended.is_none()) {
            let started = call.started.as_mut().map(|started| &mut started.arguments);
            for content in std::iter::once(&mut call.arguments).chain(started) {
                if let Some(text) = content.missing().and_then(|hash| texts.get(&hash)) {
                    content.fill(text);
                }
            }
        }
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
