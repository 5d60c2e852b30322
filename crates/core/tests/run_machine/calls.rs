//! Calls of one turn: judged, settled or started, side by side or in order.

use adjutant_core::content::Content;
use adjutant_core::guard::judge::Decision as Judgement;
use adjutant_core::id::CallId;
use adjutant_core::label::Labels;
use adjutant_core::message::FinishReason;
use adjutant_core::run::event::CallProposed;
use adjutant_core::run::step::Step;
use adjutant_core::tool::{Resource, ResourceAction};

use crate::given::{Story, call_id, ids, verdict};

#[test]
fn every_call_of_a_turn_is_judged_before_anything_is_started() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]);
    assert_eq!(story.step(), Step::Judge(ids(&["a", "b"])));
    story.allows("a");
    assert_eq!(story.step(), Step::Judge(ids(&["b"])));
}

#[test]
fn t5_a_call_id_is_visible_ascii_and_new_in_its_run() {
    for good in ["a", "call_1", "!~", &"x".repeat(128)] {
        assert!(CallId::parse(good).is_some(), "{good}");
    }
    for bad in ["", " ", "a b", "a\n", "\u{7f}", "ü", "a\u{200b}", &"x".repeat(129)] {
        assert!(CallId::parse(bad).is_none(), "{bad:?}");
    }
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).denies("a").settles();
    story.asks();
    let answered = story.answered(1, FinishReason::ToolCalls);
    story.add(answered);
    let (call, tool, arguments) = (call_id("a"), "read_file".to_owned(), Content::from("{}"));
    let again = CallProposed { turn: 2, call, tool, arguments };
    assert_eq!(story.try_add(again).unwrap_err().why, "a call id is used once");
}

#[test]
fn a_denied_call_gets_one_result_and_is_never_started() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).denies("a");
    let settled = story.settles();
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].output.text(), "Refused: The rule can_write says so. Nothing was done.");
    assert_eq!((settled[0].is_error, settled[0].allowed), (true, false));
    assert_eq!(settled[0].rule.as_deref(), Some("can_write"));
    assert!(matches!(story.step(), Step::CallModel { turn: 2, attempt: 1 }));
    assert_eq!(story.try_add(story.clone().result("a", "again")).unwrap_err().why, "a call has exactly one result");
    assert_eq!(story.try_add(story.clone().announcement("a")).unwrap_err().why, "a call has exactly one result");
}

#[test]
fn a_call_that_was_not_allowed_cannot_be_started() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/c.md")]);
    story.denies("b").holds("c", 1);
    for name in ["a", "b", "c"] {
        assert_eq!(
            story.try_add(story.clone().announcement(name)).unwrap_err().why,
            "the call was not allowed",
            "{name}"
        );
        assert!(story.try_add(story.clone().result(name, "done")).is_err(), "{name}");
    }
}

#[test]
fn what_is_started_is_what_was_judged() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a");
    let honest = story.announcement("a");
    let mut other_tool = honest.clone();
    other_tool.tool = "delete_file".to_owned();
    let mut other_arguments = honest.clone();
    other_arguments.arguments = "{\"path\":\"/b.md\"}".into();
    let mut other_target = honest.clone();
    other_target.target = crate::given::target(&["/b.md"]);
    for forged in [other_tool, other_arguments, other_target] {
        assert_eq!(story.try_add(forged).unwrap_err().why, "what is started is not what was judged");
    }
    let mut skipped = honest.clone();
    skipped.attempt = 2;
    assert_eq!(story.try_add(skipped).unwrap_err().why, "attempts are counted from 1, without gaps");
    story.add(honest);
}

#[test]
fn deny_outranks_ask_outranks_allow() {
    assert!(Judgement::Deny > Judgement::Ask && Judgement::Ask > Judgement::Allow);
    let mut story = Story::new();
    story.writes(&[("allowed", "/a.md"), ("asked", "/b.md"), ("denied", "/c.md")]);
    story.allows("allowed").holds("asked", 1).denies("denied");
    assert_eq!(story.settles().len(), 1, "what is denied is answered first");
    assert_eq!(story.step(), Step::Start(ids(&["allowed"])));
}

#[test]
fn independent_calls_run_side_by_side() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md"), ("c", "/ab.md")]);
    story.allows("a").allows("b").allows("c");
    assert_eq!(story.step(), Step::Start(ids(&["a", "b", "c"])));
    story.starts("a").starts("b").starts("c");
    assert_eq!(story.step(), Step::Await(ids(&["a", "b", "c"])));
    story.ends("b", "done");
    assert_eq!(story.step(), Step::Await(ids(&["a", "c"])));
}

#[test]
fn calls_on_the_same_path_run_in_order() {
    let mut story = Story::new();
    story.writes(&[("first", "/notes/a.md"), ("second", "/notes/a.md"), ("folder", "/notes"), ("other", "/x.md")]);
    story.allows("first").allows("second").allows("folder").allows("other");
    assert_eq!(story.step(), Step::Start(ids(&["first", "other"])));
    story.starts("first").starts("other").ends("other", "done");
    assert_eq!(story.step(), Step::Await(ids(&["first"])));
    story.ends("first", "done");
    assert_eq!(story.step(), Step::Judge(ids(&["second", "folder"])), "what they saw has changed");
    story.allows("second").allows("folder");
    assert_eq!(story.step(), Step::Start(ids(&["second"])));
    story.starts("second").ends("second", "done").allows("folder");
    assert_eq!(story.step(), Step::Start(ids(&["folder"])));
}

#[test]
fn calls_that_only_read_the_same_path_run_side_by_side() {
    let mut story = Story::new();
    let read = |name| (name, "read_file", "{\"path\":\"/a.md\"}");
    story.calls(&[read("a"), read("b")]).allows("a").allows("b");
    assert_eq!(story.step(), Step::Start(ids(&["a", "b"])));
    story.starts("a").starts("b").ends("a", "text");
    assert_eq!(story.step(), Step::Await(ids(&["b"])));
}

#[test]
fn a_call_whose_path_another_has_changed_is_judged_again_before_it_starts() {
    let mut story = Story::new();
    story.writes(&[("first", "/a.md"), ("second", "/a.md")]).allows("first").allows("second").starts("first");
    story.ends("first", "done").denies("second");
    assert_eq!(story.settles()[0].call, call_id("second"));
}

#[test]
fn a_call_that_overlaps_a_held_one_waits_for_it() {
    let mut story = Story::new();
    story.writes(&[("held", "/a.md"), ("later", "/a.md"), ("free", "/b.md")]);
    story.holds("held", 1).allows("later").allows("free");
    assert_eq!(story.step(), Step::Start(ids(&["free"])));
    story.starts("free").ends("free", "done");
    assert_eq!(story.step(), Step::Wait(Some(crate::given::at(crate::given::PATIENCE))));
    story.decides(1, adjutant_core::run::event::Decision::Reject).settles();
    assert_eq!(story.step(), Step::Start(ids(&["later"])));
}

#[test]
fn an_earlier_call_does_not_wait_for_a_later_held_one() {
    let mut story = Story::new();
    story.writes(&[("earlier", "/a.md"), ("held", "/a.md")]);
    story.allows("earlier").holds("held", 1);
    assert_eq!(story.step(), Step::Start(ids(&["earlier"])));
}

#[test]
fn calls_that_touch_nothing_never_wait_for_each_other() {
    let mut story = Story::new();
    story.calls(&[("a", "kv_set", "{\"key\":\"x\"}"), ("b", "kv_set", "{\"key\":\"x\"}")]).allows("a").allows("b");
    assert_eq!(story.step(), Step::Start(ids(&["a", "b"])));
}

#[test]
fn the_second_of_two_equal_calls_is_answered_without_being_run() {
    let mut story = Story::new();
    story.writes(&[("first", "/a.md"), ("twin", "/a.md")]);
    story.holds("first", 1).judged("twin", verdict(Judgement::Deny, "same_call"));
    assert_eq!(story.settles()[0].call, call_id("twin"));
    assert_eq!(story.state.approvals.len(), 1, "two equal calls make one inbox item");
    story.decides(1, adjutant_core::run::event::Decision::Approve).runs("first", "done");
    assert!(matches!(story.step(), Step::CallModel { turn: 2, .. }));
}

#[test]
fn a_call_judged_ask_whose_question_is_missing_is_judged_again() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).judged("a", verdict(Judgement::Ask, "autonomy"));
    assert_eq!(story.step(), Step::Judge(ids(&["a"])), "or it would wait for ever");
}

#[test]
fn a_failed_attempt_can_be_followed_by_another() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a");
    story.starts("a");
    assert_eq!(story.call("a").started.as_ref().unwrap().attempt, 2);
    assert_eq!(story.step(), Step::Await(ids(&["a"])));
}

#[test]
fn the_arguments_of_open_calls_are_asked_for_after_a_restart() {
    let long = format!("{{\"path\":\"/a.md\",\"content\":\"{}\"}}", "x".repeat(5000));
    let mut story = Story::new();
    story.calls(&[("a", "write_file", &long), ("b", "write_file", "{\"path\":\"/b.md\"}")]).allows("a").starts("a");
    assert_eq!(story.state.missing(), []);
    let mut restarted = adjutant_core::run::state::State::default();
    for (index, (event, time)) in story.log.iter().enumerate() {
        let stored = event.encode([0; 16]).unwrap();
        let read = adjutant_core::run::event::Event::decode(event.kind(), &stored).unwrap();
        restarted.apply(&read, index as u64 + 1, *time).unwrap();
    }
    let hash = adjutant_core::content::Hash::of(long.as_bytes());
    assert_eq!(restarted.missing(), [hash]);
    let seq = restarted.seq;
    assert!(restarted.clone().take_permit(&call_id("a"), seq).is_err(), "what was not loaded is not run");
    restarted.fill(&[(hash, std::sync::Arc::from(long.as_str()))].into());
    assert_eq!(restarted.missing(), []);
    let permit = restarted.take_permit(&call_id("a"), seq).unwrap();
    assert_eq!(permit.arguments()["path"], "/a.md");
}

#[test]
fn a_call_that_runs_is_not_judged_again() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a");
    let judged = story.log.last().unwrap().0.clone();
    story.add(judged.clone()).starts("a");
    assert_eq!(story.try_add(judged.clone()).unwrap_err().why, "a call is judged before it is started");
    story.doubts("a", 1);
    assert_eq!(story.try_add(judged).unwrap_err().why, "a call is judged before it is started");
}

#[test]
fn what_a_call_brought_and_changed_is_known_to_the_run() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).allows("a").starts("a").allows("b").starts("b");
    let made = |kind: &str, path: &str| Resource {
        kind: kind.to_owned(),
        path: path.to_owned(),
        action: ResourceAction::Created,
        undoable: true,
        before: None,
        after: None,
    };
    let mut ended = story.result("a", "done");
    ended.labels = Labels::PRIVATE;
    ended.resources = vec![made("file", "/a.md"), made("kv", "key")];
    story.add(ended);
    assert_eq!(story.state.labels, Labels::PRIVATE);
    let mut ended = story.result("b", "done");
    ended.labels = Labels::UNTRUSTED;
    story.add(ended);
    assert_eq!(story.state.labels, Labels::PRIVATE.join(Labels::UNTRUSTED));
    assert_eq!(story.state.files.iter().collect::<Vec<_>>(), ["/a.md"], "files are what people look for");
}

#[test]
fn calls_are_told_newest_turn_first() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).runs("a", "1").runs("b", "2").writes(&[("c", "/c.md")]);
    let names: Vec<_> = story.state.calls().map(|call| call.id.as_str()).collect();
    assert_eq!(names, ["c", "a", "b"]);
}
