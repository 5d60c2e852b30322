//! What was spent: by day, agent, model, person, key or run; what it would cost at other prices; what a run is likely to cost.

use std::collections::BTreeMap;

use adjutant_core::budget::Period;
use adjutant_core::id::{AgentId, WorkspaceId};
use adjutant_core::money::{MicroUsd, TokenUsage};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::status::Status;
use adjutant_core::time::Time;
use adjutant_models::catalog::Prices;
use adjutant_store::row::{ModelCallRow, RunFilter, RunRow, UsageFilter, UsageRow};

use crate::engine::Engine;
use crate::error::EngineError;

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
    /// Half of them cost no more than this; none without history.
    pub p50: Option<MicroUsd>,
    /// Nine of ten cost no more than this; none without history.
    pub p90: Option<MicroUsd>,
    /// It holds before it costs more than this; none without a limit.
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
                Some(served) => self.cost_of(&call.model, served, call.key, &call.usage).map(|cost| {
                    if !sum.versions.contains(&cost.version) {
                        sum.versions.push(cost.version);
                    }
                    cost.amount
                }),
                // A call that failed counts as what was put aside for it; no tokens were counted.
                None => call.cost,
            };
            match priced {
                Some(cost) => sum.repriced += cost,
                None => sum.unpriced += 1,
            }
        }
        Ok(sum)
    }

    /// What a run of an agent is likely to cost, by what its last runs did; with another model what the same tokens cost there, as
    /// far as its prices are known.
    ///
    /// # Errors
    /// When there is no such agent.
    pub async fn forecast(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        model: Option<&str>,
        most: Option<MicroUsd>,
    ) -> Result<Forecast, EngineError> {
        let current = self.current_agent(workspace, agent).await?;
        let status = Some(Status::Completed.word().to_owned());
        let filter = RunFilter { agent: Some(agent), status, superseded: true, ..RunFilter::default() };
        let runs = self.store().runs(workspace, &filter, HISTORY).await?;
        let facts = model.and_then(|model| self.models().facts(model));
        // A run's tokens are those of all its calls, so what single long calls cost more is not in it.
        let again = |usage: &TokenUsage| {
            let usual = facts.as_ref().map(|facts| Prices { base: facts.prices.base, over: Vec::new() });
            usual.and_then(|prices| prices.cost(usage))
        };
        let cost = |run: &RunRow| if model.is_some() { again(&run.state.usage) } else { Some(run.state.cost) };
        let mut costs: Vec<_> = runs.iter().filter_map(cost).collect();
        costs.sort_unstable();
        // The nearest rank: the smallest cost that so many of a hundred runs stay within.
        let rank = |percent: usize| costs.get((costs.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        let limits = [current.config.budget.run(), most];
        Ok(Forecast { runs: costs.len(), p50: rank(50), p90: rank(90), most: limits.into_iter().flatten().min() })
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
        failed: u64::from(call.served.is_none()),
        unpriced: u64::from(call.cost.is_none()),
        estimated: u64::from(call.estimated),
        usage: call.usage,
        cost: call.cost.unwrap_or_default(),
    }
}
