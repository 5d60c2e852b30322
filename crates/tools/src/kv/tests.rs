//! Keys, as the engine calls them.

use std::collections::BTreeMap;

use adjutant_core::content::Hash;
use serde_json::json;

use super::is_key;
use crate::testing::Stage;

#[tokio::test]
async fn a_value_is_kept_read_listed_and_removed() {
    let stage = Stage::with(&[]);
    assert_eq!(stage.output("kv_list", json!({})).await, "(no keys)");
    assert_eq!(
        stage.output("kv_set", json!({"key": "plan.step", "value": "two"})).await,
        "Kept 3 bytes under `plan.step`."
    );
    stage.done("kv_set", json!({"key": "other", "value": ""})).await;
    assert_eq!(stage.output("kv_get", json!({"key": "plan.step"})).await, "two");
    assert_eq!(stage.output("kv_list", json!({})).await, "other\nplan.step");
    assert_eq!(stage.output("kv_list", json!({"prefix": "plan."})).await, "plan.step");
    assert_eq!(stage.output("kv_delete", json!({"key": "plan.step"})).await, "There is nothing under `plan.step` now.");
    assert_eq!(
        stage.failure("kv_get", json!({"key": "plan.step"})).await,
        "There is nothing under the key `plan.step`."
    );
}

#[tokio::test]
async fn setting_and_removing_twice_is_doing_it_once() {
    let stage = Stage::with(&[]);
    let arguments = json!({"key": "k", "value": "v"});
    assert_eq!(stage.done("kv_set", arguments.clone()).await, stage.done("kv_set", arguments).await);
    assert_eq!(stage.done("kv_delete", json!({"key": "k"})).await, stage.done("kv_delete", json!({"key": "k"})).await);
}

#[tokio::test]
async fn what_would_be_set_is_said_before() {
    let stage = Stage::with(&[]);
    let prepared = stage.prepare("kv_set", json!({"key": "k", "value": "four"})).await.unwrap();
    assert_eq!(prepared.summary, "kv_set k (4 bytes)");
    assert_eq!(prepared.target.0, BTreeMap::from([("kv:k".to_owned(), None)]));
    assert!(prepared.diff.unwrap().starts_with("--- /dev/null\n+++ kv:k\n"));
    assert_eq!(stage.prepare("kv_delete", json!({"key": "k"})).await.unwrap().summary, "kv_delete k");
    assert_eq!(stage.output("kv_list", json!({})).await, "(no keys)");
}

#[tokio::test]
async fn a_change_is_bound_to_the_value_that_is_there_and_shows_it() {
    let stage = Stage::with(&[]);
    stage.done("kv_set", json!({"key": "k", "value": "old\n"})).await;
    let set = stage.prepare("kv_set", json!({"key": "k", "value": "new\n"})).await.unwrap();
    assert_eq!(set.target.0, BTreeMap::from([("kv:k".to_owned(), Some(Hash::of(b"old\n")))]));
    assert_eq!(set.intended.unwrap().0, BTreeMap::from([("kv:k".to_owned(), Some(Hash::of(b"new\n")))]));
    assert_eq!(set.diff.unwrap(), "--- kv:k\n+++ kv:k\n@@ -1 +1 @@\n-old\n+new\n");
    let delete = stage.prepare("kv_delete", json!({"key": "k"})).await.unwrap();
    assert_eq!(delete.target, set.target);
    assert_eq!(delete.diff.unwrap(), "--- kv:k\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n");
}

#[test]
fn a_key_is_short_plain_ascii() {
    for good in ["a", "9", "plan:1.step_2-x", &"k".repeat(128)] {
        assert!(is_key(good), "{good}");
    }
    for bad in ["", ".a", "-a", "a b", "a/b", "ключ", "a\n", "a%", &"k".repeat(129)] {
        assert!(!is_key(bad), "{bad:?}");
    }
}

#[tokio::test]
async fn a_wrong_key_or_a_long_value_is_answered_with_the_parameters() {
    let stage = Stage::with(&[]);
    for (tool, arguments) in [
        ("kv_get", json!({"key": "a b"})),
        ("kv_list", json!({"prefix": "%"})),
        ("kv_delete", json!({"key": ""})),
        ("kv_set", json!({"key": "k", "value": "ä".repeat(40_000)})),
        ("kv_set", json!({"key": "k", "value": 1})),
    ] {
        let message = stage.failure(tool, arguments).await;
        assert!(message.contains(&format!("Parameters of {tool}:")), "{message}");
    }
}

#[tokio::test]
async fn a_long_list_of_keys_says_that_there_are_more() {
    let stage = Stage::with(&[]);
    for n in 0..501 {
        stage.world.kv.set(&format!("k{n:03}"), "").await.unwrap();
    }
    let list = stage.output("kv_list", json!({})).await;
    assert_eq!(list.lines().count(), 501);
    assert_eq!(list.lines().last(), Some("… more than 500 keys; a longer prefix shows fewer"));
}
