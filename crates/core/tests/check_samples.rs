//! The sample cases of `tests/check` are judged as their authors expect.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

use std::path::PathBuf;

use adjutant_core::guard::check::calls::Stage;
use adjutant_core::guard::check::world::World;
use adjutant_core::guard::check::{BadCase, CaseKind, check, read_line, read_turn};
use serde_json::{Value, json};

#[expect(clippy::disallowed_methods, reason = "the cases are files, so that other programs can read them")]
fn sample(name: &str) -> String {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "check"].iter().collect();
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The samples of one kind, and our own cases of it.
#[track_caller]
fn all_pass(name: &str, judge: impl Fn(&str) -> Result<Value, BadCase>) {
    for file in [name.to_owned(), format!("own/{name}")] {
        let text = sample(&file);
        let cases = text.lines().filter(|line| !line.trim().is_empty());
        let answers: Vec<Value> =
            cases.map(|line| judge(line).unwrap_or_else(|error| panic!("{line}: {error}"))).collect();
        assert!(!answers.is_empty());
        let failed: Vec<_> = answers.iter().filter(|answer| answer["pass"] != json!(true)).collect();
        assert!(failed.is_empty(), "{file}: {failed:#?}");
    }
}

fn by_text(kind: CaseKind) -> impl Fn(&str) -> Result<Value, BadCase> {
    move |line| read_line(line).and_then(|case| check(kind, &case))
}

#[test]
fn paths_are_judged_as_expected() {
    all_pass("paths.jsonl", by_text(CaseKind::Paths));
}

#[test]
fn urls_are_judged_as_expected() {
    all_pass("urls.jsonl", by_text(CaseKind::Urls));
}

#[test]
fn texts_are_redacted_as_expected() {
    all_pass("redact.jsonl", by_text(CaseKind::Redact));
}

#[test]
fn mentions_are_found_as_expected() {
    all_pass("mentions.jsonl", by_text(CaseKind::Mentions));
}

#[test]
fn schedules_come_when_expected() {
    all_pass("cron.jsonl", by_text(CaseKind::Cron));
}

#[test]
fn turns_are_judged_as_expected() {
    let stage = Stage::new(serde_json::from_str(&sample("world.json")).unwrap()).unwrap();
    all_pass("calls.jsonl", |line| read_turn(line).and_then(|case| stage.check(&case)));
}

#[test]
fn a_world_whose_words_mean_nothing_is_refused() {
    let world: Value = serde_json::from_str(&sample("world.json")).unwrap();
    for (pointer, wrong) in [("/agent/autonomy", json!("boundless")), ("/tools/read_file/schema", json!({"type": 7}))] {
        let mut world = world.clone();
        match pointer.rsplit_once('/') {
            Some((parent, key)) => world.pointer_mut(parent).unwrap()[key] = wrong,
            None => unreachable!(),
        }
        let world: World = serde_json::from_value(world).unwrap();
        assert!(Stage::new(world).is_err(), "{pointer}");
    }
}

#[test]
fn autonomy_and_level_of_a_world_are_checked_where_it_states_them() {
    let mut world: Value = serde_json::from_str(&sample("world.json")).unwrap();
    world["agent"]["autonomy"] = json!("low");
    world["tools"]["recall"]["level"] = json!("admin");
    world["tools"]["get_current_datetime"]["effect"] = json!("read");
    let stage = Stage::new(serde_json::from_value(world).unwrap()).unwrap();
    let turn = json!({"turn": [
        {"name": "read_file", "arguments": {"path": "/drafts/a.md"}},
        {"name": "create_file", "arguments": {"path": "/drafts/n.md", "content": ""}},
        {"name": "remember", "arguments": {"key": "a", "value": "b"}},
        {"name": "recall", "arguments": {"memory_id": "mem_1"}},
        {"name": "get_current_datetime", "arguments": {}},
    ]});
    assert_eq!(stage.check(&turn).unwrap()["outcomes"], json!(["run", "hold", "hold", "refuse", "run"]));
}
