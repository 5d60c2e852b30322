//! A right to run one call, once. There is no other way to a tool: runners take a [`Permit`] by value.

use serde_json::Value;

use crate::content::Hash;
use crate::id::{CallId, RunId};
use crate::tool::Target;

/// The right to run one recorded call. Made only by [`crate::run::state::State::take_permit`] from an allowance that is
/// already in the log; not `Clone`, spent by running.
#[derive(Debug)]
pub struct Permit {
    call: CallId,
    tool: String,
    arguments: Value,
    attempt: u32,
    key: Hash,
    target: Target,
    intended: Option<Target>,
}

/// What a permit is made of; only this crate can turn it into one.
#[derive(Debug)]
pub(crate) struct Allowance {
    pub(crate) run: RunId,
    pub(crate) call: CallId,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) attempt: u32,
    pub(crate) target: Target,
    pub(crate) intended: Option<Target>,
}

impl Permit {
    pub(crate) fn new(allowance: Allowance) -> Self {
        let key = idempotency_key(allowance.run, &allowance.call);
        let Allowance { run: _, call, tool, arguments, attempt, target, intended } = allowance;
        Self { call, tool, arguments, attempt, key, target, intended }
    }

    /// A permit out of thin air, for the tests of tools.
    #[cfg(feature = "test-permit")]
    #[must_use]
    pub fn for_test(tool: &str, arguments: Value, target: Target) -> Self {
        let run = RunId::new(crate::time::Time::from_millis(0), [0; 10]);
        let call = CallId::new(crate::time::Time::from_millis(0), [0; 10]);
        let tool = tool.to_owned();
        Self::new(Allowance { run, call, tool, arguments, attempt: 1, target, intended: None })
    }

    /// The call.
    #[must_use]
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments that were judged.
    #[must_use]
    pub const fn arguments(&self) -> &Value {
        &self.arguments
    }

    /// Which attempt this is, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The idempotency key: the same for every attempt at this call.
    #[must_use]
    pub const fn key(&self) -> Hash {
        self.key
    }

    /// The state of the target when the call was judged.
    #[must_use]
    pub const fn target(&self) -> &Target {
        &self.target
    }

    /// The state it was meant to leave behind.
    #[must_use]
    pub const fn intended(&self) -> Option<&Target> {
        self.intended.as_ref()
    }
}

/// The key under which a call is known to the outside (rule D5).
#[must_use]
pub fn idempotency_key(run: RunId, call: &CallId) -> Hash {
    Hash::of(format!("{run}/{call}").as_bytes())
}
