//! The right to run: it follows from a recorded, durable start, and from nothing else.

use adjutant_core::guard::permit::idempotency_key;
use adjutant_core::run::event::{CancelAsked, DoubtOutcome, EndStatus};

use crate::given::{Story, call_id, person, run_id, target};

fn take(story: &mut Story, durable: u64) -> Option<u32> {
    story.state.take_permit(&call_id("a"), durable).ok().map(|permit| permit.attempt())
}

#[test]
fn a_permit_is_given_only_after_the_start_is_durable() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]);
    assert_eq!(take(&mut story, u64::MAX), None, "not judged");
    story.allows("a");
    assert_eq!(take(&mut story, u64::MAX), None, "allowed, but not announced");
    story.starts("a");
    let seq = story.state.seq;
    assert_eq!(take(&mut story, seq - 1), None, "announced, but not durable");
    assert_eq!(take(&mut story, seq), Some(1));
}

#[test]
fn a_permit_carries_what_was_recorded() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a");
    let permit = story.state.take_permit(&call_id("a"), story.state.seq).unwrap();
    assert_eq!((permit.call(), permit.tool()), (&call_id("a"), "write_file"));
    assert_eq!(permit.arguments(), &serde_json::json!({"path": "/a.md"}));
    assert_eq!(permit.target(), &target(&["/a.md"]));
    assert!(permit.intended().is_some() && permit.intended() == story.prepared("a").intended.as_ref());
    assert_eq!(permit.key(), idempotency_key(run_id(), &call_id("a")));
}

#[test]
fn there_is_one_permit_for_each_attempt() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md")]).allows("a").starts("a");
    assert_eq!(take(&mut story, u64::MAX), Some(1));
    assert_eq!(take(&mut story, u64::MAX), None);
    story.starts("a");
    assert_eq!(take(&mut story, u64::MAX), Some(2));
    assert_eq!(take(&mut story, u64::MAX), None);
}

#[test]
fn the_key_is_the_same_for_every_attempt_and_another_for_every_call() {
    let mut story = Story::new();
    story.writes(&[("a", "/a.md"), ("b", "/b.md")]).allows("a").allows("b").starts("a").starts("b");
    let first = story.state.take_permit(&call_id("a"), u64::MAX).unwrap().key();
    let other = story.state.take_permit(&call_id("b"), u64::MAX).unwrap().key();
    story.starts("a");
    assert_eq!(story.state.take_permit(&call_id("a"), u64::MAX).unwrap().key(), first);
    assert_ne!(first, other);
}

#[test]
fn a_call_that_ended_is_in_doubt_or_was_cancelled_gives_no_permit() {
    let mut started = Story::new();
    started.writes(&[("a", "/a.md")]).allows("a").starts("a");
    let mut ended = started.clone();
    ended.ends("a", "done");
    assert_eq!(take(&mut ended, u64::MAX), None);
    ended.says("Done.").finishes(EndStatus::Completed);
    assert_eq!(take(&mut ended, u64::MAX), None);
    let mut doubted = started.clone();
    doubted.doubts("a", 1);
    assert_eq!(take(&mut doubted, u64::MAX), None);
    doubted.resolves("a", 1, DoubtOutcome::Run);
    assert_eq!(take(&mut doubted, u64::MAX), None, "a person's word is not yet an announcement");
    doubted.allows("a").starts("a");
    assert_eq!(take(&mut doubted, u64::MAX), Some(2));
    started.add(CancelAsked { by: person(), reason: "enough".to_owned() });
    assert_eq!(take(&mut started, u64::MAX), None);
    assert!(started.state.take_permit(&call_id("unknown"), u64::MAX).is_err());
}

#[test]
fn arguments_that_are_not_strict_json_give_no_permit() {
    let mut story = Story::new();
    story.calls(&[("a", "kv_set", "{\"key\":1,\"key\":2}")]).allows("a").starts("a");
    assert_eq!(take(&mut story, u64::MAX), None);
}
