//! What a model saw in one of its calls.

use adjutant_engine::{Frames, SeenRequest};
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path};
use super::door::Signed;
use super::problem::Problem;
use super::runs::find_run;
use super::server::Server;
use super::shape::SeenCall;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(seen))
}

/// What is shown.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Whether what went over the wire is shown, too, if the run kept it.
    #[serde(default)]
    frames: bool,
}

/// What the model saw in one of its calls, made again from the log: system prompt, tools, messages, and how large each is. `same` says that it is what was sent, to the last byte.
#[utoipa::path(get, operation_id = "get_model_call", path = "/runs/{run}/model-calls/{n}", tag = "runs", params(("run" = String, Path, description = "Its id"), ("n" = usize, Path, description = "The number of the call, from 1"), Wanted), responses((status = 200, description = "The request", body = SeenCall)))]
async fn seen(
    State(server): State<Server>,
    signed: Signed,
    Path((name, n)): Path<(String, usize)>,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<SeenRequest>, Problem> {
    let (access, row) = find_run(&server, &signed, &name).await?;
    let frames = if wanted.frames { Frames::Shown } else { Frames::LeftOut };
    Ok(Json(server.engine.seen(access.workspace, row.id, n, frames).await?))
}
