//! Health for machines: is the process there, and can it work?

use adjutant_core::causes::causes;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::server::Server;

/// How long it is waited for the database and the notebooks: whoever asks whether to send requests here asks every few seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The process answers.
pub(super) async fn live() -> Json<Value> {
    Json(json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")}))
}

/// The database answers and can be written, this node counts among those that share it, the notebooks are there, and nobody told
/// the server to stop.
pub(super) async fn ready(State(server): State<Server>) -> (StatusCode, Json<Value>) {
    let not = |why: Value| (StatusCode::SERVICE_UNAVAILABLE, Json(why));
    if *server.closing.borrow() {
        return not(json!({"status": "stopping"}));
    }
    let looked = tokio::time::timeout(PATIENCE, async {
        (server.engine.has_notebooks().await, server.engine.store().readiness().await)
    });
    let ready = match looked.await {
        Ok((false, _)) => return not(json!({"status": "unavailable", "notebooks": "not there"})),
        Ok((true, Ok(ready))) => ready,
        Ok((true, Err(error))) => {
            // What the database said is for the operator's log, not for whoever asks.
            tracing::warn!(error = %causes(&error), "the database does not answer");
            return not(json!({"status": "unavailable", "database": "does not answer"}));
        }
        Err(_) => {
            tracing::warn!("the database does not answer in time");
            return not(json!({"status": "unavailable", "database": "does not answer"}));
        }
    };
    if !ready.writable {
        return not(json!({"status": "unavailable", "database": "cannot be written"}));
    }
    if !server.engine.holds_lease() {
        return not(json!({"status": "unavailable", "lease": "lost"}));
    }
    (StatusCode::OK, Json(json!({"status": "ok", "database": ready.backend, "schema": ready.schema})))
}
