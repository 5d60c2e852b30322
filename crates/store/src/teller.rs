//! Telling other nodes of what was committed here, after the fact and on a connection of its own. Inside the transaction it would
//! make all nodes commit one after the other: PostgreSQL lets one transaction at a time notify. A notice is only a wake-up: one
//! that is lost is made up for by looking.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::StoreError;
use crate::lent::{Lent, within};
use crate::live;
use crate::postgres::{self, PATIENCE};
use crate::row::Change;

/// Notices that wait to be told before some are left out.
const QUEUE: usize = 4096;
/// Notices told with one statement at the most.
const AT_ONCE: usize = 512;
/// Wait before others are told again to look, after they could not be told.
const AGAIN: Duration = Duration::from_secs(1);

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
        let (teller, told) = Self::new();
        tokio::spawn(tell(pool, me, told, Arc::clone(&teller.missed)));
        teller
    }

    fn new() -> (Self, mpsc::Receiver<Notice>) {
        let (queue, told) = mpsc::channel(QUEUE);
        (Self { queue, missed: Arc::new(AtomicBool::new(false)) }, told)
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

/// What is told with one statement: payloads, each on its channel.
#[derive(Default)]
struct Round {
    channels: Vec<&'static str>,
    payloads: Vec<String>,
    /// Those who wait until it is told.
    closing: Vec<oneshot::Sender<()>>,
}

impl Round {
    fn of(me: &str, notices: impl Iterator<Item = Notice>, missed: bool) -> Self {
        let (mut round, mut changes) = (Self::default(), Vec::new());
        for notice in notices {
            match notice {
                Notice::Change(change) => changes.push(change),
                Notice::Live(payload) => {
                    round.channels.push(live::CHANNEL);
                    round.payloads.push(payload);
                }
                Notice::Close(done) => round.closing.push(done),
            }
        }
        if missed {
            changes.push(Change::Reread);
        }
        let told = postgres::payloads(me, &changes);
        round.channels.extend(told.iter().map(|_| postgres::CHANNEL));
        round.payloads.extend(told);
        round
    }
}

/// What carries a round to others.
trait Voice: Send + 'static {
    fn say(&mut self, round: &Round) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Whether it will never say anything again.
    fn is_silent(&self) -> bool;
}

impl Voice for sqlx::PgPool {
    async fn say(&mut self, round: &Round) -> Result<(), StoreError> {
        let sql = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS v(channel, payload)";
        let query = sqlx::query(sql).bind(&round.channels).bind(&round.payloads);
        // A connection that does not answer is given up with its answer: the pool has one, and would wait for it.
        within(PATIENCE, async { Lent::from(self).await?.execute(query).await.map(drop) }).await
    }

    fn is_silent(&self) -> bool {
        self.is_closed()
    }
}

async fn tell(mut voice: impl Voice, me: String, mut queue: mpsc::Receiver<Notice>, missed: Arc<AtomicBool>) {
    let mut notices = Vec::with_capacity(AT_ONCE);
    loop {
        if missed.load(Ordering::SeqCst) {
            // This node may have nothing more to say for long, and others would not look before it does.
            while notices.len() < QUEUE {
                match queue.try_recv() {
                    Ok(notice) => notices.push(notice),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
        } else if queue.recv_many(&mut notices, AT_ONCE).await == 0 {
            return;
        }
        let round = Round::of(&me, notices.drain(..), missed.swap(false, Ordering::SeqCst));
        let told = if round.payloads.is_empty() { Ok(()) } else { voice.say(&round).await };
        for done in round.closing {
            let _ = done.send(());
        }
        if let Err(error) = told {
            if voice.is_silent() {
                return;
            }
            tracing::debug!(%error, "other nodes were not told of a change");
            missed.store(true, Ordering::SeqCst);
            tokio::time::sleep(AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::id::RunId;
    use adjutant_core::run::chain::StreamId;
    use adjutant_core::time::Time;

    use super::*;

    /// Fails so often, then tells what is said.
    struct Hoarse {
        fails: usize,
        said: mpsc::UnboundedSender<Vec<String>>,
    }

    impl Voice for Hoarse {
        async fn say(&mut self, round: &Round) -> Result<(), StoreError> {
            if self.fails > 0 {
                self.fails -= 1;
                return Err(StoreError::unavailable("nobody is there"));
            }
            let _ = self.said.send(round.payloads.clone());
            Ok(())
        }

        fn is_silent(&self) -> bool {
            self.said.is_closed()
        }
    }

    fn run(number: i64) -> Change {
        Change::Stream(StreamId::Run(RunId::new(Time::from_millis(number), [0; 10])))
    }

    fn told(fails: usize, teller: &Teller, queue: mpsc::Receiver<Notice>) -> mpsc::UnboundedReceiver<Vec<String>> {
        let (said, heard) = mpsc::unbounded_channel();
        tokio::spawn(tell(Hoarse { fails, said }, "me".to_owned(), queue, Arc::clone(&teller.missed)));
        heard
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_told_is_made_up_for_though_nothing_more_happens_here() {
        let (teller, queue) = Teller::new();
        teller.tell(&[run(1), Change::Due]);
        let mut heard = told(2, &teller, queue);
        assert_eq!(heard.recv().await.unwrap(), ["me reread"]);
        teller.tell(&[Change::Due]);
        assert_eq!(heard.recv().await.unwrap(), ["me due"], "it is said once");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_closes_waits_for_one_attempt_and_not_for_a_server_that_is_gone() {
        let (teller, queue) = Teller::new();
        let _heard = told(usize::MAX, &teller, queue);
        teller.tell(&(0..).map(run).take(QUEUE / 2).collect::<Vec<_>>());
        let began = tokio::time::Instant::now();
        teller.close().await;
        assert!(began.elapsed() <= AGAIN, "{:?}", began.elapsed());
    }

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
