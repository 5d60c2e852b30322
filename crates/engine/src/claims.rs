//! Which claims of runs somebody in this process answers for, so that one that the store counts and nobody has is found.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use adjutant_core::id::RunId;
use adjutant_store::row::Claim;

use crate::engine::{Engine, lock};

/// The claims that somebody here answers for, and whether the store may think that there are more: the reply to a claim can
/// be lost, and whoever drives a run can go away.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// How many answer for each, by run and epoch: one that was fenced, or that waits for a late reply, may still be on its
    /// way out when the next begins.
    held: Mutex<BTreeMap<(RunId, u64), usize>>,
    unsure: AtomicBool,
    /// The node is about to leave: what is under way comes to its next durable point, and nothing more is begun.
    leaving: AtomicBool,
}

impl Claims {
    /// Whether somebody answers for this very claim.
    pub(crate) fn is_held(&self, claim: Claim) -> bool {
        lock(&self.held).contains_key(&(claim.run, claim.epoch))
    }

    /// Whether somebody here answers for a run.
    pub(crate) fn drives(&self, run: RunId) -> bool {
        lock(&self.held).range((run, 0)..=(run, u64::MAX)).next().is_some()
    }

    /// From now on nothing is begun here.
    pub(crate) fn leave(&self) {
        self.leaving.store(true, Ordering::SeqCst);
    }

    /// Whoever works here next may begin something.
    pub(crate) fn stay(&self) {
        self.leaving.store(false, Ordering::SeqCst);
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::SeqCst)
    }

    /// The store may think that this node drives a run that nobody here drives.
    pub(crate) fn doubt(&self) {
        self.unsure.store(true, Ordering::Relaxed);
    }

    /// Whether that is so; asked once.
    pub(crate) fn take_doubt(&self) -> bool {
        self.unsure.swap(false, Ordering::Relaxed)
    }
}

/// Somebody answers for a claim while this lives.
#[derive(Debug)]
pub(crate) struct Holding {
    engine: Engine,
    held: (RunId, u64),
}

impl Drop for Holding {
    fn drop(&mut self) {
        let mut held = lock(&self.engine.claims().held);
        let left = held.get(&self.held).map_or(0, |count| count - 1);
        if left == 0 {
            held.remove(&self.held);
        } else {
            held.insert(self.held, left);
        }
    }
}

impl Engine {
    /// Answers for a claim until the guard is dropped.
    pub(crate) fn hold(&self, claim: Claim) -> Holding {
        let held = (claim.run, claim.epoch);
        *lock(&self.claims().held).entry(held).or_default() += 1;
        Holding { engine: self.clone(), held }
    }
}
