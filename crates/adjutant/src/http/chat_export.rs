//! `GET /chats/{chat}/export`: a chat as a file, in parts where it is long.

use adjutant_core::id::RunId;
use adjutant_engine::store::row::RunFilter;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path, given};
use super::chats::{RUNS, find_chat, shown};
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use super::shape::ChatExport;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(export))
}

/// Which part of a chat.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Part {
    /// Only what was before this run: the first of a part that is `truncated`.
    before: Option<String>,
}

/// A chat with its runs, each as one document with its message: the newest 100 of its branch, oldest first. Where there are older
/// ones, it is `truncated`, and `?before=` the first of them gives the part before.
#[utoipa::path(get, operation_id = "export_chat", path = "/chats/{chat}/export", tag = "chats", params(("chat" = String, Path, description = "Its id"), Part), responses((status = 200, description = "The chat", body = ChatExport)))]
async fn export(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(part): Asked<Part>,
) -> Result<Response, Problem> {
    let (access, row) = find_chat(&server, &signed, &name).await?;
    let before = given::<RunId>("before", part.before.as_deref())?;
    let filter = RunFilter { chat: Some(row.id), before, ..RunFilter::default() };
    let mut found = server.engine.store().runs(access.workspace, &filter, RUNS + 1).await?;
    let truncated = found.len() > RUNS as usize;
    found.truncate(RUNS as usize);
    let mut runs = Vec::new();
    for run in found.iter().rev() {
        let mut document = super::runs::document(&server, access, run.id).await?;
        let state = server.engine.run_state(access.workspace, run.id).await?;
        let mut message = state.start.and_then(|start| start.user_message);
        if let Some(message) = &mut message {
            server.engine.load_texts(access.workspace, &mut [message]).await?;
        }
        document["user_message"] = json!(message.map(|text| text.text().into_owned()));
        runs.push(document);
    }
    let mut chat = json!(shown(&row));
    chat["runs"] = json!(runs);
    chat["truncated"] = json!(truncated);
    let attached = format!("attachment; filename=\"{}.json\"", row.id);
    Ok(([(header::CONTENT_DISPOSITION, attached)], Json(chat)).into_response())
}
