//! Embeddings against bytes as each kind of provider sends them.

use std::time::Duration;

use serde_json::{Value, json};

use crate::vendor::VENDORS;
use crate::wire::auth::{ApiKey, AwsKey, Credential};
use crate::wire::provider::{RemoteConfig, Timeouts};
use crate::wire::testing::{After, Guard, Reply, Seen, configured, model, named, serve};
use crate::{Embedded, Model, ModelError, Purpose, Vendor};

const JSON: (&str, &str) = ("content-type", "application/json");

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// What a kind of provider is sent for two texts (one where it takes one at a time), and what is made of its reply.
async fn embedded(
    kind: &str,
    name: &str,
    purpose: Purpose,
    reply: Reply,
) -> (Result<Embedded, ModelError>, Option<Seen>) {
    let (base, mut seen) = serve(vec![reply]).await;
    let remote = named(model(kind, &base, Timeouts::default()), name);
    let asked = texts(&["größer", "b"]);
    let asked = &asked[..remote.texts_at_once().min(2)];
    (remote.embed(asked, purpose).await, seen.try_recv().ok())
}

struct Case {
    kind: &'static str,
    model: &'static str,
    path: &'static str,
    sent: Value,
    reply: &'static str,
    tokens: Option<u64>,
}

const OPENAI: &str = r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0.5,-1]},{"object":"embedding","index":0,"embedding":[0.25,1e-3]}],"model":"m-1","usage":{"prompt_tokens":7,"total_tokens":7}}"#;

/// Those who speak OpenAI's form.
fn alike() -> Vec<Case> {
    let kinds = ["openai", "openai-responses", "mistral", "together", "fireworks", "openrouter", "zhipu"];
    let own = ["llama-cpp", "vllm", "lm-studio", "litellm", "compatible"];
    let sent = json!({"model": "org/m", "input": ["größer", "b"]});
    let case =
        |kind| Case { kind, model: "org/m", path: "/embeddings", sent: sent.clone(), reply: OPENAI, tokens: Some(7) };
    kinds.into_iter().chain(own).map(case).collect()
}

fn others() -> Vec<Case> {
    vec![
        Case {
            kind: "azure",
            model: "my dep",
            path: "/openai/deployments/my%20dep/embeddings?api-version=2024-10-21",
            sent: json!({"input": ["größer", "b"]}),
            reply: OPENAI,
            tokens: Some(7),
        },
        Case {
            kind: "gemini",
            model: "gemini-embedding-001",
            path: "/models/gemini-embedding-001:batchEmbedContents",
            sent: json!({"requests": [
                {"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "größer"}]}},
                {"model": "models/gemini-embedding-001", "content": {"parts": [{"text": "b"}]}},
            ]}),
            reply: r#"{"embeddings":[{"values":[0.25,0.001]},{"values":[0.5,-1]}]}"#,
            tokens: None,
        },
        Case {
            kind: "vertex",
            model: "text-embedding-005",
            path: "/models/text-embedding-005:predict",
            sent: json!({"instances": [{"content": "größer"}, {"content": "b"}]}),
            reply: r#"{"predictions":[{"embeddings":{"statistics":{"truncated":false,"token_count":3},"values":[0.25,0.001]}},{"embeddings":{"values":[0.5,-1.0],"statistics":{"token_count":1,"truncated":false}}}],"metadata":{"billableCharacterCount":7}}"#,
            tokens: Some(4),
        },
        Case {
            kind: "ollama",
            model: "all-minilm",
            path: "/api/embed",
            sent: json!({"model": "all-minilm", "input": ["größer", "b"]}),
            reply: r#"{"model":"all-minilm","embeddings":[[0.25,0.001],[0.5,-1]],"total_duration":14143917,"load_duration":1019500,"prompt_eval_count":8}"#,
            tokens: Some(8),
        },
        Case {
            kind: "cohere",
            model: "embed-v4.0",
            path: "/embed",
            sent: json!({"model": "embed-v4.0", "texts": ["größer", "b"], "input_type": "search_document", "embedding_types": ["float"]}),
            reply: r#"{"id":"x","embeddings":{"float":[[0.25,0.001],[0.5,-1]]},"texts":["größer","b"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":2}}}"#,
            tokens: Some(2),
        },
        Case {
            kind: "bedrock",
            model: "cohere.embed-english-v3",
            path: "/model/cohere.embed-english-v3/invoke",
            sent: json!({"texts": ["größer", "b"], "input_type": "search_document", "embedding_types": ["float"]}),
            reply: r#"{"id":"x","texts":["größer","b"],"response_type":"embeddings_floats","embeddings":[[0.25,0.001],[0.5,-1]]}"#,
            tokens: Some(11),
        },
    ]
}

#[tokio::test]
async fn each_kind_of_provider_makes_vectors_in_its_own_words() {
    for case in alike().into_iter().chain(others()) {
        let Case { kind, model, path, sent, reply, tokens } = case;
        let reply = Reply::error(200, &[JSON, ("x-amzn-bedrock-input-token-count", "11")], reply);
        let (made, seen) = embedded(kind, model, Purpose::Document, reply).await;
        let made = made.unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(made.vectors, [[0.25, 1e-3], [0.5, -1.0]], "{kind}");
        // Where the body says nothing, the header does.
        assert_eq!(made.tokens, tokens.or(Some(11)), "{kind}");
        let seen = seen.unwrap();
        assert_eq!((seen.path.as_str(), seen.body), (path, sent), "{kind}");
        let secret = seen.headers.values().filter(|value| value.to_str().unwrap().contains("sk-very-secret")).count();
        assert_eq!(secret, 1, "{kind}");
    }
}

#[tokio::test]
async fn titan_and_the_newer_models_of_googles_cloud_take_one_text_at_a_time() {
    let reply = r#"{"embedding":[0.25,0.5],"embeddingsByType":{"float":[0.25,0.5]},"inputTextTokenCount":3}"#;
    let reply = Reply::error(200, &[JSON], reply);
    let (made, seen) = embedded("bedrock", "amazon.titan-embed-text-v2:0", Purpose::Document, reply).await;
    let made = made.unwrap();
    assert_eq!((made.vectors, made.tokens), (vec![vec![0.25, 0.5]], Some(3)));
    let seen = seen.unwrap();
    assert_eq!(seen.path, "/model/amazon.titan-embed-text-v2%3A0/invoke");
    assert_eq!(seen.body, json!({"inputText": "größer"}));
    let google = named(model("vertex", "http://127.0.0.1:9", Timeouts::default()), "gemini-embedding-001");
    assert_eq!(google.texts_at_once(), 1);
}

#[tokio::test]
async fn a_question_is_told_from_what_it_finds_where_the_model_can_tell() {
    let reply = Reply::error(200, &[JSON], r#"{"embeddings":{"float":[[1],[2]]}}"#);
    let (made, seen) = embedded("cohere", "embed-v4.0", Purpose::Query, reply).await;
    assert_eq!((made.unwrap().tokens, &seen.unwrap().body["input_type"]), (None, &json!("search_query")));
}

#[tokio::test]
async fn a_provider_without_embeddings_is_not_asked_and_says_so() {
    let without: Vec<_> = VENDORS.iter().filter(|vendor| !vendor.embeds).map(|vendor| (vendor.kind, "any")).collect();
    assert!(without.len() >= 6, "{without:?}");
    for (kind, name) in without.into_iter().chain([("bedrock", "anthropic.claude-sonnet-4-5")]) {
        let (made, seen) = embedded(kind, name, Purpose::Document, Reply::error(200, &[], "{}")).await;
        let error = made.unwrap_err();
        assert!(error.to_string().contains("makes no embeddings") && !error.retryable(), "{kind}: {error}");
        assert!(seen.is_none(), "{kind}");
    }
}

#[tokio::test]
async fn a_request_of_bedrock_is_signed_and_a_key_goes_to_no_other_host() {
    let (base, mut seen) = serve(vec![Reply::error(200, &[JSON], r#"{"embedding":[1.0]}"#)]).await;
    let config = |credential| RemoteConfig {
        base_url: Some(base.clone()),
        credential,
        region: Some("us-east-1".to_owned()),
        ..RemoteConfig::new(Vendor::of("bedrock").unwrap())
    };
    let key = AwsKey { access: "AKIDEXAMPLE".to_owned(), secret: "the-secret".into(), session: None };
    let remote = named(configured(config(Credential::Aws(key))), "amazon.titan-embed-text-v1");
    remote.embed(&texts(&["a"]), Purpose::Document).await.unwrap();
    let signed = seen.recv().await.unwrap().headers["authorization"].to_str().unwrap().to_owned();
    assert!(signed.contains("Credential=AKIDEXAMPLE/") && signed.contains("content-type;host"), "{signed}");
    let elsewhere = ApiKey::brought(b"sk-very-secret", &["api.example.com".to_owned()]).unwrap();
    assert!(crate::wire::Provider::new("local", config(Credential::Key(elsewhere))).is_err());
}

#[tokio::test]
async fn what_is_no_answer_is_an_error_of_the_same_classes_without_the_key() {
    for (status, body, class, again) in [
        (401, r#"{"error":{"message":"bad key sk-very-secret"}}"#, "unauthorized", false),
        (429, "slow down", "rate_limited", true),
        (503, "", "overloaded", true),
        (200, r#"{"data":[{"index":0,"embedding":[1"#, "truncated", true),
        (200, "{}", "unknown", false),
        (200, r#"{"data":[{"index":0,"embedding":[1]}]}"#, "unknown", false),
        (200, r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#, "unknown", false),
        (200, r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#, "unknown", false),
        (200, r#"{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":[]}]}"#, "unknown", false),
        (200, r#"{"data":[{"index":0,"embedding":"AACA"},{"index":1,"embedding":"AACA"}]}"#, "unknown", false),
    ] {
        let reply = Reply::error(status, &[JSON, ("retry-after", "3")], body);
        let error = embedded("openai", "m", Purpose::Document, reply).await.0.unwrap_err();
        assert_eq!((error.class(), error.retryable()), (class, again), "{status} {body}: {error}");
        assert!(!format!("{error} {error:?}").contains("sk-very"), "{error:?}");
        if status == 429 {
            assert_eq!(error.retry_after(), Some(Duration::from_secs(3)));
        }
    }
}

#[tokio::test]
async fn a_server_that_goes_silent_is_let_go_of() {
    let (gone, told) = tokio::sync::oneshot::channel();
    let mut reply = Reply::error(200, &[JSON], "{");
    reply.after = After::Stay(Guard(Some(gone)));
    let (base, _seen) = serve(vec![reply]).await;
    let timeouts = Timeouts { total: Duration::from_millis(300), ..Timeouts::default() };
    let error = model("openai", &base, timeouts).embed(&texts(&["a"]), Purpose::Document).await.unwrap_err();
    assert_eq!(error.class(), "timeout", "{error}");
    tokio::time::timeout(Duration::from_secs(30), told).await.unwrap().unwrap();
}
