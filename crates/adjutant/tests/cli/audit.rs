//! The record: taking back, checking, searching.

use serde_json::{Value, json};

use crate::house::{House, text};

/// A run that has changed `todo.md`, and what the file was before.
fn tidied(house: &House) -> (String, String) {
    let (run, approval) = house.asked();
    let before = std::fs::read_to_string(house.note("todo.md")).unwrap();
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
    assert_ne!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
    (run, before)
}

#[test]
fn a_run_is_taken_back_once() {
    let house = House::new();
    let (run, before) = tidied(&house);
    let shown = house.adjutant(&["runs", "undo", &run, "--dry-run"]);
    assert_eq!(shown.code, Some(0), "{shown}");
    assert!(shown.out.contains("/todo.md  would be put back"), "{shown}");
    assert_ne!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
    let undone = house.adjutant(&["runs", "undo", &run]);
    assert_eq!(undone.code, Some(0), "{undone}");
    assert!(undone.out.contains("1 file is as it was before"), "{undone}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before);
    let again = house.document(&["runs", "undo", &run]);
    assert_eq!(again["files"][0]["outcome"], "already_back");
    let again = house.adjutant(&["runs", "undo", &run]);
    assert!(again.out.contains("Nothing is left to undo"), "{again}");
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn a_file_that_somebody_changed_since_is_left_alone() {
    let house = House::new();
    let (run, _) = tidied(&house);
    std::fs::write(house.note("todo.md"), "mine now").unwrap();
    let undone = house.adjutant(&["runs", "undo", &run]);
    assert_eq!(undone.code, Some(1), "{undone}");
    assert!(undone.out.contains("left alone: it is not what the run left there"), "{undone}");
    assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), "mine now");
}

#[cfg(feature = "faults")]
#[test]
fn an_undo_that_was_killed_is_finished_by_the_next_one() {
    // The first commit says that it begins, the second how it ended: dying around each leaves a clear state.
    for (point, restored) in [("commit.before:1", false), ("commit.after:1", false), ("commit.before:2", true)] {
        let house = House::new();
        let (run, before) = tidied(&house);
        let killed = crate::house::Done::of(house.command(&["runs", "undo", &run]).env("ADJUTANT_FAULT", point));
        assert_eq!(killed.code, None, "{point}: {killed}");
        assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap() == before, restored, "{point}");
        let begun = point != "commit.before:1";
        let next = house.document(&["runs", "undo", &run]);
        assert_eq!(next["interrupted"].is_string(), begun, "{point}: {next}");
        let outcome = if restored { "already_back" } else { "restored" };
        assert_eq!(next["files"][0]["outcome"], outcome, "{point}: {next}");
        assert_eq!(std::fs::read_to_string(house.note("todo.md")).unwrap(), before, "{point}");
        assert_eq!(house.document(&["audit", "verify"])["valid"], true, "{point}");
    }
}

#[test]
fn a_check_of_the_database_counts_runs_logs_and_events() {
    let house = House::new();
    house.asked();
    let found: Value = house.document(&["audit", "verify"]);
    assert_eq!((&found["valid"], &found["runs"], &found["broken"]), (&json!(true), &json!(1), &json!([])));
    assert_eq!(found["logs"], 2, "the workspace's and the instance's");
}

#[test]
fn a_run_that_is_gone_from_the_tables_is_missed_and_made_again_from_its_log() {
    let house = House::new();
    let (run, approval) = house.asked();
    let before = house.document(&["runs", "show", &run]);
    house.tamper("DELETE FROM runs; DELETE FROM approvals; DELETE FROM calls; DELETE FROM results");
    let missed = house.adjutant(&["audit", "verify"]);
    assert_eq!(missed.code, Some(9), "{missed}");
    assert!(missed.out.contains(&format!("{run}: no row knows it")), "{missed}");
    let rebuilt = house.adjutant(&["doctor", "--rebuild"]);
    assert_eq!(rebuilt.code, Some(0), "{rebuilt}");
    assert!(rebuilt.out.contains("1 run had no row any more"), "{rebuilt}");
    assert_eq!(house.document(&["runs", "show", &run]), before);
    assert_eq!(house.document(&["audit", "verify"])["valid"], true);
    assert_eq!(house.adjutant(&["inbox", "approve", &approval]).code, Some(0));
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));
}

#[test]
fn a_row_that_ends_before_its_log_does_is_found() {
    let house = House::new();
    house.asked();
    let hash = "(SELECT hash FROM events WHERE stream = runs.id AND seq = runs.head_seq - 1)";
    house.tamper(&format!("UPDATE runs SET head_seq = head_seq - 1, head_hash = {hash}"));
    let found = house.adjutant(&["audit", "verify"]);
    assert_eq!(found.code, Some(9), "{found}");
    assert!(found.out.contains("it goes on after event"), "{found}");
}

#[test]
fn a_search_is_a_table_for_people_and_pages_for_programs() {
    let house = House::new();
    let (run, _) = tidied(&house);
    let found = house.document(&["audit", "search", "tool:write_file", "path:/todo.md", "since:1h"]);
    let kinds: Vec<_> = found["data"].as_array().unwrap().iter().map(|entry| entry["kind"].clone()).collect();
    assert_eq!(kinds, ["call_ended", "approval_decided", "approval_asked"]);
    assert_eq!((&found["data"][0]["verdict"], &found["data"][0]["agent"]), (&json!("ask"), &json!("guide")));
    assert_eq!((&found["data"][1]["by"], &found["has_more"]), (&json!("admin"), &json!(false)));
    let short = &run[..16];
    let first = house.document(&["audit", "search", &format!("run:{short}"), "--limit", "1"]);
    assert_eq!((first["data"][0]["kind"].as_str(), &first["has_more"]), (Some("run_ended"), &json!(true)));
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = house.document(&["audit", "search", &format!("run:{short}"), "--limit", "1", "--cursor", cursor]);
    assert_eq!(next["data"][0]["kind"], "call_ended");
    let table = house.adjutant(&["audit", "search", "kind:run_started", "tidy the welcome"]);
    assert!(table.out.contains("run_started") && table.out.contains("tidy the welcome notes"), "{table}");
    assert!(house.adjutant(&["audit", "search", "kind:run_started", "no such words"]).out.contains("Nothing found."));
    let wrong = house.adjutant(&["audit", "search", "colour:red"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    assert!(wrong.err.contains("There is no `colour:`"), "{wrong}");
}

#[test]
fn the_audit_goes_to_files_that_programs_and_spreadsheets_read() {
    let house = House::new();
    house.adjutant(&["run", "=HYPERLINK(\"http://x\",\"password=hunter2hunter2\")", "--approve", "rules"]);
    let lines = house.adjutant(&["audit", "export", "kind:run_started"]);
    assert_eq!(lines.code, Some(0), "{lines}");
    let entry: Value = serde_json::from_str(lines.out.lines().next().unwrap()).unwrap();
    assert!(entry["summary"].as_str().unwrap().starts_with("=HYPERLINK"), "{entry}");
    assert!(!lines.out.contains("hunter2hunter2"), "{lines}");
    assert!(house.adjutant(&["audit", "export", "kind:run_started", "--raw"]).out.contains("hunter2hunter2"));

    let file = house.path().join("audit.csv");
    let name = file.to_str().unwrap();
    let written = house.adjutant(&["audit", "export", "--format", "csv", "-o", name]);
    assert_eq!(written.code, Some(0), "{written}");
    let table = std::fs::read_to_string(&file).unwrap();
    assert!(table.starts_with("time,stream,seq,kind,by,"), "{table}");
    assert!(table.contains(",\"'=HYPERLINK(") && !table.contains(",=") && !table.contains(",\"="), "{table}");
    assert_eq!(house.adjutant(&["audit", "export", "-o", name]).code, Some(2), "nothing is overwritten");
    let acts = house.document(&["audit", "search", "kind:audit_exported"]);
    assert_eq!(acts["data"].as_array().unwrap().len(), 3, "{acts}");
    assert_eq!(acts["data"][1]["detail"]["detail"]["raw"], true);
}

#[test]
fn the_file_of_a_run_leaves_secrets_out_and_still_proves_its_chain() {
    let house = House::new();
    house.adjutant(&["run", "my password=hunter2hunter2, what files are here?", "--approve", "rules"]);
    let run = text(&house.document(&["runs", "ls"])["data"][0]["id"]);
    let export = |name: &str, more: &[&str]| {
        let file = house.path().join(name);
        let done = house.adjutant(&[&["runs", "export", &run, "-o", file.to_str().unwrap()], more].concat());
        assert_eq!(done.code, Some(0), "{done}");
        let verified = house.document(&["audit", "verify", file.to_str().unwrap()])["verified"].clone();
        (std::fs::read_to_string(&file).unwrap(), verified)
    };
    let (clean, verified) = export("clean.jsonl", &[]);
    assert!(!clean.contains("hunter2") && clean.contains("[REDACTED:"), "{clean}");
    assert!(verified["redacted"].as_u64().unwrap() > 0, "{verified}");
    let (raw, verified) = export("raw.jsonl", &["--raw"]);
    assert!(raw.contains("hunter2hunter2") && verified["redacted"].is_null(), "{verified}");
    let acts = house.document(&["audit", "search", "kind:secrets_revealed"]);
    assert_eq!(
        (acts["data"].as_array().unwrap().len(), &acts["data"][0]["run_id"]),
        (1, &run.as_str().into()),
        "{acts}"
    );
    // What stands in the place of a body is no way around the chain.
    let forged = clean.replacen("\"hash\":\"", "\"hash\":\"00", 1);
    let file = house.path().join("forged.jsonl");
    std::fs::write(&file, forged).unwrap();
    assert_eq!(house.adjutant(&["audit", "verify", file.to_str().unwrap()]).code, Some(9));
}

#[test]
fn every_log_in_one_file_is_verified_anywhere() {
    let house = House::new();
    house.asked();
    let file = house.path().join("all.jsonl");
    let name = file.to_str().unwrap();
    assert_eq!(house.adjutant(&["audit", "export", "--whole", "-o", name]).code, Some(0));
    let elsewhere = House::new();
    let whole = elsewhere.document(&["audit", "verify", name]);
    assert_eq!((&whole["valid"], &whole["runs"], &whole["logs"]), (&json!(true), &json!(1), &json!(2)), "{whole}");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains("mlik"), "what was said is not in it");
    std::fs::write(&file, text.replacen("run_started", "run_stopped", 1)).unwrap();
    let broken = elsewhere.adjutant(&["audit", "verify", name]);
    assert_eq!(broken.code, Some(9), "{broken}");
    assert!(!elsewhere.data().exists(), "a file needs no data directory");
}

#[test]
fn what_was_erased_is_not_left_in_the_unused_pages_of_a_file() {
    let house = House::new();
    house.configure("encrypt = false\n");
    let said = "quokka ".repeat(2000);
    let done = house.adjutant(&["run", "guide", &said, "--approve", "fail"]);
    assert_eq!(done.code, Some(0), "{done}");
    let held = || {
        let files = std::fs::read_dir(house.data()).unwrap().map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.is_file()).map(|path| std::fs::read(path).unwrap());
        files.filter(|bytes| bytes.windows(6).any(|window| window == b"quokka")).count()
    };
    assert!(held() > 0, "nothing is sealed here");
    let erased = house.adjutant(&["audit", "erase", "--before", "0m", "--yes"]);
    assert_eq!(erased.code, Some(0), "{erased}");
    assert_eq!(held(), 0);
}

#[test]
fn what_was_said_is_forgotten_and_the_rest_stays() {
    let house = House::new();
    let (run, _) = tidied(&house);
    let shown = house.adjutant(&["audit", "erase", "--run", &run]);
    assert!(shown.out.contains("Nothing was done; --yes does it."), "{shown}");
    assert_eq!(house.adjutant(&["runs", "replay", &run]).code, Some(0));
    let erased = house.document(&["audit", "erase", "--run", &run, "--yes"]);
    assert!(erased["bodies"].as_u64().unwrap() > 20, "{erased}");
    let verified = house.document(&["audit", "verify"]);
    assert_eq!((&verified["valid"], &verified["erased"]), (&json!(true), &erased["bodies"]));
    assert_eq!(house.document(&["runs", "ls"])["data"][0]["status"], "COMPLETED");
    for command in ["replay", "undo"] {
        let gone = house.adjutant(&["runs", command, &run]);
        assert_eq!(gone.code, Some(1), "{gone}");
        assert!(gone.err.contains("was erased"), "{gone}");
    }
    assert!(house.adjutant(&["audit", "erase", "--before", "1h", "--yes"]).out.contains("Nothing is left"));
    assert_eq!(house.adjutant(&["audit", "erase"]).code, Some(2));
}

#[test]
fn a_draft_is_tried_on_the_past() {
    let house = House::new();
    tidied(&house);
    let draft = house.path().join("guide.md");
    let text =
        "---\nname: Guide\nscope: { notebooks: [\"*\"], folders: [/projects] }\ncan_write: true\n---\nBe careful.\n";
    std::fs::write(&draft, text).unwrap();
    let name = draft.to_str().unwrap();
    let found = house.document(&["backtest", "--agent", "guide", "--draft", name, "--since", "1d"]);
    assert_eq!((&found["runs"], &found["newly"]["allowed"]), (&json!(1), &json!(0)), "{found}");
    assert!(found["newly"]["denied"].as_u64().unwrap() > 3, "{found}");
    let told = house.adjutant(&["backtest", "--agent", "guide", "--draft", name]);
    assert!(told.out.contains("Newly denied") && told.out.contains("read_file /todo.md"), "{told}");
    std::fs::write(&draft, "---\nnmae: Guide\n---\n").unwrap();
    let broken = house.adjutant(&["backtest", "--agent", "guide", "--draft", name]);
    assert_eq!(broken.code, Some(2), "{broken}");
    assert!(broken.err.contains("nothing was judged"), "{broken}");
}
