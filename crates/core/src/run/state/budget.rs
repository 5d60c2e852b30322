//! What a run asked for when its money was used up, and which model it asks next.

use super::State;
use crate::budget::{BudgetAsk, RUN_PURSE, Raise};
use crate::run::event::{Actor, Paused, Resumed};
use crate::time::Time;

/// An inbox item about money.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetItem {
    /// What was asked.
    pub ask: BudgetAsk,
    /// When.
    pub asked_at: Time,
    /// What became of it, and when.
    pub settled: Option<(Settled, Time)>,
}

/// What became of an inbox item about money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Somebody added money.
    Raised {
        /// How much, and where.
        raise: Raise,
        /// Who.
        by: Actor,
    },
    /// Somebody let it ask a model whose price is not known.
    Allowed {
        /// Who.
        by: Actor,
    },
    /// Somebody ended the run instead.
    Refused {
        /// Who.
        by: Actor,
    },
    /// The run goes on, or asked again, without an answer.
    Superseded,
}

impl BudgetItem {
    /// Whether a person still has to decide.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.settled.is_none()
    }
}

impl State {
    /// The model that the next request asks: the run's own, unless another stands in for it in this turn.
    #[must_use]
    pub fn next_model(&self) -> String {
        let own = || self.start.as_ref().map(|start| start.model.clone()).unwrap_or_default();
        let Some(failure) = self.failures.last() else { return own() };
        let asked = Some(&failure.model).filter(|model| !model.is_empty());
        failure.next.as_ref().or(asked).cloned().unwrap_or_else(own)
    }

    /// How often a model was asked in this turn and failed.
    #[must_use]
    pub fn failed_with(&self, model: &str) -> u32 {
        let own = self.start.as_ref().is_some_and(|start| start.model == model);
        let failed = |asked: &str| asked == model || (own && asked.is_empty());
        u32::try_from(self.failures.iter().filter(|failure| failed(&failure.model)).count()).unwrap_or(u32::MAX)
    }

    pub(super) fn hold(&mut self, body: &Paused, at: Time) {
        self.drop_budget_items(at);
        if let Some(ask) = &body.ask {
            let item = BudgetItem { ask: (**ask).clone(), asked_at: at, settled: None };
            self.budget_items.insert(ask.approval, item);
        }
        self.pause = Some(body.clone());
    }

    pub(super) fn resume(&mut self, body: &Resumed, at: Time) {
        self.pause = None;
        match (&body.raised, &body.unpriced) {
            (None, None) => self.drop_budget_items(at),
            (None, Some(model)) => {
                self.priceless.insert(model.clone());
                self.settle_budget_items(&Settled::Allowed { by: body.by.clone() }, at);
            }
            (Some(raise), _) => {
                if raise.purse == RUN_PURSE {
                    self.raised += raise.amount;
                }
                self.settle_budget_items(&Settled::Raised { raise: raise.clone(), by: body.by.clone() }, at);
            }
        }
    }

    pub(super) fn refuse_budget_items(&mut self, by: &Actor, at: Time) {
        self.settle_budget_items(&Settled::Refused { by: by.clone() }, at);
    }

    pub(super) fn drop_budget_items(&mut self, at: Time) {
        self.settle_budget_items(&Settled::Superseded, at);
    }

    fn settle_budget_items(&mut self, how: &Settled, at: Time) {
        for item in self.budget_items.values_mut().filter(|item| item.is_pending()) {
            item.settled = Some((how.clone(), at));
        }
    }
}
