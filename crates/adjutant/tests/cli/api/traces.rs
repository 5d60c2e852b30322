//! Traces, as the collector of whoever watches over the server gets them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use serde_json::{Value, json};

use super::client::{OWNER, Server};
use crate::house::{House, text};

/// What must not be in any span, wherever it was said.
const CANARY: &str = "canary-4711";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// The model says, writes and calls what nobody else should hear of.
const SCRIPT: &str = r#"
- when: { turn: 1 }
  text: I know canary-4711.
  calls:
    - { name: create_file, arguments: { path: /canary-4711.md, content: canary-4711 } }
    - { name: canary-4711, arguments: {} }
- text: Done with canary-4711.
"#;

/// A request that came in: its head in small letters, and its body.
type Taking = (String, Vec<u8>);

/// What came in.
#[derive(Clone, Default)]
pub(crate) struct Taken(Arc<Mutex<Vec<Taking>>>);

impl Taken {
    /// A collector on loopback that takes everything.
    pub(crate) fn listen() -> (Self, String) {
        let (taken, listener) = (Self::default(), TcpListener::bind("127.0.0.1:0").unwrap());
        let address = format!("http://{}", listener.local_addr().unwrap());
        let all = taken.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, all) = (stream.unwrap(), all.clone());
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(request) = read(&mut reader) {
                        all.0.lock().unwrap().push(request);
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
                    }
                });
            }
        });
        (taken, address)
    }

    /// Everything that was sent, as it came.
    pub(crate) fn bodies(&self) -> Vec<Vec<u8>> {
        self.0.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let all = self.0.lock().unwrap();
        let exports = all.iter().map(|(_, body)| ExportTraceServiceRequest::decode(body.as_slice()).unwrap());
        let scopes = exports.flat_map(|export| export.resource_spans).flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// The next request.
fn read(reader: &mut impl BufRead) -> Option<Taking> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let head = head.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The attributes of a span; ids that are made up are left out.
fn attributes(span: &Span) -> Value {
    let made_up = ["gen_ai.agent.id", "gen_ai.conversation.id", "gen_ai.tool.call.id", "adjutant.workspace.id"];
    let told = span.attributes.iter().filter(|pair| !made_up.contains(&pair.key.as_str()));
    let all: BTreeMap<_, _> =
        told.map(|pair| (pair.key.clone(), plain(pair.value.as_ref().unwrap().value.as_ref().unwrap()))).collect();
    json!(all)
}

fn plain(value: &Any) -> Value {
    match value {
        Any::StringValue(text) => json!(text),
        Any::BoolValue(flag) => json!(flag),
        Any::IntValue(number) => json!(number),
        Any::DoubleValue(number) => json!(number),
        Any::ArrayValue(list) => list.values.iter().map(|item| plain(item.value.as_ref().unwrap())).collect(),
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn watched(house: House, endpoint: &str) -> Server {
    let env = [
        ("ADJUTANT_BOOTSTRAP_TOKEN", OWNER),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20canary-4711"),
    ];
    Server::start_with(house, &env)
}

/// Starts a run that asks, as part of somebody's trace, and says yes.
fn ask_and_approve(server: &Server) -> String {
    let owner = server.owner();
    let body = json!({"name": "Scribe", "can_create": true, "scope": {"notebooks": ["*"], "folders": ["/"]}});
    let agent = text(&owner.post("/api/v1/agents", body).expect(201)["id"]);
    // Not recorded there; whether it is here is not for the caller to say.
    let caller = owner.with("traceparent", &format!("00-{TRACE}-{PARENT}-00"));
    let asked = caller.post("/api/v1/runs?wait=60", json!({"agent_id": agent, "input": "note canary-4711"}));
    assert_eq!(asked.headers["x-request-id"], TRACE);
    let run = asked.expect(200);
    let approval = format!("/api/v1/approvals/{}/decision", text(&run["pending_approvals"][0]));
    owner.post(&approval, json!({"decision": "approve"})).expect(200);
    let ended = owner.follow("GET", &format!("/api/v1/runs/{}/events", text(&run["id"])), None).last().unwrap();
    assert_eq!(ended.data["status"], "COMPLETED");
    text(&run["id"])
}

/// A run that asked and ended, as its collector got it; and its id.
fn seen() -> (Taken, String) {
    let (taken, endpoint) = Taken::listen();
    let house = House::new();
    house.script(SCRIPT);
    let server = watched(house, &endpoint);
    let run = ask_and_approve(&server);
    server.stop();
    (taken, run)
}

#[test]
fn nothing_that_was_said_or_is_secret_is_in_a_trace() {
    let (taken, _) = seen();
    let all = taken.0.lock().unwrap();
    assert!(!all.is_empty());
    for (head, body) in all.iter() {
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(
            head.contains("authorization: bearer canary-4711") && head.contains("application/x-protobuf"),
            "{head}"
        );
        let seen = String::from_utf8_lossy(body);
        assert!(!seen.contains(CANARY) && !seen.contains(OWNER), "{seen}");
    }
}

#[test]
fn a_run_is_seen_in_the_trace_of_the_request_that_asked_for_it() {
    let (taken, run) = seen();
    let spans: Vec<Span> = taken.spans().into_iter().filter(|span| hex(&span.trace_id) == TRACE).collect();
    let named = |name: &str| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let mut names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    names.sort_unstable();
    let (chat, driven) = ("chat script", "invoke_agent Scribe");
    let tools = ["execute_tool create_file", "execute_tool other"];
    assert_eq!(names, ["POST /api/v1/runs", chat, chat, tools[0], tools[1], driven, driven]);
    let request = named("POST /api/v1/runs")[0];
    assert_eq!(hex(&request.parent_span_id), PARENT);
    let expected =
        json!({"http.request.method": "POST", "http.route": "/api/v1/runs", "http.response.status_code": 200});
    assert_eq!((attributes(request), request.kind), (expected, 2));
    // It was driven twice, before the question and after the answer; both belong to the request that began it.
    let mut driven = named(driven);
    driven.sort_by_key(|span| span.end_time_unix_nano);
    for (span, status) in driven.iter().zip(["WAITING_APPROVAL", "COMPLETED"]) {
        assert_eq!(span.parent_span_id, request.span_id);
        let told = attributes(span);
        for (key, value) in [
            ("gen_ai.operation.name", "invoke_agent"),
            ("gen_ai.provider.name", "test"),
            ("gen_ai.request.model", "script"),
            ("gen_ai.agent.name", "Scribe"),
            ("adjutant.run.id", run.as_str()),
            ("adjutant.run.status", status),
        ] {
            assert_eq!(told[key], value, "{told}");
        }
    }
    assert!(named(chat).iter().any(|span| span.parent_span_id == driven[0].span_id));
    assert!(named(chat).iter().any(|span| span.parent_span_id == driven[1].span_id));
}

#[test]
fn a_call_tells_its_model_and_tokens_or_its_tool_and_verdict() {
    let spans = seen().0.spans();
    let named = |name: &str| spans.iter().find(|span| span.name == name).unwrap();
    let asked = spans.iter().filter(|span| span.name == "chat script").map(attributes);
    let told = asked.into_iter().find(|told| told["gen_ai.response.finish_reasons"] == json!(["tool_calls"])).unwrap();
    assert_eq!(
        (&told["gen_ai.operation.name"], &told["gen_ai.request.model"], &told["gen_ai.response.model"]),
        (&json!("chat"), &json!("script"), &json!("test/script"))
    );
    assert!(told["gen_ai.usage.input_tokens"].is_u64() && told["gen_ai.usage.output_tokens"].is_u64(), "{told}");
    let expected = json!({
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "create_file", "gen_ai.tool.type": "function",
        "adjutant.verdict": "ask", "adjutant.allowed": true,
    });
    assert_eq!(attributes(named("execute_tool create_file")), expected);
    let refused = named("execute_tool other");
    let told = attributes(refused);
    assert_eq!((&told["adjutant.verdict"], &told["error.type"]), (&json!("deny"), &json!("not_run")), "{told}");
    assert_eq!(refused.status.as_ref().unwrap().code, 2);
}

#[test]
fn a_collector_that_never_answers_disturbs_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let house = House::new();
    house.script(SCRIPT);
    let server = watched(house, &format!("http://{}", silent.local_addr().unwrap()));
    ask_and_approve(&server);
    let (_, said) = server.stop();
    assert!(said.contains("the last traces did not reach their collector in time"), "{said}");
}

#[test]
fn a_collector_that_is_not_there_is_said_once_and_disturbs_nothing() {
    let house = House::new();
    house.script(SCRIPT);
    // A port that was free a moment ago, and that nobody listens on.
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = watched(house, &format!("http://{gone}"));
    ask_and_approve(&server);
    let (_, said) = server.stop();
    assert_eq!(said.matches("traces do not reach their collector; runs go on without").count(), 1, "{said}");
    assert!(!said.contains(CANARY), "{said}");
}
