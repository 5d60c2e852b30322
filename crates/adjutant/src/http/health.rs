//! Health for machines: is the process there, and can it work?

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::server::Server;

/// The process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

/// The database answers too, the notebooks are there, and nobody told the server to stop.
pub(super) async fn ready(State(server): State<Server>) -> (StatusCode, Json<Value>) {
    if *server.closing.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "stopping"})));
    }
    if !server.engine.has_notebooks().await {
        let gone = json!({"status": "unavailable", "notebooks": "not there"});
        return (StatusCode::SERVICE_UNAVAILABLE, Json(gone));
    }
    match server.engine.store().health().await {
        Ok(health) => {
            (StatusCode::OK, Json(json!({"status": "ok", "database": health.backend, "schema": health.schema})))
        }
        Err(error) => {
            // What the database said is for the operator's log, not for whoever asks.
            tracing::warn!(%error, "the database does not answer");
            (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "unavailable", "database": "does not answer"})))
        }
    }
}
