//! A server that has much behind it: how long it takes to start, how much memory it needs, and whether what people do all day
//! takes longer than with little. A thousand runs of each kind are played; the rest are copies of them, made while the server is
//! down. Nobody could open a copy, because its content is sealed under another name; nobody does here.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::machine::median;
use crate::mock::Mock;
use crate::server::{Database, Server};
use crate::{Outcome, play, println};

/// Runs of each kind that are played.
const PLAYED: usize = 1000;
/// How often each thing is done.
const TIMES: usize = 50;
/// The agent that asks before it does anything.
const ASKING: &str = "asking";
/// Where everything about runs is written down, and what of it is sealed.
const TABLES: [(&str, &[&str]); 9] = [
    ("chats", &[]),
    ("runs", &["summary"]),
    ("events", &[]),
    ("streams", &[]),
    ("approvals", &["card"]),
    ("calls", &[]),
    ("results", &[]),
    ("audit", &[]),
    ("model_calls", &[]),
];

/// Prints what a server does with little behind it, and with much.
pub(crate) async fn compare(binary: &Path, waiting: usize, ended: usize) -> Outcome {
    let mock = Mock::start(0)?;
    let server = Server::open(binary, &mock.url, &Database::Sqlite).await?;
    let agent = json!({
        "workspace_id": "home", "name": "Asking", "slug": ASKING, "scope": {"notebooks": ["*"], "folders": ["/"]},
        "toolsets": ["files"], "autonomy": "full", "can_create": true, "requires_approval": ["create_file"],
        "max_requests_per_hour": 100_000_000, "budget": {"run_usd": null, "month_usd": null},
    });
    server.make(&agent).await?;
    play(64, PLAYED, |number| server.run(format!("say-{number}"))).await?;
    let mut questions = Vec::new();
    for number in 0..PLAYED {
        questions.push(ask(&server, number).await?);
    }
    println("");
    println("What a server does with much behind it (SQLite; the middle of fifty; `decide` is to the end of the run)");
    println(
        "| runs that wait | runs that ended | start to ready, ms | memory, KiB | database, MiB | inbox, ms | run list, ms | decide, ms | one run, ms |",
    );
    println("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let home = server.stop()?;
    let server = Server::reopen(binary, &mock.url, home).await?;
    measure(&server, &mut questions, [PLAYED, PLAYED]).await?;
    let home = server.stop()?;
    let from = Instant::now();
    let there = multiply(&home.path().join("data/adjutant.db"), waiting / PLAYED, ended / PLAYED)?;
    let took = from.elapsed().as_secs();
    let server = Server::reopen(binary, &mock.url, home).await?;
    measure(&server, &mut questions, there).await?;
    println(&format!("The copies were made in {took} s."));
    Ok(())
}

/// Starts a run that asks. Says the run and its question.
async fn ask(server: &Server, number: usize) -> Outcome<(String, String)> {
    let order = json!({"agent_id": ASKING, "input": format!("ask-{number}")});
    let run = server.post("/runs?wait=60", &order).await?;
    match (run["id"].as_str(), run["pending_approvals"][0].as_str()) {
        (Some(id), Some(question)) => Ok((id.to_owned(), question.to_owned())),
        _ => Err(format!("a run did not ask: {run}").into()),
    }
}

async fn measure(server: &Server, questions: &mut Vec<(String, String)>, [waiting, ended]: [usize; 2]) -> Outcome {
    let (mut inbox, mut list, mut decide, mut run) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..TIMES {
        inbox.push(timed(server.get("/approvals?status=pending&limit=50")).await?);
        list.push(timed(server.get("/runs?limit=50")).await?);
        let (id, question) = questions.pop().ok_or("too few runs ask")?;
        decide.push(timed(decided(server, &id, &question)).await?);
        let from = Instant::now();
        server.run(format!("say-{waiting}-{number}")).await?;
        run.push(from.elapsed().as_secs_f64() * 1e3);
    }
    let size = std::fs::metadata(server.data().join("adjutant.db"))?.len() as f64 / 1048576.0;
    let ready = server.ready.as_secs_f64() * 1e3;
    println(&format!(
        "| {waiting} | {ended} | {ready:.0} | {} | {size:.0} | {:.2} | {:.2} | {:.2} | {:.2} |",
        server.rss_kib(),
        median(inbox),
        median(list),
        median(decide),
        median(run)
    ));
    Ok(())
}

async fn timed(asked: impl Future<Output = Outcome<Value>>) -> Outcome<f64> {
    let from = Instant::now();
    asked.await?;
    Ok(from.elapsed().as_secs_f64() * 1e3)
}

/// Approves one, and waits for the end of its run.
async fn decided(server: &Server, run: &str, question: &str) -> Outcome<Value> {
    server.post(&format!("/approvals/{question}/decision"), &json!({"decision": "approve"})).await?;
    let ended = server.get(&format!("/runs/{run}?wait=60")).await?;
    if ended["status"] == "COMPLETED" { Ok(ended) } else { Err(format!("a run did not end well: {ended}").into()) }
}

/// Copies each run that waits so many times, and each that has ended so many times, with all that is written down about it. The
/// copies carry ids that are older than all others, so lists begin with what is real. Says how many of both there are then.
fn multiply(database: &Path, waiting: usize, ended: usize) -> Outcome<[usize; 2]> {
    let connection = Connection::open(database)?;
    connection.execute_batch(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; CREATE TEMP TABLE chosen (run TEXT PRIMARY KEY, chat TEXT);",
    )?;
    let of = [("status = 'WAITING_APPROVAL'", waiting, 1), ("ended_at IS NOT NULL", ended, 500_000_000_usize)];
    for (which, times, first) in of {
        connection.execute_batch(&format!(
            "DELETE FROM chosen; INSERT INTO chosen SELECT id, chat FROM runs WHERE {which};"
        ))?;
        for number in first..first + times.saturating_sub(1) {
            connection.execute_batch("BEGIN")?;
            for (table, sealed) in TABLES {
                copy(&connection, table, sealed, number)?;
            }
            connection.execute_batch("COMMIT")?;
        }
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
    let count = |which: &str| -> Outcome<usize> {
        let sql = format!("SELECT count(*) FROM runs WHERE {which}");
        Ok(usize::try_from(connection.query_row(&sql, (), |row| row.get::<_, i64>(0))?)?)
    };
    Ok([count(of[0].0)?, count(of[1].0)?])
}

fn copy(connection: &Connection, table: &str, sealed: &[&str], number: usize) -> Outcome {
    let columns = connection
        .prepare(&format!("SELECT name, type FROM pragma_table_info('{table}')"))?
        .query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    // An id is a word, ten letters of time and sixteen of chance: a copy has another time.
    let renamed = |name: &str| {
        let is = ["run", "chat", "approval"].map(|word| format!("\"{name}\" GLOB '{word}_*'")).join(" OR ");
        let at = format!("instr(\"{name}\", '_')");
        let copied = format!("substr(\"{name}\", 1, {at}) || '{number:010}' || substr(\"{name}\", {at} + 11)");
        format!("CASE WHEN {is} THEN {copied} ELSE \"{name}\" END")
    };
    let values = columns.iter().map(|(name, kind)| match kind.as_str() {
        _ if sealed.contains(&name.as_str()) => "NULL".to_owned(),
        "TEXT" => renamed(name),
        _ => format!("\"{name}\""),
    });
    let values = values.collect::<Vec<_>>().join(", ");
    let key = match table {
        "chats" => "id IN (SELECT chat FROM chosen)",
        "runs" => "id IN (SELECT run FROM chosen)",
        "events" | "streams" | "audit" => "stream IN (SELECT run FROM chosen)",
        "model_calls" => "log IN (SELECT run FROM chosen)",
        _ => "run IN (SELECT run FROM chosen)",
    };
    connection.execute(&format!("INSERT INTO {table} SELECT {values} FROM {table} WHERE {key}"), ())?;
    Ok(())
}
