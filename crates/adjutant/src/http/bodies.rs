//! What a request may bring to an operation that takes no body: nothing. A wish in a body that nobody reads must not pass for one
//! that was heard.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::ask::BODY_BYTES;
use super::problem::Problem;

/// The operations that take no body.
#[derive(Clone)]
pub(super) struct Bodiless(Arc<BTreeSet<(String, String)>>);

impl Bodiless {
    /// Those of a description, of operations below an address. Older clients send what they always sent.
    pub(super) fn of(below: &str, document: &utoipa::openapi::OpenApi) -> Self {
        let document = serde_json::to_value(document).unwrap_or_default();
        let mut bodiless = BTreeSet::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                let mut tags = operation["tags"].as_array().into_iter().flatten();
                if operation.get("requestBody").is_none() && !tags.any(|tag| tag == "older clients") {
                    bodiless.insert((method.to_uppercase(), format!("{below}{path}")));
                }
            }
        }
        Self(Arc::new(bodiless))
    }

    fn takes_none(&self, method: &Method, path: &str) -> bool {
        self.0.contains(&(method.as_str().to_owned(), path.to_owned()))
    }
}

/// Refuses a request that says something where nobody would hear it.
pub(super) async fn check(State(bodiless): State<Bodiless>, request: Request, next: Next) -> Response {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if !bodiless.takes_none(request.method(), path) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    match to_bytes(body, BODY_BYTES).await.map(|bytes| unheard(&bytes)) {
        Ok(None) => next.run(Request::from_parts(parts, Body::empty())).await,
        Ok(Some(problem)) => problem.into_response(),
        Err(_) => refusal().into_response(),
    }
}

fn refusal() -> Problem {
    Problem::invalid("This operation takes no body. Nothing was done.").hint("/docs lists what each operation takes")
}

/// What is wrong with a body where none is taken; nothing, if it says nothing.
fn unheard(bytes: &[u8]) -> Option<Problem> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Null) => None,
        Ok(Value::Object(fields)) if fields.is_empty() => None,
        Ok(Value::Object(fields)) => Some(fields.keys().fold(refusal(), |problem, name| {
            problem.error(format!("/{}", name.replace('~', "~0").replace('/', "~1")), "is no field of this operation")
        })),
        Ok(_) | Err(_) => Some(refusal()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_says_something_is_refused_by_its_fields() {
        for nothing in ["", " \n", "{}", "null"] {
            assert!(unheard(nothing.as_bytes()).is_none(), "{nothing}");
        }
        let told = unheard(br#"{"reason": "x", "a/b": 1}"#).map(|problem| problem.shown()["errors"].to_string());
        let told = told.unwrap_or_default();
        assert!(told.contains("\"/reason\"") && told.contains("\"/a~1b\""), "{told}");
        for odd in ["[]", "reason", "\"x\""] {
            assert!(unheard(odd.as_bytes()).is_some(), "{odd}");
        }
    }
}
