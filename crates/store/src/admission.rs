//! Who may come in, and what they may do: changed in the transaction that records it.

use adjutant_core::content::Hash;
use adjutant_core::id::{TokenId, UserId, WorkspaceId};
use adjutant_core::time::Time;

use crate::StoreError;
use crate::agents;
use crate::db::Tx;
use crate::people::PUT_MEMBER;
use crate::row::TokenRow;
use crate::value::args;

/// A change of who may come in. Holds hashes, never a secret.
#[derive(Debug, Clone)]
pub enum Admission {
    /// Switches a person on or off. Off ends every session and switches their agents off, in every workspace: nobody is left
    /// to answer for them.
    Active {
        /// Who.
        user: UserId,
        /// Whether they may come in.
        active: bool,
        /// When.
        at: Time,
    },
    /// Gives a person another password. Ends every session.
    Password {
        /// Whose.
        user: UserId,
        /// Its hash.
        hash: String,
    },
    /// Lets a person into a workspace, or changes what they may do there.
    Member {
        /// The workspace.
        workspace: WorkspaceId,
        /// Who.
        user: UserId,
        /// What they may do there.
        role: String,
        /// Since when, if they are new.
        since: Time,
    },
    /// Takes a person out of a workspace, who must be in it. The agents that are theirs there are switched off: nobody is left
    /// to answer for them.
    NoMember {
        /// The workspace.
        workspace: WorkspaceId,
        /// Who.
        user: UserId,
        /// When.
        at: Time,
    },
    /// Adds a token.
    Token(Box<TokenRow>),
    /// Takes a token of a person away, which must be there.
    NoToken {
        /// Whose.
        user: UserId,
        /// Which.
        id: TokenId,
    },
    /// Takes an invitation into a workspace back, which nobody may have used.
    NoInvite {
        /// The workspace.
        workspace: WorkspaceId,
        /// The hash of the secret in its link.
        hash: Hash,
    },
}

/// Does it, or fails with nothing done: NotFound for who or what is not there, Conflict where a workspace would have no admin
/// or a secret is taken.
pub(crate) async fn admit(tx: &mut Tx, change: &Admission) -> Result<(), StoreError> {
    let found = match change {
        Admission::Active { user, active, at } => {
            if !active {
                tx.run("DELETE FROM sessions WHERE person = $1", args![*user]).await?;
                agents::pause_all_of(tx, None, *user, *at).await?;
            }
            tx.run("UPDATE users SET active = $2 WHERE id = $1", args![*user, *active]).await?
        }
        Admission::Password { user, hash } => {
            tx.run("DELETE FROM sessions WHERE person = $1", args![*user]).await?;
            tx.run("UPDATE users SET password = $2 WHERE id = $1", args![*user, hash]).await?
        }
        Admission::Member { workspace, user, role, since } => {
            tx.run(PUT_MEMBER, args![*workspace, *user, role, *since]).await?;
            keep_an_admin(tx, *workspace).await?
        }
        Admission::NoMember { workspace, user, at } => {
            let text = "DELETE FROM members WHERE workspace = $1 AND person = $2";
            let found = tx.run(text, args![*workspace, *user]).await?;
            agents::pause_all_of(tx, Some(*workspace), *user, *at).await?;
            agents::forget_person(tx, *workspace, *user).await?;
            keep_an_admin(tx, *workspace).await?;
            found
        }
        Admission::Token(row) => add_token(tx, row).await?,
        Admission::NoToken { user, id } => {
            tx.run("DELETE FROM tokens WHERE person = $1 AND id = $2", args![*user, *id]).await?
        }
        Admission::NoInvite { workspace, hash } => {
            let text = "DELETE FROM invites WHERE workspace = $1 AND hash = $2 AND kind = 'invite' AND used_at IS NULL";
            tx.run(text, args![*workspace, *hash]).await?
        }
    };
    if found == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}

/// Looked at after the change and inside its transaction, so that two admins who take each other out at once do not both
/// succeed: the log that records it lets one of them through at a time.
async fn keep_an_admin(tx: &mut Tx, workspace: WorkspaceId) -> Result<u64, StoreError> {
    let text = "SELECT COUNT(*) FROM members WHERE workspace = $1 AND role = 'admin'";
    let row = tx.row(text, args![workspace]).await?;
    match row.map_or(Ok(0), |mut row| row.take::<u64>())? {
        0 => Err(StoreError::Conflict("the workspace would have no admin any more".to_owned())),
        admins => Ok(admins),
    }
}

async fn add_token(tx: &mut Tx, row: &TokenRow) -> Result<u64, StoreError> {
    let text = "INSERT INTO tokens (id, person, workspace, name, hash, hint, scopes, created_at, expires_at, used_at) \
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let TokenRow { id, user, workspace, name, hash, hint, scopes, created_at, expires_at, used_at } = row;
    let args = args![*id, *user, *workspace, name, *hash, hint, scopes, *created_at, *expires_at, *used_at];
    tx.run(text, args).await
}
