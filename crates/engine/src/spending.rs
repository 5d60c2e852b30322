//! Money of model calls: put aside before a call, settled after it, asked for when it runs out. Which purses there are and
//! what may be spent from them is read here; whether it is there is decided in the append that announces the call.

mod prices;
mod settled;
mod wanted;

use adjutant_core::budget::{Budget, BudgetAsk, Change, Overspent, Owner, Period, Purses, RUN_PURSE, Spend, spend_all};
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::id::KeyId;
use adjutant_core::label::Labels;
use adjutant_core::limits;
use adjutant_core::message::ModelRequest;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::{BudgetAlerted, ModelRequested, PauseReason, Paused, RunLimits};
use adjutant_core::time::Time;
use adjutant_models::catalog::{Cost, ModelFacts};
use adjutant_models::chain::{Failed, Next, Reach, after};
use adjutant_models::{Allowed, ModelError, tokens};

use crate::current::CurrentAgent;
use crate::driver::Driver;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::log::Flushed;
use crate::service::budgets;

pub(crate) use prices::{Call, dearest};
pub(crate) use settled::{model_call, of_event, of_failure, settle};
pub(crate) use wanted::Named;

/// Bytes of a token that a window is filled with: fewer than most texts have, so that a full window still fits.
const BYTES_PER_TOKEN: u64 = 3;

/// Whether the money for a call is there, as far as the run itself can tell.
pub(crate) enum Reserved {
    /// It is put aside with the announcement, or the announcement is refused.
    Fits(Reservation),
    /// The run's own budget does not hold it.
    TooMuch(Overspent),
    /// Nobody knows what it costs, and this limit would not hold.
    Unpriced(Overspent),
}

/// What becomes of model calls without a known price where there is a limit that they would escape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unpriced {
    /// The run holds and asks a person. Outside of runs the call is refused.
    #[default]
    Ask,
    /// They are made, and counted as unknown.
    Allow,
}

/// Money to be put aside.
#[derive(Default)]
pub(crate) struct Reservation {
    /// The most the call can cost; none where the price is not known, or there is none.
    pub(crate) amount: Option<MicroUsd>,
    /// From where.
    pub(crate) spends: Vec<Spend>,
    /// The state of the prices it was reckoned with.
    pub(crate) version: Option<String>,
}

impl Reservation {
    /// What a call can cost at the most, and by which prices, from each of these, for the day and for the month.
    pub(crate) fn of(most: Option<Cost>, drawn: &[Drawn], now: Time, zone: &str) -> Self {
        let (amount, version) = most.map(|most| (most.amount, most.version)).unzip();
        if amount == Some(MicroUsd::ZERO) {
            return Self { amount, spends: Vec::new(), version };
        }
        let change = |budget: &Budget, period: Period| match amount {
            Some(amount) => Change::Reserve { amount, limit: budget.of(period) },
            // Nothing can be put aside. Should its answer tell what it cost, that is taken from here.
            None => Change::Reserve { amount: MicroUsd::ZERO, limit: None },
        };
        let spends = drawn.iter().flat_map(|drawn| {
            Period::ALL.map(|period| Spend {
                purse: drawn.owner.purse(period, &period.name(now, zone)),
                change: change(&drawn.budget, period),
            })
        });
        Self { amount, spends: spends.collect(), version }
    }

    pub(crate) fn purses(&self) -> Vec<String> {
        self.spends.iter().map(|spend| spend.purse.clone()).collect()
    }
}

/// An amount that somebody wanted to hear of, and that is reached.
pub(crate) struct Reached {
    pub(crate) purse: String,
    pub(crate) at: MicroUsd,
    /// What is spent by now.
    pub(crate) spent: MicroUsd,
}

/// A purse that a run draws from, and the budget it belongs to.
pub(crate) struct Drawn {
    pub(crate) owner: Owner,
    pub(crate) budget: Budget,
}

impl Driver {
    /// What the next model call takes from which purses.
    pub(crate) async fn reserve(
        &self,
        request: &ModelRequest,
        agent: &CurrentAgent,
        key: Option<KeyId>,
    ) -> Result<Reserved, EngineError> {
        let state = self.state();
        let Some(start) = &state.start else { return Ok(Reserved::Fits(Reservation::default())) };
        let drawn = self.engine.drawn(start.workspace, Some(agent), start.initiator, key).await?;
        let known = self.engine.priced(start.workspace, &request.model, key).await?;
        let most = dearest(&known, tokens::bound(request), u64::from(request.max_tokens));
        match &most {
            None => {
                if let Some(over) = self.without_price(&request.model, agent, &drawn).await? {
                    return Ok(Reserved::Unpriced(over));
                }
            }
            Some(most) if most.amount > MicroUsd::ZERO => {
                if let Some(limit) = start.budget.map(|budget| budget + state.raised)
                    && state.cost + most.amount > limit
                {
                    let over = Overspent { purse: RUN_PURSE.to_owned(), limit, spent: state.cost, needed: most.amount };
                    return Ok(Reserved::TooMuch(over));
                }
            }
            Some(_) => {}
        }
        Ok(Reserved::Fits(Reservation::of(most, &drawn, self.now(), &start.time_zone)))
    }

    /// The limit that a model of which nobody knows what it costs would escape, unless somebody said yes to that.
    async fn without_price(
        &self,
        model: &str,
        agent: &CurrentAgent,
        drawn: &[Drawn],
    ) -> Result<Option<Overspent>, EngineError> {
        let state = self.state();
        let Some(start) = state.start.as_ref().filter(|_| !state.priceless.contains(model)) else { return Ok(None) };
        if self.engine.unpriced() == Unpriced::Allow {
            return Ok(None);
        }
        if let Some((owner, period, limit)) = escaped(drawn) {
            let purse = owner.purse(period, &period.name(self.now(), &start.time_zone));
            let kept = self.engine.store().purse(&purse).await?;
            let (limit, spent) = (limit + kept.raised, kept.spent);
            return Ok(Some(Overspent { purse, limit, spent, needed: MicroUsd::ZERO }));
        }
        // What the person who started it gave is not the agent's to give up.
        let own = &agent.config.budget;
        let given = start.budget.filter(|limit| !own.allow_unpriced || Some(*limit) != own.run());
        Ok(given.map(|limit| {
            let (purse, limit, spent) = (RUN_PURSE.to_owned(), limit + state.raised, state.cost);
            Overspent { purse, limit, spent, needed: MicroUsd::ZERO }
        }))
    }

    /// The stored key that the next model call is made with.
    pub(crate) async fn key_for(&self, agent: &CurrentAgent, model: &str) -> Result<Option<KeyId>, EngineError> {
        let Some(start) = &self.state().start else { return Ok(None) };
        let named = [start.key, agent.config.provider_key_id];
        self.engine.key_for(start.workspace, Some(agent.id), start.initiator, &named, model).await
    }

    /// Holds the run and asks for more. A budget of a day or a month comes back by itself.
    pub(crate) fn hold_for_money(&mut self, over: Overspent) -> Result<Flushed, EngineError> {
        let Overspent { purse, limit, spent, needed } = over;
        let zone = self.state().start.as_ref().map(|start| start.time_zone.clone()).unwrap_or_default();
        let period = Period::ALL.into_iter().find(|period| purse.contains(&format!("/{}/", period.word())));
        let until = period.map(|period| period.end(self.now(), &zone));
        let raise = BudgetAsk::raise_for(limit, spent, needed);
        let ask = BudgetAsk { approval: self.engine.env().id(), purse, limit, spent, needed, raise, unpriced: None };
        self.log.push(Paused { reason: PauseReason::Budget, until, by: None, ask: Some(Box::new(ask)) })?;
        Ok(Flushed::Written)
    }

    /// Holds the run and asks whether to ask a model of which nobody knows what it costs.
    pub(crate) fn hold_for_price(&mut self, model: &str, escaped: Overspent) -> Result<(), EngineError> {
        let Overspent { purse, limit, spent, needed } = escaped;
        let (approval, raise) = (self.engine.env().id(), MicroUsd::ZERO);
        let unpriced = Some(model.to_owned());
        let ask = BudgetAsk { approval, purse, limit, spent, needed, raise, unpriced };
        self.log.push(Paused { reason: PauseReason::Budget, until: None, by: None, ask: Some(Box::new(ask)) })
    }

    /// Says that spending has reached amounts that somebody wanted to hear of, each once for all runs. What was answered is not
    /// durable yet, and must not be lost because nobody can look: then the next call says it.
    pub(crate) async fn point_out(
        &mut self,
        asked: &ModelRequested,
        cost: Option<MicroUsd>,
    ) -> Result<(), EngineError> {
        let reached = self.reached(asked, cost).await.unwrap_or_else(|error| {
            tracing::warn!(run = %self.log.run, %error, "nobody could look which amounts are reached");
            Vec::new()
        });
        for Reached { purse, at, spent } in reached {
            let alert = Spend { purse: purse.clone(), change: Change::Alert(at) };
            self.log.push_spending(BudgetAlerted { purse, at, spent }, None, vec![alert])?;
        }
        Ok(())
    }

    async fn reached(&mut self, asked: &ModelRequested, cost: Option<MicroUsd>) -> Result<Vec<Reached>, EngineError> {
        let nothing = cost.or(asked.reserved).unwrap_or_default() == MicroUsd::ZERO;
        if asked.purses.is_empty() || nothing {
            return Ok(Vec::new());
        }
        let agent = self.known_agent().await?;
        let Some(start) = self.state().start.clone() else { return Ok(Vec::new()) };
        let drawn = self.engine.drawn(start.workspace, Some(&agent), start.initiator, asked.key).await?;
        let reserved = asked.reserved.unwrap_or_default();
        let open = Change::Settle { reserved, cost: cost.unwrap_or(reserved) };
        self.engine.amounts_reached(&drawn, &asked.purses, Some(open)).await
    }

    /// What follows a failed model call.
    pub(crate) fn after_failure(&self, allowed: &Allowed, model: &str, error: &ModelError, partial: bool) -> Next {
        let state = self.state();
        let started = state.start.iter();
        let named = started.flat_map(|start| std::iter::once(&start.model).chain(&start.fallbacks));
        // What the workspace has allowed meanwhile counts, not what it did when the run was started.
        let lineup: Vec<String> = named.filter(|name| *name == model || allowed.admits(name)).cloned().collect();
        let private_and_untrusted = Labels::PRIVATE.join(Labels::UNTRUSTED);
        let reach = if partial || state.failures.iter().any(|failure| failure.partial) {
            Reach::Here
        } else if state.labels.join(private_and_untrusted) == state.labels {
            // Another company would be another way out for what somebody else may have asked for.
            Reach::SameProvider
        } else {
            Reach::Anywhere
        };
        let number = state.failed_with(model).saturating_add(1);
        after(&Failed { lineup: &lineup, model, number, error, reach }, self.engine.env().fraction())
    }
}

impl Engine {
    /// Whose money a model call spends, for an agent or outside of runs, and what they may spend.
    ///
    /// # Errors
    /// Those of the store; a budget that cannot be read is one.
    pub(crate) async fn drawn(
        &self,
        workspace: adjutant_core::id::WorkspaceId,
        agent: Option<&CurrentAgent>,
        person: adjutant_core::id::UserId,
        key: Option<KeyId>,
    ) -> Result<Vec<Drawn>, EngineError> {
        let rows = self.store().budgets(workspace).await?;
        let saved = |owner| Ok::<_, EngineError>(Drawn { owner, budget: budgets::read(&rows, owner)? });
        let own = |agent: &CurrentAgent| Drawn { owner: Owner::Agent(agent.id), budget: agent.config.budget.clone() };
        let mut drawn: Vec<Drawn> = agent.map(own).into_iter().collect();
        drawn.push(saved(Owner::Person(workspace, person))?);
        drawn.push(saved(Owner::Workspace(workspace))?);
        if let Some(key) = key {
            drawn.push(saved(Owner::Key(key))?);
        }
        Ok(drawn)
    }

    /// The amounts to be pointed out that are reached, once what is `open` is written, and that nobody heard of yet.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn amounts_reached(
        &self,
        drawn: &[Drawn],
        purses: &[String],
        open: Option<Change>,
    ) -> Result<Vec<Reached>, EngineError> {
        let mut found = Vec::new();
        for drawn in drawn {
            let mine = |purse: &&String| purse.starts_with(&drawn.owner.purse(Period::Month, ""));
            let Some(purse) = purses.iter().find(mine) else { continue };
            let mut kept = self.store().purse(purse).await?;
            if let Some(change) = open.clone() {
                let spend = Spend { purse: purse.clone(), change };
                let after = spend_all(&Purses::from([(purse.clone(), kept)]), &[spend]);
                kept = after.ok().and_then(|after| after.get(purse).copied()).unwrap_or(kept);
            }
            let reached = |at| Reached { purse: purse.clone(), at, spent: kept.spent };
            found.extend(drawn.budget.alerts(kept.spent, kept.alerted).map(reached));
        }
        Ok(found)
    }

    /// Tells whoever starts a run at once that a budget is used up, instead of letting it hold at its first call.
    pub(crate) async fn check_budgets(
        &self,
        workspace: adjutant_core::id::WorkspaceId,
        agent: &CurrentAgent,
        person: adjutant_core::id::UserId,
        now: Time,
        zone: &str,
    ) -> Result<(), EngineError> {
        for drawn in self.drawn(workspace, Some(agent), person, None).await? {
            for period in Period::ALL {
                let Some(limit) = drawn.budget.of(period) else { continue };
                let purse = self.store().purse(&drawn.owner.purse(period, &period.name(now, zone))).await?;
                if budgets::is_used_up(&purse, limit) {
                    let (whose, until) = (drawn.owner.word(), period.end(now, zone));
                    let (spent, limit) = (purse.spent, limit + purse.raised);
                    return Err(EngineError::BudgetExhausted { whose, period: period.word(), spent, limit, until });
                }
            }
        }
        Ok(())
    }
}

/// Whose limit a model without a known price would escape, of the widest of those that are drawn from.
pub(crate) fn escaped(drawn: &[Drawn]) -> Option<(Owner, Period, MicroUsd)> {
    let escaped = |drawn: &Drawn| drawn.budget.escaped().map(|(period, limit)| (drawn.owner, period, limit));
    drawn.iter().rev().find_map(escaped)
}

/// The limits of a run: the agent's, and those of its model where they are known.
pub(crate) fn run_limits(config: &AgentConfig, facts: Option<&ModelFacts>, turns: Option<u32>) -> RunLimits {
    let asked = config.max_tokens_per_request;
    let longest = facts.and_then(|facts| facts.longest_output).and_then(|most| u32::try_from(most).ok());
    let output_tokens = longest.map_or(asked, |most| most.min(asked));
    let room = facts.and_then(|facts| facts.window).map(|window| window.saturating_sub(u64::from(output_tokens)));
    RunLimits {
        turns: turns.unwrap_or(config.max_turns),
        tool_calls: config.max_tool_calls,
        output_tokens,
        context_bytes: room.map_or(limits::CONTEXT_BYTES, |room| (room * BYTES_PER_TOKEN).min(limits::CONTEXT_BYTES)),
    }
}
