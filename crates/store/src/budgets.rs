//! What workspaces, people and keys may spend. What a budget says is not looked at here.

use adjutant_core::id::WorkspaceId;

use crate::row::BudgetRow;
use crate::value::{Row, args};
use crate::{Store, StoreError};

impl Store {
    /// Saves a budget in place of the one before.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn save_budget(&self, row: &BudgetRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.save_budget(row));
        let text = "INSERT INTO budgets (workspace, kind, subject, body, saved_at) VALUES ($1, $2, $3, $4, $5) \
                    ON CONFLICT (workspace, kind, subject) DO UPDATE SET body = excluded.body, saved_at = excluded.saved_at";
        let args = args![row.workspace, &row.kind, &row.subject, &row.body, row.saved_at];
        sql.db.write(text, args).await.map(drop)
    }

    /// The budgets of a workspace.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn budgets(&self, workspace: WorkspaceId) -> Result<Vec<BudgetRow>, StoreError> {
        let sql = sql!(self, memory => memory.budgets(workspace));
        let text = "SELECT kind, subject, body, saved_at FROM budgets WHERE workspace = $1 ORDER BY kind, subject";
        sql.db.read_kept(text, args![workspace]).await?.into_iter().map(|row| read(workspace, row)).collect()
    }

    /// Removes a budget; false when there is none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn remove_budget(&self, workspace: WorkspaceId, kind: &str, subject: &str) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.remove_budget(workspace, kind, subject));
        let text = "DELETE FROM budgets WHERE workspace = $1 AND kind = $2 AND subject = $3";
        Ok(sql.db.write(text, args![workspace, kind, subject]).await? > 0)
    }
}

fn read(workspace: WorkspaceId, mut row: Row) -> Result<BudgetRow, StoreError> {
    let (kind, subject, body, saved_at) = (row.take()?, row.take()?, row.take()?, row.take()?);
    Ok(BudgetRow { workspace, kind, subject, body, saved_at })
}
