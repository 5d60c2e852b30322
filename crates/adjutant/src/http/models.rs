//! `/models`: what can be used here, what it can do and what it costs; and why a strategy would choose which.

use adjutant_core::options::Ability;
use adjutant_core::routing::Strategy;
use adjutant_engine::Right;
use adjutant_engine::models::Offer;
use adjutant_engine::models::router::Needs;
use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Asked;
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use crate::wire::{self, Explained, ModelList};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(explain))
}

/// The models that can be used here, as far as the catalog knows them. One that is not listed can be used all the same, if its provider is configured.
#[utoipa::path(get, path = "/models", operation_id = "list_models", tag = "models", responses((status = 200, description = "Models", body = ModelList)))]
async fn list(State(server): State<Server>, signed: Signed) -> Result<Json<ModelList>, Problem> {
    signed.need(Right::Read)?;
    Ok(Json(wire::models(server.engine.default_model(), &offers(&server, &signed).await?)))
}

/// What the caller can use: the operator's models, and those that keys open in the caller's workspaces.
async fn offers(server: &Server, signed: &Signed) -> Result<Vec<Offer>, Problem> {
    let workspaces = signed.workspaces(None)?.into_iter().map(|access| access.workspace);
    Ok(server.engine.offers(workspaces, signed.caller.user).await?)
}

/// What is to be chosen.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Question {
    /// `cheapest`, `fastest`, `smartest`, `balanced` or `fallback`; `balanced` without it.
    strategy: Option<String>,
    /// Tokens of input that are expected; 4000 without it.
    input: Option<u64>,
    /// Tokens of output that are expected; 1000 without it.
    output: Option<u64>,
    /// Whether it has to see images.
    images: Option<bool>,
    /// What else it has to be able to do, with commas between: `images`, `structured`, `reasoning`.
    requires: Option<String>,
}

/// Which model a strategy would choose now for a call with tools, and why.
#[utoipa::path(get, path = "/models/explain", operation_id = "explain_models", tag = "models", params(Question), responses((status = 200, description = "The choice", body = Explained)))]
async fn explain(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Question>,
) -> Result<Json<Explained>, Problem> {
    signed.need(Right::Read)?;
    let word = asked.strategy.as_deref().unwrap_or(Strategy::Balanced.word());
    let strategy = Strategy::of(word)
        .ok_or_else(|| Problem::invalid("Nothing was chosen.").error("/strategy", "is no strategy"))?;
    let usual = Needs::default();
    let needs = Needs {
        tools: true,
        images: asked.images.unwrap_or(false),
        input: asked.input.unwrap_or(usual.input),
        output: asked.output.unwrap_or(usual.output),
        ..usual
    };
    let words = asked.requires.iter().flat_map(|words| words.split(',')).map(str::trim).filter(|word| !word.is_empty());
    let abilities: Option<_> = words.map(Ability::of).collect();
    let abilities = abilities
        .ok_or_else(|| Problem::invalid("Nothing was chosen.").error("/requires", "names no ability of a model"))?;
    let needs = needs.and(&abilities);
    Ok(Json(wire::explained(&offers(&server, &signed).await?, &needs, strategy)))
}
