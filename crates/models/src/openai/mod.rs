//! The chat completions protocol, spoken by the original and by most local servers.

mod provider;

use std::sync::Arc;

use adjutant_core::message::{ModelAnswer, ModelRequest};
use async_trait::async_trait;

pub(crate) use self::provider::Provider;
pub use self::provider::Timeouts;
use crate::{DeltaSink, Model, ModelError};

/// One model of a provider.
pub(crate) struct OpenAi {
    #[allow(dead_code, reason = "the wire comes with the next change")]
    provider: Arc<Provider>,
}

impl OpenAi {
    pub(crate) fn new(provider: Arc<Provider>, _client: reqwest::Client, _model: String) -> Self {
        Self { provider }
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn answer(&self, _request: &ModelRequest, _deltas: &DeltaSink) -> Result<ModelAnswer, ModelError> {
        Err(ModelError::broken("this build cannot speak to providers yet"))
    }
}
