//! Budgets: who may spend how much, and what is left of it.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::budget::{Budget, Owner, Period, Purse};
use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::row::{AgentRow, BudgetRow};

use super::access::{Member, Role};
use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;

/// A budget and what is left of it.
#[derive(Debug, Clone, PartialEq)]
pub struct BudgetReport {
    /// Whose it is.
    pub owner: Owner,
    /// What people call them, where that is known.
    pub name: Option<String>,
    /// What may be spent.
    pub budget: Budget,
    /// What is spent today, reservations included.
    pub day: Spent,
    /// What is spent this month, reservations included.
    pub month: Spent,
}

/// Who may know of a budget.
enum Whose {
    /// All of the workspace.
    Everybody,
    /// The person that it is about, and admins.
    Person(UserId),
    /// Whoever sees the agent: they are refused when it is used up.
    Agent(Box<AgentRow>),
}

impl Whose {
    fn is_for(&self, reader: Member) -> bool {
        match self {
            Self::Everybody => true,
            Self::Person(person) => reader.role == Role::Admin || *person == reader.user,
            Self::Agent(row) => reader.sees(row),
        }
    }
}

/// What is spent of a budget in a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// What is spent or reserved.
    pub spent: MicroUsd,
    /// What may be spent, raises included; none is no limit.
    pub limit: Option<MicroUsd>,
    /// When it begins anew.
    pub until: Time,
}

/// Why an agent starts no runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Somebody switched it off, or whoever owns it left.
    SwitchedOff {
        /// When.
        at: Time,
    },
    /// Its budget of a day or a month is used up.
    Budget {
        /// When it begins anew.
        until: Time,
    },
    /// That of its workspace is.
    WorkspaceBudget {
        /// When it begins anew.
        until: Time,
    },
}

/// Whether nothing is left to spend of a limit.
pub(crate) fn is_used_up(purse: &Purse, limit: MicroUsd) -> bool {
    purse.spent > MicroUsd::ZERO && purse.spent >= limit + purse.raised
}

/// Where a budget of this owner is stored. Agents have theirs in their configuration.
fn stored_as(owner: Owner) -> Option<(&'static str, String)> {
    match owner {
        Owner::Agent(_) => None,
        Owner::Person(_, id) => Some((owner.word(), id.to_string())),
        Owner::Workspace(id) => Some((owner.word(), id.to_string())),
        Owner::Key(id) => Some((owner.word(), id.to_string())),
    }
}

impl Engine {
    /// The budgets of a workspace that a member may know of: its own, those of its members and keys, and those of its agents.
    ///
    /// # Errors
    /// Those of the store; a budget that cannot be read is one.
    pub async fn budgets(&self, workspace: WorkspaceId, reader: Member) -> Result<Vec<BudgetReport>, EngineError> {
        let all = self.all_budgets(workspace).await?.into_iter();
        Ok(all.filter(|(_, whose)| whose.is_for(reader)).map(|(report, _)| report).collect())
    }

    async fn all_budgets(&self, workspace: WorkspaceId) -> Result<Vec<(BudgetReport, Whose)>, EngineError> {
        let saved = self.store().budgets(workspace).await?;
        let name = self.store().workspace(workspace).await?.map(|row| row.name);
        let mut found = vec![(Owner::Workspace(workspace), name, Whose::Everybody)];
        for row in self.store().members(workspace).await? {
            found.push((Owner::Person(workspace, row.user), Some(row.name), Whose::Person(row.user)));
        }
        for row in self.store().provider_keys(workspace).await? {
            let person = (row.kind == "person").then(|| row.subject.parse().ok()).flatten();
            found.push((Owner::Key(row.id), Some(row.name), person.map_or(Whose::Everybody, Whose::Person)));
        }
        let mut reports = Vec::new();
        for (owner, name, whose) in found {
            let budget = read(&saved, owner)?;
            reports.push((self.spent(workspace, owner, name, budget).await?, whose));
        }
        for row in self.store().agents(workspace).await? {
            // An agent that cannot be read cannot run, and says so where agents are listed.
            if let Ok(config) = serde_json::from_str::<AgentConfig>(&row.spec) {
                let (owner, name) = (Owner::Agent(row.id), Some(row.slug.clone()));
                let report = self.spent(workspace, owner, name, config.budget).await?;
                reports.push((report, Whose::Agent(Box::new(row))));
            }
        }
        Ok(reports)
    }

    /// Why each of these agents of a workspace starts no runs; none where it does. Worked out from what is spent, so it ends when
    /// a new day or month begins, or somebody raises a limit.
    ///
    /// # Errors
    /// Those of the store; a budget that cannot be read is one.
    pub async fn pauses(
        &self,
        workspace: WorkspaceId,
        agents: &[(&AgentRow, &AgentConfig)],
    ) -> Result<Vec<Option<Pause>>, EngineError> {
        let (now, zone) = (self.env().now(), self.zone(workspace).await?);
        let used_up = async |owner: Owner, budget: &Budget| -> Result<Option<Time>, EngineError> {
            for period in Period::ALL.into_iter().rev() {
                let Some(limit) = budget.of(period) else { continue };
                let purse = self.store().purse(&owner.purse(period, &period.name(now, &zone))).await?;
                if is_used_up(&purse, limit) {
                    return Ok(Some(period.end(now, &zone)));
                }
            }
            Ok(None)
        };
        let whole = Owner::Workspace(workspace);
        let shared = used_up(whole, &read(&self.store().budgets(workspace).await?, whole)?).await?;
        let mut pauses = Vec::with_capacity(agents.len());
        for (row, config) in agents {
            pauses.push(match used_up(Owner::Agent(row.id), &config.budget).await? {
                _ if !(row.active && config.is_active) => Some(Pause::SwitchedOff { at: row.saved_at }),
                Some(until) => Some(Pause::Budget { until }),
                None => shared.map(|until| Pause::WorkspaceBudget { until }),
            });
        }
        Ok(pauses)
    }

    /// The budget of one owner, and what is left of it.
    ///
    /// # Errors
    /// When there is no such owner in the workspace.
    pub async fn budget(&self, workspace: WorkspaceId, owner: Owner) -> Result<BudgetReport, EngineError> {
        let found = self.all_budgets(workspace).await?.into_iter().map(|(report, _)| report);
        let mut found = found.filter(|report| report.owner == owner);
        found.next().ok_or_else(|| EngineError::not_found(owner.word(), subject(owner)))
    }

    async fn spent(
        &self,
        workspace: WorkspaceId,
        owner: Owner,
        name: Option<String>,
        budget: Budget,
    ) -> Result<BudgetReport, EngineError> {
        let (now, zone) = (self.env().now(), self.zone(workspace).await?);
        let of = async |period: Period| -> Result<Spent, EngineError> {
            let purse = self.store().purse(&owner.purse(period, &period.name(now, &zone))).await?;
            let limit = budget.of(period).map(|limit| limit + purse.raised);
            Ok(Spent { spent: purse.spent, limit, until: period.end(now, &zone) })
        };
        let (day, month) = (of(Period::Day).await?, of(Period::Month).await?);
        Ok(BudgetReport { owner, name, budget, day, month })
    }

    /// Says what a workspace, a person or a key may spend from now on; counts for the next model call of every run.
    ///
    /// # Errors
    /// When there is no such owner, or the budget cannot be kept.
    pub async fn save_budget(
        &self,
        workspace: WorkspaceId,
        by: UserId,
        owner: Owner,
        budget: &Budget,
    ) -> Result<(), EngineError> {
        budget.check().map_err(|why| EngineError::Invalid(why.to_owned()))?;
        if budget.run_usd.is_some() || budget.cheaper_model.is_some() {
            return Err(EngineError::Invalid("run_usd, soft_usd and cheaper_model belong to agents".to_owned()));
        }
        self.budget(workspace, owner).await?;
        let (kind, subject) = stored_as(owner).ok_or_else(in_its_configuration)?;
        let body = serde_json::to_string(budget).map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let about = format!("budget of {kind} {subject}");
        let kind = kind.to_owned();
        let row = BudgetRow { workspace, kind, subject, body: body.clone(), saved_at: self.env().now() };
        self.store().save_budget(&row).await?;
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), about).with("budget", body);
        self.audit(AuditLog::Workspace(workspace), act).await.map(drop)
    }

    /// Takes the limits of a workspace, a person or a key away.
    ///
    /// # Errors
    /// When there are none.
    pub async fn remove_budget(&self, workspace: WorkspaceId, by: UserId, owner: Owner) -> Result<(), EngineError> {
        let (kind, subject) = stored_as(owner).ok_or_else(in_its_configuration)?;
        if !self.store().remove_budget(workspace, kind, &subject).await? {
            return Err(EngineError::not_found("budget", format!("{kind} {subject}")));
        }
        let act = Act::new(Deed::SettingChanged, Some(Actor::User(by)), format!("no budget of {kind} {subject}"));
        self.audit(AuditLog::Workspace(workspace), act).await.map(drop)
    }
}

fn in_its_configuration() -> EngineError {
    EngineError::Invalid("an agent's budget is part of its configuration".to_owned())
}

fn subject(owner: Owner) -> String {
    match owner {
        Owner::Agent(id) => id.to_string(),
        Owner::Person(_, id) => id.to_string(),
        Owner::Workspace(id) => id.to_string(),
        Owner::Key(id) => id.to_string(),
    }
}

/// The stored budget of an owner; no limit where none is stored.
pub(crate) fn read(rows: &[BudgetRow], owner: Owner) -> Result<Budget, EngineError> {
    let Some((kind, subject)) = stored_as(owner) else { return Ok(Budget::default()) };
    let row = rows.iter().find(|row| row.kind == kind && row.subject == subject);
    row.map_or(Ok(Budget::default()), |row| serde_json::from_str(&row.body))
        .map_err(|bad| EngineError::Invalid(format!("the stored budget of {kind} `{subject}` cannot be read: {bad}")))
}
