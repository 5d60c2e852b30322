//! Who asks. Everything behind this door has somebody; a handler gets them as [`Signed`], and reaches a workspace only
//! through what they are there.

use std::sync::Arc;

use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_engine::{Caller, EngineError, Member, Membership, Right, Role, Secret};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::header;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::guard::{is_own_page, is_unsafe};
use super::origin::Origin;
use super::problem::Problem;
use super::server::{Credential, Place, Server};

/// Says which workspace a request is about, for whoever is in several.
const WORKSPACE: &str = "adjutant-workspace";

/// Somebody who came in, and what they showed for it.
#[derive(Clone)]
pub(super) struct Signed {
    pub(super) caller: Arc<Caller>,
    pub(super) credential: Credential,
    /// The one workspace that the request is about, where it names one.
    pub(super) within: Option<WorkspaceId>,
}

/// Somebody in a workspace, with what they need there: the only way to its things.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    pub(super) workspace: WorkspaceId,
    pub(super) user: UserId,
    pub(super) role: Role,
}

impl Access {
    /// Whom lists are filtered for; nobody for an admin, who sees all.
    pub(super) fn visible_to(&self) -> Option<UserId> {
        (self.role < Role::Admin).then_some(self.user)
    }

    /// The same as far as agents are concerned.
    pub(super) const fn member(&self) -> Member {
        Member { user: self.user, role: self.role }
    }

    /// Whether something that belongs to a person, and perhaps to all, is for their eyes.
    pub(super) fn may_see(&self, owner: UserId, shared: bool) -> bool {
        shared || owner == self.user || self.role == Role::Admin
    }
}

/// Lets in whoever shows something good; everybody else gets a 401.
pub(super) async fn require(
    State(server): State<Server>,
    origin: Origin,
    mut request: Request,
    next: Next,
) -> Response {
    match admit(&server, origin, request.method(), request.headers()).await {
        Ok(signed) => {
            request.extensions_mut().insert(signed);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

/// Whoever a request shows itself to be.
pub(super) async fn admit(
    server: &Server,
    origin: Origin,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Signed, Problem> {
    let credential = shown(headers, &server.place).ok_or(EngineError::Unauthenticated)?;
    if matches!(credential, Credential::Cookie(_)) && is_unsafe(method) && !is_own_page(headers) {
        let text = "A change by cookie needs a browser that says which page asks for it. Nothing was done.";
        return Err(Problem::forbidden(text).hint("send a token: Authorization: Bearer adj_…"));
    }
    let caller = server.caller_from(origin, &credential).await?;
    let within = headers.get(WORKSPACE).map(|name| named(&caller, name)).transpose()?;
    Ok(Signed { caller: narrowed(caller, within), credential, within })
}

/// The workspace of the caller that a request names.
fn named(caller: &Caller, name: &HeaderValue) -> Result<WorkspaceId, Problem> {
    let name = name.to_str().unwrap_or_default();
    let id = name.parse::<WorkspaceId>().ok();
    let known = caller.memberships.iter().find(|member| Some(member.workspace) == id || member.slug == name);
    known.map(|member| member.workspace).ok_or_else(|| Problem::not_found("workspace", name))
}

/// The same person, in nothing but the workspace that the request names: nothing else is listed, found or meant.
fn narrowed(caller: Arc<Caller>, within: Option<WorkspaceId>) -> Arc<Caller> {
    let Some(within) = within else { return caller };
    let memberships = caller.memberships.iter().filter(|member| member.workspace == within).cloned().collect();
    Arc::new(Caller { memberships, ..Caller::clone(&caller) })
}

/// A token counts before a cookie. One that is there and no good never falls back to the other.
fn shown(headers: &HeaderMap, place: &Place) -> Option<Credential> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let text = value.to_str().ok()?;
        let (scheme, token) = text.split_once(' ')?;
        let good = scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty();
        return good.then(|| Credential::Token(Secret::shown(token.trim())));
    }
    let name = cookie_name(place);
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| Credential::Cookie(Secret::shown(value)))
}

/// Over https nobody but this very host can set the cookie; on loopback there is no https.
pub(super) const fn cookie_name(place: &Place) -> &'static str {
    if place.secure { "__Host-adj" } else { "adj" }
}

impl FromRequestParts<Server> for Signed {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &Server) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| EngineError::Unauthenticated.into())
    }
}

impl Signed {
    /// The same request by what its caller is now, and whether they may reach more or less than before.
    pub(super) fn renew(&mut self, caller: Arc<Caller>) -> bool {
        let caller = narrowed(caller, self.within);
        let changed = caller.memberships != self.caller.memberships;
        self.caller = caller;
        changed
    }

    /// What somebody came for, whatever the workspace.
    ///
    /// # Errors
    /// 403 when their token does not have the right.
    pub(super) fn need(&self, right: Right) -> Result<(), Problem> {
        if self.caller.rights.has(right) {
            return Ok(());
        }
        let word = right.word();
        Err(Problem::forbidden(format!("This token does not have the scope `{word}`. Nothing was done."))
            .hint(format!("make a token with the scope `{word}`, or sign in")))
    }

    /// Only the owner of the instance.
    ///
    /// # Errors
    /// 403 for everybody else.
    pub(super) fn need_owner(&self) -> Result<(), Problem> {
        self.need(Right::Admin)?;
        if self.caller.owner {
            return Ok(());
        }
        Err(Problem::forbidden("Only the owner of this instance may do that. Nothing was done."))
    }

    /// A workspace by its id or short name.
    ///
    /// # Errors
    /// 404 where they are nobody, 403 where they may do less.
    pub(super) fn workspace(&self, name: &str, role: Role, right: Right) -> Result<Access, Problem> {
        let id = name.parse::<WorkspaceId>().ok();
        let known = |member: &&Membership| Some(member.workspace) == id || member.slug == name;
        let numbered = || name.parse::<usize>().ok().and_then(|nth| self.caller.memberships.get(nth.checked_sub(1)?));
        let member = self.caller.memberships.iter().find(known).or_else(numbered);
        let member = member.ok_or_else(|| Problem::not_found("workspace", name))?;
        self.enter(member, role, right)
    }

    /// The workspace that is meant when none is named: the only one, or else the first when any will do.
    ///
    /// # Errors
    /// 422 when there are several, 404 when there is none.
    pub(super) fn only_workspace(&self, role: Role, right: Right) -> Result<Access, Problem> {
        match self.caller.memberships.as_slice() {
            [] => Err(Problem::not_found("workspace", "of yours")),
            [only] => self.enter(only, role, right),
            [_, ..] => Err(Problem::invalid("You are in several workspaces; say which one. Nothing was done.")
                .error("/workspace_id", "is needed")
                .hint("GET /api/v1/workspaces lists yours; the header Adjutant-Workspace names one for any request")),
        }
    }

    /// A named workspace, or the only one.
    ///
    /// # Errors
    /// As the two.
    pub(super) fn workspace_or_only(&self, name: Option<&str>, role: Role, right: Right) -> Result<Access, Problem> {
        match name {
            Some(name) => self.workspace(name, role, right),
            None => self.only_workspace(role, right),
        }
    }

    /// Every workspace they are in, or the one they name.
    ///
    /// # Errors
    /// 404 where they are nobody, 403 when their token cannot read.
    pub(super) fn workspaces(&self, name: Option<&str>) -> Result<Vec<Access>, Problem> {
        self.need(Right::Read)?;
        match name {
            Some(name) => Ok(vec![self.workspace(name, Role::Read, Right::Read)?]),
            None => Ok(self.caller.memberships.iter().map(|member| self.access(member)).collect()),
        }
    }

    /// What they are where something was found.
    ///
    /// # Errors
    /// 403 where they may do less.
    pub(super) fn must(&self, access: Access, role: Role, right: Right) -> Result<Access, Problem> {
        self.need(right)?;
        if access.role >= role {
            return Ok(access);
        }
        Err(Problem::forbidden(format!(
            "You have the role `{}` in this workspace; this needs `{role}`. Nothing was done.",
            access.role
        ))
        .hint("ask an admin of the workspace"))
    }

    fn enter(&self, member: &Membership, role: Role, right: Right) -> Result<Access, Problem> {
        self.must(self.access(member), role, right)
    }

    fn access(&self, member: &Membership) -> Access {
        Access { workspace: member.workspace, user: self.caller.user, role: member.role }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn kind(pairs: &[(&'static str, &str)]) -> &'static str {
        match shown(&headers(pairs), &Place::default()) {
            Some(Credential::Token(token)) if token.expose() == "adj_x" => "token",
            Some(Credential::Cookie(cookie)) if cookie.expose() == "c1" => "cookie",
            Some(Credential::Token(_) | Credential::Cookie(_)) => "other",
            None => "nobody",
        }
    }

    #[test]
    fn a_token_counts_before_a_cookie_and_never_falls_back_to_it() {
        assert_eq!(kind(&[("cookie", "a=b; adj=c1")]), "cookie");
        assert_eq!(kind(&[("authorization", "bearer adj_x"), ("cookie", "adj=c1")]), "token");
        assert_eq!(kind(&[("authorization", "Basic adj_x"), ("cookie", "adj=c1")]), "nobody");
        assert_eq!(kind(&[("authorization", "Bearer "), ("cookie", "adj=c1")]), "nobody");
        assert_eq!(kind(&[("cookie", "xadj=c1; __Host-adj=c1")]), "nobody");
        assert_eq!(kind(&[]), "nobody");
    }
}
