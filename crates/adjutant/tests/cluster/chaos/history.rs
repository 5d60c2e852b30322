//! What clients saw, and whether it can be true: nothing that a node once said may be missing from, or different in, what is there
//! in the end. An answer that never came proves nothing in either direction.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use super::people::Doors;

/// Everything that was answered.
#[derive(Default)]
pub(crate) struct History {
    /// The run that each order became, as it was answered.
    orders: Mutex<Vec<(String, String)>>,
    /// What was shown of the log of each run, by its number.
    events: Mutex<BTreeMap<(String, u64), Value>>,
    /// The yeses that were taken, by question.
    taken: Mutex<BTreeMap<String, usize>>,
    /// The ends that were shown.
    ends: Mutex<Vec<(String, String)>>,
    /// What could not be true the moment it was seen.
    wrong: Mutex<Vec<String>>,
}

impl History {
    pub(crate) fn ordered(&self, name: &str, run: &str) {
        self.orders.lock().unwrap().push((name.to_owned(), run.to_owned()));
    }

    pub(crate) fn taken(&self, question: &str) {
        *self.taken.lock().unwrap().entry(question.to_owned()).or_default() += 1;
    }

    /// A status of a run, by whoever stays with it: after an end there is no other.
    pub(crate) fn status(&self, run: &str, status: &str, before: &str) {
        let ended = |status: &str| matches!(status, "COMPLETED" | "FAILED" | "CANCELLED");
        if ended(before) && status != before {
            self.wrong.lock().unwrap().push(format!("{run} was {before} and is {status}"));
        }
        if ended(status) {
            self.ends.lock().unwrap().push((run.to_owned(), status.to_owned()));
        }
    }

    /// A page of a run's log. Says the number of the last event.
    pub(crate) fn page(&self, run: &str, after: u64, page: &Value) -> u64 {
        let (mut seen, mut last) = (self.events.lock().unwrap(), after);
        for event in page["data"].as_array().into_iter().flatten() {
            let seq = event["data"]["seq"].as_u64().unwrap();
            if seq <= last {
                self.wrong.lock().unwrap().push(format!("{run} showed {seq} after {last}"));
            }
            last = seq;
            let before = seen.insert((run.to_owned(), seq), event.clone());
            if before.is_some_and(|before| before != *event) {
                self.wrong.lock().unwrap().push(format!("{run} showed two different events as {seq}"));
            }
        }
        last
    }

    /// How many events were seen by somebody before the end.
    pub(crate) fn seen(&self) -> usize {
        self.events.lock().unwrap().len()
    }

    /// Compares what was seen with what is there. Says what cannot be.
    pub(crate) fn check(&self, doors: &Doors) -> Vec<String> {
        let mut wrong = self.wrong.lock().unwrap().clone();
        let mut logs: BTreeMap<String, BTreeMap<u64, Value>> = BTreeMap::new();
        let mut log = |run: &str| logs.entry(run.to_owned()).or_insert_with(|| whole_log(doors, run)).clone();
        for (name, run) in self.orders.lock().unwrap().iter() {
            let first = log(run).values().next().cloned().unwrap_or_default();
            if first["data"]["user_message"] != **name {
                wrong.push(format!("the order {name} was taken as {run}, which is {first}"));
            }
        }
        for ((run, seq), event) in self.events.lock().unwrap().iter() {
            if log(run).get(seq) != Some(event) {
                wrong.push(format!("event {seq} of {run} was shown and is not there: {event}"));
            }
        }
        for (run, status) in self.ends.lock().unwrap().iter() {
            let (_, now) = doors.ask("GET", &format!("/api/v1/runs/{run}"), None, None);
            if now["status"] != **status {
                wrong.push(format!("{run} was shown as {status} and is {}", now["status"]));
            }
        }
        for (question, times) in self.taken.lock().unwrap().iter() {
            let (_, now) = doors.ask("GET", &format!("/api/v1/approvals/{question}"), None, None);
            if *times > 1 || now["status"] != "approved" {
                wrong.push(format!("{question} was approved {times} times and is {}", now["status"]));
            }
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
