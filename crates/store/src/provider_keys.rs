//! Keys of providers that people brought. The value is sealed under the key of its workspace and bound to its row, its owner,
//! its provider and its hosts: moved anywhere else, or with a host added, it does not open. It is never kept in clear.

use adjutant_core::id::{KeyId, WorkspaceId};
use adjutant_core::time::Time;
use zeroize::Zeroizing;

use crate::keys::Sealer;
use crate::row::ProviderKeyRow;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Sql, Store, StoreError};

/// A key and its value, which is wiped when it is dropped.
pub type OpenKey = (ProviderKeyRow, Zeroizing<Vec<u8>>);

const COLUMNS: &str = "SELECT id, kind, subject, provider, name, hint, hosts, created_by, created_at, rotated_at, value \
                       FROM provider_keys WHERE workspace = $1";

impl Store {
    /// Keeps a key.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when its name is taken or nothing is sealed here, [`StoreError::NotFound`] when there is no
    /// such workspace.
    pub async fn add_provider_key(&self, row: &ProviderKeyRow, value: &[u8]) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let sealed = sealer(sql, row.workspace).await?.seal(place(&binding(row)), value)?;
        let text = "INSERT INTO provider_keys (workspace, id, kind, subject, provider, name, hint, hosts, created_by, \
                    created_at, rotated_at, value) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
                    ON CONFLICT DO NOTHING";
        let (id, hosts) = (row.id, row.hosts.join(" "));
        let args = args![
            row.workspace,
            id,
            &row.kind,
            &row.subject,
            &row.provider,
            &row.name,
            &row.hint,
            hosts,
            row.created_by,
            row.created_at,
            row.rotated_at,
            sealed,
        ];
        match sql.db.write(text, args).await? {
            0 => Err(StoreError::Conflict(format!("there is a key `{}` for {} already", row.name, row.provider))),
            _ => Ok(()),
        }
    }

    /// The keys of a workspace, oldest first, without their values.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn provider_keys(&self, workspace: WorkspaceId) -> Result<Vec<ProviderKeyRow>, StoreError> {
        let sql = sql!(self, memory => memory.no_provider_keys());
        let rows = sql.db.read(format!("{COLUMNS} ORDER BY id"), args![workspace]).await?;
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

    /// Gives a key another value; false when there is no such key.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rotate_provider_key(
        &self,
        workspace: WorkspaceId,
        id: KeyId,
        value: &[u8],
        hint: &str,
        now: Time,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let Some(row) = sql.db.read_one(format!("{COLUMNS} AND id = $2"), args![workspace, id]).await? else {
            return Ok(false);
        };
        let (row, _) = read(workspace, row)?;
        let sealed = sealer(sql, workspace).await?.seal(place(&binding(&row)), value)?;
        let text = "UPDATE provider_keys SET value = $3, hint = $4, rotated_at = $5 WHERE workspace = $1 AND id = $2";
        Ok(sql.db.write(text, args![workspace, id, sealed, hint, now]).await? > 0)
    }

    /// Forgets a key; false when there is none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn remove_provider_key(&self, workspace: WorkspaceId, id: KeyId) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let text = "DELETE FROM provider_keys WHERE workspace = $1 AND id = $2";
        Ok(sql.db.write(text, args![workspace, id]).await? > 0)
    }
}

/// What seals keys. Where nothing is sealed, no key is kept.
async fn sealer(sql: &Sql, workspace: WorkspaceId) -> Result<Sealer, StoreError> {
    match sql.sealer(Scope::Workspace(workspace)).await? {
        Sealer::Off => Err(StoreError::Conflict("this database is not encrypted, so it keeps no keys".to_owned())),
        sealer @ Sealer::On(_) => Ok(sealer),
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
