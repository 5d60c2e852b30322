//! The wire against a server on the loopback that replays bytes as providers send them, cut where it hurts.

use std::sync::Mutex;

use adjutant_core::message::{Delta, FinishReason, RawCall};
use adjutant_core::money::TokenUsage;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::view::tests::{request, with_tools};

struct Reply {
    status: u16,
    headers: &'static [(&'static str, &'static str)],
    pieces: Vec<Bytes>,
    after: After,
}

/// What happens when all pieces are sent.
enum After {
    /// The body ends as it should.
    End,
    /// The body stays open until the client has gone, which is told.
    Stay(Guard),
    /// The connection breaks when this is told.
    Break(oneshot::Receiver<()>),
}

impl After {
    async fn happen(self) -> Result<Bytes, std::io::Error> {
        match self {
            Self::End => Ok(Bytes::new()),
            Self::Stay(_guard) => std::future::pending().await,
            Self::Break(told) => {
                let _ = told.await;
                Err(std::io::Error::other("the cable was cut"))
            }
        }
    }
}

impl Reply {
    fn events(pieces: &[&[u8]]) -> Self {
        let pieces = pieces.iter().map(|piece| Bytes::copy_from_slice(piece)).collect();
        Self { status: 200, headers: &[("content-type", "text/event-stream")], pieces, after: After::End }
    }

    fn error(status: u16, headers: &'static [(&'static str, &'static str)], body: &'static str) -> Self {
        Self { status, headers, pieces: vec![Bytes::from_static(body.as_bytes())], after: After::End }
    }
}

/// Tells when it is dropped.
struct Guard(Option<oneshot::Sender<()>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(gone) = self.0.take() {
            let _ = gone.send(());
        }
    }
}

/// The requests a server got: path, key, body.
type Seen = mpsc::UnboundedReceiver<(String, String, Value)>;

/// Starts a server that gives one reply, and a model that calls it.
async fn serve(reply: Reply) -> (OpenAi, Seen) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (tell, seen) = mpsc::unbounded_channel();
    let reply = Arc::new(Mutex::new(Some(reply)));
    let handler = move |asked: Request| {
        let (tell, reply) = (tell.clone(), Arc::clone(&reply));
        async move {
            let path = asked.uri().path().to_owned();
            let key = asked.headers().get("authorization").map(|key| key.to_str().unwrap().to_owned());
            let body = axum::body::to_bytes(asked.into_body(), 1 << 20).await.unwrap();
            let _ = tell.send((path, key.unwrap_or_default(), serde_json::from_slice(&body).unwrap()));
            let Reply { status, headers, pieces, after } = reply.lock().unwrap().take().expect("one request");
            let pieces = futures::stream::iter(pieces.into_iter().map(Ok));
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            response.body(Body::from_stream(pieces.chain(futures::stream::once(after.happen())))).unwrap()
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1/", listener.local_addr().unwrap());
    tokio::spawn(axum::serve(listener, Router::new().fallback(handler)).into_future());
    (model(&base), seen)
}

fn model(base: &str) -> OpenAi {
    patient_model(base, Timeouts::default())
}

fn patient_model(base: &str, timeouts: Timeouts) -> OpenAi {
    let key = Some(SecretString::from("sk-very-secret"));
    let provider = Provider::new("local", Some(base), key, timeouts).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    OpenAi::new(Arc::new(provider), client, "org/some-model-high".to_owned())
}

/// The answer to these bytes, and the pieces that were handed on.
async fn read(pieces: &[&[u8]]) -> (Result<ModelAnswer, ModelError>, Vec<Delta>) {
    let (model, _seen) = serve(Reply::events(pieces)).await;
    let (sink, mut deltas) = DeltaSink::channel();
    let answer = model.answer(&request(&["hello"]), &sink).await;
    let mut handed_on = Vec::new();
    while let Ok(delta) = deltas.try_recv() {
        handed_on.push(delta);
    }
    (answer, handed_on)
}

async fn failure(reply: Reply) -> ModelError {
    let (model, _seen) = serve(reply).await;
    model.answer(&request(&["the secret plan"]), &DeltaSink::none()).await.unwrap_err()
}

/// The answer to an event after which, once it has arrived, the connection breaks.
async fn read_and_break(event: &str) -> Result<ModelAnswer, ModelError> {
    let (cut, told) = oneshot::channel();
    let mut reply = Reply::events(&[event.as_bytes()]);
    reply.after = After::Break(told);
    let (model, _seen) = serve(reply).await;
    let cut = Mutex::new(Some(cut));
    let sink = DeltaSink::new(move |_| drop(cut.lock().unwrap().take()));
    model.answer(&request(&["hello"]), &sink).await
}

const TEXT: &str = r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"some-model-2025","service_tier":"default","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"some-model-2025","choices":[{"index":0,"delta":{"content":"Grüße, "},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"some-model-2025","choices":[{"index":0,"delta":{"content":"Welt 🌍"},"finish_reason":null}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"some-model-2025","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"some-model-2025","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":4}}}

data: [DONE]

"#;

fn check_text(answer: ModelAnswer) {
    assert_eq!(answer.text, "Grüße, Welt 🌍");
    assert_eq!((answer.finish, answer.served_model.as_str()), (FinishReason::Stop, "local/some-model-2025"));
    assert_eq!(answer.usage, Some(TokenUsage { input: 19, output: 10, cached: 8, reasoning: 4 }));
}

#[tokio::test]
async fn text_is_streamed_and_its_tokens_are_counted() {
    let (answer, deltas) = read(&[TEXT.as_bytes()]).await;
    check_text(answer.unwrap());
    assert_eq!(deltas, [Delta::Text("Grüße, ".into()), Delta::Text("Welt 🌍".into())]);
}

#[tokio::test]
async fn lines_may_end_in_any_way_and_bytes_may_be_cut_inside_a_character() {
    let text = TEXT.replace('\n', "\r\n");
    let at = text.find("üß").unwrap() + 1;
    let emoji = text.find('🌍').unwrap() + 2;
    let bytes = text.as_bytes();
    check_text(read(&[b": keep-alive\r\n\r\n", &bytes[..at], &bytes[at..emoji], &bytes[emoji..]]).await.0.unwrap());
    let single: Vec<_> = bytes.chunks(1).collect();
    check_text(read(&single).await.0.unwrap());
}

#[tokio::test]
async fn the_model_is_called_by_its_own_name_with_the_key_of_its_provider() {
    let (model, mut seen) = serve(Reply::events(&[TEXT.as_bytes()])).await;
    let asked = with_tools(request(&["hello"]), &[("look", &["path"])]);
    model.answer(&asked, &DeltaSink::none()).await.unwrap();
    let (path, key, body) = seen.recv().await.unwrap();
    assert_eq!((path.as_str(), key.as_str()), ("/v1/chat/completions", "Bearer sk-very-secret"));
    assert_eq!(body["model"], "org/some-model-high");
    assert!(body.get("reasoning_effort").is_none());
    assert_eq!(body["messages"][1], json!({"role": "user", "content": "hello"}));
    assert_eq!(body["tools"][0]["function"]["name"], "look");
}

fn call(id: &str, name: &str, arguments: &str) -> RawCall {
    RawCall { id: Some(id.to_owned()), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// An event with one piece of the answer.
fn piece(delta: Value) -> String {
    format!("data: {}\n\n", json!({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

fn end(reason: &str) -> String {
    let last = json!({"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {last}\n\ndata: [DONE]\n\n")
}

#[tokio::test]
async fn parallel_calls_are_put_together_however_their_pieces_come() {
    let text = [
        piece(json!({"role": "assistant", "content": null})),
        piece(json!({"tool_calls": [{"index": 0, "id": "call_a", "type": "function", "function": {"name": "read", "arguments": ""}}]})),
        piece(json!({"tool_calls": [{"index": 1, "id": "call_b", "type": "function", "function": {"name": "find", "arguments": "{\"q\""}}]})),
        piece(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\": \"/a\","}}]})),
        piece(json!({"tool_calls": [{"index": 1, "function": {"arguments": ":\"\\u00e4\"}"}}, {"index": 0, "function": {"arguments": " \"path\": \"/b\"}"}}]})),
        end("tool_calls"),
    ]
    .concat();
    let (answer, _) = read(&[text.as_bytes()]).await;
    let answer = answer.unwrap();
    let expected =
        [call("call_a", "read", r#"{"path": "/a", "path": "/b"}"#), call("call_b", "find", r#"{"q":"\u00e4"}"#)];
    assert_eq!(answer.calls, expected, "the arguments are the very text, doubled keys and escapes included");
    assert_eq!((answer.finish, answer.usage), (FinishReason::ToolCalls, None));
}

#[tokio::test]
async fn calls_are_told_apart_where_servers_are_careless_with_index_and_id() {
    let same_index = [
        piece(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{}"}}]})),
        piece(json!({"tool_calls": [{"index": 0, "id": "b", "function": {"name": "read", "arguments": "{}"}}]})),
        end("stop"),
    ];
    let no_index = [
        piece(
            json!({"tool_calls": [{"id": "a", "function": {"name": "read", "arguments": "{"}}, {"function": {"arguments": "}"}}]}),
        ),
        piece(json!({"tool_calls": [{"id": "b", "function": {"name": "read", "arguments": {}}}]})),
        end("stop"),
    ];
    let new_id_each_time = [
        piece(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": "{"}}]})),
        piece(json!({"tool_calls": [{"index": 0, "id": "x", "function": {"arguments": "}"}}]})),
        piece(json!({"tool_calls": [{"index": 1, "id": "b", "function": {"name": "read", "arguments": "{}"}}]})),
        end("stop"),
    ];
    for text in [same_index, no_index].map(|events| events.concat()).into_iter().chain([new_id_each_time.concat()]) {
        let answer = read(&[text.as_bytes()]).await.0.unwrap();
        assert_eq!(answer.calls, [call("a", "read", "{}"), call("b", "read", "{}")], "{text}");
        assert_eq!(answer.finish, FinishReason::ToolCalls, "calls decide, not what the server says");
    }
}

#[tokio::test]
async fn reasoning_refusals_and_reasons_for_the_end_are_kept_apart() {
    let text =
        [piece(json!({"reasoning_content": "Hm, "})), piece(json!({"reasoning": "yes."})), end("length")].concat();
    let (answer, deltas) = read(&[text.as_bytes()]).await;
    let answer = answer.unwrap();
    assert_eq!((answer.thinking[0].text.as_str(), answer.text.as_str()), ("Hm, yes.", ""));
    assert_eq!(answer.finish, FinishReason::Length);
    assert_eq!(deltas[0], Delta::Thinking("Hm, ".into()));
    let text = [piece(json!({"refusal": "I cannot."})), end("stop")].concat();
    let answer = read(&[text.as_bytes()]).await.0.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("I cannot.", FinishReason::Refusal));
    for (reason, finish) in [("content_filter", FinishReason::ContentFilter), ("eos", FinishReason::Error)] {
        let text =
            [piece(json!({"content": [{"type": "text", "text": "a"}, {"type": "other"}]})), end(reason)].concat();
        let answer = read(&[text.as_bytes()]).await.0.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish), ("a", finish));
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_its_answer_does_is_truncated() {
    let half = &TEXT[..TEXT.find("\"finish_reason\":\"stop\"").unwrap()];
    let open = [piece(json!({"content": "so far"})), "data: [DONE]\n\n".to_owned()].concat();
    for text in [half, "", ": nothing\n\n", open.as_str()] {
        let (answer, _) = read(&[text.as_bytes()]).await;
        let error = answer.unwrap_err();
        assert!(error.class() == "truncated" && error.retryable(), "{text:?}");
    }
    let error = read_and_break(&piece(json!({"content": "so far"}))).await.unwrap_err();
    assert_eq!(error.class(), "truncated");
}

#[tokio::test]
async fn an_answer_with_a_reason_for_its_end_is_whole_even_if_the_stream_is_not() {
    let last = json!({"choices": [{"delta": {"content": "all"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}});
    let answer = read(&[format!("data: {last}").as_bytes()]).await.0.unwrap();
    assert_eq!((answer.text.as_str(), answer.usage), ("all", None), "a count of nothing is no count");
    assert_eq!(answer.served_model, "local/org/some-model-high");
    assert!(read_and_break(&format!("data: {last}\n\n")).await.is_ok());
}

#[tokio::test]
async fn a_piece_that_is_no_json_and_a_line_without_end_are_refused() {
    let text = [piece(json!({"content": "a"})), "data: {\"choices\":[{\"del\n\n".to_owned(), end("stop")].concat();
    assert_eq!(read(&[text.as_bytes()]).await.0.unwrap_err().class(), "truncated");
    let bad_utf8 = b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n";
    assert_eq!(read(&[bad_utf8]).await.0.unwrap_err().class(), "truncated");
    let block = vec![b'x'; 64 * 1024];
    let endless: Vec<&[u8]> = std::iter::once(&b"data: "[..]).chain(std::iter::repeat_n(&block[..], 40)).collect();
    let error = read(&endless).await.0.unwrap_err();
    assert!(error.class() == "unknown" && !error.retryable(), "{error}");
}

#[tokio::test]
async fn an_error_inside_the_stream_is_an_error() {
    let text =
        "data: {\"error\":{\"message\":\"The server is overloaded\",\"type\":\"server_error\",\"code\":null}}\n\n";
    let (answer, _) = read(&[piece(json!({"content": "a"})).as_bytes(), text.as_bytes()]).await;
    assert_eq!(answer.unwrap_err().class(), "overloaded");
}

#[tokio::test]
async fn a_status_is_kept_with_the_wait_and_never_with_the_words() {
    let limited =
        Reply::error(429, &[("retry-after", "7")], r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#);
    let error = failure(limited).await;
    assert_eq!((error.class(), error.status()), ("rate_limited", Some(429)));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(7)));
    assert!(error.retryable());

    let body = r#"{"error":{"message":"Incorrect API key provided: sk-very-secret.","code":"invalid_api_key"}}"#;
    let error = failure(Reply::error(401, &[], body)).await;
    assert_eq!((error.class(), error.status(), error.retryable()), ("unauthorized", Some(401), false));
    assert_eq!(error.detail(), Some("Incorrect API key provided: [REDACTED:credential]."));
    assert!(!format!("{error} {error:?}").contains("secret"));

    let error = failure(Reply::error(500, &[("content-type", "text/plain")], "the secret plan made us fail")).await;
    assert_eq!((error.class(), error.status(), error.retryable()), ("overloaded", Some(500), true));
    assert!(!format!("{error} {error:?}").contains("secret"));

    let body = r#"{"error":{"message":"maximum context length is 8192","code":"context_length_exceeded"}}"#;
    let error = failure(Reply::error(400, &[], body)).await;
    assert_eq!((error.class(), error.retryable()), ("context_overflow", false));
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_read_as_well() {
    let body = r#"{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"read","arguments":"{\"a\":1,\"a\":2}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}"#;
    let reply = Reply::error(200, &[("content-type", "application/json")], body);
    let (model, _seen) = serve(reply).await;
    let answer = model.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap();
    assert_eq!(answer.calls, [call("call_a", "read", r#"{"a":1,"a":2}"#)]);
    assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((3, 2)));
    let page = Reply::error(200, &[("content-type", "text/html; charset=utf-8")], "<html>");
    assert_eq!(failure(page).await.class(), "broken");
}

#[tokio::test]
async fn nobody_at_the_address_is_a_network_error_without_the_address() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = model(&format!("http://127.0.0.1:{port}/v1")).answer(&request(&["hello"]), &DeltaSink::none()).await;
    let error = error.unwrap_err();
    assert!(error.class() == "network" && error.retryable());
    assert!(!format!("{error:?}").contains("chat/completions"), "{error:?}");
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let (gone, told) = oneshot::channel();
    let mut reply = Reply::events(&[piece(json!({"content": "first"})).as_bytes()]);
    reply.after = After::Stay(Guard(Some(gone)));
    let (model, _seen) = serve(reply).await;
    let (sink, mut deltas) = DeltaSink::channel();
    let asked = request(&["hello"]);
    tokio::select! {
        answer = model.answer(&asked, &sink) => panic!("{answer:?}"),
        first = deltas.recv() => assert_eq!(first, Some(Delta::Text("first".into()))),
    }
    timeout(Duration::from_secs(30), told).await.unwrap().unwrap();
}

/// Reads a stream of bytes that needs no server, in time that does not pass by itself.
async fn read_quietly(
    bytes: impl Stream<Item = Result<Bytes, std::io::Error>> + Unpin,
    timeouts: Timeouts,
) -> (Result<(), ModelError>, Assembly) {
    let provider = Provider::new("local", Some("http://127.0.0.1/v1"), None, timeouts).unwrap();
    let mut assembly = Assembly::default();
    let first_due = Instant::now() + timeouts.first_byte;
    let reading = Reading { provider: &provider, model: String::new(), deltas: &DeltaSink::none(), first_due };
    (reading.stream(bytes, &mut assembly).await, assembly)
}

#[tokio::test(start_paused = true)]
async fn silence_is_borne_for_a_minute_before_the_first_byte_and_between_two() {
    let began = Instant::now();
    let (read, _) = read_quietly(futures::stream::pending(), Timeouts::default()).await;
    assert_eq!(read.unwrap_err().to_string(), "the provider did not begin to answer within 60 s");
    assert_eq!(began.elapsed(), Duration::from_secs(60));

    let began = Instant::now();
    let pause = |secs| tokio::time::sleep(Duration::from_secs(secs));
    let slow = futures::stream::iter([50, 50, 59]).then(|secs| async move {
        pause(secs).await;
        Ok(Bytes::from_static(b": alive\n\n"))
    });
    let (read, _) = read_quietly(Box::pin(slow.chain(futures::stream::pending())), Timeouts::default()).await;
    assert_eq!(read.unwrap_err().to_string(), "the provider did not go on within 60 s");
    assert_eq!(began.elapsed(), Duration::from_secs(50 + 50 + 59 + 60));
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_does_not_wait_long_for_the_end_of_its_stream() {
    let began = Instant::now();
    let last = b"data: {\"choices\":[{\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\n\n";
    let bytes = futures::stream::iter([Ok(Bytes::from_static(last))]).chain(futures::stream::pending());
    let (read, assembly) = read_quietly(bytes, Timeouts::default()).await;
    assert!(read.is_ok());
    assert_eq!(assembly.answer("local", "m").unwrap().text, "all");
    assert_eq!(began.elapsed(), GRACE);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/v1", listener.local_addr().unwrap());
    let error = model(&base).answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider did not begin to answer within 60 s");
    let hasty = patient_model(&base, Timeouts { total: Duration::from_secs(9), ..Timeouts::default() });
    let error = hasty.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider did not finish its answer within 9 s");
}
