//! What HTTP costs: the same runs in the process and through a server of its own, side by side. Prints a table; asserts
//! nothing. Run it with `make bench`, in release; `quick` measures a tenth.
//!
//! The first argument is the server's binary.

#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod common;
mod here;
mod there;

use std::path::Path;
use std::time::Instant;

use common::{Failed, Outcome, median, ms, play, println};
use futures::future::try_join_all;
use here::Here;
use there::There;

/// A word makes a run of five model calls and four tool calls, another one that goes on for long once somebody has said yes, and
/// any other one of a single answer in pieces.
const SCRIPT: &str = r#"
- when: { user: work, turn: 5 }
  text: "That is all there is to say about it."
- when: { user: work, turn: 4 }
  calls: [{ name: list_files, arguments: { path: "/" } }]
- when: { user: work, turn: 3 }
  calls: [{ name: kv_get, arguments: { key: note } }]
- when: { user: work, turn: 2 }
  calls: [{ name: kv_set, arguments: { key: note, value: "a value of some length" } }]
- when: { user: work }
  calls: [{ name: read_file, arguments: { path: /todo.md } }]
- when: { user: live, turn: 1 }
  calls: [{ name: kv_set, arguments: { key: note, value: "a value of some length" } }]
- when: { user: live, turn: 22 }
  text: "That is all there is to say about it, and it comes in pieces, as answers of models do."
  chunk: 8
- when: { user: live }
  calls: [{ name: kv_get, arguments: { key: "note-${turn}" } }]
- text: "An answer that comes in pieces, as answers of models do."
  chunk: 8
"#;

/// Tool calls of a run that works, and of one that only answers.
const TOOLS: usize = 4;
const NO_CALLS: usize = 0;

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let binary = arguments.first().ok_or("name the server's binary")?;
    let scale = if arguments.iter().any(|word| word == "quick") { 10 } else { 1 };
    let here = Here::open().await?;
    let there = There::open(Path::new(binary)).await?;
    println("What HTTP adds (SQLite FULL, sealed; client and server share this machine)");
    println("| | in the process | through HTTP | |");
    println("|---|---:|---:|---:|");
    // Caches fill, connections come about.
    for _ in 0..20 {
        here.run("hello", NO_CALLS).await?;
        there.run("hello", NO_CALLS).await?;
    }
    let mut failed = Failed::default();
    failed.note("start", start(&here, &there, 500 / scale).await);
    failed.note("first piece", first_token(&here, &there, 500 / scale).await);
    for at_once in [1, 16, 128] {
        failed.note("throughput", throughput(&here, &there, at_once, 2000 / scale).await);
    }
    failed.note("readers", fan_out(&there, 200 / scale).await);
    failed.end()
}

fn added(what: &str, here: f64, there: f64) {
    println(&format!("| {what}, ms, median | {here:.2} | {there:.2} | {:+.2} |", there - here));
}

async fn start(here: &Here, there: &There, times: usize) -> Outcome {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let from = Instant::now();
        let run = here.start("hello").await?;
        inside.push(ms(from));
        here.end(run, NO_CALLS).await?;
        let from = Instant::now();
        let run = there.start("hello").await?;
        outside.push(ms(from));
        there.end(&run, NO_CALLS).await?;
    }
    added("to start a run", median(inside), median(outside));
    Ok(())
}

async fn first_token(here: &Here, there: &There, times: usize) -> Outcome {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let from = Instant::now();
        inside.push(here.first_piece("hello").await?.duration_since(from).as_secs_f64() * 1e3);
        let from = Instant::now();
        outside.push(there.first_piece("hello").await?.duration_since(from).as_secs_f64() * 1e3);
    }
    added("to the first piece of the answer", median(inside), median(outside));
    Ok(())
}

async fn throughput(here: &Here, there: &There, at_once: usize, runs: usize) -> Outcome {
    let inside = play(at_once, runs, |_| here.run("work", TOOLS)).await?;
    let outside = play(at_once, runs, |_| there.run("work", TOOLS)).await?;
    let share = 100.0 * outside / inside;
    println(&format!("| runs/s of 4 tool calls, {at_once} at once | {inside:.0} | {outside:.0} | {share:.0} % |"));
    Ok(())
}

/// Many who read the same run while it goes on: all of them are there when somebody says yes to it, and what follows is sent to
/// each as it happens.
async fn fan_out(there: &There, readers: usize) -> Outcome {
    let (run, question) = there.ask("live").await?;
    let joined = try_join_all((0..readers).map(|_| there.join(&run))).await?;
    let from = Instant::now();
    let (events, ()) =
        futures::try_join!(try_join_all(joined.into_iter().map(there::Reader::rest)), there.approve(&question),)?;
    let events: usize = events.iter().sum();
    let rate = events as f64 / from.elapsed().as_secs_f64();
    println(&format!("| events/s to {readers} readers of one live run | | {rate:.0} | |"));
    Ok(())
}
