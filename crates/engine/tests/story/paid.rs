//! What was paid for is kept, and counted: whatever fails around it, and whoever's key it was.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use adjutant_core::audit::{AuditEvent, Deed};
use adjutant_core::budget::{Budget, Owner, Period};
use adjutant_core::guard::policy::{AgentProblem, AgentSpec};
use adjutant_core::id::{KeyId, UserId};
use adjutant_core::money::MicroUsd;
use adjutant_core::routing::ModelChoice;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_engine::models::{ModelError, tokens};
use adjutant_engine::{Agent, AuditLog, EngineError, Frames, KeyOwner, NewKey, StartRun};
use adjutant_store::row::UsageFilter;

use super::money::{Shelf, agent, budget, failures, in_order, on_credit};
use super::{Clock, Stage, ask};

/// What is spent of an agent's month.
pub(super) async fn spent(agent: &Agent) -> u64 {
    let month = Period::Month.name(agent.engine().env().now(), "UTC");
    let purse = Owner::Agent(agent.id()).purse(Period::Month, &month);
    agent.engine().store().purse(&purse).await.unwrap().spent.0
}

/// Answers once with a failure that may have been paid for.
fn odd() -> ModelError {
    ModelError::Unknown { reason: "it spoke in tongues", status: None, detail: Default::default() }
}

fn shared(stage: &Arc<Stage>, sql: &'static str) -> Box<dyn FnOnce() + Send> {
    let stage = Arc::clone(stage);
    Box::new(move || stage.tamper(sql))
}

#[tokio::test]
async fn an_answer_is_kept_and_paid_once_though_nobody_can_look_which_amounts_are_reached() {
    let (stage, clock) = (Arc::new(Stage::new(&[])), Clock::new());
    let shelf = Shelf::new(&[]);
    let agent = agent(&stage, &shelf, &clock, |spec| spec.budget = Some(budget(r#"{"alert_at_usd":[0.0001]}"#))).await;
    *shelf.meanwhile.lock().unwrap() = Some(shared(&stage, "ALTER TABLE budgets RENAME TO budgets_away"));
    let run = agent.engine().start_run(agent.workspace(), ask(&agent)).await.unwrap();
    agent.engine().drive_run(run).await.unwrap();
    stage.tamper("ALTER TABLE budgets_away RENAME TO budgets");
    let report = agent.resume(run).await.unwrap();
    assert_eq!((report.status, report.cost_microusd), (Status::Completed, 110));
    assert_eq!((shelf.calls.load(Ordering::SeqCst), spent(&agent).await), (1, 110));
    let next = agent.run("go").await.unwrap();
    let mut alerts = Vec::new();
    for run in [run, next.id] {
        let events = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
        alerts.extend(events.into_iter().filter(|item| item.event.kind() == "budget_alerted"));
    }
    assert_eq!(alerts.len(), 1, "whoever can look says it, once");
}

#[tokio::test]
async fn a_failure_is_recorded_though_nobody_can_look_what_is_allowed_next() {
    let (stage, clock) = (Arc::new(Stage::new(&[])), Clock::new());
    let wait = ModelError::RateLimited { retry_after: Some(Duration::from_secs(900)), status: Some(429) };
    let shelf = Shelf::new(&[("a/one", &[wait])]);
    let agent = agent(&stage, &shelf, &clock, |_| {}).await;
    *shelf.meanwhile.lock().unwrap() = Some(shared(&stage, "ALTER TABLE agents RENAME TO agents_away"));
    let run = agent.engine().start_run(agent.workspace(), ask(&agent)).await.unwrap();
    let driven = agent.engine().drive_run(run).await;
    stage.tamper("ALTER TABLE agents_away RENAME TO agents");
    assert_eq!(failures(&agent, run).await, [("a/one".to_owned(), None)], "{driven:?}");
    clock.forward(1000);
    assert_eq!(agent.resume(run).await.unwrap().status, Status::Completed);
    assert_eq!(shelf.calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_failed_call_without_a_known_price_is_counted_as_unknown_and_a_refused_one_as_nothing() {
    let refused = ModelError::Unauthorized { status: Some(401), detail: Default::default() };
    for (error, cost, estimated) in [(odd(), None, true), (refused, Some(0), false)] {
        let (stage, clock) = (Stage::new(&[]), Clock::new());
        let shelf = Shelf::new(&[("unpriced/x", &[error])]);
        let agent = on_credit(&stage, &shelf, &clock, r#"{"allow_unpriced":true}"#).await;
        let report = agent.run("go").await.unwrap();
        assert_eq!((report.model_calls[0].cost_microusd, report.cost_estimated), (cost, estimated), "{report:#?}");
        let rows = agent.engine().store().model_calls(agent.workspace(), &UsageFilter::default(), 0, 9).await.unwrap();
        assert_eq!(rows[0].cost, cost.map(MicroUsd));
        let again = agent.engine().reprice(agent.workspace(), &UsageFilter::default()).await.unwrap();
        assert_eq!(again.unpriced, u64::from(cost.is_none()));
    }
}

#[tokio::test]
async fn a_call_whose_tokens_nobody_counted_counts_as_all_that_was_put_aside_for_it() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, in_order(&["a/one-silent"])).await;
    let report = agent.run("go").await.unwrap();
    let call = &report.model_calls[0];
    let reserved = call.reserved_microusd.unwrap();
    assert_eq!((report.status, report.cost_microusd, report.cost_estimated), (Status::Completed, reserved, true));
    assert_eq!((call.cost_microusd, call.price_version.as_deref()), (Some(reserved), Some("v7")));
    assert_eq!(spent(&agent).await, reserved, "an estimate may be too low, and no limit would hold");
    let rows = agent.engine().store().model_calls(agent.workspace(), &UsageFilter::default(), 0, 9).await.unwrap();
    assert!(rows[0].estimated && rows[0].usage.input > 0 && rows[0].usage.input < reserved, "{rows:?}");
    let again = agent.engine().reprice(agent.workspace(), &UsageFilter::default()).await.unwrap();
    assert_eq!((again.recorded, again.repriced), (MicroUsd(reserved), MicroUsd(reserved)));
}

#[tokio::test]
async fn a_failed_attempt_is_recorded_with_the_model_that_began_to_answer_and_its_tokens() {
    for (model, shown, output, estimated) in
        [("a/one-early", "", 1, false), ("work/gpt-5-early", "four words of it", 4, true)]
    {
        let (stage, clock) = (Stage::new(&[]), Clock::new());
        let agent = agent(&stage, &Shelf::breaking(model, shown, odd()), &clock, in_order(&[model])).await;
        let report = agent.run("go").await.unwrap();
        let call = &report.model_calls[0];
        assert_eq!((report.status, call.finish_reason.as_str()), (Status::Failed, "error"), "{report:#?}");
        let counted = if estimated { 0 } else { 100 };
        assert_eq!((call.model_served.as_deref(), report.token_usage.input), (Some("a/one-2026"), counted));
        let rows = agent.engine().store().model_calls(agent.workspace(), &UsageFilter::default(), 0, 9).await.unwrap();
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.served.as_deref(), row.usage.input, row.estimated), (Some("a/one-2026"), 100, estimated));
        assert_eq!(row.usage.output, output, "what was counted, or what came of it");
        assert_eq!((row.outcome.as_str(), row.has_failed()), ("unknown", true));
        assert_eq!(row.cost.map(|cost| cost.0), call.reserved_microusd, "it still counts as all that was put aside");
        let sums = agent.engine().store().usage(agent.workspace(), &UsageFilter::default()).await.unwrap();
        assert_eq!(sums.iter().map(|sum| sum.failed).sum::<u64>(), 1);
        let again = agent.engine().reprice(agent.workspace(), &UsageFilter::default()).await.unwrap();
        assert_eq!(again.recorded, again.repriced, "nobody knows what a broken answer cost");
    }
}

#[tokio::test]
async fn tokens_that_nobody_counted_are_counted_by_the_tokenizer_of_the_model_where_it_is_built_in() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, in_order(&["work/gpt-5-silent"])).await;
    let report = agent.run("hello world").await.unwrap();
    let exact = |text: &str| tokens::exact("openai", "gpt-5", text).unwrap();
    assert_eq!(report.model_calls[0].usage.output, exact("from work/gpt-5-silent"));
    let seen = agent.engine().seen(agent.workspace(), report.id, 1, Frames::LeftOut).await.unwrap();
    assert_eq!((seen.sizes.exact, seen.sizes.system_tokens), (true, exact(&seen.system)));
    let parts = || seen.messages.iter().flat_map(|message| &message.parts);
    assert!(parts().all(|part| part.tokens == exact(&part.text)), "{:?}", seen.messages);
    assert_eq!(seen.sizes.messages_tokens, parts().map(|part| part.tokens).sum::<u64>());
    assert_eq!(report.model_calls[0].usage.input, seen.sizes.estimated_tokens, "one way of counting for both");
}

#[tokio::test]
async fn a_call_that_nothing_was_put_aside_for_counts_as_the_most_that_its_answer_can_have_cost() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    *shelf.serves.lock().unwrap() = vec!["a/one"];
    let change = |spec: &mut AgentSpec| {
        in_order(&["unpriced/x-silent"])(spec);
        spec.budget = Some(budget(r#"{"run_usd":null,"month_usd":null}"#));
    };
    let agent = agent(&stage, &shelf, &clock, change).await;
    let first = agent.run("go").await.unwrap();
    assert_eq!(first.model_calls[0].reserved_microusd, None, "nobody knew what it is");
    let second = agent.run("go").await.unwrap();
    let reserved = second.model_calls[0].reserved_microusd;
    assert!(reserved.is_some() && first.model_calls[0].cost_microusd == reserved, "{first:#?} {second:#?}");
    assert_eq!(spent(&agent).await, first.cost_microusd + second.cost_microusd);
}

#[tokio::test]
async fn a_name_that_several_answer_for_is_put_aside_for_at_the_price_of_the_dearest() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    *shelf.serves.lock().unwrap() = vec!["a/one", "a/one", "dear/one", "a/one"];
    let change = |spec: &mut AgentSpec| {
        in_order(&["unpriced/x"])(spec);
        spec.budget = Some(budget(r#"{"run_usd":null,"month_usd":null}"#));
    };
    let agent = agent(&stage, &shelf, &clock, change).await;
    let mut reserved = Vec::new();
    for _ in 0..5 {
        reserved.push(agent.run("go").await.unwrap().model_calls[0].reserved_microusd);
    }
    let cheap = reserved[1].unwrap();
    assert_eq!(reserved, [None, Some(cheap), Some(cheap), Some(cheap * 10), Some(cheap * 10)]);
}

async fn keep_key(agent: &Agent, owner: KeyOwner, provider: &str) -> KeyId {
    let (provider, value) = (provider.to_owned(), "sk-brought-0123456789".into());
    let new = NewKey { owner, name: format!("for {provider}"), provider, value, hosts: Vec::new() };
    agent.engine().add_key(agent.workspace(), agent.user(), new).await.unwrap().id
}

#[tokio::test]
async fn a_server_that_is_free_without_a_key_has_no_known_price_for_those_who_bring_one() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, in_order(&["home/llama"])).await;
    let free = agent.run("go").await.unwrap();
    assert_eq!((free.status, free.cost_microusd, free.cost_estimated), (Status::Completed, 0, false));
    keep_key(&agent, KeyOwner::Person(agent.user()), "home").await;
    let held = agent.run("go").await.unwrap();
    assert_eq!((held.status, held.pending_approvals.len()), (Status::Paused, 1), "{held:#?}");
}

#[tokio::test]
async fn whether_a_price_is_known_goes_by_the_key_that_a_model_is_called_with() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let change = |spec: &mut AgentSpec| {
        in_order(&["home/llama"])(spec);
        spec.requires = Some(serde_json::from_str(r#"["price_known"]"#).unwrap());
    };
    let agent = agent(&stage, &Shelf::new(&[]), &clock, change).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let elsewhere = keep_key(&agent, KeyOwner::Person(agent.user()), "a").await;
    let named = StartRun { key: Some(elsewhere), ..ask(&agent) };
    let run = engine.start_run(workspace, named).await.unwrap();
    let report = agent.resume(run).await.unwrap();
    assert_eq!((report.status, report.cost_microusd), (Status::Completed, 0), "a key for another provider");
    keep_key(&agent, KeyOwner::Person(agent.user()), "home").await;
    let refused = engine.start_run(workspace, ask(&agent)).await.unwrap_err().to_string();
    assert!(refused.contains("the price of `home/llama` is not known"), "{refused}");
}

#[tokio::test]
async fn a_good_key_of_an_account_without_the_cheapest_models_is_called_good() {
    let gone = || ModelError::UnknownModel { model: "x".to_owned(), hint: String::new() };
    let test = async |failures: &[(&str, &[ModelError])], model: Option<&str>| {
        let (stage, clock) = (Stage::new(&[]), Clock::new());
        let shelf = Shelf::new(failures);
        let agent = agent(&stage, &shelf, &clock, |_| {}).await;
        let key = keep_key(&agent, KeyOwner::Person(agent.user()), "a").await;
        let model = model.map(str::to_owned);
        let tested = agent.engine().test_key(agent.workspace(), agent.user(), key, model).await.unwrap();
        (tested, shelf.calls.load(Ordering::SeqCst))
    };
    let (tested, calls) = test(&[("a/rare", &[gone()]), ("a/scarce", &[gone()])], None).await;
    assert_eq!((tested.ok, tested.model.as_str(), tested.message, calls), (true, "a/one", None, 3));
    let all = [("a/rare", &[gone()][..]), ("a/scarce", &[gone()][..]), ("a/one", &[gone()][..])];
    let (tested, calls) = test(&all, None).await;
    assert_eq!((tested.ok, calls), (true, 3), "a fourth is not asked");
    assert_eq!(tested.message.as_deref(), Some("the key is good; the model `a/one` is not there"));
    let (tested, calls) = test(&[("a/scarce", &[gone()])], Some("a/scarce")).await;
    assert_eq!((tested.ok, tested.model.as_str(), calls), (true, "a/scarce", 1), "what is named is asked alone");
    let refused = ModelError::Unauthorized { status: Some(401), detail: Default::default() };
    let (tested, calls) = test(&[("a/rare", &[refused])], None).await;
    assert_eq!((tested.ok, tested.class.as_deref(), calls), (false, Some("unauthorized"), 1));
}

#[tokio::test]
async fn how_many_tokens_a_request_is_for_a_model_is_known_after_a_restart_too() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let started = async || agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let run = started().await.run("go").await.unwrap().id;
    let again = started().await;
    let seen = again.engine().seen(again.workspace(), run, 1, Frames::LeftOut).await.unwrap();
    assert_eq!(seen.sizes.estimated_tokens, 100, "as its provider counted it");
}

async fn naming(agent: &Agent, models: &[&str], key: Option<KeyId>) -> Result<(), EngineError> {
    let row = agent.engine().find_agent(agent.workspace(), "embedded").await?;
    let models = models.iter().map(|name| (*name).to_owned()).collect();
    let spec = AgentSpec {
        name: "Tester".to_owned(),
        slug: Some("embedded".to_owned()),
        model: Some(ModelChoice::InOrder(models)),
        scope: Some(serde_json::from_str(r#"{"notebooks":["*"],"folders":["/"]}"#).unwrap()),
        provider_key_id: key,
        ..AgentSpec::default()
    };
    agent.engine().save_agent(agent.workspace(), Actor::User(agent.user()), spec, row.version).await.map(drop)
}

#[tokio::test]
async fn a_key_that_an_agent_names_counts_for_its_provider_alone() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let kim: UserId = agent.engine().env().id();
    let theirs = keep_key(&agent, KeyOwner::Person(kim), "b").await;
    naming(&agent, &["a/one"], Some(theirs)).await.unwrap();
    let done = agent.run("go").await.unwrap();
    assert_eq!(done.status, Status::Completed, "{:?}", done.error);
    naming(&agent, &["b/two"], Some(theirs)).await.unwrap();
    let stopped = agent.run("go").await.unwrap();
    assert_eq!(stopped.status, Status::Failed, "for its own provider nobody else pays");
    assert!(stopped.error.unwrap().message.contains("Nothing was sent"));
}

#[tokio::test]
async fn an_agent_that_names_a_key_it_could_never_use_is_not_saved() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let none: KeyId = agent.engine().env().id();
    let anothers = keep_key(&agent, KeyOwner::Agent(agent.engine().env().id()), "a").await;
    for key in [none, anothers] {
        let refused = naming(&agent, &["a/one"], Some(key)).await.unwrap_err();
        let EngineError::InvalidAgent(problems) = &refused else { panic!("{refused}") };
        assert!(matches!(&problems[..], [AgentProblem { field, .. }] if field == "provider_key_id"), "{refused}");
    }
    let own = keep_key(&agent, KeyOwner::Agent(agent.id()), "a").await;
    naming(&agent, &["a/one"], Some(own)).await.unwrap();
}

/// How often it was recorded outside of runs that an amount is reached.
async fn alerts(agent: &Agent) -> usize {
    let log = AuditLog::Workspace(agent.workspace());
    let entries = agent.engine().audit_log(log).await.unwrap();
    entries
        .iter()
        .filter(|entry| matches!(&entry.event, Some(AuditEvent::Act(act)) if act.deed == Deed::AmountReached))
        .count()
}

#[tokio::test]
async fn what_a_test_of_a_key_cost_is_settled_though_nobody_can_point_an_amount_out() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let mine = Owner::Person(workspace, user);
    let limits = Budget { alert_at_usd: vec![0.00001], ..Budget::default() };
    engine.save_budget(workspace, user, mine, &limits).await.unwrap();
    let key = keep_key(&agent, KeyOwner::Person(user), "a").await;
    stage.tamper(
        "CREATE TRIGGER deaf BEFORE UPDATE OF alerted ON purses WHEN new.alerted <> old.alerted \
         BEGIN SELECT RAISE(ABORT, 'nobody may be told'); END",
    );
    let test = async || engine.test_key(workspace, user, key, Some("a/one-cached".to_owned())).await.unwrap();
    assert!(test().await.ok, "it was paid for, and its answer is good");
    let purse = mine.purse(Period::Month, &Period::Month.name(engine.env().now(), "UTC"));
    let spent = engine.store().purse(&purse).await.unwrap().spent;
    let rows = engine.store().model_calls(workspace, &UsageFilter::default(), 0, 9).await.unwrap();
    assert_eq!((rows.len(), rows[0].cost, rows[0].usage.cached), (1, Some(spent), 40), "what was put aside is settled");
    assert_eq!(alerts(&agent).await, 0);
    stage.tamper("DROP TRIGGER deaf");
    assert!(test().await.ok);
    assert_eq!(alerts(&agent).await, 1, "the next call says it");
}

#[tokio::test]
async fn a_test_of_a_key_whose_tokens_nobody_counted_counts_as_all_that_was_put_aside_for_it() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[]), &clock, |_| {}).await;
    let key = keep_key(&agent, KeyOwner::Person(agent.user()), "a").await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    assert!(engine.test_key(workspace, agent.user(), key, Some("a/one-silent".to_owned())).await.unwrap().ok);
    let entries = engine.audit_log(AuditLog::Workspace(workspace)).await.unwrap();
    let reserved = entries.iter().find_map(|entry| match &entry.event {
        Some(AuditEvent::Act(act)) if act.deed == Deed::KeyTestAsked => act.detail["reserved_microusd"].as_u64(),
        _ => None,
    });
    let rows = engine.store().model_calls(workspace, &UsageFilter::default(), 0, 9).await.unwrap();
    assert!(reserved.is_some() && rows[0].cost == reserved.map(MicroUsd), "{reserved:?} {rows:?}");
    assert!(rows[0].estimated);
    let purse =
        Owner::Person(workspace, agent.user()).purse(Period::Month, &Period::Month.name(engine.env().now(), "UTC"));
    assert_eq!(Some(engine.store().purse(&purse).await.unwrap().spent), rows[0].cost);
}

#[tokio::test]
async fn a_test_of_a_key_that_failed_says_by_which_prices_it_counts() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = agent(&stage, &Shelf::new(&[("a/one", &[odd()])]), &clock, |_| {}).await;
    let key = keep_key(&agent, KeyOwner::Person(agent.user()), "a").await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    assert!(!engine.test_key(workspace, agent.user(), key, Some("a/one".to_owned())).await.unwrap().ok);
    let rows = engine.store().model_calls(workspace, &UsageFilter::default(), 0, 9).await.unwrap();
    assert_eq!(rows[0].price_version.as_deref(), Some("v7"));
    assert!(rows[0].cost.is_some_and(|cost| cost > MicroUsd::ZERO));
}
