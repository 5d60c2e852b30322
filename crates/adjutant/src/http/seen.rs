//! What a model saw in one of its calls.

use adjutant_engine::SeenRequest;
use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Path;
use super::door::Signed;
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;
use super::shape::SeenCall;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(seen))
}

/// What the model saw in one of its calls, made again from the log: system prompt, tools, messages, and how large each is. `same` says that it is what was sent, to the last byte.
#[utoipa::path(get, operation_id = "get_model_call", path = "/runs/{run}/model-calls/{n}", tag = "runs", params(("run" = String, Path, description = "Its id"), ("n" = usize, Path, description = "The number of the call, from 1")), responses((status = 200, description = "The request", body = SeenCall)))]
async fn seen(
    State(server): State<Server>,
    signed: Signed,
    Path((name, n)): Path<(String, usize)>,
) -> Result<Json<SeenRequest>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    Ok(Json(server.engine.seen(access.workspace, row.id, n).await?))
}
