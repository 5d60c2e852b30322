//! Telling other nodes of what was committed here, after the fact and on a connection of its own. Inside the transaction it would
//! make all nodes commit one after the other: PostgreSQL lets one transaction at a time notify. A notice is only a wake-up: one
//! that is lost is made up for by looking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::db::within;
use crate::live;
use crate::postgres::{self, PATIENCE};
use crate::row::Change;

/// Notices that wait to be told before some are left out.
const QUEUE: usize = 4096;
/// Notices told with one statement at the most.
const AT_ONCE: usize = 512;

enum Notice {
    Change(Change),
    /// A note that nobody keeps.
    Live(String),
    Close(oneshot::Sender<()>),
}

/// The way to other nodes. Never waits.
#[derive(Clone)]
pub(crate) struct Teller {
    queue: mpsc::Sender<Notice>,
    /// Something was left out: others have to look at everything.
    missed: Arc<AtomicBool>,
}

impl Teller {
    /// Starts to tell, signed as `me`; ends when every handle is gone.
    pub(crate) fn start(pool: sqlx::PgPool, me: String) -> Self {
        let (queue, told) = mpsc::channel(QUEUE);
        let missed = Arc::new(AtomicBool::new(false));
        tokio::spawn(tell(pool, me, told, Arc::clone(&missed)));
        Self { queue, missed }
    }

    pub(crate) fn tell(&self, changes: &[Change]) {
        for change in changes {
            if self.queue.try_send(Notice::Change(*change)).is_err() {
                self.missed.store(true, Ordering::SeqCst);
            }
        }
    }

    /// Passes a note on, or loses it.
    pub(crate) fn note(&self, payload: String) {
        let _ = self.queue.try_send(Notice::Live(payload));
    }

    /// Waits until what is queued was told.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Notice::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }
}

async fn tell(pool: sqlx::PgPool, me: String, mut queue: mpsc::Receiver<Notice>, missed: Arc<AtomicBool>) {
    let mut notices = Vec::with_capacity(AT_ONCE);
    while queue.recv_many(&mut notices, AT_ONCE).await > 0 {
        let (mut changes, mut closing) = (Vec::new(), Vec::new());
        let (mut channels, mut payloads) = (Vec::new(), Vec::new());
        for notice in notices.drain(..) {
            match notice {
                Notice::Change(change) => changes.push(change),
                Notice::Live(payload) => {
                    channels.push(live::CHANNEL);
                    payloads.push(payload);
                }
                Notice::Close(done) => closing.push(done),
            }
        }
        if missed.swap(false, Ordering::SeqCst) {
            changes.push(Change::Reread);
        }
        let told = postgres::payloads(&me, &changes);
        channels.extend(told.iter().map(|_| postgres::CHANNEL));
        payloads.extend(told);
        if !payloads.is_empty() {
            let sql = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS v(channel, payload)";
            let telling =
                async { Ok(sqlx::query(sql).bind(&channels).bind(&payloads).execute(&pool).await.map(drop)?) };
            if let Err(error) = within(PATIENCE, telling).await {
                tracing::debug!(%error, "other nodes were not told of a change");
                missed.store(true, Ordering::SeqCst);
            }
        }
        for done in closing {
            let _ = done.send(());
        }
    }
}
