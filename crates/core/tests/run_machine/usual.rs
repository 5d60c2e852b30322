//! What is said to a tool before it is known with what it is called, and which files a call takes text from.

use std::collections::BTreeSet;
use std::sync::Arc;

use adjutant_core::guard::judge::{Decision, sources, usually};
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::policy::{AgentConfig, Autonomy};
use adjutant_core::guard::rule::{Match, Rule, Rules};
use adjutant_core::guard::scope::Action;
use adjutant_core::tool::{Category, Checks, Effect, Level, ToolSpec};
use serde_json::json;

use crate::judge::{Ask, agent, caller, read_file, rule, tool, write_file};

/// What is usually said to an agent, with these rules.
fn said(agent: &AgentConfig, spec: &ToolSpec, rules: &[Rule]) -> Decision {
    usually(caller(), agent, spec, &Rules::new(rules.to_vec()))
}

fn everywhere(decision: Decision, tool: &str) -> Rule {
    Rule { when: Match::default(), ..rule(decision, tool, "/") }
}

#[test]
fn as_a_rule_a_tool_does_what_autonomy_lets_it() {
    let low = AgentConfig { autonomy: Autonomy::Low, ..agent() };
    assert_eq!(said(&low, &read_file(), &[]), Decision::Allow);
    assert_eq!(said(&low, &write_file(), &[]), Decision::Ask);
    let medium = AgentConfig { autonomy: Autonomy::Medium, ..agent() };
    assert_eq!(said(&medium, &write_file(), &[]), Decision::Allow);
    assert_eq!(said(&medium, &ToolSpec { undoable: false, ..write_file() }, &[]), Decision::Ask);
}

#[test]
fn a_tool_that_is_not_shown_is_denied_as_a_rule() {
    let granted = agent();
    assert_eq!(said(&granted, &write_file(), &[]), Decision::Allow);
    for (less, why) in [
        (AgentConfig { denied_tools: BTreeSet::from(["write_file".to_owned()]), ..granted.clone() }, "denied"),
        (AgentConfig { toolsets: BTreeSet::new(), ..granted.clone() }, "not granted"),
        (AgentConfig { can_write: false, can_create: false, ..granted.clone() }, "no flag"),
        (AgentConfig { permission_level: Level::Read, ..granted.clone() }, "level"),
        (AgentConfig { categories: BTreeSet::from([Category::FileRead]), ..granted }, "category"),
    ] {
        assert_eq!(said(&less, &write_file(), &[]), Decision::Deny, "{why}");
        let yes = [everywhere(Decision::Allow, "write_file")];
        assert_eq!(said(&less, &write_file(), &yes), Decision::Deny, "{why}: a rule grants nothing");
    }
}

#[test]
fn rules_that_hold_whatever_a_tool_is_called_with_count_as_a_rule() {
    let (low, full) = (AgentConfig { autonomy: Autonomy::Low, ..agent() }, agent());
    let write = write_file();
    assert_eq!(said(&full, &write, &[everywhere(Decision::Deny, "*")]), Decision::Deny);
    assert_eq!(said(&full, &write, &[everywhere(Decision::Ask, "write_file")]), Decision::Ask);
    assert_eq!(said(&low, &write, &[everywhere(Decision::Allow, "write_file")]), Decision::Allow);
    assert_eq!(said(&full, &write, &[everywhere(Decision::Deny, "read_file")]), Decision::Allow, "another tool");
    for decision in [Decision::Deny, Decision::Ask] {
        assert_eq!(said(&full, &write, &[rule(decision, "write_file", "/notes")]), Decision::Allow, "only somewhere");
    }
    assert_eq!(said(&low, &write, &[rule(Decision::Allow, "write_file", "/notes")]), Decision::Ask, "only somewhere");
    // What counts where an argument is left out is one way to call it.
    let mut listed = read_file();
    listed.definition.schema = json!({"properties": {"path": {"default": "/"}}});
    let when = Match { arguments: [("path".to_owned(), "/".to_owned())].into(), ..Match::default() };
    assert_eq!(said(&full, &listed, &[Rule { when, ..everywhere(Decision::Deny, "read_file") }]), Decision::Allow);
}

#[test]
fn a_tool_that_always_asks_asks_whatever_rules_allow() {
    let always = AgentConfig { requires_approval: BTreeSet::from(["write_file".to_owned()]), ..agent() };
    assert_eq!(said(&always, &write_file(), &[]), Decision::Ask);
    assert_eq!(said(&always, &write_file(), &[everywhere(Decision::Allow, "write_file")]), Decision::Ask);
    assert_eq!(said(&always, &write_file(), &[everywhere(Decision::Deny, "write_file")]), Decision::Deny);
    assert_eq!(said(&always, &read_file(), &[]), Decision::Allow, "another tool");
}

/// A tool that makes a file of a template.
fn from_template() -> ToolSpec {
    let sources = vec![(Arc::from("content"), Arc::from("/templates"))];
    let checks = Arc::new(Checks { sources, ..Checks::default() });
    ToolSpec { checks, ..tool("create_file", Category::FileWrite, Effect::Create, Action::Create) }
}

#[test]
fn the_files_that_a_call_takes_text_from_are_those_that_it_names_in_their_folder() {
    let path = |text: &str| NotePath::parse(text).unwrap();
    let spec = from_template();
    assert_eq!(sources(&spec, &json!({"path": "/a.md", "content": "day.md"})), [path("/templates/day.md")]);
    for nothing in [json!({"path": "/a.md"}), json!({"content": 1}), json!({"content": "../secret.md"}), json!(null)] {
        assert_eq!(sources(&spec, &nothing), [], "{nothing}");
    }
    assert_eq!(sources(&write_file(), &json!({"content": "day.md"})), [], "a tool that takes text from nowhere");
}

#[test]
fn a_rule_about_a_file_counts_for_a_call_that_takes_text_from_it() {
    let ask = |rules: Vec<Rule>, template: &str| {
        let arguments = Ok(json!({"path": "/notes/new.md", "content": template}));
        Ask { rules, arguments, ..Ask::new(from_template()) }.verdict().decision
    };
    for decision in [Decision::Deny, Decision::Ask] {
        let about = || vec![rule(decision, "create_file", "/templates/day.md")];
        assert_eq!(ask(about(), "day.md"), decision);
        assert_eq!(ask(about(), "other.md"), Decision::Allow);
    }
}
