//! What each protocol makes of the same wishes, as its servers get it.

use std::sync::Arc;

use adjutant_core::message::{Message, ModelRequest, Part, RawCall, Role};
use serde_json::{Value, json};

use crate::view::tests::{answer, continue_with, request, with_tools};
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
async fn amazon_is_given_a_schema_or_an_effort_and_only_a_schema_it_takes() {
    let plain = r#"{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}"#;
    let bounded = r#"{"type":"integer","minimum":1}"#;
    let config = async |schema: &str, options: &str| {
        let asked = ModelRequest { output_schema: Some(schema.into()), ..asking(options, 8000) };
        seen("bedrock", "anthropic.claude-opus-4-6-v1", &asked).await.body["outputConfig"].clone()
    };
    let written = json!({"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {
        "schema": plain, "name": "answer",
    }}}});
    assert_eq!(config(plain, "{}").await, written);
    assert_eq!(config(bounded, "{}").await, Value::Null, "it would refuse the whole request");
    assert_eq!(config(plain, r#"{"reasoning_effort":"low"}"#).await, Value::Null);
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
    let body = seen("bedrock", "us.anthropic.claude-sonnet-4-5", &asking(ALL, 8000)).await.body;
    assert_eq!(body["additionalModelRequestFields"]["thinking"], enabled);
    assert_eq!(
        (&body["inferenceConfig"]["temperature"], &body["toolConfig"]["toolChoice"]),
        (&Value::Null, &Value::Null)
    );
}

/// What is asked of one of Anthropic's models: how it thinks, how much, and the tool that it has to use.
async fn deliberation(name: &str, options: &str) -> [Value; 4] {
    let body = seen("anthropic", name, &asking(options, 8000)).await.body;
    [&body["thinking"], &body["output_config"]["effort"], &body["tool_choice"]["type"], &body["temperature"]]
        .map(Clone::clone)
}

#[tokio::test]
async fn each_of_anthropics_models_is_asked_to_think_in_the_words_it_takes() {
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let (high, any) = (json!("high"), json!("any"));
    let much = r#"{"reasoning_effort":"high","tool_choice":"required"}"#;
    let tokens = json!({"type": "enabled", "budget_tokens": 6000});
    assert_eq!(deliberation("claude-sonnet-4-5", much).await, [tokens, Value::Null, Value::Null, Value::Null]);
    for name in ["claude-opus-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "claude-unheard-of-7"] {
        assert_eq!(
            deliberation(name, much).await,
            [adaptive.clone(), high.clone(), Value::Null, Value::Null],
            "{name}: by effort, and whoever thinks cannot be made to use a tool"
        );
    }
    let none = r#"{"reasoning_effort":"none","tool_choice":"required"}"#;
    assert_eq!(deliberation("claude-sonnet-4-6", none).await, [Value::Null, Value::Null, any.clone(), json!(0.5)]);
    let disabled = json!({"type": "disabled"});
    assert_eq!(deliberation("claude-opus-5", none).await[..3], [disabled, Value::Null, any.clone()]);
    assert_eq!(
        deliberation("claude-fable-5-1", none).await[..3],
        [adaptive.clone(), json!("low"), Value::Null],
        "one that always thinks is asked for little"
    );
    let tool = r#"{"tool_choice":"required"}"#;
    assert_eq!(deliberation("claude-opus-4-8", tool).await[..3], [Value::Null, Value::Null, any]);
    assert_eq!(deliberation("claude-sonnet-5", tool).await[..3], [adaptive.clone(), Value::Null, Value::Null]);
    assert_eq!(deliberation("claude-sonnet-5", "{}").await[0], adaptive, "its thoughts are shown without a word");
    for (name, effort, word) in [
        ("claude-opus-4-6", "max", "high"),
        ("claude-opus-4-8", "xhigh", "xhigh"),
        ("claude-opus-5-5", "max", "max"),
        ("claude-opus-5-5", "minimal", "low"),
    ] {
        let options = format!(r#"{{"reasoning_effort":"{effort}"}}"#);
        assert_eq!(deliberation(name, &options).await[1], json!(word), "{name} {effort}");
    }
    let body = seen("bedrock", "us.anthropic.claude-sonnet-5", &asking(much, 8000)).await.body;
    let fields = json!({"thinking": adaptive, "output_config": {"effort": "high"}});
    assert_eq!(body["additionalModelRequestFields"], fields);
}

#[tokio::test]
async fn an_effort_beyond_what_a_protocol_knows_is_the_most_it_knows() {
    let most = r#"{"reasoning_effort":"max"}"#;
    assert_eq!(fields("compatible", most, &["reasoning_effort"]).await, [json!("high")]);
    assert_eq!(fields("openai-responses", most, &["reasoning.effort"]).await, [json!("xhigh")]);
    assert_eq!(fields("cohere", most, &["thinking.token_budget"]).await, [json!(6000)]);
    let body = seen("ollama", "gpt-oss:20b", &asking(most, 8000)).await.body;
    assert_eq!(body["think"], json!("high"));
}

#[tokio::test]
async fn a_model_is_told_how_much_to_think_in_a_word_that_it_takes_or_not_at_all() {
    let asked = async |kind: &str, name: &str, effort: &str| {
        let options = format!(r#"{{"reasoning_effort":"{effort}"}}"#);
        seen(kind, name, &asking(&options, 64_000)).await.body
    };
    assert_eq!(asked("openai-responses", "gpt-5.1", "minimal").await["reasoning"]["effort"], json!("low"));
    assert_eq!(asked("openai-responses", "gpt-5-pro", "none").await["reasoning"]["effort"], json!("high"));
    assert_eq!(asked("xai", "grok-build-0.1", "high").await["reasoning_effort"], Value::Null);
    assert_eq!(asked("xai", "grok-4.7", "max").await["reasoning_effort"], json!("xhigh"));
    let off = asked("deepseek", "deepseek-v4-pro", "none").await;
    assert_eq!((&off["thinking"]["type"], &off["reasoning_effort"]), (&json!("disabled"), &Value::Null));
    let on = asked("zhipu", "glm-4.6", "low").await;
    assert_eq!((&on["thinking"]["type"], &on["reasoning_effort"]), (&json!("enabled"), &Value::Null));
    let config = async |name: &str, effort: &str| {
        asked("gemini", name, effort).await["generationConfig"]["thinkingConfig"].clone()
    };
    assert_eq!(config("gemini-2.5-pro", "none").await, json!({"thinkingBudget": 128}), "it always thinks");
    assert_eq!(config("gemini-2.5-flash", "none").await, json!({"thinkingBudget": 0}));
    assert_eq!(config("gemini-2.5-flash", "max").await["thinkingBudget"], json!(24_576));
    assert_eq!(config("gemini-2.5-pro", "max").await["thinkingBudget"], json!(32_768));
    assert_eq!(config("gemini-4-argon", "max").await, json!({"includeThoughts": true, "thinkingLevel": "high"}));
    let few = asking(r#"{"thinking_tokens":900}"#, 8000);
    let body = seen("gemini", "gemini-3.8-flash", &few).await.body;
    assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingLevel"], json!("low"));
    assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingBudget"], Value::Null);
}

#[tokio::test]
async fn a_model_amid_calls_that_another_made_is_not_given_tokens_to_think() {
    let mut request = asking(r#"{"reasoning_effort":"high"}"#, 8000);
    let mut said = answer("I look.");
    said.calls.push(RawCall { id: None, name: "look".into(), arguments: "{}".into() });
    continue_with(&mut request, &said, &[("seen", false)]);
    let name = "claude-sonnet-4-5";
    assert_eq!(seen("anthropic", name, &request).await.body["thinking"], Value::Null);
    let own = format!("anthropic:{name}|EqQB");
    request.messages[1].parts.insert(0, Part::Thinking { text: "hm".into(), signature: Some(own) });
    assert_eq!(seen("anthropic", name, &request).await.body["thinking"]["type"], json!("enabled"));
    request.messages[1].parts.remove(0);
    request.messages.push(Message::text(Role::User, "and now?"));
    assert_eq!(seen("anthropic", name, &request).await.body["thinking"]["type"], json!("enabled"), "a new turn");
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
