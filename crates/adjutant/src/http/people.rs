//! `/users`, `/tokens`: who is there, and what programs may do for them.

use adjutant_core::audit::Deed;
use adjutant_core::id::{TokenId, UserId};
use adjutant_core::time::Time;
use adjutant_engine::store::row::{LoginRow, TokenRow};
use adjutant_engine::{Engine, Invited, Right, Rights, Role, TokenAsk};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::{Asked, Body, Path, id};
use super::door::Signed;
use super::once::ShownOnce;
use super::page::{Page, Slice, sliced};
use super::problem::Problem;
use super::server::Server;
use crate::wire::Moment;

pub(super) fn router() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(list_users))
        .routes(routes!(change_user))
        .routes(routes!(reset_user))
        .routes(routes!(list_tokens, create_token))
        .routes(routes!(revoke_token))
}

/// A person.
#[derive(Serialize, ToSchema)]
struct User {
    id: String,
    name: String,
    /// Whether they own the instance.
    is_owner: bool,
    /// Whether they may come in.
    is_active: bool,
    has_password: bool,
    created_at: Moment,
}

fn shown(login: &LoginRow) -> User {
    User {
        id: login.id.to_string(),
        name: login.name.clone(),
        is_owner: login.owner,
        is_active: login.active,
        has_password: login.password.is_some(),
        created_at: login.created_at.into(),
    }
}

/// Everybody. For the owner of the instance.
#[utoipa::path(get, path = "/users", tag = "people", params(Slice), responses((status = 200, description = "Everybody", body = Page<User>)))]
async fn list_users(
    State(server): State<Server>,
    signed: Signed,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<User>>, Problem> {
    signed.need_owner()?;
    sliced(server.engine.store().logins().await?.iter().map(shown).collect(), &slice, |user: &User| user.id.clone())
}

/// What to change of a person.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct UserChange {
    /// Whether they may come in.
    is_active: bool,
}

/// Switches a person off or on. Off ends their sessions and streams within a second. For the owner of the instance.
#[utoipa::path(patch, path = "/users/{user}", tag = "people", params(("user" = String, Path, description = "Id or name")), request_body = UserChange, responses((status = 200, description = "The person", body = User)))]
async fn change_user(
    State(server): State<Server>,
    signed: Signed,
    Path(user): Path<String>,
    Body(body): Body<UserChange>,
) -> Result<Json<User>, Problem> {
    signed.need_owner()?;
    let login = find(&server.engine, &user).await?;
    if login.id == signed.caller.user {
        return Err(Problem::invalid("You cannot switch yourself off. Nothing was done."));
    }
    server.engine.set_active(signed.caller.user, &login, body.is_active).await?;
    server.forget_callers();
    Ok(Json(shown(&LoginRow { active: body.is_active, ..login })))
}

/// A link that is good once. It is shown this once.
#[derive(Serialize, ToSchema)]
pub(super) struct Link {
    /// Where to go, on this server.
    link: String,
    /// What the link carries.
    token: String,
    expires_at: Moment,
}

impl Link {
    pub(super) const ONCE: Extension<ShownOnce> = Extension(ShownOnce(&["link", "token"]));

    pub(super) fn new(place: &str, invited: &Invited) -> Self {
        let token = invited.secret.expose().to_owned();
        Self { link: format!("{place}={token}"), token, expires_at: invited.expires_at.into() }
    }
}

/// Makes a link by which a person chooses a new password. For the owner of the instance.
#[utoipa::path(post, path = "/users/{user}/reset", tag = "people", params(("user" = String, Path, description = "Id or name")), responses((status = 201, description = "The link, shown this once", body = Link)))]
async fn reset_user(
    State(server): State<Server>,
    signed: Signed,
    Path(user): Path<String>,
) -> Result<(StatusCode, Extension<ShownOnce>, Json<Link>), Problem> {
    signed.need_owner()?;
    // Whoever follows the link signs in and decides: a token that may not decide must not get there this way.
    signed.need(Right::Decide)?;
    let login = find(&server.engine, &user).await?;
    let made = format!("{} may choose a new password", login.name);
    server.record(Deed::LinkMade, Some(signed.caller.user), made).await?;
    let invited = server.engine.invite_password(signed.caller.user, login.id).await?;
    Ok((StatusCode::CREATED, Link::ONCE, Json(Link::new("/login#renew", &invited))))
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

/// A token, without its secret.
#[derive(Serialize, ToSchema)]
struct Token {
    id: String,
    /// What it is for.
    name: String,
    /// Its last letters.
    hint: String,
    /// `read`, `run`, `write`, `approvals:decide`, `admin`.
    scopes: Vec<&'static str>,
    /// The only workspace it opens.
    workspace_id: Option<String>,
    created_at: Moment,
    expires_at: Option<Moment>,
    last_used_at: Option<Moment>,
    /// The secret: only in the answer that makes the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

fn token(row: &TokenRow) -> Token {
    Token {
        id: row.id.to_string(),
        name: row.name.clone(),
        hint: format!("adj_…{}", row.hint),
        scopes: Engine::rights_of(row),
        workspace_id: row.workspace.map(|workspace| workspace.to_string()),
        created_at: row.created_at.into(),
        expires_at: row.expires_at.map(Moment::from),
        last_used_at: row.used_at.map(Moment::from),
        token: None,
    }
}

/// Your tokens. The secrets are not kept, so they cannot be shown.
#[utoipa::path(get, path = "/tokens", tag = "people", params(Slice), responses((status = 200, description = "Your tokens", body = Page<Token>)))]
async fn list_tokens(
    State(server): State<Server>,
    signed: Signed,
    Asked(slice): Asked<Slice>,
) -> Result<Json<Page<Token>>, Problem> {
    signed.need(Right::Read)?;
    let rows = server.engine.store().tokens(signed.caller.user).await?;
    sliced(rows.iter().map(token).collect(), &slice, |token: &Token| token.id.clone())
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
#[utoipa::path(post, path = "/tokens", tag = "people", request_body = NewToken, responses((status = 201, description = "The token, with its secret", body = Token)))]
async fn create_token(
    State(server): State<Server>,
    signed: Signed,
    Body(body): Body<NewToken>,
) -> Result<(StatusCode, Extension<ShownOnce>, Json<Token>), Problem> {
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
        None => signed.caller.only,
    };
    if body.expires_at.is_some_and(|at| at <= server.engine.env().now()) {
        return Err(
            Problem::invalid("The token would have ended already. Nothing was made.").error("/expires_at", "is past")
        );
    }
    let rights = if body.scopes.is_some() { Rights::of(rights) } else { Rights::ordinary() };
    // A token reaches no further and lasts no longer than the one that makes it.
    let expires_at = [body.expires_at, signed.caller.until].into_iter().flatten().min();
    let ask = TokenAsk { name: body.name, rights, workspace, expires_at };
    let (row, secret) = server.engine.create_token(signed.caller.user, ask).await?;
    let shown = Token { token: Some(secret.expose().to_owned()), ..token(&row) };
    Ok((StatusCode::CREATED, Extension(ShownOnce(&["token"])), Json(shown)))
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
