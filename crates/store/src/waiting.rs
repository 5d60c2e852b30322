//! Messages that wait until their chat is free. Each has the id of the run it will be, so it becomes one run at the most.

use adjutant_core::id::{ChatId, RunId, UserId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use crate::db::Tx;
use crate::keys::Sealer;
use crate::row::Change;
use crate::seal::{Place, Scope};
use crate::value::{Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "id, chat, person, created_at, body, failed";

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingRow {
    /// The run it will be.
    pub id: RunId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its chat.
    pub chat: ChatId,
    /// Who said it.
    pub person: UserId,
    /// When.
    pub created_at: Time,
    /// What a run is started from: JSON, sealed at rest.
    pub body: String,
    /// Whether it was to be started and could not: it waits for nothing but to be looked at and taken away.
    pub failed: bool,
}

impl Store {
    /// Adds a message that waits.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the id is taken.
    pub async fn add_waiting(&self, row: &WaitingRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.add_waiting(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let body = sealer.seal(place(&row.id.to_string()), row.body.as_bytes())?;
        let text = "INSERT INTO waiting_messages (workspace, id, chat, person, created_at, body, failed) \
                    VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let args = args![row.workspace, row.id, row.chat, row.person, row.created_at, body, u64::from(row.failed)];
        sql.db.write(text, args).await?;
        self.announce(sql, change(row.id));
        Ok(())
    }

    /// One message that waits.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn waiting_message(&self, workspace: WorkspaceId, id: RunId) -> Result<Option<WaitingRow>, StoreError> {
        let sql = sql!(self, memory => memory.waiting_message(workspace, id));
        let text = format!("SELECT {COLUMNS} FROM waiting_messages WHERE workspace = $1 AND id = $2");
        let Some(row) = sql.db.read_one(text, args![workspace, id]).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Where a message waits.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn find_waiting(&self, id: RunId) -> Result<Option<WorkspaceId>, StoreError> {
        let sql = sql!(self, memory => memory.find_waiting(id));
        let row = sql.db.read_one("SELECT workspace FROM waiting_messages WHERE id = $1", args![id]).await?;
        row.map(|mut row| row.take()).transpose()
    }

    /// The message that is next in a chat.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn next_waiting(&self, workspace: WorkspaceId, chat: ChatId) -> Result<Option<WaitingRow>, StoreError> {
        let sql = sql!(self, memory => memory.next_waiting(workspace, chat));
        let text = format!(
            "SELECT {COLUMNS} FROM waiting_messages WHERE workspace = $1 AND chat = $2 AND failed = 0 ORDER BY id LIMIT 1"
        );
        let Some(row) = sql.db.read_one(text, args![workspace, chat]).await? else { return Ok(None) };
        read(workspace, row, &sql.sealer(Scope::Workspace(workspace)).await?).map(Some)
    }

    /// Writes down why a message could not be started, if it is still there.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn fail_waiting(&self, row: &WaitingRow) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.fail_waiting(row));
        let sealer = sql.sealer(Scope::Workspace(row.workspace)).await?;
        let body = sealer.seal(place(&row.id.to_string()), row.body.as_bytes())?;
        let text = "UPDATE waiting_messages SET failed = 1, body = $3 WHERE workspace = $1 AND id = $2";
        sql.db.write(text, args![row.workspace, row.id, body]).await?;
        self.announce(sql, change(row.id));
        Ok(())
    }

    /// The messages of a chat that wait or could not be started, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn waiting_in(
        &self,
        workspace: WorkspaceId,
        chat: ChatId,
        limit: u32,
    ) -> Result<Vec<WaitingRow>, StoreError> {
        let sql = sql!(self, memory => memory.waiting_in(workspace, chat, limit));
        let text =
            format!("SELECT {COLUMNS} FROM waiting_messages WHERE workspace = $1 AND chat = $2 ORDER BY id LIMIT $3");
        let rows = sql.db.read(text, args![workspace, chat, limit]).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        rows.into_iter().map(|row| read(workspace, row, &sealer)).collect()
    }

    /// Takes a message away that waits; says whether it was there.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn remove_waiting(&self, workspace: WorkspaceId, id: RunId) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.remove_waiting(workspace, id));
        let text = "DELETE FROM waiting_messages WHERE workspace = $1 AND id = $2";
        Ok(sql.db.write(text, args![workspace, id]).await? > 0)
    }

    /// The chats in which somebody waits, and whether their last run has ended.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn chats_waited_for(
        &self,
        limit: u32,
        skip: u32,
    ) -> Result<Vec<(WorkspaceId, ChatId, bool)>, StoreError> {
        let sql = sql!(self, memory => memory.chats_waited_for(limit, skip));
        let text = "SELECT w.workspace, w.chat, CAST(MAX(CASE WHEN c.tip IS NULL OR r.ended_at IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT) \
                    FROM waiting_messages w \
                    JOIN chats c ON c.workspace = w.workspace AND c.id = w.chat \
                    LEFT JOIN runs r ON r.workspace = c.workspace AND r.id = c.tip \
                    WHERE w.failed = 0 GROUP BY w.workspace, w.chat ORDER BY 3 DESC, MIN(w.id) LIMIT $1 OFFSET $2";
        let rows = sql.db.read(text, args![limit, skip]).await?;
        rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?, row.take::<u64>()? == 1))).collect()
    }
}

/// What others are told: the run changed that it will be.
const fn change(id: RunId) -> Change {
    Change::Stream(StreamId::Run(id))
}

const fn place(id: &str) -> Place<'_> {
    Place::Column { table: "waiting_messages", column: "body", id }
}

fn read(workspace: WorkspaceId, mut row: Row, sealer: &Sealer) -> Result<WaitingRow, StoreError> {
    let id: RunId = row.take()?;
    Ok(WaitingRow {
        id,
        workspace,
        chat: row.take()?,
        person: row.take()?,
        created_at: row.take()?,
        body: sealer.open_text(place(&id.to_string()), row.take()?)?,
        failed: row.take::<u64>()? == 1,
    })
}

/// Takes a message away because it becomes a run in the same transaction.
pub(crate) async fn become_run(tx: &mut Tx, workspace: Scope, id: RunId) -> Result<(), StoreError> {
    let text = "DELETE FROM waiting_messages WHERE workspace = $1 AND id = $2 AND failed = 0";
    if tx.run(text, args![workspace, id]).await? == 0 { Err(StoreError::NotFound) } else { Ok(()) }
}
