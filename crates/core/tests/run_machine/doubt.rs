//! A call that was started and whose end nobody saw: it waits for a person, and what they say is carried out.

use adjutant_core::content::Content;
use adjutant_core::guard::judge::Decision as Judgement;
use adjutant_core::run::event::{Decision, DoubtOutcome, InDoubtResolved};
use adjutant_core::run::step::Step;

use crate::given::{Story, approval_id, call_id, ids, person, verdict};

fn doubted() -> Story {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a").doubts("a", 1);
    story
}

#[test]
fn a_call_in_doubt_waits_for_a_person_without_end() {
    let story = doubted();
    assert_eq!((story.step(), story.state.due()), (Step::Wait(None), None));
    assert!(story.state.approvals[&approval_id(1)].is_pending());
}

#[test]
fn a_call_that_happened_gets_the_result_the_person_gives() {
    for (result, expected) in [(Some("sent"), "sent"), (None, "A person confirmed that it happened.")] {
        let mut story = doubted();
        let (approval, call, result) = (approval_id(1), call_id("a"), result.map(Content::from));
        story.add(InDoubtResolved { approval, call, outcome: DoubtOutcome::Happened, result, by: person() });
        assert!(!story.state.approvals[&approval_id(1)].is_pending());
        let settled = story.settles();
        assert_eq!(settled[0].output.text(), expected);
        assert_eq!((settled[0].is_error, settled[0].allowed), (false, true));
        assert!(matches!(story.step(), Step::CallModel { turn: 2, .. }));
    }
}

#[test]
fn an_abandoned_call_is_told_as_unknown() {
    let mut story = doubted();
    story.resolves("a", 1, DoubtOutcome::Abandon);
    let settled = story.settles();
    assert!(settled[0].output.text().starts_with("It is not known whether this happened."));
    assert_eq!((settled[0].is_error, settled[0].allowed), (true, true));
}

#[test]
fn a_call_that_is_to_be_run_passes_the_guard_again() {
    let mut story = doubted();
    story.resolves("a", 1, DoubtOutcome::Run);
    assert_eq!(story.step(), Step::Judge(ids(&["a"])));
    let seen = story.call("a").seen().cloned().unwrap();
    assert_eq!(seen.target, crate::given::target(&["/a.md"]), "on what it was first started on");
    let print = adjutant_core::content::Hash::of(b"nothing was shown");
    assert_eq!(seen.holds(&story.prepared("a"), print, adjutant_core::time::Time::from_millis(i64::MAX)), Ok(()));
    story.allows("a");
    assert_eq!(story.step(), Step::Start(ids(&["a"])));
    story.starts("a");
    assert_eq!(story.call("a").started.as_ref().unwrap().attempt, 2);
    assert_eq!(story.step(), Step::Await(ids(&["a"])));
    story.doubts("a", 2);
    assert_eq!(story.step(), Step::Wait(None), "it can come to be in doubt again");
}

#[test]
fn a_call_that_is_to_be_run_is_not_run_if_the_policy_has_changed() {
    let mut story = doubted();
    story.resolves("a", 1, DoubtOutcome::Run).denies("a");
    let settled = story.settles();
    assert_eq!((settled[0].allowed, settled[0].rule.as_deref()), (false, Some("can_write")));
    assert!(matches!(story.step(), Step::CallModel { turn: 2, .. }));
}

#[test]
fn a_call_that_is_to_be_run_asks_again_if_its_target_has_changed() {
    let mut story = doubted();
    story.resolves("a", 1, DoubtOutcome::Run).judged("a", verdict(Judgement::Ask, "target_changed"));
    let question = story.question("a", 2);
    story.add(question);
    assert!(matches!(story.step(), Step::Wait(Some(_))));
    story.decides(2, Decision::Reject);
    assert_eq!(story.settles()[0].rule.as_deref(), Some("rejected"));
}

#[test]
fn nothing_that_overlaps_a_call_in_doubt_is_started() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/a.md")]).allows("a").allows("b").starts("a").doubts("a", 1);
    assert_eq!(story.step(), Step::Wait(None));
    story.resolves("a", 1, DoubtOutcome::Abandon).settles();
    assert_eq!(story.step(), Step::Judge(ids(&["b"])), "what it saw may have changed");
    story.allows("b");
    assert_eq!(story.step(), Step::Start(ids(&["b"])));
}

#[test]
fn only_a_call_that_runs_comes_to_be_in_doubt_and_only_a_doubt_is_resolved() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a");
    let mut early = story.clone();
    early.starts("a").doubts("a", 1);
    let doubt = early.log.pop().unwrap().0;
    assert_eq!(story.try_add(doubt.clone()).unwrap_err().why, "only a call that runs can be in doubt");
    let resolved = |number| InDoubtResolved {
        approval: approval_id(number),
        call: call_id("a"),
        outcome: DoubtOutcome::Abandon,
        result: None,
        by: person(),
    };
    assert_eq!(story.try_add(resolved(1)).unwrap_err().why, "the call is not in doubt");
    story.starts("a").doubts("a", 1);
    assert!(story.try_add(doubt).is_err(), "once is enough");
    assert_eq!(story.try_add(story.clone().announcement("a")).unwrap_err().why, "the call is in doubt");
    assert_eq!(story.try_add(resolved(2)).unwrap_err().why, "the approval is about another call");
    let decided = story.decision(1, Decision::Approve);
    assert_eq!(story.try_add(decided).unwrap_err().why, "a call in doubt is resolved, not approved");
    story.add(resolved(1));
    assert_eq!(story.try_add(resolved(1)).unwrap_err().why, "the call is not in doubt");
}

#[test]
fn what_a_person_said_about_a_doubt_stays_known_after_the_call_has_run() {
    let mut story = doubted();
    story.resolves("a", 1, DoubtOutcome::Run).runs("a", "done");
    let item = &story.state.approvals[&approval_id(1)];
    assert_eq!(item.resolved.as_ref().unwrap().0.outcome, DoubtOutcome::Run);
    assert!(!item.superseded && !item.is_pending());
}
