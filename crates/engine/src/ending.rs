//! Ending a run: with its answer, with an error, or because it was cancelled. Every call gets its result first.

use std::fmt;
use std::time::Duration;

use adjutant_core::content::Content;
use adjutant_core::id::{ApprovalId, CallId};
use adjutant_core::label::Labels;
use adjutant_core::run::event::{
    Actor, ApprovalDecided, Cancelled, Decision, DoubtOutcome, EndStatus, Errored, GrantScope, ModelFailed, RunEnded,
};
use adjutant_core::run::state::Call;
use adjutant_core::run::step::{Finish, Settlement};
use adjutant_core::tool::{Probe, Recovery};

use crate::asking::frames;
use crate::counting::HeardOf;
use crate::driver::Driver;
use crate::error::EngineError;
use crate::log::Flushed;
use crate::work::WorkEnded;

/// How long calls that change something may go on after a cancel, so that their results are known.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

impl Driver {
    /// Ends questions that nobody answered in time: that is a no.
    pub(crate) fn expire(&mut self, approvals: &[ApprovalId]) -> Result<Flushed, EngineError> {
        for id in approvals {
            let Some(call) = self.state().approvals.get(id).map(|approval| approval.call.clone()) else { continue };
            self.log.push(ApprovalDecided {
                approval: *id,
                call,
                decision: Decision::Reject,
                by: Actor::Clock,
                scope: GrantScope::Once,
                arguments: None,
                about: None,
                message: None,
                rule: None,
            })?;
        }
        Ok(Flushed::Written)
    }

    fn end(&mut self, status: EndStatus) -> Result<Flushed, EngineError> {
        let state = self.state();
        let ended = RunEnded {
            status,
            result: state.last_text(),
            usage: state.usage,
            cost: state.cost,
            files_modified: state.files.iter().cloned().collect(),
        };
        self.log.push(ended)?;
        Ok(Flushed::Written)
    }

    pub(crate) async fn finish(&mut self, finish: Finish) -> Result<Flushed, EngineError> {
        let status = match finish {
            Finish::Completed => EndStatus::Completed,
            Finish::Failed { code, message } => {
                if self.state().error.is_none() {
                    self.log.push(Errored { code: code.to_owned(), message, retryable: false })?;
                }
                self.close_calls(Ending::Failed).await?;
                EndStatus::Failed
            }
        };
        self.end(status)
    }

    /// Stops what runs, gives every call its result, and ends the run.
    pub(crate) async fn cancel(&mut self) -> Result<Flushed, EngineError> {
        if let Some(asking) = self.state().asking.clone() {
            let (frames, heard) = (frames(self.tape.take()), HeardOf::from(self.notes.take()));
            self.log.push(ModelFailed {
                turn: asking.turn,
                attempt: asking.attempt,
                class: "cancelled".to_owned(),
                message: "The model call was dropped because the run was cancelled.".to_owned(),
                retry_at: None,
                model: asking.model,
                next: None,
                partial: true,
                cost: asking.reserved,
                frames,
                served_model: heard.served,
                usage: heard.usage,
                estimated: heard.estimated,
            })?;
        }
        self.close_calls(Ending::Cancelled).await?;
        let reason = self.state().cancel.as_ref().map(|cancel| cancel.reason.clone()).unwrap_or_default();
        self.log.push(Cancelled { reason })?;
        self.end(EndStatus::Cancelled)
    }

    /// Gives every open call its result, because the run ends: what changes something is waited for, so that its end is known.
    async fn close_calls(&mut self, how: Ending) -> Result<(), EngineError> {
        let open: Vec<_> = self.state().calls().filter(|call| call.ended.is_none()).cloned().collect();
        let until = tokio::time::Instant::now() + CANCEL_GRACE;
        for call in open {
            self.stop_call(call, how, until).await?;
        }
        Ok(())
    }

    /// Gives calls that nobody runs any more their result, because the run has failed: nothing is run again for it, and
    /// nobody is asked about it.
    pub(crate) async fn close_lost(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        for id in calls {
            if let Some(call) = self.state().call(id).cloned() {
                self.stop_call(call, Ending::Failed, tokio::time::Instant::now()).await?;
            }
        }
        Ok(Flushed::Written)
    }

    /// Gives a call its result because the run ends: what it answers in time, what is known of it, or that nothing is known.
    async fn stop_call(&mut self, call: Call, how: Ending, until: tokio::time::Instant) -> Result<(), EngineError> {
        let work = self.running.remove(&call.id);
        let said = call.doubt.as_ref().and_then(|doubt| doubt.resolved.as_ref());
        let (output, is_error) = match (work, call.recovery()) {
            (_, None) => (format!("Not run: the run {how}.").into(), true),
            (_, Some(Recovery::Pure)) => (format!("Given up: the run {how}.").into(), true),
            (None, Some(_)) if said.is_some_and(|said| said.outcome == DoubtOutcome::Happened) => {
                let confirmed = || "A person confirmed that it happened.".into();
                (said.and_then(|said| said.result.clone()).unwrap_or_else(confirmed), false)
            }
            (Some(mut work), Some(recovery)) => {
                let ended = tokio::time::timeout_at(until, work.ended()).await.ok();
                if let Some(ended) = ended.filter(|ended| !ended.is_in_doubt()) {
                    return self.record_final(call.id, ended).await;
                }
                // It is stopped before anybody looks.
                drop(work);
                match self.found_out(&call.id, recovery, Rest::MayFollow, how).await? {
                    Found::Recorded => return Ok(()),
                    Found::Said(output) => (output, true),
                }
            }
            (None, Some(recovery)) => match self.found_out(&call.id, recovery, Rest::Nothing, how).await? {
                Found::Recorded => return Ok(()),
                Found::Said(output) => (output, true),
            },
        };
        let allowed = call.started.is_some();
        let rule = Some(how.rule().to_owned());
        let labels = Labels::NONE;
        self.settle(vec![Settlement { call: call.id, output, is_error, allowed, rule, labels }]).map(drop)
    }

    /// What a look at the world says of a call that was stopped.
    async fn found_out(
        &mut self,
        id: &CallId,
        recovery: Recovery,
        rest: Rest,
        how: Ending,
    ) -> Result<Found, EngineError> {
        let probe = if recovery == Recovery::Reconcile { self.probe(id).await? } else { Probe::Unknown };
        Ok(match (probe, rest) {
            (Probe::Happened(outcome), _) => {
                self.record_final(id.clone(), WorkEnded::seen(outcome, recovery)).await?;
                Found::Recorded
            }
            (Probe::NotHappened, Rest::Nothing) => {
                Found::Said(format!("The run {how} before this had any effect.").into())
            }
            (Probe::NotHappened, Rest::MayFollow) | (Probe::Unknown, _) => {
                let unknown = format!("The run {how} while this ran: it is not known whether it happened.");
                Found::Said(unknown.into())
            }
        })
    }
}

/// Whether something of a call may still happen after somebody looked.
#[derive(Debug, Clone, Copy)]
enum Rest {
    /// The process that ran it is gone.
    Nothing,
    /// It ran here until now, and what it gave to another thread may still be written.
    MayFollow,
}

/// Why a run ends before its calls do.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Failed,
    Cancelled,
}

impl Ending {
    /// The rule that results of such calls name.
    const fn rule(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failed => "failed",
            Self::Cancelled => "was cancelled",
        })
    }
}

enum Found {
    Recorded,
    Said(Content),
}
