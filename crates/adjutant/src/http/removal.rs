//! `DELETE /workspaces/{workspace}` and of a notebook: for good, so that each is named once more.

use adjutant_core::id::NotebookId;
use adjutant_engine::{Right, Role};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Path};
use super::door::Signed;
use super::problem::Problem;
use super::server::Server;
use super::workspaces::administered;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(remove_workspace)).routes(routes!(remove_notebook))
}

/// That it is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Confirmed {
    /// Its short name, once more; without it nothing is taken away.
    confirm: Option<String>,
}

impl Confirmed {
    fn name(&self) -> &str {
        self.confirm.as_deref().unwrap_or_default()
    }
}

/// Takes a workspace away for good, with what was said in it, its chats, agents, rules, keys, members and notebooks; folders that
/// are linked stay as they are. It is `busy` while a run has not ended. Of its runs the hash chains stay. For the owner of the
/// instance.
#[utoipa::path(delete, operation_id = "remove_workspace", path = "/workspaces/{workspace}", tag = "workspaces", params(("workspace" = String, Path, description = "Id or short name"), Confirmed), responses((status = 204, description = "Gone")))]
async fn remove_workspace(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(asked): Asked<Confirmed>,
) -> Result<StatusCode, Problem> {
    signed.need_owner()?;
    let access = administered(&server, &signed, &name).await?;
    server.engine.remove_workspace(access.workspace, access.user, asked.name()).await?;
    server.forget_callers();
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a notebook away for good, with its files; one that is linked is only unlinked, and its folder left as it is. It is `busy`
/// while a run on it has not ended. Its chats and runs stay readable, and nothing more is said in them. For admins.
#[utoipa::path(delete, operation_id = "remove_notebook", path = "/workspaces/{workspace}/notebooks/{notebook}", tag = "notebooks", params(("workspace" = String, Path, description = "Id or short name"), ("notebook" = String, Path, description = "Id or short name"), Confirmed), responses((status = 204, description = "Gone")))]
async fn remove_notebook(
    State(server): State<Server>,
    signed: Signed,
    Path((name, notebook)): Path<(String, String)>,
    Asked(asked): Asked<Confirmed>,
) -> Result<StatusCode, Problem> {
    let access = signed.workspace(&name, Role::Admin, Right::Admin)?;
    let found = super::runs::notebook(&server, access, Some(&notebook)).await?;
    let id: NotebookId = found.ok_or_else(|| Problem::not_found("notebook", &notebook))?;
    server.engine.remove_notebook(access.workspace, access.user, id, asked.name()).await?;
    Ok(StatusCode::NO_CONTENT)
}
