//! The state of a run: the fold of its events. No clock, no chance, no input or output; it never decides.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::content::{Content, Hash};
use crate::guard::judge::{Grant, Verdict};
use crate::guard::permit::{Allowance, Permit};
use crate::id::{ApprovalId, CallId};
use crate::label::Labels;
use crate::money::{MicroUsd, TokenUsage};
use crate::run::event::{
    ApprovalAsked, ApprovalDecided, ApprovalKind, CallEnded, CallStarted, CancelAsked, Decision, DoubtOutcome,
    EndStatus, Errored, Event, GrantScope, InDoubtResolved, ModelAnswered, ModelFailed, ModelRequested, Paused,
    RunEnded, RunStarted, Thought,
};
use crate::run::status::Status;
use crate::time::Time;
use crate::tool::{Prepared, Recovery, Target};

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

/// One tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments as the model wrote them, or as a person edited them.
    pub arguments: Content,
    /// When it was proposed.
    pub proposed_at: Time,
    /// What the guard last said. None before, and again after a person approved: the guard looks once more.
    pub judged: Option<Judged>,
    /// Its latest inbox item.
    pub approval: Option<ApprovalId>,
    /// Whether a person said yes, and to which state of the target.
    pub answered: Option<Answered>,
    /// Its latest start.
    pub started: Option<CallStarted>,
    /// When it was first started.
    pub started_at: Option<Time>,
    /// How many of its starts a permit was handed out for.
    permits: u32,
    /// Whether nobody knows if it happened, and what a person said about it.
    pub doubt: Option<Doubt>,
    /// Its one result, with its sequence number and time.
    pub ended: Option<(CallEnded, u64, Time)>,
}

/// What the guard said of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// What the tool saw.
    pub prepared: Option<Prepared>,
}

/// A person's yes.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The target the person saw; none after an edit, whose target nobody has seen yet.
    pub target: Option<Target>,
}

/// A call that may or may not have happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The inbox item.
    pub approval: ApprovalId,
    /// What is known.
    pub message: String,
    /// What a person said.
    pub resolved: Option<InDoubtResolved>,
}

/// An inbox item of the run.
#[derive(Debug, Clone, PartialEq)]
pub struct Approval {
    /// What it is about.
    pub kind: ApprovalKind,
    /// The call.
    pub call: CallId,
    /// What was asked; none for a call in doubt.
    pub asked: Option<ApprovalAsked>,
    /// When it was asked.
    pub asked_at: Time,
    /// What was decided, and when.
    pub decided: Option<(ApprovalDecided, Time)>,
    /// Whether a newer item replaced it, or it was settled another way.
    pub superseded: bool,
}

impl Approval {
    /// Whether a person still has to decide.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.decided.is_none() && !self.superseded
    }

    /// When silence counts as no.
    #[must_use]
    pub fn expires_at(&self) -> Option<Time> {
        self.asked.as_ref().map(|asked| asked.expires_at)
    }
}

/// An event that cannot follow the ones before it: the log is damaged or was written by something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("event {seq} (`{kind}`) cannot follow what is in the log: {why}")]
pub struct Impossible {
    /// The event.
    pub seq: u64,
    /// Its kind.
    pub kind: &'static str,
    /// Why.
    pub why: &'static str,
}

/// There is no recorded, unspent allowance for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no recorded allowance for call {0}")]
pub struct NoPermit(pub CallId);

impl State {
    /// Adds one event.
    ///
    /// # Errors
    /// When the event cannot follow the ones before it. The state is then not to be used any more.
    pub fn apply(&mut self, event: &Event, seq: u64, at: Time) -> Result<(), Impossible> {
        let result = self.fold(event, seq, at);
        self.seq = seq;
        self.updated_at = at;
        result.map_err(|why| Impossible { seq, kind: event.kind(), why })
    }

    fn fold(&mut self, event: &Event, seq: u64, at: Time) -> Result<(), &'static str> {
        if self.start.is_some() == matches!(event, Event::RunStarted(_)) {
            return Err("a run starts once, with its first event");
        }
        if self.end.is_some() {
            return Err("the run has ended");
        }
        match event {
            Event::RunStarted(body) => {
                self.labels = body.labels;
                self.started_at = at;
                self.start = Some(Box::new(body.clone()));
            }
            Event::ModelRequested(body) => self.asking = Some(body.clone()),
            Event::Thought(body) => self.open_turn().thoughts.push(body.clone()),
            Event::Said(body) => self.open_turn().said = Some(body.text.clone()),
            Event::ModelAnswered(body) => self.answered(body),
            Event::ModelFailed(body) => {
                self.asking = None;
                self.failures.push(body.clone());
            }
            Event::CallProposed(body) => {
                if self.call(&body.call).is_some() {
                    return Err("a call id is used once");
                }
                let turn = self.turns.last_mut().ok_or("a call needs a turn")?;
                turn.calls.push(Call::proposed(body.call.clone(), &body.tool, body.arguments.clone(), at));
            }
            Event::CallJudged(body) => {
                let judged = Judged { verdict: body.verdict.clone(), prepared: body.prepared.clone() };
                self.open_call(&body.call)?.judged = Some(judged);
            }
            Event::ApprovalAsked(body) => self.asked(body, at)?,
            Event::ApprovalDecided(body) => self.decided(body, at)?,
            Event::CallStarted(body) => {
                let call = self.open_call(&body.call)?;
                call.started_at.get_or_insert(at);
                call.doubt = None;
                call.started = Some(body.clone());
            }
            Event::CallEnded(body) => self.ended(body, seq, at)?,
            Event::CallInDoubt(body) => {
                let doubt = Doubt { approval: body.approval, message: body.message.clone(), resolved: None };
                self.open_call(&body.call)?.doubt = Some(doubt);
                let approval = Approval {
                    kind: ApprovalKind::InDoubt,
                    call: body.call.clone(),
                    asked: None,
                    asked_at: at,
                    decided: None,
                    superseded: false,
                };
                self.approvals.insert(body.approval, approval);
            }
            Event::InDoubtResolved(body) => {
                let call = self.open_call(&body.call)?;
                call.doubt.as_mut().ok_or("the call is not in doubt")?.resolved = Some(body.clone());
                self.supersede(body.approval);
            }
            Event::LabelsRaised(body) => self.labels = self.labels.join(body.labels),
            Event::Paused(body) => self.pause = Some(body.clone()),
            Event::Resumed(_) => self.pause = None,
            Event::CancelAsked(body) => {
                self.cancel.get_or_insert_with(|| body.clone());
            }
            Event::Cancelled(_) => {}
            Event::Errored(body) => self.error = Some(body.clone()),
            Event::RunEnded(body) => {
                self.asking = None;
                for approval in self.approvals.values_mut().filter(|approval| approval.is_pending()) {
                    approval.superseded = true;
                }
                self.end = Some((body.clone(), at));
            }
        }
        Ok(())
    }

    fn open_turn(&mut self) -> &mut Turn {
        if self.turns.last().is_none_or(|turn| turn.answered.is_some()) {
            self.turns.push(Turn::default());
        }
        let last = self.turns.len() - 1;
        &mut self.turns[last]
    }

    fn answered(&mut self, body: &ModelAnswered) {
        self.asking = None;
        self.failures.clear();
        self.usage += body.usage;
        self.estimated |= body.estimated;
        match body.cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced = true,
        }
        self.open_turn().answered = Some(body.clone());
    }

    fn asked(&mut self, body: &ApprovalAsked, at: Time) -> Result<(), &'static str> {
        let call = self.open_call(&body.call)?;
        let before = call.approval.replace(body.approval);
        call.answered = None;
        if let Some(before) = before {
            self.supersede(before);
        }
        let approval = Approval {
            kind: body.kind,
            call: body.call.clone(),
            asked: Some(body.clone()),
            asked_at: at,
            decided: None,
            superseded: false,
        };
        self.approvals.insert(body.approval, approval);
        Ok(())
    }

    fn decided(&mut self, body: &ApprovalDecided, at: Time) -> Result<(), &'static str> {
        let approval = self.approvals.get_mut(&body.approval).ok_or("there is no such approval")?;
        if !approval.is_pending() {
            return Err("the approval was decided already");
        }
        approval.decided = Some((body.clone(), at));
        let asked = approval.asked.clone().ok_or("a call in doubt is resolved, not approved")?;
        let call = self.open_call(&body.call)?;
        match body.decision {
            Decision::Approve => {
                call.judged = None;
                call.answered = Some(Answered { target: Some(asked.target.clone()) });
            }
            Decision::Edit => {
                call.arguments = body.arguments.clone().ok_or("an edit carries arguments")?;
                call.judged = None;
                call.answered = Some(Answered { target: None });
            }
            Decision::Respond | Decision::Reject | Decision::Stop => {}
        }
        match body.scope {
            GrantScope::Once => {}
            GrantScope::Run => self.grants.push(Grant::from_asked(&asked)),
        }
        Ok(())
    }

    fn ended(&mut self, body: &CallEnded, seq: u64, at: Time) -> Result<(), &'static str> {
        let call = self.open_call(&body.call)?;
        if body.allowed && call.started.is_none() {
            return Err("a call that was allowed has been started");
        }
        call.ended = Some((body.clone(), seq, at));
        let (approval, doubt) = (call.approval, call.doubt.as_ref().map(|doubt| doubt.approval));
        self.labels = self.labels.join(body.labels);
        self.files.extend(body.resources.iter().filter(|made| made.kind == "file").map(|made| made.path.clone()));
        for item in [approval, doubt].into_iter().flatten() {
            self.supersede(item);
        }
        Ok(())
    }

    fn supersede(&mut self, id: ApprovalId) {
        if let Some(approval) = self.approvals.get_mut(&id).filter(|approval| approval.is_pending()) {
            approval.superseded = true;
        }
    }

    fn open_call(&mut self, id: &CallId) -> Result<&mut Call, &'static str> {
        let call = self.calls_mut().find(|call| call.id == *id).ok_or("there is no such call")?;
        if call.ended.is_some() {
            return Err("a call has exactly one result");
        }
        Ok(call)
    }

    fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.turns.iter_mut().rev().flat_map(|turn| turn.calls.iter_mut())
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

    /// Turns a recorded start into the right to run. `durable` is the last sequence number that the store has confirmed:
    /// a start that is not yet in the log gives nothing (rules G1, L1).
    ///
    /// # Errors
    /// When the call was not started, has ended, is in doubt, or its latest start was already used.
    pub fn take_permit(&mut self, id: &CallId, durable: u64) -> Result<Permit, NoPermit> {
        let missing = || NoPermit(id.clone());
        let run = self.start.as_ref().map(|start| start.run).ok_or_else(missing)?;
        if self.seq > durable || self.end.is_some() {
            return Err(missing());
        }
        let call = self.calls_mut().find(|call| call.id == *id).ok_or_else(missing)?;
        let started = call.started.as_ref().ok_or_else(missing)?;
        if call.ended.is_some() || call.doubt.is_some() || call.permits >= started.attempt {
            return Err(missing());
        }
        let arguments: Value = serde_json::from_str(&started.arguments.text()).map_err(|_| missing())?;
        call.permits = started.attempt;
        Ok(Permit::new(Allowance {
            run,
            call: id.clone(),
            tool: started.tool.clone(),
            arguments,
            attempt: started.attempt,
            target: started.target.clone(),
            intended: started.intended.clone(),
        }))
    }

    /// The hash of the policy the run was started under.
    #[must_use]
    pub fn policy(&self) -> Hash {
        self.start.as_ref().map_or(Hash::ZERO, |start| start.policy)
    }
}

impl Call {
    fn proposed(id: CallId, tool: &str, arguments: Content, at: Time) -> Self {
        Self {
            id,
            tool: tool.to_owned(),
            arguments,
            proposed_at: at,
            judged: None,
            approval: None,
            answered: None,
            started: None,
            started_at: None,
            permits: 0,
            doubt: None,
            ended: None,
        }
    }

    /// Whether it was started and nobody has said yet what became of it.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.started.is_some() && self.ended.is_none() && self.doubt.is_none()
    }

    /// What becomes of it after a crash, once it was started.
    #[must_use]
    pub fn recovery(&self) -> Option<Recovery> {
        self.started.as_ref().map(|started| started.recovery)
    }

    /// The paths it touches, as far as they are known.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        let started = self.started.as_ref().map(|started| &started.target);
        started.or_else(|| self.judged.as_ref()?.prepared.as_ref().map(|prepared| &prepared.target))
    }

    /// Whether a person said that it is to be run again.
    #[must_use]
    pub fn is_to_be_rerun(&self) -> bool {
        let resolved = self.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref());
        resolved.is_some_and(|resolved| resolved.outcome == DoubtOutcome::Run)
    }
}
