//! Messages that wait until their chat is free, as they are shown: each under the id of the run that it will be.

use adjutant_core::id::RunId;
use adjutant_engine::store::row::WaitingRow;
use adjutant_engine::{Right, Role};
use serde_json::{Value, json};

use super::ask::id;
use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;

/// A message that waits and that the caller may see.
///
/// # Errors
/// 404 when there is none, or it is somebody else's.
pub(super) async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, WaitingRow), Problem> {
    let run: RunId = id("run", name)?;
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().waiting_message(access.workspace, run).await?
            && access.may_see(row.person, false)
        {
            return Ok((access, row));
        }
    }
    Err(Problem::not_found("run", name))
}

/// How it is shown.
pub(super) fn shown(row: &WaitingRow) -> Value {
    let kept: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let mut shown = json!({
        "id": row.id, "workspace_id": row.workspace, "chat_id": row.chat, "agent_id": kept["agent"], "status": "QUEUED",
        "is_waiting": !row.failed, "user_message": kept["message"], "created_at": row.created_at,
    });
    if row.failed {
        let message = kept["failure"].as_str().unwrap_or("What was kept of it cannot be read.");
        shown["status"] = "FAILED".into();
        shown["error"] = message.into();
    }
    shown
}

/// Takes a message back that waits; says so as if the run had been cancelled.
///
/// # Errors
/// 404 when none waits, 403 for somebody who may not.
pub(super) async fn take_back(server: &Server, signed: &Signed, name: &str) -> Result<Value, Problem> {
    let (access, row) = find(server, signed, name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    if !server.engine.store().remove_waiting(access.workspace, row.id).await? {
        return Err(Problem::not_found("run", name));
    }
    Ok(json!({"id": row.id, "chat_id": row.chat, "status": "CANCELLED"}))
}
