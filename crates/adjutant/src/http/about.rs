//! `/about` and `/settings`: what this instance is, how it is, and what it was started with. `/settings` is read here and
//! written in the configuration.

use adjutant_core::safety::{Standing, Standings};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use adjutant_engine::Right;

use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use super::shape::SafetyStanding;
use crate::diagnosis::{self, State as Health};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(about)).routes(routes!(settings))
}

/// One thing that can be well or not.
#[derive(Serialize, ToSchema)]
struct Check {
    /// What it is.
    name: String,
    /// `ok`, `enforced`, `degraded`, `off` or `problem`.
    state: &'static str,
    /// In words; only for the owner of the instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// What this instance is, and how it is.
#[derive(Serialize, ToSchema)]
struct AboutInstance {
    /// The version of the server.
    version: &'static str,
    /// `sqlite` or `postgres`.
    database: String,
    /// The model of agents that say `default`.
    default_model: String,
    /// `ok`, or `problem`.
    status: &'static str,
    /// What is enforced, degraded and off.
    checks: Vec<Check>,
    /// How what keeps runs safe stands: what an agent may require.
    #[schema(value_type = std::collections::BTreeMap<String, SafetyStanding>)]
    safety: Standings,
}

/// What is enforced, degraded and off, as `adjutant doctor` says it. The particulars are for the owner of the instance.
#[utoipa::path(get, operation_id = "get_about", path = "/about", tag = "settings", responses((status = 200, description = "How it is", body = AboutInstance)))]
async fn about(State(server): State<Server>, signed: Signed) -> Result<Json<AboutInstance>, Problem> {
    signed.need(Right::Read)?;
    let owner = signed.need_owner().is_ok();
    let config = &server.about.config;
    let mut found = diagnosis::outside(config);
    found.extend(diagnosis::inside(config, &server.engine, server.home, &server.about.agent_problems).await?);
    // Names of providers, notebooks and agents are not everybody's business either.
    let named = ["provider ", "workspace ", "notebook ", "agents", "agent file", "data directory"];
    let seen = |check: &diagnosis::Check| owner || !named.iter().any(|name| check.name.starts_with(name));
    let status = if found.iter().any(|check| check.state == Health::Problem) { "problem" } else { "ok" };
    let checks = found.into_iter().filter(seen);
    let checks = checks.map(|check| Check {
        name: check.name,
        state: check.state.word(),
        detail: owner.then_some(check.detail),
    });
    Ok(Json(AboutInstance {
        version: env!("CARGO_PKG_VERSION"),
        database: server.engine.store().health().await?.backend.to_string(),
        default_model: server.engine.default_model().to_owned(),
        status,
        checks: checks.collect(),
        safety: server
            .engine
            .safety()
            .await?
            .into_iter()
            .map(|(safety, standing)| (safety, told(standing, owner)))
            .collect(),
    }))
}

/// The particulars are for the owner of the instance.
fn told(standing: Standing, owner: bool) -> Standing {
    match standing {
        Standing::Degraded { .. } if !owner => Standing::degraded("its owner knows"),
        Standing::Degraded { .. } | Standing::Enforced | Standing::Off { .. } => standing,
    }
}

/// A setting.
#[derive(Serialize, ToSchema)]
struct Setting {
    /// Its name in the configuration.
    key: String,
    /// Its value; never a secret.
    value: String,
    /// Where it comes from: the default, the configuration, the environment or the command line.
    origin: String,
}

/// The settings of the instance.
#[derive(Serialize, ToSchema)]
struct Settings {
    /// One by one.
    data: Vec<Setting>,
}

/// Every setting of the instance and where it comes from. For its owner.
#[utoipa::path(get, operation_id = "get_settings", path = "/settings", tag = "settings", responses((status = 200, description = "The settings", body = Settings)))]
async fn settings(State(server): State<Server>, signed: Signed) -> Result<Json<Settings>, Problem> {
    signed.need_owner()?;
    let shown = server.about.config.shown().into_iter();
    let data = shown.map(|(key, value, origin)| Setting { key, value, origin: origin.to_string() });
    Ok(Json(Settings { data: data.collect() }))
}
