//! Marks on files that an agent wrote while it had read untrusted content: a path and the content it held then.

use adjutant_core::content::Hash;
use adjutant_core::id::{NotebookId, WorkspaceId};

use crate::value::args;
use crate::{Store, StoreError};

impl Store {
    /// Marks this content of a file.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn mark_file(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
        hash: Hash,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.mark_file(workspace, notebook, path, hash));
        let text = "INSERT INTO file_marks (workspace, notebook, path, hash) VALUES ($1, $2, $3, $4) \
                    ON CONFLICT (workspace, notebook, path) DO UPDATE SET hash = excluded.hash";
        sql.db.write(text, args![workspace, notebook, path, hash]).await.map(drop)
    }

    /// The content that was marked, if the file has a mark.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn file_marks(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
    ) -> Result<Option<Hash>, StoreError> {
        let sql = sql!(self, memory => memory.file_marks(workspace, notebook, path));
        let text = "SELECT hash FROM file_marks WHERE workspace = $1 AND notebook = $2 AND path = $3";
        let row = sql.db.read_one(text, args![workspace, notebook, path]).await?;
        row.map(|mut row| row.take()).transpose()
    }

    /// Ends the mark of a file.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn clear_mark(&self, workspace: WorkspaceId, notebook: NotebookId, path: &str) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.clear_mark(workspace, notebook, path));
        let text = "DELETE FROM file_marks WHERE workspace = $1 AND notebook = $2 AND path = $3";
        sql.db.write(text, args![workspace, notebook, path]).await.map(drop)
    }
}
