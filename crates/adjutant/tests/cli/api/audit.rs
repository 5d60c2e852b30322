//! The audit over HTTP, what the instance says of itself, and its settings.

use serde_json::json;

use super::client::Server;
use super::flow::scripted;
use crate::house::House;

#[test]
fn admins_search_and_export_their_audit_and_the_owner_that_of_the_instance() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"})).expect(200);
    let calls = owner.get("/api/v1/audit?q=tool:read_file").expect(200);
    let all = calls["data"].as_array().unwrap();
    assert!(!all.is_empty() && all.iter().all(|entry| entry["tool"] == "read_file"), "{calls}");
    let same = owner.get("/api/v1/audit?agent=guide&path=/todo.md&decision=allow").expect(200);
    assert!(same["data"].as_array().unwrap().iter().all(|entry| entry["path"] == "/todo.md"), "{same}");
    let first = owner.get("/api/v1/audit?limit=1").expect(200);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = owner.get(&format!("/api/v1/audit?limit=1&cursor={cursor}")).expect(200);
    assert_ne!(first["data"][0], second["data"][0]);
    owner.get("/api/v1/audit?q=colour:red").refuses(422, "validation_failed");
    owner.get("/api/v1/audit?since=the%20day%20before").refuses(422, "validation_failed");

    let table = owner.get("/api/v1/audit/export?format=csv&q=tool:read_file");
    assert!(table.headers["content-type"].starts_with("text/csv"), "{table:?}");
    assert_eq!(table.text.lines().count(), all.len() + 1);
    let lines = owner.get("/api/v1/audit/export?q=kind:audit_exported");
    assert_eq!(lines.text.lines().count(), 2, "{}", lines.text);

    let ada = server.person("ada", "home", "admin");
    let started = |client: &super::client::Client| {
        client.get("/api/v1/audit?q=kind:instance_started").expect(200)["data"].as_array().unwrap().len()
    };
    assert_eq!((started(&owner), started(&ada)), (1, 0));
    ada.get("/api/v1/audit?raw=true").expect(200);
    let shown = ada.get("/api/v1/audit?q=kind:secrets_revealed").expect(200)["data"][0].clone();
    assert_eq!((&shown["by"], &shown["summary"]), (&json!("ada"), &json!("in a search of the record: everything")));
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["is_whole"], true);
}

#[test]
fn the_instance_says_what_is_enforced_and_what_it_was_started_with() {
    let server = Server::start(House::new());
    let about = server.owner().get("/api/v1/about").expect(200);
    let state = |name: &str| {
        let checks = about["checks"].as_array().unwrap();
        checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{about}"))["state"].clone()
    };
    assert_eq!((state("sealing at rest"), state("sandbox")), (json!("enforced"), json!("off")));
    let kim = server.person("kim", "home", "read");
    let seen = kim.get("/api/v1/about").expect(200);
    assert!(!seen.to_string().contains(server.house.path().to_str().unwrap()), "{seen}");
    let settings = server.owner().get("/api/v1/settings").expect(200);
    let listen = settings["data"].as_array().unwrap().iter().find(|setting| setting["key"] == "listen").unwrap();
    assert_eq!(listen["value"], "127.0.0.1:0");
}

#[test]
fn an_export_that_cannot_begin_is_refused_before_anything_is_sent_or_recorded() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.get("/api/v1/audit/export?cursor=nonsense").refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/audit?q=kind:audit_exported").expect(200)["data"], json!([]));
    assert_eq!(owner.get("/api/v1/audit/export").status, 200);
    assert_eq!(owner.get("/api/v1/audit?q=kind:audit_exported").expect(200)["data"].as_array().unwrap().len(), 1);
}

#[test]
fn a_path_with_a_blank_in_it_is_searched_for_like_any_other() {
    let script =
        "- when: { turn: 1 }\n  calls: [{ name: read_file, arguments: { path: \"/my notes.md\" } }]\n- text: Read.\n";
    let server = Server::start(scripted(script));
    std::fs::write(server.house.note("my notes.md"), "hello\n").unwrap();
    let owner = server.owner();
    owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "read"})).expect(200);
    let found = owner.get("/api/v1/audit?path=/my%20notes.md").expect(200);
    let rows = found["data"].as_array().unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["path"] == "/my notes.md"), "{found}");
    assert_eq!(
        owner.get("/api/v1/audit?path=/my%20notes.md&agent=guide&q=tool:list_files").expect(200)["data"],
        json!([])
    );
    let twice = owner.get("/api/v1/audit?q=path:/a.md&path=/b.md").refuses(422, "validation_failed");
    assert_eq!(twice["errors"][0]["pointer"], "path");
    let nothing = owner.get("/api/v1/audit?agent=").refuses(422, "validation_failed");
    assert_eq!(nothing["errors"][0]["pointer"], "agent");
}
