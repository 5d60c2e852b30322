//! The kinds of problems: their codes, which clients may rely on, and what each means.

use axum::http::StatusCode;

/// What went wrong, as a program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Kind {
    Malformed,
    Unauthenticated,
    BudgetExhausted,
    PriceUnknown,
    Forbidden,
    ScopeViolation,
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    Busy,
    AgentInactive,
    AlreadyDecided,
    Halted,
    InFlight,
    OutcomeUnknown,
    Expired,
    Erased,
    StaleVersion,
    TooLarge,
    UnsupportedMediaType,
    Misdirected,
    ValidationFailed,
    ContentBlocked,
    IdempotencyMismatch,
    PreconditionRequired,
    RateLimited,
    Internal,
    ProviderError,
    ProviderTimeout,
    Overloaded,
    Unavailable,
}

impl Kind {
    pub(in crate::http) const ALL: [Self; 32] = [
        Self::Malformed,
        Self::Unauthenticated,
        Self::BudgetExhausted,
        Self::PriceUnknown,
        Self::Forbidden,
        Self::ScopeViolation,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::NotAcceptable,
        Self::Conflict,
        Self::Busy,
        Self::AgentInactive,
        Self::AlreadyDecided,
        Self::Halted,
        Self::InFlight,
        Self::OutcomeUnknown,
        Self::Expired,
        Self::Erased,
        Self::StaleVersion,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::Misdirected,
        Self::ValidationFailed,
        Self::ContentBlocked,
        Self::IdempotencyMismatch,
        Self::PreconditionRequired,
        Self::RateLimited,
        Self::Internal,
        Self::ProviderError,
        Self::ProviderTimeout,
        Self::Overloaded,
        Self::Unavailable,
    ];

    /// Code, status and what it means.
    const fn about(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::Malformed => ("malformed", 400, "The request is no JSON, or no valid UTF-8."),
            Self::Unauthenticated => ("unauthenticated", 401, "Nobody is signed in, or no longer."),
            Self::BudgetExhausted => ("budget_exhausted", 402, "The money of a day or a month is spent."),
            Self::PriceUnknown => ("price_unknown", 402, "Nobody knows what it costs, and there is a limit."),
            Self::Forbidden => ("forbidden", 403, "You may see it, but not do this with it."),
            Self::ScopeViolation => ("scope_violation", 403, "The agent may not be started there."),
            Self::NotFound => ("not_found", 404, "It does not exist, or it belongs to somebody else."),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "This address does not take this method."),
            Self::NotAcceptable => ("not_acceptable", 406, "It cannot be given in the form you accept."),
            Self::Conflict => ("conflict", 409, "It does not go with what is there now."),
            Self::Busy => ("busy", 409, "The chat's last run has not ended."),
            Self::AgentInactive => ("agent_inactive", 409, "The agent is switched off."),
            Self::AlreadyDecided => ("already_decided", 409, "Somebody decided before you."),
            Self::Halted => ("halted", 409, "The stop switch of the workspace or the instance is on."),
            Self::InFlight => ("in_flight", 409, "A request with the same Idempotency-Key is being answered."),
            Self::OutcomeUnknown => {
                ("outcome_unknown", 409, "Whether the request with this Idempotency-Key was carried out is not known.")
            }
            Self::Expired => ("expired", 410, "It was there and is over."),
            Self::Erased => ("erased", 410, "What was said there was erased."),
            Self::StaleVersion => ("stale_version", 412, "It has changed since you read it."),
            Self::TooLarge => ("too_large", 413, "The request is larger than is accepted here."),
            Self::UnsupportedMediaType => {
                ("unsupported_media_type", 415, "The body has another type than is taken here.")
            }
            Self::Misdirected => ("misdirected", 421, "The server was called by another name than its own."),
            Self::ValidationFailed => ("validation_failed", 422, "Something in the request cannot be used."),
            Self::ContentBlocked => ("content_blocked", 422, "The agent's content filter forbids it."),
            Self::IdempotencyMismatch => {
                ("idempotency_mismatch", 422, "The Idempotency-Key was used for another request.")
            }
            Self::PreconditionRequired => ("precondition_required", 428, "Say which version you mean, by If-Match."),
            Self::RateLimited => ("rate_limited", 429, "Too often; Retry-After says when to try again."),
            Self::Internal => ("internal", 500, "The server made a mistake; its log knows more."),
            Self::ProviderError => ("provider_error", 502, "The model's provider refused, failed or broke off."),
            Self::ProviderTimeout => ("provider_timeout", 504, "The model's provider took too long."),
            Self::Overloaded => ("overloaded", 503, "Too much to do; Retry-After says when to try again."),
            Self::Unavailable => ("unavailable", 503, "Something the server needs cannot be used at the moment."),
        }
    }

    pub(in crate::http) const fn code(self) -> &'static str {
        self.about().0
    }

    pub(in crate::http) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.about().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(in crate::http) const fn meaning(self) -> &'static str {
        self.about().2
    }

    /// What to do next where whoever raises it knows nothing better to say.
    pub(in crate::http) const fn next(self) -> Option<&'static str> {
        match self {
            Self::Malformed => Some("send it again, whole and well formed; /docs describes what is taken"),
            Self::Conflict => Some("read what is there now, then decide whether it is still to be done"),
            Self::Busy => Some("wait until it has ended, or cancel it, then ask again"),
            Self::AlreadyDecided => Some("nothing is left to decide; read the approval to see what became of it"),
            Self::Expired => Some("it cannot be used any more; ask for it anew"),
            Self::TooLarge => Some("send less at once; /docs says how much is taken"),
            Self::ValidationFailed => Some("correct what is named and send it again; /docs describes what is taken"),
            Self::Unauthenticated
            | Self::BudgetExhausted
            | Self::PriceUnknown
            | Self::Forbidden
            | Self::ScopeViolation
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::NotAcceptable
            | Self::AgentInactive
            | Self::Halted
            | Self::InFlight
            | Self::OutcomeUnknown
            | Self::Erased
            | Self::StaleVersion
            | Self::UnsupportedMediaType
            | Self::Misdirected
            | Self::ContentBlocked
            | Self::IdempotencyMismatch
            | Self::PreconditionRequired
            | Self::RateLimited
            | Self::Internal
            | Self::ProviderError
            | Self::ProviderTimeout
            | Self::Overloaded
            | Self::Unavailable => None,
        }
    }

    /// The code with its first letter raised and its words apart.
    pub(in crate::http) fn title(self) -> String {
        crate::failure::title(self.code())
    }
}
