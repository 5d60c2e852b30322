//! The stop switch: of a workspace, for its admins; of the whole instance, for its owner.

use adjutant_core::id::{RunId, UserId};
use adjutant_core::time::Time;
use adjutant_engine::{Halt, HaltOf, Right, Role};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{MaybeBody, Path};
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(show_workspace, halt_workspace, lift_workspace)).routes(routes!(
        show_instance,
        halt_instance,
        lift_instance
    ))
}

/// Why.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct Why {
    /// Shown to everybody who is stopped by it.
    reason: Option<String>,
}

impl Why {
    fn text(self) -> Result<String, Problem> {
        let text = self.reason.unwrap_or_else(|| "stopped by a person".to_owned());
        if text.len() > 1000 {
            return Err(Problem::invalid("Nothing was stopped.").error("/reason", "is longer than 1000 bytes"));
        }
        Ok(text)
    }
}

/// A stop switch.
#[derive(Serialize, ToSchema)]
struct Switch {
    /// Whether it is on: then no run starts or goes on.
    is_halted: bool,
    /// Why.
    reason: Option<String>,
    /// Who turned it on.
    #[schema(value_type = Option<String>)]
    by: Option<UserId>,
    /// When.
    #[schema(value_type = Option<String>, format = DateTime)]
    at: Option<Time>,
    /// Runs that it holds; of one that was turned off, runs that go on.
    #[schema(value_type = Vec<String>)]
    runs: Vec<RunId>,
}

impl Switch {
    fn of(halt: Option<Halt>) -> Self {
        match halt {
            Some(Halt { by, at, reason, runs }) => {
                Self { is_halted: true, reason: Some(reason), by: Some(by), at: Some(at), runs }
            }
            None => Self::off(Vec::new()),
        }
    }

    const fn off(runs: Vec<RunId>) -> Self {
        Self { is_halted: false, reason: None, by: None, at: None, runs }
    }
}

/// Whether a workspace is stopped, by its own switch.
#[utoipa::path(get, path = "/workspaces/{workspace}/halt", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 200, description = "The switch", body = Switch)))]
async fn show_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Switch>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    Ok(Json(Switch::of(server.engine.halt_of(HaltOf::Workspace(access.workspace)).await?)))
}

/// Stops a workspace: no run starts, and those under way hold before their next effect. For admins.
#[utoipa::path(post, path = "/workspaces/{workspace}/halt", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), request_body = Option<Why>, responses((status = 200, description = "The switch, on", body = Switch)))]
async fn halt_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<Why>,
) -> Result<Json<Switch>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let halt = server.engine.halt(HaltOf::Workspace(access.workspace), access.user, body.text()?).await?;
    Ok(Json(Switch::of(Some(halt))))
}

/// Lets a workspace go on, with the runs that were held. For admins.
#[utoipa::path(delete, path = "/workspaces/{workspace}/halt", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 200, description = "The switch, off", body = Switch)))]
async fn lift_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Switch>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let runs = server.engine.lift_halt(HaltOf::Workspace(access.workspace), access.user).await?;
    Ok(Json(Switch::off(runs)))
}

/// Whether the whole instance is stopped.
#[utoipa::path(get, path = "/halt", tag = "settings", responses((status = 200, description = "The switch", body = Switch)))]
async fn show_instance(State(server): State<Server>, signed: Signed) -> Result<Json<Switch>, Problem> {
    signed.need(Right::Read)?;
    let switch = Switch::of(server.engine.halt_of(HaltOf::Instance).await?);
    // Which runs are held is for those who may see all of them.
    let runs = if signed.need_owner().is_ok() { switch.runs } else { Vec::new() };
    Ok(Json(Switch { runs, ..switch }))
}

/// Stops everything. For the owner of the instance.
#[utoipa::path(post, path = "/halt", tag = "settings", request_body = Option<Why>, responses((status = 200, description = "The switch, on", body = Switch)))]
async fn halt_instance(
    State(server): State<Server>,
    signed: Signed,
    MaybeBody(body): MaybeBody<Why>,
) -> Result<Json<Switch>, Problem> {
    signed.need_owner()?;
    let halt = server.engine.halt(HaltOf::Instance, signed.caller.user, body.text()?).await?;
    Ok(Json(Switch::of(Some(halt))))
}

/// Lets everything go on. For the owner of the instance.
#[utoipa::path(delete, path = "/halt", tag = "settings", responses((status = 200, description = "The switch, off", body = Switch)))]
async fn lift_instance(State(server): State<Server>, signed: Signed) -> Result<Json<Switch>, Problem> {
    signed.need_owner()?;
    Ok(Json(Switch::off(server.engine.lift_halt(HaltOf::Instance, signed.caller.user).await?)))
}
