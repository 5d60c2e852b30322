//! The stored form of events is a promise: what is written today is read for ever. Each kind is pinned twice, once with
//! every field and once with only those that are always there. A snapshot may gain fields; it never changes otherwise.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::budget::{BudgetAsk, Raise};
use adjutant_core::content::{Content, Hash};
use adjutant_core::guard::filter::FilterPoint;
use adjutant_core::guard::judge::{Decision as Judgement, Verdict};
use adjutant_core::guard::rule::{Example, Match, Origin, Rule};
use adjutant_core::id::{AgentId, ApprovalId, CallId, ChatId, KeyId, NotebookId, RunId, UserId, WorkspaceId};
use adjutant_core::label::Labels;
use adjutant_core::message::FinishReason;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::options::ModelOptions;
use adjutant_core::routing::Strategy;
use adjutant_core::run::event::{
    Actor, ApprovalAsked, ApprovalDecided, ApprovalKind, BadEvent, Base, BudgetAlerted, CallEnded, CallInDoubt,
    CallJudged, CallProposed, CallStarted, CancelAsked, Cancelled, Class, ContentFiltered, Decision, DoubtOutcome,
    Effects, EndStatus, Errored, Event, GrantScope, InDoubtResolved, LabelsRaised, ModelAnswered, ModelFailed,
    ModelRequested, PauseReason, Paused, Resumed, Risk, RunEnded, RunLimits, RunStarted, Said, Standing, StartedAgain,
    Thought, ThoughtForm,
};
use adjutant_core::time::Time;
use adjutant_core::tool::{Prepared, Recovery, Resource, ResourceAction, Target, Touch};

const SALT: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 171, 205, 239, 254, 255];

fn when() -> Time {
    Time::from_millis(1_769_767_200_007)
}

fn call() -> CallId {
    CallId::parse("call_1").unwrap()
}

fn approval() -> ApprovalId {
    ApprovalId::new(when(), [6; 10])
}

fn somebody() -> Actor {
    Actor::User(UserId::new(when(), [5; 10]))
}

fn target() -> Target {
    Target(BTreeMap::from([("/a.md".to_owned(), Some(Hash::of(b"before"))), ("/b.md".to_owned(), None)]))
}

fn long() -> Content {
    Content::from("x".repeat(4097))
}

fn run_started() -> RunStarted {
    RunStarted {
        run: RunId::new(when(), [1; 10]),
        workspace: WorkspaceId::new(when(), [2; 10]),
        chat: ChatId::new(when(), [3; 10]),
        agent: AgentId::new(when(), [4; 10]),
        agent_version: 3,
        policy: Hash::of(b"policy"),
        notebook: Some(NotebookId::new(when(), [7; 10])),
        initiator: UserId::new(when(), [5; 10]),
        trigger: "api".to_owned(),
        base: Some(Base { run: RunId::new(when(), [8; 10]), seq: 12 }),
        supersedes: Some(RunId::new(when(), [9; 10])),
        user_message: Some(Content::from("Tidy the \"notes\".\n")),
        model: "demo/guide".to_owned(),
        fallbacks: vec!["other/one".to_owned()],
        strategy: Some(Strategy::Balanced),
        budget: Some(MicroUsd(500_000)),
        temperature: Some(0.7),
        options: serde_json::from_str(r#"{"reasoning_effort":"low","seed":7}"#).unwrap(),
        key: Some(KeyId::new(when(), [8; 10])),
        output_schema: None,
        instructions: None,
        system_prompt: long(),
        tools: Content::from("[]"),
        labels: Labels::PRIVATE.join(Labels::UNTRUSTED),
        limits: RunLimits { turns: 50, tool_calls: 200, output_tokens: 4000, context_bytes: 409_600 },
        autonomy: Some(adjutant_core::guard::policy::Autonomy::Low),
        effects: Effects::Dry,
        quoted: true,
        debug: true,
        safety: Default::default(),
        time_zone: "Europe/Berlin".to_owned(),
        metadata: BTreeMap::from([("ticket".to_owned(), "7".to_owned())]),
        traceparent: None,
        attachments: Vec::new(),
    }
}

fn approval_asked() -> ApprovalAsked {
    ApprovalAsked {
        approval: approval(),
        kind: ApprovalKind::Call,
        call: call(),
        tool: "write_file".to_owned(),
        arguments: Content::from("{\"path\":\"/a.md\"}"),
        summary: "write_file /a.md (+1 -0)".to_owned(),
        diff: Some(Content::from("+hello\n")),
        fingerprint: Hash::of(b"fingerprint"),
        target: target(),
        intended: Some(target()),
        risk: Risk::Medium,
        reason: "At this agent's autonomy, writing asks.".to_owned(),
        rule: "autonomy".to_owned(),
        labels: Labels::PRIVATE,
        allowed_scopes: GrantScope::ALL.to_vec(),
        place: Some(place()),
        expires_at: when(),
    }
}

fn call_judged() -> CallJudged {
    CallJudged {
        call: call(),
        verdict: Verdict {
            decision: Judgement::Ask,
            rule: "autonomy".to_owned(),
            reason: "At this agent's autonomy, writing asks.".to_owned(),
            smallest_grant: Some("autonomy: medium".to_owned()),
            scopes: GrantScope::ALL.to_vec(),
        },
        policy: Hash::of(b"policy"),
        prepared: Some(Prepared {
            target: target(),
            intended: Some(target()),
            summary: "write_file /a.md".to_owned(),
            diff: Some("+hello\n".to_owned()),
        }),
        touches: vec![Touch { path: "/a.md".to_owned(), changes: true }],
        standing: Some(Standing {
            rules: vec![adjutant_core::id::RuleId::new(when(), [8; 10])],
            role: Some("write".to_owned()),
        }),
        labels: Labels::PRIVATE,
    }
}

fn call_started() -> CallStarted {
    CallStarted {
        call: call(),
        tool: "write_file".to_owned(),
        arguments: Content::from("{\"path\":\"/a.md\"}"),
        attempt: 2,
        key: Hash::of(b"key"),
        recovery: Recovery::Reconcile,
        target: target(),
        intended: Some(target()),
        again: Some(StartedAgain { policy: Hash::of(b"policy"), rule: "autonomy".to_owned() }),
    }
}

fn call_ended() -> CallEnded {
    CallEnded {
        call: call(),
        tool: "write_file".to_owned(),
        output: Content::from("Wrote /a.md."),
        is_error: false,
        allowed: true,
        rule: Some("autonomy".to_owned()),
        ms: 12,
        labels: Labels::UNTRUSTED,
        resources: vec![Resource {
            kind: "file".to_owned(),
            path: "/a.md".to_owned(),
            action: ResourceAction::Changed,
            undoable: true,
            before: Some(Hash::of(b"before")),
            after: Some(Hash::of(b"after")),
        }],
        decided: None,
    }
}

fn model_answered() -> ModelAnswered {
    ModelAnswered {
        turn: 1,
        calls: 2,
        usage: TokenUsage { input: 100, output: 20, cached: 50, reasoning: 5, cache_write: 0 },
        estimated: true,
        cost: Some(MicroUsd(1234)),
        price_version: Some("2026-07-01".to_owned()),
        finish: FinishReason::ToolCalls,
        served_model: "demo/guide-1".to_owned(),
        ms: 950,
        first_ms: Some(2),
        unfit: None,
        frames: Some(Content::from("< {}")),
    }
}

fn thought() -> Thought {
    Thought {
        turn: 1,
        form: ThoughtForm::Reasoning,
        text: Content::from("I will look."),
        signature: Some("proof".to_owned()),
        after_calls: 2,
    }
}

fn model_requested() -> ModelRequested {
    ModelRequested {
        turn: 1,
        attempt: 2,
        model: "demo/guide".to_owned(),
        request: Hash::of(b"request"),
        dropped: 9,
        reserved: Some(MicroUsd(40_000)),
        purses: vec!["agent/x/month/2026-11".to_owned()],
        key: Some(KeyId::new(when(), [6; 10])),
        price_version: Some("v7".to_owned()),
    }
}

fn model_failed() -> ModelFailed {
    ModelFailed {
        turn: 1,
        attempt: 1,
        class: "timeout".to_owned(),
        message: "The model did not answer in time.".to_owned(),
        retry_at: Some(when()),
        model: "demo/guide".to_owned(),
        next: Some("other/one".to_owned()),
        partial: true,
        cost: Some(MicroUsd(40_000)),
        frames: Some(Content::from("< {}")),
        served_model: Some("demo/guide-2".to_owned()),
        usage: Some(TokenUsage { input: 120, output: 4, ..TokenUsage::default() }),
        estimated: true,
    }
}

fn purse() -> String {
    "agent/x/month/2026-11".to_owned()
}

fn budget_ask() -> BudgetAsk {
    BudgetAsk {
        approval: approval(),
        purse: purse(),
        limit: MicroUsd(20_000_000),
        spent: MicroUsd(19_990_000),
        needed: MicroUsd(40_000),
        raise: MicroUsd(250_000),
        unpriced: Some("lab/one".to_owned()),
    }
}

fn decided() -> ApprovalDecided {
    ApprovalDecided {
        approval: approval(),
        call: call(),
        decision: Decision::Edit,
        by: somebody(),
        scope: GrantScope::Once,
        arguments: Some(Content::from("{\"path\":\"/b.md\"}")),
        about: Some("/b.md".to_owned()),
        message: Some("There, please.".to_owned()),
        rule: Some(Box::new(rule())),
    }
}

fn place() -> Match {
    Match {
        folders: vec!["/notes".to_owned()],
        directly_in: vec!["/".to_owned()],
        hosts: vec!["docs.example.org".to_owned()],
        arguments: [("path".to_owned(), "/a*".to_owned())].into(),
        exactly: Some(Hash::of(b"arguments")),
    }
}

fn rule() -> Rule {
    let example = Example {
        tool: "write_file".to_owned(),
        paths: vec!["/a.md".to_owned()],
        arguments: serde_json::json!({"path": "/a.md"}),
    };
    Rule {
        id: approval().into(),
        owner: UserId::new(when(), [9; 10]),
        origin: Origin::Approval(approval()),
        agent: Some(AgentId::new(when(), [9; 10])),
        chat: Some(ChatId::new(when(), [9; 10])),
        run: Some(RunId::new(when(), [9; 10])),
        notebook: Some(NotebookId::new(when(), [9; 10])),
        tool: "write_file".to_owned(),
        when: place(),
        decision: Judgement::Allow,
        expires_at: Some(when()),
        created_at: when(),
        note: "Why not.".to_owned(),
        must_allow: vec![example.clone()],
        must_deny: vec![example],
    }
}

fn content_filtered(blocked: Option<usize>, redacted: Vec<usize>, labels: Labels) -> ContentFiltered {
    ContentFiltered { point: FilterPoint::Input, call: Some(call()), blocked, redacted, labels }
}

/// One event of each kind, with every field.
fn full() -> Vec<Event> {
    let usage = TokenUsage { input: 100, output: 20, cached: 50, reasoning: 5, cache_write: 0 };
    vec![
        run_started().into(),
        model_requested().into(),
        thought().into(),
        Said { turn: 1, text: long() }.into(),
        model_answered().into(),
        model_failed().into(),
        CallProposed { turn: 1, call: call(), tool: "write_file".to_owned(), arguments: Content::from("{}") }.into(),
        call_judged().into(),
        approval_asked().into(),
        decided().into(),
        call_started().into(),
        call_ended().into(),
        CallInDoubt {
            call: call(),
            approval: approval(),
            tool: "send".to_owned(),
            message: "Who knows.".to_owned(),
            summary: "Send it".to_owned(),
            arguments: Some(Content::from("{}")),
        }
        .into(),
        InDoubtResolved {
            approval: approval(),
            call: call(),
            outcome: DoubtOutcome::Happened,
            result: Some(Content::from("Sent.")),
            by: somebody(),
        }
        .into(),
        LabelsRaised { labels: Labels::UNTRUSTED, source: "attachment".to_owned() }.into(),
        content_filtered(Some(2), vec![0, 3], Labels::PRIVATE).into(),
        BudgetAlerted { purse: purse(), at: MicroUsd(5_000_000), spent: MicroUsd(5_100_000) }.into(),
        Paused { reason: PauseReason::Rate, until: Some(when()), by: None, ask: Some(Box::new(budget_ask())) }.into(),
        Resumed {
            by: Actor::Clock,
            raised: Some(Raise { purse: purse(), amount: MicroUsd(250_000) }),
            unpriced: Some("lab/one".to_owned()),
        }
        .into(),
        CancelAsked { by: Actor::Rule("halt".to_owned()), reason: "enough".to_owned() }.into(),
        Cancelled { reason: "enough".to_owned() }.into(),
        Errored { code: "max_turns".to_owned(), message: "It reached its limit.".to_owned(), retryable: true }.into(),
        RunEnded {
            status: EndStatus::Completed,
            result: Content::from("Done."),
            usage,
            cost: MicroUsd(1234),
            files_modified: vec!["/a.md".to_owned()],
        }
        .into(),
    ]
}

/// The same events without anything that may be left out.
fn least() -> Vec<Event> {
    full().into_iter().map(without_options).collect()
}

fn without_options(mut event: Event) -> Event {
    match &mut event {
        Event::RunStarted(body) => {
            (body.notebook, body.base, body.supersedes, body.user_message) = (None, None, None, None);
            (body.temperature, body.labels, body.metadata) = (None, Labels::NONE, BTreeMap::new());
            (body.options, body.key) = (ModelOptions::default(), None);
            (body.fallbacks, body.strategy, body.budget) = (Vec::new(), None, None);
            body.quoted = false;
            body.debug = false;
        }
        Event::ModelRequested(body) => {
            (body.dropped, body.reserved, body.purses, body.key) = (0, None, Vec::new(), None);
            body.price_version = None;
        }
        Event::Thought(body) => (body.signature, body.after_calls) = (None, 0),
        Event::ModelAnswered(body) => {
            (body.cost, body.price_version, body.first_ms, body.frames) = (None, None, None, None);
        }
        Event::ModelFailed(body) => {
            (body.retry_at, body.next, body.cost, body.frames) = (None, None, None, None);
            (body.model, body.partial, body.served_model) = (String::new(), false, None);
            (body.usage, body.estimated) = (None, false);
        }
        Event::CallJudged(body) => {
            (body.prepared, body.touches, body.standing, body.labels) = (None, Vec::new(), None, Labels::NONE);
            (body.verdict.smallest_grant, body.verdict.scopes) = (None, Vec::new());
        }
        Event::ApprovalAsked(body) => {
            (body.diff, body.target, body.intended, body.labels) = (None, Target::default(), None, Labels::NONE);
        }
        Event::ApprovalDecided(body) => (body.arguments, body.about, body.message) = (None, None, None),
        Event::CallStarted(body) => (body.target, body.intended, body.again) = (Target::default(), None, None),
        Event::CallEnded(body) => (body.rule, body.labels, body.resources) = (None, Labels::NONE, Vec::new()),
        Event::CallInDoubt(body) => (body.summary, body.arguments) = (String::new(), None),
        Event::InDoubtResolved(body) => body.result = None,
        Event::LabelsRaised(body) => body.labels = Labels::NONE,
        Event::ContentFiltered(body) => {
            *body = ContentFiltered { call: None, ..content_filtered(None, Vec::new(), Labels::NONE) };
        }
        Event::Paused(body) => (body.until, body.ask) = (None, None),
        Event::Resumed(body) => (body.raised, body.unpriced) = (None, None),
        Event::RunEnded(body) => body.files_modified = Vec::new(),
        Event::Said(_)
        | Event::CallProposed(_)
        | Event::BudgetAlerted(_)
        | Event::CancelAsked(_)
        | Event::Cancelled(_)
        | Event::Errored(_) => {}
    }
    event
}

fn body(event: &Event) -> String {
    String::from_utf8(event.encode(SALT).unwrap()).unwrap()
}

#[test]
fn every_kind_is_pinned() {
    let kinds: Vec<_> = full().iter().map(Event::kind).collect();
    assert_eq!(kinds, Event::KINDS, "one example of each kind, in the order of the list");
    for (event, least) in full().iter().zip(least()) {
        insta::assert_snapshot!(event.kind(), format!("{}\n{}", body(event), body(&least)));
    }
}

#[test]
fn what_is_pinned_reads_back() {
    for event in full().into_iter().chain(least()) {
        let stored = event.encode(SALT).unwrap();
        assert_eq!(Event::decode(event.kind(), &stored).unwrap(), event);
    }
}

#[test]
fn the_words_of_every_choice_are_pinned() {
    fn words<T: serde::Serialize>(values: &[T]) -> String {
        values.iter().map(|value| serde_json::to_string(value).unwrap()).collect::<Vec<_>>().join(" ")
    }
    let lines = [
        words(&[Effects::Live, Effects::Dry]),
        words(&[ThoughtForm::Reasoning, ThoughtForm::Text]),
        words(&[
            FinishReason::Stop,
            FinishReason::ToolCalls,
            FinishReason::Length,
            FinishReason::ContentFilter,
            FinishReason::Refusal,
            FinishReason::Error,
        ]),
        words(&[Judgement::Allow, Judgement::Ask, Judgement::Deny]),
        words(&[ApprovalKind::Call, ApprovalKind::InDoubt, ApprovalKind::Budget]),
        words(&[Risk::Low, Risk::Medium, Risk::High]),
        words(&GrantScope::ALL),
        words(&[Decision::Approve, Decision::Edit, Decision::Respond, Decision::Reject, Decision::Stop]),
        words(&[somebody(), Actor::Clock, Actor::Rule("x".to_owned())]),
        words(&[Recovery::Pure, Recovery::Idempotent, Recovery::Reconcile, Recovery::AskHuman]),
        words(&[ResourceAction::Created, ResourceAction::Changed, ResourceAction::Deleted]),
        words(&[DoubtOutcome::Happened, DoubtOutcome::Run, DoubtOutcome::Abandon]),
        words(&[PauseReason::Person, PauseReason::Budget, PauseReason::Rate]),
        words(&[EndStatus::Completed, EndStatus::Failed, EndStatus::Cancelled]),
        words(&[Labels::NONE, Labels::PRIVATE, Labels::UNTRUSTED, Labels::PRIVATE.join(Labels::UNTRUSTED)]),
    ];
    insta::assert_snapshot!("words", lines.join("\n"));
}

#[test]
fn an_unknown_kind_and_a_body_of_another_kind_are_refused() {
    let newer = Event::decode("teleported", b"{}").unwrap_err();
    assert!(matches!(&newer, BadEvent::UnknownKind(kind) if kind == "teleported"));
    assert!(newer.to_string().contains("newer version"));
    for broken in [&b"{}"[..], b"[]", b"", b"{\"salt\":\"00\"}", b"{\"call\":7}"] {
        for kind in Event::KINDS {
            assert!(matches!(Event::decode(kind, broken), Err(BadEvent::Body { .. })), "{kind}");
        }
    }
}

#[test]
fn a_field_that_a_newer_version_added_is_ignored() {
    let newer =
        body(&Event::from(Said { turn: 1, text: "Hi.".into() })).replace("{\"salt\"", "{\"mood\":\"fine\",\"salt\"");
    assert_eq!(Event::decode("said", newer.as_bytes()).unwrap(), Said { turn: 1, text: "Hi.".into() }.into());
}

#[test]
fn the_texts_of_an_event_are_those_that_may_live_in_blocks() {
    for event in full() {
        let stored = body(&event);
        for content in event.contents().into_iter().filter(|content| content.block().is_none()) {
            assert!(stored.contains(&serde_json::to_string(content).unwrap()), "{}", event.kind());
        }
    }
    let blocks: BTreeSet<_> = full()
        .iter()
        .flat_map(|event| event.contents().into_iter().filter_map(Content::block).collect::<Vec<_>>())
        .collect();
    assert_eq!(blocks, BTreeSet::from([long().block().unwrap()]));
    let mut ended = call_ended();
    ended.output = long();
    let blocks = Event::from(ended).blocks();
    assert_eq!(blocks, [long().block().unwrap(), Hash::of(b"before")], "what was there before is kept, too");
    assert!(full().iter().all(|event| !body(event).contains(&"x".repeat(4097))), "long texts are stored by reference");
}

#[test]
fn commands_are_asked_facts_are_kept_and_decisions_are_taken_again() {
    let of = |class| full().iter().filter(|event| event.class() == class).map(Event::kind).collect::<Vec<_>>();
    assert_eq!(of(Class::Command), ["run_started", "approval_decided", "in_doubt_resolved", "cancel_asked"]);
    assert_eq!(
        of(Class::Fact),
        [
            "thought",
            "said",
            "model_answered",
            "model_failed",
            "call_proposed",
            "call_ended",
            "call_in_doubt",
            "labels_raised",
            "content_filtered"
        ]
    );
    let mut refused = call_ended();
    refused.allowed = false;
    let pause = |reason| Event::from(Paused { reason, until: None, by: None, ask: None }).class();
    assert_eq!(Event::from(refused).class(), Class::Decision, "what was not run is concluded again");
    assert_eq!(Event::from(Resumed { by: somebody(), raised: None, unpriced: None }).class(), Class::Command);
    assert_eq!(Event::from(Resumed { by: Actor::Clock, raised: None, unpriced: None }).class(), Class::Decision);
    assert_eq!((pause(PauseReason::Person), pause(PauseReason::Budget)), (Class::Command, Class::Decision));
}
