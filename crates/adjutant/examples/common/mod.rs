//! What the programs share that measure a server: the server itself, in a process of its own, and how things are played and told.

mod process;

use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;

pub(crate) use process::{Process, Setup};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// More than anybody does here: no rate is what is measured.
pub(crate) const MANY: u32 = 100_000_000;

#[allow(clippy::print_stdout, reason = "a table for a person is what a bench is for")]
pub(crate) fn println(line: &str) {
    println!("{line}");
}

/// The parts that failed: they do not stop those after them.
#[derive(Default)]
pub(crate) struct Failed(Vec<String>);

impl Failed {
    pub(crate) fn note(&mut self, part: &str, outcome: Outcome) {
        if let Err(error) = outcome {
            println(&format!("{part} failed: {error}"));
            self.0.push(part.to_owned());
        }
    }

    pub(crate) fn end(self) -> Outcome {
        if self.0.is_empty() { Ok(()) } else { Err(format!("failed: {}", self.0.join(", ")).into()) }
    }
}

/// The middle one.
pub(crate) fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Milliseconds since a moment.
pub(crate) fn ms(from: Instant) -> f64 {
    from.elapsed().as_secs_f64() * 1e3
}

/// Plays so many at a time; says how many a second.
pub(crate) async fn play<F: Future<Output = Outcome>>(
    at_once: usize,
    count: usize,
    one: impl Fn(usize) -> F,
) -> Outcome<f64> {
    let mut playing = FuturesUnordered::new();
    let (mut started, from) = (0, Instant::now());
    while started < count || !playing.is_empty() {
        while started < count && playing.len() < at_once {
            playing.push(one(started));
            started += 1;
        }
        if let Some(done) = playing.next().await {
            done?;
        }
    }
    Ok(count as f64 / from.elapsed().as_secs_f64())
}

/// A stream whose run has to have ended with an answer: how it ended is in the last event.
pub(crate) fn told(stream: &str) -> Outcome {
    let last = stream.split("\n\n").find(|event| event.contains("event: interaction_complete"));
    let data = last.and_then(|event| event.lines().find_map(|line| line.strip_prefix("data: ")));
    let end: Value = serde_json::from_str(data.ok_or_else(|| format!("a stream ended early: {stream}"))?)?;
    if end["status"] == "COMPLETED" { Ok(()) } else { Err(format!("a run did not end well: {end}").into()) }
}

/// A run that has to have ended with an answer, and so many calls that did what they were for: one that was refused costs less,
/// and measuring it would flatter.
pub(crate) fn ended(run: &Value, calls: usize) -> Outcome {
    let actions = run["actions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let done = actions.iter().filter(|action| action["is_error"] == false).count();
    if run["status"] == "COMPLETED" && done == calls && actions.len() == calls {
        Ok(())
    } else {
        Err(format!("a run did not end well, with {done} of {calls} calls: {run}").into())
    }
}
