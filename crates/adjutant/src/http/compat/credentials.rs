//! Credentials of an agent: keys of a provider that belong to the agent, under the names that some clients give them. A value
//! goes in and never comes out.

use adjutant_core::guard::policy::AgentConfig;
use adjutant_engine::store::row::{AgentRow, ProviderKeyRow};
use adjutant_engine::{KeyOwner, NewKey, Right, Role};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Json, Router, routing};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::agents::find_agent;
use super::super::ask::{Body, Path};
use super::super::door::{Access, Signed};
use super::super::problem::{Kind, Problem};
use super::super::server::Server;
use crate::wire::Moment;

/// The same with a slash at the end.
pub(super) fn slashed() -> Router<Server> {
    Router::new()
        .route("/api/v1/agents/{agent}/credentials/", routing::get(list_credentials).post(set_credential))
        .route("/api/v1/agents/{agent}/credentials/{credential}/", routing::delete(remove_credential))
}

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(set_credential, list_credentials)).routes(routes!(remove_credential))
}

/// A credential to be kept.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewCredential {
    /// What it is called: `api_key` is for the provider of the agent's model, `anthropic_api_key` for that provider. Other things
    /// than keys, such as `api_base`, are not kept here.
    key_name: String,
    /// The key. It is sealed at once and never shown again.
    #[schema(value_type = String)]
    value: SecretString,
}

/// A credential, without its value.
#[derive(Serialize, ToSchema)]
struct Credential {
    key_name: String,
    /// The provider it is for.
    provider: String,
    /// The last four characters.
    hint: String,
    created_at: Moment,
}

impl Credential {
    fn of(row: &ProviderKeyRow) -> Self {
        Self {
            key_name: row.name.clone(),
            provider: row.provider.clone(),
            hint: row.hint.clone(),
            created_at: row.created_at.into(),
        }
    }
}

/// The keys of an agent.
async fn kept(server: &Server, access: Access, agent: &AgentRow) -> Result<Vec<ProviderKeyRow>, Problem> {
    let subject = agent.id.to_string();
    let mut rows = server.engine.store().provider_keys(access.workspace).await?;
    rows.retain(|row| row.kind == "agent" && row.subject == subject);
    Ok(rows)
}

/// The provider that a credential is for: the one in its name, else that of the agent's model.
fn provider(name: &str, agent: &AgentRow) -> Result<String, Problem> {
    let name = name.to_ascii_lowercase();
    if let Some(named) = name.strip_suffix("_api_key") {
        return Ok(named.to_owned());
    }
    // Whatever is kept here is sent to the provider as its key: an address must not be.
    if name != "api_key" {
        return Err(Problem::invalid("Nothing was kept: only keys are, as `api_key` or `…_api_key`.")
            .error("/key_name", "is no name of a key")
            .hint("the address of a provider is `base_url` in the configuration"));
    }
    let config: Option<AgentConfig> = serde_json::from_str(&agent.spec).ok();
    let model = config.map(|config| config.model).unwrap_or_default();
    model.split_once('/').map(|(provider, _)| provider.to_owned()).ok_or_else(|| {
        Problem::invalid("Nothing was kept: the agent's model names no provider that the key could be for.")
            .error("/key_name", "does not say which provider it is for")
            .hint("call it after the provider, such as openai_api_key, or give the agent a model of one")
    })
}

/// Keeps a credential of an agent, or replaces the one of this name. For admins.
#[utoipa::path(post, path = "/agents/{agent}/credentials", tag = "older clients", params(("agent" = String, Path, description = "Id or short name")), request_body = NewCredential, responses((status = 201, description = "Kept; its value is not shown", body = Credential)))]
async fn set_credential(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Body(body): Body<NewCredential>,
) -> Result<(StatusCode, Json<Credential>), Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    let access = signed.must(access, Role::Admin, Right::Admin)?;
    let key_name = body.key_name.trim();
    let known = kept(&server, access, &agent).await?.into_iter().find(|row| row.name == key_name);
    let meant = provider(key_name, &agent)?;
    let row = match known {
        // A key goes only to the hosts of its provider: one for another is another key.
        Some(row) if row.provider != meant => {
            return Err(Problem::new(
                Kind::Conflict,
                format!(
                    "`{key_name}` is a key for {}, and the agent's model is one of {meant}. Nothing was kept.",
                    row.provider
                ),
            )
            .hint("delete the credential first, or name this one after its provider"));
        }
        Some(row) => server.engine.rotate_key(access.workspace, access.user, row.id, &body.value).await?,
        None => {
            let (owner, provider) = (KeyOwner::Agent(agent.id), meant);
            let new = NewKey { owner, provider, name: key_name.to_owned(), value: body.value, hosts: Vec::new() };
            server.engine.add_key(access.workspace, access.user, new).await?
        }
    };
    Ok((StatusCode::CREATED, Json(Credential::of(&row))))
}

/// The credentials of an agent, by name. Their values are not shown.
#[utoipa::path(get, path = "/agents/{agent}/credentials", tag = "older clients", params(("agent" = String, Path, description = "Id or short name")), responses((status = 200, description = "Credentials", body = Vec<Credential>)))]
async fn list_credentials(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<Json<Vec<Credential>>, Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    Ok(Json(kept(&server, access, &agent).await?.iter().map(Credential::of).collect()))
}

/// Forgets a credential of an agent. For admins.
#[utoipa::path(delete, path = "/agents/{agent}/credentials/{credential}", tag = "older clients", params(("agent" = String, Path, description = "Id or short name"), ("credential" = String, Path, description = "Its name")), responses((status = 204, description = "Gone")))]
async fn remove_credential(
    State(server): State<Server>,
    signed: Signed,
    Path((name, credential)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let (access, agent) = find_agent(&server, &signed, None, &name).await?;
    let access = signed.must(access, Role::Admin, Right::Admin)?;
    let known = kept(&server, access, &agent).await?.into_iter().find(|row| row.name == credential);
    let row = known.ok_or_else(|| Problem::not_found("credential", &credential))?;
    server.engine.remove_key(access.workspace, access.user, row.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
