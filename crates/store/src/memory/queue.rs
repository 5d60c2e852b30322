//! Nodes, claims and what is due, in memory.

use std::collections::BTreeMap;

use adjutant_core::id::{NodeId, RunId, WorkspaceId};
use adjutant_core::limits::LEASE;
use adjutant_core::time::Time;

use super::{Memory, State};
use crate::StoreError;
use crate::queue::{AT_A_TIME, shares};
use crate::row::{Change, Claim, Claimed, RunRow};

impl Memory {
    pub(crate) fn claim_due(&self, node: NodeId, now: Time, free: u32) -> Result<Claimed, StoreError> {
        if free == 0 {
            return Ok(Claimed::Runs(Vec::new()));
        }
        let due = self.next_due()?;
        if due.is_none_or(|due| due > now) {
            return Ok(Claimed::NoneBefore(due));
        }
        let mut state = self.state();
        state.assert_alive(node, self.now())?;
        state.reap(self.now());
        let mut waiting = state.waiting(now);
        let (mut picked, mut left) = (Vec::new(), free);
        while !waiting.is_empty() {
            let driven = |tenant: &WorkspaceId| {
                let taken = picked.iter().filter(|(_, _, of)| of == tenant).count();
                let owned = state.runs.values().filter(|row| row.owner == Some(node) && row.workspace == *tenant);
                u32::try_from(owned.count() + taken).unwrap_or(u32::MAX)
            };
            let most = AT_A_TIME.saturating_sub(picked.len());
            let shares = shares(left, most, &waiting.keys().map(driven).collect::<Vec<_>>());
            let before = waiting.len();
            for ((workspace, due), share) in waiting.iter_mut().zip(shares) {
                let take = due.len().min(share as usize);
                left -= u32::try_from(take).unwrap_or(left);
                let taken = due.drain(..take);
                picked.extend(taken.map(|(due, run)| (due, run, *workspace)));
            }
            waiting.retain(|_, due| !due.is_empty());
            if waiting.len() == before {
                break;
            }
        }
        picked.sort_unstable();
        let runs = picked.into_iter().filter_map(|(_, run, _)| state.runs.get_mut(&run).map(|row| take(row, node)));
        Ok(Claimed::Runs(runs.collect()))
    }

    pub(crate) fn claim_run(&self, node: NodeId, now: Time, run: RunId) -> Result<Option<Claim>, StoreError> {
        let mut state = self.state();
        state.assert_alive(node, self.now())?;
        state.reap(self.now());
        let beyond = state.beyond.contains(&run);
        let row = state.runs.get_mut(&run);
        let row = row.filter(|row| !beyond && row.owner.is_none() && row.state.due.is_some_and(|due| due <= now));
        Ok(row.map(|row| take(row, node)))
    }

    pub(crate) fn next_due(&self) -> Result<Option<Time>, StoreError> {
        let (state, now) = (self.state(), self.now());
        let free = state.runs.values().filter(|row| row.owner.is_none_or(|node| !state.alive(node, now)));
        let free = free.filter(|row| !state.beyond.contains(&row.id));
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

    pub(crate) fn leave_to_newer(&self, node: NodeId, run: RunId, epoch: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.runs.get(&run).is_some_and(|row| row.owner == Some(node) && row.epoch == epoch) {
            state.beyond.insert(run);
        }
        drop(state);
        self.release(node, run, epoch)
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
    /// What may be claimed, by workspace, the oldest due first.
    fn waiting(&self, now: Time) -> BTreeMap<WorkspaceId, Vec<(Time, RunId)>> {
        let mut waiting: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for row in self.runs.values().filter(|row| row.owner.is_none() && !self.beyond.contains(&row.id)) {
            if let Some(due) = row.state.due.filter(|due| *due <= now) {
                waiting.entry(row.workspace).or_default().push((due, row.id));
            }
        }
        waiting.values_mut().for_each(|due| due.sort_unstable());
        let mut driven: BTreeMap<_, u32> = BTreeMap::new();
        for row in self.runs.values().filter(|row| row.owner.is_some()) {
            *driven.entry((row.workspace, row.agent)).or_default() += 1;
        }
        for due in waiting.values_mut() {
            due.retain(|(_, run)| {
                let driven = driven.entry((self.runs[run].workspace, self.runs[run].agent)).or_default();
                let fits = self.places.get(run).is_none_or(|places| *driven < *places);
                *driven += u32::from(fits);
                fits
            });
        }
        waiting.retain(|_, due| !due.is_empty());
        waiting
    }

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
