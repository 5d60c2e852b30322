//! People as they sign in, and what they may do in which workspace. Holds hashes of passwords, never passwords.

use adjutant_core::id::{UserId, WorkspaceId};
use adjutant_core::time::Time;

use crate::tenants::one;
use crate::value::{Row, args};
use crate::{Store, StoreError};

const LOGIN: &str = "SELECT id, name, password, owner, active, created_at FROM users";

/// A person as they sign in.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginRow {
    /// The person.
    pub id: UserId,
    /// The name they sign in with.
    pub name: String,
    /// Their password, hashed; none for somebody who has none.
    pub password: Option<String>,
    /// Whether the instance is theirs.
    pub owner: bool,
    /// Whether they may sign in.
    pub active: bool,
    /// When they were added.
    pub created_at: Time,
}

/// A person in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberRow {
    /// The person.
    pub user: UserId,
    /// The name they sign in with.
    pub name: String,
    /// What they may do.
    pub role: String,
    /// Since when.
    pub since: Time,
}

/// A workspace of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipRow {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// Its short name.
    pub slug: String,
    /// Its name.
    pub name: String,
    /// What they may do there.
    pub role: String,
}

impl std::fmt::Debug for LoginRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoginRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store {
    /// A person as they sign in.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn login(&self, user: UserId) -> Result<Option<LoginRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        one(sql, format!("{LOGIN} WHERE id = $1"), args![user], read_login).await
    }

    /// The person who signs in with this name.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn login_by_name(&self, name: &str) -> Result<Option<LoginRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        one(sql, format!("{LOGIN} WHERE name = $1"), args![name], read_login).await
    }

    /// Everybody, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn logins(&self) -> Result<Vec<LoginRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let rows = sql.db.read(format!("{LOGIN} ORDER BY id"), vec![]).await?;
        rows.into_iter().map(read_login).collect()
    }

    /// The first owner of the instance; none before it was set up.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn owner(&self) -> Result<Option<LoginRow>, StoreError> {
        let sql = sql!(self, memory => Ok(None));
        one(sql, format!("{LOGIN} WHERE owner = 1 ORDER BY id LIMIT 1"), vec![], read_login).await
    }

    /// Makes a person the owner of an instance that has none, under this name and password. False: it has one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the name is taken.
    pub async fn claim_instance(&self, user: UserId, name: &str, password: Option<&str>) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "UPDATE users SET name = $2, password = $3, owner = 1 \
                    WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE owner = 1)";
        let password = password.map(str::to_owned);
        Ok(sql.db.write(text, args![user, name, password]).await? > 0)
    }

    /// The model of a person's runs whose agent leaves it to the default.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn default_model(&self, user: UserId) -> Result<Option<String>, StoreError> {
        let sql = sql!(self, memory => Ok(None));
        let row = sql.db.read_kept("SELECT default_model FROM users WHERE id = $1", args![user]).await?.pop();
        row.map_or(Ok(None), |mut row| row.take())
    }

    /// Gives a person's runs another default; says whether there is such a person.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn set_default_model(&self, user: UserId, model: Option<&str>) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let args = args![user, model.map(str::to_owned)];
        Ok(sql.db.write("UPDATE users SET default_model = $2 WHERE id = $1", args).await? > 0)
    }

    /// Lets a person into a workspace, or changes what they may do there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such person or workspace.
    pub async fn put_member(
        &self,
        workspace: WorkspaceId,
        user: UserId,
        role: &str,
        now: Time,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => Ok(()));
        sql.db.write(PUT_MEMBER, args![workspace, user, role, now]).await.map(drop)
    }

    /// Who is in a workspace, in the order they came.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn members(&self, workspace: WorkspaceId) -> Result<Vec<MemberRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "SELECT m.person, u.name, m.role, m.since FROM members m JOIN users u ON u.id = m.person \
                    WHERE m.workspace = $1 ORDER BY m.since, m.person";
        let rows = sql.db.read(text, args![workspace]).await?;
        let read = |mut row: Row| {
            Ok(MemberRow { user: row.take()?, name: row.take()?, role: row.take()?, since: row.take()? })
        };
        rows.into_iter().map(read).collect()
    }

    /// The workspaces of a person, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn memberships(&self, user: UserId) -> Result<Vec<MembershipRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "SELECT m.workspace, w.slug, w.name, m.role FROM members m JOIN workspaces w ON w.id = m.workspace \
                    WHERE m.person = $1 ORDER BY m.workspace";
        let rows = sql.db.read(text, args![user]).await?;
        let read = |mut row: Row| {
            Ok(MembershipRow { workspace: row.take()?, slug: row.take()?, name: row.take()?, role: row.take()? })
        };
        rows.into_iter().map(read).collect()
    }
}

pub(crate) const PUT_MEMBER: &str = "INSERT INTO members (workspace, person, role, since) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (workspace, person) DO UPDATE SET role = excluded.role";

fn read_login(mut row: Row) -> Result<LoginRow, StoreError> {
    Ok(LoginRow {
        id: row.take()?,
        name: row.take()?,
        password: row.take()?,
        owner: row.take()?,
        active: row.take()?,
        created_at: row.take()?,
    })
}
