//! `/workspaces`: the tenants a person is in, and who else is there.

use std::collections::BTreeSet;

use adjutant_core::guard::filter::FilterEntry;
use adjutant_core::guard::policy::slug_of;
use adjutant_core::id::UserId;
use adjutant_core::routing::DEFAULT;
use adjutant_engine::models::Allowed;
use adjutant_engine::store::row::{LoginRow, MemberRow, MembershipRow, WorkspaceRow};
use adjutant_engine::{
    ALL_PROVIDERS, ALL_TOOLS, FOREVER, Right, Role, UnknownWord, WorkspaceChange, allowed_providers, workspace_filter,
    workspace_tools,
};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path};
use super::door::{Access, Signed};
use super::page::{Page, Slice, sliced};
use super::people;
use super::problem::Problem;
use super::server::Server;
use super::shape::ContentFilter;
use crate::wire::Moment;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, change))
        .routes(routes!(list_members))
        .routes(routes!(put_member, remove_member))
}

/// A tenant.
#[derive(Serialize, ToSchema)]
struct Workspace {
    id: String,
    slug: String,
    name: String,
    /// IANA time zone of its days and months.
    time_zone: String,
    created_at: Moment,
    /// What you are there: `read`, `write` or `admin`.
    role: &'static str,
    /// What texts may hold, for all its agents; counted after what each filters itself.
    #[schema(value_type = Vec<ContentFilter>)]
    content_filter: Vec<FilterEntry>,
    /// How long what was said in runs that have ended is kept: `forever`, or a span such as `90d`.
    keep_runs: String,
    /// The tools and toolsets there are for its agents; `*` is all.
    tools: Vec<String>,
    /// The providers whose models may be asked, by name; `*` is all of them.
    allowed_providers: Vec<String>,
    /// The model of its agents that leave it to the default; `default` is the instance's own.
    default_model: String,
}

/// The providers whose models a workspace allows.
fn providers(row: &WorkspaceRow) -> Result<Vec<String>, Problem> {
    Ok(match allowed_providers(row)? {
        Allowed::All => vec![ALL_PROVIDERS.to_owned()],
        Allowed::These(names) => names.into_iter().collect(),
    })
}

/// How long a workspace keeps what was said, in words.
pub(super) fn keep_runs(row: &WorkspaceRow) -> String {
    row.keep_runs.clone().unwrap_or_else(|| FOREVER.to_owned())
}

fn shown(row: &WorkspaceRow, role: Role) -> Result<Workspace, Problem> {
    Ok(Workspace {
        id: row.id.to_string(),
        slug: row.slug.clone(),
        name: row.name.clone(),
        time_zone: row.time_zone.clone(),
        created_at: row.created_at.into(),
        role: role.word(),
        content_filter: workspace_filter(row)?,
        keep_runs: keep_runs(row),
        tools: workspace_tools(row)?.map_or_else(|| vec![ALL_TOOLS.to_owned()], Vec::from_iter),
        allowed_providers: providers(row)?,
        default_model: row.default_model.clone().unwrap_or_else(|| DEFAULT.to_owned()),
    })
}

/// The workspaces you are in.
#[utoipa::path(get, operation_id = "list_workspaces", path = "/workspaces", tag = "workspaces", params(Slice), responses((status = 200, description = "Yours", body = Page<Workspace>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Workspace>>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(None)? {
        if let Some(row) = server.engine.store().workspace(access.workspace).await? {
            data.push(shown(&row, access.role)?);
        }
    }
    sliced(data, &slice, |workspace: &Workspace| workspace.id.clone())
}

/// A workspace to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewWorkspace {
    /// Its name.
    name: String,
    /// Its short name; made from the name without it.
    slug: Option<String>,
    /// IANA time zone; UTC without it.
    time_zone: Option<String>,
}

/// Makes a workspace with a notebook `notes` and the agent `guide`; you are its admin. For the owner of the instance.
#[utoipa::path(post, operation_id = "create_workspace", path = "/workspaces", tag = "workspaces", request_body = NewWorkspace, responses((status = 201, description = "The workspace", body = Workspace)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<NewWorkspace>,
) -> Result<(StatusCode, Json<Workspace>), Problem> {
    signed.need_owner()?;
    let slug = body.slug.unwrap_or_else(|| slug_of(&body.name));
    let zone = body.time_zone.as_deref().unwrap_or("UTC");
    let row = server.engine.create_workspace(signed.caller.user, &slug, &body.name, zone).await?;
    server.forget_callers();
    Ok((StatusCode::CREATED, Json(shown(&row, Role::Admin)?)))
}

/// One workspace.
#[utoipa::path(get, operation_id = "get_workspace", path = "/workspaces/{workspace}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), responses((status = 200, description = "The workspace", body = Workspace)))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Workspace>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    let row = server.engine.store().workspace(access.workspace).await?;
    let row = row.ok_or_else(|| Problem::not_found("workspace", &name))?;
    Ok(Json(shown(&row, access.role)?))
}

/// What is to be set for a workspace; what is left out stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct WorkspaceSettings {
    /// Its name.
    name: Option<String>,
    /// IANA time zone of its days and months.
    time_zone: Option<String>,
    /// What texts may hold, for all its agents. Taking an entry away needs `approvals:decide`.
    #[schema(value_type = Option<Vec<ContentFilter>>)]
    content_filter: Option<Vec<FilterEntry>>,
    /// How long what was said in runs that have ended is kept: a span such as `90d`, after which it is erased for good, or
    /// `forever`.
    keep_runs: Option<String>,
    /// The tools and toolsets there are for its agents: no agent has more, whatever it was granted; `*` is all.
    #[schema(value_type = Option<Vec<String>>)]
    tools: Option<BTreeSet<String>>,
    /// The providers whose models may be asked, by the names they have in the configuration; an empty list leaves only the
    /// built-in one, `["*"]` is all of them.
    allowed_providers: Option<Vec<String>>,
    /// The model of its agents that leave it to the default, as an agent would write it; `default` is the instance's own.
    default_model: Option<String>,
}

/// Sets something for a whole workspace. It counts from the next step of every run on. For admins.
#[utoipa::path(patch, operation_id = "change_workspace", path = "/workspaces/{workspace}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), request_body = WorkspaceSettings, responses((status = 200, description = "The workspace", body = Workspace)))]
async fn change(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<WorkspaceSettings>,
) -> Result<Json<Workspace>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    if let Some(filter) = &body.content_filter {
        answerable(&server, &signed, access, filter).await?;
    }
    let change = WorkspaceChange {
        name: body.name,
        time_zone: body.time_zone,
        content_filter: body.content_filter,
        keep_runs: body.keep_runs,
        tools: body.tools,
        allowed_providers: body.allowed_providers,
        default_model: body.default_model,
    };
    let row = server.engine.change_workspace(access.workspace, access.user, change).await?;
    server.forget_callers();
    Ok(Json(shown(&row, access.role)?))
}

/// Takes an entry of the filter away only by somebody who may answer what it asks: agents then ask less, or do what was refused.
async fn answerable(server: &Server, signed: &Signed, access: Access, filter: &[FilterEntry]) -> Result<(), Problem> {
    let row = server.engine.store().workspace(access.workspace).await?;
    let before = row.as_ref().map(workspace_filter).transpose()?.unwrap_or_default();
    if before.iter().all(|entry| filter.contains(entry)) {
        return Ok(());
    }
    signed.need(Right::Decide).map_err(|problem| problem.error("/content_filter", "lets agents ask less than before"))
}

/// Somebody in a workspace.
#[derive(Serialize, ToSchema)]
struct Member {
    user_id: String,
    name: String,
    /// `read`, `write` or `admin`.
    role: String,
    since: Moment,
}

fn member(row: &MemberRow) -> Member {
    Member { user_id: row.user.to_string(), name: row.name.clone(), role: row.role.clone(), since: row.since.into() }
}

/// Who is in a workspace.
#[utoipa::path(get, path = "/workspaces/{workspace}/members", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), Slice), responses((status = 200, description = "Its members", body = Page<Member>)))]
async fn list_members(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Member>>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    let rows = server.engine.store().members(access.workspace).await?;
    sliced(rows.iter().map(member).collect(), &slice, |member: &Member| member.user_id.clone())
}

/// What somebody may do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRole {
    /// `read`, `write` or `admin`.
    pub(super) role: String,
}

pub(super) fn role(word: &str) -> Result<Role, Problem> {
    word.parse().map_err(|why: UnknownWord| {
        Problem::invalid("The role cannot be used. Nothing was changed.").error("/role", why.to_string())
    })
}

/// An admin of the workspace, or the owner of the instance for a workspace of theirs or anybody's.
pub(super) async fn administered(server: &Server, signed: &Signed, name: &str) -> Result<Access, Problem> {
    match signed.workspace(name, Role::Admin, Right::Admin) {
        Err(problem) if problem.is(super::problem::Kind::NotFound) && signed.need_owner().is_ok() => {
            let found = match name.parse() {
                Ok(id) => server.engine.store().workspace(id).await?,
                Err(_) => server.engine.store().workspace_by_slug(name).await?,
            };
            let row = found.ok_or(problem)?;
            Ok(Access { workspace: row.id, user: signed.caller.user, role: Role::Admin })
        }
        other => other,
    }
}

/// Members who may decide are made by those who may: a token without that right would come to it by a person of its own.
pub(super) fn may_give(signed: &Signed, role: Role) -> Result<(), Problem> {
    if role > Role::Read { signed.need(Right::Decide) } else { Ok(()) }
}

/// Whoever is to have a role. The owner of the instance knows everybody; an admin only those they share a workspace with, as
/// nobody learns from another tenant who has an account here, or is pulled into a workspace by strangers.
async fn acquaintance(server: &Server, signed: &Signed, user: &str) -> Result<LoginRow, Problem> {
    let unknown = || Problem::not_found("user", user).hint("let somebody new in by an invite");
    let login = people::find(&server.engine, user).await.map_err(|problem| match problem {
        problem if problem.is(super::problem::Kind::NotFound) => unknown(),
        problem => problem,
    })?;
    if signed.need_owner().is_ok() {
        return Ok(login);
    }
    let theirs = server.engine.store().memberships(login.id).await?;
    let shared = |row: &MembershipRow| signed.caller.memberships.iter().any(|mine| mine.workspace == row.workspace);
    if theirs.iter().any(shared) { Ok(login) } else { Err(unknown()) }
}

/// Lets a person in whom you share a workspace with, or changes what they may do; everybody else comes by an invite. For
/// admins, and for the owner of the instance, who knows everybody.
#[utoipa::path(put, path = "/workspaces/{workspace}/members/{user}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), ("user" = String, Path, description = "Id or name")), request_body = NewRole, responses((status = 200, description = "The member", body = Member)))]
async fn put_member(
    State(server): State<Server>,
    signed: Signed,
    Path((name, user)): Path<(String, String)>,
    Body(body): Body<NewRole>,
) -> Result<Json<Member>, Problem> {
    let access = administered(&server, &signed, &name).await?;
    let (login, role) = (acquaintance(&server, &signed, &user).await?, role(&body.role)?);
    may_give(&signed, role)?;
    server.engine.put_member(access.user, access.workspace, &login, role).await?;
    server.forget_callers();
    let members = server.engine.store().members(access.workspace).await?;
    let known = members.iter().find(|row| row.user == login.id);
    Ok(Json(member(known.ok_or_else(|| Problem::not_found("member", &user))?)))
}

/// Takes a person out. Their streams of this workspace end within a second. For admins.
#[utoipa::path(delete, path = "/workspaces/{workspace}/members/{user}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), ("user" = String, Path, description = "Id or name")), responses((status = 204, description = "Gone")))]
async fn remove_member(
    State(server): State<Server>,
    signed: Signed,
    Path((name, user)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let access = administered(&server, &signed, &name).await?;
    let members = server.engine.store().members(access.workspace).await?;
    let id = user.parse::<UserId>().ok();
    let known = members.iter().find(|row| Some(row.user) == id || row.name == user);
    let known = known.ok_or_else(|| Problem::not_found("member", &user))?;
    server.engine.remove_member(access.user, access.workspace, known).await?;
    server.forget_callers();
    Ok(StatusCode::NO_CONTENT)
}
