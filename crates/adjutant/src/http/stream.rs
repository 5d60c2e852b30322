//! One reader of one run: first what the log has, then what comes, until the run's last event, the end of the reader's rights,
//! or the end of the server. A reader that goes away changes nothing for the run.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::id::RunId;
use adjutant_core::run::status::Status;
use adjutant_engine::EngineError;
use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, broadcast, watch};
use tokio::time::Interval;

use super::door::{Access, Signed};
use super::frame::overloaded;
use super::line::{Frame, frame};
use super::problem::Problem;
use super::server::{Credential, Server};

/// A comment this often keeps proxies from cutting a silent stream.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How often it is looked whether the reader may still read.
const RECHECK: Duration = Duration::from_secs(1);
/// Events read from the log at a time.
const PAGE: u64 = 256;
/// Frames put together into one write at the most.
const TOGETHER: usize = 64;

const FIRST: &str = "retry: 2000\n\n";
const BEAT: &str = ": still here\n\n";
const CLOSING: &str = "retry: 1000\n: the server stops; come back with Last-Event-ID\n\n";
const TOO_SLOW: &str = ": you are too slow; come back with Last-Event-ID\n\n";

/// Streams a run from an event on. 204 when nothing will come any more.
pub(super) async fn stream(
    server: &Server,
    signed: &Signed,
    access: Access,
    run: RunId,
    after: u64,
) -> Result<Response, Problem> {
    let seat = server.streams.clone().try_acquire_owned();
    let seat = seat.map_err(|_| overloaded("Too many streams are open at the moment."))?;
    let row = server.engine.run_row(access.workspace, run).await?;
    if Status::parse(&row.state.status).is_some_and(Status::is_end) && after >= row.head.seq {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let receiver = server.lines.join(&server.engine, access.workspace, run, row.head.seq);
    // Whatever the line told before we joined it is in the log by now.
    let head = server.engine.run_row(access.workspace, run).await?.head.seq;
    let reader = Reader {
        server: server.clone(),
        credential: signed.credential.clone(),
        access,
        run,
        after,
        head,
        receiver,
        ready: VecDeque::from([Bytes::from_static(FIRST.as_bytes())]),
        over: false,
        beat: every(HEARTBEAT),
        recheck: every(RECHECK),
        closing: server.closing.clone(),
        _counted: Arc::clone(&server.metrics.streams).enter(),
        _seat: seat,
    };
    let body = Body::from_stream(futures::stream::unfold(reader, |mut reader| async move {
        reader.next().await.map(|bytes| (Ok::<_, Infallible>(bytes), reader))
    }));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    Ok(response)
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
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}

fn every(span: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + span, span);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    ticks
}

struct Reader {
    server: Server,
    credential: Credential,
    access: Access,
    run: RunId,
    after: u64,
    /// Up to here the log is read; beyond it the line tells.
    head: u64,
    receiver: broadcast::Receiver<Frame>,
    ready: VecDeque<Bytes>,
    over: bool,
    beat: Interval,
    recheck: Interval,
    closing: watch::Receiver<bool>,
    _counted: super::metrics::Entered,
    _seat: OwnedSemaphorePermit,
}

impl Reader {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(bytes);
            }
            if self.over {
                return None;
            }
            if self.after < self.head {
                if let Err(error) = self.catch_up().await {
                    tracing::warn!(run = %self.run, %error, "a stream ends; its reader comes back");
                    return None;
                }
                continue;
            }
            let closing = *self.closing.borrow_and_update();
            if closing {
                self.end(CLOSING);
                continue;
            }
            tokio::select! {
                told = self.receiver.recv() => match told {
                    Ok(frame) => self.take(frame),
                    Err(RecvError::Lagged(_)) => self.end(TOO_SLOW),
                    Err(RecvError::Closed) => self.over = true,
                },
                _ = self.recheck.tick() => self.over |= !self.may_read().await,
                _ = self.beat.tick() => self.ready.push_back(Bytes::from_static(BEAT.as_bytes())),
                _ = self.closing.changed() => {}
            }
        }
    }

    fn end(&mut self, words: &'static str) {
        self.ready.push_back(Bytes::from_static(words.as_bytes()));
        self.over = true;
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
            if frame.seq.is_none_or(|seq| seq > self.after) {
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
                    bytes.push(Bytes::from_static(TOO_SLOW.as_bytes()));
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

    /// Whether whoever reads is still somebody in this workspace.
    async fn may_read(&self) -> bool {
        match self.server.caller(&self.credential).await {
            Ok(caller) => caller.role(self.access.workspace).is_some(),
            // A database that is away for a moment says nothing about anybody.
            Err(EngineError::Store(_)) => true,
            Err(_) => false,
        }
    }
}
