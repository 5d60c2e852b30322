//! `/agents`: their configuration, version by version, and what they may do.

use adjutant_core::budget::{Budget, BudgetSpec};
use adjutant_core::guard::policy::{AgentConfig, AgentSpec};
use adjutant_core::id::{AgentId, UserId};
use adjutant_core::run::event::Actor;
use adjutant_engine::store::row::{AgentPeople, AgentRow};
use adjutant_engine::{EngineError, Right, Role};
use axum::extract::State;
use axum::http::header::{self, HeaderValue};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router, middleware, routing};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, MaybeBody, Path, agreed, the_one};
use super::door::{Access, Signed};
use super::merge::merge;
use super::page::{Page, Slice, id_of, sliced};
use super::problem::{Kind, Problem};
use super::server::Server;
use super::shape::{Agent, AgentBody};
use super::tag::{Expected, expected, whatever_is_there};
use crate::wire;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, replace, change, delete))
        .routes(routes!(versions))
        .routes(routes!(activate))
}

/// An agent that the caller may see, and what they are where it is.
///
/// # Errors
/// 404 when there is none, or it is somebody else's.
pub(super) async fn find_agent(
    server: &Server,
    signed: &Signed,
    workspace: Option<&str>,
    name: &str,
) -> Result<(Access, AgentRow), Problem> {
    let mut found = Vec::new();
    for access in signed.workspaces(workspace)? {
        match server.engine.find_agent(access.workspace, name).await {
            Ok(row) if access.member().sees(&row) => found.push((access, row)),
            Ok(_) | Err(EngineError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    the_one("agent", name, found)
}

/// The workspaces that a list reaches into, each with the agent it is narrowed to. Where there is no such agent there is
/// nothing to list.
///
/// # Errors
/// 404 for a workspace where they are nobody.
pub(super) async fn listed(
    server: &Server,
    signed: &Signed,
    workspace: Option<&str>,
    agent: Option<&str>,
) -> Result<Vec<(Access, Option<AgentId>)>, Problem> {
    let mut listed = Vec::new();
    for access in signed.workspaces(workspace)? {
        let Some(name) = agent else {
            listed.push((access, None));
            continue;
        };
        match server.engine.find_agent(access.workspace, name).await {
            Ok(row) => listed.push((access, Some(row.id))),
            Err(EngineError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Ok(listed)
}

/// What older clients ask for with a slash at the end.
pub(super) fn slashed() -> Router<Server> {
    Router::new()
        .route("/api/v1/agents/{agent}/", routing::get(get).put(replace).patch(change).delete(delete))
        .route("/api/v1/agents/{agent}/activate/", routing::post(activate))
        .route_layer(middleware::map_request(whatever_is_there))
}

/// An agent that the caller may change: their own, or any of the workspace for an admin.
pub(super) async fn changed(server: &Server, signed: &Signed, name: &str) -> Result<(Access, AgentRow), Problem> {
    let (access, row) = find_agent(server, signed, None, name).await?;
    let own = row.owner == Some(access.user);
    let (role, right) = if own { (Role::Write, Right::Write) } else { (Role::Admin, Right::Admin) };
    Ok((signed.must(access, role, right)?, row))
}

pub(super) fn config(row: &AgentRow) -> Result<AgentConfig, Problem> {
    let read = serde_json::from_str::<AgentConfig>(&row.spec).map_err(|bad| {
        Problem::from(EngineError::Invalid(format!("the stored agent `{}` cannot be read: {bad}", row.slug)))
    });
    read.map(|config| AgentConfig { is_active: config.is_active && row.active, ..config })
}

/// Agents of one workspace as they are answered.
async fn shown(server: &Server, rows: &[AgentRow]) -> Result<Vec<Value>, Problem> {
    let configs = rows.iter().map(config).collect::<Result<Vec<_>, _>>()?;
    let Some(workspace) = rows.first().map(|row| row.workspace) else { return Ok(Vec::new()) };
    let agents: Vec<_> = rows.iter().zip(&configs).collect();
    let pauses = server.engine.pauses(workspace, &agents).await?;
    let shown = agents.into_iter().zip(pauses).map(|((row, config), pause)| {
        let mut shown = wire::agent(row, config, pause);
        shown["workspace_id"] = json!(row.workspace);
        shown["owner"] = json!(if row.owner.is_some() { "user" } else { "workspace" });
        shown["owner_id"] = json!(row.owner);
        shown
    });
    Ok(shown.collect())
}

pub(super) async fn answer(server: &Server, status: StatusCode, row: &AgentRow) -> Result<Response, Problem> {
    let shown = shown(server, std::slice::from_ref(row)).await?.pop().unwrap_or_default();
    let tag = tag_of(row, &shown);
    let mut response = (status, Json(shown)).into_response();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    Ok(response)
}

/// The version, and beside it whether the agent is held, which changes without a new version.
fn tag_of(row: &AgentRow, shown: &Value) -> String {
    let held = if shown["state"]["resumes_at"].is_null() { "" } else { "-held" };
    format!("\"v{}{held}\"", row.version)
}

/// Whether a tag is of this version, held or not.
fn is_tag_of(row: &AgentRow, tag: &str) -> bool {
    let version = tag.trim_matches('"');
    version.strip_suffix("-held").unwrap_or(version) == format!("v{}", row.version)
}

/// Which agents.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// Only those that are switched on, or off.
    active: Option<bool>,
    /// How many, from 1 to 200; all without it.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Agents that you may see.
#[utoipa::path(get, operation_id = "list_agents", path = "/agents", tag = "agents", params(Wanted), responses((status = 200, description = "Agents", body = Page<Agent>)))]
pub(super) async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(wanted): Asked<Wanted>,
) -> Result<Json<Page<Value>>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(wanted.workspace_id.as_deref())? {
        let mut rows = server.engine.store().agents(access.workspace).await?;
        rows.retain(|row| access.member().sees(row) && wanted.active.is_none_or(|active| row.active == active));
        data.extend(shown(&server, &rows).await?);
    }
    sliced(data, &Slice { limit: wanted.limit, cursor: wanted.cursor }, id_of)
}

/// What is said beside the configuration itself.
pub(super) struct Said {
    pub(super) spec: AgentSpec,
    pub(super) workspace: Option<String>,
    owner: Option<String>,
}

/// The body of an agent: its configuration, and where it belongs. What answers add is taken back unread, so that an agent can be
/// sent back as it came.
pub(super) fn read(mut body: Value) -> Result<Said, Problem> {
    let Some(fields) = body.as_object_mut() else {
        return Err(Problem::invalid("An agent is a JSON object. Nothing was saved."));
    };
    for answered in ["id", "version", "created_at", "updated_at", "created_by", "state", "reach", "owner_id"] {
        fields.remove(answered);
    }
    // Older clients name the provider apart.
    if let (Some(Value::String(provider)), Some(model)) =
        (fields.remove("provider"), fields.get("model").and_then(Value::as_str).map(str::to_owned))
        && !model.contains('/')
    {
        fields.insert("model".to_owned(), json!(format!("{provider}/{model}")));
    }
    let mut word = |name: &str| match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        // Older clients number their workspaces.
        Some(Value::Number(number)) if name == "workspace_id" => Ok(Some(number.to_string())),
        Some(_) => Err(Problem::invalid("Nothing was saved.").error(format!("/{name}"), "is not a text")),
    };
    let (workspace, owner) = (word("workspace_id")?, word("owner")?);
    let bytes = serde_json::to_vec(&body).unwrap_or_default();
    Ok(Said { spec: super::ask::parse(&bytes)?, workspace, owner })
}

fn owner(access: Access, said: Option<&str>, before: Option<UserId>) -> Result<Option<UserId>, Problem> {
    match said {
        Some("user") => Ok(Some(before.unwrap_or(access.user))),
        Some("workspace") => Ok(None),
        Some(_) => Err(Problem::invalid("Nothing was saved.").error(
            "/owner",
            "is neither `user` nor `workspace`; an agent that is there can be given to a member by their id",
        )),
        None => Ok(before),
    }
}

/// Whose a saved agent is from now on. An admin may give it to another member.
async fn next_owner(
    server: &Server,
    access: Access,
    said: Option<&str>,
    before: Option<UserId>,
) -> Result<Option<UserId>, Problem> {
    let Some(Ok(user)) = said.map(str::parse::<UserId>) else { return owner(access, said, before) };
    let members = server.engine.store().members(access.workspace).await?;
    if members.iter().any(|member| member.user == user) {
        return Ok(Some(user));
    }
    Err(Problem::invalid("Nothing was saved.").error("/owner", "is no member of the workspace"))
}

/// Where to make it.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Inside {
    /// The workspace, where the body names none.
    workspace_id: Option<String>,
}

/// Makes an agent: your own (`owner: user`, the default), or one of the workspace, for admins.
#[utoipa::path(post, operation_id = "create_agent", path = "/agents", tag = "agents", params(Inside), request_body = AgentBody, responses((status = 201, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
pub(super) async fn create(
    State(server): State<Server>,
    signed: Signed,
    Asked(inside): Asked<Inside>,
    Body(body): Body<Value>,
) -> Result<Response, Problem> {
    let said = read(body)?;
    let workspace = said.workspace.as_deref().or(inside.workspace_id.as_deref());
    let access = signed.workspace_or_only(workspace, Role::Write, Right::Write)?;
    let owner = owner(access, Some(said.owner.as_deref().unwrap_or("user")), None)?;
    if owner.is_none() {
        signed.must(access, Role::Admin, Right::Admin)?;
    }
    let people = server.engine.named_people(access.workspace, &said.spec, &AgentPeople::default()).await?;
    let config = server.engine.complete_agent(said.spec)?;
    if config.model_options.has_extras() {
        signed.must(access, Role::Admin, Right::Admin)?;
    }
    tight(&signed, access, &config.budget, None)?;
    answerable(&signed, &config, None)?;
    if server.engine.store().agent_by_slug(access.workspace, &config.slug).await?.is_some() {
        return Err(EngineError::Taken { what: "agent", name: config.slug }.into());
    }
    let row = AgentRow { owner, people, ..server.engine.new_agent(access.workspace, &config)? };
    let row = server.engine.put_agent(Actor::User(access.user), row, &config).await?;
    answer(&server, StatusCode::CREATED, &row).await
}

/// One agent, with its version as ETag.
#[utoipa::path(get, operation_id = "get_agent", path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), ("If-None-Match" = Option<String>, Header, description = "An ETag that you have")), responses((status = 200, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`"))), (status = 304, description = "You have it", headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn get(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let (_, row) = find_agent(&server, &signed, None, &name).await?;
    let answer = answer(&server, StatusCode::OK, &row).await?;
    let known = answer.headers().get(header::ETAG).filter(|tag| {
        let tag = tag.to_str().unwrap_or_default();
        super::tag::is_known(&headers, tag)
    });
    if let Some(tag) = known {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag.clone())]).into_response());
    }
    Ok(answer)
}

/// Refuses a change of another version than the current one.
fn same(headers: &HeaderMap, row: &AgentRow) -> Result<(), Problem> {
    match expected(headers)? {
        Expected::Tag(tag) if is_tag_of(row, &tag) => Ok(()),
        Expected::Any => Ok(()),
        Expected::Tag(_) | Expected::Absent => Err(Problem::new(
            Kind::StaleVersion,
            format!("The agent is at version {} now. Nothing was changed.", row.version),
        )
        .hint("read it again and send your change with its ETag")),
        Expected::Unsaid => {
            Err(Problem::new(Kind::PreconditionRequired, "Say which version you mean. Nothing was changed.")
                .hint("send If-Match with the ETag of the agent"))
        }
    }
}

/// Whether a body is written as older clients write it, which know no versions: they number their workspaces, or name the provider
/// apart.
fn is_of_older_client(body: &Value) -> bool {
    body["workspace_id"].is_u64() || body["provider"].is_string()
}

/// Lets only admins give an agent more to spend than it had, or, when it is made, than agents have by themselves.
pub(super) fn tight(
    signed: &Signed,
    access: Access,
    budget: &Budget,
    before: Option<&AgentConfig>,
) -> Result<(), Problem> {
    let usual = BudgetSpec::default().complete().map_err(Problem::invalid)?;
    let before = before.map_or(&usual, |before| &before.budget);
    if !budget.is_looser_than(before) {
        return Ok(());
    }
    let must = signed.must(access, Role::Admin, Right::Admin);
    must.map(drop)
        .map_err(|problem| problem.error("/budget", "lets the agent spend more than before: that is for admins"))
}

/// Lets an agent ask less than it did, or than agents do by themselves, only by somebody who may answer it: who asks for less
/// answers once for all.
pub(super) fn answerable(signed: &Signed, config: &AgentConfig, before: Option<&AgentConfig>) -> Result<(), Problem> {
    let usual = || AgentSpec { name: config.name.clone(), ..AgentSpec::default() }.complete().ok();
    let before = before.cloned().or_else(usual);
    if before.is_some_and(|before| !config.asks_less_than(&before)) {
        return Ok(());
    }
    signed.need(Right::Decide).map_err(|problem| problem.error("", "lets the agent ask less than before"))
}

async fn save(
    server: &Server,
    signed: &Signed,
    (access, row): (Access, AgentRow),
    said: Said,
) -> Result<Response, Problem> {
    let owner = next_owner(server, access, said.owner.as_deref(), row.owner).await?;
    if owner.is_none() || owner != row.owner {
        signed.must(access, Role::Admin, Right::Admin)?;
    }
    let before = config(&row).ok();
    let options = before.as_ref().map(|before| before.model_options.clone()).unwrap_or_default();
    let people = server.engine.named_people(access.workspace, &said.spec, &row.people).await?;
    let config = server.engine.complete_agent(said.spec)?;
    let after = &config.model_options;
    if (&options.extra_headers, &options.extra_body) != (&after.extra_headers, &after.extra_body) {
        signed.must(access, Role::Admin, Right::Admin)?;
    }
    tight(signed, access, &config.budget, before.as_ref())?;
    answerable(signed, &config, before.as_ref())?;
    let next = AgentRow { owner, people, ..server.engine.next_version(&row, &config)? };
    let saved = server.engine.put_agent(Actor::User(access.user), next, &config).await?;
    answer(server, StatusCode::OK, &saved).await
}

/// Replaces an agent. What is left out gets its default. Needs `If-Match`, but for the body of an older client (a number as `workspace_id`, or a `provider`), which means what is there.
#[utoipa::path(put, operation_id = "replace_agent", path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), ("If-Match" = Option<String>, Header, description = "Its ETag")), request_body = AgentBody, responses((status = 200, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn replace(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Body(body): Body<Value>,
) -> Result<Response, Problem> {
    let found = changed(&server, &signed, &name).await?;
    if !(is_of_older_client(&body) && expected(&headers)? == Expected::Unsaid) {
        same(&headers, &found.1)?;
    }
    save(&server, &signed, found, read(body)?).await
}

/// Changes some fields of an agent (a JSON merge patch). Needs `If-Match`.
#[utoipa::path(patch, operation_id = "change_agent", path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), ("If-Match" = Option<String>, Header, description = "Its ETag")), request_body = AgentBody, responses((status = 200, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn change(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
    Body(mut body): Body<Value>,
) -> Result<Response, Problem> {
    let found = changed(&server, &signed, &name).await?;
    same(&headers, &found.1)?;
    // People are kept beside the configuration: where they are nulled nobody is left, where nothing is said of them they stay.
    for people in ["shared_with", "approvers"] {
        if let Some(field) = body.get_mut(people).filter(|field| field.is_null()) {
            *field = json!([]);
        }
    }
    let before = config(&found.1)?;
    let mut whole = wire::written(&before);
    // A change of one field of the policy of hosts is one of the whole policy, also where only a list was written.
    if body["allowed_hosts"].is_object() {
        whole["allowed_hosts"] = json!(before.allowed_hosts);
    }
    merge(&mut whole, body);
    save(&server, &signed, found, read(whole)?).await
}

/// Takes an agent away. Its runs and versions stay readable; what waits is not run. Needs `If-Match`.
#[utoipa::path(delete, operation_id = "delete_agent", path = "/agents/{agent}", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), ("If-Match" = Option<String>, Header, description = "Its ETag")), responses((status = 204, description = "Gone")))]
async fn delete(
    State(server): State<Server>,
    signed: Signed,
    headers: HeaderMap,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    let (access, row) = changed(&server, &signed, &name).await?;
    same(&headers, &row)?;
    server.engine.delete_agent(Actor::User(access.user), &row).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Every version of an agent, newest first.
#[utoipa::path(get, operation_id = "list_agent_versions", path = "/agents/{agent}/versions", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), Slice), responses((status = 200, description = "Versions", body = Page<Agent>)))]
async fn versions(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Value>>, Problem> {
    let (access, row) = find_agent(&server, &signed, None, &name).await?;
    let rows = server.engine.store().agent_versions(access.workspace, row.id).await?;
    let data = shown(&server, &rows).await?;
    sliced(data, &slice, |version| version["version"].to_string())
}

/// On or off.
#[derive(Debug, Default, Deserialize, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
struct Active {
    /// Whether it may run; true without it.
    active: Option<bool>,
}

/// Switches an agent on or off: `active` stands behind the `?` or in the body.
#[utoipa::path(post, operation_id = "activate_agent", path = "/agents/{agent}/activate", tag = "agents", params(("agent" = String, Path, description = "Id or short name"), Active), request_body = Option<Active>, responses((status = 200, description = "The agent", body = Agent, headers(("ETag" = String, description = "Its version, for `If-Match` and `If-None-Match`")))))]
async fn activate(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
    Asked(asked): Asked<Active>,
    MaybeBody(body): MaybeBody<Active>,
) -> Result<Response, Problem> {
    let is_active = agreed("active", asked.active, body.active)?.unwrap_or(true);
    let (access, row) = changed(&server, &signed, &name).await?;
    if config(&row)?.is_active == is_active {
        return answer(&server, StatusCode::OK, &row).await;
    }
    let config = AgentConfig { is_active, ..config(&row)? };
    let next = server.engine.next_version(&row, &config)?;
    let saved = server.engine.put_agent(Actor::User(access.user), next, &config).await?;
    answer(&server, StatusCode::OK, &saved).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_can_be_sent_back_as_it_came() {
        let said = read(json!({"id": "agent_x", "version": 3, "name": "A", "owner": "workspace"})).unwrap();
        assert_eq!((said.spec.name.as_str(), said.owner.as_deref()), ("A", Some("workspace")));
        assert!(read(json!({"name": "A", "colour": 1})).is_err() && read(json!([])).is_err());
    }
}
