//! About how many tokens something is, where no provider has said it: exact where the tokenizer of the model is built in, else by
//! what its provider has counted lately. Never for what is put aside, which is a bound.

use std::sync::Arc;

use adjutant_core::message::{ModelAnswer, ModelRequest};
use adjutant_core::money::TokenUsage;
use adjutant_models::Noted;
use adjutant_models::tokens::Counter;

use crate::engine::Engine;

/// What is known of an answer that never came whole.
#[derive(Debug, Default)]
pub(crate) struct HeardOf {
    /// The model that began to answer.
    pub(crate) served: Option<String>,
    /// Tokens.
    pub(crate) usage: Option<TokenUsage>,
    /// Whether they are our estimate.
    pub(crate) estimated: bool,
}

impl From<Noted> for HeardOf {
    /// By the provider's word alone.
    fn from(noted: Noted) -> Self {
        Self { served: noted.served, usage: noted.usage, estimated: false }
    }
}

impl Engine {
    /// What counts the tokens of a model.
    pub(crate) fn counter(&self, model: &str) -> Counter {
        let kind = model.split('/').next().and_then(|provider| self.models().kind_of(provider));
        self.ratios().counter(kind, model)
    }

    /// Counts with what knows a model. A tokenizer takes a moment, so it works where nobody waits for the thread.
    pub(crate) async fn counted<T: Send + 'static>(
        &self,
        model: &str,
        count: impl Fn(Counter) -> T + Send + Sync + 'static,
    ) -> T {
        let counter = self.counter(model);
        if !counter.is_exact() {
            return count(counter);
        }
        let count = Arc::new(count);
        let work = Arc::clone(&count);
        match tokio::task::spawn_blocking(move || work(counter)).await {
            Ok(counted) => counted,
            Err(error) => {
                tracing::warn!(model, %error, "a tokenizer failed");
                count(counter.rough())
            }
        }
    }

    /// Tokens of a call: as the provider counts them, else as we do.
    pub(crate) async fn usage_of(&self, request: &ModelRequest, answer: &ModelAnswer) -> TokenUsage {
        if let Some(usage) = answer.usage {
            return usage;
        }
        let (asked, said) = (request.clone(), answer.clone());
        self.counted(&request.model, move |counter| counter.usage(&asked, &said)).await
    }

    /// What is known of an answer that broke off: what its provider counted before, or what came of it.
    pub(crate) async fn heard_of(&self, request: &ModelRequest, noted: Noted) -> HeardOf {
        if noted == Noted::default() {
            return HeardOf::default();
        }
        let Noted { served, usage, text } = noted;
        let asked = request.clone();
        let ours = self.counted(&request.model, move |counter| (counter.request(&asked), counter.text(&text))).await;
        let counted = usage.unwrap_or(TokenUsage { input: ours.0, ..TokenUsage::default() });
        // Many count the output only at the end, which never came.
        let estimated = usage.is_none() || counted.output < ours.1;
        let usage = TokenUsage { output: counted.output.max(ours.1), ..counted };
        HeardOf { served, usage: Some(usage), estimated }
    }
}
