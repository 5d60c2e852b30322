//! Any node will do: for asking, following, deciding, stopping.

use serde_json::json;

use crate::chaos::proxy::Proxy;
use crate::house::text;
use crate::nodes::{Cluster, up_to};

const ASKS: &str = r#"
- when: { user: write, turn: 1 }
  text: I write it down.
  calls: [{ name: create_file, arguments: { path: /new.md, content: hello } }]
- when: { user: write }
  text: Written.
- when: { user: never }
  delay_ms: 600000
  text: Too late.
- text: Good day.
"#;

/// Starts a run of the agent that asks, and says the run and its question, seen at another node.
fn asked(cluster: &Cluster, at: &crate::nodes::Node, seen_at: &crate::nodes::Node) -> (String, String) {
    let begun = at.owner().post("/api/v1/runs", json!({"agent_id": "guide", "input": "write"}));
    let run = text(&begun.expect(202)["id"]);
    let mut stream = seen_at.follow(&run);
    let question = up_to(&mut stream, "approval_required").pop().unwrap();
    assert!(cluster.house.data().join("notebooks").exists());
    (run, text(&question.data["approval_id"]))
}

#[test]
fn a_run_of_one_node_is_seen_and_followed_at_the_other() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let run = cluster.start(&one, "hello");
    let (here, there): (Vec<_>, Vec<_>) = (one.follow(&run).collect(), two.follow(&run).collect());
    let durable = |events: &[crate::client::Sent]| {
        events.iter().filter(|sent| sent.id.is_some()).map(|sent| (sent.id, sent.name.clone())).collect::<Vec<_>>()
    };
    assert_eq!(durable(&here), durable(&there));
    assert_eq!(there.last().unwrap().name, "interaction_complete");
    assert_eq!(one.run(&run)["result"], two.run(&run)["result"]);
    assert_eq!(two.run(&run)["status"], "COMPLETED");
}

#[test]
fn a_question_of_one_node_is_decided_at_the_other_and_seen_at_both() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let (run, approval) = asked(&cluster, &one, &two);
    let mut watching = one.follow(&run);
    up_to(&mut watching, "approval_required");
    two.owner().post(&format!("/api/v1/approvals/{approval}/decision"), json!({"decision": "approve"})).expect(200);
    up_to(&mut watching, "interaction_complete");
    assert_eq!(one.run(&run)["status"], "COMPLETED");
    let again = one.owner().post(&format!("/api/v1/approvals/{approval}/decision"), json!({"decision": "approve"}));
    again.refuses(409, "already_decided");
}

#[test]
fn a_run_that_one_node_drives_is_stopped_at_the_other() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let run = cluster.start(&one, "never");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'model_requested'"), "1");
    let mut watching = one.follow(&run);
    two.owner().post(&format!("/api/v1/runs/{run}/cancel"), json!({})).expect(200);
    up_to(&mut watching, "interaction_complete");
    assert_eq!((&one.run(&run)["status"], &two.run(&run)["status"]), (&json!("CANCELLED"), &json!("CANCELLED")));
}

#[test]
fn an_answer_that_one_node_is_given_is_seen_piece_by_piece_at_the_other() {
    let Some(cluster) = Cluster::new() else { return };
    let script = format!("- {{ chunk: 4, pace_ms: 50, text: \"{}\" }}\n", "word ".repeat(2000));
    let one = cluster.node(&script);
    let run = cluster.start(&one, "talk");
    cluster.until(&format!("SELECT count(*) FROM events WHERE stream = '{run}' AND kind = 'model_requested'"), "1");
    let two = cluster.node(ASKS);
    let mut watching = two.follow(&run);
    let piece = up_to(&mut watching, "answer_delta").pop().unwrap();
    assert_eq!(piece.id, None, "it is not in the log");
    assert!(text(&piece.data["delta"]).contains("wo"), "{piece:?}");
    two.owner().post(&format!("/api/v1/runs/{run}/cancel"), json!({})).expect(200);
    up_to(&mut watching, "interaction_complete");
}

/// What a reader has heard of an answer, put together by where each piece belongs, until it is this long.
fn heard(stream: &mut crate::client::Stream, letters: usize) -> String {
    let mut heard = String::new();
    while heard.len() < letters {
        let piece = up_to(stream, "answer_delta").pop().unwrap();
        let at = usize::try_from(piece.data["at"].as_u64().unwrap()).unwrap();
        assert!(at <= heard.len(), "what comes before {at} is missing: {piece:?}");
        heard.truncate(at);
        heard.push_str(&text(&piece.data["delta"]));
    }
    heard
}

#[test]
fn whoever_comes_late_at_any_node_hears_an_answer_from_its_beginning() {
    let Some(cluster) = Cluster::new() else { return };
    let answer: String = (0..4000).map(|number| format!("{number:04} ")).collect();
    let one = cluster.node(&format!("- {{ chunk: 10, pace_ms: 50, text: \"{answer}\" }}\n"));
    let run = cluster.start(&one, "talk");
    let (two, three) = (cluster.node(ASKS), cluster.node(ASKS));
    let mut first = two.follow(&run);
    let said = heard(&mut first, 300);
    assert!(answer.starts_with(&said), "{said}");
    // The second node is told already; the third begins later.
    let mut late = three.follow(&run);
    let said = heard(&mut late, 600);
    assert!(answer.starts_with(&said), "{said}");
    let said = heard(&mut two.follow(&run), 600);
    assert!(answer.starts_with(&said), "a second reader at a node that listens: {said}");
    // Nobody follows it at the third any more, and then somebody does again.
    drop(late);
    let said = heard(&mut three.follow(&run), 900);
    assert!(answer.starts_with(&said), "{said}");
    two.owner().post(&format!("/api/v1/runs/{run}/cancel"), json!({})).expect(200);
    up_to(&mut first, "interaction_complete");
}

#[test]
fn a_node_whose_connections_went_dead_without_a_word_makes_new_ones_and_goes_on() {
    let Some(cluster) = Cluster::new() else { return };
    let mut url: url::Url = cluster.house.database().unwrap().parse().unwrap();
    let proxy = Proxy::to(&format!("127.0.0.1:{}", url.port().unwrap()));
    url.set_port(Some(proxy.port)).unwrap();
    let (one, two) = (cluster.node_at(ASKS, Some(url.as_str())), cluster.node(ASKS));
    let (run, approval) = asked(&cluster, &one, &one);
    let mut watching = one.follow(&run);
    up_to(&mut watching, "approval_required");
    proxy.deaden();
    // What is decided elsewhere reaches it, although nothing tells it that it hears nothing any more.
    two.owner().post(&format!("/api/v1/approvals/{approval}/decision"), json!({"decision": "approve"})).expect(200);
    up_to(&mut watching, "interaction_complete");
    // And it writes again: at the first try, or at one that is told to be tried again.
    let begun = std::time::Instant::now();
    let order = json!({"agent_id": "guide", "input": "hello"});
    while one.owner().post("/api/v1/runs?wait=60", order.clone()).status >= 500 {
        assert!(begun.elapsed() < crate::nodes::PATIENCE, "it never came back");
    }
}

#[test]
fn a_node_with_other_notebooks_is_refused_and_one_that_lost_them_takes_nothing_up() {
    let Some(cluster) = Cluster::new() else { return };
    let one = cluster.node(ASKS);
    let elsewhere = cluster.house.path().join("elsewhere");
    let mut other = std::process::Command::new(crate::house::BINARY);
    cluster.house.prepare(&mut other);
    other.env("ADJUTANT_SECRET_KEY_FILE", cluster.house.data().join("master.key"));
    other.arg("--data").arg(elsewhere).args(["serve", "--listen", "127.0.0.1:0", "--no-open"]);
    let refused = crate::house::Done::of(&mut other);
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.err.contains("all nodes share one folder"), "{refused}");
    assert_eq!(
        one.owner().get("/api/v1/agents/keeper").expect(200)["is_active"],
        true,
        "a file that it lacks is not gone"
    );
    let (there, away) = (cluster.house.data().join("notebooks"), cluster.house.path().join("away"));
    std::fs::rename(&there, &away).unwrap();
    assert_eq!(one.owner().get("/readyz").status, 503);
    let run = cluster.start(&one, "hello");
    std::fs::rename(&away, &there).unwrap();
    up_to(&mut one.follow(&run), "interaction_complete");
    assert_eq!(one.run(&run)["status"], "COMPLETED");
}

#[test]
fn of_two_nodes_that_begin_together_with_two_folders_one_starts() {
    use std::io::{BufRead, Read};
    use std::process::Stdio;

    let Some(cluster) = Cluster::new() else { return };
    let key = cluster.house.path().join("shared.key");
    std::fs::write(&key, "0123456789abcdef".repeat(4)).unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let begin = |name: &str| {
        let mut command = std::process::Command::new(crate::house::BINARY);
        cluster.house.prepare(&mut command);
        command.env("ADJUTANT_SECRET_KEY_FILE", &key).arg("--data").arg(cluster.house.path().join(name));
        command.args(["serve", "--listen", "127.0.0.1:0", "--no-open"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut begun = [begin("one"), begin("two")];
    let (mut ready, mut refused) = (0, String::new());
    for child in &mut begun {
        let mut line = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        if line.starts_with("adjutant ready on ") {
            ready += 1;
        } else {
            child.stderr.take().unwrap().read_to_string(&mut refused).unwrap();
        }
    }
    for mut child in begun {
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert_eq!(ready, 1, "{refused}");
    // By the marker, or because what the other one has just made is not in its own folder: either way that is what is wrong.
    assert!(refused.contains("all nodes share one folder"), "{refused}");
}

#[test]
fn a_node_whose_notifications_were_cut_reads_again_what_it_missed() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let (run, approval) = asked(&cluster, &one, &one);
    let mut watching = two.follow(&run);
    up_to(&mut watching, "approval_required");
    cluster.house.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE datname = current_database() AND query LIKE 'LISTEN%'",
    );
    one.owner().post(&format!("/api/v1/approvals/{approval}/decision"), json!({"decision": "approve"})).expect(200);
    up_to(&mut watching, "interaction_complete");
}

#[test]
fn a_page_at_one_node_hears_of_chats_that_are_changed_at_another() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let mut page = two.owner().follow("GET", "/api/v1/events?topics=chats", None);
    up_to(&mut page, "reread");
    let made = one.owner().post("/api/v1/chats", json!({"agent_id": "guide", "title": "First"})).expect(201);
    let told = up_to(&mut page, "chat").pop().unwrap();
    assert_eq!((&told.data["id"], &told.data["title"]), (&made["id"], &json!("First")));
    let chat = format!("/api/v1/chats/{}", text(&made["id"]));
    one.owner().patch(&chat, json!({"title": "Second"})).expect(200);
    assert_eq!(up_to(&mut page, "chat").pop().unwrap().data["title"], "Second");
    one.owner().delete(&chat).expect(204);
    let told = up_to(&mut page, "chat").pop().unwrap();
    assert_eq!((&told.data["id"], &told.data["deleted"]), (&made["id"], &json!(true)));
}

#[test]
fn a_notebook_that_is_taken_away_at_one_node_is_gone_at_the_other() {
    let Some(cluster) = Cluster::new() else { return };
    let (one, two) = (cluster.node(ASKS), cluster.node(ASKS));
    let folder = cluster.house.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("note.md"), "kept").unwrap();
    cluster.house.document(&["ws", "add", folder.to_str().unwrap()]);
    // The second node has it open, and a run there has changed a file.
    let order = json!({"agent_id": "guide", "notebook_id": "mine", "input": "write"});
    let run = text(&two.owner().post("/api/v1/runs?wait=60", order).expect(200)["id"]);
    let item = two.owner().get("/api/v1/approvals").expect(200);
    let item = text(&item["data"][0]["id"]);
    two.owner().post(&format!("/api/v1/approvals/{item}/decision"), json!({"decision": "approve"})).expect(200);
    let done = two.owner().get(&format!("/api/v1/runs/{run}?wait=60")).expect(200);
    assert_eq!(done["status"], "COMPLETED", "{done}");
    assert_eq!(std::fs::read_to_string(folder.join("new.md")).unwrap(), "hello");
    one.owner().delete("/api/v1/workspaces/home/notebooks/mine?confirm=mine").expect(204);
    let chat = text(&done["chat_id"]);
    let more = two.owner().post(&format!("/api/v1/chats/{chat}/runs"), json!({"user_message": "hello"}));
    more.refuses(404, "not_found");
    two.owner().post(&format!("/api/v1/runs/{run}/undo"), json!({})).refuses(404, "not_found");
    assert_eq!(std::fs::read_to_string(folder.join("new.md")).unwrap(), "hello", "nothing touches it any more");
}
