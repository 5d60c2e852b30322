//! Model calls outside of runs, for a person: embeddings and tests of keys. Each has the budgets and records of every model
//! call. Money is put aside in the entry of the workspace's log that announces it and settled in the one that ends it; a call
//! that was announced and never ended counts as all that was put aside for it.

use adjutant_core::audit::{Act, AuditEvent, Deed};
use adjutant_core::budget::{Change, Overspent, Period, Spend};
use adjutant_core::id::{KeyId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_models::ModelError;
use adjutant_models::catalog::{Cost, ModelFacts};
use adjutant_store::StoreError;
use adjutant_store::row::{Doing, ModelCallRow};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::env::millis;
use crate::error::EngineError;
use crate::spending::{Call, Drawn, Reached, Reservation, Unpriced, dearest, escaped, of_failure, settle};

/// What a call outside of runs is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Errand {
    /// The vectors of so many texts.
    Embedding(usize),
    /// To see whether a key is good.
    KeyTest,
}

impl Errand {
    /// What its announcement and its end are called.
    const fn deeds(self) -> (Deed, Deed) {
        match self {
            Self::Embedding(_) => (Deed::EmbeddingAsked, Deed::EmbeddingEnded),
            Self::KeyTest => (Deed::KeyTestAsked, Deed::KeyTestEnded),
        }
    }

    fn about(self, model: &str) -> String {
        match self {
            Self::Embedding(texts) => format!("{texts} texts for {model}"),
            Self::KeyTest => format!("a key tested with {model}"),
        }
    }

    const fn texts(self) -> usize {
        match self {
            Self::Embedding(texts) => texts,
            Self::KeyTest => 0,
        }
    }
}

/// Who asks which model, with which key, and whose money it is.
pub(super) struct Outside {
    pub(super) workspace: WorkspaceId,
    pub(super) person: UserId,
    pub(super) name: String,
    pub(super) key: Option<KeyId>,
    known: Vec<ModelFacts>,
    drawn: Vec<Drawn>,
    zone: String,
}

/// A call that was announced.
pub(super) struct Announced {
    errand: Errand,
    attempt: u32,
    reserved: Reservation,
    /// Tokens it can read and write at the most.
    most: (u64, u64),
    at: Time,
}

/// What came of a call.
pub(super) struct Heard {
    /// The model that answered.
    pub(super) served: String,
    /// Why it stopped.
    pub(super) finish: String,
    /// Tokens.
    pub(super) usage: TokenUsage,
    /// Whether they are our estimate.
    pub(super) estimated: bool,
    /// What the provider says that it took.
    pub(super) charged: Option<MicroUsd>,
}

/// A call that is over, as it stands in the log.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ended {
    model: String,
    attempt: u32,
    texts: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<KeyId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    served: Option<String>,
    outcome: String,
    /// Tokens that were read.
    pub(super) tokens: u64,
    /// Tokens that were written.
    #[serde(default)]
    output: u64,
    /// The part of those that were read that came from a cache, or went into one, and of those that were written that were
    /// thought.
    #[serde(default, skip_serializing_if = "is_zero")]
    cached: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    cache_write: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    reasoning: u64,
    pub(super) estimated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<MicroUsd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) price_version: Option<String>,
    ms: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Engine {
    /// A person's calls of a model with a key.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn outside(
        &self,
        workspace: WorkspaceId,
        person: UserId,
        name: String,
        key: Option<KeyId>,
    ) -> Result<Outside, EngineError> {
        let known = self.priced(workspace, &name, key).await?;
        let drawn = self.drawn(workspace, None, person, key).await?;
        Ok(Outside { workspace, person, name, key, known, drawn, zone: self.zone(workspace).await? })
    }

    /// Puts the money for so many tokens aside and records that the provider is about to be asked.
    ///
    /// # Errors
    /// When there is no money, or nobody knows how much it takes and there is a limit.
    pub(super) async fn announce(
        &self,
        calls: &Outside,
        errand: Errand,
        attempt: u32,
        most: (u64, u64),
    ) -> Result<Announced, EngineError> {
        let dearest = dearest(&calls.known, most.0, most.1);
        if dearest.is_none()
            && self.unpriced() == Unpriced::Ask
            && let Some((owner, period, _)) = escaped(&calls.drawn)
        {
            let (model, whose) = (calls.name.clone(), owner.word());
            return Err(EngineError::PriceUnknown { model, whose, period: period.word() });
        }
        let now = self.env().now();
        let reserved = Reservation::of(dearest, &calls.drawn, now, &calls.zone);
        let act = calls
            .act(errand.deeds().0, errand)
            .with("model", calls.name.clone())
            .with("attempt", attempt)
            .with("reserved_microusd", reserved.amount.unwrap_or_default().0);
        let done = Done { doing: Some(Doing::Spend(reserved.spends.clone())), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(calls.workspace), act, done).await {
            Err(EngineError::Store(StoreError::Overspent(refused))) => Err(calls.exhausted(refused, now)),
            // Its time begins when it is on record.
            other => other.map(|_| Announced { errand, attempt, reserved, most, at: self.env().now() }),
        }
    }

    /// Records what became of a call, and settles what it cost.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn settle(
        &self,
        calls: &Outside,
        call: &Announced,
        heard: Result<Heard, &ModelError>,
    ) -> Result<Ended, EngineError> {
        let ended = self.over(calls, call, heard);
        let Announced { errand, reserved, .. } = call;
        let spends = settle(reserved.purses(), reserved.amount, ended.cost);
        let mut act = calls.act(errand.deeds().1, *errand);
        if let Ok(Value::Object(detail)) = serde_json::to_value(&ended) {
            act.detail = detail;
        }
        let done = Done { doing: Some(Doing::Spend(spends)), ..Done::default() };
        self.audit_done(AuditLog::Workspace(calls.workspace), act, done).await?;
        self.meter().called(ended.served.as_ref().map(|_| (ended.usage(), ended.cost)));
        // It is paid for and recorded. That nobody can say so is no reason to withhold what came of it: the next call says it.
        if let Err(error) = self.alerts(calls, &reserved.purses()).await {
            tracing::warn!(workspace = %calls.workspace, %error, "amounts that are reached could not be pointed out");
        }
        Ok(ended)
    }

    async fn alerts(&self, calls: &Outside, purses: &[String]) -> Result<(), EngineError> {
        for reached in self.amounts_reached(&calls.drawn, purses, None).await? {
            self.alert(calls.workspace, reached).await?;
        }
        Ok(())
    }

    /// Records once that an amount is reached.
    async fn alert(&self, workspace: WorkspaceId, reached: Reached) -> Result<(), EngineError> {
        let Reached { purse, at, spent } = reached;
        let act = Act::new(Deed::AmountReached, None, format!("{spent} spent of {purse}"))
            .with("purse", purse.clone())
            .with("at_microusd", at.0)
            .with("spent_microusd", spent.0);
        let alert = Spend { purse, change: Change::Alert(at) };
        let done = Done { doing: Some(Doing::Spend(vec![alert])), ..Done::default() };
        match self.audit_done(AuditLog::Workspace(workspace), act, done).await {
            // Somebody was faster, and it is said.
            Err(EngineError::Store(StoreError::Overspent(_))) => Ok(()),
            other => other.map(drop),
        }
    }

    fn over(&self, calls: &Outside, call: &Announced, heard: Result<Heard, &ModelError>) -> Ended {
        let Announced { errand, attempt, reserved, most, at } = call;
        let ended = Ended {
            model: calls.name.clone(),
            attempt: *attempt,
            texts: errand.texts(),
            key: calls.key,
            served: None,
            outcome: String::new(),
            tokens: 0,
            output: 0,
            cached: 0,
            cache_write: 0,
            reasoning: 0,
            estimated: false,
            cost: None,
            price_version: None,
            ms: millis(self.env().now().since(*at)),
        };
        match heard {
            Ok(heard) => {
                let version = reserved.version.clone().unwrap_or_default();
                let priced = Call {
                    asked: &calls.name,
                    served: &heard.served,
                    key: calls.key,
                    reserved: reserved.amount.map(|amount| Cost { amount, version }),
                    charged: heard.charged,
                    most: *most,
                };
                let cost = self.bill(priced, (!heard.estimated).then_some(&heard.usage));
                Ended {
                    served: Some(heard.served),
                    outcome: heard.finish,
                    tokens: heard.usage.input,
                    output: heard.usage.output,
                    cached: heard.usage.cached,
                    cache_write: heard.usage.cache_write,
                    reasoning: heard.usage.reasoning,
                    estimated: heard.estimated,
                    cost: cost.as_ref().map(|cost| cost.amount),
                    price_version: cost.map(|cost| cost.version),
                    ..ended
                }
            }
            Err(error) => {
                let cost = of_failure(error, false, reserved.amount);
                // What it counts as was reckoned when it was put aside.
                Ended { outcome: error.class().to_owned(), cost, price_version: reserved.version.clone(), ..ended }
            }
        }
    }
}

impl Outside {
    fn act(&self, deed: Deed, errand: Errand) -> Act {
        Act::new(deed, Some(Actor::User(self.person)), errand.about(&self.name))
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
        TokenUsage {
            input: self.tokens,
            output: self.output,
            cached: self.cached,
            reasoning: self.reasoning,
            cache_write: self.cache_write,
        }
    }
}

/// The model call that an entry of a workspace's log says is over.
pub(crate) fn model_call(log: AuditLog, seq: u64, at: Time, event: &AuditEvent) -> Option<ModelCallRow> {
    let (AuditLog::Workspace(workspace), AuditEvent::Act(act)) = (log, event) else { return None };
    let (Deed::EmbeddingEnded | Deed::KeyTestEnded, Some(Actor::User(person))) = (act.deed, &act.by) else {
        return None;
    };
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
