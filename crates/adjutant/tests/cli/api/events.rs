//! One stream for a page: what changes is told to those who may see it.

use serde_json::{Value, json};

use super::client::{Sent, Server, Stream};
use super::flow::scripted;
use crate::house::{House, text};

/// Reads until something is told that is looked for; says what it was and what came before it.
fn until(stream: &mut Stream, what: impl Fn(&Sent) -> bool) -> (Value, Vec<Sent>) {
    let mut before = Vec::new();
    for event in stream.by_ref() {
        if what(&event) {
            return (event.data, before);
        }
        before.push(event);
    }
    panic!("it was never told, only {before:?}")
}

#[test]
fn a_page_hears_of_runs_inbox_chats_and_settings() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let mut stream = owner.follow("GET", "/api/v1/events", None);
    let (first, _) = until(&mut stream, |event| event.name == "reread");
    assert_eq!(first["reason"], "opened");
    let (inbox, _) = until(&mut stream, |event| event.name == "inbox");
    assert_eq!(inbox["pending"], 0);

    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "tidy the welcome notes"})).expect(202);
    let asks = |event: &Sent| event.name == "inbox" && event.data["pending"] == 1;
    let (waits, before) = until(&mut stream, |event| event.data["status"] == "WAITING_APPROVAL");
    assert_eq!((&waits["id"], waits["pending_approvals"].as_array().unwrap().len()), (&run["id"], 1));
    // A question is looked up after its run, so it may be told before the run is known to wait.
    if !before.iter().any(asks) {
        until(&mut stream, asks);
    }
    let decision = format!("/api/v1/approvals/{}/decision", text(&waits["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    let is_empty = |event: &Sent| event.name == "inbox" && event.data["pending"] == 0;
    let (ended, before) = until(&mut stream, |event| event.data["status"] == "COMPLETED");
    assert_eq!((&ended["id"], &ended["pending_approvals"]), (&run["id"], &json!([])));
    // It is told when the question is answered, which may be before the end or with it.
    if !before.iter().any(is_empty) {
        until(&mut stream, is_empty);
    }

    let chat = format!("/api/v1/chats/{}", text(&run["chat_id"]));
    owner.patch(&chat, json!({"title": "Tidying"})).expect(200);
    let (told, _) = until(&mut stream, |event| event.name == "chat");
    assert_eq!((&told["id"], &told["title"]), (&run["chat_id"], &json!("Tidying")));
    owner.post("/api/v1/agents", json!({"name": "Second"})).expect(201);
    until(&mut stream, |event| event.name == "changed" && event.data["kind"] == "agent_saved");
}

#[test]
fn a_page_hears_nothing_of_what_is_not_for_it() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let mut kim = server.person("kim", "home", "read").follow("GET", "/api/v1/events", None);
    until(&mut kim, |event| event.name == "inbox");
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    let shared = owner.post("/api/v1/chats", json!({"agent_id": "guide", "title": "Hidden"})).expect(201);
    owner.patch(&format!("/api/v1/chats/{}", text(&shared["id"])), json!({"is_shared": true})).expect(200);
    let (told, before) = until(&mut kim, |event| event.name == "chat");
    assert_eq!(told["is_shared"], true);
    let others = before.iter().filter(|event| event.data.to_string().contains(&text(&run["id"]))).count();
    assert_eq!(others, 0, "{before:?}");

    // Whoever could see a chat hears that it is gone for them, and not what it is called since.
    let path = format!("/api/v1/chats/{}", text(&shared["id"]));
    let mut own = owner.follow("GET", "/api/v1/events?topics=chats", None);
    assert_eq!(own.next().unwrap().name, "reread");
    owner.patch(&path, json!({"is_shared": false, "title": "About Kim"})).expect(200);
    let (told, before) = until(&mut kim, |event| event.data["deleted"] == true);
    assert_eq!(told["id"], shared["id"]);
    assert!(!format!("{before:?}{told}").contains("About Kim"), "{before:?} {told}");
    let (told, before) = until(&mut own, |event| event.name == "chat");
    assert_eq!((&told["title"], before.len()), (&json!("About Kim"), 0), "{before:?}");

    let narrowed = server.owner().follow("GET", "/api/v1/events?topics=approvals&workspace_id=nowhere", None);
    assert_eq!(narrowed.head.status, 404);
    assert_eq!(owner.follow("GET", "/api/v1/events?topics=weather", None).head.status, 422);
}

#[test]
fn a_page_follows_runs_event_by_event_and_takes_them_up_again() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    let id = text(&run["id"]);
    let alone: Vec<Sent> = owner.follow("GET", &format!("/api/v1/runs/{id}/events"), None).collect();
    let mut stream = owner.follow("GET", &format!("/api/v1/events?topics=run:{id}"), None);
    let (last, before) = until(&mut stream, |event| event.name == "interaction_complete");
    assert_eq!((last, &before[1..]), (alone.last().unwrap().data.clone(), &alone[..alone.len() - 1]));
    let seq = alone[1].id.unwrap();
    let mut again = owner.follow("GET", &format!("/api/v1/events?topics=run:{id}@{seq}"), None);
    let (_, before) = until(&mut again, |event| event.name == "interaction_complete");
    assert_eq!(before[1..], alone[2..alone.len() - 1]);
    assert_eq!(owner.follow("GET", "/api/v1/events?topics=run:run_none", None).head.status, 404);
}

#[test]
fn a_page_that_names_its_workspace_hears_of_no_other_however_long_it_listens() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/workspaces", json!({"name": "Lab"})).expect(201);
    let mut stream = owner.with("adjutant-workspace", "lab").follow("GET", "/api/v1/events?topics=chats", None);
    assert_eq!(stream.next().unwrap().name, "reread");
    // It is looked at again who she is: one more workspace changes nothing about this one.
    let mut whole = owner.follow("GET", "/api/v1/events?topics=chats", None);
    owner.post("/api/v1/workspaces", json!({"name": "Shed"})).expect(201);
    until(&mut whole, |event| event.data["reason"] == "rights");
    owner.with("adjutant-workspace", "home").post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201);
    let lab = owner.with("adjutant-workspace", "lab");
    lab.post("/api/v1/agents", json!({"name": "Smith"})).expect(201);
    let made = lab.post("/api/v1/chats", json!({"agent_id": "smith"})).expect(201);
    let told = stream.next().unwrap();
    assert_eq!((told.name.as_str(), &told.data["id"]), ("chat", &made["id"]));
}

#[test]
fn a_page_of_somebody_who_was_taken_out_ends() {
    let server = Server::start(House::new());
    let kim = server.person("kim", "home", "read");
    let me = text(&kim.get("/api/v1/me").expect(200)["user_id"]);
    let mut stream = kim.follow("GET", "/api/v1/events", None);
    until(&mut stream, |event| event.name == "inbox");
    server.owner().delete(&format!("/api/v1/workspaces/home/members/{me}")).expect(204);
    let (told, _) = until(&mut stream, |event| event.name == "reread");
    assert_eq!(told["reason"], "rights");
    server.owner().patch(&format!("/api/v1/users/{me}"), json!({"is_active": false})).expect(200);
    assert_eq!(stream.last(), None);
}

#[test]
fn whoever_comes_in_the_middle_of_an_answer_is_told_its_beginning() {
    let words = "one two three four five ".repeat(300);
    let server = Server::start(scripted(&format!("- text: \"{words}\"\n  chunk: 4\n  pace_ms: 20\n")));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "count"})).expect(202);
    let path = format!("/api/v1/runs/{}/events", text(&run["id"]));
    let piece_beyond =
        |place: u64| move |event: &Sent| event.name == "answer_delta" && event.data["at"].as_u64() >= Some(place);
    let mut first = owner.follow("GET", &path, None);
    until(&mut first, piece_beyond(8));
    // One who shares a line with others, and one who is alone on it.
    for alone in [false, true] {
        if alone {
            drop(std::mem::replace(&mut first, owner.follow("GET", &path, None)));
        }
        let mut late = owner.follow("GET", &path, None);
        let (so_far, before) = until(&mut late, piece_beyond(0));
        assert!(before.iter().all(|event| event.id.is_some()), "live text comes after the log: {before:?}");
        let said = text(&so_far["delta"]);
        assert!(so_far["at"] == 0 && said.len() > 8 && words.starts_with(&said), "{so_far}");
        let (next, _) = until(&mut late, piece_beyond(1));
        let place = usize::try_from(next["at"].as_u64().unwrap()).unwrap();
        assert!(place <= said.len() && words[place..].starts_with(&text(&next["delta"])), "{next} after {said}");
    }
    owner.post(&format!("/api/v1/runs/{}/cancel", text(&run["id"])), json!({})).expect(200);
}
