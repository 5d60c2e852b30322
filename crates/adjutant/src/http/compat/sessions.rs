//! Sessions: chats, under the name that some clients know them by.

use std::collections::{BTreeMap, BTreeSet};

use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{ApprovalFilter, ApprovalRow, CallRow, ChatFilter, ChatRow, RunFilter};
use adjutant_engine::{Right, Role, RunReport};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router, routing};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::agents::find_agent;
use super::super::approvals::{self, NewDecision, decided};
use super::super::ask::{Body, MaybeBody, Path};
use super::super::chats::{checked, find_chat};
use super::super::door::{Access, Signed};
use super::super::logs::{summary, target};
use super::super::problem::Problem;
use super::super::server::Server;
use super::super::start::{Form, LONGEST_WAIT};
use super::{SHOWN, speak, stop};
use crate::wire::{self, Moment, Secrets, Texts};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(open_session, list_sessions))
        .routes(routes!(get_session))
        .routes(routes!(message))
        .routes(routes!(confirm))
        .routes(routes!(cancel_session))
        .routes(routes!(logs))
}

/// The same with a slash at the end.
pub(super) fn slashed() -> Router<Server> {
    Router::new()
        .route("/api/v1/agents/{agent}/sessions/", routing::get(list_sessions).post(open_session))
        .route("/api/v1/sessions/{chat}/", routing::get(get_session))
        .route("/api/v1/sessions/{chat}/message/", routing::post(message))
        .route("/api/v1/sessions/{chat}/confirm/", routing::post(confirm))
        .route("/api/v1/sessions/{chat}/cancel/", routing::post(cancel_session))
        .route("/api/v1/sessions/{chat}/logs/", routing::get(logs))
}

/// What a session begins with.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct NewSession {
    /// There are no tasks yet: only `null` is taken.
    #[schema(value_type = Option<Object>)]
    task_id: Option<Value>,
    /// Its title.
    title: Option<String>,
}

/// A chat, in the words of its clients.
#[derive(Serialize, ToSchema)]
struct Session {
    id: String,
    /// The same.
    session_id: String,
    agent_id: String,
    task_id: Option<String>,
    user_id: String,
    /// `pending`, `running`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    context: BTreeMap<String, String>,
    messages: Vec<SessionMessage>,
    /// What waits for a person.
    pending_actions: Vec<PendingAction>,
    files_modified: Vec<String>,
    tokens_used: u64,
    /// Model calls.
    api_calls_made: usize,
    started_at: Moment,
    completed_at: Option<Moment>,
    error_message: Option<String>,
}

/// What the agent answered.
#[derive(Serialize, ToSchema)]
struct SessionMessage {
    role: &'static str,
    content: String,
    pending_actions: Vec<PendingAction>,
}

/// Something that waits for a person.
#[derive(Clone, Serialize, ToSchema)]
struct PendingAction {
    /// The inbox item.
    id: String,
    /// The tool.
    r#type: Option<String>,
    summary: Option<String>,
    /// The first path it touches.
    path: Option<String>,
    /// Always true.
    requires_confirmation: bool,
}

impl PendingAction {
    fn of(item: &ApprovalRow, calls: &[CallRow]) -> Self {
        let summary = wire::approval(item, None, &Texts::default(), Secrets::Hidden).summary;
        let path =
            calls.iter().find(|call| Some(&call.call) == item.call.as_ref()).and_then(|call| call.target.clone());
        Self { id: item.id.to_string(), r#type: item.tool.clone(), summary, path, requires_confirmation: true }
    }
}

/// One action of an agent.
#[derive(Serialize, ToSchema)]
struct ActionLog {
    id: String,
    session_id: String,
    /// The tool.
    action_type: String,
    target_path: Option<String>,
    input_summary: String,
    output_summary: String,
    /// Whether it was started.
    was_allowed: bool,
    execution_time_ms: u64,
    created_at: Option<Moment>,
}

/// Opens a session: a chat with the agent.
#[utoipa::path(post, path = "/agents/{agent}/sessions", tag = "older clients", params(("agent" = String, Path, description = "Id or short name")), request_body = Option<NewSession>, responses((status = 201, description = "The session", body = Session)))]
async fn open_session(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<NewSession>,
) -> Result<(StatusCode, Json<Session>), Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    if body.task_id.is_some() {
        return Err(Problem::invalid("There are no tasks that a session could belong to. Nothing was opened.")
            .error("/task_id", "is not known here"));
    }
    let title = checked(body.title.as_deref().unwrap_or("New session"))?;
    let chat =
        server.engine.create_chat(access.workspace, access.user, agent.id, None, title, &BTreeMap::new()).await?;
    Ok((StatusCode::CREATED, Json(session(&server, access, &chat).await?)))
}

/// The sessions of an agent, newest first.
#[utoipa::path(get, path = "/agents/{agent}/sessions", tag = "older clients", params(("agent" = String, Path, description = "Id or short name")), responses((status = 200, description = "Sessions", body = Vec<Session>)))]
async fn list_sessions(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Vec<Session>>, Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    let filter = ChatFilter { agent: Some(agent.id), visible_to: access.visible_to(), before: None };
    let mut sessions = Vec::new();
    for chat in server.engine.store().chats(access.workspace, &filter, SHOWN).await? {
        sessions.push(session(&server, access, &chat).await?);
    }
    Ok(Json(sessions))
}

/// One session.
#[utoipa::path(get, path = "/sessions/{chat}", tag = "older clients", params(("chat" = String, Path, description = "Its id")), responses((status = 200, description = "The session", body = Session)))]
async fn get_session(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Session>, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    Ok(Json(session(&server, access, &chat).await?))
}

/// A message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Content {
    /// What you say.
    content: String,
}

/// Says something in a session, and waits until the run ends or asks, at most 60 s.
#[utoipa::path(post, operation_id = "send_session_message", path = "/sessions/{chat}/message", tag = "older clients", params(("chat" = String, Path, description = "Its id")), request_body = Content, responses((status = 200, description = "The session", body = Session)))]
async fn message(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<Content>,
) -> Result<Json<Session>, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    let form = Form::waited(&server, LONGEST_WAIT)?;
    speak(&server, &signed, (access, chat), form, body.content).await?;
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    Ok(Json(session(&server, access, &chat).await?))
}

/// Decides what a session waits for.
#[utoipa::path(post, operation_id = "confirm_session_action", path = "/sessions/{chat}/confirm", tag = "older clients", params(("chat" = String, Path, description = "Its id")), request_body = NewDecision, responses((status = 200, description = "The session", body = Session)))]
async fn confirm(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewDecision>,
) -> Result<Json<Session>, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    let action = body.names().unwrap_or_default().to_owned();
    let (_, item) = approvals::find(&server, &signed, &action).await?;
    if item.chat != chat.id {
        return Err(Problem::not_found("action", &action));
    }
    decided(&server, &signed, &action, body).await?;
    Ok(Json(session(&server, access, &chat).await?))
}

/// Cancels what a session does.
#[utoipa::path(post, path = "/sessions/{chat}/cancel", tag = "older clients", params(("chat" = String, Path, description = "Its id")), responses((status = 200, description = "The session", body = Session)))]
async fn cancel_session(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Session>, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    if let Some(tip) = chat.tip {
        stop(&server, &signed, &server.engine.run_row(access.workspace, tip).await?).await?;
    }
    Ok(Json(session(&server, access, &chat).await?))
}

/// What the agent did in a session, one line for each call.
#[utoipa::path(get, operation_id = "list_session_logs", path = "/sessions/{chat}/logs", tag = "older clients", params(("chat" = String, Path, description = "Its id")), responses((status = 200, description = "Actions", body = Vec<ActionLog>)))]
async fn logs(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Vec<ActionLog>>, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    let mut rows = Vec::new();
    for Told { run, .. } in runs(&server, access, &chat).await? {
        for action in run.actions {
            let target_path = target(&server, &action);
            rows.push(ActionLog {
                id: action.call_id.to_string(),
                session_id: chat.id.to_string(),
                action_type: action.tool_name,
                target_path,
                input_summary: summary(&action.arguments),
                output_summary: summary(&action.output.unwrap_or_default()),
                was_allowed: action.started_at.is_some(),
                execution_time_ms: action.ms,
                created_at: action.started_at.or(action.finished_at).map(Moment::from),
            });
        }
    }
    Ok(Json(rows))
}

/// A run of a chat, and whether an edit has put another in its place: what it did has happened all the same.
struct Told {
    run: RunReport,
    superseded: bool,
}

/// The runs of a chat, oldest first.
async fn runs(server: &Server, access: Access, chat: &ChatRow) -> Result<Vec<Told>, Problem> {
    let filter = RunFilter { chat: Some(chat.id), superseded: true, ..RunFilter::default() };
    let rows = server.engine.store().runs(access.workspace, &filter, SHOWN).await?;
    let mut told = Vec::new();
    for row in rows.iter().rev() {
        let run = server.engine.report(access.workspace, row.id).await?;
        told.push(Told { run, superseded: row.superseded_by.is_some() });
    }
    Ok(told)
}

/// A chat in the words of its clients.
async fn session(server: &Server, access: Access, chat: &ChatRow) -> Result<Session, Problem> {
    let told = runs(server, access, chat).await?;
    let said: Vec<&RunReport> = told.iter().filter(|told| !told.superseded).map(|told| &told.run).collect();
    let last = said.last();
    let status = match last.map(|run| run.status) {
        None | Some(Status::Queued) => "pending",
        Some(Status::Running | Status::WaitingApproval | Status::Paused | Status::InDoubt | Status::Cancelling) => {
            "running"
        }
        Some(Status::Completed) => "completed",
        Some(Status::Failed) => "failed",
        Some(Status::Cancelled) => "cancelled",
    };
    let pending = Some("pending".to_owned());
    let filter = ApprovalFilter { status: pending, run: last.map(|run| run.id), ..ApprovalFilter::default() };
    let store = server.engine.store();
    let (waiting, calls) = match last {
        Some(run) => {
            let waiting = store.approvals(access.workspace, &filter, SHOWN).await?;
            (waiting, store.calls(access.workspace, run.id).await?)
        }
        None => (Vec::new(), Vec::new()),
    };
    let actions: Vec<PendingAction> = waiting.iter().map(|item| PendingAction::of(item, &calls)).collect();
    let messages = said.iter().map(|run| SessionMessage {
        role: "assistant",
        content: run.result.clone(),
        pending_actions: if Some(run.id) == chat.tip { actions.clone() } else { Vec::new() },
    });
    let done = || told.iter().map(|told| &told.run);
    let files: BTreeSet<&String> = done().flat_map(|run| &run.files_modified).collect();
    Ok(Session {
        id: chat.id.to_string(),
        session_id: chat.id.to_string(),
        agent_id: chat.agent.to_string(),
        task_id: None,
        user_id: chat.owner.to_string(),
        status,
        context: BTreeMap::new(),
        messages: messages.collect(),
        pending_actions: actions,
        files_modified: files.into_iter().cloned().collect(),
        tokens_used: done().map(|run| run.token_usage.input + run.token_usage.output).sum(),
        api_calls_made: done().map(|run| run.model_calls.len()).sum(),
        started_at: chat.created_at.into(),
        completed_at: last.and_then(|run| run.finished_at).map(Moment::from),
        error_message: last.and_then(|run| run.error.as_ref()).map(|error| error.message.clone()),
    })
}
