//! Model calls, purses and budgets in memory. Keys are kept in databases only.

use std::collections::BTreeSet;

use adjutant_core::budget::Purse;
use adjutant_core::id::WorkspaceId;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use super::{Memory, State};
use crate::StoreError;
use crate::provider_keys::OpenKey;
use crate::row::{BudgetRow, ModelCallRow, ProviderKeyRow, UsageFilter, UsageRow};
use crate::usage::SERVED;

const QUARTER_MS: i64 = 15 * 60 * 1000;

impl Memory {
    pub(crate) fn purse(&self, key: &str) -> Result<Purse, StoreError> {
        Ok(self.state().purses.get(key).copied().unwrap_or_default())
    }

    pub(crate) fn save_budget(&self, row: &BudgetRow) -> Result<(), StoreError> {
        let mut state = self.state();
        state.assert_workspace(row.workspace)?;
        state.budgets.insert((row.workspace, row.kind.clone(), row.subject.clone()), row.clone());
        Ok(())
    }

    pub(crate) fn budgets(&self, workspace: WorkspaceId) -> Result<Vec<BudgetRow>, StoreError> {
        Ok(self.state().budgets.values().filter(|row| row.workspace == workspace).cloned().collect())
    }

    pub(crate) fn remove_budget(&self, workspace: WorkspaceId, kind: &str, subject: &str) -> Result<bool, StoreError> {
        Ok(self.state().budgets.remove(&(workspace, kind.to_owned(), subject.to_owned())).is_some())
    }

    pub(crate) fn model_calls(
        &self,
        workspace: WorkspaceId,
        filter: &UsageFilter,
        skip: u64,
        limit: u32,
    ) -> Result<Vec<ModelCallRow>, StoreError> {
        let state = self.state();
        let wanted = |row: &&ModelCallRow| row.workspace == workspace && matches(filter, row);
        let mut rows: Vec<_> = state.model_calls.values().filter(wanted).cloned().collect();
        rows.sort_by_key(|row| (row.at, row.log, row.turn, row.attempt));
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        Ok(rows.into_iter().skip(skip).take(limit as usize).collect())
    }

    pub(crate) fn served_as(&self, workspace: WorkspaceId, model: &str) -> Result<Vec<String>, StoreError> {
        let state = self.state();
        let asked = state.model_calls.values().filter(|row| row.workspace == workspace && row.model == model);
        let served: BTreeSet<_> = asked.filter_map(|row| row.served.clone()).collect();
        Ok(served.into_iter().take(SERVED).collect())
    }

    pub(crate) fn rebuild_model_calls(&self, log: StreamId, rows: Vec<ModelCallRow>) -> Result<(), StoreError> {
        self.state().replace_model_calls(log, rows);
        Ok(())
    }

    pub(crate) fn usage(&self, workspace: WorkspaceId, filter: &UsageFilter) -> Result<Vec<UsageRow>, StoreError> {
        let mut sums: std::collections::BTreeMap<_, UsageRow> = std::collections::BTreeMap::new();
        for call in self.model_calls(workspace, filter, 0, u32::MAX)? {
            let at = Time::from_millis(call.at.millis().div_euclid(QUARTER_MS) * QUARTER_MS);
            let failed = u64::from(call.has_failed());
            let (agent, person, key, model) = (call.agent, call.person, call.key, call.model);
            let place = (
                at,
                agent.map(|agent| agent.to_string()),
                person.to_string(),
                model.clone(),
                key.map(|key| key.to_string()),
            );
            let sum = sums.entry(place).or_insert_with(|| UsageRow {
                agent,
                person,
                key,
                model,
                at,
                calls: 0,
                failed: 0,
                unpriced: 0,
                estimated: 0,
                usage: adjutant_core::money::TokenUsage::default(),
                cost: MicroUsd::ZERO,
            });
            sum.calls += 1;
            sum.failed += failed;
            sum.unpriced += u64::from(call.cost.is_none());
            sum.estimated += u64::from(call.estimated);
            sum.usage += call.usage;
            sum.cost += call.cost.unwrap_or_default();
        }
        Ok(sums.into_values().collect())
    }

    pub(crate) fn no_provider_keys(&self) -> Result<Vec<ProviderKeyRow>, StoreError> {
        drop(self.state());
        Ok(Vec::new())
    }

    pub(crate) fn no_provider_key(&self) -> Result<Option<OpenKey>, StoreError> {
        drop(self.state());
        Ok(None)
    }
}

impl State {
    pub(super) fn replace_model_calls(&mut self, log: StreamId, rows: Vec<ModelCallRow>) {
        self.model_calls.retain(|key, _| key.0 != log);
        self.model_calls.extend(rows.into_iter().map(|row| ((row.log, row.turn, row.attempt), row)));
    }
}

fn matches(filter: &UsageFilter, row: &ModelCallRow) -> bool {
    filter.from.is_none_or(|from| row.at >= from)
        && filter.to.is_none_or(|to| row.at < to)
        && filter.run.is_none_or(|run| row.log == StreamId::Run(run))
        && filter.agent.is_none_or(|agent| row.agent == Some(agent))
        && filter.person.is_none_or(|person| row.person == person)
        && filter.key.is_none_or(|key| row.key == Some(key))
        && filter.model.as_ref().is_none_or(|model| row.model == *model)
}
