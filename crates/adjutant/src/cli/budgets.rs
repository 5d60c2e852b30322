//! `budgets`: what may be spent, what is left, and setting it.

use adjutant_core::budget::{Owner, micros};
use adjutant_core::money::MicroUsd;
use adjutant_engine::{Member, Role};
use serde_json::json;

use super::keys;
use super::place::{Place, Work};
use super::remote::Remote;
use super::terminal::{clean, table};
use super::{Context, Noun};
use crate::failure::{Exit, Failure};
use crate::instance::Instance;
use crate::wire::{self, BudgetLine, BudgetList, Estimate, Limits, SpentOf};

pub(super) type Args = Noun<Command>;

#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// List what may be spent, and what is left
    Ls,
    /// Say what the workspace, a person in it or a key may spend (agents have theirs in their file)
    Set {
        #[command(flatten)]
        whose: Whose,
        /// Dollars of a day
        #[arg(long, value_parser = usd, value_name = "USD")]
        day: Option<f64>,
        /// Dollars of a month
        #[arg(long, value_parser = usd, value_name = "USD")]
        month: Option<f64>,
        /// Where spending in a month is pointed out; may be given several times
        #[arg(long, value_parser = usd, value_name = "USD")]
        alert: Vec<f64>,
        /// Ask models without a known price all the same, instead of holding for a person
        #[arg(long)]
        allow_unpriced: bool,
    },
    /// Take the limits of the workspace, of a person in it or of a key away
    Rm {
        #[command(flatten)]
        whose: Whose,
    },
    /// Say what a run of an agent is likely to cost, and the most it can
    Estimate {
        /// The agent
        agent: String,
    },
}

#[derive(Debug, clap::Args)]
pub(super) struct Whose {
    /// The person: name or id [default: the workspace as a whole]
    #[arg(long, value_name = "NAME", conflicts_with = "key")]
    person: Option<String>,
    /// A key that is kept, or as much of its id as no other has
    #[arg(long, value_name = "ID")]
    key: Option<String>,
}

impl Whose {
    /// Where a server has it.
    async fn path(&self, place: &Place, remote: &Remote) -> Result<Vec<String>, Failure> {
        if let Some(key) = &self.key {
            let key = keys::find(place, key).await?;
            return Ok(vec!["provider-keys".to_owned(), key.id, "budget".to_owned()]);
        }
        let workspace = remote.only_workspace().await?;
        let person = self.person.iter().flat_map(|person| ["members".to_owned(), person.clone()]);
        let path = ["workspaces".to_owned(), workspace].into_iter().chain(person);
        Ok(path.chain(std::iter::once("budget".to_owned())).collect())
    }

    /// Whose it is here.
    async fn owner(&self, place: &Place, instance: &Instance) -> Result<Owner, Failure> {
        if let Some(key) = &self.key {
            return Ok(Owner::Key(keys::id(&keys::find(place, key).await?)?));
        }
        let workspace = instance.home.workspace;
        let Some(name) = &self.person else { return Ok(Owner::Workspace(workspace)) };
        let members = instance.engine.store().members(workspace).await?;
        let known = members.into_iter().find(|row| row.name == *name || row.user.to_string() == *name);
        let known = known.ok_or_else(|| Failure::usage(format!("There is no member `{name}`. Nothing was done.")))?;
        Ok(Owner::Person(workspace, known.user))
    }

    fn words(&self) -> String {
        match (&self.key, &self.person) {
            (Some(key), _) => format!("key {}", clean(key)),
            (None, Some(person)) => clean(person),
            (None, None) => "the workspace".to_owned(),
        }
    }
}

fn usd(text: &str) -> Result<f64, String> {
    super::run::parse_usd(text).map(MicroUsd::dollars)
}

pub(super) async fn execute(context: &Context, args: Args) -> Result<Exit, Failure> {
    let place = Place::find(context, "budgets", Work::Looks).await?;
    let exit = match args.command.unwrap_or(Command::Ls) {
        Command::Ls => ls(context, &place).await,
        Command::Set { whose, day, month, alert, allow_unpriced } => {
            let limits =
                Limits { day_usd: day, month_usd: month, alert_at_usd: alert, allow_unpriced, ..Limits::default() };
            set(context, &place, &whose, limits).await
        }
        Command::Rm { whose } => rm(context, &place, &whose).await,
        Command::Estimate { agent } => estimate(context, &place, &agent).await,
    };
    place.close().await;
    exit
}

async fn ls(context: &Context, place: &Place) -> Result<Exit, Failure> {
    let list: BudgetList = match place {
        Place::Here(instance) => {
            let workspace = instance.home.workspace;
            // Whoever has the data directory may know everything in it.
            let reader = Member { user: instance.home.user, role: Role::Admin };
            let reports = instance.engine.budgets(workspace, reader).await?.into_iter();
            BudgetList { data: reports.map(|report| wire::budget(workspace, report)).collect() }
        }
        Place::There(remote) => remote.read(remote.get(&["budgets"], &[]).await?)?,
    };
    context.print(&serde_json::to_value(&list).unwrap_or_default(), || {
        let row = |line: &BudgetLine| {
            let run = line.budget.run_usd.map_or_else(|| "-".to_owned(), |usd| micros(usd).to_string());
            let name = clean(line.name.as_deref().unwrap_or(&line.subject));
            vec![line.kind.clone(), name, run, spent(&line.day), spent(&line.month)]
        };
        let cells: Vec<_> = list.data.iter().map(row).collect();
        table(&["KIND", "WHO", "A RUN", "TODAY", "THIS MONTH"], &cells, context.terminal.out)
    });
    Ok(Exit::Done)
}

fn spent(spent: &SpentOf) -> String {
    let amount = MicroUsd(spent.spent_microusd);
    spent.limit_microusd.map_or_else(|| amount.to_string(), |limit| format!("{amount} of {}", MicroUsd(limit)))
}

async fn set(context: &Context, place: &Place, whose: &Whose, limits: Limits) -> Result<Exit, Failure> {
    let line: BudgetLine = match place {
        Place::Here(instance) => {
            let (engine, home) = (&instance.engine, instance.home);
            let owner = whose.owner(place, instance).await?;
            engine.save_budget(home.workspace, home.user, owner, &limits.into()).await?;
            wire::budget(home.workspace, engine.budget(home.workspace, owner).await?)
        }
        Place::There(remote) => {
            let body = serde_json::to_value(&limits).unwrap_or_default();
            let path = whose.path(place, remote).await?;
            remote.read(remote.put(&path.iter().map(String::as_str).collect::<Vec<_>>(), &body).await?)?
        }
    };
    context.print(&serde_json::to_value(&line).unwrap_or_default(), || {
        let (day, month) = (spent(&line.day), spent(&line.month));
        vec![context.terminal.out.good(&format!("✔ {}: {day} today, {month} this month", whose.words()))]
    });
    Ok(Exit::Done)
}

async fn rm(context: &Context, place: &Place, whose: &Whose) -> Result<Exit, Failure> {
    match place {
        Place::Here(instance) => {
            let home = instance.home;
            let owner = whose.owner(place, instance).await?;
            instance.engine.remove_budget(home.workspace, home.user, owner).await?;
        }
        Place::There(remote) => {
            let path = whose.path(place, remote).await?;
            remote.delete(&path.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        }
    }
    let line = format!("✔ no limit for {}", whose.words());
    context.print(&json!({"removed": true}), || vec![context.terminal.out.good(&line)]);
    Ok(Exit::Done)
}

async fn estimate(context: &Context, place: &Place, name: &str) -> Result<Exit, Failure> {
    let estimate: Estimate = match place {
        Place::Here(instance) => {
            let workspace = instance.home.workspace;
            let agent = instance.engine.find_agent(workspace, name).await?;
            instance.engine.forecast(workspace, agent.id, instance.home.user, None, None).await?.into()
        }
        Place::There(remote) => remote.read(remote.get(&["agents", name, "estimate"], &[]).await?)?,
    };
    context.print(&serde_json::to_value(&estimate).unwrap_or_default(), || {
        let most = estimate.most_microusd.map_or_else(|| "no limit".to_owned(), |most| MicroUsd(most).to_string());
        match (estimate.p50_microusd, estimate.p90_microusd) {
            (Some(half), Some(nine)) => vec![format!(
                "half of {} runs cost at most {}, nine of ten at most {} · a run holds at {most}",
                estimate.runs,
                MicroUsd(half),
                MicroUsd(nine)
            )],
            (None, _) | (_, None) => vec![format!("no run of it tells yet what one costs · a run holds at {most}")],
        }
    });
    Ok(Exit::Done)
}
