//! Values of the instance itself (its signing key, what was set up once), sealed under the instance's own key.

use adjutant_core::id::WorkspaceId;

use crate::db::Tx;
use crate::row::Switch;
use crate::seal::{Place, Scope};
use crate::value::args;
use crate::{Store, StoreError};

const SET: &str =
    "INSERT INTO instance (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";

impl Store {
    /// A value.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it does not open.
    pub async fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = sql!(self, memory => memory.meta_get(key));
        let row = sql.db.read_kept("SELECT value FROM instance WHERE key = $1", args![key]).await?.pop();
        let Some(mut row) = row else { return Ok(None) };
        sql.sealer(Scope::System).await?.open(place(key), row.take()?).map(Some)
    }

    /// Sets a value unless there is one, and answers with the one that is there now: of two nodes that start together, both
    /// get the first one's.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn meta_set_if_absent(&self, key: &str, value: &[u8]) -> Result<Vec<u8>, StoreError> {
        let sql = sql!(self, memory => memory.meta_set_if_absent(key, value));
        let sealed = sql.sealer(Scope::System).await?.seal(place(key), value)?;
        let text = "INSERT INTO instance (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
        if sql.db.write(text, args![key, sealed]).await? > 0 {
            return Ok(value.to_vec());
        }
        self.meta_get(key).await?.ok_or(StoreError::NotFound)
    }

    /// Sets a value.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn meta_set(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.meta_set(key, value));
        let sealed = sql.sealer(Scope::System).await?.seal(place(key), value)?;
        sql.db.write(SET, args![key, sealed]).await.map(drop)
    }

    /// Sets a value where there is one, and says whether there was.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn meta_replace(&self, key: &str, value: &[u8]) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.meta_replace(key, value));
        let sealed = sql.sealer(Scope::System).await?.seal(place(key), value)?;
        Ok(sql.db.write("UPDATE instance SET value = $2 WHERE key = $1", args![key, sealed]).await? > 0)
    }

    /// A stop switch of a workspace or of everything, for [`Doing::Halt`](crate::row::Doing); nothing is changed yet.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn switch(&self, of: Option<WorkspaceId>, value: Option<&[u8]>) -> Result<Switch, StoreError> {
        let key = halt_key(of);
        let sql = sql!(self, _memory => Ok(Switch { key, value: value.map(<[u8]>::to_vec) }));
        let sealer = sql.sealer(Scope::System).await?;
        let value = value.map(|value| sealer.seal(place(&key), value)).transpose()?;
        Ok(Switch { key, value })
    }
}

/// Where the stop switch of a workspace, or of everything, is kept while it is on. What counts for a call looks there, too.
#[must_use]
pub fn halt_key(of: Option<WorkspaceId>) -> String {
    of.map_or_else(|| "stop instance".to_owned(), |workspace| format!("stop {workspace}"))
}

/// Turns a stop switch.
pub(crate) async fn turn(tx: &mut Tx, switch: &Switch) -> Result<(), StoreError> {
    let key = switch.key.as_str();
    let turned = match &switch.value {
        Some(value) => tx.run(SET, args![key, value.clone()]).await?,
        None => tx.run("DELETE FROM instance WHERE key = $1", args![key]).await?,
    };
    if turned == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}

const fn place(key: &str) -> Place<'_> {
    Place::Column { table: "instance", column: "value", id: key }
}
