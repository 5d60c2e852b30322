//! Cases of `check calls`: one model turn in a world, judged by the guard that judges real calls. Nothing runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use serde_json::{Map, Value};

use super::tools::Toolset;
use super::world::{self, CallsCase, CallsContext, World};
use super::{BadCase, finished, line, read};
use crate::guard::arguments;
use crate::guard::filter::Filter;
use crate::guard::host::Url;
use crate::guard::judge::{
    Answer, Authority, Caller, Decision, Definition, Life, Outside, Place, Question, Verdict, judge, over_limit,
    touches,
};
use crate::guard::meta;
use crate::guard::path::NotePath;
use crate::guard::policy::AgentConfig;
use crate::guard::rule::Rules;
use crate::guard::scope::{Action, Scope};
use crate::id::{AgentId, ChatId, RunId};
use crate::limits;
use crate::run::event::Effects;
use crate::time::Time;
use crate::tool::{Prepared, Target, ToolSpec, folder_hash};

/// Characters of an id (T5).
const ID_CHARS: usize = 128;

/// What stands for a lone surrogate, which no text of ours can hold; a call that holds it is refused (T3).
pub const LONE_SURROGATE: char = '\u{10FFFE}';

/// A world made ready for many turns.
#[derive(Debug)]
pub struct Stage {
    world: World,
    agent: AgentConfig,
    scope: Scope,
    outside: Outside,
    tools: Toolset,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is executed.
    Run,
    /// An approval waits; nothing happened.
    Hold,
    /// It is not executed.
    Refuse,
}

impl Outcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Hold => "hold",
            Self::Refuse => "refuse",
        }
    }
}

/// A call as it was emitted, once it is known to be one.
#[derive(Debug)]
struct Emitted {
    name: String,
    arguments: Value,
}

/// What is left while a turn is judged.
struct Left {
    calls: usize,
    spent: usize,
    rate: Rates,
    asked: Vec<(String, Value)>,
}

enum Rates {
    Unlimited,
    All(u64),
    PerTool(Map<String, Value>),
}

impl Stage {
    /// Makes a world ready.
    ///
    /// # Errors
    /// Fails when the world cannot be used: a schema that is none, an autonomy that does not exist.
    pub fn new(world: World) -> Result<Self, BadCase> {
        let agent = super::tools::agent(&world)?;
        let scope = super::tools::scope(&world);
        let outside = super::tools::outside(&world);
        let tools = Toolset::new(&world)?;
        Ok(Self { world, agent, scope, outside, tools })
    }

    /// Judges a case and compares it with what it expects.
    ///
    /// # Errors
    /// Fails when the case cannot be read.
    pub fn check(&self, case: &Value) -> Result<Value, BadCase> {
        let parsed: CallsCase = read(case)?;
        let answers = self.turn(&parsed);
        let outcomes: Vec<&str> = answers.iter().map(|(outcome, _)| outcome.word()).collect();
        let pass = parsed.expect.as_ref().map(|expect| {
            let wanted = |item: &Value| item.as_str().or_else(|| item.get("outcome")?.as_str()).map(str::to_owned);
            expect.iter().map(wanted).eq(outcomes.iter().map(|outcome| Some((*outcome).to_owned())))
        });
        let mut line = line(case);
        line.insert("outcomes".to_owned(), outcomes.into());
        let why = |verdict: &Verdict| format!("{}: {}", verdict.rule, verdict.reason);
        line.insert("reasons".to_owned(), answers.iter().map(|(_, verdict)| why(verdict)).collect());
        Ok(finished(line, pass))
    }

    /// Judges every call of a turn, in order. Whatever stands in the text beside them is only text.
    #[must_use]
    pub fn turn(&self, case: &CallsCase) -> Vec<(Outcome, Verdict)> {
        let context = &case.context;
        let ids = ids(&case.turn, context);
        let limits = &self.world.limits;
        let per_run = limits.calls_per_run.unwrap_or(limits::TOOL_CALLS as usize);
        let mut left = Left {
            calls: context.calls_left.unwrap_or(per_run),
            spent: 0,
            rate: Rates::of(context.rate_left.as_ref()),
            asked: context
                .pending
                .iter()
                .filter_map(|call| emitted(call).ok())
                .map(|call| (call.name, call.arguments))
                .collect(),
        };
        let mut answers = Vec::new();
        for (index, (call, id)) in case.turn.iter().zip(ids).enumerate() {
            let verdict = self.call(call, id, index, context, &mut left);
            let outcome = match verdict.decision {
                Decision::Allow => Outcome::Run,
                Decision::Ask => Outcome::Hold,
                Decision::Deny => Outcome::Refuse,
            };
            answers.push((outcome, verdict));
        }
        answers
    }

    fn call(
        &self,
        call: &Value,
        id: Result<(), &'static str>,
        index: usize,
        context: &CallsContext,
        left: &mut Left,
    ) -> Verdict {
        let per_turn = self.world.limits.calls_per_turn.unwrap_or(limits::CALLS_PER_TURN);
        let place = Place { index, per_turn, cut_off: false, spent: left.spent, most: left.calls };
        let judged = match (over_limit(&place), id, emitted(call)) {
            (Some(full), _, _) => Err(full),
            (None, Err(problem), _) => Err(Verdict::deny("T5", problem, None)),
            (None, Ok(()), Err(problem)) => Err(Verdict::deny("T4", problem, None)),
            (None, Ok(()), Ok(call)) => Ok(call),
        };
        let (name, arguments, verdict) = match judged.and_then(|call| self.unwrapped(call)) {
            Ok(call) => {
                let verdict = self.verdict(&call, context);
                (call.name, call.arguments, verdict)
            }
            Err(refused) => return refused,
        };
        if verdict.decision == Decision::Deny {
            return verdict;
        }
        if !left.rate.has(&name) {
            return Verdict::deny("rate", format!("`{name}` was called too often."), None);
        }
        left.spent += 1;
        if verdict.decision == Decision::Allow {
            left.rate.take(&name);
            return verdict;
        }
        // Equal calls make one approval: a later emission never uses the answer to an earlier one (T8).
        if left.asked.contains(&(name.clone(), arguments.clone())) {
            return Verdict { reason: "The same call waits for an answer already.".to_owned(), ..verdict };
        }
        left.asked.push((name, arguments));
        verdict
    }

    /// The tool that is really called: `use_tool` is judged as the one it names (T1).
    fn unwrapped(&self, call: Emitted) -> Result<Emitted, Verdict> {
        let limits = &self.world.limits;
        let within = limits.argument_depth.is_none_or(|levels| arguments::fits(&call.arguments, levels))
            && limits.argument_bytes.is_none_or(|bytes| call.arguments.to_string().len() <= bytes);
        if !within {
            return Err(Verdict::deny("arguments", "The arguments are too long or nested too deep.", None));
        }
        if call.name != meta::USE_TOOL || !self.tools.has(meta::USE_TOOL) {
            return Ok(call);
        }
        let fits = self.tools.fit(meta::USE_TOOL, &call.arguments);
        let inner = meta::inner(&call.arguments).filter(|(name, _)| fits.is_ok() && !self.tools.is_meta(name));
        match inner {
            Some((name, arguments)) => Ok(Emitted { name: name.to_owned(), arguments: arguments.clone() }),
            None => Ok(call),
        }
    }

    fn verdict(&self, call: &Emitted, context: &CallsContext) -> Verdict {
        let spec = self.tools.spec(&call.name);
        let fits = self.tools.fit(&call.name, &call.arguments);
        let running = context.run_state.as_deref().is_none_or(|state| state.eq_ignore_ascii_case("running"));
        let changed = context.tools_changed.contains(&call.name);
        let prepared = spec.map(|spec| prepared(spec, &call.arguments, context));
        let verdict = judge(&Question {
            agent: &self.agent,
            scope: &self.scope,
            tool: &call.name,
            spec,
            arguments: fits.as_ref().map(|()| &call.arguments).map_err(String::as_str),
            prepared: prepared.as_ref(),
            life: if running { Life::Running } else { Life::Over },
            definition: if changed { Definition::Changed } else { Definition::AsPinned },
            outside: &self.outside,
            filter: Filter::none(),
            effects: Effects::Live,
            autonomy: None,
            notebook: true,
            labels: world::labels(&context.labels),
            caller: nobody(),
            rules: &Rules::default(),
            authority: Authority::Acts,
            answer: Answer::None,
        });
        match spec {
            Some(spec) if verdict.decision != Decision::Deny => {
                self.stopped_outside(spec, &call.arguments, context).unwrap_or(verdict)
            }
            Some(_) | None => verdict,
        }
    }

    /// What the file layer and the connector would refuse: links, things that are not what the action is about, addresses
    /// that are not public.
    fn stopped_outside(&self, spec: &ToolSpec, arguments: &Value, context: &CallsContext) -> Option<Verdict> {
        let links: BTreeSet<_> = context.fs.symlinks.keys().filter_map(|link| NotePath::parse(link).ok()).collect();
        let files: BTreeSet<_> = context.fs.files.iter().filter_map(|file| NotePath::parse(file).ok()).collect();
        let lists = spec.paths.values().any(|action| *action == Action::List);
        for touch in touches(spec, arguments) {
            let Ok(path) = NotePath::parse(&touch.path) else { continue };
            let mut way = std::iter::successors(Some(path.clone()), NotePath::parent);
            if let Some(link) = way.find(|step| links.contains(step)) {
                return Some(Verdict::deny("P8", format!("{link} is a link, and links are never followed."), None));
            }
            let mut folders = std::iter::successors(path.parent(), NotePath::parent);
            let in_a_file = folders.any(|folder| files.contains(&folder));
            if in_a_file || (lists && files.contains(&path)) {
                return Some(Verdict::deny("P13", format!("A file stands on the way to {path}."), None));
            }
        }
        let urls = spec.checks.urls.iter().filter_map(|name| arguments.get(&**name));
        let texts =
            urls.flat_map(|value| if let Value::Array(items) = value { items.iter().collect() } else { vec![value] });
        texts.filter_map(Value::as_str).find_map(|text| {
            let checked = Url::parse(text).and_then(|url| {
                let answers: Vec<IpAddr> = self.addresses(url.host());
                self.outside.hosts.check_addresses(&url, &answers)
            });
            checked.err().map(|denied| Verdict::deny(denied.rule, denied.reason, denied.smallest_grant))
        })
    }

    fn addresses(&self, host: &str) -> Vec<IpAddr> {
        let answers = self.world.dns.get(host);
        // An answer that is no address is none that may be connected to.
        let address = |text: &String| text.parse().unwrap_or(IpAddr::from([0, 0, 0, 0]));
        answers.into_iter().flatten().map(address).collect()
    }
}

impl Rates {
    fn of(value: Option<&Value>) -> Self {
        match value {
            Some(Value::Object(tools)) => Self::PerTool(tools.clone()),
            Some(Value::Null) | None => Self::Unlimited,
            // What is not a number leaves nothing.
            Some(other) => Self::All(other.as_u64().unwrap_or(0)),
        }
    }

    fn has(&self, tool: &str) -> bool {
        match self {
            Self::Unlimited => true,
            Self::All(left) => *left > 0,
            Self::PerTool(tools) => tools.get(tool).is_none_or(|left| left.as_u64().is_some_and(|left| left > 0)),
        }
    }

    fn take(&mut self, tool: &str) {
        match self {
            Self::Unlimited => {}
            Self::All(left) => *left = left.saturating_sub(1),
            Self::PerTool(tools) => {
                if let Some(left) = tools.get_mut(tool) {
                    *left = left.as_u64().unwrap_or(0).saturating_sub(1).into();
                }
            }
        }
    }
}

/// Reads the call object. It has an id, a name, arguments and a type, and nothing else (T4).
fn emitted(call: &Value) -> Result<Emitted, String> {
    let fields = call.as_object().ok_or("A call is an object.")?;
    let known = ["id", "name", "arguments", "arguments_raw", "type"];
    if let Some(unknown) = fields.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("A call has no field {unknown:?}."));
    }
    if fields.get("type").is_some_and(|kind| !kind.is_string()) {
        return Err("The type of a call is a text.".to_owned());
    }
    let name = fields.get("name").and_then(Value::as_str).ok_or("A call has a name.")?;
    let arguments = match (fields.get("arguments"), fields.get("arguments_raw").map(Value::as_str)) {
        (Some(value), None) => arguments::accept(value.clone()),
        (None, Some(Some(text))) => arguments::parse(text),
        (Some(_), Some(_)) | (None, None | Some(None)) => Err(arguments::ArgumentError::NotAnObject),
    };
    let arguments = arguments.map_err(|bad| format!("The arguments cannot be used: {bad}."))?;
    if arguments.to_string().contains(LONE_SURROGATE) || name.contains(LONE_SURROGATE) {
        return Err("The arguments hold half a character.".to_owned());
    }
    Ok(Emitted { name: name.to_owned(), arguments })
}

/// Which ids are good: none given, or visible ASCII that nobody else uses (T5).
fn ids(turn: &[Value], context: &CallsContext) -> Vec<Result<(), &'static str>> {
    let given = |call: &Value| match call.get("id") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if id.is_empty() => Ok(None),
        Some(Value::String(id)) => Ok(Some(id.clone())),
        Some(_) => Err("An id is a text."),
    };
    let in_run = context.pending.iter().chain(&context.approved).filter_map(|call| given(call).ok()?);
    let used: BTreeSet<String> = context.used_ids.iter().cloned().chain(in_run).collect();
    let ids: Vec<_> = turn.iter().map(given).collect();
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for id in ids.iter().flatten().flatten() {
        *seen.entry(id).or_default() += 1;
    }
    ids.iter()
        .map(|id| match id {
            Err(problem) => Err(*problem),
            Ok(None) => Ok(()),
            Ok(Some(id)) if id.len() > ID_CHARS || !id.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err("An id is 1 to 128 visible ASCII characters.")
            }
            Ok(Some(id)) if seen.get(id.as_str()).is_some_and(|times| *times > 1) => {
                Err("Another call of the turn has the same id.")
            }
            Ok(Some(id)) if used.contains(id) => Err("The run has used this id before."),
            Ok(Some(_)) => Ok(()),
        })
        .collect()
}

/// What a tool would see: a path that is not among the files is not there for writing and creating, and is for the rest.
fn prepared(spec: &ToolSpec, arguments: &Value, context: &CallsContext) -> Prepared {
    let files: BTreeSet<_> = context.fs.files.iter().filter_map(|file| NotePath::parse(file).ok()).collect();
    let makes = spec.paths.values().any(|action| matches!(action, Action::Write | Action::Create));
    let state = |path: String| {
        let parsed = NotePath::parse(&path).ok();
        let there = parsed.as_ref().is_some_and(|path| files.contains(path));
        let folder = parsed.is_some_and(|path| files.iter().any(|file| *file != path && file.is_within(&path)));
        let hash = match (folder, there || !makes) {
            (true, _) => Some(folder_hash()),
            (false, true) => Some(crate::content::Hash::of(path.as_bytes())),
            (false, false) => None,
        };
        (path, hash)
    };
    let target = touches(spec, arguments).into_iter().map(|touch| state(touch.path)).collect();
    Prepared { target: Target(target), ..Prepared::default() }
}

/// A caller that no rule names: a world has no standing rules.
fn nobody() -> Caller {
    let now = Time::from_millis(0);
    let (agent, chat, run) = (AgentId::new(now, [0; 10]), ChatId::new(now, [0; 10]), RunId::new(now, [0; 10]));
    Caller { agent, chat, run, notebook: None, now }
}
