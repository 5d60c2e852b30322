//! The HTTP side. Each file is one resource or one concern; `server_router` is the one list of them. Every request passes the
//! same frame and the same checks; everything but signing in needs somebody who is signed in.

mod about;
mod agent_files;
mod agents;
mod approvals;
mod ask;
mod attachments;
mod audit;
mod bodies;
mod budgets;
mod chat_export;
mod chat_runs;
mod chat_stats;
mod chats;
mod compat;
mod connections;
mod docs;
mod document;
mod door;
mod embeddings;
mod events;
mod files;
mod form;
mod frame;
mod guard;
mod halt;
mod health;
mod history;
mod import;
mod invites;
mod leave;
mod line;
mod logs;
mod me;
mod merge;
mod metrics;
mod models;
mod news;
mod notebooks;
mod once;
mod openapi;
mod origin;
mod page;
mod patience;
mod people;
mod problem;
mod provider_keys;
mod query;
mod reach;
mod removal;
mod retention;
mod rules;
mod runs;
mod seen;
mod server;
mod session;
mod shape;
mod sight;
mod start;
mod steer;
mod strangers;
mod stream;
mod tag;
mod templates;
mod tools;
mod turn;
mod ui;
mod uploads;
mod usage;
mod waiting;
mod workspaces;

use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;

pub(crate) use self::connections::serve;
use self::document::Document;
pub(crate) use self::patience::Patient;
use self::problem::{Kind, Problem};
pub(crate) use self::server::{About, Place, Server};

/// Where the API is.
const API: &str = "/api/v1";

/// Everything that is served.
fn router(server: Server) -> Router {
    let (api, document) = parts(server.clone());
    let document = Document::new(serde_json::to_value(document).unwrap_or_default());
    let described = Router::new()
        .route("/api/v1/openapi.json", get(openapi::json))
        .route("/docs", get(openapi::page))
        .with_state(document);
    Router::new()
        .merge(api)
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/problems/{code}", get(problem::page))
        .fallback(elsewhere)
        .method_not_allowed_fallback(wrong_method)
        .with_state(server.clone())
        .merge(described)
        .layer(DefaultBodyLimit::max(ask::BODY_BYTES))
        .layer(middleware::from_fn_with_state(server.clone(), guard::check))
        .layer(middleware::from_fn_with_state(server, frame::frame))
        .layer(middleware::map_response(guard::add_headers))
}

/// The API and its description.
fn parts(server: Server) -> (Router<Server>, utoipa::openapi::OpenApi) {
    let closed = closed();
    let known = query::Known::of(API, closed.get_openapi());
    let bodiless = bodies::Bodiless::of(API, closed.get_openapi());
    let closed = closed
        .route_layer(middleware::from_fn_with_state(bodiless, bodies::check))
        .route_layer(middleware::from_fn_with_state(known, query::check))
        .route_layer(middleware::from_fn_with_state(server.clone(), once::once))
        .route_layer(middleware::from_fn_with_state(server.clone(), turn::take))
        .route_layer(middleware::from_fn_with_state(server.clone(), door::require));
    let older = compat::root()
        .route_layer(middleware::from_fn_with_state(server.clone(), once::once))
        .route_layer(middleware::from_fn_with_state(server.clone(), turn::take))
        .route_layer(middleware::from_fn_with_state(server, door::require));
    let (router, document) =
        OpenApiRouter::with_openapi(openapi::base()).nest(API, session::open().merge(closed)).split_for_parts();
    (router.merge(older), openapi::finish(document))
}

/// What needs somebody.
fn closed() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .merge(session::closed())
        .merge(me::router())
        .merge(people::router())
        .merge(workspaces::router())
        .merge(notebooks::router())
        .merge(removal::router())
        .merge(invites::router())
        .merge(agents::router())
        .merge(chats::router())
        .merge(chat_export::router())
        .merge(chat_stats::router())
        .merge(attachments::router())
        .merge(import::router())
        .merge(runs::router())
        .merge(logs::router())
        .merge(steer::router())
        .merge(approvals::router())
        .merge(retention::router())
        .merge(rules::router())
        .merge(tools::router())
        .merge(events::router())
        .merge(compat::router())
        .merge(files::router())
        .merge(history::router())
        .merge(reach::router())
        .merge(templates::router())
        .merge(agent_files::router())
        .merge(audit::router())
        .merge(halt::router())
        .merge(usage::router())
        .merge(budgets::router())
        .merge(provider_keys::router())
        .merge(models::router())
        .merge(embeddings::router())
        .merge(seen::router())
        .merge(about::router())
}

/// The description of the API.
pub(crate) fn document() -> serde_json::Value {
    let router = OpenApiRouter::<Server>::with_openapi(openapi::base()).nest(API, session::open().merge(closed()));
    serde_json::to_value(openapi::finish(router.into_openapi())).unwrap_or_default()
}

/// What no route takes: a place of the page, or nothing.
async fn elsewhere(method: Method, uri: Uri, headers: axum::http::HeaderMap) -> Response {
    if ui::is_program(uri.path()) {
        return Problem::new(Kind::NotFound, format!("There is nothing at {}.", uri.path()))
            .hint("/docs lists what there is")
            .into_response();
    }
    ui::serve(method, uri, headers).await
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(Kind::MethodNotAllowed, format!("{} does not take {method}. Nothing was done.", uri.path()))
        .hint("/docs lists what there is")
}
