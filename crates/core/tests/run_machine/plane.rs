//! Names with a fixed answer, tools about tools, and what is asked of arguments: the parts of the verdict that no grant moves.

use std::collections::BTreeSet;
use std::sync::Arc;

use adjutant_core::guard::host::{HostPolicy, HostSpec};
use adjutant_core::guard::judge::{Decision, Definition, Life, Place, is_shown, keys, over_limit};
use adjutant_core::guard::policy::Autonomy;
use adjutant_core::guard::scope::Action;
use adjutant_core::limits::TOOL_CALLS_CEILING;
use adjutant_core::tool::{Category, Checks, Effect, Level, ToolSpec, folder_hash};
use serde_json::json;

use crate::judge::{Ask, read_file, tool};

/// A tool of this name that needs every right there is.
fn named(name: &str) -> ToolSpec {
    let mut spec = ToolSpec { level: Level::Admin, ..tool(name, Category::System, Effect::Execute, Action::Read) };
    spec.paths.clear();
    spec
}

/// A question by an agent that was granted nothing at all.
fn bare(name: &str) -> Ask {
    Ask::new(named(name)).policy(|agent| {
        agent.toolsets.clear();
        agent.can_execute_code = false;
        agent.permission_level = Level::None;
        agent.categories.clear();
        agent.autonomy = Autonomy::None;
    })
}

fn checked(checks: Checks) -> ToolSpec {
    let mut spec = ToolSpec { checks: Arc::new(checks), ..read_file() };
    spec.paths.clear();
    spec
}

fn rule(spec: ToolSpec, arguments: serde_json::Value) -> String {
    let mut ask = Ask::new(spec);
    ask.arguments = Ok(arguments);
    ask.outside.hosts =
        HostPolicy::compile(&HostSpec { hosts: Some(vec!["example.org".to_owned()]), ..HostSpec::default() });
    ask.outside.mail_domains = BTreeSet::from(["example.org".to_owned()]);
    ask.outside.own_ids = BTreeSet::from(["mem_1".to_owned()]);
    ask.verdict().rule
}

#[test]
fn what_has_no_outside_effect_is_everybodys() {
    for name in
        ["search_tools", "get_tool_help", "update_scratchpad", "send_heartbeat", "dismiss", "dismiss_all", "whoami"]
    {
        let ask = bare(name);
        assert_eq!(
            (ask.verdict().decision, ask.verdict().rule.as_str()),
            (Decision::Allow, "always_allowed"),
            "{name}"
        );
        let denied = ask.policy(|agent| agent.denied_tools = BTreeSet::from([name.to_owned()]));
        assert_eq!(denied.verdict().decision, Decision::Deny, "a denial wins: {name}");
    }
    assert_eq!(bare("search").verdict().decision, Decision::Deny);
}

#[test]
fn what_is_everybodys_is_shown_only_to_those_it_was_given_to() {
    let spec = named("whoami");
    let ask = Ask::new(spec.clone()).policy(|agent| agent.toolsets.clear());
    assert_eq!(ask.verdict().decision, Decision::Allow);
    assert!(!is_shown(&ask.agent, &spec), "it may be called, and takes no room in the list");
    let given = ask.policy(|agent| agent.tools = BTreeSet::from(["whoami".to_owned()]));
    assert!(is_shown(&given.agent, &spec));
}

#[test]
fn t2_the_control_plane_is_not_callable_even_where_a_configuration_lists_it() {
    for name in ["set_autonomy", "approve_action", "update_agent", "create_api_token", "restore_backup"] {
        let ask = Ask::new(named(name)).policy(|agent| agent.tools = BTreeSet::from([name.to_owned()]));
        let verdict = ask.verdict();
        assert_eq!((verdict.decision, verdict.rule.as_str()), (Decision::Deny, "tool"), "{name}");
        assert_eq!(verdict.smallest_grant, None, "no grant would help: {name}");
        assert!(!is_shown(&ask.agent, &named(name)), "{name}");
    }
}

#[test]
fn t1_use_tool_itself_is_never_a_call() {
    let ask = Ask::new(named("use_tool")).policy(|agent| agent.tools = BTreeSet::from(["use_tool".to_owned()]));
    assert_eq!((ask.verdict().decision, ask.verdict().rule.as_str()), (Decision::Deny, "use_tool"));
}

#[test]
fn t10_a_changed_definition_is_refused_without_a_question() {
    let mut ask = Ask::write().policy(|agent| agent.autonomy = Autonomy::Low);
    assert_eq!(ask.verdict().decision, Decision::Ask);
    ask.definition = Definition::Changed;
    assert_eq!((ask.verdict().decision, ask.verdict().rule.as_str()), (Decision::Deny, "definition_changed"));
}

#[test]
fn t11_a_run_that_is_over_executes_nothing() {
    for mut ask in
        [Ask::write(), bare("send_heartbeat"), Ask { answer: adjutant_core::guard::judge::Answer::Yes, ..Ask::write() }]
    {
        ask.life = Life::Over;
        assert_eq!((ask.verdict().decision, ask.verdict().rule.as_str()), (Decision::Deny, "run"));
    }
}

#[test]
fn t7_every_element_of_every_argument_is_judged() {
    let names = |name: &str| vec![Arc::from(name)];
    let url = || checked(Checks { urls: names("u"), ..Checks::default() });
    assert_eq!(rule(url(), json!({"u": ["https://example.org/a", "https://example.org/b"]})), "autonomy");
    assert_eq!(rule(url(), json!({"u": ["https://example.org/", "https://evil.test/"]})), "U3");
    assert_eq!(rule(url(), json!({"u": {"href": "https://example.org/"}})), "T7");
    assert_eq!(rule(url(), json!({})), "autonomy");
    let mail = || checked(Checks { emails: names("to"), ..Checks::default() });
    assert_eq!(rule(mail(), json!({"to": ["ada@example.org"]})), "autonomy");
    assert_eq!(rule(mail(), json!({"to": ["ada@example.org", "eve@evil.test"]})), "T7");
    let line = || checked(Checks { single_line: names("s"), ..Checks::default() });
    assert_eq!(rule(line(), json!({"s": "one line"})), "autonomy");
    for broken in ["a\nb", "a\rb", "a\u{2028}b", "a\u{2029}b", "a\0b"] {
        assert_eq!(rule(line(), json!({"s": broken})), "T7", "{broken:?}");
    }
    let option = || checked(Checks { no_option: names("r"), ..Checks::default() });
    assert_eq!(rule(option(), json!({"r": ["main", "a-b"]})), "autonomy");
    assert_eq!(rule(option(), json!({"r": ["main", "--output=x"]})), "T7");
    let own = || checked(Checks { own_ids: names("id"), ..Checks::default() });
    assert_eq!(rule(own(), json!({"id": "mem_1"})), "autonomy");
    assert_eq!(rule(own(), json!({"id": "mem_2"})), "T7");
}

#[test]
fn t7_what_is_no_text_is_refused_whatever_is_asked_of_the_text() {
    let names = || vec![Arc::from("it")];
    let none = Checks::default;
    for checks in [
        Checks { urls: names(), ..none() },
        Checks { emails: names(), ..none() },
        Checks { single_line: names(), ..none() },
        Checks { no_option: names(), ..none() },
        Checks { own_ids: names(), ..none() },
        Checks { memory_keys: names(), ..none() },
    ] {
        let spec = checked(checks);
        for odd in [json!(1), json!(true), json!({"it": "a"}), json!([1]), json!([null]), json!([["a"]]), json!([{}])] {
            assert_eq!(rule(spec.clone(), json!({"it": odd})), "T7", "{odd} {:?}", spec.checks);
        }
        for absent in [json!(null), json!([])] {
            assert_eq!(rule(spec.clone(), json!({"it": absent})), "autonomy", "{:?}", spec.checks);
        }
    }
}

#[test]
fn t9_reserved_memory_keys_are_never_written() {
    let key = || checked(Checks { memory_keys: vec![Arc::from("key")], ..Checks::default() });
    assert_eq!(rule(key(), json!({"key": "colour"})), "autonomy");
    assert_eq!(rule(key(), json!({"key": "policy.scope"})), "T9");
    let mut ask = Ask::new(key());
    ask.arguments = Ok(json!({"key": "house.rules"}));
    ask.outside.reserved_memory = BTreeSet::from(["house".to_owned()]);
    assert_eq!(ask.verdict().rule, "T9");
}

#[test]
fn calls_meet_on_the_keys_they_name_and_one_that_names_none_on_all() {
    let spec = |category, effect| ToolSpec {
        category,
        effect,
        toolset: "kv".into(),
        ..checked(Checks { memory_keys: vec![Arc::from("key")], ..Checks::default() })
    };
    let meets = |spec: &ToolSpec, arguments| {
        let touched = keys(spec, &arguments).into_iter();
        touched.map(|touch| (touch.path, touch.changes)).collect::<Vec<_>>()
    };
    let reads = spec(Category::Memory, Effect::Read);
    let writes = spec(Category::Memory, Effect::Write);
    assert_eq!(meets(&reads, json!({"key": "colour"})), [("kv:colour".to_owned(), false)]);
    assert_eq!(meets(&writes, json!({"key": "colour"})), [("kv:colour".to_owned(), true)]);
    assert_eq!(meets(&reads, json!({})), [("kv:".to_owned(), false)], "it looks at all of them");
    assert_eq!(meets(&spec(Category::FileWrite, Effect::Write), json!({"key": "colour"})), []);
}

#[test]
fn p15_a_path_that_may_name_a_folder_is_judged_by_what_is_there() {
    let spec = ToolSpec {
        checks: Arc::new(Checks { file_or_folder: vec![Arc::from("path")], ..Checks::default() }),
        ..read_file()
    };
    let typed = |spec: &ToolSpec| {
        Ask::new(spec.clone())
            .path("/notes/garden")
            .policy(|agent| agent.scope.file_types = Some(vec!["*.md".to_owned()]))
    };
    assert_eq!(typed(&spec).verdict().decision, Decision::Allow, "a folder may be looked for");
    assert_eq!(typed(&read_file()).verdict().rule, "P15", "a file may not");
    let there = |hash| {
        let mut ask = typed(&spec);
        ask.seen = None;
        ask.verdict_of("/notes/garden", hash)
    };
    assert_eq!(there(Some(folder_hash())).decision, Decision::Allow);
    assert_eq!(there(Some(adjutant_core::content::Hash::of(b"text"))).rule, "P15");
    let outside = typed(&spec).path("/other/garden");
    assert_eq!(outside.verdict().decision, Decision::Deny);
}

#[test]
fn t6_a_turn_and_a_run_have_room_for_so_many_calls() {
    let place = Place { index: 0, per_turn: 16, cut_off: false, spent: 0, most: 200 };
    let rule = |place: Place| over_limit(&place).map(|verdict| verdict.rule);
    assert_eq!(rule(place), None);
    assert_eq!(rule(Place { index: 15, spent: 199, ..place }), None);
    assert_eq!(rule(Place { index: 16, ..place }).as_deref(), Some("calls_per_turn"));
    assert_eq!(rule(Place { cut_off: true, ..place }).as_deref(), Some("cut_off"));
    assert_eq!(rule(Place { spent: 200, ..place }).as_deref(), Some("max_tool_calls"));
    let grant = |most: u32| over_limit(&Place { spent: 1000, most: most as usize, ..place }).unwrap().smallest_grant;
    assert_eq!(grant(200).as_deref(), Some("max_tool_calls: 201"));
    assert_eq!(grant(TOOL_CALLS_CEILING - 1), Some(format!("max_tool_calls: {TOOL_CALLS_CEILING}")));
    assert_eq!(grant(TOOL_CALLS_CEILING), None, "no agent gets more");
}
