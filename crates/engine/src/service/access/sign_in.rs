//! Coming in: with a password, with a cookie, with a token. Attempts are counted before anything is checked.

use std::time::Duration;

use adjutant_core::audit::Deed;
use adjutant_core::id::{TokenId, UserId, WorkspaceId};
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{Admission, LoginRow, SessionRow, TokenRow};

use super::secret::TOKEN_PREFIX;
use super::{Caller, Membership, Password, Right, Rights, Role, Secret, Via, people};
use crate::engine::Engine;
use crate::error::EngineError;

/// How long a browser stays signed in.
const SESSION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The stretch of time in which attempts are counted.
const SLOT: Duration = Duration::from_secs(15 * 60);
/// Attempts in one stretch: of one address, of one name from one address, of one name from anywhere.
const OF_ADDRESS: u64 = 100;
const OF_NAME_AND_ADDRESS: u64 = 10;
const OF_NAME: u64 = 200;
/// How exactly the last use of a token is noted: a write for every request would cost more than it tells.
const USE_NOTED: Duration = Duration::from_secs(60);

/// A browser that has just signed in.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// What goes into the cookie.
    pub secret: Secret,
    /// Who it is.
    pub user: UserId,
    /// Until when.
    pub expires_at: Time,
}

/// A token to be made.
#[derive(Debug, Clone)]
pub struct TokenAsk {
    /// What it is for.
    pub name: String,
    /// What it may be used for.
    pub rights: Rights,
    /// The only workspace it opens.
    pub workspace: Option<WorkspaceId>,
    /// Until when it is good.
    pub expires_at: Option<Time>,
}

impl Engine {
    /// Signs somebody in with name and password. `address` is where they come from.
    ///
    /// # Errors
    /// [`EngineError::TooMany`] after too many attempts, [`EngineError::Unauthenticated`] when name or password is wrong.
    pub async fn sign_in(&self, name: &str, password: Password, address: &str) -> Result<SignIn, EngineError> {
        self.count_attempts(name, address).await?;
        // Nobody is called like this, and what was typed is not worth looking at.
        people::check_name(name).map_err(|_| EngineError::Unauthenticated)?;
        let login = self.store().login_by_name(name).await?.filter(|login| login.active);
        let kept = login.as_ref().and_then(|login| login.password.clone());
        match login {
            Some(login) if password.clone().matches(kept.clone()).await? => self.open_session(login.id).await,
            Some(_) => Err(EngineError::Unauthenticated),
            None => {
                password.matches(None).await?;
                Err(EngineError::Unauthenticated)
            }
        }
    }

    /// Counts before anything is checked, so that attempts at the same moment count, too. The address comes first: whoever has
    /// tried too often from there leaves nothing more behind, whatever they type.
    pub(super) async fn count_attempts(&self, name: &str, address: &str) -> Result<(), EngineError> {
        self.count(&format!("sign-in from {address}"), OF_ADDRESS).await?;
        // A name that nobody can have is not counted for itself: there would be as many as somebody likes.
        if people::check_name(name).is_err() {
            return Ok(());
        }
        self.count(&format!("sign-in {name} from {address}"), OF_NAME_AND_ADDRESS).await?;
        self.count(&format!("sign-in {name}"), OF_NAME).await
    }

    /// Counts the use of a link. Links cannot be guessed, so they are counted by address alone, and apart from passwords: whoever
    /// guesses those keeps nobody in the same house from coming in by a link.
    pub(super) async fn count_links(&self, kind: &str, address: &str) -> Result<(), EngineError> {
        self.count(&format!("{kind} from {address}"), OF_ADDRESS).await
    }

    async fn count(&self, what: &str, most: u64) -> Result<(), EngineError> {
        let now = self.env().now();
        let length = i64::try_from(SLOT.as_millis()).unwrap_or(i64::MAX);
        let slot = now.millis() / length;
        if self.store().count_attempt(what, slot, most).await? {
            return Ok(());
        }
        let next = Time::from_millis((slot + 1) * length);
        Err(EngineError::TooMany { retry_after: next.since(now) })
    }

    /// Notes that a browser is signed in from now on.
    pub(super) async fn open_session(&self, user: UserId) -> Result<SignIn, EngineError> {
        let (secret, now) = (Secret::new(self.env(), ""), self.env().now());
        let expires_at = now.after(SESSION);
        let row = SessionRow { hash: secret.hash(), user, created_at: now, expires_at };
        self.store().create_session(&row).await?;
        Ok(SignIn { secret, user, expires_at })
    }

    /// Signs a browser out.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn sign_out(&self, cookie: &Secret) -> Result<(), EngineError> {
        Ok(self.store().end_session(cookie.hash(), self.env().now()).await?)
    }

    /// Whoever shows this cookie.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when it is nobody.
    pub async fn caller_by_cookie(&self, cookie: &Secret) -> Result<Caller, EngineError> {
        let session = self.store().session(cookie.hash()).await?.filter(|row| row.expires_at > self.env().now());
        let session = session.ok_or(EngineError::Unauthenticated)?;
        let login = self.active(session.user).await?;
        self.caller(login, Rights::all(), Via::Session).await
    }

    /// Whoever shows this token.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when it is nobody.
    pub async fn caller_by_token(&self, token: &Secret) -> Result<Caller, EngineError> {
        let now = self.env().now();
        let row = self.store().token_by_hash(token.hash()).await?;
        let row = row.filter(|row| row.expires_at.is_none_or(|until| until > now));
        let row = row.ok_or(EngineError::Unauthenticated)?;
        if row.used_at.is_none_or(|at| now.since(at) > USE_NOTED) {
            self.store().touch_token(row.id, now).await?;
        }
        let login = self.active(row.user).await?;
        let mut caller = self.caller(login, Rights::parse(&row.scopes), Via::Token(row.id)).await?;
        if let Some(only) = row.workspace {
            caller.memberships.retain(|member| member.workspace == only);
            caller.owner = false;
        }
        Ok(Caller { only: row.workspace, until: row.expires_at, ..caller })
    }

    /// Whoever holds the data directory, acting for its owner.
    ///
    /// # Errors
    /// When the owner is switched off.
    pub async fn caller_by_data(&self, user: UserId) -> Result<Caller, EngineError> {
        let mut login = self.active(user).await?;
        login.owner = true;
        self.caller(login, Rights::all(), Via::Local).await
    }

    /// What a person is in a workspace now, long after they were asked who they are; none where they are nobody.
    pub(crate) async fn role_now(&self, workspace: WorkspaceId, user: UserId) -> Result<Option<Role>, EngineError> {
        if !self.store().login(user).await?.is_some_and(|login| login.active) {
            return Ok(None);
        }
        let rows = self.store().memberships(user).await?;
        Ok(rows.iter().find(|row| row.workspace == workspace).and_then(|row| row.role.parse().ok()))
    }

    async fn active(&self, user: UserId) -> Result<LoginRow, EngineError> {
        self.store().login(user).await?.filter(|login| login.active).ok_or(EngineError::Unauthenticated)
    }

    async fn caller(&self, login: LoginRow, rights: Rights, via: Via) -> Result<Caller, EngineError> {
        let rows = self.store().memberships(login.id).await?;
        let memberships = rows
            .into_iter()
            // A role of a newer version grants nothing here.
            .filter_map(|row| {
                let role = row.role.parse().ok()?;
                Some(Membership { workspace: row.workspace, slug: row.slug, name: row.name, role })
            })
            .collect();
        let (user, name, owner) = (login.id, login.name, login.owner);
        Ok(Caller { user, name, owner, rights, via, only: None, until: None, memberships })
    }

    /// Makes a token of a person. The secret is handed out this once.
    ///
    /// # Errors
    /// When its name or rights cannot be used.
    pub async fn create_token(&self, user: UserId, ask: TokenAsk) -> Result<(TokenRow, Secret), EngineError> {
        let secret = Secret::new(self.env(), TOKEN_PREFIX);
        Ok((self.keep_token(user, ask, &secret).await?, secret))
    }

    /// Makes the token of a person from a secret that the operator chose.
    ///
    /// # Errors
    /// When the secret is too short, or there is such a token.
    pub async fn keep_token(&self, user: UserId, ask: TokenAsk, secret: &Secret) -> Result<TokenRow, EngineError> {
        let name = ask.name.trim();
        if name.is_empty() || name.len() > 100 {
            return Err(EngineError::Invalid("a token has a name of 1 to 100 characters".to_owned()));
        }
        if ask.rights.words().is_empty() {
            return Err(EngineError::Invalid("a token needs at least one scope".to_owned()));
        }
        let row = TokenRow {
            id: self.env().id::<TokenId>(),
            user,
            workspace: ask.workspace,
            name: name.to_owned(),
            hash: secret.hash(),
            hint: secret.hint(),
            scopes: ask.rights.words().join(" "),
            created_at: self.env().now(),
            expires_at: ask.expires_at,
            used_at: None,
        };
        let made = format!("{} ({}): {}", row.name, row.id, row.scopes);
        self.admit(Deed::TokenMade, user, made, Admission::Token(Box::new(row.clone()))).await?;
        Ok(row)
    }

    /// Takes a token of a person away.
    ///
    /// # Errors
    /// When they have no such token.
    pub async fn revoke_token(&self, user: UserId, id: TokenId) -> Result<(), EngineError> {
        let revoked = self.admit(Deed::TokenRevoked, user, id.to_string(), Admission::NoToken { user, id }).await;
        revoked.map_err(|error| match error {
            EngineError::Store(StoreError::NotFound) => EngineError::not_found("token", id),
            other => other,
        })
    }

    /// The rights of a token, read back.
    #[must_use]
    pub fn rights_of(row: &TokenRow) -> Vec<&'static str> {
        Rights::parse(&row.scopes).words()
    }
}

impl Rights {
    /// What a token has when nobody says: everything but administration and deciding.
    #[must_use]
    pub fn ordinary() -> Self {
        Self::of(vec![Right::Read, Right::Run, Right::Write])
    }
}
