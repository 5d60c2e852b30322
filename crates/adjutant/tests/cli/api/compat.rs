//! The paths of older clients: their requests as they are written, with a token, and the names that come back.

use serde_json::{Value, json};

use super::client::{Client, Sent, Server, Stream};
use super::flow::{names, scripted, server};
use crate::house::text;

/// `curl -N …/chats/test_chat/interactions -H "Content-Type: application/json" -d '{"user_message": …}'`
fn say(client: &Client, message: &str) -> Stream {
    client.follow("POST", "/chats/test_chat/interactions", Some(&json!({"user_message": message})))
}

/// Reads up to an event of this name.
fn until(stream: &mut Stream, name: &str) -> Vec<Sent> {
    let mut events = Vec::new();
    for event in stream.by_ref() {
        let found = event.name == name;
        events.push(event);
        if found {
            return events;
        }
    }
    panic!("{name} never came: {events:?}")
}

#[test]
fn an_interaction_streams_the_standard_flow_and_is_found_in_its_chat() {
    let server = server();
    let owner = server.owner();
    let plain = owner.with("accept", "*/*").with("content-type", "application/json");
    let stream = say(&plain.with("connection", "keep-alive"), "look");
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("connection", "keep-alive"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(stream.head.headers[name], value, "{name}");
    }
    let events: Vec<Sent> = stream.collect();
    let flow =
        ["interaction_started", "thinking", "tool_call", "tool_result", "thinking", "answer", "interaction_complete"];
    assert_eq!(names(&events), flow);
    let call = &events.iter().find(|event| event.name == "tool_call").unwrap().data;
    assert_eq!((&call["type"], &call["tool_name"]), (&json!("TOOL_CALL"), &json!("list_files")));
    assert!(call["tool_input"].is_string() && call["id"].is_string(), "{call}");
    let last = &events.last().unwrap().data;
    assert_eq!(last["status"], "COMPLETED");

    let chat = owner.get("/chats/test_chat").expect(200);
    assert_eq!(chat["id"], "test_chat");
    let interaction = &chat["interactions"][0];
    assert_eq!((&interaction["id"], &interaction["user_message"]), (&last["interaction_id"], &json!("look")));
    let types: Vec<&Value> =
        interaction["agent_events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
    assert_eq!(types, ["THINKING", "TOOL_CALL", "TOOL_RESULT", "THINKING", "ANSWER"]);
    let state = interaction["final_agent_state"]["messages"].as_array().unwrap();
    assert_eq!(state.last().unwrap()["content"], "There are notes.");
    assert!(interaction["completed_at"].is_string(), "{interaction}");
    let exported = owner.get(&format!("/api/v1/chats/{}/export", text(&events[0].data["chat_id"]))).expect(200);
    let whole = &exported["runs"][0];
    assert_eq!((&whole["user_message"], &whole["result"]), (&json!("look"), &json!("There are notes.")));
    let path = format!("/chats/test_chat/interactions/{}", text(&last["interaction_id"]));
    let again = owner.follow("GET", &path, None);
    assert_eq!(again.head.headers["connection"], "close", "its reader asked for that");
    let again: Vec<Sent> = again.collect();
    assert_eq!(names(&again), flow);
    assert_eq!(owner.with("accept", "application/json").get(&path).expect(200)["id"], last["interaction_id"]);
    // It is taken up again where it was left, and has an end.
    let call = events.iter().position(|event| event.name == "tool_call").unwrap();
    let number = |place: usize| events[place].id.unwrap().to_string();
    let rest: Vec<Sent> = owner.with("last-event-id", &number(call)).follow("GET", &path, None).collect();
    assert_eq!(names(&rest), flow[3..]);
    let seen = owner.with("last-event-id", &number(events.len() - 1));
    assert_eq!(seen.follow("GET", &path, None).head.status, 204);
    // A name belongs to one person of one workspace.
    server.person("kim", "home", "write").get("/chats/test_chat").refuses(404, "not_found");
}

#[test]
fn everybody_has_the_names_of_their_chats_to_themselves() {
    let server = server();
    let (bob, adam) = (server.person("bob", "home", "write"), server.person("adam", "home", "admin"));
    let chat_of = |client: &Client, message: &str| text(&say(client, message).next().unwrap().data["chat_id"]);
    let squat = chat_of(&bob, "hello");
    let own = chat_of(&adam, "what nobody shall hear");
    assert_ne!(own, squat, "an admin sees all chats, and speaks in their own");
    bob.patch(&format!("/api/v1/chats/{squat}"), json!({"is_shared": true})).expect(200);
    let owner = server.owner();
    assert!(![&own, &squat].contains(&&chat_of(&owner, "hello")), "a shared one takes no names of others, either");
    let heard = bob.get("/chats/test_chat").expect(200);
    assert_eq!(heard["interactions"].as_array().unwrap().len(), 1, "{heard}");
    assert_eq!(chat_of(&adam, "again"), own);
    let shown = adam.get(&format!("/api/v1/chats/{own}")).expect(200);
    assert_eq!((&shown["alias"], &shown["title"]), (&json!("test_chat"), &json!("test_chat")));
}

#[test]
fn an_interaction_waits_for_its_approval_which_is_taken_once() {
    let server = server();
    let owner = server.owner();
    let mut stream = say(&owner, "write");
    let mut events = until(&mut stream, "approval_required");
    let asked = events.last().unwrap().data.clone();
    let base = format!("/chats/test_chat/interactions/{}", text(&asked["run_id"]));
    let body = json!({"approval_id": asked["approval_id"], "approved": true});
    let missing = json!({"approval_id": "approval_abc", "approved": true});
    owner.post(&format!("{base}/approve"), missing).refuses(404, "not_found");
    let done = owner.post(&format!("{base}/approve"), body.clone()).expect(200);
    assert_eq!(done, json!({"status": "processed", "approval_id": asked["approval_id"], "approved": true}));
    events.extend(stream);
    let flow = [
        "interaction_started",
        "thinking",
        "approval_required",
        "approved",
        "tool_call",
        "tool_result",
        "answer",
        "interaction_complete",
    ];
    assert_eq!(names(&events), flow);
    assert_eq!(owner.post(&format!("{base}/approve"), body).status, 400);
}

#[test]
fn the_state_of_an_interaction_is_the_whole_conversation_up_to_it() {
    let server = server();
    let owner = server.owner();
    let runs: Vec<String> = ["hello", "look", "bye"]
        .map(|message| text(&say(&owner, message).last().unwrap().data["interaction_id"]))
        .into_iter()
        .collect();
    let said = |state: &Value| -> Vec<Value> {
        state["messages"].as_array().unwrap().iter().map(|message| message["content"].clone()).collect()
    };
    let chat = owner.get("/chats/test_chat").expect(200);
    let whole = said(&chat["interactions"][2]["final_agent_state"]);
    assert_eq!(whole[..3], [json!("hello"), json!("Good day."), json!("look")]);
    assert_eq!(whole[whole.len() - 3..], [json!("There are notes."), json!("bye"), json!("Good day.")]);
    assert_eq!(chat["interactions"][0]["final_agent_state"], Value::Null, "{chat}");
    // Of one in the middle, what comes after it is no part of it.
    let middle = owner.with("accept", "application/json").get(&format!("/chats/test_chat/interactions/{}", runs[1]));
    assert_eq!(said(&middle.expect(200)["final_agent_state"]), whole[..whole.len() - 2]);
}

/// Two calls at once, then one that is asked about and one that is denied.
const CALLS: &str = r#"
- when: { turn: 1 }
  thinking: Where do I look?
  text: Let me look.
  calls:
  - { name: list_files, arguments: { path: / } }
  - { name: read_file, arguments: { path: /todo.md } }
- when: { turn: 2 }
  calls:
  - { name: create_file, arguments: { path: /new.md, content: hello } }
  - { name: delete_file, arguments: { path: /todo.md } }
- text: Then not.
"#;

#[test]
fn the_state_of_an_interaction_is_a_list_that_a_provider_takes() {
    let server = Server::start(scripted(CALLS));
    let owner = server.owner();
    let mut stream = say(&owner, "tidy up");
    let asked = until(&mut stream, "approval_required").last().unwrap().data.clone();
    let base = format!("/chats/test_chat/interactions/{}", text(&asked["run_id"]));
    let body = json!({"approval_id": asked["approval_id"], "approved": false});
    owner.post(&format!("{base}/approve"), body).expect(200);
    assert_eq!(stream.last().unwrap().data["status"], "COMPLETED");
    let told = owner.with("accept", "application/json").get(&base).expect(200);
    let messages = told["final_agent_state"]["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "tool", "assistant", "tool", "tool", "assistant"]);
    // Each answer has all its calls, and behind it stands the result of each, in their order.
    for (at, calls) in [(1, ["list_files", "read_file"]), (4, ["create_file", "delete_file"])] {
        let asked = messages[at]["tool_calls"].as_array().unwrap();
        let called: Vec<&Value> = asked.iter().map(|call| &call["function"]["name"]).collect();
        assert_eq!(called, calls);
        for (call, result) in asked.iter().zip(&messages[at + 1..]) {
            assert_eq!(call["id"], result["tool_call_id"]);
            assert!(call["function"]["arguments"].is_string() && result["content"].is_string(), "{call} {result}");
        }
    }
    let contents = [&messages[0], &messages[1], &messages[4], &messages[7]].map(|message| &message["content"]);
    assert_eq!(contents, [&json!("tidy up"), &json!("Let me look."), &Value::Null, &json!("Then not.")]);
}

#[test]
fn an_interaction_is_cancelled_while_its_model_thinks_on() {
    let server = server();
    let owner = server.owner();
    // An answer that does not fit is a thought, and the model is asked again.
    let tag = owner.get("/api/v1/agents/guide").headers["etag"].clone();
    let schema = json!({"output_schema": {"type": "object"}});
    owner.with("if-match", &tag).patch("/api/v1/agents/guide", schema).expect(200);
    let mut stream = say(&owner, "hello");
    let mut events = until(&mut stream, "thinking");
    let run = text(&events[0].data["interaction_id"]);
    let base = format!("/api/v1/chats/test_chat/interactions/{run}");
    let told = owner.call("POST", &format!("{base}/cancel"), None).expect(200);
    assert_eq!((&told["status"], &told["interaction_id"]), (&json!("cancelling"), &json!(run)));
    events.extend(stream);
    assert_eq!(names(&events), ["interaction_started", "thinking", "cancelled", "interaction_complete"]);
    assert_eq!(events.last().unwrap().data["status"], "CANCELLED");
    let late = owner.call("POST", &format!("{base}/cancel"), None).expect(200);
    assert_eq!(late["status"], "CANCELLED", "it is not cancelling what has ended");
}

#[test]
fn an_interaction_is_edited_and_begins_anew() {
    let server = server();
    let owner = server.owner();
    let runs: Vec<String> = ["hello", "look", "bye"]
        .map(|message| text(&say(&owner, message).last().unwrap().data["interaction_id"]))
        .into_iter()
        .collect();
    let path = format!("/chats/test_chat/interactions/{}/edit", runs[1]);
    let edited: Vec<Sent> = owner.follow("POST", &path, Some(&json!({"new_user_message": "ponder"}))).collect();
    assert_eq!(names(&edited), ["interaction_started", "thinking", "answer", "interaction_complete"]);
    assert!(!runs.contains(&text(&edited[0].data["interaction_id"])), "{edited:?}");
    let chat = owner.get("/chats/test_chat").expect(200);
    let messages: Vec<&Value> =
        chat["interactions"].as_array().unwrap().iter().map(|interaction| &interaction["user_message"]).collect();
    assert_eq!(messages, ["hello", "ponder"]);
}

#[test]
fn an_agent_of_an_older_client_is_made_read_changed_switched_and_deleted() {
    let server = server();
    let owner = server.owner();
    let body = json!({"workspace_id": 1, "name": "Research Assistant", "provider": "test", "model": "script",
        "scope": {"notebooks": ["*"], "folders": ["/"]}, "can_read": true, "can_write": false});
    let agent = text(&owner.post("/api/v1/agents/", body.clone()).expect(201)["id"]);
    let path = format!("/api/v1/agents/{agent}");
    let read = owner.get(&path);
    assert_eq!(read.expect(200)["can_write"], json!(false));
    let mut wider = body;
    wider["can_write"] = json!(true);
    // Such a body says by itself that its client knows no versions; one that names a version means that one.
    let put = owner.put(&path, wider.clone()).expect(200);
    assert_eq!(put["can_write"], json!(true));
    let apart = json!({"name": "Research Assistant", "provider": "test", "model": "script", "can_write": true});
    assert_eq!(owner.put(&path, apart.clone()).expect(200)["model"], "test/script");
    owner.with("if-match", &read.headers["etag"]).put(&path, apart).refuses(412, "stale_version");
    owner.put(&path, json!({"name": "Research Assistant"})).refuses(428, "precondition_required");
    let off = owner.post(&format!("{path}/activate?active=false"), json!({})).expect(200);
    assert_eq!(off["is_active"], json!(false));
    // Whoever knows no versions means what is there, with a slash at the end.
    owner.delete(&path).refuses(428, "precondition_required");
    let body = json!({"workspace_id": 1, "name": "Research Assistant", "can_write": false});
    assert_eq!(owner.put(&format!("{path}/"), body).expect(200)["can_write"], json!(false));
    assert_eq!(owner.delete(&format!("{path}/")).status, 204);
    owner.get(&path).refuses(404, "not_found");
    // The workspace may stand in the address, as it is needed by whoever is in several.
    owner.post("/api/v1/workspaces", json!({"name": "Lab"})).expect(201);
    let example = json!({
        "workspace_id": 1, "name": "Research Assistant", "provider": "anthropic", "model": "claude-sonnet-4-20250514",
        "scope": {
            "notebooks": ["*"], "folders": ["/experiments/*", "/notes"], "file_types": ["*.md", "*.txt", "*.json"],
        },
        "can_read": true, "can_write": true, "can_create": true, "can_delete": false, "max_requests_per_hour": 50,
    });
    let made = owner.post("/api/v1/agents/", example).expect(201);
    assert_eq!(made["model"], "anthropic/claude-sonnet-4-20250514");
    let there = owner.post("/api/v1/agents/?workspace_id=2", json!({"name": "Research Assistant"})).expect(201);
    assert_ne!(there["workspace_id"], made["workspace_id"]);
}

#[test]
fn a_credential_of_an_agent_goes_in_and_never_comes_out() {
    let server = server();
    let owner = server.owner();
    let path = "/api/v1/agents/guide/credentials";
    let secret = "sk-0123456789abcdef";
    let body = json!({"key_name": "openai_api_key", "value": secret});
    let set = owner.post(path, body).expect(201);
    assert_eq!(
        (&set["key_name"], &set["provider"], &set["hint"]),
        (&json!("openai_api_key"), &json!("openai"), &json!("cdef"))
    );
    // The same name once more is a new value of the same credential.
    let again = owner.post(path, json!({"key_name": "openai_api_key", "value": "sk-fedcba9876543210"})).expect(201);
    assert_eq!(again["hint"], "3210");
    let listed = owner.get(path);
    assert_eq!(listed.expect(200).as_array().unwrap().len(), 1);
    assert!(!listed.text.contains(secret) && !listed.text.contains("sk-"), "{listed:?}");
    // Without a provider in its name it is for that of the model, and for no other.
    let with_model = |model: &str| {
        let tag = owner.get("/api/v1/agents/guide").headers["etag"].clone();
        owner.with("if-match", &tag).patch("/api/v1/agents/guide", json!({"model": model})).expect(200);
    };
    let unnamed = |value: &str| owner.post(path, json!({"key_name": "api_key", "value": value}));
    unnamed(secret).refuses(422, "validation_failed");
    with_model("openai/gpt-x");
    unnamed(secret).expect(201);
    with_model("anthropic/claude-x");
    unnamed("sk-ant-0123456789").refuses(409, "conflict");
    assert_eq!(owner.delete(&format!("{path}/api_key")).status, 204);
    server
        .person("kim", "home", "write")
        .post(path, json!({"key_name": "x", "value": secret}))
        .refuses(403, "forbidden");
    // What is no key is not sent as one.
    for name in ["api_base", "base_url", "x"] {
        let body = json!({"key_name": name, "value": "https://models.example.com/v1"});
        owner.post(path, body).refuses(422, "validation_failed");
    }
    assert_eq!(owner.delete(&format!("{path}/openai_api_key")).status, 204);
    owner.delete(&format!("{path}/openai_api_key")).refuses(404, "not_found");
}

#[test]
fn a_session_is_opened_spoken_to_confirmed_logged_and_cancelled() {
    let server = server();
    let owner = server.owner();
    let body = json!({
        "workspace_id": 1, "name": "Research Assistant", "provider": "test", "model": "script",
        "scope": {"notebooks": ["*"], "folders": ["/"], "file_types": ["*.md", "*.txt"]},
        "can_read": true, "can_write": true, "can_create": true, "can_delete": false, "max_requests_per_hour": 50,
    });
    let agent = owner.post("/api/v1/agents/", body).expect(201);
    assert_eq!(agent["model"], "test/script");
    let listed = owner.get("/api/v1/agents/?workspace_id=1").expect(200);
    assert!(listed["data"].as_array().unwrap().iter().any(|row| row["id"] == agent["id"]), "{listed}");
    let sessions = format!("/api/v1/agents/{}/sessions", text(&agent["id"]));
    let session = owner.post(&sessions, json!({"task_id": null, "title": "Mine"})).expect(201);
    assert_eq!((&session["status"], &session["agent_id"]), (&json!("pending"), &agent["id"]));
    let path = format!("/api/v1/sessions/{}", text(&session["id"]));
    let asks = owner.post(&format!("{path}/message/"), json!({"content": "write"})).expect(200);
    assert_eq!(asks["status"], "running");
    let action = &asks["messages"][0]["pending_actions"][0];
    assert_eq!((&action["type"], &action["requires_confirmation"]), (&json!("create_file"), &json!(true)));
    assert_eq!(action["path"], "/new.md");
    owner.post(&format!("{path}/confirm/"), json!({"action_id": action["id"], "confirmed": true})).expect(200);
    let run = text(&owner.get(&format!("/api/v1/chats/{}", text(&session["id"]))).expect(200)["last_run_id"]);
    owner.get(&format!("/api/v1/runs/{run}?wait=60")).expect(200);
    let done = owner.get(&path).expect(200);
    assert_eq!((&done["status"], &done["files_modified"]), (&json!("completed"), &json!(["/new.md"])));
    assert_eq!(owner.get(&format!("{path}/")).expect(200)["status"], "completed");
    let logs = owner.get(&format!("{path}/logs/")).expect(200);
    assert_eq!((&logs[0]["action_type"], &logs[0]["was_allowed"]), (&json!("create_file"), &json!(true)));
    // What was done has happened, also when its message is edited; what was said is what counts since.
    let edit = json!({"new_user_message": "hello"});
    owner.post(&format!("/api/v1/runs/{run}/edit?wait=60"), edit).expect(200);
    let edited = owner.get(&path).expect(200);
    assert_eq!((&edited["files_modified"], edited["messages"].as_array().unwrap().len()), (&json!(["/new.md"]), 1));
    assert!(edited["tokens_used"].as_u64() > done["tokens_used"].as_u64(), "{edited} {done}");
    assert_eq!(owner.get(&format!("{path}/logs")).expect(200)[0], logs[0]);
    for wrong in [json!({"task_id": 7}), json!({"title": "x".repeat(201)}), json!({"title": " "})] {
        owner.post(&sessions, wrong).refuses(422, "validation_failed");
    }
    assert_eq!(logs[0]["target_path"], "/new.md");
    assert_eq!(owner.post(&format!("{path}/cancel"), json!({})).expect(200)["status"], "completed");
    assert_eq!(owner.post(&format!("{path}/cancel/"), json!({})).expect(200)["status"], "completed");
    assert_eq!(owner.get(&format!("{sessions}/")).expect(200)[0]["id"], session["id"]);
    assert_eq!(owner.get(&format!("/api/v1/agents/{}/", text(&agent["id"]))).expect(200)["id"], agent["id"]);
    let credentials = format!("/api/v1/agents/{}/credentials/", text(&agent["id"]));
    owner.get(&credentials).expect(200);
    let off = format!("/api/v1/agents/{}/activate/?active=false", text(&agent["id"]));
    owner.post(&off, json!({})).expect(200);
    owner.post(&sessions, json!({})).refuses(409, "agent_inactive");
}
