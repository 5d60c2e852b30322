//! A provider's address, key and patience, checked when the configuration is loaded.

use std::fmt;
use std::time::Duration;

use adjutant_core::limits::{MODEL_SILENCE, MODEL_TIMEOUT};
use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::ModelError;

/// Where the protocol comes from; used when a provider has a key and no address.
const WELL_KNOWN: &str = "https://api.openai.com/v1";

/// How long to wait for what. Slow local models may need more than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the whole answer.
    pub total: Duration,
    /// For its first byte.
    pub first_byte: Duration,
    /// Between two pieces.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { total: MODEL_TIMEOUT, first_byte: MODEL_SILENCE, idle: MODEL_SILENCE }
    }
}

/// How a provider wants the limit of output tokens to be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `max_completion_tokens`: the original, whose newer models refuse the old name.
    Original,
    /// `max_tokens`: everyone else, of whom many do not know the new one.
    Compatible,
}

/// A provider.
pub(crate) struct Provider {
    pub(super) name: String,
    pub(super) endpoint: Url,
    pub(super) dialect: Dialect,
    pub(super) timeouts: Timeouts,
    key: Option<SecretString>,
}

impl Provider {
    /// Checks the configuration of a provider.
    pub(crate) fn new(
        name: &str,
        base_url: Option<&str>,
        key: Option<SecretString>,
        timeouts: Timeouts,
    ) -> Result<Self, ModelError> {
        let broken = |why: &str| ModelError::broken(format!("provider `{name}`: {why}"));
        let base = match (base_url, &key) {
            (Some(base), _) => base,
            (None, Some(_)) => WELL_KNOWN,
            (None, None) => return Err(broken("it needs a base_url, or a key for the well-known address")),
        };
        let mut endpoint = Url::parse(base).map_err(|_| broken("its base_url is not an address"))?;
        if !matches!(endpoint.scheme(), "http" | "https") || !endpoint.has_host() {
            return Err(broken("its base_url has to begin with http:// or https://"));
        }
        if !endpoint.username().is_empty() || endpoint.password().is_some() {
            return Err(broken("its base_url holds a name or password; use api_key"));
        }
        endpoint.set_fragment(None);
        if let Ok(mut path) = endpoint.path_segments_mut() {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
        let original = endpoint.host_str() == Some("api.openai.com");
        let dialect = if original { Dialect::Original } else { Dialect::Compatible };
        let provider = Self { name: name.to_owned(), endpoint, dialect, timeouts, key };
        if provider.key.is_some() && provider.authorization().is_none() {
            return Err(broken("its key holds characters that no key has (a line break, perhaps)"));
        }
        Ok(provider)
    }

    /// The header that shows the key, if there is one.
    pub(super) fn authorization(&self) -> Option<HeaderValue> {
        let key = self.key.as_ref()?;
        let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret())).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// The text without the key, should a provider have sent it back.
    pub(super) fn redact(&self, text: &str) -> String {
        match &self.key {
            Some(key) if !key.expose_secret().is_empty() => text.replace(key.expose_secret(), "[REDACTED:credential]"),
            Some(_) | None => text.to_owned(),
        }
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("host", &self.endpoint.host_str())
            .finish_non_exhaustive()
    }
}
