//! What was spent: by day, agent, model, person, key or run; what it would cost at other prices; what a run is likely to cost.

use std::collections::BTreeMap;

use adjutant_core::budget::Period;
use adjutant_core::id::{AgentId, UserId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::status::Status;
use adjutant_core::run::step::AT_A_LIMIT;
use adjutant_core::time::Time;
use adjutant_models::catalog::Prices;
use adjutant_models::lineup;
use adjutant_models::router::Needs;
use adjutant_store::row::{ModelCallRow, RunFilter, RunRow, UsageFilter, UsageRow};

use crate::current::CurrentAgent;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::projection::RunSummary;
use crate::spending::{Named, Unpriced, escaped};

/// Model calls read at a time.
const PAGE: u32 = 1000;
/// Runs that a forecast looks back at.
const HISTORY: u32 = 100;

/// The group of what is spent outside of runs.
const OUTSIDE: &str = "outside";

/// What usage is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBy {
    /// The day, by the workspace's clock.
    Day,
    /// The agent.
    Agent,
    /// The model that was asked.
    Model,
    /// The person.
    User,
    /// The stored key; `instance` for those of the operator.
    Key,
    /// The run.
    Run,
}

impl GroupBy {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Day, Self::Agent, Self::Model, Self::User, Self::Key, Self::Run];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Agent => "agent",
            Self::Model => "model",
            Self::User => "user",
            Self::Key => "key",
            Self::Run => "run",
        }
    }

    /// The group of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.word() == word)
    }
}

/// Over which stretches sums are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// One sum for all the time asked for.
    Whole,
    /// A sum for each day.
    Day,
}

/// The usage of one group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageLine {
    /// The day, where sums are made for each.
    pub day: Option<String>,
    /// The day, or the id or name of what it is about.
    pub group: String,
    /// What people call it, where that is another word.
    pub name: Option<String>,
    /// Model calls.
    pub calls: u64,
    /// Those that failed.
    pub failed: u64,
    /// Tokens.
    pub tokens: TokenUsage,
    /// Money, as far as it is known.
    pub cost: MicroUsd,
    /// Calls whose price is not known.
    pub unpriced: u64,
    /// Calls whose tokens are estimated.
    pub estimated: u64,
}

impl UsageLine {
    fn add(&mut self, row: &UsageRow) {
        self.calls += row.calls;
        self.failed += row.failed;
        self.unpriced += row.unpriced;
        self.estimated += row.estimated;
        self.tokens += row.usage;
        self.cost += row.cost;
    }
}

/// What past calls would cost at the prices of today.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repriced {
    /// Calls that were looked at.
    pub calls: u64,
    /// What was recorded.
    pub recorded: MicroUsd,
    /// What it would be.
    pub repriced: MicroUsd,
    /// Calls whose price is not known today either.
    pub unpriced: u64,
    /// The states of the prices it was reckoned with.
    pub versions: Vec<String>,
}

/// What a run of an agent is likely to cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forecast {
    /// The runs that were looked at.
    pub runs: usize,
    /// Half of them cost no more than this; none without history of a known cost.
    pub p50: Option<MicroUsd>,
    /// Nine of ten cost no more than this; none without history of a known cost.
    pub p90: Option<MicroUsd>,
    /// It holds before it costs more than this: its own limit, or what is left of another's; none where nothing holds it.
    pub most: Option<MicroUsd>,
}

impl Engine {
    /// What was spent, by group. Days come in their order; within them, those that cost most come first.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn usage(
        &self,
        workspace: WorkspaceId,
        filter: &UsageFilter,
        by: GroupBy,
        interval: Interval,
    ) -> Result<Vec<UsageLine>, EngineError> {
        let zone = self.zone(workspace).await?;
        let mut lines: BTreeMap<(Option<String>, String), UsageLine> = BTreeMap::new();
        let mut add = |group: String, row: &UsageRow| {
            let day = (interval == Interval::Day).then(|| Period::Day.name(row.at, &zone));
            lines.entry((day, group)).or_default().add(row);
        };
        if by == GroupBy::Run {
            for call in self.all_calls(workspace, filter).await? {
                let group = match call.log {
                    StreamId::Run(run) => run.to_string(),
                    StreamId::Workspace(_) | StreamId::System => OUTSIDE.to_owned(),
                };
                add(group, &alone(&call));
            }
        } else {
            for row in self.store().usage(workspace, filter).await? {
                let group = match by {
                    GroupBy::Day | GroupBy::Run => Period::Day.name(row.at, &zone),
                    GroupBy::Agent => row.agent.map_or_else(|| OUTSIDE.to_owned(), |agent| agent.to_string()),
                    GroupBy::Model => row.model.clone(),
                    GroupBy::User => row.person.to_string(),
                    GroupBy::Key => row.key.map_or_else(|| "instance".to_owned(), |key| key.to_string()),
                };
                add(group, &row);
            }
        }
        let names = self.names(workspace, by).await?;
        let named = |((day, group), line)| UsageLine { day, name: names.get(&group).cloned(), group, ..line };
        let mut lines: Vec<UsageLine> = lines.into_iter().map(named).collect();
        if by != GroupBy::Day {
            let dearer = |a: &UsageLine, b: &UsageLine| b.cost.cmp(&a.cost).then(b.calls.cmp(&a.calls));
            lines.sort_by(|a, b| a.day.cmp(&b.day).then(dearer(a, b)).then(a.group.cmp(&b.group)));
        }
        Ok(lines)
    }

    async fn names(&self, workspace: WorkspaceId, by: GroupBy) -> Result<BTreeMap<String, String>, EngineError> {
        Ok(match by {
            GroupBy::Agent => {
                let agents = self.store().agents(workspace).await?;
                agents.into_iter().map(|row| (row.id.to_string(), row.slug)).collect()
            }
            GroupBy::Key => {
                let keys = self.store().provider_keys(workspace).await?;
                keys.into_iter().map(|row| (row.id.to_string(), format!("{} ({})", row.name, row.provider))).collect()
            }
            GroupBy::User => {
                let members = self.store().members(workspace).await?;
                members.into_iter().map(|row| (row.user.to_string(), row.name)).collect()
            }
            GroupBy::Day | GroupBy::Model | GroupBy::Run => BTreeMap::new(),
        })
    }

    async fn all_calls(&self, workspace: WorkspaceId, filter: &UsageFilter) -> Result<Vec<ModelCallRow>, EngineError> {
        let mut calls = Vec::new();
        loop {
            let page = self.store().model_calls(workspace, filter, calls.len() as u64, PAGE).await?;
            let last = page.len() < PAGE as usize;
            calls.extend(page);
            if last {
                return Ok(calls);
            }
        }
    }

    /// What past calls would cost at the prices of today, from the tokens that were recorded. Nothing is changed.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn reprice(&self, workspace: WorkspaceId, filter: &UsageFilter) -> Result<Repriced, EngineError> {
        let mut sum = Repriced::default();
        for call in self.all_calls(workspace, filter).await? {
            sum.calls += 1;
            sum.recorded += call.cost.unwrap_or_default();
            let priced = match &call.served {
                Some(served) if !call.estimated && !call.has_failed() => {
                    self.cost_of(&call.model, served, call.key, &call.usage).map(|cost| {
                        if !sum.versions.contains(&cost.version) {
                            sum.versions.push(cost.version);
                        }
                        cost.amount
                    })
                }
                // A call that failed, or whose tokens nobody counted, counts as what was put aside for it.
                Some(_) | None => call.cost,
            };
            match priced {
                Some(cost) => sum.repriced += cost,
                None => sum.unpriced += 1,
            }
        }
        Ok(sum)
    }

    /// What a run of an agent is likely to cost a person, by what its last runs did; with another model what the same tokens cost
    /// there, as far as its prices are known. Runs of which nobody knows what they cost tell nothing about it.
    ///
    /// # Errors
    /// When there is no such agent.
    pub async fn forecast(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        person: UserId,
        model: Option<&str>,
        most: Option<MicroUsd>,
    ) -> Result<Forecast, EngineError> {
        let current = self.current_agent(workspace, agent).await?;
        let runs = self.history(workspace, agent).await?;
        let facts = model.and_then(|model| self.models().facts(model));
        // A run's tokens are those of all its calls, so what single long calls cost more is not in it.
        let again = |usage: &TokenUsage| {
            let usual = facts.as_ref().map(|facts| Prices { base: facts.prices.base, over: Vec::new() });
            usual.and_then(|prices| prices.cost(usage))
        };
        let known = |summary: &RunSummary| !(summary.cost_estimated && summary.unpriced);
        let cost = |(run, summary): &(RunRow, RunSummary)| match model {
            Some(_) => again(&run.state.usage),
            None => Some(run.state.cost).filter(|_| known(summary)),
        };
        let mut costs: Vec<_> = runs.iter().filter_map(cost).collect();
        costs.sort_unstable();
        // The nearest rank: the smallest cost that so many of a hundred runs stay within.
        let rank = |percent: usize| costs.get((costs.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let most = self.most(workspace, &current, person, model, most).await?;
        Ok(Forecast { runs: costs.len(), p50: rank(50), p90: rank(90), most })
    }

    /// The last runs of an agent that did what they could: those that ended with an answer, and those that stopped at a limit.
    async fn history(&self, workspace: WorkspaceId, agent: AgentId) -> Result<Vec<(RunRow, RunSummary)>, EngineError> {
        let mut runs = Vec::new();
        for status in [Status::Completed, Status::Failed] {
            let word = Some(status.word().to_owned());
            let filter = RunFilter { agent: Some(agent), status: word, superseded: true, ..RunFilter::default() };
            for row in self.store().runs(workspace, &filter, HISTORY).await? {
                let Ok(summary) = serde_json::from_str::<RunSummary>(&row.state.summary) else { continue };
                let at_a_limit = summary.error_code.as_deref().is_some_and(|code| AT_A_LIMIT.contains(&code));
                if status == Status::Completed || at_a_limit {
                    runs.push((row, summary));
                }
            }
        }
        runs.sort_unstable_by_key(|(row, _)| std::cmp::Reverse(row.id));
        runs.truncate(HISTORY as usize);
        Ok(runs)
    }

    /// What a run holds at: its own limit, or what is left for whoever pays for it; none where nothing holds it, as it is with a
    /// model without a known price that may escape all limits there are.
    async fn most(
        &self,
        workspace: WorkspaceId,
        agent: &CurrentAgent,
        person: UserId,
        model: Option<&str>,
        given: Option<MicroUsd>,
    ) -> Result<Option<MicroUsd>, EngineError> {
        let (now, zone) = (self.env().now(), self.zone(workspace).await?);
        let wanted = self.wanted(agent, Named { run: model, chat: None }, now, &zone).await?;
        let wanted = self.wanted_here(workspace, person, wanted).await?;
        let source = self.source(workspace, Some(agent.id), person).await?;
        // Where none can be asked there is none whose price is known.
        let mut models = Vec::new();
        if let Ok(found) = lineup(&source, &wanted, self.default_model(), &Needs::default()) {
            models.push(found.model);
            models.extend(found.fallbacks);
        }
        let (mut priced, mut drawn) = (!models.is_empty(), self.drawn(workspace, Some(agent), person, None).await?);
        for name in &models {
            let named = [agent.config.provider_key_id];
            // Without the key that is meant for it a model is not asked at all.
            let Ok(key) = self.key_for(workspace, Some(agent.id), person, &named, name).await else { continue };
            priced &= !self.priced(workspace, name, key).await?.is_empty();
            drawn.extend(self.drawn(workspace, None, person, key).await?);
        }
        let own = agent.config.budget.run();
        let limit = own.into_iter().chain(given).min();
        // What a person gives a run is not the agent's to give up.
        let stays = limit.is_some_and(|limit| !agent.config.budget.allow_unpriced || Some(limit) != own);
        let asks = self.unpriced() == Unpriced::Ask && (stays || escaped(&drawn).is_some());
        if !priced && !asks {
            return Ok(None);
        }
        let mut left: Vec<MicroUsd> = limit.into_iter().collect();
        for drawn in drawn {
            for period in Period::ALL {
                let Some(limit) = drawn.budget.of(period) else { continue };
                let purse = self.store().purse(&drawn.owner.purse(period, &period.name(now, &zone))).await?;
                left.push(MicroUsd((limit + purse.raised).0.saturating_sub(purse.spent.0)));
            }
        }
        Ok(left.into_iter().min())
    }

    /// A moment as somebody writes it: a time, or a day of the workspace. Without one it is the beginning of the month.
    ///
    /// # Errors
    /// When it is neither.
    pub async fn since(&self, workspace: WorkspaceId, text: Option<&str>) -> Result<Time, EngineError> {
        let zone = self.zone(workspace).await?;
        let Some(text) = text else { return Ok(Period::Month.start(self.env().now(), &zone)) };
        adjutant_core::budget::moment(text, &zone)
            .ok_or_else(|| EngineError::Invalid(format!("`{text}` is neither a day such as 2026-11-01 nor a moment")))
    }

    /// The time zone of a workspace.
    pub(crate) async fn zone(&self, workspace: WorkspaceId) -> Result<String, EngineError> {
        Ok(self.store().workspace(workspace).await?.map_or_else(|| "UTC".to_owned(), |row| row.time_zone))
    }
}

/// One call as a sum.
fn alone(call: &ModelCallRow) -> UsageRow {
    UsageRow {
        agent: call.agent,
        person: call.person,
        key: call.key,
        model: call.model.clone(),
        at: call.at,
        calls: 1,
        failed: u64::from(call.has_failed()),
        unpriced: u64::from(call.cost.is_none()),
        estimated: u64::from(call.estimated),
        usage: call.usage,
        cost: call.cost.unwrap_or_default(),
    }
}
