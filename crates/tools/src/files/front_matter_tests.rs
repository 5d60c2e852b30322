//! Front matter: whatever is not named stays, byte for byte.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn set(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("not an object: {other}"),
    }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

const NOTE: &str = "---\n# about\ntitle:   \"Old\"  # keep me\ntags:\n  - a\n  # inner\n  - b\n\nstatus: draft\nlist:\n- x\n- y\n# end\n---\nBody\n---\nmore\n";

#[test]
fn a_value_is_replaced_in_place_and_its_comment_stays() {
    let got = edit(NOTE, &set(json!({"title": "New: one"})), &[]).unwrap();
    assert_eq!(got, NOTE.replace("\"Old\"", "\"New: one\""));
    let got = edit(NOTE, &set(json!({"tags": ["c"]})), &[]).unwrap();
    assert_eq!(got, NOTE.replace("tags:\n  - a\n  # inner\n  - b\n", "tags: [c]\n"));
}

#[test]
fn a_property_is_removed_with_all_its_lines_and_a_new_one_comes_last() {
    let got = edit(NOTE, &set(json!({"due": "2026-01-30"})), &names(&["list", "status", "never there"])).unwrap();
    let expected = NOTE.replace("status: draft\nlist:\n- x\n- y\n", "").replace("# end\n", "# end\ndue: 2026-01-30\n");
    assert_eq!(got, expected);
}

#[test]
fn a_text_without_front_matter_gets_one_and_keeps_its_body() {
    let got = edit("Body\r\nmore", &set(json!({"a": 1})), &[]).unwrap();
    assert_eq!(got, "---\r\na: 1\r\n---\r\nBody\r\nmore");
    assert_eq!(edit("", &set(json!({"a": 1})), &[]).unwrap(), "---\na: 1\n---\n");
    assert_eq!(edit("Body", &Map::new(), &names(&["a"])).unwrap(), "Body");
    assert_eq!(edit("\u{FEFF}x", &set(json!({"a": 1})), &[]).unwrap(), "\u{FEFF}---\na: 1\n---\nx");
    assert_eq!(edit("----\nx", &set(json!({"a": 1})), &[]).unwrap(), "---\na: 1\n---\n----\nx");
}

#[test]
fn the_line_ending_of_the_front_matter_is_kept() {
    let text = "---\r\na: 1\r\nb: 2\r\n---\r\nBody\n";
    assert_eq!(edit(text, &set(json!({"a": 3, "c": 4})), &[]).unwrap(), "---\r\na: 3\r\nb: 2\r\nc: 4\r\n---\r\nBody\n");
}

#[test]
fn quoted_names_and_odd_spacing_are_understood() {
    let text = "---\n\"a b\" : 1\n'it''s': 2 # two\nurl:x: 3\n---\n";
    let got = edit(text, &set(json!({"a b": 9, "it's": 8, "url:x": 7})), &[]).unwrap();
    assert_eq!(got, "---\n\"a b\" : 9\n'it''s': 8 # two\nurl:x: 7\n---\n");
}

#[test]
fn a_hash_in_a_value_is_not_taken_for_a_comment() {
    for (line, kept) in [
        ("a: \"x # y\"", ""),
        ("a: x#y", ""),
        ("a: 'it''s # y' # z", " # z"),
        ("a: [\"#\", b]  # z", "  # z"),
        ("a: it's # z", " # z"),
        ("a: # z", " # z"),
    ] {
        let got = edit(&format!("---\n{line}\n---\n"), &set(json!({"a": 1})), &[]).unwrap();
        assert_eq!(got, format!("---\na: 1{kept}\n---\n"), "{line}");
    }
}

#[test]
fn a_multi_line_value_is_replaced_whole() {
    for old in
        ["a: |\n  x\n\n  # y\n", "a: >-\n  x\n  y\n", "a: [\n  1,\n  2\n]\n", "a:\n  b:\n    c: 1\n", "a: \"x\n  y\"\n"]
    {
        let text = format!("---\n{old}z: 1\n---\n");
        assert_eq!(edit(&text, &set(json!({"a": 1})), &[]).unwrap(), "---\na: 1\nz: 1\n---\n", "{old}");
    }
}

#[test]
fn what_is_already_so_changes_nothing() {
    let same = set(json!({"title": "Old", "tags": ["a", "b"], "status": "draft"}));
    assert_eq!(edit(NOTE, &same, &names(&["none"])).unwrap(), NOTE);
    let empty = "---\n---\nBody";
    assert_eq!(edit(empty, &Map::new(), &names(&["a"])).unwrap(), empty);
    assert_eq!(edit(empty, &set(json!({"a": 1})), &[]).unwrap(), "---\na: 1\n---\nBody");
}

#[test]
fn a_malformed_front_matter_is_refused_with_the_reason() {
    let one = set(json!({"a": 1}));
    let refused = |text: &str| edit(text, &one, &[]).unwrap_err();
    assert_eq!(refused("---\na: 2\n"), Malformed::Unclosed);
    assert_eq!(refused("---"), Malformed::Unclosed);
    assert!(matches!(refused("---\na: [1\n---\n"), Malformed::Yaml(_)));
    assert!(matches!(refused("---\n- 1\n- 2\n---\n"), Malformed::Yaml(_)));
    assert!(matches!(refused("---\njust text\n---\n"), Malformed::Yaml(_)));
    assert!(matches!(refused("---\na: 1\na: 2\n---\n"), Malformed::Yaml(_)));
    assert!(matches!(refused("---\n\tb: 1\n---\n"), Malformed::Yaml(_) | Malformed::Line(_)));
    assert_eq!(refused("---\n{b: 1}\n---\n"), Malformed::Line(1));
    assert_eq!(refused("---\n? b\n: 1\n---\n"), Malformed::Line(1));
    assert!(matches!(refused(&format!("---\nb: {}\n---\n", "x".repeat(70_000))), Malformed::Yaml(_)));
}

#[test]
fn an_edit_that_would_change_something_else_is_refused() {
    let anchored = "---\na: &x [1]\nb: *x\n---\n";
    assert_eq!(edit(anchored, &set(json!({"a": 2})), &[]).unwrap_err(), Malformed::Entangled);
    assert_eq!(edit(anchored, &Map::new(), &names(&["a"])).unwrap_err(), Malformed::Entangled);
    // A value that keeps its last blank lines would take over those of the removed one.
    let keeping = "---\na: |+\n  x\nb: 1\n\n---\n";
    assert_eq!(edit(keeping, &Map::new(), &names(&["b"])).unwrap_err(), Malformed::Entangled);
    assert_eq!(edit(anchored, &set(json!({"c": 2})), &[]).unwrap(), "---\na: &x [1]\nb: *x\nc: 2\n---\n");
}

#[test]
fn a_name_that_no_line_can_hold_is_refused() {
    for name in ["", "a\nb", " a", "\u{2028}", &"x".repeat(129)] {
        let wanted = Map::from_iter([(name.to_owned(), json!(1))]);
        assert!(matches!(edit("Body", &wanted, &[]), Err(Malformed::Name(_))), "{name:?}");
    }
}

#[test]
fn properties_are_read_and_a_text_is_split_after_them() {
    assert_eq!(properties("---\na: 1\nb: [x, y]\n---\nBody").unwrap(), set(json!({"a": 1, "b": ["x", "y"]})));
    assert_eq!(properties("Body").unwrap(), Map::new());
    assert_eq!(split("---\na: 1\n---\nBody").unwrap(), Some(("---\na: 1\n---\n", "Body")));
    assert_eq!(split("---\na: 1\n...").unwrap(), Some(("---\na: 1\n...", "")));
    assert_eq!(split("Body").unwrap(), None);
}

/// A piece of a front matter: a property or something between two.
#[derive(Debug, Clone)]
struct Chunk {
    name: Option<String>,
    lines: String,
}

fn value_lines() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        " plain words",
        " 12  # a number",
        " \"quoted # text\"",
        " 'it''s'",
        "",
        "\n  - one\n  # why\n  - two: 2",
        "\n- one\n- two",
        " |\n  first\n\n  # not a comment\n    deep",
        " >-\n  folded\n  text",
        " [a, \"b\", {c: d}] # flow",
        "\n  nested:\n    deeper: true",
        " \"over\n  two lines\"",
        " 2026-01-30",
        " ~",
    ])
}

fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    let between = prop::sample::select(vec!["", "\n", "# a comment\n", "\n# two\n\n"]);
    let name = prop::sample::select(vec!["a", "b_c", "d e", "\"f: g\"", "'h'", "i.j", "ключ"]);
    prop::collection::vec((name, value_lines(), between), 0..6).prop_map(|entries| {
        let mut chunks: Vec<Chunk> = Vec::new();
        for (name, value, between) in entries {
            let plain = name.trim_matches(['"', '\'']).to_owned();
            if chunks.iter().all(|chunk| chunk.name.as_ref() != Some(&plain)) {
                chunks.push(Chunk { name: Some(plain), lines: format!("{name}:{value}\n") });
                chunks.push(Chunk { name: None, lines: between.to_owned() });
            }
        }
        chunks
    })
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[ -~]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[ -~]{0,6}", inner, 0..3).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn wishes() -> impl Strategy<Value = (Map<String, Value>, Vec<String>)> {
    let name = || prop::sample::select(vec!["a", "b_c", "d e", "f: g", "h", "i.j", "ключ", "new", "- odd", "# odd"]);
    let wanted = prop::collection::btree_map(name().prop_map(str::to_owned), any_value(), 0..4);
    let unwanted = prop::collection::vec(name().prop_map(str::to_owned), 0..3);
    (wanted.prop_map(|map| map.into_iter().collect()), unwanted)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn body_comments_order_and_other_properties_stay_byte_for_byte(
        chunks in chunks(), (wanted, unwanted) in wishes(), body in any::<String>(), crlf in any::<bool>(),
    ) {
        let ending = if crlf { "\r\n" } else { "\n" };
        let block: String = chunks.iter().map(|chunk| chunk.lines.as_str()).collect();
        let text = format!("---\n{block}---\n").replace('\n', ending) + &body;
        let before = properties(&text).unwrap();
        let got = edit(&text, &wanted, &unwanted).unwrap();

        let mut expected = before.clone();
        unwanted.iter().for_each(|name| drop(expected.remove(name)));
        expected.extend(wanted.clone());
        prop_assert_eq!(&properties(&got).unwrap(), &expected);
        prop_assert_eq!(&edit(&got, &wanted, &unwanted).unwrap(), &got);

        let mut rest = got.strip_prefix(&format!("---{ending}")).unwrap();
        for chunk in &chunks {
            let lines = chunk.lines.replace('\n', ending);
            let fate = chunk.name.as_ref().map(|name| (before.get(name), expected.get(name)));
            match fate {
                Some((_, None)) => {}
                Some((old, new)) if old != new => rest = rest.split_once('\n').unwrap().1,
                Some(_) | None => {
                    prop_assert!(rest.starts_with(&lines), "{lines:?} is not next in {rest:?}");
                    rest = &rest[lines.len()..];
                }
            }
        }
        let added = wanted.keys().filter(|name| !before.contains_key(*name)).count();
        for _ in 0..added {
            rest = rest.split_once('\n').unwrap().1;
        }
        prop_assert_eq!(rest, format!("---{ending}{body}"));
    }

    #[test]
    fn a_body_without_front_matter_is_kept_byte_for_byte(body in any::<String>(), value in any_value()) {
        let wanted = Map::from_iter([("key".to_owned(), value)]);
        if let Ok(got) = edit(&body, &wanted, &[]) && !body.starts_with("---") {
            let plain = body.strip_prefix('\u{FEFF}').unwrap_or(&body);
            prop_assert!(got.ends_with(plain));
            prop_assert_eq!(properties(&got).unwrap(), wanted);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "(---\n)?([a-c'\"#:\\-\\[\\]{}|> \n\t&*!]{0,60})(---\n)?.{0,10}", value in any_value()) {
        let wanted = Map::from_iter([("a".to_owned(), value)]);
        if let Ok(got) = edit(&text, &wanted, &names(&["b"])) {
            let read = properties(&got).unwrap();
            prop_assert_eq!(read.get("a"), wanted.get("a"));
        }
    }
}
