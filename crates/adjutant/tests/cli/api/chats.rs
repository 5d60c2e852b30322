//! Chats: taken away with what was said in them, taken in from a file, spoken to while they are busy.

use serde_json::{Value, json};

use super::client::{Client, Server};
use super::flow::server;
use crate::house::{House, text};

#[test]
fn a_deleted_chat_takes_what_was_said_with_it_and_leaves_the_chain() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let said = json!({"agent_id": "guide", "input": "hello, this is the secret of the house"});
    let run = owner.post("/api/v1/runs?wait=60", said).expect(200);
    let (id, chat) = (text(&run["id"]), format!("/api/v1/chats/{}", text(&run["chat_id"])));
    server.person("kim", "home", "write").delete(&chat).refuses(404, "not_found");

    owner.delete(&chat).expect(204);
    owner.get(&chat).refuses(404, "not_found");
    assert_eq!(owner.get("/api/v1/chats").expect(200)["data"], json!([]));
    let left = owner.get(&format!("/api/v1/runs/{id}")).text + &owner.get("/api/v1/runs").text;
    assert!(!left.contains("secret of the house"), "{left}");
    assert_eq!(owner.get(&format!("/api/v1/runs/{id}/verify")).expect(200)["is_whole"], true);
    let acts = owner.get("/api/v1/audit?q=kind:chat_deleted").expect(200);
    assert_eq!(acts["data"][0]["by"], "admin");
}

#[test]
fn a_chat_with_an_open_run_is_not_deleted() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let chat = format!("/api/v1/chats/{}", text(&run["chat_id"]));
    owner.delete(&chat).refuses(409, "busy");
    let whole = owner.get(&format!("{chat}/export")).expect(200);
    assert_eq!(whole["runs"][0]["user_message"], "tidy the welcome notes");
    owner.post(&format!("/api/v1/runs/{}/cancel", text(&run["id"])), json!({})).expect(200);
    owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);
    owner.delete(&chat).expect(204);
}

/// A chat whose run asks, with that run and its question.
fn asked(owner: &Client) -> (String, Value) {
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    (format!("/api/v1/chats/{}", text(&run["chat_id"])), run)
}

#[test]
fn a_message_to_a_busy_chat_waits_for_its_turn_if_it_asks_to() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let (chat, run) = asked(&owner);
    let say = |body: Value| owner.post(&format!("{chat}/runs"), body);
    say(json!({"user_message": "hello"})).refuses(409, "busy");
    let waits = say(json!({"user_message": "what files are here", "when_busy": "queue"})).expect(202);
    let schema = json!({"type": "object"});
    let back = say(json!({"user_message": "never mind", "when_busy": "queue", "attachments": [{"path": "/todo.md"}],
        "autonomy": "plan", "max_cost_usd": 0.25, "output_schema": schema}));
    let back = back.expect(202);
    assert_eq!((&back["attachments"], &back["autonomy"]), (&json!([{"path": "/todo.md"}]), &json!("plan")));
    assert_eq!((&back["max_cost_usd"], &back["output_schema"]), (&json!(0.25), &schema));
    assert_eq!((&waits["status"], &waits["is_waiting"]), (&json!("QUEUED"), &json!(true)));
    let (next, gone) = (format!("/api/v1/runs/{}", text(&waits["id"])), format!("/api/v1/runs/{}", text(&back["id"])));
    assert_eq!(owner.get(&next).expect(200)["user_message"], "what files are here");
    assert_eq!(owner.get(&chat).expect(200)["waiting"].as_array().unwrap().len(), 2);
    server.person("kim", "home", "write").get(&next).refuses(404, "not_found");
    assert_eq!(owner.post(&format!("{gone}/cancel"), json!({})).expect(200)["status"], "CANCELLED");

    let mut stream = owner.follow("GET", "/api/v1/events?topics=runs", None);
    assert_eq!(stream.next().unwrap().name, "reread");
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    stream.find(|event| event.data["id"] == waits["id"] && event.data["status"] == "COMPLETED").unwrap();
    let whole = owner.get(&format!("{chat}?include=runs")).expect(200);
    let ids: Vec<_> = whole["runs"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect();
    assert_eq!((ids.len(), &whole["waiting"]), (2, &json!([])), "{whole}");
    assert!(ids.contains(&run["id"]) && ids.contains(&waits["id"]));
    owner.get(&gone).refuses(404, "not_found");
}

#[test]
fn a_message_that_cannot_be_started_when_its_turn_comes_says_why_and_holds_up_nobody() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "write"));
    let (chat, run) = asked(&owner);
    owner.patch(&chat, json!({"is_shared": true})).expect(200);
    let wait = |client: &Client, words: &str| {
        let body = json!({"user_message": words, "when_busy": "queue"});
        text(&client.post(&format!("{chat}/runs"), body).expect(202)["id"])
    };
    let (left, fine) = (wait(&kim, "hello from kim"), wait(&owner, "what files are here"));
    let id = text(&kim.get("/api/v1/me").expect(200)["user_id"]);
    owner.delete(&format!("/api/v1/workspaces/home/members/{id}")).expect(204);

    let mut stream = owner.follow("GET", "/api/v1/events?topics=runs", None);
    assert_eq!(stream.next().unwrap().name, "reread");
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    stream.find(|event| event.data["id"] == fine && event.data["status"] == "COMPLETED").unwrap();

    let whole = owner.get(&chat).expect(200);
    let kept = &whole["waiting"][0];
    assert_eq!((&kept["id"], &kept["status"], &kept["is_waiting"]), (&json!(left), &json!("FAILED"), &json!(false)));
    assert!(text(&kept["error"]).contains("may no longer start runs"), "{kept}");
    let path = format!("/api/v1/runs/{left}");
    owner.post(&format!("{path}/cancel"), json!({})).expect(200);
    owner.get(&path).refuses(404, "not_found");
    assert_eq!(owner.get(&chat).expect(200)["waiting"], json!([]));
}

#[test]
fn what_waits_in_a_chat_that_is_shared_no_more_is_not_started() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "write"));
    let (chat, run) = asked(&owner);
    owner.patch(&chat, json!({"is_shared": true})).expect(200);
    let body = json!({"user_message": "what did you talk about", "when_busy": "queue"});
    let waits = kim.post(&format!("{chat}/runs"), body).expect(202);
    let (mut kims, mut owners) = (
        kim.follow("GET", &format!("/api/v1/runs/{}/events", text(&run["id"])), None),
        owner.follow("GET", "/api/v1/events?topics=runs", None),
    );
    assert_eq!((kims.head.status, owners.next().unwrap().name.as_str()), (200, "reread"));
    owner.patch(&chat, json!({"is_shared": false})).expect(200);
    let acts = owner.get("/api/v1/audit?q=kind:chat_shared").expect(200);
    assert_eq!(acts["data"].as_array().map(Vec::len), Some(2), "who may see a chat is recorded: {acts}");
    // The stream of somebody for whom it is no longer ends.
    while kims.next().is_some() {}
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    let told = owners.find(|event| event.data["id"] == waits["id"] && event.data["status"] == "FAILED").unwrap();
    assert!(text(&told.data["error"]).contains("no longer shared"), "{:?}", told.data);
    // In their own chat the owner takes it away.
    owner.post(&format!("/api/v1/runs/{}/cancel", text(&waits["id"])), json!({})).expect(200);
}

#[test]
fn a_guest_sets_aside_nothing_that_others_said_and_nothing_in_a_chat_that_is_closed_to_them() {
    let house = House::new();
    house.script("- text: yes\n");
    let server = Server::start(house);
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    let chat = text(&owner.post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201)["id"]);
    let path = format!("/api/v1/chats/{chat}");
    let say = |who: &Client, words: &str| {
        text(&who.post(&format!("{path}/runs?wait=60"), json!({"user_message": words})).expect(200)["id"])
    };
    owner.patch(&path, json!({"is_shared": true})).expect(200);
    let theirs = format!("/api/v1/runs/{}/edit?wait=60", say(&lee, "mine"));
    let edited = lee.post(&theirs, json!({"new_user_message": "mine, again"})).expect(200);
    let theirs = format!("/api/v1/runs/{}/edit?wait=60", text(&edited["id"]));
    say(&owner, "and mine");
    lee.post(&theirs, json!({"new_user_message": "only mine"})).refuses(403, "forbidden");
    owner.patch(&path, json!({"is_shared": false})).expect(200);
    lee.post(&theirs, json!({"new_user_message": "only mine"})).refuses(404, "not_found");
    assert_eq!(owner.get(&format!("{path}?include=runs")).expect(200)["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_run_may_be_kept_shorter_than_its_agent_and_never_longer() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let tidy = |autonomy: &str| {
        let body = json!({"agent_id": "guide", "input": "tidy the welcome notes", "autonomy": autonomy});
        owner.post("/api/v1/runs?wait=60", body)
    };
    assert_eq!(tidy("full").expect(200)["status"], "WAITING_APPROVAL");
    let agent = owner.get("/api/v1/agents/guide");
    let owner_now = owner.with("if-match", &agent.headers["etag"]);
    owner_now.patch("/api/v1/agents/guide", json!({"autonomy": "full"})).expect(200);
    assert_eq!(tidy("low").expect(200)["status"], "WAITING_APPROVAL");
    let before = std::fs::read_to_string(server.house.note("todo.md")).unwrap();
    let planned = tidy("plan").expect(200);
    assert_eq!(planned["actions"].as_array().unwrap().last().unwrap()["rule"], "dry_run", "{planned}");
    assert_eq!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), before);
    assert_eq!(tidy("full").expect(200)["status"], "COMPLETED");
    assert_ne!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), before);
    tidy("reckless").refuses(422, "validation_failed");
}

#[test]
fn a_long_chat_is_exported_in_parts_that_say_so() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let runs: Vec<_> = (0..100).map(|n| json!({"user_message": format!("m{n}"), "result": format!("r{n}")})).collect();
    let file = json!({"title": "Long", "runs": runs});
    let chat = owner.post("/api/v1/chats/import?agent_id=guide", file).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    assert_eq!(owner.get(&format!("{path}/export")).expect(200)["truncated"], false);
    owner.post(&format!("{path}/runs?wait=60"), json!({"user_message": "hello"})).expect(200);
    let newest = owner.get(&format!("{path}/export")).expect(200);
    assert_eq!((newest["runs"].as_array().unwrap().len(), &newest["truncated"]), (100, &json!(true)));
    assert_eq!(newest["runs"][0]["user_message"], "m1");
    let oldest = owner.get(&format!("{path}/export?before={}", text(&newest["runs"][0]["id"]))).expect(200);
    assert_eq!((oldest["runs"].as_array().unwrap().len(), &oldest["truncated"]), (1, &json!(false)));
    assert_eq!(oldest["runs"][0]["user_message"], "m0");
    owner.get(&format!("{path}/export?before=nothing")).refuses(422, "validation_failed");
}

#[test]
fn an_exported_chat_is_taken_in_again_and_goes_on() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "what files are here"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let file = owner.get(&format!("/api/v1/chats/{}/export", text(&run["chat_id"]))).expect(200);

    let elsewhere = Server::start(House::new());
    let owner = elsewhere.owner();
    owner.post("/api/v1/chats/import", file.clone()).refuses(422, "validation_failed");
    let chat = owner.post("/api/v1/chats/import?agent_id=guide", file.clone()).expect(201);
    assert_eq!(chat["title"], file["title"]);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    let again = owner.get(&format!("{path}/export")).expect(200);
    for field in ["user_message", "result", "status"] {
        assert_eq!(again["runs"][0][field], file["runs"][0][field]);
    }
    let taken = format!("/api/v1/runs/{}", text(&again["runs"][0]["id"]));
    let imported = owner.get("/api/v1/runs?trigger=import").expect(200);
    assert_eq!(imported["data"][0]["id"], again["runs"][0]["id"]);
    assert_eq!(owner.post(&format!("{taken}/replay"), json!({})).expect(200)["divergences"], json!([]));
    let next = owner.post(&format!("{path}/runs?wait=60"), json!({"user_message": "hello"})).expect(200);
    assert_eq!(next["status"], "COMPLETED");

    let mut bad = file.clone();
    bad["runs"] = json!([file["runs"][0], {"user_message": " ", "result": "x"}]);
    owner.post("/api/v1/chats/import?agent_id=guide", bad).refuses(422, "validation_failed");
    owner
        .post("/api/v1/chats/import?agent_id=guide", json!({"title": "t", "runs": "none"}))
        .refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/chats").expect(200)["data"].as_array().unwrap().len(), 1);
}

#[test]
fn a_chat_has_free_fields_and_comes_with_its_runs_and_their_events() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let fields = json!({"ticket": "A-7"});
    let chat = owner.post("/api/v1/chats", json!({"agent_id": "guide", "metadata": fields})).expect(201);
    assert_eq!(chat["metadata"], fields);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    let run = owner.post(&format!("{path}/runs?wait=60"), json!({"user_message": "hello"})).expect(200);
    let whole = owner.get(&format!("{path}?include=runs,events")).expect(200);
    let events = owner.get(&format!("/api/v1/runs/{}/events?limit=200", text(&run["id"]))).expect(200);
    assert_eq!((&whole["runs"][0]["id"], &whole["runs"][0]["events"]), (&run["id"], &events["data"]));
    assert!(owner.get(&format!("{path}?include=runs")).expect(200)["runs"][0].get("events").is_none());
    owner.get(&format!("{path}?include=secrets")).refuses(422, "validation_failed");

    owner.patch(&path, json!({"title": "Other"})).expect(200);
    assert_eq!(owner.get(&path).expect(200)["metadata"], fields, "what is not named stays");
    assert_eq!(owner.patch(&path, json!({"metadata": {}})).expect(200)["metadata"], json!({}));
    let many: serde_json::Map<_, _> = (0..17).map(|n| (format!("k{n}"), json!("v"))).collect();
    for bad in [json!(many), json!({"k": "v".repeat(513)}), json!({"": "v"}), json!({"k": 1})] {
        owner.patch(&path, json!({"metadata": bad})).refuses(422, "validation_failed");
        owner.post("/api/v1/chats", json!({"agent_id": "guide", "metadata": bad})).refuses(422, "validation_failed");
        owner.post("/api/v1/agents", json!({"name": "A", "metadata": bad})).refuses(422, "validation_failed");
        owner.post("/api/v1/runs", json!({"input": "x", "metadata": bad})).refuses(422, "validation_failed");
    }
    // That the server notes why it chose an agent is not counted.
    let full: serde_json::Map<_, _> = (0..16).map(|n| (format!("k{n}"), json!("v"))).collect();
    let run = owner.post("/api/v1/runs?wait=60", json!({"input": "hello", "metadata": full})).expect(200);
    assert_eq!((&run["metadata"]["k0"], &run["metadata"]["chosen_by"]), (&json!("v"), &json!("default")));
}

#[test]
fn a_run_says_with_which_seed_and_choice_of_a_tool_it_was_asked() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let start = |choice: &str| {
        let body = json!({"agent_id": "guide", "input": "hello", "seed": 7, "tool_choice": choice});
        owner.post("/api/v1/runs?wait=60", body)
    };
    let run = start("none").expect(200);
    assert_eq!((&run["seed"], &run["tool_choice"]), (&json!(7), &json!("none")));
    assert!(text(&start("no_such_tool").refuses(422, "validation_failed")["detail"]).contains("no_such_tool"));
    let fork = format!("/api/v1/runs/{}/fork?wait=60", text(&run["id"]));
    let forked = owner.post(&fork, json!({"system_prompt": "Answer in French."})).expect(200);
    assert_eq!(forked["seed"], 7);
    assert_ne!(forked["provenance"]["prompt_hash"], run["provenance"]["prompt_hash"]);
    owner.post(&fork, json!({"system_prompt": ""})).refuses(422, "validation_failed");
}

#[test]
fn both_ways_to_start_a_run_take_the_same_body_where_it_means_something() {
    let server = server();
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "hello", "when_busy": "queue"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let path = format!("/api/v1/chats/{}", text(&run["chat_id"]));
    let notebook = owner.get(&path).expect(200)["notebook_id"].clone();
    let again = json!({"user_message": "hello", "notebook_id": notebook, "history": []});
    owner.post(&format!("{path}/runs?wait=60"), again).expect(200);
    let other = owner.post("/api/v1/workspaces/home/notebooks", json!({"slug": "other"})).expect(201);
    for (field, value) in [("history", json!([{"role": "user", "content": "x"}])), ("notebook_id", other["id"].clone())]
    {
        let refused = owner.post(&format!("{path}/runs"), json!({"user_message": "hello", field: value}));
        let refused = refused.refuses(422, "validation_failed");
        assert_eq!(refused["errors"][0]["pointer"], json!(format!("/{field}")));
        assert!(text(&refused["hint"]).contains("POST /api/v1/runs"), "{refused}");
    }
    // A run is named alike wherever it is listed.
    let listed = owner.get("/api/v1/runs").expect(200)["data"][0].clone();
    let chat = owner.get(&format!("{path}?include=runs")).expect(200);
    assert_eq!((&chat["runs"][0]["id"], &chat["runs"][0]["agent"]), (&listed["id"], &listed["agent"]));
    assert_eq!(listed["agent"], "guide");
}
