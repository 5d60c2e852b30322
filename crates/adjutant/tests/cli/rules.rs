//! Standing rules and lasting yeses at the command line.

use crate::house::{House, text};

#[test]
fn a_yes_for_longer_writes_a_rule_that_is_shown_and_can_be_taken_back() {
    let house = House::new();
    let (run, approval) = house.asked();
    let shown = house.adjutant(&["inbox", "show", &approval]);
    let told = [
        "answering: “tidy the welcome notes”",
        "has read: private",
        "answers: approve, edit, respond, reject, stop   a yes for: once, run, chat, always",
        "would allow write_file directly in /",
    ];
    told.iter().for_each(|part| assert!(shown.out.contains(part), "{part}: {shown}"));
    let wrong = house.adjutant(&["inbox", "approve", &approval, "--for", "once", "--expires-in", "7d"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let approved = house.adjutant(&["inbox", "approve", &approval, "--for", "always", "--expires-in", "7d"]);
    assert_eq!(approved.code, Some(0), "{approved}");
    assert!(approved.out.contains("rule: allow write_file directly in / in this notebook until"), "{approved}");
    let end = text(&house.document(&["rules"])["data"][0]["expires_at"]);
    assert!(
        approved.out.contains(&format!("ends: {end}   to take it back: {}", house.hint("rules rm rule_"))),
        "{approved}"
    );
    assert_eq!(house.adjutant(&["runs", "watch", &run]).code, Some(0));

    let listed = house.adjutant(&["rules"]);
    assert!(
        listed.out.contains("guide") && listed.out.contains("approval") && listed.out.contains("in 6 days"),
        "{listed}"
    );
    let rules = house.document(&["rules", "ls"]);
    let rule = &rules["data"][0];
    assert_eq!(rule["id"].as_str().unwrap()[5..], approval[9..]);
    assert_eq!((&rule["decision"], &rule["live"]), (&"allow".into(), &true.into()));
    assert!(text(&rule["notebook"]).starts_with("nb_"), "{rule}");
    let id = text(&rule["id"]);
    assert!(house.adjutant(&["rules", "show", &id[..17]]).out.contains(&id));
    assert_eq!(house.document(&["rules", "rm", &id])["data"][0]["removed"], true);
    assert_eq!(house.document(&["rules"])["data"], serde_json::json!([]));
    assert_eq!(house.adjutant(&["rules", "rm", &id]).code, Some(1));
}

#[test]
fn a_rule_is_added_only_when_its_examples_hold() {
    let house = House::new();
    let add = ["rules", "add", "deny", "write_file", "--in", "/drafts", "--agent", "guide"];
    let good = r#"{"tool":"write_file","paths":["/drafts/a.md"]}"#;
    let bad = r#"{"tool":"write_file","paths":["/todo.md"]}"#;
    let refused = house.adjutant(&[&add[..], &["--must-deny", good, "--must-deny", bad]].concat());
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.err.contains("must_deny[1]: the rule lets through `write_file /todo.md`"), "{refused}");
    let added = house.document(&[&add[..], &["--must-deny", good, "--must-allow", bad, "--note", "mine"]].concat());
    assert_eq!((&added["decision"], &added["note"]), (&"deny".into(), &"mine".into()));
    let unending = house.document(&["rules", "add", "ask", "*"]);
    assert!(unending["expires_at"].is_null());
    let allow = house.adjutant(&["rules", "add", "allow", "write_file"]);
    assert_eq!(allow.code, Some(2), "an allow says where: {allow}");
    let file = house.path().join("rule.json");
    std::fs::write(&file, r#"{"tool":"kv_set","decision":"deny","when":{"arguments":{"key":"secret.*"}}}"#).unwrap();
    let from_file = house.document(&["rules", "add", "-f", file.to_str().unwrap()]);
    assert_eq!(from_file["says"], "deny kv_set with key like `secret.*`");
}

#[test]
fn a_standing_no_stops_what_nobody_else_would() {
    let house = House::new();
    // It reads what it was never shown: a list would leave it out.
    let read = "calls: [{ name: read_file, arguments: { path: /todo.md } }]";
    house.script(&format!("- when: {{ turn: 2 }}\n  text: done\n- {read}\n"));
    house.document(&["rules", "add", "deny", "read_file", "--in", "/todo.md"]);
    let done = house.adjutant(&["run", "tidy the welcome notes", "--json", "--approve", "fail"]);
    let denied: Vec<_> = done.events().into_iter().filter(|event| event["event"] == "denied").collect();
    assert!(!denied.is_empty() && text(&denied[0]["data"]["rule"]).starts_with("rule rule_"), "{done}");
}

#[test]
fn one_yes_answers_everything_that_is_alike() {
    let house = House::new();
    let (_, first) = house.asked();
    let (_, second) = house.asked();
    let approved = house.document(&["inbox", "approve", "--all-like", &first]);
    let ids: Vec<_> = approved["data"].as_array().unwrap().iter().map(|item| text(&item["id"])).collect();
    assert_eq!(ids, [first, second]);
    assert_eq!(house.document(&["inbox"])["data"], serde_json::json!([]));
}
