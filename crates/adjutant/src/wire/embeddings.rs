//! Embeddings: what a client asks, what the server answers, and what the command line reads from it.

use adjutant_engine::models::Purpose;
use adjutant_engine::{EmbedAsk, Embeddings};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Texts that are to become vectors.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmbeddingsAsk {
    /// The model: `provider/model`, or its bare name where only one provider has it.
    pub(crate) model: String,
    /// One text, or up to 256.
    pub(crate) input: EmbeddingsInput,
    /// What the vectors are for. Only some models tell a question from what it finds.
    #[serde(default)]
    pub(crate) purpose: EmbeddingsPurpose,
    /// The workspace (id or short name) whose keys and money are used; your only one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) workspace_id: Option<String>,
}

/// One text, or several.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EmbeddingsInput {
    One(String),
    Several(Vec<String>),
}

/// What vectors are for: a text that is to be found, or a question that finds texts.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EmbeddingsPurpose {
    #[default]
    Document,
    Query,
}

impl From<EmbeddingsAsk> for EmbedAsk {
    fn from(ask: EmbeddingsAsk) -> Self {
        let texts = match ask.input {
            EmbeddingsInput::One(text) => vec![text],
            EmbeddingsInput::Several(texts) => texts,
        };
        let purpose = match ask.purpose {
            EmbeddingsPurpose::Document => Purpose::Document,
            EmbeddingsPurpose::Query => Purpose::Query,
        };
        Self { model: ask.model, texts, purpose }
    }
}

/// Vectors, and what they cost.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct EmbeddingList {
    /// The model that was asked.
    pub(crate) model: String,
    /// The model that answered.
    pub(crate) served_model: String,
    /// How many numbers each vector has.
    pub(crate) dimensions: usize,
    /// The vectors, in the order of the texts.
    pub(crate) data: Vec<EmbeddingLine>,
    /// Tokens that were read.
    pub(crate) tokens: u64,
    /// Whether the tokens are our estimate.
    pub(crate) estimated: bool,
    /// What it cost; `null` where the price is not known.
    pub(crate) cost_usd: Option<f64>,
    pub(crate) cost_microusd: Option<u64>,
    /// The state of the prices.
    pub(crate) price_version: Option<String>,
}

/// The vector of one text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct EmbeddingLine {
    /// The place of the text, from 0.
    pub(crate) index: usize,
    pub(crate) embedding: Vec<f32>,
}

/// Vectors for clients.
pub(crate) fn embeddings(made: Embeddings) -> EmbeddingList {
    let line = |(index, embedding)| EmbeddingLine { index, embedding };
    EmbeddingList {
        model: made.model,
        served_model: made.served_model,
        dimensions: made.vectors.first().map_or(0, Vec::len),
        data: made.vectors.into_iter().enumerate().map(line).collect(),
        tokens: made.tokens,
        estimated: made.estimated,
        cost_usd: made.cost.map(adjutant_core::money::MicroUsd::dollars),
        cost_microusd: made.cost.map(|cost| cost.0),
        price_version: made.price_version,
    }
}
