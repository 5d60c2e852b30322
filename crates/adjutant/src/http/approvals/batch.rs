//! `/approvals/batch`: many decisions in one request, each for itself.

use adjutant_engine::Right;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::ask::Body;
use super::super::door::Signed;
use super::super::openapi::ProblemShape;
use super::super::problem::Problem;
use super::super::server::Server;
use super::{NewDecision, decided};
use crate::wire::Item;

/// Decisions in one batch.
const BATCH: usize = 100;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(batch))
}

/// Many decisions.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Batch {
    /// Each with its `approval_id`.
    decisions: Vec<NewDecision>,
}

/// What became of each, in the order they came.
#[derive(Serialize, ToSchema)]
struct Batched {
    data: Vec<Decided>,
}

/// What became of one.
#[derive(Serialize, ToSchema)]
struct Decided {
    approval_id: String,
    ok: bool,
    /// The item, decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Item>,
    /// Why it was not decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProblemShape>)]
    problem: Option<Value>,
}

/// Decides many items, each for itself: one that fails leaves the others. Needs `approvals:decide`.
#[utoipa::path(post, operation_id = "decide_approvals", path = "/approvals/batch", tag = "approvals", request_body = Batch, responses((status = 200, description = "What became of each", body = Batched)))]
async fn batch(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<Batch>,
) -> Result<Json<Batched>, Problem> {
    signed.need(Right::Decide)?;
    if body.decisions.is_empty() || body.decisions.len() > BATCH {
        return Err(Problem::invalid("Nothing was decided.").error("/decisions", format!("has 1 to {BATCH} entries")));
    }
    let mut data = Vec::new();
    for decision in body.decisions {
        let name = decision.names().unwrap_or_default().to_owned();
        let (approval, problem) = match decided(&server, &signed, &name, decision).await {
            Ok(item) => (Some(item), None),
            Err(problem) => (None, Some(problem.shown())),
        };
        data.push(Decided { approval_id: name, ok: problem.is_none(), approval, problem });
    }
    Ok(Json(Batched { data }))
}
