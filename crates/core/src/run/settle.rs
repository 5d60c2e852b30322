//! The results of calls for which nothing is run: refused, rejected, answered by a person, or settled after a doubt.

use crate::content::Content;
use crate::guard::judge::Decision as Judgement;
use crate::id::CallId;
use crate::label::Labels;
use crate::run::event::{Actor, ApprovalDecided, Decision, DoubtOutcome, InDoubtResolved};
use crate::run::state::{Call, State};

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
    /// The labels of what the model reads.
    pub labels: Labels,
}

/// The result of a call for which nothing is to be run, if that is so.
pub(super) fn settlement(state: &State, call: &Call) -> Option<Settlement> {
    let resolved = call.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref());
    let decided = call.approval.and_then(|id| state.approvals.get(&id)?.decided.as_ref());
    resolved
        .and_then(|resolved| by_resolution(call, resolved))
        .or_else(|| decided.and_then(|(decided, _)| by_decision(call, decided)))
        .or_else(|| by_verdict(call))
}

/// The result of a call that is still open when the run fails.
pub(super) fn given_up(call: &Call) -> Settlement {
    let output = match call.started {
        None => "Not run: the run failed.",
        Some(_) => "It is not known whether this happened: the run failed before anybody could tell.",
    };
    Settlement {
        call: call.id.clone(),
        output: Content::from(output),
        is_error: true,
        allowed: call.started.is_some(),
        rule: Some("failed".to_owned()),
        labels: Labels::NONE,
    }
}

/// A person said what became of a call in doubt. That it is to be run again is no result.
fn by_resolution(call: &Call, resolved: &InDoubtResolved) -> Option<Settlement> {
    let (output, is_error) = match resolved.outcome {
        DoubtOutcome::Run => return None,
        DoubtOutcome::Happened => {
            let confirmed = || Content::from("A person confirmed that it happened.");
            (resolved.result.clone().unwrap_or_else(confirmed), false)
        }
        DoubtOutcome::Abandon => {
            let left = "It is not known whether this happened. A person decided to leave it. Do not try it again.";
            (Content::from(left), true)
        }
    };
    Some(Settlement { call: call.id.clone(), output, is_error, allowed: true, rule: None, labels: Labels::NONE })
}

/// A person (or the clock) decided that the call is not run. A yes is no result: the call is judged again.
fn by_decision(call: &Call, decided: &ApprovalDecided) -> Option<Settlement> {
    let (output, is_error, rule) = match (decided.decision, &decided.by) {
        (Decision::Approve | Decision::Edit, _) => return None,
        (Decision::Respond, _) => {
            let answer = decided.message.as_deref().unwrap_or_default();
            (format!("Not run. The person answered instead: {answer}"), false, "respond")
        }
        (Decision::Reject | Decision::Stop, by) => {
            let (who, rule) = match by {
                Actor::User(_) => ("A person rejected this call.", "rejected"),
                Actor::Clock => ("Nobody approved this call in time.", "expired"),
                Actor::Rule(_) => ("This call was rejected by rule.", "rejected"),
            };
            let said = decided.message.as_deref().map(|message| format!(" They said: {message}")).unwrap_or_default();
            (format!("{who} It was not run.{said}"), true, rule)
        }
    };
    let output = Content::new(output);
    let (call, rule) = (call.id.clone(), Some(rule.to_owned()));
    Some(Settlement { call, output, is_error, allowed: false, rule, labels: Labels::NONE })
}

/// The guard refused the call.
fn by_verdict(call: &Call) -> Option<Settlement> {
    let judged = call.judged.as_ref().filter(|_| call.decision() == Some(Judgement::Deny))?;
    let verdict = &judged.verdict;
    Some(Settlement {
        call: call.id.clone(),
        output: Content::new(verdict.for_model()),
        is_error: true,
        allowed: false,
        rule: Some(verdict.rule.clone()),
        labels: judged.labels,
    })
}
