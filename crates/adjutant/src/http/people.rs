//! `/me`, `/users`, `/tokens`: who is there, and what programs may do for them.

use adjutant_core::audit::Deed;
use adjutant_core::id::{TokenId, UserId};
use adjutant_core::time::Time;
use adjutant_engine::store::row::{LoginRow, TokenRow};
use adjutant_engine::{Caller, Engine, Right, Rights, Role, TokenAsk, Via};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Body, id};
use super::door::Signed;
use super::page::{Page, all};
use super::problem::Problem;
use super::server::Server;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(me))
        .routes(routes!(list_users))
        .routes(routes!(change_user))
        .routes(routes!(reset_user))
        .routes(routes!(list_tokens, create_token))
        .routes(routes!(revoke_token))
}

/// The caller. `Accept: text/markdown` gives the same in words.
#[utoipa::path(get, path = "/me", tag = "people", responses((status = 200, description = "Who you are", body = Object)))]
async fn me(signed: Signed, headers: HeaderMap) -> Response {
    let caller = &signed.caller;
    let wants = |kind: &str| {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        accepted.flat_map(|line| line.split(',')).any(|part| part.trim().starts_with(kind))
    };
    if wants("text/markdown") {
        return ([(header::CONTENT_TYPE, "text/markdown; charset=utf-8")], in_words(caller)).into_response();
    }
    let workspaces: Vec<Value> = caller
        .memberships
        .iter()
        .map(|member| {
            json!({"id": member.workspace, "slug": member.slug, "name": member.name, "role": member.role.word()})
        })
        .collect();
    let (kind, token) = match caller.via {
        Via::Session => ("user", None),
        Via::Token(token) => ("token", Some(token)),
        Via::Local => ("local", None),
    };
    Json(json!({
        "kind": kind, "user_id": caller.user, "name": caller.name, "is_owner": caller.owner, "token_id": token,
        "scopes": caller.rights.words(), "workspaces": workspaces,
    }))
    .into_response()
}

fn in_words(caller: &Caller) -> String {
    let mut text = format!("# {}\n\n`{}`", caller.name, caller.user);
    text += if caller.owner { ", owner of this instance.\n" } else { ".\n" };
    text += &format!("\nMay: {}.\n\n## Workspaces\n\n", caller.rights.words().join(", "));
    for member in &caller.memberships {
        text += &format!("- **{}** (`{}`): {}\n", member.name, member.slug, member.role);
    }
    if caller.memberships.is_empty() {
        text += "None. An admin can let you into one.\n";
    }
    text
}

fn shown(login: &LoginRow) -> Value {
    json!({
        "id": login.id, "name": login.name, "is_owner": login.owner, "is_active": login.active,
        "has_password": login.password.is_some(), "created_at": login.created_at,
    })
}

/// Everybody. For the owner of the instance.
#[utoipa::path(get, path = "/users", tag = "people", responses((status = 200, description = "Everybody", body = Page)))]
async fn list_users(State(server): State<Server>, signed: Signed) -> Result<Json<Page>, Problem> {
    signed.need_owner()?;
    Ok(all(server.engine.store().logins().await?.iter().map(shown).collect()))
}

/// What to change of a person.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserChange {
    /// Whether they may come in.
    is_active: bool,
}

/// Switches a person off or on. Off ends their sessions and streams within a second. For the owner of the instance.
#[utoipa::path(patch, path = "/users/{user}", tag = "people", params(("user" = String, Path, description = "Id or name")), request_body = UserChange, responses((status = 200, description = "The person", body = Object)))]
async fn change_user(
    State(server): State<Server>,
    signed: Signed,
    Path(user): Path<String>,
    Body(body): Body<UserChange>,
) -> Result<Json<Value>, Problem> {
    signed.need_owner()?;
    let login = find(&server.engine, &user).await?;
    if login.id == signed.caller.user {
        return Err(Problem::invalid("You cannot switch yourself off. Nothing was done."));
    }
    server.engine.set_active(signed.caller.user, &login, body.is_active).await?;
    server.forget_callers();
    Ok(Json(shown(&LoginRow { active: body.is_active, ..login })))
}

/// Makes a link by which a person chooses a new password. For the owner of the instance.
#[utoipa::path(post, path = "/users/{user}/reset", tag = "people", params(("user" = String, Path, description = "Id or name")), responses((status = 201, description = "The link, shown this once", body = Object)))]
async fn reset_user(
    State(server): State<Server>,
    signed: Signed,
    Path(user): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    signed.need_owner()?;
    let login = find(&server.engine, &user).await?;
    let made = format!("{} may choose a new password", login.name);
    server.record(Deed::LinkMade, Some(signed.caller.user), made).await?;
    let invited = server.engine.invite_password(login.id).await?;
    let link = format!("/login#renew={}", invited.secret.expose());
    Ok((
        StatusCode::CREATED,
        Json(json!({"link": link, "token": invited.secret.expose(), "expires_at": invited.expires_at})),
    ))
}

/// A person by id or name.
///
/// # Errors
/// 404.
pub(super) async fn find(engine: &Engine, name: &str) -> Result<LoginRow, Problem> {
    let found = match name.parse::<UserId>() {
        Ok(user) => engine.store().login(user).await?,
        Err(_) => engine.store().login_by_name(name).await?,
    };
    found.ok_or_else(|| Problem::not_found("user", name))
}

fn token(row: &TokenRow) -> Value {
    json!({
        "id": row.id, "name": row.name, "hint": format!("adj_…{}", row.hint), "scopes": Engine::rights_of(row),
        "workspace_id": row.workspace, "created_at": row.created_at, "expires_at": row.expires_at,
        "last_used_at": row.used_at,
    })
}

/// Your tokens. The secrets are not kept, so they cannot be shown.
#[utoipa::path(get, path = "/tokens", tag = "people", responses((status = 200, description = "Your tokens", body = Page)))]
async fn list_tokens(State(server): State<Server>, signed: Signed) -> Result<Json<Page>, Problem> {
    signed.need(Right::Read)?;
    Ok(all(server.engine.store().tokens(signed.caller.user).await?.iter().map(token).collect()))
}

/// A token to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewToken {
    /// What it is for.
    name: String,
    /// `read`, `run`, `write`, `approvals:decide`, `admin`; without it, the first three.
    scopes: Option<Vec<String>>,
    /// The only workspace it opens; all of yours without it.
    workspace_id: Option<String>,
    /// When it ends; never without it.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Time>,
}

/// Makes a token. It never has a right that you do not have. The secret is shown this once.
#[utoipa::path(post, path = "/tokens", tag = "people", request_body = NewToken, responses((status = 201, description = "The token, with its secret", body = Object)))]
async fn create_token(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<NewToken>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    // A token that could make tokens would outlive its own revocation.
    signed.need(Right::Admin)?;
    let mut rights = Vec::new();
    for (index, word) in body.scopes.iter().flatten().enumerate() {
        let right: Right = word.parse().map_err(|why: adjutant_engine::UnknownWord| {
            Problem::invalid("A scope cannot be used. Nothing was made.")
                .error(format!("/scopes/{index}"), why.to_string())
        })?;
        signed.need(right)?;
        rights.push(right);
    }
    let workspace = match &body.workspace_id {
        Some(name) => Some(signed.workspace(name, Role::Read, Right::Read)?.workspace),
        None => None,
    };
    if body.expires_at.is_some_and(|at| at <= server.engine.env().now()) {
        return Err(
            Problem::invalid("The token would have ended already. Nothing was made.").error("/expires_at", "is past")
        );
    }
    let rights = if body.scopes.is_some() { Rights::of(rights) } else { Rights::ordinary() };
    let ask = TokenAsk { name: body.name, rights, workspace, expires_at: body.expires_at };
    let (row, secret) = server.engine.create_token(signed.caller.user, ask).await?;
    let mut shown = token(&row);
    shown["token"] = json!(secret.expose());
    Ok((StatusCode::CREATED, Json(shown)))
}

/// Takes a token of yours away. Its streams end within a second.
#[utoipa::path(delete, path = "/tokens/{token}", tag = "people", params(("token" = String, Path, description = "Its id")), responses((status = 204, description = "Gone")))]
async fn revoke_token(
    State(server): State<Server>,
    signed: Signed,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    signed.need(Right::Admin)?;
    let token: TokenId = id("token", &name)?;
    server.engine.revoke_token(signed.caller.user, token).await?;
    server.forget_callers();
    Ok(StatusCode::NO_CONTENT)
}
