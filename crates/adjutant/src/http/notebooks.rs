//! `/workspaces/{workspace}/notebooks`: the folder trees that agents and people work in.

use adjutant_core::guard::policy::is_slug;
use adjutant_engine::store::row::NotebookRow;
use adjutant_engine::{NewLink, Right, Role};
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
use super::problem::Problem;
use super::server::Server;
use crate::instance::own_places;
use crate::wire::Moment;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, change))
}

/// A folder tree of files.
#[derive(Serialize, ToSchema)]
struct Notebook {
    id: String,
    workspace_id: String,
    slug: String,
    /// `managed`, or `linked` to a folder of the host.
    kind: &'static str,
    /// Where a linked one lies; only for the owner of the instance.
    path: Option<String>,
    created_at: Moment,
}

fn shown(row: &NotebookRow, signed: &Signed) -> Notebook {
    Notebook {
        id: row.id.to_string(),
        workspace_id: row.workspace.to_string(),
        slug: row.slug.clone(),
        kind: if row.linked.is_some() { "linked" } else { "managed" },
        path: row.linked.clone().filter(|_| signed.need_owner().is_ok()),
        created_at: row.created_at.into(),
    }
}

/// The notebooks of a workspace. Only the owner of the instance sees where linked ones lie.
#[utoipa::path(get, operation_id = "list_notebooks", path = "/workspaces/{workspace}/notebooks", tag = "notebooks", params(("workspace" = String, Path, description = "Id or short name"), Slice), responses((status = 200, description = "Its notebooks", body = Page<Notebook>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Notebook>>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    let rows = server.engine.store().notebooks(access.workspace).await?;
    let data = rows.iter().map(|row| shown(row, &signed)).collect();
    sliced(data, &slice, |notebook: &Notebook| notebook.id.clone())
}

/// A notebook to be made, or a folder to be linked.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewNotebook {
    /// Its short name; that of the folder when one is linked and none is given.
    slug: Option<String>,
    /// The absolute path of a folder of the server, to be worked on where it is. For the owner of the instance.
    path: Option<String>,
}

/// Makes an empty notebook, for admins; or links a folder of the server, for the owner of the instance.
#[utoipa::path(post, operation_id = "create_notebook", path = "/workspaces/{workspace}/notebooks", tag = "notebooks", params(("workspace" = String, Path, description = "Id or short name")), request_body = NewNotebook, responses((status = 201, description = "The notebook", body = Notebook)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewNotebook>,
) -> Result<(StatusCode, Json<Notebook>), Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    if let Some(folder) = body.path {
        signed.need_owner()?;
        let link = NewLink { folder: folder.into(), slug: body.slug, own: own_places(&server.about.config) };
        let row = server.engine.link_notebook(access.workspace, access.user, link).await?;
        return Ok((StatusCode::CREATED, Json(shown(&row, &signed))));
    }
    let slug = body.slug.unwrap_or_default();
    check_slug(&slug, "The notebook was not made.")?;
    let id = server.engine.create_notebook(access.workspace, access.user, &slug).await?;
    let row = server.engine.store().notebook(access.workspace, id).await?;
    let row = row.ok_or_else(|| Problem::not_found("notebook", &slug))?;
    Ok((StatusCode::CREATED, Json(shown(&row, &signed))))
}

fn check_slug(slug: &str, not_done: &str) -> Result<(), Problem> {
    if is_slug(slug) {
        return Ok(());
    }
    Err(Problem::invalid(not_done).error("/slug", "small letters, digits and - only"))
}

async fn find(server: &Server, access: Access, name: &str) -> Result<NotebookRow, Problem> {
    let id = super::runs::notebook(server, access, Some(name)).await?;
    let row = match id {
        Some(id) => server.engine.store().notebook(access.workspace, id).await?,
        None => None,
    };
    row.ok_or_else(|| Problem::not_found("notebook", name))
}

/// One notebook.
#[utoipa::path(get, operation_id = "get_notebook", path = "/workspaces/{workspace}/notebooks/{notebook}", tag = "notebooks", params(("workspace" = String, Path, description = "Id or short name"), ("notebook" = String, Path, description = "Id or short name")), responses((status = 200, description = "The notebook", body = Notebook)))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    Path((name, notebook)): Path<(String, String)>,
) -> Result<Json<Notebook>, Problem> {
    let access = signed.workspace(&name, Role::Read, Right::Read)?;
    Ok(Json(shown(&find(&server, access, &notebook).await?, &signed)))
}

/// What to change of a notebook.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NotebookChange {
    /// Another short name.
    slug: String,
}

/// Gives a notebook another short name, for admins. Agents whose scope names the old one do not reach it any more, those whose
/// scope names the new one do; its files and its id stay.
#[utoipa::path(patch, operation_id = "change_notebook", path = "/workspaces/{workspace}/notebooks/{notebook}", tag = "notebooks", params(("workspace" = String, Path, description = "Id or short name"), ("notebook" = String, Path, description = "Id or short name")), request_body = NotebookChange, responses((status = 200, description = "The notebook", body = Notebook)))]
async fn change(
    State(server): State<Server>,
    signed: Signed,
    Path((name, notebook)): Path<(String, String)>,
    Body(body): Body<NotebookChange>,
) -> Result<Json<Notebook>, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let row = find(&server, access, &notebook).await?;
    check_slug(&body.slug, "The notebook keeps its name.")?;
    let row = server.engine.rename_notebook(access.workspace, access.user, row.id, &body.slug).await?;
    Ok(Json(shown(&row, &signed)))
}
