//! The credentials that are held here, kept ready to be taken out of whatever is recorded (rule R1): the keys of a workspace
//! and those of the operator. Which keys there are is asked of the store each time; their values are opened only when that
//! has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::guard::redact::Held;
use adjutant_core::id::{KeyId, WorkspaceId};
use adjutant_core::time::Time;

use crate::engine::Engine;
use crate::error::EngineError;

/// What was found to be held, by workspace; without one, what the operator holds.
#[derive(Default)]
pub(crate) struct HeldKeys(Mutex<HashMap<Option<WorkspaceId>, Known>>);

#[derive(Clone)]
struct Known {
    keys: Vec<(KeyId, Option<Time>)>,
    held: Arc<Held>,
}

impl Engine {
    /// What finds the credentials that are held for a workspace, or those of the operator alone.
    pub(crate) async fn held(&self, workspace: Option<WorkspaceId>) -> Result<Arc<Held>, EngineError> {
        let rows = match workspace {
            Some(workspace) => self.store().provider_keys(workspace).await?,
            None => Vec::new(),
        };
        let keys: Vec<_> = rows.iter().map(|row| (row.id, row.rotated_at)).collect();
        if let Some(known) = self.held_keys().get(workspace).filter(|known| known.keys == keys) {
            return Ok(known.held);
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
        self.held_keys().set(workspace, Known { keys, held: Arc::clone(&held) });
        Ok(held)
    }
}

impl HeldKeys {
    fn get(&self, workspace: Option<WorkspaceId>) -> Option<Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&workspace).cloned()
    }

    fn set(&self, workspace: Option<WorkspaceId>, known: Known) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(workspace, known);
    }
}
