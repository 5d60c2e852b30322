//! What is recorded of a content filter: where it found something, and what became of the text.

use serde::{Deserialize, Serialize};

use crate::guard::filter::{FilterPoint, Filtered};
use crate::id::CallId;
use crate::label::Labels;

/// A content filter changed, held back or labelled a text. The text that was is in no log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentFiltered {
    /// Where it looked.
    pub point: FilterPoint,
    /// The call whose text it was, if it was one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The entry that held all of it back, by its place in the filter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked: Option<usize>,
    /// The entries that took something out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub redacted: Vec<usize>,
    /// What it added to the run's labels.
    pub labels: Labels,
}

impl ContentFiltered {
    /// What there is to record of a look at a text; nothing where nothing came of it.
    #[must_use]
    pub fn of(point: FilterPoint, call: Option<CallId>, found: &Filtered<'_>) -> Option<Self> {
        let redacted: Vec<usize> = found.redacted.iter().copied().collect();
        let is_worth_it = found.blocked.is_some() || !redacted.is_empty() || found.labels != Labels::NONE;
        is_worth_it.then_some(Self { point, call, blocked: found.blocked, redacted, labels: found.labels })
    }
}
