//! Links that are good once: the set-up of a new instance, invitations, new passwords.

use std::time::Duration;

use adjutant_core::audit::{Act, Deed};
use adjutant_core::content::Hash;
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_core::time::Time;
use adjutant_store::StoreError;
use adjutant_store::row::{Admission, InviteRow};

use super::{Password, Role, Secret, SignIn, TokenAsk, people};
use crate::audit::AuditLog;
use crate::engine::Engine;
use crate::error::EngineError;

/// How long a set-up link is good.
const SETUP: Duration = Duration::from_secs(30 * 60);
/// How long an invitation or a link for a new password is good.
const INVITE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The shortest token an operator may choose, in characters.
const SHORTEST_TOKEN: usize = 24;

/// By what an invitation is called: the beginning of the hash of its secret, which lets nobody in.
#[must_use]
pub fn short(hash: Hash) -> String {
    hash.to_string().chars().take(16).collect()
}

fn gone() -> EngineError {
    EngineError::not_found("invitation", "of this id")
}

/// A link that was just made.
#[derive(Debug, Clone)]
pub struct Invited {
    /// What goes into the link, behind `#t=`.
    pub secret: Secret,
    /// Until when it is good.
    pub expires_at: Time,
}

/// What a link is for.
enum Purpose {
    Setup,
    Invite { workspace: WorkspaceId, role: Role },
    Reset(UserId),
}

impl Engine {
    /// Whether somebody owns this instance. Until then there is a set-up link and nothing else.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn is_set_up(&self) -> Result<bool, EngineError> {
        Ok(self.store().owner().await?.is_some())
    }

    /// Makes the link that sets the instance up; older ones are not good any more.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn invite_owner(&self) -> Result<Invited, EngineError> {
        self.invite(None, Purpose::Setup, SETUP).await
    }

    /// Makes a link that lets one person into a workspace.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn invite_member(&self, by: UserId, workspace: WorkspaceId, role: Role) -> Result<Invited, EngineError> {
        self.invite(Some(by), Purpose::Invite { workspace, role }, INVITE).await
    }

    /// Takes an invitation back that nobody has used.
    ///
    /// # Errors
    /// When there is none.
    pub async fn withdraw_invite(&self, by: UserId, row: &InviteRow) -> Result<(), EngineError> {
        let (Some(workspace), hash) = (row.workspace, row.hash) else { return Err(gone()) };
        let role = row.role.as_deref().unwrap_or_default();
        let what = format!("nobody may have the role {role} in {workspace} by the link {}", short(hash));
        let withdrawn = self.admit(Deed::LinkWithdrawn, by, what, Admission::NoInvite { workspace, hash }).await;
        withdrawn.map_err(|error| match error {
            EngineError::Store(StoreError::NotFound) => gone(),
            other => other,
        })
    }

    /// Makes a link by which a person chooses a new password.
    ///
    /// # Errors
    /// When there is no such person.
    pub async fn invite_password(&self, by: UserId, user: UserId) -> Result<Invited, EngineError> {
        self.invite(Some(by), Purpose::Reset(user), INVITE).await
    }

    async fn invite(&self, made_by: Option<UserId>, purpose: Purpose, good: Duration) -> Result<Invited, EngineError> {
        let (secret, now) = (Secret::new(self.env(), ""), self.env().now());
        let expires_at = now.after(good);
        let (kind, workspace, role, user) = match purpose {
            Purpose::Setup => ("setup", None, None, None),
            Purpose::Invite { workspace, role } => ("invite", Some(workspace), Some(role.word().to_owned()), None),
            Purpose::Reset(user) => ("reset", None, None, Some(user)),
        };
        let row = InviteRow {
            hash: secret.hash(),
            kind: kind.to_owned(),
            workspace,
            role,
            user,
            made_by,
            created_at: now,
            expires_at,
        };
        self.store().create_invite(&row).await.map_err(|error| match error {
            StoreError::NotFound => EngineError::not_found("user", "of this id"),
            other => other.into(),
        })?;
        Ok(Invited { secret, expires_at })
    }

    /// Sets the instance up: whoever has the link becomes its owner.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when the link is not good (any more).
    pub async fn set_up(
        &self,
        link: &Secret,
        name: &str,
        password: Password,
        address: &str,
    ) -> Result<SignIn, EngineError> {
        self.count_links("set-up", address).await?;
        people::check_name(name)?;
        let (hash, user) = (password.hash(self.env()).await?, self.home().await?.user);
        let used = self.store().use_setup(link.hash(), self.env().now(), user, name, &hash).await;
        if used.map_err(|error| people::name_taken(error, name))? {
            self.open_session(user).await
        } else {
            Err(EngineError::Unauthenticated)
        }
    }

    /// Makes the owner of a new instance without a link: for scripts and containers that bring a token of their own. False:
    /// the instance has an owner.
    ///
    /// # Errors
    /// When the token is too short.
    pub async fn bootstrap(&self, token: &Secret, ask: TokenAsk) -> Result<bool, EngineError> {
        if token.expose().chars().count() < SHORTEST_TOKEN {
            return Err(EngineError::Invalid(format!("the first token needs at least {SHORTEST_TOKEN} characters")));
        }
        let user = self.home().await?.user;
        if !self.store().claim_instance(user, "admin", None).await? {
            return Ok(false);
        }
        self.keep_token(user, ask, token).await?;
        Ok(true)
    }

    /// Accepts an invitation.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when the link is not good (any more).
    pub async fn accept_invite(
        &self,
        link: &Secret,
        name: &str,
        password: Password,
        address: &str,
    ) -> Result<SignIn, EngineError> {
        self.count_links("invitation", address).await?;
        people::check_name(name)?;
        let (hash, user) = (password.hash(self.env()).await?, self.env().id());
        let used = self.store().use_invite(link.hash(), self.env().now(), user, name, &hash).await;
        if used.map_err(|error| people::name_taken(error, name))? {
            self.open_session(user).await
        } else {
            Err(EngineError::Unauthenticated)
        }
    }

    /// Chooses a new password by a link.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when the link is not good (any more).
    pub async fn renew_password(&self, link: &Secret, password: Password, address: &str) -> Result<(), EngineError> {
        self.count_links("new password", address).await?;
        let hash = password.hash(self.env()).await?;
        let user = self.store().use_reset(link.hash(), self.env().now(), &hash).await?;
        let user = user.ok_or(EngineError::Unauthenticated)?;
        let act = Act::new(Deed::PasswordChanged, Some(Actor::User(user)), "by a link".to_owned());
        self.audit(AuditLog::Instance, act).await.map(drop)
    }
}
