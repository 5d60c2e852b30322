//! Adding one event to the state of a run. It says no to an event that cannot follow; it never decides.

use super::approval::Approval;
use super::call::{Answered, Call, Doubt, Judged};
use super::{State, Turn};
use crate::guard::judge::Grant;
use crate::id::{ApprovalId, CallId};
use crate::run::event::{
    ApprovalAsked, ApprovalDecided, ApprovalKind, CallEnded, Decision, Event, GrantScope, ModelAnswered,
};
use crate::time::Time;

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

    pub(super) fn calls_mut(&mut self) -> impl Iterator<Item = &mut Call> {
        self.turns.iter_mut().rev().flat_map(|turn| turn.calls.iter_mut())
    }
}
