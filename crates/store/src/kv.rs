//! What agents keep for themselves: one durable map per agent, values sealed. A value keeps the labels of the run that
//! wrote it (rule I1), so that forgetting the run does not wash them off. Only who drives a run changes a value for it: what a
//! node asked for that has lost the run since must not replace what came after.

use adjutant_core::id::{AgentId, NodeId, RunId, WorkspaceId};
use adjutant_core::label::{Labelled, Labels};

use crate::db::Dialect;
use crate::keys::Sealer;
use crate::row::Writer;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

/// Whoever drives a run, by its claim. What it does counts only while the claim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// The run.
    pub run: RunId,
    /// The node.
    pub node: NodeId,
    /// The epoch of the claim.
    pub epoch: u64,
}

impl From<Owner> for Writer {
    fn from(Owner { node, epoch, .. }: Owner) -> Self {
        Self::Owner { node, epoch }
    }
}

impl Store {
    /// Sets a value, for a run.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace, [`StoreError::Stale`] (fenced) when the run is not the owner's any
    /// more.
    pub async fn kv_set(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
        value: &Labelled,
        owner: Owner,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.kv_set(workspace, agent, key, value, owner));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let sealed = sealer.seal(place(&id(agent, key)), value.text.as_bytes())?;
        let Labels { private, untrusted } = value.labels;
        let text = format!(
            "INSERT INTO kv (workspace, agent, key, value, private, untrusted) SELECT $4, $5, $6, $7, $8, $9 {owned} \
             ON CONFLICT (workspace, agent, key) DO UPDATE SET value = excluded.value, \
             private = excluded.private, untrusted = excluded.untrusted",
            owned = owned(sql.db.dialect())
        );
        let Owner { run, node, epoch } = owner;
        let row = args![run, node, epoch, workspace, agent, key, sealed, private, untrusted];
        match sql.write_work(text, row).await? {
            0 => Err(StoreError::Stale { fenced: true }),
            _ => Ok(()),
        }
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

    /// Removes a value, for a run, and says whether there was one.
    ///
    /// # Errors
    /// [`StoreError::Stale`] (fenced) when the run is not the owner's any more.
    pub async fn kv_delete(
        &self,
        workspace: WorkspaceId,
        agent: AgentId,
        key: &str,
        owner: Owner,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.kv_delete(workspace, agent, key, owner));
        let Owner { run, node, epoch } = owner;
        let owned = owned(sql.db.dialect());
        let text =
            format!("DELETE FROM kv WHERE workspace = $4 AND agent = $5 AND key = $6 AND EXISTS (SELECT 1 {owned})");
        if sql.write_work(text, args![run, node, epoch, workspace, agent, key]).await? > 0 {
            return Ok(true);
        }
        // There was nothing, or the run is another's.
        match sql.db.read_one(format!("SELECT 1 {owned}"), args![run, node, epoch]).await? {
            Some(_) => Ok(false),
            None => Err(StoreError::Stale { fenced: true }),
        }
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

/// The run, as far as it is the owner's. It cannot be given away before what depends on it is committed.
fn owned(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "FROM runs WHERE id = $1 AND owner = $2 AND epoch = $3",
        Dialect::Postgres => "FROM runs WHERE id = $1 AND owner = $2 AND epoch = $3 FOR SHARE",
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
