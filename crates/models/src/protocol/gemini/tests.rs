//! Google's `streamGenerateContent` against bytes as its servers send them.

use adjutant_core::label::Labels;
use adjutant_core::message::{FinishReason, Message, Part, RawCall, Role};
use adjutant_core::money::TokenUsage;
use secrecy::SecretString;
use serde_json::json;

use crate::view::tests::{answer, continue_with, request, with_tools};
use crate::wire::auth::Credential;
use crate::wire::provider::RemoteConfig;
use crate::wire::testing::{Reply, configured, failure, named, prove_cuts, prove_damage, read, sent, serve};
use crate::{DeltaSink, Model, Vendor};

const KIND: &str = "gemini";

const ANSWER: &str = "data: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"Sehe nach …\",\"thought\": true}],\"role\": \"model\"},\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 30,\"totalTokenCount\": 30},\"modelVersion\": \"gemini-x-pro\"}\r\n\r\ndata: {\"candidates\": [{\"content\": {\"parts\": [{\"text\": \"I look.\"}],\"role\": \"model\"},\"index\": 0}]}\r\n\r\ndata: {\"candidates\": [{\"content\": {\"parts\": [{\"functionCall\": {\"name\": \"read\",\"args\": {\"path\": \"/a\", \"path\": \"/b\"}},\"thoughtSignature\": \"CsQB==\"},{\"functionCall\": {\"name\": \"list\",\"args\": {}}}],\"role\": \"model\"},\"finishReason\": \"STOP\",\"index\": 0}],\"usageMetadata\": {\"promptTokenCount\": 30,\"candidatesTokenCount\": 12,\"thoughtsTokenCount\": 40,\"cachedContentTokenCount\": 10,\"totalTokenCount\": 82},\"modelVersion\": \"gemini-x-pro\"}\r\n\r\n";

const STOP: &str =
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\"}]}\n\n";

#[tokio::test]
async fn reasoning_text_parallel_calls_their_proofs_and_tokens_are_read() {
    let answer = read(KIND, &[ANSWER.as_bytes()]).await.0.unwrap();
    let thinking: Vec<_> =
        answer.thinking.iter().map(|thought| (thought.text.as_str(), thought.signature.as_deref())).collect();
    assert_eq!(thinking, [("Sehe nach …", None), ("", Some("gemini:org/some-model-high|0:CsQB=="))]);
    assert_eq!(answer.text, "I look.");
    let call =
        |name: &str, arguments: &str| RawCall { id: None, name: name.to_owned(), arguments: arguments.to_owned() };
    assert_eq!(answer.calls, [call("read", r#"{"path": "/a", "path": "/b"}"#), call("list", "{}")]);
    assert_eq!(answer.finish, FinishReason::ToolCalls, "though the provider says STOP");
    let counted = TokenUsage { input: 30, output: 52, cached: 10, reasoning: 40, cache_write: 0 };
    assert_eq!((answer.usage, answer.served_model.as_str()), (Some(counted), "local/gemini-x-pro"));
}

#[tokio::test]
async fn a_proof_goes_back_to_the_place_it_was_at() {
    let mut asked = with_tools(request(&["read both"]), &[("read", &["path"])]);
    let mut said = answer("I look.");
    for arguments in ["{\"a\":1}", ""] {
        said.calls.push(RawCall { id: None, name: "read".into(), arguments: arguments.into() });
    }
    continue_with(&mut asked, &said, &[("seen", false), ("gone", true)]);
    let proof = |text: &str| Part::Thinking { text: "".into(), signature: Some(text.to_owned()) };
    let own = |proof: &str| format!("gemini:org/some-model-high|{proof}");
    let proofs = [own("0:First"), own("text:Text"), "gemini:another|1:no".to_owned(), "anthropic:no".to_owned()];
    asked.messages[1].parts.splice(0..0, proofs.iter().map(|text| proof(text)));
    asked.messages.push(Message::text(Role::User, "and this?"));
    let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
    asked.messages[3].parts.push(image);
    let seen = sent(KIND, &asked, STOP.as_bytes()).await;
    assert_eq!(seen.path, "/models/org%2Fsome-model-high:streamGenerateContent?alt=sse");
    assert_eq!(seen.headers["x-goog-api-key"], "sk-very-secret");
    let schema = json!({"type": "object", "properties": {"path": {}}});
    assert_eq!(
        seen.body,
        json!({
            "systemInstruction": {"parts": [{"text": "Be kind."}]},
            "contents": [
                {"role": "user", "parts": [{"text": "read both"}]},
                {"role": "model", "parts": [
                    {"text": "I look.", "thoughtSignature": "Text"},
                    {"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": "First"},
                    {"functionCall": {"name": "read", "args": {}}},
                ]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "read", "response": {"output": "seen"}}},
                    {"functionResponse": {"name": "read", "response": {"error": "gone"}}},
                    {"text": "and this?"},
                    {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
                ]},
            ],
            "tools": [{"functionDeclarations": [{"name": "read", "description": "", "parametersJsonSchema": schema}]}],
            "generationConfig": {"maxOutputTokens": 100},
        })
    );
}

#[tokio::test]
async fn calls_that_another_model_made_come_with_a_word_that_newer_models_take_for_a_proof() {
    let mut asked = with_tools(request(&["read both"]), &[("read", &["path"])]);
    let mut said = answer("");
    for _ in 0..2 {
        said.calls.push(RawCall { id: None, name: "read".into(), arguments: "{}".into() });
    }
    continue_with(&mut asked, &said, &[("seen", false), ("seen", false)]);
    let foreign = Part::Thinking { text: "".into(), signature: Some("gemini:gemini-2.5-pro|0:Old".into()) };
    asked.messages[1].parts.insert(0, foreign);
    for (name, proof) in [
        ("gemini-3.5-flash", json!("skip_thought_signature_validator")),
        ("gemini-4-argon", json!("skip_thought_signature_validator")),
        ("gemini-2.5-pro", json!("Old")),
        ("gemini-2.5-flash", serde_json::Value::Null),
    ] {
        let (base, mut seen) = serve(vec![Reply::stream(KIND, &[STOP.as_bytes()])]).await;
        let model = named(crate::wire::testing::model(KIND, &base, crate::Timeouts::default()), name);
        model.answer(&asked, &DeltaSink::none()).await.unwrap();
        let body = seen.recv().await.unwrap().body;
        let calls: Vec<_> = body["contents"][1]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|part| part["functionCall"].is_object())
            .map(|part| part["thoughtSignature"].clone())
            .collect();
        assert_eq!(calls, [proof, serde_json::Value::Null], "{name}: the first call of a turn speaks for all");
    }
}

#[tokio::test(start_paused = true)]
async fn it_does_not_matter_where_the_bytes_are_cut_and_an_early_end_is_seen() {
    prove_cuts(KIND, ANSWER.as_bytes(), 4).await;
    prove_damage(KIND, ANSWER.as_bytes()).await;
}

#[tokio::test]
async fn events_that_a_gateway_put_into_events_of_its_own_are_read_as_well() {
    let wrapped = format!("data: {}\n\ndata: [DONE]\n\n", STOP.trim_end());
    let answer = read(KIND, &[wrapped.as_bytes()]).await.0.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("ok", FinishReason::Stop));
}

#[tokio::test]
async fn a_list_in_place_of_a_stream_is_read_as_well() {
    let (base, _seen) = serve(vec![Reply::error(
        200,
        &[("content-type", "application/json; charset=UTF-8")],
        r#"[{"candidates":[{"content":{"parts":[{"text":"a"}]}}]},{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"MAX_TOKENS"}]}]"#,
    )])
    .await;
    let model = crate::wire::testing::model(KIND, &base, crate::Timeouts::default());
    let answer = model.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.finish), ("ab", FinishReason::Length));
}

#[tokio::test]
async fn what_the_filter_stops_is_no_answer_and_failures_are_known() {
    let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"PROHIBITED_CONTENT\"}}\n\n";
    assert_eq!(read(KIND, &[blocked.as_bytes()]).await.0.unwrap_err().class(), "policy");
    let cut = STOP.replace("STOP", "SAFETY");
    assert_eq!(read(KIND, &[cut.as_bytes()]).await.0.unwrap().finish, FinishReason::ContentFilter);
    let inside = "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\n\n";
    assert_eq!(read(KIND, &[inside.as_bytes()]).await.0.unwrap_err().class(), "overloaded");

    let body = r#"[{"error":{"code":429,"message":"quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31s"}]}}]"#;
    let error = failure(KIND, Reply::error(429, &[], body)).await;
    assert_eq!((error.class(), error.retry_after().unwrap().as_secs()), ("rate_limited", 31));
    let body = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}"#;
    assert_eq!(failure(KIND, Reply::error(400, &[], body)).await.class(), "unauthorized");
    let body = r#"{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#;
    assert_eq!(failure(KIND, Reply::error(400, &[], body)).await.class(), "context_overflow");
    let body = r#"{"error":{"code":404,"message":"models/none is not found","status":"NOT_FOUND"}}"#;
    assert_eq!(failure(KIND, Reply::error(404, &[], body)).await.class(), "unknown_model");
}

const TOKEN: &str = r#"{"access_token":"ya29.token","expires_in":3599,"token_type":"Bearer"}"#;

#[tokio::test]
async fn vertex_is_called_with_a_token_that_is_asked_for_once() {
    let replies = vec![
        Reply::error(200, &[("content-type", "application/json")], TOKEN),
        Reply::stream(KIND, &[STOP.as_bytes()]),
        Reply::stream(KIND, &[STOP.as_bytes()]),
    ];
    let (base, mut seen) = serve(replies).await;
    let file = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "s3", "refresh_token": "r&1",
        "token_uri": format!("{base}/token"), "quota_project_id": "p-1",
    });
    let model = configured(RemoteConfig {
        base_url: Some(format!("{base}/v1/publishers/google")),
        credential: Credential::Google(SecretString::from(file.to_string())),
        ..RemoteConfig::new(Vendor::of("vertex").unwrap())
    });
    for _ in 0..2 {
        model.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap();
    }
    let token = seen.recv().await.unwrap();
    assert_eq!(token.body, "grant_type=refresh_token&client_id=id&client_secret=s3&refresh_token=r%261");
    for _ in 0..2 {
        let asked = seen.recv().await.unwrap();
        assert_eq!(asked.headers["authorization"], "Bearer ya29.token");
        assert!(asked.path.starts_with("/v1/publishers/google/models/"), "{}", asked.path);
    }
}

#[tokio::test]
async fn an_account_that_is_refused_is_unauthorized() {
    let (base, _seen) = serve(vec![Reply::error(400, &[], r#"{"error":"invalid_grant"}"#)]).await;
    let file = json!({
        "type": "authorized_user", "client_id": "id", "client_secret": "s3", "refresh_token": "r",
        "token_uri": format!("{base}/token"),
    });
    let model = configured(RemoteConfig {
        base_url: Some(base),
        credential: Credential::Google(SecretString::from(file.to_string())),
        ..RemoteConfig::new(Vendor::of("vertex").unwrap())
    });
    let error = model.answer(&request(&["hello"]), &DeltaSink::none()).await.unwrap_err();
    assert_eq!((error.class(), error.status()), ("unauthorized", Some(400)));
}
