//! `/provider-keys`: keys of providers that people bring. A value goes in and never comes out.

use adjutant_core::id::KeyId;
use adjutant_engine::store::row::{ProviderKeyRow, UsageFilter};
use adjutant_engine::{EngineError, GroupBy, Interval, KeyOwner, NewKey, Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use secrecy::SecretString;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::agents::find_agent;
use super::ask::{Asked, Body, MaybeBody, Path, id};
use super::door::{Access, Signed};
use super::problem::Problem;
use super::server::Server;
use crate::wire::{self, KeyLine, KeyList, KeyTested};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, add))
        .routes(routes!(get, remove))
        .routes(routes!(test))
        .routes(routes!(rotate))
}

async fn shown(server: &Server, access: Access, rows: Vec<ProviderKeyRow>) -> Result<Vec<KeyLine>, Problem> {
    let (filter, by) = (UsageFilter::default(), GroupBy::Key);
    let usage = server.engine.usage(access.workspace, &filter, by, Interval::Whole).await?;
    Ok(rows.into_iter().map(|row| wire::key(row, &usage)).collect())
}

/// Who may see a key: a person's own only they, others everybody in the workspace.
fn may_see(access: Access, row: &ProviderKeyRow) -> bool {
    row.kind != "person" || row.subject == access.user.to_string()
}

/// Who may change a key: a person their own, admins those of the workspace and of agents.
pub(super) fn must_change(signed: &Signed, access: Access, row: &ProviderKeyRow) -> Result<Access, Problem> {
    match row.kind.as_str() {
        "person" => signed.must(access, Role::Write, Right::Write),
        _ => signed.must(access, Role::Admin, Right::Admin),
    }
}

/// A key that somebody may see.
///
/// # Errors
/// 404 for everything else.
pub(super) async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, ProviderKeyRow), Problem> {
    let key: KeyId = id("key", name)?;
    for access in signed.workspaces(None)? {
        match server.engine.key_row(access.workspace, key).await {
            Ok(row) if may_see(access, &row) => return Ok((access, row)),
            Ok(_) | Err(EngineError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Problem::not_found("key", name))
}

async fn one(server: &Server, access: Access, row: ProviderKeyRow) -> Result<Json<KeyLine>, Problem> {
    let mut shown = shown(server, access, vec![row]).await?;
    shown.pop().map(Json).ok_or_else(|| Problem::not_found("key", "of this id"))
}

/// Which workspace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Where {
    /// The workspace (id or short name); all of yours without it.
    workspace_id: Option<String>,
}

/// The keys that you may use or change, without their values.
#[utoipa::path(get, operation_id = "list_provider_keys", path = "/provider-keys", tag = "money", params(Where), responses((status = 200, description = "Keys", body = KeyList)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
) -> Result<Json<KeyList>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(asked.workspace_id.as_deref())? {
        let rows = server.engine.store().provider_keys(access.workspace).await?;
        let rows = rows.into_iter().filter(|row| may_see(access, row)).collect();
        data.extend(shown(&server, access, rows).await?);
    }
    Ok(Json(KeyList { data }))
}

/// A key to be kept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewKeyBody {
    /// `person` (your own), `workspace` or `agent` (for admins); `person` without it.
    owner: Option<String>,
    /// The agent (id or short name), for `agent`.
    agent_id: Option<String>,
    /// The provider it is for, as in `openai`.
    provider: String,
    /// What you call it.
    name: String,
    /// The key. It is sealed at once and never shown again.
    #[schema(value_type = String)]
    value: SecretString,
    /// The hosts it may go to; that of the provider without it.
    #[serde(default)]
    hosts: Vec<String>,
}

/// Keeps a key. Its value is sealed, bound to its hosts, and never shown again.
#[utoipa::path(post, operation_id = "add_provider_key", path = "/provider-keys", tag = "money", params(Where), request_body = NewKeyBody, responses((status = 201, description = "The key, without its value", body = KeyLine)))]
async fn add(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
    Body(body): Body<NewKeyBody>,
) -> Result<(StatusCode, Json<KeyLine>), Problem> {
    let own = matches!(body.owner.as_deref(), None | Some("person"));
    let (role, right) = if own { (Role::Write, Right::Write) } else { (Role::Admin, Right::Admin) };
    let access = signed.workspace_or_only(asked.workspace_id.as_deref(), role, right)?;
    let owner = match (body.owner.as_deref(), &body.agent_id) {
        (None | Some("person"), None) => KeyOwner::Person(access.user),
        (Some("workspace"), None) => KeyOwner::Workspace,
        (Some("agent"), Some(name)) => {
            let workspace = access.workspace.to_string();
            KeyOwner::Agent(find_agent(&server, &signed, Some(&workspace), name).await?.1.id)
        }
        (_, _) => {
            let why = "is person, workspace, or agent together with agent_id";
            return Err(Problem::invalid("Nothing was kept.").error("/owner", why));
        }
    };
    let NewKeyBody { provider, name, value, hosts, .. } = body;
    let new = NewKey { owner, provider, name, value, hosts };
    let row = server.engine.add_key(access.workspace, access.user, new).await?;
    Ok((StatusCode::CREATED, one(&server, access, row).await?))
}

/// One key, without its value.
#[utoipa::path(get, operation_id = "get_provider_key", path = "/provider-keys/{key}", tag = "money", params(("key" = String, Path, description = "Its id")), responses((status = 200, description = "The key", body = KeyLine)))]
async fn get(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Json<KeyLine>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    one(&server, access, row).await
}

/// Forgets a key.
#[utoipa::path(delete, operation_id = "remove_provider_key", path = "/provider-keys/{key}", tag = "money", params(("key" = String, Path, description = "Its id")), responses((status = 204, description = "Gone")))]
async fn remove(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let access = must_change(&signed, access, &row)?;
    server.engine.remove_key(access.workspace, access.user, row.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What to test with.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
struct TestBody {
    /// The model to ask; the cheapest of the provider without it.
    model: Option<String>,
}

/// Asks a model of the provider for a word, to see whether the key is good. It costs a few tokens, which the budgets of who asks, the workspace and the key have to hold, and is recorded like every model call.
#[utoipa::path(post, operation_id = "test_provider_key", path = "/provider-keys/{key}/test", tag = "money", params(("key" = String, Path, description = "Its id")), request_body = TestBody, responses((status = 200, description = "What became of it", body = KeyTested)))]
async fn test(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    MaybeBody(body): MaybeBody<TestBody>,
) -> Result<Json<KeyTested>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let access = must_change(&signed, access, &row)?;
    Ok(Json(server.engine.test_key(access.workspace, access.user, row.id, body.model).await?.into()))
}

/// Another value.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewValue {
    /// The key. It is sealed at once and never shown again.
    #[schema(value_type = String)]
    value: SecretString,
}

/// Gives a key another value. Its id, what was used and its budget stay.
#[utoipa::path(post, operation_id = "rotate_provider_key", path = "/provider-keys/{key}/rotate", tag = "money", params(("key" = String, Path, description = "Its id")), request_body = NewValue, responses((status = 200, description = "The key, without its value", body = KeyLine)))]
async fn rotate(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewValue>,
) -> Result<Json<KeyLine>, Problem> {
    let (access, row) = find(&server, &signed, &name).await?;
    let access = must_change(&signed, access, &row)?;
    let row = server.engine.rotate_key(access.workspace, access.user, row.id, &body.value).await?;
    one(&server, access, row).await
}
