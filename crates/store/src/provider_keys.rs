//! Keys of providers that people brought. The value is sealed under the key of its workspace and bound to its row, its owner,
//! its provider and its hosts: moved anywhere else, or with a host added, it does not open. It is never kept in clear.

use adjutant_core::budget::Owner;
use adjutant_core::id::{KeyId, WorkspaceId};
use zeroize::Zeroizing;

use crate::db::Tx;
use crate::keys::{Rewrapped, Sealer};
use crate::row::ProviderKeyRow;
use crate::seal::{MasterKey, Place, Scope};
use crate::value::{Row, args};
use crate::{Sql, Store, StoreError};

/// A key and its value, which is wiped when it is dropped.
pub type OpenKey = (ProviderKeyRow, Zeroizing<Vec<u8>>);

const COLUMNS: &str = "SELECT id, kind, subject, provider, name, hint, hosts, created_by, created_at, rotated_at, value \
                       FROM provider_keys WHERE workspace = $1";

/// A change of the keys of a workspace. Holds sealed values only.
#[derive(Debug, Clone)]
pub enum KeyChange {
    /// Keeps a key.
    Add(Box<ProviderKeyRow>, Vec<u8>),
    /// Gives a key, which must be there, another value, and says so in its row.
    Rotate(Box<ProviderKeyRow>, Vec<u8>),
    /// Forgets a key, which must be there, and what it may spend.
    Remove(KeyId),
}

impl Store {
    /// Seals the value of a key for its row, and for no other.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when nothing is sealed here.
    pub async fn seal_key(&self, row: &ProviderKeyRow, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        sealer(sql, row.workspace).await?.seal(place(&binding(row)), value)
    }

    /// Wraps every data key with another master key, for [`Doing::ReplaceMaster`](crate::row::Doing); nothing is changed yet.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when nothing is sealed here; [`StoreError::WrongKey`] when the master key was replaced since
    /// this store was opened.
    pub async fn rewrap(&self, new: &MasterKey) -> Result<Rewrapped, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        sql.keys.rewrap(&sql.db, new).await
    }

    /// The keys of a workspace, oldest first, without their values.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn provider_keys(&self, workspace: WorkspaceId) -> Result<Vec<ProviderKeyRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_provider_keys());
        let rows = sql.db.read_kept(format!("{COLUMNS} ORDER BY id"), args![workspace]).await?;
        rows.into_iter().map(|row| read(workspace, row).map(|(row, _)| row)).collect()
    }

    /// A key with its value.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the value does not open where it is.
    pub async fn provider_key(&self, workspace: WorkspaceId, id: KeyId) -> Result<Option<OpenKey>, StoreError> {
        let sql = sql!(self, memory => memory.no_provider_key());
        let Some(row) = sql.db.read_one(format!("{COLUMNS} AND id = $2"), args![workspace, id]).await? else {
            return Ok(None);
        };
        let (row, sealed) = read(workspace, row)?;
        let value = sealer(sql, workspace).await?.open(place(&binding(&row)), sealed)?;
        Ok(Some((row, Zeroizing::new(value))))
    }
}

/// Does it in the transaction that records it.
pub(crate) async fn change(tx: &mut Tx, scope: Scope, change: &KeyChange) -> Result<(), StoreError> {
    match change {
        KeyChange::Add(row, sealed) => add(tx, row, sealed).await,
        KeyChange::Rotate(row, sealed) => {
            let text =
                "UPDATE provider_keys SET value = $3, hint = $4, rotated_at = $5 WHERE workspace = $1 AND id = $2";
            found(tx.run(text, args![scope, row.id, sealed.clone(), &row.hint, row.rotated_at]).await?)
        }
        KeyChange::Remove(id) => {
            let budget = "DELETE FROM budgets WHERE workspace = $1 AND kind = $2 AND subject = $3";
            tx.run(budget, args![scope, Owner::Key(*id).word(), id.to_string()]).await?;
            found(tx.run("DELETE FROM provider_keys WHERE workspace = $1 AND id = $2", args![scope, *id]).await?)
        }
    }
}

fn found(rows: u64) -> Result<(), StoreError> {
    if rows == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}

async fn add(tx: &mut Tx, row: &ProviderKeyRow, sealed: &[u8]) -> Result<(), StoreError> {
    let text = "INSERT INTO provider_keys (workspace, id, kind, subject, provider, name, hint, hosts, created_by, \
                created_at, rotated_at, value) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
                ON CONFLICT DO NOTHING";
    let args = args![
        row.workspace,
        row.id,
        &row.kind,
        &row.subject,
        &row.provider,
        &row.name,
        &row.hint,
        row.hosts.join(" "),
        row.created_by,
        row.created_at,
        row.rotated_at,
        sealed.to_vec(),
    ];
    match tx.run(text, args).await? {
        0 => Err(StoreError::Conflict(format!("there is a key `{}` for {} already", row.name, row.provider))),
        _ => Ok(()),
    }
}

/// What seals keys. Where nothing is sealed, no key is kept.
async fn sealer(sql: &Sql, workspace: WorkspaceId) -> Result<Sealer, StoreError> {
    match sql.sealer(Scope::Workspace(workspace)).await? {
        Sealer::Off => Err(StoreError::Conflict("this database is not encrypted, so it keeps no keys".to_owned())),
        sealer @ Sealer::On(_) => Ok(sealer),
        Sealer::Gone => Err(StoreError::NotFound),
    }
}

/// All that a value is bound to, beside its table and its workspace.
fn binding(row: &ProviderKeyRow) -> String {
    let ProviderKeyRow { id, kind, subject, provider, name, .. } = row;
    format!("{id}|{kind}|{subject}|{provider}|{name}|{}", row.hosts.join(" "))
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "provider_keys", column: "value", id }
}

fn read(workspace: WorkspaceId, mut row: Row) -> Result<(ProviderKeyRow, Vec<u8>), StoreError> {
    let id = row.take()?;
    let (kind, subject, provider, name, hint) = (row.take()?, row.take()?, row.take()?, row.take()?, row.take()?);
    let hosts: String = row.take()?;
    let hosts = hosts.split_ascii_whitespace().map(str::to_owned).collect();
    let (created_by, created_at, rotated_at) = (row.take()?, row.take()?, row.take()?);
    let found = ProviderKeyRow {
        id,
        workspace,
        kind,
        subject,
        provider,
        name,
        hint,
        hosts,
        created_by,
        created_at,
        rotated_at,
    };
    Ok((found, row.take()?))
}
