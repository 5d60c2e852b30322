//! The one task of a process that appends (group commit): it takes everything that was queued while the last commit was in
//! flight, writes it in one transaction and answers after COMMIT. Adds no delay of its own.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use adjutant_core::limits::APPENDS_PER_COMMIT;
use adjutant_core::run::chain::Head;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::StoreError;
use crate::commit::{Statement, commit};
use crate::db::{Db, Dialect, Text};
use crate::error::{collided, unsynced};
use crate::prepare::{Guard, Prepared};
use crate::row::Change;
use crate::teller::Teller;
use crate::value::Args;

/// Bytes written in one transaction at the most, beyond its first append: one huge batch would hold up everybody.
const BYTES_PER_COMMIT: usize = 8 * 1024 * 1024;
/// Appends that wait in the queue before callers wait for a place in it.
const QUEUE: usize = 4 * APPENDS_PER_COMMIT;

/// Appends that are written together, each where it was made: they are large, and go back.
type Batch = Vec<Box<Prepared>>;

/// What became of an append. It goes back to whoever made it: freeing it takes longer than many a commit.
type Answer = oneshot::Sender<(Result<Head, StoreError>, Option<Box<Prepared>>)>;

/// A statement of its own, and who waits for the number of rows that it touched.
type Writing = (Statement, oneshot::Sender<Result<u64, StoreError>>);

enum Job {
    Append(Box<Prepared>, Answer),
    Write(Writing),
    Close(oneshot::Sender<()>),
}

/// The way to the writer task.
#[derive(Clone)]
pub(crate) struct Writer(mpsc::Sender<Job>);

impl Writer {
    /// Starts the task; it ends when every handle is gone.
    ///
    /// # Errors
    /// When the system has no thread for it.
    pub(crate) fn start(
        db: Arc<Db>,
        teller: Option<Teller>,
        changes: broadcast::Sender<Change>,
    ) -> Result<Self, StoreError> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let dialect = db.dialect();
        let task = Task { db, teller, changes, waiting: VecDeque::new(), writing: Vec::new() }.run(receiver);
        match dialect {
            Dialect::Postgres => drop(tokio::spawn(task)),
            // SQLite works on the thread that calls it and waits there for the disk, so its writer has one to itself.
            Dialect::Sqlite => {
                let runtime = tokio::runtime::Handle::current();
                let thread = std::thread::Builder::new().name("adjutant-writer".to_owned());
                thread.spawn(move || runtime.block_on(task)).map_err(StoreError::file)?;
            }
        }
        Ok(Self(sender))
    }

    /// Queues an append and waits for its commit. It happens even when the caller stops waiting.
    pub(crate) async fn append(&self, append: Prepared) -> Result<Head, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::unavailable("the store is closed");
        self.0.send(Job::Append(Box::new(append), answer)).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?.0
    }

    /// Queues a statement that shares a commit with appends; says how many rows it touched. It happens even when the caller stops
    /// waiting.
    pub(crate) async fn write(&self, sql: Text, args: Args) -> Result<u64, StoreError> {
        let (answer, answered) = oneshot::channel();
        let closed = || StoreError::unavailable("the store is closed");
        self.0.send(Job::Write((Statement { sql, args }, answer))).await.map_err(|_| closed())?;
        answered.await.map_err(|_| closed())?
    }

    /// Takes no more appends and waits until the queued ones are written.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.0.send(Job::Close(done)).await.is_ok() {
            let _ = closed.await;
        }
    }
}

/// What is written in one transaction, and who is told.
struct Asked {
    batch: Batch,
    answers: Vec<Answer>,
    statements: Vec<Statement>,
    told: Vec<oneshot::Sender<Result<u64, StoreError>>>,
}

struct Task {
    db: Arc<Db>,
    teller: Option<Teller>,
    changes: broadcast::Sender<Change>,
    /// Appends that may not share a transaction with an earlier one.
    waiting: VecDeque<(Box<Prepared>, Answer)>,
    /// Statements for the next transaction.
    writing: Vec<Writing>,
}

impl Task {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut jobs = Vec::with_capacity(APPENDS_PER_COMMIT);
        let mut closing = Vec::new();
        loop {
            if self.waiting.is_empty() && self.writing.is_empty() {
                tokio::task::yield_now().await;
                if queue.recv_many(&mut jobs, APPENDS_PER_COMMIT).await == 0 {
                    break;
                }
            }
            // Those who were answered a moment ago get their turn first: what they append now shares this commit.
            tokio::task::yield_now().await;
            while jobs.len() + self.waiting.len() + self.writing.len() < APPENDS_PER_COMMIT {
                let Ok(job) = queue.try_recv() else { break };
                jobs.push(job);
            }
            for job in jobs.drain(..) {
                match job {
                    Job::Append(append, answer) => self.waiting.push_back((append, answer)),
                    Job::Write(writing) => self.writing.push(writing),
                    Job::Close(done) => {
                        queue.close();
                        closing.push(done);
                    }
                }
            }
            let (batch, answers) = self.next_batch();
            let (statements, told): (Vec<_>, Vec<_>) = std::mem::take(&mut self.writing).into_iter().unzip();
            if !(batch.is_empty() && statements.is_empty()) {
                self.write(Asked { batch, answers, statements, told }).await;
            }
        }
        for done in closing {
            let _ = done.send(());
        }
    }

    /// What can be written together: each stream once, each chat with a start once, not too many bytes.
    fn next_batch(&mut self) -> (Batch, Vec<Answer>) {
        let (mut streams, mut chats) = (HashSet::new(), HashSet::new());
        let (mut batch, mut answers, mut later) = (Vec::new(), Vec::new(), VecDeque::new());
        let mut bytes = 0;
        for (append, answer) in self.waiting.drain(..) {
            let chat = match &append.guard {
                Guard::Start { chat, .. } => Some(*chat),
                Guard::Update { .. } | Guard::NewStream(_) | Guard::OldStream(_) => None,
            };
            let taken = streams.contains(&append.stream) || chat.is_some_and(|chat| chats.contains(&chat));
            let full = !batch.is_empty() && bytes + append.bytes > BYTES_PER_COMMIT;
            // Also what stays behind blocks its stream, so that appends to one stream keep their order.
            streams.insert(append.stream);
            chats.extend(chat);
            if taken || full || batch.len() == APPENDS_PER_COMMIT {
                later.push_back((append, answer));
            } else {
                bytes += append.bytes;
                batch.push(append);
                answers.push(answer);
            }
        }
        self.waiting = later;
        (batch, answers)
    }

    async fn write(&self, asked: Asked) {
        let Asked { batch, answers, statements, told } = asked;
        match commit(&self.db, &batch, &statements).await {
            Ok(committed) => {
                self.tell(&committed.changes);
                for ((append, answer), verdict) in batch.into_iter().zip(answers).zip(committed.verdicts) {
                    // A caller that went away does not need its answer.
                    let _ = answer.send((verdict.map(|()| append.head), Some(append)));
                }
                for (told, touched) in told.into_iter().zip(committed.touched) {
                    let _ = told.send(touched);
                }
            }
            Err(error) if batch.len() + statements.len() > 1 && one_is_to_blame(&error) => {
                for (append, answer) in batch.into_iter().zip(answers) {
                    let _ = answer.send((self.write_alone(append).await, None));
                }
                for (statement, told) in statements.into_iter().zip(told) {
                    let touched = commit(&self.db, &[], &[statement]).await;
                    let _ = told.send(touched.and_then(|mut committed| committed.touched.pop().unwrap_or(Ok(0))));
                }
            }
            Err(error) => {
                for answer in answers {
                    let _ = answer.send((Err(error.clone()), None));
                }
                for told in told {
                    let _ = told.send(Err(error.clone()));
                }
            }
        }
    }

    async fn write_alone(&self, append: Box<Prepared>) -> Result<Head, StoreError> {
        let head = append.head;
        let committed = commit(&self.db, &[append], &[]).await?;
        self.tell(&committed.changes);
        committed.verdicts.into_iter().collect::<Result<Vec<()>, _>>().map(|_| head)
    }

    fn tell(&self, changes: &[Change]) {
        for change in changes {
            // Nobody listening is no error.
            let _ = self.changes.send(*change);
        }
        if let Some(teller) = &self.teller {
            teller.tell(changes);
        }
    }
}

/// Whether a batch failed because of one append in it, and not because of the database itself.
fn one_is_to_blame(error: &StoreError) -> bool {
    match error {
        StoreError::Stale { .. }
        | StoreError::Conflict(_)
        | StoreError::UsedUp(_)
        | StoreError::Overspent(_)
        | StoreError::NotFound => true,
        StoreError::Other(_) => !unsynced(error),
        StoreError::Unavailable(_) => collided(error),
        StoreError::Corrupt(_)
        | StoreError::NewerSchema { .. }
        | StoreError::OtherBuild
        | StoreError::WrongKey
        | StoreError::Full(_)
        | StoreError::ReadOnly(_) => false,
    }
}
