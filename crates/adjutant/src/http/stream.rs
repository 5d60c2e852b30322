//! One reader of one run: first what the log has, then what comes, until the run's last event, the end of the reader's rights,
//! or the end of the server. A reader that goes away changes nothing for the run.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::causes::causes;
use adjutant_core::id::RunId;
use adjutant_core::run::status::Status;
use adjutant_engine::{EngineError, is_erased};
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures::{FutureExt, Stream, StreamExt};
use serde_json::json;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Interval;

use super::ask::accepts;
use super::door::{Access, Signed};
use super::events::topic;
use super::frame::overloaded;
use super::line::{Frame, frame, live};
use super::news::event;
use super::problem::Problem;
use super::server::Server;
use super::sight::{RECHECK, Sight};

/// A comment this often keeps proxies from cutting a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Events read from the log at a time.
const PAGE: u64 = 256;
/// Frames put together into one write at the most.
const TOGETHER: usize = 64;

pub(super) const FIRST: &str = "retry: 2000\n\n";
const BEAT: &str = ": still here\n\n";
const TOO_SLOW: &str = ": you are too slow; come back with Last-Event-ID\n\n";

/// What a reader hears when the server stops: when to come back, which is another moment for each, so that they do not all come
/// to the next server together.
pub(super) fn closing_words(server: &Server) -> Bytes {
    let wait = Duration::from_millis(500) + Duration::from_millis(2500).mul_f64(server.engine.env().fraction());
    Bytes::from(format!("retry: {}\n: the server stops; come back with Last-Event-ID\n\n", wait.as_millis()))
}

/// What a reader is told beside the events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// It is a stream of its own: how to come back, and that it is still there.
    Alone,
    /// It is one of several in a stream, which says these things itself.
    Among,
}

/// Streams a run from an event on, at the seat that was taken for it. 204 when nothing will come any more.
pub(super) async fn stream(
    server: &Server,
    seat: OwnedSemaphorePermit,
    signed: &Signed,
    access: Access,
    run: RunId,
    after: u64,
) -> Result<Response, Problem> {
    let Some(mut reader) = Reader::open(server, signed, access, run, after, Manner::Alone).await? else {
        return Ok(StatusCode::NO_CONTENT.into_response());
    };
    reader.ready.push_back(Bytes::from_static(FIRST.as_bytes()));
    Ok(respond(server, seat, reader.frames()))
}

/// A place for one more stream, or for one more request that waits. Whoever starts something takes it first: with no place
/// nothing is done.
///
/// # Errors
/// 503 when there is none.
pub(super) fn seat(server: &Server) -> Result<OwnedSemaphorePermit, Problem> {
    let seat = server.streams.clone().try_acquire_owned();
    seat.map_err(|_| overloaded("Too many streams are open, or requests wait, at the moment."))
}

/// Answers with a stream of events.
pub(super) fn respond(
    server: &Server,
    seat: OwnedSemaphorePermit,
    frames: impl Stream<Item = Bytes> + Send + 'static,
) -> Response {
    let counted = Arc::clone(&server.metrics.streams).enter();
    let body = Body::from_stream(beating(frames).map(move |bytes| {
        let _held = (&seat, &counted);
        Ok::<_, Infallible>(bytes)
    }));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    // HTTP/1.1 means it anyway; older clients look for the word.
    headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A stream that says that it is still there whenever it has been silent for a while.
fn beating(frames: impl Stream<Item = Bytes> + Send + 'static) -> impl Stream<Item = Bytes> + Send + 'static {
    futures::stream::unfold(Box::pin(frames), |mut frames| async move {
        match tokio::time::timeout(HEARTBEAT, frames.next()).await {
            Ok(Some(bytes)) => Some((bytes, frames)),
            Ok(None) => None,
            Err(_) => Some((Bytes::from_static(BEAT.as_bytes()), frames)),
        }
    })
}

/// The number of the last event a reader has: the header of a browser that comes back, or `?after=`.
pub(super) fn last_seen(headers: &HeaderMap, after: Option<u64>) -> Result<u64, Problem> {
    let Some(value) = headers.get("last-event-id") else { return Ok(after.unwrap_or(0)) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| {
        Problem::invalid("Last-Event-ID is not the number of an event. Nothing was done.")
            .hint("send the `id:` of the last event you have, or leave it out")
    })
}

/// Whether the client wants a stream.
pub(super) fn wants_stream(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

pub(super) fn every(span: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + span, span);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

/// One reader of one run.
pub(super) struct Reader {
    manner: Manner,
    server: Server,
    access: Access,
    run: RunId,
    sight: Sight,
    after: u64,
    /// Up to here the log is read; beyond it the line tells.
    head: u64,
    receiver: broadcast::Receiver<Frame>,
    /// What was said before they came and is not in the log yet.
    so_far: Vec<Bytes>,
    ready: VecDeque<Bytes>,
    over: bool,
    recheck: Interval,
    /// How often rights had been changed when it was last looked.
    changes: u64,
    closing: watch::Receiver<bool>,
}

impl Reader {
    /// Opens a run for reading from an event on; none when nothing will come any more.
    pub(super) async fn open(
        server: &Server,
        signed: &Signed,
        access: Access,
        run: RunId,
        after: u64,
        manner: Manner,
    ) -> Result<Option<Self>, Problem> {
        let row = server.engine.run_row(access.workspace, run).await?;
        if Status::parse(&row.state.status).is_some_and(Status::is_end) && after >= row.head.seq {
            return Ok(None);
        }
        if is_erased(&row) {
            // Whoever comes back for it would come back for ever.
            return Err(EngineError::Erased { run }.into());
        }
        let receiver = server.lines.join(&server.engine, access.workspace, run, row.head.seq);
        // Whatever the line told before we joined it is in the log by now.
        let head = server.engine.run_row(access.workspace, run).await?.head.seq;
        let so_far = server.engine.so_far(run).iter().map(|piece| live(run, piece)).collect();
        Ok(Some(Self {
            manner,
            server: server.clone(),
            access,
            run,
            sight: Sight::of(signed, access, &row),
            after,
            head,
            receiver,
            so_far,
            ready: VecDeque::new(),
            over: false,
            recheck: every(RECHECK),
            changes: server.changes_of_rights(),
            closing: server.closing.clone(),
        }))
    }

    /// What it is told, piece by piece.
    pub(super) fn frames(self) -> impl Stream<Item = Bytes> + Send + 'static {
        futures::stream::unfold(self, |mut reader| async move { reader.next().await.map(|bytes| (bytes, reader)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Whoever reads slowly is looked at between two pieces of a long log, too.
            if self.is_to_be_looked_at() && self.sight.lasts(&self.server).await.is_err() {
                return None;
            }
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            if self.after < self.head {
                if let Err(error) = self.catch_up().await {
                    tracing::warn!(run = %self.run, error = %causes(&error), "a stream ends; its reader comes back");
                    self.break_off();
                }
                continue;
            }
            if !self.so_far.is_empty() {
                self.ready.extend(std::mem::take(&mut self.so_far));
                continue;
            }
            let closing = *self.closing.borrow_and_update();
            if closing {
                self.end(match self.manner {
                    Manner::Alone => closing_words(&self.server),
                    Manner::Among => return None,
                });
                continue;
            }
            tokio::select! {
                told = self.receiver.recv() => match told {
                    Ok(frame) => self.take(frame),
                    Err(RecvError::Lagged(_)) => {
                        let words = self.too_slow();
                        self.end(words);
                    }
                    Err(RecvError::Closed) => self.break_off(),
                },
                _ = self.recheck.tick() => self.over |= self.sight.lasts(&self.server).await.is_err(),
                _ = self.closing.changed() => {}
            }
        }
    }

    /// Whether it is time to look whether they may read on: now and then, and at once when rights were changed here.
    fn is_to_be_looked_at(&mut self) -> bool {
        let changes = self.server.changes_of_rights();
        let changed = std::mem::replace(&mut self.changes, changes) != changes;
        changed | self.recheck.tick().now_or_never().is_some()
    }

    fn end(&mut self, words: Bytes) {
        self.ready.push_back(words);
        self.over = true;
    }

    fn too_slow(&self) -> Bytes {
        match self.manner {
            Manner::Alone => Bytes::from_static(TOO_SLOW.as_bytes()),
            Manner::Among => self.reread("too_slow"),
        }
    }

    /// The rest cannot be told now. A stream of its own ends, which says so; among others it has to be said.
    fn break_off(&mut self) {
        if self.manner == Manner::Among {
            self.ready.push_back(self.reread("broken_off"));
        }
        self.over = true;
    }

    fn reread(&self, reason: &str) -> Bytes {
        event("reread", &json!({"reason": reason, "topics": [topic(self.run, self.after)]}))
    }

    /// Reads the next page of the log.
    async fn catch_up(&mut self) -> Result<(), EngineError> {
        let until = self.head.min(self.after + PAGE);
        let engine = &self.server.engine;
        for recorded in engine.recorded(self.access.workspace, self.run, self.after, Some(until)).await? {
            if let Some(frame) = frame(engine, self.access.workspace, self.run, &recorded).await? {
                self.over |= frame.last;
                self.ready.push_back(frame.bytes);
            }
        }
        self.after = until;
        Ok(())
    }

    /// Takes what the line tells, as much as is there, as one write.
    fn take(&mut self, first: Frame) {
        let mut bytes = Vec::new();
        let mut next = Some(first);
        for _ in 0..TOGETHER {
            let Some(frame) = next.take() else { break };
            if frame.seq.map_or(frame.after >= self.after, |seq| seq > self.after) {
                self.after = frame.seq.unwrap_or(self.after);
                self.head = self.head.max(self.after);
                self.over |= frame.last;
                bytes.push(frame.bytes);
            }
            next = match self.receiver.try_recv() {
                Ok(frame) => Some(frame),
                // What was missed is in the log: the reader comes back for it.
                Err(TryRecvError::Lagged(_)) => {
                    self.over = true;
                    bytes.push(self.too_slow());
                    None
                }
                Err(TryRecvError::Empty | TryRecvError::Closed) => None,
            };
        }
        match bytes.len() {
            0 => {}
            1 => self.ready.extend(bytes),
            _ => self.ready.push_back(Bytes::from(bytes.concat())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_beats_and_goes_on_where_it_was() {
        let (tell, told) = tokio::sync::mpsc::unbounded_channel();
        let frames = futures::stream::unfold(told, |mut told: tokio::sync::mpsc::UnboundedReceiver<Bytes>| async {
            told.recv().await.map(|bytes| (bytes, told))
        });
        let mut stream = Box::pin(beating(frames));
        for _ in 0..3 {
            assert_eq!(stream.next().await.unwrap(), BEAT);
        }
        tell.send(Bytes::from_static(b"news")).unwrap();
        assert_eq!(stream.next().await.unwrap(), "news");
        drop(tell);
        assert_eq!(stream.next().await, None);
    }
}
