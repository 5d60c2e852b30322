//! What a request asks, read strictly: unknown fields, wrong types and bad ids are named, with where they are.

use std::str::FromStr;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;

use super::problem::{Kind, Problem};
use super::server::Server;
use super::uploads::{Full, Room};

/// Bytes of an ordinary body.
pub(super) const BODY_BYTES: usize = 1024 * 1024;

/// The parts of the path that stand for something. What cannot be such a part names nothing.
pub(super) struct Path<T>(pub(super) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(parts)| Self(parts)).map_err(|_| {
            Problem::new(Kind::NotFound, "A part of the path is no text, or no number where one has to be.")
                .hint("/docs lists what there is")
        })
    }
}

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Server> for Body<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        parse(&json(request, server).await?).map(Self)
    }
}

/// A JSON body that may be left out.
pub(super) struct MaybeBody<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Server> for MaybeBody<T> {
    type Rejection = Problem;
    async fn from_request(request: Request, server: &Server) -> Result<Self, Problem> {
        let bytes = json(request, server).await?;
        if bytes.iter().all(u8::is_ascii_whitespace) { Ok(Self(T::default())) } else { parse(&bytes).map(Self) }
    }
}

/// The whole body, if it is said to be JSON: what a page elsewhere can send without asking first is not.
async fn json(request: Request, server: &Server) -> Result<Bytes, Problem> {
    let json = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| is_json(kind.as_bytes()));
    let bytes = whole(request, server).await?;
    if !json && !bytes.is_empty() {
        return Err(Problem::new(Kind::UnsupportedMediaType, "The body is not JSON. Nothing was done.")
            .hint("send Content-Type: application/json"));
    }
    Ok(bytes)
}

fn is_json(kind: &[u8]) -> bool {
    let kind = String::from_utf8_lossy(kind).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// Whether the client takes an answer of this kind.
pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|line| line.split(',')).any(|part| part.trim().starts_with(kind))
}

/// The whole body, if it is not too long.
pub(super) async fn whole(request: Request, server: &Server) -> Result<Bytes, Problem> {
    Bytes::from_request(request, server).await.map_err(|rejection| {
        if rejection.status() == Kind::TooLarge.status() {
            Problem::new(Kind::TooLarge, "The body is longer than is accepted here. Nothing was done.")
        } else {
            Problem::new(Kind::Malformed, "The body broke off. Nothing was done.")
        }
    })
}

/// Room for the file that a request brings, if there is any; it is held until it is dropped. Whoever read the request before has
/// it already.
pub(super) fn room<'s>(
    request: &Request,
    server: &'s Server,
) -> impl Future<Output = Result<Arc<Room>, Problem>> + Send + use<'s> {
    let (held, party) = (request.extensions().get::<Arc<Room>>().cloned(), super::turn::party(request));
    async move {
        if let Some(room) = held {
            return Ok(room);
        }
        let room = server.uploads.enter(party).await;
        room.map(Arc::new).map_err(|Full| super::frame::overloaded("Too many files are being taken in at the moment."))
    }
}

/// The whole body of a request that brings a file, and the room that it takes.
pub(super) async fn upload(request: Request, server: &Server) -> Result<(Bytes, Arc<Room>), Problem> {
    let room = room(&request, server).await?;
    Ok((whole(request, server).await?, room))
}

/// Reads a JSON document strictly.
pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let read: Result<T, _> = serde_path_to_error::deserialize(&mut reader);
    let value = read.map_err(|error| {
        let (pointer, inner) = (pointer(error.path()), error.inner());
        if inner.is_data() {
            Problem::invalid("Something in the body cannot be used. Nothing was done.")
                .error(pointer, inner.to_string())
        } else {
            Problem::new(Kind::Malformed, format!("The body is not JSON: {inner}. Nothing was done."))
        }
    })?;
    let more = |_| Problem::new(Kind::Malformed, "There is more than one JSON document in the body. Nothing was done.");
    reader.end().map_err(more)?;
    Ok(value)
}

fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .map(|segment| match segment {
            Segment::Seq { index } => format!("/{index}"),
            Segment::Map { key } => format!("/{}", key.replace('~', "~0").replace('/', "~1")),
            Segment::Enum { variant } => format!("/{variant}"),
            Segment::Unknown => "/?".to_owned(),
        })
        .collect()
}

/// What stands behind the `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Server> for Asked<T> {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, server).await;
        read.map(|query| Self(query.0)).map_err(|rejection| {
            let detail = rejection.body_text();
            Problem::invalid("Something behind the `?` cannot be used. Nothing was done.").error("", detail)
        })
    }
}

/// An id out of a path; one that is none names nothing.
///
/// # Errors
/// 404.
pub(super) fn id<T: FromStr>(what: &'static str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::not_found(what, text))
}

/// An id out of a body or a query; one that is none cannot be used.
///
/// # Errors
/// 422, with where it is.
pub(super) fn given<T: FromStr>(pointer: &str, text: Option<&str>) -> Result<Option<T>, Problem>
where
    T::Err: std::fmt::Display,
{
    let Some(text) = text else { return Ok(None) };
    let parsed = text.parse().map_err(|why: T::Err| {
        Problem::invalid("Something in the request cannot be used. Nothing was done.").error(pointer, why.to_string())
    });
    parsed.map(Some)
}

/// What is said behind the `?`, in the body, or in both alike.
///
/// # Errors
/// 422 where the two differ: one of them would not be heard.
pub(super) fn agreed<T: PartialEq>(name: &str, asked: Option<T>, body: Option<T>) -> Result<Option<T>, Problem> {
    if asked.is_some() && body.is_some() && asked != body {
        return Err(Problem::invalid(
            "The body says something else than what stands behind the `?`. Nothing was done.",
        )
        .error(format!("/{name}"), "is said twice, and not alike"));
    }
    Ok(body.or(asked))
}

/// A word behind the `?` that means nothing there.
pub(super) fn unknown_word(pointer: &str, word: &str) -> Problem {
    Problem::invalid("A word behind the `?` is not known. Nothing was read.")
        .error(pointer, format!("`{word}` is none of its words"))
}

/// What was found by a name in all workspaces of the caller. A short name that is in two of them means neither: somebody who
/// lets you into their workspace must not come between you and yours.
///
/// # Errors
/// 404 for nothing, 422 for more than one.
pub(super) fn the_one<T>(what: &'static str, name: &str, mut found: Vec<T>) -> Result<T, Problem> {
    if found.len() > 1 {
        return Err(Problem::invalid(format!(
            "You are in several workspaces that have the {what} `{name}`. Nothing was done."
        ))
        .hint(format!("use the id of the {what}, or name the workspace in the header Adjutant-Workspace")));
    }
    found.pop().ok_or_else(|| Problem::not_found(what, name))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Shape {
        #[allow(dead_code, reason = "only read from JSON")]
        names: Vec<String>,
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        assert!(parse::<Shape>(br#"{"names":["a"]}"#).is_ok());
        let shown = |bytes: &[u8]| format!("{:?}", parse::<Shape>(bytes).unwrap_err());
        assert!(shown(br#"{"names":["a",1]}"#).contains("/names/1"));
        assert!(shown(br#"{"names":[],"color":1}"#).contains("color"));
        assert!(shown(br#"{"names":[]} x"#).contains("Malformed"));
        assert!(shown(b"\xff").contains("Malformed"));
        let deep = format!(r#"{{"names":{}"#, "[".repeat(100_000));
        assert!(parse::<Shape>(deep.as_bytes()).is_err());
    }

    #[test]
    fn only_json_counts_as_json() {
        for fine in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
            assert!(is_json(fine.as_bytes()), "{fine}");
        }
        for wrong in ["text/plain", "application/x-www-form-urlencoded", "text/json", ""] {
            assert!(!is_json(wrong.as_bytes()), "{wrong}");
        }
    }
}
