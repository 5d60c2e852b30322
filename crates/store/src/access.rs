//! What people and programs show at the door: sessions, tokens and links that are good once. Only hashes are kept, so that
//! whoever reads the database cannot sign in with what is in it.

use adjutant_core::content::Hash;
use adjutant_core::id::{TokenId, UserId, WorkspaceId};
use adjutant_core::time::Time;

use crate::people::PUT_MEMBER;
use crate::seal::Scope;
use crate::value::{Row, args};
use crate::{Store, StoreError};

const TOKEN: &str =
    "SELECT id, person, workspace, name, hash, hint, scopes, created_at, expires_at, used_at FROM tokens";

/// A browser that is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The hash of the cookie.
    pub hash: Hash,
    /// Who it is.
    pub user: UserId,
    /// Since when.
    pub created_at: Time,
    /// Until when.
    pub expires_at: Time,
}

/// What a program signs in with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRow {
    /// The token.
    pub id: TokenId,
    /// For whom it acts.
    pub user: UserId,
    /// The only workspace it opens; all of the person's when none.
    pub workspace: Option<WorkspaceId>,
    /// What it is for.
    pub name: String,
    /// The hash of the secret.
    pub hash: Hash,
    /// The last characters of the secret.
    pub hint: String,
    /// What it may do, as words.
    pub scopes: String,
    /// When it was made.
    pub created_at: Time,
    /// Until when it is good.
    pub expires_at: Option<Time>,
    /// When it was last used, about.
    pub used_at: Option<Time>,
}

/// A link that is good once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InviteRow {
    /// The hash of the secret in the link.
    pub hash: Hash,
    /// `setup`, `invite` or `reset`.
    pub kind: String,
    /// The workspace it leads into.
    pub workspace: Option<WorkspaceId>,
    /// What one may do there.
    pub role: Option<String>,
    /// Whose password it renews.
    pub user: Option<UserId>,
    /// Who made it: it is good while they may make such links; none for a set-up link, which the operator makes.
    pub made_by: Option<UserId>,
    /// When it was made.
    pub created_at: Time,
    /// Until when it is good.
    pub expires_at: Time,
}

impl Store {
    /// Notes that a browser is signed in.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such person.
    pub async fn create_session(&self, row: &SessionRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "INSERT INTO sessions (hash, person, created_at, expires_at) VALUES ($1, $2, $3, $4)";
        sql.db.write(text, args![row.hash, row.user, row.created_at, row.expires_at]).await.map(drop)
    }

    /// The session of a cookie.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn session(&self, hash: Hash) -> Result<Option<SessionRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "SELECT hash, person, created_at, expires_at FROM sessions WHERE hash = $1";
        let read = |mut row: Row| {
            Ok(SessionRow { hash: row.take()?, user: row.take()?, created_at: row.take()?, expires_at: row.take()? })
        };
        sql.db.read_one(text, args![hash]).await?.map(read).transpose()
    }

    /// Ends a session, and those that ran out before `now`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn end_session(&self, hash: Hash, now: Time) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "DELETE FROM sessions WHERE hash = $1 OR expires_at < $2";
        sql.db.write(text, args![hash, now]).await.map(drop)
    }

    /// The token of a secret.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn token_by_hash(&self, hash: Hash) -> Result<Option<TokenRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        sql.db.read_one(format!("{TOKEN} WHERE hash = $1"), args![hash]).await?.map(read_token).transpose()
    }

    /// The tokens of a person, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn tokens(&self, user: UserId) -> Result<Vec<TokenRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let rows = sql.db.read(format!("{TOKEN} WHERE person = $1 ORDER BY id"), args![user]).await?;
        rows.into_iter().map(read_token).collect()
    }

    /// Notes that a token was used.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn touch_token(&self, id: TokenId, now: Time) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        sql.write_work("UPDATE tokens SET used_at = $2 WHERE id = $1", args![id, now]).await.map(drop)
    }

    /// Adds a link that is good once. A new set-up link takes the place of older ones, and a new link for somebody's password that
    /// of older ones for theirs.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such person or workspace.
    pub async fn create_invite(&self, row: &InviteRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let mut tx = sql.db.begin().await?;
        if row.kind == "setup" {
            tx.run("DELETE FROM invites WHERE kind = 'setup'", vec![]).await?;
        }
        if row.kind == "reset" {
            tx.run("DELETE FROM invites WHERE kind = 'reset' AND person = $1 AND used_at IS NULL", args![row.user])
                .await?;
        }
        let text = "INSERT INTO invites (hash, kind, workspace, role, person, made_by, created_at, expires_at) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
        let InviteRow { hash, kind, workspace, role, user, made_by, created_at, expires_at } = row;
        let args = args![*hash, kind, *workspace, role, *user, *made_by, *created_at, *expires_at];
        tx.run(text, args).await?;
        tx.commit().await
    }

    /// The invitations into a workspace that somebody could still use, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn invites(&self, workspace: WorkspaceId, now: Time) -> Result<Vec<InviteRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "SELECT hash, kind, workspace, role, person, made_by, created_at, expires_at FROM invites \
                    WHERE workspace = $1 AND kind = 'invite' AND used_at IS NULL AND expires_at > $2 \
                    ORDER BY created_at DESC, hash";
        sql.db.read(text, args![workspace, now]).await?.into_iter().map(read_invite).collect()
    }

    /// Uses a set-up link: makes a person the owner of an instance that has none. False: the link is not good (any more),
    /// or there is an owner.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the name is taken; the link is good still.
    pub async fn use_setup(
        &self,
        hash: Hash,
        now: Time,
        user: UserId,
        name: &str,
        password: &str,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let mut tx = sql.db.begin().await?;
        if tx.row(USE_INVITE, args![hash, "setup", now]).await?.is_none() {
            return Ok(false);
        }
        let text = "UPDATE users SET name = $2, password = $3, owner = 1 \
                    WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM users WHERE owner = 1)";
        let claimed = tx.run(text, args![user, name, password]).await? > 0;
        tx.commit().await?;
        Ok(claimed)
    }

    /// Uses an invitation: adds a person and lets them into its workspace. False: the link is not good (any more).
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the name is taken; the link is good still.
    pub async fn use_invite(
        &self,
        hash: Hash,
        now: Time,
        user: UserId,
        name: &str,
        password: &str,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let mut tx = sql.db.begin().await?;
        let Some(mut row) = tx.row(USE_INVITE, args![hash, "invite", now]).await? else { return Ok(false) };
        let (workspace, role): (Option<WorkspaceId>, Option<String>) = (row.take()?, row.take()?);
        let text = "INSERT INTO users (id, name, created_at, password) VALUES ($1, $2, $3, $4)";
        tx.run(text, args![user, name, now, password]).await?;
        if let (Some(workspace), Some(role)) = (workspace, role) {
            tx.run(PUT_MEMBER, args![workspace, user, role, now]).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Uses a link for a new password, and ends the sessions of whoever it is for. False: it is not good (any more).
    ///
    /// # Errors
    /// Those of the database.
    pub async fn use_reset(&self, hash: Hash, now: Time, password: &str) -> Result<Option<UserId>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let mut tx = sql.db.begin().await?;
        let Some(mut row) = tx.row(USE_INVITE, args![hash, "reset", now]).await? else { return Ok(None) };
        let (_, _, user): (Option<WorkspaceId>, Option<String>, Option<UserId>) =
            (row.take()?, row.take()?, row.take()?);
        tx.run("UPDATE users SET password = $2 WHERE id = $1", args![user, password]).await?;
        tx.run("DELETE FROM sessions WHERE person = $1", args![user]).await?;
        tx.commit().await?;
        Ok(user)
    }

    /// Counts an attempt before it is checked, and says whether it is one of the first so many in this slot. One that is not
    /// writes nothing. Of what is counted a keyed hash is kept, because people type passwords where names belong. Older slots
    /// are forgotten.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn count_attempt(&self, what: &str, slot: i64, most: u64) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let key = sql.sealer(Scope::System).await?.mark(what);
        let mut tx = sql.db.begin().await?;
        tx.run("DELETE FROM attempts WHERE slot < $1", args![slot - 1]).await?;
        let text = "INSERT INTO attempts (key, slot, count) VALUES ($1, $2, 1) \
                    ON CONFLICT (key, slot) DO UPDATE SET count = attempts.count + 1 WHERE attempts.count < $3 RETURNING count";
        let counted = tx.row(text, args![key, slot, most]).await?.is_some();
        tx.commit().await?;
        Ok(counted)
    }
}

const USE_INVITE: &str = "UPDATE invites SET used_at = $3 \
     WHERE hash = $1 AND kind = $2 AND used_at IS NULL AND expires_at > $3 AND (made_by IS NULL OR EXISTS \
     (SELECT 1 FROM users u WHERE u.id = invites.made_by AND u.active = 1 AND (u.owner = 1 OR EXISTS \
     (SELECT 1 FROM members m WHERE m.person = u.id AND m.workspace = invites.workspace AND m.role = 'admin')))) \
     RETURNING workspace, role, person";

fn read_invite(mut row: Row) -> Result<InviteRow, StoreError> {
    Ok(InviteRow {
        hash: row.take()?,
        kind: row.take()?,
        workspace: row.take()?,
        role: row.take()?,
        user: row.take()?,
        made_by: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
    })
}

fn read_token(mut row: Row) -> Result<TokenRow, StoreError> {
    Ok(TokenRow {
        id: row.take()?,
        user: row.take()?,
        workspace: row.take()?,
        name: row.take()?,
        hash: row.take()?,
        hint: row.take()?,
        scopes: row.take()?,
        created_at: row.take()?,
        expires_at: row.take()?,
        used_at: row.take()?,
    })
}
