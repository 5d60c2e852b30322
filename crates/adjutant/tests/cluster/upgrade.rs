//! Two versions side by side: a newer program adds to the schema while older nodes work, and runs go from one to the other.

use serde_json::json;

use crate::house::text;
use crate::nodes::{Cluster, Node, up_to};

const ASKS: &str = r#"
- when: { user: write, turn: 1 }
  calls: [{ name: create_file, arguments: { path: /new.md, content: hello } }]
- when: { user: never }
  delay_ms: 600000
  text: Too late.
- text: Good day.
"#;

/// Starts a run that asks before it goes on, and says the run and its question.
fn asked(at: &Node) -> (String, String) {
    let begun = at.owner().post("/api/v1/runs", json!({"agent_id": "guide", "input": "write"}));
    let run = text(&begun.expect(202)["id"]);
    let question = up_to(&mut at.follow(&run), "approval_required").pop().unwrap();
    (run, text(&question.data["approval_id"]))
}

#[test]
fn older_nodes_go_on_beside_a_newer_one_that_added_to_the_schema() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let (first, question) = asked(&one);
    let held = cluster.start(&one, "never");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{held}' AND kind = 'model_requested'"), "1");
    // What the next version does when it starts; statements that the older ones have prepared go on meaning the same.
    for table in ["runs", "nodes", "events", "approvals", "workspaces", "chats"] {
        cluster.house.sql(&format!("ALTER TABLE {table} ADD COLUMN later TEXT"));
    }
    cluster.house.sql("UPDATE meta SET value = '9' WHERE key = 'schema'");
    let three = cluster.node("- text: Good day.");
    // What was asked before is decided at the newest, and followed at the oldest.
    let mut watching = one.follow(&first);
    three.owner().post(&format!("/api/v1/approvals/{question}/decision"), json!({"decision": "approve"})).expect(200);
    up_to(&mut watching, "interaction_complete");
    for (at, seen_at) in [(&one, &three), (&three, &two), (&two, &one)] {
        let run = cluster.start(at, "hello");
        up_to(&mut seen_at.follow(&run), "interaction_complete");
        assert_eq!(seen_at.run(&run)["status"], "COMPLETED");
    }
    // The older ones leave, one after the other; what they drove goes on.
    let mut watching = three.follow(&held);
    one.terminate();
    one.ended();
    two.terminate();
    two.ended();
    up_to(&mut watching, "interaction_complete");
    assert_eq!(three.run(&held)["result"], "Good day.");
    assert_eq!(cluster.house.document(&["audit", "verify"])["valid"], true);
}
