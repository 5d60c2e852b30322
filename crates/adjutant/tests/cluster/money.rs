//! One budget for all nodes.

use serde_json::{Value, json};

use crate::house::text;
use crate::nodes::{Cluster, Node, up_to};

const RUNS: usize = 64;
const CALLS: u64 = 10;

fn started(node: &Node) -> Value {
    node.owner().post("/api/v1/runs?wait=60", json!({"agent_id": "keeper", "input": "hello"})).json()
}

#[test]
fn sixty_four_runs_on_two_nodes_spend_a_budget_of_ten_calls_and_no_more() {
    let Some(cluster) = Cluster::new() else { return };
    let path = "/api/v1/workspaces/home/budget";
    let limit = |micros: u64| json!({"day_usd": micros as f64 / 1e6, "month_usd": 1000});

    // What a call may cost at the most is what a run asks for that has nothing left.
    let first = cluster.node("- text: Done.\n");
    first.owner().put(path, limit(1)).expect(200);
    let mut held = first.follow(&cluster.start(&first, "hello"));
    let cost = up_to(&mut held, "paused").pop().unwrap().data["needed_microusd"].as_u64().unwrap();
    first.terminate();
    first.ended();

    // A token costs a millionth of a dollar, so each call costs all that it may.
    let greedy = format!("- {{ text: Done., usage: {{ input: 0, output: {cost} }} }}\n");
    let nodes = [cluster.node(&greedy), cluster.node(&greedy)];
    nodes[0].owner().put(path, limit(cost * CALLS + cost / 2)).expect(200);
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let starting: Vec<_> =
            (0..RUNS).map(|n| &nodes[n % 2]).map(|node| scope.spawn(move || started(node))).collect();
        starting.into_iter().map(|started| started.join().unwrap()).collect()
    });
    let with = |status: &str| answers.iter().filter(|answer| answer["status"] == status).count();
    let refused = answers.iter().filter(|answer| answer["code"] == "budget_exhausted").count();
    assert_eq!(with("COMPLETED") as u64, CALLS, "{answers:#?}");
    assert_eq!(with("PAUSED") + refused, RUNS - CALLS as usize, "{answers:#?}");
    let calls = cluster.house.sql("SELECT count(*) FROM model_calls");
    assert_eq!(calls, CALLS.to_string(), "every call was paid, and none was made that was not");

    let held: Vec<_> =
        answers.iter().filter(|answer| answer["status"] == "PAUSED").map(|run| text(&run["id"])).collect();
    assert!(!held.is_empty(), "{answers:#?}");
    nodes[1].owner().put(path, limit(cost * 1000)).expect(200);
    for (n, run) in held.iter().enumerate() {
        let node = &nodes[n % 2];
        let mut watching = node.follow(run);
        node.owner().post(&format!("/api/v1/runs/{run}/resume"), json!({})).expect(200);
        up_to(&mut watching, "interaction_complete");
        assert_eq!(node.run(run)["status"], "COMPLETED");
    }
}
