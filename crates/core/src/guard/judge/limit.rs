//! Where a call stands in its turn and run: how many there may be (T6). Asked before anything else about the call.

use super::Verdict;
use crate::limits::TOOL_CALLS_CEILING;

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Calls of the turn before it.
    pub index: usize,
    /// Calls a turn holds.
    pub per_turn: usize,
    /// Whether the model ran out of output while it wrote it.
    pub cut_off: bool,
    /// Calls the run has spent. A refused call spends nothing.
    pub spent: usize,
    /// Calls the run may spend.
    pub most: usize,
}

/// A reason to refuse a call for where it stands.
#[must_use]
pub fn over_limit(place: &Place) -> Option<Verdict> {
    if place.index >= place.per_turn {
        let reason = format!("A turn holds at most {} calls.", place.per_turn);
        return Some(Verdict::deny("calls_per_turn", reason, None));
    }
    if place.cut_off {
        return Some(Verdict::deny("cut_off", "The model ran out of output tokens while it wrote this call.", None));
    }
    if place.spent >= place.most {
        let reason = format!("The run has used up its {} tool calls.", place.most);
        let grant = (place.most < TOOL_CALLS_CEILING as usize).then(|| format!("max_tool_calls: {}", place.most + 1));
        return Some(Verdict::deny("max_tool_calls", reason, grant));
    }
    None
}
