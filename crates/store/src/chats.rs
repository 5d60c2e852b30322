//! Chats: threads of runs. Their tip moves only with an append.

use adjutant_core::id::{ChatId, RunId, WorkspaceId};

use crate::keys::Sealer;
use crate::row::{ChatFilter, ChatRow};
use crate::runs::Wanted;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, agent, notebook, owner, title, tip, forked_from, created_at, shared, alias";

impl Store {
    /// Adds a chat.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken, [`StoreError::NotFound`] when there is no such workspace.
    pub async fn create_chat(&self, row: &ChatRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_chat(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let title = sealer.seal(title_place(&row.id.to_string()), row.title.as_bytes())?;
        let text = "INSERT INTO chats (workspace, id, agent, notebook, owner, title, tip, forked_from, created_at, \
                    shared, alias) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
        let args = args![
            row.workspace,
            row.id,
            row.agent,
            row.notebook,
            row.owner,
            title,
            row.tip,
            row.forked_from,
            row.created_at,
            row.shared,
            &row.alias,
        ];
        sql.db.write(text, args).await.map(drop)
    }

    /// One chat.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chat(&self, workspace: WorkspaceId, id: ChatId) -> Result<Option<ChatRow>, StoreError> {
        let sql = sql!(self, memory => memory.chat(workspace, id));
        let text = format!("SELECT {COLUMNS} FROM chats WHERE workspace = $1 AND id = $2");
        let Some(row) = sql.db.read_one(text, args![workspace, id]).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// The chat that a client named like this.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chat_by_alias(&self, workspace: WorkspaceId, alias: &str) -> Result<Option<ChatRow>, StoreError> {
        let sql = sql!(self, memory => memory.chat_by_alias(workspace, alias));
        let text = format!("SELECT {COLUMNS} FROM chats WHERE workspace = $1 AND alias = $2");
        let Some(row) = sql.db.read_one(text, args![workspace, alias]).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Gives a chat another title and says who may see it; says whether there is such a chat.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn change_chat(
        &self,
        workspace: WorkspaceId,
        id: ChatId,
        title: &str,
        shared: bool,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.change_chat(workspace, id, title, shared));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let title = sealer.seal(title_place(&id.to_string()), title.as_bytes())?;
        let text = "UPDATE chats SET title = $3, shared = $4 WHERE workspace = $1 AND id = $2";
        Ok(sql.db.write(text, args![workspace, id, title, shared]).await? > 0)
    }

    /// Takes a chat away, if its branch still ends where the caller saw it end. No: it has gone on, or there is none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn delete_chat(
        &self,
        workspace: WorkspaceId,
        id: ChatId,
        tip: Option<RunId>,
    ) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.delete_chat(workspace, id, tip));
        let text = "DELETE FROM chats WHERE workspace = $1 AND id = $2 AND COALESCE(tip, '') = $3";
        let tip = tip.map_or_else(String::new, |tip| tip.to_string());
        Ok(sql.db.write(text, args![workspace, id, tip]).await? > 0)
    }

    /// The chats of a workspace, newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chats(
        &self,
        workspace: WorkspaceId,
        filter: &ChatFilter,
        limit: u32,
    ) -> Result<Vec<ChatRow>, StoreError> {
        let sql = sql!(self, memory => memory.chats(workspace, filter, limit));
        let mut wanted = Wanted::new(workspace);
        wanted.equal("agent", filter.agent);
        wanted.also("id <", filter.before);
        wanted.also("(shared = 1 OR owner =", filter.visible_to);
        wanted.close(filter.visible_to.is_some());
        let (text, args) = wanted.select(COLUMNS, "chats", "id DESC", limit);
        let rows = sql.db.scan(text, args).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        rows.into_iter().map(|row| read(workspace, row, &sealer)).collect()
    }
}

pub(crate) const fn title_place(id: &str) -> Place<'_> {
    Place::Column { table: "chats", column: "title", id }
}

fn read(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<ChatRow, StoreError> {
    let id: ChatId = row.take()?;
    Ok(ChatRow {
        id,
        workspace,
        agent: row.take()?,
        notebook: row.take()?,
        owner: row.take()?,
        title: sealer.open_text(title_place(&id.to_string()), row.take()?)?,
        tip: row.take()?,
        forked_from: row.take()?,
        created_at: row.take()?,
        shared: row.take()?,
        alias: row.take()?,
    })
}
