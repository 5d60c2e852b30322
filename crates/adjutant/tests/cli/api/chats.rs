//! Chats: taken away with what was said in them.

use serde_json::json;

use super::client::Server;
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
