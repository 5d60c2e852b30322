//! Agents over HTTP: from templates, asked beforehand, changed by version.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::client::{Client, Server};
use crate::house::{House, text};

#[test]
fn an_agent_is_changed_by_version_and_sent_back_as_it_came() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let read = owner.get("/api/v1/agents/guide");
    let tag = read.headers["etag"].clone();
    let patch = json!({"description": "Another"});
    owner.patch("/api/v1/agents/guide", patch.clone()).refuses(428, "precondition_required");
    let changed = owner.with("if-match", &tag).patch("/api/v1/agents/guide", patch.clone());
    assert_eq!(changed.expect(200)["description"], "Another");
    owner.with("if-match", &tag).patch("/api/v1/agents/guide", patch).refuses(412, "stale_version");
    let again = owner.with("if-match", &changed.headers["etag"]).put("/api/v1/agents/guide", changed.json());
    let same = |answer: &Value| {
        let mut fields = answer.as_object().unwrap().clone();
        fields.retain(|name, _| name != "version" && name != "updated_at");
        fields
    };
    assert_eq!(same(&again.expect(200)), same(&changed.json()));
    let back = owner.post("/api/v1/agents/guide/reset", json!({})).expect(200);
    assert_eq!(back["description"], read.json()["description"]);
}

#[test]
fn an_agent_with_every_field_that_is_written_down_is_made() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let home = owner.get("/api/v1/workspaces/home").expect(200);
    let body = json!({"workspace_id": home["id"], "name": "Research Assistant", "slug": "research", "description": "",
        "owner": "user", "model": "anthropic/claude-sonnet-4-5", "fallback_models": [], "routing": "balanced",
        "temperature": 0.7, "system_prompt": "", "scope": {"notebooks": ["*"], "folders": ["/experiments", "/notes"],
        "file_types": ["*.md"], "operations": ["read", "write", "create"]}, "can_read": true, "can_write": true,
        "can_create": true, "can_delete": false, "can_execute_code": false, "can_access_integrations": false,
        "permission_level": "write", "categories": ["file_read", "file_write"], "tools": [], "toolsets": ["files"],
        "denied_tools": [], "allowed_hosts": [], "autonomy": "low", "requires_approval": ["write_file"],
        "max_turns": 50, "max_tool_calls": 200, "max_tokens_per_request": 4000, "max_requests_per_hour": 100,
        "max_concurrent_runs": 2,
        "budget": {"run_usd": 0.5, "day_usd": null, "month_usd": 20, "alert_at_usd": [1, 5, 10]},
        "memory": {"enabled": false}, "flow": "ask", "requires": [], "is_active": true});
    let made = owner.post("/api/v1/agents", body.clone()).expect(201);
    assert_eq!((&made["slug"], &made["memory"]), (&json!("research"), &json!({"enabled": false})));
    let path = "/api/v1/agents/research";
    let any = owner.with("if-match", "*");
    let kept = any.patch(path, json!({"data_access": ["experiments", "mail"]})).expect(200);
    assert_eq!(kept["data_access"], json!(["experiments", "mail"]));
    assert_eq!(any.put(path, kept.clone()).expect(200)["data_access"], kept["data_access"], "sent back as it came");
    let refused = any.patch(path, json!({"memory": {"enabled": true}})).refuses(422, "validation_failed");
    assert_eq!(refused["errors"][0]["pointer"], "/memory/enabled");
    assert!(text(&refused["errors"][0]["detail"]).contains("do not remember yet"), "{refused}");
    any.patch(path, json!({"data_access": ["x".repeat(65)]})).refuses(422, "validation_failed");
}

#[test]
fn an_agent_is_answered_as_it_is_taken_with_every_default_written_out() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let plain = owner.post("/api/v1/agents", json!({"name": "Plain"})).expect(201);
    for (field, usual) in [
        ("approval_expires_in", json!("24h")),
        ("allowed_hosts", json!([])),
        ("memory", json!({"enabled": false})),
        ("requires", json!([])),
        ("model_options", json!({})),
        ("data_access", json!([])),
        ("provider_key_id", Value::Null),
        ("scope", json!({"notebooks": [], "folders": [], "file_types": null, "operations": null})),
    ] {
        assert_eq!(plain.get(field), Some(&usual), "{field}");
    }
    assert_eq!(plain.get("approval_expires_secs"), None);
    let any = owner.with("if-match", "*");
    let path = "/api/v1/agents/plain";
    let change = json!({"approval_expires_in": "90m", "allowed_hosts": ["a.example"]});
    let listed = any.patch(path, change).expect(200);
    assert_eq!((&listed["approval_expires_in"], &listed["allowed_hosts"]), (&json!("90m"), &json!(["a.example"])));
    // More than hosts is a policy, and a part of it leaves the rest as it is.
    let ports = any.patch(path, json!({"allowed_hosts": {"ports": [8443]}})).expect(200);
    assert_eq!(ports["allowed_hosts"], json!({"hosts": ["a.example"], "ports": [8443]}));
    let back = any.put(path, ports.clone()).expect(200);
    for field in ["approval_expires_in", "allowed_hosts", "scope", "memory"] {
        assert_eq!(back[field], ports[field], "{field}");
    }
}

#[test]
fn a_notebook_outside_the_scope_of_an_agent_is_told_apart_from_one_that_nobody_may_see() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let made = owner.post("/api/v1/workspaces/home/notebooks", json!({"slug": "diary"})).expect(201);
    let body = json!({"name": "Narrow", "owner": "workspace", "scope": {"notebooks": ["welcome"], "folders": ["/"]}});
    owner.post("/api/v1/agents", body).expect(201);
    let writer = server.person("kim", "home", "write");
    for path in ["/api/v1/runs", "/api/v1/chats"] {
        let mut body = json!({"agent_id": "narrow", "notebook_id": made["id"]});
        if path.ends_with("runs") {
            body["input"] = json!("hello");
        }
        let refused = writer.post(path, body.clone()).refuses(403, "scope_violation");
        assert_eq!(
            refused["detail"],
            "The scope of the agent `narrow` does not name the notebook `diary`. Nothing was done."
        );
        assert!(text(&refused["hint"]).contains("scope.notebooks"), "{refused}");
        body["notebook_id"] = json!("nb_01jzzzzzzzzzzzzzzzzzzzzzzz");
        writer.post(path, body).refuses(404, "not_found");
    }
    assert_eq!(owner.get("/api/v1/chats?agent=narrow").expect(200)["data"], json!([]));
}

#[test]
fn eight_templates_can_be_taken_over_and_speak_up_by_keyword() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let templates = owner.get("/api/v1/agents/templates").expect(200);
    assert_eq!(templates["data"].as_array().unwrap().len(), 8);
    let planned = owner.post("/api/v1/agents/resync?dry_run=true", json!({})).expect(200);
    let of = |page: &Value, slug: &str| {
        let found = page["data"].as_array().unwrap().iter().find(|row| row["slug"] == slug).unwrap().clone();
        text(&found["change"])
    };
    assert_eq!((of(&planned, "guide"), of(&planned, "coder")), ("same".to_owned(), "made".to_owned()));
    owner.get("/api/v1/agents/coder").refuses(404, "not_found");
    owner.post("/api/v1/agents/resync", json!({})).expect(200);
    let settled = owner.post("/api/v1/agents/resync?dry_run=true", json!({})).expect(200);
    assert!(settled["data"].as_array().unwrap().iter().all(|row| row["change"] == "same"), "{settled}");
    for (input, agent) in [
        ("please give me the key points of /todo.md", "summariser"),
        ("@reviewer write something", "reviewer"),
        ("hello there", "guide"),
    ] {
        let run = owner.post("/api/v1/runs", json!({"input": input})).expect(202);
        let chosen = owner.get(&format!("/api/v1/agents/{}", text(&run["agent_id"]))).expect(200);
        assert_eq!(chosen["slug"], agent, "{input}");
    }
    let told = owner.get("/api/v1/agents/reviewer/prompt").expect(200);
    assert!(text(&told["system_prompt"]).contains("What you may do") && !told["tools"].as_array().unwrap().is_empty());
}

#[test]
fn a_message_goes_to_the_agent_of_another_person_only_by_its_name() {
    let server = Server::start(House::new());
    let (bob, adam) = (server.person("bob", "home", "write"), server.person("adam", "home", "admin"));
    bob.post("/api/v1/agents", json!({"name": "Trap", "keywords": ["quarterly"]})).expect(201);
    let chosen = |client: &Client, input: &str| {
        let run = client.post("/api/v1/runs", json!({"input": input})).expect(202);
        text(&server.owner().get(&format!("/api/v1/agents/{}", text(&run["agent_id"]))).expect(200)["slug"])
    };
    for input in ["the quarterly numbers", "ask @trap about it"] {
        assert_eq!(chosen(&bob, input), "trap", "{input}");
        assert_eq!(chosen(&adam, input), "guide", "{input}");
        assert_eq!(chosen(&server.owner(), input), "guide", "{input}");
    }
    adam.post("/api/v1/runs", json!({"agent_id": "trap", "input": "hello"})).expect(202);
    // Sharing it makes it known, and takes no messages by itself.
    bob.with("if-match", "*").patch("/api/v1/agents/trap", json!({"shared_with": ["adam"]})).expect(200);
    assert_eq!(chosen(&adam, "the quarterly numbers"), "guide");
    assert_eq!(chosen(&adam, "ask @trap about it"), "trap");
}

#[test]
fn a_resync_leaves_the_agents_of_people_alone() {
    let server = Server::start(House::new());
    let bob = server.person("bob", "home", "write");
    let own = bob.post("/api/v1/agents", json!({"name": "Coder", "system_prompt": "Mine."})).expect(201);
    for path in ["/api/v1/agents/resync?dry_run=true", "/api/v1/agents/resync"] {
        let done = server.owner().post(path, json!({})).expect(200);
        let coder = done["data"].as_array().unwrap().iter().find(|row| row["slug"] == "coder").unwrap().clone();
        assert_eq!((&coder["change"], &coder["agent_id"]), (&json!("taken"), &Value::Null), "{coder}");
    }
    assert_eq!(bob.get("/api/v1/agents/coder").expect(200)["version"], own["version"]);
    server.owner().get("/api/v1/agents/writer").expect(200);
}

#[test]
fn an_agent_is_taken_along_as_a_file_and_brought_back() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let body = json!({"name": "Librarian", "system_prompt": "Keep order.\n\nAsk first.", "can_write": true,
        "scope": {"notebooks": ["*"], "folders": [{"path": "/shelf", "operations": ["read", "write"]}]},
        "tools": ["read_file"], "budget": {"run_usd": 0.25}, "fallback_models": ["demo/guide"]});
    owner.post("/api/v1/agents", body).expect(201);
    let file = owner.get("/api/v1/agents/librarian/file");
    assert!(file.headers["content-disposition"].contains("librarian.md"), "{file:?}");
    assert!(file.text.starts_with("---\nname: Librarian\n") && file.text.ends_with("Keep order.\n\nAsk first.\n"));
    assert!(!file.text.contains("max_turns"), "what is as usual is left out: {}", file.text);
    let text = file.text.replace("librarian", "second");
    let read = owner.post("/api/v1/agents/file", json!({"text": text})).expect(200);
    owner.get("/api/v1/agents/second").refuses(404, "not_found");
    let made = owner.post("/api/v1/agents", read).expect(201);
    let first = owner.get("/api/v1/agents/librarian").expect(200);
    for field in ["name", "system_prompt", "scope", "tools", "toolsets", "budget", "fallback_models", "can_write"] {
        assert_eq!(made[field], first[field], "{field}");
    }
    let preset =
        owner.post("/api/v1/agents/file", json!({"text": "---\nname: A\npreset: standard\n---\n"})).expect(200);
    assert_eq!(
        (&preset["can_write"], &preset["can_delete"], &preset["preset"]),
        (&json!(true), &json!(false), &json!(null))
    );
    let wrong = owner.post("/api/v1/agents/file", json!({"text": "---\nname: A\nautonomi: low\n---\n"}));
    assert!(wrong.text.contains("line 3") && wrong.text.contains("autonomy"), "{wrong:?}");
    wrong.refuses(422, "validation_failed");
}

#[test]
fn an_agent_that_names_tools_that_do_not_exist_is_not_saved() {
    let house = House::new();
    house.configure("[tools]\nnetwork = false\n");
    let server = Server::start(house);
    let owner = server.owner();
    let wrong = json!({"name": "Typo", "tools": ["read_fil"], "toolsets": ["file"], "denied_tools": ["delete_fil"],
        "requires_approval": ["write_fil"], "tool_limits": {"list_fils": 3}});
    let problem = owner.post("/api/v1/agents", wrong).refuses(422, "validation_failed");
    let errors = problem["errors"].as_array().unwrap();
    for (field, name) in [
        ("tools", "read_fil"),
        ("toolsets", "file"),
        ("denied_tools", "delete_fil"),
        ("requires_approval", "write_fil"),
        ("tool_limits", "list_fils"),
    ] {
        let told = errors.iter().find(|error| error["pointer"] == format!("/{field}")).unwrap();
        let detail = told["detail"].as_str().unwrap();
        assert!(detail.starts_with("there is no tool") && detail.ends_with(&format!("`{name}`")), "{told}");
    }
    owner.get("/api/v1/agents/typo").refuses(404, "not_found");
    let right = json!({"name": "Careful", "toolsets": ["files", "web"], "denied_tools": ["http_request"]});
    owner.post("/api/v1/agents", right).expect(201);
    let tag = owner.get("/api/v1/agents/careful").headers["etag"].clone();
    let worse = json!({"denied_tools": ["http_requests"]});
    owner.with("if-match", &tag).patch("/api/v1/agents/careful", worse).refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/agents/careful").expect(200)["denied_tools"], json!(["http_request"]));
}

#[test]
fn what_an_agent_may_do_is_asked_of_the_guard_beforehand() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let can = |body: Value| owner.post("/api/v1/agents/guide/can", body).expect(200);
    assert_eq!(can(json!({"action": "read", "path": "/todo.md"}))["verdict"], "allow");
    assert_eq!(can(json!({"action": "write", "path": "/todo.md"}))["verdict"], "ask");
    let no = can(json!({"action": "delete", "path": "/todo.md"}));
    assert!(no["verdict"] == "deny" && no["rule"].is_string(), "{no}");
    assert_eq!(can(json!({"tool": "read_file", "arguments": {"path": "/.git/config"}}))["verdict"], "deny");
    for misfit in [json!({"path": "/a.md", "content": "x", "bogus": 1}), json!({"path": "/a.md"})] {
        let no = can(json!({"tool": "write_file", "arguments": misfit}));
        assert_eq!((&no["verdict"], &no["rule"]), (&json!("deny"), &json!("arguments")), "{no}");
        let meant = json!({"tool_name": "write_file", "arguments": misfit});
        assert_eq!(
            can(json!({"tool": "use_tool", "arguments": meant}))["rule"],
            "arguments",
            "it is judged as the inner tool"
        );
    }
    assert_eq!(can(json!({"tool": "write_file", "arguments": {"path": "/a.md", "content": "x"}}))["verdict"], "ask");
    owner.post("/api/v1/agents/guide/can", json!({"path": "/x"})).refuses(422, "validation_failed");
    let web = can(json!({"url": "https://example.org/page"}));
    assert_eq!((&web["verdict"], &web["tool"]), (&json!("deny"), &json!("fetch_web_page")), "{web}");
    let both = json!({"url": "https://example.org/", "tool": "read_file"});
    owner.post("/api/v1/agents/guide/can", both).refuses(422, "validation_failed");

    let draft = json!({"name": "Draft", "scope": {"notebooks": ["*"], "folders": ["/todo.md"]}});
    let reach = owner.post("/api/v1/scope/preview", draft).expect(200);
    assert_eq!((&reach["reach"]["read"]["count"], &reach["reach"]["write"]["count"]), (&json!(1), &json!(0)));
    assert_eq!(reach["change"], json!(null));
    owner.get("/api/v1/agents/draft").refuses(404, "not_found");
    let edit = json!({"name": "Draft", "can_delete": true, "scope": {"notebooks": ["*"], "folders": ["/todo.md"]}, "against": "guide"});
    let change = owner.post("/api/v1/scope/preview", edit).expect(200)["change"].take();
    assert_eq!(change["delete"]["added"], json!({"count": 1, "samples": ["/todo.md"]}));
    let lost = &change["read"]["removed"];
    assert!(
        lost["count"].as_u64().unwrap() > 1 && !lost["samples"].as_array().unwrap().contains(&json!("/todo.md")),
        "{change}"
    );
    owner.post("/api/v1/scope/preview", json!({"name": "Draft", "against": 3})).refuses(422, "validation_failed");
    owner.post("/api/v1/scope/preview", json!({"name": "Draft", "against": "nobody"})).refuses(404, "not_found");

    owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"})).expect(200);
    let blind = json!({"agent": {"name": "Guide", "can_read": false}});
    let past = owner.post("/api/v1/agents/guide/backtest", blind).expect(200);
    assert!(past["newly"]["denied"].as_u64().unwrap() > 0 && past["newly"]["allowed"] == 0, "{past}");
}

#[test]
fn a_run_is_taken_back_by_whoever_started_it() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let before = std::fs::read_to_string(server.house.note("todo.md")).unwrap();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"}));
    let (run, undo) = (run.expect(200), format!("/api/v1/runs/{}/undo", text(&run.json()["id"])));
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);
    let resources = owner.get(&format!("/api/v1/runs/{}/resources", text(&run["id"]))).expect(200);
    assert_eq!(resources["data"][0]["path"], "/todo.md");
    let planned = owner.post(&undo, json!({"dry_run": true})).expect(200);
    assert_eq!(planned["files"][0]["outcome"], "planned");
    assert_ne!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), before);
    assert_eq!(owner.post(&undo, json!({})).expect(200)["files"][0]["outcome"], "restored");
    assert_eq!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), before);
    let history = owner.get("/api/v1/notebooks/welcome/history/todo.md").expect(200);
    assert_eq!(history["data"][0]["by"]["kind"], "undo");
}

#[test]
fn taking_an_agent_away_is_recorded() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let made = owner.post("/api/v1/agents", json!({"name": "Short lived"}));
    let path = format!("/api/v1/agents/{}", made.expect(201)["id"].as_str().unwrap());
    owner.delete(&path).refuses(428, "precondition_required");
    let tag = &owner.get(&path).headers["etag"];
    owner.with("if-match", tag).delete(&path).expect(204);
    owner.get(&path).refuses(404, "not_found");
    let acts = owner.get("/api/v1/audit?q=kind:agent_removed").expect(200);
    assert_eq!((&acts["data"][0]["by"], acts["data"].as_array().unwrap().len()), (&json!("admin"), 1), "{acts}");
}

#[test]
fn what_an_admin_filters_for_a_workspace_counts_for_its_agents_at_once() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let home = owner.get("/api/v1/workspaces/home").expect(200);
    assert_eq!((&home["content_filter"], &home["time_zone"]), (&json!([]), &json!("UTC")));
    let hello = || owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello about the Merger"}));
    hello().expect(200);

    let entry = json!({"pattern": "(?i)merger", "points": ["prompt"], "action": "block"});
    let change = json!({"name": "Our home", "time_zone": "Europe/Berlin", "content_filter": [entry]});
    let changed = owner.patch("/api/v1/workspaces/home", change).expect(200);
    assert_eq!((&changed["name"], &changed["content_filter"][0]), (&json!("Our home"), &entry));
    assert_eq!(owner.get("/api/v1/workspaces/home").expect(200), changed);
    hello().refuses(422, "content_blocked");
    let audit = owner.get("/api/v1/audit?q=kind%3Asetting_changed").expect(200);
    assert!(audit["data"][0].to_string().contains("its content filter has 1 entry"), "{audit}");

    let refused = [
        json!({"content_filter": [{"pattern": "(", "points": ["prompt"], "action": "block"}]}),
        json!({"content_filter": [{"points": ["prompt"], "action": "block"}]}),
        json!({"time_zone": "Mars/Olympus"}),
        json!({"name": " "}),
        json!({"slug": "elsewhere"}),
    ];
    for body in refused {
        owner.patch("/api/v1/workspaces/home", body).refuses(422, "validation_failed");
    }
    assert_eq!(owner.get("/api/v1/workspaces/home").expect(200), changed, "a refused change changed something");
    owner.patch("/api/v1/workspaces/home", json!({"content_filter": []})).expect(200);
    hello().expect(200);
}

#[test]
fn when_somebody_leaves_their_agents_stop_until_an_admin_gives_them_to_somebody() {
    let server = Server::start(House::new());
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    let kim = server.person("kim", "home", "write");
    let made = kim.post("/api/v1/agents", json!({"workspace_id": "home", "name": "Kims"})).expect(201);
    assert_eq!((&made["owner"], &made["is_active"]), (&json!("user"), &json!(true)));
    let path = "/api/v1/agents/kims";
    let to_lee = json!({"owner": lee.get("/api/v1/me").expect(200)["user_id"]});
    kim.with("if-match", "*").patch(path, to_lee.clone()).refuses(403, "forbidden");

    owner.delete("/api/v1/workspaces/home/members/kim").expect(204);
    let left = owner.get(path).expect(200);
    assert_eq!((&left["is_active"], &left["version"]), (&json!(false), &json!(2)), "{left:#}");
    let run = json!({"agent_id": "kims", "input": "hello"});
    assert!(owner.post("/api/v1/runs", run).status >= 400, "it does not run");
    let noted = owner.get("/api/v1/audit?q=kind:user_saved").expect(200).to_string();
    assert!(noted.contains("their agents are off until an admin takes them over: kims"), "{noted}");
    assert_eq!(owner.get("/api/v1/agents/guide").expect(200)["is_active"], true, "others go on");

    lee.get(path).refuses(404, "not_found");
    owner.with("if-match", "*").patch(path, json!({"owner": "user_nobody"})).refuses(422, "validation_failed");
    let given = owner.with("if-match", "*").patch(path, to_lee.clone()).expect(200);
    assert_eq!(given["owner_id"], to_lee["owner"]);
    lee.post(&format!("{path}/activate"), json!({})).expect(200);
    assert_eq!(lee.get(path).expect(200)["is_active"], true);

    let taken = server.house.document(&["agents", "transfer", "kims", "--to-workspace"]);
    assert_eq!((&taken["owner"], &taken["owner_id"]), (&json!("workspace"), &json!(null)), "{taken:#}");
    let back = server.house.document(&["agents", "transfer", "kims", "--to", "lee"]);
    assert_eq!(back["owner_id"], to_lee["owner"]);
    let nobody = server.house.adjutant(&["agents", "transfer", "kims", "--to", "kim"]);
    assert!(nobody.code != Some(0) && nobody.err.contains("no member"), "{nobody}");
}

#[test]
fn what_is_wrong_with_an_agent_is_said_with_its_place() {
    let server = Server::start(House::new());
    let body = json!({"name": "A", "max_turns": 0, "temperature": 9, "scope": {"folders": ["/a", "/../b"]}});
    let refused = server.owner().post("/api/v1/agents", body).refuses(422, "validation_failed");
    let places: BTreeSet<_> =
        refused["errors"].as_array().unwrap().iter().map(|error| text(&error["pointer"])).collect();
    let expected = ["/max_turns", "/temperature", "/scope/folders/1"].map(str::to_owned);
    assert_eq!(places, BTreeSet::from(expected), "{refused}");
}

#[test]
fn a_tool_says_how_it_is_called_what_it_asks_and_what_it_is_found_by() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let list = owner.get("/api/v1/tools/list_files").expect(200);
    assert_eq!((&list["asks"], &list["max_items"]), (&json!(false), &json!(500)));
    assert_eq!(list["tags"], json!(["files", "file_read", "read"]));
    assert_eq!(list["required_account"], Value::Null);
    let write = owner.get("/api/v1/tools/write_file").expect(200);
    assert_eq!((&write["asks"], &write["max_items"]), (&json!(true), &Value::Null));
    assert!(write["example"]["content"].is_string(), "{write}");
    let found = owner.get("/api/v1/tools/search?q=network_read").expect(200);
    assert!(found["data"].as_array().unwrap().iter().any(|tool| tool["name"] == "fetch_web_page"), "{found}");
}

#[test]
fn a_tool_that_the_operator_switched_off_does_not_exist_for_any_agent() {
    let house = House::new();
    house.configure("[tools]\nenabled = [\"files\", \"web\"]\nnetwork = false\n");
    let server = Server::start(house);
    let owner = server.owner();
    let tools = owner.get("/api/v1/tools").expect(200);
    let sets: BTreeSet<_> = tools["data"].as_array().unwrap().iter().map(|tool| text(&tool["toolset"])).collect();
    assert_eq!(sets, BTreeSet::from(["files".to_owned()]), "web is off with the network, kv was not named");
    let asked = json!({"tool": "kv_get", "arguments": {"key": "a"}});
    let can = owner.post("/api/v1/agents/guide/can", asked).expect(200);
    assert_eq!((&can["verdict"], &can["rule"]), (&json!("deny"), &json!("tool")), "{can}");
}

#[test]
fn how_a_model_is_asked_is_kept_and_what_is_handed_on_unknown_is_for_admins() {
    let house = House::new();
    house.script("- text: Good day.\n");
    let server = Server::start(house);
    let owner = server.owner();
    let options =
        json!({"reasoning_effort": "high", "top_p": 0.9, "stop": ["END"], "seed": 7, "tool_choice": "required"});
    let body = json!({"name": "Thinker", "model_options": options, "requires": ["reasoning"]});
    let made = owner.post("/api/v1/agents", body).expect(201);
    assert_eq!((&made["model_options"], &made["requires"]), (&options, &json!(["reasoning"])));
    let seeded = json!({"name": "Seeded", "model_options": {"seed": 7}});
    owner.post("/api/v1/agents", seeded).expect(201);
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "seeded", "input": "hello"})).expect(200);
    assert_eq!(run["seed"], 7, "a run says what its model was given");
    for bad in [
        json!({"extra_headers": {"Authorization": "Bearer x"}}),
        json!({"extra_body": {"max_tokens": 9}}),
        json!({"reasoning_effort": "most"}),
    ] {
        let refused = owner.post("/api/v1/agents", json!({"name": "Other", "model_options": bad}));
        assert!((400..=422).contains(&refused.status), "{bad}");
    }
    let extras =
        json!({"name": "Extra", "model_options": {"extra_headers": {"x-title": "lab"}, "extra_body": {"top_k": 4}}});
    let writer = server.person("writer", "home", "write");
    writer.post("/api/v1/agents", extras.clone()).refuses(403, "forbidden");
    owner.post("/api/v1/agents", extras).expect(201);
    let run = json!({"agent_id": "thinker", "input": "hello", "model": "test/script"});
    let run = owner.post("/api/v1/runs?wait=60", run).expect(200);
    let replay = server.house.document(&["runs", "replay", run["id"].as_str().unwrap()]);
    assert_eq!(replay["divergences"].as_array().map_or(0, Vec::len), 0, "the request is the same: {replay:#}");
}

#[test]
fn only_an_admin_gives_an_agent_more_to_spend_than_it_had() {
    let server = Server::start(House::new());
    let (owner, writer) = (server.owner(), server.person("writer", "home", "write"));
    let path = "/api/v1/agents/mine";
    for looser in [
        json!({"run_usd": null}),
        json!({"month_usd": null}),
        json!({"month_usd": 1_000_000}),
        json!({"allow_unpriced": true}),
    ] {
        let body = json!({"name": "Mine", "budget": looser});
        let refused = writer.post("/api/v1/agents", body).refuses(403, "forbidden");
        assert_eq!(refused["errors"][0]["pointer"], json!("/budget"), "{refused}");
    }
    let tighter = json!({"name": "Mine", "budget": {"run_usd": 0.25, "day_usd": 1}});
    writer.post("/api/v1/agents", tighter).expect(201);
    let change = |by: &Client, budget: Value| by.with("if-match", "*").patch(path, json!({"budget": budget}));
    change(&writer, json!({"run_usd": 0.3})).refuses(403, "forbidden");
    change(&writer, json!({"day_usd": null})).refuses(403, "forbidden");
    change(&writer, json!({"allow_unpriced": true})).refuses(403, "forbidden");
    writer.with("if-match", "*").put(path, json!({"name": "Mine"})).refuses(403, "forbidden");
    change(&writer, json!({"run_usd": 0.2})).expect(200);
    let loose = json!({"name": "Mine", "budget": {"run_usd": null, "month_usd": 500, "allow_unpriced": true}});
    owner.with("if-match", "*").put(path, loose).expect(200);
    let kept = change(&writer, json!({"month_usd": 400})).expect(200);
    assert_eq!((&kept["budget"]["run_usd"], &kept["budget"]["allow_unpriced"]), (&Value::Null, &json!(true)), "{kept}");
}

#[test]
fn a_template_does_not_give_an_agent_back_what_it_may_no_longer_spend() {
    let server = Server::start(House::new());
    let (owner, writer) = (server.owner(), server.person("writer", "home", "write"));
    let made = json!({"name": "Research", "slug": "research", "budget": {"month_usd": 2}});
    let made = writer.post("/api/v1/agents", made).expect(201);
    let reset = format!("/api/v1/agents/{}/reset", text(&made["id"]));
    writer.post(&reset, json!({})).refuses(403, "forbidden");
    assert_eq!(owner.post(&reset, json!({})).expect(200)["budget"]["month_usd"], json!(20.0));
}

#[test]
fn a_run_says_how_what_keeps_it_safe_stood_and_is_refused_where_its_agent_requires_more() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let about = owner.get("/api/v1/about").expect(200);
    assert_eq!(about["safety"]["encryption"]["state"], "enforced", "{about}");
    assert_eq!(about["safety"]["sandbox"]["state"], "off");
    let needs = ["encryption", "durability", "audit_chain", "egress_filter", "price_known"];
    owner.post("/api/v1/agents", json!({"name": "Careful", "requires": needs})).expect(201);
    let run = |body: Value| owner.post("/api/v1/runs?wait=60", body);
    let fine = run(json!({"agent_id": "careful", "input": "hello", "model": "demo/guide"})).expect(200);
    let safety = &fine["enforcement"]["safety"];
    assert!(needs.iter().all(|name| safety[name]["state"] == "enforced"), "{safety}");
    assert_eq!(safety["sandbox"]["state"], "off");
    owner.post("/api/v1/agents", json!({"name": "Jailed", "requires": ["sandbox"]})).expect(201);
    let refused = run(json!({"agent_id": "jailed", "input": "hello"})).refuses(422, "validation_failed");
    assert!(text(&refused["detail"]).contains("requires `sandbox`"), "{refused}");
    assert_eq!(owner.get("/api/v1/runs?agent=jailed").expect(200)["data"], json!([]));
    let unknown = owner.post("/api/v1/agents", json!({"name": "A", "requires": ["luck"]}));
    assert!(unknown.refuses(422, "validation_failed").to_string().contains("luck"));
}

#[test]
fn a_shared_chat_shares_what_was_said_and_lends_nobody_its_agent() {
    let server = Server::start(House::new());
    let (ada, kim) = (server.person("ada", "home", "write"), server.person("kim", "home", "write"));
    ada.post("/api/v1/agents", json!({"name": "Mine"})).expect(201);
    let run = ada.post("/api/v1/runs?wait=60", json!({"agent_id": "mine", "input": "hello"})).expect(200);
    ada.patch(&format!("/api/v1/chats/{}", text(&run["chat_id"])), json!({"is_shared": true})).expect(200);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    assert_eq!(kim.get(&path).expect(200)["id"], run["id"]);
    kim.post(&format!("{path}/fork"), json!({})).refuses(404, "not_found");
    assert_eq!(kim.get("/api/v1/chats").expect(200)["data"].as_array().unwrap().len(), 1, "and makes no chat of it");
    assert_eq!(ada.post(&format!("{path}/fork?wait=60"), json!({})).expect(200)["status"], "COMPLETED");

    // Whoever gave the agent away may not go on with it either.
    let kims = text(&kim.get("/api/v1/me").expect(200)["user_id"]);
    let owner = server.owner();
    let tag = owner.get("/api/v1/agents/mine").headers["etag"].clone();
    let given = owner.with("if-match", &tag).patch("/api/v1/agents/mine", json!({"owner": kims}));
    assert_eq!(given.status, 200, "{given:?}");
    ada.post(&format!("{path}/edit"), json!({"new_user_message": "again"})).refuses(404, "not_found");
}
