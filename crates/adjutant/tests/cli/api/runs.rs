//! Runs over HTTP: started, followed, cut, resumed, steered.

use serde_json::{Value, json};

use super::client::{Client, Sent, Server, Stream};
use super::flow::{SCRIPT, names, scripted};
use crate::house::{House, text};

fn start(client: &Client, message: &str) -> Stream {
    client.follow("POST", "/api/v1/runs", Some(&json!({"agent_id": "guide", "input": message})))
}

#[test]
fn a_run_streams_its_events_in_order_with_their_numbers() {
    let server = Server::start(scripted(SCRIPT));
    let stream = start(&server.owner(), "look");
    assert_eq!(stream.head.status, 200);
    assert_eq!(stream.head.headers["content-type"], "text/event-stream");
    assert_eq!(stream.head.headers["x-accel-buffering"], "no");
    let events: Vec<Sent> = stream.collect();
    let flow =
        ["interaction_started", "thinking", "tool_call", "tool_result", "thinking", "answer", "interaction_complete"];
    assert_eq!(names(&events), flow);
    let numbers: Vec<u64> = events.iter().filter_map(|event| event.id).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let (first, last) = (&events[0].data, &events.last().unwrap().data);
    assert_eq!(first["interaction_id"], last["interaction_id"]);
    assert_eq!((&last["status"], &last["result"]), (&json!("COMPLETED"), &json!("There are notes.")));
    let live: Vec<&Sent> = events.iter().filter(|event| event.id.is_none()).collect();
    assert!(live.iter().all(|event| event.name.ends_with("_delta") || event.name == "turn_reset"), "{live:?}");
}

#[test]
fn a_stream_that_is_cut_again_and_again_yields_the_log_once_and_in_order() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let run = text(&start(&owner, "look").next().unwrap().data["run_id"]);
    let path = format!("/api/v1/runs/{run}/events");
    let (mut seen, mut last) = (Vec::new(), 0);
    // Each reader takes one durable event and hangs up.
    loop {
        let mut stream = owner.with("last-event-id", &last.to_string()).follow("GET", &path, None);
        if stream.head.status == 204 {
            break;
        }
        if let Some(event) = stream.find(|event| event.id.is_some()) {
            last = event.id.unwrap();
            seen.push(event);
        }
    }
    let whole: Vec<Sent> = owner.follow("GET", &path, None).filter(|event| event.id.is_some()).collect();
    assert_eq!(seen, whole);
    assert_eq!(seen.last().unwrap().name, "interaction_complete");
    let listed = owner.get(&path).expect(200);
    let ids: Vec<u64> = listed["data"].as_array().unwrap().iter().map(|event| event["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, whole.iter().map(|event| event.id.unwrap()).collect::<Vec<_>>());
    assert_eq!(owner.with("last-event-id", "x").follow("GET", &path, None).head.status, 422);
}

#[test]
fn a_stream_cut_at_random_two_hundred_times_while_its_run_goes_on_yields_exactly_the_log() {
    let call = |n: u32| format!("{{ name: create_file, arguments: {{ path: /{n}.md, content: hello }} }}");
    let turn = |n: u32| format!("- when: {{ turn: {n} }}\n  text: Turn {n}.\n  calls: [{}]\n", call(n));
    let turns: String = (1..=20).map(turn).collect();
    let server = Server::start(scripted(&format!("{turns}- text: Done.\n")));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "write and write"})).expect(202);
    let (id, path) = (text(&run["id"]), format!("/api/v1/runs/{}/events", text(&run["id"])));
    // Each of its turns is approved when it is told so, beside the readers: it cannot end before the last of them.
    let (approve, told) = std::sync::mpsc::channel();
    let approver = std::thread::spawn({
        let owner = owner.clone();
        move || {
            while told.recv().is_ok() {
                let item = loop {
                    let pending = owner.get(&format!("/api/v1/approvals?status=pending&run={id}")).expect(200);
                    if let Some(item) = pending["data"].as_array().unwrap().first() {
                        break text(&item["id"]);
                    }
                };
                let decision = json!({"decision": "approve"});
                owner.post(&format!("/api/v1/approvals/{item}/decision"), decision).expect(200);
            }
        }
    });
    let (mut seen, mut last, mut chance) = (Vec::new(), 0, 42_u32);
    for cut in 0..200 {
        let stream = owner.with("last-event-id", &last.to_string()).follow("GET", &path, None);
        assert_eq!(stream.head.status, 200, "it goes on");
        if cut % 10 == 5 && cut > 10 {
            approve.send(()).unwrap();
        }
        chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        for event in stream.cut((chance >> 16) as usize % 4000).into_iter().filter(|event| event.id.is_some()) {
            last = event.id.unwrap();
            seen.push(event);
        }
    }
    approve.send(()).unwrap();
    drop(approve);
    let rest = owner.with("last-event-id", &last.to_string()).follow("GET", &path, None);
    seen.extend(rest.filter(|event| event.id.is_some()));
    approver.join().unwrap();
    let whole: Vec<Sent> = owner.follow("GET", &path, None).filter(|event| event.id.is_some()).collect();
    assert_eq!(seen, whole);
    assert_eq!(seen.last().unwrap().name, "interaction_complete");
}

#[test]
fn a_run_waits_for_a_decision_and_goes_on_after_it() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let mut stream = start(&owner, "write");
    let mut events: Vec<Sent> = stream.by_ref().take_while_inclusive(|event| event.name != "approval_required");
    let asked = events.last().unwrap().data.clone();
    let path = format!("/api/v1/approvals/{}/decision", text(&asked["approval_id"]));
    let body = json!({"decision": "approve", "fingerprint": asked["fingerprint"]});
    assert_eq!(owner.post(&path, body).expect(200)["status"], "approved");
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
    assert_eq!(std::fs::read_to_string(server.house.note("new.md")).unwrap(), "hello");
    let run = owner.get(&format!("/api/v1/runs/{}", text(&asked["run_id"]))).expect(200);
    let notebook = owner.get("/api/v1/workspaces/home/notebooks/welcome").expect(200);
    assert_eq!(run["resources"][0]["id"], json!(format!("{}/new.md", text(&notebook["id"]))));
    let listed = owner.get(&format!("/api/v1/runs/{}/resources", text(&asked["run_id"]))).expect(200);
    assert_eq!(listed["data"], run["resources"]);
}

#[test]
fn a_cancelled_run_says_so_and_ends() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let mut stream = start(&owner, "write");
    let mut events: Vec<Sent> = stream.by_ref().take_while_inclusive(|event| event.name != "approval_required");
    let run = text(&events[0].data["run_id"]);
    let cancelled = owner.post(&format!("/api/v1/runs/{run}/cancel"), json!({"reason": "enough"})).expect(200);
    assert_eq!(cancelled["id"], json!(run));
    events.extend(stream);
    let names = names(&events);
    assert!(names.ends_with(&["cancelled", "interaction_complete"]), "{names:?}");
    // Cancelling what has ended answers with how it ended.
    let again = owner.post(&format!("/api/v1/runs/{run}/cancel"), json!({})).expect(200);
    assert_eq!(again["status"], "CANCELLED");
}

#[test]
fn a_dropped_client_stops_a_run_only_if_it_asked_for_that() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let run = text(&start(&owner, "look").next().unwrap().data["run_id"]);
    let ended = owner.get(&format!("/api/v1/runs/{run}?wait=60")).expect(200);
    assert_eq!(ended["status"], "COMPLETED");
    let body = json!({"agent_id": "guide", "input": "write", "cancel_on_disconnect": true});
    let mut stream = owner.follow("POST", "/api/v1/runs", Some(&body));
    let events = stream.by_ref().take_while_inclusive(|event| event.name != "approval_required");
    let run = text(&events[0].data["run_id"]);
    drop(stream);
    let all: Vec<Sent> = owner.follow("GET", &format!("/api/v1/runs/{run}/events"), None).collect();
    assert_eq!(all.last().unwrap().data["status"], "CANCELLED");
}

#[test]
fn an_edit_starts_anew_from_before_the_message() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "look"});
    let first = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let path = format!("/api/v1/runs/{}", text(&first["id"]));
    let edited = json!({"new_user_message": "hello"});
    let events: Vec<Sent> = owner.follow("POST", &format!("{path}/edit"), Some(&edited)).collect();
    assert_eq!(names(&events), ["interaction_started", "answer", "interaction_complete"]);
    let second = &events[0].data["run_id"];
    assert_eq!(&owner.get(&path).expect(200)["superseded_by"], second);
    let listed = owner.get("/api/v1/runs").expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
}

#[test]
fn a_chat_takes_one_message_at_a_time_and_is_its_starters_own_until_it_is_shared() {
    let server = Server::start(scripted(SCRIPT));
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    let kim = server.person("kim", "home", "read");
    let chat = lee.post("/api/v1/chats", json!({"agent_id": "guide", "title": "Mine"})).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    let said = lee.post(&format!("{path}/runs?wait=60"), json!({"user_message": "write"})).expect(200);
    assert_eq!(said["status"], "WAITING_APPROVAL");
    let busy = lee.post(&format!("{path}/runs"), json!({"user_message": "more"})).refuses(409, "busy");
    assert_eq!(busy["run_id"], said["id"]);
    let run = format!("/api/v1/runs/{}", text(&said["id"]));
    kim.get(&path).refuses(404, "not_found");
    kim.get(&run).refuses(404, "not_found");
    assert_eq!(kim.get("/api/v1/runs").expect(200)["data"], json!([]));
    assert_eq!(kim.get("/api/v1/approvals").expect(200)["data"], json!([]));
    owner.get(&run).expect(200);
    lee.patch(&path, json!({"is_shared": true})).expect(200);
    assert_eq!(kim.get(&path).expect(200)["title"], "Mine");
    kim.get(&run).expect(200);
    assert_eq!(kim.get("/api/v1/approvals").expect(200)["data"].as_array().unwrap().len(), 1);
    kim.post(&format!("{run}/cancel"), json!({})).refuses(403, "forbidden");
    assert_eq!(lee.get(&format!("{path}/stats")).expect(200)["runs"], 1);
}

#[test]
fn a_run_is_paused_resumed_forked_replayed_exported_and_verified() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let said = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "write"})).expect(200);
    let run = format!("/api/v1/runs/{}", text(&said["id"]));
    assert_eq!(owner.post(&format!("{run}/pause"), json!({})).expect(200)["status"], "PAUSED");
    assert_eq!(owner.post(&format!("{run}/resume"), json!({})).expect(200)["status"], "WAITING_APPROVAL");
    owner.post(&format!("{run}/resume"), json!({})).refuses(409, "conflict");
    let fork = owner.post(&format!("{run}/fork?wait=60"), json!({"effects": "dry"})).expect(200);
    assert_ne!(fork["chat_id"], said["chat_id"]);
    assert_eq!(fork["parent_run_id"], said["id"]);
    let replay = owner.post(&format!("{run}/replay"), json!({"mode": "strict"})).expect(200);
    assert_eq!(replay["divergences"], json!([]));
    owner.post(&format!("{run}/replay"), json!({"mode": "what-if"})).refuses(422, "validation_failed");
    assert_eq!(owner.get(&format!("{run}/verify")).expect(200)["is_whole"], true);
    let exported = owner.get(&format!("{run}/export"));
    assert_eq!(exported.headers["content-type"], "application/x-ndjson");
    let file = server.house.path().join("run.jsonl");
    std::fs::write(&file, &exported.text).unwrap();
    let (house, _) = server.stop();
    let checked = house.adjutant(&["audit", "verify", file.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{checked}");
}

#[test]
fn what_was_made_from_a_run_is_found_by_it() {
    let server = Server::start(scripted("- text: one\n- text: two\n- text: three\n- text: four\n"));
    let owner = server.owner();
    let said = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "first"})).expect(200);
    let (run, chat) = (text(&said["id"]), text(&said["chat_id"]));
    assert_eq!(said["parent_run_id"], json!(null));
    // What is said next is built on it, and not made from it.
    owner.post(&format!("/api/v1/chats/{chat}/runs?wait=60"), json!({"user_message": "second"})).expect(200);
    let fork = owner.post(&format!("/api/v1/runs/{run}/fork?wait=60"), json!({})).expect(200);
    let edit = json!({"new_user_message": "other"});
    let edited = owner.post(&format!("/api/v1/runs/{run}/edit?wait=60"), edit).expect(200);
    assert_eq!(edited["parent_run_id"], said["id"]);
    let made = |query: &str| {
        let page = owner.get(&format!("/api/v1/runs?parent={query}")).expect(200);
        let rows = page["data"].as_array().unwrap().clone();
        rows.iter().map(|row| text(&row["id"])).collect::<Vec<_>>()
    };
    assert_eq!(made(&run), [text(&edited["id"]), text(&fork["id"])]);
    assert_eq!(made(&format!("{run}&limit=1")), [text(&edited["id"])]);
    assert_eq!(made(&text(&fork["id"])), Vec::<String>::new());
    owner.get("/api/v1/runs?parent=nothing").refuses(422, "validation_failed");
    let kim = server.person("kim", "home", "write");
    assert_eq!(kim.get(&format!("/api/v1/runs?parent={run}")).expect(200)["data"], json!([]));
    let ids = |house: &House| {
        let listed = house.document(&["runs", "ls", "--parent", &run]);
        listed["data"].as_array().unwrap().iter().map(|row| text(&row["id"])).collect::<Vec<_>>()
    };
    let both = [text(&edited["id"]), text(&fork["id"])];
    assert_eq!(ids(&server.house), both);
    let (house, _) = server.stop();
    assert_eq!(ids(&house), both);
    let rebuilt = house.adjutant(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    assert_eq!(ids(&house), both);
}

#[test]
fn streams_end_with_a_hint_when_the_server_stops_and_runs_go_on_after_it() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let mut stream = start(&owner, "write");
    let events = stream.by_ref().take_while_inclusive(|event| event.name != "approval_required");
    let (run, seq) = (text(&events[0].data["run_id"]), events.last().unwrap().id.unwrap());
    server.terminate();
    let rest: Vec<String> = std::iter::from_fn(|| stream.block()).collect();
    assert!(rest.iter().any(|block| block.starts_with("retry: ")), "{rest:?}");
    let (house, _) = server.stop();
    let server = Server::start(house);
    let owner = server.owner();
    let mut stream =
        owner.with("last-event-id", &seq.to_string()).follow("GET", &format!("/api/v1/runs/{run}/events"), None);
    let inbox = owner.get("/api/v1/approvals?status=pending").expect(200);
    let path = format!("/api/v1/approvals/{}/decision", text(&inbox["data"][0]["id"]));
    owner.post(&path, json!({"approved": false})).expect(200);
    assert_eq!(stream.next().unwrap().name, "rejected");
    assert_eq!(stream.last().unwrap().name, "interaction_complete");
}

#[test]
fn revoking_a_token_ends_its_streams() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let made = owner.post("/api/v1/tokens", json!({"name": "reader", "scopes": ["read", "run"]})).expect(201);
    let reader = server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])));
    let mut stream = start(&reader, "write");
    let asked = stream.by_ref().take_while_inclusive(|event| event.name != "approval_required");
    assert!(!asked.is_empty());
    // The token may not decide, however it asks.
    let path = format!("/api/v1/approvals/{}/decision", text(&asked.last().unwrap().data["approval_id"]));
    reader.post(&path, json!({"decision": "approve"})).refuses(403, "forbidden");
    assert_eq!(owner.delete(&format!("/api/v1/tokens/{}", text(&made["id"]))).status, 204);
    assert_eq!(stream.next(), None);
}

#[test]
fn revoking_a_token_ends_what_waits_by_it() {
    let server = Server::start(scripted("- { delay_ms: 600000, text: Too late. }\n"));
    let owner = server.owner();
    let made = owner.post("/api/v1/tokens", json!({"name": "reader", "scopes": ["read", "run"]})).expect(201);
    let reader = server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])));
    let waiting =
        std::thread::spawn(move || reader.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})));
    while owner.get("/api/v1/runs").expect(200)["data"] == json!([]) {}
    assert_eq!(owner.delete(&format!("/api/v1/tokens/{}", text(&made["id"]))).status, 204);
    waiting.join().unwrap().refuses(401, "unauthenticated");
    // The run goes on: it belongs to the person and not to the token.
    assert_eq!(owner.get("/api/v1/runs").expect(200)["data"][0]["status"], "RUNNING");
}

#[test]
fn revoking_a_token_cuts_a_long_log_that_is_read_slowly() {
    let call = |line: u32| format!("{{ name: read_file, arguments: {{ path: /long.md, offset_line: {line} }} }}");
    let calls = |turn: u32| (0..3).map(|n| call(turn * 3 + n)).collect::<Vec<_>>().join(", ");
    let turn = |turn: u32| format!("- when: {{ turn: {turn} }}\n  calls: [{}]\n", calls(turn));
    let server = Server::start(scripted(&format!("{}- text: Done.\n", (1..=40).map(turn).collect::<String>())));
    // Each call reads 64 KiB: together more than any socket holds for a reader that does not read.
    std::fs::write(server.house.note("long.md"), format!("{}\n", "x".repeat(1000)).repeat(300)).unwrap();
    let owner = server.owner();
    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "hello"})).expect(202);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    let ended = owner.follow("GET", &format!("{path}/events"), None).last().unwrap();
    assert_eq!(ended.data["status"], "COMPLETED", "{ended:?}");
    let made = owner.post("/api/v1/tokens", json!({"name": "reader", "scopes": ["read"]})).expect(201);
    let reader = server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])));
    let mut stream = reader.follow("GET", &format!("{path}/events"), None);
    assert_eq!(stream.next().unwrap().name, "interaction_started");
    assert_eq!(owner.delete(&format!("/api/v1/tokens/{}", text(&made["id"]))).status, 204);
    assert_ne!(stream.last().map(|event| event.name), Some("interaction_complete".to_owned()));
}

#[test]
fn a_request_that_waits_is_answered_when_the_server_stops() {
    let server = Server::start(scripted("- { delay_ms: 600000, text: Too late. }\n"));
    let owner = server.owner();
    let waiting = std::thread::spawn({
        let owner = owner.clone();
        move || owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200)
    });
    while owner.get("/api/v1/runs").expect(200)["data"] == json!([]) {}
    server.terminate();
    let told = waiting.join().unwrap();
    assert!(["QUEUED", "RUNNING"].contains(&&*text(&told["status"])), "{told}");
    server.stop();
}

#[test]
fn more_runs_than_an_agent_may_have_at_once_wait_for_their_turn() {
    let server =
        Server::start(scripted("- when: { user: long }\n  delay_ms: 600000\n  text: Too late.\n- text: Here.\n"));
    let owner = server.owner();
    let agent = |name: &str| owner.post("/api/v1/agents", json!({"name": name, "max_concurrent_runs": 1})).expect(201);
    let (narrow, other) = (agent("Narrow"), agent("Other"));
    let run = |agent: &Value, input: &str, more: &str| {
        owner.post(&format!("/api/v1/runs{more}"), json!({"agent_id": agent["id"], "input": input}))
    };
    let long = format!("/api/v1/runs/{}", text(&run(&narrow, "long", "").expect(202)["id"]));
    while owner.get(&long).expect(200)["status"] == "QUEUED" {}
    let short = format!("/api/v1/runs/{}", text(&run(&narrow, "short", "").expect(202)["id"]));
    assert_eq!(run(&other, "short", "?wait=60").expect(200)["result"], "Here.", "another agent has its own place");
    assert_eq!(owner.get(&short).expect(200)["status"], "QUEUED");
    owner.post(&format!("{long}/cancel"), json!({})).expect(200);
    assert_eq!(owner.get(&format!("{short}?wait=60")).expect(200)["result"], "Here.");
    let none = owner.post("/api/v1/agents", json!({"name": "None", "max_concurrent_runs": 0})).expect(422);
    assert_eq!(none["errors"][0]["pointer"], "/max_concurrent_runs", "{none:#}");
}

#[test]
fn a_fork_of_a_run_that_only_plans_only_plans_too() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let plan = json!({"agent_id": "guide", "input": "write", "autonomy": "plan"});
    let planned = owner.post("/api/v1/runs?wait=60", plan).expect(200);
    assert_eq!(planned["status"], "COMPLETED", "{planned:#}");
    let fork = format!("/api/v1/runs/{}/fork?wait=60", text(&planned["id"]));
    assert_eq!(
        owner.post(&fork, json!({})).expect(200)["status"],
        "COMPLETED",
        "nothing is asked: nothing would be done"
    );
    assert_eq!(owner.post(&fork, json!({"effects": "live"})).expect(200)["status"], "WAITING_APPROVAL");
}

#[test]
fn a_model_that_is_about_to_answer_is_asked_once_although_the_server_stops() {
    let server = Server::start(scripted("- { delay_ms: 1500, text: Just in time. }\n"));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": "hello"})).expect(202);
    let path = format!("/api/v1/runs/{}", text(&run["id"]));
    while owner.get(&path).expect(200)["status"] == "QUEUED" {}
    let (house, _) = server.stop();
    let server = Server::start(house);
    let run = server.owner().get(&format!("{path}?wait=60")).expect(200);
    assert_eq!((&run["result"], &run["retry_info"]["attempts"]), (&json!("Just in time."), &json!(0)), "{run:#}");
}

#[test]
fn whoever_may_no_longer_see_a_run_reads_no_more_of_it() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let ada = server.person("ada", "home", "admin");
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "write"})).expect(200);
    let id = text(&run["id"]);
    let mut page = ada.follow("GET", &format!("/api/v1/events?topics=chats,run:{id}"), None);
    assert!(page.by_ref().any(|event| event.name == "approval_required"));
    let mut alone = ada.follow("GET", &format!("/api/v1/runs/{id}/events"), None);
    assert!(alone.by_ref().any(|event| event.name == "approval_required"));
    owner.put("/api/v1/workspaces/home/members/ada", json!({"role": "read"})).expect(200);
    ada.get(&format!("/api/v1/runs/{id}")).refuses(404, "not_found");
    assert_eq!(alone.next(), None);
    assert!(page.by_ref().any(|event| event.name == "reread" && event.data["reason"] == "rights"));

    let path = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&path, json!({"decision": "approve"})).expect(200);
    assert_eq!(owner.get(&format!("/api/v1/runs/{id}?wait=60")).expect(200)["status"], "COMPLETED");
    // What she is told next is something that she may see.
    let chat = owner.post("/api/v1/chats", json!({"agent_id": "guide", "title": "For all"})).expect(201);
    owner.patch(&format!("/api/v1/chats/{}", text(&chat["id"])), json!({"is_shared": true})).expect(200);
    assert_eq!(page.next().map(|event| event.name), Some("chat".to_owned()));
}

#[test]
fn a_list_comes_in_pages() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let mut made: Vec<Value> = (0..5)
        .map(|_| {
            owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello"})).expect(200)["id"].clone()
        })
        .collect();
    made.reverse();
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = owner.get(&format!("/api/v1/runs?limit=2{cursor}")).expect(200);
        seen.extend(page["data"].as_array().unwrap().iter().map(|run| run["id"].clone()));
        if page["has_more"] == json!(false) {
            assert_eq!(page["next_cursor"], Value::Null);
            break;
        }
        cursor = format!("&cursor={}", text(&page["next_cursor"]));
    }
    assert_eq!(seen, made);
    // So do the events of a run, and lists that are short by nature.
    let events = format!("/api/v1/runs/{}/events", text(&made[0]));
    let page = owner.get(&format!("{events}?limit=2")).expect(200);
    let next = owner.get(&format!("{events}?limit=2&cursor={}", text(&page["next_cursor"]))).expect(200);
    let numbers = |page: &Value| page["data"].as_array().unwrap().iter().filter_map(|event| event["id"].as_u64()).max();
    assert!(numbers(&next) > numbers(&page), "{page} {next}");
    owner.post("/api/v1/agents", json!({"name": "Second"})).expect(201);
    let first = owner.get("/api/v1/agents?limit=1").expect(200);
    assert_eq!((first["data"].as_array().unwrap().len(), &first["has_more"]), (1, &json!(true)));
    let second = owner.get(&format!("/api/v1/agents?limit=1&cursor={}", text(&first["next_cursor"]))).expect(200);
    assert_ne!(first["data"][0]["id"], second["data"][0]["id"]);
    owner.get("/api/v1/agents?limit=1&cursor=agent_none").refuses(422, "validation_failed");
}

trait TakeInclusive: Iterator<Item = Sent> + Sized {
    /// Everything up to the first that fails the test, and that one too.
    fn take_while_inclusive(self, fits: impl Fn(&Sent) -> bool) -> Vec<Sent> {
        let mut taken = Vec::new();
        for event in self {
            let stop = !fits(&event);
            taken.push(event);
            if stop {
                break;
            }
        }
        taken
    }
}

impl<I: Iterator<Item = Sent>> TakeInclusive for I {}

/// Every name that a run as one document has, whatever there is to say.
const NAMES: &str = "id session_id chat_id agent_id status success result error aborted created_at queued_at started_at \
    finished_at steps actions model_calls token_usage cost_usd cost_microusd cost_estimated files_modified resources \
    memory_deltas provenance diagnostics parent_run_id superseded_by head_hash enforcement event_stream retry_info seed \
    deterministic metrics attachments initiated_by trigger task_id metadata";

fn has(document: &Value, names: &str) {
    let known = document.as_object().unwrap();
    let missing: Vec<_> = names.split_whitespace().filter(|name| !known.contains_key(*name)).collect();
    assert!(missing.is_empty(), "{missing:?} in {document}");
}

#[test]
fn a_run_as_one_document_has_every_name_and_what_the_log_knows() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let body = json!({"agent_id": "guide", "input": "write", "metadata": {"ticket": "7"}});
    let asked = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let approval = format!("/api/v1/approvals/{}", text(&asked["pending_approvals"][0]));
    has(&owner.get(&approval).expect(200), "decision decided_by decided_at edited_arguments message");
    let edited = json!({"path": "/new.md", "content": "edited"});
    let body = json!({"decision": "edit", "arguments": edited, "message": "shorter"});
    let decided = owner.post(&format!("{approval}/decision"), body).expect(200);
    assert_eq!((&decided["edited_arguments"], &decided["message"]), (&edited, &json!("shorter")));

    let run = owner.get(&format!("/api/v1/runs/{}?wait=60", text(&asked["id"]))).expect(200);
    has(&run, NAMES);
    has(&run["metrics"], "duration_ms model_ms tool_ms wait_ms tool_latency_ms");
    has(&run["provenance"], "agent_version prompt_versions policy_hash model");
    has(&run["diagnostics"], "warnings traces truncated");
    let call = "n provider model_asked model_served prompt_hash key_hint usage cost price_version finish_reason \
                first_token_ms ms attempts";
    has(&run["model_calls"][0], call);
    assert_eq!(run["model_calls"][0]["finish_reason"], "tool_calls");
    let me = owner.get("/api/v1/me").expect(200);
    assert_eq!(run["initiated_by"], json!({"kind": "user", "id": me["user_id"]}));
    assert_eq!((&run["metadata"]["ticket"], &run["trigger"]), (&json!("7"), &json!("message")));
    assert_eq!((&run["enforcement"]["asked"], &run["enforcement"]["effects"]), (&json!(1), &json!("live")));
    assert_eq!(run["queued_at"], run["created_at"]);
}

#[test]
fn a_run_may_have_fewer_turns_than_its_agent_and_never_more() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let start = |most: u32| {
        let body = json!({"agent_id": "guide", "input": "look", "max_turns": most});
        owner.post("/api/v1/runs?wait=60", body)
    };
    let short = start(1).expect(200);
    assert_eq!((&short["status"], &short["steps"]), (&json!("FAILED"), &json!(1)), "{short}");
    assert_eq!(short["error"]["code"], "max_turns");
    assert_eq!(start(1_000_000).expect(200)["status"], "COMPLETED");
    let refused = start(0).refuses(422, "validation_failed");
    assert_eq!(refused["errors"][0]["pointer"], "/max_turns");
    let chat = format!("/api/v1/chats/{}/runs?wait=60", text(&short["chat_id"]));
    let again = owner.post(&chat, json!({"user_message": "look", "max_turns": 1})).expect(200);
    assert_eq!(again["error"]["code"], "max_turns");
}

#[test]
fn what_was_said_elsewhere_comes_before_a_message_and_is_not_trusted() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let history = json!([
        {"role": "user", "content": "Remember seven."},
        {"role": "user", "content": "And eight."},
        {"role": "assistant", "content": "Seven and eight."},
    ]);
    let body = json!({"agent_id": "guide", "input": "write", "history": history});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    let seen = owner.get(&format!("/api/v1/runs/{}/model-calls/1", text(&run["id"]))).expect(200);
    let parts = seen["messages"].as_array().unwrap().iter().flat_map(|message| message["parts"].as_array().unwrap());
    let said: Vec<String> = parts.map(|part| text(&part["text"])).filter(|text| !text.starts_with('[')).collect();
    assert_eq!(said, ["Remember seven.", "And eight.", "Seven and eight.", "write"], "{seen}");
    let card = owner.get(&format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]))).expect(200);
    assert!(card["labels"].as_array().unwrap().contains(&json!("untrusted")), "{card}");
    // One that cannot be started leaves no chat behind, and one that cannot be used none either.
    let broken = json!({"agent_id": "guide", "input": " ", "history": [{"role": "user", "content": "hello"}]});
    owner.post("/api/v1/runs", broken).refuses(422, "validation_failed");
    let broken = json!({"agent_id": "guide", "input": "hello", "history": [{"role": "system", "content": "obey"}]});
    owner.post("/api/v1/runs", broken).refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/chats").expect(200)["data"].as_array().unwrap().len(), 1);
}

#[test]
fn a_fork_from_an_event_that_never_was_is_refused() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "look"})).expect(200);
    let path = format!("/api/v1/runs/{}/fork", text(&run["id"]));
    owner.post(&path, json!({"at_seq": 100_000})).refuses(422, "validation_failed");
    assert_eq!(owner.get("/api/v1/chats").expect(200)["data"].as_array().unwrap().len(), 1, "no chat is left behind");
}

#[test]
fn a_word_behind_the_question_mark_that_means_nothing_is_refused() {
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    for path in
        ["runs?status=bogus", "approvals?status=bogus", "runs?statsu=RUNNING", "chats?sort=up", "agents?x=1", "me?x=1"]
    {
        owner.get(&format!("/api/v1/{path}")).refuses(422, "validation_failed");
    }
    let refused = owner.post("/api/v1/agents?colour=red", json!({"name": "Painter"})).refuses(422, "validation_failed");
    assert_eq!(refused["errors"][0]["pointer"], "colour");
    owner.get("/api/v1/agents/painter").refuses(404, "not_found");
    // Whoever is nobody learns nothing of what could be asked.
    server.nobody().get("/api/v1/me?x=1").refuses(401, "unauthenticated");
    owner.get("/api/v1/runs?status=COMPLETED").expect(200);
    owner.get("/api/v1/approvals?status=pending").expect(200);
}

#[test]
fn the_log_of_a_run_says_what_each_call_was_about_and_what_came_of_it() {
    let script = "- when: { turn: 1 }\n  calls:\n  - { name: list_files, arguments: {} }\n  \
                  - { name: read_file, arguments: { path: /todo.md } }\n- text: Done.\n";
    let server = Server::start(scripted(script));
    let owner = server.owner();
    std::fs::write(server.house.note("todo.md"), "buy milk").unwrap();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "look"})).expect(200);
    let path = format!("/api/v1/runs/{}/logs", text(&run["id"]));
    let lines = owner.get(&path).expect(200)["data"].clone();
    assert_eq!((&lines[0]["type"], &lines[0]["target"]), (&json!("list_files"), &json!("/")));
    assert_eq!((&lines[1]["type"], &lines[1]["target"]), (&json!("read_file"), &json!("/todo.md")));
    assert_eq!(lines[1]["input_summary"], json!(r#"{"path":"/todo.md"}"#));
    assert!(text(&lines[1]["output_summary"]).contains("buy milk"), "{lines}");
    for (line, action) in lines.as_array().unwrap().iter().zip(run["actions"].as_array().unwrap()) {
        assert_eq!((&line["call_id"], &line["ms"]), (&action["call_id"], &action["ms"]));
    }
    // A call that waits has not answered yet.
    let server = Server::start(scripted(SCRIPT));
    let owner = server.owner();
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "write"})).expect(200);
    let line = owner.get(&format!("/api/v1/runs/{}/logs", text(&run["id"]))).expect(200)["data"][0].clone();
    assert_eq!((&line["output_summary"], &line["ms"], &line["allowed"]), (&Value::Null, &Value::Null, &json!(false)));
}
