//! Driving one run: ask the pure core what comes next, announce it in the log, do it, record what came of it. Decides
//! nothing itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::id::CallId;
use adjutant_core::limits;
use adjutant_core::message::Message;
use adjutant_core::run::event::{
    Actor, ApprovalDecided, CallEnded, CallStarted, Cancelled, Decision, EndStatus, Errored, GrantScope, ModelFailed,
    RunEnded,
};
use adjutant_core::run::state::State;
use adjutant_core::run::step::{Finish, Settlement, Step, step};
use adjutant_core::time::Time;
use adjutant_core::tool::{Recovery, ToolDefinition};
use adjutant_store::StoreError;
use adjutant_store::row::{Claim, Writer};
use tokio::sync::Notify;

use crate::engine::{Driving, Engine};
use crate::error::EngineError;
use crate::log::{Flushed, RunLog};
use crate::toolbox::{Toolbox, Work};

/// A wait shorter than this is sat out; a longer one gives the run back.
const SIT_OUT: Duration = Duration::from_secs(15);
/// How long an append is tried again while the store does not answer: as long as the lease could live.
const STORE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a call that changes something may go on after a cancel, so that its result is known.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// How driving a run came to an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The run is over.
    Ended,
    /// The run waits for a person or a moment; it costs a row.
    Parked,
    /// Another node has taken the run over.
    Fenced,
}

pub(crate) struct Driver {
    pub(crate) engine: Engine,
    pub(crate) log: RunLog,
    pub(crate) toolbox: Toolbox,
    pub(crate) base: Option<Arc<Vec<Message>>>,
    pub(crate) definitions: Option<Arc<Vec<ToolDefinition>>>,
    pub(crate) running: HashMap<CallId, Work>,
    notify: Arc<Notify>,
    writer: Writer,
    _driving: Driving,
}

/// Drives a claimed run until it ends, waits, or is taken away.
///
/// # Errors
/// When the store cannot be reached for longer than the lease lives, or the log cannot be followed.
pub(crate) async fn drive(engine: &Engine, claim: Claim) -> Result<Exit, EngineError> {
    let driving = engine.driving(claim.run);
    let log = RunLog::load(engine.store(), engine.env(), claim.workspace, claim.run).await?;
    let writer = Writer::Owner { node: engine.node(), epoch: claim.epoch };
    let mut driver = Driver {
        engine: engine.clone(),
        log,
        toolbox: Toolbox::default(),
        base: None,
        definitions: None,
        running: HashMap::new(),
        notify: Arc::clone(&driving.notify),
        writer,
        _driving: driving,
    };
    driver.go().await
}

impl Driver {
    pub(crate) fn state(&self) -> &State {
        &self.log.state
    }

    pub(crate) fn now(&self) -> Time {
        self.engine.env().now()
    }

    async fn go(&mut self) -> Result<Exit, EngineError> {
        loop {
            let next = match self.next().await {
                Err(error) => self.give_up(error)?,
                Ok(next) => next,
            };
            match next {
                Next::On(Flushed::Written | Flushed::Rebased) => {}
                Next::On(Flushed::Fenced) => return Ok(Exit::Fenced),
                Next::Out(exit) => return Ok(exit),
            }
        }
    }

    /// Does what comes next.
    async fn next(&mut self) -> Result<Next, EngineError> {
        let flushed = match step(self.state(), self.now()) {
            Step::CallModel { turn, attempt } => self.ask_model(turn, attempt).await?,
            Step::AwaitModel => self.lose_model_call()?,
            Step::Judge(calls) => self.judge(&calls).await?,
            Step::Expire(approvals) => self.expire(&approvals)?,
            Step::Settle(settlements) => self.settle(settlements)?,
            Step::Start(calls) => self.start(&calls).await?,
            Step::Await(calls) => self.await_calls(&calls).await?,
            Step::Cancel => self.cancel().await?,
            Step::Finish(finish) => self.finish(finish).await?,
            Step::Wait(until) => return self.wait(until).await,
            Step::Done => match self.flush(Hold::Release).await? {
                Flushed::Written => return Ok(Next::Out(Exit::Ended)),
                other @ (Flushed::Rebased | Flushed::Fenced) => other,
            },
        };
        Ok(Next::On(flushed))
    }

    /// A run whose agent or notebook cannot be used ends with that error; a store or log that fails is not the run's fault.
    fn give_up(&mut self, error: EngineError) -> Result<Next, EngineError> {
        match error {
            EngineError::NotFound { .. }
            | EngineError::Invalid(_)
            | EngineError::InvalidAgent(_)
            | EngineError::AgentInactive(_)
            | EngineError::Notebook { .. }
                if self.state().error.is_none() && self.state().cancel.is_none() =>
            {
                let message = format!("The run cannot go on: {error}. What was done so far stays.");
                self.log.push(Errored { code: "not_runnable".to_owned(), message, retryable: false })?;
                Ok(Next::On(Flushed::Written))
            }
            other => Err(other),
        }
    }

    /// Writes what is pending. While the store does not answer it is tried again: what happened must not be lost.
    pub(crate) async fn flush(&mut self, hold: Hold) -> Result<Flushed, EngineError> {
        let release = match hold {
            Hold::Keep => false,
            Hold::Release => true,
        };
        let mut waited = Duration::ZERO;
        let mut attempt = 1;
        loop {
            match self.log.flush(self.writer, release).await {
                Err(EngineError::Store(StoreError::Unavailable(why))) if waited < STORE_PATIENCE => {
                    let pause = adjutant_models::retry::backoff(attempt, None, self.engine.env().fraction());
                    tracing::warn!(run = %self.log.run, error = %why, "the store does not answer; trying again");
                    tokio::time::sleep(pause).await;
                    waited += pause;
                    attempt += 1;
                }
                other => return other,
            }
        }
    }

    fn lose_model_call(&mut self) -> Result<Flushed, EngineError> {
        let Some(asking) = self.state().asking.clone() else { return Ok(Flushed::Written) };
        let exhausted = asking.attempt >= limits::MODEL_ATTEMPTS;
        self.log.push(ModelFailed {
            turn: asking.turn,
            attempt: asking.attempt,
            class: "lost".to_owned(),
            message: "The process ended while the model was answering; the answer was lost.".to_owned(),
            retry_at: (!exhausted).then(|| self.now()),
        })?;
        Ok(Flushed::Written)
    }

    fn expire(&mut self, approvals: &[adjutant_core::id::ApprovalId]) -> Result<Flushed, EngineError> {
        for id in approvals {
            let Some(call) = self.state().approvals.get(id).map(|approval| approval.call.clone()) else { continue };
            self.log.push(ApprovalDecided {
                approval: *id,
                call,
                decision: Decision::Reject,
                by: Actor::Clock,
                scope: GrantScope::Once,
                arguments: None,
                message: None,
            })?;
        }
        Ok(Flushed::Written)
    }

    fn settle(&mut self, settlements: Vec<Settlement>) -> Result<Flushed, EngineError> {
        for settlement in settlements {
            let tool = self.state().call(&settlement.call).map(|call| call.tool.clone()).unwrap_or_default();
            self.log.push(CallEnded {
                call: settlement.call,
                tool,
                output: settlement.output,
                is_error: settlement.is_error,
                allowed: settlement.allowed,
                rule: settlement.rule,
                ms: 0,
                labels: adjutant_core::label::Labels::NONE,
                resources: Vec::new(),
            })?;
        }
        Ok(Flushed::Written)
    }

    /// Announces calls, makes that durable, and only then runs them.
    pub(crate) async fn start(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        for id in calls {
            let Some(started) = self.announcement(id) else { continue };
            self.log.push(started)?;
        }
        let flushed = self.flush(Hold::Keep).await?;
        if flushed != Flushed::Written {
            return Ok(flushed);
        }
        let durable = self.log.head.seq;
        for id in calls {
            match self.log.state.take_permit(id, durable) {
                Ok(permit) => self.run(permit).await?,
                Err(missing) => tracing::error!(run = %self.log.run, error = %missing, "a started call has no permit"),
            }
        }
        Ok(Flushed::Written)
    }

    fn announcement(&self, id: &CallId) -> Option<CallStarted> {
        let call = self.state().call(id)?;
        let tool = self.engine.tools().get(&call.tool)?;
        let prepared = call.judged.as_ref().and_then(|judged| judged.prepared.clone()).unwrap_or_default();
        Some(CallStarted {
            call: id.clone(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            attempt: call.started.as_ref().map_or(0, |started| started.attempt) + 1,
            key: adjutant_core::guard::permit::idempotency_key(self.log.run, id),
            recovery: tool.spec().recovery,
            target: prepared.target,
            intended: prepared.intended,
        })
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

    async fn finish(&mut self, finish: Finish) -> Result<Flushed, EngineError> {
        let status = match finish {
            Finish::Completed => EndStatus::Completed,
            Finish::Failed { code, message } => {
                if self.state().error.is_none() {
                    self.log.push(Errored { code: code.to_owned(), message, retryable: false })?;
                }
                self.close_calls("failed").await?;
                EndStatus::Failed
            }
        };
        self.end(status)
    }

    async fn wait(&mut self, until: Option<Time>) -> Result<Next, EngineError> {
        let rest = until.map(|until| until.since(self.now()));
        let Some(rest) = rest.filter(|rest| *rest <= SIT_OUT) else {
            return Ok(match self.flush(Hold::Release).await? {
                Flushed::Written => Next::Out(Exit::Parked),
                other @ (Flushed::Rebased | Flushed::Fenced) => Next::On(other),
            });
        };
        let flushed = self.flush(Hold::Keep).await?;
        if flushed == Flushed::Written {
            let commanded = Arc::clone(&self.notify);
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = commanded.notified() => self.log.catch_up().await?,
            }
        }
        Ok(Next::On(flushed))
    }

    /// Comes back once a cancel is in the log. Only right while nothing is pending.
    pub(crate) async fn cancelled(&mut self) -> Result<(), EngineError> {
        loop {
            let commanded = Arc::clone(&self.notify);
            commanded.notified().await;
            self.log.catch_up().await?;
            if self.state().cancel.is_some() {
                return Ok(());
            }
        }
    }

    /// Waits for a running call to end, or for a command. Calls that nobody runs are recovered.
    async fn await_calls(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        let lost: Vec<_> = calls.iter().filter(|id| !self.running.contains_key(*id)).cloned().collect();
        if !lost.is_empty() {
            return self.recover(&lost).await;
        }
        // What ended while others go on is made durable before anybody waits.
        if !self.log.is_flushed() {
            return self.flush(Hold::Keep).await;
        }
        let commanded = Arc::clone(&self.notify);
        tokio::select! {
            ended = crate::toolbox::next_ended(&mut self.running) => {
                if let Some((call, ended)) = ended {
                    return self.record(call, ended).await;
                }
                Ok(Flushed::Written)
            }
            () = commanded.notified() => {
                self.log.catch_up().await?;
                Ok(Flushed::Written)
            }
        }
    }

    /// Stops what runs, gives every call its result, and ends the run.
    async fn cancel(&mut self) -> Result<Flushed, EngineError> {
        if let Some(asking) = self.state().asking.clone() {
            self.log.push(ModelFailed {
                turn: asking.turn,
                attempt: asking.attempt,
                class: "cancelled".to_owned(),
                message: "The model call was dropped because the run was cancelled.".to_owned(),
                retry_at: None,
            })?;
        }
        self.close_calls("cancelled").await?;
        let reason = self.state().cancel.as_ref().map(|cancel| cancel.reason.clone()).unwrap_or_default();
        self.log.push(Cancelled { reason })?;
        self.end(EndStatus::Cancelled)
    }

    /// Gives every open call its result, because the run ends: what changes something is waited for, so that its end is known.
    async fn close_calls(&mut self, how: &str) -> Result<(), EngineError> {
        let open: Vec<_> = self.state().calls().filter(|call| call.ended.is_none()).cloned().collect();
        for call in open {
            let work = self.running.remove(&call.id);
            let unknown = format!("The run was {how} while this ran: it is not known whether it happened.");
            let (output, allowed) = match (work, call.recovery()) {
                (_, None) => (format!("Not run: the run was {how}."), false),
                (_, Some(Recovery::Pure)) => (format!("Given up: the run was {how}."), true),
                (Some(mut work), Some(_)) => match tokio::time::timeout(CANCEL_GRACE, work.ended()).await {
                    Ok(ended) => {
                        self.record_final(call.id.clone(), ended)?;
                        continue;
                    }
                    Err(_) => (unknown.clone(), true),
                },
                (None, Some(_)) => (unknown.clone(), true),
            };
            let started = call.started.is_some();
            self.settle(vec![Settlement {
                call: call.id,
                output: output.into(),
                is_error: true,
                allowed: allowed && started,
                rule: Some(how.to_owned()),
            }])?;
        }
        Ok(())
    }
}

/// Whether a flush keeps the run or gives it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Keep,
    Release,
}

/// Whether driving goes on.
enum Next {
    On(Flushed),
    Out(Exit),
}
