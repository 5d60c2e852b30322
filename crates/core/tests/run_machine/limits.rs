//! Where a run stops by itself: turns, tool calls, a loop without progress.

use adjutant_core::guard::judge::Decision as Judgement;
use std::time::Duration;

use adjutant_core::limits::{RUN_GAP, RUN_TIME, STUCK_REPEATS};
use adjutant_core::run::event::Decision;
use adjutant_core::run::step::{Finish, Step};

use crate::given::{Story, verdict};

fn code(story: &Story) -> Option<&'static str> {
    let step = story.step();
    if let Step::Finish(Finish::Failed { code, .. }) = step {
        return Some(code);
    }
    assert!(matches!(step, Step::CallModel { .. }), "{step:?}");
    None
}

#[test]
fn a_run_stops_after_its_last_turn() {
    let mut story = Story::limited(2, 200);
    story.writes(&[("a", "/a.md")]).runs("a", "1");
    assert_eq!(code(&story), None);
    story.writes(&[("b", "/a.md")]).runs("b", "2");
    assert_eq!(code(&story), Some("max_turns"));
}

#[test]
fn a_run_stops_after_a_day_of_its_own_and_neither_people_nor_an_outage_count() {
    let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap();
    let (day, gap) = (millis(RUN_TIME), millis(RUN_GAP));
    let mut story = Story::limited(200, 200);
    story.at(3 * day);
    assert_eq!(code(&story), None, "it lay in a queue that nobody drained");
    story.writes(&[("a", "/a.md")]).holds("a", 1).at(6 * day);
    story.decides(1, Decision::Approve).allows("a").starts("a").ends("a", "1");
    assert_eq!(code(&story), None, "it waited for a person");
    // The hour that the queue counts as, then one an hour.
    let (hours, mut now) = (day / gap, 6 * day);
    for hour in 1..hours {
        now += gap;
        let name = format!("c{hour}");
        story.at(now).writes(&[(&name, "/a.md")]).runs(&name, &name);
        assert_eq!(code(&story), None, "hour {hour}");
    }
    story.at(now + day);
    assert_eq!(code(&story), Some("timeout"), "one more is one too many, however long");
}

#[test]
fn the_last_turn_may_still_answer() {
    let mut story = Story::limited(1, 200);
    story.says("Done.");
    assert_eq!(story.step(), Step::Finish(Finish::Completed));
}

#[test]
fn a_run_that_has_used_up_its_calls_may_still_answer_but_not_call() {
    let mut story = Story::limited(50, 2);
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).runs("a", "1").runs("b", "2");
    assert_eq!(story.state.calls_spent(), 2);
    assert_eq!(code(&story), None, "the model may say what it found");
    story.writes(&[("c", "/c.md")]).judged("c", verdict(Judgement::Deny, "max_tool_calls")).settles();
    assert_eq!(code(&story), Some("max_tool_calls"));
}

#[test]
fn calls_are_counted_one_by_one_and_refused_ones_are_not() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/c.md"), ("d", "/d.md")]);
    assert_eq!(story.state.calls_spent(), 0);
    story.denies("a");
    assert_eq!(story.state.calls_spent(), 0, "a refused call does not count, settled or not");
    story.allows("b").holds("c", 1);
    assert_eq!(story.state.calls_spent(), 2, "a held call counts");
    story.settles();
    assert_eq!(story.state.calls_spent(), 2);
    story.decides(1, Decision::Approve);
    assert_eq!(story.state.calls_spent(), 2, "an approved call counts while it is judged again");
    story.denies("c").settles();
    assert_eq!(story.state.calls_spent(), 1);
    story.holds("d", 2).decides(2, Decision::Reject).settles();
    assert_eq!(story.state.calls_spent(), 1);
}

#[test]
fn the_same_call_with_the_same_result_again_and_again_is_a_loop() {
    let mut story = Story::new();
    for round in 1..=STUCK_REPEATS {
        assert_eq!(code(&story), None, "{round}");
        let name = format!("c{round}");
        story.writes(&[(&name, "/a.md")]).runs(&name, "same");
    }
    assert_eq!(code(&story), Some("stuck"));
}

#[test]
fn the_same_refusal_again_and_again_is_a_loop_too() {
    let mut story = Story::new();
    for round in 1..=STUCK_REPEATS {
        let name = format!("c{round}");
        story.writes(&[(&name, "/a.md")]).denies(&name).settles();
    }
    assert_eq!(code(&story), Some("stuck"));
}

#[test]
fn another_result_or_another_call_in_between_is_progress() {
    for changed in 0..STUCK_REPEATS {
        let mut story = Story::new();
        for round in 0..STUCK_REPEATS {
            let name = format!("c{round}");
            let output = if round == changed { "new" } else { "same" };
            story.writes(&[(&name, "/a.md")]).runs(&name, output);
        }
        assert_eq!(code(&story), None, "result {changed}");
        let mut story = Story::new();
        for round in 0..STUCK_REPEATS {
            let name = format!("c{round}");
            let path = if round == changed { "/b.md" } else { "/a.md" };
            story.writes(&[(&name, path)]).runs(&name, "same");
        }
        assert_eq!(code(&story), None, "call {changed}");
    }
}

#[test]
fn equal_calls_inside_one_turn_are_no_loop() {
    let mut story = Story::new();
    let names = ["a", "b", "c", "d", "e"];
    story.writes(&names.map(|name| (name, "/a.md")));
    for name in names {
        story.runs(name, "same");
    }
    assert_eq!(code(&story), None, "the model has not seen a result in between");
}

#[test]
fn a_loop_of_several_calls_a_turn_is_a_loop() {
    let mut story = Story::new();
    for round in 0..STUCK_REPEATS {
        assert_eq!(code(&story), None);
        let (a, b) = (format!("a{round}"), format!("b{round}"));
        story.writes(&[(&a, "/a.md"), (&b, "/b.md")]).runs(&a, "1").runs(&b, "2");
    }
    assert_eq!(code(&story), Some("stuck"));
}

#[test]
fn one_call_too_many_stops_the_run_even_if_others_of_its_turn_ran() {
    let mut story = Story::limited(50, 1);
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).runs("a", "1");
    story.judged("b", verdict(Judgement::Deny, "max_tool_calls")).settles();
    assert_eq!(code(&story), Some("max_tool_calls"));
}

#[test]
fn a_loop_is_found_however_the_run_began() {
    let mut story = Story::new();
    story.writes(&[("first", "/b.md")]).runs("first", "other");
    for round in 0..STUCK_REPEATS {
        assert_eq!(code(&story), None);
        let name = format!("c{round}");
        story.writes(&[(&name, "/a.md")]).runs(&name, "same");
    }
    assert_eq!(code(&story), Some("stuck"));
}
