//! The people of the chaos: they ask any node that answers, again and again until somebody does, and never take silence for a no.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::history::{History, ended};
use crate::client::OWNER;
use crate::house::text;

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a stream may be silent: it says that it is still there more often than this.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a run may take through everything that happens to it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Where the nodes are, as far as they are up.
pub(crate) struct Doors {
    addresses: Mutex<Vec<Option<String>>>,
    turn: AtomicUsize,
    /// How long people wait before they look again at a run that waits for somebody.
    pause: Duration,
    /// Answers that never came: each of them may have been done.
    pub(crate) maybes: AtomicUsize,
}

impl Doors {
    pub(crate) fn new(pause: Duration) -> Self {
        Self { addresses: Mutex::default(), turn: AtomicUsize::new(0), pause, maybes: AtomicUsize::new(0) }
    }

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

    /// Sends one request to one node.
    fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
        patience: Duration,
    ) -> Option<TcpStream> {
        let address = self.any()?;
        let mut stream = TcpStream::connect(&address).ok()?;
        stream.set_read_timeout(Some(patience)).ok()?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n");
        head += &format!("authorization: Bearer {OWNER}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        write!(stream, "{head}content-type: application/json\r\n\r\n{body}").ok()?;
        Some(stream)
    }

    /// Asks one node once.
    fn try_ask(&self, method: &str, path: &str, body: Option<&Value>, key: Option<&str>) -> Option<(u16, Value)> {
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        let mut stream = self.send(method, path, &headers, body, ANSWER)?;
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

    /// Follows a run at one node from an event on, as far as it goes; each event that has a number is handed on. Says whether
    /// the stream came to the end of the run.
    fn follow(&self, run: &str, after: u64, mut told: impl FnMut(u64, Value)) -> Option<bool> {
        let (path, after) = (format!("/api/v1/runs/{run}/events"), after.to_string());
        let headers = [("accept", "text/event-stream"), ("last-event-id", after.as_str())];
        let mut reader = BufReader::new(self.send("GET", &path, &headers, None, SILENCE)?);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.split(' ').nth(1)? {
            "200" => {}
            // Nothing will come any more.
            "204" => return Some(true),
            _ => return None,
        }
        let (mut name, mut id, mut over) = (String::new(), None, false);
        loop {
            line.clear();
            // The sizes of chunks are lines of their own among those of the events, and none of them looks like a field.
            if reader.read_line(&mut line).ok()? == 0 {
                return Some(over);
            }
            let field = line.trim_end();
            if let Some(value) = field.strip_prefix("event: ") {
                value.clone_into(&mut name);
            } else if let Some(value) = field.strip_prefix("id: ") {
                id = value.parse().ok();
            } else if let Some(value) = field.strip_prefix("data: ")
                && let (Some(seq), Ok(data)) = (id.take(), serde_json::from_str::<Value>(value))
            {
                over |= name == "interaction_complete";
                told(seq, json!({"event": name, "id": seq, "data": data}));
            }
        }
    }
}

/// What a person wants of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wish {
    /// That it is done; they look again and again.
    Done,
    /// The same; they follow it.
    Followed,
    /// That it is stopped as soon as it is ordered.
    Stopped,
    /// That nothing is done: the question is answered with no.
    Refused,
}

impl Wish {
    /// Every tenth task is of another kind each.
    pub(crate) const fn of(number: usize) -> Self {
        match number % 10 {
            3 => Self::Followed,
            6 => Self::Stopped,
            9 => Self::Refused,
            _ => Self::Done,
        }
    }

    /// The name of a task: whoever decides sees it.
    pub(crate) fn name(self, number: usize) -> String {
        match self {
            Self::Done | Self::Followed | Self::Stopped => format!("round-{number}"),
            Self::Refused => format!("refused-{number}"),
        }
    }

    /// Whether a task may end so, with so many rings of the bell.
    pub(crate) fn allows(self, status: &str, rings: usize) -> bool {
        match self {
            Self::Done | Self::Followed => status == "COMPLETED" && rings == 1,
            Self::Stopped => (status == "CANCELLED" && rings <= 1) || (status == "COMPLETED" && rings == 1),
            Self::Refused => status == "COMPLETED" && rings == 0,
        }
    }
}

/// How long nobody knows whether an order was taken: longer than any node hangs here.
const UNSURE: Duration = Duration::from_secs(20);
/// How far apart clocks are here.
const CLOCKS: Duration = Duration::from_secs(60);

/// The run of an order whose answer never came, if there is one: among all that were made since it was given.
fn look(doors: &Doors, name: &str, since: Duration) -> Option<String> {
    let mut path = "/api/v1/runs?limit=100".to_owned();
    loop {
        let (_, page) = doors.ask("GET", &path, None, None);
        for row in page["data"].as_array()? {
            let made = row["created_at"].as_str()?.parse::<adjutant_core::time::Time>().unwrap().millis();
            if Duration::from_millis(u64::try_from(made).unwrap()) + CLOCKS < since {
                return None;
            }
            let run = text(&row["id"]);
            let (_, events) = doors.ask("GET", &format!("/api/v1/runs/{run}/events?limit=1"), None, None);
            if events["data"].to_string().contains(&format!("\"{name}\"")) {
                return Some(run);
            }
        }
        path = format!("/api/v1/runs?limit=100&cursor={}", page["next_cursor"].as_str()?);
    }
}

/// Gives an order until it is taken, once. Says its run.
pub(crate) fn order(doors: &Doors, name: &str) -> String {
    let order = json!({"agent_id": "keeper", "input": name});
    let given = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    for attempt in 0.. {
        let (key, asked) = (format!("{name}-{attempt}"), Instant::now());
        loop {
            let (status, begun) = doors.ask("POST", "/api/v1/runs", Some(&order), Some(&key));
            match status {
                202 => return text(&begun["id"]),
                // A node died, or hangs, between taking the order and answering: it may have been done.
                409 if asked.elapsed() < UNSURE => std::thread::sleep(Duration::from_millis(500)),
                409 => break,
                _ => panic!("{begun:#}"),
            }
        }
        if let Some(run) = look(doors, name, given) {
            return run;
        }
    }
    unreachable!("somebody takes it, or nobody answers")
}

/// Looks at a run at any node, and takes down how it is. What was seen before counts for what was asked after.
pub(crate) fn status_of(doors: &Doors, history: &History, run: &str, query: &str) -> String {
    let before = history.end_of(run);
    let (_, seen) = doors.ask("GET", &format!("/api/v1/runs/{run}{query}"), None, None);
    let status = text(&seen["status"]);
    history.status(run, &status, before.as_deref());
    status
}

/// Stops a run, as one does who means it. Whoever looks after the answer sees it.
fn stop(doors: &Doors, history: &History, run: &str) {
    let (status, _) = doors.ask("POST", &format!("/api/v1/runs/{run}/cancel"), Some(&json!({})), None);
    if status == 200 {
        history.stopped(run);
        let now = status_of(doors, history, run, "");
        if now != "CANCELLING" && !ended(&now) {
            history.wrong(format!("{run} was stopped, and is {now} after that"));
        }
    }
}

/// Stays with a run to its end. Says how it ended.
pub(crate) fn see_through(doors: &Doors, history: &History, wish: Wish, name: &str, run: &str) -> String {
    history.ordered(name, run);
    if wish == Wish::Stopped {
        stop(doors, history, run);
    }
    if wish == Wish::Followed {
        follow(doors, history, run);
    }
    let (begun, mut last) = (Instant::now(), 0);
    loop {
        let status = status_of(doors, history, run, "?wait=5");
        let (_, page) = doors.ask("GET", &format!("/api/v1/runs/{run}/events?limit=100&after={last}"), None, None);
        last = history.page(run, last, &page);
        if ended(&status) {
            return status;
        }
        assert!(begun.elapsed() < PATIENCE, "{run} is {status} still");
        // A run that waits for a person is told at once; asking again at once would only be in the way.
        std::thread::sleep(doors.pause);
    }
}

/// Follows a run to its end, at one node after the other; each goes on where the one before broke off.
fn follow(doors: &Doors, history: &History, run: &str) {
    let (begun, mut last) = (Instant::now(), 0);
    loop {
        let followed = doors.follow(run, last, |seq, event| last = history.told(run, last, seq, &event));
        if followed == Some(true) {
            return history.followed(run);
        }
        history.hops.fetch_add(1, Ordering::Relaxed);
        assert!(begun.elapsed() < PATIENCE, "the stream of {run} never comes to its end");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What was decided.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Decided {
    pub(crate) approved: usize,
    pub(crate) refused: usize,
    pub(crate) doubts: usize,
}

/// Decides what waits: answers what is asked as the task wants it, and says of what is in doubt what the world saw. Of several, each
/// begins at another place: they meet now and then, and do not do everything together.
pub(crate) fn decide(
    doors: &Doors,
    history: &History,
    (number, all): (usize, usize),
    has_rung: impl Fn(&str) -> bool,
) -> Decided {
    let mut decided = Decided::default();
    let before = history.settled();
    let (_, inbox) = doors.ask("GET", "/api/v1/approvals?status=pending&limit=100", None, None);
    let waiting = inbox["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (first, rest) = waiting.split_at(waiting.len() * number / all);
    for item in rest.iter().chain(first) {
        let id = text(&item["id"]);
        if before.contains(&id) {
            history.wrong(format!("{id} waits again, and was answered before"));
        }
        let (_, shown) = doors.ask("GET", &format!("/api/v1/approvals/{id}"), None, None);
        let name = shown["context_summary"].as_str().unwrap_or_default();
        if item["kind"] == "in_doubt" {
            let run = text(&item["run_id"]);
            let outcome = if has_rung(name) { "happened" } else { "run" };
            let said = json!({"call_id": item["call_id"], "outcome": outcome});
            let (status, _) = doors.ask("POST", &format!("/api/v1/runs/{run}/in-doubt"), Some(&said), None);
            if status == 200 {
                history.cleared(&id);
                settled_as(doors, history, &id, "approved");
                decided.doubts += 1;
            }
            continue;
        }
        let (word, becomes) =
            if name.starts_with("refused") { ("reject", "rejected") } else { ("approve", "approved") };
        let said = json!({"decision": word});
        let (status, _) = doors.ask("POST", &format!("/api/v1/approvals/{id}/decision"), Some(&said), None);
        if status == 200 {
            history.taken(&id, becomes);
            settled_as(doors, history, &id, becomes);
            *(if word == "approve" { &mut decided.approved } else { &mut decided.refused }) += 1;
        }
    }
    decided
}

/// An answer was taken: whoever looks after that, at any node, sees it.
fn settled_as(doors: &Doors, history: &History, question: &str, becomes: &str) {
    let (_, now) = doors.ask("GET", &format!("/api/v1/approvals/{question}"), None, None);
    if now["status"] != becomes {
        history.wrong(format!("{question} was {becomes}, and is {} after that", now["status"]));
    }
}
