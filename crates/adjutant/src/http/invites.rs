//! `/workspaces/{workspace}/invites`: links that let new people in, until one is used or taken back.

use adjutant_core::audit::Deed;
use adjutant_engine::store::row::InviteRow;
use adjutant_engine::{Right, Role, invite_id};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path};
use super::door::Signed;
use super::once::ShownOnce;
use super::page::{Page, Slice, sliced};
use super::people::Link;
use super::problem::Problem;
use super::server::Server;
use super::workspaces::{NewRole, administered, may_give, role};
use crate::wire::Moment;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, invite)).routes(routes!(withdraw))
}

/// A link that nobody has used yet. What it carries was shown when it was made, and is not kept.
#[derive(Serialize, ToSchema)]
struct Invite {
    /// What it is called, which lets nobody in.
    id: String,
    /// What whoever uses it may do.
    role: String,
    /// Who made it: it is good while they may make such links.
    made_by: Option<String>,
    created_at: Moment,
    expires_at: Moment,
}

impl Invite {
    fn of(row: &InviteRow) -> Self {
        Self {
            id: invite_id(row.hash),
            role: row.role.clone().unwrap_or_default(),
            made_by: row.made_by.map(|user| user.to_string()),
            created_at: row.created_at.into(),
            expires_at: row.expires_at.into(),
        }
    }
}

/// Links that let new people in and that nobody has used, newest first. For admins.
#[utoipa::path(get, operation_id = "list_invites", path = "/workspaces/{workspace}/invites", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), Slice), responses((status = 200, description = "Invites", body = Page<Invite>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Invite>>, Problem> {
    let access = administered(&server, &signed, &name).await?;
    let rows = server.engine.store().invites(access.workspace, server.engine.env().now()).await?;
    sliced(rows.iter().map(Invite::of).collect(), &slice, |invite| invite.id.clone())
}

/// Makes a link that lets one new person in. For admins.
#[utoipa::path(post, operation_id = "invite_member", path = "/workspaces/{workspace}/invites", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name")), request_body = NewRole, responses((status = 201, description = "The link, shown this once", body = Link)))]
async fn invite(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewRole>,
) -> Result<(StatusCode, Extension<ShownOnce>, Json<Link>), Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let role = role(&body.role)?;
    may_give(&signed, role)?;
    let made = format!("one new person may have the role {role} in {}", access.workspace);
    server.record(Deed::LinkMade, Some(access.user), made).await?;
    let invited = server.engine.invite_member(access.user, access.workspace, role).await?;
    Ok((StatusCode::CREATED, Link::ONCE, Json(Link::new("/login#invite", &invited))))
}

/// Takes a link back that nobody has used. For admins.
#[utoipa::path(delete, operation_id = "withdraw_invite", path = "/workspaces/{workspace}/invites/{invite}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), ("invite" = String, Path, description = "Its id")), responses((status = 204, description = "It lets nobody in any more")))]
async fn withdraw(
    State(server): State<Server>,
    signed: Signed,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let access = administered(&server, &signed, &name).await?;
    let rows = server.engine.store().invites(access.workspace, server.engine.env().now()).await?;
    let row = rows.iter().find(|row| invite_id(row.hash) == id).ok_or_else(|| Problem::not_found("invite", &id))?;
    server.engine.withdraw_invite(access.user, row).await?;
    Ok(StatusCode::NO_CONTENT)
}
