//! What comes next: a pure function of the state and the time. It returns effects as data; the driver carries them out.

use std::collections::BTreeSet;

use super::settle;
pub use super::settle::Settlement;
use crate::guard::judge::Decision as Judgement;
use crate::id::{ApprovalId, CallId};
use crate::limits::{RUN_TIME, STUCK_REPEATS};
use crate::message::FinishReason;
use crate::run::event::{Errored, Paused, RunLimits};
use crate::run::state::{Approval, Call, State, Turn};
use crate::time::Time;

/// The rule and the error code when the model asks for more calls than the run has.
pub const MAX_TOOL_CALLS: &str = "max_tool_calls";

/// The error codes of runs that stopped at a limit and can be gone on with: their last turn is complete.
pub const AT_A_LIMIT: [&str; 4] = ["max_turns", MAX_TOOL_CALLS, "stuck", "timeout"];

/// The next thing to do for a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Announce a model call and make it.
    CallModel {
        /// The turn, from 1.
        turn: u32,
        /// The attempt at it, from 1.
        attempt: u32,
    },
    /// A model call is announced and has no end: wait for it, or, if nobody is making it, record it as lost.
    AwaitModel,
    /// Ask the guard about these calls, in order.
    Judge(Vec<CallId>),
    /// These approvals have run out.
    Expire(Vec<ApprovalId>),
    /// Give these calls their result: nothing is to be run for them.
    Settle(Vec<Settlement>),
    /// Announce these calls and run them, side by side.
    Start(Vec<CallId>),
    /// These calls are announced and have no end: wait for them, or, if nobody is running them, recover them.
    Await(Vec<CallId>),
    /// Stop what runs, settle every call, and end the run.
    Cancel,
    /// End the run.
    Finish(Finish),
    /// Nothing to do until a command comes, or the time.
    Wait(Option<Time>),
    /// The run is over.
    Done,
}

/// How to end a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// With the model's answer.
    Completed,
    /// With an error.
    Failed {
        /// The machine's word.
        code: &'static str,
        /// What happened, what was not done, what to do next.
        message: String,
    },
}

impl Step {
    /// Whether there is something to do now: it neither waits nor is it over.
    #[must_use]
    pub const fn goes_on(&self) -> bool {
        match self {
            Self::CallModel { .. }
            | Self::AwaitModel
            | Self::Judge(_)
            | Self::Expire(_)
            | Self::Settle(_)
            | Self::Start(_)
            | Self::Await(_)
            | Self::Cancel
            | Self::Finish(_) => true,
            Self::Wait(_) | Self::Done => false,
        }
    }
}

/// What comes next for a run.
#[must_use]
pub fn step(state: &State, now: Time) -> Step {
    // A run that can go on is due for every node, also for one whose clock is behind that of whoever wrote last. To such a node
    // no time has gone by yet: if it read its own clock, it would wait, and be given the run again and again.
    let now = now.max(state.updated_at);
    let Some(start) = &state.start else { return Step::Wait(None) };
    if state.end.is_some() {
        return Step::Done;
    }
    if state.cancel.is_some() {
        return Step::Cancel;
    }
    if state.asking.is_some() {
        return Step::AwaitModel;
    }
    if let Some(error) = &state.error {
        return after_error(state, error);
    }
    match state.turns.last() {
        Some(turn) if !turn.calls.is_empty() && !turn.is_complete() => within_turn(state, turn, now),
        Some(turn) if turn.calls.is_empty() && !state.wants_fitting_answer() => Step::Finish(ended_by(turn)),
        Some(_) | None => next_turn(state, start.limits, now),
    }
}

fn ended_by(turn: &Turn) -> Finish {
    match turn.answered.as_ref().map(|answered| answered.finish) {
        Some(FinishReason::ContentFilter) => Finish::Failed {
            code: "content_filter",
            message: "The provider's content filter cut the answer off. Nothing more was done. Rephrase the request."
                .to_owned(),
        },
        Some(FinishReason::Error) => Finish::Failed {
            code: "provider_error",
            message: "The provider ended the answer with an error. Nothing more was done. Try again.".to_owned(),
        },
        Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length | FinishReason::Refusal) | None => {
            turn.unfit().map_or(Finish::Completed, |why| Finish::Failed {
                code: "output_invalid",
                message: format!(
                    "The answer does not fit the schema that was asked for: {why}. What was done so far stays. Try again, with a simpler schema or another model."
                ),
            })
        }
    }
}

/// What is left to do once something went wrong that ends the run: every call gets its result, then the run ends.
fn after_error(state: &State, error: &Errored) -> Step {
    let open = || state.calls().filter(|call| call.ended.is_none());
    let running: Vec<_> = open().filter(|call| call.is_running()).map(|call| call.id.clone()).collect();
    if !running.is_empty() {
        return Step::Await(running);
    }
    let settled: Vec<_> = open().map(settle::given_up).collect();
    if settled.is_empty() {
        Step::Finish(Finish::Failed { code: "error", message: error.message.clone() })
    } else {
        Step::Settle(settled)
    }
}

/// What holds the run at this moment. A hold that names its end is over then.
fn held(state: &State, now: Time) -> Option<&Paused> {
    state.pause.as_ref().filter(|pause| !pause.is_over(now))
}

fn next_turn(state: &State, limits: RunLimits, now: Time) -> Step {
    let next = state.next_turn();
    let failed = |code, message| Step::Finish(Finish::Failed { code, message });
    if is_stuck(state) {
        return failed(
            "stuck",
            format!(
                "The agent made the same call with the same result {STUCK_REPEATS} times. What was done so far stays. Rephrase the task."
            ),
        );
    }
    if asked_for_too_many_calls(state) {
        return failed(
            MAX_TOOL_CALLS,
            format!("The run reached its limit of {} tool calls. What was done so far stays.", limits.tool_calls),
        );
    }
    if next > limits.turns {
        return failed(
            "max_turns",
            format!("The run reached its limit of {} turns. What was done so far stays.", limits.turns),
        );
    }
    if let Some(pause) = held(state, now) {
        return Step::Wait(pause.until);
    }
    if state.went_on_until(now) > RUN_TIME {
        let hours = RUN_TIME.as_secs() / 3600;
        let message = format!("The run reached its limit of {hours} hours. What was done so far stays.");
        return failed("timeout", message);
    }
    match state.failures.last() {
        None => Step::CallModel { turn: next, attempt: 1 },
        Some(failure) => match failure.retry_at {
            None => failed("provider_error", failure.message.clone()),
            Some(at) if at > now => Step::Wait(Some(at)),
            Some(_) => Step::CallModel { turn: next, attempt: failure.attempt.saturating_add(1) },
        },
    }
}

fn within_turn(state: &State, turn: &Turn, now: Time) -> Step {
    let open = || turn.calls.iter().filter(|call| call.ended.is_none());
    let expired: Vec<_> = state
        .approvals
        .iter()
        .filter(|(_, approval)| approval.is_pending() && approval.expires_at().is_some_and(|at| at <= now))
        .map(|(id, _)| *id)
        .collect();
    if !expired.is_empty() {
        return Step::Expire(expired);
    }
    let settled: Vec<_> = open().filter_map(|call| settle::settlement(state, call)).collect();
    if !settled.is_empty() {
        return Step::Settle(settled);
    }
    let running: Vec<_> = open().filter(|call| call.is_running()).map(|call| call.id.clone()).collect();
    let pending = || state.approvals.values().filter(|approval| approval.is_pending());
    let expiry = pending().filter_map(Approval::expires_at).min();
    // A paused run still records what it knows, but starts nothing.
    if let Some(pause) = held(state, now) {
        let next = pause.until.into_iter().chain(expiry).min();
        return if running.is_empty() { Step::Wait(next) } else { Step::Await(running) };
    }
    let unjudged: Vec<_> =
        open().filter(|call| is_to_be_judged(state, turn, call)).map(|call| call.id.clone()).collect();
    if !unjudged.is_empty() {
        return Step::Judge(unjudged);
    }
    let startable: Vec<_> = startable(turn).map(|call| call.id.clone()).collect();
    if !startable.is_empty() {
        return Step::Start(startable);
    }
    if running.is_empty() { Step::Wait(expiry) } else { Step::Await(running) }
}

/// Whether the guard has to look at a call: it has not yet, it asked and there is nobody left to answer, or another call of
/// the turn has changed what it saw.
fn is_to_be_judged(state: &State, turn: &Turn, call: &Call) -> bool {
    match call.decision() {
        None => true,
        Some(Judgement::Ask) => {
            let item = call.approval.and_then(|id| state.approvals.get(&id));
            !item.is_some_and(Approval::is_pending)
        }
        Some(Judgement::Allow) => {
            let seen = call.judged.as_ref().map_or(0, |judged| judged.seq);
            let changed = |other: &Call| {
                other.ended.as_ref().is_some_and(|(ended, seq, _)| ended.allowed && *seq > seen) && call.clashes(other)
            };
            call.started.is_none() && turn.calls.iter().any(changed)
        }
        Some(Judgement::Deny) => false,
    }
}

/// The calls of a turn that may start now: allowed, and not on a path that a running, held or earlier call touches.
fn startable(turn: &Turn) -> impl Iterator<Item = &Call> {
    turn.calls
        .iter()
        .enumerate()
        .filter(|(index, call)| {
            let cleared = call.ended.is_none()
                && (call.started.is_none() || call.is_to_be_rerun())
                && call.judged.as_ref().is_some_and(|judged| judged.verdict.decision == Judgement::Allow);
            let earlier = || turn.calls[..*index].iter().filter(|other| other.ended.is_none());
            let later_running = || turn.calls[*index + 1..].iter().filter(|other| other.is_running());
            cleared && !earlier().chain(later_running()).any(|other| call.clashes(other))
        })
        .map(|(_, call)| call)
}

/// Whether the model asked for more calls than the run has. A run that has used up its calls may still answer.
fn asked_for_too_many_calls(state: &State) -> bool {
    let refused =
        |call: &Call| call.ended.as_ref().is_some_and(|(ended, _, _)| ended.rule.as_deref() == Some(MAX_TOOL_CALLS));
    state.turns.last().is_some_and(|turn| turn.calls.iter().any(refused))
}

/// Whether the last turns were all the same: the same calls with the same results. Equal calls inside one turn are no loop,
/// for the model has not seen a result between them.
fn is_stuck(state: &State) -> bool {
    let print = |call: &Call| {
        let (ended, _, _) = call.ended.as_ref()?;
        Some((call.tool.clone(), call.arguments.hash(), ended.output.hash()))
    };
    let prints = |turn: &Turn| turn.calls.iter().map(print).collect::<Option<BTreeSet<_>>>();
    let Some(last) = state.turns.last().and_then(prints) else { return false };
    let repeats = state.turns.iter().rev().take_while(|turn| prints(turn).as_ref() == Some(&last)).count();
    repeats >= STUCK_REPEATS && !last.is_empty()
}
