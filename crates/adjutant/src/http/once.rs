//! `Idempotency-Key`: a POST that is sent again is answered again, and done once. A stream cannot be kept, so its second
//! sender is shown the way to it.

use adjutant_core::causes::causes;
use adjutant_core::content::Hash;
use adjutant_core::id::WorkspaceId;
use adjutant_core::time::Time;
use adjutant_engine::store::row::Reply;
use adjutant_engine::{Caller, Role, Via};
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::ask::{BODY_BYTES, room, whole};
use super::attachments;
use super::door::Signed;
use super::form::{boundary, parts};
use super::import;
use super::problem::{Kind, Problem, TRACE};
use super::server::Server;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// On an answer that was given before.
const AGAIN: HeaderName = HeaderName::from_static("idempotency-replayed");
/// How long an answer is kept.
const KEPT_MILLIS: i64 = 24 * 60 * 60 * 1000;
/// Letters of a key.
const LONGEST: usize = 128;
/// Bytes of an answer that is kept; a longer one is not, and its key stays taken.
const REPLY_BYTES: usize = 4 * 1024 * 1024;

/// An answer as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
    /// What whoever asked was then, without which the answer is not theirs to read any more.
    #[serde(default)]
    roles: Roles,
}

/// What somebody is: in their workspaces, and to the instance.
#[derive(Default, Serialize, Deserialize)]
struct Roles {
    owner: bool,
    members: Vec<(WorkspaceId, String)>,
}

impl Roles {
    fn of(caller: &Caller) -> Self {
        let members = caller.memberships.iter().map(|member| (member.workspace, member.role.to_string())).collect();
        Self { owner: caller.owner, members }
    }

    /// Whether somebody is all of this, or more.
    fn are_still_those_of(&self, caller: &Caller) -> bool {
        let still = |(workspace, role): &(WorkspaceId, String)| {
            role.parse::<Role>().is_ok_and(|role| caller.role(*workspace).is_some_and(|now| now >= role))
        };
        (!self.owner || caller.owner) && self.members.iter().all(still)
    }
}

/// Answers a request with a key once. Behind the door: keys are a person's own.
pub(super) async fn once(State(server): State<Server>, signed: Signed, request: Request, next: Next) -> Response {
    let key = match key_of(request.method(), request.headers()) {
        Ok(Some(key)) => key,
        Ok(None) => return next.run(request).await,
        Err(problem) => return problem.into_response(),
    };
    match answer(&server, &signed, &key, request, next).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

fn key_of(method: &Method, headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(KEY).filter(|_| *method == Method::POST) else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| (1..=LONGEST).contains(&text.len()) && !text.contains(' '));
    let text = text.ok_or_else(|| {
        Problem::invalid("The Idempotency-Key cannot be used. Nothing was done.")
            .hint(format!("send 1 to {LONGEST} visible ASCII characters, such as a UUID"))
    })?;
    Ok(Some(text.to_owned()))
}

async fn answer(
    server: &Server,
    signed: &Signed,
    key: &str,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (parts, body, said) = taken_in(server, request).await?;
    let asked = fingerprint(signed, &parts.method, &parts.uri.to_string(), &said);
    let (user, store, now) = (signed.caller.user, server.engine.store(), server.engine.env().now());
    let oldest = Time::from_millis(now.millis() - KEPT_MILLIS);
    match store.take_key(user, key, (server.engine.node(), asked), now, oldest).await? {
        Reply::New => {}
        Reply::Taken { request } | Reply::Lost { request } | Reply::Answered { request, .. } if request != asked => {
            return Err(Problem::new(
                Kind::IdempotencyMismatch,
                "This Idempotency-Key was sent with another request. Nothing was done.",
            )
            .hint("use a new key for a new request"));
        }
        Reply::Taken { .. } => {
            let text =
                "The first request with this Idempotency-Key is not answered yet. It was not done a second time.";
            return Err(Problem::new(Kind::InFlight, text).hint("send it again in a moment"));
        }
        Reply::Lost { .. } => {
            let text = "The server stopped before it answered the first request with this Idempotency-Key. Whether it was \
                        carried out is not known; it was not done a second time.";
            return Err(Problem::new(Kind::OutcomeUnknown, text)
                .hint("look whether it was done; if it was not, send it with a new key"));
        }
        Reply::Answered { reply, .. } => return repeat(&reply, &signed.caller),
    }
    // A client that went away is the one that will send it again: what it asked for is finished, and answered then.
    let (working, held, roles) = (server.clone(), key.to_owned(), Roles::of(&signed.caller));
    let work = async move {
        let response = next.run(Request::from_parts(parts, Body::from(body))).await;
        let (response, kept) = keep(response, roles).await;
        working.engine.store().keep_reply(user, &held, kept.as_deref()).await?;
        Ok(response)
    };
    let trace = TRACE.try_with(Clone::clone).unwrap_or_default();
    let done = tokio::spawn(TRACE.scope(trace, work)).await.unwrap_or_else(|stopped| {
        tracing::error!(%stopped, "a request was not finished");
        Err(Problem::new(Kind::Internal, "The server failed. Whether anything was done is in its log."))
    });
    if done.is_err() {
        // Nobody answers it any more, so nobody shall wait for that.
        if let Err(error) = store.lose_reply(user, key).await {
            tracing::warn!(error = %causes(&error), "an Idempotency-Key stays taken until this node stops");
        }
    }
    done
}

/// A request with its whole body, and what that says.
async fn taken_in(server: &Server, request: Request) -> Result<(Parts, Bytes, Bytes), Problem> {
    // It is read before its route could say how much it takes, and before it could ask for the room that a file needs.
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let form = boundary(request.headers()).ok().filter(|_| path.ends_with(attachments::PATH));
    let most = match form {
        Some(_) => attachments::bytes(),
        None if path.ends_with(import::PATH) => import::BYTES,
        None => BODY_BYTES,
    };
    let held = if form.is_some() { Some(room(&request, server).await?) } else { None };
    let (mut parts, body) = request.into_parts();
    if let Some(held) = held {
        parts.extensions.insert(held);
    }
    let mut reading = Request::new(body);
    DefaultBodyLimit::max(most).apply(&mut reading);
    let body = whole(reading, server).await?;
    let said = form.and_then(|boundary| said(&boundary, &body)).unwrap_or_else(|| body.clone());
    Ok((parts, body, said))
}

/// What a form says, whatever stands between its parts: a client writes that anew each time. Nothing, where it cannot be read.
fn said(boundary: &str, body: &Bytes) -> Option<Bytes> {
    let parts = parts(boundary, body).ok()?;
    let said: Vec<_> = parts.iter().map(|part| (&part.name, &part.file_name, Hash::of(part.bytes))).collect();
    serde_json::to_vec(&said).ok().map(Bytes::from)
}

/// What is compared: also which token asks, because what one was answered is not for another with fewer rights, and which
/// workspace the request is about.
fn fingerprint(signed: &Signed, method: &Method, uri: &str, body: &Bytes) -> Hash {
    let token = match signed.caller.via {
        Via::Token(id) => id.to_string(),
        Via::Session | Via::Local => String::new(),
    };
    let within = signed.within.map(|workspace| format!(" {workspace}")).unwrap_or_default();
    let mut text = format!("{token} {method} {uri}{within}\n").into_bytes();
    text.extend_from_slice(body);
    Hash::of(&text)
}

/// An answer, and what is kept of it. Of a mistake of the server nothing is: sending it again is right then.
async fn keep(response: Response, roles: Roles) -> (Response, Option<Vec<u8>>) {
    let (parts, body) = response.into_parts();
    if parts.status.is_server_error() || parts.status == StatusCode::TOO_MANY_REQUESTS {
        return (Response::from_parts(parts, body), None);
    }
    let header = |name: &HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if header(&header::CONTENT_TYPE) == Some("text/event-stream") {
        let location = header(&header::LOCATION).map(|run| format!("{run}/events")).unwrap_or_default();
        let headers = vec![(header::LOCATION.to_string(), location)];
        let kept = Kept { status: StatusCode::SEE_OTHER.as_u16(), headers, body: String::new(), roles };
        return (Response::from_parts(parts, body), serde_json::to_vec(&kept).ok());
    }
    let Ok(bytes) = to_bytes(body, REPLY_BYTES).await else {
        let problem = Problem::new(Kind::Internal, "The answer is too long to be kept. The request was carried out.");
        return (problem.into_response(), Some(Vec::new()));
    };
    let names = [header::CONTENT_TYPE, header::LOCATION, header::ETAG];
    let headers = names.iter().filter_map(|name| Some((name.to_string(), header(name)?.to_owned()))).collect();
    let body = match parts.extensions.get::<ShownOnce>() {
        Some(once) => once.without(&bytes),
        None => String::from_utf8_lossy(&bytes).into_owned(),
    };
    let kept = Kept { status: parts.status.as_u16(), headers, body, roles };
    (Response::from_parts(parts, Body::from(bytes)), serde_json::to_vec(&kept).ok())
}

/// Goes with an answer that holds a secret: what is kept of it is without these fields, so a second answer is, too.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownOnce(pub(super) &'static [&'static str]);

impl ShownOnce {
    fn without(self, bytes: &[u8]) -> String {
        let Ok(mut body) = serde_json::from_slice::<serde_json::Value>(bytes) else { return String::new() };
        for field in self.0.iter().filter(|field| body.get(*field).is_some()).collect::<Vec<_>>() {
            body[*field] = "".into();
        }
        body.to_string()
    }
}

fn repeat(reply: &[u8], caller: &Caller) -> Result<Response, Problem> {
    let Ok(kept) = serde_json::from_slice::<Kept>(reply) else {
        let text = "The request was carried out before; its answer was too long to be kept.";
        return Err(Problem::new(Kind::Conflict, text).hint("read what it made; do not send it again"));
    };
    if !kept.roles.are_still_those_of(caller) {
        let text = "The request was answered before, when you had rights that you do not have any more. It was not done a \
                    second time.";
        return Err(Problem::forbidden(text));
    }
    let mut response = kept.body.into_response();
    *response.status_mut() = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    for (name, value) in kept.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            headers.insert(name, value);
        }
    }
    headers.insert(AGAIN, HeaderValue::from_static("true"));
    Ok(response)
}
