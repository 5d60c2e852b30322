//! What is kept and how much it is: sizes of a workspace, the runs that are old enough to be forgotten, and who of several
//! nodes does such chores.

use adjutant_core::id::{ChatId, NodeId, RunId, WorkspaceId};
use adjutant_core::run::chain::StreamId;
use adjutant_core::time::Time;

use crate::chats::title_place;
use crate::db::Dialect;
use crate::fault;
use crate::log::erase;
use crate::queue::now;
use crate::seal::Scope;
use crate::value::{Row, args};
use crate::{Store, StoreError};

/// What a workspace holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Its runs.
    pub runs: u64,
    /// Those that have not ended.
    pub open: u64,
    /// Those whose words were erased.
    pub erased: u64,
    /// Events of its runs.
    pub events: u64,
    /// Bytes of their bodies, as they are stored.
    pub event_bytes: u64,
    /// Long texts that events refer to.
    pub contents: u64,
    /// Their bytes, as they are stored.
    pub content_bytes: u64,
    /// Bytes of its audit log, as they are stored.
    pub audit_bytes: u64,
}

/// Runs that ended before a moment, and have not been erased.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OldRuns {
    /// How many.
    pub runs: u64,
    /// Bytes that erasing them frees, as they are stored.
    pub bytes: u64,
    /// Runs that began before it and have not ended, or wait for a decision: they stay.
    pub open: u64,
}

/// A place in the list of old runs.
pub type OldPlace = (Time, RunId);

/// Runs that may be erased: they have ended, nobody is asked about them, and they were not erased before.
const ERASABLE: &str = "ended_at IS NOT NULL AND erased_at IS NULL AND NOT EXISTS (SELECT 1 FROM approvals \
     WHERE approvals.workspace = runs.workspace AND approvals.run = runs.id AND approvals.status = 'pending')";

/// The title of a chat is what was said first in it.
const ERASE_TITLE: &str = "UPDATE chats SET title = $3, metadata = NULL WHERE workspace = $1 AND id = $2 AND NOT EXISTS (\
     SELECT 1 FROM runs WHERE runs.workspace = $1 AND runs.chat = $2 AND runs.erased_at IS NULL)";
/// The title of a chat of which nothing is left.
pub(crate) const ERASED_TITLE: &str = "(erased)";

impl Store {
    /// What a workspace holds. Looks at a row of each run, and at no body of a run.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn sizes(&self, workspace: WorkspaceId) -> Result<Sizes, StoreError> {
        let sql = sql!(self, memory => memory.sizes(workspace));
        let text = "SELECT count(*), count(*) - count(ended_at), count(erased_at), \
                    CAST(coalesce(sum(head_seq), 0) AS BIGINT), CAST(coalesce(sum(bytes), 0) AS BIGINT) \
                    FROM runs WHERE workspace = $1";
        let mut runs = only(sql.db.scan(text, args![workspace]).await?)?;
        let text = "SELECT count(*), CAST(coalesce(sum(length(bytes)), 0) AS BIGINT) FROM blocks WHERE workspace = $1";
        let mut contents = only(sql.db.scan(text, args![workspace]).await?)?;
        let text = "SELECT CAST(coalesce(sum(length(body)), 0) AS BIGINT) FROM events \
                    WHERE workspace = $1 AND stream = $2";
        let mut audit = only(sql.db.scan(text, args![workspace, StreamId::Workspace(workspace)]).await?)?;
        Ok(Sizes {
            runs: runs.take()?,
            open: runs.take()?,
            erased: runs.take()?,
            events: runs.take()?,
            event_bytes: runs.take()?,
            contents: contents.take()?,
            content_bytes: contents.take()?,
            audit_bytes: audit.take()?,
        })
    }

    /// How much there is of runs that ended before a moment.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn old_runs(&self, workspace: WorkspaceId, before: Time) -> Result<OldRuns, StoreError> {
        let sql = sql!(self, memory => memory.old_runs(workspace, before));
        let text = format!(
            "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM runs \
             WHERE workspace = $1 AND ended_at < $2 AND {ERASABLE}"
        );
        let mut old = only(sql.db.scan(text, args![workspace, before]).await?)?;
        // Contents that only they use: what another run or the audit refers to stays.
        let text = "SELECT CAST(coalesce(sum(length(bytes)), 0) AS BIGINT) FROM blocks WHERE workspace = $1 \
                    AND EXISTS (SELECT 1 FROM block_refs mine WHERE mine.workspace = $1 AND mine.hash = blocks.hash) \
                    AND NOT EXISTS (SELECT 1 FROM block_refs other \
                    LEFT JOIN runs ON runs.workspace = other.workspace AND runs.id = other.stream \
                    WHERE other.workspace = $1 AND other.hash = blocks.hash \
                    AND (runs.id IS NULL OR runs.ended_at IS NULL OR runs.ended_at >= $2))";
        let mut contents = only(sql.db.scan(text, args![workspace, before]).await?)?;
        let text = format!(
            "SELECT count(*) FROM runs WHERE workspace = $1 AND created_at < $2 AND erased_at IS NULL \
             AND NOT ({ERASABLE})"
        );
        let mut open = only(sql.db.scan(text, args![workspace, before]).await?)?;
        let runs = old.take()?;
        let bytes = old.take::<u64>()? + contents.take::<u64>()?;
        Ok(OldRuns { runs, bytes, open: open.take()? })
    }

    /// Runs that ended before a moment and may be erased, in the order they ended, after a place.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn list_old_runs(
        &self,
        workspace: WorkspaceId,
        before: Time,
        after: Option<OldPlace>,
        limit: u32,
    ) -> Result<Vec<OldPlace>, StoreError> {
        let sql = sql!(self, memory => memory.list_old_runs(workspace, before, after, limit));
        let place = match after {
            Some(_) => "AND (ended_at > $4 OR (ended_at = $4 AND id > $5))",
            None => "",
        };
        let text = format!(
            "SELECT ended_at, id FROM runs WHERE workspace = $1 AND ended_at < $2 AND {ERASABLE} {place} \
             ORDER BY ended_at, id LIMIT $3"
        );
        let mut args = args![workspace, before, limit];
        if let Some((ended, run)) = after {
            args.extend(args![ended, run]);
        }
        let rows = sql.db.scan(text, args).await?;
        rows.into_iter().map(|mut row| Ok((row.take()?, row.take()?))).collect()
    }

    /// Forgets what was said in a run, as [`Store::erase_bodies`] does, if it may be erased; says how many bodies were, or
    /// none where it may not, or was erased before.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn erase_run(&self, workspace: WorkspaceId, run: RunId) -> Result<Option<u64>, StoreError> {
        let sql = sql!(self, memory => memory.erase_run(workspace, run));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let mut tx = sql.db.begin().await?;
        // Looked at with the row held: somebody may have let it go on since it was listed.
        let hold = match tx.dialect() {
            Dialect::Sqlite => "",
            Dialect::Postgres => "FOR NO KEY UPDATE OF runs",
        };
        let text = format!("SELECT chat FROM runs WHERE workspace = $1 AND id = $2 AND {ERASABLE} {hold}");
        let Some(mut row) = tx.row(text, args![workspace, run]).await? else {
            tx.roll_back().await?;
            return Ok(None);
        };
        let chat: ChatId = row.take()?;
        let title = sealer.seal(title_place(&chat.to_string()), ERASED_TITLE.as_bytes())?;
        let title = (ERASE_TITLE, args![workspace, chat, title]);
        let erased = erase(&mut tx, workspace, Scope::Workspace(workspace), StreamId::Run(run), Some(title)).await?;
        tx.commit().await?;
        fault::point("erase.after");
        Ok(Some(erased))
    }

    /// Makes a chore this node's, unless another node that is alive has it. What is done twice all the same, because a node
    /// was taken for dead, must do no harm.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn take_chore(&self, name: &str, node: NodeId) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => Ok(true));
        let text = format!(
            "INSERT INTO chores (name, node) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET node = excluded.node \
             WHERE chores.node = excluded.node OR NOT EXISTS (\
             SELECT 1 FROM nodes WHERE nodes.id = chores.node AND nodes.expires > {now})",
            now = now(sql.db.dialect())
        );
        Ok(sql.db.write(text, args![name, node]).await? > 0)
    }

    /// Gives a chore of this node to whoever wants it next.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn leave_chore(&self, name: &str, node: NodeId) -> Result<(), StoreError> {
        let sql = sql!(self, memory => Ok(()));
        sql.db.write("DELETE FROM chores WHERE name = $1 AND node = $2", args![name, node]).await.map(drop)
    }
}

fn only(rows: Vec<Row>) -> Result<Row, StoreError> {
    rows.into_iter().next().ok_or_else(|| StoreError::Corrupt("a sum without a row".into()))
}
