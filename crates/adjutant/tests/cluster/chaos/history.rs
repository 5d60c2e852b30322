//! What clients saw, and whether it can be true: nothing that a node once said may be missing from, or different in, what is there
//! in the end, or what any node says to a question that was asked after it. An answer that never came proves nothing in either
//! direction.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

use serde_json::Value;

use super::people::Doors;

/// How many compare at a time.
const READERS: usize = 4;

/// Everything that was answered about one run.
#[derive(Default)]
struct Seen {
    /// The order it was taken for, as it was answered.
    orders: Vec<String>,
    /// What was shown of its log, by its number: a fingerprint, because there are many.
    events: BTreeMap<u64, u64>,
    /// What somebody who followed it was told, and whether that was all of it.
    told: BTreeSet<u64>,
    followed: bool,
    /// The ends that were shown.
    ends: Vec<String>,
    /// Somebody was told that it is being stopped.
    stopped: bool,
}

/// Whether a run of this status is over.
pub(crate) fn ended(status: &str) -> bool {
    matches!(status, "COMPLETED" | "FAILED" | "CANCELLED")
}

/// Everything that was answered.
#[derive(Default)]
pub(crate) struct History {
    runs: Mutex<BTreeMap<String, Seen>>,
    /// What became of the questions whose answer was taken, and how often one was.
    taken: Mutex<BTreeMap<String, (&'static str, usize)>>,
    /// Questions about calls in doubt whose answer was taken. Two may answer one: the later answer is about the next attempt then.
    cleared: Mutex<BTreeSet<String>>,
    /// What could not be true the moment it was seen.
    wrong: Mutex<Vec<String>>,
    /// How often somebody who followed a run had to go on at another node.
    pub(crate) hops: AtomicUsize,
}

fn fingerprint(event: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.to_string().hash(&mut hasher);
    hasher.finish()
}

impl History {
    fn of(&self, run: &str, note: impl FnOnce(&mut Seen)) {
        note(self.runs.lock().unwrap().entry(run.to_owned()).or_default());
    }

    /// Something that cannot be.
    pub(crate) fn wrong(&self, what: String) {
        self.wrong.lock().unwrap().push(what);
    }

    pub(crate) fn ordered(&self, name: &str, run: &str) {
        self.of(run, |seen| seen.orders.push(name.to_owned()));
    }

    pub(crate) fn taken(&self, question: &str, becomes: &'static str) {
        self.taken.lock().unwrap().entry(question.to_owned()).or_insert((becomes, 0)).1 += 1;
    }

    /// The questions whose answers were taken so far: none of them waits for whoever looks from now on.
    pub(crate) fn settled(&self) -> BTreeSet<String> {
        let (taken, cleared) = (self.taken.lock().unwrap(), self.cleared.lock().unwrap());
        taken.keys().chain(cleared.iter()).cloned().collect()
    }

    /// Somebody said what became of a call in doubt.
    pub(crate) fn cleared(&self, question: &str) {
        self.cleared.lock().unwrap().insert(question.to_owned());
    }

    /// Somebody was told that a run is being stopped.
    pub(crate) fn stopped(&self, run: &str) {
        self.of(run, |seen| seen.stopped = true);
    }

    /// The end of a run, if anybody has seen it by now.
    pub(crate) fn end_of(&self, run: &str) -> Option<String> {
        self.runs.lock().unwrap().get(run).and_then(|seen| seen.ends.first().cloned())
    }

    /// A status of a run, and the end that was known to somebody before it was asked for: after an end there is no other.
    pub(crate) fn status(&self, run: &str, status: &str, before: Option<&str>) {
        if let Some(before) = before.filter(|before| *before != status) {
            self.wrong(format!("{run} was {before} and is {status}"));
        }
        if ended(status) {
            self.of(run, |seen| seen.ends.push(status.to_owned()));
        }
    }

    fn shown(&self, run: &str, seq: u64, event: &Value) {
        let print = fingerprint(event);
        let mut before = None;
        self.of(run, |seen| before = seen.events.insert(seq, print));
        if before.is_some_and(|before| before != print) {
            self.wrong(format!("{run} showed two different events as {seq}"));
        }
    }

    /// A page of a run's log. Says the number of the last event.
    pub(crate) fn page(&self, run: &str, after: u64, page: &Value) -> u64 {
        let mut last = after;
        for event in page["data"].as_array().into_iter().flatten() {
            let seq = event["data"]["seq"].as_u64().unwrap();
            if seq <= last {
                self.wrong(format!("{run} showed {seq} after {last}"));
            }
            last = seq;
            self.shown(run, seq, event);
        }
        last
    }

    /// An event of a stream. Says its number.
    pub(crate) fn told(&self, run: &str, after: u64, seq: u64, event: &Value) -> u64 {
        if seq <= after {
            self.wrong(format!("the stream of {run} told {seq} after {after}"));
        }
        self.shown(run, seq, event);
        self.of(run, |seen| {
            seen.told.insert(seq);
        });
        seq
    }

    /// Somebody followed a run to its end.
    pub(crate) fn followed(&self, run: &str) {
        self.of(run, |seen| seen.followed = true);
    }

    /// How many events were seen by somebody before the end.
    pub(crate) fn seen(&self) -> usize {
        self.runs.lock().unwrap().values().map(|seen| seen.events.len()).sum()
    }

    /// How many runs were followed to their end.
    pub(crate) fn streams(&self) -> usize {
        self.runs.lock().unwrap().values().filter(|seen| seen.followed).count()
    }

    /// Compares what was seen with what is there. Says what cannot be.
    pub(crate) fn check(&self, doors: &Doors) -> Vec<String> {
        let mut wrong = self.wrong.lock().unwrap().clone();
        for question in self.cleared.lock().unwrap().iter() {
            let (_, now) = doors.ask("GET", &format!("/api/v1/approvals/{question}"), None, None);
            if now["status"] != "approved" {
                wrong.push(format!("{question} was answered, and is {}", now["status"]));
            }
        }
        let (runs, taken) = (self.runs.lock().unwrap(), self.taken.lock().unwrap());
        let (runs, taken) = (runs.iter().collect::<Vec<_>>(), taken.iter().collect::<Vec<_>>());
        let part = |all: usize| all.div_ceil(READERS).max(1);
        std::thread::scope(|scope| {
            let runs = runs.chunks(part(runs.len())).map(|part| {
                scope.spawn(move || part.iter().flat_map(|(run, seen)| seen.check(doors, run)).collect::<Vec<_>>())
            });
            let taken = taken.chunks(part(taken.len())).map(|part| {
                scope.spawn(move || {
                    let check = |(question, (becomes, times)): &(&String, &(&str, usize))| {
                        let (_, now) = doors.ask("GET", &format!("/api/v1/approvals/{question}"), None, None);
                        let true_ = *times == 1 && now["status"] == **becomes;
                        (!true_).then(|| format!("{question} was {becomes} {times} times and is {}", now["status"]))
                    };
                    part.iter().filter_map(check).collect::<Vec<_>>()
                })
            });
            let checks: Vec<_> = runs.chain(taken).collect();
            wrong.extend(checks.into_iter().flat_map(|check| check.join().unwrap()));
        });
        wrong
    }
}

impl Seen {
    fn check(&self, doors: &Doors, run: &str) -> Vec<String> {
        let (mut wrong, log) = (Vec::new(), whole_log(doors, run));
        let first = log.values().next().cloned().unwrap_or_default();
        for name in self.orders.iter().filter(|name| first["data"]["user_message"] != ***name) {
            wrong.push(format!("the order {name} was taken as {run}, which is {first}"));
        }
        for (seq, print) in &self.events {
            if log.get(seq).map(fingerprint) != Some(*print) {
                wrong.push(format!("event {seq} of {run} was shown and is not there: {:?}", log.get(seq)));
            }
        }
        if self.followed {
            let missed: Vec<_> = log.keys().filter(|seq| !self.told.contains(seq)).collect();
            if !missed.is_empty() {
                wrong.push(format!("whoever followed {run} was not told of {missed:?}"));
            }
        }
        let (_, now) = doors.ask("GET", &format!("/api/v1/runs/{run}"), None, None);
        // Who was told that it is being stopped may have come too late for that, but nothing else came of it.
        if self.stopped && now["status"] == "FAILED" {
            wrong.push(format!("{run} was stopped, and is {}", now["status"]));
        }
        for status in self.ends.iter().filter(|status| now["status"] != ***status) {
            wrong.push(format!("{run} was shown as {status} and is {}", now["status"]));
        }
        wrong
    }
}

fn whole_log(doors: &Doors, run: &str) -> BTreeMap<u64, Value> {
    let (mut log, mut after) = (BTreeMap::new(), 0);
    loop {
        let (_, page) = doors.ask("GET", &format!("/api/v1/runs/{run}/events?limit=100&after={after}"), None, None);
        let before = log.len();
        for event in page["data"].as_array().into_iter().flatten() {
            after = event["data"]["seq"].as_u64().unwrap();
            log.insert(after, event.clone());
        }
        if log.len() == before || page["has_more"] != true {
            return log;
        }
    }
}
