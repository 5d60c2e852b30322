//! What others have to do with somebody's agent: who sees it, runs it, and decides what it asks.

use serde_json::{Value, json};

use super::client::{Client, Reply, Server};
use crate::house::{House, text};

/// An agent of somebody's own, that tidies as the guide does.
fn own(server: &Server, whose: &Client, more: &Value) -> Reply {
    let mut body = server.owner().get("/api/v1/agents/guide").expect(200);
    (body["name"], body["slug"], body["owner"]) = (json!("Mine"), json!("mine"), json!("user"));
    for (field, value) in more.as_object().unwrap() {
        body[field] = value.clone();
    }
    whose.post("/api/v1/agents", body)
}

fn change(who: &Client, body: Value) -> Reply {
    who.with("if-match", "*").patch("/api/v1/agents/mine", body)
}

fn start(who: &Client) -> Reply {
    who.post("/api/v1/runs?wait=60", json!({"agent_id": "mine", "input": "tidy the welcome notes"}))
}

#[test]
fn an_agent_of_somebodys_own_is_seen_and_run_by_those_it_is_shared_with_alone() {
    let server = Server::start(House::new());
    let [lee, kim, dan] = ["lee", "kim", "dan"].map(|name| server.person(name, "home", "write"));
    let rea = server.person("rea", "home", "read");
    let made = own(&server, &lee, &json!({})).expect(201);
    assert_eq!((&made["shared_with"], &made["approvers"]), (&json!([]), &json!([])));
    let listed = |who: &Client| {
        let page = who.get("/api/v1/agents").expect(200);
        page["data"].as_array().unwrap().iter().any(|agent| agent["slug"] == "mine")
    };
    for who in [&kim, &dan, &rea] {
        assert!(!listed(who));
        who.get("/api/v1/agents/mine").refuses(404, "not_found");
    }
    start(&kim).refuses(404, "not_found");

    let nobody = change(&lee, json!({"shared_with": ["kim", "zoe"]})).refuses(422, "validation_failed");
    assert!(nobody.to_string().contains("`zoe` is no member of the workspace"), "{nobody}");
    let shared = change(&lee, json!({"shared_with": ["kim", "rea"]})).expect(200);
    assert_eq!(shared["shared_with"].as_array().unwrap().len(), 2, "{shared}");
    assert!(listed(&kim) && listed(&rea) && !listed(&dan));
    let run = start(&kim).expect(200);
    start(&rea).refuses(403, "forbidden");
    start(&dan).refuses(404, "not_found");
    change(&kim, json!({"description": "ours"})).refuses(403, "forbidden");
    assert_eq!(change(&lee, json!({"description": "ours"})).expect(200)["shared_with"], shared["shared_with"]);
    let sent_back = lee.get("/api/v1/agents/mine").expect(200);
    let put = lee.with("if-match", "*").put("/api/v1/agents/mine", sent_back).expect(200);
    assert_eq!(put["shared_with"], shared["shared_with"]);

    // Whoever reads along in a shared chat does not thereby run what is asked in it.
    let chat = format!("/api/v1/chats/{}", text(&run["chat_id"]));
    kim.patch(&chat, json!({"is_shared": true})).expect(200);
    let of_run = |what: &str| format!("/api/v1/runs/{}/{what}", text(&run["id"]));
    dan.get(&of_run("events")).expect(200);
    dan.post(&of_run("fork"), json!({})).refuses(404, "not_found");

    // Whoever runs it knows what is left of its money.
    let has_budget = |who: &Client| {
        let list = who.get("/api/v1/budgets").expect(200);
        list["data"].as_array().unwrap().iter().any(|line| line["kind"] == "agent" && line["name"] == "mine")
    };
    assert!(has_budget(&lee) && has_budget(&kim) && !has_budget(&dan));

    // What was shared can be taken back, and then what was begun is not gone on with either.
    assert_eq!(change(&lee, json!({"shared_with": null})).expect(200)["shared_with"], json!([]));
    kim.post(&of_run("cancel"), json!({})).expect(200);
    assert!(!listed(&kim));
    for (path, body) in [
        (of_run("fork"), json!({})),
        (of_run("edit"), json!({"new_user_message": "again"})),
        (format!("{chat}/runs"), json!({"user_message": "again"})),
    ] {
        kim.post(&path, body).refuses(404, "not_found");
    }
    start(&server.owner()).expect(200);
}

#[test]
fn whoever_comes_back_into_a_workspace_finds_nothing_shared() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let (lee, kim) = (server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    own(&server, &lee, &json!({"shared_with": ["kim"], "approvers": ["kim"]})).expect(201);
    kim.get("/api/v1/agents/mine").expect(200);
    let member = "/api/v1/workspaces/home/members/kim";
    assert_eq!(owner.delete(member).status, 204);
    owner.put(member, json!({"role": "write"})).expect(200);
    kim.get("/api/v1/agents/mine").refuses(404, "not_found");
    let mine = lee.get("/api/v1/agents/mine").expect(200);
    assert_eq!((&mine["shared_with"], &mine["approvers"]), (&json!([]), &json!([])));
}

#[test]
fn a_named_approver_decides_what_an_agent_asks_and_nothing_else() {
    let server = Server::start(House::new());
    let [lee, kim, dan] = ["lee", "kim", "dan"].map(|name| server.person(name, "home", "write"));
    let rea = server.person("rea", "home", "read");
    own(&server, &lee, &json!({"approvers": ["kim", "rea"]})).expect(201);
    let run = start(&lee).expect(200);
    let path = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    let waits = |who: &Client| {
        let page = who.get("/api/v1/approvals?status=pending").expect(200);
        page["data"].as_array().unwrap().iter().map(|item| item["may_decide"] == true).collect::<Vec<_>>()
    };
    assert_eq!((waits(&lee), waits(&kim), waits(&rea), waits(&dan)), (vec![true], vec![true], vec![false], vec![]));
    // They see what it asks, and neither the agent nor what is said to it.
    kim.get(&format!("/api/v1/runs/{}", text(&run["id"]))).refuses(404, "not_found");
    kim.get("/api/v1/agents/mine").refuses(404, "not_found");
    assert_eq!(kim.get(&path).expect(200)["allowed_scopes"], json!(["once", "run", "chat"]));
    let decide = |who: &Client, body: Value| who.post(&format!("{path}/decision"), body);
    dan.get(&path).refuses(404, "not_found");
    decide(&dan, json!({"decision": "approve"})).refuses(404, "not_found");
    decide(&rea, json!({"decision": "approve"})).refuses(403, "forbidden");
    decide(&kim, json!({"decision": "approve", "scope": "always"})).refuses(403, "forbidden");
    let decided = decide(&kim, json!({"decision": "reject"})).expect(200);
    assert_eq!(
        (&decided["status"], &decided["decided_by"]),
        (&json!("rejected"), &kim.get("/api/v1/me").expect(200)["user_id"]),
        "{decided}"
    );
    // Once they are none any more, they are nobody to it.
    let run = start(&lee).expect(200);
    change(&lee, json!({"approvers": ["rea"]})).expect(200);
    assert_eq!(waits(&kim), Vec::<bool>::new());
    let path = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    kim.post(&path, json!({"decision": "approve"})).refuses(404, "not_found");
}

#[test]
fn what_somebody_queued_is_started_while_the_agent_is_shared_with_them() {
    let server = Server::start(House::new());
    let (lee, kim) = (server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    own(&server, &lee, &json!({"shared_with": ["kim"], "approvers": ["kim"]})).expect(201);
    // A run that asks keeps its chat busy until it is cancelled.
    let queued = || {
        let first = start(&kim).expect(200);
        let body = json!({"user_message": "what files are here", "when_busy": "queue"});
        let next = kim.post(&format!("/api/v1/chats/{}/runs", text(&first["chat_id"])), body).expect(202);
        (format!("/api/v1/runs/{}/cancel", text(&first["id"])), next["id"].clone())
    };
    let mut news = kim.follow("GET", "/api/v1/events?topics=runs", None);
    assert_eq!(news.next().unwrap().name, "reread");
    let (cancel, next) = queued();
    kim.post(&cancel, json!({})).expect(200);
    news.find(|event| event.data["id"] == next && event.data["status"] == "COMPLETED").unwrap();

    let (cancel, next) = queued();
    assert_eq!(change(&lee, json!({"shared_with": null, "approvers": null})).expect(200)["approvers"], json!([]));
    kim.post(&cancel, json!({})).expect(200);
    let told = news.find(|event| event.data["id"] == next && event.data["status"] == "FAILED").unwrap();
    assert!(text(&told.data["error"]).contains("there is no agent"), "{:?}", told.data);
}
