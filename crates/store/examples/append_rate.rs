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

const MEASURE: Duration = Duration::from_secs(2);
const BODY: usize = 400;

/// Each measurement is taken this often, in turns, and the middle one counts: other work on the machine hits all alike.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() {
    // On the disk that is worked on: a temporary folder may be memory.
    let dir = tempfile::tempdir_in(".").unwrap();
    let url = std::env::var("ADJUTANT_TEST_POSTGRES").ok();
    let mut rates: [[Vec<u64>; 2]; 4] = Default::default();
    for round in 0..ROUNDS {
        for (at, writers) in [1, 64].into_iter().enumerate() {
            let file = |name: &str| dir.path().join(format!("{name}-{round}-{writers}.db"));
            rates[0][at].push(raw_sqlite(&file("raw"), writers));
            for (kind, key) in [(1, Some([7; 32])), (2, None)] {
                let store = Store::open_sqlite(&file(&kind.to_string()), Durability::Full, sealing(key)).await.unwrap();
                rates[kind][at].push(appends(&store, writers, round).await);
                store.close().await;
            }
            if let Some(url) = &url {
                let store = Store::open_postgres(url, sealing(Some([7; 32]))).await.unwrap();
                rates[3][at].push(appends(&store, writers, round).await);
                store.close().await;
            }
        }
    }
    println!(
        "{:<44} {:>11} {:>7} {:>12} {:>7}",
        "events of 400 bytes a second", "1 writer", "of raw", "64 writers", "of raw"
    );
    let names =
        ["raw SQLite FULL, one insert, one commit", "SQLite FULL, sealed", "SQLite FULL, plain", "PostgreSQL, sealed"];
    let raw = rates[0].clone().map(middle);
    for (name, rates) in names.iter().zip(rates) {
        if rates[0].is_empty() {
            println!("skipped: PostgreSQL (ADJUTANT_TEST_POSTGRES is not set)");
            continue;
        }
        let [one, many] = rates.map(middle);
        println!("{name:<44} {one:>11} {:>6}% {many:>12} {:>6}%", one * 100 / raw[0], many * 100 / raw[1]);
    }
}

fn middle(mut rates: Vec<u64>) -> u64 {
    rates.sort_unstable();
    rates[rates.len() / 2]
}

fn sealing(key: Option<[u8; 32]>) -> Sealing {
    key.map_or(Sealing::Off, |key| Sealing::On(MasterKey::new(key)))
}

fn per_second(count: u64, time: Duration) -> u64 {
    count * 1000 / u64::try_from(time.as_millis()).unwrap().max(1)
}

/// Bare inserts of the same events into the same table, `batch` of them in one prepared statement and one commit: what is
/// left when nothing is guarded, projected or sealed.
fn raw_sqlite(file: &Path, batch: usize) -> u64 {
    let connection = rusqlite::Connection::open(file).unwrap();
    let set = |name: &str, value: &str| connection.pragma_update(None, name, value).unwrap();
    set("journal_mode", "wal");
    set("synchronous", "full");
    set("wal_autocheckpoint", "4000");
    let schema = "CREATE TABLE events (workspace TEXT NOT NULL, stream TEXT NOT NULL, seq INTEGER NOT NULL, \
                  kind TEXT NOT NULL, time INTEGER NOT NULL, body_hash BLOB NOT NULL, body BLOB, hash BLOB NOT NULL, \
                  PRIMARY KEY (workspace, stream, seq)) STRICT";
    connection.execute_batch(schema).unwrap();
    let workspace = WorkspaceId::new(Time::from_millis(0), [1; 10]).to_string();
    let runs = (0..batch).map(|n| RunId::new(Time::from_millis(i64::try_from(n).unwrap()), [1; 10]));
    let runs: Vec<_> = runs.map(|run| (StreamId::Run(run), run.to_string())).collect();
    let mut heads = vec![Head::START; batch];
    let mut insert = connection.prepare("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)").unwrap();
    let (start, mut count) = (Instant::now(), 0);
    while start.elapsed() < MEASURE {
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        for ((stream, name), head) in runs.iter().zip(&mut heads) {
            let entry = Entry::next(*stream, *head, "said", Time::from_millis(2), vec![b'x'; BODY]);
            *head = entry.head();
            let (hash, body_hash) = (entry.hash.0, entry.body_hash.0);
            let row =
                (&workspace, name, entry.seq as i64, entry.kind, entry.time.millis(), body_hash, entry.body, hash);
            insert.execute(row).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        count += batch as u64;
    }
    per_second(count, start.elapsed())
}

/// Whole appends (event, head, projection row) by drivers that each wait for their own commit.
async fn appends(store: &Store, writers: usize, round: usize) -> u64 {
    let tag = u8::try_from(round).unwrap() * 100 + u8::try_from(writers).unwrap();
    let workspace = WorkspaceId::new(Time::from_millis(0), [tag; 10]);
    let row = WorkspaceRow::new(workspace, workspace.to_string(), "Bench", Time::from_millis(0));
    store.create_workspace(&row).await.unwrap();
    let mut drivers = Vec::new();
    for n in 0..writers {
        drivers.push(start(store, workspace, n, tag).await);
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

async fn start(store: &Store, workspace: WorkspaceId, n: usize, tag: u8) -> (StreamId, Head) {
    let now = Time::from_millis(i64::try_from(n).unwrap());
    let (run, chat, agent) = (RunId::new(now, [tag; 10]), ChatId::new(now, [tag; 10]), AgentId::new(now, [tag; 10]));
    let owner = UserId::new(now, [tag; 10]);
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
            shared: false,
            alias: None,
            model: None,
            metadata: None,
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
    let change = RunChange::Start { row: Box::new(row), tip, places: u32::MAX };
    let head = store.append(append(workspace, stream, Head::START, entry, Some(change))).await.unwrap();
    (stream, head)
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
        rules: vec![],
        audit: vec![],
        marks: vec![],
        takings: vec![],
        under: None,
        model_calls: vec![],
        doing: None,
        spends: vec![],
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
