//! What is heard of an answer while it comes. It outlives the call, so that an answer that breaks off is recorded with the model that
//! gave it and the tokens it took.

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::money::TokenUsage;

/// Takes notes. Cheap to clone; clones note the same.
#[derive(Debug, Clone, Default)]
pub struct Notes(Arc<Mutex<Noted>>);

/// What was noted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Noted {
    /// The model that answers, `provider/model`.
    pub served: Option<String>,
    /// What the provider counted last.
    pub usage: Option<TokenUsage>,
    /// All that the model wrote, in the order in which it came: only for counting it.
    pub text: String,
}

impl Notes {
    /// What was noted; nothing is left.
    #[must_use]
    pub fn take(&self) -> Noted {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn served_by(&self, model: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).served = Some(model.to_owned());
    }

    pub(crate) fn counted(&self, usage: TokenUsage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).usage = Some(usage);
    }

    pub(crate) fn came(&self, piece: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).text.push_str(piece);
    }
}
