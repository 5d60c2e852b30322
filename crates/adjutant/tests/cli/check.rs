//! `check`: cases judged offline, one line a case, with the exit code a script needs.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;

use crate::house::{Done, House};

const KINDS: [&str; 6] = ["paths", "urls", "calls", "redact", "mentions", "cron"];

fn sample(name: &str) -> String {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "tests", "check", name].iter().collect();
    file.to_str().unwrap().to_owned()
}

/// Judges cases that come in through standard input.
fn piped(house: &House, arguments: &[&str], cases: &str) -> Done {
    let mut child = house
        .command(&[&["check"], arguments].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(cases.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let read = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), out: read(output.stdout), err: read(output.stderr) }
}

#[test]
fn every_sample_passes_and_no_data_directory_is_made() {
    let house = House::new();
    let world = sample("world.json");
    for kind in KINDS {
        for file in [format!("{kind}.jsonl"), format!("own/{kind}.jsonl")] {
            let file = sample(&file);
            let mut arguments = vec!["check", kind, "--jsonl", &file];
            if kind == "calls" {
                arguments.extend(["--world", &world]);
            }
            let done = house.adjutant(&arguments);
            assert_eq!(done.code, Some(0), "{kind}: {}", done.err);
            let cases = std::fs::read_to_string(&file).unwrap().lines().count();
            assert_eq!(done.events().len(), cases, "{kind}");
            assert!(done.events().iter().all(|line| line["pass"] == true), "{kind}");
            assert!(done.out.is_ascii(), "{kind}");
        }
    }
    assert!(!house.data().exists());
}

#[test]
fn a_case_that_disagrees_is_told_and_ends_with_one() {
    let house = House::new();
    let case = |expect: &str| {
        format!(
            "{{\"id\":\"a\",\"expr\":\"@daily\",\"tz\":\"UTC\",\"after\":\"2026-01-30T10:00:00Z\",\"expect\":{expect}}}\n"
        )
    };
    let good = piped(&house, &["cron"], &case("[\"2026-01-31T00:00Z\"]"));
    assert_eq!(good.code, Some(0), "{good}");
    let bad = piped(&house, &["cron", "--jsonl", "-"], &(case("\"never\"") + &case("[\"2026-01-31T00:00Z\"]")));
    assert_eq!(bad.code, Some(1), "{bad}");
    assert_eq!(bad.events()[0]["pass"], false);
    assert_eq!(bad.events()[1]["pass"], true);
    assert!(bad.err.contains("1 of 2 cases"), "{bad}");
}

#[test]
fn a_case_without_an_expectation_is_only_judged() {
    let house = House::new();
    let done = piped(
        &house,
        &["paths"],
        "\n{\"id\":1,\"scope\":{\"folders\":[\"/a\"],\"caps\":[\"read\"]},\"action\":\"read\",\"path\":\"/b\"}\n\n",
    );
    assert_eq!(done.code, Some(0), "{done}");
    let line = &done.events()[0];
    assert_eq!((line["id"].as_i64(), line["verdict"].as_str()), (Some(1), Some("deny")));
    assert!(line.get("pass").is_none());
}

#[test]
fn what_cannot_be_read_does_not_pass() {
    let house = House::new();
    let done = piped(&house, &["urls"], "{\"id\":\n{\"id\":\"x\",\"url\":7}\n");
    assert_eq!(done.code, Some(1), "{done}");
    assert!(done.events().iter().all(|line| line["pass"] == false && line["error"].is_string()), "{done}");
    for arguments in [
        vec!["check", "calls", "--jsonl", "-"],
        vec!["check", "urls", "--world", "world.json"],
        vec!["check", "urls", "--jsonl", "nowhere.jsonl"],
        vec!["check", "everything"],
    ] {
        assert_eq!(house.adjutant(&arguments).code, Some(2), "{arguments:?}");
    }
}
