//! Ollama's chat against bytes as its server sends them.

use adjutant_core::label::Labels;
use adjutant_core::message::{FinishReason, Part, RawCall};
use adjutant_core::money::TokenUsage;
use serde_json::json;

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::testing::{Reply, failure, prove_cuts, prove_damage, read, sent};

const KIND: &str = "ollama";

const ANSWER: &str = r#"{"model":"qwen","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"größer?"},"done":false}
{"model":"qwen","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"I look."},"done":false}
{"model":"qwen","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"read","arguments":{"path": "/a", "path": "/b"}}},{"id":"call_x","function":{"name":"list","arguments":{}}}]},"done":false}
{"model":"qwen","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","total_duration":5,"prompt_eval_count":26,"eval_count":8}
"#;

#[tokio::test]
async fn reasoning_text_calls_and_tokens_are_read() {
    let answer = read(KIND, &[ANSWER.as_bytes()]).await.0.unwrap();
    assert_eq!((answer.thinking[0].text.as_str(), answer.text.as_str()), ("größer?", "I look."));
    let calls: Vec<_> =
        answer.calls.iter().map(|call| (call.id.as_deref(), call.name.as_str(), call.arguments.as_str())).collect();
    assert_eq!(calls, [(None, "read", r#"{"path": "/a", "path": "/b"}"#), (Some("call_x"), "list", "{}")]);
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    assert_eq!(answer.usage, Some(TokenUsage { input: 26, output: 8, ..TokenUsage::default() }));
    let cut = ANSWER.replace("\"done_reason\":\"stop\"", "\"done_reason\":\"length\"");
    assert_eq!(read(KIND, &[cut.as_bytes()]).await.0.unwrap().finish, FinishReason::Length);
}

#[tokio::test]
async fn a_conversation_is_written_with_a_window_it_fits_into() {
    let mut asked = with_tools(request(&["read it"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "read".into(), arguments: "{\"a\": 1}".into() });
    continue_with(&mut asked, &said, &[("gone", true)]);
    let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
    asked.messages[0].parts.push(image);
    asked.temperature = Some(0.5);
    let seen = sent(KIND, &asked, ANSWER.as_bytes()).await;
    assert_eq!(seen.path, "/api/chat");
    let schema = json!({"type": "object", "properties": {"path": {}}});
    assert_eq!(
        seen.body,
        json!({
            "model": "org/some-model-high",
            "messages": [
                {"role": "system", "content": "Be kind."},
                {"role": "user", "content": "read it", "images": ["iVBORw=="]},
                {"role": "assistant", "content": "I look.", "tool_calls": [{"function": {"name": "read", "arguments": {"a": 1}}}]},
                {"role": "tool", "content": "Error: gone", "tool_name": "read"},
            ],
            "tools": [{"type": "function", "function": {"name": "read", "description": "", "parameters": schema}}],
            "options": {"num_predict": 100, "num_ctx": 8192, "temperature": 0.5},
            "stream": true,
        })
    );
    let long = request(&["word ".repeat(10_000).as_str()]);
    assert_eq!(sent(KIND, &long, ANSWER.as_bytes()).await.body["options"]["num_ctx"], 32_768);
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    prove_cuts(KIND, ANSWER.as_bytes(), 1).await;
    prove_damage(KIND, ANSWER.as_bytes()).await;
}

#[tokio::test]
async fn failures_are_known_before_and_inside_the_stream() {
    let error = read(KIND, &[b"{\"error\":\"an error was encountered while running the model\"}\n"]).await.0;
    assert_eq!(error.unwrap_err().class(), "unknown");
    let reply = Reply::error(404, &[], r#"{"error":"model \"x\" not found, try pulling it first"}"#);
    assert_eq!(failure(KIND, reply).await.class(), "unknown_model");
    let reply =
        Reply::error(503, &[], r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#);
    assert_eq!(failure(KIND, reply).await.class(), "overloaded");
}

#[tokio::test]
async fn reasons_for_the_end_are_told_apart_and_each_of_several_calls_is_kept() {
    for (reason, finish) in
        [("stop", FinishReason::Stop), ("length", FinishReason::Length), ("load", FinishReason::Error)]
    {
        let text = format!("{{\"message\":{{\"content\":\"x\"}},\"done\":true,\"done_reason\":\"{reason}\"}}\n");
        assert_eq!(read(KIND, &[text.as_bytes()]).await.0.unwrap().finish, finish, "{reason}");
    }
    let call = |path: &str| format!("{{\"function\":{{\"name\":\"read\",\"arguments\":{{\"path\":\"{path}\"}}}}}}");
    let calls = [call("/a"), call("/b")].join(",");
    let text = format!(
        "{{\"message\":{{\"content\":\"\",\"tool_calls\":[{calls}]}},\"done\":true,\"done_reason\":\"stop\"}}\n"
    );
    let answer = read(KIND, &[text.as_bytes()]).await.0.unwrap();
    assert_eq!(answer.finish, FinishReason::ToolCalls);
    let arguments: Vec<_> = answer.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"path\":\"/a\"}", "{\"path\":\"/b\"}"]);
}
