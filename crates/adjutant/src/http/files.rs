//! `/notebooks/{notebook}/…`: the files of a notebook, for people. Content is never shown in a form that a browser would run.

use adjutant_core::content::Hash;
use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::scope::Kind as EntryKind;
use adjutant_core::id::NotebookId;
use adjutant_core::limits::KEPT_FILE_BYTES;
use adjutant_core::time::Time;
use adjutant_engine::tools::notebook::{Entry, text_of};
use adjutant_engine::{Meant, NotePlace, Right, Role, SavedNote};
use axum::Json;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path, accepts, the_one, upload};
use super::door::{Access, Signed};
use super::page::{Slice, limit};
use super::problem::{Kind, Problem};
use super::server::Server;
use super::tag::{Expected, expected, is_known};

pub(super) fn router() -> OpenApiRouter<Server> {
    let most = usize::try_from(KEPT_FILE_BYTES).unwrap_or(usize::MAX);
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get, put, delete))
        .layer(DefaultBodyLimit::max(most))
        .routes(routes!(make_folder))
        .routes(routes!(relocate))
        .routes(routes!(search))
        .route("/notebooks/{notebook}/files/", routing::get(list))
}

/// The notebook that is named, and what the caller is where it is.
pub(super) async fn place(
    server: &Server,
    signed: &Signed,
    notebook: &str,
    path: &str,
) -> Result<(Access, NotePlace), Problem> {
    let mut found = Vec::new();
    for access in signed.workspaces(None)? {
        let row = match notebook.parse::<NotebookId>() {
            Ok(id) => server.engine.store().notebook(access.workspace, id).await?,
            Err(_) => server.engine.store().notebook_by_slug(access.workspace, notebook).await?,
        };
        found.extend(row.map(|row| (access, row)));
    }
    let (access, row) = the_one("notebook", notebook, found)?;
    Ok((access, NotePlace { workspace: access.workspace, notebook: row.id, path: read_path(path)? }))
}

fn read_path(path: &str) -> Result<NotePath, Problem> {
    NotePath::parse(path)
        .map_err(|bad| Problem::invalid("The path cannot be used. Nothing was done.").error("path", bad.to_string()))
}

/// A file or folder.
#[derive(Debug, Serialize, ToSchema)]
struct FileEntry {
    /// Where it is in the notebook.
    path: String,
    /// Its name.
    name: String,
    /// `file` or `folder`.
    kind: &'static str,
    /// Bytes, of a file.
    size: u64,
    /// When it was last changed.
    #[schema(value_type = String, format = DateTime)]
    modified_at: Time,
    /// The hash of its content, which is its ETag; only where it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    hash: Option<Hash>,
}

impl FileEntry {
    fn of(entry: &Entry, hash: Option<Hash>) -> Self {
        let kind = match entry.kind {
            EntryKind::Dir => "folder",
            EntryKind::File | EntryKind::Other => "file",
        };
        let (path, name) = (entry.path.to_string(), entry.path.name().unwrap_or_default().to_owned());
        Self { path, name, kind, size: entry.size, modified_at: entry.modified, hash }
    }
}

/// What a folder holds.
#[derive(Debug, Serialize, ToSchema)]
struct Folder {
    /// The folder.
    path: String,
    /// Its files and folders, by name.
    data: Vec<FileEntry>,
    /// Where the next page begins; none when this is the last.
    next_cursor: Option<String>,
    /// Whether there is more.
    has_more: bool,
    /// Entries that cannot be shown: links, pipes, names that no path can hold.
    skipped: usize,
}

/// A file with its text.
#[derive(Debug, Serialize, ToSchema)]
struct FileDocument {
    #[serde(flatten)]
    entry: FileEntry,
    /// Its text; none for what is not text.
    text: Option<String>,
    /// Whether a run wrote it after it had read what nobody vouches for. Saving it ends that.
    is_untrusted: bool,
}

async fn listing(server: &Server, place: &NotePlace, slice: &Slice) -> Result<Json<Folder>, Problem> {
    let most = limit(slice.limit)? as usize;
    let listing = server.engine.list_notes(place).await?;
    let after = slice.cursor.as_deref();
    let names = listing.entries.iter().filter(|entry| after.is_none_or(|after| entry.path.as_str() > after));
    let mut data: Vec<FileEntry> = names.take(most + 1).map(|entry| FileEntry::of(entry, None)).collect();
    let has_more = data.len() > most;
    data.truncate(most);
    let next_cursor = data.last().filter(|_| has_more).map(|entry| entry.path.clone());
    Ok(Json(Folder { path: place.path.to_string(), data, next_cursor, has_more, skipped: listing.skipped }))
}

/// What the top folder of a notebook holds. Folders are opened one by one.
#[utoipa::path(get, operation_id = "list_files", path = "/notebooks/{notebook}/files", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), Slice), responses((status = 200, description = "The folder", body = Folder)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Path(notebook): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Folder>, Problem> {
    let (_, place) = place(&server, &signed, &notebook, "/").await?;
    listing(&server, &place, &slice).await
}

fn tag_of(hash: Hash) -> String {
    format!("\"{hash}\"")
}

fn tagged(mut response: Response, hash: Hash) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&tag_of(hash)) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// The bytes of a file as a browser may have them: text as plain text, a few kinds of pictures, everything else to be saved.
pub(super) fn raw(path: &NotePath, bytes: Vec<u8>) -> Response {
    let name = path.name().unwrap_or_default().to_ascii_lowercase();
    let picture = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("png") => Some("image/png"),
        Some("jpg" | "jpeg") => Some("image/jpeg"),
        Some("gif") => Some("image/gif"),
        Some("webp") => Some("image/webp"),
        Some(_) | None => None,
    };
    let kind = match picture {
        Some(picture) => picture,
        None if text_of(&bytes).is_ok() => "text/plain; charset=utf-8",
        None => "application/octet-stream",
    };
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if kind == "application/octet-stream" {
        headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    }
    response
}

/// A text file as a document, or a folder with what it holds.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "it only describes the answer")]
enum FileOrFolder {
    File(FileDocument),
    Folder(Folder),
}

/// A file, with its hash as ETag: its bytes, or with `Accept: application/json` a document with its text. Of a folder, what it
/// holds.
#[utoipa::path(get, operation_id = "get_file", path = "/notebooks/{notebook}/files/{*path}", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), ("path" = String, Path, description = "Its path"), Slice, ("If-None-Match" = Option<String>, Header, description = "An ETag that you have")), responses((status = 200, description = "The file, or the folder", content((FileOrFolder = "application/json"), (String = "text/plain"), (Vec<u8> = "image/png"), (Vec<u8> = "image/jpeg"), (Vec<u8> = "image/gif"), (Vec<u8> = "image/webp"), (Vec<u8> = "application/octet-stream")), headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`"))), (status = 304, description = "You have it", headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path((notebook, path)): Path<(String, String)>,
    Asked(slice): Asked<Slice>,
) -> Result<Response, Problem> {
    let (_, place) = place(&server, &signed, &notebook, &path).await?;
    let entry = server.engine.note(&place).await?;
    if entry.kind == EntryKind::Dir {
        return Ok(listing(&server, &place, &slice).await?.into_response());
    }
    let content = server.engine.read_note(&place).await?;
    if is_known(&headers, &tag_of(content.hash)) {
        return Ok(tagged(StatusCode::NOT_MODIFIED.into_response(), content.hash));
    }
    let hash = content.hash;
    if !accepts(&headers, "application/json") {
        return Ok(tagged(raw(&place.path, content.bytes), hash));
    }
    let is_untrusted = server.engine.is_note_untrusted(&place, hash).await?;
    let text = content.text().ok().map(str::to_owned);
    let entry = FileEntry {
        size: content.bytes.len() as u64,
        modified_at: content.modified,
        ..FileEntry::of(&entry, Some(hash))
    };
    Ok(tagged(Json(FileDocument { entry, text, is_untrusted }).into_response(), hash))
}

/// Which state of a file a change is about.
fn meant(headers: &HeaderMap) -> Result<Meant, Problem> {
    let other = || {
        Problem::new(Kind::StaleVersion, "If-Match is not the ETag of this file. Nothing was changed.")
            .hint("read it again, then send your change with its ETag")
    };
    match expected(headers)? {
        Expected::Tag(tag) => tag.trim_matches('"').parse().map(Meant::Content).map_err(|_| other()),
        Expected::Any => Ok(Meant::Whatever),
        Expected::Absent => Ok(Meant::Absent),
        Expected::Unsaid => {
            Err(Problem::new(Kind::PreconditionRequired, "Say which state of the file you mean. Nothing was changed.")
                .hint("send If-Match with its ETag, or If-None-Match: * for a new file"))
        }
    }
}

/// A place that the caller may write to.
async fn written(server: &Server, signed: &Signed, notebook: &str, path: &str) -> Result<(Access, NotePlace), Problem> {
    let (access, place) = place(server, signed, notebook, path).await?;
    Ok((signed.must(access, Role::Write, Right::Write)?, place))
}

fn saved(note: &SavedNote) -> Response {
    let status = if note.is_new { StatusCode::CREATED } else { StatusCode::OK };
    tagged((status, Json(FileEntry::of(&note.entry, Some(note.hash)))).into_response(), note.hash)
}

/// Saves a file; the body is its content, up to 32 MiB. Needs `If-Match` with its ETag, or `If-None-Match: *` for a new one.
#[utoipa::path(put, operation_id = "put_file", path = "/notebooks/{notebook}/files/{*path}", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), ("path" = String, Path, description = "Its path"), ("If-Match" = Option<String>, Header, description = "Its ETag"), ("If-None-Match" = Option<String>, Header, description = "`*` for a new file")), request_body(content = String, content_type = "application/octet-stream"), responses((status = 200, description = "Saved", body = FileEntry, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`"))), (status = 201, description = "Made", body = FileEntry, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn put(
    State(server): State<Server>,
    signed: Signed,
    Path((notebook, path)): Path<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    let (access, place) = written(&server, &signed, &notebook, &path).await?;
    let meant = meant(request.headers())?;
    let (bytes, _held) = upload(request, &server).await?;
    let note = server.engine.save_note(&place, access.user, bytes.to_vec(), meant).await?;
    Ok(saved(&note))
}

/// Deletes a file, or an empty folder. A file needs `If-Match`.
#[utoipa::path(delete, operation_id = "delete_file", path = "/notebooks/{notebook}/files/{*path}", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), ("path" = String, Path, description = "Its path"), ("If-Match" = Option<String>, Header, description = "Its ETag")), responses((status = 204, description = "Gone; what it was can be found in its history")))]
async fn delete(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path((notebook, path)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (access, place) = written(&server, &signed, &notebook, &path).await?;
    let is_folder = server.engine.note(&place).await?.kind == EntryKind::Dir;
    let meant = if is_folder { Meant::Whatever } else { meant(&headers)? };
    server.engine.delete_note(&place, access.user, meant).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A folder to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewFolder {
    /// Its path.
    path: String,
}

/// Makes an empty folder.
#[utoipa::path(post, path = "/notebooks/{notebook}/folders", tag = "files", params(("notebook" = String, Path, description = "Id or short name")), request_body = NewFolder, responses((status = 201, description = "The folder", body = FileEntry)))]
async fn make_folder(
    State(server): State<Server>,
    signed: Signed,
    Path(notebook): Path<String>,
    Body(body): Body<NewFolder>,
) -> Result<(StatusCode, Json<FileEntry>), Problem> {
    let (access, place) = written(&server, &signed, &notebook, &body.path).await?;
    let entry = server.engine.create_folder(&place, access.user).await?;
    Ok((StatusCode::CREATED, Json(FileEntry::of(&entry, None))))
}

/// A file to be moved.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// Where it is.
    from: String,
    /// Where it shall be; nothing may be there.
    to: String,
}

/// Moves a file to where nothing is. Needs `If-Match`.
#[utoipa::path(post, operation_id = "move_file", path = "/notebooks/{notebook}/move", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), ("If-Match" = Option<String>, Header, description = "Its ETag")), request_body = Move, responses((status = 201, description = "Where it is now", body = FileEntry, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn relocate(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(notebook): Path<String>,
    Body(body): Body<Move>,
) -> Result<Response, Problem> {
    let (access, place) = written(&server, &signed, &notebook, &body.from).await?;
    let to = read_path(&body.to)?;
    let note = server.engine.move_note(&place, access.user, to, meant(&headers)?).await?;
    Ok(saved(&note))
}

/// What to look for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Query {
    /// Words.
    q: String,
    /// How many files, from 1 to 200.
    limit: Option<u32>,
}

/// A file that was found.
#[derive(Debug, Serialize, ToSchema)]
struct Found {
    /// Where it is.
    path: String,
    /// A piece of its text, the words that were found in `[` `]`; empty where only its name has them.
    snippet: String,
}

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
struct FoundFiles {
    /// The files, best first.
    data: Vec<Found>,
    /// Whether recent changes may be missing; search again then.
    index_behind: bool,
}

/// Searches the names and the text of a notebook; of the last word its beginning is enough.
#[utoipa::path(get, operation_id = "search_files", path = "/notebooks/{notebook}/search", tag = "files", params(("notebook" = String, Path, description = "Id or short name"), Query), responses((status = 200, description = "Files", body = FoundFiles)))]
async fn search(
    State(server): State<Server>,
    signed: Signed,
    Path(notebook): Path<String>,
    Asked(query): Asked<Query>,
) -> Result<Json<FoundFiles>, Problem> {
    let (_, place) = place(&server, &signed, &notebook, "/").await?;
    let words = query.q.trim();
    if words.is_empty() || words.chars().count() > 1000 {
        return Err(Problem::invalid("Nothing was searched.").error("q", "has 1 to 1000 characters"));
    }
    let most = limit(query.limit)? as usize;
    let found = server.engine.search_notes(place.workspace, place.notebook, words, most).await?;
    let data = found.hits.into_iter().map(|hit| Found { path: hit.path, snippet: hit.snippet }).collect();
    Ok(Json(FoundFiles { data, index_behind: found.behind }))
}
