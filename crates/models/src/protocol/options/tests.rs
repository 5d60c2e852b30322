//! What each protocol makes of the same wishes, as its servers get it.

use std::sync::Arc;

use adjutant_core::message::ModelRequest;
use serde_json::{Value, json};

use crate::view::tests::{request, with_tools};
use crate::wire::testing::{Reply, Seen, model, named, serve};
use crate::{DeltaSink, Model, Timeouts};

const ALL: &str = r#"{"reasoning_effort":"medium","top_p":0.9,"stop":["END"],"seed":7,"tool_choice":"required"}"#;

fn asking(options: &str, max_tokens: u32) -> ModelRequest {
    let options = Arc::new(serde_json::from_str(options).unwrap());
    ModelRequest {
        options,
        max_tokens,
        temperature: Some(0.5),
        ..with_tools(request(&["hello"]), &[("look", &["path"])])
    }
}

/// What a server of this kind gets; it answers nothing that counts.
async fn seen(kind: &str, name: &str, request: &ModelRequest) -> Seen {
    let (base, mut seen) = serve(vec![Reply::error(400, &[], "{}")]).await;
    let model = named(model(kind, &base, Timeouts::default()), name);
    model.answer(request, &DeltaSink::none()).await.unwrap_err();
    seen.recv().await.unwrap()
}

/// The fields of the body, nulls where they are not there.
async fn fields(kind: &str, options: &str, names: &[&str]) -> Vec<Value> {
    let body = seen(kind, "some-model", &asking(options, 8000)).await.body;
    names.iter().map(|name| name.split('.').fold(&body, |value, part| &value[part]).clone()).collect()
}

#[tokio::test]
async fn every_protocol_has_its_own_words_for_the_same_wishes() {
    let chat = ["reasoning_effort", "top_p", "stop", "seed", "tool_choice"];
    assert_eq!(
        fields("openai", ALL, &chat).await,
        [json!("medium"), json!(0.9), json!(["END"]), json!(7), json!("required")]
    );
    let responses = ["reasoning", "top_p", "stop", "tool_choice"];
    let summary = json!({"effort": "medium", "summary": "auto"});
    assert_eq!(
        fields("openai-responses", ALL, &responses).await,
        [summary, json!(0.9), Value::Null, json!("required")]
    );
    let anthropic = ["thinking", "temperature", "top_p", "stop_sequences", "tool_choice"];
    let enabled = json!({"type": "enabled", "budget_tokens": 4096});
    assert_eq!(
        fields("anthropic", ALL, &anthropic).await,
        [enabled.clone(), Value::Null, Value::Null, json!(["END"]), Value::Null],
        "whoever thinks takes neither a temperature nor a tool that it has to use"
    );
    let gemini = [
        "generationConfig.thinkingConfig",
        "generationConfig.topP",
        "generationConfig.stopSequences",
        "generationConfig.seed",
        "generationConfig.maxOutputTokens",
        "toolConfig.functionCallingConfig.mode",
    ];
    let thoughts = json!({"includeThoughts": true, "thinkingBudget": 4096});
    assert_eq!(
        fields("gemini", ALL, &gemini).await,
        [thoughts, json!(0.9), json!(["END"]), json!(7), json!(8000), json!("ANY")]
    );
    let ollama = ["think", "options.top_p", "options.stop", "options.seed", "options.num_predict"];
    assert_eq!(fields("ollama", ALL, &ollama).await, [json!(true), json!(0.9), json!(["END"]), json!(7), json!(8000)]);
    let cohere = ["thinking", "p", "stop_sequences", "seed", "tool_choice"];
    let budget = json!({"type": "enabled", "token_budget": 4096});
    assert_eq!(fields("cohere", ALL, &cohere).await, [budget, json!(0.9), json!(["END"]), json!(7), json!("REQUIRED")]);
    let bedrock = [
        "inferenceConfig.topP",
        "inferenceConfig.stopSequences",
        "toolConfig.toolChoice",
        "additionalModelRequestFields",
    ];
    assert_eq!(fields("bedrock", ALL, &bedrock).await, [json!(0.9), json!(["END"]), json!({"any": {}}), Value::Null]);
    let body = seen("bedrock", "us.anthropic.claude-x", &asking(ALL, 8000)).await.body;
    assert_eq!(body["additionalModelRequestFields"]["thinking"], enabled);
    assert_eq!(
        (&body["inferenceConfig"]["temperature"], &body["toolConfig"]["toolChoice"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn one_tool_can_be_named_and_thought_can_be_forbidden() {
    let look = r#"{"tool_choice":"look","reasoning_effort":"none"}"#;
    let named = json!({"type": "function", "function": {"name": "look"}});
    assert_eq!(fields("openai", look, &["tool_choice", "reasoning_effort"]).await, [named, json!("none")]);
    let tool = json!({"type": "tool", "name": "look"});
    assert_eq!(
        fields("anthropic", look, &["tool_choice", "thinking", "temperature"]).await,
        [tool, Value::Null, json!(0.5)]
    );
    let only = json!({"mode": "ANY", "allowedFunctionNames": ["look"]});
    let gemini = ["toolConfig.functionCallingConfig", "generationConfig.thinkingConfig"];
    assert_eq!(fields("gemini", look, &gemini).await, [only, json!({"thinkingBudget": 0})]);
    assert_eq!(fields("ollama", look, &["think"]).await, [json!(false)]);
    assert_eq!(fields("cohere", look, &["thinking"]).await, [json!({"type": "disabled"})]);
    let body = seen("gemini", "gemini-3-pro", &asking(r#"{"reasoning_effort":"high"}"#, 8000)).await.body;
    assert_eq!(body["generationConfig"]["thinkingConfig"], json!({"includeThoughts": true, "thinkingLevel": "high"}));
}

#[tokio::test]
async fn thought_leaves_room_for_the_answer_and_is_left_out_where_there_is_none() {
    let much = r#"{"thinking_tokens":900000}"#;
    let body = seen("anthropic", "m", &asking(much, 4000)).await.body;
    assert_eq!((&body["thinking"]["budget_tokens"], &body["max_tokens"]), (&json!(3000), &json!(4000)));
    let body = seen("anthropic", "m", &asking(much, 1000)).await.body;
    assert_eq!((&body["thinking"], &body["temperature"]), (&Value::Null, &json!(0.5)));
}

#[tokio::test]
async fn what_is_not_known_here_is_handed_on_and_changes_nothing_that_is() {
    let extras = r#"{"extra_headers":{"X-Title":"lab"},"extra_body":{"top_k":40,"temperature":9}}"#;
    for kind in ["openai", "anthropic", "gemini", "ollama", "cohere", "bedrock", "openai-responses"] {
        let seen = seen(kind, "m", &asking(extras, 4000)).await;
        assert_eq!((&seen.body["top_k"], seen.headers["x-title"].to_str().unwrap()), (&json!(40), "lab"), "{kind}");
        let proof =
            seen.headers.iter().any(|(_, value)| value.to_str().is_ok_and(|text| text.contains("sk-very-secret")));
        assert!(proof, "{kind} is still shown its own key");
    }
    let body = seen("openai", "m", &asking(extras, 4000)).await.body;
    assert_eq!(body["temperature"], json!(0.5));
}
