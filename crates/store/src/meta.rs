//! Values of the instance itself (its signing key, what was set up once), sealed under the instance's own key.

use crate::seal::{Place, Scope};
use crate::value::args;
use crate::{Store, StoreError};

impl Store {
    /// A value.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it does not open.
    pub async fn meta_get(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = sql!(self, memory => memory.meta_get(key));
        let row = sql.db.read_one("SELECT value FROM instance WHERE key = $1", args![key]).await?;
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
        let text =
            "INSERT INTO instance (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
        sql.db.write(text, args![key, sealed]).await.map(drop)
    }
}

const fn place(key: &str) -> Place<'_> {
    Place::Column { table: "instance", column: "value", id: key }
}
