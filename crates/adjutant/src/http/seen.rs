//! What a model saw in one of its calls.

use axum::Json;
use axum::extract::{Path, State};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::door::Signed;
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(seen))
}

/// What the model saw in one of its calls, made again from the log: system prompt, tools, messages, and how large each is. `same` says that it is what was sent, to the last byte.
#[utoipa::path(get, path = "/runs/{run}/model-calls/{n}", tag = "runs", params(("run" = String, Path, description = "Its id"), ("n" = usize, Path, description = "The number of the call, from 1")), responses((status = 200, description = "The request", body = Object)))]
async fn seen(
    State(server): State<Server>,
    signed: Signed,
    Path((name, n)): Path<(String, usize)>,
) -> Result<Json<Value>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let seen = server.engine.seen(access.workspace, row.id, n).await?;
    Ok(Json(serde_json::to_value(seen).unwrap_or_default()))
}
