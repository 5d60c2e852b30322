//! Many readers at once: of one run, and of a run each. `ADJUTANT_LONG` makes it a thousand.

use std::thread::{self, JoinHandle};
use std::time::Instant;

use serde_json::{Value, json};

use super::client::{Client, OWNER, Server};
use super::flow::{SCRIPT, scripted};
use crate::house::text;

/// How many come.
fn crowd() -> usize {
    if std::env::var_os("ADJUTANT_LONG").is_some() { 1000 } else { 24 }
}

fn server() -> Server {
    Server::start_with(
        scripted(SCRIPT),
        &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("ADJUTANT_USER_CALLS_PER_MINUTE", "100000")],
    )
}

/// An agent that may be asked as often as a crowd asks.
fn agent(owner: &Client) -> String {
    let body = json!({
        "name": "Crowd", "can_create": true, "scope": {"notebooks": ["*"], "folders": ["/"]},
        "max_requests_per_hour": 100_000, "max_concurrent_runs": 1000, "budget": {"run_usd": null, "month_usd": null},
    });
    text(&owner.post("/api/v1/agents", body).expect(201)["id"])
}

/// Somebody of the crowd; a thousand of them need small stacks.
fn somebody<T: Send + 'static>(does: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().stack_size(256 * 1024).spawn(does).unwrap()
}

#[test]
fn everybody_who_follows_one_run_gets_all_of_it_beside_one_who_reads_nothing() {
    let server = server();
    let owner = server.owner();
    let agent = agent(&owner);
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": agent, "input": "write"})).expect(200);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    let began = Instant::now();
    let stuck = owner.follow("GET", &format!("{path}/events"), None);
    let readers: Vec<_> = (0..crowd())
        .map(|_| {
            let (owner, path) = (owner.clone(), format!("{path}/events"));
            somebody(move || owner.follow("GET", &path, None).filter_map(|sent| sent.id).collect::<Vec<u64>>())
        })
        .collect();
    let approval = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&approval, json!({"decision": "approve"})).expect(200);
    let read: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
    let log = owner.get(&format!("{path}/events?limit=200")).expect(200);
    let log: Vec<u64> = log["data"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert!(read.iter().all(|ids| *ids == log), "somebody read something else than {log:?}");
    println!("{} readers of one run: {:?}", read.len(), began.elapsed());
    // Whoever begins to read late gets everything, too.
    assert_eq!(stuck.filter_map(|sent| sent.id).collect::<Vec<u64>>(), log);
}

#[test]
fn as_many_runs_with_a_reader_each_all_come_to_their_end() {
    let server = server();
    let owner = server.owner();
    let agent = agent(&owner);
    let began = Instant::now();
    let readers: Vec<_> = (0..crowd())
        .map(|_| {
            let (owner, body) = (owner.clone(), json!({"agent_id": agent, "input": "hello"}));
            somebody(move || owner.follow("POST", "/api/v1/runs", Some(&body)).last().map(|last| last.data))
        })
        .collect();
    let ends: Vec<Value> = readers.into_iter().map(|reader| reader.join().unwrap().unwrap_or_default()).collect();
    for end in &ends {
        assert_eq!((&end["status"], &end["result"]), (&json!("COMPLETED"), &json!("Good day.")), "{end}");
    }
    println!("{} runs with a reader each: {:?}", ends.len(), began.elapsed());
}

#[test]
fn a_reader_that_takes_nothing_is_let_go_and_comes_back_where_it_was() {
    // More than two kernels keep for somebody who does not read.
    let script = format!("- text: {}\n", "a".repeat(2 * 1024 * 1024));
    let env = [("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("ADJUTANT_STREAM_PATIENCE", "1s")];
    let mut server = Server::start_with(scripted(&script), &env);
    let owner = server.owner();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    assert_eq!(run["status"], "COMPLETED");
    let path = format!("/api/v1/runs/{}/events", text(&run["id"]));
    let mut stuck = owner.follow("GET", &path, None);
    let first = stuck.next().and_then(|sent| sent.id).unwrap();
    // Somebody else reads all of it meanwhile.
    let whole: Vec<u64> = owner.follow("GET", &path, None).filter_map(|sent| sent.id).collect();
    server.hear("a reader that took nothing for too long was let go");
    let mut ids = vec![first];
    ids.extend(stuck.filter_map(|sent| sent.id));
    assert!(ids.len() < whole.len(), "{ids:?}");
    let back = owner.with("last-event-id", &ids.last().unwrap().to_string());
    ids.extend(back.follow("GET", &path, None).filter_map(|sent| sent.id));
    assert_eq!(ids, whole);
}
