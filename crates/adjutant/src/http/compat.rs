//! Paths of older clients, with no logic of their own: an *interaction* is a run, a *session* is a chat. At the root and under
//! `/api/v1`; a chat that is not known under a name of the client's own is made at the first message.

mod credentials;
mod openai;
mod sessions;

use adjutant_core::id::{ChatId, RunId};
use adjutant_core::run::command::Command;
use adjutant_core::run::event::Actor;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{ChatRow, RunFilter, RunRow};
use adjutant_engine::{EngineError, Right, Role, WhenBusy};
use axum::Json;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find_agent;
use super::approvals::{NewDecision, decided};
use super::ask::{Body, Path, accepts};
use super::chats::find_chat;
use super::door::{Access, Signed};
use super::problem::{Kind, Problem};
use super::runs::find_run;
use super::server::Server;
use super::start::{Form, OnLeave, Started, answer, begin, reply};
use super::steer::{Edit, replaceable, steered};
use super::stream::{last_seen, seat, stream};
use crate::wire::{self, Moment, Texts};

/// Interactions of a chat that are shown with it.
const SHOWN: u32 = 100;
/// Letters of a name that a client gives to a chat.
const ALIAS: usize = 128;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(say))
        .routes(routes!(follow))
        .routes(routes!(approve))
        .routes(routes!(cancel))
        .routes(routes!(edit))
        .merge(credentials::router())
        .merge(sessions::router())
}

/// The same at the root, and with a slash at the end.
pub(super) fn root() -> Router<Server> {
    Router::new()
        .route("/chats/{chat}", get(history))
        .route("/chats/{chat}/interactions", post(say))
        .route("/chats/{chat}/interactions/{run}", get(follow))
        .route("/chats/{chat}/interactions/{run}/approve", post(approve))
        .route("/chats/{chat}/interactions/{run}/cancel", post(cancel))
        .route("/chats/{chat}/interactions/{run}/edit", post(edit))
        .route("/api/v1/agents/", get(super::agents::list).post(super::agents::create))
        .merge(super::agents::slashed())
        .merge(credentials::slashed())
        .merge(sessions::slashed())
}

/// What a client says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Spoken {
    /// The message.
    user_message: String,
}

/// A chat by its id, or by the name that a client of the caller gave it. What others call theirs counts for nothing, also where
/// the caller may see it: a name must not lead into somebody else's chat.
async fn chat_of(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ChatRow), Problem> {
    if name.parse::<ChatId>().is_ok() {
        return find_chat(server, signed, name).await;
    }
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().chat_by_alias(access.workspace, access.user, name).await? {
            return Ok((access, row));
        }
    }
    Err(Problem::not_found("chat", name))
}

async fn chat_or_new(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ChatRow), Problem> {
    match chat_of(server, signed, name).await {
        Err(problem) if problem.is(Kind::NotFound) && name.parse::<ChatId>().is_err() => {}
        other => return other,
    }
    if name.len() > ALIAS || name.chars().any(char::is_control) {
        return Err(Problem::invalid("Nothing was started.").error("chat", "has up to 128 characters"));
    }
    let access = signed.workspaces(None)?.first().copied();
    let access = access.ok_or_else(|| Problem::not_found("workspace", "of yours"))?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    let agent = server.engine.choose_agent(access.workspace, access.user, "").await?.agent;
    let chat = server.engine.create_named_chat(access.workspace, access.user, agent.id, name).await?;
    Ok((access, chat))
}

async fn speak(
    server: &Server,
    signed: &Signed,
    (access, chat): (Access, ChatRow),
    form: Form,
    message: String,
) -> Result<Response, Problem> {
    let access = signed.must(access, Role::Write, Right::Run)?;
    let (_, agent) = find_agent(server, signed, None, &chat.agent.to_string()).await?;
    let started = Started {
        agent,
        chat: Some(chat.id),
        notebook: None,
        message,
        attachments: Vec::new(),
        model: None,
        max_cost_usd: None,
        max_turns: None,
        provider_key_id: None,
        output_schema: None,
        debug: false,
        seed: None,
        tool_choice: None,
        autonomy: None,
        when_busy: WhenBusy::Refuse,
        metadata: Default::default(),
    };
    let said = begin(server, access, started).await?;
    reply(server, signed, access, form, said, OnLeave::Nothing).await
}

/// Says something in a chat and streams what happens. A chat that is not known is made.
#[utoipa::path(post, operation_id = "say_in_interaction", path = "/chats/{chat}/interactions", tag = "older clients", params(("chat" = String, Path, description = "Its id, or a name of your own")), request_body = Spoken, responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream")))]
async fn say(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<Spoken>,
) -> Result<Response, Problem> {
    let form = Form::streamed(&server)?;
    let found = chat_or_new(&server, &signed, &name).await?;
    speak(&server, &signed, found, form, body.user_message).await
}

/// A run of a chat.
async fn interaction(server: &Server, signed: &Signed, chat: &str, run: &str) -> Result<(Access, RunRow), Problem> {
    let (access, chat) = chat_of(server, signed, chat).await?;
    let (_, row) = find_run(server, signed, run).await?;
    if row.chat == chat.id { Ok((access, row)) } else { Err(Problem::not_found("interaction", run)) }
}

/// One interaction: its stream, which resumes by `Last-Event-ID`, or with `Accept: application/json` the whole of it.
#[utoipa::path(get, operation_id = "follow_interaction", path = "/chats/{chat}/interactions/{run}", tag = "older clients", params(("chat" = String, Path, description = "Its id, or a name of your own"), ("run" = String, Path, description = "The interaction")), responses((status = 200, description = "The interaction, or its stream", content((Interaction = "application/json"), (String = "text/event-stream"))), (status = 204, description = "It has ended and there is nothing more")))]
async fn follow(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path((chat, run)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (access, row) = interaction(&server, &signed, &chat, &run).await?;
    if accepts(&headers, "application/json") {
        return Ok(Json(told(&server, access, &row, true).await?).into_response());
    }
    let after = last_seen(&headers, None)?;
    stream(&server, seat(&server)?, &signed, access, row.id, after).await
}

/// That a decision was taken in.
#[derive(Serialize, ToSchema)]
struct Processed {
    /// `processed`.
    status: &'static str,
    approval_id: String,
    approved: Option<bool>,
}

/// That an interaction was told to stop.
#[derive(Serialize, ToSchema)]
struct Stopping {
    /// `cancelling`; of one that has ended, how it did.
    status: String,
    interaction_id: String,
    message: &'static str,
}

/// A run, in the words of its clients.
#[derive(Serialize, ToSchema)]
struct Interaction {
    id: String,
    /// `RUNNING`, `COMPLETED`, …
    status: String,
    user_message: Option<String>,
    /// `tool_call`, `tool_result`, `thinking` and `answer`, as the stream sends them.
    #[schema(value_type = Vec<Object>)]
    agent_events: Vec<Value>,
    /// The conversation as messages of the OpenAI API, as models are given it; of the last interaction, once it has ended.
    final_agent_state: Option<AgentState>,
    created_at: Moment,
    completed_at: Option<Moment>,
}

/// A conversation.
#[derive(Serialize, ToSchema)]
struct AgentState {
    #[schema(value_type = Vec<Object>)]
    messages: Vec<Value>,
}

/// Decides what an interaction waits for. Decided already is 400 here.
#[utoipa::path(post, operation_id = "approve_interaction", path = "/chats/{chat}/interactions/{run}/approve", tag = "older clients", params(("chat" = String, Path, description = "Its id, or a name of your own"), ("run" = String, Path, description = "The interaction")), request_body = NewDecision, responses((status = 200, description = "Done", body = Processed)))]
async fn approve(
    State(server): State<Server>,
    signed: Signed,
    Path((chat, run)): Path<(String, String)>,
    Body(body): Body<NewDecision>,
) -> Result<Json<Processed>, Problem> {
    let (_, row) = interaction(&server, &signed, &chat, &run).await?;
    let (name, approved) = (body.names().unwrap_or_default().to_owned(), body.approved);
    let (_, item) = super::approvals::find(&server, &signed, &name).await?;
    if item.run != row.id {
        return Err(Problem::not_found("approval", &name));
    }
    decided(&server, &signed, &name, body).await.map_err(|problem| {
        if problem.is(Kind::AlreadyDecided) { problem.answered_as(StatusCode::BAD_REQUEST) } else { problem }
    })?;
    Ok(Json(Processed { status: "processed", approval_id: name, approved }))
}

async fn stop(server: &Server, signed: &Signed, run: &RunRow) -> Result<Status, Problem> {
    let (access, _) = steered(server, signed, &run.id.to_string()).await?;
    let command = Command::Cancel { by: Actor::User(access.user), reason: "cancelled by a person".to_owned() };
    Ok(server.engine.command(access.workspace, run.id, &command).await?.status())
}

/// Cancels an interaction.
#[utoipa::path(post, operation_id = "cancel_interaction", path = "/chats/{chat}/interactions/{run}/cancel", tag = "older clients", params(("chat" = String, Path, description = "Its id, or a name of your own"), ("run" = String, Path, description = "The interaction")), responses((status = 200, description = "Told", body = Stopping)))]
async fn cancel(
    State(server): State<Server>,
    signed: Signed,
    Path((chat, run)): Path<(String, String)>,
) -> Result<Json<Stopping>, Problem> {
    let (_, row) = interaction(&server, &signed, &chat, &run).await?;
    let had_ended = Status::parse(&row.state.status).is_some_and(Status::is_end);
    let now = stop(&server, &signed, &row).await?;
    let (status, message) = if had_ended {
        (now.word().to_owned(), "Interaction had ended before")
    } else {
        ("cancelling".to_owned(), "Interaction will stop at next checkpoint")
    };
    Ok(Json(Stopping { status, interaction_id: row.id.to_string(), message }))
}

/// Says something else in place of an earlier message, and streams what happens.
#[utoipa::path(post, operation_id = "edit_interaction", path = "/chats/{chat}/interactions/{run}/edit", tag = "older clients", params(("chat" = String, Path, description = "Its id, or a name of your own"), ("run" = String, Path, description = "The interaction")), request_body = Edit, responses((status = 200, description = "The stream", body = String, content_type = "text/event-stream")))]
async fn edit(
    State(server): State<Server>,
    signed: Signed,
    Path((chat, run)): Path<(String, String)>,
    Body(body): Body<Edit>,
) -> Result<Response, Problem> {
    let (_, row) = interaction(&server, &signed, &chat, &run).await?;
    let (access, _) = replaceable(&server, &signed, &row.id.to_string()).await?;
    let form = Form::streamed(&server)?;
    let run = server.engine.edit_run(access.workspace, access.user, row.id, &body.new_user_message).await?;
    answer(&server, &signed, access, form, run, OnLeave::Nothing).await
}

/// A chat with its interactions, oldest first.
async fn history(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Value>, Problem> {
    let (access, chat) = chat_of(&server, &signed, &name).await?;
    let filter = RunFilter { chat: Some(chat.id), ..RunFilter::default() };
    let mut rows = server.engine.store().runs(access.workspace, &filter, SHOWN).await?;
    rows.reverse();
    let mut interactions = Vec::new();
    for row in &rows {
        let last = rows.last().is_some_and(|last| last.id == row.id);
        interactions.push(told(&server, access, row, last).await?);
    }
    Ok(Json(json!({"id": name, "interactions": interactions, "created_at": chat.created_at})))
}

/// An interaction in the words of its clients.
async fn told(server: &Server, access: Access, row: &RunRow, with_state: bool) -> Result<Interaction, Problem> {
    let heard = heard(server, access, row.id).await?;
    let state = if with_state && row.state.ended_at.is_some() {
        let said = server.engine.conversation(access.workspace, row.id).await?;
        Some(AgentState { messages: openai::messages(&said) })
    } else {
        None
    };
    Ok(Interaction {
        id: row.id.to_string(),
        status: row.state.status.clone(),
        final_agent_state: state,
        user_message: heard.message,
        agent_events: heard.events,
        created_at: row.created_at.into(),
        completed_at: row.state.ended_at.map(Moment::from),
    })
}

/// What was said and done in a run.
struct Heard {
    message: Option<String>,
    events: Vec<Value>,
}

async fn heard(server: &Server, access: Access, run: RunId) -> Result<Heard, EngineError> {
    let recorded = server.engine.recorded(access.workspace, run, 0, None).await?;
    let texts = Texts::load(&server.engine, access.workspace, recorded.iter().map(|item| &item.event)).await?;
    let (mut message, mut events) = (None, Vec::new());
    for event in recorded.iter().filter_map(|item| wire::event(run, item, &texts)) {
        match event.event.as_ref() {
            "interaction_started" => message = event.data["user_message"].as_str().map(str::to_owned),
            "tool_call" | "tool_result" | "thinking" | "answer" => events.push(event.data),
            _ => {}
        }
    }
    Ok(Heard { message, events })
}
