//! What HTTP costs: the same runs in the process and through a server of its own, side by side. Prints a table; asserts
//! nothing. Run it with `make bench`, in release; `quick` measures a tenth.
//!
//! The first argument is the server's binary.

mod here;
mod there;

use std::path::Path;
use std::time::{Duration, Instant};

use futures::stream::{FuturesUnordered, StreamExt};
use here::Here;
use there::There;

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A word makes a run of five model calls and four tool calls, another one of a single answer in pieces.
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
- text: "An answer that comes in pieces, as answers of models do."
  chunk: 8
"#;

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
        here.run("hello").await?;
        there.run("hello").await?;
    }
    start(&here, &there, 500 / scale).await?;
    first_token(&here, &there, 500 / scale).await?;
    for at_once in [1, 16, 128] {
        throughput(&here, &there, at_once, 2000 / scale).await?;
    }
    fan_out(&there, 200 / scale).await
}

#[allow(clippy::print_stdout, reason = "a table for a person is what a bench is for")]
fn println(line: &str) {
    println!("{line}");
}

/// The middle one.
fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn added(what: &str, here: f64, there: f64) {
    println(&format!("| {what}, ms, median | {here:.2} | {there:.2} | {:+.2} |", there - here));
}

async fn start(here: &Here, there: &There, times: usize) -> Outcome {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let from = Instant::now();
        let run = here.start("hello").await?;
        inside.push(from.elapsed());
        here.end(run).await?;
        let from = Instant::now();
        let run = there.start("hello").await?;
        outside.push(from.elapsed());
        there.end(&run).await?;
    }
    added("to start a run", median(inside), median(outside));
    Ok(())
}

async fn first_token(here: &Here, there: &There, times: usize) -> Outcome {
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for _ in 0..times {
        let from = Instant::now();
        inside.push(here.first_piece("hello").await?.duration_since(from));
        let from = Instant::now();
        outside.push(there.first_piece("hello").await?.duration_since(from));
    }
    added("to the first piece of the answer", median(inside), median(outside));
    Ok(())
}

async fn throughput(here: &Here, there: &There, at_once: usize, runs: usize) -> Outcome {
    let inside = rate(at_once, runs, || here.run("work")).await?;
    let outside = rate(at_once, runs, || there.run("work")).await?;
    let share = 100.0 * outside / inside;
    println(&format!("| runs/s of 4 tool calls, {at_once} at once | {inside:.0} | {outside:.0} | {share:.0} % |"));
    Ok(())
}

async fn rate<F: Future<Output = Outcome>>(at_once: usize, runs: usize, one: impl Fn() -> F) -> Outcome<f64> {
    let mut playing = FuturesUnordered::new();
    let (mut started, from) = (0, Instant::now());
    while started < runs || !playing.is_empty() {
        while started < runs && playing.len() < at_once {
            playing.push(one());
            started += 1;
        }
        if let Some(done) = playing.next().await {
            done?;
        }
    }
    Ok(runs as f64 / from.elapsed().as_secs_f64())
}

/// Many who read the same run from its first event to its last.
async fn fan_out(there: &There, readers: usize) -> Outcome {
    let run = there.start("work").await?;
    there.end(&run).await?;
    let from = Instant::now();
    let mut reading: FuturesUnordered<_> = (0..readers).map(|_| there.read(&run)).collect();
    let mut events = 0;
    while let Some(read) = reading.next().await {
        events += read?;
    }
    let rate = events as f64 / from.elapsed().as_secs_f64();
    println(&format!("| events/s to {readers} readers of one run | | {rate:.0} | |"));
    Ok(())
}
