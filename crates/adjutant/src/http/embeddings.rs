//! `/embeddings`: texts become vectors, with the keys, budgets and records of every model call.

use adjutant_engine::{Right, Role};
use axum::Json;
use axum::extract::State;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Body;
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use crate::wire::{self, EmbeddingList, EmbeddingsAsk};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(create))
}

/// Makes vectors of texts. Counts against the budgets of the caller, the workspace and the key it is made with.
#[utoipa::path(post, path = "/embeddings", operation_id = "create_embeddings", tag = "models", request_body = EmbeddingsAsk, responses((status = 200, description = "Vectors", body = EmbeddingList)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Body(ask): Body<EmbeddingsAsk>,
) -> Result<Json<EmbeddingList>, Problem> {
    let access = signed.workspace_or_only(ask.workspace_id.as_deref(), Role::Write, Right::Run)?;
    Ok(Json(wire::embeddings(server.engine.embed(access.workspace, access.user, ask.into()).await?)))
}
