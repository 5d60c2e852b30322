//! Budgets: what may be spent, by whom, in which stretch of time. Money is reserved before a call, as much as it can cost at
//! the most, and settled to what it did cost. Pure: what is in a purse comes in, and what is to be in it comes out.

mod period;
mod purse;

use serde::{Deserialize, Deserializer, Serialize};

pub use period::{Period, moment};
pub use purse::{Change, Overspent, Purse, Purses, Spend, spend_all};

use crate::id::{AgentId, ApprovalId, KeyId, UserId, WorkspaceId};
use crate::money::MicroUsd;

/// What a run may cost unless its agent says otherwise, in dollars.
const RUN_USD: f64 = 0.5;
/// What an agent may spend in a month unless it says otherwise, in dollars.
const MONTH_USD: f64 = 20.0;
/// Where an agent's spending in a month is pointed out unless it says otherwise, in dollars.
const ALERTS_USD: [f64; 4] = [1.0, 5.0, 10.0, 50.0];
/// The most that can be said in a budget, in dollars: beyond it micro-dollars would not be exact.
const MOST_USD: f64 = 1e9;
/// What a run that holds asks for, unless it needs more.
pub const RAISE: MicroUsd = MicroUsd(250_000);

/// An agent's budget as a person writes it. What is omitted has a default; `null` is no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetSpec {
    /// Dollars of one run.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub run_usd: Option<Option<f64>>,
    /// Dollars of a day.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub day_usd: Option<Option<f64>>,
    /// Dollars of a month.
    #[serde(default, deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub month_usd: Option<Option<f64>>,
    /// Where spending in a month is pointed out, once each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_at_usd: Option<Vec<f64>>,
    /// From this spending in a month on, new runs use `cheaper_model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft_usd: Option<f64>,
    /// The model of new runs once `soft_usd` is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cheaper_model: Option<String>,
    /// Whether models without a known price are asked although there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_unpriced: Option<bool>,
}

/// A field that was written, be it as `null`.
fn said<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<f64>>, D::Error> {
    Option::<f64>::deserialize(deserializer).map(Some)
}

/// A budget, everything written out; dollars, because it is what people read. None is no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Of one run. Means nothing outside an agent.
    pub run_usd: Option<f64>,
    /// Of a day.
    pub day_usd: Option<f64>,
    /// Of a month.
    pub month_usd: Option<f64>,
    /// Where spending in a month is pointed out, once each, rising.
    pub alert_at_usd: Vec<f64>,
    /// From this spending in a month on, new runs use `cheaper_model`.
    pub soft_usd: Option<f64>,
    /// The model of new runs once `soft_usd` is spent.
    pub cheaper_model: Option<String>,
    /// Whether models without a known price are asked although there is a limit, which then does not hold for them. Budgets
    /// that were saved before there was a choice do not say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_unpriced: bool,
}

impl BudgetSpec {
    /// Writes the defaults out.
    ///
    /// # Errors
    /// When an amount is none, or a cheaper model is named without saying when, or the other way round.
    pub fn complete(self) -> Result<Budget, &'static str> {
        let mut alerts = self.alert_at_usd.unwrap_or_else(|| ALERTS_USD.to_vec());
        alerts.sort_by(f64::total_cmp);
        alerts.dedup();
        let budget = Budget {
            run_usd: self.run_usd.unwrap_or(Some(RUN_USD)),
            day_usd: self.day_usd.unwrap_or(None),
            month_usd: self.month_usd.unwrap_or(Some(MONTH_USD)),
            alert_at_usd: alerts,
            soft_usd: self.soft_usd,
            cheaper_model: self.cheaper_model,
            allow_unpriced: self.allow_unpriced.unwrap_or(false),
        };
        budget.check()?;
        Ok(budget)
    }
}

impl Budget {
    /// Whether it can be kept.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), &'static str> {
        let amounts = [self.run_usd, self.day_usd, self.month_usd, self.soft_usd];
        let amounts = amounts.into_iter().flatten().chain(self.alert_at_usd.iter().copied());
        if !amounts.into_iter().all(|usd| (0.0..=MOST_USD).contains(&usd)) {
            return Err("amounts are dollars from 0 to a thousand million");
        }
        if self.alert_at_usd.len() > 16 {
            return Err("alert_at_usd holds at most 16 amounts");
        }
        if self.soft_usd.is_some() != self.cheaper_model.is_some() {
            return Err("soft_usd and cheaper_model belong together");
        }
        Ok(())
    }

    /// The limit of a run.
    #[must_use]
    pub fn run(&self) -> Option<MicroUsd> {
        self.run_usd.map(micros)
    }

    /// The limit of a stretch of time.
    #[must_use]
    pub fn of(&self, period: Period) -> Option<MicroUsd> {
        match period {
            Period::Day => self.day_usd,
            Period::Month => self.month_usd,
        }
        .map(micros)
    }

    /// A stretch of time with a limit that a model without a known price would escape; the longest there is.
    #[must_use]
    pub fn escaped(&self) -> Option<(Period, MicroUsd)> {
        let limited = |period: Period| self.of(period).map(|limit| (period, limit));
        Period::ALL.into_iter().rev().find_map(limited).filter(|_| !self.allow_unpriced)
    }

    /// Whether it lets more be spent than another did: a limit is higher or gone, or models without a known price escape it.
    #[must_use]
    pub fn is_looser_than(&self, before: &Self) -> bool {
        let limits = |budget: &Self| [budget.run(), budget.of(Period::Day), budget.of(Period::Month)];
        let higher = |(now, then): (Option<MicroUsd>, Option<MicroUsd>)| {
            then.is_some_and(|then| now.is_none_or(|now| now > then))
        };
        limits(self).into_iter().zip(limits(before)).any(higher) || (self.allow_unpriced && !before.allow_unpriced)
    }

    /// The amounts to be pointed out that are reached and lie above `alerted`, rising.
    pub fn alerts(&self, spent: MicroUsd, alerted: MicroUsd) -> impl Iterator<Item = MicroUsd> {
        let amounts = self.alert_at_usd.iter().map(|usd| micros(*usd));
        amounts.filter(move |at| *at <= spent && *at > alerted && *at > MicroUsd::ZERO)
    }
}

/// Dollars as an exact amount, to the nearest micro-dollar.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked when it is saved")]
pub fn micros(usd: f64) -> MicroUsd {
    MicroUsd((usd.clamp(0.0, MOST_USD) * 1e6).round() as u64)
}

/// Whose money it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// An agent.
    Agent(AgentId),
    /// A person, in one workspace.
    Person(WorkspaceId, UserId),
    /// A workspace.
    Workspace(WorkspaceId),
    /// A stored key.
    Key(KeyId),
}

impl Owner {
    /// The name of the purse for a stretch of time.
    #[must_use]
    pub fn purse(self, period: Period, name: &str) -> String {
        let whose = match self {
            Self::Agent(id) => format!("agent/{id}"),
            Self::Person(workspace, id) => format!("person/{workspace}/{id}"),
            Self::Workspace(id) => format!("workspace/{id}"),
            Self::Key(id) => format!("key/{id}"),
        };
        format!("{whose}/{}/{name}", period.word())
    }

    /// What it is called in a sentence.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agent(_) => "agent",
            Self::Person(..) => "person",
            Self::Workspace(_) => "workspace",
            Self::Key(_) => "key",
        }
    }
}

/// The purse of the run itself, which no other run draws from.
pub const RUN_PURSE: &str = "run";

/// A run is out of money and asks for more, or cannot tell what its next model call costs and asks whether to make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetAsk {
    /// The inbox item.
    pub approval: ApprovalId,
    /// The purse that is empty.
    pub purse: String,
    /// What may be spent from it.
    pub limit: MicroUsd,
    /// What is spent or reserved.
    pub spent: MicroUsd,
    /// What the next model call can cost at the most.
    pub needed: MicroUsd,
    /// What a yes adds.
    pub raise: MicroUsd,
    /// The model whose price is not known, where that is what is asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
}

impl BudgetAsk {
    /// The question in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let whose = self.purse.split('/').next().unwrap_or_default();
        let when = ["day", "month"].into_iter().find(|word| self.purse.contains(&format!("/{word}/")));
        let what = when.map_or_else(|| format!("of the {whose}"), |when| format!("of the {whose} for this {when}"));
        if let Some(model) = &self.unpriced {
            return format!(
                "The price of the model `{model}` is not known, so the budget {what} ({} of {} spent) cannot hold for it. \
                 Continue without counting it?",
                self.spent, self.limit
            );
        }
        format!(
            "The budget {what} is used up: {} of {} spent, the next model call may cost {}. +{} and continue?",
            self.spent, self.limit, self.needed, self.raise
        )
    }

    /// What to ask for: enough for the next call, and not less than the usual step.
    #[must_use]
    pub fn raise_for(limit: MicroUsd, spent: MicroUsd, needed: MicroUsd) -> MicroUsd {
        let lacking = (spent.0.saturating_add(needed.0)).saturating_sub(limit.0);
        MicroUsd(lacking.div_ceil(RAISE.0).max(1).saturating_mul(RAISE.0))
    }
}

/// More money, and for whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raise {
    /// The purse.
    pub purse: String,
    /// How much more.
    pub amount: MicroUsd,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_omitted_has_a_limit_and_null_has_none() {
        let omitted: BudgetSpec = serde_json::from_str("{}").unwrap();
        let budget = omitted.complete().unwrap();
        assert_eq!((budget.run(), budget.of(Period::Month)), (Some(MicroUsd(500_000)), Some(MicroUsd(20_000_000))));
        assert_eq!(budget.of(Period::Day), None);
        let free: BudgetSpec = serde_json::from_str(r#"{"run_usd":null,"month_usd":null,"day_usd":1.5}"#).unwrap();
        let budget = free.complete().unwrap();
        assert_eq!((budget.run(), budget.of(Period::Month)), (None, None));
        assert_eq!(budget.of(Period::Day), Some(MicroUsd(1_500_000)));
    }

    #[test]
    fn a_budget_that_cannot_be_kept_is_refused() {
        for bad in [
            r#"{"run_usd":-1}"#,
            r#"{"alert_at_usd":[-5]}"#,
            r#"{"soft_usd":3}"#,
            r#"{"cheaper_model":"a/b"}"#,
            r#"{"day_usd":1e300}"#,
        ] {
            let spec: BudgetSpec = serde_json::from_str(bad).unwrap();
            assert!(spec.complete().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_budget_is_looser_where_one_limit_is_higher_or_gone_or_unknown_prices_escape_it() {
        let budget = |text: &str| serde_json::from_str::<BudgetSpec>(text).unwrap().complete().unwrap();
        let usual = budget("{}");
        for looser in [
            r#"{"run_usd":null}"#,
            r#"{"run_usd":0.500001}"#,
            r#"{"month_usd":null,"day_usd":1}"#,
            r#"{"month_usd":21,"run_usd":0.1}"#,
            r#"{"allow_unpriced":true}"#,
        ] {
            assert!(budget(looser).is_looser_than(&usual), "{looser}");
            assert!(!budget(looser).is_looser_than(&budget(looser)), "{looser}");
        }
        let daily = budget(r#"{"day_usd":5,"month_usd":2}"#);
        assert!(!daily.is_looser_than(&usual));
        assert!(usual.is_looser_than(&daily), "the limit of a day is gone");
    }

    #[test]
    fn each_amount_is_pointed_out_once() {
        let budget = BudgetSpec::default().complete().unwrap();
        let alerts = |spent, alerted| budget.alerts(MicroUsd(spent), MicroUsd(alerted)).collect::<Vec<_>>();
        assert_eq!(alerts(999_999, 0), []);
        assert_eq!(alerts(1_000_000, 0), [MicroUsd(1_000_000)]);
        assert_eq!(alerts(4_000_000, 1_000_000), []);
        assert_eq!(alerts(11_000_000, 1_000_000), [MicroUsd(5_000_000), MicroUsd(10_000_000)], "none is passed over");
    }

    #[test]
    fn a_raise_is_enough_for_the_next_call() {
        let raise = |limit, spent, needed| BudgetAsk::raise_for(MicroUsd(limit), MicroUsd(spent), MicroUsd(needed)).0;
        assert_eq!(raise(500_000, 490_000, 20_000), 250_000);
        assert_eq!(raise(500_000, 500_000, 600_000), 750_000);
        assert_eq!(raise(0, 0, 250_000), 250_000);
    }
}
