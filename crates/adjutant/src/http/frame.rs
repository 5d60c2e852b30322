//! What every request passes on its way in and out: an id, a place in the queue, a limit of time, a line in the log.

use std::time::{Duration, Instant};

use adjutant_engine::{RequestTrace, trace_of};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Version};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::{Kind, Problem, TRACE};
use super::server::Server;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How long a request may take to its first byte; those that wait for a run may wait 60 s.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long a request takes that is pointed out, unless it asked to wait.
const SLOW: Duration = Duration::from_secs(5);
/// Paths that tell how the server is must answer when it is full, too.
const ALWAYS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Gives a request its id, its turn and its time, and writes it down.
pub(super) async fn frame(State(server): State<Server>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let waits = request.uri().query().is_some_and(|query| query.contains("wait"));
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let watched = RequestTrace::begin(method.as_str(), &route, |name| word(request.headers(), name));
    let known = watched.as_ref().map(RequestTrace::id);
    let known = known.or_else(|| trace_of(|name| word(request.headers(), name)));
    let trace = known.unwrap_or_else(|| trace_id(&server));
    let lasts = request.version() == Version::HTTP_11 && !wants_to_close(request.headers());
    let answering = TRACE.scope(trace.clone(), admit(&server, &path, request, next));
    let mut response = match &watched {
        Some(watched) => watched.within(answering).await,
        None => answering.await,
    };
    let (status, took) = (response.status(), begun.elapsed());
    if let Some(watched) = watched {
        watched.end(status.as_u16());
    }
    server.metrics.answered(method.as_str(), &route, status.as_u16(), took);
    // Neither the query nor a header is written down: both may hold secrets.
    let (code, ms) = (status.as_u16(), took.as_millis());
    if status.is_server_error() {
        tracing::warn!(trace_id = trace, %method, path, status = code, ms, "request");
    } else if took > SLOW && !waits {
        tracing::info!(target: "adjutant::slow", trace_id = trace, %method, path, status = code, ms, "slow request");
    } else {
        tracing::info!(trace_id = trace, %method, path, status = code, ms, "request");
    }
    if !lasts {
        // A stream says that it keeps the connection, which is not so where its reader asked for an end.
        response.headers_mut().remove(header::CONNECTION);
    }
    if let Ok(value) = HeaderValue::from_str(&trace) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
}

fn wants_to_close(headers: &HeaderMap) -> bool {
    let words = word(headers, header::CONNECTION.as_str()).unwrap_or_default();
    words.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"))
}

fn word<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The id of a request that belongs to no trace.
fn trace_id(server: &Server) -> String {
    let bytes: [u8; 16] = server.engine.env().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn admit(server: &Server, path: &str, request: Request, next: Next) -> Response {
    let turn = server.requests.clone().try_acquire_owned();
    if turn.is_err() && !ALWAYS.contains(&path) {
        return overloaded("Too many requests are being answered at the moment.").into_response();
    }
    match tokio::time::timeout(PATIENCE, next.run(request)).await {
        Ok(response) => response,
        Err(_) => Problem::new(
            Kind::Overloaded,
            "The request took too long and was given up. Whether anything was done can be read again.",
        )
        .retry_after(5)
        .into_response(),
    }
}

/// Too much to do.
pub(super) fn overloaded(what: &str) -> Problem {
    Problem::new(Kind::Overloaded, format!("{what} Nothing was done.")).hint("try again in a moment").retry_after(1)
}
