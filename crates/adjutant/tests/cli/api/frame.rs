//! What every request passes: host, origin, limits, problems, health.

use serde_json::json;

use super::client::{OWNER, Server};
use crate::house::{House, text};

#[test]
fn the_server_tells_how_it_is_and_keeps_browsers_strict() {
    let server = Server::start(House::new());
    let nobody = server.nobody();
    assert_eq!(nobody.get("/healthz").expect(200)["status"], "ok");
    let ready = nobody.get("/readyz");
    assert_eq!(ready.expect(200)["database"], server.house.backend());
    assert!(ready.headers["content-security-policy"].contains("script-src 'self'"));
    assert_eq!(ready.headers["x-request-id"].len(), 32);
    server.owner().get("/api/v1/me").expect(200);
    let numbers = nobody.get("/metrics").text;
    for line in ["route=\"/api/v1/me\",status=\"200\"} 1", "adjutant_sse_clients 0", "adjutant_approvals_waiting 0"] {
        assert!(numbers.contains(line), "{line} is missing in {numbers}");
    }
}

#[test]
fn the_numbers_are_the_owners_where_a_proxy_may_stand_before_the_server() {
    let public = ("ADJUTANT_PUBLIC_URL", "https://agents.example.org");
    let server = Server::start_with(House::new(), &[("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), public]);
    let through = server.nobody().with("host", "agents.example.org");
    through.get("/metrics").refuses(401, "unauthenticated");
    server.nobody().get("/metrics").refuses(401, "unauthenticated");
    let numbers = server.owner().with("host", "agents.example.org").get("/metrics");
    assert!(numbers.status == 200 && numbers.text.contains("adjutant_sse_clients 0"), "{numbers:?}");
    through.get("/readyz").expect(200);
}

#[test]
fn a_server_whose_database_only_reads_says_that_it_cannot_work() {
    let server = Server::start(House::new());
    server.nobody().get("/readyz").expect(200);
    if server.house.backend() != "postgres" {
        return;
    }
    // What a server says that became a standby: whoever comes anew may only read.
    let name = server.house.sql("SELECT current_database()");
    server.house.sql(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    server.house.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()");
    let told = (0..1000)
        .map(|_| server.nobody().get("/readyz"))
        .find(|told| told.status == 503 && told.json()["database"] == "cannot be written");
    assert!(told.is_some(), "{:?}", server.nobody().get("/readyz"));
}

#[test]
fn a_body_that_may_be_left_out_is_json_where_there_is_one() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let plain = owner.with("content-type", "text/plain");
    plain.post("/api/v1/halt", json!({"reason": "a page elsewhere"})).refuses(415, "unsupported_media_type");
    assert_eq!(owner.get("/api/v1/halt").expect(200)["is_halted"], false);
    owner.call("POST", "/api/v1/halt", None).expect(200);
}

#[test]
fn another_name_or_a_foreign_page_is_refused() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.with("host", "evil.example").get("/api/v1/me").refuses(421, "misdirected");
    let foreign = owner.with("origin", "http://evil.example");
    foreign.post("/api/v1/workspaces", json!({"name": "Lab"})).refuses(403, "forbidden");
    let cross = owner.with("sec-fetch-site", "cross-site");
    cross.post("/api/v1/workspaces", json!({"name": "Lab"})).refuses(403, "forbidden");
    assert_eq!(owner.get("/api/v1/workspaces").expect(200)["data"].as_array().unwrap().len(), 1);
}

#[test]
fn what_cannot_be_used_is_named_and_nothing_is_done() {
    let server = Server::start(House::new());
    let owner = server.owner();
    owner.get("/api/v1/nonsense").refuses(404, "not_found");
    owner.delete("/api/v1/me").refuses(405, "method_not_allowed");
    owner.call("POST", "/api/v1/runs", Some(b"{")).refuses(400, "malformed");
    owner.call("POST", "/api/v1/runs", Some(b"{\"agent_id\":\"\xff\"}")).refuses(400, "malformed");
    let wrong = owner.post("/api/v1/runs", json!({"agent_id": 7, "input": "hello"})).refuses(422, "validation_failed");
    assert_eq!(wrong["errors"][0]["pointer"], "/agent_id");
    let unknown = json!({"agent_id": "guide", "input": "hello", "colour": "red"});
    let wrong = owner.post("/api/v1/runs", unknown).refuses(422, "validation_failed");
    assert!(wrong["errors"][0]["detail"].as_str().unwrap().contains("colour"), "{wrong}");
    let plain = owner.with("content-type", "text/plain");
    plain.post("/api/v1/runs", json!({})).refuses(415, "unsupported_media_type");
    let deep = format!("{{\"agent_id\":{}", "[".repeat(200_000));
    assert!([400, 422].contains(&owner.call("POST", "/api/v1/runs", Some(deep.as_bytes())).status));
    let huge = vec![b' '; 10 * 1024 * 1024];
    owner.call("POST", "/api/v1/runs", Some(&huge)).refuses(413, "too_large");
    owner.post("/api/v1/runs", json!({"agent_id": "guide", "input": " "})).refuses(422, "validation_failed");
    owner.get("/api/v1/runs?limit=0").refuses(422, "validation_failed");
    owner.get("/api/v1/runs?cursor=x").refuses(422, "validation_failed");
    owner.get("/api/v1/runs/run_unknown").refuses(404, "not_found");
    assert_eq!(owner.get("/api/v1/runs").expect(200)["data"], json!([]));
    let page = owner.get("/problems/validation_failed");
    assert!(page.status == 200 && page.text.contains("Validation failed"), "{page:?}");
    let page = owner.get("/problems/max_turns");
    assert!(page.status == 200 && page.text.contains("Max turns"), "{page:?}");
}

#[test]
fn the_api_is_described_for_programs_and_people() {
    let server = Server::start(House::new());
    let document = server.nobody().get("/api/v1/openapi.json").expect(200);
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/api/v1/runs/{run}/events"]["get"].is_object(), "{document}");
    let page = server.nobody().get("/docs");
    assert!(page.status == 200 && page.text.contains("POST /api/v1/runs"), "{}", page.text);
}

#[test]
fn the_numbers_tell_what_runs_did_and_what_waits() {
    let server = Server::start(House::new());
    let owner = server.owner();
    let tidy = json!({"agent_id": "guide", "input": "tidy the welcome notes"});
    let run = owner.post("/api/v1/runs?wait=60", tidy).expect(200);
    let decision = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&decision, json!({"decision": "reject"})).expect(200);
    owner.get(&format!("/api/v1/runs/{}?wait=60", text(&run["id"]))).expect(200);
    let numbers = server.nobody().get("/metrics").text;
    for line in [
        "adjutant_runs_ended_total{status=\"COMPLETED\"} 1",
        "adjutant_tool_calls_total{tool=\"list_files\",outcome=\"done\"} 1",
        "adjutant_tool_calls_total{tool=\"write_file\",outcome=\"refused\"} 1",
        "adjutant_tool_seconds_count{tool=\"list_files\"} 1",
        "adjutant_queue_depth 0",
        "adjutant_approvals_waiting 0",
        "adjutant_messages_waiting 0",
        "adjutant_cost_usd_total 0",
        "adjutant_model_failures_total 0",
    ] {
        assert!(numbers.lines().any(|known| known == line), "{line} is missing in {numbers}");
    }
    let count = |name: &str| numbers.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    assert!(count("adjutant_steps_total ").is_some_and(|steps| steps >= 3), "{numbers}");
    assert!(count("adjutant_commit_seconds_count{}").is_some_and(|commits| commits > 3), "{numbers}");
}

#[test]
fn a_name_that_a_model_makes_up_is_no_line_of_the_numbers() {
    let house = House::new();
    house.script(
        "- when: { turn: 1 }\n  calls: [{ name: \"x\\\"} 1\\nadjutant_forged 7\\n\", arguments: {} }, { name: made_up, arguments: {} }]\n- text: Done.\n",
    );
    let server = Server::start(house);
    server.owner().post("/api/v1/runs?wait=60", json!({"agent_id": "guide", "input": "go"})).expect(200);
    let numbers = server.nobody().get("/metrics").text;
    assert!(!numbers.contains("forged") && !numbers.contains("made_up"), "{numbers}");
    assert!(numbers.contains("adjutant_tool_calls_total{tool=\"other\",outcome=\"refused\"} 2"), "{numbers}");
}

#[test]
fn a_path_that_names_nothing_is_a_problem_like_every_other() {
    let server = Server::start(House::new());
    let owner = server.owner();
    for path in ["/api/v1/runs/%FF", "/api/v1/runs/0/model-calls/null%2Cnull", "/api/v1/notebooks/welcome/files/%FF.md"]
    {
        owner.get(path).refuses(404, "not_found");
    }
}

#[test]
fn log_lines_for_programs_are_documents_with_the_trace_of_their_request() {
    let env = [("ADJUTANT_BOOTSTRAP_TOKEN", OWNER), ("ADJUTANT_LOG_FORMAT", "json")];
    let mut server = Server::start_with(House::new(), &env);
    let reply = server.owner().get("/api/v1/me");
    let line: serde_json::Value = serde_json::from_str(&server.hear("\"/api/v1/me\"")).unwrap();
    assert_eq!((&line["message"], &line["level"]), (&"request".into(), &"INFO".into()), "{line}");
    assert_eq!((&line["trace_id"], &line["status"]), (&reply.headers["x-request-id"].clone().into(), &200.into()));
    let wrong = House::new();
    wrong.configure("log_format = \"xml\"\n");
    let refused = wrong.adjutant(&["runs", "ls"]);
    assert!(refused.code == Some(2) && refused.err.contains("log_format"), "{refused}");
}
