//! Coming in and going out: set-up, sign-in, invitations, passwords. The only doors without anybody signed in.

use adjutant_core::audit::Deed;
use adjutant_engine::{EngineError, Password, Secret, SignIn};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ask::Body;
use super::door::{Signed, cookie_name};
use super::origin::Origin;
use super::problem::Problem;
use super::server::{Credential, Server};
use super::strangers::house;
use crate::wire::Moment;

pub(super) fn open() -> OpenApiRouter<Server> {
    OpenApiRouter::new()
        .routes(routes!(setup_state, set_up))
        .routes(routes!(sign_in))
        .routes(routes!(accept_invite))
        .routes(routes!(renew_password))
}

pub(super) fn closed() -> OpenApiRouter<Server> {
    OpenApiRouter::new().routes(routes!(sign_out)).routes(routes!(change_password))
}

/// A name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The name.
    name: String,
    /// The password.
    #[schema(value_type = String)]
    password: Password,
}

/// A link that is good once, and who uses it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Newcomer {
    /// What stands behind `#t=` in the link.
    #[schema(value_type = String)]
    token: Secret,
    /// The name to sign in with from now on.
    name: String,
    /// The password: at least 10 characters.
    #[schema(value_type = String)]
    password: Password,
}

/// A link for a new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Renewal {
    /// What stands behind `#t=` in the link.
    #[schema(value_type = String)]
    token: Secret,
    /// The new password: at least 10 characters.
    #[schema(value_type = String)]
    password: Password,
}

/// The old and the new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    /// The present password.
    #[schema(value_type = String)]
    old_password: Password,
    /// The new password: at least 10 characters.
    #[schema(value_type = String)]
    password: Password,
}

/// Whether this instance has an owner.
#[derive(Serialize, ToSchema)]
struct SetUp {
    /// Whether somebody owns it.
    is_set_up: bool,
}

/// Who came in. The cookie is in the header.
#[derive(Serialize, ToSchema)]
struct Welcome {
    user_id: String,
    name: String,
    /// When the session ends.
    expires_at: Moment,
}

/// Whether this instance has an owner.
#[utoipa::path(get, path = "/setup", tag = "sign-in", security(()), responses((status = 200, description = "Whether it is set up", body = SetUp)))]
async fn setup_state(State(server): State<Server>) -> Result<Json<SetUp>, Problem> {
    Ok(Json(SetUp { is_set_up: server.engine.is_set_up().await? }))
}

/// Sets this instance up: whoever has the link becomes its owner.
#[utoipa::path(post, path = "/setup", tag = "sign-in", security(()), request_body = Newcomer, responses((status = 200, description = "Signed in, by cookie", body = Welcome)))]
async fn set_up(
    State(server): State<Server>,
    Origin(from): Origin,
    Body(body): Body<Newcomer>,
) -> Result<Response, Problem> {
    let signed = server.engine.set_up(&body.token, &body.name, body.password, &house(from).to_string()).await;
    let signed = signed.map_err(bad_link)?;
    server.record(Deed::UserSaved, Some(signed.user), format!("{} owns the instance", body.name)).await?;
    server.forget_callers();
    Ok(welcome(&server, &signed, &body.name))
}

/// Signs in with name and password; the answer sets a cookie.
#[utoipa::path(post, path = "/session", tag = "sign-in", security(()), request_body = Login, responses((status = 200, description = "Signed in, by cookie", body = Welcome)))]
async fn sign_in(
    State(server): State<Server>,
    Origin(from): Origin,
    Body(body): Body<Login>,
) -> Result<Response, Problem> {
    let name = body.name;
    match server.engine.sign_in(&name, body.password, &house(from).to_string()).await {
        Ok(signed) => {
            server.record(Deed::SignedIn, Some(signed.user), format!("{name} with a password")).await?;
            Ok(welcome(&server, &signed, &name))
        }
        Err(EngineError::Unauthenticated) => {
            // The name is what somebody typed: it may be a password, so it is not written down.
            server.record(Deed::SignInRefused, None, format!("from {}", from)).await?;
            Err(Problem::new(
                super::problem::Kind::Unauthenticated,
                "Name or password is wrong. You are not signed in.",
            )
            .hint("forgotten? the owner makes a link under Settings, People, or with: adjutant users reset NAME"))
        }
        Err(other) => Err(other.into()),
    }
}

/// Accepts an invitation; the answer sets a cookie.
#[utoipa::path(post, path = "/invites/accept", tag = "sign-in", security(()), request_body = Newcomer, responses((status = 200, description = "Signed in, by cookie", body = Welcome)))]
async fn accept_invite(
    State(server): State<Server>,
    Origin(from): Origin,
    Body(body): Body<Newcomer>,
) -> Result<Response, Problem> {
    let signed = server.engine.accept_invite(&body.token, &body.name, body.password, &house(from).to_string()).await;
    let signed = signed.map_err(bad_link)?;
    server.record(Deed::UserSaved, Some(signed.user), format!("{} accepted an invitation", body.name)).await?;
    Ok(welcome(&server, &signed, &body.name))
}

/// Chooses a new password by a link.
#[utoipa::path(post, path = "/password/renew", tag = "sign-in", security(()), request_body = Renewal, responses((status = 204, description = "Changed; every session has ended")))]
async fn renew_password(
    State(server): State<Server>,
    Origin(from): Origin,
    Body(body): Body<Renewal>,
) -> Result<StatusCode, Problem> {
    server.engine.renew_password(&body.token, body.password, &house(from).to_string()).await.map_err(bad_link)?;
    server.forget_callers();
    Ok(StatusCode::NO_CONTENT)
}

fn bad_link(error: EngineError) -> Problem {
    match error {
        EngineError::Unauthenticated => Problem::new(
            super::problem::Kind::Expired,
            "This link is not good: it was used, it ran out, or it is not whole. Nothing was done.",
        )
        .hint("ask for a new one; a set-up link is printed at each start until somebody has used one"),
        other => other.into(),
    }
}

fn welcome(server: &Server, signed: &SignIn, name: &str) -> Response {
    let age = signed.expires_at.since(server.engine.env().now()).as_secs();
    let body =
        Welcome { user_id: signed.user.to_string(), name: name.to_owned(), expires_at: signed.expires_at.into() };
    with_cookie(server, signed.secret.expose(), age, Json(body).into_response())
}

fn with_cookie(server: &Server, value: &str, age: u64, mut response: Response) -> Response {
    let secure = if server.place.secure { "; Secure" } else { "" };
    let name = cookie_name(&server.place);
    let cookie = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={age}{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Signs out. Streams of this session end within a second.
#[utoipa::path(delete, path = "/session", tag = "sign-in", responses((status = 204, description = "Signed out")))]
async fn sign_out(State(server): State<Server>, signed: Signed) -> Result<Response, Problem> {
    match &signed.credential {
        Credential::Cookie(cookie) => server.engine.sign_out(cookie).await?,
        Credential::Token(_) => {
            return Err(Problem::invalid("A token does not sign out. Nothing was done.")
                .hint("revoke it: DELETE /api/v1/tokens/{id}"));
        }
    }
    server.record(Deed::SignedOut, Some(signed.caller.user), signed.caller.name.clone()).await?;
    server.forget_callers();
    Ok(with_cookie(&server, "", 0, StatusCode::NO_CONTENT.into_response()))
}

/// Changes one's own password. Every session ends, this one too.
#[utoipa::path(put, path = "/me/password", tag = "sign-in", request_body = Change, responses((status = 204, description = "Changed; every session has ended")))]
async fn change_password(
    State(server): State<Server>,
    Origin(from): Origin,
    signed: Signed,
    Body(body): Body<Change>,
) -> Result<StatusCode, Problem> {
    if matches!(signed.credential, Credential::Token(_)) {
        return Err(Problem::forbidden("A password is changed by the person, not by a token. Nothing was done."));
    }
    let login = server.engine.store().login(signed.caller.user).await?.ok_or(EngineError::Unauthenticated)?;
    server.engine.change_password(&login, body.old_password, body.password, &house(from).to_string()).await?;
    server.forget_callers();
    Ok(StatusCode::NO_CONTENT)
}
