//! Standing rules: changed by putting another in their place.

use serde_json::json;

use super::client::Server;
use crate::house::{House, text};

#[test]
fn a_rule_that_is_changed_gives_way_to_another_in_one_step() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let good = json!({"tool": "write_file", "paths": ["/drafts/a.md"]});
    let body = json!({"tool": "write_file", "decision": "deny", "when": {"folders": ["/drafts"]}, "note": "for now",
        "must_deny": [good]});
    let rule = owner.post("/api/v1/rules", body).expect(201);
    let path = format!("/api/v1/rules/{}", text(&rule["id"]));
    let broken = owner.patch(&path, json!({"when": {"folders": ["/other"]}})).refuses(422, "validation_failed");
    assert!(broken.to_string().contains("must_deny[0]"), "{broken}");
    owner.patch(&path, json!({"tool": null})).refuses(422, "validation_failed");
    owner.patch(&path, json!({"run": "run_x"})).refuses(422, "validation_failed");
    assert_eq!(owner.get(&path).expect(200), rule, "what cannot be saved leaves it as it was");

    let kim = server.person("kim", "home", "write");
    kim.patch(&path, json!({"decision": "ask"})).refuses(403, "forbidden");
    let next = owner.patch(&path, json!({"decision": "ask", "note": null})).expect(200);
    assert_ne!(next["id"], rule["id"]);
    assert_eq!((&next["decision"], &next["when"], &next["live"]), (&json!("ask"), &rule["when"], &json!(true)));
    assert_eq!(owner.get("/api/v1/rules").expect(200)["data"], json!([next]));
    owner.patch(&path, json!({"decision": "allow"})).refuses(404, "not_found");
    let acts = owner.get("/api/v1/audit?q=kind:rule_saved").expect(200);
    assert_eq!(acts["data"].as_array().unwrap().len(), 2, "{acts}");
}

#[test]
fn a_rule_is_about_an_agent_by_its_id_or_its_short_name() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let guide = owner.get("/api/v1/agents/guide").expect(200)["id"].clone();
    let writer = owner.post("/api/v1/agents", json!({"name": "Writer"})).expect(201);
    let body = |agent: &str| json!({"tool": "write_file", "decision": "ask", "agent": agent});
    let rule = owner.post("/api/v1/rules", body("guide")).expect(201);
    assert_eq!(rule["agent"], guide);
    assert_eq!(owner.post("/api/v1/rules", body(&text(&guide))).expect(201)["agent"], guide);
    let path = format!("/api/v1/rules/{}", text(&rule["id"]));
    let next = owner.patch(&path, json!({"agent": writer["slug"]})).expect(200);
    assert_eq!(next["agent"], writer["id"]);
    owner.post("/api/v1/rules", body("nobody")).refuses(404, "not_found");
    owner
        .post("/api/v1/rules", json!({"tool": "write_file", "decision": "ask", "agent": 7}))
        .refuses(422, "validation_failed");
    let path = format!("/api/v1/rules/{}", text(&next["id"]));
    assert_eq!(owner.patch(&path, json!({"agent": null})).expect(200).get("agent"), None);
}
