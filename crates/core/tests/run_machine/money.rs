//! Models that stand in for each other, and money that runs out.

use adjutant_core::budget::{BudgetAsk, RUN_PURSE, Raise};
use adjutant_core::id::ApprovalId;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::command::{Command, Refusal, accept};
use adjutant_core::run::event::{CancelAsked, Decision, Event, ModelFailed, PauseReason, Paused, Resumed};
use adjutant_core::run::state::Settled;
use adjutant_core::run::status::Status;
use adjutant_core::run::step::Step;

use crate::given::{Story, approval_id, at, person};

fn ask(number: u8, purse: &str) -> Paused {
    let ask = BudgetAsk {
        approval: approval_id(number),
        purse: purse.to_owned(),
        limit: MicroUsd(500_000),
        spent: MicroUsd(490_000),
        needed: MicroUsd(20_000),
        raise: MicroUsd(250_000),
        unpriced: None,
    };
    Paused { reason: PauseReason::Budget, until: None, by: None, ask: Some(Box::new(ask)) }
}

fn decided(story: &Story, decision: Decision, arguments: Option<&str>) -> Result<Vec<Event>, Refusal> {
    let decide = Story::decide(1, decision);
    let arguments = arguments.map(str::to_owned);
    let command = Command::Decide(adjutant_core::run::command::Decide { arguments, ..decide });
    accept(&story.state, &command, story.now)
}

#[test]
fn the_model_that_stands_in_is_asked_next_and_the_next_turn_begins_anew() {
    let mut story = Story::new();
    assert_eq!(story.state.next_model(), "demo/guide");
    story.asks();
    let failed = ModelFailed { next: Some("other/one".into()), ..failure(&story) };
    story.add(failed);
    assert_eq!(story.state.next_model(), "other/one");
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 2 });
    story.asks();
    let again = ModelFailed { model: "other/one".into(), ..failure(&story) };
    story.add(again);
    assert_eq!(story.state.next_model(), "other/one", "it is tried again, not the first");
    assert_eq!((story.state.failed_with("demo/guide"), story.state.failed_with("other/one")), (1, 1));
    story.says("Done.");
    assert_eq!(story.state.next_model(), "demo/guide");
}

fn failure(story: &Story) -> ModelFailed {
    let asking = story.state.asking.clone().unwrap();
    ModelFailed {
        turn: asking.turn,
        attempt: asking.attempt,
        class: "timeout".into(),
        message: "Too slow.".into(),
        retry_at: Some(at(0)),
        model: asking.model,
        next: None,
        partial: false,
        cost: None,
        frames: None,
        served_model: None,
        usage: None,
        estimated: false,
    }
}

#[test]
fn a_run_without_money_holds_and_more_of_it_lets_it_go_on_where_it_was() {
    let mut story = Story::new();
    let before = story.step();
    story.add(ask(1, RUN_PURSE));
    assert_eq!((story.step(), story.state.status()), (Step::Wait(None), Status::Paused));
    let events = decided(&story, Decision::Approve, None).unwrap();
    for event in events {
        story.add(event);
    }
    assert_eq!((story.step(), story.state.raised), (before, MicroUsd(250_000)));
    let item = &story.state.budget_items[&approval_id(1)];
    assert!(matches!(&item.settled, Some((Settled::Raised { raise, .. }, _)) if raise.amount == MicroUsd(250_000)));
    assert_eq!(decided(&story, Decision::Approve, None), Err(Refusal::Superseded), "it is given once");
}

#[test]
fn another_amount_can_be_given_and_nonsense_cannot() {
    let mut story = Story::new();
    story.add(ask(1, "agent/x/day/2026-11-16"));
    let raise = |amount| Raise { purse: "agent/x/day/2026-11-16".into(), amount: MicroUsd(amount) };
    let events = decided(&story, Decision::Edit, Some(r#"{"raise_usd": 1.5}"#)).unwrap();
    assert_eq!(events, [Event::Resumed(Resumed { by: person(), raised: Some(raise(1_500_000)), unpriced: None })]);
    for bad in [r#"{"raise_usd": -1}"#, r#"{"raise_usd": 0}"#, "{}", "[", r#"{"raise_usd": "much"}"#] {
        assert!(matches!(decided(&story, Decision::Edit, Some(bad)), Err(Refusal::BadArguments(_))), "{bad}");
    }
    for decision in [Decision::Edit, Decision::Respond] {
        assert!(matches!(decided(&story, decision, None), Err(Refusal::BadArguments(_))));
    }
    for event in events {
        story.add(event);
    }
    assert_eq!(story.state.raised, MicroUsd::ZERO, "the run's own budget is another");
}

#[test]
fn a_model_without_a_known_price_is_asked_once_a_person_says_so_and_no_amount_is_part_of_it() {
    let mut story = Story::new();
    let before = story.step();
    let mut hold = ask(1, RUN_PURSE);
    if let Some(ask) = &mut hold.ask {
        ask.unpriced = Some("lab/one".into());
        assert!(ask.summary().contains("The price of the model `lab/one` is not known"), "{}", ask.summary());
    }
    story.add(hold);
    let amount = decided(&story, Decision::Edit, Some(r#"{"raise_usd": 1}"#));
    assert!(matches!(amount, Err(Refusal::BadArguments(_))), "{amount:?}");
    for event in decided(&story, Decision::Approve, None).unwrap() {
        story.add(event);
    }
    assert_eq!((story.step(), story.state.raised), (before, MicroUsd::ZERO));
    assert!(story.state.priceless.contains("lab/one") && !story.state.priceless.contains("lab/two"));
    assert!(matches!(story.state.budget_items[&approval_id(1)].settled, Some((Settled::Allowed { .. }, _))));
}

#[test]
fn no_more_money_ends_the_run() {
    let mut story = Story::new();
    story.add(ask(1, RUN_PURSE));
    let events = decided(&story, Decision::Reject, None).unwrap();
    assert!(matches!(&events[..], [Event::CancelAsked(CancelAsked { .. })]));
    for event in events {
        story.add(event);
    }
    assert_eq!(story.step(), Step::Cancel);
    assert!(matches!(story.state.budget_items[&approval_id(1)].settled, Some((Settled::Refused { .. }, _))));
}

#[test]
fn a_hold_with_an_end_goes_on_by_itself_and_its_question_is_over() {
    let mut story = Story::new();
    story.add(Paused { until: Some(at(50)), ..ask(1, "agent/x/day/2026-11-16") });
    assert_eq!(story.step(), Step::Wait(Some(at(50))));
    story.now = at(60);
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 1 });
    story.asks();
    let item: &ApprovalId = &approval_id(1);
    assert!(matches!(story.state.budget_items[item].settled, Some((Settled::Superseded, _))));
}

#[test]
fn what_a_failed_call_may_have_cost_counts() {
    let mut story = Story::new();
    story.asks();
    let failed = ModelFailed { cost: Some(MicroUsd(40_000)), ..failure(&story) };
    story.add(failed);
    assert_eq!(story.state.cost, MicroUsd(40_000));
}
