//! Secrets: a key that is held here is in nothing that is recorded, and what looks like one is hidden from whoever decides
//! until they ask for it.

use serde_json::{Value, json};

use super::client::Server;
use super::files::{history, save, tag};
use crate::house::{Done, House, text};

/// No shape that anybody knows: only the value itself gives it away.
const CANARY: &str = "plain.words.of-the-canary-7d1c";

/// Reads a note, says what it holds, and wants to write it elsewhere.
const TELLTALE: &str = r#"
- when: { turn: 3 }
  text: "It says: ${last_result}"
- when: { turn: 2 }
  text: "I read ${last_result}"
  calls: [{ name: write_file, arguments: { path: /copy.md, content: "copied: CANARY" } }]
- calls: [{ name: read_file, arguments: { path: /secret.md } }]
"#;

#[test]
fn a_key_that_is_held_is_taken_out_of_whatever_is_recorded_before_anybody_sees_it() {
    let house = House::new();
    house.script(&TELLTALE.replace("CANARY", CANARY));
    let server = Server::start(house);
    let owner = server.owner();
    let added = Done::with_input(&mut server.house.command(&["keys", "add", "openai"]), CANARY);
    assert_eq!(added.code, Some(0), "{added}");
    // Once inside of an event, and once too long for it.
    let note = format!("the key is {CANARY}\n{}\nonce more {CANARY}\n", "words ".repeat(1000));
    std::fs::write(server.house.note("secret.md"), &note).unwrap();

    let body = json!({"agent_id": "guide", "input": format!("is {CANARY} in the note?")});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    assert_eq!(run["status"], "WAITING_APPROVAL", "{run:#}");
    let (id, approval) = (text(&run["id"]), text(&run["pending_approvals"][0]));
    let mut said = vec![run.to_string()];
    let shown = owner.get(&format!("/api/v1/approvals/{approval}?reveal=true")).expect(200);
    assert_eq!(shown["arguments"]["content"], "copied: [REDACTED:credential]", "{shown:#}");
    let yes = json!({"decision": "approve", "fingerprint": shown["fingerprint"]});
    owner.post(&format!("/api/v1/approvals/{approval}/decision"), yes).expect(200);
    let done = server.house.adjutant(&["runs", "watch", &id, "--json"]);
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.out.contains("[REDACTED:credential]"), "{done}");
    said.extend([shown.to_string(), done.out]);
    let written = std::fs::read_to_string(server.house.note("copy.md")).unwrap();
    assert_eq!(written, "copied: [REDACTED:credential]", "what was recorded is what runs");

    let one = format!("/api/v1/runs/{id}");
    for path in [one.clone(), format!("{one}/events"), format!("{one}/logs"), format!("{one}/export")] {
        said.push(owner.get(&path).text);
    }
    for path in ["/api/v1/chats", "/api/v1/approvals", "/api/v1/runs", "/api/v1/audit?raw=true", "/api/v1/audit/export"]
    {
        let reply = owner.get(path);
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        said.push(reply.text);
    }
    for text in said {
        assert!(!text.contains(CANARY), "{text}");
    }
    assert_eq!(std::fs::read_to_string(server.house.note("secret.md")).unwrap(), note, "the note is a member's");
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["problems"], json!([]));
}

/// Writes a note that holds a word somebody else has brought as a key.
const CONTRACT: &str = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: write_file, arguments: { path: /todo.md, content: "signed by miller-and-daughters" } }]
"#;

#[test]
fn a_word_that_somebody_brings_as_their_key_stays_in_what_others_do_and_in_the_record_of_the_workspace() {
    let house = House::new();
    house.script(CONTRACT);
    let server = Server::start(house);
    let (owner, lee) = (server.owner(), server.person("lee", "home", "write"));
    for (name, value) in
        [("word", "miller-and-daughters"), ("tool", "write_file"), ("path", "/todo.md"), ("plan", "/secret-plan.md")]
    {
        let key = json!({"provider": "openai", "name": name, "value": value});
        lee.post("/api/v1/provider-keys", key).expect(201);
    }
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "write it"})).expect(200);
    assert_eq!(run["status"], "WAITING_APPROVAL", "{run:#}");
    let approval = owner.get(&format!("/api/v1/approvals/{}", text(&run["pending_approvals"][0]))).expect(200);
    assert_eq!(approval["arguments"], json!({"path": "/todo.md", "content": "signed by miller-and-daughters"}));

    save(&lee, "/secret-plan.md", ("if-none-match", "*"), "lee's").expect(201);
    let tag = tag(&lee.get("/api/v1/notebooks/welcome/files/secret-plan.md"));
    save(&lee, "/secret-plan.md", ("if-match", &tag), "changed by lee").expect(200);
    assert_eq!(history(&owner, "/secret-plan.md").len(), 2, "what a person did to a file is found by its path");
}

const PASSWORD: &str = "hunter2hunter2";
const SETTING: &str = r#"
- when: { turn: 2 }
  text: done
- calls: [{ name: write_file, arguments: { path: /settings.md, content: "password=hunter2hunter2" } }]
"#;

#[test]
fn a_secret_in_a_question_shows_its_kind_and_length_until_somebody_who_may_decide_asks_for_it() {
    let house = House::new();
    house.script(SETTING);
    let server = Server::start(house);
    let (owner, lee, kim) =
        (server.owner(), server.person("lee", "home", "write"), server.person("kim", "home", "write"));
    let chat = lee.post("/api/v1/chats", json!({"agent_id": "guide"})).expect(201);
    let path = format!("/api/v1/chats/{}", text(&chat["id"]));
    lee.patch(&path, json!({"is_shared": true})).expect(200);
    let run = lee.post(&format!("{path}/runs?wait=60"), json!({"user_message": "set it"})).expect(200);
    let id = text(&run["pending_approvals"][0]);
    let item = format!("/api/v1/approvals/{id}");
    let hidden = "password=[REDACTED:password:14]";

    let shown = kim.get(&item).expect(200);
    assert_eq!((&shown["arguments"]["content"], &shown["hidden"]), (&json!(hidden), &json!(true)), "{shown:#}");
    assert!(!shown.to_string().contains(PASSWORD), "{shown:#}");
    let events = lee.get(&format!("/api/v1/runs/{}/events", text(&run["id"]))).text;
    assert!(events.contains(hidden) && !events.contains(PASSWORD), "{events}");
    kim.get(&format!("{item}?reveal=true")).refuses(403, "forbidden");
    let revealed = lee.get(&format!("{item}?reveal=true")).expect(200);
    assert_eq!(revealed["arguments"]["content"], json!(format!("password={PASSWORD}")), "{revealed:#}");
    assert_eq!((&revealed["fingerprint"], &revealed["hidden"]), (&shown["fingerprint"], &Value::Null));
    let noted = owner.get("/api/v1/audit?q=kind:secrets_revealed").expect(200);
    assert_eq!(noted["data"].as_array().map(Vec::len), Some(1), "{noted:#}");

    let told = server.house.adjutant(&["inbox", "show", &id]);
    assert!(told.out.contains("[REDACTED:password:14]") && !told.out.contains(PASSWORD), "{told}");
    let told = server.house.adjutant(&["inbox", "show", &id, "--reveal"]);
    assert!(told.out.contains(PASSWORD), "{told}");

    let marked = json!({"decision": "edit", "arguments": {"path": "/settings.md", "content": hidden}});
    lee.post(&format!("{item}/decision"), marked).refuses(422, "validation_failed");
    lee.post(&format!("{item}/decision"), json!({"decision": "approve", "fingerprint": shown["fingerprint"]}))
        .expect(200);
    let done = server.house.adjutant(&["runs", "watch", &text(&run["id"])]);
    assert_eq!(done.code, Some(0), "{done}");
    let written = std::fs::read_to_string(server.house.note("settings.md")).unwrap();
    assert_eq!(written, format!("password={PASSWORD}"), "what was approved is the real thing");
}
