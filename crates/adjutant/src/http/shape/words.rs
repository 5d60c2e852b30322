//! Words that stand for one of a few things.

use serde::Serialize;
use utoipa::ToSchema;

/// Where a run is.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum RunStatus {
    Queued,
    Running,
    WaitingApproval,
    Paused,
    InDoubt,
    Cancelling,
    Completed,
    Failed,
    Cancelled,
}

/// What becomes of a call.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// How much an agent does without asking: `none` asks before every call, `low` reads freely, `medium` also creates and writes
/// what can be undone, `high` asks only before what cannot be undone, `full` never.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Autonomy {
    None,
    Low,
    Medium,
    High,
    Full,
}

/// How much right a tool needs.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PermissionLevel {
    None,
    Read,
    Write,
    Execute,
    Admin,
}

/// What a tool is about.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToolCategory {
    FileRead,
    FileWrite,
    FileDelete,
    CodeExecute,
    NetworkRead,
    NetworkWrite,
    System,
    Memory,
    Custom,
}

/// What is done with a file.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileOperation {
    Read,
    Write,
    Create,
    Delete,
    Execute,
}

/// How a model is chosen where the agent leaves it open.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum RoutingStrategy {
    Cheapest,
    Fastest,
    Smartest,
    Balanced,
    Fallback,
}

/// What becomes of private data on its way out of a run that has read untrusted content.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum DataFlow {
    Ask,
    Deny,
}
