//! Files over HTTP: read, saved with their version, searched, and whose they are.

use serde_json::{Value, json};

use super::client::{Client, Reply, Server};
use crate::house::{House, text};

const FILES: &str = "/api/v1/notebooks/welcome/files";

pub(super) fn tag(reply: &Reply) -> String {
    reply.headers["etag"].clone()
}

pub(super) fn save(client: &Client, path: &str, match_: (&str, &str), content: &str) -> Reply {
    client.with(match_.0, match_.1).call("PUT", &format!("{FILES}{path}"), Some(content.as_bytes()))
}

pub(super) fn history(client: &Client, path: &str) -> Vec<Value> {
    let page = client.get(&format!("/api/v1/notebooks/welcome/history{path}")).expect(200);
    page["data"].as_array().unwrap().clone()
}

#[test]
fn a_file_is_read_and_saved_by_its_version() {
    let server = Server::start(House::new());
    let lee = server.person("lee", "home", "write");
    let read = lee.get(&format!("{FILES}/todo.md"));
    assert!(read.status == 200 && read.text.contains("mlik"), "{read:?}");
    assert_eq!(read.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(lee.with("if-none-match", &tag(&read)).get(&format!("{FILES}/todo.md")).status, 304);
    let document = lee.with("accept", "application/json").get(&format!("{FILES}/todo.md")).expect(200);
    assert_eq!((&document["text"], &document["is_untrusted"]), (&json!(read.text), &json!(false)));
    assert_eq!(format!("\"{}\"", text(&document["hash"])), tag(&read));

    lee.call("PUT", &format!("{FILES}/todo.md"), Some(b"x")).refuses(428, "precondition_required");
    let other = format!("\"{}\"", "0".repeat(64));
    save(&lee, "/todo.md", ("if-match", &other), "x").refuses(412, "stale_version");
    save(&lee, "/todo.md", ("if-none-match", "*"), "x").refuses(412, "stale_version");
    let saved = save(&lee, "/todo.md", ("if-match", &tag(&read)), "# Mine\n");
    assert_eq!(saved.expect(200)["path"], "/todo.md");
    save(&lee, "/todo.md", ("if-match", &tag(&read)), "late").refuses(412, "stale_version");
    assert_eq!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), "# Mine\n");

    let made = save(&lee, "/deep/er/new.md", ("if-none-match", "*"), "new");
    assert_eq!(made.status, 201);
    let moving = json!({"from": "/deep/er/new.md", "to": "/moved.md"});
    lee.with("if-match", &tag(&made)).post("/api/v1/notebooks/welcome/move", moving).expect(201);
    assert_eq!(lee.get(&format!("{FILES}/moved.md")).text, "new");
    lee.get(&format!("{FILES}/deep/er/new.md")).refuses(404, "not_found");
    lee.with("if-match", &tag(&made)).delete(&format!("{FILES}/moved.md")).expect(204);
    lee.get(&format!("{FILES}/moved.md")).refuses(404, "not_found");
    lee.delete(&format!("{FILES}/deep")).refuses(409, "conflict");
    lee.delete(&format!("{FILES}/deep/er")).expect(204);
}

#[test]
fn folders_are_opened_one_by_one_and_in_pages() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.post("/api/v1/notebooks/welcome/folders", json!({"path": "/pages"})).expect(201);
    for name in ["a", "b", "c"] {
        save(&owner, &format!("/pages/{name}.md"), ("if-none-match", "*"), name).expect(201);
    }
    let names = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|entry| text(&entry["name"])).collect()
    };
    let top = owner.get(FILES).expect(200);
    assert!(names(&top).contains(&"pages".to_owned()) && !names(&top).contains(&"a.md".to_owned()), "{top}");
    let first = owner.get(&format!("{FILES}/pages?limit=2")).expect(200);
    assert_eq!((names(&first), &first["has_more"]), (vec!["a.md".to_owned(), "b.md".to_owned()], &json!(true)));
    let rest = owner.get(&format!("{FILES}/pages?limit=2&cursor={}", text(&first["next_cursor"]))).expect(200);
    assert_eq!((names(&rest), &rest["has_more"]), (vec!["c.md".to_owned()], &json!(false)));
    let found = owner.get("/api/v1/notebooks/welcome/search?q=mlik").expect(200);
    assert_eq!(found["data"][0]["path"], "/todo.md");
    // By its name as well, which comes first, and while a word is still being typed.
    let paths = |words: &str| -> Vec<String> {
        let found = owner.get(&format!("/api/v1/notebooks/welcome/search?q={words}")).expect(200);
        found["data"].as_array().unwrap().iter().map(|file| text(&file["path"])).collect()
    };
    assert_eq!(paths("todo")[0], "/todo.md");
    assert_eq!(paths("Todo.MD"), ["/todo.md"]);
    assert_eq!(paths("pages"), ["/pages/a.md", "/pages/b.md", "/pages/c.md"]);
    assert_eq!(paths("mli"), ["/todo.md"]);
}

#[test]
fn a_file_says_who_changed_it_and_what_it_was() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let before = owner.get(&format!("{FILES}/todo.md"));
    let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"}));
    let run = run.expect(200);
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "approve"})).expect(200);
    let path = format!("/api/v1/runs/{}?wait=60", text(&run["id"]));
    assert_eq!(owner.get(&path).expect(200)["status"], "COMPLETED");
    let lee = server.person("lee", "home", "write");
    let tidy = lee.get(&format!("{FILES}/todo.md"));
    save(&lee, "/todo.md", ("if-match", &tag(&tidy)), "# Lee's\n").expect(200);

    let changes = history(&owner, "/todo.md");
    assert_eq!(changes.len(), 2, "{changes:?}");
    assert_eq!((&changes[0]["by"]["kind"], &changes[0]["by"]["name"]), (&json!("person"), &json!("lee")));
    assert_eq!((&changes[1]["by"]["kind"], &changes[1]["by"]["run_id"]), (&json!("run"), &run["id"]));
    let me = owner.get("/api/v1/me").expect(200);
    assert_eq!((&changes[1]["by"]["approved_by"], &changes[0]["by"]["approved_by"]), (&me["name"], &json!(null)));
    assert_eq!(changes[0]["before"], changes[1]["after"]);
    // Whose run it was is not told to those who may not see it.
    let hidden = &history(&lee, "/todo.md")[1]["by"];
    assert_eq!((&hidden["run_id"], &hidden["approved_by"]), (&Value::Null, &Value::Null));
    let old = format!("/api/v1/notebooks/welcome/history/todo.md?content={}", text(&changes[1]["before"]));
    assert_eq!(owner.get(&old).text, before.text);
    let elsewhere = format!("/api/v1/notebooks/welcome/history/ideas.md?content={}", text(&changes[1]["before"]));
    owner.get(&elsewhere).refuses(404, "not_found");
}

#[test]
fn nothing_gets_out_of_a_notebook_or_into_its_keep() {
    let server = Server::start(House::new());
    let owner = server.owner();
    for path in ["/../../master.key", "/%2e%2e/%2e%2e/master.key", "/a%2f..%2f..%2fmaster.key", "/..%5cx", "/a%00b"] {
        let reply = owner.get(&format!("{FILES}{path}"));
        assert!([404, 422].contains(&reply.status), "{path}: {reply:?}");
    }
    for path in ["/.git/hooks/post-commit", "/.adjutant/agents/x.md", "/.ssh/authorized_keys"] {
        let reply = save(&owner, path, ("if-none-match", "*"), "x");
        assert_eq!(reply.status, 404, "{path}: {reply:?}");
    }
    save(&owner, "/.mcp.json", ("if-none-match", "*"), "{}").refuses(403, "forbidden");
    let link = server.house.note("link.md");
    std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
    owner.get(&format!("{FILES}/link.md")).refuses(403, "forbidden");
    save(&owner, "/link.md", ("if-match", "*"), "x").refuses(403, "forbidden");
    let page = save(&owner, "/page.html", ("if-none-match", "*"), "<script>alert(1)</script>");
    assert_eq!(page.status, 201);
    let shown = owner.get(&format!("{FILES}/page.html"));
    assert_eq!(shown.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(shown.headers["x-content-type-options"], "nosniff");
    let large = vec![b'x'; 33 * 1024 * 1024];
    owner.with("if-none-match", "*").call("PUT", &format!("{FILES}/large"), Some(&large)).refuses(413, "too_large");
}

#[test]
fn only_the_owner_of_the_instance_links_a_folder_and_sees_where_it_lies() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "admin"));
    let folder = server.house.path().join("notes");
    std::fs::create_dir(&folder).unwrap();
    let (path, body) = ("/api/v1/workspaces/home/notebooks", json!({"path": folder}));
    kim.post(path, body.clone()).refuses(403, "forbidden");
    kim.post(path, json!({"slug": "mine"})).expect(201);
    owner.post(path, json!({"path": server.house.data()})).refuses(422, "validation_failed");
    owner.post(path, json!({"path": "notes"})).refuses(422, "validation_failed");
    owner.post(path, json!({})).refuses(422, "validation_failed");
    let made = owner.post(path, body.clone()).expect(201);
    assert_eq!((&made["slug"], &made["kind"], &made["path"]), (&json!("notes"), &json!("linked"), &json!(folder)));
    owner.post(path, body).refuses(409, "conflict");
    owner.with("if-none-match", "*").call("PUT", "/api/v1/notebooks/notes/files/a.md", Some(b"new")).expect(201);
    assert_eq!(std::fs::read_to_string(folder.join("a.md")).unwrap(), "new");
    let seen = kim.get(path).expect(200).to_string();
    assert!(seen.contains("\"notes\"") && !seen.contains(folder.to_str().unwrap()), "{seen}");
}
