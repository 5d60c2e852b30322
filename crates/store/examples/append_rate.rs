//! How fast appends are, as a ratio to bare inserts of the same bytes in the same run: prints one table. Run it in release;
//! PostgreSQL takes part when `ADJUTANT_TEST_POSTGRES` names an empty database.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring program prints, and stops when it cannot measure"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use adjutant_core::id::{AgentId, ChatId, RunId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::time::Time;
use adjutant_store::row::{Append, ChatRow, RunChange, RunRow, RunState, Tip, WorkspaceRow, Writer};
use adjutant_store::{Durability, MasterKey, Sealing, Store};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

const MEASURE: Duration = Duration::from_secs(3);
const BODY: usize = 400;

#[tokio::main]
async fn main() {
    let dir = tempfile::tempdir_in(std::env::args().nth(1).unwrap_or_else(|| ".".into())).unwrap();
    println!("{:<44} {:>10} {:>8}", "one event of 400 bytes, synchronous = FULL", "per second", "of raw");
    let raw = [raw_sqlite(&dir.path().join("raw1.db"), 1).await, raw_sqlite(&dir.path().join("raw64.db"), 64).await];
    show("raw SQLite, commit of 1 insert", raw[0], raw[0]);
    show("raw SQLite, commit of 64 inserts", raw[1], raw[1]);
    for (name, key) in [("sealed", Some([7; 32])), ("plain", None)] {
        let file = dir.path().join(format!("{name}.db"));
        let store = Store::open_sqlite(&file, Durability::Full, sealing(key)).await.unwrap();
        for (writers, raw) in [(1, raw[0]), (64, raw[1])] {
            show(&format!("SQLite, {name}, {writers} writers"), appends(&store, writers).await, raw);
        }
        store.close().await;
    }
    let Ok(url) = std::env::var("ADJUTANT_TEST_POSTGRES") else {
        println!("skipped: PostgreSQL (ADJUTANT_TEST_POSTGRES is not set)");
        return;
    };
    let store = Store::open_postgres(&url, sealing(Some([7; 32]))).await.unwrap();
    for (writers, raw) in [(1, raw[0]), (64, raw[1])] {
        show(&format!("PostgreSQL, sealed, {writers} writers"), appends(&store, writers).await, raw);
    }
    store.close().await;
}

fn sealing(key: Option<[u8; 32]>) -> Sealing {
    key.map_or(Sealing::Off, |key| Sealing::On(MasterKey::new(key)))
}

#[allow(clippy::cast_precision_loss, reason = "display only")]
fn show(what: &str, rate: u64, raw: u64) {
    println!("{what:<44} {rate:>10} {:>7.0}%", rate as f64 * 100.0 / raw as f64);
}

fn per_second(count: u64, time: Duration) -> u64 {
    count * 1000 / u64::try_from(time.as_millis()).unwrap().max(1)
}

/// Bare inserts into a table like ours, `batch` of them in one statement and one commit.
async fn raw_sqlite(file: &Path, batch: usize) -> u64 {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .pragma("wal_autocheckpoint", "4000");
    let pool =
        SqlitePoolOptions::new().max_connections(1).test_before_acquire(false).connect_with(options).await.unwrap();
    sqlx::raw_sql("CREATE TABLE events (stream TEXT, seq INTEGER, body TEXT, PRIMARY KEY (stream, seq))")
        .execute(&pool)
        .await
        .unwrap();
    let (start, mut seq) = (Instant::now(), 0);
    while start.elapsed() < MEASURE {
        seq += 1;
        let row = |n: usize| format!("[\"run_{n:026}\",{seq},\"{}\"]", "x".repeat(BODY));
        let json = format!("[{}]", (0..batch).map(row).collect::<Vec<_>>().join(","));
        sqlx::query("INSERT INTO events SELECT value->>0, value->>1, value->>2 FROM json_each($1)")
            .bind(json)
            .execute(&pool)
            .await
            .unwrap();
    }
    let rate = per_second(seq * batch as u64, start.elapsed());
    pool.close().await;
    rate
}

/// Whole appends (event, head, projection row) by drivers that each wait for their own commit.
async fn appends(store: &Store, writers: usize) -> u64 {
    let workspace = WorkspaceId::new(Time::from_millis(writers as i64), [1; 10]);
    let row = WorkspaceRow {
        id: workspace,
        slug: workspace.to_string(),
        name: "Bench".into(),
        time_zone: "UTC".into(),
        created_at: Time::from_millis(0),
    };
    store.create_workspace(&row).await.unwrap();
    let mut drivers = Vec::new();
    for n in 0..writers {
        drivers.push(start(store, workspace, n).await);
    }
    let begin = Instant::now();
    let tasks = drivers.into_iter().map(|(stream, mut head)| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut count = 0;
            while begin.elapsed() < MEASURE {
                let entry = Entry::next(stream, head, "said", Time::from_millis(2), vec![b'x'; BODY]);
                let run = Some(RunChange::Update { state: state(), release: false });
                head = store.append(append(workspace, stream, head, entry, run)).await.unwrap();
                count += 1;
            }
            count
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut count = 0;
    for task in tasks {
        count += task.await.unwrap();
    }
    per_second(count, begin.elapsed())
}

async fn start(store: &Store, workspace: WorkspaceId, n: usize) -> (StreamId, Head) {
    let now = Time::from_millis(i64::try_from(n).unwrap());
    let unique = u8::try_from(n).unwrap();
    let (run, chat, agent) = (
        RunId::new(
            now,
            [workspace.to_string().len() as u8 ^ unique, store_tag(workspace), 0, 0, 0, 0, 0, 0, 0, unique],
        ),
        ChatId::new(now, [unique; 10]),
        AgentId::new(now, [unique; 10]),
    );
    let owner = UserId::new(now, [unique; 10]);
    store
        .create_chat(&ChatRow {
            id: chat,
            workspace,
            agent,
            notebook: None,
            owner,
            title: "Bench".into(),
            tip: None,
            forked_from: None,
            created_at: now,
        })
        .await
        .unwrap();
    let row = RunRow {
        id: run,
        workspace,
        chat,
        agent,
        agent_version: 1,
        notebook: None,
        base: None,
        parent: None,
        initiator: owner,
        trigger: "message".into(),
        created_at: now,
        superseded_by: None,
        head: Head::START,
        owner: None,
        epoch: 0,
        state: state(),
    };
    let stream = StreamId::Run(run);
    let entry = Entry::next(stream, Head::START, "run_started", now, b"{}".to_vec());
    let tip = Tip { expected: None, supersedes: None, advance: true };
    let change = RunChange::Start { row: Box::new(row), tip };
    let head = store.append(append(workspace, stream, Head::START, entry, Some(change))).await.unwrap();
    (stream, head)
}

/// Two measurements in one database need different runs.
fn store_tag(workspace: WorkspaceId) -> u8 {
    workspace.to_string().bytes().fold(0, u8::wrapping_add)
}

fn append(workspace: WorkspaceId, stream: StreamId, expected: Head, entry: Entry, run: Option<RunChange>) -> Append {
    Append {
        workspace,
        stream,
        expected,
        writer: Writer::Command,
        entries: vec![entry],
        blocks: vec![],
        run,
        approvals: vec![],
        calls: vec![],
    }
}

fn state() -> RunState {
    RunState {
        status: "RUNNING".into(),
        due: None,
        updated_at: Time::from_millis(3),
        ended_at: None,
        turns: 1,
        calls: 2,
        usage: TokenUsage::default(),
        cost: MicroUsd(5),
        summary: r#"{"title":"A run of the bench"}"#.into(),
    }
}
