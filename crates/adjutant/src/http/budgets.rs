//! Budgets: what may be spent by whom, and what is left of it.

use adjutant_core::budget::Owner;
use adjutant_core::id::UserId;
use adjutant_engine::{Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path};
use super::door::{Access, Signed};
use super::problem::Problem;
use super::provider_keys::{find, must_change};
use super::server::Server;
use crate::wire::{self, BudgetLine, BudgetList, Limits};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(budgets))
        .routes(routes!(of_workspace, save_workspace, remove_workspace))
        .routes(routes!(of_person, save_person, remove_person))
        .routes(routes!(of_key, save_key, remove_key))
}

/// Which workspace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Where {
    /// The workspace (id or short name); all of yours without it.
    workspace_id: Option<String>,
}

/// What may be spent and what is: by workspaces, their people, agents and keys. Who is no admin sees nothing of other people, and of their agents only those that are shared with them.
#[utoipa::path(get, operation_id = "list_budgets", path = "/budgets", tag = "money", params(Where), responses((status = 200, description = "Budgets", body = BudgetList)))]
async fn budgets(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
) -> Result<Json<BudgetList>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(asked.workspace_id.as_deref())? {
        let reports = server.engine.budgets(access.workspace, access.member()).await?.into_iter();
        data.extend(reports.map(|report| wire::budget(access.workspace, report)));
    }
    Ok(Json(BudgetList { data }))
}

async fn line(server: &Server, access: Access, owner: Owner) -> Result<Json<BudgetLine>, Problem> {
    let report = server.engine.budget(access.workspace, owner).await?;
    Ok(Json(wire::budget(access.workspace, report)))
}

async fn save(server: &Server, access: Access, owner: Owner, limits: Limits) -> Result<Json<BudgetLine>, Problem> {
    server.engine.save_budget(access.workspace, access.user, owner, &limits.into()).await?;
    line(server, access, owner).await
}

async fn remove(server: &Server, access: Access, owner: Owner) -> Result<StatusCode, Problem> {
    server.engine.remove_budget(access.workspace, access.user, owner).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a workspace may spend, and what is left of it.
#[utoipa::path(get, path = "/workspaces/{workspace}/budget", operation_id = "get_workspace_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn of_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<BudgetLine>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    line(&server, access, Owner::Workspace(access.workspace)).await
}

/// Says what a workspace may spend in a day and a month. Counts from the next model call on. For admins.
#[utoipa::path(put, path = "/workspaces/{workspace}/budget", operation_id = "save_workspace_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name")), request_body = Limits, responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn save_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(limits): Body<Limits>,
) -> Result<Json<BudgetLine>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    save(&server, access, Owner::Workspace(access.workspace), limits).await
}

/// Takes the limits of a workspace away. For admins.
#[utoipa::path(delete, path = "/workspaces/{workspace}/budget", operation_id = "remove_workspace_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 204, description = "No limit")))]
async fn remove_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    remove(&server, access, Owner::Workspace(access.workspace)).await
}

/// A member by id or name.
async fn person(server: &Server, access: Access, name: &str) -> Result<Owner, Problem> {
    let id = name.parse::<UserId>().ok();
    let members = server.engine.store().members(access.workspace).await?;
    let known = members.iter().find(|row| Some(row.user) == id || row.name == name);
    let known = known.ok_or_else(|| Problem::not_found("member", name))?;
    if access.may_see(known.user, false) {
        return Ok(Owner::Person(access.workspace, known.user));
    }
    Err(Problem::forbidden("Only admins see what others may spend. Nothing was read."))
}

/// What a person may spend in a workspace, and what is left of it. For themselves and admins.
#[utoipa::path(get, path = "/workspaces/{workspace}/members/{user}/budget", operation_id = "get_member_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name"), ("user" = String, Path, description = "Id or name")), responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn of_person(
    State(server): State<Server>,
    signed: Signed,
    Path((name, user)): Path<(String, String)>,
) -> Result<Json<BudgetLine>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    let owner = person(&server, access, &user).await?;
    line(&server, access, owner).await
}

/// Says what a person may spend in a workspace. Counts from the next model call on. For admins.
#[utoipa::path(put, path = "/workspaces/{workspace}/members/{user}/budget", operation_id = "save_member_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name"), ("user" = String, Path, description = "Id or name")), request_body = Limits, responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn save_person(
    State(server): State<Server>,
    signed: Signed,
    Path((name, user)): Path<(String, String)>,
    Body(limits): Body<Limits>,
) -> Result<Json<BudgetLine>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let owner = person(&server, access, &user).await?;
    save(&server, access, owner, limits).await
}

/// Takes the limits of a person in a workspace away. For admins.
#[utoipa::path(delete, path = "/workspaces/{workspace}/members/{user}/budget", operation_id = "remove_member_budget", tag = "money", params(("workspace" = String, Path, description = "Id or short name"), ("user" = String, Path, description = "Id or name")), responses((status = 204, description = "No limit")))]
async fn remove_person(
    State(server): State<Server>,
    signed: Signed,
    Path((name, user)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let owner = person(&server, access, &user).await?;
    remove(&server, access, owner).await
}

/// What may be spent with a key, and what is left of it.
#[utoipa::path(get, path = "/provider-keys/{key}/budget", operation_id = "get_key_budget", tag = "money", params(("key" = String, Path, description = "Its id")), responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn of_key(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<BudgetLine>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    line(&server, access, Owner::Key(row.id)).await
}

/// Says what may be spent with a key. Counts from the next model call on. For whoever may change the key.
#[utoipa::path(put, path = "/provider-keys/{key}/budget", operation_id = "save_key_budget", tag = "money", params(("key" = String, Path, description = "Its id")), request_body = Limits, responses((status = 200, description = "The budget", body = BudgetLine)))]
async fn save_key(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(limits): Body<Limits>,
) -> Result<Json<BudgetLine>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let access = must_change(&signed, access, &row)?;
    save(&server, access, Owner::Key(row.id), limits).await
}

/// Takes the limits of a key away. For whoever may change the key.
#[utoipa::path(delete, path = "/provider-keys/{key}/budget", operation_id = "remove_key_budget", tag = "money", params(("key" = String, Path, description = "Its id")), responses((status = 204, description = "No limit")))]
async fn remove_key(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let access = must_change(&signed, access, &row)?;
    remove(&server, access, Owner::Key(row.id)).await
}
