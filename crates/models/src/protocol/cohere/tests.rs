//! Cohere's chat against bytes as its servers send them.

use adjutant_core::message::{FinishReason, RawCall};
use adjutant_core::money::TokenUsage;
use serde_json::json;

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::testing::{Reply, failure, prove_cuts, prove_damage, read, sent};

const KIND: &str = "cohere";

const ANSWER: &str = r#"event: message-start
data: {"id":"1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_plan":"","tool_calls":[],"citations":[]}}}

event: tool-plan-delta
data: {"type":"tool-plan-delta","delta":{"message":{"tool_plan":"I will look, größer."}}}

event: tool-call-start
data: {"type":"tool-call-start","index":0,"delta":{"message":{"tool_calls":{"id":"read_1","type":"function","function":{"name":"read","arguments":""}}}}}

event: tool-call-delta
data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":"{\"path\": \"/a\","}}}}}

event: tool-call-delta
data: {"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":" \"path\": \"/b\"}"}}}}}

event: tool-call-end
data: {"type":"tool-call-end","index":0}

event: tool-call-start
data: {"type":"tool-call-start","index":1,"delta":{"message":{"tool_calls":{"id":"list_1","type":"function","function":{"name":"list","arguments":"{}"}}}}}

event: tool-call-end
data: {"type":"tool-call-end","index":1}

event: message-end
data: {"type":"message-end","delta":{"finish_reason":"TOOL_CALL","usage":{"billed_units":{"input_tokens":20,"output_tokens":9},"tokens":{"input_tokens":120,"output_tokens":30},"cached_tokens":16}}}

"#;

const TEXT: &str = r#"data: {"type":"content-start","index":0,"delta":{"message":{"content":{"type":"thinking","thinking":""}}}}

data: {"type":"content-delta","index":0,"delta":{"message":{"content":{"thinking":"hm"}}}}

data: {"type":"content-start","index":1,"delta":{"message":{"content":{"type":"text","text":""}}}}

data: {"type":"content-delta","index":1,"delta":{"message":{"content":{"text":"Hello"}}}}

data: {"type":"content-end","index":1}

data: {"type":"message-end","delta":{"finish_reason":"COMPLETE"}}

data: [DONE]

"#;

#[tokio::test]
async fn the_plan_parallel_calls_and_what_is_billed_are_read() {
    let answer = read(KIND, &[ANSWER.as_bytes()]).await.0.unwrap();
    assert_eq!(answer.thinking[0].text, "I will look, größer.");
    let calls: Vec<_> = answer.calls.iter().map(|call| (call.id.as_deref(), call.arguments.as_str())).collect();
    assert_eq!(calls, [(Some("read_1"), r#"{"path": "/a", "path": "/b"}"#), (Some("list_1"), "{}")]);
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert_eq!(answer.usage, Some(TokenUsage { input: 20, output: 9, cached: 16, ..TokenUsage::default() }));
    let answer = read(KIND, &[TEXT.as_bytes()]).await.0.unwrap();
    assert_eq!((answer.thinking[0].text.as_str(), answer.text.as_str()), ("hm", "Hello"));
    assert_eq!((answer.finish, answer.usage), (FinishReason::Stop, None));
}

#[tokio::test]
async fn a_conversation_is_written_in_the_words_of_the_protocol() {
    let mut asked = with_tools(request(&["read it"]), &[("read", &["path"])]);
    let mut said = answer("");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: "{\"a\": 1}".into() });
    continue_with(&mut asked, &said, &[("gone", true)]);
    let seen = sent(KIND, &asked, TEXT.as_bytes()).await;
    assert_eq!(seen.path, "/chat");
    assert_eq!(seen.headers["authorization"], "Bearer sk-very-secret");
    let schema = json!({"type": "object", "properties": {"path": {}}});
    assert_eq!(
        seen.body,
        json!({
            "model": "org/some-model-high",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": [{"type": "text", "text": "read it"}]},
                {"role": "assistant", "tool_calls": [{"id": "call_1_0", "type": "function", "function": {"name": "read", "arguments": "{\"a\": 1}"}}]},
                {"role": "tool", "tool_call_id": "call_1_0", "content": "Error: gone"},
            ],
            "tools": [{"type": "function", "function": {"name": "read", "description": "", "parameters": schema}}],
            "max_tokens": 100,
            "stream": true,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    prove_cuts(KIND, ANSWER.as_bytes(), 2).await;
    prove_damage(KIND, ANSWER.as_bytes()).await;
}

#[tokio::test]
async fn failures_are_known_before_and_inside_the_stream() {
    let text = "data: {\"type\":\"message-end\",\"delta\":{\"finish_reason\":\"ERROR\",\"error\":\"x\"}}\n\n";
    assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap_err().class(), "overloaded");
    let reply = Reply::error(
        429,
        &[("retry-after", "2")],
        r#"{"id":"1","message":"You are past the per minute request limit"}"#,
    );
    assert_eq!(failure(KIND, reply).await.retry_after().map(|wait| wait.as_secs()), Some(2));
    let reply = Reply::error(401, &[], r#"{"message":"invalid api token"}"#);
    assert_eq!(failure(KIND, reply).await.class(), "unauthorized");
}

#[tokio::test]
async fn reasons_for_the_end_are_told_apart() {
    for (reason, finish) in [
        ("COMPLETE", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("ERROR_TOXIC", FinishReason::ContentFilter),
    ] {
        let text = format!("data: {{\"type\":\"message-end\",\"delta\":{{\"finish_reason\":\"{reason}\"}}}}\n\n");
        assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap().finish, finish, "{reason}");
    }
}
