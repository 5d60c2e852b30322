//! `POST /chats/import`: a chat from a file, as `GET /chats/{chat}/export` writes it; and what else was said elsewhere.

use adjutant_engine::{ImportChat, ImportedRun, Right, Role};
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find_agent;
use super::ask::{Asked, Body};
use super::chats::{Chat, checked, shown};
use super::door::Signed;
use super::problem::Problem;
use super::runs::notebook;
use super::server::Server;

/// Bytes of a file: a hundred long answers.
pub(super) const BYTES: usize = 8 * 1024 * 1024;
/// Where it is.
pub(super) const PATH: &str = "/chats/import";

/// A model that nobody named.
const ELSEWHERE: &str = "unknown/elsewhere";

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(import)).layer(DefaultBodyLimit::max(BYTES))
}

/// Where it goes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The workspace, where the agent's short name is not enough.
    workspace_id: Option<String>,
    /// The agent (id or short name) that goes on with it; the one that is named in the file without it.
    agent_id: Option<String>,
    /// The notebook it goes on with; chosen by the agent's scope without it.
    notebook_id: Option<String>,
}

/// A chat as an export writes it. Other fields of an export are not looked at.
#[derive(Deserialize, ToSchema)]
struct ChatFile {
    /// Its title.
    title: String,
    /// The agent it was with.
    agent_id: Option<String>,
    /// Its runs, oldest first.
    runs: Vec<RunOfFile>,
}

/// One run of it.
#[derive(Deserialize, ToSchema)]
struct RunOfFile {
    /// What the person said; none where the run went on from what was before.
    user_message: Option<String>,
    /// What was answered: a text, or an object.
    #[schema(value_type = Value)]
    result: Option<Value>,
    /// How it was made.
    #[serde(default)]
    provenance: Provenance,
}

/// How a run was made.
#[derive(Default, Deserialize, ToSchema)]
struct Provenance {
    /// The model.
    model: Option<String>,
}

impl From<RunOfFile> for ImportedRun {
    fn from(run: RunOfFile) -> Self {
        let answer = match run.result {
            Some(Value::String(text)) => text,
            None | Some(Value::Null) => String::new(),
            Some(other) => other.to_string(),
        };
        let model = run.provenance.model.unwrap_or_else(|| ELSEWHERE.to_owned());
        Self { message: run.user_message, answer, model }
    }
}

/// Takes in a chat that was exported, here or elsewhere: what was said becomes runs that have ended, from which the agent goes
/// on. Nothing of it is done again, and all of it counts as untrusted. A file that cannot be used is refused whole.
#[utoipa::path(post, operation_id = "import_chat", path = "/chats/import", tag = "chats", params(Wanted), request_body = ChatFile, responses((status = 201, description = "The chat", body = Chat)))]
async fn import(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
    Body(file): Body<ChatFile>,
) -> Result<(StatusCode, Json<Chat>), Problem> {
    let named = wanted.agent_id.as_deref().or(file.agent_id.as_deref()).ok_or_else(nobody)?;
    let found = find_agent(&server, &signed, wanted.workspace_id.as_deref(), named).await;
    let (access, agent) = match (found, &wanted.agent_id) {
        (Ok(found), _) => found,
        // The one in the file may be of another instance.
        (Err(_), None) => return Err(nobody()),
        (Err(problem), Some(_)) => return Err(problem),
    };
    let access = signed.must(access, Role::Write, Right::Run)?;
    let notebook = notebook(&server, access, wanted.notebook_id.as_deref()).await?;
    let said = file.runs.into_iter().map(ImportedRun::from).collect();
    let title = checked(&file.title)?;
    let import = ImportChat { user: access.user, agent: agent.id, notebook, title, said };
    let chat = server.engine.import_chat(access.workspace, import).await?;
    server.engine.store().announce_chat(&chat);
    Ok((StatusCode::CREATED, Json(shown(&chat))))
}

/// Something that was said elsewhere.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Past {
    role: Speaker,
    content: String,
}

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Speaker {
    User,
    Assistant,
}

/// What was said elsewhere, as messages and their answers.
pub(super) fn said(history: Vec<Past>) -> Vec<ImportedRun> {
    let of = |message, answer| ImportedRun { message, answer, model: ELSEWHERE.to_owned() };
    let (mut runs, mut open) = (Vec::new(), None);
    for past in history {
        match past.role {
            Speaker::User => {
                let unanswered = open.replace(past.content);
                runs.extend(unanswered.map(|message| of(Some(message), String::new())));
            }
            Speaker::Assistant => runs.push(of(open.take(), past.content)),
        }
    }
    runs.extend(open.map(|message| of(Some(message), String::new())));
    runs
}

fn nobody() -> Problem {
    Problem::invalid("The file names no agent that is here. Nothing was taken in.")
        .error("agent_id", "is needed")
        .hint("name the agent that goes on with it: ?agent_id=guide")
}
