//! The runs that a conversation is built on: read together, because a chat of a thousand runs must not take a thousand trips.

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Entry, StreamId};

use crate::db::Dialect;
use crate::seal::{Place, Scope};
use crate::value::args;
use crate::{Store, StoreError};

/// One run of a branch, as far as the next one is built on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The run.
    pub run: RunId,
    /// Its events.
    pub entries: Vec<Entry>,
}

fn branch_text(dialect: Dialect) -> String {
    // Both ways into the recursion must agree on how texts compare.
    let collation = match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => "COLLATE \"C\"",
    };
    format!(
        "WITH RECURSIVE branch (run, seq, depth) AS (\
         SELECT CAST($2 AS TEXT) {collation}, CAST($3 AS BIGINT), 0 UNION ALL \
         SELECT runs.base_run, runs.base_seq, branch.depth + 1 FROM branch \
         JOIN runs ON runs.workspace = $1 AND runs.id = branch.run \
         WHERE runs.base_run IS NOT NULL AND branch.depth + 1 < $4) \
         SELECT branch.depth, branch.run, events.seq, events.kind, events.time, events.body_hash, events.body, \
         events.hash FROM branch \
         JOIN events ON events.workspace = $1 AND events.stream = branch.run AND events.seq <= branch.seq"
    )
}

impl Store {
    /// A run up to an event, and the runs it is built on, newest first, at most `limit`. One that has no event is left out.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when a body does not open.
    pub async fn branch(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        seq: u64,
        limit: u32,
    ) -> Result<Vec<Link>, StoreError> {
        let sql = sql!(self, memory => memory.branch(workspace, run, seq, limit));
        let sealer = sql.sealer(Scope::Workspace(workspace)).await?;
        let mut found: Vec<(u64, RunId, Entry)> = Vec::new();
        for mut row in sql.db.read(branch_text(sql.db.dialect()), args![workspace, run, seq, limit]).await? {
            let (depth, run): (u64, RunId) = (row.take()?, row.take()?);
            let stream = StreamId::Run(run);
            let (seq, kind, time, body_hash) = (row.take()?, row.take()?, row.take()?, row.take()?);
            let body: Option<Vec<u8>> = row.take()?;
            let body = body.map(|body| sealer.open(Place::Event { stream, seq }, body)).transpose()?;
            found.push((depth, run, Entry { stream, seq, kind, time, body_hash, body, hash: row.take()? }));
        }
        found.sort_by_key(|(depth, _, entry)| (*depth, entry.seq));
        let mut links: Vec<Link> = Vec::new();
        for (_, run, entry) in found {
            match links.last_mut().filter(|link| link.run == run) {
                Some(link) => link.entries.push(entry),
                None => links.push(Link { run, entries: vec![entry] }),
            }
        }
        Ok(links)
    }

    /// How often something was erased in a workspace: whoever remembers what was said asks whether it is still there.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when there is no such workspace.
    pub async fn erasures(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        let sql = sql!(self, memory => memory.erasures(workspace));
        let row = sql.db.read_kept("SELECT erasures FROM workspaces WHERE id = $1", args![workspace]).await?.pop();
        row.ok_or(StoreError::NotFound)?.take()
    }
}
