//! Following runs: durable events come from the log, live pieces go from the driver to whoever listens, and are never stored.

mod line;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::message::Delta;
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::event::Event;
use adjutant_models::DeltaSink;
use tokio::sync::broadcast::error::RecvError;

use self::line::{Line, Signal};
use crate::engine::{Engine, lock};
use crate::error::EngineError;
use crate::live::Relay;
use crate::log::{Recorded, decode};
use crate::spoken::{Piece, Spoken};

/// Events read from the log at a time.
const PAGE: u32 = 256;

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
    listeners: Mutex<HashMap<RunId, Vec<Weak<Line>>>>,
    /// What is being said and is not in the log yet.
    spoken: Mutex<HashMap<RunId, Spoken>>,
    /// How often the store is about to say that a log has grown by what whoever drives the run tells itself.
    echoes: Mutex<HashMap<RunId, u32>>,
    /// Pieces that go to other nodes, and who wants those of others.
    pub(crate) relay: Relay,
}

impl Feed {
    fn listen(&self, run: RunId) -> Arc<Line> {
        let line = Arc::new(Line::default());
        let mut listeners = lock(&self.listeners);
        let lines = listeners.entry(run).or_default();
        // Whoever follows it here already was told its beginning.
        if lines.is_empty() {
            self.relay.want(run);
        }
        lines.push(Arc::downgrade(&line));
        line
    }

    /// The runs that somebody here follows.
    pub(crate) fn followed(&self) -> Vec<RunId> {
        lock(&self.listeners).keys().copied().collect()
    }

    pub(crate) fn is_followed(&self, run: RunId) -> bool {
        lock(&self.listeners).contains_key(&run)
    }

    /// The model that is asked here says something.
    fn speak(&self, run: RunId, turn: u32, delta: Delta) -> Piece {
        // Told under the same lock, so that pieces come in their order.
        let mut spoken = lock(&self.spoken);
        let entry = spoken.entry(run).or_insert_with(Spoken::here);
        let piece = entry.place(turn, delta);
        self.tell(run, || Signal::Piece(piece.clone()));
        piece
    }

    /// Another node says what its model said, for whoever listens here.
    pub(crate) fn hear(&self, run: RunId, piece: &Piece) {
        if lock(&self.spoken).entry(run).or_default().take_in(piece) {
            self.tell(run, || Signal::Piece(piece.clone()));
        } else {
            // A piece without what comes before it says nothing: all of it is asked for again.
            self.relay.want(run);
        }
    }

    /// What is being said in a run and is not in its log yet.
    pub(crate) fn so_far(&self, run: RunId) -> Vec<Piece> {
        lock(&self.spoken).get(&run).map(Spoken::so_far).unwrap_or_default()
    }

    /// Another node asks for all that is being said in a run, if its model is asked here, and for what comes.
    pub(crate) fn tell_all(&self, run: RunId, by: String) {
        // Under the lock under which pieces are told: what is said next goes on from there.
        let spoken = lock(&self.spoken);
        self.relay.watch(run);
        if let Some(spoken) = spoken.get(&run).filter(|spoken| spoken.own) {
            self.relay.begin(run, by, &spoken.so_far());
        }
    }

    /// A call of the model is over, or begins afresh.
    fn silence(&self, run: RunId) {
        lock(&self.spoken).remove(&run);
    }

    /// What was said in a turn is in the log.
    fn answered(&self, run: RunId, turn: u32) {
        let mut spoken = lock(&self.spoken);
        if spoken.get(&run).is_some_and(|spoken| spoken.turn() <= turn) {
            spoken.remove(&run);
        }
    }

    /// Forgets those who went away.
    fn tidy(&self, run: RunId) {
        let mut listeners = lock(&self.listeners);
        if let Some(lines) = listeners.get_mut(&run) {
            lines.retain(|line| line.strong_count() > 0);
            if lines.is_empty() {
                listeners.remove(&run);
                drop(listeners);
                let mut spoken = lock(&self.spoken);
                if spoken.get(&run).is_some_and(|spoken| !spoken.own) {
                    spoken.remove(&run);
                }
            }
        }
    }

    fn tell(&self, run: RunId, signal: impl Fn() -> Signal) {
        let listeners = lock(&self.listeners);
        for line in listeners.get(&run).into_iter().flatten().filter_map(Weak::upgrade) {
            line.send(signal());
        }
    }

    /// Whoever drives a run here is about to append to its log, and will tell by what it has grown. Nobody has to read it then.
    pub(crate) fn will_tell(&self, run: RunId) {
        if self.is_followed(run) {
            *lock(&self.echoes).entry(run).or_default() += 1;
        }
    }

    /// The log of a run that is driven here has grown by these.
    pub(crate) fn recorded(&self, run: RunId, events: Vec<Recorded>) {
        if !events.is_empty() && self.is_followed(run) {
            let events = Arc::new(events);
            self.tell(run, || Signal::Recorded(Arc::clone(&events)));
        }
    }

    /// What was to be told is not: the log says what there is.
    pub(crate) fn cannot_tell(&self, run: RunId) {
        lock(&self.echoes).remove(&run);
        self.grew(run);
    }

    /// Whether the store says what was told already.
    fn is_echo(&self, run: RunId) -> bool {
        let mut echoes = lock(&self.echoes);
        let Some(left) = echoes.get_mut(&run) else { return false };
        *left -= 1;
        if *left == 0 {
            echoes.remove(&run);
        }
        true
    }

    /// A log has grown.
    pub(crate) fn grew(&self, run: RunId) {
        self.tell(run, || Signal::Grew);
    }

    /// Logs may have grown: everybody reads again.
    pub(crate) fn grew_all(&self) {
        lock(&self.echoes).clear();
        for line in lock(&self.listeners).values().flatten().filter_map(Weak::upgrade) {
            line.send(Signal::Grew);
        }
    }
}

impl Engine {
    /// Where the model's live pieces go.
    pub(crate) fn pieces(&self, run: RunId, turn: u32) -> DeltaSink {
        let call = Speaking { engine: self.clone(), run };
        self.feed().silence(run);
        DeltaSink::new(move |delta| {
            let feed = call.engine.feed();
            let piece = feed.speak(call.run, turn, delta);
            feed.relay.say(call.run, &piece);
        })
    }

    /// What is being said in a run and is not in its log yet, as far as it is known here.
    #[must_use]
    pub fn so_far(&self, run: RunId) -> Vec<Piece> {
        self.feed().so_far(run)
    }

    /// Follows a run from an event on: first what is in the log, then what comes. Ends after the run's last event.
    #[must_use]
    pub fn follow(&self, workspace: WorkspaceId, run: RunId, after: u64) -> Follower {
        // Listening starts before the first look at the log, so that nothing falls between the two.
        Follower {
            line: Some(self.feed().listen(run)),
            engine: self.clone(),
            workspace,
            run,
            after,
            ready: Vec::new(),
            over: false,
            stale: true,
            answered: 0,
            asked: 0,
            held: None,
        }
    }
}

/// A call of a model, for as long as it may say something.
struct Speaking {
    engine: Engine,
    run: RunId,
}

impl Drop for Speaking {
    fn drop(&mut self) {
        self.engine.feed().silence(self.run);
    }
}

/// A reader of one run.
pub struct Follower {
    engine: Engine,
    workspace: WorkspaceId,
    run: RunId,
    after: u64,
    line: Option<Arc<Line>>,
    ready: Vec<Recorded>,
    over: bool,
    stale: bool,
    /// The last turn whose answer was seen.
    answered: u32,
    /// The last turn that was seen to begin.
    asked: u32,
    /// A piece that came before the beginning of its turn.
    held: Option<Piece>,
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
                match &recorded.event {
                    Event::ModelAnswered(body) => {
                        self.answered = body.turn;
                        self.engine.feed().answered(self.run, body.turn);
                    }
                    Event::ModelRequested(body) => self.asked = body.turn,
                    Event::RunEnded(_) => self.over = true,
                    _ => {}
                }
                return Ok(Some(FeedItem::Event(Box::new(recorded))));
            }
            if self.over {
                return Ok(None);
            }
            if self.stale {
                self.read().await?;
                continue;
            }
            if let Some(piece) = self.held.take().filter(|piece| piece.turn > self.answered) {
                self.asked = self.asked.max(piece.turn);
                return Ok(Some(FeedItem::Piece(piece)));
            }
            let Some(line) = &self.line else { return Ok(None) };
            match line.next().await {
                Signal::Grew => self.stale = true,
                Signal::Recorded(events) => self.take_in(&events),
                // The log may have been read beyond a piece that was still on its way: what replaces it was seen.
                Signal::Piece(piece) if piece.turn <= self.answered => {}
                // A piece is faster than the news that the log has grown: what was recorded before it is seen before it.
                Signal::Piece(piece) if piece.turn > self.asked => {
                    self.held = Some(piece);
                    self.stale = true;
                }
                Signal::Piece(piece) => return Ok(Some(FeedItem::Piece(piece))),
            }
        }
    }

    /// Takes what the log has grown by, if it goes on where this reader is; else the log is read.
    fn take_in(&mut self, events: &[Recorded]) {
        let unseen: Vec<_> = events.iter().rev().take_while(|recorded| recorded.seq > self.after).cloned().collect();
        match unseen.last() {
            None => {}
            Some(first) if first.seq == self.after + 1 => self.ready = unseen,
            Some(_) => self.stale = true,
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

impl Drop for Follower {
    fn drop(&mut self) {
        self.line = None;
        self.engine.feed().tidy(self.run);
    }
}

/// Keeps the feed and the drivers informed of what is committed, here or elsewhere, until the store is closed.
pub(crate) async fn dispatch(engine: Engine) {
    use adjutant_store::row::Change;
    let mut changes = engine.store().changes();
    loop {
        match changes.recv().await {
            // What a driver appends itself is no news to it.
            Ok(Change::Stream(StreamId::Run(run))) if engine.feed().is_echo(run) => {}
            Ok(Change::Stream(StreamId::Run(run))) => engine.feed().grew(run),
            Ok(Change::Command(StreamId::Run(run))) => {
                engine.feed().grew(run);
                engine.poke(run);
            }
            Ok(Change::Stream(_) | Change::Command(_) | Change::Chat(_) | Change::Due) => {}
            Ok(Change::Reread) | Err(RecvError::Lagged(_)) => {
                engine.feed().grew_all();
                engine.poke_all();
            }
            Err(RecvError::Closed) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_models::Scripted;
    use futures::FutureExt;

    use super::*;
    use crate::Agent;

    #[tokio::test]
    async fn a_piece_that_comes_after_what_replaces_it_is_not_shown() {
        let script = "- calls: [{ name: kv_set, arguments: { key: a, value: b } }]";
        let model = Scripted::parse(script).unwrap();
        let agent = Agent::builder("Tester").toolsets(["kv"]).can_write().model(model).build().await.unwrap();
        let run = agent.run("go").await.unwrap();
        let mut follower = agent.engine().follow(agent.workspace(), run.id, 0);
        let late = |turn| agent.engine().pieces(run.id, turn).text("late");
        late(1);
        let mut seen = Vec::new();
        while let Some(Ok(Some(item))) = follower.next().now_or_never() {
            seen.push(item);
        }
        assert!(seen.iter().all(|item| matches!(item, FeedItem::Event(_))) && !seen.is_empty(), "{seen:?}");
        late(2);
        assert_eq!(agent.engine().so_far(run.id), [], "a call that is over says nothing");
        assert!(matches!(follower.next().await, Ok(Some(FeedItem::Piece(Piece { turn: 2, .. })))));
    }

    #[tokio::test]
    async fn what_a_driver_tells_is_taken_only_where_it_goes_on_from_what_was_seen() {
        let model = Scripted::parse("- calls: [{ name: kv_set, arguments: { key: a, value: b } }]").unwrap();
        let agent = Agent::builder("Tester").toolsets(["kv"]).can_write().model(model).build().await.unwrap();
        let run = agent.run("go").await.unwrap();
        let mut follower = agent.engine().follow(agent.workspace(), run.id, 0);
        let mut last = None;
        while let Some(Ok(Some(FeedItem::Event(recorded)))) = follower.next().now_or_never() {
            last = Some(*recorded);
        }
        let last = last.unwrap();
        let mut told = |seqs: &[u64]| {
            let event = |seq: &u64| Recorded { seq: *seq, ..last.clone() };
            agent.engine().feed().recorded(run.id, seqs.iter().map(event).collect());
            let mut seen = Vec::new();
            while let Some(Ok(Some(FeedItem::Event(recorded)))) = follower.next().now_or_never() {
                seen.push(recorded.seq);
            }
            seen
        };
        assert_eq!(
            told(&[last.seq + 2]),
            Vec::<u64>::new(),
            "something is missing before it: the log is read, and has nothing more"
        );
        assert_eq!(told(&[last.seq]), Vec::<u64>::new(), "it was seen");
        assert_eq!(told(&[last.seq, last.seq + 1, last.seq + 2]), [last.seq + 1, last.seq + 2]);
    }

    #[tokio::test]
    async fn only_as_much_counts_as_told_already_as_was_told() {
        let agent = Agent::builder("Tester").model(Scripted::parse("- text: hi").unwrap()).build().await.unwrap();
        let (feed, run) = (agent.engine().feed(), agent.run("go").await.unwrap().id);
        feed.will_tell(run);
        assert!(!feed.is_echo(run), "nobody follows it, so nobody is told");
        let _follower = agent.engine().follow(agent.workspace(), run, 0);
        feed.will_tell(run);
        feed.will_tell(run);
        assert_eq!([feed.is_echo(run), feed.is_echo(run), feed.is_echo(run)], [true, true, false]);
        feed.will_tell(run);
        feed.cannot_tell(run);
        assert!(!feed.is_echo(run), "the log is read instead");
        feed.will_tell(run);
        feed.grew_all();
        assert!(!feed.is_echo(run), "whoever missed something reads everything");
    }
}
