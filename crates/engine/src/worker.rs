//! Taking up runs that are due and driving them side by side: one loop per node. Holds no run that waits.

use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits;
use adjutant_core::run::chain::StreamId;
use adjutant_store::row::{Change, Claim};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, Semaphore, watch};
use tokio::task::JoinSet;

use crate::driver::{Exit, drive};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::feed;

/// Behind every wake-up there is a look at the clock: a lost notice costs this long at the most.
const POLL: Duration = Duration::from_secs(5);
/// Wait after the store did not answer.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// A worker that runs until it is told to stop.
#[derive(Debug)]
pub struct Worker {
    stop: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Worker {
    /// Lets running drivers come to their next durable point, gives the node's lease back, and ends.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        if let Err(error) = (&mut self.task).await {
            tracing::error!(%error, "the worker did not end cleanly");
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
        self.store().join(self.node()).await?;
        let (stop, stopped) = watch::channel(false);
        let engine = self.clone();
        let task = tokio::spawn(async move { work(engine, stopped).await });
        Ok(Worker { stop, task })
    }
}

async fn work(engine: Engine, mut stopped: watch::Receiver<bool>) {
    // They end with this task, however it ends: a node that renews its lease and drives nothing would hold its runs for ever.
    let mut helpers = JoinSet::new();
    helpers.spawn(feed::dispatch(engine.clone()));
    helpers.spawn(renew(engine.clone()));
    let mut changes = engine.store().changes();
    let places = Arc::new(Semaphore::new(limits::RUNS_PER_NODE));
    let freed = Arc::new(Notify::new());
    let mut drivers = JoinSet::new();
    while !*stopped.borrow() {
        let free = u32::try_from(places.available_permits()).unwrap_or(u32::MAX);
        let claims = if free == 0 {
            Ok(Vec::new())
        } else {
            engine.store().claim(engine.node(), engine.env().now(), free).await
        };
        let pause = match claims {
            Ok(claims) if claims.is_empty() => idle_for(&engine).await,
            Ok(claims) => {
                for claim in claims {
                    let Ok(place) = Arc::clone(&places).acquire_owned().await else { break };
                    let (engine, freed) = (engine.clone(), Arc::clone(&freed));
                    drivers.spawn(async move {
                        take_up(&engine, claim).await;
                        drop(place);
                        freed.notify_one();
                    });
                }
                continue;
            }
            Err(error) => {
                tracing::warn!(%error, "no runs can be claimed at the moment");
                STORE_PAUSE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = due(&mut changes) => {}
            () = freed.notified(), if free == 0 => {}
            _ = stopped.changed() => {}
            Some(_) = drivers.join_next() => {}
        }
    }
    // A driver is always at a durable point or on its way to one; what it has announced and not recorded is recovered.
    drivers.shutdown().await;
    helpers.shutdown().await;
    if let Err(error) = engine.store().leave(engine.node()).await {
        tracing::warn!(%error, "the node could not give its lease back");
    }
}

/// Comes back when a run may have become due.
async fn due(changes: &mut tokio::sync::broadcast::Receiver<Change>) {
    loop {
        match changes.recv().await {
            Ok(Change::Due | Change::Reread) | Err(RecvError::Lagged(_)) => return,
            Ok(Change::Stream(StreamId::Run(_) | StreamId::Workspace(_) | StreamId::System)) => {}
            // The store is closing; the worker is about to be stopped.
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}

async fn idle_for(engine: &Engine) -> Duration {
    match engine.store().next_due().await {
        Ok(Some(at)) => at.since(engine.env().now()).clamp(Duration::from_millis(1), POLL),
        Ok(None) | Err(_) => POLL,
    }
}

async fn renew(engine: Engine) {
    loop {
        tokio::time::sleep(limits::LEASE_RENEWAL).await;
        match engine.store().renew(engine.node()).await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!(node = %engine.node(), "this node was taken for dead; its runs may be driven elsewhere");
                if let Err(error) = engine.store().join(engine.node()).await {
                    tracing::warn!(%error, "the node could not join again");
                }
            }
            Err(error) => tracing::warn!(%error, "the node's lease could not be renewed"),
        }
    }
}

/// Drives a claimed run. When the store fails for long, the claim is kept and taken up again; a log that cannot be followed
/// is left alone, so that nothing is done on a guess.
async fn take_up(engine: &Engine, claim: Claim) {
    let mut pause = STORE_PAUSE;
    loop {
        match drive(engine, claim).await {
            Ok(Exit::Ended | Exit::Parked | Exit::Fenced) => return,
            Err(EngineError::Store(error)) => {
                tracing::warn!(run = %claim.run, %error, "a run is held up by the store");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(limits::BACKOFF_MOST);
            }
            Err(error) => {
                tracing::error!(run = %claim.run, %error, "a run cannot go on");
                return;
            }
        }
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
            tracing::warn!(%error, "the node could not give its lease back");
        }
    }
}

impl Engine {
    /// Makes this process a node: its lease is renewed and readers hear of what is committed, until it leaves.
    ///
    /// # Errors
    /// When the node cannot be registered in the store.
    pub async fn attend(&self) -> Result<Attendance, EngineError> {
        self.store().join(self.node()).await?;
        let mut helpers = JoinSet::new();
        helpers.spawn(feed::dispatch(self.clone()));
        helpers.spawn(renew(self.clone()));
        Ok(Attendance { engine: self.clone(), helpers })
    }

    /// Drives one run here until it ends or waits: for the command line, which has no worker.
    ///
    /// # Errors
    /// When the run cannot be claimed or driven.
    pub async fn drive_run(&self, run: adjutant_core::id::RunId) -> Result<Exit, EngineError> {
        match self.store().claim_run(self.node(), self.env().now(), run).await? {
            Some(claim) => drive(self, claim).await,
            None => Ok(Exit::Parked),
        }
    }
}
