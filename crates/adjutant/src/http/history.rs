//! `/notebooks/{notebook}/history/…`: who changed a file, and what it was before.

use adjutant_core::content::Hash;
use adjutant_core::id::{AgentId, RunId, UserId};
use adjutant_core::limits;
use adjutant_core::time::Time;
use adjutant_engine::store::row::ApprovalFilter;
use adjutant_engine::{Card, NoteAuthor, NoteChange};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path, given};
use super::door::{Access, Signed};
use super::files::{place, raw};
use super::page::limit;
use super::problem::Problem;
use super::server::Server;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(history))
}

/// What of it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The content with this hash (`before` or `after` of a change) instead of the list.
    content: Option<String>,
    /// How many changes, from 1 to 200.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Who changed a file.
#[derive(Debug, Default, Serialize, ToSchema)]
struct Author {
    /// `run`, `person`, or `undo`: a person who took back what a run did.
    kind: &'static str,
    /// The person.
    #[schema(value_type = Option<String>)]
    user_id: Option<UserId>,
    /// Their name.
    name: Option<String>,
    /// The run, if you may see it.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// The agent of the run.
    #[schema(value_type = Option<String>)]
    agent_id: Option<AgentId>,
    /// The tool that the run used.
    tool: Option<String>,
    /// The name of whoever said yes to the call, where somebody was asked and you may see the run.
    approved_by: Option<String>,
}

/// One change of a file.
#[derive(Debug, Serialize, ToSchema)]
struct FileChange {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// `created`, `changed` or `deleted`.
    #[schema(value_type = String)]
    action: adjutant_core::tool::ResourceAction,
    /// By whom.
    by: Author,
    /// The hash of the content before; none where nothing was.
    #[schema(value_type = Option<String>)]
    before: Option<Hash>,
    /// The hash of the content after; none where nothing is.
    #[schema(value_type = Option<String>)]
    after: Option<Hash>,
    /// Where it was moved to.
    moved_to: Option<String>,
}

/// The changes of a file, newest first.
#[derive(Debug, Serialize, ToSchema)]
struct FileHistory {
    /// The changes.
    data: Vec<FileChange>,
    /// Where the next page begins; none when this is the last.
    next_cursor: Option<String>,
    /// Whether there is more.
    has_more: bool,
}

/// Who changed a file: which run, or which person. Changes made past Adjutant are not known. `?content=HASH` gives what it was.
#[utoipa::path(get, operation_id = "get_file_history", path = "/notebooks/{notebook}/history/{*path}", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), ("path" = String, Path, description = "The path of the file"), Wanted), responses((status = 200, description = "Its changes, newest first, or a content", content((FileHistory = "application/json"), (String = "text/plain"), (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"), (Vec<u8> = "application/octet-stream")))))]
async fn history(
    State(server): State<Server>,
    signed: Signed,
    Path((notebook, path)): Path<(String, String)>,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Problem> {
    let (access, place) = place(&server, &signed, &notebook, &path).await?;
    if let Some(hash) = given::<Hash>("content", wanted.content.as_deref())? {
        return Ok(raw(&place.path, server.engine.old_note(&place, hash).await?));
    }
    let most = limit(wanted.limit)? as usize;
    let history = server.engine.note_history(&place, most, wanted.cursor.as_deref()).await?;
    let names = server.engine.store().users().await?;
    let mut data = Vec::new();
    for change in history.changes {
        let mut by = author(&server, access, &change).await?;
        let name_of = |id: UserId| names.iter().find(|user| user.id == id).map(|user| user.name.clone());
        by.name = by.user_id.and_then(name_of);
        by.approved_by = approver(&server, access, &change, by.run_id).await?.and_then(name_of);
        let NoteChange { at, action, before, after, moved_to, by: _ } = change;
        data.push(FileChange { at, action, by, before, after, moved_to });
    }
    let has_more = history.next_cursor.is_some();
    Ok(Json(FileHistory { data, next_cursor: history.next_cursor, has_more }).into_response())
}

async fn author(server: &Server, access: Access, change: &NoteChange) -> Result<Author, Problem> {
    Ok(match &change.by {
        NoteAuthor::Run { run, agent, call: _, tool } => Author {
            kind: "run",
            run_id: seen(server, access, *run).await?,
            agent_id: *agent,
            tool: Some(tool.clone()),
            ..Author::default()
        },
        NoteAuthor::Person(user) => Author { kind: "person", user_id: Some(*user), ..Author::default() },
        NoteAuthor::Undo { user, run } => {
            let run_id = match run {
                Some(run) => seen(server, access, *run).await?,
                None => None,
            };
            Author { kind: "undo", user_id: *user, run_id, ..Author::default() }
        }
    })
}

/// Who said yes to the call that made a change, in a run that may be seen.
async fn approver(
    server: &Server,
    access: Access,
    change: &NoteChange,
    run: Option<RunId>,
) -> Result<Option<UserId>, Problem> {
    let (NoteAuthor::Run { call, .. }, Some(run)) = (&change.by, run) else { return Ok(None) };
    let filter = ApprovalFilter { run: Some(run), status: Some("approved".to_owned()), ..ApprovalFilter::default() };
    let asked = server.engine.store().approvals(access.workspace, &filter, limits::TOOL_CALLS_CEILING).await?;
    let card = asked.iter().find(|row| row.call.as_ref() == Some(call)).map(|row| row.card.as_str());
    let card = card.and_then(|card| serde_json::from_str::<Card>(card).ok());
    Ok(card.and_then(|card| card.decided_by).and_then(|by| by.parse().ok()))
}

/// A run of somebody else's chat is not named.
async fn seen(server: &Server, access: Access, run: RunId) -> Result<Option<RunId>, Problem> {
    let Some(row) = server.engine.store().run(access.workspace, run).await? else { return Ok(None) };
    let chat = server.engine.store().chat(access.workspace, row.chat).await?;
    Ok(access.may_see(row.initiator, chat.is_some_and(|chat| chat.shared)).then_some(run))
}
