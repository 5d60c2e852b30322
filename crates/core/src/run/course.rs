//! Whether a recorded event is what the present code would have done in its place. Strict replay asks it of every event.

use super::settle::Settlement;
use super::step::{AT_A_LIMIT, Finish, Step, step};
use crate::id::CallId;
use crate::run::event::{CallEnded, CallStarted, EndStatus, Errored, Event, ModelRequested};
use crate::run::state::State;
use crate::time::Time;

/// The error codes, beside those of limits, that follow from the state alone.
const CONCLUDED: [&str; 3] = ["content_filter", "output_invalid", "provider_error"];
/// Waits that are looked beyond at the most: a hold, an expiry, a retry.
const WAITS: usize = 4;

/// Where the course of a recorded run and that of the present code part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure {
    /// What is recorded.
    pub recorded: String,
    /// What the present code would do.
    pub found: String,
}

/// What the present code would do in place of a recorded event, where that is something else. Commands and what the world said
/// are taken as they are: no code decides them.
#[must_use]
pub fn departure(state: &State, event: &Event, at: Time) -> Option<Departure> {
    match event {
        Event::ModelRequested(body) => of_request(state, body, at),
        Event::CallStarted(body) => of_start(state, body, at),
        Event::CallEnded(body) => of_result(state, body, at),
        Event::Errored(body) => of_error(state, body, at),
        Event::RunEnded(body) => of_end(state, body.status, at),
        Event::RunStarted(_)
        | Event::Thought(_)
        | Event::Said(_)
        | Event::ModelAnswered(_)
        | Event::ModelFailed(_)
        | Event::CallProposed(_)
        | Event::CallJudged(_)
        | Event::ApprovalAsked(_)
        | Event::ApprovalDecided(_)
        | Event::CallInDoubt(_)
        | Event::InDoubtResolved(_)
        | Event::LabelsRaised(_)
        | Event::ContentFiltered(_)
        | Event::BudgetAlerted(_)
        | Event::Paused(_)
        | Event::Resumed(_)
        | Event::CancelAsked(_)
        | Event::Cancelled(_) => None,
    }
}

/// What came next at this moment, or as soon as the waiting was over: a clock may have been set back between the decision and
/// its record.
fn due(state: &State, mut at: Time) -> Step {
    for _ in 0..WAITS {
        let next = step(state, at);
        if let Step::Wait(Some(until)) = next
            && until > at
        {
            at = until;
        } else {
            return next;
        }
    }
    step(state, at)
}

fn differs(recorded: impl Into<String>, found: &Step) -> Option<Departure> {
    Some(Departure { recorded: recorded.into(), found: words(found) })
}

fn of_request(state: &State, body: &ModelRequested, at: Time) -> Option<Departure> {
    let (recorded, found) = (Step::CallModel { turn: body.turn, attempt: body.attempt }, due(state, at));
    if found == recorded { None } else { differs(words(&recorded), &found) }
}

fn of_start(state: &State, body: &CallStarted, at: Time) -> Option<Departure> {
    // What is run again after a crash or a failure is for the driver to say: the state only says that it has no end.
    if state.call(&body.call).is_none_or(|call| call.is_running()) {
        return None;
    }
    let found = due(state, at);
    if may_start(&found, &body.call) || ran_out(&found) {
        None
    } else {
        differs(format!("start {}", body.call), &found)
    }
}

fn may_start(found: &Step, call: &CallId) -> bool {
    matches!(found, Step::Start(calls) if calls.contains(call))
}

/// Whether a question ran out while something else was written down.
const fn ran_out(found: &Step) -> bool {
    matches!(found, Step::Expire(_))
}

fn of_result(state: &State, body: &CallEnded, at: Time) -> Option<Departure> {
    let started = state.call(&body.call).is_none_or(|call| call.started.is_some());
    if started || state.cancel.is_some() || state.error.is_some() {
        return None;
    }
    let recorded = || format!("{} of {}: {}", result(body.allowed, body.is_error), body.call, body.output.text());
    let found = step(state, at);
    let settled = if let Step::Settle(settlements) = &found {
        settlements.iter().find(|settled| settled.call == body.call)
    } else {
        None
    };
    // The node that was to start it may have had no such tool.
    let lacked = body.rule.as_deref() == Some("tool") && may_start(&found, &body.call);
    match settled {
        Some(settled) if is_same(settled, body) => None,
        Some(settled) => {
            let how = result(settled.allowed, settled.is_error);
            let found = format!("{how} of {}: {}", settled.call, settled.output.text());
            Some(Departure { recorded: recorded(), found })
        }
        None if lacked || ran_out(&found) => None,
        None => differs(recorded(), &found),
    }
}

fn is_same(settled: &Settlement, body: &CallEnded) -> bool {
    let how = (settled.is_error, settled.allowed, &settled.rule) == (body.is_error, body.allowed, &body.rule);
    how && settled.labels == body.labels
        && (settled.output.hash() == body.output.hash() || is_cleaned(&body.output.text()))
}

/// Whether a credential was taken out of a text before it was recorded: what it said before is known to nobody.
fn is_cleaned(text: &str) -> bool {
    text.contains(crate::guard::redact::CREDENTIAL)
}

fn of_error(state: &State, body: &Errored, at: Time) -> Option<Departure> {
    let code = body.code.as_str();
    // A model call that failed for good ends the run with its own class.
    let failed = state.failures.last().is_some_and(|failure| failure.retry_at.is_none());
    let concluded = CONCLUDED.contains(&code) || (AT_A_LIMIT.contains(&code) && !failed);
    if !concluded {
        return None;
    }
    let found = due(state, at);
    if let Step::Finish(Finish::Failed { code: known, message }) = &found
        && *known == code
        && (*message == body.message || is_cleaned(&body.message))
    {
        return None;
    }
    differs(format!("fail with {code}: {}", body.message), &found)
}

fn of_end(state: &State, status: EndStatus, at: Time) -> Option<Departure> {
    match (status, step(state, at)) {
        (EndStatus::Completed, Step::Finish(Finish::Completed))
        | (EndStatus::Failed, Step::Finish(Finish::Failed { .. }))
        | (EndStatus::Cancelled, Step::Cancel) => None,
        (EndStatus::Completed | EndStatus::Failed | EndStatus::Cancelled, found) => {
            let how = match status {
                EndStatus::Completed => "COMPLETED",
                EndStatus::Failed => "FAILED",
                EndStatus::Cancelled => "CANCELLED",
            };
            differs(format!("end as {how}"), &found)
        }
    }
}

const fn result(allowed: bool, is_error: bool) -> &'static str {
    match (allowed, is_error) {
        (true, true) => "failure",
        (true, false) => "result",
        (false, true) => "refusal",
        (false, false) => "answer",
    }
}

/// A step as a person would say it.
fn words(step: &Step) -> String {
    let list = |ids: &[CallId]| ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match step {
        Step::CallModel { turn, attempt } => format!("ask the model for turn {turn}, attempt {attempt}"),
        Step::AwaitModel => "wait for the model".to_owned(),
        Step::Judge(calls) => format!("judge {}", list(calls)),
        Step::Expire(_) => "end questions that ran out".to_owned(),
        Step::Settle(settled) => {
            let calls: Vec<_> = settled.iter().map(|settled| settled.call.clone()).collect();
            format!("give {} a result without running it", list(&calls))
        }
        Step::Start(calls) => format!("start {}", list(calls)),
        Step::Await(calls) => format!("wait for {}", list(calls)),
        Step::Cancel => "cancel the run".to_owned(),
        Step::Finish(Finish::Completed) => "end as COMPLETED".to_owned(),
        Step::Finish(Finish::Failed { code, message }) => format!("fail with {code}: {message}"),
        Step::Wait(_) => "wait".to_owned(),
        Step::Done => "nothing: the run is over".to_owned(),
    }
}
