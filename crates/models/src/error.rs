//! Why a model did not answer: one variant per reaction. What is displayed is made of our own words, numbers and short
//! codes only, so that it can be shown to any client: never the prompt, never a key, never a provider's free text.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::content::Hash;

/// A provider's own words, for the operator's log. They may quote the request, so they are neither displayed nor
/// debugged: who wants them asks for them by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Bytes kept of what a provider said: enough for its first sentences.
    const BYTES: usize = 1024;

    /// Keeps the beginning of a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let end = text.floor_char_boundary(Self::BYTES);
        Self(text[..end].to_owned())
    }

    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0.len())
    }
}

/// Why a model did not answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ModelError {
    /// Too many requests: wait, then try again.
    #[error("the provider limits how often it may be called{}", shown_status(*.status))]
    RateLimited {
        /// How long the provider wants us to wait.
        retry_after: Option<Duration>,
        /// The HTTP status.
        status: Option<u16>,
    },
    /// The provider is in trouble: wait, then try again.
    #[error("the provider is overloaded or failing{}", shown_status(*.status))]
    Overloaded {
        /// How long the provider wants us to wait.
        retry_after: Option<Duration>,
        /// The HTTP status.
        status: Option<u16>,
    },
    /// It stayed silent for too long, or took too long in all: try again.
    #[error("the provider did not {what} within {} s", .limit.as_secs())]
    Timeout {
        /// What did not happen.
        what: &'static str,
        /// How long we waited.
        limit: Duration,
    },
    /// The provider could not be reached: try again.
    #[error("the provider cannot be reached: {reason}")]
    Network {
        /// What went wrong, in our words.
        reason: &'static str,
        /// The client's error, its address removed.
        #[source]
        source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    },
    /// The answer broke off, so what came of it must not be used: try again.
    #[error("the answer broke off: {reason}")]
    Truncated {
        /// How, in our words.
        reason: &'static str,
    },
    /// The key is missing, wrong, or may not do this: a person has to act.
    #[error("the provider does not accept the key{}", shown_status(*.status))]
    Unauthorized {
        /// The HTTP status.
        status: Option<u16>,
        /// The provider's words.
        detail: Detail,
    },
    /// The account has no money left: a person has to act.
    #[error("the provider's account has no credit left{}", shown_status(*.status))]
    NoCredit {
        /// The HTTP status.
        status: Option<u16>,
    },
    /// There is no such provider or model: choose another.
    #[error("model `{model}` is not known{hint}")]
    UnknownModel {
        /// What was asked for.
        model: String,
        /// What there is instead, beginning with punctuation.
        hint: String,
    },
    /// The request is longer than the model's window: compact and try again.
    #[error("the conversation is longer than the model's window{}", shown_status(*.status))]
    ContextOverflow {
        /// The HTTP status.
        status: Option<u16>,
        /// The provider's words.
        detail: Detail,
    },
    /// The provider takes the request for wrong; sending it again changes nothing.
    #[error("the provider refused the request{}{}", shown_status(*.status), shown_code(.code.as_deref()))]
    BadRequest {
        /// The HTTP status.
        status: Option<u16>,
        /// The provider's short code for it, if it is a plain word.
        code: Option<String>,
        /// The provider's words.
        detail: Detail,
    },
    /// The provider's rules forbid the request.
    #[error("the provider's content policy forbids the request{}", shown_status(*.status))]
    Policy {
        /// The HTTP status.
        status: Option<u16>,
        /// The provider's words.
        detail: Detail,
    },
    /// The script or the configuration is wrong: a person has to repair it.
    #[error("{message}")]
    Broken {
        /// What is wrong and where.
        message: String,
    },
    /// A replayed run asked something else than it asked when it was recorded.
    #[error("the replay diverged: {}, found request {found}", shown_expected(.expected.as_ref()))]
    Diverged {
        /// The recorded request, none where the recording had ended.
        expected: Option<Hash>,
        /// The request that came.
        found: Hash,
    },
    /// Nothing we have a reaction for.
    #[error("the provider failed in an unknown way: {reason}{}", shown_status(*.status))]
    Unknown {
        /// What is known, in our words.
        reason: &'static str,
        /// The HTTP status.
        status: Option<u16>,
        /// The provider's words.
        detail: Detail,
    },
}

fn shown_status(status: Option<u16>) -> String {
    status.map(|status| format!(" (HTTP {status})")).unwrap_or_default()
}

fn shown_code(code: Option<&str>) -> String {
    code.map(|code| format!(" [{code}]")).unwrap_or_default()
}

fn shown_expected(expected: Option<&Hash>) -> String {
    expected.map_or_else(|| "the recording has ended".to_owned(), |hash| format!("expected request {hash}"))
}

impl ModelError {
    /// Whether the same request may succeed a moment later.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        match self {
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Truncated { .. } => true,
            Self::Unauthorized { .. }
            | Self::NoCredit { .. }
            | Self::UnknownModel { .. }
            | Self::ContextOverflow { .. }
            | Self::BadRequest { .. }
            | Self::Policy { .. }
            | Self::Broken { .. }
            | Self::Diverged { .. }
            | Self::Unknown { .. } => false,
        }
    }

    /// Whether the request may have reached the provider. It has not where no connection came about.
    #[must_use]
    pub fn may_have_arrived(&self) -> bool {
        let Self::Network { source: Some(source), .. } = self else { return true };
        !source.downcast_ref::<reqwest::Error>().is_some_and(reqwest::Error::is_connect)
    }

    /// The stable word for this kind of failure.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::Timeout { .. } => "timeout",
            Self::Network { .. } => "network",
            Self::Truncated { .. } => "truncated",
            Self::Unauthorized { .. } => "unauthorized",
            Self::NoCredit { .. } => "no_credit",
            Self::UnknownModel { .. } => "unknown_model",
            Self::ContextOverflow { .. } => "context_overflow",
            Self::BadRequest { .. } => "bad_request",
            Self::Policy { .. } => "policy",
            Self::Broken { .. } => "broken",
            Self::Diverged { .. } => "diverged",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// The code of a run that ends with this failure. A run has a limit of time of its own, so a provider's says whose it is.
    #[must_use]
    pub const fn run_code(&self) -> &'static str {
        if matches!(self, Self::Timeout { .. }) { "provider_timeout" } else { self.class() }
    }

    /// How long the provider wants us to wait, if it said so.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after, .. } | Self::Overloaded { retry_after, .. } => *retry_after,
            Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Truncated { .. }
            | Self::Unauthorized { .. }
            | Self::NoCredit { .. }
            | Self::UnknownModel { .. }
            | Self::ContextOverflow { .. }
            | Self::BadRequest { .. }
            | Self::Policy { .. }
            | Self::Broken { .. }
            | Self::Diverged { .. }
            | Self::Unknown { .. } => None,
        }
    }

    /// The HTTP status, if there was one.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::RateLimited { status, .. }
            | Self::Overloaded { status, .. }
            | Self::Unauthorized { status, .. }
            | Self::NoCredit { status }
            | Self::ContextOverflow { status, .. }
            | Self::BadRequest { status, .. }
            | Self::Policy { status, .. }
            | Self::Unknown { status, .. } => *status,
            Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Truncated { .. }
            | Self::UnknownModel { .. }
            | Self::Broken { .. }
            | Self::Diverged { .. } => None,
        }
    }

    /// The provider's own words, for the operator's log only: they may quote the request.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Unauthorized { detail, .. }
            | Self::ContextOverflow { detail, .. }
            | Self::BadRequest { detail, .. }
            | Self::Policy { detail, .. }
            | Self::Unknown { detail, .. } => Some(detail.as_str()).filter(|text| !text.is_empty()),
            Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::Timeout { .. }
            | Self::Network { .. }
            | Self::Truncated { .. }
            | Self::NoCredit { .. }
            | Self::UnknownModel { .. }
            | Self::Broken { .. }
            | Self::Diverged { .. } => None,
        }
    }

    /// The configuration or a script is wrong.
    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self::Broken { message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_never_holds_the_providers_words() {
        let detail = Detail::new("your prompt `the secret plan` is too long");
        let error = ModelError::BadRequest { status: Some(400), code: Some("too_long".into()), detail };
        assert_eq!(error.to_string(), "the provider refused the request (HTTP 400) [too_long]");
        assert!(!format!("{error:?}").contains("secret"));
        assert_eq!(error.detail(), Some("your prompt `the secret plan` is too long"));
    }

    #[test]
    fn a_long_text_of_a_provider_is_cut_at_a_character() {
        assert_eq!(Detail::new(&"ä".repeat(2000)).as_str().len(), Detail::BYTES);
    }
}
