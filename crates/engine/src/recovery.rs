//! What became of calls: recording how they ended, starting again what had no effect, and taking up what a process left behind.

use adjutant_core::content::Content;
use adjutant_core::guard::judge::{Decision, Verdict};
use adjutant_core::guard::redact::{Mode, redact};
use adjutant_core::id::CallId;
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::run::event::{CallEnded, CallInDoubt, ModelFailed, StartedAgain};
use adjutant_core::run::state::Answered;
use adjutant_core::tool::{Done, Probe, Recovery, ToolOutcome};
use serde_json::Value;

use crate::driver::Driver;
use crate::error::EngineError;
use crate::halting::NOTHING_CHANGED;
use crate::log::Flushed;
use crate::marks::Heard;
use crate::toolbox::look;
use crate::work::{WorkEnded, said};

/// What is known of a call whose end is not in the log.
pub(crate) const LOST: &str = "The process ended before its result was recorded: it may or may not have happened.";
/// What stands for the output of a call whose agent is gone.
const UNFILTERED: &str = "What it said is left out: the agent, whose content filter it has to pass, cannot be read.";
/// How often a call whose process died is taken up again before it counts as what kills the process.
const RESTARTS: u32 = 5;

/// What the guard says of a call that is to be started once more.
enum Again {
    Allowed,
    Refused(Verdict),
}

impl Driver {
    /// Records that a model call was lost with the process that made it.
    pub(crate) fn lose_model_call(&mut self) -> Result<Flushed, EngineError> {
        let Some(asking) = self.state().asking.clone() else { return Ok(Flushed::Written) };
        let exhausted = self.state().failed_with(&asking.model).saturating_add(1) >= limits::MODEL_ATTEMPTS;
        self.log.push(ModelFailed {
            turn: asking.turn,
            attempt: asking.attempt,
            class: "lost".to_owned(),
            message: "The process ended while the model was answering; the answer was lost.".to_owned(),
            retry_at: (!exhausted).then(|| self.now()),
            // Nobody can say what it showed or cost.
            model: asking.model,
            next: None,
            partial: true,
            cost: asking.reserved,
            frames: None,
            served_model: None,
            usage: None,
            estimated: false,
        })?;
        Ok(Flushed::Written)
    }

    /// Records how a call ended, or starts it again where that is right.
    pub(crate) async fn record(&mut self, call: CallId, ended: WorkEnded) -> Result<Flushed, EngineError> {
        let attempts =
            self.state().call(&call).and_then(|call| call.started.as_ref()).map_or(0, |started| started.attempt);
        let ended = self.as_found(&call, attempts, ended).await?;
        match &ended.outcome {
            ToolOutcome::Failed { retriable: true, .. } if attempts < limits::TOOL_ATTEMPTS => {
                self.start_again(call, ended).await
            }
            ToolOutcome::InDoubt { message } if ended.recovery != Recovery::Pure => {
                // The tool's own words may quote what was sent; people read them in lists (rule R1).
                let known = redact(message, Mode::Standard).into_owned();
                self.recover(&[call], &known).await
            }
            ToolOutcome::Done(_) | ToolOutcome::Failed { .. } | ToolOutcome::InDoubt { .. } => {
                self.record_final(call, ended).await?;
                Ok(Flushed::Written)
            }
        }
    }

    /// How an attempt ended, where the world can tell. One that failed and is to be tried again may have taken place all the same,
    /// and one that was tried again may have found what an earlier attempt left behind, late: then the call took place.
    async fn as_found(&mut self, call: &CallId, attempt: u32, ended: WorkEnded) -> Result<WorkEnded, EngineError> {
        let ToolOutcome::Failed { retriable, .. } = ended.outcome else { return Ok(ended) };
        if ended.recovery != Recovery::Reconcile || !(retriable || attempt > 1) {
            return Ok(ended);
        }
        Ok(match self.probe(call).await? {
            Probe::Happened(outcome) => WorkEnded { outcome, ..ended },
            Probe::NotHappened | Probe::Unknown => ended,
        })
    }

    /// Starts a call again that failed without any effect. If that is not to be any more, its failure is its result: it must
    /// not count as a call that nobody knows about.
    async fn start_again(&mut self, call: CallId, ended: WorkEnded) -> Result<Flushed, EngineError> {
        loop {
            if self.state().cancel.is_some() || self.state().error.is_some() {
                self.record_final(call, ended).await?;
                return Ok(Flushed::Written);
            }
            match self.judge_again(&call).await? {
                Again::Refused(verdict) => {
                    let refused = WorkEnded { outcome: ToolOutcome::failed(verdict.for_model()), ..ended };
                    self.record_final(call, refused).await?;
                    return Ok(Flushed::Written);
                }
                // Nothing is tried again while a stop switch is on: it failed without an effect.
                Again::Allowed if self.toolbox.is_halted() => {
                    self.record_final(call, ended).await?;
                    return Ok(Flushed::Written);
                }
                Again::Allowed => {}
            }
            match self.start(std::slice::from_ref(&call)).await? {
                Flushed::Rebased => {}
                other @ (Flushed::Written | Flushed::Fenced | Flushed::Overtaken) => return Ok(other),
            }
        }
    }

    /// Records how a call ended.
    pub(crate) async fn record_final(&mut self, call: CallId, ended: WorkEnded) -> Result<(), EngineError> {
        let known = self.state().call(&call);
        let (name, decided) = known.map(|call| (call.tool.clone(), call.decided())).unwrap_or_default();
        let declared = self.engine.tools().get(&name).map_or(Labels::NONE, |tool| tool.spec().labels);
        let WorkEnded { outcome, ms, .. } = ended;
        let is_error = !matches!(outcome, ToolOutcome::Done(_));
        let text = said(&outcome);
        // What went wrong may quote what was sent; the model and the log get it without (rule R1).
        let text = if is_error { redact(&text, Mode::Standard).into_owned() } else { text };
        let text = match self.known_agent().await {
            Ok(agent) => self.filter_output(&agent.filter, Some(&call), text)?,
            // That it ended is a fact. What it said went through no filter, so nobody is told.
            Err(error) if error.ends_a_run() => UNFILTERED.to_owned(),
            Err(other) => return Err(other),
        };
        // What went wrong is told in words of whatever the tool met, too.
        let heard = match &outcome {
            ToolOutcome::Done(done) => Heard::Result(&done.read),
            ToolOutcome::Failed { .. } | ToolOutcome::InDoubt { .. } => Heard::Failure,
        };
        let declared = declared.join(self.heard_labels(&call, heard).await);
        let (labels, resources) = match outcome {
            ToolOutcome::Done(Done { labels, resources, keep, .. }) => {
                for bytes in keep {
                    self.log.keep(bytes);
                }
                let labels = labels.join(declared);
                self.mark_made(labels, &resources);
                (labels, resources)
            }
            ToolOutcome::Failed { .. } | ToolOutcome::InDoubt { .. } => (declared, Vec::new()),
        };
        self.log.push(CallEnded {
            call,
            tool: name,
            output: Content::new(text),
            is_error,
            allowed: true,
            rule: None,
            ms,
            labels,
            resources,
            decided,
        })
    }

    /// Takes up calls that were started and whose end is not in the log: by their recovery class, never by a guess. What is
    /// known of them goes to the person who is asked.
    pub(crate) async fn recover(&mut self, calls: &[CallId], known: &str) -> Result<Flushed, EngineError> {
        if self.state().error.is_some() {
            return self.close_lost(calls).await;
        }
        // An agent that is gone says nothing; whatever is started after all is held to the switch by its append.
        let halted = self.agent().await.is_ok() && self.toolbox.is_halted();
        let mut again = Vec::new();
        for id in calls {
            let Some(started) = self.state().call(id).and_then(|call| call.started.clone()) else { continue };
            let worn_out = started.attempt >= RESTARTS || halted;
            match started.recovery {
                Recovery::Pure | Recovery::Idempotent if !worn_out => again.push(id.clone()),
                Recovery::Pure => {
                    let worn_out = "The process ended each time this was tried. It was given up.";
                    let outcome = ToolOutcome::failed(if halted { NOTHING_CHANGED } else { worn_out });
                    self.record_final(id.clone(), WorkEnded::seen(outcome, Recovery::Pure)).await?;
                }
                Recovery::Reconcile => match self.probe(id).await? {
                    Probe::Happened(outcome) => {
                        self.record_final(id.clone(), WorkEnded::seen(outcome, Recovery::Reconcile)).await?
                    }
                    Probe::NotHappened if !worn_out => again.push(id.clone()),
                    Probe::NotHappened | Probe::Unknown => self.doubt(id, known).await?,
                },
                Recovery::Idempotent | Recovery::AskHuman => self.doubt(id, known).await?,
            }
        }
        let allowed = self.still_allowed(again, known).await?;
        if allowed.is_empty() { Ok(Flushed::Written) } else { self.start(&allowed).await }
    }

    /// The guard looks again before a call is started once more: the policy may have changed since (design G1). What is no
    /// longer allowed, or asks by now, ends here; where it may have happened, a person says what became of it.
    async fn still_allowed(&mut self, calls: Vec<CallId>, known: &str) -> Result<Vec<CallId>, EngineError> {
        let mut allowed = Vec::new();
        for id in calls {
            let recovery = self.state().call(&id).and_then(|call| call.recovery());
            match (self.judge_again(&id).await?, recovery) {
                (Again::Allowed, _) => allowed.push(id),
                (Again::Refused(verdict), Some(Recovery::Idempotent | Recovery::AskHuman)) => {
                    self.doubt(&id, &format!("{known} It may not be run now: {}", verdict.reason)).await?
                }
                (Again::Refused(verdict), Some(Recovery::Pure | Recovery::Reconcile) | None) => {
                    let outcome = ToolOutcome::failed(verdict.for_model());
                    self.record_final(id, WorkEnded::seen(outcome, Recovery::Pure)).await?;
                }
            }
        }
        Ok(allowed)
    }

    /// What the guard says now of a call that was started. What a person answered then stays answered; a call that nobody
    /// was asked about and that asks by now is not run again. What allows it is recorded with its start.
    async fn judge_again(&mut self, id: &CallId) -> Result<Again, EngineError> {
        let agent = self.agent().await?;
        let Some(mut call) = self.state().call(id).cloned() else { return Ok(Again::Allowed) };
        // What was seen then is not compared: the first attempt may have changed it. Who wrote the arguments saw nothing, and is
        // asked whatever asks by now.
        if let Some(Answered::Yes(seen)) = &mut call.answered {
            *seen = None;
        }
        let world = self.world(&agent).await?;
        let verdict = self.verdict(&agent, &world, &call).await.0;
        Ok(match verdict.decision {
            Decision::Allow => {
                self.toolbox.allow_again(id.clone(), StartedAgain { policy: agent.policy, rule: verdict.rule });
                Again::Allowed
            }
            Decision::Ask => {
                let reason = format!("It asks a person by now, so it was not tried again. {}", verdict.reason);
                Again::Refused(Verdict::deny(&verdict.rule, reason, verdict.smallest_grant))
            }
            Decision::Deny => Again::Refused(verdict),
        })
    }

    /// Looks whether a call happened. A run that is ending and whose agent or notebook is gone has nothing to look with: that
    /// must not keep it from its end.
    pub(crate) async fn probe(&mut self, id: &CallId) -> Result<Probe, EngineError> {
        self.log.load_texts().await?;
        let world = match self.current_world().await {
            Err(error) if error.ends_a_run() && self.is_ending() => return Ok(Probe::Unknown),
            other => other?,
        };
        let Some(started) = self.state().call(id).and_then(|call| call.started.clone()) else {
            return Ok(Probe::Unknown);
        };
        let Ok(arguments) = serde_json::from_str::<Value>(&started.arguments.text()) else { return Ok(Probe::Unknown) };
        let Some(tool) = self.engine.tools().get(&started.tool) else { return Ok(Probe::Unknown) };
        let looking = tool.reconcile(&arguments, &started.target, started.intended.as_ref(), &world);
        Ok(look(&**tool, looking).await.unwrap_or(Probe::Unknown))
    }

    /// Asks a person what became of a call, with what it was to do, and what a process saw of it.
    pub(crate) async fn doubt(&mut self, id: &CallId, known: &str) -> Result<(), EngineError> {
        let message = match self.evidence_of(id).await {
            Some(seen) => format!("{known} {seen}"),
            None => known.to_owned(),
        };
        let Some(call) = self.state().call(id) else { return Ok(()) };
        let prepared = call.judged.as_ref().and_then(|judged| judged.prepared.as_ref());
        let doubt = CallInDoubt {
            call: id.clone(),
            approval: self.engine.env().id(),
            tool: call.tool.clone(),
            message,
            summary: prepared.map(|prepared| prepared.summary.clone()).unwrap_or_default(),
            arguments: call.started.as_ref().map(|started| started.arguments.clone()),
        };
        self.log.push(doubt)
    }
}
