//! Bedrock's `converse` against frames as its servers send them.

use adjutant_core::label::Labels;
use adjutant_core::message::{FinishReason, Part, RawCall};
use adjutant_core::money::TokenUsage;
use secrecy::SecretString;
use serde_json::{Value, json};

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::auth::{AwsKey, Credential};
use crate::wire::binary::tests::encode;
use crate::wire::provider::RemoteConfig;
use crate::wire::testing::{Reply, configured, failure, prove_cuts, prove_damage, read, sent, serve};
use crate::{DeltaSink, Model, Vendor};

const KIND: &str = "bedrock";

fn event(kind: &str, data: Value) -> Vec<u8> {
    let headers = [(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")];
    encode(&headers, data.to_string().as_bytes())
}

fn delta(index: u64, delta: Value) -> Vec<u8> {
    event("contentBlockDelta", json!({"contentBlockIndex": index, "delta": delta}))
}

fn end(reason: &str) -> Vec<u8> {
    let usage = json!({"inputTokens": 20, "outputTokens": 9, "totalTokens": 1029, "cacheReadInputTokens": 800, "cacheWriteInputTokens": 200});
    let stop = event("messageStop", json!({"stopReason": reason}));
    [stop, event("metadata", json!({"usage": usage, "metrics": {"latencyMs": 5}}))].concat()
}

fn thinks_and_calls() -> Vec<u8> {
    let start = |index: u64, id: &str, name: &str| {
        let start = json!({"toolUse": {"toolUseId": id, "name": name}});
        event("contentBlockStart", json!({"contentBlockIndex": index, "start": start}))
    };
    let stop = |index: u64| event("contentBlockStop", json!({"contentBlockIndex": index}));
    [
        event("messageStart", json!({"role": "assistant"})),
        delta(0, json!({"reasoningContent": {"text": "größer?"}})),
        delta(0, json!({"reasoningContent": {"signature": "EqQB"}})),
        stop(0),
        delta(1, json!({"text": "I look."})),
        stop(1),
        start(2, "tooluse_A", "read"),
        delta(2, json!({"toolUse": {"input": "{\"path\": \"/a\","}})),
        delta(2, json!({"toolUse": {"input": " \"path\": \"/b\"}"}})),
        stop(2),
        start(3, "tooluse_B", "list"),
        stop(3),
        end("tool_use"),
    ]
    .concat()
}

#[tokio::test]
async fn reasoning_text_parallel_calls_and_all_classes_of_tokens_are_read() {
    let answer = read(KIND, &[&thinks_and_calls()]).await.0.unwrap();
    assert_eq!(answer.thinking[0].text, "größer?");
    assert_eq!(answer.thinking[0].signature.as_deref(), Some("anthropic:org/some-model-high|EqQB"));
    let calls: Vec<_> = answer.calls.iter().map(|call| (call.id.as_deref(), call.arguments.as_str())).collect();
    assert_eq!(calls, [(Some("tooluse_A"), r#"{"path": "/a", "path": "/b"}"#), (Some("tooluse_B"), "{}")]);
    assert_eq!((answer.text.as_str(), answer.finish), ("I look.", FinishReason::ToolCalls));
    let counted = TokenUsage { input: 1020, output: 9, cached: 800, reasoning: 0, cache_write: 200 };
    assert_eq!(answer.usage, Some(counted));
    for (reason, finish) in [
        ("max_tokens", FinishReason::Length),
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("surprise", FinishReason::Error),
    ] {
        assert_eq!(read(KIND, &[&end(reason)]).await.0.unwrap().finish, finish);
    }
}

#[tokio::test]
async fn reasoning_is_read_with_its_place_between_text_and_calls() {
    let call = |index: u64| {
        let start = json!({"toolUse": {"toolUseId": format!("tooluse_{index}"), "name": "read"}});
        event("contentBlockStart", json!({"contentBlockIndex": index, "start": start}))
    };
    let thinks = |index: u64| delta(index, json!({"reasoningContent": {"text": "hm", "signature": "EqQB"}}));
    let said = delta(1, json!({"text": "I look."}));
    let bytes = [thinks(0), said, thinks(2), call(3), thinks(4), call(5), end("tool_use")].concat();
    let answer = read(KIND, &[&bytes]).await.0.unwrap();
    let places: Vec<_> = answer.thinking.iter().map(|thought| (thought.after_text, thought.after_calls)).collect();
    assert_eq!(places, [(0, 0), (7, 0), (7, 1)]);
}

#[tokio::test]
async fn a_conversation_is_written_in_the_words_of_the_protocol() {
    let mut asked = with_tools(request(&["read it"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: "{\"a\": 1}".into() });
    continue_with(&mut asked, &said, &[("gone", true)]);
    let thinking = Part::Thinking { text: "hm".into(), signature: Some("anthropic:org/some-model-high|EqQB".into()) };
    asked.messages[1].parts.insert(0, thinking);
    let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
    asked.messages[0].parts.push(image);
    let seen = sent(KIND, &asked, &end("end_turn")).await;
    assert_eq!(seen.path, "/model/org%2Fsome-model-high/converse-stream");
    assert_eq!(seen.headers["authorization"], "Bearer sk-very-secret");
    let schema = json!({"json": {"type": "object", "properties": {"path": {}}}});
    assert_eq!(
        seen.body,
        json!({
            "system": [{"text": "Be kind."}],
            "messages": [
                {"role": "user", "content": [
                    {"text": "read it"},
                    {"image": {"format": "png", "source": {"bytes": "iVBORw=="}}},
                ]},
                {"role": "assistant", "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "EqQB"}}},
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "call_1_0", "name": "read", "input": {"a": 1}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "call_1_0", "content": [{"text": "gone"}], "status": "error"}},
                ]},
            ],
            "toolConfig": {"tools": [{"toolSpec": {"name": "read", "inputSchema": schema}}]},
            "inferenceConfig": {"maxTokens": 100},
        })
    );
}

#[tokio::test]
async fn a_request_can_be_signed_in_place_of_a_key() {
    let (base, mut seen) = serve(vec![Reply::stream(KIND, &[&end("end_turn")])]).await;
    let key = AwsKey { access: "AKID".to_owned(), secret: SecretString::from("shh"), session: None };
    let model = configured(RemoteConfig {
        base_url: Some(base),
        credential: Credential::Aws(key),
        region: Some("eu-west-1".to_owned()),
        ..RemoteConfig::new(Vendor::of(KIND).unwrap())
    });
    model.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap();
    let seen = seen.recv().await.unwrap();
    let shown = seen.headers["authorization"].to_str().unwrap();
    assert!(
        shown.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKID/20150830/eu-west-1/bedrock/aws4_request, \
             SignedHeaders=accept;content-type;host;x-amz-date, Signature="
        ),
        "{shown}"
    );
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    let bytes = thinks_and_calls();
    let metadata = end("x").len() - event("messageStop", json!({"stopReason": "x"})).len();
    prove_cuts(KIND, &bytes, metadata).await;
    prove_damage(KIND, &bytes).await;
}

#[tokio::test]
async fn failures_are_known_before_and_inside_the_stream() {
    for (exception, class) in [
        ("throttlingException", "rate_limited"),
        ("internalServerException", "overloaded"),
        ("modelStreamErrorException", "overloaded"),
        ("validationException", "bad_request"),
        ("surprise", "unknown"),
    ] {
        let headers = [(":exception-type", exception), (":message-type", "exception")];
        let text = encode(&headers, br#"{"message":"Too many tokens, please wait before trying again."}"#);
        assert_eq!(read(KIND, &[&text]).await.0.unwrap_err().class(), class);
    }
    let headers = [("x-amzn-errortype", "ThrottlingException:http://internal/")];
    assert_eq!(failure(KIND, Reply::error(429, &headers, r#"{"message":"slow"}"#)).await.class(), "rate_limited");
    let body = r#"{"message":"Input is too long for requested model."}"#;
    assert_eq!(failure(KIND, Reply::error(400, &[], body)).await.class(), "context_overflow");
    let body = r#"{"message":"The security token included in the request is invalid."}"#;
    assert_eq!(failure(KIND, Reply::error(403, &[], body)).await.class(), "unauthorized");
}
