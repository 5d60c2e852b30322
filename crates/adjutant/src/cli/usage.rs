//! `usage`: what was spent, as a table with bars, as CSV, or at the prices of today.

use std::path::PathBuf;

use adjutant_core::budget::moment;
use adjutant_core::money::MicroUsd;
use adjutant_engine::store::row::UsageFilter;
use adjutant_engine::{GroupBy, Interval};
use serde_json::Value;

use super::Context;
use super::place::{Place, Work};
use super::remote::Remote;
use super::terminal::{Style, clean, cut, table};
use crate::failure::{Exit, Failure};
use crate::wire::{self, RepricedSum, UsageList, cost, usage_csv};

/// Characters of the longest bar.
const BAR: u64 = 24;
/// Characters of a name.
const NAME: usize = 40;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What to group by
    #[arg(long, value_parser = ["day", "agent", "model", "user", "key", "run"], default_value = "day")]
    by: String,
    /// From this day or moment on, as in 2026-11-01 [default: the first of this month]
    #[arg(long, value_name = "DAY")]
    from: Option<String>,
    /// Before this day or moment
    #[arg(long, value_name = "DAY")]
    to: Option<String>,
    /// Only of this agent
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only of this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Write CSV to this file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// What it would cost at the prices of today
    #[arg(long, conflicts_with = "csv")]
    reprice: bool,
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    for (option, given) in [("--from", &args.from), ("--to", &args.to)] {
        check_moment(option, given.as_deref())?;
    }
    let place = Place::find(context, "usage", Work::Looks).await?;
    let exit = if args.reprice { reprice(context, &place, &args).await } else { show(context, &place, &args).await };
    place.close().await;
    exit
}

/// A moment is read in the zone of the workspace; whether it is one at all does not depend on that.
fn check_moment(option: &str, given: Option<&str>) -> Result<(), Failure> {
    match given {
        Some(text) if moment(text, "UTC").is_none() => {
            let what =
                format!("{option}: `{text}` is neither a day such as 2026-11-01 nor a moment. Nothing was read.");
            Err(Failure::usage(what))
        }
        _ => Ok(()),
    }
}

impl Args {
    async fn ask(&self, remote: &Remote, path: &[&str]) -> Result<Value, Failure> {
        let workspace = remote.only_workspace().await?;
        let pairs = [("from", &self.from), ("to", &self.to), ("agent", &self.agent), ("model", &self.model)];
        let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let always = [("group_by", self.by.as_str()), ("workspace_id", &workspace)];
        remote.get(path, &always.into_iter().chain(given).collect::<Vec<_>>()).await
    }

    async fn filter(&self, instance: &crate::instance::Instance) -> Result<UsageFilter, Failure> {
        let (engine, workspace) = (&instance.engine, instance.home.workspace);
        let agent = match &self.agent {
            None => None,
            Some(name) => Some(engine.find_agent(workspace, name).await?.id),
        };
        let from = Some(engine.since(workspace, self.from.as_deref()).await?);
        let to = match &self.to {
            None => None,
            Some(text) => Some(engine.since(workspace, Some(text)).await?),
        };
        Ok(UsageFilter { from, to, agent, model: self.model.clone(), ..UsageFilter::default() })
    }
}

async fn list(place: &Place, args: &Args) -> Result<UsageList, Failure> {
    match place {
        Place::Here(instance) => {
            let filter = args.filter(instance).await?;
            let by = GroupBy::of(&args.by).unwrap_or(GroupBy::Day);
            let lines = instance.engine.usage(instance.home.workspace, &filter, by, Interval::Whole).await?;
            Ok(wire::usage(by, (filter.from.unwrap_or(instance.engine.env().now()), filter.to), lines))
        }
        Place::There(remote) => remote.read(args.ask(remote, &["usage"]).await?),
    }
}

async fn show(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let list = list(place, args).await?;
    if let Some(file) = &args.csv {
        return csv(file, &usage_csv(&list));
    }
    let shown = serde_json::to_value(&list).unwrap_or_default();
    context.print(&shown, || lines(&list, context.terminal.out));
    Ok(Exit::Done)
}

fn lines(list: &UsageList, style: Style) -> Vec<String> {
    if list.data.is_empty() {
        return vec![format!("No model was called since {}.", list.from)];
    }
    // Bars stand for money: where nothing cost any there are none.
    let most = list.data.iter().map(|row| row.cost_microusd).max().unwrap_or(0).max(1);
    let cells = list.data.iter().map(|row| {
        let length = (u128::from(row.cost_microusd) * u128::from(BAR)).div_ceil(u128::from(most));
        vec![
            cut(&clean(row.name.as_deref().unwrap_or(&row.group)), NAME),
            row.calls.to_string(),
            row.tokens.input.to_string(),
            row.tokens.output.to_string(),
            cost(MicroUsd(row.cost_microusd), row.unpriced > 0 || row.estimated > 0),
            "█".repeat(usize::try_from(length).unwrap_or(0)),
        ]
    });
    let head = list.group_by.to_uppercase();
    let mut shown = table(&[&head, "CALLS", "TOKENS IN", "OUT", "COST", ""], &cells.collect::<Vec<_>>(), style);
    shown.push(format!("total {}", MicroUsd(list.total_microusd)));
    if list.unpriced > 0 {
        shown.push(style.dim(&format!("{} calls have no known price and are not in the sum", list.unpriced)));
    }
    shown
}

async fn reprice(context: &Context, place: &Place, args: &Args) -> Result<Exit, Failure> {
    let sum: RepricedSum = match place {
        Place::Here(instance) => {
            let filter = args.filter(instance).await?;
            instance.engine.reprice(instance.home.workspace, &filter).await?.into()
        }
        Place::There(remote) => remote.read(args.ask(remote, &["usage", "reprice"]).await?)?,
    };
    context.print(&serde_json::to_value(&sum).unwrap_or_default(), || {
        let (recorded, repriced) = (MicroUsd(sum.recorded_microusd), MicroUsd(sum.repriced_microusd));
        let versions = sum.price_versions.join(", ");
        vec![
            format!("{} calls: {recorded} recorded, {repriced} at the prices of today", sum.calls),
            context.terminal.out.dim(&format!("prices {} · {} calls without a price", clean(&versions), sum.unpriced)),
        ]
    });
    Ok(Exit::Done)
}

fn csv(file: &PathBuf, text: &str) -> Result<Exit, Failure> {
    if file.as_os_str() == "-" {
        super::output::say(text.trim_end());
        return Ok(Exit::Done);
    }
    std::fs::write(file, text)
        .map_err(|error| Failure::usage(format!("{} cannot be written: {error}.", file.display())))?;
    Ok(Exit::Done)
}
