//! The log itself: appending, reading, blocks, erasing. Never changes an event except to forget its body.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use adjutant_core::content::Hash;
use adjutant_core::id::WorkspaceId;
use adjutant_core::run::chain::{Entry, Head, StreamId};

use crate::db::{Dialect, Tx};
use crate::fault;
use crate::prepare::prepare;
use crate::queue::now;
use crate::row::{Append, Block, Doing};
use crate::seal::{Place, Scope};
use crate::set::Kind::{Bytes, Text};
use crate::set::SetSql;
use crate::statements::BLOCKS;
use crate::value::{Args, args};
use crate::{Store, StoreError};

const EVENTS: &str = "SELECT seq, kind, time, body_hash, body, hash FROM events \
     WHERE workspace = $1 AND stream = $2 AND seq > $3 ORDER BY seq LIMIT $4";

static READ_BLOCKS: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &[("workspace", Text), ("hash", Bytes)],
        "SELECT blocks.hash, blocks.bytes FROM {rows} \
         JOIN blocks ON blocks.workspace = v.workspace AND blocks.hash = v.hash",
    )
});

const ERASE_BODIES: &str = "UPDATE events SET body = NULL WHERE workspace = $1 AND stream = $2 AND body IS NOT NULL";
const ERASE_BLOCKS: &str = "DELETE FROM blocks WHERE workspace = $1 AND hash IN (\
     SELECT mine.hash FROM block_refs mine WHERE mine.workspace = $1 AND mine.stream = $2 AND NOT EXISTS (\
     SELECT 1 FROM block_refs other WHERE other.workspace = $1 AND other.hash = mine.hash AND other.stream <> $2))";
/// Counted where it is erased, so that nobody who remembers what was said can miss it.
const COUNT_ERASURE: &str = "UPDATE workspaces SET erasures = erasures + 1 WHERE id = $1";
const ERASE_REFS: &str = "DELETE FROM block_refs WHERE workspace = $1 AND stream = $2";
const ERASE_SUMMARY: &str = "UPDATE runs SET summary = NULL, bytes = 0, erased_at = ";
const ERASE_PATHS: [&str; 2] = [
    "UPDATE audit SET target = NULL WHERE workspace = $1 AND run = $2",
    "UPDATE calls SET target = NULL WHERE workspace = $1 AND run = $2",
];
const ERASE_CARDS: &str = "UPDATE approvals SET card = NULL WHERE workspace = $1 AND run = $2";

impl Store {
    /// Adds events to a stream, with everything that follows from them, in one transaction. Answered after it is durable;
    /// once queued it happens even when the caller stops waiting.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the head (or the claim, or the chat's tip) is not the expected one,
    /// [`StoreError::Conflict`] for a second result of a call: nothing was written. After [`StoreError::Unavailable`] it
    /// may have been: read the head before trying again.
    pub async fn append(&self, append: Append) -> Result<Head, StoreError> {
        let sql = sql!(self, memory => memory.append(append).await);
        let scope = Scope::of(append.workspace, append.stream).ok_or(StoreError::NotFound)?;
        let sealer = sql.sealer(scope).await?;
        let closed = match &append.doing {
            Some(Doing::CloseWorkspace(workspace)) => Some(*workspace),
            Some(_) | None => None,
        };
        let head = sql.writer.append(prepare(append, scope, &sealer)?).await?;
        if let Some(workspace) = closed {
            sql.keys.forget(Scope::Workspace(workspace));
        }
        Ok(head)
    }

    /// Events of a stream after a sequence number, in order, at most `limit`. What was sealed with a key that is destroyed
    /// counts as erased.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a body does not open.
    pub async fn events(
        &self,
        workspace: WorkspaceId,
        stream: StreamId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let sql = sql!(self, memory => memory.events(workspace, stream, after, limit));
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let sealer = sql.opener(scope).await?;
        let rows = sql.db.read(EVENTS, args![scope, stream, after, limit]).await?;
        let entry = |mut row: crate::value::Row| {
            let (seq, kind, time, body_hash) = (row.take()?, row.take()?, row.take()?, row.take()?);
            let body: Option<Vec<u8>> = row.take()?;
            let body = body.filter(|_| !sealer.is_gone());
            let body = body.map(|body| sealer.open(Place::Event { stream, seq }, body)).transpose()?;
            Ok(Entry { stream, seq, kind, time, body_hash, body, hash: row.take()? })
        };
        rows.into_iter().map(entry).collect()
    }

    /// Blocks by hash; what is erased or was never there is missing in the answer.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a block does not open.
    pub async fn blocks(&self, workspace: WorkspaceId, hashes: &[Hash]) -> Result<HashMap<Hash, Vec<u8>>, StoreError> {
        let sql = sql!(self, memory => memory.blocks(workspace, hashes));
        if hashes.is_empty() {
            return Ok(HashMap::new());
        }
        let sealer = sql.opener(Scope::Workspace(workspace)).await?;
        if sealer.is_gone() {
            return Ok(HashMap::new());
        }
        let keys: Vec<Args> = hashes.iter().map(|hash| args![workspace, *hash]).collect();
        let rows = sql.db.read_set(&READ_BLOCKS, &keys.iter().collect::<Vec<_>>()).await?;
        let block = |mut row: crate::value::Row| {
            let hash: Hash = row.take()?;
            Ok((hash, sealer.open(Place::Block(hash), row.take()?)?))
        };
        rows.into_iter().map(block).collect()
    }

    /// Keeps blocks that no event refers to yet. An append that refers to them names them again, so that erasing its stream
    /// can find them.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn put_blocks(&self, workspace: WorkspaceId, blocks: Vec<Block>) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.put_blocks(workspace, blocks));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let mut rows: BTreeMap<Hash, Args> = BTreeMap::new();
        for block in blocks {
            let sealed = sealer.seal(Place::Block(block.hash), &block.bytes)?;
            rows.insert(block.hash, args![workspace, block.hash, sealed]);
        }
        let mut tx = sql.db.begin().await?;
        tx.run_set(&BLOCKS, &rows.values().collect::<Vec<_>>()).await?;
        tx.commit().await
    }

    /// Forgets what was said in a stream: bodies, blocks that only it used, the run's summary, its inbox cards and
    /// the paths of its calls. Hashes
    /// stay, so that the chain still verifies. Says how many bodies were erased.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the stream belongs to another workspace.
    pub async fn erase_bodies(&self, workspace: WorkspaceId, stream: StreamId) -> Result<u64, StoreError> {
        let sql = sql!(self, memory => memory.erase_bodies(workspace, stream));
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let mut tx = sql.db.begin().await?;
        let erased = erase(&mut tx, workspace, scope, stream, None).await?;
        tx.commit().await?;
        fault::point("erase.after");
        Ok(erased)
    }
}

/// Forgets what was said in a stream, and does one thing more of the kind.
pub(crate) async fn erase(
    tx: &mut Tx,
    workspace: WorkspaceId,
    scope: Scope,
    stream: StreamId,
    also: Option<(&'static str, Args)>,
) -> Result<u64, StoreError> {
    if tx.dialect() == Dialect::Postgres {
        // An append that finds a block here must not lose it to us before its reference is written.
        tx.run("LOCK TABLE block_refs IN EXCLUSIVE MODE", vec![]).await?;
    }
    tx.overwrite().await?;
    let erased = tx.run(ERASE_BODIES, args![scope, stream]).await?;
    tx.run(COUNT_ERASURE, args![workspace]).await?;
    tx.run(ERASE_BLOCKS, args![scope, stream]).await?;
    tx.run(ERASE_REFS, args![scope, stream]).await?;
    if let StreamId::Run(run) = stream {
        let text = format!("{ERASE_SUMMARY}{} WHERE workspace = $1 AND id = $2", now(tx.dialect()));
        tx.run(text, args![workspace, run]).await?;
        tx.run(ERASE_CARDS, args![workspace, run]).await?;
        for text in ERASE_PATHS {
            tx.run(text, args![workspace, run]).await?;
        }
    }
    if let Some((text, args)) = also {
        tx.run(text, args).await?;
    }
    Ok(erased)
}
