//! One budget for all nodes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::house::text;
use crate::nodes::{Cluster, Node, up_to};

const RUNS: usize = 64;
const CALLS: u64 = 10;

/// A provider of models that counts how often it is asked, and says how many tokens it wrote.
struct Provider {
    base_url: String,
    asked: Arc<AtomicU64>,
    tokens: Arc<AtomicU64>,
}

impl Provider {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (asked, tokens) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(1)));
        let counts = (Arc::clone(&asked), Arc::clone(&tokens));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, tokens) = (Arc::clone(&counts.0), Arc::clone(&counts.1));
                std::thread::spawn(move || answer(stream, &asked, &tokens));
            }
        });
        Self { base_url, asked, tokens }
    }

    fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Reads one request to its end, counts it, and answers it.
fn answer(mut stream: TcpStream, asked: &AtomicU64, tokens: &AtomicU64) -> Option<()> {
    let (mut got, mut piece) = (Vec::new(), [0; 16 * 1024]);
    loop {
        let text = String::from_utf8_lossy(&got).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length:").nth(1)?.split("\r\n").next()?;
            if body.len() >= length.trim().parse().ok()? {
                break;
            }
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            read => got.extend_from_slice(&piece[..read]),
        }
    }
    asked.fetch_add(1, Ordering::SeqCst);
    let said = json!({"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]});
    let usage = json!({"prompt_tokens": 0, "completion_tokens": tokens.load(Ordering::SeqCst)});
    let body = format!("data: {said}\n\ndata: {}\n\ndata: [DONE]\n\n", json!({"choices": [], "usage": usage}));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
    write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).ok()
}

fn started(node: &Node) -> Value {
    node.owner().post("/api/v1/runs?wait=60", json!({"agent_id": "keeper", "input": "hello"})).json()
}

#[test]
fn sixty_four_runs_on_two_nodes_spend_a_budget_of_ten_calls_and_no_more() {
    let Some(cluster) = Cluster::new() else { return };
    let path = "/api/v1/workspaces/home/budget";
    let limit = |micros: u64| json!({"day_usd": micros as f64 / 1e6, "month_usd": 1000});

    // What a call may cost at the most is what a run asks for that has nothing left.
    let provider = Provider::start();
    let first = cluster.node_asking(&provider.base_url);
    first.owner().put(path, limit(1)).expect(200);
    let mut held = first.follow(&cluster.start(&first, "hello"));
    let cost = up_to(&mut held, "paused").pop().unwrap().data["needed_microusd"].as_u64().unwrap();
    first.terminate();
    first.ended();
    assert_eq!(provider.asked(), 0, "nobody asks before there is money for it");

    // A token costs a millionth of a dollar, so each call costs all that it may.
    provider.tokens.store(cost, Ordering::SeqCst);
    let nodes = [cluster.node_asking(&provider.base_url), cluster.node_asking(&provider.base_url)];
    nodes[0].owner().put(path, limit(cost * CALLS + cost / 2)).expect(200);
    let answers: Vec<Value> = std::thread::scope(|scope| {
        let starting: Vec<_> =
            (0..RUNS).map(|n| &nodes[n % 2]).map(|node| scope.spawn(move || started(node))).collect();
        starting.into_iter().map(|started| started.join().unwrap()).collect()
    });
    let with = |status: &str| answers.iter().filter(|answer| answer["status"] == status).count();
    assert_eq!(with("COMPLETED") as u64, CALLS, "{answers:#?}");
    // There is always something left, too little for a call: so no start is refused, and every run can go on.
    assert_eq!(with("PAUSED"), RUNS - CALLS as usize, "{answers:#?}");
    let calls = cluster.house.sql("SELECT count(*) FROM model_calls");
    assert_eq!(calls, CALLS.to_string(), "every call was paid");
    assert_eq!(provider.asked(), CALLS, "the provider was asked for what was paid, and for nothing else");

    let held: Vec<_> =
        answers.iter().filter(|answer| answer["status"] == "PAUSED").map(|run| text(&run["id"])).collect();
    nodes[1].owner().put(path, limit(cost * 1000)).expect(200);
    for (n, run) in held.iter().enumerate() {
        let node = &nodes[n % 2];
        let mut watching = node.follow(run);
        node.owner().post(&format!("/api/v1/runs/{run}/resume"), json!({})).expect(200);
        up_to(&mut watching, "interaction_complete");
        assert_eq!(node.run(run)["status"], "COMPLETED");
    }
    assert_eq!(provider.asked(), CALLS + held.len() as u64, "once for each that went on");
}
