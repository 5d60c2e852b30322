//! `/agents/templates` and what comes from them: the agents that come with Adjutant, to start from and to go back to.

use adjutant_core::guard::policy::AgentSpec;
use adjutant_core::run::event::Actor;
use adjutant_engine::{Resync, Resynced, Right, Role, templates};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::{answer, answerable, changed, config, tight};
use super::ask::{Asked, MaybeBody, Path, agreed};
use super::door::Signed;
use super::page::{Page, all};
use super::problem::Problem;
use super::server::Server;
use super::shape::{Agent, AgentBody, ResyncedAgent};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(resync)).routes(routes!(reset))
}

/// The agents that come with Adjutant, each as a body for `POST /agents`.
#[utoipa::path(get, operation_id = "list_agent_templates", path = "/agents/templates", tag = "agents", responses((status = 200, description = "Templates", body = Page<AgentBody>)))]
async fn list(signed: Signed) -> Result<Json<Page<Value>>, Problem> {
    signed.need(Right::Read)?;
    Ok(all(templates().iter().map(body_of).collect()))
}

/// What is written of an agent, without what is left out.
pub(super) fn body_of(spec: &AgentSpec) -> Value {
    let mut body: Value = serde_json::to_value(spec).unwrap_or_default();
    if let Some(fields) = body.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

/// Which workspace, and whether for real.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[schema(as = ResyncWanted)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    /// The workspace (id or short name); your only one without it.
    workspace_id: Option<String>,
    /// Only says what would change.
    dry_run: Option<bool>,
}

/// Makes the agents of a workspace that come from templates as those are: missing ones are made, changed ones get the template as
/// their next version, others are left alone. `dry_run`, behind the `?` or in the body, only says so. For admins.
#[utoipa::path(post, operation_id = "resync_agents", path = "/agents/resync", tag = "agents", params(Wanted), request_body = Option<Wanted>, responses((status = 200, description = "What became of each", body = Page<ResyncedAgent>)))]
async fn resync(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
    MaybeBody(body): MaybeBody<Wanted>,
) -> Result<Json<Page<Resynced>>, Problem> {
    let workspace = agreed("workspace_id", wanted.workspace_id, body.workspace_id)?;
    let dry_run = agreed("dry_run", wanted.dry_run, body.dry_run)?;
    let access = signed.workspace_or_only(workspace.as_deref(), Role::Admin, Right::Admin)?;
    let by = Actor::User(access.user);
    let mode = if dry_run.unwrap_or(false) { Resync::DryRun } else { Resync::Real };
    if mode == Resync::Real {
        let planned = server.engine.resync_agents(access.workspace, by.clone(), Resync::DryRun).await?;
        let asking = ["autonomy", "requires_approval", "flow", "content_filter"];
        if planned.iter().flat_map(|agent| &agent.fields).any(|field| asking.contains(&field.as_str())) {
            signed.need(Right::Decide)?;
        }
    }
    let done = server.engine.resync_agents(access.workspace, by, mode).await?;
    Ok(all(done))
}

/// Puts an agent back to the template it came from, as its next version.
#[utoipa::path(post, operation_id = "reset_agent", path = "/agents/{agent}/reset", tag = "agents", params(("agent" = String, Path, description = "Id or short name")), responses((status = 200, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn reset(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Response, Problem> {
    let (access, row) = changed(&server, &signed, &name).await?;
    let template = templates().into_iter().find(|spec| spec.slug.as_deref() == Some(row.slug.as_str()));
    if let Some(template) = template {
        let (next, before) = (server.engine.complete_agent(template)?, config(&row).ok());
        tight(&signed, access, &next.budget, before.as_ref())?;
        answerable(&signed, &next, before.as_ref())?;
    }
    let row = server.engine.reset_agent(Actor::User(access.user), row).await?;
    answer(&server, StatusCode::OK, &row).await
}
