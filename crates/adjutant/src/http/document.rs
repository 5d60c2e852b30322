//! The description of the API, made once and shared.

use std::sync::Arc;

use serde_json::Value;

/// The description as JSON.
#[derive(Debug, Clone)]
pub(super) struct Document(Arc<Value>);

impl Document {
    pub(super) fn new(value: Value) -> Self {
        Self(Arc::new(value))
    }

    pub(super) fn value(&self) -> &Value {
        &self.0
    }
}
