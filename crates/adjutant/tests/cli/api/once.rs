//! Requests that are sent again.

use serde_json::json;

use super::client::{Client, Server};
use crate::house::House;

fn runs(client: &Client) -> usize {
    client.get("/api/v1/runs").expect(200)["data"].as_array().unwrap().len()
}

#[test]
fn a_request_with_a_key_is_done_once_and_answered_each_time() {
    let server = Server::start(House::new());
    let client = server.owner().with("idempotency-key", "one");
    let body = json!({"agent_id": "guide", "input": "hello"});
    let first = client.post("/api/v1/runs", body.clone());
    let again = client.post("/api/v1/runs", body.clone());
    assert_eq!((first.status, &first.text), (202, &again.text));
    assert_eq!(again.status, 202);
    assert_eq!(again.headers["location"], first.headers["location"]);
    assert_eq!((first.headers.get("idempotency-replayed"), &*again.headers["idempotency-replayed"]), (None, "true"));
    assert_eq!(runs(&server.owner()), 1);

    server.owner().with("idempotency-key", "two").post("/api/v1/runs", body).expect(202);
    assert_eq!(runs(&server.owner()), 2);
}

#[test]
fn a_key_belongs_to_one_request_of_one_person() {
    let server = Server::start(House::new());
    let path = "/api/v1/runs";
    let body = json!({"agent_id": "guide", "input": "hello"});
    server.owner().with("idempotency-key", "one").post(path, body.clone()).expect(202);
    let other = server.owner().with("idempotency-key", "one").post(path, json!({"agent_id": "guide", "input": "bye"}));
    assert_eq!(other.expect(422)["code"], "idempotency_mismatch");
    let ada = server.person("ada", "home", "write").with("idempotency-key", "one");
    ada.post(path, body.clone()).expect(202);
    assert_eq!(runs(&server.owner()), 2);
    for bad in ["two words", &"k".repeat(129)] {
        let refused = server.owner().with("idempotency-key", bad).post(path, body.clone()).expect(422);
        assert_eq!(refused["code"], "validation_failed");
    }
    assert_eq!(runs(&server.owner()), 2);
}

#[test]
fn an_answer_is_not_given_again_to_whoever_may_less_since() {
    let server = Server::start(House::new());
    let kim = server.person("kim", "home", "write");
    let me = kim.get("/api/v1/me").expect(200)["user_id"].as_str().unwrap().to_owned();
    let body = json!({"agent_id": "guide", "input": "hello"});
    let again = || kim.with("idempotency-key", "one").post("/api/v1/runs", body.clone());
    let first = again().expect(202);
    // More than before is as good.
    server.owner().put(&format!("/api/v1/workspaces/home/members/{me}"), json!({"role": "admin"})).expect(200);
    assert_eq!(again().expect(202)["id"], first["id"]);
    server.owner().delete(&format!("/api/v1/workspaces/home/members/{me}")).expect(204);
    again().refuses(403, "forbidden");
    assert_eq!(runs(&server.owner()), 1);
}

#[test]
fn a_key_belongs_to_one_workspace() {
    let server = Server::start(House::new());
    let owner = server.owner().with("idempotency-key", "one");
    server.owner().post("/api/v1/workspaces", json!({"name": "Lab"})).expect(201);
    let body = json!({"name": "Helper"});
    let there = |workspace: &str| owner.with("adjutant-workspace", workspace).post("/api/v1/agents", body.clone());
    let first = there("home").expect(201);
    assert_eq!(there("home").expect(201)["id"], first["id"]);
    there("lab").refuses(422, "idempotency_mismatch");
    let agents = server.owner().with("adjutant-workspace", "lab").get("/api/v1/agents").expect(200);
    assert!(!agents.to_string().contains("Helper"), "{agents}");
}

#[test]
fn a_request_with_a_key_may_be_as_long_as_one_without() {
    let server = Server::start(House::new());
    let long = "x".repeat(3 * 1024 * 1024);
    let file = json!({"title": "Long", "agent_id": "guide", "runs": [], "remark": long});
    server.owner().post("/api/v1/chats/import", file.clone()).refuses(422, "validation_failed");
    let keyed = server.owner().with("idempotency-key", "one");
    keyed.post("/api/v1/chats/import", file.clone()).refuses(422, "validation_failed");
    let keyed = server.owner().with("idempotency-key", "two");
    keyed.post("/api/v1/runs", json!({"agent_id": "guide", "input": long})).refuses(413, "too_large");
}

#[test]
fn a_refused_request_is_refused_again_and_a_stream_is_pointed_to() {
    let server = Server::start(House::new());
    let client = server.owner().with("idempotency-key", "one");
    let missing = client.post("/api/v1/runs", json!({"agent_id": "nobody", "input": "hello"}));
    let again = client.post("/api/v1/runs", json!({"agent_id": "nobody", "input": "hello"}));
    assert_eq!((missing.status, again.status, &missing.text), (404, 404, &again.text));

    let (client, body) =
        (server.owner().with("idempotency-key", "two"), json!({"agent_id": "guide", "input": "hello"}));
    let streamed = client.follow("POST", "/api/v1/runs", Some(&body));
    let run = streamed.head.headers["location"].clone();
    assert_eq!(streamed.last().unwrap().name, "interaction_complete");
    let again = client.with("accept", "text/event-stream").post("/api/v1/runs", body);
    assert_eq!((again.status, &again.headers["location"]), (303, &format!("{run}/events")));
    assert_eq!(runs(&server.owner()), 1);
}

#[test]
fn a_secret_is_in_the_first_answer_and_in_no_kept_one() {
    let server = Server::start(House::new());
    let owner = server.owner().with("idempotency-key", "one");
    let body = json!({"name": "ci", "scopes": ["read"]});
    let first = owner.post("/api/v1/tokens", body.clone()).expect(201);
    let again = owner.post("/api/v1/tokens", body.clone()).expect(201);
    assert_eq!((&again["id"], &again["token"]), (&first["id"], &json!("")));
    let link = server.owner().with("idempotency-key", "two");
    let invite = |client: &Client| client.post("/api/v1/workspaces/home/invites", json!({"role": "read"})).expect(201);
    assert_ne!(invite(&link)["token"], json!(""));
    assert_eq!((&invite(&link)["token"], &invite(&link)["link"]), (&json!(""), &json!("")));
    // Another token of the same person is not answered what this one was.
    let secret = first["token"].as_str().unwrap();
    let ci = server.nobody().with("authorization", &format!("Bearer {secret}")).with("idempotency-key", "one");
    assert_eq!(ci.post("/api/v1/tokens", body).expect(422)["code"], "idempotency_mismatch");
}

#[test]
fn a_request_whose_server_was_killed_is_said_to_be_unknown_and_not_done_twice() {
    let house = House::new();
    house.script("- { delay_ms: 600000, text: Too late. }\n");
    let server = Server::start(house);
    let body = json!({"agent_id": "guide", "input": "hello"});
    let waiting = server.owner().with("idempotency-key", "one");
    let (asked, sent) = (waiting.clone(), body.clone());
    // Answered by nobody: the connection ends with the server.
    let lost = std::thread::spawn(move || {
        std::panic::catch_unwind(|| asked.post("/api/v1/runs?wait=60", sent).status).is_err()
    });
    while runs(&server.owner()) == 0 {}
    waiting.post("/api/v1/runs?wait=60", body.clone()).refuses(409, "in_flight");
    let server = Server::start(server.kill());
    assert!(lost.join().unwrap());

    let again = server.owner().with("idempotency-key", "one");
    // Elsewhere the node counts as alive until its lease has run out.
    let told = loop {
        let told = again.post("/api/v1/runs?wait=60", body.clone());
        if told.json()["code"] != "in_flight" {
            break told.refuses(409, "outcome_unknown");
        }
    };
    assert!(told["hint"].as_str().unwrap().contains("a new key"), "{told}");
    again.post("/api/v1/runs?wait=60", body.clone()).refuses(409, "outcome_unknown");
    again.post("/api/v1/runs", body.clone()).refuses(422, "idempotency_mismatch");
    assert_eq!(runs(&server.owner()), 1);
    server.owner().with("idempotency-key", "two").post("/api/v1/runs", body).expect(202);
    assert_eq!(runs(&server.owner()), 2);
}
