//! Following a run: one line per run that somebody follows. A public event is serialised once and handed as bytes to everybody
//! on the line; whoever cannot keep up is let go, and comes back with the number of the last event they have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::limits::FEED_BACKLOG;
use adjutant_core::message::Delta;
use adjutant_core::run::event::{Event, ThoughtForm};
use adjutant_engine::{Engine, EngineError, FeedItem, Follower, Piece, Recorded};
use axum::body::Bytes;
use serde_json::json;
use tokio::sync::broadcast;

use super::news::event;
use crate::wire::{self, Texts};

/// How often a line looks whether anybody is on it.
const LOOK: Duration = Duration::from_secs(30);

/// Every line there is.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<HashMap<RunId, broadcast::Sender<Frame>>>>);

/// One event, as it goes out.
#[derive(Debug, Clone)]
pub(super) struct Frame {
    /// Its number; none for a live piece.
    pub(super) seq: Option<u64>,
    /// The number of the last event before it. Whoever has read the log beyond that has no use for a live piece.
    pub(super) after: u64,
    /// Whether nothing comes after it.
    pub(super) last: bool,
    /// Whether the run may have come to rest with it.
    pub(super) rests: bool,
    pub(super) bytes: Bytes,
}

impl Lines {
    /// Joins the line of a run, whose log ended in `head` when it was last looked at.
    pub(super) fn join(
        &self,
        engine: &Engine,
        workspace: WorkspaceId,
        run: RunId,
        head: u64,
    ) -> broadcast::Receiver<Frame> {
        let mut lines = self.lines();
        if let Some(line) = lines.get(&run) {
            return line.subscribe();
        }
        let (line, receiver) = broadcast::channel(FEED_BACKLOG);
        lines.insert(run, line.clone());
        let spoken =
            engine.so_far(run).iter().find(|piece| matches!(piece.delta, Delta::Text(_))).map(|piece| piece.turn);
        let carrier =
            Carrier { lines: self.clone(), engine: engine.clone(), workspace, run, line, after: head, spoken };
        tokio::spawn(carrier.carry(engine.follow(workspace, run, head)));
        receiver
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, broadcast::Sender<Frame>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever carries the events of one run to those on its line.
struct Carrier {
    lines: Lines,
    engine: Engine,
    workspace: WorkspaceId,
    run: RunId,
    line: broadcast::Sender<Frame>,
    /// The last event that came by.
    after: u64,
    /// The turn whose live text was shown as an answer.
    spoken: Option<u32>,
}

impl Carrier {
    async fn carry(mut self, mut follower: Follower) {
        loop {
            let item = tokio::select! {
                item = follower.next() => item,
                () = tokio::time::sleep(LOOK) => {
                    if self.leave_if_empty() {
                        return;
                    }
                    continue;
                }
            };
            match item {
                Ok(Some(item)) => {
                    if let Err(error) = self.tell(item).await {
                        tracing::warn!(run = %self.run, error = %causes(&error), "a run can no longer be followed; its readers come back");
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(run = %self.run, error = %causes(&error), "a run can no longer be followed; its readers come back");
                    break;
                }
            }
        }
        // Dropping the line ends every stream on it.
        self.lines.lines().remove(&self.run);
    }

    /// Joining takes the same lock, so nobody can step onto a line that is going away.
    fn leave_if_empty(&self) -> bool {
        let mut lines = self.lines.lines();
        if self.line.receiver_count() > 0 {
            return false;
        }
        lines.remove(&self.run);
        true
    }

    async fn tell(&mut self, item: FeedItem) -> Result<(), EngineError> {
        match item {
            FeedItem::Piece(piece) => {
                if matches!(piece.delta, Delta::Text(_)) {
                    self.spoken = Some(piece.turn);
                }
                self.send_live(live(self.run, &piece));
            }
            FeedItem::Event(recorded) => {
                if let (Event::Thought(thought), Some(turn)) = (&recorded.event, self.spoken)
                    && thought.turn == turn
                    && thought.form == ThoughtForm::Text
                {
                    // What looked like the answer was said on the way to a call.
                    self.spoken = None;
                    self.send_live(event("turn_reset", &json!({"run_id": self.run, "turn": turn})));
                }
                self.after = recorded.seq;
                if let Some(frame) = frame(&self.engine, self.workspace, self.run, &recorded).await? {
                    self.send(frame);
                }
            }
        }
        Ok(())
    }

    fn send_live(&self, bytes: Bytes) {
        self.send(Frame { seq: None, after: self.after, last: false, rests: false, bytes });
    }

    fn send(&self, frame: Frame) {
        // Nobody on the line is no error: it is looked at from time to time.
        let _ = self.line.send(frame);
    }
}

/// A live piece as it goes out. It says where it begins, so that one that comes twice changes nothing.
pub(super) fn live(run: RunId, piece: &Piece) -> Bytes {
    let (name, text) = match &piece.delta {
        Delta::Text(text) => ("answer_delta", text),
        Delta::Thinking(text) => ("thinking_delta", text),
    };
    event(name, &json!({"run_id": run, "turn": piece.turn, "at": piece.at, "delta": text}))
}

/// A durable event as it goes out; none when it is nobody's business but ours.
pub(super) async fn frame(
    engine: &Engine,
    workspace: WorkspaceId,
    run: RunId,
    recorded: &Recorded,
) -> Result<Option<Frame>, EngineError> {
    let texts = Texts::load(engine, workspace, [&recorded.event]).await?;
    let last = matches!(recorded.event, Event::RunEnded(_));
    Ok(wire::event(run, recorded, &texts).map(|event| Frame {
        seq: Some(event.id),
        after: event.id.saturating_sub(1),
        last,
        rests: may_rest(&recorded.event),
        bytes: Bytes::from(format!("id: {}\nevent: {}\ndata: {}\n\n", event.id, event.event, event.data)),
    }))
}

/// Whether a run may wait for somebody, or be over, once this is in its log. A question is asked while other calls of its turn go
/// on, so the last of those may be what it comes to rest with.
const fn may_rest(event: &Event) -> bool {
    match event {
        Event::ApprovalAsked(_)
        | Event::CallEnded(_)
        | Event::CallInDoubt(_)
        | Event::Paused(_)
        | Event::Cancelled(_)
        | Event::Errored(_)
        | Event::RunEnded(_) => true,
        Event::RunStarted(_)
        | Event::ModelRequested(_)
        | Event::Thought(_)
        | Event::Said(_)
        | Event::ModelAnswered(_)
        | Event::ModelFailed(_)
        | Event::CallProposed(_)
        | Event::CallJudged(_)
        | Event::ApprovalDecided(_)
        | Event::CallStarted(_)
        | Event::InDoubtResolved(_)
        | Event::LabelsRaised(_)
        | Event::ContentFiltered(_)
        | Event::BudgetAlerted(_)
        | Event::Resumed(_)
        | Event::CancelAsked(_) => false,
    }
}
