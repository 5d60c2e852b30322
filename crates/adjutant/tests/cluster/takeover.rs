//! A node that dies or leaves: what it drove goes on at another, nothing is done twice, and nothing is lost without a word.

use std::io::Read;

use serde_json::json;

use crate::nodes::{Cluster, up_to};

const SLOW: &str = "- { delay_ms: 600000, text: Too late. }\n";
const QUICK: &str = "- text: Good day.\n";
const RINGS: &str = r#"
- when: { turn: 1 }
  calls: [{ name: ring_bell, arguments: { text: once } }]
- text: It was rung.
"#;

#[test]
fn what_a_node_drove_that_died_goes_on_at_another() {
    let Some(cluster) = Cluster::new() else { return };
    let one = cluster.node(SLOW);
    let run = cluster.start(&one, "hello");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'model_requested'"), "1");
    let two = cluster.node(QUICK);
    let mut watching = two.follow(&run);
    one.kill();
    cluster.leases_run_out();
    let seen = up_to(&mut watching, "interaction_complete");
    assert_eq!(two.run(&run)["status"], "COMPLETED", "{seen:#?}");
    assert_eq!(two.run(&run)["result"], "Good day.");
    let epoch = cluster.house.sql(&format!("SELECT epoch FROM runs WHERE id = '{run}'"));
    assert_eq!(epoch, "2", "it was taken over once");
    assert_eq!(cluster.house.document(&["audit", "verify"])["valid"], true);
}

#[test]
fn what_a_node_drove_that_died_goes_on_at_another_although_nobody_says_a_word() {
    let Some(cluster) = Cluster::new() else { return };
    let one = cluster.node(SLOW);
    let run = cluster.start(&one, "hello");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'model_requested'"), "1");
    let two = cluster.node(QUICK);
    let mut watching = two.follow(&run);
    one.kill();
    up_to(&mut watching, "interaction_complete");
    assert_eq!(two.run(&run)["result"], "Good day.");
}

#[test]
fn what_a_node_drove_whose_clock_was_ahead_goes_on_at_another_at_once() {
    let Some(cluster) = Cluster::new() else { return };
    let one = cluster.node(SLOW);
    one.set_clock(3600);
    let run = cluster.start(&one, "hello");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'model_requested'"), "1");
    let ahead = "SELECT count(*) FROM runs WHERE updated_at > 1000 * extract(epoch FROM now() + interval '30 minutes')";
    assert_eq!(cluster.house.sql(ahead), "1", "it was written down an hour ahead of everybody else");
    let two = cluster.node(QUICK);
    let mut watching = two.follow(&run);
    one.kill();
    cluster.leases_run_out();
    up_to(&mut watching, "interaction_complete");
    assert_eq!(two.run(&run)["result"], "Good day.");
}

#[test]
fn an_effect_that_a_dead_node_had_begun_is_asked_about_and_happens_once() {
    let Some(cluster) = Cluster::new() else { return };
    cluster.quiet_bell();
    let one = cluster.node(RINGS);
    let run = cluster.start(&one, "ring");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'call_started'"), "1");
    let two = cluster.node(RINGS);
    let mut watching = two.follow(&run);
    one.kill();
    cluster.leases_run_out();
    let doubt = up_to(&mut watching, "in_doubt").pop().unwrap();
    let said = json!({"call_id": doubt.data["call_id"], "outcome": "run"});
    two.owner().post(&format!("/api/v1/runs/{run}/in-doubt"), said).expect(200);
    let mut heard = String::new();
    std::fs::File::open(cluster.bell()).unwrap().read_to_string(&mut heard).unwrap();
    assert_eq!(heard.lines().count(), 1, "{heard}");
    up_to(&mut watching, "interaction_complete");
    assert_eq!(two.run(&run)["status"], "COMPLETED");
}

#[test]
fn a_node_that_is_told_to_stop_ends_its_effects_and_hands_its_runs_on() {
    let Some(cluster) = Cluster::new() else { return };
    cluster.quiet_bell();
    let one = cluster.node(RINGS);
    let run = cluster.start(&one, "ring");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'call_started'"), "1");
    let two = cluster.node(RINGS);
    let mut watching = two.follow(&run);
    one.terminate();
    // The bell answers only now: a node that went at once would leave the ring in doubt.
    let mut heard = String::new();
    std::fs::File::open(cluster.bell()).unwrap().read_to_string(&mut heard).unwrap();
    assert_eq!(heard.lines().count(), 1, "{heard}");
    one.ended();
    let seen = up_to(&mut watching, "interaction_complete");
    assert!(!seen.iter().any(|sent| sent.name == "in_doubt"), "{seen:#?}");
    assert_eq!(two.run(&run)["result"], "It was rung.");
    assert_eq!(cluster.house.sql("SELECT count(*) FROM nodes"), "1", "it gave its lease back");
}
