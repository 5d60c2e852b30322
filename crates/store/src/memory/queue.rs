//! Nodes, claims and what is due, in memory.

use adjutant_core::id::{NodeId, RunId};
use adjutant_core::limits::LEASE;
use adjutant_core::time::Time;

use super::{Memory, State};
use crate::StoreError;
use crate::row::{Change, Claim, RunRow};

impl Memory {
    pub(crate) fn claim(&self, node: NodeId, now: Time, limit: u32) -> Result<Vec<Claim>, StoreError> {
        if limit == 0 || self.next_due()?.is_none_or(|due| due > now) {
            return Ok(Vec::new());
        }
        let mut state = self.state();
        state.assert_alive(node, self.now())?;
        state.reap(self.now());
        let free = state.runs.values().filter(|row| row.owner.is_none());
        let mut due: Vec<_> = free.filter_map(|row| row.state.due.map(|due| (due, row.id))).collect();
        due.retain(|(due, _)| *due <= now);
        due.sort_unstable();
        due.truncate(limit as usize);
        let runs = due.into_iter().filter_map(|(_, run)| state.runs.get_mut(&run).map(|row| take(row, node)));
        Ok(runs.collect())
    }

    pub(crate) fn claim_run(&self, node: NodeId, now: Time, run: RunId) -> Result<Option<Claim>, StoreError> {
        let mut state = self.state();
        state.assert_alive(node, self.now())?;
        state.reap(self.now());
        let row = state.runs.get_mut(&run);
        let row = row.filter(|row| row.owner.is_none() && row.state.due.is_some_and(|due| due <= now));
        Ok(row.map(|row| take(row, node)))
    }

    pub(crate) fn next_due(&self) -> Result<Option<Time>, StoreError> {
        let (state, now) = (self.state(), self.now());
        let free = state.runs.values().filter(|row| row.owner.is_none_or(|node| !state.alive(node, now)));
        Ok(free.filter_map(|row| row.state.due).min())
    }

    pub(crate) fn owned(&self, node: NodeId) -> Result<Vec<Claim>, StoreError> {
        let state = self.state();
        let mine = state.runs.values().filter(|row| row.owner == Some(node));
        Ok(mine.map(|row| Claim { run: row.id, workspace: row.workspace, epoch: row.epoch }).collect())
    }

    pub(crate) fn release(&self, node: NodeId, run: RunId, epoch: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let row = state.runs.get_mut(&run).filter(|row| row.owner == Some(node) && row.epoch == epoch);
        if let Some(row) = row {
            row.owner = None;
            self.tell(Change::Due);
        }
        Ok(())
    }

    pub(crate) fn join(&self, node: NodeId) -> Result<(), StoreError> {
        let expires = self.now().after(LEASE);
        let mut state = self.state();
        state.nodes.insert(node, expires);
        state.give_back(node);
        Ok(())
    }

    pub(crate) fn renew(&self, node: NodeId) -> Result<bool, StoreError> {
        let expires = self.now().after(LEASE);
        let mut state = self.state();
        Ok(state.nodes.get_mut(&node).map(|lease| *lease = expires).is_some())
    }

    pub(crate) fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let mut state = self.state();
        state.nodes.remove(&node);
        if state.give_back(node) {
            self.tell(Change::Due);
        }
        Ok(())
    }

    pub(crate) fn forget_nodes(&self) -> Result<(), StoreError> {
        let mut state = self.state();
        state.nodes.clear();
        for row in state.runs.values_mut() {
            row.owner = None;
        }
        Ok(())
    }
}

fn take(row: &mut RunRow, node: NodeId) -> Claim {
    row.owner = Some(node);
    row.epoch += 1;
    Claim { run: row.id, workspace: row.workspace, epoch: row.epoch }
}

impl State {
    fn alive(&self, node: NodeId, now: Time) -> bool {
        self.nodes.get(&node).is_some_and(|expires| *expires > now)
    }

    fn assert_alive(&self, node: NodeId, now: Time) -> Result<(), StoreError> {
        if self.alive(node, now) { Ok(()) } else { Err(StoreError::Stale { fenced: true }) }
    }

    fn reap(&mut self, now: Time) {
        let dead: Vec<_> = self.nodes.iter().filter(|(_, expires)| **expires <= now).map(|(node, _)| *node).collect();
        for node in dead {
            self.nodes.remove(&node);
            self.give_back(node);
        }
    }

    fn give_back(&mut self, node: NodeId) -> bool {
        let mut any = false;
        for row in self.runs.values_mut().filter(|row| row.owner == Some(node)) {
            row.owner = None;
            any = true;
        }
        any
    }
}
