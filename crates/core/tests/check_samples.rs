//! The sample cases of `tests/check` are judged as their authors expect.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on stops")]

use std::path::PathBuf;

use adjutant_core::guard::check::world::{CallsCase, World};
use adjutant_core::guard::check::{CaseKind, check, read_line};
use serde_json::{Value, json};

fn sample(name: &str) -> String {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "check"].iter().collect();
    std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[track_caller]
fn all_pass(kind: CaseKind, name: &str) {
    let text = sample(name);
    let cases = text.lines().filter(|line| !line.trim().is_empty());
    let judge =
        |line| read_line(line).and_then(|case| check(kind, &case)).unwrap_or_else(|error| panic!("{line}: {error}"));
    let answers: Vec<Value> = cases.map(judge).collect();
    assert!(!answers.is_empty());
    let failed: Vec<_> = answers.iter().filter(|answer| answer["pass"] != json!(true)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn sample_paths_are_judged_as_expected() {
    all_pass(CaseKind::Paths, "paths.jsonl");
}

#[test]
fn sample_urls_are_judged_as_expected() {
    all_pass(CaseKind::Urls, "urls.jsonl");
}

#[test]
fn sample_texts_are_redacted_as_expected() {
    all_pass(CaseKind::Redact, "redact.jsonl");
}

#[test]
fn sample_mentions_are_found_as_expected() {
    all_pass(CaseKind::Mentions, "mentions.jsonl");
}

#[test]
fn sample_schedules_come_when_expected() {
    all_pass(CaseKind::Cron, "cron.jsonl");
}

#[test]
fn the_sample_world_and_its_calls_are_read() {
    let world: World = serde_json::from_str(&sample("world.json")).unwrap();
    assert_eq!(world.agent.id, "agent_scribe");
    assert!(world.tools.len() > 10 && world.control_plane.contains("set_autonomy"));
    for line in sample("calls.jsonl").lines() {
        let case: CallsCase = serde_json::from_value(read_line(line).unwrap()).unwrap();
        assert_eq!(case.expect.map(|expect| expect.len()), Some(case.turn.len()));
    }
}
