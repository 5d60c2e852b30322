//! `/chats`: threads of runs. A chat is its starter's own until it is shared.

use std::collections::BTreeMap;

use adjutant_core::id::ChatId;
use adjutant_core::limits;
use adjutant_core::options::ToolChoice;
use adjutant_engine::store::row::{ChatFilter, ChatRow};
use adjutant_engine::{Right, Role, WhenBusy};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{find_agent, listed};
use super::ask::{Asked, Body, Path, given, id};
use super::chat_runs::{self, ChatRun};
use super::door::{Access, Signed};
use super::import::Past;
use super::page::{Page, limit, page};
use super::problem::Problem;
use super::runs::notebook;
use super::server::Server;
use super::shape::RunDocument;
use super::start::{AttachedFile, Begun, Form, Mode, OnLeave, Started, Wait, begin, check_metadata, reply};
use super::waiting::{self, WaitingMessage};
use crate::wire::Moment;

/// Runs of a chat that are shown with it.
pub(super) const RUNS: u32 = 100;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, change, delete)).routes(routes!(say))
}

/// A chat that the caller may see, and what they are where it is.
///
/// # Errors
/// 404 when there is none, or it is somebody else's.
pub(super) async fn find_chat(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ChatRow), Problem> {
    let chat: ChatId = id("chat", name)?;
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().chat(access.workspace, chat).await?
            && access.may_see(row.owner, row.shared)
        {
            return Ok((access, row));
        }
    }
    Err(Problem::not_found("chat", name))
}

/// A thread of runs.
#[derive(Serialize, ToSchema)]
pub(super) struct Chat {
    id: String,
    workspace_id: String,
    agent_id: String,
    notebook_id: Option<String>,
    /// Who started it.
    owner_id: String,
    title: String,
    /// Whether everybody in the workspace may see it.
    is_shared: bool,
    /// Its newest run.
    last_run_id: Option<String>,
    /// The run it was forked from.
    forked_from: Option<String>,
    /// The name that a client gave it.
    alias: Option<String>,
    /// The model of its runs that name none; without one it is the agent's.
    model: Option<String>,
    /// Free fields of whoever made it.
    metadata: BTreeMap<String, String>,
    created_at: Moment,
    /// Messages that wait until it is free. Only where one chat is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Vec<WaitingMessage>>,
    /// Its newest runs, newest first, with `?include=runs` or `events`.
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<Vec<ChatRun>>,
}

pub(super) fn shown(row: &ChatRow) -> Chat {
    Chat {
        id: row.id.to_string(),
        workspace_id: row.workspace.to_string(),
        agent_id: row.agent.to_string(),
        notebook_id: row.notebook.map(|notebook| notebook.to_string()),
        owner_id: row.owner.to_string(),
        title: row.title.clone(),
        is_shared: row.shared,
        last_run_id: row.tip.map(|run| run.to_string()),
        forked_from: row.forked_from.map(|run| run.to_string()),
        alias: row.alias.clone(),
        model: row.model.clone(),
        metadata: row.metadata.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        created_at: row.created_at.into(),
        waiting: None,
        runs: None,
    }
}

/// Which chats.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// Only of this agent (id or short name).
    agent: Option<String>,
    /// How many, from 1 to 200.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Chats that you may see, newest first.
#[utoipa::path(get, operation_id = "list_chats", path = "/chats", tag = "chats", params(Wanted), responses((status = 200, description = "Chats", body = Page<Chat>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Page<Chat>>, Problem> {
    let most = limit(wanted.limit)?;
    let mut rows: Vec<ChatRow> = Vec::new();
    let places = listed(&server, &signed, wanted.workspace_id.as_deref(), wanted.agent.as_deref()).await?;
    for (access, agent) in places {
        let before = given::<ChatId>("cursor", wanted.cursor.as_deref())?;
        let filter = ChatFilter { agent, visible_to: access.visible_to(), before };
        rows.extend(server.engine.store().chats(access.workspace, &filter, most + 1).await?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    Ok(page(rows, most, |row| row.id.to_string(), shown))
}

/// A chat to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewChat {
    /// The workspace, where the agent's short name is not enough.
    workspace_id: Option<String>,
    /// The agent (id or short name).
    agent_id: String,
    /// The notebook; chosen by the agent's scope without it.
    notebook_id: Option<String>,
    /// Its title.
    title: Option<String>,
    /// Free fields, never shown to a model: at most 16.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

/// Makes a chat with an agent.
#[utoipa::path(post, operation_id = "create_chat", path = "/chats", tag = "chats", request_body = NewChat, responses((status = 201, description = "The chat", body = Chat)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<NewChat>,
) -> Result<(StatusCode, Json<Chat>), Problem> {
    let (access, agent) = find_agent(&server, &signed, body.workspace_id.as_deref(), &body.agent_id).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    let notebook = notebook(&server, access, body.notebook_id.as_deref()).await?;
    let title = checked(body.title.as_deref().unwrap_or("New chat"))?;
    check_metadata(&body.metadata, "Nothing was made.")?;
    let (workspace, user) = (access.workspace, access.user);
    let chat = server.engine.create_chat(workspace, user, agent.id, notebook, title, &body.metadata).await?;
    server.engine.store().announce_chat(&chat);
    Ok((StatusCode::CREATED, Json(shown(&chat))))
}

pub(super) fn checked(title: &str) -> Result<String, Problem> {
    let title = title.trim();
    if title.is_empty() || title.chars().count() > 200 {
        return Err(Problem::invalid("Nothing was written.").error("/title", "has 1 to 200 characters"));
    }
    Ok(title.to_owned())
}

/// What comes with it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Include {
    /// `runs`: the newest 100 of its runs, too. `events`: those with their events, as long as these are 1,000 together; a run
    /// without `events` is read at `/runs/{run}/events`.
    include: Option<String>,
}

/// One chat.
#[utoipa::path(get, operation_id = "get_chat", path = "/chats/{chat}", tag = "chats", params(("chat" = String, Path, description = "Its id"), Include), responses((status = 200, description = "The chat", body = Chat)))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(asked): Asked<Include>,
) -> Result<Json<Chat>, Problem> {
    let (access, row) = find_chat(&server, &signed, &name).await?;
    let mut chat = shown(&row);
    let waits = server.engine.store().waiting_in(access.workspace, row.id, limits::MESSAGES_WAITING).await?;
    chat.waiting = Some(waits.iter().map(waiting::shown).collect());
    let wanted: Vec<&str> =
        asked.include.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty()).collect();
    if let Some(unknown) = wanted.iter().find(|word| !["runs", "events"].contains(word)) {
        return Err(Problem::invalid("Nothing was read.").error("include", format!("`{unknown}` is not known")));
    }
    if !wanted.is_empty() {
        chat.runs = Some(chat_runs::of(&server, &row, wanted.contains(&"events")).await?);
    }
    Ok(Json(chat))
}

/// What to change of a chat.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChatChange {
    /// Another title.
    title: Option<String>,
    /// Whether everybody in the workspace may see it.
    is_shared: Option<bool>,
    /// The model of its runs that name none, or a strategy that chooses one; `default` is the agent's.
    model: Option<String>,
    /// Other free fields, in place of all it has.
    metadata: Option<BTreeMap<String, String>>,
}

/// Gives a chat another title, another model or other free fields, or shares it with the workspace. For its starter and admins.
#[utoipa::path(patch, operation_id = "change_chat", path = "/chats/{chat}", tag = "chats", params(("chat" = String, Path, description = "Its id")), request_body = ChatChange, responses((status = 200, description = "The chat", body = Chat)))]
async fn change(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<ChatChange>,
) -> Result<Json<Chat>, Problem> {
    let (access, row) = own_chat(&server, &signed, &name).await?;
    let title = body.title.as_deref().map(checked).transpose()?;
    if let Some(fields) = &body.metadata {
        check_metadata(fields, "Nothing was changed.")?;
    }
    let change =
        adjutant_engine::ChatChange { title, shared: body.is_shared, model: body.model, metadata: body.metadata };
    let (row, before) = (server.engine.change_chat(access.user, &row, change).await?, row);
    let body = shown(&row);
    // Whoever could see it until now hears of it, too.
    server.engine.store().announce_chat(&ChatRow { shared: row.shared || before.shared, ..row });
    Ok(Json(body))
}

/// A chat that the caller may change: its starter and admins.
async fn own_chat(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ChatRow), Problem> {
    let (access, row) = find_chat(server, signed, name).await?;
    let access = signed.must(access, Role::Write, Right::Write)?;
    if row.owner != access.user && access.role < Role::Admin {
        return Err(Problem::forbidden(
            "Only whoever started this chat, or an admin, may change it. Nothing was changed.",
        ));
    }
    Ok((access, row))
}

/// Takes a chat away and forgets what was said in it. For its starter and admins. While one of its runs has not ended, it is
/// `busy`. Of the runs their numbers and hash chains stay, for the audit.
#[utoipa::path(delete, operation_id = "delete_chat", path = "/chats/{chat}", tag = "chats", params(("chat" = String, Path, description = "Its id")), responses((status = 204, description = "It is gone")))]
async fn delete(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let (access, row) = own_chat(&server, &signed, &name).await?;
    server.engine.delete_chat(access.workspace, access.user, row.id).await?;
    server.engine.store().announce_chat(&row);
    Ok(StatusCode::NO_CONTENT)
}

/// A message.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Message {
    /// What you say.
    user_message: String,
    /// A chat goes on from what was said in it: only an empty list is taken.
    #[serde(default)]
    history: Vec<Past>,
    /// The notebook of the chat, which stays what it is: another one is refused.
    notebook_id: Option<String>,
    /// Files of the chat's notebook that come with it: texts are shown to the model, pictures to a model that can see.
    #[serde(default)]
    attachments: Vec<AttachedFile>,
    /// Another model than the agent's, or a strategy that chooses one.
    model: Option<String>,
    /// What the run may cost in dollars, if that is less than its agent allows.
    max_cost_usd: Option<f64>,
    /// Its model turns, if those are fewer than the agent has.
    max_turns: Option<u32>,
    /// The stored key to use for the provider it is for, in place of the agent's.
    provider_key_id: Option<String>,
    /// How freely it acts, if that is less than the agent may: `plan` only reads.
    autonomy: Option<Mode>,
    /// What becomes of it while the chat is busy: `refuse`, or `queue` until it is free.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    when_busy: WhenBusy,
    /// The JSON Schema that the answer has to fit; `result` is then what it holds. At most 16 KiB.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// Whether what goes over the wire in its model calls is kept, without keys, to be looked at later.
    #[serde(default)]
    debug: bool,
    /// A number that makes answers alike, as far as a provider can, in place of the agent's.
    seed: Option<u32>,
    /// Whether the first answer has to use a tool: `auto`, `none`, `required`, or the name of one; in place of what the agent says.
    #[schema(value_type = Option<String>)]
    tool_choice: Option<ToolChoice>,
    /// Free fields, never shown to a model: at most 16.
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    /// Cancels the run when the client that streams it goes away.
    #[serde(default)]
    cancel_on_disconnect: bool,
}

/// Says something in a chat: the next run. `Accept: text/event-stream` streams it, `?wait=60` waits for it. A chat whose last run has not ended is `busy`; with `"when_busy": "queue"` the message waits, and is answered with the id of the run it will be.
#[utoipa::path(post, operation_id = "say_in_chat", path = "/chats/{chat}/runs", tag = "chats", params(("chat" = String, Path, description = "Its id"), Wait), request_body = Message, responses((status = 200, description = "The stream, or the run once it ended or asks", content((RunDocument = "application/json"), (String = "text/event-stream"))), (status = 202, description = "Started, or waiting", body = Begun)))]
async fn say(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
    Body(body): Body<Message>,
) -> Result<Response, Problem> {
    let (access, chat) = find_chat(&server, &signed, &name).await?;
    let access = signed.must(access, Role::Write, Right::Run)?;
    let (_, agent) = find_agent(&server, &signed, None, &chat.agent.to_string()).await?;
    check_metadata(&body.metadata, "Nothing was started.")?;
    fits(&server, access, &chat, &body).await?;
    let started = Started {
        agent,
        chat: Some(chat.id),
        notebook: None,
        message: body.user_message,
        attachments: body.attachments,
        model: body.model,
        max_cost_usd: body.max_cost_usd,
        max_turns: body.max_turns,
        provider_key_id: body.provider_key_id,
        output_schema: body.output_schema,
        debug: body.debug,
        seed: body.seed,
        tool_choice: body.tool_choice,
        autonomy: body.autonomy,
        when_busy: body.when_busy,
        metadata: body.metadata,
    };
    let (form, on_leave) = (Form::of(&server, &headers, wait)?, OnLeave::cancel_if(body.cancel_on_disconnect));
    let said = begin(&server, access, started).await?;
    reply(&server, &signed, access, form, said, on_leave).await
}

/// Refuses what a chat has already, and cannot have twice.
async fn fits(server: &Server, access: Access, chat: &ChatRow, body: &Message) -> Result<(), Problem> {
    if !body.history.is_empty() {
        return Err(Problem::invalid("Nothing was started.")
            .error("/history", "a chat goes on from what was said in it")
            .hint("begin a chat with it: POST /api/v1/runs, or POST /api/v1/chats/import"));
    }
    let named = notebook(server, access, body.notebook_id.as_deref()).await?;
    if named.is_some() && named != chat.notebook {
        return Err(Problem::invalid("Nothing was started.")
            .error("/notebook_id", "a chat keeps the notebook that it was begun with")
            .hint("leave it out, or begin a chat on that notebook: POST /api/v1/runs"));
    }
    Ok(())
}
