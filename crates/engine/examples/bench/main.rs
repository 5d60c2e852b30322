//! What runs cost: throughput, processor time, disk, memory, start-up. Prints a table; asserts nothing. Run it with
//! `make bench`, in release: figures of a debug build say nothing.

mod machine;
mod stage;

use std::path::Path;
use std::time::Instant;

use machine::{Use, rss_kib};
use stage::{Ask, Stage};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The parts that can be asked for by name; all of them when none is named. A number after `work` is how many runs there are at once.
const PARTS: [&str; 4] = ["work", "parked", "chat", "start"];

#[tokio::main]
async fn main() -> Outcome {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| asked.iter().any(|word| word == name);
    let wanted = |name: &str| named(name) || !PARTS.iter().any(|part| named(part));
    let scale = if named("quick") { 10 } else { 1 };
    // A part that fails does not stop those after it.
    let mut failed = Vec::new();
    let mut note = |part: &'static str, outcome: Outcome| {
        if let Err(error) = outcome {
            println(&format!("{part} failed: {error}"));
            failed.push(part);
        }
    };
    if wanted("work") {
        let at_once: Vec<usize> = asked.iter().filter_map(|word| word.parse().ok()).collect();
        note("work", work(2000 / scale, if at_once.is_empty() { &[1, 16, 128] } else { &at_once }).await);
    }
    if wanted("parked") {
        note("parked", parked(10_000 / scale).await);
    }
    if wanted("chat") {
        note("chat", long_chat(1000 / scale).await);
    }
    if wanted("start") {
        // What is measured here is the server that is shipped: its path is among the words.
        let server = asked.iter().map(Path::new).find(|word| word.is_absolute());
        note("start", start_up(100_000 / scale, server).await);
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", ")).into()) }
}

async fn work(runs: usize, at_once: &[usize]) -> Outcome {
    println("What a run costs (4 tool calls in 4 turns, 5 model calls, sealed)");
    println("| store | at once | runs/s | CPU ms/run | bytes/run | events/run |");
    println("|---|---:|---:|---:|---:|---:|");
    for &at_once in at_once {
        let stage = Stage::sqlite().await?;
        throughput("SQLite FULL", &stage, at_once, runs).await?;
    }
    match std::env::var("ADJUTANT_TEST_POSTGRES") {
        Err(_) => println("| PostgreSQL | | skipped: ADJUTANT_TEST_POSTGRES is not set | | | |"),
        Ok(url) => {
            let stage = Stage::postgres(&url).await?;
            for &at_once in at_once {
                throughput("PostgreSQL", &stage, at_once, runs).await?;
            }
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "a table for a person is what a bench is for")]
fn println(line: &str) {
    println!("{line}");
}

async fn throughput(name: &str, stage: &Stage, at_once: usize, runs: usize) -> Outcome {
    stage.play(Ask::Work, at_once, at_once * 4).await?;
    let (size, cpu, from) = (stage.bytes().await?, Use::now(), Instant::now());
    let last = stage.play(Ask::Work, at_once, runs).await?;
    let (seconds, cpu) = (from.elapsed().as_secs_f64(), Use::now().since(&cpu));
    let events = stage.events(last).await?;
    let count = runs as f64;
    println(&format!(
        "| {name} | {at_once} | {:.0} | {:.2} | {:.0} | {events} |",
        count / seconds,
        cpu.millis / count,
        (stage.bytes().await? as f64 - size as f64) / count
    ));
    Ok(())
}

async fn parked(runs: usize) -> Outcome {
    let stage = Stage::sqlite().await?;
    // As many before as are measured: until then caches fill, which have an end.
    stage.play(Ask::Approval, 64, runs).await?;
    let before = (rss_kib(), stage.bytes().await?);
    stage.play(Ask::Approval, 64, runs).await?;
    let after = (rss_kib(), stage.bytes().await?);
    println("");
    println(&format!(
        "{runs} runs that wait for an approval: memory {} KiB → {} KiB ({:+.2} KiB a run), disk {:.0} bytes a run",
        before.0,
        after.0,
        (after.0 as f64 - before.0 as f64) / runs as f64,
        (after.1 as f64 - before.1 as f64) / runs as f64
    ));
    Ok(())
}

async fn long_chat(runs: usize) -> Outcome {
    let stage = Stage::sqlite().await?;
    let mut chat = None;
    println("");
    println("| run of one chat | ms | CPU ms | events | bytes | statements that read | rows read | context bytes |");
    println("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for number in 1..=runs {
        let (size, cpu, from) = (stage.bytes().await?, Use::now(), Instant::now());
        let read = stage.reads();
        let run = stage.one(chat, Ask::More).await?;
        let (ms, cpu) = (from.elapsed().as_secs_f64() * 1e3, Use::now().since(&cpu));
        let reads = stage.reads();
        chat = Some(stage.chat_of(run).await?);
        if [10, runs / 10, runs / 2, runs].contains(&number) {
            println(&format!(
                "| {number} | {ms:.1} | {:.1} | {} | {} | {} | {} | {} |",
                cpu.millis,
                stage.events(run).await?,
                stage.bytes().await? as i64 - size as i64,
                reads.statements - read.statements,
                reads.rows - read.rows,
                stage.context(run).await?
            ));
        }
    }
    Ok(())
}

async fn start_up(runs: usize, server: Option<&Path>) -> Outcome {
    let mut stage = Stage::sqlite().await?;
    let from = Instant::now();
    stage.play(Ask::Short, 256, runs).await?;
    let filled = from.elapsed().as_secs_f64();
    let size = stage.bytes().await? as f64 / 1048576.0;
    stage.close().await;
    println("");
    let about = format!("start to ready with {runs} runs in the database ({size:.0} MiB, filled in {filled:.0} s)");
    let Some(binary) = server else {
        println(&format!("{about}: skipped, because no server was named"));
        return Ok(());
    };
    // The first start on data of another program makes what every instance has.
    stage.serve(binary)?;
    let mut starts = [stage.serve(binary)?, stage.serve(binary)?, stage.serve(binary)?];
    starts.sort();
    println(&format!("{about}: {:.1} ms, the middle of three starts of the server", starts[1].as_secs_f64() * 1e3));
    Ok(())
}
