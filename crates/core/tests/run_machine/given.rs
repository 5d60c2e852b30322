//! What a story is told with: a run that events are added to, one after the other, and short ways to write them.

use std::collections::BTreeMap;

use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::judge::{Decision as Judgement, Verdict};
use adjutant_core::guard::permit::idempotency_key;
use adjutant_core::guard::rule::Match;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::message::FinishReason;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::options::ModelOptions;
use adjutant_core::run::command::Decide;
use adjutant_core::run::event::{
    Actor, ApprovalAsked, ApprovalDecided, ApprovalKind, CallEnded, CallInDoubt, CallJudged, CallProposed, CallStarted,
    Decision, DoubtOutcome, Effects, EndStatus, Event, GrantScope, InDoubtResolved, ModelAnswered, ModelFailed,
    ModelRequested, RunEnded, RunLimits, RunStarted, Said,
};
use adjutant_core::run::state::{Call, Impossible, State};
use adjutant_core::run::step::{Settlement, Step, step};
use adjutant_core::time::Time;
use adjutant_core::tool::{Prepared, Recovery, Target, Touch};

/// When every story begins.
pub(crate) const START: Time = Time::from_millis(1_700_000_000_000);
/// How long an approval of a story waits, in milliseconds.
pub(crate) const PATIENCE: i64 = 1000;

/// A moment of a story, in milliseconds after its beginning.
pub(crate) const fn at(millis: i64) -> Time {
    Time::from_millis(START.millis() + millis)
}

pub(crate) fn call_id(name: &str) -> CallId {
    CallId::parse(name).unwrap()
}

pub(crate) fn ids(names: &[&str]) -> Vec<CallId> {
    names.iter().map(|name| call_id(name)).collect()
}

pub(crate) fn approval_id(number: u8) -> ApprovalId {
    ApprovalId::new(START, [number; 10])
}

pub(crate) fn person() -> Actor {
    Actor::User(UserId::new(START, [5; 10]))
}

pub(crate) fn run_id() -> RunId {
    RunId::new(START, [1; 10])
}

/// Absent paths as a target.
pub(crate) fn target(paths: &[&str]) -> Target {
    Target(paths.iter().map(|path| ((*path).to_owned(), None)).collect())
}

pub(crate) fn verdict(decision: Judgement, rule: &str) -> Verdict {
    Verdict {
        decision,
        rule: rule.to_owned(),
        reason: format!("The rule {rule} says so."),
        smallest_grant: None,
        scopes: if decision == Judgement::Ask { vec![GrantScope::Once, GrantScope::Run] } else { Vec::new() },
    }
}

pub(crate) fn start() -> RunStarted {
    RunStarted {
        run: run_id(),
        workspace: WorkspaceId::new(START, [2; 10]),
        chat: ChatId::new(START, [3; 10]),
        agent: AgentId::new(START, [4; 10]),
        agent_version: 1,
        policy: Hash::of(b"policy"),
        notebook: None,
        initiator: UserId::new(START, [5; 10]),
        trigger: "api".to_owned(),
        base: None,
        supersedes: None,
        user_message: Some(Content::from("Tidy the notes.")),
        model: "demo/guide".to_owned(),
        fallbacks: Vec::new(),
        strategy: None,
        budget: None,
        temperature: None,
        options: ModelOptions::default(),
        key: None,
        output_schema: None,
        instructions: None,
        system_prompt: Content::from("You tidy notes."),
        tools: Content::from("[]"),
        labels: Labels::NONE,
        limits: RunLimits { turns: 50, tool_calls: 200, output_tokens: 4000, context_bytes: 400_000 },
        autonomy: None,
        effects: Effects::Live,
        quoted: true,
        debug: false,
        safety: Default::default(),
        time_zone: "UTC".to_owned(),
        metadata: BTreeMap::new(),
        traceparent: None,
        attachments: Vec::new(),
    }
}

/// A run, the events that made it, and the moment it is.
#[derive(Clone)]
pub(crate) struct Story {
    pub(crate) state: State,
    pub(crate) log: Vec<(Event, Time)>,
    pub(crate) now: Time,
}

impl Story {
    /// A run that has just been started.
    pub(crate) fn new() -> Self {
        Self::of(start())
    }

    /// A run started like this.
    pub(crate) fn of(start: RunStarted) -> Self {
        let mut story = Self { state: State::default(), log: Vec::new(), now: START };
        story.add(start);
        story
    }

    /// A run with these limits of turns and calls.
    pub(crate) fn limited(turns: u32, tool_calls: u32) -> Self {
        let mut body = start();
        body.limits.turns = turns;
        body.limits.tool_calls = tool_calls;
        Self::of(body)
    }

    /// Adds an event that can follow.
    pub(crate) fn add(&mut self, event: impl Into<Event>) -> &mut Self {
        let event = event.into();
        self.try_add(event.clone()).unwrap_or_else(|bad| panic!("{bad}: {event:?}"));
        self
    }

    /// Adds an event, or says why it cannot follow.
    pub(crate) fn try_add(&mut self, event: impl Into<Event>) -> Result<(), Impossible> {
        let event = event.into();
        self.state.apply(&event, self.state.seq + 1, self.now)?;
        self.log.push((event, self.now));
        Ok(())
    }

    /// Lets time pass.
    pub(crate) fn at(&mut self, millis: i64) -> &mut Self {
        self.now = at(millis);
        self
    }

    pub(crate) fn step(&self) -> Step {
        step(&self.state, self.now)
    }

    pub(crate) fn call(&self, name: &str) -> &Call {
        self.state.call(&call_id(name)).unwrap()
    }

    /// The model is asked for the next turn.
    pub(crate) fn asks(&mut self) -> &mut Self {
        let attempt = self.state.failures.last().map_or(1, |failure| failure.attempt + 1);
        let turn = self.state.next_turn();
        let model = "demo/guide".to_owned();
        self.add(ModelRequested {
            turn,
            attempt,
            model,
            request: Hash::of(b"request"),
            dropped: 0,
            reserved: None,
            purses: Vec::new(),
            key: None,
            price_version: None,
        })
    }

    pub(crate) fn answered(&self, calls: u32, finish: FinishReason) -> ModelAnswered {
        ModelAnswered {
            turn: self.state.asking.as_ref().map_or(0, |asking| asking.turn),
            calls,
            usage: TokenUsage { input: 100, output: 10, ..TokenUsage::default() },
            estimated: false,
            cost: Some(MicroUsd(7)),
            price_version: None,
            finish,
            served_model: "demo/guide".to_owned(),
            ms: 12,
            first_ms: None,
            unfit: None,
            frames: None,
        }
    }

    /// The model is asked and gives its final answer.
    pub(crate) fn says(&mut self, text: &str) -> &mut Self {
        self.asks();
        let turn = self.state.next_turn();
        self.add(Said { turn, text: Content::from(text) });
        let answered = self.answered(0, FinishReason::Stop);
        self.add(answered)
    }

    /// The model is asked and asks for these calls: name, tool, arguments.
    pub(crate) fn calls(&mut self, calls: &[(&str, &str, &str)]) -> &mut Self {
        self.asks();
        let turn = self.state.next_turn();
        let answered = self.answered(u32::try_from(calls.len()).unwrap(), FinishReason::ToolCalls);
        self.add(answered);
        for (name, tool, arguments) in calls {
            let (call, arguments) = (call_id(name), Content::from(*arguments));
            self.add(CallProposed { turn, call, tool: (*tool).to_owned(), arguments });
        }
        self
    }

    /// The model is asked and asks to write each of these: name, path.
    pub(crate) fn writes(&mut self, calls: &[(&str, &str)]) -> &mut Self {
        let arguments: Vec<_> = calls.iter().map(|(_, path)| format!("{{\"path\":\"{path}\"}}")).collect();
        let calls: Vec<_> =
            calls.iter().zip(&arguments).map(|((name, _), text)| (*name, "write_file", text.as_str())).collect();
        self.calls(&calls)
    }

    /// The path among the arguments of a call.
    fn path(&self, name: &str) -> Option<String> {
        let arguments: serde_json::Value = serde_json::from_str(&self.call(name).arguments.text()).ok()?;
        arguments.get("path")?.as_str().map(str::to_owned)
    }

    pub(crate) fn prepared(&self, name: &str) -> Prepared {
        let target = self.path(name).map_or_else(Target::default, |path| target(&[path.as_str()]));
        let written = |path: &String| (path.clone(), Some(Hash::of(b"written")));
        let intended = (!target.is_empty()).then(|| Target(target.0.keys().map(written).collect()));
        Prepared { target, intended, summary: format!("write {name}"), diff: None }
    }

    pub(crate) fn judged(&mut self, name: &str, verdict: Verdict) -> &mut Self {
        let prepared = (verdict.decision != Judgement::Deny).then(|| self.prepared(name));
        let changes = self.call(name).tool != "read_file";
        let touches = self.path(name).map(|path| Touch { path, changes }).into_iter().collect();
        let policy = Hash::of(b"policy");
        self.add(CallJudged {
            call: call_id(name),
            verdict,
            policy,
            prepared,
            touches,
            standing: None,
            labels: Labels::NONE,
        })
    }

    pub(crate) fn allows(&mut self, name: &str) -> &mut Self {
        self.judged(name, verdict(Judgement::Allow, "autonomy"))
    }

    pub(crate) fn denies(&mut self, name: &str) -> &mut Self {
        self.judged(name, verdict(Judgement::Deny, "can_write"))
    }

    pub(crate) fn question(&self, name: &str, number: u8) -> ApprovalAsked {
        let call = self.call(name);
        ApprovalAsked {
            approval: approval_id(number),
            kind: ApprovalKind::Call,
            call: call_id(name),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            summary: format!("write {name}"),
            diff: None,
            fingerprint: Hash::of(&[number]),
            target: self.prepared(name).target,
            intended: self.prepared(name).intended,
            risk: adjutant_core::run::event::Risk::Medium,
            reason: "It asks.".to_owned(),
            rule: "autonomy".to_owned(),
            labels: Labels::NONE,
            allowed_scopes: GrantScope::ALL.to_vec(),
            place: Some(Match { directly_in: vec!["/drafts".to_owned()], ..Match::default() }),
            expires_at: self.now.after(std::time::Duration::from_millis(PATIENCE.unsigned_abs())),
        }
    }

    /// The guard asks, and an inbox item with this number is made.
    pub(crate) fn holds(&mut self, name: &str, number: u8) -> &mut Self {
        self.judged(name, verdict(Judgement::Ask, "autonomy"));
        let question = self.question(name, number);
        self.add(question)
    }

    pub(crate) fn decision(&self, number: u8, decision: Decision) -> ApprovalDecided {
        ApprovalDecided {
            approval: approval_id(number),
            call: self.state.approvals[&approval_id(number)].call.clone(),
            decision,
            by: person(),
            scope: GrantScope::Once,
            rule: None,
            arguments: None,
            about: None,
            message: None,
        }
    }

    pub(crate) fn decides(&mut self, number: u8, decision: Decision) -> &mut Self {
        let decided = self.decision(number, decision);
        self.add(decided)
    }

    pub(crate) fn edits(&mut self, number: u8, arguments: &str) -> &mut Self {
        let arguments = Some(Content::from(arguments));
        let decided = ApprovalDecided { arguments, ..self.decision(number, Decision::Edit) };
        self.add(decided)
    }

    pub(crate) fn announcement(&self, name: &str) -> CallStarted {
        let call = self.call(name);
        let prepared = call.judged.as_ref().and_then(|judged| judged.prepared.clone()).unwrap_or_default();
        CallStarted {
            call: call_id(name),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            attempt: call.started.as_ref().map_or(0, |started| started.attempt) + 1,
            key: idempotency_key(run_id(), &call_id(name)),
            recovery: Recovery::AskHuman,
            target: prepared.target,
            intended: prepared.intended,
            again: None,
        }
    }

    pub(crate) fn starts(&mut self, name: &str) -> &mut Self {
        let announcement = self.announcement(name);
        self.add(announcement)
    }

    pub(crate) fn result(&self, name: &str, output: &str) -> CallEnded {
        CallEnded {
            call: call_id(name),
            tool: self.call(name).tool.clone(),
            output: Content::from(output),
            is_error: false,
            allowed: true,
            rule: None,
            ms: 3,
            labels: Labels::NONE,
            resources: Vec::new(),
            decided: None,
        }
    }

    pub(crate) fn ends(&mut self, name: &str, output: &str) -> &mut Self {
        let ended = self.result(name, output);
        self.add(ended)
    }

    /// Allowed, started and ended.
    pub(crate) fn runs(&mut self, name: &str, output: &str) -> &mut Self {
        self.allows(name).starts(name).ends(name, output)
    }

    /// What the step settles, recorded.
    pub(crate) fn settles(&mut self) -> Vec<Settlement> {
        let Step::Settle(settlements) = self.step() else { panic!("nothing to settle: {:?}", self.step()) };
        for settlement in settlements.clone() {
            let tool = self.state.call(&settlement.call).unwrap().tool.clone();
            self.add(CallEnded {
                call: settlement.call,
                tool,
                output: settlement.output,
                is_error: settlement.is_error,
                allowed: settlement.allowed,
                rule: settlement.rule,
                ms: 0,
                labels: Labels::NONE,
                resources: Vec::new(),
                decided: None,
            });
        }
        settlements
    }

    pub(crate) fn doubts(&mut self, name: &str, number: u8) -> &mut Self {
        let (tool, arguments) = (self.call(name).tool.clone(), Some(self.call(name).arguments.clone()));
        let (message, summary) = ("It may or may not have happened.".to_owned(), "Send it".to_owned());
        let (call, approval) = (call_id(name), approval_id(number));
        self.add(CallInDoubt { call, approval, tool, message, summary, arguments })
    }

    pub(crate) fn resolves(&mut self, name: &str, number: u8, outcome: DoubtOutcome) -> &mut Self {
        let (approval, call) = (approval_id(number), call_id(name));
        self.add(InDoubtResolved { approval, call, outcome, result: None, by: person() })
    }

    pub(crate) fn fails(&mut self, retry_at: Option<Time>) -> &mut Self {
        let asking = self.state.asking.clone().unwrap();
        let (class, message) = ("timeout".to_owned(), "The model did not answer in time.".to_owned());
        let (turn, attempt, model) = (asking.turn, asking.attempt, asking.model);
        let (next, partial, cost) = (None, false, asking.reserved);
        let (frames, served_model, usage, estimated) = (None, None, None, false);
        self.add(ModelFailed {
            turn,
            attempt,
            class,
            message,
            retry_at,
            model,
            next,
            partial,
            cost,
            frames,
            served_model,
            usage,
            estimated,
        })
    }

    pub(crate) fn ending(&self, status: EndStatus) -> RunEnded {
        RunEnded {
            status,
            result: self.state.last_text(),
            usage: self.state.usage,
            cost: self.state.cost,
            files_modified: self.state.files.iter().cloned().collect(),
        }
    }

    pub(crate) fn finishes(&mut self, status: EndStatus) -> &mut Self {
        let ended = self.ending(status);
        self.add(ended)
    }

    /// A person's decision, as it is asked for.
    pub(crate) fn decide(number: u8, decision: Decision) -> Decide {
        Decide {
            approval: approval_id(number),
            decision,
            scope: GrantScope::Once,
            lasts: None,
            by: person(),
            arguments: None,
            message: None,
            fingerprint: None,
        }
    }
}
