//! The outside world: what tools change in it stays, whatever becomes of the nodes. It remembers every effect.

use std::collections::BTreeMap;

use adjutant_core::content::Hash;
use adjutant_core::guard::permit::idempotency_key;
use adjutant_core::id::{CallId, RunId};
use adjutant_store::row::RunFilter;
use serde_json::Value;

use crate::scene::{Scene, lock};

/// One effect in the outside world.
#[derive(Debug, Clone)]
pub(crate) struct Landing {
    pub(crate) tool: String,
    pub(crate) key: Hash,
    pub(crate) run: RunId,
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    pub(crate) arguments: Value,
    /// The last event of the run that was durable then.
    pub(crate) durable: u64,
}

/// A call as a tool sees it.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) tool: String,
    pub(crate) key: Hash,
    pub(crate) call: CallId,
    pub(crate) attempt: u32,
    pub(crate) arguments: Value,
}

/// Everything there is outside.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    files: BTreeMap<String, String>,
    pub(crate) landings: Vec<Landing>,
}

impl Outside {
    /// What a file holds, as approvals and probes see it.
    pub(crate) fn state(&self, path: &str) -> Option<Hash> {
        self.files.get(path).map(|text| Hash::of(text.as_bytes()))
    }

    pub(crate) fn put(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }
}

impl Scene {
    /// The run a call belongs to, and where its log durably ends.
    pub(crate) async fn whose(&self, order: &Order) -> Option<(RunId, u64)> {
        let filter = RunFilter { superseded: true, ..RunFilter::default() };
        let rows = self.store.runs(self.tenant().workspace, &filter, 100).await.unwrap_or_default();
        let row = rows.iter().find(|row| idempotency_key(row.id, &order.call) == order.key);
        row.map(|row| (row.id, row.head.seq))
    }

    /// An effect takes place.
    pub(crate) async fn land(&self, order: Order) {
        let Some((run, durable)) = self.whose(&order).await else {
            return self.broken(format!("{} of {} took place for no run we know", order.tool, order.call));
        };
        self.note("world", || format!("{} of {run} {} attempt {}", order.tool, order.call, order.attempt));
        let Order { tool, key, call, attempt, arguments } = order;
        lock(&self.outside).landings.push(Landing { tool, key, run, call, attempt, arguments, durable });
    }
}
