//! Models that stand in for each other, and budgets that hold.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::budget::{Budget, BudgetSpec};
use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::label::Labels;
use adjutant_core::message::{FinishReason, ModelAnswer, ModelRequest};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::routing::ModelChoice;
use adjutant_core::run::event::{Decision, Event, PauseReason};
use adjutant_core::run::status::Status;
use adjutant_engine::models::catalog::{ModelFacts, PriceTier, Prices, Rate};
use adjutant_engine::models::{BroughtKey, DeltaSink, Model, ModelError, tokens};
use adjutant_engine::{Agent, ChatChange, EngineError, ImportChat, ImportedRun, ModelSource, StartRun};
use adjutant_store::row::{BudgetRow, UsageFilter};
use async_trait::async_trait;
use futures::future::join_all;

use super::{Clock, Stage, ask};

/// Models by name: each fails so often with what it is given, then answers. A token costs a dollar, so that one call costs
/// at most what the agent may write, and its question. Those called `-silent` count no tokens; those called `-early` say
/// at once who answers and what was read.
#[derive(Default)]
pub(super) struct Shelf {
    failures: Mutex<BTreeMap<String, Vec<ModelError>>>,
    shown: &'static str,
    /// Whether each call costs all that it can.
    greedy: bool,
    /// The models that answer one after the other, the last for ever, whichever was asked.
    pub(super) serves: Mutex<Vec<&'static str>>,
    /// What happens while a model is asked, once.
    pub(super) meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    asked: Mutex<Vec<String>>,
    pub(super) calls: AtomicUsize,
}

impl Shelf {
    pub(super) fn new(failures: &[(&str, &[ModelError])]) -> Arc<Self> {
        let failures = failures.iter().map(|(name, errors)| ((*name).to_owned(), errors.to_vec())).collect();
        Arc::new(Self { failures: Mutex::new(failures), ..Self::default() })
    }

    /// One whose model shows something and fails once, before it answers.
    pub(super) fn breaking(model: &str, shown: &'static str, error: ModelError) -> Arc<Self> {
        let failures = Mutex::new([(model.to_owned(), vec![error])].into());
        Arc::new(Self { failures, shown, ..Self::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

struct OnShelf(Arc<Shelf>);

impl ModelSource for OnShelf {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        if name.starts_with("gone/") {
            return Err(ModelError::UnknownModel { model: name.to_owned(), hint: String::new() });
        }
        Ok(Arc::new(Book(Arc::clone(&self.0))))
    }

    fn facts(&self, name: &str) -> Option<ModelFacts> {
        let (provider, model) = name.split_once('/')?;
        if provider == "unpriced" {
            return None;
        }
        if provider == "home" {
            return Some(ModelFacts::unknown(provider, model).free_without_key());
        }
        let rate = Some(Rate(if provider == "dear" { 10_000_000 } else { 1_000_000 }));
        let base = PriceTier { input: rate, output: rate, ..PriceTier::default() };
        let prices = Prices { base, over: Vec::new() };
        Some(ModelFacts { prices, version: "v7".to_owned(), ..ModelFacts::free(provider, model) })
    }

    fn model_with(&self, name: &str, _key: BroughtKey) -> Result<Arc<dyn Model>, ModelError> {
        self.model(name)
    }

    fn host(&self, provider: &str) -> Option<String> {
        Some(format!("{provider}.example"))
    }

    fn kind_of(&self, provider: &str) -> Option<&'static str> {
        (provider == "work").then_some("openai")
    }

    fn cheapest(&self, provider: &str) -> Vec<String> {
        ["rare", "scarce", "one", "two"].map(|model| format!("{provider}/{model}")).into()
    }
}

struct Book(Arc<Shelf>);

impl Book {
    fn served(&self) -> Option<&'static str> {
        let mut serves = self.0.serves.lock().unwrap();
        if serves.len() > 1 { Some(serves.remove(0)) } else { serves.first().copied() }
    }

    fn usage(&self, request: &ModelRequest) -> TokenUsage {
        let (input, output) = match self.0.greedy {
            true => (tokens::bound(request), u64::from(request.max_tokens)),
            false => (100, 10),
        };
        let cached = if request.model.ends_with("-cached") { 40 } else { 0 };
        TokenUsage { input, output, cached, ..TokenUsage::default() }
    }
}

#[async_trait]
impl Model for Book {
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        self.0.calls.fetch_add(1, Ordering::SeqCst);
        self.0.asked.lock().unwrap().push(request.model.clone());
        if request.model.ends_with("-early") {
            deltas.served_by("a/one-2026");
            deltas.counted(TokenUsage { input: 100, output: 1, ..TokenUsage::default() });
        }
        deltas.text(self.0.shown);
        if let Some(meanwhile) = self.0.meanwhile.lock().unwrap().take() {
            meanwhile();
        }
        if let Some(error) = self.0.failures.lock().unwrap().get_mut(&request.model).and_then(Vec::pop) {
            return Err(error);
        }
        Ok(ModelAnswer {
            thinking: Vec::new(),
            text: format!("from {}", request.model),
            calls: Vec::new(),
            usage: (!request.model.ends_with("-silent")).then(|| self.usage(request)),
            charged: None,
            finish: FinishReason::Stop,
            served_model: self.served().unwrap_or(&request.model).to_owned(),
        })
    }
}

pub(super) async fn agent(
    stage: &Stage,
    shelf: &Arc<Shelf>,
    clock: &Clock,
    change: impl FnOnce(&mut AgentSpec),
) -> Agent {
    let source: Arc<dyn ModelSource> = Arc::new(OnShelf(Arc::clone(shelf)));
    let builder = stage.bare().models(source, "a/one").env(clock.env()).toolsets([]).master_key([7; 32]);
    builder.configure(|spec| spec.max_tokens_per_request = Some(100)).configure(change).build().await.unwrap()
}

pub(super) fn in_order(models: &[&str]) -> impl FnOnce(&mut AgentSpec) {
    let models = models.iter().map(|name| (*name).to_owned()).collect();
    move |spec| spec.model = Some(ModelChoice::InOrder(models))
}

pub(super) fn budget(json: &str) -> BudgetSpec {
    serde_json::from_str(json).unwrap()
}

pub(super) async fn failures(agent: &Agent, run: adjutant_core::id::RunId) -> Vec<(String, Option<String>)> {
    let recorded = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
    let failed = recorded.into_iter().filter_map(|item| match item.event {
        Event::ModelFailed(body) => Some((body.model, body.next)),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn another_model_stands_in_and_every_attempt_is_in_the_record() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let gone = ModelError::RateLimited { retry_after: Some(std::time::Duration::from_secs(900)), status: Some(429) };
    let shelf = Shelf::new(&[("a/one", &[gone])]);
    let agent = agent(&stage, &shelf, &clock, in_order(&["a/one", "gone/away", "b/two"])).await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.status, report.result.as_str()), (Status::Completed, "from b/two"));
    assert_eq!(shelf.asked(), ["a/one", "b/two"], "what is not here cannot stand in");
    assert_eq!(failures(&agent, report.id).await, [("a/one".to_owned(), Some("b/two".to_owned()))]);
    let [first, second] = &report.model_calls[..] else { panic!("{:#?}", report.model_calls) };
    assert_eq!(
        (first.model_asked.as_str(), first.cost_microusd, first.fallback.as_deref()),
        ("a/one", Some(0), Some("b/two"))
    );
    assert_eq!((second.model_asked.as_str(), second.cost_microusd), ("b/two", Some(110)));
    assert_eq!((second.price_version.as_deref(), second.model_served.as_deref()), (Some("v7"), Some("b/two")));
    assert_eq!((report.cost_microusd, report.cost_estimated), (110, false));
    let rows = agent.engine().store().model_calls(agent.workspace(), &UsageFilter::default(), 0, 9).await.unwrap();
    let rows: Vec<_> = rows.iter().map(|row| (row.model.as_str(), row.outcome.as_str(), row.cost)).collect();
    assert_eq!(rows, [("a/one", "rate_limited", Some(MicroUsd(0))), ("b/two", "stop", Some(MicroUsd(110)))]);
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
}

#[tokio::test]
async fn what_is_private_and_untrusted_goes_to_no_other_provider() {
    for (other, elsewhere) in [("b/two", true), ("a/three", false)] {
        let (stage, clock) = (Stage::new(&[]), Clock::new());
        let gone = ModelError::RateLimited { retry_after: Some(Duration::from_secs(900)), status: Some(429) };
        let shelf = Shelf::new(&[("a/one", &[gone.clone(), gone])]);
        let agent = agent(&stage, &shelf, &clock, in_order(&["a/one", other])).await;
        let said = ImportedRun {
            message: Some("before".to_owned()),
            answer: "what somebody sent".to_owned(),
            model: "x/y".to_owned(),
        };
        let (user, title) = (agent.user(), "Brought".to_owned());
        let brought = ImportChat { user, agent: agent.id(), notebook: None, title, said: vec![said] };
        let chat = agent.engine().import_chat(agent.workspace(), brought).await.unwrap();
        let report = agent.run_in(Some(chat.id), "go").await.unwrap();
        let labels = agent.engine().run_state(agent.workspace(), report.id).await.unwrap().labels;
        assert_eq!(labels, Labels::PRIVATE.join(Labels::UNTRUSTED), "nobody knows what was in it");
        let next = (!elsewhere).then(|| other.to_owned());
        assert_eq!(failures(&agent, report.id).await, [("a/one".to_owned(), next)]);
        assert_eq!(shelf.asked().contains(&other.to_owned()), !elsewhere, "{:?}", shelf.asked());
        // The same agent may ask anybody about what is new.
        let clean = agent.run("go").await.unwrap();
        assert_eq!(failures(&agent, clean.id).await, [("a/one".to_owned(), Some(other.to_owned()))]);
        assert_eq!(clean.result, format!("from {other}"));
    }
}

#[tokio::test]
async fn no_other_model_is_asked_once_a_piece_of_an_answer_was_shown() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let refused = ModelError::RateLimited { retry_after: Some(std::time::Duration::from_secs(900)), status: Some(429) };
    let failures_of_one = BTreeMap::from([("a/one".to_owned(), vec![refused])]);
    let shelf = Arc::new(Shelf { failures: Mutex::new(failures_of_one), shown: "so far", ..Shelf::default() });
    let agent = agent(&stage, &shelf, &clock, in_order(&["a/one", "b/two"])).await;
    let report = agent.run("go").await.unwrap();
    assert_eq!(failures(&agent, report.id).await, [("a/one".to_owned(), None)]);
    assert!(shelf.asked().iter().all(|model| model == "a/one"), "{:?}", shelf.asked());
}

/// An agent of a model without a known price.
pub(super) async fn on_credit(stage: &Stage, shelf: &Arc<Shelf>, clock: &Clock, json: &str) -> Agent {
    let budget = budget(json);
    let change = |spec: &mut AgentSpec| {
        in_order(&["unpriced/x"])(spec);
        spec.budget = Some(budget);
    };
    agent(stage, shelf, clock, change).await
}

#[tokio::test]
async fn a_price_that_is_not_known_stays_unknown_where_nothing_limits_it() {
    for allowed in [r#"{"run_usd":null,"month_usd":null}"#, r#"{"allow_unpriced":true}"#] {
        let (stage, clock) = (Stage::new(&[]), Clock::new());
        let agent = on_credit(&stage, &Shelf::new(&[]), &clock, allowed).await;
        let report = agent.run("go").await.unwrap();
        assert_eq!((report.model_calls[0].cost_microusd, report.cost_estimated), (None, true), "{allowed}");
    }
}

#[tokio::test]
async fn a_model_without_a_known_price_escapes_no_budget_unless_a_person_lets_it() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    let agent = on_credit(&stage, &shelf, &clock, "{}").await;
    for answer in [Decision::Approve, Decision::Reject] {
        let held = agent.run("go").await.unwrap();
        assert_eq!(held.status, Status::Paused, "a yes counts for one run");
        let state = agent.engine().run_state(agent.workspace(), held.id).await.unwrap();
        let ask = state.pause.clone().and_then(|pause| pause.ask).unwrap();
        assert_eq!((ask.unpriced.as_deref(), ask.raise), (Some("unpriced/x"), MicroUsd::ZERO));
        assert!(ask.purse.starts_with("agent/"), "the widest limit that it would escape: {}", ask.purse);
        let rows = agent.engine().store().approvals(agent.workspace(), &Default::default(), 9).await.unwrap();
        let row = rows.iter().find(|row| row.id == ask.approval).unwrap();
        assert!(row.card.contains("The price of the model `unpriced/x` is not known"), "{}", row.card);
        agent.decide(ask.approval, answer).await.unwrap();
        let over = agent.resume(held.id).await.unwrap();
        let expected = if answer == Decision::Approve { Status::Completed } else { Status::Cancelled };
        assert_eq!(over.status, expected);
    }
    assert_eq!(shelf.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_an_agent_gives_up_is_its_own_limit_and_nobody_elses() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    let agent = on_credit(&stage, &shelf, &clock, r#"{"allow_unpriced":true}"#).await;
    let less = StartRun { max_cost: Some(MicroUsd(9)), ..ask(&agent) };
    let run = agent.engine().start_run(agent.workspace(), less).await.unwrap();
    let held = agent.resume(run).await.unwrap();
    assert_eq!((held.status, held.budget_microusd), (Status::Paused, Some(9)), "the starter's limit");
    let mine = adjutant_core::budget::Owner::Person(agent.workspace(), agent.user());
    let limits = |allow_unpriced| Budget { day_usd: Some(1.0), allow_unpriced, ..Budget::default() };
    let engine = agent.engine();
    engine.save_budget(agent.workspace(), agent.user(), mine, &limits(false)).await.unwrap();
    assert_eq!(agent.run("go").await.unwrap().status, Status::Paused, "the person's limit");
    engine.save_budget(agent.workspace(), agent.user(), mine, &limits(true)).await.unwrap();
    assert_eq!(agent.run("go").await.unwrap().status, Status::Completed);
}

#[tokio::test]
async fn a_deployment_with_a_name_of_its_own_has_the_price_of_the_model_that_answers() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Arc::new(Shelf { serves: Mutex::new(vec!["a/one"]), ..Shelf::default() });
    let agent = on_credit(&stage, &shelf, &clock, "{}").await;
    let held = agent.run("go").await.unwrap();
    assert_eq!(held.status, Status::Paused, "nobody knows yet what it is");
    agent.decide(held.pending_approvals[0], Decision::Approve).await.unwrap();
    let first = agent.resume(held.id).await.unwrap();
    assert_eq!((first.status, first.cost_microusd, first.cost_estimated), (Status::Completed, 110, false));
    assert_eq!(super::paid::spent(&agent).await, 110, "its answer told what it cost, and that is taken from the purse");
    let second = agent.run("go").await.unwrap();
    assert_eq!((second.status, second.cost_microusd), (Status::Completed, 110), "and now it is put aside for");
    assert!(second.model_calls[0].reserved_microusd.is_some_and(|reserved| reserved > 110));
}

#[tokio::test]
async fn a_run_without_money_holds_asks_and_goes_on_from_the_same_event() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    let agent = agent(&stage, &shelf, &clock, |spec| spec.budget = Some(budget(r#"{"run_usd":0.0001}"#))).await;
    let held = agent.run("go").await.unwrap();
    assert_eq!((held.status, shelf.calls.load(Ordering::SeqCst)), (Status::Paused, 0));
    let state = agent.engine().run_state(agent.workspace(), held.id).await.unwrap();
    let pause = state.pause.clone().unwrap();
    let ask = pause.ask.clone().unwrap();
    assert_eq!((pause.reason, pause.until, ask.raise), (PauseReason::Budget, None, MicroUsd(250_000)));
    assert_eq!(held.pending_approvals, [ask.approval]);
    let rows = agent.engine().store().approvals(agent.workspace(), &Default::default(), 9).await.unwrap();
    assert_eq!((rows[0].kind.as_str(), rows[0].status.as_str()), ("budget", "pending"));
    assert!(rows[0].card.contains("+$0.25 and continue?"), "{}", rows[0].card);
    let again = agent.resume(held.id).await.unwrap();
    assert_eq!(again.status, Status::Paused, "asking again changes nothing");
    agent.decide(ask.approval, Decision::Approve).await.unwrap();
    let done = agent.resume(held.id).await.unwrap();
    assert_eq!((done.status, done.cost_microusd), (Status::Completed, 110));
    assert!(matches!(agent.decide(ask.approval, Decision::Approve).await, Err(EngineError::Refused(_))));
    let rows = agent.engine().store().approvals(agent.workspace(), &Default::default(), 9).await.unwrap();
    assert_eq!(rows[0].status, "approved");
    agent.engine().rebuild_run(agent.workspace(), held.id).await.unwrap();
    let rebuilt = agent.engine().store().approvals(agent.workspace(), &Default::default(), 9).await.unwrap();
    assert_eq!(rebuilt, rows);
}

#[tokio::test]
async fn of_sixty_four_runs_on_a_budget_of_ten_calls_ten_call_and_the_others_hold_and_can_go_on() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Arc::new(Shelf { greedy: true, ..Shelf::default() });
    let agent = agent(&stage, &shelf, &clock, |_| {}).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    // One call first, to know what each costs: they are all alike.
    let each = agent.run("go").await.unwrap().cost_microusd;
    let row = BudgetRow {
        workspace,
        kind: "workspace".to_owned(),
        subject: workspace.to_string(),
        body: serde_json::to_string(&Budget { day_usd: Some(each as f64 * 11.0 / 1e6), ..Budget::default() }).unwrap(),
        saved_at: engine.env().now(),
    };
    engine.store().save_budget(&row).await.unwrap();
    let mut runs = Vec::new();
    for _ in 0..64 {
        runs.push(engine.start_run(workspace, ask(&agent)).await.unwrap());
    }
    let reports = join_all(runs.iter().map(|run| agent.resume(*run))).await;
    let reports: Vec<_> = reports.into_iter().map(Result::unwrap).collect();
    let done = reports.iter().filter(|report| report.status == Status::Completed).count();
    let held: Vec<_> = reports.iter().filter(|report| report.status == Status::Paused).collect();
    assert_eq!((done, held.len(), shelf.calls.load(Ordering::SeqCst)), (10, 54, 11));
    let spent = engine.store().usage(workspace, &UsageFilter::default()).await.unwrap();
    assert_eq!(spent.iter().map(|row| row.cost.0).sum::<u64>(), each * 11);
    let refused = engine.start_run(workspace, ask(&agent)).await.unwrap_err();
    assert!(matches!(refused, EngineError::BudgetExhausted { whose: "workspace", period: "day", .. }), "{refused}");
    agent.decide(held[0].pending_approvals[0], Decision::Approve).await.unwrap();
    assert_eq!(agent.resume(held[0].id).await.unwrap().status, Status::Completed);
    agent.decide(held[1].pending_approvals[0], Decision::Reject).await.unwrap();
    assert_eq!(agent.resume(held[1].id).await.unwrap().status, Status::Cancelled);
    clock.forward(24 * 3600);
    assert_eq!(agent.resume(held[2].id).await.unwrap().status, Status::Completed, "another day, another budget");
}

#[tokio::test]
async fn each_amount_is_pointed_out_once_and_over_the_soft_limit_runs_are_cheaper() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    let json = r#"{"alert_at_usd":[0.00005,0.0001,0.0003],"soft_usd":0.0004,"cheaper_model":"b/cheap"}"#;
    let agent = agent(&stage, &shelf, &clock, |spec| spec.budget = Some(budget(json))).await;
    let mut alerts = Vec::new();
    let mut models = Vec::new();
    for _ in 0..5 {
        let report = agent.run("go").await.unwrap();
        models.push(report.provenance.model.clone());
        for item in agent.engine().recorded(agent.workspace(), report.id, 0, None).await.unwrap() {
            if let Event::BudgetAlerted(body) = item.event {
                alerts.push((models.len(), body.at.0, body.spent.0));
            }
        }
    }
    assert_eq!(alerts, [(1, 50, 110), (1, 100, 110), (3, 300, 330)]);
    assert_eq!(models, ["a/one", "a/one", "a/one", "a/one", "b/cheap"]);
}

#[tokio::test]
async fn what_a_chat_says_goes_before_the_agent_and_after_the_soft_limit() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let busy = ModelError::Overloaded { retry_after: Some(Duration::from_secs(60)), status: Some(503) };
    let shelf = Shelf::new(&[("c/three", &[busy])]);
    let change = |spec: &mut AgentSpec| {
        in_order(&["a/one", "b/two"])(spec);
        spec.budget = Some(budget(r#"{"soft_usd":0.0002,"cheaper_model":"b/cheap"}"#));
    };
    let agent = agent(&stage, &shelf, &clock, change).await;
    let (engine, workspace, user) = (agent.engine(), agent.workspace(), agent.user());
    let first = agent.run("go").await.unwrap();
    let chat = engine.store().chat(workspace, first.chat_id).await.unwrap().unwrap();
    let change = ChatChange { model: Some("c/three".to_owned()), ..ChatChange::default() };
    engine.change_chat(user, &chat, change).await.unwrap();
    let second = agent.run_in(Some(chat.id), "go").await.unwrap();
    assert_eq!(second.provenance.model, "c/three");
    assert_eq!(second.result, "from b/two", "those that the agent names still stand in");
    let third = agent.run_in(Some(chat.id), "go").await.unwrap();
    assert_eq!(third.provenance.model, "b/cheap", "much was spent");
    let edited = engine.edit_run(workspace, user, third.id, "again").await.unwrap();
    assert_eq!(agent.resume(edited).await.unwrap().provenance.model, "b/cheap");
    let named = StartRun { chat: Some(chat.id), model: Some("d/four".to_owned()), ..ask(&agent) };
    let named = engine.start_run(workspace, named).await.unwrap();
    assert_eq!(agent.resume(named).await.unwrap().provenance.model, "d/four", "whoever names one knows what it costs");
}

#[tokio::test]
async fn a_call_that_failed_and_counts_is_pointed_out_too_and_says_by_which_prices() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let odd = ModelError::Unknown { reason: "it spoke in tongues", status: None, detail: Default::default() };
    let shelf = Shelf::new(&[("a/one", &[odd])]);
    let change = |spec: &mut AgentSpec| spec.budget = Some(budget(r#"{"alert_at_usd":[0.00005]}"#));
    let agent = agent(&stage, &shelf, &clock, change).await;
    let report = agent.run("go").await.unwrap();
    let run = report.id;
    let events = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
    let kinds: Vec<_> = events.iter().map(|item| item.event.kind()).collect();
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap_or_else(|| panic!("{kinds:?}"));
    assert!(at("model_failed") < at("budget_alerted"), "{kinds:?}");
    let failed = &report.model_calls[0];
    assert_eq!((failed.outcome.as_str(), failed.price_version.as_deref()), ("unknown", Some("v7")));
    assert_eq!(failed.cost_microusd, failed.reserved_microusd);
}

#[tokio::test]
async fn a_run_may_be_given_less_than_its_agent_allows_and_never_more() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let shelf = Shelf::new(&[]);
    let agent = agent(&stage, &shelf, &clock, |_| {}).await;
    for (max_cost, status, limit) in [(1, Status::Paused, 1), (9_000_000, Status::Completed, 500_000)] {
        let ask = StartRun { max_cost: Some(MicroUsd(max_cost)), ..ask(&agent) };
        let run = agent.engine().start_run(agent.workspace(), ask).await.unwrap();
        let report = agent.resume(run).await.unwrap();
        assert_eq!((report.status, report.budget_microusd), (status, Some(limit)));
    }
}

#[tokio::test]
async fn only_providers_that_the_workspace_allows_are_asked_also_when_one_fails() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let gone = || ModelError::RateLimited { retry_after: Some(std::time::Duration::from_secs(900)), status: Some(429) };
    let shelf = Shelf::new(&[("a/one", &[gone(), gone()])]);
    let agent = agent(&stage, &shelf, &clock, in_order(&["a/one", "b/two", "c/three"])).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let allow = async |names: &[&str]| {
        let allowed_providers = Some(names.iter().map(|name| (*name).to_owned()).collect());
        let change = adjutant_engine::WorkspaceChange { allowed_providers, ..Default::default() };
        engine.change_workspace(workspace, agent.user(), change).await.unwrap();
    };
    allow(&["a", "c"]).await;
    let report = agent.run("go").await.unwrap();
    assert_eq!((report.status, report.result.as_str()), (Status::Completed, "from c/three"));
    // What is forbidden after the start counts, too.
    let run = engine.start_run(workspace, ask(&agent)).await.unwrap();
    allow(&["a"]).await;
    let held = agent.resume(run).await.unwrap();
    assert!(!shelf.asked().contains(&"b/two".to_owned()), "{:?}", shelf.asked());
    assert_eq!(shelf.asked().iter().filter(|model| *model == "c/three").count(), 1, "{:?}", held.status);
    allow(&["b"]).await;
    let refused = engine.start_run(workspace, ask(&agent)).await.unwrap_err();
    assert!(refused.to_string().contains("the workspace does not allow the provider `a`"), "{refused}");
    let late = StartRun { model: Some("b/two".to_owned()), ..ask(&agent) };
    let run = engine.start_run(workspace, late).await.unwrap();
    allow(&["a"]).await;
    let stopped = agent.resume(run).await.unwrap();
    assert_eq!(stopped.error.map(|error| error.code), Some("provider_not_allowed".to_owned()));
    assert!(!shelf.asked().contains(&"b/two".to_owned()), "{:?}", shelf.asked());
    allow(&["*"]).await;
    let late = StartRun { model: Some("b/two".to_owned()), ..ask(&agent) };
    let run = engine.start_run(workspace, late).await.unwrap();
    assert_eq!(agent.resume(run).await.unwrap().status, Status::Completed);
}

async fn forecast(agent: &Agent, model: Option<&str>) -> adjutant_engine::Forecast {
    agent.engine().forecast(agent.workspace(), agent.id(), agent.user(), model, None).await.unwrap()
}

#[tokio::test]
async fn runs_of_which_nobody_knows_what_they_cost_forecast_nothing() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = on_credit(&stage, &Shelf::new(&[]), &clock, r#"{"allow_unpriced":true}"#).await;
    assert_eq!(agent.run("go").await.unwrap().status, Status::Completed);
    let seen = forecast(&agent, None).await;
    assert_eq!((seen.runs, seen.p50, seen.p90), (0, None, None), "not known is not nothing");
    let elsewhere = forecast(&agent, Some("a/one")).await;
    assert_eq!((elsewhere.runs, elsewhere.p50), (1, Some(MicroUsd(110))), "its tokens are known");
    let priced = StartRun { model: Some("a/one".to_owned()), ..ask(&agent) };
    let run = agent.engine().start_run(agent.workspace(), priced).await.unwrap();
    agent.resume(run).await.unwrap();
    let seen = forecast(&agent, None).await;
    assert_eq!((seen.runs, seen.p50), (1, Some(MicroUsd(110))));
}

#[tokio::test]
async fn the_most_a_run_can_cost_is_none_where_its_model_may_escape_every_limit() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let agent = on_credit(&stage, &Shelf::new(&[]), &clock, r#"{"allow_unpriced":true}"#).await;
    assert_eq!(forecast(&agent, None).await.most, None);
    assert_eq!(forecast(&agent, Some("a/one")).await.most, Some(MicroUsd(500_000)), "with a price its limit holds");
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let given = engine.forecast(workspace, agent.id(), agent.user(), None, Some(MicroUsd(9))).await.unwrap();
    assert_eq!(given.most, Some(MicroUsd(9)), "what its starter gives is not the agent's to give up");
}

#[tokio::test]
async fn the_most_a_run_can_cost_is_what_is_left_for_whoever_pays() {
    let (stage, clock) = (Stage::new(&[]), Clock::new());
    let change = |spec: &mut AgentSpec| spec.budget = Some(budget(r#"{"run_usd":null,"month_usd":null}"#));
    let agent = agent(&stage, &Shelf::new(&[]), &clock, change).await;
    assert_eq!(forecast(&agent, None).await.most, None, "nothing limits it");
    let mine = adjutant_core::budget::Owner::Person(agent.workspace(), agent.user());
    let limits = Budget { day_usd: Some(0.01), ..Budget::default() };
    agent.engine().save_budget(agent.workspace(), agent.user(), mine, &limits).await.unwrap();
    assert_eq!(agent.run("go").await.unwrap().cost_microusd, 110);
    assert_eq!(forecast(&agent, None).await.most, Some(MicroUsd(10_000 - 110)));
}
