//! The HTTP side: health, readiness and the web page. Every answer carries the same strict headers, and a server on loopback
//! answers only to names of loopback.

mod guard;
mod health;
mod ui;

use adjutant_engine::Engine;
use axum::Router;
use axum::middleware;
use axum::routing::get;

/// Everything that is served.
pub(crate) fn router(engine: Engine) -> Router {
    Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(ui::serve)
        .layer(middleware::from_fn(guard::check_host))
        .layer(middleware::map_response(guard::add_headers))
        .with_state(engine)
}
