//! `/rules`: standing rules of a workspace. Everybody in it may see them; admins write them and take them away.

use adjutant_core::guard::rule::Rule;
use adjutant_core::id::RuleId;
use adjutant_engine::{EngineError, NewRule, Right, Role};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path, id};
use super::door::{Access, Signed};
use super::page::{Page, Slice, id_of, sliced};
use super::problem::Problem;
use super::server::Server;
use super::shape::{NewStandingRule, StandingRule};

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(get, remove))
}

/// Which workspace.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Where {
    /// The workspace (id or short name).
    workspace_id: Option<String>,
}

/// Which rules.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only of this workspace (id or short name).
    workspace_id: Option<String>,
    /// How many, from 1 to 200; all without it.
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A rule, what it says in one line, and whether it counts.
async fn shown(server: &Server, access: Access, rule: &Rule) -> Result<Value, Problem> {
    let mut shown = serde_json::to_value(rule).unwrap_or_default();
    shown["workspace_id"] = json!(access.workspace);
    shown["says"] = json!(rule.in_words());
    shown["live"] = json!(server.engine.rule_counts(access.workspace, rule).await?);
    Ok(shown)
}

/// A rule of one of the caller's workspaces.
async fn find(server: &Server, signed: &Signed, name: &str) -> Result<(Access, Rule), Problem> {
    let rule: RuleId = id("rule", name)?;
    for access in signed.workspaces(None)? {
        match server.engine.rule(access.workspace, rule).await {
            Ok(rule) => return Ok((access, rule)),
            Err(EngineError::NotFound { .. }) => {}
            Err(other) => return Err(other.into()),
        }
    }
    Err(Problem::not_found("rule", name))
}

/// Standing rules, oldest first, also those that have ended.
#[utoipa::path(get, operation_id = "list_rules", path = "/rules", tag = "rules", params(Wanted), responses((status = 200, description = "Rules", body = Page<StandingRule>)))]
async fn list(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Wanted>,
) -> Result<Json<Page<Value>>, Problem> {
    let mut data = Vec::new();
    for access in signed.workspaces(asked.workspace_id.as_deref())? {
        for rule in server.engine.rules(access.workspace).await? {
            data.push(shown(&server, access, &rule).await?);
        }
    }
    sliced(data, &Slice { limit: asked.limit, cursor: asked.cursor }, id_of)
}

/// Writes a rule, if its examples hold: `tool`, `decision` (allow, ask, deny), and optionally `agent`, `chat`, `when`, `expires_at`, `note`, `must_allow`, `must_deny`. For admins.
#[utoipa::path(post, operation_id = "create_rule", path = "/rules", tag = "rules", params(Where), request_body = NewStandingRule, responses((status = 201, description = "The rule", body = StandingRule)))]
async fn create(
    State(server): State<Server>,
    signed: Signed,
    Asked(asked): Asked<Where>,
    Body(body): Body<NewRule>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let access = signed.workspace_or_only(asked.workspace_id.as_deref(), Role::Admin, Right::Admin)?;
    let rule = server.engine.add_rule(access.workspace, access.user, body).await?;
    Ok((StatusCode::CREATED, Json(shown(&server, access, &rule).await?)))
}

/// One rule.
#[utoipa::path(get, operation_id = "get_rule", path = "/rules/{rule}", tag = "rules", params(("rule" = String, Path, description = "Its id")), responses((status = 200, description = "The rule", body = StandingRule)))]
async fn get(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let (access, rule) = find(&server, &signed, &name).await?;
    Ok(Json(shown(&server, access, &rule).await?))
}

/// Takes a rule away. It counts no more from the next judgement on. For admins.
#[utoipa::path(delete, operation_id = "remove_rule", path = "/rules/{rule}", tag = "rules", params(("rule" = String, Path, description = "Its id")), responses((status = 204, description = "Gone")))]
async fn remove(State(server): State<Server>, signed: Signed, Path(name): Path<String>) -> Result<StatusCode, Problem> {
    let (access, rule) = find(&server, &signed, &name).await?;
    let access = signed.must(access, Role::Admin, Right::Admin)?;
    server.engine.remove_rule(access.workspace, access.user, rule.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
