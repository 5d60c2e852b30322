//! How texts become vectors at each kind of provider: where they are sent, as what, and what comes back. Pure: nothing here
//! sends anything.

use serde_json::{Value, json};

use super::Protocol;
use crate::vendor::Vendor;
use crate::wire::provider::encoded;

/// Texts of one request: so many of the longest vectors fit what is read of an answer.
const AT_ONCE: usize = 64;
/// Texts of one request to the older models of Google's cloud.
const AT_ONCE_VERTEX: usize = 5;

/// What vectors are for. Some models make other ones of what is searched for than of what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    /// A text that is to be found.
    #[default]
    Document,
    /// A question that finds texts.
    Query,
}

/// Vectors of texts, in the order of the texts, all of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One for each text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens that the provider counted; none where it does not say.
    pub tokens: Option<u64>,
    /// The model that made them, as `provider/model`.
    pub served_model: String,
}

/// The forms of request and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmbedForm {
    /// OpenAI's, which most speak.
    OpenAi,
    /// The same at an Azure deployment.
    Azure,
    /// Gemini's `batchEmbedContents`.
    Gemini,
    /// Google's cloud: `predict`.
    Predict,
    /// Ollama's own.
    Ollama,
    /// Cohere's, version 2.
    Cohere,
    /// Amazon's Titan on Bedrock, one text at a time.
    Titan,
    /// Cohere's models on Bedrock.
    CohereOnBedrock,
}

impl EmbedForm {
    /// The form for a model of a vendor; none where it makes no embeddings.
    pub(crate) fn of(vendor: &Vendor, model: &str) -> Option<Self> {
        if !vendor.embeds {
            return None;
        }
        match vendor.protocol {
            Protocol::Chat | Protocol::Responses => Some(Self::OpenAi),
            Protocol::AzureChat => Some(Self::Azure),
            Protocol::Gemini if vendor.kind == "vertex" => Some(Self::Predict),
            Protocol::Gemini => Some(Self::Gemini),
            Protocol::Ollama => Some(Self::Ollama),
            Protocol::Cohere => Some(Self::Cohere),
            Protocol::Bedrock if model.contains("titan-embed-text") => Some(Self::Titan),
            Protocol::Bedrock if model.contains("cohere.embed") => Some(Self::CohereOnBedrock),
            Protocol::Bedrock | Protocol::Anthropic => None,
        }
    }

    /// Texts that one request may hold.
    pub(crate) fn at_once(self, model: &str) -> usize {
        match self {
            Self::Titan => 1,
            Self::Predict if model.starts_with("gemini-") => 1,
            Self::Predict => AT_ONCE_VERTEX,
            Self::OpenAi | Self::Azure | Self::Gemini | Self::Ollama | Self::Cohere | Self::CohereOnBedrock => AT_ONCE,
        }
    }

    /// The path of a request, after the base address.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::OpenAi => "embeddings".to_owned(),
            Self::Azure => format!("openai/deployments/{}/embeddings", encoded(model)),
            Self::Gemini => format!("models/{}:batchEmbedContents", encoded(model)),
            Self::Predict => format!("models/{}:predict", encoded(model)),
            Self::Ollama => "api/embed".to_owned(),
            Self::Cohere => "embed".to_owned(),
            Self::Titan | Self::CohereOnBedrock => format!("model/{}/invoke", encoded(model)),
        }
    }

    /// What to post.
    pub(crate) fn body(self, model: &str, texts: &[String], purpose: Purpose) -> Value {
        let input_type = match purpose {
            Purpose::Document => "search_document",
            Purpose::Query => "search_query",
        };
        match self {
            Self::OpenAi | Self::Ollama => json!({"model": model, "input": texts}),
            Self::Azure => json!({"input": texts}),
            Self::Gemini => {
                let name = format!("models/{model}");
                let request = |text| json!({"model": name, "content": {"parts": [{"text": text}]}});
                json!({"requests": texts.iter().map(request).collect::<Vec<_>>()})
            }
            Self::Predict => {
                json!({"instances": texts.iter().map(|text| json!({"content": text})).collect::<Vec<_>>()})
            }
            Self::Cohere => {
                json!({"model": model, "texts": texts, "input_type": input_type, "embedding_types": ["float"]})
            }
            Self::Titan => json!({"inputText": texts.concat()}),
            Self::CohereOnBedrock => {
                json!({"texts": texts, "input_type": input_type, "embedding_types": ["float"]})
            }
        }
    }

    /// The vectors of so many texts; none where the answer holds something else.
    pub(crate) fn vectors(self, answer: &Value, texts: usize) -> Option<Vec<Vec<f32>>> {
        let rows: Vec<&Value> = match self {
            Self::OpenAi | Self::Azure => in_order(answer["data"].as_array()?)?,
            Self::Gemini => answer["embeddings"].as_array()?.iter().map(|row| &row["values"]).collect(),
            Self::Predict => answer["predictions"].as_array()?.iter().map(|row| &row["embeddings"]["values"]).collect(),
            Self::Ollama => answer["embeddings"].as_array()?.iter().collect(),
            // Without a word about types, older models answer with the bare list.
            Self::Cohere | Self::CohereOnBedrock => {
                let found = answer["embeddings"]["float"].as_array().or_else(|| answer["embeddings"].as_array());
                found?.iter().collect()
            }
            Self::Titan => vec![&answer["embedding"]],
        };
        let vectors: Vec<_> = rows.into_iter().map(vector).collect::<Option<_>>()?;
        let length = vectors.first()?.len();
        (vectors.len() == texts && vectors.iter().all(|vector| vector.len() == length)).then_some(vectors)
    }

    /// The tokens that the provider counted, if it says.
    pub(crate) fn tokens(self, answer: &Value) -> Option<u64> {
        match self {
            Self::OpenAi | Self::Azure => answer["usage"]["prompt_tokens"].as_u64(),
            Self::Gemini => answer["usageMetadata"]["promptTokenCount"].as_u64(),
            Self::Predict => {
                let count = |row: &Value| row["embeddings"]["statistics"]["token_count"].as_f64();
                let counts: Option<Vec<f64>> = answer["predictions"].as_array()?.iter().map(count).collect();
                // Written as a fraction by some of its models.
                counts.map(|counts| counts.iter().sum::<f64>().ceil().max(0.0) as u64)
            }
            Self::Ollama => answer["prompt_eval_count"].as_u64(),
            Self::Cohere => answer["meta"]["billed_units"]["input_tokens"].as_u64(),
            Self::Titan => answer["inputTextTokenCount"].as_u64(),
            Self::CohereOnBedrock => None,
        }
    }
}

/// Rows by the place that they name; none where two name the same.
fn in_order(rows: &[Value]) -> Option<Vec<&Value>> {
    let mut placed: Vec<(u64, &Value)> =
        rows.iter().zip(0_u64..).map(|(row, at)| (row["index"].as_u64().unwrap_or(at), &row["embedding"])).collect();
    placed.sort_by_key(|(at, _)| *at);
    let whole = placed.iter().zip(0_u64..).all(|((named, _), at)| *named == at);
    whole.then(|| placed.into_iter().map(|(_, row)| row).collect())
}

fn vector(row: &Value) -> Option<Vec<f32>> {
    let number = |value: &Value| value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
    row.as_array()?.iter().map(number).collect::<Option<Vec<_>>>().filter(|vector| !vector.is_empty())
}
