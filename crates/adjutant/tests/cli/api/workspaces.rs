//! Workspaces: making them is recorded, and so is what they are made of.

use serde_json::{Value, json};

use super::client::{Client, OWNER, Server};
use crate::house::{House, text};

/// The one-line entries of the audit that a search finds.
fn found(client: &Client, words: &str) -> Vec<Value> {
    client.get(&format!("/api/v1/audit?q={words}")).expect(200)["data"].as_array().unwrap().clone()
}

#[test]
fn making_a_workspace_or_a_notebook_is_recorded_with_who_did_it_and_a_refused_one_is_not() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let made = owner.post("/api/v1/workspaces", json!({"name": "Lab"})).expect(201);
    owner.post("/api/v1/workspaces", json!({"name": "Lab"})).refuses(409, "conflict");
    let entries = found(&owner, "kind:workspace_made&workspace_id=home");
    let [entry] = entries.as_slice() else { panic!("{entries:?}") };
    assert_eq!((&entry["summary"], &entry["by"]), (&json!("Lab (lab)"), &json!("admin")), "{entry}");
    assert_eq!(entry["detail"]["detail"]["workspace"], made["id"]);
    let books = owner.get("/api/v1/workspaces/lab/notebooks").expect(200);
    assert_eq!(entry["detail"]["detail"]["notebook"], books["data"][0]["id"], "it begins with a notebook: {books}");

    let path = "/api/v1/workspaces/lab/notebooks";
    let book = owner.post(path, json!({"slug": "plans"})).expect(201);
    owner.post(path, json!({"slug": "plans"})).refuses(422, "validation_failed");
    let entries = found(&owner, "kind:setting_changed+plans&workspace_id=lab");
    let entries: Vec<_> = entries.iter().filter(|entry| entry["detail"]["detail"]["notebook"] == book["id"]).collect();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(owner.get("/api/v1/audit/verify").expect(200)["is_whole"], true);
}

#[test]
fn a_workspace_says_which_tools_there_are_for_its_agents() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let path = "/api/v1/workspaces/home";
    assert_eq!(owner.get(path).expect(200)["tools"], json!(["*"]));
    owner.patch(path, json!({"tools": ["read_fil"]})).refuses(422, "validation_failed");
    let can = || {
        let wish = json!({"action": "write", "path": "/todo.md"});
        owner.post("/api/v1/agents/guide/can", wish).expect(200)
    };
    assert_eq!(can()["verdict"], "ask");
    let listed = owner.patch(path, json!({"tools": ["read_file", "list_files"]})).expect(200);
    assert_eq!(listed["tools"], json!(["list_files", "read_file"]));
    let wish = json!({"tool": "write_file", "arguments": {"path": "/todo.md", "content": "x"}});
    let no = owner.post("/api/v1/agents/guide/can", wish).expect(200);
    assert_eq!((&no["verdict"], &no["rule"]), (&json!("deny"), &json!("tool")), "{no}");
    assert_eq!(no["smallest_grant"], "add `write_file` to the tools of the workspace", "{no}");
    let body = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", body).expect(200);
    assert_ne!(run["status"], "WAITING_APPROVAL", "what is not there is not asked about: {run}");
    assert_eq!(owner.patch(path, json!({"tools": ["*"]})).expect(200)["tools"], json!(["*"]));
    assert_eq!(can()["verdict"], "ask");
}

#[test]
fn somebody_is_told_in_words_who_they_are_and_what_there_is_for_them() {
    let server = Server::start(House::new());
    let (owner, kim) = (server.owner(), server.person("kim", "home", "read"));
    owner.put("/api/v1/workspaces/home/budget", json!({"month_usd": 50})).expect(200);
    owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "tidy the welcome notes"})).expect(200);
    owner.post("/api/v1/agents", json!({"name": "Mine", "toolsets": []})).expect(201);
    let words = |who: &Client| who.with("accept", "text/markdown").get("/api/v1/me").text;
    let (owners, kims) = (words(&owner), words(&kim));
    for line in [
        ", owner of this instance.",
        "## Home (`home`): admin",
        "Notebooks: `welcome`.",
        "One thing waits for a decision.\n\n- `approval_",
        " Instructions begin: \"",
        "$50.00 of $50.00 this month",
        "(`guide`): read, write",
        "Tools: allow: ",
        "; ask: create_file, ",
        "; deny: delete_file.",
        "- **Mine** (`mine`), yours: no files. Model `default`. No tools.",
    ] {
        assert!(owners.contains(line), "{line} is missing in {owners}");
    }
    assert!(kims.contains("## Home (`home`): read") && kims.contains("Nothing waits for a decision."), "{kims}");
    assert!(!kims.contains("owner of this instance") && !kims.contains("`mine`"), "{kims}");
}

#[test]
fn only_models_of_providers_that_the_workspace_allows_are_asked_and_offered() {
    let house = House::new();
    house.script("- text: Good day.\n");
    let server = Server::start(house);
    let owner = server.owner();
    let home = "/api/v1/workspaces/home";
    assert_eq!(owner.get(home).expect(200)["allowed_providers"], json!(["*"]));
    let run =
        || owner.post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "hello", "model": "test/script"}));
    assert_eq!(run().expect(200)["status"], "COMPLETED");
    let set = server.house.document(&["ws", "set", "home", "--providers", "lab,work"]);
    assert_eq!(set["allowed_providers"], json!(["lab", "work"]));
    let refused = run().refuses(422, "validation_failed");
    assert!(refused["detail"].as_str().unwrap().contains("does not allow the provider `test`"), "{refused:#}");
    assert_eq!(owner.get("/api/v1/models").expect(200)["data"], json!([]));
    let demo = json!({"agent_id": "guide", "input": "hello", "model": "demo/guide"});
    assert_eq!(owner.post("/api/v1/runs?wait=60", demo).expect(200)["status"], "COMPLETED");
    let record = owner.get("/api/v1/audit?q=kind:setting_changed").expect(200);
    assert!(record.to_string().contains("the providers whose models may be asked: lab, work"), "{record:#}");
    owner.patch(home, json!({"allowed_providers": ["a/b"]})).refuses(422, "validation_failed");
    owner.patch(home, json!({"allowed_providers": ["*"]})).expect(200);
    assert_eq!(run().expect(200)["status"], "COMPLETED");
}

#[test]
fn a_workspace_has_a_default_model_of_its_own() {
    let house = House::new();
    house.script("- text: Good day.\n");
    let server = Server::start(house);
    let owner = server.owner();
    let home = "/api/v1/workspaces/home";
    assert_eq!(owner.get(home).expect(200)["default_model"], "default");
    owner.patch(home, json!({"default_model": "demo/guide"})).expect(200);
    let made = json!({"name": "Plain", "slug": "plain"});
    assert_eq!(owner.post("/api/v1/agents", made).expect(201)["model"], "default");
    let run = |body: Value| owner.post("/api/v1/runs?wait=60", body).expect(200);
    let plain = run(json!({"agent_id": "plain", "input": "hello"}));
    assert_eq!(plain["model_calls"][0]["model_asked"], "demo/guide", "the instance has another: {plain:#}");
    let named = run(json!({"agent_id": "plain", "input": "hello", "model": "test/script"}));
    assert_eq!(named["model_calls"][0]["model_asked"], "test/script", "what a run names counts");
    let set = server.house.document(&["ws", "set", "home", "--model", "default"]);
    assert_eq!(set["default_model"], "default");
    owner.patch(home, json!({"default_model": "two words"})).refuses(422, "validation_failed");
}

#[test]
fn a_persons_default_counts_however_it_is_written_and_is_passed_over_where_it_cannot_be_asked() {
    let house = House::new();
    std::fs::write(house.path().join("script.yaml"), "- text: Good day.\n").unwrap();
    let scripted = "kind = \"scripted\"\nscript = \"../../script.yaml\"\n";
    let far = "kind = \"anthropic\"\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key_env = \"FAR_KEY\"\n";
    house.configure(&format!(
        "default_model = \"test/script\"\n[providers.test]\n{scripted}[providers.gemini]\n{scripted}[providers.far]\n{far}"
    ));
    let server = Server::start_with(house, &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("FAR_KEY", "sk-far-away")]);
    let owner = server.owner();
    owner.post("/api/v1/agents", json!({"name": "Open", "slug": "open", "toolsets": []})).expect(201);
    let home = "/api/v1/workspaces/home";
    owner.patch(home, json!({"default_model": "test/of-the-workspace"})).expect(200);
    let asked = |default: &str| {
        owner.patch("/api/v1/me", json!({"default_model": default})).expect(200);
        let run = owner.post("/api/v1/runs?wait=60", json!({"agent_id": "open", "input": "hello"})).expect(200);
        text(&run["model_calls"][0]["model_asked"])
    };
    assert_eq!(asked("google/any"), "gemini/any", "in the words of others");
    owner.patch(home, json!({"allowed_providers": ["test"]})).expect(200);
    assert_eq!(asked("google/any"), "test/of-the-workspace", "its provider is not allowed here");
    assert_eq!(asked("claude-sonnet-5"), "test/of-the-workspace", "nor is that of a bare name");
    assert_eq!(asked("cheapest"), "test/script", "a strategy that has nothing to choose from");
}

#[test]
fn the_default_of_a_chat_goes_before_the_agents_model_and_a_persons_before_the_workspaces() {
    let house = House::new();
    house.script("- text: Good day.\n");
    let server = Server::start(house);
    let (owner, kim) = (server.owner(), server.person("kim", "home", "write"));
    owner.patch("/api/v1/workspaces/home", json!({"default_model": "test/of-the-workspace"})).expect(200);
    for (slug, model) in [("open", "default"), ("set", "test/of-the-agent")] {
        let agent = json!({"name": slug, "slug": slug, "model": model, "owner": "workspace"});
        owner.post("/api/v1/agents", agent).expect(201);
    }
    let asked = |run: &Value| text(&run["model_calls"][0]["model_asked"]);
    let run = |agent: &str| {
        let run = kim.post("/api/v1/runs?wait=60", json!({"agent_id": agent, "input": "hello"})).expect(200);
        (asked(&run), text(&run["chat_id"]))
    };
    assert_eq!((run("open").0.as_str(), run("set").0.as_str()), ("test/of-the-workspace", "test/of-the-agent"));
    assert_eq!(kim.get("/api/v1/me").expect(200)["default_model"], "default");
    let mine = kim.patch("/api/v1/me", json!({"default_model": "test/of-kim"})).expect(200);
    assert_eq!(mine["default_model"], "test/of-kim");
    assert_eq!((run("open").0.as_str(), run("set").0.as_str()), ("test/of-kim", "test/of-the-agent"));
    kim.patch("/api/v1/me", json!({"default_model": "two words"})).refuses(422, "validation_failed");
    kim.patch("/api/v1/me", json!({"default_model": "gone/model"})).expect(200);
    assert_eq!(run("open").0, "test/of-the-workspace", "one that cannot be asked here is passed over");

    let (_, chat) = run("set");
    let path = format!("/api/v1/chats/{chat}");
    let say = |body: Value| asked(&kim.post(&format!("{path}/runs?wait=60"), body).expect(200));
    assert_eq!(kim.patch(&path, json!({"model": "test/of-the-chat"})).expect(200)["model"], "test/of-the-chat");
    assert_eq!(say(json!({"user_message": "hello"})), "test/of-the-chat", "before what its agent says");
    assert_eq!(say(json!({"user_message": "hello", "model": "test/named"})), "test/named", "what is named counts");
    kim.patch(&path, json!({"model": "two words"})).refuses(422, "validation_failed");
    assert_eq!(kim.patch(&path, json!({"model": "default"})).expect(200)["model"], json!(null));
    assert_eq!(say(json!({"user_message": "hello"})), "test/of-the-agent");
    let record = owner.get("/api/v1/audit?q=kind:setting_changed").expect(200).to_string();
    assert!(record.contains(&format!("the model of {chat} is test/of-the-chat")), "{record}");

    let set = |house: &House, arguments: &[&str]| {
        house.document(&[&["models", "default"], arguments].concat())["default_model"].clone()
    };
    assert_eq!(set(&server.house, &["test/mine"]), "test/mine");
    let (house, _) = server.stop();
    assert_eq!((set(&house, &[]), set(&house, &["default"])), (json!("test/mine"), json!("default")));
    assert_eq!(set(&house, &["test/b", "--chat", &chat]), "test/b");
    assert_eq!(set(&house, &["--chat", &chat]), "test/b");
}

#[test]
fn a_token_that_may_not_decide_takes_no_entry_off_the_content_filter() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let made = owner.post("/api/v1/tokens", json!({"name": "t", "scopes": ["admin"]})).expect(201);
    let plain = server.nobody().with("authorization", &format!("Bearer {}", text(&made["token"])));
    let path = "/api/v1/workspaces/home";
    let entry = |word: &str| json!({"pattern": word, "points": ["input"], "action": "ask"});
    // To ask more takes nothing.
    plain.patch(path, json!({"content_filter": [entry("salary")]})).expect(200);
    let both = json!([entry("wages"), entry("salary")]);
    plain.patch(path, json!({"content_filter": both})).expect(200);
    for less in [json!([]), json!([entry("wages")]), json!([entry("wages"), entry("bonus")])] {
        plain.patch(path, json!({"content_filter": less})).refuses(403, "forbidden");
    }
    assert_eq!(owner.get(path).expect(200)["content_filter"].as_array().unwrap().len(), 2);
    plain.patch(path, json!({"name": "Ours"})).expect(200);
    assert_eq!(owner.patch(path, json!({"content_filter": []})).expect(200)["content_filter"], json!([]));
}

#[test]
fn a_notebook_is_read_and_renamed_by_its_admins_and_its_files_stay() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let path = "/api/v1/workspaces/home/notebooks";
    let made = owner.post(path, json!({"slug": "diary"})).expect(201);
    let file = owner.with("if-none-match", "*").call("PUT", "/api/v1/notebooks/diary/files/a.md", Some(b"hello"));
    assert_eq!(file.status, 201, "{file:?}");
    let reader = server.person("kim", "home", "read");
    assert_eq!(reader.get(&format!("{path}/diary")).expect(200), made);
    reader.patch(&format!("{path}/diary"), json!({"slug": "mine"})).refuses(403, "forbidden");
    let renamed = owner.patch(&format!("{path}/diary"), json!({"slug": "journal"})).expect(200);
    assert_eq!((&renamed["id"], &renamed["slug"]), (&made["id"], &json!("journal")));
    owner.get(&format!("{path}/diary")).refuses(404, "not_found");
    // With a slash at its end it is the same folder.
    let listed = reader.get("/api/v1/notebooks/journal/files/").expect(200);
    assert_eq!(listed["data"][0]["path"], "/a.md");
    assert_eq!(reader.get("/api/v1/notebooks/journal/files").expect(200), listed);
    for wrong in ["welcome", "Not a slug"] {
        let status = if wrong == "welcome" { (409, "conflict") } else { (422, "validation_failed") };
        owner.patch(&format!("{path}/journal"), json!({"slug": wrong})).refuses(status.0, status.1);
    }
    let acts = owner.get("/api/v1/audit?q=renamed").expect(200);
    assert!(acts["data"].to_string().contains("`diary` renamed to `journal`"), "{acts}");
}

#[test]
fn a_notebook_that_is_renamed_is_out_of_reach_of_who_named_it_and_in_reach_of_who_names_it_now() {
    let house = House::new();
    house.script(
        "- when: { turn: 1 }\n  calls: [{ name: read_file, arguments: { path: /a.md } }]\n- text: \"${last_result}\"\n",
    );
    let server = Server::start(house);
    let owner = server.owner();
    let path = "/api/v1/workspaces/home/notebooks";
    owner.post(path, json!({"slug": "diary"})).expect(201);
    owner.with("if-none-match", "*").call("PUT", "/api/v1/notebooks/diary/files/a.md", Some(b"dear diary"));
    let agent = |name: &str, slug: &str| {
        let scope = json!({"notebooks": [slug], "folders": ["/"]});
        text(&owner.post("/api/v1/agents", json!({"name": name, "scope": scope})).expect(201)["id"])
    };
    let (before, after) = (agent("Before", "diary"), agent("After", "journal"));
    let chat =
        text(&owner.post("/api/v1/chats", json!({"agent_id": before, "notebook_id": "diary"})).expect(201)["id"]);
    let ask = || owner.post(&format!("/api/v1/chats/{chat}/runs?wait=60"), json!({"user_message": "read"}));
    let read = ask().expect(200);
    assert!(text(&read["result"]).contains("dear diary"), "{read:#}");
    owner.patch(&format!("{path}/diary"), json!({"slug": "journal"})).expect(200);
    let answer = ask();
    assert!(!format!("{answer:?}").contains("dear diary"), "{answer:?}");
    let other = json!({"agent_id": after, "notebook_id": "journal", "input": "read"});
    let read = owner.post("/api/v1/runs?wait=60", other).expect(200);
    assert!(text(&read["result"]).contains("dear diary"), "{read:#}");
}
