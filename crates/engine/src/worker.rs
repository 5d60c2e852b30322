//! Taking up runs that are due and driving them side by side: one loop per node. Holds no run that waits.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::limits;
use adjutant_core::time::Time;
use adjutant_store::row::{Change, Claim, Claimed};
use futures::FutureExt;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::driver::{Exit, drive};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::service::retention::forget;
use crate::{feed, live};

/// Behind every wake-up there is a look at the clock: a lost notice costs this long at the most.
const POLL: Duration = Duration::from_secs(5);
/// Wait when what is due is not for this node to take now: longer each time, up to [`POLL`].
const CROWDED: Duration = Duration::from_millis(50);
/// About how long to wait after the store did not answer.
const STORE_PAUSE: Duration = Duration::from_secs(1);
/// About how long to wait after a lease could not be renewed: it lasts for a few tries more.
const RENEW_AGAIN: Duration = Duration::from_millis(500);
/// Nodes look for the runs of a dead one at different moments within this span, not all at once.
const APART: Duration = Duration::from_millis(250);
// What a dead node drove is others' within fifteen seconds: its lease runs out, and somebody looks.
const _: () = assert!(limits::LEASE.as_millis() + APART.as_millis() < 15_000);

/// How long tools and models may take to end after the node was told to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// How often somebody looks whether a day is over.
const DAYS: Duration = Duration::from_secs(60);

/// A worker that runs until it is told to stop.
#[derive(Debug)]
pub struct Worker {
    shift: watch::Sender<Shift>,
    task: tokio::task::JoinHandle<()>,
}

/// How far a worker's time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shift {
    /// It takes up what is due.
    On,
    /// It ends what it has, and takes nothing more up.
    Last,
    /// It hands on what it has.
    Over,
}

impl Worker {
    /// What takes no more runs up when it is called: others find them at once, while this process still answers.
    pub fn closing(&self) -> impl FnOnce() + Send + 'static {
        let shift = self.shift.clone();
        move || {
            let _ = shift.send(Shift::Last);
        }
    }

    /// Lets running drivers come to their next durable point, gives the node's lease back, and ends.
    pub async fn stop(mut self) {
        let _ = self.shift.send(Shift::Over);
        if let Err(error) = (&mut self.task).await {
            tracing::error!(error = %causes(&error), "the worker did not end cleanly");
        }
    }
}

impl Drop for Worker {
    /// A worker that is dropped without being stopped ends at once, as if the process had died: the lease runs out and
    /// another node takes its runs up.
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Engine {
    /// Starts to take up runs in the background.
    ///
    /// # Errors
    /// When the node cannot be registered in the store.
    pub async fn start_worker(&self) -> Result<Worker, EngineError> {
        self.take_place().await?;
        let (shift, told) = watch::channel(Shift::On);
        let engine = self.clone();
        let task = tokio::spawn(async move { work(engine, told).await });
        Ok(Worker { shift, task })
    }
}

async fn work(engine: Engine, mut shift: watch::Receiver<Shift>) {
    // They end with this task, however it ends: a node that renews its lease and drives nothing would hold its runs for ever.
    let mut helpers = attendants(&engine);
    helpers.spawn(close_days(engine.clone()));
    helpers.spawn(forget(engine.clone()));
    let mut changes = engine.store().changes();
    let places = Arc::new(Semaphore::new(engine.max_runs()));
    let freed = Arc::new(Notify::new());
    let mut drivers = JoinSet::new();
    let mut crowded = CROWDED;
    while *shift.borrow_and_update() != Shift::Over {
        if engine.claims().take_doubt() {
            adopt(&engine, &mut drivers).await;
        }
        if engine.waiting().swap(false, Ordering::SeqCst) {
            // One that cannot be asked now is asked again.
            let waits = engine.start_waiting().await.unwrap_or(true);
            engine.waiting().fetch_or(waits, Ordering::SeqCst);
        }
        let open = *shift.borrow() == Shift::On && engine.has_notebooks().await;
        let free = if open { u32::try_from(places.available_permits()).unwrap_or(u32::MAX) } else { 0 };
        // What was told until now is answered by one look.
        while let Ok(_) | Err(TryRecvError::Lagged(_)) = changes.try_recv() {}
        let pause = match engine.store().claim_due(engine.node(), engine.env().now(), free).await {
            // A place that is freed wakes the loop, and so does the end of the shift. Notebooks come back without a word.
            Ok(_) if free == 0 => POLL,
            Ok(Claimed::NoneBefore(due)) => idle_for(&engine, due).await,
            // They are due, and this node takes no more of their workspaces, or nobody does of their agents: a place that is freed
            // wakes the loop.
            Ok(Claimed::Runs(claims)) if claims.is_empty() => longer(&mut crowded),
            Ok(Claimed::Runs(claims)) => {
                crowded = CROWDED;
                for claim in claims {
                    let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
                    let (taking, freed) = (take_up(engine.clone(), claim), Arc::clone(&freed));
                    drivers.spawn(async move {
                        taking.await;
                        drop(place);
                        freed.notify_one();
                    });
                }
                continue;
            }
            Err(error) => {
                tracing::warn!(error = %causes(&error), "no runs can be claimed at the moment");
                engine.claims().doubt();
                STORE_PAUSE.mul_f64(0.5 + engine.env().fraction())
            }
        };
        tokio::select! {
            biased;
            _ = shift.changed() => {}
            Some(_) = drivers.join_next() => {}
            () = freed.notified() => {}
            () = due(&mut changes) => {}
            // Another node may have kept a message, and be gone.
            () = tokio::time::sleep(pause) => engine.waiting().store(true, Ordering::SeqCst),
        }
    }
    settle_down(&engine, &mut drivers).await;
    helpers.shutdown().await;
    if let Err(error) = engine.store().leave(engine.node()).await {
        tracing::warn!(error = %causes(&error), "the node could not give its lease back");
    }
}

/// A wait, which is longer the next time.
fn longer(wait: &mut Duration) -> Duration {
    let next = (*wait * 2).min(POLL);
    std::mem::replace(wait, next)
}

/// What every node has going on beside its runs.
fn attendants(engine: &Engine) -> JoinSet<()> {
    let mut helpers = JoinSet::new();
    helpers.spawn(feed::dispatch(engine.clone()));
    helpers.spawn(renew(engine.clone()));
    if engine.store().is_shared() {
        helpers.spawn(live::relay(engine.clone()));
    }
    helpers
}

/// What a tool has begun is let end, so that nobody has to be asked about it, and what a model has begun, so that nobody pays
/// for it twice; then the runs are others'.
async fn settle_down(engine: &Engine, drivers: &mut JoinSet<()>) {
    engine.claims().leave();
    engine.poke_all();
    let settled = async { while drivers.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, settled).await.is_err() {
        tracing::warn!(
            "something that a run had begun did not end in time: a tool is in doubt, a model is asked again"
        );
    }
    drivers.shutdown().await;
    engine.claims().stay();
}

/// Takes up the runs that the store counts as this node's and that nobody here drives: the reply to their claim was lost, or
/// whoever drove them went away.
async fn adopt(engine: &Engine, drivers: &mut JoinSet<()>) {
    let Ok(owned) = engine.store().owned(engine.node()).await else { return engine.claims().doubt() };
    for claim in owned {
        if engine.claims().is_held(claim) {
            // An older claim of the same run does not count: whoever holds it does nothing more for the run.
            continue;
        }
        drivers.spawn(take_up(engine.clone(), claim));
    }
}

/// Comes back when a run may have become due.
async fn due(changes: &mut tokio::sync::broadcast::Receiver<Change>) {
    loop {
        match changes.recv().await {
            Ok(Change::Due | Change::Reread) | Err(RecvError::Lagged(_)) => return,
            Ok(Change::Stream(_) | Change::Command(_) | Change::Chat(_)) => {}
            // The store is closing; the worker is about to be stopped.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

/// How long there is nothing to do, of which the next thing is due then.
async fn idle_for(engine: &Engine, due: Option<Time>) -> Duration {
    let most = until_one_may_be_dead(engine).await;
    due.map_or(most, |due| due.since(engine.env().now()).clamp(Duration::from_millis(1), most))
}

/// How long nobody has to look whether another node has died with runs in its hands.
async fn until_one_may_be_dead(engine: &Engine) -> Duration {
    match engine.store().next_expiry(engine.node()).await {
        // A moment later, so that it has run out by then.
        Ok(Some(rest)) => (rest + Duration::from_millis(10) + APART.mul_f64(engine.env().fraction())).min(POLL),
        Ok(None) | Err(_) => POLL,
    }
}

/// Closes each day of the audit soon after it is over.
async fn close_days(engine: Engine) {
    loop {
        if let Err(error) = engine.close_days().await {
            tracing::warn!(error = %causes(&error), "the days that are over could not be closed");
        }
        tokio::time::sleep(DAYS).await;
    }
}

async fn renew(engine: Engine) {
    let mut pause = limits::LEASE_RENEWAL;
    loop {
        tokio::time::sleep(pause).await;
        pause = match engine.renew_lease().await {
            Ok(()) => limits::LEASE_RENEWAL,
            Err(error) => {
                tracing::warn!(error = %causes(&error), "the node's lease could not be renewed");
                RENEW_AGAIN.mul_f64(0.5 + engine.env().fraction())
            }
        };
    }
}

/// Drives a claimed run. When the store fails for long, the claim is kept and taken up again; a log that cannot be followed
/// is left to a newer program, so that nothing is done on a guess.
fn take_up(engine: Engine, claim: Claim) -> impl Future<Output = ()> + Send {
    let holding = engine.hold(claim);
    async move {
        let _holding = holding;
        let mut pause = STORE_PAUSE;
        loop {
            let driving = async {
                engine.hold_if_halted(claim.workspace, claim.run).await?;
                drive(&engine, claim).await
            };
            match AssertUnwindSafe(driving).catch_unwind().await {
                Ok(Ok(Exit::Ended | Exit::Parked | Exit::Fenced)) => return,
                Ok(Err(EngineError::Store(error))) => {
                    tracing::warn!(run = %claim.run, error = %causes(&error), "a run is held up by the store");
                }
                Ok(Err(error @ EngineError::BadLog { .. })) => {
                    tracing::error!(run = %claim.run, error = %causes(&error), "a run cannot go on with this version of the program");
                    match engine.store().leave_to_newer(engine.node(), claim.run, claim.epoch).await {
                        Ok(()) => return,
                        Err(error) => {
                            tracing::warn!(run = %claim.run, error = %causes(&error), "a run cannot be given back")
                        }
                    }
                }
                Ok(Err(error)) => {
                    tracing::error!(run = %claim.run, error = %causes(&error), "a run cannot go on");
                    return;
                }
                // A run must not hang because of a mistake of ours: its log says how far it came.
                Err(_) => tracing::error!(run = %claim.run, "driving a run stopped unexpectedly; it is taken up again"),
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(limits::BACKOFF_MOST);
        }
    }
}

/// Leaves a doubt behind: cheap when there is nothing to it, and a run that nobody drives is found.
struct Doubt<'a>(&'a Engine);

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        self.0.claims().doubt();
    }
}

/// This process as a node that drives only what it is told to: for the command line, which takes up no other runs.
#[derive(Debug)]
pub struct Attendance {
    engine: Engine,
    helpers: JoinSet<()>,
}

impl Attendance {
    /// Gives back what this node drives, and its lease.
    pub async fn leave(mut self) {
        self.helpers.shutdown().await;
        if let Err(error) = self.engine.store().leave(self.engine.node()).await {
            tracing::warn!(error = %causes(&error), "the node could not give its lease back");
        }
    }
}

impl Engine {
    /// Makes this process a node: its lease is renewed and readers hear of what is committed, until it leaves.
    ///
    /// # Errors
    /// When the node cannot be registered in the store.
    pub async fn attend(&self) -> Result<Attendance, EngineError> {
        self.take_place().await?;
        let helpers = attendants(self);
        Ok(Attendance { engine: self.clone(), helpers })
    }

    /// Drives one run here until it ends or waits: for the command line, which has no worker. The lease is kept meanwhile.
    ///
    /// # Errors
    /// When the run cannot be claimed or driven.
    pub async fn drive_run(&self, run: adjutant_core::id::RunId) -> Result<Exit, EngineError> {
        self.renew_lease().await?;
        let keeping = async {
            tokio::join!(renew(self.clone()), feed::dispatch(self.clone()));
            Ok(Exit::Fenced)
        };
        tokio::select! {
            biased;
            exit = self.claim_and_drive(run) => exit,
            exit = keeping => exit,
        }
    }

    async fn claim_and_drive(&self, run: adjutant_core::id::RunId) -> Result<Exit, EngineError> {
        // Until it is known how this ends, the store may think that the run is driven here: if nobody waits for it any more,
        // the worker of this process, if there is one, takes it up.
        let _doubt = Doubt(self);
        let claim = self.store().claim_run(self.node(), self.env().now(), run).await?;
        let Some(claim) = claim else { return Ok(Exit::Parked) };
        let _holding = self.hold(claim);
        self.hold_if_halted(claim.workspace, run).await?;
        drive(self, claim).await
    }
}
