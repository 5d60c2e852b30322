//! Asking a person: what waits, what each answer does, and how far it reaches.

use adjutant_core::content::Hash;
use adjutant_core::guard::judge::{Answer, Decision as Judgement};
use adjutant_core::run::event::{Actor, ApprovalDecided, CancelAsked, Decision};
use adjutant_core::run::step::Step;
use adjutant_core::tool::{Prepared, Target};

use crate::given::{PATIENCE, Story, approval_id, at, call_id, ids, verdict};

fn held() -> Story {
    let mut story = Story::new();
    story.writes(&[("a", "/drafts/a.md")]).holds("a", 1);
    story
}

#[test]
fn an_asked_call_waits_until_it_is_allowed() {
    let mut story = held();
    assert_eq!(story.step(), Step::Wait(Some(at(PATIENCE))));
    story.decides(1, Decision::Approve);
    assert_eq!(story.step(), Step::Judge(ids(&["a"])));
    story.allows("a");
    assert_eq!(story.step(), Step::Start(ids(&["a"])));
    story.starts("a").ends("a", "done");
    assert!(matches!(story.step(), Step::CallModel { turn: 2, attempt: 1 }));
}

#[test]
fn an_approved_call_is_judged_again_under_current_policy() {
    let mut story = held();
    story.decides(1, Decision::Approve).denies("a");
    let settled = story.settles();
    assert_eq!((settled[0].allowed, settled[0].rule.as_deref()), (false, Some("can_write")));
}

#[test]
fn t8_a_yes_is_bound_to_what_the_person_saw() {
    let mut story = held();
    let shown = story.prepared("a");
    story.decides(1, Decision::Approve);
    let seen = story.call("a").seen().cloned().unwrap();
    let print = Hash::of(&[1]);
    let rule = |shown: &Prepared, print, now| seen.holds(shown, print, now).err().map(|(rule, _)| rule);
    assert_eq!(rule(&shown, print, at(PATIENCE - 1)), None);
    assert_eq!(rule(&shown, print, at(PATIENCE)), Some("approval_expired"), "its question waits no longer");
    let there = Target([("/drafts/a.md".to_owned(), Some(Hash::of(b"there")))].into());
    for (other, why) in [
        (Prepared { target: there.clone(), ..shown.clone() }, "another file is there"),
        (Prepared { intended: Some(there), ..shown.clone() }, "another content would be"),
        (Prepared { intended: None, ..shown.clone() }, "nobody knows which content would be"),
    ] {
        assert_eq!(rule(&other, print, at(0)), Some("target_changed"), "{why}");
    }
    assert_eq!(rule(&shown, Hash::of(b"another tool or other arguments"), at(0)), Some("target_changed"));
}

#[test]
fn t8_of_equal_calls_in_one_turn_one_asks() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/a.md"), ("c", "/b.md")]);
    assert_eq!(story.state.twin(&call_id("b")), None, "nobody is asked yet");
    story.holds("a", 1);
    assert_eq!(story.state.twin(&call_id("b")), Some(&call_id("a")));
    assert_eq!(story.state.twin(&call_id("c")), None, "other arguments are another call");
    assert_eq!(story.state.twin(&call_id("a")), None, "it is not its own");
    story.decides(1, Decision::Approve).runs("a", "done").denies("b").denies("c").settles();
    story.writes(&[("d", "/a.md")]);
    assert_eq!(story.state.twin(&call_id("d")), None, "a later turn never uses it");
}

#[test]
fn a_changed_target_asks_again_and_the_newer_question_counts() {
    let mut story = held();
    story.decides(1, Decision::Approve).judged("a", verdict(Judgement::Ask, "target_changed"));
    assert_eq!(story.step(), Step::Judge(ids(&["a"])), "nobody is asked yet");
    let again = story.question("a", 2);
    story.add(again);
    assert_eq!(story.step(), Step::Wait(Some(at(PATIENCE))));
    assert!(story.call("a").answered.is_none(), "the first yes is used up");
    story.decides(2, Decision::Reject);
    assert_eq!(story.settles()[0].rule.as_deref(), Some("rejected"));
}

#[test]
fn an_edited_call_runs_with_edited_arguments() {
    let mut story = held();
    story.edits(1, "{\"path\":\"/drafts/b.md\"}");
    assert_eq!(story.step(), Step::Judge(ids(&["a"])), "edited arguments are judged like a new call's");
    assert_eq!(story.call("a").answer(), Answer::Edited);
    story.allows("a").starts("a");
    let seq = story.state.seq;
    let permit = story.state.take_permit(&call_id("a"), seq).unwrap();
    assert_eq!(permit.arguments(), &serde_json::json!({"path": "/drafts/b.md"}));
    assert_eq!(permit.target(), &crate::given::target(&["/drafts/b.md"]));
}

#[test]
fn an_edit_without_arguments_cannot_be() {
    let mut story = held();
    let decided = story.decision(1, Decision::Edit);
    assert_eq!(story.try_add(decided).unwrap_err().why, "an edit carries arguments");
}

#[test]
fn a_response_is_the_result_and_no_failure() {
    let mut story = held();
    let decided = ApprovalDecided { message: Some("use /b".to_owned()), ..story.decision(1, Decision::Respond) };
    story.add(decided);
    let settled = story.settles();
    assert_eq!(settled[0].output.text(), "Not run. The person answered instead: use /b");
    assert_eq!((settled[0].is_error, settled[0].allowed), (false, false));
}

#[test]
fn a_rejected_call_says_so_and_what_was_added() {
    let mut story = held();
    let decided = ApprovalDecided { message: Some("too early".to_owned()), ..story.decision(1, Decision::Reject) };
    story.add(decided);
    let settled = story.settles();
    assert_eq!(settled[0].output.text(), "A person rejected this call. It was not run. They said: too early");
    assert_eq!((settled[0].is_error, settled[0].rule.as_deref()), (true, Some("rejected")));
    assert!(matches!(story.step(), Step::CallModel { turn: 2, .. }), "the run goes on");
}

#[test]
fn a_stop_ends_the_run_even_before_the_cancel_is_recorded() {
    let mut story = held();
    story.decides(1, Decision::Stop);
    assert_eq!(story.step(), Step::Cancel);
    story.add(CancelAsked { by: Actor::Clock, reason: "another".to_owned() });
    assert_eq!(story.state.cancel.as_ref().unwrap().by, crate::given::person(), "the first one counts");
}

#[test]
fn silence_counts_as_no_at_the_moment_it_expires() {
    let mut story = held();
    story.at(PATIENCE - 1);
    assert_eq!(story.step(), Step::Wait(Some(at(PATIENCE))));
    story.at(PATIENCE);
    assert_eq!(story.step(), Step::Expire(vec![approval_id(1)]));
    let decided = ApprovalDecided { by: Actor::Clock, ..story.decision(1, Decision::Reject) };
    story.add(decided);
    let settled = story.settles();
    assert_eq!(settled[0].output.text(), "Nobody approved this call in time. It was not run.");
    assert_eq!(settled[0].rule.as_deref(), Some("expired"));
}

#[test]
fn decisions_come_in_any_order_and_the_turn_waits_for_all() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).holds("a", 1).holds("b", 2);
    story.decides(2, Decision::Approve).runs("b", "done");
    assert_eq!(story.step(), Step::Wait(Some(at(PATIENCE))), "the model is not asked before every call has its result");
    story.decides(1, Decision::Reject).settles();
    assert!(matches!(story.step(), Step::CallModel { turn: 2, .. }));
}

#[test]
fn an_approval_is_decided_once_and_only_for_its_own_call() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).holds("a", 1).holds("b", 2);
    let swapped = ApprovalDecided { call: call_id("b"), ..story.decision(1, Decision::Approve) };
    assert_eq!(story.try_add(swapped).unwrap_err().why, "the approval is about another call");
    story.decides(1, Decision::Reject);
    let again = story.decision(1, Decision::Approve);
    assert_eq!(story.try_add(again).unwrap_err().why, "the approval was decided already");
    let reused = story.question("b", 1);
    assert_eq!(story.try_add(reused).unwrap_err().why, "an approval id is used once");
}

#[test]
fn nobody_is_asked_where_the_guard_does_not_ask() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/c.md")]).allows("a").denies("b");
    for name in ["a", "b", "c"] {
        let question = story.question(name, 1);
        assert_eq!(story.try_add(question).unwrap_err().why, "a person is asked only where the guard asks");
    }
}

#[test]
fn a_result_closes_the_question_of_its_call() {
    let mut story = held();
    story.add(CancelAsked { by: crate::given::person(), reason: "enough".to_owned() });
    let mut ended = story.result("a", "Not run: the run was cancelled.");
    (ended.allowed, ended.is_error) = (false, true);
    story.add(ended);
    assert!(story.state.approvals.values().all(|approval| !approval.is_pending() && approval.superseded));
}
