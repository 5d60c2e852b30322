//! Embeddings: texts become vectors outside of runs, with the keys, budgets, retries and records of every model call. Money
//! is put aside in the entry of the workspace's log that announces a call and settled in the one that ends it; a call that was
//! announced and never ended counts as all that was put aside for it.

use std::sync::Arc;

use adjutant_core::audit::{Act, AuditEvent, Deed};
use adjutant_core::budget::{Change, Overspent, Period, Spend};
use adjutant_core::id::{KeyId, UserId, WorkspaceId};
use adjutant_core::limits::{BACKOFF_MOST, EMBEDDED_BYTES, EMBEDDED_TEXTS};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::routing::Wanted;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_models::catalog::ModelFacts;
use adjutant_models::chain::{Failed, Next, Reach, after};
use adjutant_models::router::Needs;
use adjutant_models::{Embedded, Model, ModelError, Purpose, WithKeys, lineup, tokens};
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, ModelCallRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::asking::in_time;
use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::spending::{Drawn, Reservation, Unpriced, escaped, of_failure};

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
    workspace: WorkspaceId,
    person: UserId,
    name: String,
    key: Option<KeyId>,
    model: Arc<dyn Model>,
    facts: Option<ModelFacts>,
    purpose: Purpose,
    drawn: Vec<Drawn>,
    zone: String,
}

/// A call that is over, as it stands in the log.
#[derive(Debug, Serialize, Deserialize)]
struct Ended {
    model: String,
    attempt: u32,
    texts: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<KeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    served: Option<String>,
    outcome: String,
    tokens: u64,
    estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_version: Option<String>,
    ms: u64,
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
        let providers = self.keyed_providers(workspace, None, person).await?;
        let source = WithKeys { source: self.models(), providers };
        let wanted = Wanted { model: ask.model, fallbacks: Vec::new(), strategy: None };
        let name = lineup(&source, &wanted, self.default_model(), &Needs::default())
            .map_err(|bad| EngineError::Invalid(bad.to_string()))?
            .model;
        let key = self.key_for(workspace, None, person, &name).await?;
        let calls = Calls {
            workspace,
            person,
            key,
            model: self.keyed_model(workspace, &name, key).await.map_err(EngineError::Model)?,
            facts: self.priced(workspace, &name).await?,
            purpose: ask.purpose,
            drawn: self.drawn(workspace, None, person, key).await?,
            zone: self.zone(workspace).await?,
            name,
        };
        let mut all = Embeddings {
            model: calls.name.clone(),
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
        let mut number = 1;
        loop {
            let reserved = self.announce(calls, texts, number).await?;
            let from = self.env().now();
            let made = in_time(calls.model.patience(), calls.model.embed(texts, calls.purpose)).await;
            let ms = u64::try_from(self.env().now().since(from).as_millis()).unwrap_or(u64::MAX);
            let ended = calls.ended(texts, number, reserved.amount, &made, ms);
            self.settle(calls, &reserved, &ended).await?;
            let error = match made {
                Ok(made) => return Ok((made, ended)),
                Err(error) => error,
            };
            tracing::warn!(model = calls.name, number, class = error.class(), %error, "an embedding failed");
            let lineup = [calls.name.clone()];
            let failed = Failed { lineup: &lineup, model: &calls.name, number, error: &error, reach: Reach::Here };
            match after(&failed, self.env().fraction()) {
                // Somebody waits for the answer: whoever asks for more patience is not waited for.
                Next::Again(wait) if wait <= BACKOFF_MOST => tokio::time::sleep(wait).await,
                Next::Again(_) | Next::Other(_) | Next::End => return Err(EngineError::Model(error)),
            }
            number += 1;
        }
    }

    /// Puts the money aside and records that the provider is about to be asked.
    async fn announce(&self, calls: &Calls, texts: &[String], number: u32) -> Result<Reservation, EngineError> {
        let most = calls.facts.as_ref().and_then(|facts| facts.prices.bound(tokens::bound_of(texts), 0));
        if most.is_none()
            && self.unpriced() == Unpriced::Ask
            && let Some((owner, period, _)) = escaped(&calls.drawn)
        {
            let (model, whose) = (calls.name.clone(), owner.word());
            return Err(EngineError::PriceUnknown { model, whose, period: period.word() });
        }
        let now = self.env().now();
        let reservation = match most.filter(|most| *most > MicroUsd::ZERO) {
            Some(amount) => Reservation::of(amount, &calls.drawn, now, &calls.zone),
            None => Reservation::default(),
        };
        let act = calls
            .act(Deed::EmbeddingAsked, texts.len())
            .with("model", calls.name.clone())
            .with("attempt", number)
            .with("reserved_microusd", reservation.amount.unwrap_or_default().0);
        let done = Done { doing: Some(Doing::Spend(reservation.spends.clone())), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(calls.workspace), act, done).await {
            Err(EngineError::Store(StoreError::Overspent(refused))) => Err(calls.exhausted(refused, now)),
            other => other.map(|_| reservation),
        }
    }

    /// Records what became of it, and settles what it cost.
    async fn settle(&self, calls: &Calls, reserved: &Reservation, ended: &Ended) -> Result<(), EngineError> {
        let amount = reserved.amount.unwrap_or_default();
        let cost = ended.cost.unwrap_or(amount);
        let settle = |purse| Spend { purse, change: Change::Settle { reserved: amount, cost } };
        let spends = reserved.purses().into_iter().map(settle).collect();
        let mut act = calls.act(Deed::EmbeddingEnded, ended.texts);
        if let Ok(Value::Object(detail)) = serde_json::to_value(ended) {
            act.detail = detail;
        }
        let done = Done { doing: Some(Doing::Spend(spends)), ..Done::default() };
        self.audit_done(AuditLog::Workspace(calls.workspace), act, done).await?;
        self.meter().called(ended.served.as_ref().map(|_| (ended.usage(), ended.cost)));
        Ok(())
    }
}

impl Calls {
    fn act(&self, deed: Deed, texts: usize) -> Act {
        Act::new(deed, Some(Actor::User(self.person)), format!("{texts} texts for {}", self.name))
    }

    fn ended(
        &self,
        texts: &[String],
        attempt: u32,
        reserved: Option<MicroUsd>,
        made: &Result<Embedded, ModelError>,
        ms: u64,
    ) -> Ended {
        let ended = Ended {
            model: self.name.clone(),
            attempt,
            texts: texts.len(),
            key: self.key,
            served: None,
            outcome: "stop".to_owned(),
            tokens: 0,
            estimated: false,
            cost: None,
            price_version: None,
            ms,
        };
        match made {
            Ok(made) => {
                let tokens = made.tokens.unwrap_or_else(|| tokens::estimate_of(texts));
                let usage = TokenUsage { input: tokens, ..TokenUsage::default() };
                let cost = self.facts.as_ref().and_then(|facts| facts.cost(&usage));
                Ended {
                    served: Some(made.served_model.clone()),
                    tokens,
                    estimated: made.tokens.is_none(),
                    cost: cost.as_ref().map(|cost| cost.amount),
                    price_version: cost.map(|cost| cost.version),
                    ..ended
                }
            }
            Err(error) => {
                let cost = of_failure(error, false, reserved).or(Some(MicroUsd::ZERO));
                Ended { outcome: error.class().to_owned(), cost, ..ended }
            }
        }
    }

    /// Whose money is spent.
    fn exhausted(&self, refused: Vec<Overspent>, now: Time) -> EngineError {
        let places = self.drawn.iter().flat_map(|drawn| Period::ALL.map(|period| (drawn.owner, period)));
        for (owner, period) in places {
            let purse = owner.purse(period, &period.name(now, &self.zone));
            if let Some(over) = refused.iter().find(|over| over.purse == purse) {
                let (whose, until) = (owner.word(), period.end(now, &self.zone));
                let (spent, limit) = (over.spent, over.limit);
                return EngineError::BudgetExhausted { whose, period: period.word(), spent, limit, until };
            }
        }
        EngineError::Store(StoreError::Overspent(refused))
    }
}

impl Ended {
    fn usage(&self) -> TokenUsage {
        TokenUsage { input: self.tokens, ..TokenUsage::default() }
    }
}

/// The model call that an entry of a workspace's log says is over.
pub(crate) fn model_call(log: AuditLog, seq: u64, at: Time, event: &AuditEvent) -> Option<ModelCallRow> {
    let (AuditLog::Workspace(workspace), AuditEvent::Act(act)) = (log, event) else { return None };
    let (Deed::EmbeddingEnded, Some(Actor::User(person))) = (act.deed, &act.by) else { return None };
    let ended: Ended = serde_json::from_value(Value::Object(act.detail.clone())).ok()?;
    Some(ModelCallRow {
        workspace,
        log: log.stream(),
        turn: u32::try_from(seq).ok()?,
        attempt: ended.attempt,
        agent: None,
        person: *person,
        key: ended.key,
        usage: ended.usage(),
        model: ended.model,
        served: ended.served,
        at,
        outcome: ended.outcome,
        estimated: ended.estimated,
        cost: ended.cost,
        price_version: ended.price_version,
        ms: ended.ms,
    })
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
