//! Turning a recorded start into the right to run: the only place where a permit is made.

use super::State;
use crate::guard::arguments;
use crate::guard::permit::{Allowance, Permit};
use crate::id::CallId;

/// There is no recorded, unspent allowance for a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no recorded allowance for call {0}")]
pub struct NoPermit(pub CallId);

impl State {
    /// Turns a recorded start into the right to run. `durable` is the last sequence number that the store has confirmed:
    /// a start that is not yet in the log gives nothing (rules G1, L1). Which starts were used is known to this state only,
    /// not to the log: whoever reads a log afresh recovers the calls that were started before, and announces a new attempt.
    ///
    /// # Errors
    /// When the call was not started, has ended, is in doubt, or its latest start was already used; when the run was
    /// cancelled; or when the arguments were not loaded.
    pub fn take_permit(&mut self, id: &CallId, durable: u64) -> Result<Permit, NoPermit> {
        let missing = || NoPermit(id.clone());
        let run = self.start.as_ref().map(|start| start.run).ok_or_else(missing)?;
        if self.seq > durable || self.end.is_some() || self.cancel.is_some() {
            return Err(missing());
        }
        let call = self.calls_mut().find(|call| call.id == *id).ok_or_else(missing)?;
        let started = call.started.as_ref().ok_or_else(missing)?;
        if call.ended.is_some() || call.doubt.is_some() || call.permits >= started.attempt {
            return Err(missing());
        }
        let arguments = arguments::parse(&started.arguments.text()).map_err(|_| missing())?;
        call.permits = started.attempt;
        Ok(Permit::new(Allowance {
            run,
            call: id.clone(),
            tool: started.tool.clone(),
            arguments,
            attempt: started.attempt,
            target: started.target.clone(),
            intended: started.intended.clone(),
        }))
    }
}
