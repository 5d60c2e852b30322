//! What this process has done, in numbers: counted where it has become durable, read by whoever watches over it. They count
//! and name no person.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::{EndStatus, Event};

use crate::engine::lock;

/// Upper ends of the buckets of times, in milliseconds.
pub const BUCKETS_MS: [u64; 9] = [1, 5, 10, 25, 100, 250, 1000, 5000, 30_000];
/// What calls of tools that do not exist are counted under: a model may write any name.
const OTHER: &str = "other";

/// How long something took, over and over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// How many took no longer than the end of each bucket.
    pub buckets: [u64; BUCKETS_MS.len()],
    /// How many there were.
    pub count: u64,
    /// How long all of them took.
    pub sum: Duration,
}

impl Times {
    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        for (bucket, most) in self.buckets.iter_mut().zip(BUCKETS_MS) {
            *bucket += u64::from(took <= Duration::from_millis(most));
        }
        self.count += 1;
        self.sum += took;
    }
}

/// One tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNumbers {
    /// Calls that did what they were to do.
    pub done: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls that never ran: denied, rejected, given up.
    pub refused: u64,
    /// How long those took that ran.
    pub times: Times,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Runs that ended, by how.
    pub ended: BTreeMap<&'static str, u64>,
    /// Model turns that were answered.
    pub steps: u64,
    /// Model calls that failed.
    pub model_failures: u64,
    /// How long answers took.
    pub model_times: Times,
    /// Tokens.
    pub tokens: TokenUsage,
    /// Money.
    pub cost: MicroUsd,
    /// Tool calls, by tool.
    pub tools: BTreeMap<String, ToolNumbers>,
    /// How long commits took.
    pub commits: Times,
}

/// Where it is counted.
#[derive(Debug, Default)]
pub struct Meter {
    /// The tools that are counted by name.
    tools: BTreeSet<String>,
    numbers: Mutex<Numbers>,
}

impl Meter {
    /// Nothing counted yet, of these tools.
    pub(crate) fn new(tools: impl IntoIterator<Item = String>) -> Self {
        Self { tools: tools.into_iter().collect(), numbers: Mutex::default() }
    }

    /// The numbers as they are now.
    #[must_use]
    pub fn read(&self) -> Numbers {
        lock(&self.numbers).clone()
    }

    /// Counts a model call outside of runs that has just become durable: what it used, if it was answered.
    pub(crate) fn called(&self, answered: Option<(TokenUsage, Option<MicroUsd>)>) {
        let mut numbers = lock(&self.numbers);
        match answered {
            Some((usage, cost)) => {
                numbers.tokens += usage;
                numbers.cost += cost.unwrap_or_default();
            }
            None => numbers.model_failures += 1,
        }
    }

    /// Counts events that have just become durable.
    pub(crate) fn committed(&self, events: &Tally, took: Duration) {
        let mut numbers = lock(&self.numbers);
        numbers.commits.add(took);
        for counted in &events.0 {
            numbers.count(counted, &self.tools);
        }
    }
}

impl Numbers {
    fn count(&mut self, counted: &Counted, known: &BTreeSet<String>) {
        match counted {
            Counted::Answered { usage, cost, ms } => {
                self.steps += 1;
                self.tokens += *usage;
                self.cost += cost.unwrap_or_default();
                self.model_times.add(Duration::from_millis(*ms));
            }
            Counted::Failed => self.model_failures += 1,
            Counted::Call { tool, is_error, allowed, ms } => {
                let name = known.get(tool).map_or(OTHER, String::as_str);
                let numbers = self.tools.entry(name.to_owned()).or_default();
                match (allowed, is_error) {
                    (false, _) => numbers.refused += 1,
                    (true, true) => numbers.failed += 1,
                    (true, false) => numbers.done += 1,
                }
                if *allowed {
                    numbers.times.add(Duration::from_millis(*ms));
                }
            }
            Counted::Ended(status) => {
                let word = match status {
                    EndStatus::Completed => "COMPLETED",
                    EndStatus::Failed => "FAILED",
                    EndStatus::Cancelled => "CANCELLED",
                };
                *self.ended.entry(word).or_default() += 1;
            }
        }
    }
}

/// What there is to count among events that wait to become durable.
#[derive(Debug, Default)]
pub(crate) struct Tally(Vec<Counted>);

#[derive(Debug)]
enum Counted {
    Answered { usage: TokenUsage, cost: Option<MicroUsd>, ms: u64 },
    Failed,
    Call { tool: String, is_error: bool, allowed: bool, ms: u64 },
    Ended(EndStatus),
}

impl<'a> FromIterator<&'a Event> for Tally {
    fn from_iter<I: IntoIterator<Item = &'a Event>>(events: I) -> Self {
        let counted = |event: &Event| match event {
            Event::ModelAnswered(body) => Some(Counted::Answered { usage: body.usage, cost: body.cost, ms: body.ms }),
            Event::ModelFailed(_) => Some(Counted::Failed),
            Event::CallEnded(body) => Some(Counted::Call {
                tool: body.tool.clone(),
                is_error: body.is_error,
                allowed: body.allowed,
                ms: body.ms,
            }),
            Event::RunEnded(body) => Some(Counted::Ended(body.status)),
            _ => None,
        };
        Self(events.into_iter().filter_map(counted).collect())
    }
}
