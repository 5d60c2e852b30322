//! The pages that the `type` of a problem points to.

use axum::response::{Html, IntoResponse, Response};

use super::super::ask::Path;
use super::{Kind, Problem};

/// What a problem means, for a person.
pub(in crate::http) async fn page(Path(code): Path<String>) -> Response {
    let asked = Kind::ALL.into_iter().find(|kind| kind.code() == code);
    let asked = asked.map(|kind| (kind.status().as_u16(), kind.meaning()));
    match asked.or_else(|| crate::wire::meaning(&code)) {
        Some((status, meaning)) => Html(format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\
             <h1>{title}</h1><p>{meaning}</p><p><code>{code}</code>, status {status}. The <code>detail</code> and \
             <code>hint</code> of the answer say more; its <code>trace_id</code> finds the request in the server's \
             log.</p></html>\n",
            title = crate::failure::title(&code),
        ))
        .into_response(),
        None => Problem::not_found("kind of problem", &code).into_response(),
    }
}
