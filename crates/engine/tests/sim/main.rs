//! Whole nodes in a simulated world: real engines, drivers and workers on the store in memory, with a model that says
//! anything, tools of every recovery class, people who act at any moment, and nodes that die, freeze and come back. Time,
//! chance, store, model and tools come from one seed, so that a failure is a number.
//!
//! `ADJUTANT_SEED=n` plays one schedule and prints its trace; `ADJUTANT_SCHEDULES=n` plays more or fewer of them, and
//! `ADJUTANT_FIRST_SEED=n` begins elsewhere.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may stop, and says what it did"
)]
#![allow(clippy::panic, reason = "tools and models that panic are part of the simulation")]

mod chance;
mod check;
mod cluster;
mod cover;
mod full;
mod growing;
mod lease;
mod model;
mod people;
mod plan;
mod post;
mod scene;
mod schedule;
mod tally;
mod tools;
mod witness;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cover::Cover;

/// Schedules that once failed. They are played first, for ever.
const REGRESSIONS: &[u64] = &[81, 1804, 3091, 3647, 8651];

/// Schedules a full run plays.
const SCHEDULES: u64 = 10_000;

/// Lines of a trace that are printed.
const LINES: usize = 120;

/// A schedule takes milliseconds; one that takes this long stands still.
const LONGEST: Duration = Duration::from_secs(120);

/// Plays schedules on one thread, and keeps which one it is at: one that never ends has to be named, too.
#[derive(Default)]
struct Player {
    at: Mutex<Option<(u64, Instant)>>,
}

impl Player {
    fn play(&self, seed: u64) -> schedule::Report {
        *self.at.lock().unwrap() = Some((seed, Instant::now()));
        let _playing = Playing { player: self, seed };
        schedule::play(seed, false)
    }

    /// The schedule that does not come to its end.
    fn stands_still(&self) -> Option<u64> {
        self.at.lock().unwrap().filter(|(_, since)| since.elapsed() > LONGEST).map(|(seed, _)| seed)
    }
}

/// A schedule that is played; names it if it ends in a panic.
struct Playing<'a> {
    player: &'a Player,
    seed: u64,
}

impl Drop for Playing<'_> {
    fn drop(&mut self) {
        *self.player.at.lock().unwrap() = None;
        if std::thread::panicking() {
            eprintln!("seed {0} ended in a panic; again with: ADJUTANT_SEED={0}", self.seed);
        }
    }
}

/// Ends the whole test when a schedule stands still: no thread can be made to give one up.
fn watch(players: &[Player], is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        if let Some(seed) = players.iter().find_map(Player::stands_still) {
            eprintln!("seed {seed} does not come to its end; again with: ADJUTANT_SEED={seed}");
            std::process::abort();
        }
        std::thread::park_timeout(Duration::from_secs(1));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Panics that are part of a schedule are not worth a message.
fn hush() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() != Some(&"simulated") {
            usual(info);
        }
    }));
}

/// Plays a schedule again, with a trace, and says how it went wrong.
fn explain(seed: u64) -> String {
    let report = schedule::play(seed, true);
    let lines: Vec<_> = report.trace.lines().collect();
    let from = if number("ADJUTANT_SEED").is_some() { 0 } else { lines.len().saturating_sub(LINES) };
    let wrong = report.wrong.join("\n  ");
    format!("seed {seed}:\n  {wrong}\n{}\nagain with: ADJUTANT_SEED={seed}", lines[from..].join("\n"))
}

#[test]
fn every_schedule_keeps_every_promise() {
    hush();
    if let Some(seed) = number("ADJUTANT_SEED") {
        println!("{}", explain(seed));
        let report = schedule::play(seed, false);
        assert!(report.wrong.is_empty(), "seed {seed}: {:#?}", report.wrong);
        return;
    }
    let first = number("ADJUTANT_FIRST_SEED").unwrap_or(0);
    let count = number("ADJUTANT_SCHEDULES").unwrap_or(SCHEDULES);
    let seeds: Vec<u64> = REGRESSIONS.iter().copied().chain(first..first + count).collect();
    let (next, began) = (AtomicU64::new(0), Instant::now());
    let (cover, failed) = (Mutex::new(Cover::default()), Mutex::new(Vec::new()));
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().clamp(1, 8));
    let players: Vec<Player> = (0..threads).map(|_| Player::default()).collect();
    let is_over = AtomicBool::new(false);
    let play = |player: &Player| {
        while let Some(seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let report = player.play(*seed);
            cover.lock().unwrap().merge(report.cover);
            if !report.wrong.is_empty() {
                failed.lock().unwrap().push((*seed, report.wrong));
            }
        }
    };
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&players, &is_over));
        let playing: Vec<_> = players.iter().map(|player| scope.spawn(|| play(player))).collect();
        let ended: Vec<_> = playing.into_iter().map(|playing| playing.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        assert!(ended.iter().all(Result::is_ok), "a schedule panicked");
    });
    let (cover, mut failed) = (cover.into_inner().unwrap(), failed.into_inner().unwrap());
    println!("{} schedules in {:.1} s on {threads} threads\n{cover}", seeds.len(), began.elapsed().as_secs_f64());
    failed.sort();
    for (seed, wrong) in &failed {
        println!("seed {seed}: {}", wrong.first().map_or("", String::as_str));
    }
    let explained = failed.first().map(|(seed, _)| explain(*seed)).unwrap_or_default();
    assert!(failed.is_empty(), "{} of {} schedules failed\n{explained}", failed.len(), seeds.len());
    let missing = cover.missing();
    assert!(count < SCHEDULES || missing.is_empty(), "never reached: {missing:?}");
}

#[test]
fn a_seed_is_a_schedule() {
    hush();
    for seed in 0..40 {
        let (one, two) = (schedule::play(seed, false), schedule::play(seed, true));
        assert_eq!(one.digest, two.digest, "seed {seed} did not play the same twice");
    }
}
