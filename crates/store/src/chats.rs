//! Chats: threads of runs. Their tip moves only with an append.

use adjutant_core::id::{AgentId, ChatId, WorkspaceId};

use crate::keys::Sealer;
use crate::row::ChatRow;
use crate::runs::Wanted;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, agent, notebook, owner, title, tip, forked_from, created_at";

impl Store {
    /// Adds a chat.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken, [`StoreError::NotFound`] when there is no such workspace.
    pub async fn create_chat(&self, row: &ChatRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_chat(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let title = sealer.seal(title_place(&row.id.to_string()), row.title.as_bytes())?;
        let text = "INSERT INTO chats (workspace, id, agent, notebook, owner, title, tip, forked_from, created_at) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
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

    /// The chats of a workspace (of one agent, if it is named), newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chats(
        &self,
        workspace: WorkspaceId,
        agent: Option<AgentId>,
        limit: u32,
    ) -> Result<Vec<ChatRow>, StoreError> {
        let sql = sql!(self, memory => memory.chats(workspace, agent, limit));
        let mut wanted = Wanted::new(workspace);
        wanted.equal("agent", agent);
        let (text, args) = wanted.select(COLUMNS, "chats", "id DESC", limit);
        let rows = sql.db.read(text, args).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        rows.into_iter().map(|row| read(workspace, row, &sealer)).collect()
    }
}

const fn title_place(id: &str) -> Place<'_> {
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
    })
}
