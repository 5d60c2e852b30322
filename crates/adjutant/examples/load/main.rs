//! What a server does with many runs, beside a bare loop that does the same with one call and one commit a step: throughput,
//! processor time, the gap between two steps, many streams, two nodes against one, and a server that has much behind it. Prints
//! tables; asserts nothing. Run it with `make bench`, in release; `quick` measures a tenth.
//!
//! The first argument is the server's binary. With `mock` in its place this program is the model provider of the others: in a
//! process of its own, so that what it costs is nobody else's.

mod bare;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod common;
mod machine;
mod mock;
mod much;
mod nodes;
mod server;

use std::path::Path;
use std::time::Instant;

use common::{Failed, Outcome, median, play, println};
use server::{Database, Server};

/// Tool calls of one run.
const TOOLS: usize = 4;
/// Streams at the same time, in full.
const STREAMS: usize = 2000;
/// Runs that wait, and runs that have ended, of a server that has much behind it, in full.
const MUCH: (usize, usize) = (100_000, 1_000_000);
/// The parts that can be asked for by name; all of them when none is named.
const PARTS: [&str; 4] = ["throughput", "streams", "nodes", "much"];
/// Pieces a second of a slow answer, as models give them.
const PACE: u32 = 20;

#[tokio::main]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let binary = arguments.first().ok_or("name the server's binary")?;
    if binary == "mock" {
        let pace = arguments.get(1).and_then(|pace| pace.parse().ok());
        return mock::serve(pace.unwrap_or(0)).await;
    }
    let _ = rustls::crypto::ring::default_provider().install_default();
    let binary = Path::new(binary);
    let scale = if arguments.iter().any(|word| word == "quick") { 10 } else { 1 };
    let named = |name: &str| arguments.iter().any(|word| word == name);
    let wanted = |name: &str| named(name) || !PARTS.iter().any(|part| named(part));
    let mut failed = Failed::default();
    if wanted("throughput") {
        failed.note("throughput", throughput(binary, 2000 / scale).await);
    }
    if wanted("streams") {
        failed.note("streams", streams(binary, STREAMS / scale).await);
    }
    if wanted("nodes") {
        failed.note("nodes", nodes::compare(binary, 1000 / scale).await);
    }
    if wanted("much") {
        failed.note("much", much::compare(binary, MUCH.0 / scale, MUCH.1 / scale).await);
    }
    failed.end()
}

/// Runs of four tool calls and a final answer of 64 tokens, so many at once; the mock answers at once.
async fn throughput(binary: &Path, runs: usize) -> Outcome {
    let mock = mock::Mock::start(0)?;
    let bare = bare::Bare::open(&mock.url)?;
    let server = Server::open(binary, &mock.url, &Database::Sqlite).await?;
    println(
        "What a run costs beside a bare loop (4 tool calls, 5 model calls by HTTP, SQLite FULL; ours sealed, over HTTP)",
    );
    println(
        "| at once | mock and client alone, runs/s | bare loop, runs/s | Adjutant, runs/s | share | CPU ms/run: server | mock | client | gap between steps, ms, median |",
    );
    println("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for at_once in [1, 16, 128] {
        let some = if at_once == 1 { runs / 4 } else { runs };
        play(at_once, at_once * 2, |_| bare.run()).await?;
        play(at_once, at_once * 2, |number| server.run(format!("warm-{at_once}-{number}"))).await?;
        let most = play(at_once, some, |_| bare.ask_only()).await?;
        let theirs = play(at_once, some, |_| bare.run()).await?;
        mock.gaps().await?;
        let used = || [server.cpu(), mock.cpu(), machine::own_cpu()];
        let before = used();
        let ours = play(at_once, some, |number| server.run(format!("work-{at_once}-{number}"))).await?;
        let after = used();
        let [cpu, mocks, clients] = [0, 1, 2].map(|of| (after[of] - before[of]) / some as f64);
        println(&format!(
            "| {at_once} | {most:.0} | {theirs:.0} | {ours:.0} | {:.2} | {cpu:.2} | {mocks:.2} | {clients:.2} | {:.2} |",
            ours / theirs,
            median(mock.gaps().await?)
        ));
    }
    Ok(())
}

/// Many answers at the pace of a real model, all of them followed.
async fn streams(binary: &Path, streams: usize) -> Outcome {
    let mock = mock::Mock::start(PACE)?;
    let server = Server::open(binary, &mock.url, &Database::Sqlite).await?;
    play(8, 16, |number| server.follow(format!("say-warm-{number}"))).await?;
    mock.peak().await?;
    let before = server.rss_kib();
    let (highest, from) = (machine::Highest::watch(server.pid()), Instant::now());
    play(streams, streams, |number| server.follow(format!("say-{number}"))).await?;
    let (seconds, highest) = (from.elapsed().as_secs_f64(), highest.stop());
    let peak = mock.peak().await?;
    println("");
    println(&format!(
        "{streams} streaming runs, {peak} of them at once, {PACE} pieces a second each: all complete in {seconds:.1} s, memory {before} KiB → {highest} KiB ({:.0} KiB for each of those at once)",
        highest.saturating_sub(before) as f64 / peak.max(1) as f64
    ));
    Ok(())
}
