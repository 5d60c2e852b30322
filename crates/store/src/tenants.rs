//! Workspaces, people and notebooks.

use adjutant_core::id::{NotebookId, UserId, WorkspaceId};

use crate::db::Tx;
use crate::keys::{FreshKey, put_fresh};
use crate::people::PUT_MEMBER;
use crate::row::{NotebookRow, UserRow, WorkspaceRow};
use crate::seal::Scope;
use crate::value::{Args, Row, args};
use crate::{Sql, Store, StoreError};

const WORKSPACE: &str = "SELECT id, slug, name, time_zone, created_at, version, content_filter, keep_runs, tools, providers, default_model FROM workspaces";
const USER: &str = "SELECT id, name, created_at FROM users";
const NOTEBOOK: &str = "SELECT workspace, id, slug, linked, created_at FROM notebooks WHERE workspace = $1";

impl Store {
    /// Adds a workspace, with a data key of its own.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id or the slug is taken.
    pub async fn create_workspace(&self, row: &WorkspaceRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_workspace(row));
        let key = sql.keys.fresh(&sql.db, Scope::Workspace(row.id)).await?;
        let mut tx = sql.db.begin().await?;
        insert_workspace(&mut tx, row, &key).await?;
        tx.commit().await
    }

    /// A workspace with its first admin and notebook, for [`Doing::AddWorkspace`](crate::row::Doing); nothing is changed yet.
    ///
    /// # Errors
    /// [`StoreError::WrongKey`] when the master key was replaced since this store was opened.
    pub async fn new_tenant(
        &self,
        row: &WorkspaceRow,
        admin: UserId,
        notebook: &NotebookRow,
    ) -> Result<NewTenant, StoreError> {
        let sql = sql!(self, memory => memory.no_sign_in());
        let key = sql.keys.fresh(&sql.db, Scope::Workspace(row.id)).await?;
        Ok(NewTenant { row: row.clone(), admin, notebook: notebook.clone(), key })
    }

    /// All workspaces, oldest first, also those that were taken away: for the operator and the worker.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn workspaces(&self) -> Result<Vec<WorkspaceRow>, StoreError> {
        let sql = sql!(self, memory => memory.workspaces());
        let rows = sql.db.read(format!("{WORKSPACE} ORDER BY id"), vec![]).await?;
        rows.into_iter().map(read_workspace).collect()
    }

    /// One workspace.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Option<WorkspaceRow>, StoreError> {
        let sql = sql!(self, memory => memory.workspace(id));
        one(sql, format!("{WORKSPACE} WHERE id = $1 AND closed_at IS NULL"), args![id], read_workspace).await
    }

    /// The workspace of this short name.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn workspace_by_slug(&self, slug: &str) -> Result<Option<WorkspaceRow>, StoreError> {
        let sql = sql!(self, memory => memory.workspace_by_slug(slug));
        one(sql, format!("{WORKSPACE} WHERE slug = $1 AND closed_at IS NULL"), args![slug], read_workspace).await
    }

    /// Adds a person.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id or the name is taken.
    pub async fn create_user(&self, row: &UserRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_user(row));
        let text = "INSERT INTO users (id, name, created_at) VALUES ($1, $2, $3)";
        sql.db.write(text, args![row.id, &row.name, row.created_at]).await.map(drop)
    }

    /// All people, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn users(&self) -> Result<Vec<UserRow>, StoreError> {
        let sql = sql!(self, memory => memory.users());
        let rows = sql.db.read(format!("{USER} ORDER BY id"), vec![]).await?;
        rows.into_iter().map(read_user).collect()
    }

    /// The person who signs in with this name.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn user_by_name(&self, name: &str) -> Result<Option<UserRow>, StoreError> {
        let sql = sql!(self, memory => memory.user_by_name(name));
        one(sql, format!("{USER} WHERE name = $1"), args![name], read_user).await
    }

    /// Adds a notebook.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id or the slug is taken, [`StoreError::NotFound`] when there is no such workspace.
    pub async fn create_notebook(&self, row: &NotebookRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_notebook(row));
        let mut tx = sql.db.begin().await?;
        add_notebook(&mut tx, row).await?;
        tx.commit().await
    }

    /// The notebooks of a workspace, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn notebooks(&self, workspace: WorkspaceId) -> Result<Vec<NotebookRow>, StoreError> {
        let sql = sql!(self, memory => memory.notebooks(workspace));
        let rows = sql.db.read_kept(format!("{NOTEBOOK} ORDER BY id"), args![workspace]).await?;
        rows.into_iter().map(read_notebook).collect()
    }

    /// One notebook.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn notebook(&self, workspace: WorkspaceId, id: NotebookId) -> Result<Option<NotebookRow>, StoreError> {
        let sql = sql!(self, memory => memory.notebook(workspace, id));
        one(sql, format!("{NOTEBOOK} AND id = $2"), args![workspace, id], read_notebook).await
    }

    /// The notebook of this short name.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn notebook_by_slug(
        &self,
        workspace: WorkspaceId,
        slug: &str,
    ) -> Result<Option<NotebookRow>, StoreError> {
        let sql = sql!(self, memory => memory.notebook_by_slug(workspace, slug));
        one(sql, format!("{NOTEBOOK} AND slug = $2"), args![workspace, slug], read_notebook).await
    }
}

/// A workspace that is to be made, with its first admin and notebook.
#[derive(Debug, Clone)]
pub struct NewTenant {
    row: WorkspaceRow,
    admin: UserId,
    notebook: NotebookRow,
    key: FreshKey,
}

/// Makes a workspace in the transaction that records it.
pub(crate) async fn add_tenant(tx: &mut Tx, new: &NewTenant) -> Result<(), StoreError> {
    insert_workspace(tx, &new.row, &new.key).await?;
    tx.run(PUT_MEMBER, args![new.row.id, new.admin, "admin", new.row.created_at]).await?;
    add_notebook(tx, &new.notebook).await
}

async fn insert_workspace(tx: &mut Tx, row: &WorkspaceRow, key: &FreshKey) -> Result<(), StoreError> {
    let text = "INSERT INTO workspaces (id, slug, name, time_zone, created_at, version, content_filter, keep_runs, tools, \
                providers, default_model) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let WorkspaceRow { id, slug, name, time_zone, created_at, version, .. } = row;
    let WorkspaceRow { content_filter, keep_runs, tools, providers, default_model, .. } = row;
    let args = args![
        *id,
        slug,
        name,
        time_zone,
        *created_at,
        *version,
        content_filter,
        keep_runs,
        tools,
        providers,
        default_model
    ];
    tx.run(text, args).await?;
    put_fresh(tx, Scope::Workspace(row.id), key).await
}

/// The only row of a statement about what people set up, read.
pub(crate) async fn one<T>(
    sql: &Sql,
    text: String,
    args: Args,
    read: fn(Row) -> Result<T, StoreError>,
) -> Result<Option<T>, StoreError> {
    sql.db.read_kept(text, args).await?.pop().map(read).transpose()
}

fn read_workspace(mut row: Row) -> Result<WorkspaceRow, StoreError> {
    Ok(WorkspaceRow {
        id: row.take()?,
        slug: row.take()?,
        name: row.take()?,
        time_zone: row.take()?,
        created_at: row.take()?,
        version: row.take()?,
        content_filter: row.take()?,
        keep_runs: row.take()?,
        tools: row.take()?,
        providers: row.take()?,
        default_model: row.take()?,
    })
}

/// Saves the settings of a workspace in the transaction that records it.
pub(crate) async fn save_workspace(tx: &mut Tx, row: &WorkspaceRow) -> Result<(), StoreError> {
    let text = "UPDATE workspaces SET name = $2, time_zone = $3, content_filter = $4, keep_runs = $5, tools = $6, \
                providers = $7, default_model = $8, version = $9 WHERE id = $1 AND version = $10";
    let expected = row.version.saturating_sub(1);
    let WorkspaceRow { name, time_zone, content_filter, keep_runs, tools, providers, default_model, .. } = row;
    let args = args![
        row.id,
        name,
        time_zone,
        content_filter,
        keep_runs,
        tools,
        providers,
        default_model,
        row.version,
        expected
    ];
    match tx.run(text, args).await? {
        0 => Err(StoreError::Stale { fenced: false }),
        _ => Ok(()),
    }
}

fn read_user(mut row: Row) -> Result<UserRow, StoreError> {
    Ok(UserRow { id: row.take()?, name: row.take()?, created_at: row.take()? })
}

/// Adds a notebook in the transaction that records it.
pub(crate) async fn add_notebook(tx: &mut Tx, row: &NotebookRow) -> Result<(), StoreError> {
    let text = "INSERT INTO notebooks (workspace, id, slug, linked, created_at) VALUES ($1, $2, $3, $4, $5)";
    tx.run(text, args![row.workspace, row.id, &row.slug, &row.linked, row.created_at]).await.map(drop)
}

/// Gives a notebook another short name in the transaction that records it. Agents reach it by that: what was judged by the old one
/// was judged under an older version of the workspace.
pub(crate) async fn rename_notebook(tx: &mut Tx, scope: Scope, id: NotebookId, slug: &str) -> Result<(), StoreError> {
    let text = "UPDATE notebooks SET slug = $3 WHERE workspace = $1 AND id = $2";
    match tx.run(text, args![scope, id, slug]).await? {
        0 => Err(StoreError::NotFound),
        _ => tx.run("UPDATE workspaces SET version = version + 1 WHERE id = $1", args![scope]).await.map(drop),
    }
}

fn read_notebook(mut row: Row) -> Result<NotebookRow, StoreError> {
    Ok(NotebookRow {
        workspace: row.take()?,
        id: row.take()?,
        slug: row.take()?,
        linked: row.take()?,
        created_at: row.take()?,
    })
}
