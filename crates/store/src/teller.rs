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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_found_no_room_is_told_as_a_word_to_read_everything_again() {
        let Some(server) = postgres::tests::server() else { return };
        let pool = sqlx::PgPool::connect(&server).await.unwrap();
        let mut listener = postgres::connect(&pool).await.unwrap();
        let teller = Teller::start(pool, "crowded".to_owned());
        // All at once: whoever takes them from the queue has no turn before.
        teller.tell(&vec![Change::Due; QUEUE + 1]);
        let mut due = 0;
        loop {
            let heard = listener.recv().await.unwrap();
            let Some(words) = heard.payload().strip_prefix("crowded ") else { continue };
            due += words.split(' ').filter(|word| *word == "due").count();
            if words.ends_with("reread") {
                break;
            }
        }
        assert!(due > 0, "what found room is told as well");
        teller.tell(&[Change::Due]);
        teller.close().await;
        loop {
            let heard = listener.recv().await.unwrap();
            match heard.payload().strip_prefix("crowded ") {
                Some(words) if words.contains("reread") => panic!("it is said once: {words}"),
                Some(words) if !words.contains(' ') => break,
                Some(_) | None => {}
            }
        }
    }
}
