//! The wire against a server on the loopback that replays bytes as providers send them, cut where it hurts.

use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::message::{Delta, FinishReason, ModelAnswer, RawCall};
use adjutant_core::money::TokenUsage;
use bytes::Bytes;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::view::tests::{request, with_tools};
use crate::wire::testing::{self, After, Guard, Reply, prove_cuts, prove_damage, read_quietly, serve};
use crate::{DeltaSink, Model, ModelError, Timeouts};

/// Any server that speaks the protocol.
const KIND: &str = "compatible";

async fn read(pieces: &[&[u8]]) -> (Result<ModelAnswer, ModelError>, Vec<Delta>) {
    testing::read(KIND, pieces).await
}

async fn failure(reply: Reply) -> ModelError {
    testing::failure(KIND, reply).await
}

fn model(base: &str) -> crate::wire::Remote {
    testing::model(KIND, &format!("{base}/v1/"), Timeouts::default())
}

/// The answer to an event after which, once it has arrived, the connection breaks.
async fn read_and_break(event: &str) -> Result<ModelAnswer, ModelError> {
    let (cut, told) = oneshot::channel();
    let mut reply = Reply::stream(KIND, &[event.as_bytes()]);
    reply.after = After::Break(told);
    let (base, _seen) = serve(vec![reply]).await;
    let cut = Mutex::new(Some(cut));
    let sink = DeltaSink::new(move |_| drop(cut.lock().unwrap().take()));
    model(&base).answer(&request(&["hello"]), &sink).await
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
    assert_eq!(answer.usage, Some(TokenUsage { input: 19, output: 10, cached: 8, reasoning: 4, cache_write: 0 }));
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
    let (base, mut seen) = serve(vec![Reply::stream(KIND, &[TEXT.as_bytes()])]).await;
    let asked = with_tools(request(&["hello"]), &[("look", &["path"])]);
    model(&base).answer(&asked, &DeltaSink::none()).await.unwrap();
    let seen = seen.recv().await.unwrap();
    assert_eq!(seen.path, "/v1/chat/completions");
    assert_eq!(seen.headers["authorization"], "Bearer sk-very-secret");
    let body = seen.body;
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
    let (base, _seen) = serve(vec![reply]).await;
    let answer = model(&base).answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap();
    assert_eq!(answer.calls, [call("call_a", "read", r#"{"a":1,"a":2}"#)]);
    assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((3, 2)));
    let page = Reply::error(200, &[("content-type", "text/html; charset=utf-8")], "<html>");
    assert_eq!(failure(page).await.class(), "broken");
}

#[tokio::test]
async fn nobody_at_the_address_is_a_network_error_without_the_address() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let error = model(&format!("http://127.0.0.1:{port}")).answer(&request(&["hello"]), &DeltaSink::none()).await;
    let error = error.unwrap_err();
    assert!(error.class() == "network" && error.retryable());
    assert!(!format!("{error:?}").contains("chat/completions"), "{error:?}");
}

#[tokio::test]
async fn dropping_the_answer_closes_the_connection() {
    let (gone, told) = oneshot::channel();
    let mut reply = Reply::stream(KIND, &[piece(json!({"content": "first"})).as_bytes()]);
    reply.after = After::Stay(Guard(Some(gone)));
    let (base, _seen) = serve(vec![reply]).await;
    let model = model(&base);
    let (sink, mut deltas) = DeltaSink::channel();
    let asked = request(&["hello"]);
    tokio::select! {
        answer = model.answer(&asked, &sink) => panic!("{answer:?}"),
        first = deltas.recv() => assert_eq!(first, Some(Delta::Text("first".into()))),
    }
    timeout(Duration::from_secs(30), told).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn silence_is_borne_for_a_minute_before_the_first_byte_and_between_two() {
    let began = Instant::now();
    let read = read_quietly(KIND, futures::stream::pending(), Timeouts::default()).await;
    assert_eq!(read.unwrap_err().to_string(), "the provider did not begin to answer within 60 s");
    assert_eq!(began.elapsed(), Duration::from_secs(60));

    let began = Instant::now();
    let pause = |secs| tokio::time::sleep(Duration::from_secs(secs));
    let slow = futures::stream::iter([50, 50, 59]).then(|secs| async move {
        pause(secs).await;
        Ok(Bytes::from_static(b": alive\n\n"))
    });
    let read = read_quietly(KIND, Box::pin(slow.chain(futures::stream::pending())), Timeouts::default()).await;
    assert_eq!(read.unwrap_err().to_string(), "the provider did not go on within 60 s");
    assert_eq!(began.elapsed(), Duration::from_secs(50 + 50 + 59 + 60));
}

#[tokio::test(start_paused = true)]
async fn a_complete_answer_does_not_wait_long_for_the_end_of_its_stream() {
    let began = Instant::now();
    let last = b"data: {\"choices\":[{\"delta\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}\n\n";
    let bytes = futures::stream::iter([Ok(Bytes::from_static(last))]).chain(futures::stream::pending());
    let read = read_quietly(KIND, bytes, Timeouts::default()).await;
    assert_eq!(read.unwrap().text, "all");
    assert_eq!(began.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_given_up() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let error = model(&base).answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider did not begin to answer within 60 s");
    let hasty = testing::model(KIND, &base, Timeouts { total: Duration::from_secs(9), ..Timeouts::default() });
    let error = hasty.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
    assert_eq!(error.to_string(), "the provider did not finish its answer within 9 s");
}

/// An answer as each kind of provider sends it, where it differs.
const CALLS: &str = r#"data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","reasoning_content":"Hm ü."}}]}

data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"content":"Let me see."}}]}

data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\":"}}]}}]}

data: {"id":"1","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    prove_cuts(KIND, CALLS.as_bytes(), "\n\ndata: [DONE]\n\n".len()).await;
    prove_damage(KIND, CALLS.as_bytes()).await;
}

#[tokio::test]
async fn tokens_are_counted_in_every_providers_words() {
    let read_usage = async |kind: &str, usage: Value| {
        let last = json!({"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}], "usage": usage});
        testing::read(kind, &[format!("data: {last}\n\n").as_bytes()]).await.0.unwrap().usage.unwrap()
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_cache_hit_tokens": 4});
    assert_eq!(read_usage("deepseek", usage).await.cached, 4);
    let details = json!({"reasoning_tokens": 7});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "completion_tokens_details": details});
    assert_eq!(read_usage("xai", usage.clone()).await.output, 12, "reasoning comes on top here");
    assert_eq!(read_usage("openrouter", usage).await.output, 5);
    let details = json!({"cached_tokens": 3, "cache_write_tokens": 6});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": details});
    let usage = read_usage("openrouter", usage).await;
    assert_eq!((usage.cached, usage.cache_write), (3, 6));
    let groq = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": {"prompt_tokens": 2, "completion_tokens": 1}}});
    let answer = testing::read("groq", &[format!("data: {groq}\n\n").as_bytes()]).await.0.unwrap();
    assert_eq!(answer.usage.unwrap().input, 2);
}

#[tokio::test]
async fn reasoning_in_parts_is_kept_apart_from_what_is_said() {
    let parts =
        json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "yes"}]);
    let text = [piece(json!({"content": parts})), end("stop")].concat();
    let answer = testing::read("mistral", &[text.as_bytes()]).await.0.unwrap();
    assert_eq!((answer.thinking[0].text.as_str(), answer.text.as_str()), ("hm", "yes"));
}

#[tokio::test]
async fn an_azure_deployment_is_called_by_its_address_and_with_its_own_header() {
    let seen = testing::sent("azure", &request(&["hello"]), TEXT.as_bytes()).await;
    assert_eq!(
        (seen.path.as_str(), &seen.body["model"]),
        ("/openai/v1/chat/completions", &json!("org/some-model-high"))
    );
    assert_eq!(seen.headers["api-key"], "sk-very-secret");
    assert!(!seen.headers.contains_key("authorization"));
    assert_eq!(seen.body["max_completion_tokens"], 100);
}

#[tokio::test]
async fn arguments_that_come_letter_by_letter_are_put_together() {
    let arguments = json!({"path": "/a", "content": "Grüße 🌍 \"quoted\"\n".repeat(20)}).to_string();
    let mut text =
        piece(json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "write", "arguments": ""}}]}));
    for letter in arguments.chars() {
        text += &piece(json!({"tool_calls": [{"index": 0, "function": {"arguments": letter.to_string()}}]}));
    }
    text += &end("tool_calls");
    let single: Vec<_> = text.as_bytes().chunks(1).map(Bytes::copy_from_slice).map(Ok).collect();
    let read = read_quietly(KIND, futures::stream::iter(single), Timeouts::default()).await;
    assert_eq!(read.unwrap().calls, [call("a", "write", &arguments)]);
}

#[tokio::test]
async fn a_text_that_is_no_text_is_one_clear_error_or_shown_as_it_can_be() {
    let whole = [piece(json!({"content": "good XX end"})), end("stop")].concat();
    let at = whole.find("XX").unwrap();
    let mut bytes = whole.into_bytes();
    bytes[at..at + 2].copy_from_slice(&[0xc3, 0x28]);
    match read(&[&bytes]).await.0 {
        Ok(answer) => assert_eq!(answer.text, "good \u{fffd}( end"),
        Err(error) => assert!(!error.to_string().contains("good"), "{error}"),
    }
}

#[tokio::test]
async fn an_answer_of_five_megabytes_is_read_once_and_whole() {
    let part = "0123456789abcdef".repeat(512);
    let mut text = String::new();
    for _ in 0..640 {
        text += &piece(json!({"content": part}));
    }
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 9}});
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    text += &format!("data: {last}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    let answer = read(&[text.as_bytes()]).await.0.unwrap();
    assert_eq!(answer.text.len(), 640 * part.len());
    assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((3, 9)));
}
