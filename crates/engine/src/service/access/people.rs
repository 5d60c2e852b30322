//! People and the workspaces they share.

use adjutant_core::guard::policy::is_slug;
use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_store::StoreError;
use adjutant_store::row::{LoginRow, WorkspaceRow};

use super::{Password, Role};
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
        let hash = new.hash(self.env()).await?;
        self.store().set_password(login.id, &hash).await?;
        Ok(())
    }

    /// Makes a workspace, with one notebook, that belongs to a person.
    ///
    /// # Errors
    /// When the short name cannot be used or is taken.
    pub async fn create_workspace(
        &self,
        user: UserId,
        slug: &str,
        name: &str,
        time_zone: &str,
    ) -> Result<WorkspaceRow, EngineError> {
        if !is_slug(slug) {
            return Err(EngineError::Invalid(format!(
                "`{slug}` is no short name: small letters, digits and -, beginning with a letter"
            )));
        }
        if name.trim().is_empty() || name.chars().count() > 100 {
            return Err(EngineError::Invalid("a workspace has a name of 1 to 100 characters".to_owned()));
        }
        if jiff::tz::TimeZone::get(time_zone).is_err() {
            return Err(EngineError::Invalid(format!("`{time_zone}` is no time zone, such as Europe/Berlin or UTC")));
        }
        let row = WorkspaceRow {
            id: self.env().id(),
            slug: slug.to_owned(),
            name: name.trim().to_owned(),
            time_zone: time_zone.to_owned(),
            created_at: self.env().now(),
        };
        self.store().create_workspace(&row).await.map_err(|error| match error {
            StoreError::Conflict(_) => EngineError::Taken { what: "workspace", name: slug.to_owned() },
            other => other.into(),
        })?;
        self.store().put_member(row.id, user, Role::Admin.word(), row.created_at).await?;
        self.create_notebook(row.id, "notes").await?;
        Ok(row)
    }

    /// Lets a person into a workspace, or changes what they may do there. The last admin stays one.
    ///
    /// # Errors
    /// When there is no such person, or nobody would be admin any more.
    pub async fn put_member(&self, workspace: WorkspaceId, user: UserId, role: Role) -> Result<(), EngineError> {
        if role != Role::Admin {
            self.keep_an_admin(workspace, user).await?;
        }
        let put = self.store().put_member(workspace, user, role.word(), self.env().now()).await;
        put.map_err(|error| match error {
            StoreError::NotFound => EngineError::not_found("user", user),
            other => other.into(),
        })
    }

    /// Takes a person out of a workspace. The last admin stays.
    ///
    /// # Errors
    /// When they are not in it, or nobody would be admin any more.
    pub async fn remove_member(&self, workspace: WorkspaceId, user: UserId) -> Result<(), EngineError> {
        self.keep_an_admin(workspace, user).await?;
        match self.store().remove_member(workspace, user).await? {
            true => Ok(()),
            false => Err(EngineError::not_found("member", user)),
        }
    }

    async fn keep_an_admin(&self, workspace: WorkspaceId, leaving: UserId) -> Result<(), EngineError> {
        let members = self.store().members(workspace).await?;
        let admin = |role: &str| role.parse() == Ok(Role::Admin);
        let is_admin = members.iter().any(|member| member.user == leaving && admin(&member.role));
        if is_admin && !members.iter().any(|member| member.user != leaving && admin(&member.role)) {
            return Err(EngineError::Invalid("the workspace would have no admin any more".to_owned()));
        }
        Ok(())
    }
}
