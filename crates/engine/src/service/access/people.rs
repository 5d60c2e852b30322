//! People and the workspaces they share.

use adjutant_core::audit::{Act, Deed};
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::run::event::Actor;
use adjutant_store::StoreError;
use adjutant_store::row::{Admission, Doing, LoginRow, MemberRow};

use super::{Password, Role};
use crate::audit::{AuditLog, Done};
use crate::engine::Engine;
use crate::error::EngineError;

/// Characters of a name.
const LONGEST_NAME: usize = 64;

/// Accepts a name to sign in with.
pub(super) fn check_name(name: &str) -> Result<(), EngineError> {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | '@');
    if name.is_empty() || name.chars().count() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(EngineError::Invalid(format!(
            "a name has 1 to {LONGEST_NAME} letters, digits or . - _ @, and no blanks"
        )));
    }
    Ok(())
}

/// What a conflict means where a name is chosen.
pub(super) fn name_taken(error: StoreError, name: &str) -> EngineError {
    match error {
        StoreError::Conflict(_) => EngineError::Taken { what: "name", name: name.to_owned() },
        other => other.into(),
    }
}

impl Engine {
    /// Changes one's own password; every session ends.
    ///
    /// # Errors
    /// [`EngineError::Unauthenticated`] when the old password is wrong.
    pub async fn change_password(
        &self,
        login: &LoginRow,
        old: Password,
        new: Password,
        address: &str,
    ) -> Result<(), EngineError> {
        self.count_attempts(&login.name, address).await?;
        if !old.matches(login.password.clone()).await? {
            return Err(EngineError::Unauthenticated);
        }
        let change = Admission::Password { user: login.id, hash: new.hash(self.env()).await? };
        self.admit(Deed::PasswordChanged, login.id, login.name.clone(), change).await
    }

    /// Changes who may come in, and records who did it, in one transaction.
    pub(super) async fn admit(
        &self,
        deed: Deed,
        by: UserId,
        summary: String,
        change: Admission,
    ) -> Result<(), EngineError> {
        let done = Done { doing: Some(Doing::Admit(change)), ..Done::default() };
        self.audit_done(AuditLog::Instance, Act::new(deed, Some(Actor::User(by)), summary), done).await.map(drop)
    }

    /// Switches a person on or off. Off ends their sessions and switches their agents off, until an admin takes them over.
    ///
    /// # Errors
    /// When there is no such person, or it is whoever asks.
    pub async fn set_active(&self, by: UserId, login: &LoginRow, active: bool) -> Result<(), EngineError> {
        if login.id == by {
            return Err(EngineError::Invalid("nobody switches themselves off".to_owned()));
        }
        let mut summary = format!("{} {}", login.name, if active { "on" } else { "off" });
        if !active {
            for workspace in self.store().workspaces().await? {
                let left = self.left_by(workspace.id, login.id).await?;
                if !left.is_empty() {
                    summary += &format!("; {}: {}", workspace.slug, left);
                }
            }
        }
        let change = Admission::Active { user: login.id, active, at: self.env().now() };
        self.admit(Deed::UserSaved, by, summary, change).await
    }

    /// What is said of the agents of somebody who leaves a workspace; nothing where they have none that are on.
    async fn left_by(&self, workspace: WorkspaceId, user: UserId) -> Result<String, EngineError> {
        let agents = self.store().agents(workspace).await?;
        let on = agents.iter().filter(|row| row.owner == Some(user) && row.active);
        let names: Vec<_> = on.map(|row| row.slug.as_str()).collect();
        let said = || format!("their agents are off until an admin takes them over: {}", names.join(", "));
        Ok(if names.is_empty() { String::new() } else { said() })
    }

    /// Lets a person into a workspace, or changes what they may do there. The last admin stays one.
    ///
    /// # Errors
    /// When there is no such person, or nobody would be admin any more.
    pub async fn put_member(
        &self,
        by: UserId,
        workspace: WorkspaceId,
        login: &LoginRow,
        role: Role,
    ) -> Result<(), EngineError> {
        let summary = format!("{} has the role {role} in {workspace}", login.name);
        let (user, since) = (login.id, self.env().now());
        let change = Admission::Member { workspace, user, role: role.word().to_owned(), since };
        self.admit(Deed::UserSaved, by, summary, change).await.map_err(|error| member_error(error, user))
    }

    /// Takes a person out of a workspace. The last admin stays.
    ///
    /// # Errors
    /// When they are not in it, or nobody would be admin any more.
    pub async fn remove_member(
        &self,
        by: UserId,
        workspace: WorkspaceId,
        member: &MemberRow,
    ) -> Result<(), EngineError> {
        let user = member.user;
        let left = self.left_by(workspace, user).await?;
        let mut summary = format!("{} is out of {workspace}", member.name);
        if !left.is_empty() {
            summary += &format!("; {left}");
        }
        let change = Admission::NoMember { workspace, user, at: self.env().now() };
        self.admit(Deed::UserSaved, by, summary, change).await.map_err(|error| member_error(error, user))
    }
}

fn member_error(error: EngineError, user: UserId) -> EngineError {
    match error {
        EngineError::Store(StoreError::NotFound) => EngineError::not_found("member", user),
        EngineError::Store(StoreError::Conflict(why)) => EngineError::Invalid(why),
        other => other,
    }
}
