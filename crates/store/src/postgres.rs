//! Opening a PostgreSQL database and hearing of other nodes' commits. A notification is only a wake-up: what it means is
//! always read from the tables.

use std::str::FromStr as _;
use std::time::Duration;

use adjutant_core::run::chain::StreamId;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{ConnectOptions as _, Executor as _};
use tokio::sync::broadcast;

use crate::StoreError;
use crate::db::Db;
use crate::live::{self, Live};
use crate::reads::Counter;
use crate::row::Change;
use crate::seal::fill_random;

/// The channel all nodes of an instance listen on.
pub(crate) const CHANNEL: &str = "adjutant";
const OLDEST: u32 = 140_000;
/// Connections of one node beside the one that appends.
const CONNECTIONS: u32 = 16;
/// How long a caller waits for a connection before the database counts as unavailable.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// What every session asks of the server: to notice a node that is gone, and to let go of what it held.
const SESSION: [(&str, &str); 4] = [
    // Sooner than a lease ends: what a node held that went away without a word keeps nobody from taking its runs up.
    ("idle_in_transaction_session_timeout", "5s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];
/// How long nothing may be heard before the connection is asked whether it is still one, and everybody looks for themselves.
const SILENCE: Duration = Duration::from_secs(15);
/// About how long to wait before listening again when the server is gone.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// A notification holds fewer than 8,000 bytes.
const PAYLOAD: usize = 7_900;
/// Before the name of a stream that grew by a command.
const COMMAND: char = '!';

pub(crate) async fn open(url: &str) -> Result<Db, StoreError> {
    let options = PgConnectOptions::from_str(url)?.application_name("adjutant").disable_statement_logging();
    let options = options.options(SESSION);
    let pool = PgPoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE)
        .connect_with(options.clone())
        .await?;
    let version: String = sqlx::query_scalar("SHOW server_version_num").fetch_one(&pool).await?;
    if version.parse::<u32>().unwrap_or(0) < OLDEST {
        return Err(StoreError::other(format!("PostgreSQL {version} is too old: 14 or later is needed")));
    }
    // Appends do not queue behind readers. A dead connection is found by using it, not by asking before each commit.
    let writer = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false)
        .connect_with(options.clone())
        .await?;
    // A node that is busy must not lose its runs over that.
    let lease = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE).test_before_acquire(false);
    let lease = lease.connect_lazy_with(options.clone());
    // A notice that is lost with the power is of no use to anybody: it waits for no disk.
    let telling = options.options([("synchronous_commit", "off")]);
    let teller = PgPoolOptions::new().max_connections(1).acquire_timeout(PATIENCE).connect_lazy_with(telling);
    Ok(Db::Postgres { writer, teller, lease, pool, reads: Counter::default() })
}

/// Where what other nodes tell goes.
pub(crate) struct Hearing {
    /// This process, as it signs what it tells others.
    pub(crate) me: String,
    pub(crate) changes: broadcast::Sender<Change>,
    pub(crate) live: broadcast::Sender<Live>,
}

/// Begins to listen.
pub(crate) async fn connect(pool: &sqlx::PgPool) -> Result<PgListener, sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen_all([CHANNEL, live::CHANNEL]).await?;
    Ok(listener)
}

/// Hands on what other nodes tell, until the pool is closed or the task is aborted. `first` was connected before anybody read.
pub(crate) async fn listen(pool: sqlx::PgPool, hearing: Hearing, first: Option<PgListener>) {
    let mut connected = first.map(Ok);
    while !pool.is_closed() {
        let heard = match connected.take() {
            Some(listener) => listener,
            None => connect(&pool).await.inspect(|_| {
                // Something may have been missed meanwhile.
                let _ = hearing.changes.send(Change::Reread);
            }),
        };
        match heard {
            Ok(listener) => match listen_on(listener, &hearing).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "not listening for other nodes; trying again"),
            },
            Err(error) => tracing::warn!(%error, "not listening for other nodes; trying again"),
        }
        tokio::time::sleep(at_some_time(LISTEN_AGAIN)).await;
    }
}

/// Between half of a span and one and a half: nodes that lost the server together do not all come back together.
fn at_some_time(span: Duration) -> Duration {
    let mut byte = [128];
    // Without chance there is still the middle.
    let _ = fill_random(&mut byte);
    span.mul_f64(0.5 + f64::from(byte[0]) / 256.0)
}

async fn listen_on(mut listener: PgListener, hearing: &Hearing) -> Result<(), sqlx::Error> {
    loop {
        let heard = match tokio::time::timeout(SILENCE, listener.try_recv()).await {
            Ok(heard) => heard,
            // A connection whose other end is gone is as silent as one on which nothing happens. And whoever tells may have died
            // between a commit and its notice.
            Err(_) => alive(&mut listener).await.map(|()| None),
        };
        match heard {
            Ok(Some(heard)) if heard.channel() == live::CHANNEL => {
                live::hand_on(heard.payload(), &hearing.me, &hearing.live);
            }
            Ok(Some(heard)) => hand_on(heard.payload(), &hearing.me, &hearing.changes),
            // The connection was lost and made again, or silent: something may have been missed.
            Ok(None) => {
                let _ = hearing.changes.send(Change::Reread);
            }
            Err(sqlx::Error::PoolClosed) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

async fn alive(listener: &mut PgListener) -> Result<(), sqlx::Error> {
    let asked = tokio::time::timeout(PATIENCE, listener.execute("SELECT 1"));
    asked.await.map_or_else(|_| Err(sqlx::Error::PoolTimedOut), |answered| answered.map(drop))
}

/// What a commit changed, in as few payloads as fit: the sender, then `due`, streams and chats, separated by blanks.
pub(crate) fn payloads(me: &str, changes: &[Change]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for change in changes {
        let word = match change {
            Change::Stream(stream) => stream.to_string(),
            Change::Command(stream) => format!("{COMMAND}{stream}"),
            Change::Chat(chat) => chat.to_string(),
            Change::Due => "due".to_owned(),
            Change::Reread => "reread".to_owned(),
        };
        match payloads.last_mut().filter(|last| last.len() + 1 + word.len() <= PAYLOAD) {
            Some(last) => {
                last.push(' ');
                last.push_str(&word);
            }
            None => payloads.push(format!("{me} {word}")),
        }
    }
    payloads
}

fn hand_on(payload: &str, me: &str, changes: &broadcast::Sender<Change>) {
    let mut words = payload.split(' ');
    if words.next() == Some(me) {
        return;
    }
    for word in words {
        let change = match word {
            "due" => Change::Due,
            "reread" => Change::Reread,
            word if word.contains('/') => word.parse().map_or(Change::Reread, Change::Chat),
            word => {
                let (stream, change): (&str, fn(StreamId) -> Change) = match word.strip_prefix(COMMAND) {
                    Some(stream) => (stream, Change::Command),
                    None => (word, Change::Stream),
                };
                // A newer node may say what we do not know; reading everything again is always right.
                stream.parse().map_or(Change::Reread, change)
            }
        };
        // Nobody listening is no error.
        let _ = changes.send(change);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use adjutant_core::id::{ChatId, RunId, UserId, WorkspaceId};
    use adjutant_core::time::Time;

    use super::*;
    use crate::row::ChangedChat;

    /// The server of the tests; none, with a word about it, where there is none.
    pub(crate) fn server() -> Option<String> {
        let server = std::env::var("ADJUTANT_TEST_POSTGRES").ok();
        if server.is_none() {
            eprintln!("skipped: what takes PostgreSQL, because ADJUTANT_TEST_POSTGRES is not set");
        }
        server
    }

    /// An empty database there. It goes with the server, which is there for tests.
    pub(crate) async fn fresh() -> Option<Db> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let server = server()?;
        let name = format!("adjutant_unit_{}_{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let options = PgConnectOptions::from_str(&server).unwrap();
        let mut connection = options.connect().await.unwrap();
        let make = format!("CREATE DATABASE {name}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(make)).execute(&mut connection).await.unwrap();
        let mut url: url::Url = server.parse().unwrap();
        url.set_path(&name);
        Some(open(url.as_str()).await.unwrap())
    }

    #[test]
    fn a_large_commit_is_told_whole_in_payloads_that_fit() {
        let run = |n| StreamId::Run(RunId::new(Time::from_millis(n), [0; 10]));
        let runs = (0..512).map(|n| if n % 2 == 0 { Change::Stream(run(n)) } else { Change::Command(run(n)) });
        let chat = |shared| ChangedChat {
            workspace: WorkspaceId::new(Time::from_millis(1), [1; 10]),
            chat: ChatId::new(Time::from_millis(2), [2; 10]),
            owner: UserId::new(Time::from_millis(3), [3; 10]),
            shared,
        };
        let chats = [Change::Chat(chat(true)), Change::Chat(chat(false))];
        let told: Vec<Change> = runs.chain(chats).chain([Change::Due]).collect();
        let payloads = payloads("me", &told);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let (sender, mut receiver) = broadcast::channel(1024);
        for payload in &payloads {
            hand_on(payload, "me", &sender);
            hand_on(payload, "another", &sender);
        }
        let mut heard = Vec::new();
        while let Ok(change) = receiver.try_recv() {
            heard.push(change);
        }
        assert_eq!(heard, told);
        hand_on("me chat_of/the/future", "another", &sender);
        assert_eq!(receiver.try_recv(), Ok(Change::Reread), "what is not understood is looked for");
    }
}
