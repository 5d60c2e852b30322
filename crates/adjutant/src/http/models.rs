//! `/models` and `/providers`: what can be used here, what it can do and what it costs, how providers are doing, and why a
//! strategy would choose which model.

use std::path::PathBuf;

use adjutant_core::audit::Deed;
use adjutant_core::options::Ability;
use adjutant_core::routing::Strategy;
use adjutant_engine::models::router::Needs;
use adjutant_engine::models::{Offer, ProviderFacts};
use adjutant_engine::{Right, Role};
use axum::Json;
use axum::extract::{DefaultBodyLimit, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body};
use super::door::Signed;
use super::page::{Page, all};
use super::problem::Problem;
use super::server::Server;
use crate::instance::CATALOG;
use crate::instance::catalog::{self, Refreshed};
use crate::wire::{self, Explained, ModelList, ProviderLine};

/// Bytes of a document about models: several times what models.dev has.
const DOCUMENT_BYTES: usize = 16 * 1024 * 1024;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(explain))
        .routes(routes!(refresh))
        .routes(routes!(providers))
        .merge(OpenApiRouter::new().routes(routes!(take)).layer(DefaultBodyLimit::max(DOCUMENT_BYTES)))
}

/// The models that can be used here, as far as the catalog knows them. One that is not listed can be used all the same, if its provider is configured.
#[utoipa::path(get, path = "/models", operation_id = "list_models", tag = "models", responses((status = 200, description = "Models", body = ModelList)))]
async fn list(State(server): State<Server>, signed: Signed) -> Result<Json<ModelList>, Problem> {
    signed.need(Right::Read)?;
    Ok(Json(wire::models(server.engine.default_model(), &offers(&server, &signed).await?)))
}

/// The providers of models: those that are configured or found, and those that somebody may bring a key for. Where they are
/// reached is told to admins.
#[utoipa::path(get, path = "/providers", operation_id = "list_providers", tag = "models", responses((status = 200, description = "Providers", body = Page<ProviderLine>)))]
async fn providers(State(server): State<Server>, signed: Signed) -> Result<Json<Page<ProviderLine>>, Problem> {
    signed.need(Right::Read)?;
    let admin = signed.caller.owner || signed.workspaces(None)?.iter().any(|access| access.role >= Role::Admin);
    let offers = offers(&server, &signed).await?;
    let stored = |name: &str| {
        let prefix = format!("{name}/");
        offers.iter().any(|offer| offer.by_key && offer.name.starts_with(&prefix))
    };
    let line = |facts: ProviderFacts| {
        let stored = stored(&facts.name);
        let host = facts.host.clone().filter(|_| admin);
        ProviderLine::of(facts, host, stored)
    };
    Ok(all(server.engine.models().about_providers().into_iter().map(line).collect()))
}

/// Which provider to ask.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Whom {
    /// The provider; every one that is configured without it.
    provider: Option<String>,
}

/// Asks providers which models they have, and knows those from now on, without a price. For the owner.
#[utoipa::path(post, path = "/models/refresh", operation_id = "refresh_models", tag = "models", request_body = Whom, responses((status = 200, description = "What came of each", body = Page<Refreshed>)))]
async fn refresh(
    State(server): State<Server>,
    signed: Signed,
    Body(whom): Body<Whom>,
) -> Result<Json<Page<Refreshed>>, Problem> {
    signed.need_owner()?;
    let (models, provider) = (&server.about.models, whom.provider.as_deref());
    let mine = signed.workspaces(None)?.iter().map(|access| access.workspace).collect();
    let key = catalog::brought(&server.engine, models, mine, signed.caller.user, provider).await?;
    let rows = catalog::refresh(models, &place(&server), provider, key).await;
    let rows = rows.map_err(|failure| Problem::invalid(failure.message))?;
    let summary =
        format!("models of {} asked for", rows.iter().map(|row| &*row.provider).collect::<Vec<_>>().join(", "));
    server.record(Deed::SettingChanged, Some(signed.caller.user), summary).await?;
    Ok(all(rows))
}

/// What was taken.
#[derive(Debug, Serialize, ToSchema)]
struct Taken {
    /// How many models the document has.
    models: usize,
}

/// Lays a document in the form of models.dev over the built-in catalog, in place of the one before; up to 16 MiB. For the owner.
#[utoipa::path(put, path = "/models/catalog", operation_id = "take_catalog", tag = "models", request_body = Value, responses((status = 200, description = "It counts from now on", body = Taken)))]
async fn take(
    State(server): State<Server>,
    signed: Signed,
    Body(document): Body<Value>,
) -> Result<Json<Taken>, Problem> {
    signed.need_owner()?;
    let bytes = serde_json::to_vec(&document).unwrap_or_default();
    let models = catalog::keep(&server.about.models, &place(&server), &bytes, "The document");
    let models = models.map_err(|failure| Problem::invalid(failure.message))?;
    let summary = format!("{models} models laid over the built-in catalog");
    server.record(Deed::SettingChanged, Some(signed.caller.user), summary).await?;
    Ok(Json(Taken { models }))
}

/// Where what was laid over the catalog is kept.
fn place(server: &Server) -> PathBuf {
    server.about.config.data.value.join(CATALOG)
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
