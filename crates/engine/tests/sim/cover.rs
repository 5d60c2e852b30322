//! How often each fault and outcome occurred: a simulation that never reaches the interesting paths proves nothing.

use std::collections::BTreeMap;
use std::fmt;

/// What every full run must have reached at least once.
pub(crate) const REQUIRED: &[&str] = &[
    "append fenced",
    "append lost a race",
    "taken over",
    "fault: append failed",
    "fault: append reply lost",
    "fault: append slow",
    "fault: append late",
    "fault: append delivered twice",
    "fault: disk full",
    "fault: call failed",
    "fault: call reply lost",
    "fault: notice lost",
    "fault: crash before a store call",
    "fault: crash after an append",
    "fault: crash in the model",
    "fault: crash in a tool",
    "fault: crash at any moment",
    "fault: node cut off",
    "fault: node frozen",
    "fault: clock jumped",
    "model: failed",
    "model: hung",
    "model: panicked",
    "model: parallel calls",
    "model: cut off",
    "tool: failed for now",
    "tool: hung",
    "tool: panicked",
    "tool: reply lost after the effect",
    "tool: effect came late",
    "tool: preparing went wrong",
    "tool: probing went wrong",
    "log: retry of a model call",
    "log: model call lost in a crash",
    "log: retry of a tool call",
    "log: call in doubt",
    "log: doubt resolved: happened",
    "log: doubt resolved: run",
    "log: doubt resolved: abandon",
    "log: approved",
    "log: edited",
    "log: answered instead",
    "log: rejected",
    "log: stopped at an approval",
    "log: expired",
    "log: asked again",
    "log: denied",
    "log: cancel during a model call",
    "log: cancel during a tool call",
    "log: cancel while waiting",
    "log: paused",
    "log: resumed",
    "end: completed",
    "end: failed",
    "end: cancelled",
    "people: removed the agent",
    "people: told that the agent is gone",
    "waits: for an approval",
    "waits: in doubt",
    "waits: paused",
];

#[derive(Debug, Default)]
pub(crate) struct Cover(BTreeMap<&'static str, u64>);

impl Cover {
    pub(crate) fn hit(&mut self, what: &'static str) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (what, count) in other.0 {
            *self.0.entry(what).or_default() += count;
        }
    }

    /// What should have occurred and did not.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        REQUIRED.iter().copied().filter(|what| !self.0.contains_key(what)).collect()
    }
}

impl fmt::Display for Cover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(what, count)| writeln!(f, "{count:>9}  {what}"))
    }
}
