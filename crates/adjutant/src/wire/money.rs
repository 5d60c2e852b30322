//! Usage and budgets: what the server answers, and what the command line reads from it.

use adjutant_core::budget::{Budget, Owner};
use adjutant_core::id::WorkspaceId;
use adjutant_core::money::TokenUsage;
use adjutant_core::time::Time;
use adjutant_engine::{BudgetReport, Forecast, GroupBy, Repriced, Spent, UsageLine};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::csv::safe;

/// Tokens by class; `cached` and `cache_write` are parts of `input`, `reasoning` of `output`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
    cached: u64,
    reasoning: u64,
    cache_write: u64,
}

/// The usage of one group.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct UsageRow {
    /// The day, with `interval=day`.
    pub(crate) day: Option<String>,
    /// The day, the model, or the id of the agent, person, key or run. `instance` for keys of the operator.
    pub(crate) group: String,
    /// What people call it, where that is another word.
    pub(crate) name: Option<String>,
    /// Model calls, and how many of them failed.
    pub(crate) calls: u64,
    pub(crate) failed: u64,
    pub(crate) tokens: Tokens,
    pub(crate) cost_usd: f64,
    pub(crate) cost_microusd: u64,
    /// Calls whose price is not known: their cost is not in the sum.
    pub(crate) unpriced: u64,
    /// Calls whose tokens are estimated.
    pub(crate) estimated: u64,
}

/// What was spent.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct UsageList {
    /// What it is grouped by.
    pub(crate) group_by: String,
    /// From this moment on.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) from: Time,
    /// Before this moment; `null` is up to now.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) to: Option<Time>,
    /// The groups: days in their order, others with most money first.
    pub(crate) data: Vec<UsageRow>,
    /// All of them together.
    pub(crate) total_usd: f64,
    pub(crate) total_microusd: u64,
    /// Calls that are not in the sums because nobody knows their price.
    pub(crate) unpriced: u64,
}

/// A line for clients.
fn usage_row(line: UsageLine) -> UsageRow {
    let TokenUsage { input, output, cached, reasoning, cache_write } = line.tokens;
    UsageRow {
        day: line.day,
        group: line.group,
        name: line.name,
        calls: line.calls,
        failed: line.failed,
        tokens: Tokens { input, output, cached, reasoning, cache_write },
        cost_usd: line.cost.dollars(),
        cost_microusd: line.cost.0,
        unpriced: line.unpriced,
        estimated: line.estimated,
    }
}

/// Lines for clients.
pub(crate) fn usage(by: GroupBy, (from, to): (Time, Option<Time>), lines: Vec<UsageLine>) -> UsageList {
    let total: adjutant_core::money::MicroUsd = lines.iter().map(|line| line.cost).sum();
    UsageList {
        group_by: by.word().to_owned(),
        from,
        to,
        unpriced: lines.iter().map(|line| line.unpriced).sum(),
        data: lines.into_iter().map(usage_row).collect(),
        total_usd: total.dollars(),
        total_microusd: total.0,
    }
}

/// Usage as a file for spreadsheets: one line a group, below a line of names.
pub(crate) fn usage_csv(list: &UsageList) -> String {
    let names = "name,calls,failed,input_tokens,output_tokens,cached_tokens,reasoning_tokens,cache_write_tokens,cost_usd,\
                 unpriced,estimated";
    let by_day = list.group_by != "day" && list.data.iter().any(|row| row.day.is_some());
    let mut lines = vec![format!("{}{},{names}", if by_day { "day," } else { "" }, list.group_by)];
    for row in &list.data {
        let Tokens { input, output, cached, reasoning, cache_write } = row.tokens;
        let mut cells = Vec::new();
        if by_day {
            cells.push(row.day.clone().unwrap_or_default());
        }
        cells.extend([safe(&row.group), safe(row.name.as_deref().unwrap_or_default())]);
        cells.extend([row.calls, row.failed, input, output, cached, reasoning, cache_write].map(|n| n.to_string()));
        cells.extend([format!("{:.6}", row.cost_usd), row.unpriced.to_string(), row.estimated.to_string()]);
        lines.push(cells.join(","));
    }
    lines.join("\n") + "\n"
}

/// Past calls at the prices of today.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct RepricedSum {
    pub(crate) calls: u64,
    pub(crate) recorded_microusd: u64,
    pub(crate) repriced_microusd: u64,
    /// Calls whose price is not known today either.
    pub(crate) unpriced: u64,
    /// The states of the prices it was reckoned with.
    pub(crate) price_versions: Vec<String>,
}

impl From<Repriced> for RepricedSum {
    fn from(sum: Repriced) -> Self {
        Self {
            calls: sum.calls,
            recorded_microusd: sum.recorded.0,
            repriced_microusd: sum.repriced.0,
            unpriced: sum.unpriced,
            price_versions: sum.versions,
        }
    }
}

/// What a run is likely to cost.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct Estimate {
    /// The runs that were looked at.
    pub(crate) runs: usize,
    /// Half of them cost no more than this; `null` without history of a known cost.
    pub(crate) p50_microusd: Option<u64>,
    /// Nine of ten cost no more than this; `null` without history of a known cost.
    pub(crate) p90_microusd: Option<u64>,
    /// It holds before it costs more than this: its own limit, or what is left for whoever pays; `null` where nothing holds it.
    pub(crate) most_microusd: Option<u64>,
}

impl From<Forecast> for Estimate {
    fn from(forecast: Forecast) -> Self {
        Self {
            runs: forecast.runs,
            p50_microusd: forecast.p50.map(|cost| cost.0),
            p90_microusd: forecast.p90.map(|cost| cost.0),
            most_microusd: forecast.most.map(|cost| cost.0),
        }
    }
}

/// What may be spent. `null` is no limit.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// Dollars of one run; only agents have it.
    pub(crate) run_usd: Option<f64>,
    /// Dollars of a day.
    pub(crate) day_usd: Option<f64>,
    /// Dollars of a month.
    pub(crate) month_usd: Option<f64>,
    /// Where spending in a month is pointed out, once each.
    pub(crate) alert_at_usd: Vec<f64>,
    /// From this spending in a month on, new runs of the agent use `cheaper_model`; only agents have it.
    pub(crate) soft_usd: Option<f64>,
    pub(crate) cheaper_model: Option<String>,
    /// Whether models without a known price are asked although there is a limit.
    pub(crate) allow_unpriced: bool,
}

impl From<Budget> for Limits {
    fn from(budget: Budget) -> Self {
        let Budget { run_usd, day_usd, month_usd, alert_at_usd, soft_usd, cheaper_model, allow_unpriced } = budget;
        Self { run_usd, day_usd, month_usd, alert_at_usd, soft_usd, cheaper_model, allow_unpriced }
    }
}

impl From<Limits> for Budget {
    fn from(limits: Limits) -> Self {
        let Limits { run_usd, day_usd, month_usd, alert_at_usd, soft_usd, cheaper_model, allow_unpriced } = limits;
        Self { run_usd, day_usd, month_usd, alert_at_usd, soft_usd, cheaper_model, allow_unpriced }
    }
}

/// What is spent in a stretch of time.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct SpentOf {
    /// Reservations of calls under way included.
    pub(crate) spent_microusd: u64,
    /// Raises included; `null` is no limit.
    pub(crate) limit_microusd: Option<u64>,
    /// When it begins anew.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) until: Time,
}

impl From<Spent> for SpentOf {
    fn from(spent: Spent) -> Self {
        let limit_microusd = spent.limit.map(|limit| limit.0);
        Self { spent_microusd: spent.spent.0, limit_microusd, until: spent.until }
    }
}

/// A budget and what is left of it.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct BudgetLine {
    pub(crate) workspace_id: String,
    /// `workspace`, `person`, `agent` or `key`.
    pub(crate) kind: String,
    /// The id of the workspace, person, agent or key.
    pub(crate) subject: String,
    /// What people call it.
    pub(crate) name: Option<String>,
    pub(crate) budget: Limits,
    pub(crate) day: SpentOf,
    pub(crate) month: SpentOf,
}

/// Budgets.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct BudgetList {
    pub(crate) data: Vec<BudgetLine>,
}

/// A budget for clients.
pub(crate) fn budget(workspace: WorkspaceId, report: BudgetReport) -> BudgetLine {
    let subject = match report.owner {
        Owner::Agent(id) => id.to_string(),
        Owner::Person(_, id) => id.to_string(),
        Owner::Workspace(id) => id.to_string(),
        Owner::Key(id) => id.to_string(),
    };
    BudgetLine {
        workspace_id: workspace.to_string(),
        kind: report.owner.word().to_owned(),
        subject,
        name: report.name,
        budget: report.budget.into(),
        day: report.day.into(),
        month: report.month.into(),
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::money::MicroUsd;

    use super::*;

    #[test]
    fn a_name_is_one_cell_and_never_a_formula() {
        let tokens = TokenUsage { input: 10, output: 5, cached: 2, reasoning: 1, cache_write: 0 };
        let cost = MicroUsd(1_500_000);
        let (group, name) = ("=1+1".to_owned(), Some("a,\"b\"".to_owned()));
        let line = UsageLine { group, name, calls: 2, tokens, cost, ..UsageLine::default() };
        let moment: Time = "2026-11-01T00:00:00Z".parse().unwrap();
        let text = usage_csv(&usage(GroupBy::Agent, (moment, None), vec![line.clone()]));
        assert_eq!(text.lines().nth(1), Some("\"'=1+1\",\"a,\"\"b\"\"\",2,0,10,5,2,1,0,1.500000,0,0"));
        assert!(text.starts_with("agent,name,calls,"));
        let of_day = UsageLine { day: Some("2026-11-16".to_owned()), ..line };
        let text = usage_csv(&usage(GroupBy::Agent, (moment, None), vec![of_day]));
        assert!(text.starts_with("day,agent,name,") && text.contains("\n2026-11-16,"), "{text}");
    }
}
