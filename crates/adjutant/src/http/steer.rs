//! `/runs/{run}/…`: cancel, pause, resume, edit, fork, replay, settle a doubt, export, verify.

use adjutant_core::id::CallId;
use adjutant_core::run::command::Command;
use adjutant_core::run::event::{Actor, DoubtOutcome, Effects};
use adjutant_core::run::state::State as RunState;
use adjutant_engine::{Fork, Redaction, Right, Role, UndoMode};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::approvals::answered_run;
use super::ask::{Asked, Body, MaybeBody, Path};
use super::chats::find_chat;
use super::door::{Access, Signed};
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;
use super::shape::{ChainCheck, ReplayAnswer, RunDocument};
use super::start::{Begun, Form, OnLeave, Wait, answer};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(cancel))
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(edit))
        .routes(routes!(fork))
        .routes(routes!(replay))
        .routes(routes!(undo))
        .routes(routes!(in_doubt))
        .routes(routes!(export))
        .routes(routes!(verify))
}

/// A run that the caller may steer: one they started, or any for an admin.
pub(super) async fn steered(
    server: &Server,
    signed: &Signed,
    name: &str,
) -> Result<(Access, adjutant_engine::store::row::RunRow), Problem> {
    let (access, row) = find_run(server, signed, name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    if row.initiator != access.user && access.role < Role::Admin {
        return Err(Problem::forbidden("Only whoever started this run, or an admin, may steer it. Nothing was done."));
    }
    Ok((access, row))
}

/// A run that the caller may put another in the place of: one they may steer, in a chat they see. In somebody else's chat only the
/// last one: what others said after it is not theirs to set aside.
pub(super) async fn replaceable(
    server: &Server,
    signed: &Signed,
    name: &str,
) -> Result<(Access, adjutant_engine::store::row::RunRow), Problem> {
    let (access, row) = steered(server, signed, name).await?;
    let (_, chat) = find_chat(server, signed, &row.chat.to_string()).await?;
    if chat.owner != access.user && access.role < Role::Admin && chat.tip != Some(row.id) {
        return Err(Problem::forbidden("The chat is somebody else's and has gone on since. Nothing was done."));
    }
    Ok((access, row))
}

/// Why.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Reason {
    /// Why; shown to others.
    reason: Option<String>,
}

/// Where a run is now.
#[derive(Serialize, ToSchema)]
pub(super) struct StatusNow {
    pub(super) id: String,
    /// `RUNNING`, `PAUSED`, `CANCELLED`, …
    pub(super) status: &'static str,
}

async fn told(
    server: &Server,
    access: Access,
    run: adjutant_core::id::RunId,
    command: Command,
) -> Result<Json<StatusNow>, Problem> {
    let state: RunState = server.engine.command(access.workspace, run, &command).await?;
    Ok(Json(StatusNow { id: run.to_string(), status: state.status().word() }))
}

/// Cancels a run. One that has ended answers with how it ended.
#[utoipa::path(post, operation_id = "cancel_run", path = "/runs/{run}/cancel", tag = "runs", params(("run" = String, Path, description = "Its id")), request_body = Option<Reason>, responses((status = 200, description = "Its status now", body = StatusNow)))]
async fn cancel(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<Reason>,
) -> Result<Json<StatusNow>, Problem> {
    let (access, row) = match steered(&server, &signed, &name).await {
        Ok(found) => found,
        Err(_) => match super::waiting::take_back(&server, &signed, &name).await {
            Ok(taken) => return Ok(Json(taken)),
            // It may have become a run at this moment.
            Err(_) => steered(&server, &signed, &name).await?,
        },
    };
    let reason = body.reason.unwrap_or_else(|| "cancelled by a person".to_owned());
    if reason.len() > 1000 {
        return Err(Problem::invalid("Nothing was cancelled.").error("/reason", "is longer than 1000 bytes"));
    }
    told(&server, access, row.id, Command::Cancel { by: Actor::User(access.user), reason }).await
}

/// Holds a run: nothing new is started.
#[utoipa::path(post, operation_id = "pause_run", path = "/runs/{run}/pause", tag = "runs", params(("run" = String, Path, description = "Its id")), responses((status = 200, description = "Its status now", body = StatusNow)))]
async fn pause(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<StatusNow>, Problem> {
    let (access, row) = steered(&server, &signed, &name).await?;
    told(&server, access, row.id, Command::Pause { by: Actor::User(access.user) }).await
}

/// How a run goes on.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct GoOn {
    /// For a run that stopped at a limit (`max_turns`, `max_tool_calls`, `stuck`, `timeout`): how many turns the run has that goes on from it, from 1 to 200.
    extra_turns: Option<u32>,
}

/// Lets a held run go on. With `extra_turns` a run that stopped at a limit is gone on with by a new one of its chat, whose id is in the answer; the old one stays as it is.
#[utoipa::path(post, operation_id = "resume_run", path = "/runs/{run}/resume", tag = "runs", params(("run" = String, Path, description = "Its id")), request_body = Option<GoOn>, responses((status = 200, description = "The run that goes on, and its status now", body = StatusNow)))]
async fn resume(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<GoOn>,
) -> Result<Json<StatusNow>, Problem> {
    let (access, row) = steered(&server, &signed, &name).await?;
    let Some(extra_turns) = body.extra_turns else {
        return told(&server, access, row.id, Command::Resume { by: Actor::User(access.user) }).await;
    };
    let (access, row) = replaceable(&server, &signed, &row.id.to_string()).await?;
    let run = server.engine.extend_run(access.workspace, access.user, row.id, extra_turns).await?;
    let state: RunState = server.engine.run_state(access.workspace, run).await?;
    Ok(Json(StatusNow { id: run.to_string(), status: state.status().word() }))
}

/// Another message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// What to say instead.
    pub(super) new_user_message: String,
}

/// Says something else in place of an earlier message: the run and what followed it are kept, marked superseded, and a new run goes on from before it.
#[utoipa::path(post, operation_id = "edit_run", path = "/runs/{run}/edit", tag = "runs", params(("run" = String, Path, description = "Its id"), Wait), request_body = Edit, responses((status = 200, description = "The stream, or the new run once it ended or asks", content((RunDocument = "application/json"), (String = "text/event-stream"))), (status = 202, description = "Started", body = Begun)))]
async fn edit(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(body): Body<Edit>,
) -> Result<Response, Problem> {
    let (access, row) = replaceable(&server, &signed, &name).await?;
    let form = Form::of(&server, &headers, wait)?;
    let run = server.engine.edit_run(access.workspace, access.user, row.id, &body.new_user_message).await?;
    answer(&server, &signed, access, form, run, OnLeave::Nothing).await
}

/// From where, and with what.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct NewFork {
    /// The event to go on from; the beginning without it.
    at_seq: Option<u64>,
    /// Another model.
    model: Option<String>,
    /// Other instructions than the agent's, for this run. What it may do stays what the agent may.
    system_prompt: Option<String>,
    /// `live`, or `dry`: then nothing but reading happens. As in the run it goes on from, where nothing is said.
    #[schema(value_type = Option<String>)]
    effects: Option<Effects>,
}

/// Goes on from a point of a run, in a chat of its own. The run is left as it is.
#[utoipa::path(post, operation_id = "fork_run", path = "/runs/{run}/fork", tag = "runs", params(("run" = String, Path, description = "Its id"), Wait), request_body = Option<NewFork>, responses((status = 200, description = "The stream, or the new run once it ended or asks", content((RunDocument = "application/json"), (String = "text/event-stream"))), (status = 202, description = "Started", body = Begun)))]
async fn fork(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    MaybeBody(body): MaybeBody<NewFork>,
) -> Result<Response, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    let fork = Fork { at: body.at_seq, model: body.model, system_prompt: body.system_prompt, effects: body.effects };
    let form = Form::of(&server, &headers, wait)?;
    let run = server.engine.fork_run(access.workspace, access.user, row.id, fork).await?;
    answer(&server, &signed, access, form, run, OnLeave::Nothing).await
}

/// How to walk it again.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Again {
    /// `strict`: the recorded effects, no model, no tool, no network.
    mode: Option<String>,
}

/// Walks a recorded run again, without a model, a tool or a network, and says what comes out differently.
#[utoipa::path(post, operation_id = "replay_run", path = "/runs/{run}/replay", tag = "runs", params(("run" = String, Path, description = "Its id")), request_body = Option<Again>, responses((status = 200, description = "What was found", body = ReplayAnswer)))]
async fn replay(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<Again>,
) -> Result<Response, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    if body.mode.as_deref().is_some_and(|mode| mode != "strict") {
        return Err(Problem::invalid("Nothing was replayed.").error("/mode", "only `strict` is known"));
    }
    Ok(Json(server.engine.replay(access.workspace, row.id).await?).into_response())
}

/// What to take back.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Back {
    /// Only what this call did.
    #[schema(value_type = Option<String>)]
    call_id: Option<CallId>,
    /// Only says what would be put back.
    dry_run: bool,
}

/// One file of an undo.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what the engine's report writes")]
struct Undone {
    /// Its path in the run's notebook.
    path: String,
    /// The calls that are taken back, newest first.
    calls: Vec<String>,
    /// The hash of what the run left; none where it left nothing.
    left: Option<String>,
    /// The hash of what is put back; none where nothing was.
    back: Option<String>,
    /// `planned`, `restored`, `already_back`, `conflict` (left alone) or `failed`.
    outcome: String,
    /// Why it was left alone.
    why: Option<String>,
}

/// What became of an undo.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "describes what the engine's report writes")]
struct UndoAnswer {
    /// The run.
    run_id: String,
    /// Whether nothing was changed.
    dry_run: bool,
    /// Each file, newest change first.
    files: Vec<Undone>,
    /// Effects that cannot be taken back.
    beyond: Vec<String>,
    /// When an earlier undo was begun, if it never ended.
    interrupted: Option<String>,
}

/// Puts files back as they were before a run, where they still are as the run left them. For whoever started it, and admins.
#[utoipa::path(post, operation_id = "undo_run", path = "/runs/{run}/undo", tag = "runs", params(("run" = String, Path, description = "Its id")), request_body = Option<Back>, responses((status = 200, description = "What became of each file", body = UndoAnswer)))]
async fn undo(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<Back>,
) -> Result<Response, Problem> {
    let (access, row) = steered(&server, &signed, &name).await?;
    signed.need(Right::Write)?;
    let mode = if body.dry_run { UndoMode::DryRun } else { UndoMode::Real };
    let report = server.engine.undo_run(access.workspace, access.user, row.id, body.call_id, mode).await?;
    Ok(Json(report).into_response())
}

/// What became of a call that nobody knows the end of.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Settled {
    /// The call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// `happened`, `run` or `abandon`.
    #[schema(value_type = String)]
    outcome: DoubtOutcome,
    /// Its result, if it happened.
    result: Option<String>,
}

/// Says what became of a call in doubt. For whoever started the run, whose the agent is, its approvers and admins. Needs `approvals:decide`.
#[utoipa::path(post, operation_id = "settle_in_doubt", path = "/runs/{run}/in-doubt", tag = "runs", params(("run" = String, Path, description = "Its id")), request_body = Settled, responses((status = 200, description = "Its status now", body = StatusNow)))]
async fn in_doubt(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<Settled>,
) -> Result<Json<StatusNow>, Problem> {
    let (access, row) = answered_run(&server, &signed, &name).await?;
    let by = Actor::User(access.user);
    let command = Command::Resolve { call: body.call_id, outcome: body.outcome, result: body.result, by };
    told(&server, access, row.id, command).await
}

/// How a file is written.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Written {
    /// Leaves what looks like a secret in it. For admins; that is recorded.
    raw: Option<bool>,
}

/// A run as a file, one JSON document a line, that `adjutant audit verify FILE` can check anywhere. What looks like a secret is replaced, and such events and contents are counted as redacted.
#[utoipa::path(get, operation_id = "export_run", path = "/runs/{run}/export", tag = "runs", params(("run" = String, Path, description = "Its id"), Written), responses((status = 200, description = "JSON lines", body = String, content_type = "application/x-ndjson")))]
async fn export(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(written): Asked<Written>,
) -> Result<Response, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let redaction = if written.raw == Some(true) {
        let access = signed.must(access, Role::Admin, Right::Admin)?;
        server
            .engine
            .record_raw(access.workspace, access.user, "in the file of a run".to_owned(), Some(row.id))
            .await?;
        Redaction::Raw
    } else {
        Redaction::On
    };
    let mut text = server.engine.export_run(access.workspace, row.id, redaction).await?.join("\n");
    text.push('\n');
    let attached = format!("attachment; filename=\"{}.jsonl\"", row.id);
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson".to_owned()), (header::CONTENT_DISPOSITION, attached)];
    Ok((StatusCode::OK, headers, text).into_response())
}

/// Checks the hash chain of a run.
#[utoipa::path(get, operation_id = "verify_run", path = "/runs/{run}/verify", tag = "runs", params(("run" = String, Path, description = "Its id")), responses((status = 200, description = "Whether it is whole", body = ChainCheck)))]
async fn verify(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    match server.engine.verify_run(access.workspace, row.id).await {
        Ok(verified) => {
            let mut shown = serde_json::to_value(verified).unwrap_or_default();
            shown["is_whole"] = json!(true);
            Ok(Json(shown))
        }
        Err(adjutant_engine::EngineError::BadLog { run, why }) => {
            Ok(Json(json!({"stream": run, "is_whole": false, "reason": why})))
        }
        Err(other) => Err(other.into()),
    }
}
