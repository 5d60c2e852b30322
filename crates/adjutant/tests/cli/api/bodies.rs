//! Bodies where none is taken, and wishes that may stand behind the `?` or in the body.

use serde_json::{Value, json};

use super::client::Server;
use crate::house::{House, text};

#[test]
fn a_body_that_nobody_would_read_is_refused_by_its_fields() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200);
    let pause = format!("/api/v1/runs/{}/pause", text(&run["id"]));
    let refused = owner.post(&pause, json!({"reason": "lunch", "until": "2"})).refuses(422, "validation_failed");
    let pointers: Vec<&Value> = refused["errors"].as_array().unwrap().iter().map(|error| &error["pointer"]).collect();
    assert_eq!(pointers, ["/reason", "/until"]);
    owner.post("/api/v1/agents/guide/reset", json!({"dry_run": true})).refuses(422, "validation_failed");
    owner.post("/api/v1/agents/guide/reset", json!([])).refuses(422, "validation_failed");
    owner.post("/api/v1/agents/guide/reset", json!({})).expect(200);
    owner.call("POST", "/api/v1/agents/guide/reset", None).expect(200);
}

#[test]
fn a_resync_that_is_to_change_nothing_may_say_so_in_its_body() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let agent = owner.get("/api/v1/agents/guide");
    let changed = owner.with("if-match", &agent.headers["etag"]);
    let version = changed.patch("/api/v1/agents/guide", json!({"description": "mine"})).expect(200)["version"].clone();
    let path = "/api/v1/agents/resync";
    let planned = owner.post(path, json!({"dry_run": true})).expect(200);
    assert!(planned["data"].as_array().unwrap().iter().any(|agent| agent["change"] != "same"), "{planned}");
    assert_eq!(owner.get("/api/v1/agents/guide").expect(200)["version"], version);
    owner.post(path, json!({"dry_runs": true})).refuses(422, "validation_failed");
    let differs = owner.post(&format!("{path}?dry_run=false"), json!({"dry_run": true}));
    assert_eq!(differs.refuses(422, "validation_failed")["errors"][0]["pointer"], "/dry_run");
    assert_eq!(owner.get("/api/v1/agents/guide").expect(200)["version"], version);
}

#[test]
fn an_agent_is_switched_off_by_a_body_too() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let path = "/api/v1/agents/guide/activate";
    assert_eq!(owner.post(path, json!({"active": false})).expect(200)["is_active"], false);
    owner.post(&format!("{path}?active=true"), json!({"active": false})).refuses(422, "validation_failed");
    owner.post(path, json!({"is_active": true})).refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/agents/guide").expect(200)["is_active"], false);
    assert_eq!(owner.call("POST", path, None).expect(200)["is_active"], true);
}
