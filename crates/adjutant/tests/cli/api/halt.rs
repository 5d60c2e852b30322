//! The stop switch: nothing starts, nothing goes on, until somebody lets it.

use serde_json::json;

use super::client::Server;
use crate::house::{House, text};

#[test]
fn a_stopped_workspace_starts_nothing_and_goes_on_where_it_was() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body.clone()).expect(200);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    let halt = "/api/v1/workspaces/home/halt";
    let switch = owner.post(halt, json!({"reason": "a drill"})).expect(200);
    assert_eq!((&switch["is_halted"], &switch["runs"]), (&json!(true), &json!([run["id"]])));
    let refused = owner.post("/api/v1/runs", body.clone()).refuses(409, "halted");
    assert!(text(&refused["detail"]).contains("a drill"), "{refused}");
    // A yes is taken down, and acts on nothing yet.
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    owner.post(&format!("{path}/resume"), json!({})).refuses(409, "halted");
    assert_eq!(owner.get(&format!("{path}?wait=1")).expect(200)["status"], "PAUSED");
    assert!(std::fs::read_to_string(server.house.note("todo.md")).unwrap().contains("mlik"));

    let lifted = owner.delete(halt).expect(200);
    assert_eq!((&lifted["is_halted"], &lifted["runs"]), (&json!(false), &json!([run["id"]])));
    assert_eq!(owner.get(&format!("{path}?wait=60")).expect(200)["status"], "COMPLETED");
    assert!(!std::fs::read_to_string(server.house.note("todo.md")).unwrap().contains("mlik"));
    let acts = owner.get("/api/v1/audit?q=kind:halted").expect(200);
    assert_eq!(acts["data"][0]["by"], "admin");
}

#[test]
fn a_stopped_instance_stays_stopped_over_a_restart() {
    let server = Server::start(House::new());
    server.owner().post("/api/v1/halt", json!({"reason": "over night"})).expect(200);
    let (house, _) = server.stop();
    let server = Server::start(house);
    let owner = server.owner();
    assert_eq!(owner.get("/api/v1/halt").expect(200)["reason"], "over night");
    owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "hello"})).refuses(409, "halted");
    owner.delete("/api/v1/halt").expect(200);
    owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "hello"})).expect(202);
}

#[test]
fn each_switch_is_turned_by_itself() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let begin = || owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "what files are here"}));
    owner.post("/api/v1/workspaces/home/halt", json!({"reason": "here"})).expect(200);
    owner.post("/api/v1/halt", json!({"reason": "everywhere"})).expect(200);
    assert!(text(&begin().refuses(409, "halted")["detail"]).contains("everywhere"));
    owner.delete("/api/v1/halt").expect(200);
    assert!(text(&begin().refuses(409, "halted")["detail"]).contains("here"));
    owner.delete("/api/v1/workspaces/home/halt").expect(200);
    begin().expect(202);
}
