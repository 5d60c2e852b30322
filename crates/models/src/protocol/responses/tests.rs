//! OpenAI's responses against bytes as its servers send them.

use adjutant_core::label::Labels;
use adjutant_core::message::{FinishReason, Part, RawCall};
use adjutant_core::money::TokenUsage;
use serde_json::json;

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::testing::{Reply, failure, prove_cuts, prove_damage, read, sent};

const KIND: &str = "openai-responses";

const ANSWER: &str = r#"event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt-x","output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Schaue nach, größer."}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","encrypted_content":"gAAA:B=","summary":[{"type":"summary_text","text":"x"}]}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"I look."}

event: response.output_text.done
data: {"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"I look."}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"read","arguments":""}}

event: response.output_item.added
data: {"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"list","arguments":""}}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\": \"/a\","}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":" \"path\": \"/b\"}"}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","call_id":"call_a","name":"read","arguments":"{\"path\": \"/a\", \"path\": \"/b\"}"}}

event: response.output_item.done
data: {"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","call_id":"call_b","name":"list","arguments":"{}"}}

event: response.completed
data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"gpt-x","usage":{"input_tokens":50,"input_tokens_details":{"cached_tokens":20,"cache_write_tokens":25},"output_tokens":30,"output_tokens_details":{"reasoning_tokens":12},"total_tokens":80}}}

"#;

fn last(kind: &str, response: serde_json::Value) -> String {
    format!("data: {}\n\n", json!({"type": kind, "response": response}))
}

#[tokio::test]
async fn reasoning_text_parallel_calls_and_tokens_are_read() {
    let answer = read(KIND, &[ANSWER.as_bytes()]).await.0.unwrap();
    assert_eq!(answer.thinking[0].text, "Schaue nach, größer.");
    assert_eq!(answer.thinking[0].signature.as_deref(), Some("openai:org/some-model-high|rs_1:gAAA:B="));
    assert_eq!(answer.text, "I look.");
    let call = |id: &str, name: &str, arguments: &str| RawCall {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    let doubled = r#"{"path": "/a", "path": "/b"}"#;
    assert_eq!(answer.calls, [call("call_a", "read", doubled), call("call_b", "list", "{}")]);
    assert_eq!((answer.finish, answer.served_model.as_str()), (FinishReason::ToolCalls, "local/gpt-x"));
    let counted = TokenUsage { input: 50, output: 30, cached: 20, reasoning: 12, cache_write: 25 };
    assert_eq!(answer.usage, Some(counted));
}

#[tokio::test]
async fn a_conversation_becomes_items_and_reasoning_goes_back_sealed() {
    let mut asked = with_tools(request(&["read it"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: "{\"a\": 1}".into() });
    continue_with(&mut asked, &said, &[("gone", true)]);
    let thinking =
        Part::Thinking { text: "hm".into(), signature: Some("openai:org/some-model-high|rs_1:gAAA:B=".into()) };
    let foreign = Part::Thinking { text: "hm".into(), signature: Some("openai:another|rs_0:gAAA:B=".into()) };
    asked.messages[1].parts.splice(0..0, [foreign, thinking]);
    let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
    asked.messages[0].parts.push(image);
    let seen = sent(KIND, &asked, last("response.completed", json!({})).as_bytes()).await;
    assert_eq!(seen.path, "/responses");
    assert_eq!(seen.headers["authorization"], "Bearer sk-very-secret");
    let schema = json!({"type": "object", "properties": {"path": {}}});
    assert_eq!(
        seen.body,
        json!({
            "model": "org/some-model-high",
            "instructions": "Be kind.",
            "input": [
                {"type": "message", "role": "user", "content": [
                    {"type": "input_text", "text": "read it"},
                    {"type": "input_image", "image_url": "data:image/png;base64,iVBORw=="},
                ]},
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA:B="},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
                {"type": "function_call", "call_id": "call_1_0", "name": "read", "arguments": "{\"a\": 1}"},
                {"type": "function_call_output", "call_id": "call_1_0", "output": "Error: gone"},
            ],
            "tools": [{"type": "function", "name": "read", "description": "", "parameters": schema, "strict": false}],
            "max_output_tokens": 100,
            "include": ["reasoning.encrypted_content"],
            "store": false,
            "stream": true,
        })
    );
    for (model, reasons) in [("gpt-4o", false), ("gpt-5-chat-latest", false), ("gpt-5.4", true), ("o4-mini", true)] {
        assert_eq!(super::by_responses(model), reasons, "{model}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    prove_cuts(KIND, ANSWER.as_bytes(), 2).await;
    prove_damage(KIND, ANSWER.as_bytes()).await;
}

#[tokio::test]
async fn answers_that_are_not_complete_say_why_and_failures_are_known() {
    for (reason, finish) in
        [("max_output_tokens", FinishReason::Length), ("content_filter", FinishReason::ContentFilter)]
    {
        let text = last("response.incomplete", json!({"incomplete_details": {"reason": reason}}));
        assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap().finish, finish);
    }
    let refusal = "data: {\"type\":\"response.refusal.delta\",\"delta\":\"No.\"}\n\n".to_owned();
    let text = refusal + &last("response.completed", json!({}));
    assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap().finish, FinishReason::Refusal);
    let text = last("response.failed", json!({"error": {"code": "server_error", "message": "x"}}));
    assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap_err().class(), "overloaded");
    let text = "data: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"slow\",\"param\":null}\n\n";
    assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap_err().class(), "rate_limited");
    let reply = Reply::error(401, &[], r#"{"error":{"message":"bad key sk-very-secret","code":"invalid_api_key"}}"#);
    let error = failure(KIND, reply).await;
    assert_eq!(error.detail(), Some("bad key [REDACTED:credential]"));
}
