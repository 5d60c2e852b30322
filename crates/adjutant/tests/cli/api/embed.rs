//! Embeddings: texts become vectors with the keys, the budgets and the record of every model call, at the server and without.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::client::Server;
use crate::house::{Done, House};

const MODEL: &str = "work/text-embedding-3-small";
const FINE: &str = r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.5,-1]},{"object":"embedding","index":0,"embedding":[0.25,0.125]}],"model":"text-embedding-3-small","usage":{"prompt_tokens":7,"total_tokens":7}}"#;

/// A provider that gives these replies, then `FINE` for ever; and what it was asked: the key and the body.
#[derive(Clone, Default)]
struct Provider {
    replies: Arc<Mutex<VecDeque<(u16, &'static str)>>>,
    asked: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Provider {
    /// Starts it, and a house that knows it as `work`.
    fn start() -> (Self, House) {
        let (provider, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").unwrap());
        let house = House::new();
        house.configure(&format!(
            "[providers.work]\nkind = \"openai\"\nbase_url = \"http://{}/v1\"\n",
            listener.local_addr().unwrap()
        ));
        let served = provider.clone();
        std::thread::spawn(move || listener.incoming().for_each(|stream| served.answer(stream.unwrap())));
        (provider, house)
    }

    fn answer(&self, mut stream: std::net::TcpStream) {
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        let (head, body) = loop {
            let read = stream.read(&mut piece).unwrap();
            bytes.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break (head.to_owned(), body.to_owned());
                }
            }
        };
        assert!(head.starts_with("POST /v1/embeddings "), "{head}");
        let key = head.split_once("Bearer ").map_or("none", |(_, rest)| rest.split("\r\n").next().unwrap());
        self.asked.lock().unwrap().push((key.to_owned(), serde_json::from_str(&body).unwrap()));
        let (status, reply) = self.replies.lock().unwrap().pop_front().unwrap_or((200, FINE));
        let head = format!("HTTP/1.1 {status} Any\r\ncontent-type: application/json\r\nconnection: close");
        let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{reply}", reply.len());
    }

    fn next(&self, status: u16, reply: &'static str) {
        self.replies.lock().unwrap().push_back((status, reply));
    }

    fn asked(&self) -> Vec<(String, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

fn both() -> Value {
    json!({"model": MODEL, "input": ["größer", "b"]})
}

#[test]
fn texts_become_vectors_and_count_like_any_model_call() {
    let (provider, house) = Provider::start();
    let server = Server::start(house);
    let owner = server.owner();
    let made = owner.post("/api/v1/embeddings", both()).expect(200);
    assert_eq!(made["data"][0], json!({"index": 0, "embedding": [0.25, 0.125]}));
    assert_eq!(made["data"][1], json!({"index": 1, "embedding": [0.5, -1.0]}));
    assert_eq!((&made["dimensions"], &made["tokens"], &made["estimated"]), (&json!(2), &json!(7), &json!(false)));
    assert_eq!((&made["served_model"], &made["cost_microusd"]), (&json!(MODEL), &json!(1)));
    let sent = json!({"model": "text-embedding-3-small", "input": ["größer", "b"]});
    assert_eq!(provider.asked(), [("none".to_owned(), sent)]);
    for (by, group) in [("model", MODEL), ("agent", "outside"), ("run", "outside"), ("key", "instance")] {
        let usage = owner.get(&format!("/api/v1/usage?group_by={by}")).expect(200);
        let row = &usage["data"][0];
        assert_eq!((&row["group"], &row["calls"], &row["failed"]), (&json!(group), &json!(1), &json!(0)), "{usage:#}");
        assert_eq!((&row["tokens"]["input"], &row["cost_microusd"]), (&json!(7), &json!(1)), "{usage:#}");
    }
    let record = owner.get("/api/v1/audit?q=kind:embedding_ended").expect(200);
    assert_eq!(record["data"].as_array().unwrap().len(), 1, "{record:#}");
    assert!(!record.to_string().contains("größer"), "what was embedded is nobody's business: {record:#}");
    let budgets = owner.get("/api/v1/workspaces/home/budget").expect(200);
    assert_eq!(budgets["day"]["spent_microusd"], 1, "what was put aside is settled: {budgets:#}");
}

#[test]
fn vectors_whose_tokens_nobody_counted_count_as_all_that_was_put_aside_for_them() {
    let (provider, house) = Provider::start();
    let server = Server::start(house);
    let owner = server.owner();
    provider.next(200, r#"{"data":[{"index":0,"embedding":[0.5]}],"model":"text-embedding-3-small"}"#);
    // At two cents for a million tokens and a token for each byte. Eight of these are one of the model's own tokens.
    let made = owner.post("/api/v1/embeddings", json!({"model": MODEL, "input": "x".repeat(2000)})).expect(200);
    assert_eq!((&made["tokens"], &made["estimated"], &made["cost_microusd"]), (&json!(250), &json!(true), &json!(41)));
    let budgets = owner.get("/api/v1/workspaces/home/budget").expect(200);
    assert_eq!(budgets["day"]["spent_microusd"], 41, "{budgets:#}");
}

#[test]
fn without_money_or_with_the_switch_off_no_provider_is_asked() {
    let (provider, house) = Provider::start();
    let server = Server::start(house);
    let owner = server.owner();
    owner.put("/api/v1/workspaces/home/budget", json!({"day_usd": 0.000_002})).expect(200);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || owner.post("/api/v1/embeddings", both()).status;
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 2, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 402).count(), 6, "{answers:?}");
    assert_eq!(provider.asked().len(), 2, "who has no money asks nobody");
    let refused = owner.post("/api/v1/embeddings", both()).refuses(402, "budget_exhausted");
    assert!(refused["detail"].as_str().unwrap().contains("workspace"), "{refused:#}");
    owner.delete("/api/v1/workspaces/home/budget").expect(204);
    owner.post("/api/v1/workspaces/home/halt", json!({"reason": "looking into it"})).expect(200);
    owner.post("/api/v1/embeddings", both()).refuses(409, "halted");
    assert_eq!(provider.asked().len(), 2);
}

#[test]
fn a_failure_is_tried_again_or_told_and_each_attempt_is_recorded() {
    let (provider, house) = Provider::start();
    let server = Server::start(house);
    let owner = server.owner();
    provider.next(503, "{}");
    owner.post("/api/v1/embeddings", both()).expect(200);
    assert_eq!(provider.asked().len(), 2);
    provider.next(401, r#"{"error":{"message":"the key sk-wrong is wrong"}}"#);
    let refused = owner.post("/api/v1/embeddings", both()).refuses(502, "provider_error");
    let said = refused.to_string();
    assert!(said.contains("does not accept the key") && !said.contains("sk-wrong"), "{refused:#}");
    let usage = owner.get("/api/v1/usage?group_by=model").expect(200);
    let row = &usage["data"][0];
    assert_eq!((&row["calls"], &row["failed"], &row["cost_microusd"]), (&json!(3), &json!(2), &json!(1)), "{usage:#}");
    for (body, why) in [
        (json!({"model": "demo/guide", "input": "a"}), "makes no embeddings"),
        (json!({"model": "nobody/x", "input": "a"}), "nobody"),
        (json!({"model": MODEL, "input": []}), "1 to 256 texts"),
        (json!({"model": MODEL, "input": ["a", " "]}), "empty"),
    ] {
        let refused = owner.post("/api/v1/embeddings", body).refuses(422, "validation_failed");
        assert!(refused["detail"].as_str().unwrap().contains(why), "{refused:#}");
    }
    assert_eq!(provider.asked().len(), 3);
}

/// A stored key is used, the vectors are printed, and what was spent is found again in the log.
fn story(house: &House, provider: &Provider) {
    let add = ["keys", "add", "work", "--json", "--name", "ours"];
    let kept = Done::with_input(&mut house.command(&add), "sk-brought-0123456789");
    assert_eq!(kept.code, Some(0), "{kept}");
    let told = house.adjutant(&["models", "embed", MODEL, "größer", "b"]);
    assert_eq!((told.code, told.out.as_str()), (Some(0), "[0.25,0.125]\n[0.5,-1.0]\n"), "{told}");
    assert!(told.err.contains("2 numbers each · 7 tokens · $"), "{told}");
    assert_eq!(provider.asked()[0].0, "sk-brought-0123456789");
    let made = house.document(&["models", "embed", MODEL, "a", "b", "--query"]);
    assert_eq!((&made["model"], made["data"].as_array().unwrap().len()), (&json!(MODEL), 2));
    let used = house.document(&["usage", "--by", "key"]);
    assert_eq!((&used["data"][0]["name"], &used["data"][0]["calls"]), (&json!("ours (work)"), &json!(2)), "{used:#}");
    let none = house.adjutant(&["models", "embed", "demo/guide", "a"]);
    assert!(none.code == Some(2) && none.err.contains("makes no embeddings"), "{none}");
}

#[test]
fn the_command_line_prints_vectors_and_doctor_makes_their_record_again() {
    let (provider, house) = Provider::start();
    story(&house, &provider);
    let before = house.document(&["usage", "--by", "model"]);
    let rebuilt = house.adjutant(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    assert_eq!(house.document(&["usage", "--by", "model"])["data"], before["data"]);
}

#[test]
fn vectors_are_the_same_through_the_server() {
    let (provider, house) = Provider::start();
    let server = Server::start(house);
    story(&server.house, &provider);
}
