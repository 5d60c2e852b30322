//! Anthropic's messages against bytes as its servers send them.

use adjutant_core::label::Labels;
use adjutant_core::message::{Delta, FinishReason, Message, ModelRequest, Part, RawCall, Role};
use adjutant_core::money::TokenUsage;
use serde_json::{Value, json};

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::testing::{Reply, failure, model, prove_cuts, prove_damage, read, sent, serve};
use crate::{DeltaSink, Model, Noted, Notes, Timeouts};

const KIND: &str = "anthropic";

const THINKS_AND_CALLS: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"claude-x-1","stop_reason":null,"usage":{"input_tokens":20,"cache_creation_input_tokens":300,"cache_read_input_tokens":1000,"output_tokens":1,"output_tokens_details":{"thinking_tokens":0}}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type":"ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two files, größer."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQB+/="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Hidden=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"I look."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_A","name":"read","input":{}}}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_B","name":"list","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\": \"/a\","}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":" \"path\": \"/b\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: content_block_stop
data: {"type":"content_block_stop","index":4}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89,"output_tokens_details":{"thinking_tokens":61}}}

event: message_stop
data: {"type":"message_stop"}

"#;

const STOP: &str = r#"data: {"type":"message_start","message":{"model":"claude-x-1"}}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

"#;

#[tokio::test]
async fn reasoning_text_parallel_calls_and_all_classes_of_tokens_are_read() {
    let (answer, deltas) = read(KIND, &[THINKS_AND_CALLS.as_bytes()]).await;
    let answer = answer.unwrap();
    let thinking: Vec<_> =
        answer.thinking.iter().map(|thought| (thought.text.as_str(), thought.signature.as_deref().unwrap())).collect();
    let signed = "anthropic:org/some-model-high|EqQB+/=";
    let hidden = "anthropic-hidden:org/some-model-high|Hidden==";
    assert_eq!(thinking, [("Two files, größer.", signed), ("", hidden)]);
    assert_eq!(answer.text, "I look.");
    let call = |id: &str, name: &str, arguments: &str| RawCall {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let doubled = r#"{"path": "/a", "path": "/b"}"#;
    assert_eq!(answer.calls, [call("toolu_A", "read", doubled), call("toolu_B", "list", "{}")]);
    assert_eq!((answer.finish, answer.served_model.as_str()), (FinishReason::ToolCalls, "local/claude-x-1"));
    let counted = TokenUsage { input: 1320, output: 89, cached: 1000, reasoning: 61, cache_write: 300 };
    assert_eq!(answer.usage, Some(counted));
    assert_eq!(deltas, [Delta::Thinking("Two files, größer.".into()), Delta::Text("I look.".into())]);
}

#[tokio::test]
async fn a_conversation_goes_back_with_its_reasoning_as_it_came() {
    let mut asked = with_tools(request(&["read both"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: r#"{"a": 1, "a": 2}"#.into() });
    continue_with(&mut asked, &said, &[("not there", true)]);
    let thinking = |text: &str, signature: Option<&str>| Part::Thinking {
        text: text.into(),
        signature: signature.map(str::to_owned),
    };
    let thoughts = [
        thinking("Two files.", Some("anthropic:org/some-model-high|EqQB")),
        thinking("", Some("anthropic-hidden:org/some-model-high|Hid")),
        thinking("of another model", Some("anthropic:org/another|EqQC")),
        thinking("of another maker", Some("gemini:text:x")),
        thinking("unsigned", None),
    ];
    asked.messages[1].parts.splice(0..0, thoughts);
    asked.messages.push(Message::text(Role::User, "and now?"));
    let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
    asked.messages[3].parts.push(image);
    let seen = sent(KIND, &asked, STOP.as_bytes()).await;
    assert_eq!(seen.path, "/messages");
    assert_eq!(seen.headers["x-api-key"], "sk-very-secret");
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    let cache = json!({"type": "ephemeral"});
    assert_eq!(
        seen.body,
        json!({
            "model": "org/some-model-high",
            "max_tokens": 100,
            "stream": true,
            "system": [{"type": "text", "text": "Be kind.", "cache_control": cache}],
            "tools": [{"name": "read", "description": "", "input_schema": {"type": "object", "properties": {"path": {}}}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "read both"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "Two files.", "signature": "EqQB"},
                    {"type": "redacted_thinking", "data": "Hid"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_1_0", "name": "read", "input": {"a": 2}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1_0", "content": "not there", "is_error": true},
                    {"type": "text", "text": "and now?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                     "cache_control": cache},
                ]},
            ],
        })
    );
}

#[tokio::test]
async fn only_a_schema_that_the_provider_can_hold_an_answer_to_is_handed_on() {
    let closed = r#"{"type":"object","properties":{"n":{"type":"array","items":{"type":"integer"}}},"required":["n"],"additionalProperties":false}"#;
    for (schema, handed_on) in [
        (closed, true),
        (r#"{"anyOf":[{"type":"string","enum":["a","b"]},{"type":"null"}]}"#, true),
        (r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#, false),
        (r#"{"type":"object","additionalProperties":false,"properties":{"n":{"type":"integer","minimum":1}}}"#, false),
        (r##"{"type":"array","items":{"$ref":"#"}}"##, false),
        ("true", false),
    ] {
        let asked = ModelRequest { output_schema: Some(schema.into()), ..request(&["hello"]) };
        let asked = with_tools(asked, &[("look", &["path"])]);
        let body = sent(KIND, &asked, STOP.as_bytes()).await.body;
        let wanted: Value = serde_json::from_str(schema).unwrap();
        let format = json!({"type": "json_schema", "schema": wanted});
        assert_eq!(body["output_config"]["format"], if handed_on { format } else { Value::Null }, "{schema}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    let spare = THINKS_AND_CALLS.len() - THINKS_AND_CALLS.find("\n\nevent: message_stop").unwrap();
    prove_cuts(KIND, THINKS_AND_CALLS.as_bytes(), spare).await;
    prove_damage(KIND, THINKS_AND_CALLS.as_bytes()).await;
}

#[tokio::test]
async fn of_an_answer_that_breaks_off_it_is_noted_who_gave_it_and_what_it_took() {
    let begun = concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"model":"claude-x-1","usage":{"input_tokens":25,"output_tokens":1}}}"#,
        "\n\nevent: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        "\n\nevent: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look"}}"#,
        "\n\n"
    );
    let (base, _seen) = serve(vec![Reply::stream("anthropic", &[begun.as_bytes()])]).await;
    let notes = Notes::default();
    let sink = DeltaSink::none().noted(notes.clone());
    let broken = model("anthropic", &base, Timeouts::default()).answer(&request(&["hello"]), &sink).await.unwrap_err();
    assert_eq!(broken.class(), "truncated");
    let noted = notes.take();
    assert_eq!((noted.served.as_deref(), noted.text.as_str()), (Some("local/claude-x-1"), "I look"));
    assert_eq!(noted.usage, Some(TokenUsage { input: 25, output: 1, ..TokenUsage::default() }));
    assert_eq!(notes.take(), Noted::default(), "it is taken once");
}

#[tokio::test]
async fn reasons_for_the_end_are_told_apart() {
    for (reason, finish) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("refusal", FinishReason::Refusal),
        ("pause_turn", FinishReason::Error),
    ] {
        let text = STOP.replace("end_turn", reason);
        assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap().finish, finish, "{reason}");
    }
}

#[tokio::test]
async fn failures_are_known_before_and_inside_the_stream() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let begun = &THINKS_AND_CALLS[..THINKS_AND_CALLS.find("event: ping").unwrap()];
    let error = read(KIND, &[begun.as_bytes(), overloaded.as_bytes()]).await.0.unwrap_err();
    assert_eq!(error.class(), "overloaded");
    for (status, kind, message, class) in [
        (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", "context_overflow"),
        (400, "invalid_request_error", "Your credit balance is too low to access the API", "no_credit"),
        (400, "invalid_request_error", "messages.1: unexpected role", "bad_request"),
        (401, "authentication_error", "invalid x-api-key", "unauthorized"),
        (404, "not_found_error", "model: claude-none", "unknown_model"),
        (429, "rate_limit_error", "Number of requests has exceeded your limit", "rate_limited"),
        (529, "overloaded_error", "Overloaded", "overloaded"),
    ] {
        let body = json!({"type": "error", "error": {"type": kind, "message": message}}).to_string();
        let reply = Reply::error(status, &[("retry-after", "3")], Box::leak(body.into_boxed_str()));
        let error = failure(KIND, reply).await;
        assert_eq!(error.class(), class, "{message}");
        assert_eq!(error.retry_after().is_some(), error.retryable(), "{message}");
    }
}
