//! Taking away notebooks and whole workspaces. What they held goes; that there was something, and the chains of its runs, stays.
//! A workspace is gone with one short transaction, and its data key with it; what may be much is swept up after it, in parts.

use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::run::status::Status;

use crate::db::{Dialect, Tx};
use crate::log::erase;
use crate::queue::now;
use crate::seal::Scope;
use crate::value::args;
use crate::{Sql, Store, StoreError};

/// What a workspace has a little of: it goes with the workspace.
const FEW: [&str; 9] =
    ["waiting_messages", "agents", "rules", "budgets", "provider_keys", "tokens", "invites", "members", "notebooks"];

/// What a workspace may have much of, and what tells its rows apart: it is swept up. Contents that an append put there before it
/// failed are found here, too.
const MANY: [(&str, &str); 8] = [
    ("files", "number"),
    ("file_marks", "notebook, path, hash"),
    ("chats", "id"),
    ("agent_versions", "agent, version"),
    ("kv", "agent, key"),
    ("audit", "time, stream, seq"),
    ("block_refs", "stream, hash"),
    ("blocks", "hash"),
];

/// Rows of a part: others write between two of them.
const PART: u64 = 500;

/// Runs that have not ended, by the index of their statuses: a workspace may have many that have.
fn open_runs(also: &str) -> String {
    let open = Status::ALL.into_iter().filter(|status| !status.is_end());
    let words: Vec<_> = open.map(|status| format!("'{}'", status.word())).collect();
    let words = words.join(", ");
    format!("SELECT id FROM runs WHERE workspace = $1 AND status IN ({words}) AND ended_at IS NULL{also} LIMIT 1")
}

/// Takes a notebook away, in the transaction that records it, unless a run works on it. Nobody starts one meanwhile:
/// [`take_turns`](crate::rules::take_turns).
pub(crate) async fn remove_notebook(tx: &mut Tx, scope: Scope, id: NotebookId) -> Result<(), StoreError> {
    if tx.row(open_runs(" AND notebook = $2"), args![scope, id]).await?.is_some() {
        return Err(StoreError::Conflict("a run works on the notebook".to_owned()));
    }
    tx.overwrite().await?;
    if tx.dialect() == Dialect::Sqlite {
        let text = "DELETE FROM files_text WHERE rowid IN (\
                    SELECT number FROM files WHERE workspace = $1 AND notebook = $2)";
        tx.run(text, args![scope, id]).await?;
    }
    tx.run("DELETE FROM files WHERE workspace = $1 AND notebook = $2", args![scope, id]).await?;
    tx.run("DELETE FROM file_marks WHERE workspace = $1 AND notebook = $2", args![scope, id]).await?;
    match tx.run("DELETE FROM notebooks WHERE workspace = $1 AND id = $2", args![scope, id]).await? {
        0 => Err(StoreError::NotFound),
        _ => Ok(()),
    }
}

/// Takes a workspace away, in the transaction that records it, once all its runs have ended and are erased. Without its data key
/// nobody reads any more what was sealed in it; the names of others are free again. What is left is for
/// [`Store::sweep_workspace`].
pub(crate) async fn close_workspace(tx: &mut Tx, id: WorkspaceId) -> Result<(), StoreError> {
    let kept = "SELECT id FROM runs WHERE workspace = $1 AND ended_at IS NOT NULL AND erased_at IS NULL LIMIT 1";
    for text in [open_runs(""), kept.to_owned()] {
        if tx.row(text, args![id]).await?.is_some() {
            return Err(StoreError::Conflict("the workspace still has a run that is not erased".to_owned()));
        }
    }
    let now = now(tx.dialect());
    let text = format!(
        "UPDATE workspaces SET closed_at = {now}, slug = id, name = '', content_filter = '[]', tools = NULL, \
         providers = NULL, default_model = NULL, keep_runs = NULL WHERE id = $1 AND closed_at IS NULL"
    );
    if tx.run(text, args![id]).await? == 0 {
        return Err(StoreError::NotFound);
    }
    tx.overwrite().await?;
    for table in FEW.iter().chain(&["data_keys"]) {
        tx.run(format!("DELETE FROM {table} WHERE workspace = $1"), args![id]).await?;
    }
    Ok(())
}

impl Store {
    /// Takes away what is left of a workspace that was taken away, in parts, so that nobody waits for it. Asked again it goes on
    /// where it was interrupted; where nothing is left, it finds that out and changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] for a workspace that is still there, and those of the database.
    pub async fn sweep_workspace(&self, id: WorkspaceId) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.sweep_workspace(id));
        sql.keys.forget(Scope::Workspace(id));
        let closed = "SELECT id FROM workspaces WHERE id = $1 AND closed_at IS NOT NULL";
        if sql.db.read_one(closed, args![id]).await?.is_none() {
            return Err(StoreError::Conflict("the workspace was not taken away".to_owned()));
        }
        let mut swept = false;
        let said = "SELECT seq FROM events WHERE workspace = $1 AND stream = $2 AND body IS NOT NULL LIMIT 1";
        if sql.db.read_one(said, args![id, StreamId::Workspace(id)]).await?.is_some() {
            let mut tx = sql.db.begin().await?;
            erase(&mut tx, id, Scope::Workspace(id), StreamId::Workspace(id), None).await?;
            tx.commit().await?;
            swept = true;
        }
        for (table, key) in MANY {
            while sweep_part(sql, id, table, key).await? {
                swept = true;
            }
        }
        // What was overwritten is in the log of SQLite, and the file still holds what it was.
        if swept { sql.db.write_back().await } else { Ok(()) }
    }
}

/// Takes some rows of a table away; says whether there were any.
async fn sweep_part(sql: &Sql, id: WorkspaceId, table: &str, key: &str) -> Result<bool, StoreError> {
    let any = format!("SELECT workspace FROM {table} WHERE workspace = $1 LIMIT 1");
    if sql.db.read_one(any, args![id]).await?.is_none() {
        return Ok(false);
    }
    let mut tx = sql.db.begin().await?;
    tx.overwrite().await?;
    let text = match tx.dialect() {
        Dialect::Sqlite => {
            let some = format!("SELECT {key} FROM {table} WHERE workspace = $1 ORDER BY {key} LIMIT {PART}");
            if table == "files" {
                tx.run(format!("DELETE FROM files_text WHERE rowid IN ({some})"), args![id]).await?;
            }
            format!("DELETE FROM {table} WHERE workspace = $1 AND ({key}) IN ({some})")
        }
        Dialect::Postgres => {
            let some = format!("SELECT ctid FROM {table} WHERE workspace = $1 LIMIT {PART}");
            format!("DELETE FROM {table} WHERE ctid = ANY (ARRAY({some}))")
        }
    };
    tx.run(text, args![id]).await?;
    tx.commit().await?;
    Ok(true)
}
