//! Embeddings: texts become vectors outside of runs, with the keys, budgets, retries and records of every model call.

use std::sync::Arc;

use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::limits::{BACKOFF_MOST, EMBEDDED_BYTES, EMBEDDED_TEXTS};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::routing::Wanted;
use adjutant_models::chain::{Failed, Next, Reach, after};
use adjutant_models::router::Needs;
use adjutant_models::{Embedded, Model, Purpose, lineup, tokens};

use super::outside::{Ended, Errand, Heard, Outside};
use crate::asking::in_time;
use crate::engine::Engine;
use crate::error::EngineError;

/// Texts that are to become vectors.
#[derive(Debug, Clone)]
pub struct EmbedAsk {
    /// The model, by its whole or its bare name.
    pub model: String,
    /// The texts.
    pub texts: Vec<String>,
    /// What the vectors are for.
    pub purpose: Purpose,
}

/// Vectors of texts, in the order of the texts, and what they cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// The model that was asked.
    pub model: String,
    /// The model that answered.
    pub served_model: String,
    /// One for each text.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens.
    pub tokens: u64,
    /// Whether they are our estimate.
    pub estimated: bool,
    /// What they cost; none where the price is not known.
    pub cost: Option<MicroUsd>,
    /// The state of the prices it was reckoned with.
    pub price_version: Option<String>,
}

/// What is the same for all calls of one request.
struct Calls {
    outside: Outside,
    model: Arc<dyn Model>,
    purpose: Purpose,
}

impl Engine {
    /// Makes vectors of texts, for a person.
    ///
    /// # Errors
    /// When there are no texts or too many, no such model, no money, or the provider fails for good.
    pub async fn embed(
        &self,
        workspace: WorkspaceId,
        person: UserId,
        ask: EmbedAsk,
    ) -> Result<Embeddings, EngineError> {
        checked(&ask.texts)?;
        self.refuse_halted(workspace).await?;
        let source = self.source(workspace, None, person).await?;
        let wanted = Wanted { model: ask.model, fallbacks: Vec::new(), strategy: None };
        let name = lineup(&source, &wanted, self.default_model(), &Needs::default())
            .map_err(|bad| EngineError::Invalid(bad.to_string()))?
            .model;
        let key = self.key_for(workspace, None, person, &[], &name).await?;
        let model = self.keyed_model(workspace, &name, key).await?;
        let calls = Calls { outside: self.outside(workspace, person, name, key).await?, model, purpose: ask.purpose };
        let mut all = Embeddings {
            model: calls.outside.name.clone(),
            served_model: String::new(),
            vectors: Vec::with_capacity(ask.texts.len()),
            tokens: 0,
            estimated: false,
            cost: Some(MicroUsd::ZERO),
            price_version: None,
        };
        for texts in ask.texts.chunks(calls.model.texts_at_once().max(1)) {
            let (made, ended) = self.embed_part(&calls, texts).await?;
            all.vectors.extend(made.vectors);
            all.served_model = made.served_model;
            all.tokens += ended.tokens;
            all.estimated |= ended.estimated;
            all.cost = all.cost.zip(ended.cost).map(|(one, other)| one + other);
            all.price_version = ended.price_version;
        }
        Ok(all)
    }

    /// The vectors of as many texts as one request may hold, tried again where that may help.
    async fn embed_part(&self, calls: &Calls, texts: &[String]) -> Result<(Embedded, Ended), EngineError> {
        let (outside, errand) = (&calls.outside, Errand::Embedding(texts.len()));
        let mut number = 1;
        loop {
            let call = self.announce(outside, errand, number, (tokens::bound_of(texts), 0)).await?;
            let made = in_time(calls.model.patience(), calls.model.embed(texts, calls.purpose)).await;
            let heard = match &made {
                Ok(made) => Ok(self.heard_vectors(&outside.name, made, texts).await),
                Err(error) => Err(error),
            };
            let ended = self.settle(outside, &call, heard).await?;
            let error = match made {
                Ok(made) => return Ok((made, ended)),
                Err(error) => error,
            };
            tracing::warn!(model = outside.name, number, class = error.class(), %error, "an embedding failed");
            let lineup = [outside.name.clone()];
            let failed = Failed { lineup: &lineup, model: &outside.name, number, error: &error, reach: Reach::Here };
            match after(&failed, self.env().fraction()) {
                // Somebody waits for the answer: whoever asks for more patience is not waited for.
                Next::Again(wait) if wait <= BACKOFF_MOST => tokio::time::sleep(wait).await,
                Next::Again(_) | Next::Other(_) | Next::End => return Err(EngineError::Model(error)),
            }
            number += 1;
        }
    }

    /// What is heard of a call, with its tokens as the provider counts them, else as we do.
    async fn heard_vectors(&self, name: &str, made: &Embedded, texts: &[String]) -> Heard {
        let input = match made.tokens {
            Some(counted) => {
                self.ratios().learn_bytes(name, texts.iter().map(|text| text.len() as u64).sum(), counted);
                counted
            }
            None => {
                let texts = texts.to_vec();
                self.counted(name, move |counter| counter.texts(texts.iter().map(String::as_str))).await
            }
        };
        heard(made, input)
    }
}

fn heard(made: &Embedded, input: u64) -> Heard {
    Heard {
        served: made.served_model.clone(),
        finish: "stop".to_owned(),
        usage: TokenUsage { input, ..TokenUsage::default() },
        estimated: made.tokens.is_none(),
        charged: None,
    }
}

fn checked(texts: &[String]) -> Result<(), EngineError> {
    let bytes: usize = texts.iter().map(String::len).sum();
    if !(1..=EMBEDDED_TEXTS).contains(&texts.len()) || bytes > EMBEDDED_BYTES {
        let why = format!("give 1 to {EMBEDDED_TEXTS} texts of at most {EMBEDDED_BYTES} bytes together");
        return Err(EngineError::Invalid(why));
    }
    if texts.iter().any(|text| text.trim().is_empty()) {
        return Err(EngineError::Invalid("a text is empty; there is no vector for it".to_owned()));
    }
    Ok(())
}
