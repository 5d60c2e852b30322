//! What a run's document says beside its answer.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

/// Something that an agent remembers, and that a run changed.
#[derive(Serialize, ToSchema)]
pub(super) struct MemoryDelta {
    /// Its name.
    id: String,
    /// `created`, `changed` or `deleted`.
    op: String,
    /// Whose it is: `agent`.
    scope: String,
    before_hash: Option<String>,
    after_hash: Option<String>,
}

/// What went wrong on the way of a run.
#[derive(Serialize, ToSchema)]
pub(super) struct RunDiagnostics {
    /// Sentences for people.
    warnings: Vec<String>,
    /// The trace it belongs to.
    traces: Vec<String>,
    /// Whether something old was left out so that a request fitted its model.
    truncated: bool,
}

/// What the guard made of a run.
#[derive(Serialize, ToSchema)]
pub(super) struct RunEnforcement {
    /// `live`, or `dry`: it only reads.
    effects: String,
    /// Calls that were allowed.
    allowed: u64,
    /// Calls that a person was asked about.
    asked: u64,
    /// Calls that were refused.
    denied: u64,
    labels: SeenLabels,
    /// How what keeps it safe stood when it began: `encryption`, `durability`, `audit_chain`, `egress_filter`, `price_known`, `sandbox`.
    safety: BTreeMap<String, SafetyStanding>,
}

/// How something stands that keeps runs safe.
#[derive(Serialize, ToSchema)]
pub(in crate::http) struct SafetyStanding {
    /// `enforced`, `degraded` or `off`.
    state: String,
    /// Why it is not enforced.
    reason: Option<String>,
}

/// What a run has seen.
#[derive(Serialize, ToSchema)]
struct SeenLabels {
    /// A tenant's own data.
    private: bool,
    /// Content that no member wrote.
    untrusted: bool,
}

/// What was tried again.
#[derive(Serialize, ToSchema)]
pub(super) struct RetryInfo {
    /// Model calls that failed.
    attempts: u64,
    /// Why the last of them did.
    last_error: Option<String>,
}

/// A file that came with a message.
#[derive(Serialize, ToSchema)]
pub(super) struct AttachmentShape {
    media_type: String,
    /// The hash of what it held then.
    hash: String,
}

/// Who began a run.
#[derive(Serialize, ToSchema)]
pub(super) struct Initiator {
    /// `user`.
    kind: String,
    id: String,
}
