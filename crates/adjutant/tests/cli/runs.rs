//! Runs from their start to their end, over as many processes as it takes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::house::{Base, Done, House, signal, text};

#[test]
fn a_run_that_asks_is_approved_and_finished_by_other_processes() {
    let house = House::new();
    let (run, approval) = house.asked();
    let before = std::fs::read_to_string(house.note("todo.md")).unwrap();
    assert!(before.contains("buy mlik"));

    // Any number of processes may come and go in between.
    assert_eq!(house.document(&["runs", "ls"])["data"][0]["status"], "WAITING_APPROVAL");
    assert_eq!(house.document(&["inbox"])["data"][0]["id"].as_str(), Some(approval.as_str()));
    let shown = house.adjutant(&["inbox", "show", &approval]);
    assert!(shown.out.contains("-- [ ] buy mlik") && shown.out.contains("+- [ ] buy milk"), "{shown}");
    let again = house.adjutant(&["runs", "watch", &run, "--approve", "fail"]);
    assert_eq!(again.code, Some(5), "{again}");
    assert!(again.err.contains(&house.hint(&format!("inbox approve {}", &approval[..22]))), "{again}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);

    let approved = house.adjutant(&["inbox", "approve", &approval]);
    assert_eq!(approved.code, Some(0), "{approved}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before, "a decision by itself does nothing");
    let twice = house.adjutant(&["inbox", "approve", &approval]);
    assert_eq!(twice.code, Some(1), "{twice}");
    assert!(twice.err.contains("decided already"), "{twice}");

    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    assert!(watched.out.contains("`/todo.md` is tidy now"), "{watched}");
    assert!(watched.err.contains("▸ write_file /todo.md") && watched.err.contains("1 file changed"), "{watched}");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy milk"));
    assert_eq!(house.document(&["inbox"])["data"], serde_json::json!([]));
}

#[test]
fn every_line_of_json_is_one_event_with_its_place() {
    let house = House::new();
    let done = house.adjutant(&["run", "what files are here", "--json"]);
    assert_eq!(done.code, Some(0), "{done}");
    let events = done.events();
    let names: Vec<_> = events.iter().map(|event| text(&event["event"])).collect();
    assert_eq!(
        names,
        [
            "interaction_started",
            "thinking",
            "usage",
            "tool_call",
            "tool_result",
            "answer",
            "usage",
            "interaction_complete"
        ]
    );
    let mut last = 0;
    for event in &events {
        assert_eq!(event.as_object().unwrap().len(), 3, "{event}");
        assert!(event["id"].as_u64().unwrap() > last);
        last = event["id"].as_u64().unwrap();
        assert_eq!(event["data"]["seq"], event["id"]);
        assert_eq!(event["data"]["run_id"], events[0]["data"]["interaction_id"]);
        assert!(text(&event["data"]["ts"]).ends_with('Z'));
    }
    let end = &events.last().unwrap()["data"];
    assert_eq!((end["status"].as_str(), end["files_modified"].as_array().map(Vec::len)), (Some("COMPLETED"), Some(0)));
    assert_eq!(end["result"], events[5]["data"]["content"]);
}

#[test]
fn the_answer_goes_to_standard_output_and_nothing_else_does() {
    let house = House::new();
    let done = house.adjutant(&["run", "guide", "what files are here"]);
    assert_eq!(done.code, Some(0), "{done}");
    assert!(done.out.starts_with("There are 6 files here:"), "{done}");
    assert!(done.err.contains("▸ list_files /  (7)") && done.err.contains("✔ Done in"), "{done}");
    assert!(!done.out.contains('\u{1b}') && !done.err.contains('\u{1b}'), "{done}");
}

#[test]
fn a_task_may_come_from_a_pipe_or_a_file() {
    let house = House::new();
    std::fs::write(house.path().join("task.txt"), "what files are here\n").unwrap();
    let mut piped = house.command(&["run"]);
    piped.stdin(std::fs::File::open(house.path().join("task.txt")).unwrap());
    let piped = Done::of(&mut piped);
    assert!(piped.out.starts_with("There are 6 files here:"), "{piped}");
    let file = house.path().join("task.txt");
    let from_file = house.adjutant(&["run", "-f", file.to_str().unwrap()]);
    assert!(from_file.out.starts_with("There are 6 files here:"), "{from_file}");
    let nothing = house.adjutant(&["run"]);
    assert_eq!(nothing.code, Some(2), "{nothing}");
}

#[test]
fn rules_alone_reject_what_asks_and_the_run_goes_on() {
    let house = House::new();
    let done = house.adjutant(&["run", "tidy the welcome notes", "--approve", "rules", "--json"]);
    assert_eq!(done.code, Some(0), "{done}");
    let rejected = done.events().into_iter().find(|event| event["event"] == "rejected").unwrap();
    assert_eq!(rejected["data"]["decided_by"], "rule --approve rules");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy mlik"));
}

#[test]
fn a_rejected_run_says_so_and_a_stopped_one_ends() {
    let house = House::new();
    let (run, approval) = house.asked();
    let rejected = house.adjutant(&["inbox", "reject", &approval, "-m", "not today"]);
    assert_eq!(rejected.code, Some(0), "{rejected}");
    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    assert!(watched.out.contains("not today"), "{watched}");
    let (run, approval) = house.asked();
    house.adjutant(&["inbox", "reject", &approval, "--stop"]);
    let watched = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(6), "{watched}");
    assert!(std::fs::read_to_string(house.note("todo.md")).unwrap().contains("buy mlik"));
}

#[test]
fn edited_arguments_run_in_place_of_the_asked_ones() {
    let house = House::new();
    let (run, approval) = house.asked();
    let arguments = r##"{"path":"/todo.md","content":"# Mine\n"}"##;
    let wrong = house.adjutant(&["inbox", "edit", &approval, "--arguments", "not json"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let edited = house.adjutant(&["inbox", "edit", &approval, "--arguments", arguments]);
    assert_eq!(edited.code, Some(0), "{edited}");
    let watched = house.adjutant(&["runs", "watch", &run, "--json"]);
    assert_eq!(watched.code, Some(0), "{watched}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), "# Mine\n");
    let approved = watched.events().into_iter().find(|event| event["event"] == "approved").unwrap();
    assert_eq!(approved["data"]["edited"], true);
}

#[test]
fn what_was_approved_with_changes_is_shown_as_that_and_as_what_ran() {
    // What is short is kept with the decision, what is long is not.
    shown_as_approved_with_changes("# Mine\n");
    shown_as_approved_with_changes(&"mine ".repeat(1000));
}

fn shown_as_approved_with_changes(content: &str) {
    let house = House::new();
    let (run, approval) = house.asked();
    let arguments = json!({"path": "/projects/todo.md", "content": content}).to_string();
    assert_eq!(house.adjutant(&["inbox", "edit", &approval, "--arguments", &arguments]).code, Some(0));
    let look = |house: &House| {
        let listed = house.adjutant(&["inbox", "ls", "--all"]);
        assert!(listed.out.contains("approved with changes"), "{listed}");
        assert!(listed.out.contains("write_file /projects/todo.md"), "{listed}");
        let item = house.document(&["inbox", "show", &approval]);
        assert_eq!((&item["status"], &item["decision"]), (&"approved".into(), &"edit".into()));
        assert_eq!(item["edited_arguments"]["path"], "/projects/todo.md");
        assert_eq!(item["arguments"]["path"], "/todo.md", "what was asked stays what was asked");
        let shown = house.adjutant(&["inbox", "show", &approval]).out;
        let (ran, asked) = shown.split_once("what was asked for:").unwrap();
        assert!(ran.contains("decided: approved with changes by") && ran.contains("/projects/todo.md"), "{shown}");
        assert!(asked.contains("+- [ ] buy milk"), "{shown}");
        let record = house.adjutant(&["audit", "search", "kind:approval_decided", "--json"]).out;
        assert!(record.contains("approved with changes: write_file /projects/todo.md, asked was"), "{record}");
    };
    look(&house);
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    let server = crate::api::client::Server::start(house);
    look(&server.house);
}

#[test]
fn a_run_is_paused_resumed_forked_and_cancelled() {
    let house = House::new();
    let run = text(&house.document(&["run", "what files are here", "--detach"])["id"]);
    assert_eq!(house.document(&["runs", "pause", &run])["status"], "PAUSED");
    let held = house.adjutant(&["runs", "watch", &run]);
    assert_eq!(held.code, Some(5), "{held}");
    let resumed = house.adjutant(&["runs", "resume", &run]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    assert!(resumed.out.starts_with("There are 6 files here:"), "{resumed}");
    let forked = house.adjutant(&["runs", "fork", &run, "--json"]);
    assert_eq!(forked.code, Some(0), "{forked}");
    assert_eq!(forked.events()[0]["data"]["parent_run_id"].as_str(), Some(run.as_str()));
    let (asking, _) = house.asked();
    assert_eq!(house.document(&["runs", "cancel", &asking])["status"], "CANCELLED");
    assert_eq!(house.document(&["inbox"])["data"], serde_json::json!([]));
}

#[test]
fn a_run_that_has_ended_is_not_resumed_here_or_at_a_server() {
    let house = House::new();
    let done = house.adjutant(&["run", "what files are here", "--json"]);
    let run = text(&done.events()[0]["data"]["run_id"]);
    let resume = |house: &House| house.adjutant(&["runs", "resume", &run]);
    let here = resume(&house);
    assert_eq!((here.code, here.out.as_str()), (Some(1), ""), "{here}");
    assert!(here.err.contains("The run has ended (COMPLETED). Nothing was recorded."), "{here}");
    assert!(here.err.contains(&house.hint("runs fork")), "{here}");
    let server = crate::api::client::Server::start(house);
    let there = resume(&server.house);
    assert_eq!((there.code, &there.out, &there.err), (here.code, &here.out, &here.err));
}

#[test]
fn an_interrupted_run_is_kept_and_goes_on_later() {
    let house = House::new();
    house.script("- text: too late\n  delay_ms: 600000\n");
    let mut child = house.command(&["run", "hello"]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.starts_with("run_") && first.ends_with("test/script"), "{first}");
    signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let rest: Vec<_> = lines.map(Result::unwrap).collect();
    let run = first.split(' ').next().unwrap().to_owned();
    assert!(rest.iter().any(|line| line.contains(&house.hint(&format!("runs resume {run}")))), "{rest:?}");
    house.script("- text: here I am\n");
    let resumed = house.adjutant(&["runs", "resume", &run]);
    assert_eq!((resumed.code, resumed.out.as_str()), (Some(0), "here I am\n"), "{resumed}");
}

#[test]
fn a_run_that_takes_too_long_is_cancelled() {
    let house = House::new();
    house.script("- text: too late\n  delay_ms: 600000\n");
    let done = house.adjutant(&["run", "hello", "--timeout", "1s", "--json"]);
    assert_eq!(done.code, Some(3), "{done}");
    assert_eq!(done.events().last().unwrap()["data"]["status"], "CANCELLED");
}

#[test]
fn a_failed_run_has_its_own_number() {
    let house = House::new();
    house.script("- error: { class: unauthorized, status: 401 }\n");
    let done = house.adjutant(&["run", "hello"]);
    assert_eq!(done.code, Some(3), "{done}");
    assert!(done.err.contains("✖ Failed after"), "{done}");
}

#[test]
fn a_run_is_found_by_the_beginning_of_its_id() {
    let house = House::new();
    let (run, _) = house.asked();
    let shown: Value = house.document(&["runs", "show", &format!("{}…", &run[..16])]);
    assert_eq!(shown["id"].as_str(), Some(run.as_str()));
    assert_eq!(shown["status"], "WAITING_APPROVAL");
    assert_eq!(shown["pending_approvals"].as_array().map(Vec::len), Some(1));
    house.asked();
    let both = house.adjutant(&["runs", "show", "run_01"]);
    assert_eq!(both.code, Some(2), "{both}");
    assert!(both.err.contains("begins more than one id"), "{both}");
    let none = house.adjutant(&["runs", "show", "run_7zzzzz", "--json"]);
    assert_eq!(none.code, Some(1), "{none}");
    let problem: Value = serde_json::from_str(&none.err).unwrap();
    assert_eq!(problem["code"], "not_found");
}

#[test]
fn a_recorded_run_comes_out_the_same() {
    let house = House::new();
    let (run, approval) = house.asked();
    house.adjutant(&["inbox", "approve", &approval]);
    house.adjutant(&["runs", "watch", &run]);
    let replay = house.document(&["runs", "replay", &run]);
    assert_eq!(replay["divergences"], serde_json::json!([]));
    assert!(replay["requests"].as_u64().unwrap() >= 4 && replay["verdicts"].as_u64().unwrap() >= 8, "{replay}");
}

#[test]
fn an_export_is_verified_anywhere_and_a_flipped_byte_is_found() {
    let house = House::new();
    let (run, _) = house.asked();
    let file = house.path().join("run.jsonl");
    let name = file.to_str().unwrap();
    let exported = house.adjutant(&["runs", "export", &run, "-o", name]);
    assert_eq!(exported.code, Some(0), "{exported}");
    assert_eq!(house.adjutant(&["runs", "export", &run, "-o", name]).code, Some(2), "nothing is overwritten");
    let elsewhere = House::new();
    let whole = elsewhere.document(&["audit", "verify", name]);
    assert_eq!((whole["valid"].as_bool(), whole["verified"]["stream"].as_str()), (Some(true), Some(run.as_str())));
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(4).position(|window| window == b"mlik").unwrap();
    bytes[at] = b'M';
    std::fs::write(&file, bytes).unwrap();
    let broken = elsewhere.adjutant(&["audit", "verify", name]);
    assert_eq!(broken.code, Some(9), "{broken}");
    assert!(!elsewhere.data().exists(), "a file needs no data directory");
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn two_processes_share_a_postgres_database() {
    if std::env::var("ADJUTANT_TEST_POSTGRES").is_err() {
        return crate::house::skip("a run on PostgreSQL", "ADJUTANT_TEST_POSTGRES is not set");
    }
    let house = House::on(Base::Postgres);
    let with = |arguments: &[&str]| house.adjutant(arguments);
    let asked = with(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
    assert_eq!(asked.code, Some(5), "{asked}");
    let question = asked.events().pop().unwrap();
    let (run, approval) = (text(&question["data"]["run_id"]), text(&question["data"]["approval_id"]));
    assert!(!house.data().join("adjutant.db").exists() && !house.data().join("lock").exists());
    assert_eq!(with(&["inbox", "approve", &approval]).code, Some(0));
    let watched = with(&["runs", "watch", &run]);
    assert_eq!(watched.code, Some(0), "{watched}");
    assert!(with(&["doctor"]).out.contains("postgres"));
}

/// A schema in a file of the house.
fn schema(house: &House) -> String {
    let path = house.path().join("schema.json");
    let schema = json!({"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]});
    std::fs::write(&path, schema.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn an_answer_fits_the_schema_of_a_file_or_the_run_fails() {
    let house = House::new();
    let schema = schema(&house);
    house.script("- times: 1\n  text: It is Paris.\n- text: '{\"capital\": \"Paris\"}'\n");
    let done = house.adjutant(&["run", "what is the capital", "--schema", &schema]);
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!({"capital": "Paris"}));
    let run = text(&house.document(&["runs", "ls"])["data"][0]["id"]);
    assert_eq!(house.document(&["runs", "show", &run])["result"], json!({"capital": "Paris"}));
    house.script("- text: It is Paris.\n");
    let failed = house.adjutant(&["run", "what is the capital", "--schema", &schema]);
    assert_eq!(failed.code, Some(3), "{failed}");
    assert!(failed.err.contains("does not fit the schema"), "{failed}");
    let missing = house.adjutant(&["run", "x", "--schema", "/no/such/file"]);
    assert_eq!(missing.code, Some(2), "{missing}");
}

#[test]
fn an_answer_fits_the_schema_of_a_request() {
    let house = House::new();
    house.script("- text: '{\"capital\": \"Paris\"}'\n");
    let path = schema(&house);
    let server = crate::api::client::Server::start(house);
    let owner = server.owner();
    let asked =
        json!({"agent_id": "guide", "input": "go", "output_schema": {"type": "object", "required": ["capital"]}});
    assert_eq!(owner.post("/api/v1/runs?wait=60", asked).expect(200)["result"], json!({"capital": "Paris"}));
    let heavy = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
    for schema in [json!({"type": "objekt"}), heavy] {
        let bad = json!({"agent_id": "guide", "input": "go", "output_schema": schema});
        owner.post("/api/v1/runs", bad).refuses(422, "validation_failed");
    }
    let done = server.house.adjutant(&["run", "go", "--schema", &path]);
    assert_eq!(done.code, Some(0), "{done}");
    assert_eq!(serde_json::from_str::<Value>(&done.out).unwrap(), json!({"capital": "Paris"}));
}
