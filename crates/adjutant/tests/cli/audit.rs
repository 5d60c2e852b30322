//! The record: taking back, checking, searching.

use serde_json::{Value, json};

use crate::house::{Done, House};

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
        let killed = Done::of(house.command(&["runs", "undo", &run]).env("ADJUTANT_FAULT", point));
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
