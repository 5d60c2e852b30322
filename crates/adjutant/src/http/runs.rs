//! `/runs`: starting, listing, reading and following runs.

use std::collections::BTreeMap;
use std::time::Duration;

use adjutant_core::id::{AgentId, ChatId, NotebookId, RunId};
use adjutant_core::options::ToolChoice;
use adjutant_core::run::status::Status;
use adjutant_engine::store::row::{RunFilter, RunRow};
use adjutant_engine::{ChosenBy, ImportChat, Made, Right, Role, WhenBusy};
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{find_agent, listed};
use super::ask::{Asked, Body, Path, given, id, unknown_word};
use super::door::{Access, Signed};
use super::import::{Past, said};
use super::page::{Page, all, limit, page, part};
use super::problem::Problem;
use super::server::Server;
use super::shape::{EventLine, Resource, RunDocument};
use super::start::{
    AttachedFile, Begun, Form, LONGEST_WAIT, Mode, OnLeave, Started, Wait, begin, check_metadata, reply, wait_for,
};
use super::stream::{last_seen, seat, stream, wants_stream};
use super::waiting::{self, WaitingMessage};
use crate::wire::{self, RunLine, Texts};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, start))
        .routes(routes!(get))
        .routes(routes!(events))
        .routes(routes!(resources))
}

/// A run that the caller may see, and what they are where it is.
///
/// # Errors
/// 404 when there is none, or it is somebody else's.
pub(super) async fn find_run(server: &Server, signed: &Signed, name: &str) -> Result<(Access, RunRow), Problem> {
    let run: RunId = id("run", name)?;
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().run(access.workspace, run).await? {
            let chat = server.engine.store().chat(access.workspace, row.chat).await?;
            let shared = chat.is_some_and(|chat| chat.shared);
            if access.may_see(row.initiator, shared) {
                return Ok((access, row));
            }
        }
    }
    Err(Problem::not_found("run", name))
}

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// Only of this agent (id or short name).
    agent: Option<String>,
    /// Only of this chat.
    chat: Option<String>,
    /// Only in this status.
    status: Option<String>,
    /// Only started by this: `message`, …
    trigger: Option<String>,
    /// Only made from this run: its forks, its edits, and what went on after it at a limit.
    parent: Option<String>,
    /// Runs that an edit replaced, too.
    superseded: Option<bool>,
    /// How many, from 1 to 200.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Runs that you may see, newest first.
#[utoipa::path(get, operation_id = "list_runs", path = "/runs", tag = "runs", params(Wanted), responses((status = 200, description = "Runs", body = Page<RunLine>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Page<RunLine>>, Problem> {
    let most = limit(wanted.limit)?;
    if let Some(word) = wanted.status.as_deref().filter(|word| Status::parse(word).is_none()) {
        return Err(unknown_word("status", word));
    }
    let mut rows: Vec<RunRow> = Vec::new();
    let mut names: BTreeMap<AgentId, String> = BTreeMap::new();
    let places = listed(&server, &signed, wanted.workspace_id.as_deref(), wanted.agent.as_deref()).await?;
    for (access, agent) in places {
        let filter = RunFilter {
            agent,
            chat: given::<ChatId>("chat", wanted.chat.as_deref())?,
            status: wanted.status.clone(),
            trigger: wanted.trigger.clone(),
            parent: given::<RunId>("parent", wanted.parent.as_deref())?,
            visible_to: access.visible_to(),
            before: given::<RunId>("cursor", wanted.cursor.as_deref())?,
            superseded: wanted.superseded.unwrap_or(false),
        };
        rows.extend(server.engine.store().runs(access.workspace, &filter, most + 1).await?);
        names.extend(server.engine.store().agents(access.workspace).await?.into_iter().map(|row| (row.id, row.slug)));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.id));
    let name = |row: &RunRow| names.get(&row.agent).cloned().unwrap_or_else(|| row.agent.to_string());
    Ok(page(rows, most, |row| row.id.to_string(), |row| wire::run(row, &name(row))))
}

/// A run to be started.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewRun {
    /// The workspace, where the agent's short name is not enough.
    workspace_id: Option<String>,
    /// The agent (id or short name). Without it one is chosen: that which the message mentions (`@name`), else by keywords,
    /// else the one everybody starts with.
    agent_id: Option<String>,
    /// What it shall do.
    input: String,
    /// What was said elsewhere before it, oldest first: the chat begins with it. All of it counts as untrusted.
    #[serde(default)]
    history: Vec<Past>,
    /// Files of the notebook that come with it: texts are shown to the model, pictures to a model that can see.
    #[serde(default)]
    attachments: Vec<AttachedFile>,
    /// The notebook; chosen by the agent's scope without it.
    notebook_id: Option<String>,
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
    /// What becomes of it while its chat is busy, `refuse` or `queue`: a chat that begins with it is free, so either starts it.
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

/// Starts a run in a chat of its own. `Accept: text/event-stream` streams it, `?wait=60` waits for it, otherwise the answer comes at once.
#[utoipa::path(post, operation_id = "start_run", path = "/runs", tag = "runs", params(Wait), request_body = NewRun, responses((status = 200, description = "The stream, or the run once it ended or asks", content((RunDocument = "application/json"), (String = "text/event-stream"))), (status = 202, description = "Started", body = Begun)))]
async fn start(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Asked(wait): Asked<Wait>,
    Body(body): Body<NewRun>,
) -> Result<Response, Problem> {
    let mut metadata = body.metadata;
    check_metadata(&metadata, "Nothing was started.")?;
    let (access, agent) = match &body.agent_id {
        Some(name) => find_agent(&server, &signed, body.workspace_id.as_deref(), name).await?,
        None => {
            let access = signed.workspace_or_only(body.workspace_id.as_deref(), Role::Write, Right::Run)?;
            let choice = server.engine.choose_agent(access.workspace, access.user, &body.input).await?;
            metadata.insert(
                "chosen_by".to_owned(),
                match choice.by {
                    ChosenBy::Mention => "mention".to_owned(),
                    ChosenBy::Keyword(word) => format!("keyword: {word}"),
                    ChosenBy::Default => "default".to_owned(),
                },
            );
            (access, choice.agent)
        }
    };
    let access = signed.must(access, Role::Write, Right::Run)?;
    let notebook = notebook(&server, access, body.notebook_id.as_deref()).await?;
    let on_leave = OnLeave::cancel_if(body.cancel_on_disconnect);
    let form = Form::of(&server, &headers, wait)?;
    let begun = if body.history.is_empty() {
        None
    } else {
        let title = body.input.chars().take(60).collect::<String>();
        let title = title.lines().next().map_or("New chat", str::trim);
        let (user, said) = (access.user, said(body.history));
        let chat = ImportChat { user, agent: agent.id, notebook, title: title.to_owned(), said };
        Some(server.engine.import_chat(access.workspace, chat).await?.id)
    };
    let ask = Started {
        agent,
        chat: begun,
        notebook,
        message: body.input,
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
        metadata,
    };
    let said = begin(&server, access, ask).await;
    if let (Err(_), Some(chat)) = (&said, begun)
        && let Err(error) = server.engine.delete_chat(access.workspace, access.user, chat).await
    {
        tracing::warn!(%chat, %error, "a chat whose first run could not be started could not be taken away");
    }
    reply(&server, &signed, access, form, said?, on_leave).await
}

/// A notebook of a workspace by id or short name.
pub(super) async fn notebook(
    server: &Server,
    access: Access,
    name: Option<&str>,
) -> Result<Option<NotebookId>, Problem> {
    let Some(name) = name else { return Ok(None) };
    let found = match name.parse::<NotebookId>() {
        Ok(id) => server.engine.store().notebook(access.workspace, id).await?,
        Err(_) => server.engine.store().notebook_by_slug(access.workspace, name).await?,
    };
    found.map(|row| Some(row.id)).ok_or_else(|| Problem::not_found("notebook", name))
}

/// A run as one document: the answer, every action, every model call, and what they cost. `?wait=60` waits for its end first.
#[utoipa::path(get, operation_id = "get_run", path = "/runs/{run}", tag = "runs", params(("run" = String, Path, description = "Its id"), Wait), responses((status = 200, description = "The run, or the message that will be one", body = RunOrMessage)))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(wait): Asked<Wait>,
) -> Result<Response, Problem> {
    let (access, row) = match find_run(&server, &signed, &name).await {
        Ok(found) => found,
        Err(problem) => {
            let (_, row) = waiting::find(&server, &signed, &name).await.map_err(|_| problem)?;
            return Ok(Json(waiting::shown(&row)).into_response());
        }
    };
    if let Some(seconds) = wait.wait {
        let most = Duration::from_secs(seconds.min(LONGEST_WAIT));
        wait_for(&server, seat(&server)?, &signed, access, row.id, most).await?;
    }
    Ok(Json(document(&server, access, row.id).await?).into_response())
}

/// A run, or a message that waits until its chat is free.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code, clippy::large_enum_variant, reason = "it only describes the answer")]
enum RunOrMessage {
    Run(RunDocument),
    Waits(WaitingMessage),
}

/// The whole of a run, with where its events are.
pub(super) async fn document(server: &Server, access: Access, run: RunId) -> Result<Value, Problem> {
    let report = server.engine.report(access.workspace, run).await?;
    let mut shown = report.document();
    shown["workspace_id"] = json!(access.workspace);
    shown["event_stream"] = json!(format!("/api/v1/runs/{run}/events"));
    Ok(shown)
}

/// Where to go on.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct After {
    /// Only events after this number.
    after: Option<u64>,
    /// The same: `next_cursor` of the page before.
    cursor: Option<u64>,
    /// How many, from 1 to 200, of a list.
    limit: Option<u32>,
}

/// The events of a run. `Accept: text/event-stream` follows it live and resumes by `Last-Event-ID`; otherwise a list.
#[utoipa::path(get, operation_id = "list_run_events", path = "/runs/{run}/events", tag = "runs", params(("run" = String, Path, description = "Its id"), After), responses((status = 200, description = "The stream, or a page of events", content((Page<EventLine> = "application/json"), (String = "text/event-stream"))), (status = 204, description = "The run has ended and there is nothing more")))]
async fn events(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Asked(asked): Asked<After>,
) -> Result<Response, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let after = last_seen(&headers, asked.after.or(asked.cursor))?;
    if wants_stream(&headers) {
        return stream(&server, seat(&server)?, &signed, access, row.id, after).await;
    }
    let most = limit(asked.limit)?;
    let until = after.saturating_add(u64::from(most));
    let recorded = server.engine.recorded(access.workspace, row.id, after, Some(until)).await?;
    let texts = Texts::load(&server.engine, access.workspace, recorded.iter().map(|item| &item.event)).await?;
    let data: Vec<_> = recorded.iter().filter_map(|item| wire::event(row.id, item, &texts)).collect();
    // Numbers without a public event are skipped, so the cursor is a number of the log.
    let next = (row.head.seq > until).then(|| until.to_string());
    Ok(part(data, next).into_response())
}

/// What a run created, changed or deleted.
#[utoipa::path(get, operation_id = "list_run_resources", path = "/runs/{run}/resources", tag = "runs", params(("run" = String, Path, description = "Its id")), responses((status = 200, description = "Resources", body = Page<Resource>)))]
async fn resources(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Page<Made>>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    Ok(all(server.engine.report(access.workspace, row.id).await?.resources))
}
