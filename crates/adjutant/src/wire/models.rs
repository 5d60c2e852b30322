//! Models: what the server answers, and what the command line reads from it.

use adjutant_core::routing::Strategy;
use adjutant_engine::models::catalog::Rate;
use adjutant_engine::models::router::{Lack, Needs};
use adjutant_engine::models::{KeyState, Offer, ProviderFacts, chosen};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A model that can be used here. What is not known is `null`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ModelLine {
    /// `provider/model`: what an agent writes.
    pub(crate) id: String,
    /// The kind of its provider.
    kind: String,
    /// Tokens of question and answer together.
    pub(crate) context_window: Option<u64>,
    /// Tokens of an answer at the most.
    max_output: Option<u64>,
    /// `tools`, `images`, `documents`, `audio`, `video`, `reasoning`, `structured`, `embeddings`, `streaming`.
    pub(crate) abilities: Vec<String>,
    pub(crate) prices: ModelPrices,
    /// The state of the prices.
    price_version: String,
    /// A rough grade from 1 to 10.
    pub(crate) grade: u8,
    /// Milliseconds until the first piece of an answer, lately.
    first_piece_ms: Option<u64>,
    /// Seconds for which its provider is left alone, because it failed.
    resting_seconds: Option<u64>,
    /// The day from which its provider does not serve it any more, be it still to come.
    #[serde(default)]
    pub(crate) retired_on: Option<String>,
    /// Whether that day has come: it can be named, and no strategy chooses it.
    #[serde(default)]
    pub(crate) retired: bool,
    /// Whether only a key that somebody brought opens it, yours or one of a workspace of yours.
    #[serde(default)]
    pub(crate) by_key: bool,
}

/// Dollars for a million tokens; `null` is not known.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ModelPrices {
    pub(crate) input_usd: Option<f64>,
    cached_usd: Option<f64>,
    cache_write_usd: Option<f64>,
    pub(crate) output_usd: Option<f64>,
    reasoning_usd: Option<f64>,
}

/// A provider of models.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ProviderLine {
    /// Its name here: what a model's name begins with.
    name: String,
    /// What it is: the word for its kind in the configuration.
    kind: String,
    /// What people call it.
    title: String,
    /// `operator` for one of the operator's, `stored` for one that somebody brought, yours or one of a workspace of yours,
    /// `not_needed`, or `missing`.
    key: String,
    /// The variables of the operator that its key is usually in.
    key_env: Vec<String>,
    /// The host it is reached at; for admins.
    host: Option<String>,
    /// How many of its models are known.
    models: usize,
    /// Calls that it may have at once.
    calls_at_once: Option<usize>,
    /// Seconds for which it is left alone, because it failed.
    resting_seconds: Option<u64>,
    /// Whether it was found on the machine of the server, and not configured.
    detected: bool,
}

impl ProviderLine {
    /// A provider for clients.
    pub(crate) fn of(facts: ProviderFacts, host: Option<String>, stored: bool) -> Self {
        let key = match facts.key {
            KeyState::Operator => "operator",
            KeyState::NotNeeded => "not_needed",
            KeyState::Missing if stored => "stored",
            KeyState::Missing => "missing",
        };
        Self {
            name: facts.name,
            kind: facts.kind.to_owned(),
            title: facts.title.to_owned(),
            key: key.to_owned(),
            key_env: facts.key_env.iter().map(|name| (*name).to_owned()).collect(),
            host,
            models: facts.models,
            calls_at_once: facts.calls_at_once,
            resting_seconds: facts.resting.map(|left| left.as_secs().max(1)),
            detected: facts.detected,
        }
    }
}

/// Models.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct ModelList {
    /// The model of agents that say `default`.
    pub(crate) default_model: String,
    /// The models, by name.
    pub(crate) data: Vec<ModelLine>,
}

/// Models for clients.
pub(crate) fn models(default_model: &str, offers: &[Offer]) -> ModelList {
    let mut data: Vec<_> = offers.iter().map(model).collect();
    data.sort_by(|a, b| a.id.cmp(&b.id));
    ModelList { default_model: default_model.to_owned(), data }
}

fn model(offer: &Offer) -> ModelLine {
    let facts = &offer.facts;
    let can = facts.abilities;
    let abilities = [
        (can.tools, "tools"),
        (can.images, "images"),
        (can.documents, "documents"),
        (can.audio, "audio"),
        (can.video, "video"),
        (can.reasoning, "reasoning"),
        (can.structured, "structured"),
        (can.embeds, "embeddings"),
        (facts.streams(), "streaming"),
    ];
    let base = facts.prices.base;
    let usd = |rate: Option<Rate>| rate.map(Rate::dollars);
    ModelLine {
        id: offer.name.clone(),
        kind: facts.provider.clone(),
        context_window: facts.window,
        max_output: facts.longest_output,
        abilities: abilities.into_iter().filter(|(can, _)| *can).map(|(_, word)| word.to_owned()).collect(),
        prices: ModelPrices {
            input_usd: usd(base.input),
            cached_usd: usd(base.cached),
            cache_write_usd: usd(base.cache_write),
            output_usd: usd(base.output),
            reasoning_usd: usd(base.reasoning),
        },
        price_version: facts.version.clone(),
        grade: facts.grade,
        first_piece_ms: offer.first_piece.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        resting_seconds: offer.resting.map(|time| time.as_secs().max(1)),
        retired_on: facts.retired.map(|day| day.to_string()),
        retired: offer.retired,
        by_key: offer.by_key,
    }
}

/// A choice with its reasons.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Explained {
    /// The model that would be used; `null` where nothing fits.
    pub(crate) model: Option<String>,
    /// How it was chosen.
    pub(crate) strategy: String,
    /// All that could have been chosen, best first.
    pub(crate) ranked: Vec<RankedModel>,
    /// All that could not, and what they lack.
    pub(crate) left_out: Vec<LackingModel>,
}

/// A model in its place.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct RankedModel {
    pub(crate) model: String,
    pub(crate) grade: u8,
    /// What the expected call costs at the most; `null` where the price is not known.
    pub(crate) cost_microusd: Option<u64>,
    pub(crate) first_piece_ms: Option<u64>,
}

/// A model that could not be chosen.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct LackingModel {
    pub(crate) model: String,
    /// `tools`, `images`, `structured`, `reasoning`, `talk`, `facts` (nobody said what it can do), `retired` (its provider does not serve it any more), `room` or `resting`.
    pub(crate) lacks: String,
}

const fn lacks(lack: &Lack) -> &'static str {
    match lack {
        Lack::Tools => "tools",
        Lack::Images => "images",
        Lack::Structured => "structured",
        Lack::Reasoning => "reasoning",
        Lack::Talk => "talk",
        Lack::Unknown => "facts",
        Lack::Retired => "retired",
        Lack::Room { .. } => "room",
        Lack::Resting { .. } => "resting",
    }
}

/// What a strategy would choose now, for clients.
pub(crate) fn explained(offers: &[Offer], needs: &Needs, strategy: Strategy) -> Explained {
    let (model, ranked, left_out) = match chosen(offers, needs, strategy) {
        Ok(choice) => (Some(choice.model), choice.ranked, choice.left_out),
        Err(none) => (None, Vec::new(), none.left_out),
    };
    let ranked = ranked.into_iter().map(|ranked| RankedModel {
        model: ranked.model,
        grade: ranked.grade,
        cost_microusd: ranked.cost_microusd,
        first_piece_ms: ranked.first_piece_ms,
    });
    let lacking = |left: adjutant_engine::models::router::LeftOut| LackingModel {
        lacks: lacks(&left.lack).to_owned(),
        model: left.model,
    };
    let left_out = left_out.into_iter().map(lacking).collect();
    Explained { model, strategy: strategy.word().to_owned(), ranked: ranked.collect(), left_out }
}
