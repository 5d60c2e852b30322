//! `/usage` and estimates: what was spent, what it would cost today, and what a run is likely to cost.

use adjutant_core::id::{KeyId, UserId};
use adjutant_core::time::Time;
use adjutant_engine::store::row::UsageFilter;
use adjutant_engine::{EngineError, GroupBy, Interval, Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find_agent;
use super::ask::{Asked, Body, Path, given};
use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;
use crate::wire::{self, Estimate, RepricedSum, UsageList};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(usage))
        .routes(routes!(reprice))
        .routes(routes!(estimate))
        .routes(routes!(estimate_run))
}

/// Which usage.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The workspace (id or short name); your only one without it.
    workspace_id: Option<String>,
    /// `day`, `agent`, `model`, `user`, `key` or `run`; `day` without it.
    group_by: Option<String>,
    /// `day` for a sum of each group on each day.
    interval: Option<String>,
    /// From this moment on: RFC 3339, or a day of the workspace. Without it from the first of this month.
    from: Option<String>,
    /// Before this moment or day.
    to: Option<String>,
    /// Only of this agent (id or short name).
    agent: Option<String>,
    /// Only for this person (id).
    user: Option<String>,
    /// Only with this stored key (id).
    key: Option<String>,
    /// Only of this model.
    model: Option<String>,
    /// `csv` for a file.
    format: Option<String>,
}

/// What is looked at.
struct Sought {
    filter: UsageFilter,
    from: Time,
    to: Option<Time>,
}

impl Wanted {
    /// What somebody may see: admins all, others what was spent for them.
    async fn sought(&self, server: &Server, signed: &Signed, access: Access) -> Result<Sought, Problem> {
        let asked = given::<UserId>("/user", self.user.as_deref())?;
        let person = match access.visible_to() {
            None => asked,
            Some(me) if asked.is_none_or(|asked| asked == me) => Some(me),
            Some(_) => return Err(Problem::forbidden("Only admins see what others spend. Nothing was read.")),
        };
        let agent = match &self.agent {
            None => None,
            Some(name) => Some(find_agent(server, signed, Some(&access.workspace.to_string()), name).await?.1.id),
        };
        let from = self.moment(server, access, "from", self.from.as_deref()).await?;
        let to = match self.to.as_deref() {
            None => None,
            Some(text) => Some(self.moment(server, access, "to", Some(text)).await?),
        };
        let (key, model) = (given::<KeyId>("/key", self.key.as_deref())?, self.model.clone());
        Ok(Sought { filter: UsageFilter { from: Some(from), to, run: None, agent, person, key, model }, from, to })
    }

    async fn moment(&self, server: &Server, access: Access, name: &str, text: Option<&str>) -> Result<Time, Problem> {
        match server.engine.since(access.workspace, text).await {
            Ok(moment) => Ok(moment),
            Err(EngineError::Invalid(_)) => Err(bad(name, "is no day such as 2026-11-01, and no moment")),
            Err(other) => Err(other.into()),
        }
    }
}

fn bad(field: &str, why: &str) -> Problem {
    Problem::invalid("Nothing was read.").error(format!("/{field}"), why)
}

/// What was spent: by day, agent, model, person, key or run. `format=csv` gives a file. Admins see all, others what was spent for them.
#[utoipa::path(get, operation_id = "list_usage", path = "/usage", tag = "money", params(Wanted), responses((status = 200, description = "Usage", content((UsageList = "application/json"), (String = "text/csv")))))]
async fn usage(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Response, Problem> {
    let access = signed.workspace_or_only(wanted.workspace_id.as_deref(), Role::Read, Right::Read)?;
    let word = wanted.group_by.as_deref().unwrap_or(GroupBy::Day.word());
    let by = GroupBy::of(word).ok_or_else(|| bad("group_by", "is none of day, agent, model, user, key, run"))?;
    let interval = match wanted.interval.as_deref() {
        None => Interval::Whole,
        Some("day") => Interval::Day,
        Some(_) => return Err(bad("interval", "is not day")),
    };
    let sought = wanted.sought(&server, &signed, access).await?;
    let lines = server.engine.usage(access.workspace, &sought.filter, by, interval).await?;
    let list = wire::usage(by, (sought.from, sought.to), lines);
    match wanted.format.as_deref() {
        None | Some("json") => Ok(Json(list).into_response()),
        Some("csv") => {
            let name = "attachment; filename=\"usage.csv\"";
            let headers = [(header::CONTENT_TYPE, "text/csv; charset=utf-8"), (header::CONTENT_DISPOSITION, name)];
            Ok((headers, wire::usage_csv(&list)).into_response())
        }
        Some(_) => Err(bad("format", "is neither json nor csv")),
    }
}

/// What past calls would cost at the prices of today, from the tokens that were recorded. Nothing is changed.
#[utoipa::path(get, operation_id = "reprice_usage", path = "/usage/reprice", tag = "money", params(Wanted), responses((status = 200, description = "Both sums", body = RepricedSum)))]
async fn reprice(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<RepricedSum>, Problem> {
    let access = signed.workspace_or_only(wanted.workspace_id.as_deref(), Role::Read, Right::Read)?;
    let sought = wanted.sought(&server, &signed, access).await?;
    Ok(Json(server.engine.reprice(access.workspace, &sought.filter).await?.into()))
}

/// What a run of an agent is likely to cost, by its last hundred runs, and the most it can.
#[utoipa::path(get, path = "/agents/{agent}/estimate", tag = "money", params(("agent" = String, Path, description = "Its id or short name")), responses((status = 200, description = "The estimate", body = Estimate)))]
async fn estimate(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Estimate>, Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    Ok(Json(server.engine.forecast(access.workspace, agent.id, access.user, None, None).await?.into()))
}

/// A run that might be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EstimateBody {
    /// The agent: its id or short name.
    agent_id: String,
    /// The workspace (id or short name), where the agent's name is in several.
    workspace_id: Option<String>,
    /// What it would cost with this model (`provider/model`); with those that its runs had without it.
    model: Option<String>,
    /// What the run would be given.
    max_cost_usd: Option<f64>,
}

/// What a run is likely to cost, also with another model, and the most it can. Nothing is started.
#[utoipa::path(post, operation_id = "estimate_run", path = "/estimate", tag = "money", request_body = EstimateBody, responses((status = 200, description = "The estimate", body = Estimate)))]
async fn estimate_run(
    State(server): State<Server>,
    signed: Signed,
    Body(asked): Body<EstimateBody>,
) -> Result<Json<Estimate>, Problem> {
    let (access, agent) = find_agent(&server, &signed, asked.workspace_id.as_deref(), &asked.agent_id).await?;
    let most = match asked.max_cost_usd {
        Some(usd) if !(0.0..=1e9).contains(&usd) => return Err(bad("max_cost_usd", "is no amount of dollars")),
        most => most.map(adjutant_core::budget::micros),
    };
    let model = asked.model.as_deref();
    let forecast = server.engine.forecast(access.workspace, agent.id, access.user, model, most).await?;
    Ok(Json(forecast.into()))
}
