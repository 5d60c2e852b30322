//! Adding one event to the state of a run. An event that cannot follow what is in the log is refused and changes nothing;
//! that is how a damaged or forged log is noticed. Nothing is decided here.

use std::time::Duration;

use super::approval::Approval;
use super::call::{Answered, Call, Doubt, Judged, Seen};
use super::{State, Turn};
use crate::guard::judge::Decision as Judgement;
use crate::id::{ApprovalId, CallId};
use crate::money::MicroUsd;
use crate::run::event::{
    ApprovalAsked, ApprovalDecided, ApprovalKind, CallEnded, CallInDoubt, CallJudged, CallProposed, CallStarted,
    CancelAsked, Decision, DoubtOutcome, Event, InDoubtResolved, ModelAnswered, ModelFailed, ModelRequested, RunEnded,
    RunStarted,
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

type Folded = Result<(), &'static str>;

impl State {
    /// Adds one event.
    ///
    /// # Errors
    /// When the event cannot follow the ones before it. The state is then as it was.
    pub fn apply(&mut self, event: &Event, seq: u64, at: Time) -> Result<(), Impossible> {
        let went_on = if self.start.is_some() { self.went_on_until(at) } else { Duration::ZERO };
        self.fold(event, seq, at).map_err(|why| Impossible { seq, kind: event.kind(), why })?;
        self.went_on = went_on;
        // A hold that names its end is over with the first thing that is recorded after it.
        if self.pause.as_ref().is_some_and(|pause| pause.is_over(at)) {
            self.pause = None;
            self.drop_budget_items(at);
        }
        self.seq = seq;
        self.updated_at = at;
        Ok(())
    }

    fn fold(&mut self, event: &Event, seq: u64, at: Time) -> Folded {
        if self.seq.checked_add(1) != Some(seq) {
            return Err("events are numbered from 1, without gaps");
        }
        if self.start.is_some() == matches!(event, Event::RunStarted(_)) {
            return Err("a run starts once, with its first event");
        }
        if self.end.is_some() {
            return Err("the run has ended");
        }
        match event {
            Event::RunStarted(body) => self.begin(body, at),
            Event::ModelRequested(body) => return self.requested(body),
            Event::Thought(body) => self.answering(body.turn)?.thoughts.push(body.clone()),
            Event::Said(body) => self.answering(body.turn)?.said = Some(body.text.clone()),
            Event::ModelAnswered(body) => return self.answered(body),
            Event::ModelFailed(body) => return self.failed(body),
            Event::CallProposed(body) => return self.proposed(body, at),
            Event::CallJudged(body) => return self.judged(body, seq),
            Event::ApprovalAsked(body) => return self.asked(body, at),
            Event::ApprovalDecided(body) => return self.decided(body, at),
            Event::CallStarted(body) => return self.started(body, at),
            Event::CallEnded(body) => return self.ended(body, seq, at),
            Event::CallInDoubt(body) => return self.in_doubt(body, at),
            Event::InDoubtResolved(body) => return self.resolved(body, at),
            Event::LabelsRaised(body) => self.labels = self.labels.join(body.labels),
            Event::ContentFiltered(body) => self.labels = self.labels.join(body.labels),
            Event::BudgetAlerted(_) => {}
            Event::Paused(body) => self.hold(body, at),
            Event::Resumed(body) => self.resume(body, at),
            Event::CancelAsked(body) => {
                self.refuse_budget_items(&body.by, at);
                self.cancel.get_or_insert_with(|| body.clone());
            }
            Event::Cancelled(_) if self.cancel.is_none() => return Err("nobody asked to cancel"),
            Event::Cancelled(_) => {}
            Event::Errored(body) => self.error = Some(body.clone()),
            Event::RunEnded(body) => return self.close(body, at),
        }
        Ok(())
    }

    fn begin(&mut self, body: &RunStarted, at: Time) {
        self.labels = body.labels;
        self.started_at = at;
        self.start = Some(Box::new(body.clone()));
    }

    fn requested(&mut self, body: &ModelRequested) -> Folded {
        if self.asking.is_some() {
            return Err("a model call is under way");
        }
        let over = |turn: &Turn| turn.calls.is_empty() && !self.wants_fitting_answer();
        if self.turns.last().is_some_and(|turn| over(turn) || !turn.is_complete()) {
            return Err("the turn before it is not complete, or was the last");
        }
        let attempt = self.failures.last().map_or(0, |failure| failure.attempt).checked_add(1);
        if body.turn != self.next_turn() || Some(body.attempt) != attempt {
            return Err("turns and attempts are counted from 1, without gaps");
        }
        self.asking = Some(body.clone());
        Ok(())
    }

    /// The turn that the model call under way is writing.
    fn answering(&mut self, turn: u32) -> Result<&mut Turn, &'static str> {
        if self.asking.as_ref().is_none_or(|asking| asking.turn != turn) {
            return Err("the model was not asked for this turn");
        }
        let count = self.turns.len();
        if count < turn as usize {
            self.turns.push(Turn::default());
        }
        match self.turns.last_mut() {
            Some(open) if open.answered.is_none() => Ok(open),
            Some(_) | None => Err("the model has answered"),
        }
    }

    fn answered(&mut self, body: &ModelAnswered) -> Folded {
        // Nothing of a run's course is in its frames.
        self.answering(body.turn)?.answered = Some(ModelAnswered { frames: None, ..body.clone() });
        self.usage += body.usage;
        self.estimated |= body.estimated;
        self.count(body.cost);
        self.hear_out();
        Ok(())
    }

    fn count(&mut self, cost: Option<MicroUsd>) {
        match cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced = true,
        }
    }

    /// An answer is heard out once every call it announced is there; until then its call to the model counts as open.
    fn hear_out(&mut self) {
        if self.turns.last().is_some_and(Turn::is_whole) {
            self.asking = None;
            self.failures.clear();
        }
    }

    fn failed(&mut self, body: &ModelFailed) -> Folded {
        let asking = self.asking.as_ref().ok_or("no model call is under way")?;
        if (asking.turn, asking.attempt) != (body.turn, body.attempt) {
            return Err("another model call is under way");
        }
        self.asking = None;
        self.failures.push(ModelFailed { frames: None, ..body.clone() });
        // What its provider counted before it broke off was used; our estimate stays with the attempt.
        self.usage += body.usage.filter(|_| !body.estimated).unwrap_or_default();
        self.count(body.cost);
        // What a lost answer had begun to say does not count.
        self.turns.truncate((body.turn as usize).saturating_sub(1));
        Ok(())
    }

    fn proposed(&mut self, body: &CallProposed, at: Time) -> Folded {
        if self.call(&body.call).is_some() {
            return Err("a call id is used once");
        }
        if self.asking.as_ref().is_none_or(|asking| asking.turn != body.turn) {
            return Err("the model was not asked for this turn");
        }
        let turn = self.turns.last_mut().filter(|turn| turn.answered.is_some()).ok_or("a call follows its answer")?;
        turn.calls.push(Call::proposed(body.call.clone(), &body.tool, body.arguments.clone(), at));
        self.hear_out();
        Ok(())
    }

    fn judged(&mut self, body: &CallJudged, seq: u64) -> Folded {
        let call = self.open_call(&body.call)?;
        if call.is_running() || call.is_in_doubt() {
            return Err("a call is judged before it is started");
        }
        let (verdict, prepared, touches) = (body.verdict.clone(), body.prepared.clone(), body.touches.clone());
        call.judged = Some(Judged { verdict, prepared, touches, policy: body.policy, labels: body.labels, seq });
        Ok(())
    }

    fn asked(&mut self, body: &ApprovalAsked, at: Time) -> Folded {
        if self.approvals.contains_key(&body.approval) {
            return Err("an approval id is used once");
        }
        match body.kind {
            ApprovalKind::Call | ApprovalKind::Budget => {}
            ApprovalKind::InDoubt => return Err("a call in doubt is asked about by its own event"),
        }
        let call = self.open_call(&body.call)?;
        if call.decision() != Some(Judgement::Ask) {
            return Err("a person is asked only where the guard asks");
        }
        let before = call.approval.replace(body.approval);
        call.answered = None;
        if let Some(before) = before {
            self.supersede(before);
        }
        self.approvals.insert(body.approval, Approval::call(body, at));
        Ok(())
    }

    fn decided(&mut self, body: &ApprovalDecided, at: Time) -> Folded {
        let approval = self.approvals.get(&body.approval).ok_or("there is no such approval")?;
        if !approval.is_pending() {
            return Err("the approval was decided already");
        }
        if approval.call != body.call {
            return Err("the approval is about another call");
        }
        let asked = approval.asked.clone().ok_or("a call in doubt is resolved, not approved")?;
        if body.decision == Decision::Edit && body.arguments.is_none() {
            return Err("an edit carries arguments");
        }
        let call = self.open_call(&body.call)?;
        match body.decision {
            // The guard looks once more, under the policy of the day.
            Decision::Approve => {
                call.judged = None;
                call.answered = Some(Answered::Yes(Some(Seen {
                    target: asked.target.clone(),
                    intended: asked.intended.clone(),
                    fingerprint: Some(asked.fingerprint),
                    until: Some(asked.expires_at),
                })));
            }
            Decision::Edit => {
                call.arguments = body.arguments.clone().unwrap_or_default();
                call.judged = None;
                call.answered = Some(Answered::Edited);
            }
            Decision::Respond | Decision::Reject | Decision::Stop => {}
        }
        if body.decision == Decision::Stop {
            let reason = body.message.clone().unwrap_or_else(|| "stopped at an approval".to_owned());
            self.cancel.get_or_insert_with(|| CancelAsked { by: body.by.clone(), reason });
        }
        if let Some(approval) = self.approvals.get_mut(&body.approval) {
            approval.decided = Some((body.clone(), at));
        }
        Ok(())
    }

    fn started(&mut self, body: &CallStarted, at: Time) -> Folded {
        let call = self.open_call(&body.call)?;
        if call.is_in_doubt() {
            return Err("the call is in doubt");
        }
        let judged = call.judged.as_ref().filter(|judged| judged.verdict.decision == Judgement::Allow);
        let judged = judged.ok_or("the call was not allowed")?;
        let same_target = match &judged.prepared {
            Some(prepared) => prepared.target == body.target,
            None => body.target.is_empty(),
        };
        if body.tool != call.tool || body.arguments != call.arguments || !same_target {
            return Err("what is started is not what was judged");
        }
        let attempt = call.started.as_ref().map_or(0, |started| started.attempt).checked_add(1);
        if Some(body.attempt) != attempt {
            return Err("attempts are counted from 1, without gaps");
        }
        call.started_at.get_or_insert(at);
        call.doubt = None;
        call.started = Some(body.clone());
        Ok(())
    }

    fn ended(&mut self, body: &CallEnded, seq: u64, at: Time) -> Folded {
        let call = self.open_call(&body.call)?;
        if body.allowed && call.started.is_none() {
            return Err("a call that was allowed has been started");
        }
        if !body.allowed && call.is_running() {
            return Err("a call that runs was allowed");
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

    fn in_doubt(&mut self, body: &CallInDoubt, at: Time) -> Folded {
        if self.approvals.contains_key(&body.approval) {
            return Err("an approval id is used once");
        }
        let call = self.open_call(&body.call)?;
        if !call.is_running() {
            return Err("only a call that runs can be in doubt");
        }
        call.doubt = Some(Doubt { approval: body.approval, message: body.message.clone(), resolved: None });
        self.approvals.insert(body.approval, Approval::in_doubt(body, at));
        Ok(())
    }

    fn resolved(&mut self, body: &InDoubtResolved, at: Time) -> Folded {
        let call = self.open_call(&body.call)?;
        let seen = call.started.as_ref().map(|started| Seen {
            target: started.target.clone(),
            intended: started.intended.clone(),
            fingerprint: None,
            until: None,
        });
        let doubt = call.doubt.as_mut().filter(|doubt| doubt.resolved.is_none()).ok_or("the call is not in doubt")?;
        if doubt.approval != body.approval {
            return Err("the approval is about another call");
        }
        doubt.resolved = Some(body.clone());
        match body.outcome {
            // It is run again like a call that was approved: judged once more, and on the target of its first start.
            DoubtOutcome::Run => {
                call.judged = None;
                call.answered = Some(Answered::Yes(seen));
            }
            DoubtOutcome::Happened | DoubtOutcome::Abandon => {}
        }
        if let Some(approval) = self.approvals.get_mut(&body.approval) {
            approval.resolved = Some((body.clone(), at));
        }
        Ok(())
    }

    fn close(&mut self, body: &RunEnded, at: Time) -> Folded {
        if self.asking.is_some() {
            return Err("a model call is under way");
        }
        if self.calls().any(|call| call.ended.is_none()) {
            return Err("every call has its result before the run ends");
        }
        self.drop_budget_items(at);
        self.end = Some((body.clone(), at));
        Ok(())
    }

    fn supersede(&mut self, id: ApprovalId) {
        if let Some(approval) = self.approvals.get_mut(&id).filter(|approval| approval.is_pending()) {
            approval.superseded = true;
        }
    }

    fn open_call(&mut self, id: &CallId) -> Result<&mut Call, &'static str> {
        if self.asking.is_some() {
            return Err("the answer that holds the call is not complete");
        }
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
