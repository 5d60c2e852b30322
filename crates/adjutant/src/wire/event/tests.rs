//! Every stored kind and its public form, pinned: a change here is a change for every client.

use std::collections::BTreeMap;

use adjutant_core::budget::{BudgetAsk, Raise};
use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::filter::FilterPoint;
use adjutant_core::guard::judge::{Decision as Guard, Verdict};
use adjutant_core::guard::rule::Match;
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, UserId, WorkspaceId};
use adjutant_core::message::FinishReason;
use adjutant_core::options::ModelOptions;
use adjutant_core::run::event::{
    ApprovalKind, Base, CallProposed, CancelAsked, Cancelled, DoubtOutcome, Effects, EndStatus, GrantScope,
    InDoubtResolved, LabelsRaised, PauseReason, Resumed, Risk, RunLimits, ThoughtForm,
};
use adjutant_core::time::Time;
use adjutant_core::tool::{Recovery, Resource, ResourceAction, Target};

use super::*;

const AT: Time = Time::from_millis(1_769_767_200_007);

fn run() -> RunId {
    RunId::new(AT, [1; 10])
}

fn call() -> CallId {
    CallId::parse("call_1").unwrap()
}

fn approval() -> ApprovalId {
    ApprovalId::new(AT, [3; 10])
}

fn user() -> Actor {
    Actor::User(UserId::new(AT, [4; 10]))
}

fn start() -> RunStarted {
    RunStarted {
        run: run(),
        workspace: WorkspaceId::new(AT, [5; 10]),
        chat: ChatId::new(AT, [6; 10]),
        agent: AgentId::new(AT, [7; 10]),
        agent_version: 1,
        policy: Hash::ZERO,
        notebook: None,
        initiator: UserId::new(AT, [4; 10]),
        trigger: "message".to_owned(),
        base: None,
        supersedes: None,
        user_message: Some(Content::from("tidy the notes")),
        model: "demo/guide".to_owned(),
        fallbacks: Vec::new(),
        strategy: None,
        budget: None,
        temperature: None,
        options: ModelOptions::default(),
        key: None,
        output_schema: None,
        instructions: None,
        system_prompt: Content::from("You are Guide."),
        tools: Content::from("[]"),
        labels: Labels::NONE,
        limits: RunLimits { turns: 50, tool_calls: 200, output_tokens: 4000, context_bytes: 1 },
        autonomy: None,
        effects: Effects::Live,
        quoted: false,
        debug: false,
        safety: Default::default(),
        time_zone: "UTC".to_owned(),
        metadata: BTreeMap::new(),
        traceparent: None,
        attachments: Vec::new(),
    }
}

fn asked() -> ApprovalAsked {
    ApprovalAsked {
        approval: approval(),
        kind: ApprovalKind::Call,
        call: call(),
        tool: "write_file".to_owned(),
        arguments: Content::from(r#"{"path":"/todo.md"}"#),
        summary: "write_file /todo.md +1 −1".to_owned(),
        diff: Some(Content::from("-a\n+b\n")),
        fingerprint: Hash::ZERO,
        target: Target::default(),
        intended: None,
        risk: Risk::Medium,
        reason: "Writes ask.".to_owned(),
        rule: "autonomy".to_owned(),
        labels: Labels::PRIVATE,
        allowed_scopes: vec![GrantScope::Once, GrantScope::Run],
        place: Some(Match { directly_in: vec!["/".to_owned()], ..Match::default() }),
        expires_at: AT,
    }
}

fn decision(decision: Decision, by: Actor) -> ApprovalDecided {
    let message = (decision == Decision::Reject).then(|| "not now".to_owned());
    ApprovalDecided {
        approval: approval(),
        call: call(),
        decision,
        by,
        scope: GrantScope::Once,
        arguments: None,
        about: None,
        message,
        rule: None,
    }
}

fn verdict(decision: Guard) -> Event {
    let verdict = Verdict {
        decision,
        rule: "P11".to_owned(),
        reason: "Out of scope.".to_owned(),
        smallest_grant: Some("scope.folders: \"/x\"".to_owned()),
        scopes: Vec::new(),
    };
    let (prepared, touches, standing, labels) = (None, Vec::new(), None, Labels::NONE);
    CallJudged { call: call(), verdict, policy: Hash::ZERO, prepared, touches, standing, labels }.into()
}

fn failed(retry_at: Option<Time>) -> Event {
    let (class, message) = ("rate_limited".to_owned(), "Too many requests.".to_owned());
    ModelFailed {
        turn: 1,
        attempt: 1,
        class,
        message,
        retry_at,
        model: String::new(),
        next: None,
        partial: false,
        cost: None,
        frames: None,
        served_model: None,
        usage: None,
        estimated: false,
    }
    .into()
}

fn fallback() -> Event {
    let Event::ModelFailed(body) = failed(Some(AT)) else { unreachable!() };
    ModelFailed { model: "a/one".to_owned(), next: Some("b/two".to_owned()), ..body }.into()
}

fn no_money() -> Event {
    let ask = BudgetAsk {
        approval: approval(),
        purse: "agent/x/month/2026-11".to_owned(),
        limit: MicroUsd(20_000_000),
        spent: MicroUsd(19_990_000),
        needed: MicroUsd(40_000),
        raise: MicroUsd(250_000),
        unpriced: None,
    };
    Paused { reason: PauseReason::Budget, until: Some(AT), by: None, ask: Some(Box::new(ask)) }.into()
}

const USAGE: TokenUsage = TokenUsage { input: 10, output: 5, cached: 2, reasoning: 1, cache_write: 0 };

fn all() -> Vec<Event> {
    [beginning(), asking(), calling(), ending()].concat()
}

fn beginning() -> Vec<Event> {
    let fork = RunStarted { user_message: None, base: Some(Base { run: run(), seq: 9 }), ..start() };
    let answered = ModelAnswered {
        turn: 1,
        calls: 1,
        usage: USAGE,
        estimated: true,
        cost: Some(MicroUsd(1500)),
        price_version: None,
        finish: FinishReason::ToolCalls,
        served_model: "demo/guide".to_owned(),
        ms: 3,
        first_ms: None,
        unfit: None,
        frames: None,
    };
    vec![
        start().into(),
        fork.into(),
        ModelRequested {
            turn: 1,
            attempt: 1,
            model: "demo/guide".to_owned(),
            request: Hash::ZERO,
            dropped: 0,
            reserved: None,
            purses: Vec::new(),
            key: None,
            price_version: None,
        }
        .into(),
        Thought {
            turn: 1,
            form: ThoughtForm::Text,
            text: Content::from("Let me look."),
            signature: None,
            after_calls: 0,
        }
        .into(),
        Said { turn: 2, text: Content::from("Done.") }.into(),
        answered.into(),
        failed(Some(AT)),
        failed(None),
        fallback(),
    ]
}

fn asking() -> Vec<Event> {
    let (tool, arguments) = ("write_file".to_owned(), Content::from("{}"));
    vec![
        CallProposed { turn: 1, call: call(), tool, arguments }.into(),
        verdict(Guard::Allow),
        verdict(Guard::Ask),
        verdict(Guard::Deny),
        asked().into(),
        decision(Decision::Approve, user()).into(),
        decision(Decision::Edit, user()).into(),
        decision(Decision::Reject, Actor::Rule("approve=rules".to_owned())).into(),
        decision(Decision::Reject, Actor::Clock).into(),
        decision(Decision::Stop, user()).into(),
    ]
}

fn calling() -> Vec<Event> {
    let tool = "write_file".to_owned();
    let started = CallStarted {
        call: call(),
        tool: tool.clone(),
        arguments: Content::from(r#"{"path":"/todo.md"}"#),
        attempt: 1,
        key: Hash::ZERO,
        recovery: Recovery::Reconcile,
        target: Target::default(),
        intended: None,
        again: None,
    };
    let ended = CallEnded {
        call: call(),
        tool: tool.clone(),
        output: Content::from("written"),
        is_error: false,
        allowed: true,
        rule: None,
        ms: 4,
        labels: Labels::PRIVATE,
        resources: vec![Resource {
            kind: "file".to_owned(),
            path: "/todo.md".to_owned(),
            action: ResourceAction::Changed,
            undoable: true,
            before: Some(Hash::ZERO),
            after: None,
        }],
        decided: None,
    };
    let (output, rule) = (Content::from("Refused."), Some("P11".to_owned()));
    let (labels, resources) = (Labels::NONE, Vec::new());
    let refused = CallEnded { output, is_error: true, allowed: false, rule, ms: 0, labels, resources, ..ended.clone() };
    vec![
        started.into(),
        ended.into(),
        refused.into(),
        CallInDoubt {
            call: call(),
            approval: approval(),
            tool,
            message: "It may have happened.".to_owned(),
            summary: "Write /a.md".to_owned(),
            arguments: Some(Content::from(r#"{"path":"/a.md"}"#)),
        }
        .into(),
        InDoubtResolved { approval: approval(), call: call(), outcome: DoubtOutcome::Run, result: None, by: user() }
            .into(),
        ContentFiltered {
            point: FilterPoint::Output,
            call: Some(call()),
            blocked: None,
            redacted: vec![1],
            labels: Labels::NONE,
        }
        .into(),
        LabelsRaised { labels: Labels::PRIVATE, source: "read_file".to_owned() }.into(),
    ]
}

fn ending() -> Vec<Event> {
    let reason = "enough".to_owned();
    let (code, message) = ("max_turns".to_owned(), "The run reached 50 turns.".to_owned());
    let ended = RunEnded {
        status: EndStatus::Completed,
        result: Content::from("Done."),
        usage: USAGE,
        cost: MicroUsd(1500),
        files_modified: vec!["/todo.md".to_owned()],
    };
    vec![
        Paused { reason: PauseReason::Rate, until: Some(AT), by: None, ask: None }.into(),
        Resumed { by: user(), raised: None, unpriced: None }.into(),
        BudgetAlerted {
            purse: "agent/x/month/2026-11".to_owned(),
            at: MicroUsd(5_000_000),
            spent: MicroUsd(5_100_000),
        }
        .into(),
        no_money(),
        Resumed {
            by: user(),
            raised: Some(Raise { purse: "agent/x/month/2026-11".to_owned(), amount: MicroUsd(250_000) }),
            unpriced: None,
        }
        .into(),
        CancelAsked { by: user(), reason: reason.clone() }.into(),
        Cancelled { reason }.into(),
        Errored { code, message, retryable: false }.into(),
        ended.into(),
    ]
}

fn lines(events: &[Event], texts: &Texts) -> Vec<String> {
    let line = |(index, stored): (usize, &Event)| {
        let recorded = Recorded { seq: index as u64 + 1, at: AT, event: stored.clone() };
        match event(run(), &recorded, texts) {
            Some(public) => serde_json::to_string(&public).unwrap(),
            None => format!("{} is not shown", stored.kind()),
        }
    };
    events.iter().enumerate().map(line).collect()
}

#[test]
fn every_stored_kind_has_its_public_form() {
    let events = all();
    let kinds: std::collections::BTreeSet<_> = events.iter().map(Event::kind).collect();
    assert_eq!(kinds, Event::KINDS.iter().copied().collect());
    insta::assert_snapshot!(lines(&events, &Texts::default()).join("\n"));
}

#[test]
fn what_was_left_out_to_fit_the_window_is_told() {
    let mut events = all();
    let requested = events.iter_mut().find_map(|event| match event {
        Event::ModelRequested(body) => Some(body),
        _ => None,
    });
    requested.unwrap().dropped = 4096;
    let told = lines(&events, &Texts::default());
    let told = told.iter().find(|line| line.contains("context_compacted")).unwrap();
    assert!(told.contains(r#""dropped_bytes":4096"#) && told.contains(r#""model":"demo/guide""#), "{told}");
}

#[test]
fn a_run_that_failed_says_so_as_a_problem_with_a_page_and_a_status() {
    let told = |code: &str| {
        let failed = Errored { code: code.to_owned(), message: "No.".to_owned(), retryable: false };
        let line = lines(&[failed.into()], &Texts::default()).remove(0);
        let problem = serde_json::from_str::<Value>(&line).unwrap()["data"]["problem"].clone();
        (problem["type"].as_str().unwrap().to_owned(), problem["status"].as_u64().unwrap())
    };
    assert_eq!(told("provider_timeout"), ("/problems/provider_timeout".to_owned(), 504));
    assert_eq!(told("max_turns"), ("/problems/max_turns".to_owned(), 422));
    assert_eq!(told("of an older version"), ("/problems/internal".to_owned(), 500));
}

#[test]
fn a_long_text_comes_from_its_block_and_an_erased_one_is_named() {
    let long = "x".repeat(5000);
    let stored = serde_json::to_vec(&Said { turn: 1, text: Content::from(long.as_str()) }).unwrap();
    let said = Event::decode("said", &stored).unwrap();
    let erased = lines(std::slice::from_ref(&said), &Texts::default());
    assert!(erased[0].contains("[5000 bytes, erased]"), "{}", erased[0]);
    let texts = Texts::from_iter([(Hash::of(long.as_bytes()), long.as_str().into())]);
    assert!(lines(&[said], &texts)[0].contains(&long));
}
