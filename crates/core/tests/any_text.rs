//! Whatever anybody writes: no reader of hostile text panics, and what it accepts keeps its promises. Texts grow from a kept
//! corpus by small edits, because random text seldom gets past the first check. `PROPTEST_CASES` says how long to look.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on stops")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use adjutant_core::guard::arguments;
use adjutant_core::guard::check::calls::Stage;
use adjutant_core::guard::cron::Schedule;
use adjutant_core::guard::host::{HostPolicy, HostSpec, Method, NetCaps, Url};
use adjutant_core::guard::mention::{Known, mentions};
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::pattern::{NamePattern, Pattern};
use adjutant_core::guard::redact::{Mode, find, redact};
use adjutant_core::guard::scope::{Action, Caps, Kind, Scope, ScopeSpec};
use adjutant_core::time::Time;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};

/// Texts that once were interesting, by what reads them.
static CORPUS: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| serde_json::from_str(include_str!("corpus/seeds.json")).unwrap());

/// Pieces that readers disagree about.
const PIECES: [&str; 44] = [
    "/",
    "//",
    ".",
    "..",
    "\\",
    ":",
    "*",
    "**",
    "?",
    "[",
    "]",
    "[!",
    "-",
    "%2e",
    "%2f",
    "%",
    "~",
    " ",
    "\u{a0}",
    "\0",
    "\n",
    "\r\n",
    "\u{200b}",
    "\u{202e}",
    "\u{2028}",
    "\u{2044}",
    "\u{ff0e}",
    "e\u{301}",
    "\u{e0041}",
    "@",
    "`",
    "```\n",
    ">",
    "\"",
    "\\u0061",
    "{",
    "}",
    ",",
    "1e9",
    "=",
    "\u{1f600}",
    "\u{fdd0}",
    "\u{feff}",
    ".git",
];

#[derive(Debug, Clone)]
enum Edit {
    Insert(usize, &'static str),
    Remove(usize, usize),
    Double(usize, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let insert =
        (0_usize..64, proptest::sample::select(PIECES.to_vec())).prop_map(|(at, piece)| Edit::Insert(at, piece));
    let remove = (0_usize..64, 1_usize..8).prop_map(|(at, length)| Edit::Remove(at, length));
    let double = (0_usize..64, 1_usize..16).prop_map(|(at, length)| Edit::Double(at, length));
    proptest::collection::vec(prop_oneof![3 => insert, 1 => remove, 1 => double], 0..6)
}

fn edited(seed: &str, edits: &[Edit]) -> String {
    let mut letters: Vec<char> = seed.chars().collect();
    for edit in edits {
        match *edit {
            Edit::Insert(at, piece) => {
                let at = at.min(letters.len());
                letters.splice(at..at, piece.chars());
            }
            Edit::Remove(at, length) => {
                let at = at.min(letters.len());
                letters.drain(at..(at + length).min(letters.len()));
            }
            Edit::Double(at, length) => {
                let at = at.min(letters.len());
                let piece: Vec<char> = letters[at..(at + length).min(letters.len())].to_vec();
                letters.splice(at..at, piece);
            }
        }
    }
    letters.into_iter().collect()
}

/// A text that grew from the corpus of one kind, or any text at all.
fn grown(kind: &'static str) -> impl Strategy<Value = String> {
    let seeds = CORPUS[kind].clone();
    let from_seed = (proptest::sample::select(seeds), edits()).prop_map(|(seed, edits)| edited(&seed, &edits));
    prop_oneof![9 => from_seed, 1 => "\\PC{0,40}", 1 => proptest::collection::vec(any::<char>(), 0..24).prop_map(|letters| letters.into_iter().collect())]
}

fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/corpus/found.txt"))),
        ..ProptestConfig::default()
    }
}

fn all_caps(folders: &[&str]) -> Scope {
    let spec: ScopeSpec = serde_json::from_value(json!({ "folders": folders })).unwrap();
    Scope::compile(&spec, Caps::ALL)
}

static STAGE: LazyLock<Stage> = LazyLock::new(|| {
    let world = include_str!("../../../tests/check/world.json");
    Stage::new(serde_json::from_str(world).unwrap()).unwrap()
});

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_path_that_is_accepted_stays_what_it_is_and_in_its_place(text in grown("paths")) {
        let Ok(path) = NotePath::parse(&text) else { return Ok(()) };
        prop_assert_eq!(NotePath::parse(path.as_str()).unwrap(), path.clone());
        prop_assert!(path.as_str().starts_with('/') && !path.as_str().contains("//"));
        prop_assert!(path.as_str().len() <= 4096 && path.segments().count() <= 64);
        for segment in path.segments() {
            prop_assert!(segment != ".." && segment != "." && !segment.is_empty() && segment.len() <= 255);
            prop_assert!(!segment.contains(['\\', ':', '*', '?', '"', '<', '>', '|', '\0', '\n', '/']));
        }
        prop_assert!(path.is_within(&NotePath::root()));
        if path.segments().any(|segment| segment.eq_ignore_ascii_case(".git")) {
            let everything = all_caps(&["/", path.as_str()]);
            prop_assert!(everything.check(Action::Read, &path, Kind::File, true).is_err());
        }
    }

    #[test]
    fn a_pattern_grants_no_more_than_its_tree_and_never_by_accident(
        pattern in grown("patterns"), path in grown("paths"),
    ) {
        let _ = NamePattern::parse(&pattern).map(|name| name.matches(&path));
        let Ok(path) = NotePath::parse(&path) else { return Ok(()) };
        let naming = Pattern::parse(&Pattern::naming(&path)).unwrap();
        prop_assert!(naming.grants(&path) || path.is_root());
        let names_a_dot = pattern.split('/').any(|segment| segment.starts_with('.'));
        let Ok(pattern) = Pattern::parse(&pattern) else { return Ok(()) };
        if pattern.grants(&path) && let Ok(below) = path.child("below") {
            prop_assert!(pattern.grants(&below), "a match grants its whole tree");
        }
        if let Ok(hidden) = path.child(".hidden-7f3a") && !names_a_dot {
            prop_assert!(!pattern.grants(&hidden), "no wildcard names a dot");
        }
    }

    #[test]
    fn a_url_that_is_accepted_shows_where_it_goes(text in grown("urls"), location in grown("urls")) {
        let Ok(url) = Url::parse(&text) else { return Ok(()) };
        prop_assert!(url.host().is_ascii() && !url.host().is_empty() && !url.host().ends_with('.'));
        prop_assert!(matches!(url.scheme(), "http" | "https"));
        prop_assert!(!url.as_str().contains('@') || !url.as_str().split('/').nth(2).unwrap_or_default().contains('@'));
        let again = Url::parse(url.as_str()).unwrap();
        prop_assert_eq!(again.as_str(), url.as_str());
        let nothing = HostPolicy::compile(&HostSpec::default());
        let caps = NetCaps { read: true, write: true };
        prop_assert!(nothing.check_url(&url, Method::Get, caps).is_err());
        if let Ok(next) = url.join(&location) {
            prop_assert!(matches!(next.scheme(), "http" | "https"));
        }
    }

    #[test]
    fn arguments_that_are_read_mean_one_thing_only(text in grown("json")) {
        let Ok(value) = arguments::parse(&text) else { return Ok(()) };
        prop_assert!(value.is_object());
        prop_assert_eq!(&serde_json::from_str::<Value>(&text).unwrap(), &value);
        prop_assert_eq!(&arguments::parse(&value.to_string()).unwrap(), &value);
        prop_assert_eq!(arguments::accept(value.clone()).unwrap(), value);
    }

    #[test]
    fn a_turn_runs_only_what_its_world_grants(
        names in proptest::collection::vec(proptest::sample::select(vec![
            "read_file", "write_file", "create_file", "use_tool", "fetch_web_page", "remember", "update_agent", "nothing",
        ]), 1..20),
        raws in proptest::collection::vec(grown("json"), 1..20),
        paths in proptest::collection::vec(grown("paths"), 1..20),
    ) {
        let call = |((name, raw), path): ((&&str, &String), &String)| match *name {
            "read_file" => json!({"name": name, "arguments": {"path": path}}),
            _ => json!({"name": name, "arguments_raw": raw}),
        };
        let turn: Vec<Value> = names.iter().zip(&raws).zip(&paths).map(call).collect();
        let answer = STAGE.check(&json!({ "turn": turn })).unwrap();
        let outcomes = answer["outcomes"].as_array().unwrap();
        prop_assert_eq!(outcomes.len(), turn.len());
        prop_assert!(outcomes.iter().filter(|outcome| *outcome != "refuse").count() <= 16);
        let scope = {
            let spec: ScopeSpec = serde_json::from_value(json!({"folders": ["/drafts", "/shared/*"], "file_types": ["*.md", "*.txt", "*.csv"]})).unwrap();
            Scope::compile(&spec, Caps::ALL)
        };
        for (call, outcome) in turn.iter().zip(outcomes) {
            let name = call["name"].as_str().unwrap();
            prop_assert!(*outcome == "refuse" || !matches!(name, "update_agent" | "nothing"));
            prop_assert!(*outcome != "run" || name != "write_file", "a write asks");
            if *outcome == "run" && name == "read_file" {
                let path = NotePath::parse(call["arguments"]["path"].as_str().unwrap()).unwrap();
                prop_assert!(scope.check(Action::Read, &path, Kind::File, true).is_ok());
            }
        }
    }

    #[test]
    fn mentions_are_known_and_none_is_left_in_code(text in grown("mentions")) {
        let known = [Known { handle: "bot", active: true }, Known { handle: "bot-2", active: true }];
        let found = mentions(&text, &known);
        prop_assert!(found.len() <= known.len());
        for handle in &found {
            let named = format!("@{handle}");
            prop_assert!(text.to_lowercase().contains(&named));
        }
        if !text.contains("```") {
            let fenced = format!("```\n{text}\n```");
            prop_assert!(mentions(&fenced, &known).is_empty());
        }
    }

    #[test]
    fn a_schedule_that_is_accepted_comes_later(text in grown("cron"), after in 0_i64..4_102_444_800_000) {
        let Ok(schedule) = Schedule::parse(&text, "Europe/Berlin") else { return Ok(()) };
        let after = Time::from_millis(after);
        if let Some(next) = schedule.next(after) {
            prop_assert!(next > after);
            prop_assert_eq!(next.millis() % 60_000, 0);
        }
    }

    #[test]
    fn redacting_twice_is_redacting_once_and_finds_nothing_more(text in grown("texts"), more in grown("texts")) {
        for mode in [Mode::Standard, Mode::Strict] {
            let text = format!("{text} {more}");
            let once = redact(&text, mode).into_owned();
            let twice = redact(&once, mode).into_owned();
            prop_assert_eq!(twice, once);
            for found in find(&text, mode) {
                prop_assert!(text.get(found.range.clone()).is_some());
            }
        }
    }
}

#[test]
fn every_seed_is_read_without_a_panic() {
    for text in CORPUS.values().flatten() {
        let _ = (NotePath::parse(text), Pattern::parse(text), NamePattern::parse(text), Url::parse(text));
        let _ = (arguments::parse(text), mentions(text, &[]), Schedule::parse(text, "UTC"), redact(text, Mode::Strict));
    }
}
