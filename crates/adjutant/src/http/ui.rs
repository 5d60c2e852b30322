//! The web page, embedded in the binary. Where it was not built, a small page says so.

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::{EmbeddedFile, RustEmbed};

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Page;

const INDEX: &str = "index.html";
/// Paths that belong to programs: a wrong one is an error, never the page.
const NOT_THE_PAGE: [&str; 5] = ["api/", "v1/", "mcp", "metrics", "problems/"];
/// The build names these files after their content, so they never change.
const ASSETS: &str = "assets/";

const NOT_BUILT: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Adjutant</title>\
    <h1>Adjutant</h1><p>The server is running. Its web page was not built: run <code>make ui</code> (it needs Node.js 20.19 or \
    newer), then build the server again. Everything is also on the command line: <code>adjutant --help</code>.</p></html>\n";

/// Whether a path belongs to programs.
pub(super) fn is_program(path: &str) -> bool {
    let path = path.trim_start_matches('/');
    NOT_THE_PAGE.iter().any(|start| path.starts_with(start))
}

/// Serves a file of the page; a path without a file is a place inside the page.
pub(super) async fn serve(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let path = uri.path().trim_start_matches('/');
    if let Some(file) = Page::get(path).filter(|_| path != INDEX) {
        return answer(&file, path, &headers);
    }
    if path.starts_with(ASSETS) || path.rsplit('/').next().is_some_and(|name| name.contains('.')) && path != INDEX {
        return (StatusCode::NOT_FOUND, "There is no such file.\n").into_response();
    }
    match Page::get(INDEX) {
        Some(index) => answer(&index, INDEX, &headers),
        None => Html(NOT_BUILT).into_response(),
    }
}

fn answer(file: &EmbeddedFile, path: &str, asked: &HeaderMap) -> Response {
    let digits: String = file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{digits}\"");
    let cache = if path.starts_with(ASSETS) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let mut headers = HeaderMap::new();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if asked.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let kind = file.metadata.mimetype();
    let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.to_owned() };
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    (headers, file.data.clone().into_owned()).into_response()
}
