//! A server that has much behind it: how long it takes to start, how much memory it needs, and whether what people do all day
//! takes longer than with little. A thousand runs of each kind are played; the rest are copies of them, made while the server is
//! down. A copy is as large as what it is a copy of, with blocks of its own where that had some; but nobody could open it, because its
//! content is sealed under another name. Nobody does here.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::common::{Outcome, ended, median, ms, play, println};
use crate::mock::Mock;
use crate::server::{Database, Server};

/// Runs of each kind that are played.
const PLAYED: usize = 1000;
/// How often each thing is done.
const TIMES: usize = 50;
/// The agent that asks before it does anything.
const ASKING: &str = "asking";
/// Where everything about runs is written down.
const TABLES: [&str; 11] = [
    "chats",
    "runs",
    "events",
    "streams",
    "block_refs",
    "blocks",
    "approvals",
    "calls",
    "results",
    "audit",
    "model_calls",
];

/// Prints what a server does with little behind it, and with much.
pub(crate) async fn compare(binary: &Path, waiting: usize, ended: usize) -> Outcome {
    let mock = Mock::start(0)?;
    let server = Server::open(binary, &mock.url, &Database::Sqlite).await?;
    let asks = json!({"toolsets": ["files"], "can_create": true, "requires_approval": ["create_file"]});
    server.make(ASKING, &asks).await?;
    play(64, PLAYED, |number| server.run(format!("say-{number}"))).await?;
    let mut questions = Vec::new();
    for number in 0..PLAYED {
        questions.push(ask(&server, number).await?);
    }
    println("");
    println("What a server does with much behind it (SQLite; the middle of fifty; `decide` is to the end of the run)");
    println(
        "| runs that wait | runs that ended | start to ready, ms | memory, KiB | database, MiB | inbox, ms | run list, ms | decision alone, ms | decide, ms | one run, ms |",
    );
    println("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let home = server.stop()?;
    let server = Server::reopen(binary, &mock.url, home).await?;
    measure(&server, &mut questions, [PLAYED, PLAYED]).await?;
    let home = server.stop()?;
    let from = Instant::now();
    let copies = Copies::open(&home.path().join("data/adjutant.db"))?;
    let (alone, before) = (copies.count(WAITING)?, copies.bytes()?);
    copies.multiply(WAITING, OLD_WAITING, waiting / PLAYED)?;
    let (waiting, more) = (copies.count(WAITING)?, copies.bytes()? - before);
    copies.multiply(ENDED, OLD_ENDED, ended / PLAYED)?;
    let there = [waiting, copies.count(ENDED)?];
    drop(copies);
    let took = from.elapsed().as_secs();
    let server = Server::reopen(binary, &mock.url, home).await?;
    measure(&server, &mut questions, there).await?;
    println(&format!(
        "The copies were made in {took} s. The {} copies of runs that wait take {:.0} bytes of disk each.",
        waiting - alone,
        more as f64 / (waiting - alone).max(1) as f64
    ));
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
    let (mut inbox, mut list, mut run) = (Vec::new(), Vec::new(), Vec::new());
    let (mut answer, mut decide) = (Vec::new(), Vec::new());
    for number in 0..TIMES {
        inbox.push(timed(server.get("/approvals?status=pending&limit=50")).await?);
        list.push(timed(server.get("/runs?limit=50")).await?);
        let (id, question) = questions.pop().ok_or("too few runs ask")?;
        let (alone, whole) = decided(server, &id, &question).await?;
        answer.push(alone);
        decide.push(whole);
        let from = Instant::now();
        server.run(format!("say-{waiting}-{number}")).await?;
        run.push(ms(from));
    }
    let size = std::fs::metadata(server.data().join("adjutant.db"))?.len() as f64 / 1048576.0;
    let ready = server.ready().as_secs_f64() * 1e3;
    println(&format!(
        "| {waiting} | {ended} | {ready:.0} | {} | {size:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
        server.rss_kib(),
        median(inbox),
        median(list),
        median(answer),
        median(decide),
        median(run)
    ));
    Ok(())
}

async fn timed(asked: impl Future<Output = Outcome<Value>>) -> Outcome<f64> {
    let from = Instant::now();
    asked.await?;
    Ok(ms(from))
}

/// Approves one, and waits for the end of its run. Says how long the answer to that took, and all of it.
async fn decided(server: &Server, run: &str, question: &str) -> Outcome<(f64, f64)> {
    let from = Instant::now();
    server.post(&format!("/approvals/{question}/decision"), &json!({"decision": "approve"})).await?;
    let alone = ms(from);
    let run = server.get(&format!("/runs/{run}?wait=60")).await?;
    ended(&run, 1)?;
    Ok((alone, ms(from)))
}

/// Which runs are meant, and the number that the ids of their copies begin with.
const WAITING: &str = "status = 'WAITING_APPROVAL'";
const ENDED: &str = "ended_at IS NOT NULL";
const OLD_WAITING: usize = 1;
const OLD_ENDED: usize = 1_000_000;

/// The database of a server that is down.
struct Copies(Connection);

impl Copies {
    fn open(database: &Path) -> Outcome<Self> {
        let connection = Connection::open(database)?;
        connection.execute_batch(
            "PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; \
             CREATE TEMP TABLE chosen (run TEXT PRIMARY KEY, chat TEXT); \
             CREATE TEMP TABLE own (hash BLOB PRIMARY KEY);",
        )?;
        Ok(Self(connection))
    }

    fn count(&self, which: &str) -> Outcome<usize> {
        let sql = format!("SELECT count(*) FROM runs WHERE {which}");
        Ok(usize::try_from(self.0.query_row(&sql, (), |row| row.get::<_, i64>(0))?)?)
    }

    /// Bytes of the pages that hold something.
    fn bytes(&self) -> Outcome<i64> {
        let sql = "SELECT (page_count - freelist_count) * page_size \
                   FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
        Ok(self.0.query_row(sql, (), |row| row.get(0))?)
    }

    /// Copies runs so often that there are so many times as many, with all that is written down about them. The copies come after
    /// all others in what lists begin with, so those begin with what is real.
    fn multiply(&self, which: &str, first: usize, times: usize) -> Outcome {
        // A block that one run alone uses is one that each run has of its own; the others are everybody's.
        self.0.execute_batch(&format!(
            "DELETE FROM chosen; INSERT INTO chosen SELECT id, chat FROM runs WHERE {which}; DELETE FROM own; \
             INSERT INTO own SELECT hash FROM block_refs GROUP BY hash \
             HAVING count(*) = 1 AND max(stream) IN (SELECT run FROM chosen);"
        ))?;
        for number in first..first + times.saturating_sub(1) {
            self.0.execute_batch("BEGIN")?;
            for table in TABLES {
                self.copy(table, number)?;
            }
            self.0.execute_batch("COMMIT")?;
        }
        self.0.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()))?;
        Ok(())
    }

    fn copy(&self, table: &str, number: usize) -> Outcome {
        let columns = self
            .0
            .prepare(&format!("SELECT name, type FROM pragma_table_info('{table}')"))?
            .query_map((), |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
            .collect::<Result<Vec<_>, _>>()?;
        let values = columns.iter().map(|(name, kind)| match kind.as_str() {
            "TEXT" => renamed(name, number),
            // A name of its own, as long as a hash is.
            "BLOB" if table.starts_with("block") && name == "hash" => {
                format!("CASE WHEN hash IN own THEN CAST(substr(hash, 1, 22) || '{number:010}' AS BLOB) ELSE hash END")
            }
            _ => format!("\"{name}\""),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let key = match table {
            "chats" => "id IN (SELECT chat FROM chosen)",
            "runs" => "id IN (SELECT run FROM chosen)",
            "blocks" => "hash IN own",
            "events" | "streams" | "audit" | "block_refs" => "stream IN (SELECT run FROM chosen)",
            "model_calls" => "log IN (SELECT run FROM chosen)",
            _ => "run IN (SELECT run FROM chosen)",
        };
        self.0.execute(&format!("INSERT INTO {table} SELECT {values} FROM {table} WHERE {key}"), ())?;
        Ok(())
    }
}

/// An id is a word, ten letters of time and sixteen of chance: a copy has another time. That of a run is before all others, because
/// runs are listed from the newest on; that of a question is after all others, because the inbox begins with the oldest.
fn renamed(name: &str, number: usize) -> String {
    let at = format!("instr(\"{name}\", '_')");
    let copied = |time: String| format!("substr(\"{name}\", 1, {at}) || '{time}' || substr(\"{name}\", {at} + 11)");
    let (before, after) = (copied(format!("{number:010}")), copied(format!("7{number:09}")));
    format!(
        "CASE WHEN \"{name}\" GLOB 'approval_*' THEN {after} \
         WHEN \"{name}\" GLOB 'run_*' OR \"{name}\" GLOB 'chat_*' THEN {before} ELSE \"{name}\" END"
    )
}
