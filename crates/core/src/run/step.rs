//! What comes next: a pure function of the state and the time. It returns effects as data; the driver carries them out.

use crate::content::{Content, Hash};
use crate::guard::judge::Decision as Judgement;
use crate::id::{ApprovalId, CallId};
use crate::limits::STUCK_REPEATS;
use crate::message::FinishReason;
use crate::run::event::{Decision, DoubtOutcome, RunLimits};
use crate::run::state::{Call, State, Turn};
use crate::time::Time;

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

/// The result of a call that is not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The call.
    pub call: CallId,
    /// What the model reads.
    pub output: Content,
    /// Whether the model should take it for a failure.
    pub is_error: bool,
    /// Whether it had been allowed (a call in doubt that a person settled).
    pub allowed: bool,
    /// The rule that stopped it.
    pub rule: Option<String>,
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

/// What comes next for a run.
#[must_use]
pub fn step(state: &State, now: Time) -> Step {
    let Some(start) = &state.start else { return Step::Wait(None) };
    if state.end.is_some() {
        return Step::Done;
    }
    if state.cancel.is_some() {
        return Step::Cancel;
    }
    if let Some(error) = &state.error {
        return Step::Finish(Finish::Failed { code: "error", message: error.message.clone() });
    }
    if state.asking.is_some() {
        return Step::AwaitModel;
    }
    match state.turns.last() {
        Some(turn) if !turn.calls.is_empty() && !turn.is_complete() => within_turn(state, turn, now),
        Some(turn) if turn.calls.is_empty() => Step::Finish(ended_by(turn)),
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
            Finish::Completed
        }
    }
}

fn next_turn(state: &State, limits: RunLimits, now: Time) -> Step {
    let done = u32::try_from(state.turns.len()).unwrap_or(u32::MAX);
    let failed = |code, message| Step::Finish(Finish::Failed { code, message });
    if is_stuck(state) {
        return failed(
            "stuck",
            format!(
                "The agent made the same call with the same result {STUCK_REPEATS} times. What was done so far stays. Rephrase the task."
            ),
        );
    }
    if state.calls_spent() >= limits.tool_calls as usize && !state.turns.is_empty() {
        return failed(
            "max_tool_calls",
            format!("The run reached its limit of {} tool calls. What was done so far stays.", limits.tool_calls),
        );
    }
    if done >= limits.turns {
        return failed(
            "max_turns",
            format!("The run reached its limit of {} turns. What was done so far stays.", limits.turns),
        );
    }
    if let Some(pause) = &state.pause {
        return Step::Wait(pause.until);
    }
    match state.failures.last() {
        None => Step::CallModel { turn: done + 1, attempt: 1 },
        Some(failure) => match failure.retry_at {
            None => failed("provider_error", failure.message.clone()),
            Some(at) if at > now => Step::Wait(Some(at)),
            Some(_) => Step::CallModel { turn: done + 1, attempt: failure.attempt + 1 },
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
    let settled: Vec<_> = open().filter_map(|call| settlement(state, call)).collect();
    if !settled.is_empty() {
        return Step::Settle(settled);
    }
    // A paused run still records what it knows, but starts nothing.
    if let Some(pause) = &state.pause {
        let running: Vec<_> = open().filter(|call| call.is_running()).map(|call| call.id.clone()).collect();
        return if running.is_empty() { Step::Wait(pause.until) } else { Step::Await(running) };
    }
    let unjudged: Vec<_> = open().filter(|call| call.judged.is_none()).map(|call| call.id.clone()).collect();
    if !unjudged.is_empty() {
        return Step::Judge(unjudged);
    }
    let startable: Vec<_> = startable(turn).map(|call| call.id.clone()).collect();
    if !startable.is_empty() {
        return Step::Start(startable);
    }
    let running: Vec<_> = open().filter(|call| call.is_running()).map(|call| call.id.clone()).collect();
    if !running.is_empty() {
        return Step::Await(running);
    }
    let pending = state.approvals.values().filter(|approval| approval.is_pending());
    Step::Wait(pending.filter_map(super::state::Approval::expires_at).min())
}

/// The result of a call for which nothing is to be run, if that is so.
fn settlement(state: &State, call: &Call) -> Option<Settlement> {
    let settle = |output: String, is_error: bool, allowed: bool, rule: Option<String>| {
        Some(Settlement { call: call.id.clone(), output: Content::new(output), is_error, allowed, rule })
    };
    if let Some(resolved) = call.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref()) {
        return match resolved.outcome {
            DoubtOutcome::Run => None,
            DoubtOutcome::Happened => {
                let output =
                    resolved.result.clone().unwrap_or_else(|| Content::from("A person confirmed that it happened."));
                Some(Settlement { call: call.id.clone(), output, is_error: false, allowed: true, rule: None })
            }
            DoubtOutcome::Abandon => settle(
                "It is not known whether this happened. A person decided to leave it. Do not try it again.".to_owned(),
                true,
                true,
                None,
            ),
        };
    }
    if let Some((decided, _)) = call.approval.and_then(|id| state.approvals.get(&id)?.decided.as_ref()) {
        let said = decided.message.as_deref().map(|message| format!(" They said: {message}")).unwrap_or_default();
        match decided.decision {
            Decision::Approve | Decision::Edit => {}
            Decision::Respond => {
                let answer = decided.message.clone().unwrap_or_default();
                return settle(
                    format!("Not run. The person answered instead: {answer}"),
                    false,
                    false,
                    Some("respond".to_owned()),
                );
            }
            Decision::Reject | Decision::Stop => {
                let who = match &decided.by {
                    crate::run::event::Actor::User(_) => "A person rejected this call.",
                    crate::run::event::Actor::Clock => "Nobody approved this call in time.",
                    crate::run::event::Actor::Rule(_) => "This call was rejected by rule.",
                };
                return settle(format!("{who} It was not run.{said}"), true, false, Some("rejected".to_owned()));
            }
        }
    }
    let judged = call.judged.as_ref()?;
    match judged.verdict.decision {
        Judgement::Deny => settle(judged.verdict.for_model(), true, false, Some(judged.verdict.rule.clone())),
        Judgement::Allow | Judgement::Ask => None,
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
            let clash = |other: &Call| match (call.target(), other.target()) {
                (Some(mine), Some(theirs)) => mine.overlaps(theirs),
                (None, _) | (_, None) => false,
            };
            cleared && !earlier().chain(later_running()).any(clash)
        })
        .map(|(_, call)| call)
}

/// Whether the last calls were all the same, with the same result.
fn is_stuck(state: &State) -> bool {
    let prints: Vec<(Hash, Hash)> = state
        .calls()
        .take(STUCK_REPEATS)
        .filter_map(|call| {
            let (ended, _, _) = call.ended.as_ref()?;
            let asked = Hash::of(format!("{}\n{}", call.tool, call.arguments.hash()).as_bytes());
            Some((asked, ended.output.hash()))
        })
        .collect();
    prints.len() == STUCK_REPEATS && prints.iter().all(|print| *print == prints[0])
}
