//! A player that drives a run the way the world could: it asks the machine what comes next and rolls dice for everything
//! that happens outside. Whatever it does is legal; every event is checked against what must always hold.

use std::collections::BTreeMap;

use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::filter::FilterPoint;
use adjutant_core::guard::judge::{Decision as Judgement, Verdict};
use adjutant_core::id::{ApprovalId, CallId};
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::message::FinishReason;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::command::{Command, Decide, accept};
use adjutant_core::run::event::{
    Actor, ApprovalDecided, BudgetAlerted, CallEnded, CallInDoubt, CallJudged, CallProposed, Cancelled,
    ContentFiltered, Decision, DoubtOutcome, EndStatus, Errored, Event, GrantScope, LabelsRaised, ModelAnswered,
    ModelFailed, PauseReason, Paused, RunStarted, Said, Thought, ThoughtForm,
};
use adjutant_core::run::state::State;
use adjutant_core::run::step::{Finish, Settlement, Step};
use adjutant_core::time::Time;
use adjutant_core::tool::{Prepared, Resource, ResourceAction, Target, Touch};
use proptest::prelude::*;

use crate::given::{Story, person, start, verdict};

/// Rolls: each decides one thing that happens outside. When they are used up, everything goes its plainest way.
pub(crate) fn dice() -> impl Strategy<Value = Vec<u16>> {
    proptest::collection::vec(any::<u16>(), 0..240)
}

/// What the model does when the dice are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// It answers.
    Finishing,
    /// It calls a tool again and again, each time with other arguments.
    Restless,
    /// It makes the same call again and again.
    Stubborn,
}

/// Texts that have broken something somewhere.
const TEXTS: [&str; 6] = ["ok", "", "line\nline", "\"quoted\" \\ {}", "é😀\u{202e}", "[output of 9 bytes dropped]"];
const PATHS: [&str; 5] = ["/a.md", "/b.md", "/notes", "/notes/a.md", "/notes/sub/b.md"];

pub(crate) struct Player {
    pub(crate) story: Story,
    dice: std::vec::IntoIter<u16>,
    mood: Mood,
    made: u16,
    last_verdicts: BTreeMap<CallId, Judgement>,
}

impl Player {
    pub(crate) fn new(start: RunStarted, dice: Vec<u16>, mood: Mood) -> Self {
        Self { story: Story::of(start), dice: dice.into_iter(), mood, made: 0, last_verdicts: BTreeMap::new() }
    }

    /// A run played to its end.
    pub(crate) fn played(start: RunStarted, dice: Vec<u16>, mood: Mood) -> Story {
        let mut player = Self::new(start, dice, mood);
        player.play();
        player.story
    }

    /// Goes on with a run that somebody else played so far; `made` keeps new ids apart from theirs.
    pub(crate) fn resume(&mut self, made: usize) {
        self.made = 1000 + u16::try_from(made).unwrap();
        let verdicts = self.state().calls().filter_map(|call| Some((call.id.clone(), call.decision()?)));
        self.last_verdicts = verdicts.collect();
        self.play();
    }

    /// Rolls one of `sides`; 0 when the dice are used up.
    fn roll(&mut self, sides: u16) -> u16 {
        self.dice.next().map_or(0, |die| die % sides)
    }

    fn state(&self) -> &State {
        &self.story.state
    }

    /// Plays to the end. That there is one, and that it is not far, is the first thing it proves.
    pub(crate) fn play(&mut self) {
        for _ in 0..20_000 {
            if self.state().end.is_none() && self.roll(9) == 7 {
                self.interfere();
            }
            if self.roll(4) == 3 {
                self.story.now = self.story.now.after(std::time::Duration::from_millis(u64::from(self.roll(700))));
            }
            if self.turn() == Step::Done {
                return;
            }
        }
        panic!("the run never ends: {:?}", self.story.step());
    }

    /// One step of the machine, carried out.
    fn turn(&mut self) -> Step {
        let step = self.story.step();
        match step.clone() {
            Step::CallModel { turn, attempt } => {
                self.story.asks();
                let asking = self.state().asking.as_ref().unwrap();
                assert_eq!((asking.turn, asking.attempt), (turn, attempt));
                check(&self.story);
            }
            Step::AwaitModel => self.answer(),
            Step::Judge(calls) => calls.iter().for_each(|call| self.judge(call)),
            Step::Expire(approvals) => approvals.iter().for_each(|id| self.expire(*id)),
            Step::Settle(settlements) => settlements.into_iter().for_each(|settlement| self.settle(settlement)),
            Step::Start(calls) => {
                // A process may die between two announcements.
                let many = calls.len() - usize::from(self.roll(3) == 2).min(calls.len() - 1);
                calls.iter().take(many).for_each(|call| self.begin(call));
            }
            Step::Await(calls) => {
                let index = usize::from(self.roll(16)) % calls.len();
                self.run_on(&calls[index]);
            }
            Step::Cancel => self.cancel(),
            Step::Finish(finish) => self.finish(&finish),
            Step::Wait(until) => self.wait(until),
            Step::Done => {}
        }
        step
    }

    fn record(&mut self, event: impl Into<Event>) {
        let before = self.state().labels;
        self.story.add(event);
        assert!(self.state().labels.covers(before), "labels never shrink");
        check(&self.story);
    }

    /// A command comes in, at any time.
    fn interfere(&mut self) {
        let command = match self.roll(9) {
            8 => {
                let (purse, at) = ("agent/x/month/2026-11".to_owned(), MicroUsd(1));
                return self.record(BudgetAlerted { purse, at, spent: at });
            }
            0 => Command::Pause { by: person() },
            1 | 2 => Command::Resume { by: person() },
            3 => Command::Cancel { by: person(), reason: "enough".to_owned() },
            4 => return self.record(LabelsRaised { labels: Labels::UNTRUSTED, source: "page".to_owned() }),
            5 => {
                let labels = Labels::PRIVATE;
                let (point, redacted) = (FilterPoint::Output, vec![0]);
                return self.record(ContentFiltered { point, call: None, blocked: None, redacted, labels });
            }
            6 => {
                let until = Some(self.story.now.after(std::time::Duration::from_millis(300)));
                return self.record(Paused { reason: PauseReason::Rate, until, by: None, ask: None });
            }
            _ => return self.decide(),
        };
        self.tell(&command);
    }

    fn tell(&mut self, command: &Command) {
        for event in accept(self.state(), command, self.story.now).unwrap_or_default() {
            self.record(event);
        }
    }

    /// A person looks into the inbox and decides one item.
    fn decide(&mut self) {
        let pending: Vec<_> = self.state().approvals.iter().filter(|(_, item)| item.is_pending()).collect();
        let open: Vec<_> = pending.into_iter().map(|(id, item)| (*id, item.call.clone(), item.asked.clone())).collect();
        if open.is_empty() {
            return;
        }
        let (approval, call, asked) = open[usize::from(self.roll(16)) % open.len()].clone();
        let Some(asked) = asked else {
            let outcome = [DoubtOutcome::Happened, DoubtOutcome::Run, DoubtOutcome::Abandon][usize::from(self.roll(3))];
            return self.tell(&Command::Resolve { call, outcome, result: None, by: person() });
        };
        let decisions = [Decision::Approve, Decision::Reject, Decision::Edit, Decision::Respond, Decision::Stop];
        let decision = decisions[[0, 0, 0, 1, 2, 3, 4][usize::from(self.roll(7))]];
        let scope = if decision == Decision::Approve && self.roll(2) == 1 { GrantScope::Run } else { GrantScope::Once };
        let arguments = (decision == Decision::Edit).then(|| self.arguments());
        let message = (decision == Decision::Respond).then(|| "like this".to_owned());
        let fingerprint = Some(asked.fingerprint);
        self.tell(&Command::Decide(Decide {
            approval,
            decision,
            scope,
            lasts: None,
            by: person(),
            arguments,
            message,
            fingerprint,
        }));
    }

    fn text(&mut self) -> Content {
        match self.roll(8) {
            7 => Content::from("long ".repeat(1000)),
            other => Content::from(TEXTS[usize::from(other) % TEXTS.len()]),
        }
    }

    fn arguments(&mut self) -> String {
        let path = PATHS[usize::from(self.roll(5))];
        let content = match self.mood {
            Mood::Finishing | Mood::Stubborn => String::new(),
            Mood::Restless => self.made.to_string(),
        };
        let content = if self.roll(12) == 11 { "x".repeat(5000) } else { content };
        serde_json::json!({"path": path, "content": content}).to_string()
    }

    /// The model answers, fails, or is never heard of again.
    fn answer(&mut self) {
        let asking = self.state().asking.clone().unwrap();
        let begun = self.state().turns.len() == asking.turn as usize;
        let kind = self.roll(12);
        if begun || kind >= 10 {
            let again = asking.attempt < limits::MODEL_ATTEMPTS && self.roll(3) != 2;
            let retry_at = again.then(|| self.story.now.after(std::time::Duration::from_millis(50)));
            let (turn, attempt, class) = (asking.turn, asking.attempt, "lost".to_owned());
            return self.record(ModelFailed {
                turn,
                attempt,
                class,
                message: "Lost.".to_owned(),
                retry_at,
                model: String::new(),
                next: None,
                partial: false,
                cost: None,
                frames: None,
                served_model: None,
                usage: None,
                estimated: false,
            });
        }
        let turn = asking.turn;
        if self.roll(3) == 2 {
            let (text, signature) = (self.text(), Some("proof".to_owned()));
            self.record(Thought { turn, form: ThoughtForm::Reasoning, text, signature, after_calls: 0 });
        }
        let used_up = self.dice.len() == 0;
        let calls = match (used_up, self.mood) {
            (true, Mood::Finishing) => 0,
            (true, Mood::Restless | Mood::Stubborn) => 1,
            (false, _) => [0, 1, 1, 2, 3, 5][usize::from(self.roll(6))],
        };
        if calls == 0 {
            let text = self.text();
            self.record(Said { turn, text });
        } else if self.roll(2) == 1 {
            let text = self.text();
            let after_calls = u32::from(self.roll(3));
            self.record(Thought { turn, form: ThoughtForm::Text, text, signature: None, after_calls });
        }
        let finish = [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Length, FinishReason::Refusal];
        let finish = finish[usize::from(self.roll(4))];
        let answered = ModelAnswered { estimated: self.roll(2) == 1, ..self.story.answered(calls, finish) };
        self.record(answered);
        // The process may die while the answer is being written down.
        let cut = if self.roll(12) == 11 { calls.saturating_sub(1) } else { calls };
        for _ in 0..cut {
            self.made += 1;
            let call = CallId::parse(&format!("call{}", self.made)).unwrap();
            let tool = ["write_file", "read_file"][usize::from(self.roll(2))].to_owned();
            let arguments = Content::from(self.arguments());
            self.record(CallProposed { turn, call, tool, arguments });
        }
    }

    fn judge(&mut self, id: &CallId) {
        let call = self.state().call(id).unwrap().clone();
        let spent = self.state().calls_spent();
        let most = self.state().start.as_ref().unwrap().limits.tool_calls as usize;
        let roll = self.roll(10);
        let verdict: Verdict = match roll {
            _ if call.answered.is_none() && spent >= most => verdict(Judgement::Deny, "max_tool_calls"),
            0..=4 => verdict(Judgement::Allow, "autonomy"),
            5..=7 => verdict(Judgement::Ask, "autonomy"),
            _ => verdict(Judgement::Deny, "P11"),
        };
        let arguments: serde_json::Value = serde_json::from_str(&call.arguments.text()).unwrap();
        let path = arguments["path"].as_str().unwrap().to_owned();
        let hash = (self.roll(2) == 1).then(|| Hash::of(b"there"));
        let target = Target([(path.clone(), hash)].into());
        let prepared = Prepared { target, intended: None, summary: "It would.".to_owned(), diff: None };
        let prepared = Some(prepared).filter(|_| verdict.decision != Judgement::Deny);
        let asks = verdict.decision == Judgement::Ask;
        self.last_verdicts.insert(id.clone(), verdict.decision);
        let touches = vec![Touch { path, changes: call.tool == "write_file" }];
        let (call, policy) = (id.clone(), Hash::of(b"policy"));
        let (standing, labels) = (None, Labels::NONE);
        self.record(CallJudged { call, verdict, policy, prepared: prepared.clone(), touches, standing, labels });
        // The process may die before anybody is asked.
        if asks && self.roll(12) != 11 {
            self.made += 1;
            let mut question = self.story.question(id.as_str(), 0);
            question.approval = ApprovalId::new(self.story.now, [u8::try_from(self.made % 251).unwrap(); 10]);
            if self.state().approvals.contains_key(&question.approval) {
                return;
            }
            question.target = prepared.unwrap_or_default().target;
            self.record(question);
        }
    }

    fn expire(&mut self, approval: ApprovalId) {
        let call = self.state().approvals[&approval].call.clone();
        let (decision, scope) = (Decision::Reject, GrantScope::Once);
        let by = Actor::Clock;
        self.record(ApprovalDecided {
            approval,
            call,
            decision,
            by,
            scope,
            arguments: None,
            about: None,
            message: None,
            rule: None,
        });
    }

    fn settle(&mut self, settlement: Settlement) {
        let tool = self.state().call(&settlement.call).unwrap().tool.clone();
        self.record(CallEnded {
            call: settlement.call,
            tool,
            output: settlement.output,
            is_error: settlement.is_error,
            allowed: settlement.allowed,
            rule: settlement.rule,
            ms: 0,
            labels: settlement.labels,
            resources: Vec::new(),
            decided: None,
        });
    }

    fn begin(&mut self, id: &CallId) {
        assert_eq!(self.last_verdicts.get(id), Some(&Judgement::Allow), "nothing starts that was not allowed last");
        let state = self.state();
        let clash = |other: &&adjutant_core::run::state::Call| {
            other.is_running() && other.id != *id && other.clashes(state.call(id).unwrap())
        };
        assert!(state.calls().find(clash).is_none(), "calls that clash never run side by side");
        assert!(state.cancel.is_none() && state.end.is_none());
        let announcement = self.story.announcement(id.as_str());
        self.record(announcement);
        let mut state = self.state().clone();
        assert!(state.take_permit(id, state.seq - 1).is_err(), "not before it is durable");
        assert!(state.take_permit(id, state.seq).is_ok());
        assert!(state.take_permit(id, state.seq).is_err(), "once an attempt");
    }

    /// A running call ends, fails, is tried again, or comes to be in doubt.
    fn run_on(&mut self, id: &CallId) {
        let name = id.as_str();
        let attempt = self.state().call(id).unwrap().started.as_ref().unwrap().attempt;
        match self.roll(10) {
            8 => {
                self.made += 1;
                let approval = ApprovalId::new(self.story.now, [u8::try_from(self.made % 251).unwrap(); 10]);
                if self.state().approvals.contains_key(&approval) {
                    return;
                }
                let (tool, arguments) = {
                    let call = self.state().call(id).unwrap();
                    (call.tool.clone(), Some(call.arguments.clone()))
                };
                let (message, summary) = ("Who knows.".to_owned(), "Send it".to_owned());
                self.record(CallInDoubt { call: id.clone(), approval, tool, message, summary, arguments });
            }
            9 if attempt < limits::TOOL_ATTEMPTS => self.begin_again(id),
            roll => {
                let mut ended = self.story.result(name, "");
                ended.output = if self.mood == Mood::Restless { Content::from(name) } else { self.text() };
                ended.is_error = roll == 7;
                ended.labels = [Labels::NONE, Labels::PRIVATE, Labels::UNTRUSTED][usize::from(self.roll(3))];
                ended.resources = vec![Resource {
                    kind: "file".to_owned(),
                    path: "/a.md".to_owned(),
                    action: ResourceAction::Changed,
                    undoable: true,
                    before: None,
                    after: None,
                }];
                self.record(ended);
            }
        }
    }

    fn begin_again(&mut self, id: &CallId) {
        let announcement = self.story.announcement(id.as_str());
        self.record(announcement);
    }

    fn cancel(&mut self) {
        if let Some(asking) = self.state().asking.clone() {
            let (turn, attempt, class) = (asking.turn, asking.attempt, "cancelled".to_owned());
            self.record(ModelFailed {
                turn,
                attempt,
                class,
                message: "Dropped.".to_owned(),
                retry_at: None,
                model: String::new(),
                next: None,
                partial: false,
                cost: None,
                frames: None,
                served_model: None,
                usage: None,
                estimated: false,
            });
        }
        let open: Vec<_> = self.state().calls().filter(|call| call.ended.is_none()).cloned().collect();
        for call in open {
            self.settle(Settlement {
                call: call.id,
                output: Content::from("Cancelled."),
                is_error: true,
                allowed: call.started.is_some(),
                rule: Some("cancelled".to_owned()),
                labels: Labels::NONE,
            });
        }
        self.record(Cancelled { reason: "enough".to_owned() });
        let ended = self.story.ending(EndStatus::Cancelled);
        self.record(ended);
    }

    fn finish(&mut self, finish: &Finish) {
        let status = match finish {
            Finish::Completed => EndStatus::Completed,
            Finish::Failed { code, message } => {
                if self.state().error.is_none() {
                    self.record(Errored { code: (*code).to_owned(), message: message.clone(), retryable: false });
                    return;
                }
                EndStatus::Failed
            }
        };
        let ended = self.story.ending(status);
        self.record(ended);
    }

    /// Nothing to do: a person comes, or the moment does.
    fn wait(&mut self, until: Option<Time>) {
        if let Some(until) = until {
            assert!(until > self.story.now, "waiting for what has come would never end");
        }
        let waits_for_person = self.state().approvals.values().any(adjutant_core::run::state::Approval::is_pending);
        match until {
            Some(until) if self.roll(2) == 1 || !waits_for_person => self.story.now = until,
            Some(_) => self.decide(),
            None if self.state().pause.is_some() => self.tell(&Command::Resume { by: person() }),
            None => {
                assert!(waits_for_person, "nobody would ever wake it: {:?}", self.state().status());
                self.decide();
            }
        }
    }
}

/// What must hold after every event.
fn check(story: &Story) {
    use adjutant_core::run::state::Call;
    use adjutant_core::run::status::{AT_ONCE, Status};
    let state = &story.state;
    let (status, due) = (state.status(), state.due());
    assert_eq!(status.is_end(), state.end.is_some());
    let pending: Vec<_> = state.approvals.values().filter(|item| item.is_pending()).collect();
    match status {
        Status::Completed | Status::Failed | Status::Cancelled => {
            assert_eq!((due, story.step()), (None, Step::Done));
            assert!(pending.is_empty() && state.calls().all(|call| call.ended.is_some()));
        }
        Status::Cancelling => assert_eq!((due, story.step()), (Some(AT_ONCE), Step::Cancel)),
        Status::Queued => assert!(due == Some(AT_ONCE) && state.turns.is_empty()),
        Status::Running => assert!(due.is_some(), "a run that goes on is looked after: {:?}", story.step()),
        Status::WaitingApproval => {
            let expiry = pending.iter().filter_map(|item| item.expires_at()).min().unwrap();
            let expected = if expiry <= state.updated_at { AT_ONCE } else { expiry };
            assert_eq!(due, Some(expected));
        }
        Status::InDoubt => assert!(state.calls().any(Call::is_in_doubt)),
        Status::Paused => assert!(state.pause.is_some()),
    }
    for item in pending {
        assert!(state.call(&item.call).unwrap().ended.is_none(), "a call that has its result is not asked about");
    }
}

/// A start with small limits, so that they are reached.
pub(crate) fn small(turns: u32, tool_calls: u32) -> RunStarted {
    let mut body = start();
    body.limits.turns = turns;
    body.limits.tool_calls = tool_calls;
    body
}
