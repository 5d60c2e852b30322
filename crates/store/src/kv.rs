//! What agents keep for themselves: one durable map per agent, values sealed. A value keeps the labels of the run that
//! wrote it (rule I1), so that forgetting the run does not wash them off.

use adjutant_core::id::{AgentId, WorkspaceId};
use adjutant_core::label::{Labelled, Labels};

use crate::keys::Sealer;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

impl Store {
    /// Sets a value.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn kv_set(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
        value: &Labelled,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.kv_set(workspace, agent, key, value));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let sealed = sealer.seal(place(&id(agent, key)), value.text.as_bytes())?;
        let Labels { private, untrusted } = value.labels;
        let text = "INSERT INTO kv (workspace, agent, key, value, private, untrusted) VALUES ($1, $2, $3, $4, $5, $6) \
                    ON CONFLICT (workspace, agent, key) DO UPDATE SET value = excluded.value, \
                    private = excluded.private, untrusted = excluded.untrusted";
        sql.db.write(text, args![workspace, agent, key, sealed, private, untrusted]).await.map(drop)
    }

    /// A value.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it does not open.
    pub async fn kv_get(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
    ) -> Result<Option<Labelled>, StoreError> {
        let sql = sql!(self, memory => memory.kv_get(workspace, agent, key));
        let text = "SELECT value, private, untrusted FROM kv WHERE workspace = $1 AND agent = $2 AND key = $3";
        let Some(mut row) = sql.db.read_one(text, args![workspace, agent, key]).await? else { return Ok(None) };
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        labelled(&sealer, &id(agent, key), &mut row).map(Some)
    }

    /// Removes a value and says whether there was one.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn kv_delete(&self, workspace: WorkspaceId, agent: AgentId, key: &str) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.kv_delete(workspace, agent, key));
        let text = "DELETE FROM kv WHERE workspace = $1 AND agent = $2 AND key = $3";
        Ok(sql.db.write(text, args![workspace, agent, key]).await? > 0)
    }

    /// Keys that begin with `prefix`, with their values, in order of their bytes.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a value does not open.
    pub async fn kv_list(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        prefix: &str,
        limit: u32,
    ) -> Result<Vec<(String, Labelled)>, StoreError> {
        let sql = sql!(self, memory => memory.kv_list(workspace, agent, prefix, limit));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        // Compared as text, never as a pattern: a key may hold any character.
        let text = "SELECT key, value, private, untrusted FROM kv WHERE workspace = $1 AND agent = $2 AND key >= $3 \
                    AND substr(key, 1, length($3)) = $3 ORDER BY key LIMIT $4";
        let mut found = Vec::new();
        for mut row in sql.db.read(text, args![workspace, agent, prefix, limit]).await? {
            let key: String = row.take()?;
            let value = labelled(&sealer, &id(agent, &key), &mut row)?;
            found.push((key, value));
        }
        Ok(found)
    }
}

fn labelled(sealer: &Sealer, id: &str, row: &mut Row) -> Result<Labelled, StoreError> {
    let text = sealer.open_text(place(id), row.take()?)?;
    Ok(Labelled { text, labels: Labels { private: row.take()?, untrusted: row.take()? } })
}

fn id(agent: AgentId, key: &str) -> String {
    format!("{agent}|{key}")
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "kv", column: "value", id }
}
