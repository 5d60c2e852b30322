//! Reads a document in the form of models.dev: providers, each with models, each with limits, modalities and prices in
//! dollars for a million tokens. Fields that are not known are passed over; a number that cannot be is refused.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::price::{PriceTier, Prices, Rate};
use super::{Abilities, MIDDLE_GRADE, ModelFacts};
use crate::vendor::Vendor;

/// Bytes of a document at the most, and models in it: many times what there is.
const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;
const MODELS: usize = 200_000;
/// Dollars for a million tokens at the most; beyond that somebody mistook the unit.
const DEAREST: f64 = 100_000.0;
/// Where one provider's longer requests begin to cost more, in the older form that has no number for it.
const LONG: u64 = 200_000;

/// Why a document was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadDocument {
    /// It is too long.
    #[error("the document is longer than {} MiB or holds more than {MODELS} models", DOCUMENT_BYTES / (1024 * 1024))]
    TooLong,
    /// It is not of this form.
    #[error("the document is not a list of providers with models: {0}")]
    Form(String),
    /// A price is not a price.
    #[error("model `{0}` has a price that is no price")]
    Price(String),
}

#[derive(Deserialize)]
struct Provider {
    models: BTreeMap<String, Model>,
}

#[derive(Deserialize)]
struct Model {
    tool_call: Option<bool>,
    reasoning: Option<bool>,
    structured_output: Option<bool>,
    temperature: Option<bool>,
    /// Not of that form: for operators whose models answer in one piece.
    streaming: Option<bool>,
    modalities: Option<Modalities>,
    #[serde(default)]
    limit: Limit,
    cost: Option<Costs>,
}

#[derive(Deserialize, Default)]
struct Modalities {
    #[serde(default)]
    input: Vec<String>,
}

#[derive(Deserialize, Default)]
struct Limit {
    context: Option<u64>,
    output: Option<u64>,
}

#[derive(Deserialize)]
struct Costs {
    #[serde(flatten)]
    base: Tier,
    context_over_200k: Option<Tier>,
    #[serde(default)]
    tiers: Vec<LongTier>,
}

#[derive(Deserialize)]
struct LongTier {
    tier: Size,
    #[serde(flatten)]
    prices: Tier,
}

#[derive(Deserialize)]
struct Size {
    size: u64,
}

#[derive(Deserialize)]
struct Tier {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    reasoning: Option<f64>,
}

/// Reads a document. Providers that we call otherwise get our name for them.
pub(super) fn read(document: &[u8], version: &str) -> Result<Vec<ModelFacts>, BadDocument> {
    if document.len() > DOCUMENT_BYTES {
        return Err(BadDocument::TooLong);
    }
    let providers: BTreeMap<String, Provider> =
        serde_json::from_slice(document).map_err(|error| BadDocument::Form(error.to_string()))?;
    let mut found = Vec::new();
    for (provider, Provider { models }) in providers {
        let provider = our_name(&provider);
        for (name, model) in models {
            if found.len() >= MODELS {
                return Err(BadDocument::TooLong);
            }
            found.push(model.facts(provider.clone(), name, version)?);
        }
    }
    Ok(found)
}

fn our_name(provider: &str) -> String {
    let ours = match provider {
        "amazon-bedrock" => "bedrock",
        "google-vertex" => "vertex",
        "fireworks-ai" => "fireworks",
        "togetherai" => "together",
        "moonshotai" => "moonshot",
        "zhipuai" => "zhipu",
        other => Vendor::of(other).map_or(other, |vendor| vendor.kind),
    };
    ours.to_owned()
}

impl Model {
    fn facts(self, provider: String, model: String, version: &str) -> Result<ModelFacts, BadDocument> {
        let takes = |kind: &str| self.modalities.iter().flat_map(|some| &some.input).any(|input| input == kind);
        let says = |word: Option<bool>| word == Some(true);
        let abilities = Abilities {
            tools: says(self.tool_call),
            images: takes("image"),
            documents: takes("pdf"),
            audio: takes("audio"),
            video: takes("video"),
            reasoning: says(self.reasoning),
            structured: says(self.structured_output),
            fixed_temperature: self.temperature == Some(false),
            embeds: model.contains("embed"),
            whole: self.streaming == Some(false),
            unknown: self.tool_call.is_none() && self.modalities.is_none(),
        };
        let mut prices = Prices::default();
        if let Some(costs) = self.cost {
            let bad = || BadDocument::Price(format!("{provider}/{model}"));
            prices.base = costs.base.read().ok_or_else(bad)?;
            if let Some(long) = costs.context_over_200k {
                prices.over.push((LONG, long.read().ok_or_else(bad)?));
            }
            for LongTier { tier, prices: long } in costs.tiers {
                prices.over.push((tier.size, long.read().ok_or_else(bad)?));
            }
        }
        // Nothing is the form's word for not known.
        let known = |limit: Option<u64>| limit.filter(|tokens| *tokens > 0);
        Ok(ModelFacts {
            window: known(self.limit.context),
            longest_output: known(self.limit.output),
            provider,
            model,
            abilities,
            prices,
            grade: MIDDLE_GRADE,
            retired: None,
            version: version.to_owned(),
        })
    }
}

impl Tier {
    fn read(&self) -> Option<PriceTier> {
        Some(PriceTier {
            input: rate(self.input)?,
            cached: rate(self.cache_read)?,
            cache_write: rate(self.cache_write)?,
            output: rate(self.output)?,
            reasoning: rate(self.reasoning)?,
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the number is checked to lie between nothing and the dearest price"
)]
fn rate(dollars: Option<f64>) -> Option<Option<Rate>> {
    match dollars {
        None => Some(None),
        Some(dollars) if (0.0..=DEAREST).contains(&dollars) => Some(Some(Rate((dollars * 1e6).round() as u64))),
        Some(_) => None,
    }
}
