//! Models at the command line: what there is, why one is chosen, and what it saw; with and without a server.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;

use crate::api::client::{OWNER, Server};
use crate::house::{Done, House, text};
use crate::keys::{self, CANARY};

fn two_providers() -> House {
    let house = House::new();
    let provider = |name: &str, kind: &str| {
        format!("[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"http://127.0.0.1:9/v1\"\n")
    };
    house.configure(&(provider("work", "openai") + &provider("lab", "deepseek")));
    house
}

/// Models are listed, and a choice is explained.
fn story(house: &House) {
    let listed = house.document(&["models", "ls", "gpt-5.4-mini"]);
    let mini = listed["data"].as_array().unwrap().iter().find(|model| model["id"] == "work/gpt-5.4-mini").unwrap();
    assert!(mini["prices"]["input_usd"].as_f64().unwrap() > 0.0, "{mini:#}");
    let shown = house.document(&["models", "show", "work/gpt-5.4-mini"]);
    assert_eq!(&shown, mini);
    let choice = house.document(&["models", "explain", "cheapest"]);
    assert_eq!((&choice["strategy"], &choice["model"]), (&json!("cheapest"), &choice["ranked"][0]["model"]));
    let costs = choice["ranked"].as_array().unwrap().iter().filter_map(|model| model["cost_microusd"].as_u64());
    assert!(costs.is_sorted(), "{choice:#}");
    assert!(!choice["left_out"].as_array().unwrap().is_empty(), "some call no tools: {choice:#}");
    let told = house.adjutant(&["models", "explain", "smartest"]);
    assert!(told.out.starts_with("smartest chooses ") && told.out.contains("lacks"), "{told}");
    assert_eq!(house.adjutant(&["models", "explain", "prettiest"]).code, Some(2));
    let huge = house.adjutant(&["models", "explain", "cheapest", "--input", "90000000"]);
    assert!(huge.code == Some(1) && huge.out.contains("Nothing fits"), "{huge}");
    assert_ne!(house.adjutant(&["models", "show", "work/no-such"]).code, Some(0));
    let old = house.document(&["models", "show", "work/o3-mini"]);
    assert_eq!((&old["retired"], &old["retired_on"]), (&json!(true), &json!("2026-10-23")));
    let row = house.adjutant(&["models", "ls", "o3-mini"]);
    assert!(row.out.contains("retired 2026-10-23"), "{row}");
    let lacks = |choice: &serde_json::Value| {
        choice["left_out"].as_array().unwrap().iter().find(|left| left["model"] == "work/o3-mini").cloned()
    };
    assert_eq!(lacks(&choice).unwrap()["lacks"], "retired");
}

#[test]
fn models_are_listed_and_a_choice_is_explained() {
    story(&two_providers());
}

#[test]
fn models_are_the_same_at_the_server() {
    let server = Server::start(two_providers());
    story(&server.house);
    let file = server.house.path().join("models.json");
    let document =
        json!({"openai": {"models": {"gpt-99": {"limit": {"context": 1000}, "cost": {"input": 1, "output": 2}}}}});
    std::fs::write(&file, document.to_string()).unwrap();
    assert_eq!(server.house.document(&["models", "sync", file.to_str().unwrap()])["models"], 1);
    let shown = server.house.document(&["models", "show", "work/gpt-99"]);
    assert_eq!(shown["prices"]["output_usd"], json!(2.0), "the server knows it without a new start");
    let many: serde_json::Map<_, _> =
        (0..30_000).map(|n| (format!("gpt-{n}"), document["openai"]["models"]["gpt-99"].clone())).collect();
    std::fs::write(&file, json!({"openai": {"models": many}}).to_string()).unwrap();
    assert!(std::fs::metadata(&file).unwrap().len() > 1024 * 1024, "more than other bodies may have");
    assert_eq!(server.house.document(&["models", "sync", file.to_str().unwrap()])["models"], 30_000, "a long one, too");
    let writer = server.person("writer", "home", "write");
    writer.put("/api/v1/models/catalog", document).refuses(403, "forbidden");
    writer.post("/api/v1/models/refresh", json!({})).refuses(403, "forbidden");
    let bad = server.owner().put("/api/v1/models/catalog", json!({"openai": {}}));
    bad.refuses(422, "validation_failed");
    assert_eq!(server.stop().0.document(&["models", "show", "work/gpt-99"])["context_window"], 1000, "and it stays");
}

#[test]
fn a_server_asks_providers_for_their_models_and_knows_them_at_once() {
    let house = House::new();
    let base = lister(r#"{"data":[{"id":"brand-new-1","context_length":9000}]}"#);
    house.configure(&format!("[providers.work]\nkind = \"openai\"\nbase_url = \"{base}/v1\"\n"));
    let server = Server::start(house);
    let told = server.house.document(&["models", "refresh"]);
    assert_eq!(told["data"][0], json!({"provider": "work", "models": 1, "new": ["brand-new-1"], "error": null}));
    assert_eq!(server.house.document(&["models", "show", "work/brand-new-1"])["context_window"], 9000);
    let nobody = server.owner().post("/api/v1/models/refresh", json!({"provider": "nobody"}));
    nobody.refuses(422, "validation_failed");
}

#[test]
fn ollama_on_the_machine_of_the_server_is_found_once_it_is_ready() {
    let base = lister(r#"{"models":[{"name":"qwen3:8b"},{"name":"gemma3"}]}"#);
    let env = [("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("OLLAMA_HOST", base.as_str())];
    let mut server = Server::start_with(House::new(), &env);
    let line = server.hear("Ollama");
    assert!(line.contains("2 models"), "{line}");
    let listed = server.owner().get("/api/v1/providers").expect(200);
    let of = |name: &str| listed["data"].as_array().unwrap().iter().find(|line| line["name"] == name).unwrap().clone();
    let ollama = of("ollama");
    assert_eq!(
        (&ollama["detected"], &ollama["key"], &ollama["models"]),
        (&json!(true), &json!("not_needed"), &json!(2))
    );
    let models = server.owner().get("/api/v1/models").expect(200);
    assert_eq!(models["data"][0]["id"], "ollama/gemma3", "{models:#}");
    assert_eq!(models["data"][0]["prices"]["input_usd"], json!(0.0));
    server.stop();
}

#[test]
fn it_is_told_which_providers_there_are_and_whether_somebody_has_a_key() {
    let house = two_providers();
    let server = Server::start(house);
    let (owner, writer) = (server.owner(), server.person("writer", "home", "write"));
    let listed = |who: &crate::api::client::Client, name: &str| {
        let listed = who.get("/api/v1/providers").expect(200);
        listed["data"].as_array().unwrap().iter().find(|line| line["name"] == name).cloned().unwrap()
    };
    assert_eq!(listed(&owner, "demo")["key"], "not_needed");
    let mistral = listed(&owner, "mistral");
    assert_eq!((&mistral["key"], &mistral["key_env"]), (&json!("missing"), &json!(["MISTRAL_API_KEY"])));
    let key = json!({"provider": "mistral", "owner": "workspace", "name": "ours", "value": "sk-of-the-workspace"});
    owner.post("/api/v1/provider-keys", key).expect(201);
    assert_eq!(listed(&writer, "mistral")["key"], "stored", "one that the workspace keeps");
    assert_eq!(listed(&writer, "mistral")["host"], json!(null), "where it is reached is for admins");
    assert_eq!(listed(&owner, "mistral")["host"], "api.mistral.ai");
}

#[test]
fn a_document_is_laid_over_the_built_in_catalog_and_stays() {
    let house = two_providers();
    let file = house.path().join("models.json");
    let model = json!({"id": "gpt-99", "name": "GPT 99", "limit": {"context": 1000, "output": 100}, "cost": {"input": 1, "output": 2}});
    std::fs::write(&file, json!({"openai": {"id": "openai", "models": {"gpt-99": model}}}).to_string()).unwrap();
    assert_eq!(house.document(&["models", "sync", file.to_str().unwrap()])["models"], 1);
    let shown = house.document(&["models", "show", "work/gpt-99"]);
    assert_eq!((&shown["context_window"], &shown["prices"]["output_usd"]), (&json!(1000), &json!(2.0)));
    let other = json!({"limit": {"context": 1000}, "cost": {"input": 1, "output": 3}});
    std::fs::write(&file, json!({"openai": {"models": {"gpt-99": other}}}).to_string()).unwrap();
    assert_eq!(house.document(&["models", "sync", file.to_str().unwrap()])["models"], 1);
    let newer = house.document(&["models", "show", "work/gpt-99"]);
    assert!(text(&newer["price_version"]).starts_with("synced-"), "{newer:#}");
    assert_ne!(newer["price_version"], shown["price_version"], "a cost says by which of the two it was reckoned");
    std::fs::write(&file, "[1, 2").unwrap();
    let refused = house.adjutant(&["models", "sync", file.to_str().unwrap()]);
    assert!(refused.code == Some(2) && refused.err.contains("Nothing was taken"), "{refused}");
    assert_eq!(house.document(&["models", "show", "work/gpt-99"])["context_window"], 1000);
}

/// A server that answers every request with this document.
fn lister(document: &'static str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", document.len());
            let _ = stream.write_all(format!("{head}{document}").as_bytes());
        }
    });
    base
}

#[test]
fn a_provider_that_only_a_brought_key_opens_says_which_models_it_has() {
    let house = House::new();
    let base = lister(r#"{"data":[{"id":"brand-new-2","context_length":7000}]}"#);
    let unset = "api_key_env = \"ADJUTANT_TEST_UNSET\"";
    house.configure(&format!("[providers.work]\nkind = \"openai\"\nbase_url = \"{base}/v1\"\n{unset}\n"));
    let without = house.adjutant(&["models", "refresh", "work"]);
    assert!(without.code == Some(2) && without.err.contains("no provider `work`"), "{without}");
    let added = Done::with_input(&mut house.command(&["keys", "add", "work", "--mine"]), "sk-brought-0123456789");
    assert_eq!(added.code, Some(0), "{added}");
    let told = house.document(&["models", "refresh", "work"]);
    assert_eq!(told["data"][0], json!({"provider": "work", "models": 1, "new": ["brand-new-2"], "error": null}));
    assert_eq!(house.document(&["models", "show", "work/brand-new-2"])["context_window"], 7000);
}

#[test]
fn a_provider_says_itself_which_models_it_has() {
    let house = House::new();
    let base = lister(r#"{"data":[{"id":"gpt-5.4-mini"},{"id":"brand-new-1","context_length":9000}]}"#);
    let dead = "[providers.dead]\nkind = \"deepseek\"\nbase_url = \"http://127.0.0.1:9/v1\"\n";
    house.configure(&format!("[providers.work]\nkind = \"openai\"\nbase_url = \"{base}/v1\"\n{dead}"));
    let told = house.document(&["models", "refresh", "work"]);
    assert_eq!(told["data"][0], json!({"provider": "work", "models": 2, "new": ["brand-new-1"], "error": null}));
    let shown = house.document(&["models", "show", "work/brand-new-1"]);
    assert_eq!((&shown["context_window"], &shown["prices"]["input_usd"]), (&json!(9000), &json!(null)));
    let known = house.document(&["models", "show", "work/gpt-5.4-mini"]);
    assert!(known["prices"]["input_usd"].as_f64().unwrap() > 0.0, "what was known stays: {known:#}");
    let again = house.adjutant(&["models", "refresh"]);
    assert_eq!(again.code, Some(8), "{again}");
    assert!(again.out.contains("✔ work: 2 models, none new") && again.out.contains("✖ dead:"), "{again}");
    let nobody = house.adjutant(&["models", "refresh", "nobody"]);
    assert!(nobody.code == Some(2) && nobody.err.contains("there are: dead, work"), "{nobody}");
}

#[test]
fn a_document_is_fetched_only_from_where_the_operator_lets_one_go() {
    let house = two_providers();
    let base = lister(r#"{"openai":{"models":{"gpt-98":{"limit":{"context":1000}}}}}"#);
    let url = format!("{base}/api.json");
    let refused = house.adjutant(&["models", "sync", &url]);
    assert_eq!(refused.code, Some(8), "{refused}");
    assert!(
        refused.err.contains("does not lead to a public address") && refused.err.contains("Nothing was taken"),
        "{refused}"
    );
    let opened = Done::of(house.command(&["models", "sync", &url]).env("ADJUTANT_ALLOW_PRIVATE", "127.0.0.1/32"));
    assert!(opened.code == Some(0) && opened.out.contains("1 models"), "{opened}");
    assert_eq!(house.document(&["models", "show", "work/gpt-98"])["context_window"], 1000);
}

#[test]
fn a_list_without_models_says_why_it_is_empty() {
    let house = House::new();
    let none = house.adjutant(&["models", "ls"]);
    assert!(none.out.starts_with("No provider is configured but the built-in one"), "{none}");
    let word = two_providers().adjutant(&["models", "ls", "no-such-model"]);
    assert!(word.out.starts_with("No model of a configured provider is known by that name."), "{word}");
}

#[test]
fn what_the_model_saw_is_made_again_from_the_log() {
    let house = House::new();
    let (run, _) = house.asked();
    let calls = house.document(&["runs", "show", &run])["model_calls"].as_array().unwrap().len();
    assert!(calls > 1);
    for n in 1..=calls {
        let seen = house.document(&["runs", "show", &run, "--seen", &n.to_string()]);
        assert_eq!(seen["same"], true, "{seen:#}");
        assert!(seen["sizes"]["messages_bytes"].as_u64().unwrap() > 0, "{seen:#}");
    }
    let last = house.document(&["runs", "show", &run, "--seen", &calls.to_string()]);
    let shown = house.adjutant(&["runs", "show", &run, "--seen", "1"]);
    assert!(shown.out.contains("as it was sent") && shown.out.contains("tidy the welcome notes"), "{shown}");
    assert_ne!(house.adjutant(&["runs", "show", &run, "--seen", "99"]).code, Some(0));
    let server = Server::start(house);
    let there = server.house.document(&["runs", "show", &run, "--seen", &calls.to_string()]);
    assert_eq!((&there, text(&there["messages"][0]["role"]).as_str()), (&last, "user"));
}

#[test]
fn what_went_over_the_wire_is_kept_where_somebody_asks_and_holds_no_key() {
    let (house, heard) = keys::house();
    keys::kept(&house, &["--name", "mine"], CANARY);
    let run = |flags: &[&str]| {
        let done = house.adjutant(&[&["run", "the plan", "--model", "lab/some", "--json"], flags].concat());
        assert_eq!(heard.recv().unwrap(), CANARY, "{done}");
        text(&done.events()[0]["data"]["run_id"])
    };
    let (debugged, plain) = (run(&["--debug"]), run(&[]));
    let seen = |run: &str| house.document(&["runs", "show", run, "--seen", "1", "--frames"]);
    let frames = text(&seen(&debugged)["frames"]);
    assert!(frames.starts_with("> POST 127.0.0.1/v1/chat/completions\n> {\"model\":\"some\""), "{frames}");
    let came = "\n< HTTP 401\n< {\"error\":{\"message\":\"wrong key [REDACTED:credential]\"}}\n";
    assert!(frames.contains("the plan") && frames.ends_with(came), "{frames}");
    assert!(!frames.contains(CANARY) && !frames.to_lowercase().contains("authorization"), "{frames}");
    let told = house.adjutant(&["runs", "show", &debugged, "--seen", "1", "--frames"]);
    assert!(told.out.contains("over the wire\n> POST 127.0.0.1"), "{told}");
    let quiet = house.document(&["runs", "show", &debugged, "--seen", "1"]);
    assert_eq!((&quiet["frames"], &seen(&plain)["frames"]), (&json!(null), &json!(null)), "only where it is asked for");
    let mut open = Vec::new();
    keys::holding(house.path(), b"wrong key", &mut open);
    assert_eq!(open, Vec::<String>::new(), "it is sealed like the rest of the run");
    assert_eq!(house.adjutant(&["audit", "erase", "--before", "0m", "--yes"]).code, Some(0));
    assert_ne!(
        house.adjutant(&["runs", "show", &debugged, "--seen", "1", "--frames"]).code,
        Some(0),
        "gone with the run"
    );
}

/// Models of a provider that the operator has no key for are listed and ranked once a key of the workspace opens them.
fn opened(house: &House) {
    let listed = |house: &House| house.document(&["models", "ls", "mistral/"])["data"].as_array().unwrap().clone();
    assert_eq!(listed(house), Vec::<serde_json::Value>::new());
    let kept = Done::with_input(&mut house.command(&["keys", "add", "mistral"]), "sk-of-my-own");
    assert_eq!(kept.code, Some(0), "{kept}");
    let models = listed(house);
    assert!(!models.is_empty() && models.iter().all(|model| model["by_key"] == true), "{models:?}");
    let explained = house.document(&["models", "explain", "cheapest"]);
    let ranked: Vec<_> = explained["ranked"].as_array().unwrap().iter().map(|ranked| text(&ranked["model"])).collect();
    assert!(ranked.iter().any(|model| model.starts_with("mistral/")), "{ranked:?}");
    assert!(house.adjutant(&["models", "ls", "mistral/"]).out.contains("a key"));
}

#[test]
fn models_that_only_a_stored_key_opens_are_listed_and_ranked() {
    opened(&House::new());
}

#[test]
fn models_that_only_a_stored_key_opens_are_listed_at_the_server_for_whom_it_opens_them() {
    let server = Server::start(House::new());
    opened(&server.house);
    let theirs = |name: &str| server.person(name, "home", "read").get("/api/v1/models").expect(200)["data"].clone();
    let of_mistral = |data: &serde_json::Value| data.to_string().contains("mistral/");
    assert!(of_mistral(&theirs("lee")), "a key of the workspace is for all in it");
    let mine = Done::with_input(&mut server.house.command(&["keys", "add", "cohere", "--mine"]), "sk-of-my-own");
    assert_eq!(mine.code, Some(0), "{mine}");
    assert!(!theirs("kim").to_string().contains("\"cohere/"), "a key of one person is for nobody else");
    assert!(server.owner().get("/api/v1/models").expect(200)["data"].to_string().contains("\"cohere/"));
}
