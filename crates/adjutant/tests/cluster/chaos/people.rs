//! The people of the chaos: they ask any node that answers, again and again until somebody does, and never take silence for a no.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::history::History;
use crate::client::OWNER;
use crate::house::text;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a run may take through everything that happens to it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Where the nodes are, as far as they are up.
#[derive(Default)]
pub(crate) struct Doors {
    addresses: Mutex<Vec<Option<String>>>,
    turn: AtomicUsize,
    /// Answers that never came: each of them may have been done.
    pub(crate) maybes: AtomicUsize,
}

impl Doors {
    pub(crate) fn open(&self, node: usize, address: Option<String>) {
        let mut addresses = self.addresses.lock().unwrap();
        if addresses.len() <= node {
            addresses.resize(node + 1, None);
        }
        addresses[node] = address;
    }

    fn any(&self) -> Option<String> {
        let addresses = self.addresses.lock().unwrap();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        addresses.get(turn % addresses.len().max(1)).cloned().flatten()
    }

    /// Asks one node once.
    fn try_ask(&self, method: &str, path: &str, body: Option<&Value>, key: Option<&str>) -> Option<(u16, Value)> {
        let address = self.any()?;
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(ANSWER)).ok()?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        head += &format!("authorization: Bearer {OWNER}\r\ncontent-length: {}\r\n", body.len());
        head += &key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        write!(stream, "{head}content-type: application/json\r\n\r\n{body}").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, serde_json::from_str(body).unwrap_or_default()))
    }

    /// Asks until a node gives an answer that is one: not that it, or the database, is unavailable.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>, key: Option<&str>) -> (u16, Value) {
        let begun = Instant::now();
        loop {
            match self.try_ask(method, path, body, key) {
                Some((status, answer)) if status < 500 && status != 429 => {
                    return (status, answer);
                }
                Some(_) | None => {
                    self.maybes.fetch_add(1, Ordering::Relaxed);
                    assert!(begun.elapsed() < PATIENCE, "nobody answers {method} {path}");
                    std::thread::sleep(Duration::from_millis(100));
                }
            }
        }
    }
}

/// How long nobody knows whether an order was taken: longer than any node hangs here.
const UNSURE: Duration = Duration::from_secs(20);

/// The run of an order whose answer never came, if there is one.
fn look(doors: &Doors, name: &str) -> Option<String> {
    let (_, page) = doors.ask("GET", "/api/v1/runs?limit=100", None, None);
    for row in page["data"].as_array()? {
        let run = text(&row["id"]);
        let (_, events) = doors.ask("GET", &format!("/api/v1/runs/{run}/events?limit=1"), None, None);
        if events["data"].to_string().contains(&format!("\"{name}\"")) {
            return Some(run);
        }
    }
    None
}

/// Starts a run and stays with it to its end. Says its id and how it ended.
pub(crate) fn give_task(doors: &Doors, history: &History, name: &str) -> (String, String) {
    let order = json!({"agent_id": "keeper", "input": name});
    let asked = Instant::now();
    let run = loop {
        let (status, begun) = doors.ask("POST", "/api/v1/runs", Some(&order), Some(name));
        match status {
            202 => break text(&begun["id"]),
            // A node died, or hangs, between taking the order and answering: it may have been done.
            409 if asked.elapsed() < UNSURE => std::thread::sleep(Duration::from_millis(500)),
            409 => match look(doors, name) {
                Some(run) => break run,
                None => {
                    let again = format!("{name}-again");
                    let (_, begun) = doors.ask("POST", "/api/v1/runs", Some(&order), Some(&again));
                    break text(&begun["id"]);
                }
            },
            _ => panic!("{begun:#}"),
        }
    };
    history.ordered(name, &run);
    let (begun, mut last, mut before) = (Instant::now(), 0, String::new());
    loop {
        let (_, seen) = doors.ask("GET", &format!("/api/v1/runs/{run}?wait=5"), None, None);
        let status = text(&seen["status"]);
        history.status(&run, &status, &before);
        before.clone_from(&status);
        let (_, page) = doors.ask("GET", &format!("/api/v1/runs/{run}/events?limit=100&after={last}"), None, None);
        last = history.page(&run, last, &page);
        if matches!(status.as_str(), "COMPLETED" | "FAILED" | "CANCELLED") {
            return (run, status);
        }
        assert!(begun.elapsed() < PATIENCE, "{run} is {status} still");
        // A run that waits for a person is told at once; asking again at once would only be in the way.
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Decides what waits: approves what is asked, and says of what is in doubt what the world saw. Says of how many.
pub(crate) fn decide(doors: &Doors, history: &History, has_rung: impl Fn(&str) -> bool) -> (usize, usize) {
    let (mut approved, mut doubts) = (0, 0);
    let (_, inbox) = doors.ask("GET", "/api/v1/approvals?status=pending&limit=100", None, None);
    for item in inbox["data"].as_array().into_iter().flatten() {
        let id = text(&item["id"]);
        if item["kind"] == "in_doubt" {
            let (_, shown) = doors.ask("GET", &format!("/api/v1/approvals/{id}"), None, None);
            let run = text(&item["run_id"]);
            let outcome =
                if has_rung(shown["context_summary"].as_str().unwrap_or_default()) { "happened" } else { "run" };
            let said = json!({"call_id": item["call_id"], "outcome": outcome});
            let (status, _) = doors.ask("POST", &format!("/api/v1/runs/{run}/in-doubt"), Some(&said), None);
            doubts += usize::from(status == 200);
        } else {
            let yes = json!({"decision": "approve"});
            let (status, _) = doors.ask("POST", &format!("/api/v1/approvals/{id}/decision"), Some(&yes), None);
            if status == 200 {
                history.taken(&id);
                approved += 1;
            }
        }
    }
    (approved, doubts)
}
