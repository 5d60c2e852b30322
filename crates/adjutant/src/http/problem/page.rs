//! The pages that the `type` of a problem points to.

use axum::response::{Html, IntoResponse, Response};

use super::super::ask::Path;
use super::{Kind, Problem};

/// What a problem means, for a person.
pub(in crate::http) async fn page(Path(code): Path<String>) -> Response {
    match Kind::ALL.into_iter().find(|kind| kind.code() == code) {
        Some(kind) => Html(format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
             <h1>{title}</h1><p>{meaning}</p><p><code>{code}</code>, status {status}. The <code>detail</code> and \
             <code>hint</code> of the answer say more; its <code>trace_id</code> finds the request in the server's \
             log.</p></html>\n",
            title = kind.title(),
            meaning = kind.meaning(),
            status = kind.status().as_u16(),
        ))
        .into_response(),
        None => Problem::not_found("kind of problem", &code).into_response(),
    }
}
