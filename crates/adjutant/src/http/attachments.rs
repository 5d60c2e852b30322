//! `/attachments`: files that people bring. They are kept in a notebook where messages can name them, below a folder in which
//! everything counts as untrusted.

use adjutant_core::limits::KEPT_FILE_BYTES;
use adjutant_engine::{Right, Role, media_type};
use axum::Json;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, upload};
use super::chats::find_chat;
use super::door::{Access, Signed};
use super::files::place;
use super::form::{boundary, parts};
use super::problem::{Kind, Problem};
use super::server::Server;

/// Where files are brought to.
pub(super) const PATH: &str = "/attachments";
/// Bytes of a form beside the file in it.
const FORM_BYTES: usize = 64 * 1024;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create)).layer(DefaultBodyLimit::max(bytes()))
}

/// Bytes of a form with a file in it.
pub(super) fn bytes() -> usize {
    usize::try_from(KEPT_FILE_BYTES).unwrap_or(usize::MAX).saturating_add(FORM_BYTES)
}

/// Where to keep it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Where {
    /// The notebook (id or short name).
    notebook_id: Option<String>,
    /// Or the chat whose notebook it is. Without either: the oldest notebook of your only workspace.
    chat_id: Option<String>,
}

/// A form with the file.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it only describes the body")]
struct NewAttachment {
    /// The file, up to 32 MiB.
    #[schema(value_type = String, format = Binary)]
    file: Vec<u8>,
}

/// A file that is kept.
#[derive(Serialize, ToSchema)]
struct KeptFile {
    /// Where it is in the notebook: what `attachments` of a message takes.
    path: String,
    notebook_id: String,
    /// What it is, by its bytes: `text/plain`, `image/png`, `image/jpeg`, `image/gif`, `image/webp`, `application/pdf`, or
    /// `application/octet-stream`.
    media_type: &'static str,
    /// Bytes.
    size: usize,
}

/// The notebook that is named, by itself or by a chat.
async fn notebook(server: &Server, signed: &Signed, asked: &Where) -> Result<(Access, String), Problem> {
    match (&asked.notebook_id, &asked.chat_id) {
        (Some(notebook), None) => {
            let (access, place) = place(server, signed, notebook, "/").await?;
            Ok((access, place.notebook.to_string()))
        }
        (None, Some(chat)) => {
            let (access, chat) = find_chat(server, signed, chat).await?;
            let notebook = chat.notebook.ok_or_else(|| {
                Problem::new(Kind::Conflict, "The chat has no notebook that could hold files. Nothing was kept.")
                    .hint("start a chat with an agent whose scope names a notebook")
            })?;
            Ok((access, notebook.to_string()))
        }
        (None, None) => {
            let access = signed.only_workspace(Role::Write, Right::Write)?;
            let notebooks = server.engine.store().notebooks(access.workspace).await?;
            let oldest = notebooks.first().ok_or_else(|| Problem::not_found("notebook", "of the workspace"))?;
            Ok((access, oldest.id.to_string()))
        }
        (Some(_), Some(_)) => {
            Err(Problem::invalid("Nothing was kept.").error("chat_id", "names a notebook, and so does `notebook_id`"))
        }
    }
}

/// Keeps a file for a message: a form (`multipart/form-data`) with one `file`, up to 32 MiB. The same file once more is kept
/// once. Everything below `/attachments` counts as untrusted.
#[utoipa::path(post, operation_id = "keep_attachment", path = "/attachments", tag = "files", params(Where), request_body(content = NewAttachment, content_type = "multipart/form-data"), responses((status = 201, description = "Kept", body = KeptFile)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
    request: Request,
) -> Result<(StatusCode, Json<KeptFile>), Problem> {
    let (access, notebook) = notebook(&server, &signed, &asked).await?;
    let access = signed.must(access, Role::Write, Right::Write)?;
    let boundary = boundary(request.headers())?;
    let (body, _held) = upload(request, &server).await?;
    let parts = parts(&boundary, &body)?;
    let [file] = parts.as_slice() else {
        return Err(Problem::invalid("Nothing was kept.").error("/file", "a form has one part, the file"));
    };
    let name = file.file_name.as_deref().filter(|_| file.name == "file");
    let name = name.ok_or_else(|| Problem::invalid("Nothing was kept.").error("/file", "is needed, with its name"))?;
    let (kind, size) = (media_type(file.bytes), file.bytes.len());
    let (_, place) = place(&server, &signed, &notebook, "/").await?;
    let bytes = file.bytes.to_vec();
    let path = server.engine.keep_attachment(access.workspace, place.notebook, access.user, name, bytes).await?;
    Ok((StatusCode::CREATED, Json(KeptFile { path, notebook_id: notebook, media_type: kind, size })))
}
