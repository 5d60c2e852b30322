//! Asking a provider which models it has. Most say little more than names; nothing is made up for what they do not say.

use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::Value;
use tokio::time::timeout;

use super::{Provider, document};
use crate::{Detail, ModelError};

/// Models that are read of one list.
const MODELS: usize = 20_000;
/// The words that providers have for the tokens of question and answer together.
const WINDOW: [&str; 5] =
    ["context_length", "context_window", "inputTokenLimit", "max_context_length", "max_model_len"];
/// The words for the tokens of an answer at the most.
const OUTPUT: [&str; 2] = ["outputTokenLimit", "max_output_tokens"];

/// A model as its provider lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The provider's name for it.
    pub model: String,
    /// Tokens of question and answer together, if it says.
    pub window: Option<u64>,
    /// Tokens of an answer at the most, if it says.
    pub longest_output: Option<u64>,
}

/// The models of a provider, by its own word.
pub(crate) async fn listed(
    provider: &Provider,
    client: &reqwest::Client,
    now: jiff::Timestamp,
) -> Result<Vec<Listed>, ModelError> {
    let limit = provider.timeouts.first_byte;
    let late = |_| ModelError::Timeout { what: "list its models", limit };
    timeout(limit, ask(provider, client, now)).await.map_err(late)?
}

async fn ask(provider: &Provider, client: &reqwest::Client, now: jiff::Timestamp) -> Result<Vec<Listed>, ModelError> {
    let name = &provider.name;
    let url = provider.list()?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.extend(provider.vendor.protocol.headers());
    provider.auth.attach(&mut headers, &url, b"", client, now).await?;
    let (_, body) = document(provider, name, client.get(url).headers(headers), now).await?;
    read(&body).ok_or(ModelError::Unknown {
        reason: "it sent no list of models",
        status: Some(200),
        detail: Detail::default(),
    })
}

/// Reads a list, whichever of the usual forms it has.
fn read(body: &[u8]) -> Option<Vec<Listed>> {
    let document: Value = serde_json::from_slice(body).ok()?;
    let rows = [&document["data"], &document["models"], &document].into_iter().find_map(Value::as_array)?;
    let number =
        |row: &Value, words: &[&str]| words.iter().find_map(|word| row[*word].as_u64()).filter(|size| *size > 0);
    let mut found: Vec<Listed> = rows
        .iter()
        .take(MODELS)
        .filter_map(|row| {
            let name = ["id", "name", "model"].iter().find_map(|word| row[*word].as_str())?;
            let model = name.strip_prefix("models/").unwrap_or(name).to_owned();
            let plain = !model.is_empty() && model.len() <= 200 && !model.chars().any(char::is_control);
            plain.then(|| Listed { model, window: number(row, &WINDOW), longest_output: number(row, &OUTPUT) })
        })
        .collect();
    found.sort_by(|one, other| one.model.cmp(&other.model));
    found.dedup_by(|one, other| one.model == other.model);
    Some(found)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::vendor::Vendor;
    use crate::wire::auth::{ApiKey, Credential};
    use crate::wire::provider::RemoteConfig;
    use crate::wire::testing::{Reply, Seen, client, serve};

    async fn list(kind: &str, below: &str, reply: Reply) -> (Result<Vec<Listed>, ModelError>, Option<Seen>) {
        let (base, mut seen) = serve(vec![reply]).await;
        let config = RemoteConfig {
            base_url: Some(format!("{base}{below}")),
            credential: Credential::Key(ApiKey::for_its_address(SecretString::from("sk-very-secret"))),
            region: Some("us-east-1".to_owned()),
            ..RemoteConfig::new(Vendor::of(kind).unwrap())
        };
        let provider = Provider::new("local", config).unwrap();
        let now = jiff::Timestamp::from_second(1_440_938_160).unwrap();
        let found = listed(&provider, &client(), now).await;
        (found, seen.try_recv().ok())
    }

    fn model(name: &str, window: Option<u64>, longest_output: Option<u64>) -> Listed {
        Listed { model: name.to_owned(), window, longest_output }
    }

    #[tokio::test]
    async fn each_kind_of_provider_is_asked_in_its_own_words() {
        let cases = [
            (
                "openai",
                "/v1",
                r#"{"object":"list","data":[{"id":"b","object":"model"},{"id":"a"},{"id":"a"}]}"#,
                "/v1/models",
                "authorization",
            ),
            (
                "openrouter",
                "/api/v1/",
                r#"{"data":[{"id":"a","context_length":0},{"id":"b"}]}"#,
                "/api/v1/models",
                "authorization",
            ),
            (
                "anthropic",
                "/v1",
                r#"{"data":[{"type":"model","id":"a"},{"id":"b"}],"has_more":false}"#,
                "/v1/models?limit=1000",
                "x-api-key",
            ),
            (
                "gemini",
                "/v1beta",
                r#"{"models":[{"name":"models/a"},{"name":"models/b"}]}"#,
                "/v1beta/models?pageSize=1000",
                "x-goog-api-key",
            ),
            ("ollama", "", r#"{"models":[{"name":"a","model":"a"},{"name":"b"}]}"#, "/api/tags", "authorization"),
            (
                "cohere",
                "/v2",
                r#"{"models":[{"name":"a"},{"name":"b"}]}"#,
                "/v1/models?page_size=1000",
                "authorization",
            ),
        ];
        for (kind, below, body, path, header) in cases {
            let (found, seen) =
                list(kind, below, Reply::error(200, &[("content-type", "application/json")], body)).await;
            assert_eq!(found.unwrap(), [model("a", None, None), model("b", None, None)], "{kind}");
            let seen = seen.unwrap();
            assert_eq!(seen.path, path, "{kind}");
            assert!(seen.headers[header].to_str().unwrap().contains("sk-very-secret"), "{kind}");
        }
    }

    #[tokio::test]
    async fn what_a_list_says_about_sizes_is_kept() {
        let body = r#"{"models":[{"name":"models/a","inputTokenLimit":1000,"outputTokenLimit":50}]}"#;
        let (found, _) = list("gemini", "", Reply::error(200, &[], body)).await;
        assert_eq!(found.unwrap(), [model("a", Some(1000), Some(50))]);
        let body = r#"{"data":[{"id":"a","max_model_len":4096},{"id":""},{"id":"x\u001b[2J"},{"id":7}]}"#;
        let (found, _) = list("vllm", "/v1", Reply::error(200, &[], body)).await;
        assert_eq!(found.unwrap(), [model("a", Some(4096), None)]);
    }

    #[tokio::test]
    async fn a_list_that_is_none_is_an_error_without_the_key() {
        let refused = Reply::error(401, &[], r#"{"error":{"message":"bad key sk-very-secret"}}"#);
        let error = list("openai", "/v1", refused).await.0.unwrap_err();
        assert_eq!(error.class(), "unauthorized");
        assert!(!format!("{error:?}").contains("very-secret"));
        for nonsense in ["<html>", "{\"data\":", "{}", "7"] {
            let (found, _) = list("openai", "/v1", Reply::error(200, &[], nonsense)).await;
            assert!(found.is_err(), "{nonsense}");
        }
    }

    #[tokio::test]
    async fn a_provider_without_a_list_is_not_asked() {
        for kind in ["bedrock", "azure"] {
            let (found, seen) = list(kind, "", Reply::error(200, &[], "{}")).await;
            assert!(found.unwrap_err().to_string().contains("has no list of models"), "{kind}");
            assert!(seen.is_none(), "{kind}");
        }
    }
}
