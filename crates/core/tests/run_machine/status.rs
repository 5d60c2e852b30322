//! The word for where a run is, and when somebody should look at it again.

use adjutant_core::run::event::{
    CancelAsked, Cancelled, Decision, DoubtOutcome, EndStatus, PauseReason, Paused, Resumed,
};
use adjutant_core::run::status::{AT_ONCE, Status};
use adjutant_core::run::step::{Step, step};
use adjutant_core::time::Time;

use crate::given::{PATIENCE, Story, at, person};

#[track_caller]
fn is(story: &Story, status: Status, due: Option<Time>) {
    assert_eq!((story.state.status(), story.state.due()), (status, due));
}

#[test]
fn every_word_reads_back_and_only_three_are_an_end() {
    for status in Status::ALL {
        assert_eq!(Status::parse(status.word()), Some(status));
        assert_eq!(serde_json::to_value(status).unwrap(), status.word());
    }
    assert_eq!(Status::parse("running"), None);
    let ends: Vec<_> = Status::ALL.into_iter().filter(|status| status.is_end()).collect();
    assert_eq!(ends, [Status::Completed, Status::Failed, Status::Cancelled]);
}

#[test]
fn a_run_is_queued_until_the_model_is_asked() {
    let mut story = Story::new();
    is(&story, Status::Queued, Some(AT_ONCE));
    story.at(5).asks();
    is(&story, Status::Running, Some(AT_ONCE));
}

#[test]
fn a_run_that_waits_to_try_again_is_running_and_due_then() {
    let mut story = Story::new();
    story.asks().fails(Some(at(70)));
    is(&story, Status::Running, Some(at(70)));
}

#[test]
fn a_run_is_running_while_anything_of_the_turn_runs_then_waits_for_approval() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/c.md")]);
    is(&story, Status::Running, Some(AT_ONCE));
    story.holds("a", 1).at(10).holds("b", 2).allows("c").starts("c");
    is(&story, Status::Running, Some(AT_ONCE));
    story.ends("c", "done");
    is(&story, Status::WaitingApproval, Some(at(PATIENCE)));
    story.decides(1, Decision::Reject);
    is(&story, Status::Running, Some(AT_ONCE));
    story.settles();
    is(&story, Status::WaitingApproval, Some(at(10 + PATIENCE)));
    story.decides(2, Decision::Approve);
    is(&story, Status::Running, Some(AT_ONCE));
}

#[test]
fn an_expired_approval_is_still_waiting_until_that_is_recorded() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).holds("a", 1).at(PATIENCE * 2);
    is(&story, Status::WaitingApproval, Some(at(PATIENCE)));
}

#[test]
fn a_call_in_doubt_outranks_an_approval_and_is_due_only_for_the_approval() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).allows("a").starts("a").doubts("a", 1).holds("b", 2);
    is(&story, Status::InDoubt, Some(at(PATIENCE)));
    story.decides(2, Decision::Reject).settles();
    is(&story, Status::InDoubt, None);
    story.resolves("a", 1, DoubtOutcome::Run);
    is(&story, Status::Running, Some(AT_ONCE));
    story.judged("a", crate::given::verdict(adjutant_core::guard::judge::Decision::Ask, "target_changed"));
    let question = story.question("a", 3);
    story.add(question);
    is(&story, Status::WaitingApproval, Some(at(PATIENCE)));
}

#[test]
fn a_paused_run_is_due_only_if_its_pause_has_an_end() {
    for (reason, until) in [(PauseReason::Person, None), (PauseReason::Budget, None), (PauseReason::Rate, Some(at(60)))]
    {
        let mut story = Story::new();
        story.add(Paused { reason, until, by: None, ask: None });
        is(&story, Status::Paused, until);
        story.add(Resumed { by: person(), raised: None, unpriced: None });
        is(&story, Status::Queued, Some(AT_ONCE));
    }
}

#[test]
fn a_run_that_is_being_cancelled_says_so_until_it_has_ended() {
    let mut story = Story::new();
    story.add(Paused { reason: PauseReason::Person, until: None, by: None, ask: None });
    story.add(CancelAsked { by: person(), reason: "enough".to_owned() });
    is(&story, Status::Cancelling, Some(AT_ONCE));
    story.add(Cancelled { reason: "enough".to_owned() }).finishes(EndStatus::Cancelled);
    is(&story, Status::Cancelled, None);
}

#[test]
fn a_run_that_ended_is_never_due() {
    for (end, status) in [(EndStatus::Completed, Status::Completed), (EndStatus::Failed, Status::Failed)] {
        let mut story = Story::new();
        story.says("Done.");
        is(&story, Status::Running, Some(AT_ONCE));
        story.finishes(end);
        is(&story, status, None);
    }
}

#[test]
fn no_time_goes_by_for_a_run_before_its_last_event() {
    // A question ran out while something else was written down, by a node whose clock is ahead.
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).holds("a", 1).allows("b").starts("b");
    story.at(PATIENCE + 1).ends("b", "1");
    let last = story.state.updated_at;
    assert!(matches!(step(&story.state, last), Step::Expire(_)));
    for earlier in [last.millis() - 1, at(PATIENCE).millis() - 1, 0, i64::MIN] {
        assert_eq!(step(&story.state, Time::from_millis(earlier)), step(&story.state, last), "{earlier}");
    }
}
