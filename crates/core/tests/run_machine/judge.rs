//! The verdict, check by check: what fails a check is denied by it, and nothing that should fail passes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use adjutant_core::content::Hash;
use adjutant_core::guard::filter::Filter;
use adjutant_core::guard::judge::{
    Answer, Authority, Caller, Decision, Definition, Life, Outside, Question, Verdict, fingerprint, is_shown, judge,
    risk, touches,
};
use adjutant_core::guard::policy::{AgentConfig, AgentSpec, Autonomy, Flow};
use adjutant_core::guard::rule::{Match, Rule, Rules};
use adjutant_core::guard::scope::{Action, Operation, ScopeSpec};
use adjutant_core::id::{AgentId, ChatId, NotebookId, RuleId, RunId, UserId};
use adjutant_core::label::Labels;
use adjutant_core::run::event::{Effects, GrantScope, Risk};
use adjutant_core::time::Time;
use adjutant_core::tool::{Category, Effect, Level, Prepared, Target, ToolDefinition, ToolSpec, Touch};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::given::{call_id, run_id};

/// An agent that may do everything below `/notes`, without asking.
pub(crate) fn agent() -> AgentConfig {
    let spec = AgentSpec {
        name: "Tidy".to_owned(),
        scope: Some(ScopeSpec { folders: Some(vec!["/notes".into()]), ..ScopeSpec::default() }),
        can_read: Some(true),
        can_write: Some(true),
        can_create: Some(true),
        can_delete: Some(true),
        can_execute_code: Some(true),
        can_access_integrations: Some(true),
        permission_level: Some(Level::Admin),
        toolsets: Some(BTreeSet::from(["files".to_owned()])),
        autonomy: Some(Autonomy::Full),
        ..AgentSpec::default()
    };
    spec.complete().unwrap()
}

/// A tool that does something to a path.
pub(crate) fn tool(name: &str, category: Category, effect: Effect, action: Action) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}});
    let definition = ToolDefinition { name: name.to_owned(), description: "Does it.".to_owned(), schema };
    ToolSpec {
        toolset: Arc::from("files"),
        category,
        level: Level::Write,
        effect,
        undoable: true,
        paths: BTreeMap::from([(Arc::from("path"), action)]),
        ..ToolSpec::undeclared(definition)
    }
}

pub(crate) fn write_file() -> ToolSpec {
    tool("write_file", Category::FileWrite, Effect::Write, Action::Write)
}

pub(crate) fn read_file() -> ToolSpec {
    ToolSpec { level: Level::Read, ..tool("read_file", Category::FileRead, Effect::Read, Action::Read) }
}

/// One question, to be varied.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) agent: AgentConfig,
    pub(crate) spec: Option<ToolSpec>,
    pub(crate) name: String,
    pub(crate) arguments: Result<Value, String>,
    pub(crate) seen: Option<Vec<(&'static str, bool)>>,
    pub(crate) life: Life,
    pub(crate) definition: Definition,
    pub(crate) outside: Outside,
    pub(crate) effects: Effects,
    pub(crate) autonomy: Option<Autonomy>,
    pub(crate) notebook: bool,
    pub(crate) labels: Labels,
    pub(crate) rules: Vec<Rule>,
    pub(crate) authority: Authority,
    pub(crate) answer: Answer,
}

impl Ask {
    pub(crate) fn new(spec: ToolSpec) -> Self {
        Self {
            agent: agent(),
            name: spec.name().to_owned(),
            spec: Some(spec),
            arguments: Ok(json!({"path": "/notes/a.md"})),
            seen: None,
            life: Life::Running,
            definition: Definition::AsPinned,
            outside: Outside::default(),
            effects: Effects::Live,
            autonomy: None,
            notebook: true,
            labels: Labels::NONE,
            rules: Vec::new(),
            authority: Authority::Acts,
            answer: Answer::None,
        }
    }

    pub(crate) fn write() -> Self {
        Self { seen: Some(vec![("/notes/a.md", true)]), ..Self::new(write_file()) }
    }

    pub(crate) fn policy(mut self, change: impl FnOnce(&mut AgentConfig)) -> Self {
        change(&mut self.agent);
        self
    }

    pub(crate) fn path(mut self, path: impl Into<Value>) -> Self {
        self.arguments = Ok(json!({ "path": path.into() }));
        self
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let state = |(path, there): &(&str, bool)| ((*path).to_owned(), there.then(|| Hash::of(b"there")));
        self.verdict_with(self.seen.as_ref().map(|seen| seen.iter().map(state).collect()))
    }

    /// The verdict once the tool has seen this at a path.
    pub(crate) fn verdict_of(&self, path: &str, there: Option<Hash>) -> Verdict {
        self.verdict_with(Some(BTreeMap::from([(path.to_owned(), there)])))
    }

    fn verdict_with(&self, seen: Option<BTreeMap<String, Option<Hash>>>) -> Verdict {
        let scope = self.agent.compile_scope();
        let prepared = seen.map(|seen| Prepared { target: Target(seen), ..Prepared::default() });
        judge(&Question {
            agent: &self.agent,
            scope: &scope,
            tool: &self.name,
            spec: self.spec.as_ref(),
            arguments: self.arguments.as_ref().map_err(String::as_str),
            prepared: prepared.as_ref(),
            life: self.life,
            definition: self.definition,
            outside: &self.outside,
            filter: &Filter::new(&self.agent.content_filter),
            effects: self.effects,
            autonomy: self.autonomy,
            notebook: self.notebook,
            labels: self.labels,
            caller: caller(),
            rules: &Rules::new(self.rules.clone()),
            authority: self.authority,
            answer: self.answer,
        })
    }

    #[track_caller]
    fn is(&self, decision: Decision, rule: &str) -> Verdict {
        let verdict = self.verdict();
        assert_eq!((verdict.decision, verdict.rule.as_str()), (decision, rule), "{verdict:?}");
        verdict
    }
}

pub(crate) fn caller() -> Caller {
    let at = Time::from_millis(1_000_000);
    let (agent, chat, run) = (AgentId::new(at, [1; 10]), ChatId::new(at, [2; 10]), RunId::new(at, [5; 10]));
    Caller { agent, chat, run, notebook: Some(NotebookId::new(at, [6; 10])), now: at }
}

pub(crate) fn rule(decision: Decision, tool: &str, folder: &str) -> Rule {
    let at = Time::from_millis(900_000);
    let body = json!({
        "id": RuleId::new(at, [3; 10]), "owner": UserId::new(at, [4; 10]), "tool": tool, "decision": decision,
        "when": {"folders": [folder]}, "created_at": at, "expires_at": Time::from_millis(2_000_000),
    });
    serde_json::from_value(body).unwrap()
}

#[test]
fn a_standing_deny_outranks_an_approval_and_a_standing_ask_outranks_autonomy() {
    let deny = Ask { rules: vec![rule(Decision::Deny, "write_file", "/notes")], answer: Answer::Yes, ..Ask::write() };
    assert_eq!(deny.verdict().decision, Decision::Deny);
    let ask = Ask { rules: vec![rule(Decision::Ask, "*", "/notes")], ..Ask::write() };
    let ask = ask.policy(|agent| agent.autonomy = Autonomy::Full).verdict();
    assert_eq!((ask.decision, ask.scopes.as_slice()), (Decision::Ask, [GrantScope::Once].as_slice()));
}

#[test]
fn a_standing_allow_answers_what_autonomy_asks_and_nothing_else() {
    let allowed = || Ask { rules: vec![rule(Decision::Allow, "write_file", "/notes")], ..Ask::write() };
    let low = || allowed().policy(|agent| agent.autonomy = Autonomy::Low);
    assert_eq!(low().verdict().decision, Decision::Allow);
    allowed().policy(|agent| agent.autonomy = Autonomy::Full).is(Decision::Allow, "autonomy");
    let always_asks = low().policy(|agent| agent.requires_approval = ["write_file".to_owned()].into());
    always_asks.is(Decision::Ask, "requires_approval");
    low()
        .policy(|agent| agent.can_write = false)
        .policy(|agent| agent.can_create = false)
        .is(Decision::Deny, "can_write");
    let elsewhere = low().path("/secret/a.md").verdict();
    assert_eq!(elsewhere.decision, Decision::Deny);
}

#[test]
fn private_and_untrusted_together_make_every_way_out_ask_whatever_the_autonomy() {
    let both = Labels::PRIVATE.join(Labels::UNTRUSTED);
    let sends = || ToolSpec { egress: true, ..read_file() };
    let stays = || ToolSpec { egress: false, ..read_file() };
    for (labels, decision) in [
        (Labels::NONE, Decision::Allow),
        (Labels::PRIVATE, Decision::Allow),
        (Labels::UNTRUSTED, Decision::Allow),
        (both, Decision::Ask),
    ] {
        let ask = Ask { labels, ..Ask::new(sends()) }.policy(|agent| agent.autonomy = Autonomy::Full);
        assert_eq!(ask.verdict().decision, decision, "{labels:?}");
        assert_eq!(Ask { labels, ..Ask::new(stays()) }.verdict().decision, Decision::Allow, "nothing leaves");
    }
    let denied = Ask { labels: both, answer: Answer::Yes, ..Ask::new(sends()) }.policy(|agent| agent.flow = Flow::Deny);
    denied.is(Decision::Deny, "flow");
    let approved = Ask { labels: both, answer: Answer::Yes, ..Ask::new(sends()) };
    approved.is(Decision::Allow, "approved");
}

#[test]
fn edited_arguments_answer_the_list_and_autonomy_and_nothing_that_depends_on_them() {
    let edited = |ask: Ask| Ask { answer: Answer::Edited, ..ask };
    edited(Ask::write().policy(|agent| agent.autonomy = Autonomy::None)).is(Decision::Allow, "approved");
    let listed = Ask::write().policy(|agent| agent.requires_approval = ["write_file".to_owned()].into());
    edited(listed).is(Decision::Allow, "approved");
    let ruled = edited(Ask { rules: vec![rule(Decision::Ask, "write_file", "/notes")], ..Ask::write() });
    assert_eq!(ruled.verdict().decision, Decision::Ask);
    let both = Labels::PRIVATE.join(Labels::UNTRUSTED);
    let leaves = Ask { labels: both, ..Ask::new(ToolSpec { egress: true, ..read_file() }) };
    edited(leaves).is(Decision::Ask, "flow");
    let entry = json!({"pattern": "confidential", "points": ["input"], "action": "ask"});
    let filtered = Ask::write().policy(|agent| agent.content_filter = vec![serde_json::from_value(entry).unwrap()]);
    let said = Ask { arguments: Ok(json!({"path": "/notes/a.md", "content": "confidential"})), ..filtered };
    edited(said).is(Decision::Ask, "content_filter");
    edited(Ask::write().path("/secret/a.md")).is(Decision::Deny, "P11");
}

#[test]
fn a_run_does_no_more_than_whoever_started_it_may_do() {
    let by = |authority, ask: Ask| Ask { authority, ..ask };
    by(Authority::Reads, Ask::new(read_file())).is(Decision::Allow, "autonomy");
    by(Authority::Reads, Ask::write()).is(Decision::Deny, "role");
    by(Authority::Reads, Ask { answer: Answer::Yes, ..Ask::write() }).is(Decision::Deny, "role");
    by(Authority::Gone, Ask::new(read_file())).is(Decision::Deny, "role");
    let grant = |authority| by(authority, Ask::write()).verdict().smallest_grant;
    assert_eq!(grant(Authority::Reads).as_deref(), Some("the role write for whoever started the run"));
    assert_eq!(grant(Authority::Gone).as_deref(), Some("a membership for whoever started the run"));
}

/// A tool that every agent may call whatever it was granted.
fn everybodys(name: &str, category: Category, effect: Effect) -> ToolSpec {
    let mut spec = tool(name, category, effect, Action::Read);
    spec.paths.clear();
    spec
}

#[test]
fn what_is_everybodys_is_still_no_more_than_whoever_started_the_run_may_do() {
    let by = |authority, spec| Ask { authority, ..Ask::new(spec) };
    by(Authority::Gone, everybodys("whoami", Category::System, Effect::Read)).is(Decision::Deny, "role");
    let beat = || everybodys("send_heartbeat", Category::System, Effect::Write);
    by(Authority::Reads, beat()).is(Decision::Deny, "role");
    by(Authority::Acts, beat()).is(Decision::Allow, "always_allowed");
    by(Authority::Reads, everybodys("whoami", Category::System, Effect::Read)).is(Decision::Allow, "always_allowed");
}

#[test]
fn what_is_everybodys_passes_the_same_rules_labels_and_dry_runs_as_the_rest() {
    let whoami = everybodys("whoami", Category::System, Effect::Read);
    let deny: Rule = lasting("whoami", &json!({}), &[]);
    let deny = Rule { decision: Decision::Deny, ..deny };
    let ruled = Ask { rules: vec![deny.clone()], arguments: Ok(json!({})), ..Ask::new(whoami.clone()) };
    ruled.is(Decision::Deny, &format!("rule {}", deny.id));
    let noted = everybodys("update_scratchpad", Category::Memory, Effect::Write);
    Ask::new(noted.clone()).is(Decision::Allow, "always_allowed");
    Ask { labels: Labels::UNTRUSTED, ..Ask::new(noted.clone()) }.is(Decision::Ask, "flow");
    Ask { effects: Effects::Dry, ..Ask::new(noted) }.is(Decision::Deny, "dry_run");
    Ask { effects: Effects::Dry, ..Ask::new(whoami) }.is(Decision::Allow, "always_allowed");
}

#[test]
fn a_question_names_the_smallest_grant_that_would_answer_it() {
    let grant = |ask: Ask| ask.verdict().smallest_grant;
    let at = |autonomy, ask: Ask| ask.policy(|agent| agent.autonomy = autonomy);
    let delete =
        |undoable| ToolSpec { undoable, ..tool("delete_file", Category::FileDelete, Effect::Delete, Action::Delete) };
    let may_delete = |spec| Ask::new(spec).policy(|agent| agent.can_delete = true);
    let levels = [
        (Ask::new(read_file()), "autonomy: low"),
        (Ask::write(), "autonomy: medium"),
        (may_delete(delete(true)), "autonomy: high"),
        (may_delete(delete(false)), "autonomy: full"),
    ];
    for (ask, expected) in levels {
        assert_eq!(grant(at(Autonomy::None, ask)).as_deref(), Some(expected));
    }
    let kept_short = Ask { autonomy: Some(Autonomy::Low), ..Ask::write() };
    assert_eq!(grant(kept_short.clone()).as_deref(), Some("start the run without an autonomy of its own"));
    let just_enough = at(Autonomy::Medium, kept_short.clone());
    assert_eq!(grant(just_enough).as_deref(), Some("start the run without an autonomy of its own"));
    assert_eq!(grant(at(Autonomy::Low, kept_short)).as_deref(), Some("autonomy: medium"));
    let listed = Ask::write().policy(|agent| agent.requires_approval = ["write_file".to_owned()].into());
    assert_eq!(grant(listed).as_deref(), Some("take `write_file` off requires_approval"));
    for decision in [Decision::Ask, Decision::Deny] {
        let standing = rule(decision, "write_file", "/notes");
        let expected = format!("remove rule {}", standing.id);
        assert_eq!(grant(Ask { rules: vec![standing], ..Ask::write() }), Some(expected));
    }
    for action in ["ask", "block"] {
        let entry = json!({"pattern": "write_file", "points": ["tool"], "action": action});
        let filtered = Ask::write().policy(|agent| agent.content_filter = vec![serde_json::from_value(entry).unwrap()]);
        assert_eq!(grant(filtered).as_deref(), Some("take entry 0 off the content filter"));
    }
    let dry = Ask { effects: Effects::Dry, ..Ask::write() };
    assert_eq!(grant(dry).as_deref(), Some("start the run without `dry_run`"));
}

#[test]
fn what_an_untrusted_run_wants_to_remember_asks() {
    let remember =
        || ToolSpec { category: Category::Memory, effect: Effect::Write, paths: Default::default(), ..write_file() };
    let full = |labels| Ask { labels, ..Ask::new(remember()) }.policy(|agent| agent.autonomy = Autonomy::Full);
    assert_eq!(full(Labels::PRIVATE).verdict().decision, Decision::Allow);
    full(Labels::UNTRUSTED).is(Decision::Ask, "flow");
    let recall = ToolSpec { effect: Effect::Read, ..remember() };
    Ask { labels: Labels::UNTRUSTED, ..Ask::new(recall) }.is(Decision::Allow, "autonomy");
    Ask { labels: Labels::UNTRUSTED, ..Ask::write() }.is(Decision::Allow, "autonomy");
}

#[test]
fn a_filter_of_memory_looks_at_what_is_remembered_and_at_nothing_else() {
    let filtered = |spec: ToolSpec| {
        let entry = json!({"pattern": "confidential", "points": ["memory"], "action": "block"});
        let ask = Ask::new(spec).policy(|agent| agent.content_filter = vec![serde_json::from_value(entry).unwrap()]);
        Ask { arguments: Ok(json!({"path": "/notes/a.md", "content": "confidential"})), ..ask }
    };
    let memory = |effect| ToolSpec { category: Category::Memory, effect, paths: Default::default(), ..write_file() };
    filtered(memory(Effect::Write)).is(Decision::Deny, "content_filter");
    filtered(memory(Effect::Read)).is(Decision::Allow, "autonomy");
    filtered(write_file()).is(Decision::Allow, "autonomy");
}

#[test]
fn a_decision_is_said_as_it_is_stored() {
    for decision in [Decision::Allow, Decision::Ask, Decision::Deny] {
        assert_eq!(serde_json::to_value(decision).unwrap(), decision.word());
    }
}

#[test]
fn what_passes_every_check_is_allowed() {
    Ask::write().is(Decision::Allow, "autonomy");
    Ask::new(read_file()).is(Decision::Allow, "autonomy");
}

#[test]
fn an_agent_that_is_switched_off_does_nothing_even_what_was_approved() {
    let mut ask = Ask::write().policy(|agent| agent.is_active = false);
    ask.is(Decision::Deny, "agent");
    ask.answer = Answer::Yes;
    ask.is(Decision::Deny, "agent");
}

#[test]
fn an_unknown_tool_and_one_that_is_not_granted_look_alike_to_the_model() {
    let known = Ask::write();
    let unknown = Ask { spec: None, ..known.clone() };
    let not_granted = known.clone().policy(|agent| agent.toolsets.clear());
    let denied = known.clone().policy(|agent| {
        agent.denied_tools.insert("write_file".to_owned());
    });
    let bad_arguments = Ask { arguments: Err("no path".to_owned()), ..not_granted.clone() };
    let expected = unknown.is(Decision::Deny, "tool").for_model();
    for ask in [&not_granted, &denied, &bad_arguments] {
        assert_eq!(ask.is(Decision::Deny, "tool").for_model(), expected);
    }
    assert_eq!(unknown.verdict().smallest_grant, None);
    assert_eq!(not_granted.verdict().smallest_grant.as_deref(), Some("add `write_file` to the agent's tools"));
    assert_eq!(denied.verdict().smallest_grant.as_deref(), Some("take `write_file` off denied_tools"));
}

#[test]
fn a_tool_is_granted_by_name_or_by_its_set_and_a_denial_outranks_both() {
    let by_name = Ask::write().policy(|agent| {
        agent.toolsets.clear();
        agent.tools.insert("write_file".to_owned());
    });
    by_name.is(Decision::Allow, "autonomy");
    let both = Ask::write().policy(|agent| {
        agent.tools.insert("write_file".to_owned());
        agent.denied_tools.insert("write_file".to_owned());
    });
    both.is(Decision::Deny, "tool");
}

#[test]
fn a_name_must_equal_the_tools_byte_for_byte() {
    for name in ["Write_File", "write_file ", " write_file", "write_fil", "wr\u{ad}ite_file", ""] {
        let ask = Ask { name: name.to_owned(), ..Ask::write() };
        assert_eq!(ask.is(Decision::Deny, "tool").smallest_grant, None, "{name:?}");
    }
    let shown = Ask { name: format!("\u{202e}\n{}", "x".repeat(500)), ..Ask::write() }.verdict().reason;
    assert!(shown.len() < 200 && shown.contains("\\u{202e}\\n"), "{shown}");
}

#[test]
fn arguments_that_cannot_be_used_are_denied_with_the_reason() {
    let ask = Ask { arguments: Err("The arguments do not fit: path is missing.".to_owned()), ..Ask::write() };
    let verdict = ask.is(Decision::Deny, "arguments");
    assert_eq!(verdict.for_model(), "Refused: The arguments do not fit: path is missing. Nothing was done.");
}

#[test]
fn each_category_needs_its_flag() {
    type Flag = fn(&mut AgentConfig) -> &mut bool;
    let rows: [(Category, Effect, &str, Flag); 9] = [
        (Category::FileRead, Effect::Read, "can_read", |agent| &mut agent.can_read),
        (Category::FileWrite, Effect::Write, "can_write", |agent| &mut agent.can_write),
        (Category::FileWrite, Effect::Create, "can_create", |agent| &mut agent.can_create),
        (Category::FileDelete, Effect::Delete, "can_delete", |agent| &mut agent.can_delete),
        (Category::CodeExecute, Effect::Execute, "can_execute_code", |agent| &mut agent.can_execute_code),
        (Category::System, Effect::Execute, "can_execute_code", |agent| &mut agent.can_execute_code),
        (Category::NetworkRead, Effect::Read, "can_access_integrations", |agent| &mut agent.can_access_integrations),
        (Category::NetworkWrite, Effect::Send, "can_access_integrations", |agent| &mut agent.can_access_integrations),
        (Category::Custom, Effect::Send, "can_access_integrations", |agent| &mut agent.can_access_integrations),
    ];
    for (category, effect, flag, field) in rows {
        let mut spec = tool("it", category, effect, Action::Read);
        spec.paths.clear();
        Ask::new(spec.clone()).is(Decision::Allow, "autonomy");
        let verdict = Ask::new(spec).policy(|agent| *field(agent) = false).is(Decision::Deny, flag);
        assert_eq!(verdict.smallest_grant, Some(format!("set {flag}")));
    }
    let both: [(Effect, &str, Flag); 5] = [
        (Effect::Read, "can_read", |agent| &mut agent.can_read),
        (Effect::Create, "can_create", |agent| &mut agent.can_create),
        (Effect::Write, "can_write", |agent| &mut agent.can_write),
        (Effect::Delete, "can_delete", |agent| &mut agent.can_delete),
        (Effect::Execute, "can_execute_code", |agent| &mut agent.can_execute_code),
    ];
    for (effect, flag, field) in both {
        let mut spec = tool("it", Category::Custom, effect, Action::Read);
        spec.paths.clear();
        Ask::new(spec.clone()).is(Decision::Allow, "autonomy");
        Ask::new(spec.clone()).policy(|agent| *field(agent) = false).is(Decision::Deny, flag);
        let cut_off = |agent: &mut AgentConfig| agent.can_access_integrations = false;
        Ask::new(spec).policy(cut_off).is(Decision::Deny, "can_access_integrations");
    }
    let mut memory = tool("kv_set", Category::Memory, Effect::Write, Action::Read);
    memory.paths.clear();
    let bare = |agent: &mut AgentConfig| {
        (agent.can_read, agent.can_write, agent.can_create, agent.can_delete) = (false, false, false, false);
        (agent.can_execute_code, agent.can_access_integrations) = (false, false);
    };
    Ask::new(memory).policy(bare).is(Decision::Allow, "autonomy");
}

#[test]
fn a_write_without_a_path_needs_the_flag_to_write() {
    let mut spec = write_file();
    spec.paths.clear();
    Ask::new(spec).policy(|agent| agent.can_write = false).is(Decision::Deny, "can_write");
}

#[test]
fn a_tool_above_the_agents_level_or_outside_its_categories_is_denied() {
    let levels = [Level::None, Level::Read, Level::Write, Level::Execute, Level::Admin];
    for needed in levels {
        for held in levels {
            let ask =
                Ask::new(ToolSpec { level: needed, ..write_file() }).policy(|agent| agent.permission_level = held);
            let expected = if needed <= held { Decision::Allow } else { Decision::Deny };
            assert_eq!(ask.verdict().decision, expected, "{needed:?} {held:?}");
        }
    }
    let low = Ask::write().policy(|agent| agent.permission_level = Level::Read);
    let grant = low.is(Decision::Deny, "permission_level").smallest_grant;
    assert_eq!(grant.as_deref(), Some("permission_level: write"));
    let narrow = Ask::write().policy(|agent| agent.categories = BTreeSet::from([Category::FileRead]));
    let grant = narrow.is(Decision::Deny, "categories").smallest_grant;
    assert_eq!(grant.as_deref(), Some("categories: file_write"));
}

#[test]
fn a_path_out_of_scope_is_denied_by_the_scopes_rule() {
    for (path, rule) in [
        ("/other/a.md", "P11"),
        ("/notes/.env", "P12"),
        ("/notes/.git/config", "P14"),
        ("/notes/../other/a.md", "invalid_path"),
        ("", "invalid_path"),
        ("/notes/a\u{202e}b", "invalid_path"),
    ] {
        Ask::new(write_file()).path(path).is(Decision::Deny, rule);
    }
    Ask::write().policy(|agent| agent.scope = ScopeSpec::default()).is(Decision::Deny, "P9");
    let verdict = Ask::new(write_file()).path("/other/a.md").verdict();
    assert_eq!(verdict.smallest_grant.as_deref(), Some("scope.folders: \"/other/a.md\""));
    assert!(verdict.for_model().ends_with(". Nothing was done."), "{}", verdict.for_model());
}

#[test]
fn without_a_notebook_there_are_no_paths() {
    let lost = |ask: Ask| Ask { notebook: false, answer: Answer::Yes, ..ask };
    lost(Ask::write()).is(Decision::Deny, "notebook");
    lost(Ask::new(read_file())).is(Decision::Deny, "notebook");
    let mut memory = tool("kv_set", Category::Memory, Effect::Write, Action::Read);
    memory.paths.clear();
    lost(Ask::new(memory)).is(Decision::Allow, "approved");
}

#[test]
fn a_tool_is_shown_only_if_some_call_of_it_could_pass() {
    assert!(is_shown(&agent(), &write_file()));
    assert!(is_shown(&Ask::write().policy(|agent| agent.permission_level = Level::Write).agent, &write_file()));
    type Change = fn(&mut AgentConfig);
    let changes: [Change; 5] = [
        |agent| agent.toolsets.clear(),
        |agent| agent.denied_tools = BTreeSet::from(["write_file".to_owned()]),
        |agent| (agent.can_write, agent.can_create) = (false, false),
        |agent| agent.permission_level = Level::Read,
        |agent| agent.categories.clear(),
    ];
    for change in changes {
        let ask = Ask::write().policy(change);
        assert!(!is_shown(&ask.agent, &write_file()));
        assert_eq!(ask.verdict().decision, Decision::Deny);
    }
}

#[test]
fn paths_in_a_list_are_judged_one_by_one() {
    let many = |paths: Value| Ask::new(read_file()).path(paths);
    many(json!(["/notes/a.md", "/notes/b.md"])).is(Decision::Allow, "autonomy");
    many(json!(["/notes/a.md", "/other/b.md"])).is(Decision::Deny, "P11");
    many(json!(["/notes/a.md", ".."])).is(Decision::Deny, "invalid_path");
    many(json!([])).is(Decision::Allow, "autonomy");
}

#[test]
fn a_path_that_is_neither_text_nor_texts_is_denied() {
    for wrong in [json!(7), json!(true), json!({"path": "/notes"}), json!([["/notes"]]), json!(["/notes", null])] {
        Ask::new(read_file()).path(wrong).is(Decision::Deny, "invalid_path");
    }
}

#[test]
fn a_path_left_out_is_judged_by_the_default_of_the_schema() {
    let with_default = |default: Value| {
        let mut spec = ToolSpec { level: Level::Read, ..tool("list", Category::FileRead, Effect::Read, Action::List) };
        spec.definition.schema = json!({"properties": {"path": {"type": "string", "default": default}}});
        spec
    };
    for arguments in [json!({}), json!({"path": null})] {
        let ask = |spec| Ask { arguments: Ok(arguments.clone()), ..Ask::new(spec) };
        ask(with_default(json!("/"))).is(Decision::Deny, "P11");
        ask(with_default(json!("/notes"))).is(Decision::Allow, "autonomy");
        ask(with_default(json!(7))).is(Decision::Deny, "invalid_path");
    }
}

#[test]
fn writing_a_file_that_is_not_there_needs_create_and_one_that_is_there_needs_write() {
    let seen = |there| Ask { seen: Some(vec![("/notes/a.md", there)]), ..Ask::new(write_file()) };
    for (write, create, existing, absent) in [
        (true, true, Decision::Allow, Decision::Allow),
        (true, false, Decision::Allow, Decision::Deny),
        (false, true, Decision::Deny, Decision::Allow),
        (false, false, Decision::Deny, Decision::Deny),
    ] {
        let flags = |agent: &mut AgentConfig| (agent.can_write, agent.can_create) = (write, create);
        assert_eq!(seen(true).policy(flags).verdict().decision, existing, "{write} {create}");
        assert_eq!(seen(false).policy(flags).verdict().decision, absent, "{write} {create}");
        // Before the tool has looked, either flag lets it look; if it looked and does not say, both are needed.
        let unseen = Ask::new(write_file()).policy(flags).verdict().decision;
        assert_eq!(unseen, if write || create { Decision::Allow } else { Decision::Deny });
        let unsaid = Ask { seen: Some(Vec::new()), ..Ask::new(write_file()) }.policy(flags).verdict().decision;
        assert_eq!(unsaid, if write && create { Decision::Allow } else { Decision::Deny });
    }
}

#[test]
fn the_operations_of_the_scope_narrow_the_flags() {
    let narrowed = |agent: &mut AgentConfig| agent.scope.operations = Some(vec![Operation::Read]);
    Ask::write().policy(narrowed).is(Decision::Deny, "P16");
    Ask::new(read_file()).policy(narrowed).is(Decision::Allow, "autonomy");
}

#[test]
fn creating_what_is_there_is_denied() {
    let spec = tool("create_file", Category::FileWrite, Effect::Create, Action::Create);
    let seen = |there| Ask { seen: Some(vec![("/notes/a.md", there)]), ..Ask::new(spec.clone()) };
    seen(true).is(Decision::Deny, "P16");
    seen(false).is(Decision::Allow, "autonomy");
}

#[test]
fn a_run_lowers_the_autonomy_of_its_agent_and_never_raises_it() {
    let spec = tool("write_file", Category::FileWrite, Effect::Write, Action::Write);
    let run = |agent, own| {
        Ask { autonomy: own, ..Ask::new(spec.clone()) }.policy(move |policy| policy.autonomy = agent).verdict().decision
    };
    assert_eq!(run(Autonomy::Full, None), Decision::Allow);
    assert_eq!(run(Autonomy::Full, Some(Autonomy::Low)), Decision::Ask);
    assert_eq!(run(Autonomy::Low, Some(Autonomy::Full)), Decision::Ask);
}

#[test]
fn a_dry_run_only_reads_even_what_was_approved() {
    for effect in [Effect::Create, Effect::Write, Effect::Delete, Effect::Execute, Effect::Send] {
        let mut spec = tool("it", Category::Memory, effect, Action::Read);
        spec.paths.clear();
        let ask = Ask { effects: Effects::Dry, answer: Answer::Yes, ..Ask::new(spec) };
        ask.is(Decision::Deny, "dry_run");
    }
    Ask { effects: Effects::Dry, ..Ask::new(read_file()) }.is(Decision::Allow, "autonomy");
}

#[test]
fn what_requires_approval_asks_at_every_autonomy_and_only_for_this_once() {
    for autonomy in [Autonomy::None, Autonomy::Low, Autonomy::Medium, Autonomy::High, Autonomy::Full] {
        let ask = Ask::new(read_file()).policy(|agent| {
            agent.autonomy = autonomy;
            agent.requires_approval.insert("read_file".to_owned());
        });
        assert_eq!(ask.is(Decision::Ask, "requires_approval").scopes, [GrantScope::Once]);
        Ask { answer: Answer::Yes, ..ask }.is(Decision::Allow, "approved");
    }
}

#[test]
fn autonomy_decides_by_effect_and_by_whether_it_can_be_undone() {
    let effects = [Effect::Read, Effect::Create, Effect::Write, Effect::Delete, Effect::Execute, Effect::Send];
    // One letter per effect in that order, undoable first, then not: a allows, ? asks.
    let rows = [
        (Autonomy::None, "??????", "??????"),
        (Autonomy::Low, "a?????", "a?????"),
        (Autonomy::Medium, "aaa???", "aa????"),
        (Autonomy::High, "aaaaaa", "a?????"),
        (Autonomy::Full, "aaaaaa", "aaaaaa"),
    ];
    for (autonomy, undoable, lasting) in rows {
        for (row, can_undo) in [(undoable, true), (lasting, false)] {
            for (effect, expected) in effects.into_iter().zip(row.chars()) {
                let mut spec = tool("it", Category::Memory, effect, Action::Read);
                spec.paths.clear();
                spec.undoable = can_undo;
                let ask = Ask::new(spec).policy(|agent| agent.autonomy = autonomy);
                let decision = if expected == 'a' { Decision::Allow } else { Decision::Ask };
                let verdict = ask.is(decision, "autonomy");
                let scopes: &[_] = if expected == 'a' { &[] } else { &GrantScope::ALL };
                assert_eq!(verdict.scopes, scopes, "{autonomy:?} {effect:?} {can_undo}");
                Ask { answer: Answer::Yes, ..ask }.is(Decision::Allow, "approved");
            }
        }
    }
}

#[test]
fn writing_what_is_not_there_counts_as_creating_it() {
    let lasting = ToolSpec { undoable: false, ..write_file() };
    let seen = |there| {
        let ask = Ask { seen: Some(vec![("/notes/a.md", there)]), ..Ask::new(lasting.clone()) };
        ask.policy(|agent| agent.autonomy = Autonomy::Medium)
    };
    assert_eq!(seen(false).verdict().decision, Decision::Allow);
    assert_eq!(seen(true).verdict().decision, Decision::Ask);
    // A tool that has looked and names nothing has not said that there is nothing.
    let nothing = Ask { seen: Some(Vec::new()), arguments: Ok(json!({})), ..seen(true) };
    nothing.is(Decision::Ask, "autonomy");
}

#[test]
fn a_tool_that_declares_nothing_asks_unless_nothing_does_and_needs_the_highest_level() {
    let definition = ToolDefinition { name: "it".to_owned(), description: String::new(), schema: json!({}) };
    let granted = |agent: &mut AgentConfig| {
        agent.toolsets.insert("custom".to_owned());
        agent.autonomy = Autonomy::High;
    };
    let ask = Ask::new(ToolSpec::undeclared(definition)).policy(granted);
    ask.is(Decision::Ask, "autonomy");
    ask.clone().policy(|agent| agent.permission_level = Level::Execute).is(Decision::Deny, "permission_level");
    ask.policy(|agent| agent.can_access_integrations = false).is(Decision::Deny, "can_access_integrations");
}

#[test]
fn a_denial_outranks_an_approval_a_grant_and_full_autonomy() {
    let sure = Ask { answer: Answer::Yes, rules: vec![granted("/notes/a.md")], ..Ask::write() };
    sure.is(Decision::Allow, "approved");
    sure.clone().path("/other/a.md").is(Decision::Deny, "P11");
    sure.clone().policy(|agent| agent.can_write = false).is(Decision::Deny, "P16");
    sure.policy(|agent| agent.permission_level = Level::None).is(Decision::Deny, "permission_level");
}

/// The rule that a lasting yes to a write of this path writes.
fn granted(path: &str) -> Rule {
    let touch = Touch { path: path.to_owned(), changes: true };
    lasting("write_file", &json!({ "path": path }), &[touch])
}

fn lasting(tool: &str, arguments: &Value, touches: &[Touch]) -> Rule {
    Rule { when: Match::of_call(arguments, touches, &[]), ..rule(Decision::Allow, tool, "/") }
}

fn by_rule(rule: &Rule) -> String {
    format!("rule {}", rule.id)
}

#[test]
fn a_lasting_yes_covers_the_same_tool_in_the_same_folder_only() {
    let yes = granted("/notes/a.md");
    let by = by_rule(&yes);
    let low = |path: &'static str| {
        let ask = Ask { seen: Some(vec![(path, true)]), rules: vec![yes.clone()], ..Ask::new(write_file()) };
        ask.path(path).policy(|agent| agent.autonomy = Autonomy::Low)
    };
    low("/notes/a.md").is(Decision::Allow, &by);
    low("/notes/b.md").is(Decision::Allow, &by);
    low("/notes/sub/b.md").is(Decision::Ask, "autonomy");
    low("/other/b.md").is(Decision::Deny, "P11");
    let mut other_tool = low("/notes/b.md");
    other_tool.spec = Some(tool("append_file", Category::FileWrite, Effect::Write, Action::Write));
    other_tool.name = "append_file".to_owned();
    other_tool.is(Decision::Ask, "autonomy");
    let mut two = low("/notes/b.md");
    two.seen = Some(vec![("/notes/b.md", true), ("/notes/sub/c.md", true)]);
    two.is(Decision::Ask, "autonomy");
}

#[test]
fn a_lasting_yes_is_for_its_run_or_its_chat_where_it_says_so() {
    let here = caller();
    let low = |rule: Rule| Ask { rules: vec![rule], ..Ask::write() }.policy(|agent| agent.autonomy = Autonomy::Low);
    let yes = granted("/notes/a.md");
    let by = by_rule(&yes);
    low(Rule { run: Some(here.run), chat: Some(here.chat), ..yes.clone() }).is(Decision::Allow, &by);
    let elsewhere = Time::from_millis(5);
    low(Rule { run: Some(RunId::new(elsewhere, [9; 10])), ..yes.clone() }).is(Decision::Ask, "autonomy");
    low(Rule { chat: Some(ChatId::new(elsewhere, [9; 10])), ..yes.clone() }).is(Decision::Ask, "autonomy");
    low(Rule { expires_at: Some(here.now), ..yes }).is(Decision::Ask, "autonomy");
}

#[test]
fn a_lasting_yes_does_not_lift_what_requires_approval() {
    let ask = Ask { rules: vec![granted("/notes/a.md")], ..Ask::write() };
    let ask = ask.policy(|agent| {
        agent.requires_approval.insert("write_file".to_owned());
    });
    ask.is(Decision::Ask, "requires_approval");
}

#[test]
fn a_lasting_yes_without_a_path_covers_the_very_same_arguments_only() {
    let mut spec = tool("kv_set", Category::Memory, Effect::Write, Action::Read);
    spec.paths.clear();
    let yes = lasting("kv_set", &json!({"value": 1, "key": "x"}), &[]);
    let by = by_rule(&yes);
    let low = |arguments: Value| {
        let ask = Ask { arguments: Ok(arguments), rules: vec![yes.clone()], ..Ask::new(spec.clone()) };
        ask.policy(|agent| agent.autonomy = Autonomy::Low)
    };
    low(json!({"key": "x", "value": 1})).is(Decision::Allow, &by);
    low(json!({"key": "y", "value": 1})).is(Decision::Ask, "autonomy");
    low(json!({"key": "x", "value": 1, "more": 1})).is(Decision::Ask, "autonomy");
    let mut stated = low(json!({"key": "y", "value": 1}));
    stated.seen = Some(vec![("kv:y", true)]);
    stated.is(Decision::Ask, "autonomy");
}

#[test]
fn a_rule_about_folders_is_not_asked_about_what_is_no_path() {
    let mut spec = tool("kv_set", Category::Memory, Effect::Write, Action::Read);
    spec.paths.clear();
    let everywhere = vec![rule(Decision::Deny, "kv_set", "/")];
    let ask = Ask { arguments: Ok(json!({"key": "y"})), rules: everywhere, ..Ask::new(spec) };
    Ask { seen: Some(vec![("kv:y", true)]), ..ask.clone() }.is(Decision::Allow, "autonomy");
    let path = Ask { seen: Some(vec![("/notes/a.md", true)]), ..ask };
    assert_eq!(path.verdict().decision, Decision::Deny, "what the tool found at a path is asked about");
}

#[test]
fn creating_may_be_looked_at_before_anybody_knows_what_is_there() {
    let create = Ask::new(tool("create_file", Category::FileWrite, Effect::Create, Action::Create));
    create.is(Decision::Allow, "autonomy");
    Ask { seen: Some(vec![("/notes/a.md", true)]), ..create }.is(Decision::Deny, "P16");
}

#[test]
fn risk_is_what_cannot_be_taken_back() {
    let of = |effect, undoable| risk(&ToolSpec { undoable, ..tool("it", Category::Memory, effect, Action::Read) });
    for undoable in [true, false] {
        assert_eq!(of(Effect::Read, undoable), Risk::Low);
        assert_eq!(of(Effect::Create, undoable), Risk::Low);
        assert_eq!(of(Effect::Execute, undoable), Risk::High);
        assert_eq!(of(Effect::Send, undoable), Risk::High);
    }
    for effect in [Effect::Write, Effect::Delete] {
        assert_eq!((of(effect, true), of(effect, false)), (Risk::Medium, Risk::High));
    }
}

#[test]
fn t8_a_fingerprint_changes_with_everything_it_binds() {
    let spec = write_file();
    let arguments = json!({"path": "/notes/a.md", "content": "x"});
    let target = crate::given::target(&["/notes/a.md"]);
    let print = |spec: &ToolSpec, arguments: &Value, target: &Target| {
        fingerprint(run_id(), &call_id("a"), spec, arguments, target)
    };
    let original = print(&spec, &arguments, &target);
    let reordered: Value = serde_json::from_str("{\"content\":\"x\",\"path\":\"/notes/a.md\"}").unwrap();
    assert_eq!(print(&spec, &reordered, &target), original, "the order of keys means nothing");
    let renamed =
        ToolSpec { definition: ToolDefinition { name: "other".to_owned(), ..spec.definition.clone() }, ..spec.clone() };
    let redescribed = ToolSpec {
        definition: ToolDefinition { description: "Else.".to_owned(), ..spec.definition.clone() },
        ..spec.clone()
    };
    let reshaped =
        ToolSpec { definition: ToolDefinition { schema: json!({}), ..spec.definition.clone() }, ..spec.clone() };
    let there = Target(BTreeMap::from([("/notes/a.md".to_owned(), Some(Hash::of(b"there")))]));
    let changed = Target(BTreeMap::from([("/notes/a.md".to_owned(), Some(Hash::of(b"changed")))]));
    let other_run = adjutant_core::id::RunId::new(crate::given::START, [9; 10]);
    let prints = [
        fingerprint(other_run, &call_id("a"), &spec, &arguments, &target),
        fingerprint(run_id(), &call_id("b"), &spec, &arguments, &target),
        print(&renamed, &arguments, &target),
        print(&redescribed, &arguments, &target),
        print(&reshaped, &arguments, &target),
        print(&spec, &json!({"path": "/notes/a.md", "content": "y"}), &target),
        print(&spec, &json!({"path": "/notes/a.md"}), &target),
        print(&spec, &arguments, &there),
        print(&spec, &arguments, &changed),
        print(&spec, &arguments, &Target::default()),
    ];
    let different: BTreeSet<_> = prints.iter().chain([&original]).collect();
    assert_eq!(different.len(), prints.len() + 1);
}

#[test]
fn the_paths_a_call_touches_are_those_it_is_judged_by() {
    let mut spec = write_file();
    spec.paths.insert(Arc::from("from"), Action::Copy);
    let found = touches(&spec, &json!({"path": "notes//a.md", "from": ["/b.md", "..", "/c.md"]}));
    let touch = |path: &str, changes| Touch { path: path.to_owned(), changes };
    assert_eq!(found, [touch("/b.md", false), touch("/c.md", false), touch("/notes/a.md", true)]);
    assert_eq!(touches(&spec, &json!({"path": 7})), []);
}

#[test]
fn the_verdict_is_the_same_for_the_same_question() {
    let ask = Ask::write().policy(|agent| agent.autonomy = Autonomy::Low);
    assert_eq!(ask.verdict(), ask.verdict());
    let stored: Verdict = serde_json::from_value(serde_json::to_value(ask.verdict()).unwrap()).unwrap();
    assert_eq!(stored, ask.verdict());
}

fn asks() -> impl Strategy<Value = Ask> {
    let effects = [Effect::Read, Effect::Create, Effect::Write, Effect::Delete, Effect::Execute, Effect::Send];
    let categories =
        [Category::FileRead, Category::FileWrite, Category::FileDelete, Category::Memory, Category::Custom];
    let actions = [Action::Read, Action::List, Action::Write, Action::Create, Action::Delete];
    let paths = ["/notes/a.md", "/notes", "/other/a.md", "/notes/.env", ".."];
    let levels = [Autonomy::None, Autonomy::Low, Autonomy::Medium, Autonomy::High, Autonomy::Full];
    let spec = (select(&effects), select(&categories), select(&actions), any::<bool>());
    let call = (
        select(&paths),
        any::<Option<bool>>(),
        any::<bool>(),
        select(&[Answer::None, Answer::Edited, Answer::Yes][..]),
        select(&levels),
    );
    (spec, call).prop_map(|((effect, category, action, undoable), (path, seen, granted_before, answer, autonomy))| {
        let spec = ToolSpec { undoable, ..tool("it", category, effect, action) };
        let seen = seen.map(|there| vec![(path, there)]);
        let before = || Rule { tool: "it".to_owned(), ..granted("/notes/x.md") };
        let rules = if granted_before { vec![before()] } else { Vec::new() };
        let ask = Ask { seen, rules, answer, ..Ask::new(spec) };
        ask.path(path).policy(|agent| agent.autonomy = autonomy)
    })
}

fn select<T: Clone + std::fmt::Debug + 'static>(options: &[T]) -> impl Strategy<Value = T> + use<T> {
    proptest::sample::select(options.to_vec())
}

/// The ways to take something away from an agent.
const NARROWINGS: [fn(&mut Ask); 21] = [
    |ask| ask.life = Life::Over,
    |ask| ask.definition = Definition::Changed,
    |ask| ask.agent.is_active = false,
    |ask| ask.agent.can_read = false,
    |ask| ask.agent.can_write = false,
    |ask| ask.agent.can_create = false,
    |ask| ask.agent.can_delete = false,
    |ask| ask.agent.can_access_integrations = false,
    |ask| ask.agent.permission_level = Level::Read,
    |ask| ask.agent.categories.retain(|category| *category == Category::FileRead),
    |ask| ask.agent.toolsets.clear(),
    |ask| ask.agent.denied_tools = BTreeSet::from(["it".to_owned()]),
    |ask| ask.agent.requires_approval = BTreeSet::from(["it".to_owned()]),
    |ask| ask.agent.autonomy = Autonomy::None,
    |ask| ask.agent.scope.operations = Some(vec![Operation::Read]),
    |ask| ask.agent.scope.file_types = Some(vec!["*.txt".to_owned()]),
    |ask| ask.agent.scope.folders = None,
    |ask| ask.effects = Effects::Dry,
    |ask| ask.notebook = false,
    |ask| ask.agent.content_filter = filter("block"),
    |ask| ask.agent.content_filter = filter("ask"),
];

/// A filter that finds every path.
fn filter(action: &str) -> Vec<adjutant_core::guard::filter::FilterEntry> {
    serde_json::from_value(json!([{"pattern": "/", "points": ["input"], "action": action}])).unwrap()
}

#[test]
fn what_the_content_filter_blocks_is_denied_and_what_it_asks_about_asks_whatever_the_autonomy() {
    Ask::write().policy(|agent| agent.content_filter = filter("block")).is(Decision::Deny, "content_filter");
    let asks = Ask::write().policy(|agent| agent.content_filter = filter("ask"));
    assert_eq!(asks.is(Decision::Ask, "content_filter").scopes, [GrantScope::Once]);
    Ask { answer: Answer::Yes, ..asks }.is(Decision::Allow, "approved");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn taking_something_away_never_allows_more(ask in asks()) {
        let before = ask.verdict();
        for (index, narrow) in NARROWINGS.iter().enumerate() {
            let mut narrowed = ask.clone();
            narrow(&mut narrowed);
            let after = narrowed.verdict();
            prop_assert!(after.decision >= before.decision, "{index}: {before:?} became {after:?}");
        }
    }

    #[test]
    fn a_yes_lifts_an_ask_and_never_a_denial(ask in asks()) {
        let without = Ask { answer: Answer::None, rules: Vec::new(), ..ask.clone() }.verdict();
        let with = Ask { answer: Answer::Yes, ..ask }.verdict();
        prop_assert_eq!(with.decision == Decision::Deny, without.decision == Decision::Deny);
        prop_assert_ne!(with.decision, Decision::Ask);
    }

    #[test]
    fn only_what_autonomy_alone_asks_offers_more_than_once(ask in asks()) {
        let verdict = ask.verdict();
        prop_assert_eq!(!verdict.scopes.is_empty(), verdict.decision == Decision::Ask);
        prop_assert_eq!(verdict.scopes.len() == GrantScope::ALL.len(), verdict.decision == Decision::Ask && verdict.rule == "autonomy");
        prop_assert!(!verdict.reason.is_empty() && !verdict.rule.is_empty());
    }
}
