//! Model turns: asked, answered, failed, tried again, lost, held, cancelled, ended.

use adjutant_core::content::Content;
use adjutant_core::guard::judge::Decision as Judgement;
use adjutant_core::label::Labels;
use adjutant_core::message::FinishReason;
use adjutant_core::run::event::{
    CallJudged, CallProposed, CancelAsked, Cancelled, Decision, EndStatus, Errored, Event, ModelFailed, ModelRequested,
    PauseReason, Paused, Resumed, Said, Thought, ThoughtForm,
};
use adjutant_core::run::step::{Finish, Step, step};
use adjutant_core::time::Time;

use crate::given::{PATIENCE, Story, at, call_id, ids, person, verdict};

fn pause(until: Option<Time>) -> Paused {
    let reason = if until.is_some() { PauseReason::Rate } else { PauseReason::Person };
    Paused { reason, until, by: None, ask: None }
}

fn cancel() -> CancelAsked {
    CancelAsked { by: person(), reason: "enough".to_owned() }
}

#[test]
fn a_clock_that_is_behind_the_last_event_changes_nothing_about_what_comes_next() {
    let mut story = Story::new();
    story.asks();
    story.fails(Some(story.now));
    assert!(story.state.updated_at >= story.now);
    for behind in [at(0), story.now, story.state.updated_at] {
        assert_eq!(step(&story.state, behind), Step::CallModel { turn: 1, attempt: 2 }, "{behind}");
    }
}

#[test]
fn a_new_run_asks_the_model() {
    let mut story = Story::new();
    assert_eq!((story.state.started_at, story.state.policy()), (at(0), crate::given::start().policy));
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 1 });
    story.asks();
    assert_eq!(story.step(), Step::AwaitModel);
}

#[test]
fn an_answer_without_calls_completes_the_run() {
    let mut story = Story::new();
    story.says("Done.");
    assert_eq!(story.step(), Step::Finish(Finish::Completed));
    story.finishes(EndStatus::Completed);
    assert_eq!(story.step(), Step::Done);
    assert_eq!(story.try_add(cancel()).unwrap_err().why, "the run has ended");
}

#[test]
fn an_answer_cut_off_by_the_provider_fails_the_run() {
    for (finish, code) in [(FinishReason::ContentFilter, "content_filter"), (FinishReason::Error, "provider_error")] {
        let mut story = Story::new();
        story.asks();
        let answered = story.answered(0, finish);
        story.add(answered);
        assert!(matches!(story.step(), Step::Finish(Finish::Failed { code: found, .. }) if found == code));
    }
    for finish in [FinishReason::Stop, FinishReason::ToolCalls, FinishReason::Length, FinishReason::Refusal] {
        let mut story = Story::new();
        story.asks();
        let answered = story.answered(0, finish);
        story.add(answered);
        assert_eq!(story.step(), Step::Finish(Finish::Completed));
    }
}

#[test]
fn a_failed_model_call_is_tried_again_when_its_time_has_come() {
    let mut story = Story::new();
    story.asks();
    let mut other = story.clone();
    other.fails(Some(at(500)));
    let Some((Event::ModelFailed(failed), _)) = other.log.pop() else { panic!() };
    for (turn, attempt) in [(2, 1), (1, 2)] {
        let another = ModelFailed { turn, attempt, ..failed.clone() };
        assert_eq!(story.try_add(another).unwrap_err().why, "another model call is under way");
    }
    story.fails(Some(at(500)));
    assert_eq!(story.try_add(failed).unwrap_err().why, "no model call is under way");
    assert_eq!(story.step(), Step::Wait(Some(at(500))));
    assert_eq!(story.state.due(), Some(at(500)));
    story.at(500);
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 2 });
    story.asks().fails(Some(at(900))).at(900);
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 3 });
    story.says("At last.");
    assert!(story.state.failures.is_empty());
    assert_eq!(story.step(), Step::Finish(Finish::Completed));
}

#[test]
fn a_model_call_that_failed_for_good_fails_the_run() {
    let mut story = Story::new();
    story.asks().fails(None);
    let Step::Finish(Finish::Failed { code, message }) = story.step() else { panic!("{:?}", story.step()) };
    assert_eq!((code, message.as_str()), ("provider_error", "The model did not answer in time."));
}

#[test]
fn a_lost_model_call_is_made_again_and_what_it_began_to_say_is_forgotten() {
    let mut story = Story::new();
    story.asks();
    story.add(Thought { turn: 1, form: ThoughtForm::Text, text: "Let me".into(), signature: None, after_calls: 0 });
    assert_eq!(story.step(), Step::AwaitModel);
    story.fails(Some(story.now));
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 2 });
    assert!(story.state.turns.is_empty());
    story.says("Hello.");
    assert_eq!(story.state.last_text().text(), "Hello.");
}

#[test]
fn an_answer_counts_only_once_all_its_calls_are_there() {
    let mut story = Story::new();
    story.asks();
    let answered = story.answered(2, FinishReason::ToolCalls);
    story.add(answered);
    assert_eq!(story.step(), Step::AwaitModel);
    let propose = |name: &str| CallProposed {
        turn: 1,
        call: call_id(name),
        tool: "read_file".to_owned(),
        arguments: Content::from("{}"),
    };
    story.add(propose("a"));
    assert_eq!(story.step(), Step::AwaitModel);
    let judged = CallJudged {
        call: call_id("a"),
        verdict: verdict(Judgement::Allow, "autonomy"),
        policy: story.state.policy(),
        prepared: None,
        touches: Vec::new(),
        standing: None,
        labels: Labels::NONE,
    };
    assert_eq!(story.try_add(judged).unwrap_err().why, "the answer that holds the call is not complete");
    let mut lost = story.clone();
    lost.fails(Some(lost.now));
    assert_eq!(lost.step(), Step::CallModel { turn: 1, attempt: 2 });
    assert!(lost.state.call(&call_id("a")).is_none());
    assert_eq!(lost.state.usage.input, 100, "what was paid stays paid");
    assert_eq!(story.try_add(propose("a")).unwrap_err().why, "a call id is used once");
    story.add(propose("b"));
    assert_eq!(story.step(), Step::Judge(ids(&["a", "b"])));
    assert!(story.try_add(propose("c")).is_err(), "no more calls than announced");
}

#[test]
fn only_the_model_that_was_asked_can_answer() {
    let mut story = Story::new();
    let said = |turn| Said { turn, text: Content::from("Hi.") };
    assert_eq!(story.try_add(said(1)).unwrap_err().why, "the model was not asked for this turn");
    story.asks();
    assert!(story.try_add(said(2)).is_err());
    let again = ModelRequested { turn: 1, attempt: 2, ..story.state.asking.clone().unwrap() };
    assert_eq!(story.try_add(again.clone()).unwrap_err().why, "a model call is under way");
    story.add(said(1));
    let answered = story.answered(0, FinishReason::Stop);
    story.add(answered);
    let next = ModelRequested { turn: 2, attempt: 1, ..again };
    assert_eq!(story.try_add(next).unwrap_err().why, "the turn before it is not complete, or was the last");
}

#[test]
fn a_paused_run_starts_nothing_but_records() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/c.md"), ("d", "/d.md")]);
    story.allows("a").starts("a").allows("b").holds("c", 1).denies("d").add(pause(None));
    assert_eq!(story.settles().len(), 1, "what is known is recorded");
    assert_eq!(story.step(), Step::Await(ids(&["a"])), "what runs is waited for");
    story.ends("a", "done");
    assert_eq!(story.step(), Step::Wait(Some(at(PATIENCE))), "b is not started");
    story.decides(1, Decision::Approve);
    assert_eq!(story.step(), Step::Wait(None), "c is not judged");
    story.add(Resumed { by: person(), raised: None, unpriced: None });
    assert_eq!(story.step(), Step::Judge(ids(&["c"])));
    story.allows("c");
    assert_eq!(story.step(), Step::Start(ids(&["b", "c"])));
}

#[test]
fn a_paused_run_still_lets_approvals_expire() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).holds("a", 1).add(pause(None));
    assert_eq!(story.state.due(), Some(at(PATIENCE)));
    story.at(PATIENCE);
    assert!(matches!(story.step(), Step::Expire(_)));
}

#[test]
fn a_pause_between_turns_keeps_the_model_from_being_asked() {
    let mut story = Story::new();
    story.add(pause(None));
    assert_eq!(story.step(), Step::Wait(None));
    story.add(Resumed { by: person(), raised: None, unpriced: None });
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 1 });
}

#[test]
fn a_pause_that_names_its_end_is_over_then() {
    let mut story = Story::new();
    story.add(pause(Some(at(50))));
    assert_eq!((story.step(), story.state.due()), (Step::Wait(Some(at(50))), Some(at(50))));
    story.at(50);
    assert_eq!(story.step(), Step::CallModel { turn: 1, attempt: 1 });
    story.asks();
    assert!(story.state.pause.is_none(), "what is recorded after its end ends it for good");
}

#[test]
fn a_cancelled_run_does_nothing_else() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).allows("a").starts("a").add(cancel());
    assert_eq!(story.step(), Step::Cancel);
    assert_eq!(
        story.try_add(story.clone().ending(EndStatus::Cancelled)).unwrap_err().why,
        "every call has its result before the run ends"
    );
    story.ends("a", "done");
    let mut unstarted = story.result("b", "Not run: the run was cancelled.");
    (unstarted.allowed, unstarted.is_error) = (false, true);
    story.add(unstarted).add(Cancelled { reason: "enough".to_owned() }).finishes(EndStatus::Cancelled);
    assert_eq!(story.step(), Step::Done);
}

#[test]
fn a_cancel_while_the_model_answers_drops_the_answer() {
    let mut story = Story::new();
    story.asks().add(cancel());
    assert_eq!(story.step(), Step::Cancel);
    let early = story.ending(EndStatus::Cancelled);
    assert_eq!(story.try_add(early).unwrap_err().why, "a model call is under way");
    story.fails(None).add(Cancelled { reason: "enough".to_owned() }).finishes(EndStatus::Cancelled);
    assert_eq!(story.state.end_status(), Some(EndStatus::Cancelled));
}

#[test]
fn nothing_is_cancelled_that_nobody_asked_to_cancel() {
    let mut story = Story::new();
    let cancelled = Cancelled { reason: "so".to_owned() };
    assert_eq!(story.try_add(cancelled).unwrap_err().why, "nobody asked to cancel");
}

#[test]
fn an_error_ends_the_run_once_every_call_has_its_result() {
    let mut story = Story::new();
    story.writes(&[("runs", "/a.md"), ("waits", "/b.md"), ("doubted", "/c.md")]);
    story.allows("runs").starts("runs").holds("waits", 1).allows("doubted").starts("doubted").doubts("doubted", 2);
    story.add(Errored { code: "internal".to_owned(), message: "It broke.".to_owned(), retryable: false });
    assert_eq!(story.step(), Step::Await(ids(&["runs"])));
    story.ends("runs", "done");
    let settled = story.settles();
    let allowed: Vec<_> = settled.iter().map(|settlement| (settlement.call.as_str(), settlement.allowed)).collect();
    assert_eq!(allowed, [("waits", false), ("doubted", true)]);
    assert!(settled.iter().all(|settlement| settlement.is_error));
    let Step::Finish(Finish::Failed { message, .. }) = story.step() else { panic!("{:?}", story.step()) };
    assert_eq!(message, "It broke.");
    story.finishes(EndStatus::Failed);
    assert!(story.state.approvals.values().all(|approval| !approval.is_pending()));
}

#[test]
fn the_last_text_is_what_was_said_and_never_reasoning() {
    let mut story = Story::new();
    story.asks();
    let thought = |form, text: &str| Thought { turn: 1, form, text: text.into(), signature: None, after_calls: 0 };
    story.add(thought(ThoughtForm::Reasoning, "secret plan")).add(thought(ThoughtForm::Text, "I will look."));
    let answered = story.answered(1, FinishReason::ToolCalls);
    story.add(answered).add(CallProposed { turn: 1, call: call_id("a"), tool: "x".to_owned(), arguments: "{}".into() });
    assert_eq!(story.state.last_text().text(), "I will look.");
    story.judged("a", verdict(Judgement::Deny, "tool")).settles();
    story.asks().add(Thought { turn: 2, ..thought(ThoughtForm::Reasoning, "more") });
    assert_eq!(story.state.last_text().text(), "I will look.");
    for text in ["First.", "Second."] {
        story.add(Thought { turn: 2, ..thought(ThoughtForm::Text, text) });
        assert_eq!(story.state.last_text().text(), text);
    }
}

#[test]
fn money_tokens_and_what_is_not_known_of_them_add_up() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).runs("a", "done");
    story.asks();
    let mut answered = story.answered(0, FinishReason::Stop);
    (answered.cost, answered.estimated) = (None, true);
    story.add(answered);
    let state = &story.state;
    assert_eq!((state.usage.input, state.usage.output, state.cost.0), (200, 20, 7));
    assert!(state.unpriced && state.estimated);
}

#[test]
fn a_run_starts_once_and_is_numbered_without_gaps() {
    let mut story = Story::new();
    assert!(story.try_add(crate::given::start()).is_err());
    let event = pause(None).into();
    for seq in [0, 1, 3, u64::MAX] {
        let refused = story.state.apply(&event, seq, story.now).unwrap_err();
        assert_eq!(refused.why, "events are numbered from 1, without gaps");
    }
    let mut unborn = adjutant_core::run::state::State::default();
    assert!(unborn.apply(&event, 1, story.now).is_err());
    assert_eq!(adjutant_core::run::step::step(&unborn, story.now), Step::Wait(None));
}

#[test]
fn no_time_goes_by_for_a_run_before_its_last_event() {
    let mut story = Story::new();
    story.asks();
    story.fails(Some(at(500))).at(600);
    story.add(pause(Some(at(550))));
    let behind = adjutant_core::run::step::step(&story.state, at(0));
    assert_eq!(behind, story.step(), "a node whose clock is behind would wait for what is due already");
}
