//! Marks on files that an agent wrote after it had read untrusted content. A mark is about one content of one file: whoever
//! changes the file ends it, and whoever puts the content back finds it again.

use adjutant_core::content::Hash;
use adjutant_core::id::{NotebookId, WorkspaceId};

use crate::row::MarkRow;
use crate::value::args;
use crate::{Store, StoreError};

impl Store {
    /// The marks on a file and on everything below it, if it is a folder.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn marks(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
    ) -> Result<Vec<MarkRow>, StoreError> {
        let sql = sql!(self, memory => memory.marks(workspace, notebook, path));
        let (from, to) = below(path);
        let text = "SELECT path, hash FROM file_marks WHERE workspace = $1 AND notebook = $2 \
                    AND (path = $3 OR (path >= $4 AND path < $5)) ORDER BY path, hash";
        let rows = sql.db.read(text, args![workspace, notebook, path, from, to]).await?;
        let read = |mut row: crate::value::Row| {
            Ok(MarkRow { notebook, path: row.take::<String>()?, hash: row.take::<Hash>()? })
        };
        rows.into_iter().map(read).collect()
    }

    /// Ends the marks of a file: a member has looked at it, or saved it.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn clear_marks(
        &self,
        workspace: WorkspaceId,
        notebook: NotebookId,
        path: &str,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.clear_marks(workspace, notebook, path));
        let text = "DELETE FROM file_marks WHERE workspace = $1 AND notebook = $2 AND path = $3";
        sql.db.write(text, args![workspace, notebook, path]).await.map(drop)
    }
}

/// The first path below a folder, and the first that is behind all of them: `0` is the character after `/`.
pub(crate) fn below(path: &str) -> (String, String) {
    let folder = path.trim_end_matches('/');
    (format!("{folder}/"), format!("{folder}0"))
}
