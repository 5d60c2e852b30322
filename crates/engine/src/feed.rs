//! Following runs: durable events come from the log, live pieces go from the driver to whoever listens, and are never stored.

use std::collections::HashMap;
use std::sync::Mutex;

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::limits::FEED_BACKLOG;
use adjutant_core::message::Delta;
use adjutant_core::run::chain::StreamId;
use adjutant_models::DeltaSink;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::engine::{Engine, lock};
use crate::error::EngineError;
use crate::log::{Recorded, decode};

/// Events read from the log at a time.
const PAGE: u32 = 256;

#[derive(Debug, Clone)]
enum Signal {
    Grew,
    Piece(Piece),
}

/// A live piece of an answer. It has no place in the log: the durable event replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// The turn it belongs to.
    pub turn: u32,
    /// The piece.
    pub delta: Delta,
}

/// What a reader of a run sees.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedItem {
    /// A durable event.
    Event(Box<Recorded>),
    /// A live piece.
    Piece(Piece),
}

/// Who listens to which run.
#[derive(Default)]
pub(crate) struct Feed {
    listeners: Mutex<HashMap<RunId, broadcast::Sender<Signal>>>,
}

impl Feed {
    fn listen(&self, run: RunId) -> broadcast::Receiver<Signal> {
        let mut listeners = lock(&self.listeners);
        listeners.entry(run).or_insert_with(|| broadcast::channel(FEED_BACKLOG).0).subscribe()
    }

    fn signal(&self, run: RunId, signal: Signal) {
        let mut listeners = lock(&self.listeners);
        if let Some(sender) = listeners.get(&run)
            && sender.send(signal).is_err()
        {
            listeners.remove(&run);
        }
    }

    /// A log has grown.
    pub(crate) fn grew(&self, run: RunId) {
        self.signal(run, Signal::Grew);
    }

    /// Logs may have grown: everybody reads again.
    pub(crate) fn grew_all(&self) {
        lock(&self.listeners).retain(|_, sender| sender.send(Signal::Grew).is_ok());
    }
}

impl Engine {
    /// Where the model's live pieces go.
    pub(crate) fn pieces(&self, run: RunId, turn: u32) -> DeltaSink {
        let engine = self.clone();
        DeltaSink::new(move |delta| engine.feed().signal(run, Signal::Piece(Piece { turn, delta })))
    }

    /// Follows a run from an event on: first what is in the log, then what comes. Ends after the run's last event.
    #[must_use]
    pub fn follow(&self, workspace: WorkspaceId, run: RunId, after: u64) -> Follower {
        // Listening starts before the first look at the log, so that nothing falls between the two.
        Follower {
            signals: self.feed().listen(run),
            engine: self.clone(),
            workspace,
            run,
            after,
            ready: Vec::new(),
            over: false,
            stale: true,
        }
    }
}

/// A reader of one run.
pub struct Follower {
    engine: Engine,
    workspace: WorkspaceId,
    run: RunId,
    after: u64,
    signals: broadcast::Receiver<Signal>,
    ready: Vec<Recorded>,
    over: bool,
    stale: bool,
}

impl Follower {
    /// The next thing to see; none after the run's last event.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn next(&mut self) -> Result<Option<FeedItem>, EngineError> {
        loop {
            if let Some(recorded) = self.ready.pop() {
                self.after = recorded.seq;
                self.over |= matches!(recorded.event, adjutant_core::run::event::Event::RunEnded(_));
                return Ok(Some(FeedItem::Event(Box::new(recorded))));
            }
            if self.over {
                return Ok(None);
            }
            if self.stale {
                self.read().await?;
                continue;
            }
            match self.signals.recv().await {
                Ok(Signal::Grew) | Err(RecvError::Lagged(_)) => self.stale = true,
                Ok(Signal::Piece(piece)) => return Ok(Some(FeedItem::Piece(piece))),
                Err(RecvError::Closed) => return Ok(None),
            }
        }
    }

    async fn read(&mut self) -> Result<(), EngineError> {
        let entries = self.engine.store().events(self.workspace, StreamId::Run(self.run), self.after, PAGE).await?;
        self.stale = entries.len() == PAGE as usize;
        for entry in entries {
            let event = decode(self.run, &entry)?;
            self.ready.push(Recorded { seq: entry.seq, at: entry.time, event });
        }
        self.ready.reverse();
        Ok(())
    }
}

/// Keeps the feed and the drivers informed of what is committed, here or elsewhere, until the store is closed.
pub(crate) async fn dispatch(engine: Engine) {
    use adjutant_store::row::Change;
    let mut changes = engine.store().changes();
    loop {
        match changes.recv().await {
            // What a driver appends itself is no news to it.
            Ok(Change::Stream(StreamId::Run(run))) => engine.feed().grew(run),
            Ok(Change::Command(StreamId::Run(run))) => {
                engine.feed().grew(run);
                engine.poke(run);
            }
            // Stop switches are recorded in these logs.
            Ok(Change::Stream(_) | Change::Command(_)) => engine.forget_halts(),
            Ok(Change::Due) => {}
            Ok(Change::Reread) | Err(RecvError::Lagged(_)) => {
                engine.forget_halts();
                engine.feed().grew_all();
                engine.poke_all();
            }
            Err(RecvError::Closed) => return,
        }
    }
}
