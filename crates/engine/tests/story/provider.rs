//! Providers that misbehave: whole runs with a real server on the loopback that hangs, breaks off, stutters or lies. Each ends
//! with the right text or with one clear error, in bounded time, and each token is counted once.

mod thought;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use adjutant_core::id::RunId;
use adjutant_core::run::command::Command;
use adjutant_core::run::event::{Actor, Decision, Event, ModelFailed};
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_engine::models::catalog::{PriceTier, Prices, Rate};
use adjutant_engine::models::{Models, ProviderConfig, ProviderKind, RemoteConfig, Timeouts, Vendor};
use adjutant_engine::{Agent, Env, FeedItem, Frames, RunReport, Source, StartRun};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::{Stage, ask};

/// What a server does with one connection.
#[derive(Clone)]
struct Reply {
    bytes: Vec<u8>,
    /// Sent one by one.
    singly: bool,
    /// What has to be opened before anything is sent.
    gate: Option<Arc<Gate>>,
    end: End,
}

/// Holds a reply back.
#[derive(Default)]
struct Gate {
    /// Somebody asked.
    came: Notify,
    open: Notify,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// The connection is closed, which is the end of the body where no length was told.
    Close,
    /// Nothing more is sent, and the connection stays open until the client closes it.
    Hang,
}

impl Reply {
    fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), singly: false, gate: None, end: End::Close }
    }

    fn stream(body: &str) -> Self {
        Self::new(format!("{STREAM}{body}"))
    }

    fn status(line: &str, headers: &str, body: &str) -> Self {
        Self::new(format!(
            "HTTP/1.1 {line}\r\nconnection: close\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
        ))
    }

    fn hanging(self) -> Self {
        Self { end: End::Hang, ..self }
    }

    fn behind(self, gate: &Arc<Gate>) -> Self {
        Self { gate: Some(Arc::clone(gate)), ..self }
    }

    fn singly(self) -> Self {
        Self { singly: true, ..self }
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/event-stream\r\n\r\n";

fn piece(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"model": "m", "choices": [{"index": 0, "delta": delta}]}))
}

/// The end of an answer, with 7 tokens in and 3 out.
fn end(reason: &str) -> String {
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}});
    format!("data: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n")
}

fn says(text: &str) -> Reply {
    Reply::stream(&[piece(&json!({"content": text})), end("stop")].concat())
}

fn calls(calls: &Value) -> Reply {
    Reply::stream(&[piece(&json!({"tool_calls": calls})), end("tool_calls")].concat())
}

/// A server that gives these replies in turn, and the last one for ever. Keeps what it was asked.
async fn serve(replies: Vec<Reply>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (base, asked) = (format!("http://{}", listener.local_addr().unwrap()), Arc::new(Mutex::new(Vec::new())));
    let (kept, mut replies) = (Arc::clone(&asked), VecDeque::from(replies));
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let reply = if replies.len() > 1 { replies.pop_front() } else { replies.front().cloned() };
            let (reply, kept) = (reply.unwrap(), Arc::clone(&kept));
            tokio::spawn(async move {
                let body = request(&mut stream).await;
                kept.lock().unwrap().push(body);
                if let Some(gate) = &reply.gate {
                    gate.came.notify_one();
                    gate.open.notified().await;
                }
                for part in reply.bytes.chunks(if reply.singly { 1 } else { 64 * 1024 }) {
                    if stream.write_all(part).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
                if reply.end == End::Hang {
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest).await;
                }
            });
        }
    });
    (base, asked)
}

/// The body of one request.
async fn request(stream: &mut tokio::net::TcpStream) -> String {
    let (mut bytes, mut part) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return body.to_owned();
            }
        }
        match stream.read(&mut part).await {
            Ok(read) if read > 0 => bytes.extend_from_slice(&part[..read]),
            _ => return String::new(),
        }
    }
}

/// A clock that leaps far ahead whenever it is looked at, and chance that adds nothing: whoever has to wait has waited.
struct Leaping(AtomicI64);

impl Source for Leaping {
    fn now(&self) -> Time {
        Time::from_millis(self.0.fetch_add(20_000, Ordering::SeqCst))
    }

    fn fill(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&vec![0; bytes.len()]);
        let count = self.0.fetch_add(1, Ordering::SeqCst).to_be_bytes();
        for (byte, of_count) in bytes.iter_mut().rev().zip(count.iter().rev()) {
            *byte = *of_count;
        }
    }
}

fn leaping() -> Env {
    Env::new(Arc::new(Leaping(AtomicI64::new(Env::system().now().millis()))))
}

/// Long enough for every answer that comes, short enough to be waited for.
const PATIENCE: Timeouts = Timeouts {
    total: Duration::from_secs(60),
    first_byte: Duration::from_millis(1500),
    idle: Duration::from_millis(1500),
};

struct Played {
    report: RunReport,
    failed: Vec<ModelFailed>,
    asked: Vec<String>,
}

impl Played {
    /// What the run said, and the tokens it counted.
    fn outcome(&self) -> (Status, &str, (u64, u64)) {
        let usage = self.report.token_usage;
        (self.report.status, &self.report.result, (usage.input, usage.output))
    }

    fn error(&self) -> &str {
        self.report.error.as_ref().map_or("", |error| error.code.as_str())
    }
}

async fn play(env: Env, replies: Vec<Reply>) -> Played {
    play_as("compatible", env, replies).await
}

/// An agent whose provider is of this kind and gives these replies, and what it is asked.
async fn agent(kind: &str, env: Env, replies: Vec<Reply>) -> (Agent, Arc<Mutex<Vec<String>>>, Stage) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (base, asked) = serve(replies).await;
    let remote =
        RemoteConfig { base_url: Some(base), timeouts: PATIENCE, ..RemoteConfig::new(Vendor::of(kind).unwrap()) };
    let rate = Some(Rate(1_000_000));
    let prices = Prices { base: PriceTier { input: rate, output: rate, ..PriceTier::default() }, over: Vec::new() };
    let config =
        ProviderConfig { name: "odd".to_owned(), kind: ProviderKind::Remote(Box::new(remote)), prices: Some(prices) };
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let models = Arc::new(Models::new(vec![config], client).unwrap());
    let stage = Stage::new(&[]);
    let agent = stage.bare().models(models, "odd/m").env(env).on_approval(|_| Decision::Approve).build().await.unwrap();
    (agent, asked, stage)
}

/// The model calls of a run that failed.
async fn failures(agent: &Agent, run: RunId) -> Vec<ModelFailed> {
    let recorded = agent.engine().recorded(agent.workspace(), run, 0, None).await.unwrap();
    let failed = recorded.into_iter().filter_map(|item| match item.event {
        Event::ModelFailed(body) => Some(body),
        _ => None,
    });
    failed.collect()
}

/// A run with a provider of this kind.
async fn play_as(kind: &str, env: Env, replies: Vec<Reply>) -> Played {
    let (agent, asked, _stage) = agent(kind, env, replies).await;
    let report = agent.run("go").await.unwrap();
    let failed = failures(&agent, report.id).await;
    let replay = agent.engine().replay(agent.workspace(), report.id).await.unwrap();
    assert!(replay.divergences.is_empty(), "{replay:#?}");
    let asked = asked.lock().unwrap().clone();
    Played { report, failed, asked }
}

/// A run whose first answer is spoilt and whose second is fine: it says the second, and counts its tokens alone.
async fn recovers(bad: Reply, class: &str) {
    let played = play(leaping(), vec![bad, says("here I am")]).await;
    assert_eq!(played.outcome(), (Status::Completed, "here I am", (7, 3)), "{class}: {:#?}", played.report);
    assert_eq!(played.failed.iter().map(|failed| failed.class.as_str()).collect::<Vec<_>>(), [class]);
    assert_eq!(played.asked.len(), 2, "{class}");
}

/// A run whose provider fails each time in the same way: one clear error, after so many tries.
async fn gives_up(bad: Reply, class: &str, tries: usize) {
    let played = play(leaping(), vec![bad]).await;
    assert_eq!((played.report.status, played.error()), (Status::Failed, class), "{:#?}", played.report);
    let usage = played.report.token_usage;
    assert_eq!((played.asked.len(), usage.input, usage.output), (tries, 0, 0), "{class}");
    let message = &played.report.error.as_ref().unwrap().message;
    assert!(
        message.starts_with("The model did not answer: ") && message.contains("What was done so far stays"),
        "{message}"
    );
}

#[tokio::test]
async fn a_server_that_hangs_before_its_headers_or_in_the_middle_is_left_and_asked_again() {
    recovers(Reply::new("").hanging(), "timeout").await;
    recovers(Reply::stream(&piece(&json!({"content": "so far"}))).hanging(), "timeout").await;
}

#[tokio::test]
async fn a_run_whose_provider_never_answers_does_not_say_that_its_own_time_is_up() {
    gives_up(Reply::new("").hanging(), "provider_timeout", 4).await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let text = piece(&json!({"content": "half a thought"}));
    recovers(Reply::stream(&text[..text.len() - 9]), "truncated").await;
    recovers(Reply::stream(&text), "truncated").await;
    // In pieces of a told length, of which the last one is missing.
    let head = STREAM.replace("\r\n\r\n", "\r\ntransfer-encoding: chunked\r\n\r\n");
    recovers(Reply::new(format!("{head}{:x}\r\n{text}\r\n40\r\ndata: {{", text.len())), "truncated").await;
    gives_up(Reply::stream(&text), "truncated", 4).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_one_clear_error_and_asked_for_again() {
    let mut reply = says("good XX end");
    let at = reply.bytes.windows(2).position(|pair| pair == b"XX").unwrap();
    reply.bytes[at..at + 2].copy_from_slice(&[0xc3, 0x28]);
    recovers(reply, "truncated").await;
}

#[tokio::test]
async fn lines_that_end_in_every_way_say_the_same() {
    let body = [piece(&json!({"content": "one "})), piece(&json!({"content": "two"})), end("stop")].concat();
    let mut mixed = String::new();
    for (at, line) in body.lines().enumerate() {
        mixed += line;
        mixed += ["\n", "\r\n"][at % 2];
    }
    for body in [body.replace('\n', "\r\n"), body.replace('\n', "\r"), mixed] {
        for reply in [Reply::stream(&body), Reply::stream(&body).singly()] {
            let played = play(leaping(), vec![reply]).await;
            assert_eq!(played.outcome(), (Status::Completed, "one two", (7, 3)), "{body:?}");
        }
    }
}

#[tokio::test]
async fn calls_with_equal_ids_or_none_are_told_apart_and_each_is_run_once() {
    let call = |id: Value, index: u32, key: &str| json!({"index": index, "id": id, "type": "function", "function": {"name": "kv_set", "arguments": format!("{{\"key\":\"{key}\",\"value\":\"{key}\"}}")}});
    for ids in [[json!("same"), json!("same")], [Value::Null, Value::Null], [json!(""), json!("x")]] {
        let [first, second] = ids.clone();
        let asked = json!([call(first, 0, "a"), call(second, 1, "b")]);
        let played = play(leaping(), vec![calls(&asked), says("kept")]).await;
        assert_eq!(played.outcome(), (Status::Completed, "kept", (14, 6)), "{ids:?}");
        let report = &played.report;
        let done: Vec<_> = report.actions.iter().map(|action| (action.attempts, action.is_error)).collect();
        assert_eq!(done, [(1, false), (1, false)], "{ids:?}: {report:#?}");
        assert_ne!(report.actions[0].call_id, report.actions[1].call_id);
        // What goes back names each call and its result by one id of its own.
        let sent: Value = serde_json::from_str(&played.asked[1]).unwrap();
        let messages = sent["messages"].as_array().unwrap();
        let results: Vec<_> = messages.iter().filter_map(|message| message["tool_call_id"].as_str()).collect();
        assert!(results.len() == 2 && results[0] != results[1] && !results.contains(&""), "{results:?}");
    }
}

#[tokio::test]
async fn arguments_and_bytes_that_come_one_by_one_are_put_together() {
    let arguments = json!({"key": "greeting", "value": "Grüße 🌍 \"quoted\"\n"}).to_string();
    let mut body = piece(
        &json!({"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "kv_set", "arguments": ""}}]}),
    );
    for letter in arguments.chars() {
        body += &piece(&json!({"tool_calls": [{"index": 0, "function": {"arguments": letter.to_string()}}]}));
    }
    let played = play(leaping(), vec![Reply::stream(&(body + &end("tool_calls"))).singly(), says("kept")]).await;
    assert_eq!(played.outcome(), (Status::Completed, "kept", (14, 6)), "{:#?}", played.report);
    let sent: Value = serde_json::from_str(&played.asked[1]).unwrap();
    let back = sent["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str());
    assert_eq!(back, Some(arguments.as_str()), "the call goes back as the model wrote it");
}

#[tokio::test]
async fn an_answer_of_five_megabytes_is_kept_whole_and_one_without_end_is_refused() {
    let part = "0123456789abcdef".repeat(512);
    let text = piece(&json!({"content": part}));
    let played = play(leaping(), vec![Reply::stream(&(text.repeat(640) + &end("stop")))]).await;
    let (status, result, tokens) = played.outcome();
    assert_eq!((status, result.len(), tokens), (Status::Completed, 640 * part.len(), (7, 3)));
    gives_up(Reply::stream(&text.repeat(1100)), "unknown", 1).await;
}

#[tokio::test]
async fn a_refusal_that_names_a_wait_in_seconds_or_as_a_date_is_obeyed() {
    let slow = r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#;
    let date = "date: Mon, 16 Nov 2026 10:00:00 GMT\r\nretry-after: Mon, 16 Nov 2026 10:01:30 GMT\r\n";
    for headers in ["retry-after: 90\r\n", date] {
        let clock = super::Clock::new();
        let played = play(clock.env(), vec![Reply::status("429 Too Many Requests", headers, slow), says("x")]).await;
        let [failed] = &played.failed[..] else { panic!("{:#?}", played.report) };
        let wait = failed.retry_at.unwrap().since(clock.env().now());
        assert!((90..=91).contains(&wait.as_secs()), "{headers}: {wait:?}");
        assert_eq!(played.asked.len(), 1, "nobody asks before it is time");
    }
    recovers(Reply::status("429 Too Many Requests", "retry-after: 0\r\n", slow), "rate_limited").await;
}

#[tokio::test]
async fn runs_that_come_while_one_looks_whether_a_provider_is_well_wait_and_are_answered() {
    let gate = Arc::new(Gate::default());
    let slow = r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#;
    let limited = Reply::status("429 Too Many Requests", "retry-after-ms: 1\r\n", slow);
    let replies = vec![limited, says("well again").behind(&gate), says("well again")];
    let (agent, _asked, _stage) = agent("compatible", leaping(), replies).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    let later = async {
        gate.came.notified().await;
        let mut runs = Vec::new();
        for _ in 0..3 {
            runs.push(engine.start_run(workspace, ask(&agent)).await.unwrap());
        }
        let released = async {
            for run in &runs {
                let mut follower = agent.follow(*run);
                while !matches!(follower.next().await.unwrap(), Some(FeedItem::Event(item)) if item.event.kind() == "model_requested")
                {
                }
            }
            gate.open.notify_one();
        };
        let driven = futures::future::join_all(runs.iter().map(|run| agent.resume(*run)));
        (futures::join!(driven, released).0, runs.clone())
    };
    let (first, (others, runs)) = futures::join!(agent.run("go"), later);
    assert_eq!(first.unwrap().status, Status::Completed);
    for (report, run) in others.into_iter().zip(runs) {
        assert_eq!(report.unwrap().result, "well again");
        assert_eq!(failures(&agent, run).await, [], "it waited, and that is no failure");
    }
}

#[tokio::test]
async fn what_a_provider_sent_before_a_run_was_cancelled_is_kept_where_somebody_asked_to_see_it() {
    let hangs = Reply::stream(&piece(&json!({"content": "so far"}))).hanging();
    let (agent, _asked, _stage) = agent("compatible", Env::system(), vec![hangs]).await;
    let (engine, workspace) = (agent.engine(), agent.workspace());
    for debug in [true, false] {
        let run = engine.start_run(workspace, StartRun { debug, ..ask(&agent) }).await.unwrap();
        let cancel = async {
            let mut follower = agent.follow(run);
            while !matches!(follower.next().await.unwrap(), Some(FeedItem::Piece(_))) {}
            let cancel = Command::Cancel { by: Actor::User(agent.user()), reason: "enough".to_owned() };
            engine.command(workspace, run, &cancel).await.unwrap();
        };
        futures::join!(engine.drive_run(run), cancel).0.unwrap();
        let failed = failures(&agent, run).await;
        let [failed] = &failed[..] else { panic!("{failed:#?}") };
        assert_eq!(failed.class, "cancelled");
        let seen = engine.seen(workspace, run, 1, Frames::Shown).await.unwrap();
        assert_eq!(seen.frames.is_some_and(|frames| frames.contains("so far")), debug, "{failed:#?}");
    }
}

#[tokio::test]
async fn what_no_second_try_can_mend_is_said_at_once_and_what_it_can_is_tried() {
    gives_up(
        Reply::status("401 Unauthorized", "", r#"{"error":{"message":"no","code":"invalid_api_key"}}"#),
        "unauthorized",
        1,
    )
    .await;
    gives_up(
        Reply::status("404 Not Found", "", r#"{"error":{"message":"no such model","code":"model_not_found"}}"#),
        "unknown_model",
        1,
    )
    .await;
    recovers(Reply::status("500 Internal Server Error", "", "the cat sat on it"), "overloaded").await;
}

#[tokio::test]
async fn a_model_that_calls_tools_without_end_is_stopped() {
    let call = json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "kv_list", "arguments": "{}"}}]);
    let played = play(leaping(), vec![calls(&call)]).await;
    assert_eq!((played.report.status, played.error()), (Status::Failed, "stuck"));
    let turns = u64::try_from(played.report.steps).unwrap();
    let usage = played.report.token_usage;
    assert_eq!((usage.input, usage.output), (7 * turns, 3 * turns), "each turn is counted once");
    assert_eq!(played.report.cost_microusd, 10 * turns);
}
