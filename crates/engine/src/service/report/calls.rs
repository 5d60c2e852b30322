//! The model calls of a run, as its log tells them.

use adjutant_core::content::Hash;
use adjutant_core::id::KeyId;
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::{Event, ModelRequested};
use adjutant_core::time::Time;
use serde::Serialize;

use crate::env::millis;
use crate::log::Recorded;

/// One model call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelCallReport {
    /// Its number, from 1.
    pub n: usize,
    /// The provider that was asked.
    pub provider: String,
    /// The model that was asked for.
    pub model_asked: String,
    /// The model that answered.
    pub model_served: Option<String>,
    /// The hash of the request.
    pub prompt_hash: Hash,
    /// Which attempt at its turn it was, from 1.
    pub attempt: u32,
    /// How many attempts its turn had taken by then.
    pub attempts: u32,
    /// The stored key it was made with.
    #[serde(skip)]
    pub key: Option<KeyId>,
    /// The last letters of that key, as long as it is kept.
    pub key_hint: Option<String>,
    /// Tokens.
    pub usage: TokenUsage,
    /// What it cost in dollars; none where the price is not known.
    pub cost: Option<f64>,
    /// What it cost in millionths of a dollar; none where the price is not known.
    pub cost_microusd: Option<u64>,
    /// The state of the prices it was reckoned with.
    pub price_version: Option<String>,
    /// The most it could have cost, put aside before it was made.
    pub reserved_microusd: Option<u64>,
    /// The model that was asked next, because this one failed.
    pub fallback: Option<String>,
    /// Why it stopped, or what kind of failure it was.
    pub outcome: String,
    /// Why it stopped; `error` for a failure.
    pub finish_reason: String,
    /// How long the first piece of the answer took, where that was measured.
    pub first_token_ms: Option<u64>,
    /// When it was asked.
    pub started_at: Time,
    /// How long it took.
    pub ms: u64,
}

pub(super) fn model_calls(recorded: &[Recorded]) -> Vec<ModelCallReport> {
    let mut calls: Vec<ModelCallReport> = Vec::new();
    let mut asked: Option<(&ModelRequested, Time)> = None;
    for item in recorded {
        let (served, usage, outcome, ms, first, cost, price_version, fallback) = match &item.event {
            Event::ModelRequested(body) => {
                asked = Some((body, item.at));
                continue;
            }
            Event::ModelAnswered(body) => {
                let outcome = crate::projection::word(&body.finish);
                let served = Some(body.served_model.clone());
                (served, body.usage, outcome, body.ms, body.first_ms, body.cost, body.price_version.clone(), None)
            }
            Event::ModelFailed(body) => {
                let ms = asked.map_or(0, |(_, at)| millis(item.at.since(at)));
                let version = asked.and_then(|(request, _)| request.price_version.clone());
                let (served, usage) = (body.served_model.clone(), body.usage.unwrap_or_default());
                (served, usage, body.class.clone(), ms, None, body.cost, version, body.next.clone())
            }
            _ => continue,
        };
        if let Some((request, started_at)) = asked.take() {
            let answered = matches!(&item.event, Event::ModelAnswered(_));
            let finish_reason = if answered { outcome.clone() } else { "error".to_owned() };
            let n = calls.len() + 1;
            calls.push(ModelCallReport {
                n,
                provider: request.model.split('/').next().unwrap_or_default().to_owned(),
                model_asked: request.model.clone(),
                model_served: served,
                prompt_hash: request.request,
                attempt: request.attempt,
                attempts: request.attempt,
                key: request.key,
                key_hint: None,
                usage,
                cost: cost.map(MicroUsd::dollars),
                cost_microusd: cost.map(|cost| cost.0),
                price_version,
                reserved_microusd: request.reserved.map(|reserved| reserved.0),
                fallback,
                finish_reason,
                first_token_ms: first,
                outcome,
                started_at,
                ms,
            });
        }
    }
    calls
}
