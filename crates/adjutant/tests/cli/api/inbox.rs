//! Deciding over HTTP: bound to what was shown, once, and only by those who may.

use std::io::Read;

use serde_json::{Value, json};

use super::client::{Client, Server};
use super::flow::scripted;
use crate::house::{House, text};

#[test]
fn a_decision_is_about_what_was_shown_and_is_taken_once() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    assert_eq!(run["status"], "WAITING_APPROVAL");
    let path = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    let shown = owner.get(&path).expect(200);
    assert!(text(&shown["diff"]).contains("mlik") && shown["allowed_scopes"].is_array(), "{shown}");
    let decision = format!("{path}/decision");
    let stale = json!({"decision": "approve", "fingerprint": "00".repeat(32)});
    let problem = owner.post(&decision, stale).refuses(412, "stale_version");
    assert_eq!(problem["approval"]["fingerprint"], shown["fingerprint"]);
    owner.post(&decision, json!({"decision": "perhaps"})).refuses(422, "validation_failed");
    owner.post(&decision, json!({})).refuses(422, "validation_failed");
    owner.post(&decision, json!({"decision": "edit", "arguments": []})).refuses(422, "validation_failed");
    let decided =
        owner.post(&decision, json!({"decision": "approve", "fingerprint": shown["fingerprint"]})).expect(200);
    assert_eq!((&decided["status"], &decided["decision"]), (&json!("approved"), &json!("approve")));
    let again = owner.post(&decision, json!({"decision": "reject"})).refuses(409, "already_decided");
    assert_eq!(again["decision"]["decision"], "approve");
}

#[test]
fn a_batch_decides_each_for_itself() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let id = text(&run["pending_approvals"][0]);
    let decisions = json!({"decisions": [
        {"approval_id": id, "decision": "reject", "message": "not now"},
        {"approval_id": "approval_none", "decision": "approve"},
    ]});
    let done = owner.post("/api/v1/approvals/batch", decisions).expect(200);
    assert_eq!((&done["data"][0]["ok"], &done["data"][1]["ok"]), (&json!(true), &json!(false)), "{done}");
    assert_eq!(done["data"][1]["problem"]["code"], "not_found");
    assert_eq!(owner.get(&format!("/api/v1/approvals/{id}")).expect(200)["status"], "rejected");
}

#[test]
fn what_was_decided_is_listed_newest_first_and_in_pages() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let asked: Vec<String> = (0..4)
        .map(|_| text(&owner.post("/api/v1/runs?wait=60", body.clone()).expect(200)["pending_approvals"][0]))
        .collect();
    for (id, decision) in asked.iter().zip(["reject", "respond", "reject"]) {
        let body = json!({"decision": decision, "message": "not now"});
        owner.post(&format!("/api/v1/approvals/{id}/decision"), body).expect(200);
    }
    let list = |query: &str| owner.get(&format!("/api/v1/approvals?{query}")).expect(200);
    let ids = |page: &Value| page["data"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect::<Vec<_>>();
    let first = list("status=decided&order=desc&limit=2");
    assert_eq!(ids(&first), [asked[2].clone(), asked[1].clone()]);
    let rest = list(&format!("status=decided&order=desc&limit=2&cursor={}", text(&first["next_cursor"])));
    assert_eq!((ids(&rest), &rest["has_more"]), (vec![asked[0].clone()], &json!(false)));
    assert_eq!(ids(&list("status=pending&order=asc")), [asked[3].clone()]);
    assert_eq!(ids(&list("status=rejected")), asked[..3]);
    for wrong in ["order=sideways", "status=settled"] {
        owner.get(&format!("/api/v1/approvals?{wrong}")).refuses(422, "validation_failed");
    }
}

#[test]
fn only_the_starter_an_owner_of_the_agent_or_an_admin_decides() {
    let server = Server::start(House::new());
    let (lee, kim) = (server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    let chat = lee.post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    lee.patch(&path, json!({"is_shared": true})).expect(200);
    let body = json!({"user_message": "tidy the welcome notes"});
    let run = lee.post(&format!("{path}/runs?wait=60"), body).expect(200);
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    kim.post(&decision, json!({"decision": "approve"})).refuses(403, "forbidden");
    server.owner().post(&decision, json!({"decision": "reject"})).expect(200);
}

#[test]
fn an_item_says_whether_whoever_looks_may_decide_it_and_where_it_is() {
    let server = Server::start(House::new());
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    let chat = lee.post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    lee.patch(&path, json!({"is_shared": true})).expect(200);
    let body = json!({"user_message": "tidy the welcome notes"});
    let run = lee.post(&format!("{path}/runs?wait=60"), body).expect(200);
    let one = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    let made =
        owner.post("/api/v1/tokens", json!({"name": "ci", "scopes": ["read", "run", "write", "admin"]})).expect(201);
    let token = server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])));
    let may = |who: &Client| {
        let listed = who.get("/api/v1/approvals").expect(200)["data"][0].clone();
        let shown = who.get(&one).expect(200);
        assert_eq!((&listed["may_decide"], &listed["workspace_id"]), (&shown["may_decide"], &chat["workspace_id"]));
        shown["may_decide"].as_bool().unwrap()
    };
    assert!(may(&lee) && may(&owner));
    // They see it in a shared chat, and cannot answer it.
    let others = [server.person("kim", "home", "write"), server.person("rea", "home", "read"), token];
    for (nth, who) in others.iter().enumerate() {
        assert!(!may(who), "{nth}");
        who.post(&format!("{one}/decision"), json!({"decision": "approve"})).refuses(403, "forbidden");
    }
    lee.post(&format!("{one}/decision"), json!({"decision": "reject"})).expect(200);
    assert!(!may(&lee), "what was decided waits for nobody");
}

#[test]
fn whose_the_agent_is_decides_what_it_asks_whoever_started_it() {
    let server = Server::start(House::new());
    let (owner, lee, kim) =
        (server.owner(), server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    let mut body = owner.get("/api/v1/agents/guide").expect(200);
    (body["name"], body["slug"], body["owner"]) = (json!("Mine"), json!("mine"), json!("user"));
    lee.post("/api/v1/agents", body).expect(201);
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "mine", "input": "tidy the welcome notes"}));
    let run = run.expect(200);
    let path = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    for (person, waits) in [(&lee, 1), (&kim, 0)] {
        person.get(&format!("/api/v1/runs/{}", text(&run["id"]))).refuses(404, "not_found");
        let listed = person.get("/api/v1/approvals?status=pending").expect(200);
        assert_eq!(listed["data"].as_array().unwrap().len(), waits, "{listed}");
        let told = person.follow("GET", "/api/v1/events?topics=approvals", None).nth(1).unwrap();
        assert_eq!((told.name.as_str(), &told.data["pending"]), ("inbox", &json!(waits)));
    }
    kim.get(&path).refuses(404, "not_found");
    kim.post(&format!("{path}/decision"), json!({"decision": "approve"})).refuses(404, "not_found");
    assert_eq!(lee.get(&path).expect(200)["status"], "pending");
    assert_eq!(lee.post(&format!("{path}/decision"), json!({"decision": "reject"})).expect(200)["status"], "rejected");
}

#[test]
fn a_yes_for_always_takes_somebody_who_rules_the_agent() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "write"));
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = kim.post("/api/v1/runs?wait=60", body).expect(200);
    let path = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    assert_eq!(owner.get(&path).expect(200)["allowed_scopes"], json!(["once", "run", "chat", "always"]));
    assert_eq!(kim.get(&path).expect(200)["allowed_scopes"], json!(["once", "run", "chat"]));
    let yes = |scope: &str| kim.post(&format!("{path}/decision"), json!({"decision": "approve", "scope": scope}));
    yes("always").refuses(403, "forbidden");
    assert_eq!(owner.get("/api/v1/rules").expect(200)["data"], json!([]));
    yes("chat").expect(200);
}

#[test]
fn a_run_does_no_more_than_whoever_started_it_may_do_by_then() {
    let server = Server::start(House::new());
    let owner = server.owner();
    for (name, change) in [("kim", Some("read")), ("lee", None)] {
        let person = server.person(name, "home", "write");
        let run = person.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"}));
        let run = run.expect(200);
        let member = format!("/api/v1/workspaces/home/members/{name}");
        match change {
            Some(role) => drop(owner.put(&member, json!({"role": role})).expect(200)),
            None => assert_eq!(owner.delete(&member).status, 204),
        }
        let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
        owner.post(&decision, json!({"decision": "approve"})).expect(200);
        let ended = owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);
        let actions = ended["actions"].as_array().unwrap();
        let written = actions.iter().find(|action| action["tool_name"] == "write_file").unwrap();
        assert_eq!((&written["rule"], &written["attempts"]), (&json!("role"), &json!(0)), "{name}: {written}");
        assert!(std::fs::read_to_string(server.house.note("todo.md")).unwrap().contains("mlik"), "{name}");
    }
}

/// A server that takes what is sent to it and hangs up. Says its address.
fn rude() -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut taken = [0; 4096];
            let _ = stream.unwrap().read(&mut taken);
        }
    });
    address
}

/// A server whose model orders at an address that takes the order and hangs up, and the agent that does so.
fn buying(url: &str) -> (Server, Value) {
    let script = format!(
        "- when: {{ turn: 1 }}\n  calls: [{{ name: http_request, arguments: {{ method: POST, url: '{url}', body: 'two cakes, password=hunter2hunter2' }} }}]\n\
         - text: \"I was told: ${{last_result}}\"\n"
    );
    let house = House::new();
    std::fs::write(house.path().join("script.yaml"), script).unwrap();
    let provider = "[providers.test]\nkind = \"scripted\"\nscript = \"../../script.yaml\"\n";
    house.configure(&format!("default_model = \"test/script\"\nallow_private = \"127.0.0.0/8\"\n{provider}"));
    let address = url.trim_start_matches("http://").trim_end_matches("/orders");
    let port: u16 = address.rsplit_once(':').unwrap().1.parse().unwrap();
    let agent = json!({
        "workspace_id": "home", "name": "Buyer", "toolsets": ["web"], "autonomy": "full",
        "can_access_integrations": true,
        "allowed_hosts": {"hosts": ["127.0.0.1"], "schemes": ["http"], "ports": [port], "allow_private": ["127.0.0.0/8"]},
    });
    (Server::start(house), agent)
}

#[test]
fn a_call_in_doubt_is_settled_by_whoever_decides_for_the_agent() {
    let (server, mut agent) = buying(&format!("http://{}/orders", rude()));
    let [lee, kim, dan] = ["lee", "kim", "dan"].map(|name| server.person(name, "home", "write"));
    agent["approvers"] = json!(["kim"]);
    lee.post("/api/v1/agents", agent).expect(201);
    let doubt = || {
        let started = server.owner().post("/api/v1/runs?wait=60", json!({"agent_id": "buyer", "input": "order"}));
        let run = started.expect(200);
        assert_eq!(run["status"], "IN_DOUBT", "{run}");
        let call = server.owner().get("/api/v1/approvals?status=pending").expect(200)["data"][0]["call_id"].clone();
        (format!("/api/v1/runs/{}", text(&run["id"])), json!({"call_id": call, "outcome": "abandon"}))
    };
    for whose in [&lee, &kim] {
        let (run, said) = doubt();
        whose.get(&run).refuses(404, "not_found");
        dan.post(&format!("{run}/in-doubt"), said.clone()).refuses(404, "not_found");
        whose.post(&format!("{run}/in-doubt"), said).expect(200);
        assert_eq!(server.owner().get(&format!("{run}?wait=60")).expect(200)["status"], "COMPLETED");
    }
    // Whoever only reads along cannot.
    let (run, said) = doubt();
    let chat = text(&server.owner().get(&run).expect(200)["chat_id"]);
    server.owner().patch(&format!("/api/v1/chats/{chat}"), json!({"is_shared": true})).expect(200);
    dan.get(&run).expect(200);
    dan.post(&format!("{run}/in-doubt"), said).refuses(403, "forbidden");
}

#[test]
fn a_call_in_doubt_shows_what_was_sent_what_is_known_of_it_and_takes_its_result() {
    let url = format!("http://{}/orders", rude());
    let (server, agent) = buying(&url);
    let owner = server.owner();
    owner.post("/api/v1/agents", agent).expect(201);
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "buyer", "input": "order"})).expect(200);
    assert_eq!(run["status"], "IN_DOUBT", "{run}");
    let path = format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]));
    let shown = owner.get(&path).expect(200);
    assert_eq!(
        (&shown["kind"], &shown["allowed_decisions"]),
        (&json!("in_doubt"), &json!(["happened", "run", "abandon"]))
    );
    assert_eq!((&shown["arguments"]["method"], &shown["arguments"]["url"]), (&json!("POST"), &json!(url)), "{shown}");
    let body = text(&shown["arguments"]["body"]);
    assert!(body.starts_with("two cakes, ") && !body.contains("hunter2") && shown["hidden"] == true, "{shown}");
    assert!(text(&shown["summary"]).starts_with(&format!("POST {url}")), "{shown}");
    let known = text(&shown["reason"]);
    assert!(known.ends_with("Whether the request was carried out is not known."), "{known}");
    let whole = owner.get(&format!("{path}?reveal=true")).expect(200);
    assert!(text(&whole["arguments"]["body"]).contains("hunter2"), "{whole}");
    let listed = owner.get("/api/v1/approvals?status=pending").expect(200);
    assert_eq!(listed["data"][0]["summary"], shown["summary"]);
    let events = owner.get(&format!("/api/v1/runs/{}/events", text(&run["id"]))).expect(200);
    let told = events["data"].as_array().unwrap().iter().find(|event| event["event"] == "in_doubt").unwrap().clone();
    assert!(text(&told["data"]["tool_input"]).contains(&url) && told["data"]["summary"] == shown["summary"], "{told}");
    let happened = json!({"decision": "happened", "message": "order 17"});
    owner.post(&format!("{path}/decision"), happened).expect(200);
    let ended = owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);
    assert_eq!(ended["result"], "I was told: order 17", "{ended}");
}

#[test]
fn a_guest_answers_for_their_run_and_not_for_the_chat_of_another() {
    let script = "- when: { turn: 1 }\n  calls: [{ name: write_file, arguments: { path: /new.md, content: hello } }]\n\
                  - text: Done.\n";
    let server = Server::start(scripted(script));
    let (ada, bob) = (server.person("ada", "home", "write"), server.person("bob", "home", "write"));
    let chat = ada.post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    ada.patch(&path, json!({"is_shared": true})).expect(200);
    let ask = |who: &Client| {
        let run = who.post(&format!("{path}/runs?wait=60"), json!({"user_message": "write"})).expect(200);
        (
            format!("/api/v1/runs/{}", text(&run["id"])),
            format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0])),
        )
    };
    let (run, asked) = ask(&bob);
    let offered = |who: &Client, asked: &str| who.get(asked).expect(200)["allowed_scopes"].clone();
    assert_eq!(offered(&bob, &asked), json!(["once", "run"]));
    let decide = |who: &Client, asked: &str, scope: &str| {
        who.post(&format!("{asked}/decision"), json!({"decision": "approve", "scope": scope}))
    };
    decide(&bob, &asked, "chat").refuses(403, "forbidden");
    decide(&bob, &asked, "run").expect(200);
    bob.get(&format!("{run}?wait=60")).expect(200);
    let rules = |who: &Client| who.get("/api/v1/rules").expect(200)["data"].as_array().unwrap().clone();
    // Whose chat it is may, and takes it back; a stranger does not hear of it once it is theirs alone.
    let (_, asked) = ask(&ada);
    assert_eq!(offered(&ada, &asked), json!(["once", "run", "chat"]));
    decide(&ada, &asked, "chat").expect(200);
    let given = rules(&ada).into_iter().find(|rule| rule["chat"] == chat["id"]).unwrap();
    let rule = format!("/api/v1/rules/{}", text(&given["id"]));
    bob.get(&rule).expect(200);
    bob.delete(&rule).refuses(403, "forbidden");
    ada.patch(&path, json!({"is_shared": false})).expect(200);
    bob.get(&rule).refuses(404, "not_found");
    assert!(rules(&bob).iter().all(|rule| rule["chat"].is_null()), "{:?}", rules(&bob));
    assert_eq!(rules(&server.owner()).len(), 2);
    assert_eq!(ada.delete(&rule).status, 204);
    // One that somebody gave is theirs to take back.
    let given = rules(&bob).pop().unwrap();
    assert_eq!(bob.delete(&format!("/api/v1/rules/{}", text(&given["id"]))).status, 204);
}

#[test]
fn rules_of_a_private_agent_are_for_whose_it_is() {
    let server = Server::start(House::new());
    let (ada, bob) = (server.person("ada", "home", "write"), server.person("bob", "home", "read"));
    let agent = ada.post("/api/v1/agents", json!({"name": "Mine"})).expect(201);
    let write = |body: Value| text(&server.owner().post("/api/v1/rules", body).expect(201)["id"]);
    let about = write(json!({"tool": "*", "decision": "deny", "agent": agent["id"], "when": {"folders": ["/pay"]}}));
    let all = write(json!({"tool": "delete_file", "decision": "deny"}));
    let seen = |who: &Client| -> Vec<String> {
        who.get("/api/v1/rules").expect(200)["data"].as_array().unwrap().iter().map(|rule| text(&rule["id"])).collect()
    };
    assert_eq!(seen(&bob), std::slice::from_ref(&all));
    assert_eq!(seen(&ada), [about.clone(), all]);
    bob.get(&format!("/api/v1/rules/{about}")).refuses(404, "not_found");
    ada.delete(&format!("/api/v1/rules/{about}")).refuses(403, "forbidden");
}
