//! The web page, embedded in the binary. Where it was not built, a small page says so.

use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use rust_embed::RustEmbed;

use super::tag::is_known;

#[derive(RustEmbed)]
#[folder = "../../ui/dist"]
#[allow_missing = true]
struct Page;

const INDEX: &str = "index.html";
/// Paths that belong to programs: a wrong one is an error, never the page.
const NOT_THE_PAGE: [&str; 5] = ["api/", "v1/", "mcp", "metrics", "problems/"];
/// The build names these files after their content, so they never change.
const ASSETS: &str = "assets/";
/// How the build packs a file, best first: the word for it in a request, and how the name of the packed file ends.
const PACKED: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

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
    let is_packed = PACKED.iter().any(|(_, end)| path.ends_with(end));
    if path != INDEX && !is_packed && Page::get(path).is_some() {
        return answer(path, &headers);
    }
    if path.starts_with(ASSETS) || path.rsplit('/').next().is_some_and(|name| name.contains('.')) && path != INDEX {
        return (StatusCode::NOT_FOUND, "There is no such file.\n").into_response();
    }
    answer(INDEX, &headers)
}

/// A file of the page, packed the best way that is asked for.
fn answer(path: &str, asked: &HeaderMap) -> Response {
    let Some(plain) = Page::get(path) else { return Html(NOT_BUILT).into_response() };
    let packed = PACKED.iter().filter(|(word, _)| takes(asked, word));
    let packed = packed.filter_map(|(word, end)| Page::get(&format!("{path}{end}")).map(|file| (*word, file))).next();
    let mut headers = HeaderMap::new();
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    let cache = if path.starts_with(ASSETS) { "public, max-age=31536000, immutable" } else { "no-cache" };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    let kind = plain.metadata.mimetype();
    let kind = if kind.starts_with("text/") { format!("{kind}; charset=utf-8") } else { kind.to_owned() };
    if let Ok(kind) = HeaderValue::from_str(&kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    let (word, file) = packed.map_or((None, plain), |(word, file)| (Some(word), file));
    // Each form has a tag of its own: the tag is of the bytes that are sent.
    let digits: String = file.metadata.sha256_hash().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let tag = format!("\"{digits}\"");
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if is_known(asked, &tag) {
        headers.remove(header::CONTENT_TYPE);
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    if let Some(word) = word {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(word));
    }
    (headers, file.data.into_owned()).into_response()
}

/// Whether a request takes answers that are packed this way: it names the way, and does not say `q=0` of it.
fn takes(asked: &HeaderMap, way: &str) -> bool {
    let lines = asked.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).any(|one| {
        let (name, rest) = one.split_once(';').unwrap_or((one, ""));
        let weight = rest.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(way) && weight.unwrap_or(1.0) > 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_of_packing_is_taken_by_whoever_names_it_and_does_not_refuse_it() {
        let takes =
            |line: &str, way| takes(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, line.parse().unwrap())]), way);
        assert!(takes("gzip, deflate, br;q=0.5", "br"));
        assert!(takes("GZIP", "gzip"));
        assert!(!takes("gzip, br; q=0.0", "br"));
        assert!(!takes("identity", "gzip"));
        assert!(!super::takes(&HeaderMap::new(), "br"));
    }
}
