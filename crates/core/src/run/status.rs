//! The word for where a run is, and when somebody should look at it again: both are read off the state.

use serde::{Deserialize, Serialize};

use crate::run::event::EndStatus;
use crate::run::state::{Approval, Call, State};
use crate::run::step::{Step, step};
use crate::time::Time;

/// When a run is due that can go on at once: before every moment. A moment of the node that wrote last would be one of *its*
/// clock, and no other node could take the run up until its own has come that far.
pub const AT_ONCE: Time = Time::from_millis(0);

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Status {
    /// Nobody has taken it up yet.
    Queued,
    /// It goes on.
    Running,
    /// A person has to decide.
    WaitingApproval,
    /// It holds, by request or at a limit.
    Paused,
    /// A person has to say what became of a call.
    InDoubt,
    /// It was asked to stop and has not yet.
    Cancelling,
    /// It ended with an answer.
    Completed,
    /// It ended with an error.
    Failed,
    /// It ended by request.
    Cancelled,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Running,
        Self::WaitingApproval,
        Self::Paused,
        Self::InDoubt,
        Self::Cancelling,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub(crate) fn of(state: &State) -> Self {
        if let Some(status) = state.end_status() {
            return match status {
                EndStatus::Completed => Self::Completed,
                EndStatus::Failed => Self::Failed,
                EndStatus::Cancelled => Self::Cancelled,
            };
        }
        if state.cancel.is_some() {
            return Self::Cancelling;
        }
        // The moment of its last event: what is asked is where the run is, not whether something has expired since.
        let next = step(state, state.updated_at);
        if state.start.is_none() || next == (Step::CallModel { turn: 1, attempt: 1 }) {
            Self::Queued
        } else if next.goes_on() {
            Self::Running
        } else if state.pause.is_some() {
            Self::Paused
        } else if state.calls().any(Call::is_in_doubt) {
            Self::InDoubt
        } else if state.approvals.values().any(Approval::is_pending) {
            Self::WaitingApproval
        } else {
            Self::Running
        }
    }

    /// Whether the run is over.
    #[must_use]
    pub const fn is_end(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The word of the API.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Queued => "QUEUED",
            Self::Running => "RUNNING",
            Self::WaitingApproval => "WAITING_APPROVAL",
            Self::Paused => "PAUSED",
            Self::InDoubt => "IN_DOUBT",
            Self::Cancelling => "CANCELLING",
            Self::Completed => "COMPLETED",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// The status of a word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }
}

impl State {
    /// When somebody should drive the run next: [`AT_ONCE`], at a moment, or only after a command.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        let next = step(self, self.updated_at);
        if let Step::Wait(until) = next { until } else { next.goes_on().then_some(AT_ONCE) }
    }
}
