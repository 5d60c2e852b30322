//! A server that is full: it says so at once, says when to come back, and does nothing of what it refused.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::client::{Client, OWNER, Server};
use super::flow::{SCRIPT, scripted};
use crate::house::{House, signal, text};

const SLOW: &str = "- delay_ms: 600000\n  text: too late\n";

fn small(house: House, limit: (&str, &str)) -> Server {
    Server::start_with(house, &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), limit])
}

#[test]
fn a_full_server_refuses_one_more_stream_and_says_when_to_come_back() {
    let server = small(House::new(), ("ADJUTANT_MAX_STREAMS", "1"));
    let owner = server.owner();
    let mut first = owner.follow("GET", "/api/v1/events", None);
    assert_eq!(first.next().unwrap().name, "reread");
    let refused = owner.get("/api/v1/events");
    refused.refuses(503, "overloaded");
    assert_eq!(refused.headers["retry-after"], "1");
    // Whoever asks how it is gets an answer, and so does everything that needs no stream.
    server.nobody().get("/readyz").expect(200);
    owner.get("/api/v1/me").expect(200);
}

#[test]
fn a_full_server_starts_nothing_that_it_could_not_tell_of() {
    let server = small(scripted(SCRIPT), ("ADJUTANT_MAX_STREAMS", "1"));
    let owner = server.owner();
    let past = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    let (run, chat) = (text(&past["id"]), text(&past["chat_id"]));
    // The last request that waited leaves its place a moment after its answer.
    let mut taken = loop {
        let mut stream = owner.follow("GET", "/api/v1/events", None);
        if stream.next().is_some() {
            break stream;
        }
    };
    let history = json!([{"role": "user", "content": "Before."}]);
    let new = json!({"agent_id": "guide", "input": "look"});
    let remembering = json!({"agent_id": "guide", "input": "look", "history": history});
    let say = json!({"user_message": "look"});
    let edit = json!({"new_user_message": "look"});
    let streaming = owner.with("accept", "text/event-stream");
    for (client, path, body) in [
        (&streaming, "/api/v1/runs".to_owned(), &new),
        (&owner, "/api/v1/runs?wait=60".to_owned(), &new),
        (&owner, "/api/v1/runs?wait=60".to_owned(), &remembering),
        (&streaming.with("idempotency-key", "one"), "/api/v1/runs".to_owned(), &new),
        (&streaming, format!("/api/v1/chats/{chat}/runs"), &say),
        (&owner, "/chats/mine/interactions".to_owned(), &say),
        (&owner, format!("/chats/{chat}/interactions/{run}/edit"), &edit),
        (&owner, format!("/api/v1/sessions/{chat}/message"), &json!({"content": "look"})),
        (&streaming, format!("/api/v1/runs/{run}/edit"), &edit),
        (&owner, format!("/api/v1/runs/{run}/fork?wait=60"), &json!({})),
    ] {
        client.post(&path, body.clone()).refuses(503, "overloaded");
    }
    let count = |path: &str| owner.get(path).expect(200)["data"].as_array().unwrap().len();
    assert_eq!((count("/api/v1/runs?superseded=true"), count("/api/v1/chats")), (1, 1));
    // What needs no place is started as ever.
    owner.post("/api/v1/runs", new).expect(202);
    assert!(taken.any(|event| event.name == "run"));
}

#[test]
fn a_request_that_waits_for_a_run_takes_no_turn_from_others() {
    let house = House::new();
    house.script(SLOW);
    let server = small(house, ("ADJUTANT_MAX_REQUESTS", "1"));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "hello"})).expect(202);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    let waiting = std::thread::spawn({
        let (owner, path) = (owner.clone(), path.clone());
        move || owner.get(&format!("{path}?wait=60")).expect(200)
    });
    // The one turn there is serves others while somebody waits: else this would be answered after the minute.
    owner.get("/api/v1/me").expect(200);
    owner.post(&format!("{path}/cancel"), json!({})).expect(200);
    assert_eq!(waiting.join().unwrap()["status"], "CANCELLED");
}

#[test]
fn a_server_whose_log_nobody_reads_goes_on_counts_what_it_leaves_out_and_stops_when_told() {
    let house = House::new();
    let mut command = house.command(&["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    command.env("ADJUTANT_LOG", "trace").env("ADJUTANT_BOOTSTRAP_TOKEN", OWNER);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let client = Client::at(line.trim().strip_prefix("adjutant ready on http://").unwrap());
    let lost = || {
        let numbers = client.get("/metrics").text;
        let found = numbers.lines().find_map(|line| line.strip_prefix("adjutant_log_lines_lost_total "));
        found.unwrap_or_else(|| panic!("{numbers}")).parse::<u64>().unwrap()
    };
    // Nothing takes anything out of the pipe, and every answer makes more lines.
    while lost() == 0 {}
    signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
