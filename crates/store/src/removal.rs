//! Taking away notebooks and whole workspaces. What they held goes; that there was something, and the chains of its runs, stays.

use adjutant_core::id::{NotebookId, WorkspaceId};
use adjutant_core::run::chain::StreamId;

use crate::StoreError;
use crate::db::{Dialect, Tx};
use crate::log::erase;
use crate::queue::now;
use crate::seal::Scope;
use crate::value::args;

/// What a workspace has beside its logs, of which nothing is left.
const TABLES: [&str; 13] = [
    "waiting_messages",
    "chats",
    "agents",
    "agent_versions",
    "kv",
    "rules",
    "budgets",
    "provider_keys",
    "file_marks",
    "audit",
    "tokens",
    "invites",
    "members",
];

/// Takes a notebook away, in the transaction that records it, unless a run works on it.
pub(crate) async fn remove_notebook(tx: &mut Tx, scope: Scope, id: NotebookId) -> Result<(), StoreError> {
    let open = "SELECT id FROM runs WHERE workspace = $1 AND notebook = $2 AND ended_at IS NULL LIMIT 1";
    if tx.row(open, args![scope, id]).await?.is_some() {
        return Err(StoreError::Conflict("a run works on the notebook".to_owned()));
    }
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

/// Takes a workspace away, in the transaction that records it, once all its runs have ended and are erased. Its own log is
/// erased with it; the names of others are free again.
pub(crate) async fn close_workspace(tx: &mut Tx, id: WorkspaceId) -> Result<(), StoreError> {
    let left = "SELECT id FROM runs WHERE workspace = $1 AND (ended_at IS NULL OR erased_at IS NULL) LIMIT 1";
    if tx.row(left, args![id]).await?.is_some() {
        return Err(StoreError::Conflict("the workspace still has a run that is not erased".to_owned()));
    }
    let now = now(tx.dialect());
    let text = format!(
        "UPDATE workspaces SET closed_at = {now}, slug = id, name = '', content_filter = '[]', tools = NULL, \
         providers = NULL, default_model = NULL, keep_runs = NULL WHERE id = $1 AND closed_at IS NULL"
    );
    if tx.run(text, args![id]).await? == 0 {
        return Err(StoreError::NotFound);
    }
    erase(tx, id, Scope::Workspace(id), StreamId::Workspace(id), None).await?;
    if tx.dialect() == Dialect::Sqlite {
        let text = "DELETE FROM files_text WHERE rowid IN (SELECT number FROM files WHERE workspace = $1)";
        tx.run(text, args![id]).await?;
    }
    for table in TABLES.iter().chain(&["files", "notebooks"]) {
        tx.run(format!("DELETE FROM {table} WHERE workspace = $1"), args![id]).await?;
    }
    Ok(())
}
