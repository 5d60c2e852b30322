//! Chats: threads of runs. Their tip moves only with an append.

use adjutant_core::id::{ChatId, RunId, UserId, WorkspaceId};

use crate::keys::Sealer;
use crate::row::{ChatFilter, ChatRow};
use crate::runs::Wanted;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, agent, notebook, owner, title, tip, forked_from, created_at, shared, alias, model, metadata";

impl Store {
    /// Adds a chat.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken, [`StoreError::NotFound`] when there is no such workspace.
    pub async fn create_chat(&self, row: &ChatRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.create_chat(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let title = sealer.seal(title_place(&row.id.to_string()), row.title.as_bytes())?;
        let metadata = seal_fields(&sealer, row.id, row.metadata.as_deref())?;
        let text = "INSERT INTO chats (workspace, id, agent, notebook, owner, title, tip, forked_from, created_at, \
                    shared, alias, model, metadata) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
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
            row.alias.as_deref().map(|alias| kept_alias(row.owner, alias)),
            &row.model,
            metadata,
        ];
        sql.write_work(text, args).await.map(drop)
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

    /// The chat of a person that a client of theirs named like this.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chat_by_alias(
        &self,
        workspace: WorkspaceId,
        owner: UserId,
        alias: &str,
    ) -> Result<Option<ChatRow>, StoreError> {
        let sql = sql!(self, memory => memory.chat_by_alias(workspace, owner, alias));
        let text = format!("SELECT {COLUMNS} FROM chats WHERE workspace = $1 AND alias IN ($2, $3) AND owner = $4");
        let args = args![workspace, kept_alias(owner, alias), alias, owner];
        let Some(row) = sql.db.read_one(text, args).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Gives a chat the title, the model, the free fields and the readers of this row; says whether there is such a chat.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn change_chat(&self, row: &ChatRow) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.change_chat(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let title = sealer.seal(title_place(&row.id.to_string()), row.title.as_bytes())?;
        let metadata = seal_fields(&sealer, row.id, row.metadata.as_deref())?;
        let text =
            "UPDATE chats SET title = $3, shared = $4, model = $5, metadata = $6 WHERE workspace = $1 AND id = $2";
        let args = args![row.workspace, row.id, title, row.shared, &row.model, metadata];
        Ok(sql.write_work(text, args).await? > 0)
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
        Ok(sql.write_work(text, args![workspace, id, tip]).await? > 0)
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

const fn fields_place(id: &str) -> Place<'_> {
    Place::Column { table: "chats", column: "metadata", id }
}

fn seal_fields(sealer: &Sealer, id: ChatId, fields: Option<&str>) -> Result<Option<Vec<u8>>, StoreError> {
    let id = id.to_string();
    fields.map(|fields| sealer.seal(fields_place(&id), fields.as_bytes())).transpose()
}

/// A name as its column holds it, which is unique in a workspace: after the person, so that everybody has all names to
/// themselves. Older rows hold the bare name.
fn kept_alias(owner: UserId, alias: &str) -> String {
    format!("{owner} {alias}")
}

fn read(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<ChatRow, StoreError> {
    let id: ChatId = row.take()?;
    let name = id.to_string();
    let mut chat = ChatRow {
        id,
        workspace,
        agent: row.take()?,
        notebook: row.take()?,
        owner: row.take()?,
        title: sealer.open_text(title_place(&name), row.take()?)?,
        tip: row.take()?,
        forked_from: row.take()?,
        created_at: row.take()?,
        shared: row.take()?,
        alias: row.take()?,
        model: row.take()?,
        metadata: row
            .take::<Option<Vec<u8>>>()?
            .map(|fields| sealer.open_text(fields_place(&name), fields))
            .transpose()?,
    };
    let bare = |kept: String| kept.strip_prefix(&kept_alias(chat.owner, "")).map(str::to_owned).unwrap_or(kept);
    chat.alias = chat.alias.take().map(bare);
    Ok(chat)
}
