//! Messages that wait until their chat is free, as they are shown: each under the id of the run that it will be.

use adjutant_core::id::RunId;
use adjutant_core::money::MicroUsd;
use adjutant_core::run::event::Effects;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::WaitingRow;
use adjutant_engine::{Right, Role};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::ask::id;
use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;
use super::start::AttachedFile;
use super::steer::StatusNow;
use crate::wire::Moment;

/// A message that waits and that the caller may see.
///
/// # Errors
/// 404 when there is none, or it is somebody else's.
pub(super) async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, WaitingRow), Problem> {
    let run: RunId = id("run", name)?;
    for access in signed.workspaces(None)? {
        let Some(row) = server.engine.store().waiting_message(access.workspace, run).await? else { continue };
        let chat = server.engine.store().chat(access.workspace, row.chat).await?;
        // In one's own chat one sees, and takes away, what others want to say.
        if access.may_see(row.person, false) || chat.is_some_and(|chat| chat.owner == access.user) {
            return Ok((access, row));
        }
    }
    Err(Problem::not_found("run", name))
}

/// A message that waits until its chat is free.
#[derive(Serialize, ToSchema)]
pub(super) struct WaitingMessage {
    /// The run that it will be.
    id: String,
    workspace_id: String,
    chat_id: String,
    agent_id: Option<String>,
    /// `QUEUED`, or `FAILED` where it could not be started.
    status: &'static str,
    /// Whether it still waits.
    is_waiting: bool,
    user_message: Option<String>,
    /// Files that come with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    attachments: Vec<AttachedFile>,
    /// How freely it acts, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    autonomy: Option<String>,
    /// The model it asks, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// What it may cost in dollars, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_cost_usd: Option<f64>,
    /// What its answer has to fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    /// Its seed, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    /// Whether its first answer has to use a tool, where that was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<String>,
    created_at: Moment,
    /// Why it could not be started.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// How it is shown.
pub(super) fn shown(row: &WaitingRow) -> WaitingMessage {
    let kept: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let word = |name: &str| kept[name].as_str().map(str::to_owned);
    let unreadable = || Some("What was kept of it cannot be read.".to_owned());
    WaitingMessage {
        id: row.id.to_string(),
        workspace_id: row.workspace.to_string(),
        chat_id: row.chat.to_string(),
        agent_id: word("agent"),
        status: if row.failed { "FAILED" } else { "QUEUED" },
        is_waiting: !row.failed,
        user_message: word("message"),
        attachments: serde_json::from_value::<Vec<String>>(kept["attachments"].clone())
            .unwrap_or_default()
            .into_iter()
            .map(|path| AttachedFile { path })
            .collect(),
        autonomy: if kept["effects"] == json!(Effects::Dry) { Some("plan".to_owned()) } else { word("autonomy") },
        model: word("model"),
        max_cost_usd: serde_json::from_value::<MicroUsd>(kept["max_cost"].clone()).ok().map(MicroUsd::dollars),
        output_schema: Some(kept["output_schema"].clone()).filter(Value::is_object),
        seed: serde_json::from_value(kept["seed"].clone()).ok(),
        tool_choice: word("tool_choice"),
        created_at: row.created_at.into(),
        error: if row.failed { word("failure").or_else(unreadable) } else { None },
    }
}

/// Takes a message back that waits; says so as if the run had been cancelled.
///
/// # Errors
/// 404 when none waits, 403 for somebody who may not.
pub(super) async fn take_back(server: &Server, signed: &Signed, name: &str) -> Result<StatusNow, Problem> {
    let (access, row) = find(server, signed, name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    if !server.engine.take_back(access.workspace, row.id).await? {
        return Err(Problem::not_found("run", name));
    }
    Ok(StatusNow { id: row.id.to_string(), status: Status::Cancelled.word() })
}
