//! What may be asked of a run, and whether the run accepts it: a command becomes events, or a refusal that says why.

mod money;

use std::time::Duration;

use crate::content::{Content, Hash};
use crate::guard::arguments;
use crate::guard::rule::{Rule, Yes};
use crate::id::{ApprovalId, CallId};
use crate::limits;
use crate::run::event::{
    Actor, ApprovalAsked, ApprovalDecided, ApprovalKind, CancelAsked, Decision, DoubtOutcome, Event, GrantScope,
    InDoubtResolved, PauseReason, Paused, Resumed,
};
use crate::run::state::{Approval, State};
use crate::run::status::Status;
use crate::time::Time;

/// Something that is asked of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Decides an approval.
    Decide(Decide),
    /// Says what became of a call in doubt.
    Resolve {
        /// The call.
        call: CallId,
        /// What became of it.
        outcome: DoubtOutcome,
        /// Its result, if it happened.
        result: Option<String>,
        /// Who says so.
        by: Actor,
    },
    /// Stops the run.
    Cancel {
        /// Who.
        by: Actor,
        /// Why.
        reason: String,
    },
    /// Holds the run: nothing new is started.
    Pause {
        /// Who.
        by: Actor,
    },
    /// Lets a held run go on.
    Resume {
        /// Who.
        by: Actor,
    },
}

/// A decision about an approval.
#[derive(Debug, Clone, PartialEq)]
pub struct Decide {
    /// The approval.
    pub approval: ApprovalId,
    /// What is decided.
    pub decision: Decision,
    /// How far it reaches.
    pub scope: GrantScope,
    /// How long a yes lasts that reaches further than this call; as long as it may when none.
    pub lasts: Option<Duration>,
    /// Who decides.
    pub by: Actor,
    /// The arguments to run instead.
    pub arguments: Option<String>,
    /// What the person adds.
    pub message: Option<String>,
    /// What the person saw; a decision about something else is refused.
    pub fingerprint: Option<Hash>,
}

/// Why a command is refused. Nothing was recorded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// The run is over.
    #[error("the run has ended ({})", .0.word())]
    Ended(Status),
    /// There is no such approval in the run.
    #[error("there is no such approval")]
    NoSuchApproval,
    /// Somebody was faster.
    #[error("it was decided already: {} was {}", .0.approval, decided_as(.0))]
    AlreadyDecided(Box<ApprovalDecided>),
    /// It was replaced by a newer one, or its call was settled otherwise.
    #[error("it is no longer open: a newer one took its place, or its call was settled")]
    Superseded,
    /// It ran out.
    #[error("it expired")]
    Expired,
    /// The person decided about something else than what would run.
    #[error("what was shown is no longer what would run")]
    StaleFingerprint,
    /// It may not reach that far.
    #[error("it can be approved only for this once")]
    ScopeNotOffered,
    /// A yes cannot last that long, or does not last at all.
    #[error("{0}")]
    BadSpan(&'static str),
    /// Answering in place of the call needs an answer.
    #[error("a response needs a message")]
    NoMessage,
    /// An edit needs arguments that are a JSON object; nothing else takes any.
    #[error("the arguments cannot be used: {0}")]
    BadArguments(String),
    /// The call is not in doubt.
    #[error("the call is not in doubt")]
    NotInDoubt,
    /// The run does not hold.
    #[error("the run is not paused")]
    NotPaused,
}

/// Turns a command into events, or refuses it.
///
/// # Errors
/// Why the run does not accept the command. Cancelling or pausing twice is accepted and records nothing.
pub fn accept(state: &State, command: &Command, now: Time) -> Result<Vec<Event>, Refusal> {
    let ended = state.end.is_some().then(|| state.status());
    match command {
        Command::Decide(decide) => accept_decision(state, decide, now),
        Command::Resolve { call, outcome, result, by } => {
            let open = state.call(call).filter(|call| call.is_in_doubt());
            let doubt = open.and_then(|call| call.doubt.as_ref()).ok_or(Refusal::NotInDoubt)?;
            Ok(vec![Event::InDoubtResolved(InDoubtResolved {
                approval: doubt.approval,
                call: call.clone(),
                outcome: *outcome,
                result: result.as_deref().map(Content::from),
                by: by.clone(),
            })])
        }
        Command::Cancel { .. } if ended.is_some() || state.cancel.is_some() => Ok(Vec::new()),
        Command::Cancel { by, reason } => {
            Ok(vec![Event::CancelAsked(CancelAsked { by: by.clone(), reason: reason.clone() })])
        }
        Command::Pause { by } => match ended {
            Some(status) => Err(Refusal::Ended(status)),
            // A hold of another kind may end by itself; the person's does not.
            None if state.pause.as_ref().is_some_and(|pause| pause.reason == PauseReason::Person) => Ok(Vec::new()),
            None => Ok(vec![Event::Paused(Paused {
                reason: PauseReason::Person,
                until: None,
                by: Some(by.clone()),
                ask: None,
            })]),
        },
        Command::Resume { by } => match ended {
            Some(status) => Err(Refusal::Ended(status)),
            None if state.pause.is_none() => Err(Refusal::NotPaused),
            None => Ok(vec![Event::Resumed(Resumed { by: by.clone(), raised: None, unpriced: None })]),
        },
    }
}

fn accept_decision(state: &State, decide: &Decide, now: Time) -> Result<Vec<Event>, Refusal> {
    if let Some(item) = state.budget_items.get(&decide.approval) {
        return money::accept(state, item, decide);
    }
    let approval = state.approvals.get(&decide.approval).ok_or(Refusal::NoSuchApproval)?;
    let asked = open(approval)?;
    if asked.expires_at <= now && decide.by != Actor::Clock {
        return Err(Refusal::Expired);
    }
    if decide.fingerprint.is_some_and(|seen| seen != asked.fingerprint) {
        return Err(Refusal::StaleFingerprint);
    }
    // Only a plain yes can reach further than this call.
    let widest =
        if decide.decision == Decision::Approve { asked.allowed_scopes.as_slice() } else { &[GrantScope::Once] };
    if !widest.contains(&decide.scope) {
        return Err(Refusal::ScopeNotOffered);
    }
    if decide.decision == Decision::Respond && decide.message.as_deref().is_none_or(str::is_empty) {
        return Err(Refusal::NoMessage);
    }
    let rule = lasting(state, asked, decide, now)?;
    let (edited, about) = edited(decide)?.unzip();
    let mut events = vec![Event::ApprovalDecided(ApprovalDecided {
        approval: decide.approval,
        call: approval.call.clone(),
        decision: decide.decision,
        by: decide.by.clone(),
        scope: decide.scope,
        arguments: edited,
        about,
        message: decide.message.clone(),
        rule: rule.map(Box::new),
    })];
    if decide.decision == Decision::Stop && state.cancel.is_none() {
        let reason = decide.message.clone().unwrap_or_else(|| "stopped at an approval".to_owned());
        events.push(Event::CancelAsked(CancelAsked { by: decide.by.clone(), reason }));
    }
    Ok(events)
}

/// The rule that a yes for longer than this call writes. Only a person can give one.
fn lasting(state: &State, asked: &ApprovalAsked, decide: &Decide, now: Time) -> Result<Option<Rule>, Refusal> {
    let span = limits::LASTING_YES_LEAST..=limits::LASTING_YES;
    match (decide.scope, decide.lasts) {
        (GrantScope::Once, None) => return Ok(None),
        (GrantScope::Once, Some(_)) => return Err(Refusal::BadSpan("a yes to this call alone does not last")),
        (GrantScope::Run | GrantScope::Chat | GrantScope::Always, Some(lasts)) if !span.contains(&lasts) => {
            return Err(Refusal::BadSpan("a yes lasts from one minute to thirty days"));
        }
        (GrantScope::Run | GrantScope::Chat | GrantScope::Always, _) => {}
    }
    let (Actor::User(by), Some(start)) = (&decide.by, &state.start) else { return Err(Refusal::ScopeNotOffered) };
    let yes = Yes { by: *by, scope: decide.scope, lasts: decide.lasts, now };
    Rule::from_yes(start, asked, yes).ok_or(Refusal::ScopeNotOffered).map(Some)
}

/// What became of an approval, and by whom, for who came too late.
fn decided_as(decided: &ApprovalDecided) -> String {
    let what = match decided.decision {
        Decision::Approve => "approved",
        Decision::Edit => "approved with changes",
        Decision::Respond => "answered",
        Decision::Reject => "rejected",
        Decision::Stop => "rejected and the run stopped",
    };
    match &decided.by {
        Actor::User(id) => format!("{what} by {id}"),
        Actor::Clock => format!("{what} because nobody answered in time"),
        Actor::Rule(name) => format!("{what} by {name}"),
    }
}

/// The arguments of an edit, and what they are about. Arguments with another decision are refused: whoever sent them expects them to be used.
fn edited(decide: &Decide) -> Result<Option<(Content, String)>, Refusal> {
    let bad = |why: &str| Refusal::BadArguments(why.to_owned());
    match (decide.decision, decide.arguments.as_deref()) {
        (Decision::Edit, Some(text)) => {
            let value = arguments::parse(text).map_err(|problem| bad(&problem.to_string()))?;
            Ok(Some((Content::from(text), ApprovalDecided::about_of(&value))))
        }
        (Decision::Edit, None) => Err(bad("an edit needs arguments")),
        (Decision::Approve | Decision::Respond | Decision::Reject | Decision::Stop, Some(_)) => {
            Err(bad("only an edit takes arguments"))
        }
        (Decision::Approve | Decision::Respond | Decision::Reject | Decision::Stop, None) => Ok(None),
    }
}

fn open(approval: &Approval) -> Result<&ApprovalAsked, Refusal> {
    if let Some((decided, _)) = &approval.decided {
        return Err(match decided.by {
            Actor::Clock => Refusal::Expired,
            Actor::User(_) | Actor::Rule(_) => Refusal::AlreadyDecided(Box::new(decided.clone())),
        });
    }
    match (&approval.asked, approval.kind) {
        (Some(asked), ApprovalKind::Call | ApprovalKind::Budget) if !approval.superseded => Ok(asked),
        (_, ApprovalKind::InDoubt) => Err(Refusal::NoSuchApproval),
        (Some(_) | None, ApprovalKind::Call | ApprovalKind::Budget) => Err(Refusal::Superseded),
    }
}
