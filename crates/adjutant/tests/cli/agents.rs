//! Agent files: loaded when they are right, named with their line when they are not.

use crate::api::client::Server;
use crate::house::{House, text};

const WRITER: &str =
    "---\nname: Writer\nmodel: default\ncan_write: true\nscope:\n  notebooks: ['*']\n  folders: [/]\n---\nYou write.\n";

fn put(house: &House, name: &str, text: &str) {
    let folder = house.data().join("agents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
}

fn slugs(house: &House) -> Vec<(String, bool)> {
    let agents = house.document(&["agents", "ls"]);
    let pair = |agent: &serde_json::Value| (text(&agent["slug"]), agent["is_active"].as_bool().unwrap());
    agents["data"].as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn an_agent_is_printed_as_a_file_that_is_read_again_here_and_at_a_server() {
    let house = House::new();
    put(&house, "writer.md", WRITER);
    let here = house.adjutant(&["agents", "export", "writer"]);
    assert_eq!(here.code, Some(0), "{here}");
    let kept = house.path().join("kept.md");
    std::fs::write(&kept, &here.out).unwrap();
    let checked = house.adjutant(&["agents", "validate", kept.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{checked}");
    let server = Server::start(house);
    let there = server.house.adjutant(&["agents", "export", "writer"]);
    assert_eq!((there.code, &there.out), (Some(0), &here.out), "{there}");
    assert!(here.out.contains("name: Writer") && here.out.trim_end().ends_with("You write."), "{here}");
}

#[test]
fn a_file_becomes_an_agent_a_changed_one_its_next_version_and_a_missing_one_is_off() {
    let house = House::new();
    put(&house, "writer.md", WRITER);
    assert_eq!(slugs(&house), [("guide".to_owned(), true), ("writer".to_owned(), true)]);
    let done = house.adjutant(&["run", "writer", "what files are here"]);
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(house.document(&["agents", "show", "writer"])["version"], 1);
    put(&house, "writer.md", &WRITER.replace("You write.", "You write well."));
    let shown = house.document(&["agents", "show", "writer"]);
    assert_eq!((shown["version"].as_u64(), shown["system_prompt"].as_str()), (Some(2), Some("You write well.")));
    std::fs::remove_file(house.data().join("agents/writer.md")).unwrap();
    assert_eq!(slugs(&house)[1], ("writer".to_owned(), false));
    let off = house.adjutant(&["run", "writer", "hello"]);
    assert_eq!(off.code, Some(1), "{off}");
    assert!(off.err.contains("is switched off"), "{off}");
    put(&house, "writer.md", WRITER);
    assert_eq!(slugs(&house)[1], ("writer".to_owned(), true));
}

#[test]
fn a_malformed_file_stops_runs_and_names_its_lines() {
    let house = House::new();
    put(&house, "writer.md", &WRITER.replace("model:", "modle:").replace("can_write: true", "can_write: maybe"));
    let refused = house.adjutant(&["run", "hello"]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("writer.md:3: unknown field `modle`, did you mean `model`?"), "{refused}");
    assert!(refused.err.contains("writer.md:4: can_write:"), "{refused}");
    let looking = house.adjutant(&["runs", "ls"]);
    assert_eq!(looking.code, Some(0), "{looking}");
    assert!(looking.err.contains("warning: ") && looking.err.contains("writer.md:3"), "{looking}");
    put(&house, "writer.md", WRITER);
    assert_eq!(house.adjutant(&["run", "hello"]).code, Some(0));
}

#[test]
fn validate_says_everything_and_loads_nothing() {
    let house = House::new();
    let (good, bad) = (house.path().join("good.md"), house.path().join("bad.md"));
    std::fs::write(&good, WRITER).unwrap();
    std::fs::write(&bad, "---\nname: Bad\nmax_turns: 900\ntoolset: files\n---\n").unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let fine = house.adjutant(&["agents", "validate", good]);
    assert_eq!(fine.code, Some(0), "{fine}");
    assert!(fine.out.contains("good may read, write in /"), "{fine}");
    let wrong = house.adjutant(&["agents", "validate", good, bad]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.err.contains("bad.md:4: unknown field `toolset`, did you mean `toolsets`?"), "{wrong}");
    let wrong = house.adjutant(&["agents", "validate", bad, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&wrong.out).unwrap();
    assert_eq!(document["valid"], false);
    let lines: Vec<_> =
        document["data"][0]["problems"].as_array().unwrap().iter().map(|found| found["line"].as_u64()).collect();
    assert_eq!(lines, [Some(3), Some(4)]);
    assert!(!house.data().exists());
}

#[test]
fn import_asks_and_without_anybody_to_ask_it_refuses() {
    let house = House::new();
    let file = house.path().join("writer.md");
    std::fs::write(&file, WRITER).unwrap();
    let file = file.to_str().unwrap();
    let refused = house.adjutant(&["agents", "import", file]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("read, write in /"), "{refused}");
    assert_eq!(slugs(&house).len(), 1);
    assert_eq!(house.adjutant(&["agents", "import", file, "--yes"]).code, Some(0));
    assert_eq!(slugs(&house)[1], ("writer".to_owned(), true));
}

#[test]
fn can_says_the_verdict_the_rule_and_what_would_change_it() {
    let house = House::new();
    let asks = house.document(&["agents", "can", "guide", "write", "/todo.md"]);
    assert_eq!((asks["verdict"].as_str(), asks["tool"].as_str()), (Some("ask"), Some("write_file")));
    let free = house.document(&["agents", "can", "guide", "read", "/todo.md"]);
    assert_eq!(free["verdict"], "allow");
    let refused = house.adjutant(&["agents", "can", "guide", "delete", "/todo.md"]);
    assert_eq!(refused.code, Some(6), "{refused}");
    assert!(refused.out.contains("no: ") && refused.out.contains("can_delete"), "{refused}");
    let outside = house.adjutant(&["agents", "can", "guide", "read", "/../x"]);
    assert_eq!(outside.code, Some(6), "{outside}");
    let call = house.document(&["agents", "can", "guide", "kv_set", "{\"key\": \"a\", \"value\": \"b\"}"]);
    assert_eq!(call["verdict"], "ask");
    let reserved = house.adjutant(&["agents", "can", "guide", "kv_set", "{\"key\": \"policy\", \"value\": \"b\"}"]);
    assert!(reserved.out.contains("T9"), "{reserved}");
    assert_eq!(house.adjutant(&["agents", "can", "guide", "fly", "/x"]).code, Some(2));
}

#[test]
fn reach_counts_by_verb_and_names_what_lies_just_outside() {
    let house = House::new();
    put(&house, "gardener.md", &WRITER.replace("folders: [/]", "folders: [{path: /projects, operations: [read]}]"));
    let all = house.document(&["agents", "reach", "guide"]);
    assert_eq!((all["reach"]["read"]["count"].as_u64(), all["reach"]["delete"]["count"].as_u64()), (Some(6), Some(0)));
    assert_eq!(all["reach"]["write"]["first"]["verdict"], "ask");
    let some = house.document(&["agents", "reach", "gardener"]);
    assert_eq!(some["reach"]["read"]["samples"], serde_json::json!(["/projects/garden.md"]));
    assert_eq!(some["reach"]["write"]["count"], 0, "the entry leaves writing out");
    assert_eq!(some["just_outside"]["count"], 5);
    let text = house.adjutant(&["agents", "reach", "gardener"]);
    assert!(text.out.contains("just outside: 5 things") && text.out.contains("/todo.md"), "{text}");
}

#[test]
fn reach_leaves_out_what_a_standing_rule_forbids() {
    let house = House::new();
    let rule = house.document(&["rules", "add", "deny", "*", "--in", "/projects"]);
    let reach = house.document(&["agents", "reach", "guide"]);
    assert_eq!(reach["reach"]["read"]["count"], 5, "{reach}");
    assert!(!reach["reach"].to_string().contains("/projects"), "{reach}");
    let outside = &reach["just_outside"]["samples"][0];
    assert_eq!(
        (&outside["path"], &outside["rule"]),
        (&"/projects".into(), &format!("rule {}", text(&rule["id"])).into())
    );
    let can = house.adjutant(&["agents", "can", "guide", "read", "/projects/garden.md"]);
    assert_eq!(can.code, Some(6), "the same says no: {can}");
}

#[test]
fn a_server_starts_with_a_malformed_file_and_leaves_its_agent_as_it_was() {
    let house = House::new();
    put(&house, "writer.md", WRITER);
    assert_eq!(slugs(&house).len(), 2);
    put(&house, "writer.md", &WRITER.replace("model:", "modle:"));
    put(&house, "fresh.md", &WRITER.replace("can_write: true", "can_write: maybe"));
    put(&house, "reader.md", &WRITER.replace("name: Writer", "name: Reader"));
    let server = Server::start(house);
    let names = ["guide", "reader", "writer"].map(|name| (name.to_owned(), true));
    let mut found = slugs(&server.house);
    found.sort();
    assert_eq!(found, names);
    let done = server.house.adjutant(&["run", "reader", "what files are here"]);
    assert_eq!(done.code, Some(0), "{done}");
    let diagnosis = server.owner().get("/api/v1/about").expect(200).to_string();
    assert!(diagnosis.contains("writer.md:3: unknown field") && diagnosis.contains("fresh.md:4"), "{diagnosis}");
    let (house, said) = server.stop();
    assert!(said.contains("warning: ") && said.contains("writer.md:3: unknown field"), "{said}");
    let told = house.adjutant(&["doctor"]);
    assert!(told.code == Some(1) && told.out.contains("writer.md:3"), "{told}");
}

#[test]
fn an_agent_file_names_members_and_one_that_names_others_leaves_its_agent_as_it_was() {
    let house = House::new();
    let written = |names: &str| WRITER.replace("name: Writer", &format!("name: Writer\napprovers: {names}"));
    put(&house, "writer.md", &written("[admin]"));
    let approvers = |house: &House| house.document(&["agents", "show", "writer"])["approvers"].clone();
    let admin = approvers(&house);
    assert_eq!(admin.as_array().unwrap().len(), 1, "{admin}");
    put(&house, "writer.md", &written("zoe"));
    let told = house.adjutant(&["doctor"]);
    assert!(told.code == Some(1) && told.out.contains("`zoe` is no member of the workspace"), "{told}");
    assert_eq!(approvers(&house), admin);
    // What a file does not say about people is for others to say.
    put(&house, "writer.md", WRITER);
    assert_eq!(approvers(&house), admin);
    put(&house, "writer.md", &written("[]"));
    assert_eq!(approvers(&house), serde_json::json!([]));
}

#[test]
fn import_at_a_server_takes_effect_at_once_stays_and_says_what_it_replaces() {
    let server = Server::start(House::new());
    let house = &server.house;
    let file = house.path().join("writer.md");
    let import = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let done = house.adjutant(&["agents", "import", file.to_str().unwrap(), "--yes"]);
        assert_eq!(done.code, Some(0), "{done}");
        done.out
    };
    assert_eq!(import(WRITER).trim(), "✔ writer is imported");
    assert_eq!(house.document(&["agents", "show", "writer"])["version"], 1);
    let wider = import(&WRITER.replace("can_write: true", "can_write: true\ncan_delete: true\nautonomy: high"));
    let told =
        "replaces version 1:\n  may read, write, delete in / (before: read, write in /)\n  autonomy high (before: low)";
    assert!(wider.contains(told), "{wider}");
    assert_eq!(house.document(&["agents", "show", "writer"])["autonomy"], "high");
    let (house, _) = server.stop();
    let shown = house.document(&["agents", "show", "writer"]);
    assert_eq!(
        (shown["version"].as_u64(), shown["autonomy"].as_str()),
        (Some(2), Some("high")),
        "the file is kept too"
    );
}

#[test]
fn an_agent_is_switched_off_with_its_file_wherever_it_was_imported() {
    let text = WRITER.replace("name: Writer", "name: Late");
    let server = Server::start(House::new());
    let file = server.house.path().join("late.md");
    std::fs::write(&file, &text).unwrap();
    let import = |house: &House, file: &std::path::Path| {
        let done = house.adjutant(&["agents", "import", file.to_str().unwrap(), "--yes"]);
        assert_eq!(done.code, Some(0), "{done}");
    };
    import(&server.house, &file);
    let (house, _) = server.stop();
    std::fs::remove_file(house.data().join("agents/late.md")).unwrap();
    let other = house.path().join("other.md");
    std::fs::write(&other, text.replace("name: Late", "name: Other")).unwrap();
    assert!(slugs(&house).contains(&("late".to_owned(), false)), "{:?}", slugs(&house));
    import(&house, &other);
    std::fs::remove_file(house.data().join("agents/other.md")).unwrap();
    assert!(slugs(&house).contains(&("other".to_owned(), false)), "{:?}", slugs(&house));
}

#[test]
fn an_import_never_calls_the_same_what_lets_an_agent_do_more() {
    let house = House::new();
    let file = house.path().join("narrow.md");
    let import = |operations: &str| {
        let folders = format!("[{{path: /, operations: {operations}}}, /projects]");
        let fields = format!("name: Narrow\ncan_write: true\nscope: {{ notebooks: ['*'], folders: {folders} }}\n");
        std::fs::write(&file, format!("---\n{fields}---\nHello.\n")).unwrap();
        house.adjutant(&["agents", "import", file.to_str().unwrap(), "--yes"]).out
    };
    import("[read]");
    assert_eq!(house.document(&["agents", "show", "narrow"])["reach"], "read in /; read, write in /projects");
    let wider = import("[read, write]");
    assert!(wider.contains("may read, write in /, /projects (before: read in /; read, write in /projects)"), "{wider}");
    assert!(import("[read, write]").contains("what it may do stays the same"));
}

#[test]
fn what_is_wider_or_emptier_than_it_may_be_meant_is_pointed_out() {
    let house = House::new();
    let file = house.path().join("wide.md");
    let fields = "name: Wide\ncan_write: true\ncan_access_integrations: true\nautonomy: full\ntoolsets: [files, web]\ncategories: []\n\
                  scope: { notebooks: ['*'], folders: [/**], file_types: [] }\n\
                  allowed_hosts: { hosts: ['*'], schemes: [http], allow_private: [10.1.0.0/16] }\n";
    std::fs::write(&file, format!("---\n{fields}---\nHello.\n")).unwrap();
    let told = house.adjutant(&["agents", "validate", file.to_str().unwrap()]);
    assert_eq!(told.code, Some(0), "{told}");
    for word in [
        "`/**` is the whole notebook",
        "`*` is every notebook",
        "file_types: an empty list grants nothing",
        "categories: an empty list grants nothing",
        "`*` is every public host",
        "plain http",
        "10.1.0.0/16 is not public",
        "with `full` nothing asks",
        "nothing asks",
    ] {
        assert!(told.out.contains(word), "{word}: {told}");
    }
    std::fs::write(&file, "---\nname: Narrow\nscope: { notebooks: [welcome], folders: [/notes] }\n---\nHello.\n")
        .unwrap();
    let narrow = house.document(&["agents", "validate", file.to_str().unwrap()]);
    assert_eq!(narrow["data"][0]["warnings"], serde_json::json!([]), "{narrow:#}");

    house.configure("listen = \"0.0.0.0:7878\"\n[providers.lab]\nkind = \"compatible\"\nbase_url = \"http://models.example.com/v1\"\n");
    let told = house.adjutant(&["config", "show"]);
    assert!(
        told.out.contains("! listen: 0.0.0.0:7878") && told.out.contains("! providers.lab: models.example.com"),
        "{told}"
    );
    house.configure("");
    assert_eq!(house.document(&["config", "show"])["warnings"], serde_json::json!([]));
}

#[test]
fn a_new_agent_is_made_like_a_template_after_it_was_shown_what_it_could_touch() {
    let house = House::new();
    let shown = house.adjutant(&["agents", "new", "My Writer", "--from", "writer"]);
    assert!(shown.code == Some(2) && shown.err.contains("my-writer") && shown.err.contains("--yes"), "{shown}");
    assert_eq!(house.adjutant(&["agents", "show", "my-writer"]).code, Some(1), "nothing was made");
    let made = house.document(&["agents", "new", "My Writer", "--from", "writer", "--yes"]);
    let like = house.document(&["agents", "resync"]);
    assert!(like["data"].is_array());
    let writer = house.document(&["agents", "show", "writer"]);
    assert_eq!((&made["name"], &made["slug"]), (&"My Writer".into(), &"my-writer".into()));
    for field in ["scope", "toolsets", "autonomy", "system_prompt", "can_write"] {
        assert_eq!(made[field], writer[field], "{field}");
    }
    assert_eq!(house.adjutant(&["agents", "new", "My Writer", "--yes"]).code, Some(2));
    let unknown = house.adjutant(&["agents", "new", "Other", "--from", "nobody", "--yes"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("guide"), "{unknown}");
    let server = crate::api::client::Server::start(house);
    let there = server.house.document(&["agents", "new", "Other", "--from", "research", "--yes"]);
    assert_eq!((&there["slug"], &there["owner"]), (&"other".into(), &"workspace".into()));
}

#[test]
fn a_task_is_tried_without_changing_anything_and_each_call_is_told_with_its_verdict() {
    let house = House::new();
    let test = ["agents", "test", "guide", "tidy the welcome notes"];
    assert_eq!(house.document(&["runs", "ls"])["data"], serde_json::json!([]));
    let before = std::fs::read_to_string(house.note("todo.md")).unwrap();
    let here = house.adjutant(&test);
    assert_eq!(here.code, Some(0), "{here}");
    let told = |out: &str, tool: &str| {
        let line = out.lines().find(|line| line.starts_with(tool)).unwrap_or_else(|| panic!("{tool}: {out}"));
        line.split_whitespace().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&here.out, "write_file"), ["ask", "autonomy", "no"], "{here}");
    assert_eq!(told(&here.out, "read_file").last().map(String::as_str), Some("yes"), "{here}");
    assert_eq!(house.document(&["inbox"])["data"], serde_json::json!([]));
    let server = crate::api::client::Server::start(house);
    let there = server.house.adjutant(&[&test[..], &["--json"]].concat());
    assert_eq!(there.code, Some(0), "{there}");
    let last = there.events().pop().unwrap();
    let calls = last["data"]["calls"].as_array().unwrap();
    let wrote = calls.iter().find(|call| call["tool_name"] == "write_file").unwrap();
    assert_eq!((&wrote["verdict"], &wrote["ran"]), (&"ask".into(), &false.into()), "{last}");
    assert_eq!(std::fs::read_to_string(server.house.note("todo.md")).unwrap(), before);
    assert_eq!(server.house.adjutant(&["agents", "test", "nobody", "hello"]).code, Some(1));
}
