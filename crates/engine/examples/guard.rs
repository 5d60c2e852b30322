//! Measures the guard: one verdict for an agent with many rules and folder patterns, and a survey of a large notebook.
//! Asserts nothing: a figure is for a person to compare.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use adjutant_core::guard::filter::Filter;
use adjutant_core::guard::judge::{Answer, Authority, Caller, Decision, Definition, Life, Outside, Question, judge};
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::policy::{AgentConfig, AgentSpec, Autonomy};
use adjutant_core::guard::rule::{Match, Rule, Rules};
use adjutant_core::guard::scope::{FolderEntry, Kind, ScopeSpec};
use adjutant_core::guard::survey::{Forbidden, Reached, Survey};
use adjutant_core::id::{AgentId, ChatId, RuleId, RunId, UserId};
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::run::event::Effects;
use adjutant_core::time::Time;
use adjutant_engine::tools::notebook::Visit;
use adjutant_engine::tools::{Notebook, Registry};
use serde_json::json;

const RULES: usize = 200;
const PATTERNS: usize = 50;
const VERDICTS: u32 = 20_000;
const FOLDERS: usize = 100;
const FILES: usize = 1000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let agent = agent()?;
    let folder = |n: usize| Match { folders: vec![format!("/elsewhere-{n}/**/*.md")], ..Match::default() };
    let argument = |n: usize| Match {
        arguments: [("path".to_owned(), format!("/elsewhere-{n}/*.md"))].into(),
        ..Match::default()
    };
    verdicts(&agent, "rules", &rules(folder))?;
    verdicts(&agent, "argument rules", &rules(argument))?;
    survey(&agent, &rules(folder))
}

#[allow(clippy::print_stdout, reason = "a table for a person is what a bench is for")]
fn say(line: &str) {
    println!("{line}");
}

/// An agent whose last pattern is the one that fits.
fn agent() -> Result<AgentConfig, Box<dyn std::error::Error>> {
    let folders = (0..PATTERNS).map(|n| FolderEntry::from(format!("/folder-{n}/**/[a-z]*").as_str()));
    let spec = AgentSpec {
        name: "Bench".to_owned(),
        scope: Some(ScopeSpec { folders: Some(folders.collect()), ..ScopeSpec::default() }),
        can_write: Some(true),
        autonomy: Some(Autonomy::Low),
        ..AgentSpec::default()
    };
    spec.complete().map_err(|problems| format!("{problems:?}").into())
}

/// The rules of a workspace where much is forbidden.
fn rules(when: impl Fn(usize) -> Match) -> Rules {
    let now = Time::from_millis(1);
    let rule = |n: usize| Rule {
        id: RuleId::new(now, [u8::try_from(n % 256).unwrap_or(0); 10]),
        owner: UserId::new(now, [0; 10]),
        agent: None,
        chat: None,
        run: None,
        notebook: None,
        tool: "write_file".to_owned(),
        when: when(n),
        decision: Decision::Deny,
        expires_at: None,
        created_at: now,
        note: String::new(),
        origin: adjutant_core::guard::rule::Origin::default(),
        must_allow: Vec::new(),
        must_deny: Vec::new(),
    };
    Rules::new((0..RULES).map(rule))
}

fn caller() -> Caller {
    let now = Time::from_millis(1);
    let (agent, chat, run) = (AgentId::new(now, [0; 10]), ChatId::new(now, [0; 10]), RunId::new(now, [0; 10]));
    Caller { agent, chat, run, notebook: None, now }
}

fn verdicts(agent: &AgentConfig, kind: &str, rules: &Rules) -> Result<(), Box<dyn std::error::Error>> {
    let (scope, tools) = (agent.compile_scope(), Registry::builtin());
    let tool = tools.get("write_file").ok_or("there is no write_file")?;
    let arguments = json!({"path": format!("/folder-{}/deep/er/note.md", PATTERNS - 1), "content": "text"});
    let question = Question {
        agent,
        scope: &scope,
        tool: "write_file",
        spec: Some(tool.spec()),
        arguments: Ok(&arguments),
        prepared: None,
        life: Life::Running,
        definition: Definition::AsPinned,
        outside: &Outside::default(),
        filter: Filter::none(),
        effects: Effects::Live,
        autonomy: None,
        notebook: true,
        labels: Labels::NONE,
        caller: caller(),
        rules,
        authority: Authority::Acts,
        answer: Answer::None,
    };
    let from = Instant::now();
    for _ in 0..VERDICTS {
        black_box(judge(black_box(&question)));
    }
    let each = from.elapsed() / VERDICTS;
    say(&format!(
        "verdict, {RULES} {kind}, {PATTERNS} patterns   {each:>10.1?}   ({})",
        judge(&question).decision.word()
    ));
    Ok(())
}

fn survey(agent: &AgentConfig, rules: &Rules) -> Result<(), Box<dyn std::error::Error>> {
    let place = tempfile::tempdir()?;
    for folder in 0..FOLDERS {
        let folder = place.path().join(format!("folder-{folder}"));
        std::fs::create_dir(&folder)?;
        for file in 0..FILES {
            std::fs::File::create(folder.join(format!("note-{file}.md")))?;
        }
    }
    let notebook = Notebook::open(place.path())?;
    let write = rules.forbidden(&caller(), "write_file", "path");
    let forbidden = Forbidden { write, ..Forbidden::default() };
    let reached = Reached { scope: Arc::new(agent.compile_scope()), forbidden };
    let from = Instant::now();
    let mut survey = Survey::default();
    survey.add(&reached, &NotePath::root(), Kind::Dir);
    notebook.walk(&NotePath::root(), limits::WALK_ENTRIES, &mut |entry| {
        survey.add(&reached, &entry.path, entry.kind);
        Visit::Enter
    })?;
    let took = from.elapsed();
    say(&format!(
        "reach, {} entries, {RULES} rules, {PATTERNS} patterns   {took:>10.1?}   ({} readable)",
        survey.entries, survey.read.count
    ));
    Ok(())
}
