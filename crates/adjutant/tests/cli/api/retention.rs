//! What is kept and for how long: sizes, erasing by itself and by hand, and taking old runs away as a file.

use serde_json::{Value, json};

use super::client::{Client, Server};
use crate::house::{House, text};

/// A run that has ended; its id.
fn ended(client: &Client) -> String {
    let body = json!({"agent_id": "guide", "input": "what is in the notes?"});
    let run = client.post("/api/v1/runs?wait=60", body).expect(200);
    assert_eq!(run["status"], "COMPLETED", "{run}");
    text(&run["id"])
}

/// A run that waits for a person, with its question.
fn asked(client: &Client) -> (String, String) {
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = client.post("/api/v1/runs?wait=60", body).expect(200);
    assert_eq!(run["status"], "WAITING_APPROVAL", "{run}");
    (text(&run["id"]), text(&run["pending_approvals"][0]))
}

fn size(client: &Client) -> Value {
    client.get("/api/v1/workspaces/home/size").expect(200)
}

fn erase(client: &Client, body: Value) -> Value {
    client.post("/api/v1/workspaces/home/erase", body).expect(200)
}

fn kinds(client: &Client, words: &str) -> Vec<Value> {
    let found = client.get(&format!("/api/v1/audit?q={words}")).expect(200);
    found["data"].as_array().unwrap().clone()
}

#[test]
fn what_is_not_kept_any_longer_is_erased_by_itself_and_what_waits_is_not() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let (old, (waits, question)) = (ended(&owner), asked(&owner));
    let path = "/api/v1/workspaces/home";
    for bad in ["soon", "0d", "90"] {
        owner.patch(path, json!({"keep_runs": bad})).refuses(422, "validation_failed");
    }
    assert_eq!(owner.get(path).expect(200)["keep_runs"], "forever");
    assert_eq!(owner.patch(path, json!({"keep_runs": "1s"})).expect(200)["keep_runs"], "1s");
    let run = format!("/api/v1/runs/{old}");
    while owner.get(&run).status == 200 {}

    let told = owner.get(&run).refuses(410, "erased");
    assert!(text(&told["detail"]).contains("Its chain still verifies"), "{told}");
    for (end, body) in [("replay", json!({})), ("fork", json!({}))] {
        owner.post(&format!("{run}/{end}"), body).refuses(410, "erased");
    }
    for end in ["export", "events"] {
        owner.get(&format!("{run}/{end}")).refuses(410, "erased");
    }
    assert_eq!(owner.get(&format!("{run}/verify")).expect(200)["is_whole"], true);
    let listed = owner.get("/api/v1/runs").expect(200);
    let listed = listed["data"].as_array().unwrap().iter().find(|row| row["id"] == json!(old)).cloned();
    assert_eq!(listed.expect("it stays on the list")["status"], "COMPLETED");

    assert_eq!(owner.get(&format!("/api/v1/runs/{waits}")).expect(200)["status"], "WAITING_APPROVAL");
    assert_eq!((&size(&owner)["erased_runs"], &size(&owner)["open_runs"]), (&json!(1), &json!(1)));
    owner.patch(path, json!({"keep_runs": "forever"})).expect(200);
    owner.post(&format!("/api/v1/approvals/{question}/decision"), json!({"decision": "reject"})).expect(200);
    assert_eq!(kinds(&owner, "kind:erase_ended+by:clock").len(), 1);
    assert_eq!(kinds(&owner, "kind:setting_changed").len(), 2);
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["is_whole"], true);
}

#[test]
fn old_runs_are_counted_first_and_erased_only_when_that_is_confirmed() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let (first, second) = (ended(&owner), ended(&owner));
    let (waits, _) = asked(&owner);
    let before = size(&owner);
    assert_eq!((&before["runs"], &before["open_runs"], &before["erased_runs"]), (&json!(3), &json!(1), &json!(0)));
    assert!(before["event_bytes"].as_u64() > Some(1000) && before["content_bytes"].as_u64() > Some(0), "{before}");

    let planned = erase(&owner, json!({"before": "0m"}));
    assert_eq!((&planned["runs"], &planned["open_runs"], &planned["erased"]), (&json!(2), &json!(1), &json!(false)));
    assert!(planned["bytes"].as_u64() > Some(1000), "{planned}");
    assert_eq!(erase(&owner, json!({"before": "1d"}))["runs"], 0, "they are of today");
    assert_eq!(size(&owner)["erased_runs"], 0, "nothing was done");

    let path = "/api/v1/workspaces/home/erase";
    for body in [json!({}), json!({"before": "0m", "runs": []}), json!({"runs": [first]}), json!({"before": "soon"})] {
        owner.post(path, body).refuses(422, "validation_failed");
    }
    let ada = server.person("ada", "home", "write");
    ada.post(path, json!({"before": "0m", "confirm": true})).refuses(403, "forbidden");
    ada.get("/api/v1/workspaces/home/archive?before=0m").refuses(403, "forbidden");
    ada.get("/api/v1/workspaces/home/size").refuses(403, "forbidden");

    let done = erase(&owner, json!({"runs": [first, waits], "confirm": true}));
    assert_eq!((&done["runs"], &done["erased"]), (&json!(1), &json!(true)), "what waits stays: {done}");
    let done = erase(&owner, json!({"before": "0m", "confirm": true}));
    assert_eq!((&done["runs"], &done["more"]), (&json!(1), &json!(false)), "{done}");
    assert_eq!(erase(&owner, json!({"before": "0m", "confirm": true}))["runs"], 0);
    owner.get(&format!("/api/v1/runs/{second}")).refuses(410, "erased");
    owner.get(&format!("/api/v1/runs/{waits}")).expect(200);
    let after = size(&owner);
    assert_eq!((&after["runs"], &after["erased_runs"]), (&json!(3), &json!(2)));
    assert!(after["event_bytes"].as_u64() < before["event_bytes"].as_u64(), "{before} {after}");
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["is_whole"], true);
}

#[test]
fn an_archive_is_verified_before_what_it_holds_is_erased_and_verifies_anywhere_after() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let runs = [ended(&owner), ended(&owner)];
    let file = server.house.path().join("old.jsonl");
    let path = file.to_str().unwrap();
    let archive = |more: &[&str]| {
        server.house.adjutant(&[&["ws", "archive", "home", "--before", "0m", "-o", path], more].concat())
    };
    let told = archive(&[]);
    assert!(told.out.contains("What was said in 2 runs would be archived and then erased"), "{told}");
    assert!(!file.exists() && size(&owner)["erased_runs"] == 0);
    std::fs::write(&file, "mine").unwrap();
    let told = archive(&["--yes"]);
    assert!(told.code != Some(0) && told.err.contains("Nothing was erased"), "{told}");
    assert_eq!(size(&owner)["erased_runs"], 0);
    std::fs::remove_file(&file).unwrap();
    let told = archive(&["--yes"]);
    assert_eq!(told.code, Some(0), "{told}");
    assert!(told.out.contains("what was said in 2 runs is erased"), "{told}");
    for run in &runs {
        owner.get(&format!("/api/v1/runs/{run}")).refuses(410, "erased");
    }
    assert_eq!(kinds(&owner, "kind:runs_archived").len(), 1);

    // Elsewhere, without any instance.
    let away = House::new();
    let verified = away.document(&["audit", "verify", path]);
    assert_eq!(verified["verified"]["runs"], json!(runs));
    let whole = std::fs::read_to_string(&file).unwrap();
    assert!(whole.contains("what is in the notes?"), "what was said is in it");
    let lines: Vec<_> = whole.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    for broken in [cut, whole.replace("what is in the notes?", "what is in the vault?"), lines[1..].join("\n")] {
        std::fs::write(&file, broken).unwrap();
        let refused = away.adjutant(&["audit", "verify", path]);
        assert_eq!(refused.code, Some(9), "{refused}");
    }
}

#[test]
fn a_person_at_a_terminal_sees_what_a_workspace_holds_and_erases_with_a_word() {
    let server = Server::start(House::new());
    let run = ended(&server.owner());
    let ws = |arguments: &[&str]| server.house.adjutant(&[&["ws"], arguments].concat());
    let told = ws(&["set", "home", "--keep-runs", "90d"]);
    assert!(told.out.contains("keeps runs      90d"), "{told}");
    let told = ws(&["show", "home"]);
    assert!(told.out.contains("1 run, 0 not ended, 0 erased") && told.out.contains("of events"), "{told}");
    let told = ws(&["erase", "home", "--before", "0m"]);
    assert!(told.out.contains("What was said in 1 run would be erased, for good"), "{told}");
    let told = ws(&["erase", "home", "--before", "0m", "--yes"]);
    assert!(told.out.contains("✔ what was said in 1 run is erased"), "{told}");
    server.owner().get(&format!("/api/v1/runs/{run}")).refuses(410, "erased");
    let told = server.house.adjutant(&["doctor"]);
    assert!(told.out.contains("1 runs · 1 erased") && told.out.contains("runs are kept: 90d"), "{told}");
}
