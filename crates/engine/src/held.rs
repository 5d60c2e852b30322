//! The credentials that are held here, kept ready to be taken out of whatever is recorded (rule R1): those of the operator, and
//! the stored keys that could be used in what is recorded. Nobody else's: whoever may bring a key could otherwise bring a word
//! of others' work as one, and have it taken out of their files. Which keys there are is asked of the store each time; their
//! values are opened only when that has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use adjutant_core::guard::redact::Held;
use adjutant_core::id::{AgentId, KeyId, UserId, WorkspaceId};
use adjutant_core::run::state::State;
use adjutant_core::time::Time;
use adjutant_store::row::ProviderKeyRow;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::service::keys;

/// Kept finders at the most; there is one for each set of keys that is in use, and each holds their values.
const KEPT: usize = 32;

/// The stored keys that a finder looks for, each with the moment of its last change.
type Keys = Vec<(KeyId, Option<Time>)>;

/// What finds the values of a set of keys, and those of the operator.
#[derive(Default)]
pub(crate) struct HeldKeys(Mutex<HashMap<Keys, Arc<Held>>>);

/// Whose record something gets into.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Record {
    /// That of the instance.
    Instance,
    /// That of a workspace.
    Workspace(WorkspaceId),
    /// The log of a run of this agent for this person.
    Run(WorkspaceId, AgentId, UserId),
}

impl Record {
    /// The record that a run is; before its first event it is its workspace's.
    pub(crate) fn of_run(workspace: WorkspaceId, state: &State) -> Self {
        match &state.start {
            Some(start) => Self::Run(workspace, start.agent, start.initiator),
            None => Self::Workspace(workspace),
        }
    }

    /// What somebody does in a workspace beside runs gets into the record of the workspace.
    pub(crate) const fn beside_runs(workspace: Option<WorkspaceId>) -> Self {
        match workspace {
            Some(workspace) => Self::Workspace(workspace),
            None => Self::Instance,
        }
    }
}

impl Engine {
    /// What finds the credentials that a record must not hold.
    pub(crate) async fn held(&self, record: Record) -> Result<Arc<Held>, EngineError> {
        let rows = match record {
            Record::Instance => Vec::new(),
            Record::Workspace(workspace) | Record::Run(workspace, ..) => self.store().provider_keys(workspace).await?,
        };
        let looked_for = |row: &ProviderKeyRow| match record {
            Record::Instance | Record::Workspace(_) => keys::is_everybodys(row),
            Record::Run(_, agent, person) => keys::is_usable(row, Some(agent), person),
        };
        let rows: Vec<_> = rows.into_iter().filter(looked_for).collect();
        let keys: Keys = rows.iter().map(|row| (row.id, row.rotated_at)).collect();
        if let Some(held) = self.held_keys().get(&keys) {
            return Ok(held);
        }
        let mut opened = Vec::new();
        for row in &rows {
            match self.store().provider_key(row.workspace, row.id).await {
                Ok(key) => opened.extend(key.map(|(_, value)| value)),
                // What does not open here is sent nowhere from here either.
                Err(error) => tracing::warn!(key = %row.id, %error, "a key cannot be looked for in what is recorded"),
            }
        }
        let mut operators = Vec::new();
        self.models().credentials(&mut |value| operators.push(value.to_owned()));
        let brought = opened.iter().filter_map(|value| std::str::from_utf8(value).ok());
        let held = Held::new(brought.chain(operators.iter().map(String::as_str)))
            .map_err(|bad| EngineError::Invalid(bad.to_string()))?;
        let held = Arc::new(held);
        self.held_keys().set(keys, Arc::clone(&held));
        Ok(held)
    }
}

impl HeldKeys {
    fn get(&self, keys: &Keys) -> Option<Arc<Held>> {
        self.kept().get(keys).cloned()
    }

    /// Lets go of the values of a key that was rotated or removed.
    pub(crate) fn forget(&self, key: KeyId) {
        self.kept().retain(|keys, _| keys.iter().all(|(known, _)| *known != key));
    }

    fn set(&self, keys: Keys, held: Arc<Held>) {
        let mut kept = self.kept();
        // Another node may have rotated one of them: what it was before is looked for no more.
        let before = |(id, at): &(KeyId, Option<Time>)| keys.iter().any(|(known, now)| known == id && now != at);
        kept.retain(|others, _| !others.iter().any(before));
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(keys, held);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Keys, Arc<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(keys: &HeldKeys) -> Vec<Keys> {
        let mut kept: Vec<_> = keys.kept().keys().cloned().collect();
        kept.sort();
        kept
    }

    #[test]
    fn the_value_of_a_key_that_was_rotated_or_removed_is_let_go_of() {
        let key = |number: u8| KeyId::new(Time::from_millis(1), [number; 10]);
        let (one, two, now) = (key(1), key(2), Some(Time::from_millis(5)));
        let keys = HeldKeys::default();
        let set = |set: &[(KeyId, Option<Time>)]| keys.set(set.to_vec(), Arc::default());
        set(&[(one, None)]);
        set(&[(one, None), (two, None)]);
        set(&[(two, None)]);
        assert_eq!(kept(&keys).len(), 3);
        set(&[(one, now)]);
        assert_eq!(kept(&keys), [vec![(one, now)], vec![(two, None)]], "each set with the value it had before is gone");
        keys.forget(two);
        assert_eq!(kept(&keys), [vec![(one, now)]]);
    }

    #[test]
    fn no_more_finders_are_kept_than_a_few() {
        let keys = HeldKeys::default();
        for number in 0..=u8::try_from(KEPT).unwrap() {
            keys.set(vec![(KeyId::new(Time::from_millis(1), [number; 10]), None)], Arc::default());
            assert!(kept(&keys).len() <= KEPT);
        }
    }
}
