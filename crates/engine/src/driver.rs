//! Driving one run: ask the pure core what comes next, announce it in the log, do it, record what came of it. Decides
//! nothing itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::id::CallId;
use adjutant_core::message::Message;
use adjutant_core::run::event::{CallEnded, Errored};
use adjutant_core::run::state::State;
use adjutant_core::run::step::{Settlement, Step, step};
use adjutant_core::time::Time;
use adjutant_core::tool::ToolDefinitions;
use adjutant_models::{Notes, Tape};
use adjutant_store::StoreError;
use adjutant_store::row::{Claim, Owner};
use tokio::sync::Notify;

use crate::engine::{Driving, Engine};
use crate::error::EngineError;
use crate::handles::OpenNotebook;
use crate::held::Record;
use crate::lease::Life;
use crate::log::{Caught, Flushed, RunLog};
use crate::patience::Hold;
use crate::recovery::LOST;
use crate::toolbox::Toolbox;
use crate::trace::RunTrace;
use crate::work::Work;

/// A wait shorter than this is sat out; a longer one gives the run back.
const SIT_OUT: Duration = Duration::from_secs(15);
/// Wait after the store did not answer while something else goes on.
const STORE_PAUSE: Duration = Duration::from_secs(1);

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
    pub(crate) definitions: Option<Arc<ToolDefinitions>>,
    pub(crate) running: BTreeMap<CallId, Work>,
    pub(crate) life: Life,
    /// What goes over the wire in the model call that is open, where somebody asked to see it: also of one that is dropped.
    pub(crate) tape: Option<Tape>,
    /// What is heard of the answer to it.
    pub(crate) notes: Notes,
    /// Files that keep what could not be recorded.
    pub(crate) evidence: Vec<PathBuf>,
    /// The run as others watch it.
    pub(crate) trace: Option<RunTrace>,
    /// The run's notebook as it was found under a version of its workspace: another name of it is another version.
    pub(crate) notebook: Mutex<Option<(u64, OpenNotebook)>>,
    notify: Arc<Notify>,
    pub(crate) owner: Owner,
    _driving: Driving,
}

/// Drives a claimed run until it ends, waits, or is taken away.
///
/// # Errors
/// When the store cannot be reached for longer than the lease lives, or the log cannot be followed.
pub(crate) async fn drive(engine: &Engine, claim: Claim) -> Result<Exit, EngineError> {
    let life = engine.lease().life();
    loop {
        let went = tokio::select! {
            biased;
            // A node that was taken for dead has lost its runs: nothing more is begun for them here.
            () = engine.lease().lost(life) => return Ok(Exit::Fenced),
            went = go_through(engine, claim, life) => went?,
        };
        match went {
            Went::Out(exit) => return Ok(exit),
            // Whether the run is still ours is for the store to say, at the next append.
            Went::Overtaken => {}
        }
    }
}

async fn go_through(engine: &Engine, claim: Claim, life: Life) -> Result<Went, EngineError> {
    let driving = engine.driving(claim.run);
    let mut log = RunLog::load(engine.store(), engine.env(), claim.workspace, claim.run).await?;
    log.hold(engine.held(Record::of_run(claim.workspace, &log.state)).await?);
    let owner = Owner { run: claim.run, node: engine.node(), epoch: claim.epoch };
    let mut driver = Driver {
        engine: engine.clone(),
        log,
        toolbox: Toolbox::default(),
        base: None,
        definitions: None,
        running: BTreeMap::new(),
        life,
        tape: None,
        notes: Notes::default(),
        evidence: Vec::new(),
        trace: None,
        notebook: Mutex::default(),
        notify: Arc::clone(&driving.notify),
        owner,
        _driving: driving,
    };
    driver.begin_trace().await;
    let went = driver.go().await;
    driver.end_trace();
    went
}

impl Driver {
    pub(crate) fn state(&self) -> &State {
        &self.log.state
    }

    pub(crate) fn now(&self) -> Time {
        self.engine.env().now()
    }

    async fn go(&mut self) -> Result<Went, EngineError> {
        loop {
            let next = match self.next().await {
                Err(error) => self.give_up(error)?,
                Ok(next) => next,
            };
            match next {
                Next::On(Flushed::Written | Flushed::Rebased) => {}
                Next::On(Flushed::Fenced) => return Ok(Went::Out(Exit::Fenced)),
                Next::On(Flushed::Overtaken) => return Ok(Went::Overtaken),
                Next::Out(exit) => return Ok(Went::Out(exit)),
            }
        }
    }

    /// Does what comes next.
    async fn next(&mut self) -> Result<Next, EngineError> {
        let step = step(self.state(), self.now());
        if self.engine.claims().is_leaving() && self.running.is_empty() && !matches!(step, Step::Finish(_) | Step::Done)
        {
            return self.hand_on().await;
        }
        let flushed = match step {
            // A node that leaves waits for it as for a tool: an answer that is lost is asked for again, and paid twice.
            Step::CallModel { turn, attempt } => self.ask_model(turn, attempt).await?,
            Step::AwaitModel => self.lose_model_call()?,
            Step::Judge(calls) => self.judge(&calls).await?,
            Step::Expire(approvals) => self.expire(&approvals)?,
            Step::Settle(settlements) => self.settle(settlements)?,
            Step::Start(calls) => self.start_judged(&calls).await?,
            Step::Await(calls) => self.await_calls(&calls).await?,
            Step::Cancel => self.cancel().await?,
            Step::Finish(finish) => self.finish(finish).await?,
            Step::Wait(until) => return self.wait(until).await,
            Step::Done => match self.flush(Hold::Release).await? {
                Flushed::Written => return Ok(Next::Out(Exit::Ended)),
                other @ (Flushed::Rebased | Flushed::Fenced | Flushed::Overtaken) => other,
            },
        };
        Ok(Next::On(flushed))
    }

    /// Leaves a run to whoever takes it up next. What has happened is made durable first: a call that ended, and whose end is in
    /// no log, would be in doubt.
    async fn hand_on(&mut self) -> Result<Next, EngineError> {
        while self.flush(Hold::Keep).await? == Flushed::Rebased {}
        Ok(Next::Out(Exit::Parked))
    }

    /// A run whose agent or notebook cannot be used ends with that error; a store or log that fails is not the run's fault.
    fn give_up(&mut self, error: EngineError) -> Result<Next, EngineError> {
        if !error.ends_a_run() || self.is_ending() {
            return Err(error);
        }
        let message = format!("The run cannot go on: {error}. What was done so far stays.");
        self.log.push(Errored { code: "not_runnable".to_owned(), message, retryable: false })?;
        Ok(Next::On(Flushed::Written))
    }

    /// Whether the run is on its way to its end, and only calls are left to be given their results.
    pub(crate) fn is_ending(&self) -> bool {
        self.state().error.is_some() || self.state().cancel.is_some()
    }

    pub(crate) fn settle(&mut self, settlements: Vec<Settlement>) -> Result<Flushed, EngineError> {
        for settlement in settlements {
            let call = self.state().call(&settlement.call);
            let known = call.map(|call| (call.tool.clone(), call.started.is_some(), call.decided()));
            let (tool, started, decided) = known.unwrap_or_default();
            let Settlement { call, mut output, mut is_error, mut allowed, rule, labels } = settlement;
            if started && !allowed {
                // It was to be run again and is not: that says nothing about the time before.
                (allowed, is_error) = (true, true);
                let why = output.text().trim_end_matches(" Nothing was done.").to_owned();
                output = format!("{why} Not run again; whether it happened the first time is not known.").into();
            }
            self.log.push(CallEnded {
                call,
                tool,
                output,
                is_error,
                allowed,
                rule,
                ms: 0,
                labels,
                resources: Vec::new(),
                decided,
            })?;
        }
        Ok(Flushed::Written)
    }

    async fn wait(&mut self, until: Option<Time>) -> Result<Next, EngineError> {
        self.toolbox.age();
        let rest = until.map(|until| until.since(self.now()));
        let Some(rest) = rest.filter(|rest| *rest <= SIT_OUT) else {
            return Ok(match self.flush(Hold::Release).await? {
                Flushed::Written => Next::Out(Exit::Parked),
                other @ (Flushed::Rebased | Flushed::Fenced | Flushed::Overtaken) => Next::On(other),
            });
        };
        let mut flushed = self.flush(Hold::Keep).await?;
        if flushed == Flushed::Written {
            let commanded = Arc::clone(&self.notify);
            tokio::select! {
                biased;
                () = commanded.notified() => flushed = self.hear().await?,
                () = tokio::time::sleep(rest) => {}
            }
        }
        Ok(Next::On(flushed))
    }

    /// Reads what was asked of the run. Only right while nothing is pending. A store that does not answer is asked again a
    /// little later: what runs meanwhile is not dropped for that.
    pub(crate) async fn hear(&mut self) -> Result<Flushed, EngineError> {
        match self.log.catch_up().await {
            Ok(Caught::Up) => Ok(Flushed::Written),
            Ok(Caught::Overtaken) => Ok(Flushed::Overtaken),
            Err(EngineError::Store(StoreError::Unavailable(why))) => {
                tracing::warn!(run = %self.log.run, error = %why, "commands cannot be read at the moment");
                tokio::time::sleep(STORE_PAUSE).await;
                self.notify.notify_one();
                Ok(Flushed::Written)
            }
            Err(other) => Err(other),
        }
    }

    /// Has the driver look again at what was asked of the run.
    pub(crate) fn look_again(&self) {
        self.notify.notify_one();
    }

    /// Comes back once a cancel is in the log, or more than commands. Only right while nothing is pending.
    pub(crate) async fn cancelled(&mut self) -> Result<Flushed, EngineError> {
        loop {
            let commanded = Arc::clone(&self.notify);
            commanded.notified().await;
            let heard = self.hear().await?;
            if heard != Flushed::Written || self.state().cancel.is_some() {
                return Ok(heard);
            }
        }
    }

    /// Waits for a running call to end, or for a command. Calls that nobody runs are recovered.
    async fn await_calls(&mut self, calls: &[CallId]) -> Result<Flushed, EngineError> {
        let lost: Vec<_> = calls.iter().filter(|id| !self.running.contains_key(*id)).cloned().collect();
        if !lost.is_empty() {
            return self.recover(&lost, LOST).await;
        }
        // What ended while others go on is made durable before anybody waits.
        if !self.log.is_flushed() {
            return self.flush(Hold::Keep).await;
        }
        self.toolbox.age();
        let commanded = Arc::clone(&self.notify);
        let ended = tokio::select! {
            biased;
            () = commanded.notified() => {
                return match self.hear().await? {
                    Flushed::Written => self.stop_if_halted().await,
                    other @ (Flushed::Rebased | Flushed::Fenced | Flushed::Overtaken) => Ok(other),
                };
            }
            ended = crate::work::next_ended(&mut self.running) => ended,
        };
        match ended {
            Some((call, ended)) => self.record(call, ended).await,
            None => Ok(Flushed::Written),
        }
    }
}

/// How one way through a run's log came to an end.
enum Went {
    Out(Exit),
    /// The log has to be read afresh.
    Overtaken,
}

/// Whether driving goes on.
enum Next {
    On(Flushed),
    Out(Exit),
}
