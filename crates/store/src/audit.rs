//! The audit projection: what happened, across runs and audit logs, in the order of time. And where a log ends.

use adjutant_core::content::Hash;
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Head, StreamId};
use adjutant_core::time::Time;

use crate::prepare::audit_args;
use crate::row::{AuditFilter, AuditRow};
use crate::seal::Scope;
use crate::statements::AUDIT;
use crate::value::{Arg, Args, Row, args};
use crate::{Store, StoreError};

const COLUMNS: &str = "stream, seq, time, kind, actor, agent, run, tool, target, verdict, is_error";

/// Both go from one log to the next by the index, past all the events between.
const TENANTS: &str = "WITH RECURSIVE tenants (workspace) AS (SELECT min(workspace) FROM events \
     UNION ALL SELECT (SELECT min(events.workspace) FROM events WHERE events.workspace > tenants.workspace) \
     FROM tenants WHERE tenants.workspace IS NOT NULL) \
     SELECT workspace FROM tenants WHERE workspace IS NOT NULL AND workspace <> 'sys'";
const LOST_LOGS: &str = "WITH RECURSIVE logs (stream) AS (SELECT min(stream) FROM events WHERE workspace = $1 \
     UNION ALL SELECT (SELECT min(events.stream) FROM events WHERE events.workspace = $1 \
     AND events.stream > logs.stream) FROM logs WHERE logs.stream IS NOT NULL) \
     SELECT stream FROM logs WHERE stream IS NOT NULL AND NOT EXISTS (\
     SELECT 1 FROM workspaces w WHERE w.id = $1 AND (logs.stream = w.id OR EXISTS (\
     SELECT 1 FROM runs r WHERE r.workspace = $1 AND r.id = logs.stream)))";

/// What has ended does not move any more, so it is found by its end; each part has an index of its own. Nothing is added to its id,
/// so that SQLite does not take the index of all runs for the sake of the order. When something was erased is by the clock of the
/// database, which may be another: a day is more than that can make.
const MOVED: &str = "SELECT id, head_seq, head_hash FROM (\
     SELECT id, head_seq, head_hash FROM runs \
     WHERE workspace = $1 AND ended_at IS NULL AND updated_at >= $2 AND id > $3 \
     UNION ALL SELECT id || '' AS id, head_seq, head_hash FROM runs \
     WHERE workspace = $1 AND ended_at IS NOT NULL AND erased_at IS NULL AND ended_at >= $2 AND id || '' > $3 \
     UNION ALL SELECT id || '' AS id, head_seq, head_hash FROM runs \
     WHERE workspace = $1 AND erased_at IS NOT NULL AND erased_at >= $2 - 86400000 AND ended_at >= $2 AND id || '' > $3\
     ) AS moved ORDER BY id LIMIT $4";

impl Store {
    /// Entries of a workspace (`None`: of the instance itself), newest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn audit(
        &self,
        workspace: Option<WorkspaceId>,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditRow>, StoreError> {
        let sql = sql!(self, memory => memory.audit(workspace, filter, limit));
        let (text, args) = select(scope_of(workspace), filter, limit);
        let rows = sql.db.scan(text, args).await?;
        rows.into_iter().map(read).collect()
    }

    /// Where a log ends; the start for one that has no event yet.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the log belongs to another workspace.
    pub async fn head(&self, workspace: WorkspaceId, stream: StreamId) -> Result<Head, StoreError> {
        let sql = sql!(self, memory => memory.head(workspace, stream));
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let text = match stream {
            StreamId::Run(_) => "SELECT head_seq, head_hash FROM runs WHERE workspace = $1 AND id = $2",
            StreamId::Workspace(_) | StreamId::System => {
                "SELECT head_seq, head_hash FROM streams WHERE workspace = $1 AND stream = $2"
            }
        };
        match sql.db.read_one(text, args![scope, stream]).await? {
            Some(mut row) => Ok(Head { seq: row.take()?, hash: row.take()? }),
            None => Ok(Head::START),
        }
    }

    /// The logs that no list would lead to: their run has no row, or their workspace has none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn lost_logs(&self) -> Result<Vec<(WorkspaceId, StreamId)>, StoreError> {
        let sql = sql!(self, memory => memory.lost_logs());
        let mut lost = Vec::new();
        for mut tenant in sql.db.scan(TENANTS, vec![]).await? {
            let workspace: WorkspaceId = tenant.take()?;
            for mut row in sql.db.scan(LOST_LOGS, args![workspace]).await? {
                lost.push((workspace, row.take()?));
            }
        }
        lost.sort_by_key(|(_, stream): &(_, StreamId)| stream.to_string());
        Ok(lost)
    }

    /// The ends of the runs of a workspace that moved since a moment, in the order of their ids, after one of them.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn moved_heads(
        &self,
        workspace: WorkspaceId,
        since: Time,
        after: Option<RunId>,
        limit: u32,
    ) -> Result<Vec<(RunId, Head)>, StoreError> {
        let sql = sql!(self, memory => memory.moved_heads(workspace, since, after, limit));
        // Every id sorts after the empty text.
        let after = after.map(|run| run.to_string()).unwrap_or_default();
        let rows = sql.db.scan(MOVED, args![workspace, since, after, limit]).await?;
        let head = |mut row: Row| {
            let (run, seq, hash): (RunId, u64, Hash) = (row.take()?, row.take()?, row.take()?);
            Ok((run, Head { seq, hash }))
        };
        rows.into_iter().map(head).collect()
    }

    /// Replaces the entries of one log by what it says.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] when the log belongs to another workspace.
    pub async fn rebuild_audit(
        &self,
        workspace: WorkspaceId,
        stream: StreamId,
        rows: Vec<AuditRow>,
    ) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.rebuild_audit(workspace, stream, rows));
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let rows: Vec<Args> = rows.iter().map(|row| audit_args(scope, row)).collect();
        let mut tx = sql.db.begin().await?;
        tx.run("DELETE FROM audit WHERE workspace = $1 AND stream = $2", args![scope, stream]).await?;
        tx.run_set(&AUDIT, &rows.iter().collect::<Vec<_>>()).await?;
        tx.commit().await
    }
}

/// Whose entries are meant.
pub(crate) const fn scope_of(workspace: Option<WorkspaceId>) -> Scope {
    match workspace {
        Some(workspace) => Scope::Workspace(workspace),
        None => Scope::System,
    }
}

fn select(scope: Scope, filter: &AuditFilter, limit: u32) -> (String, Args) {
    let mut args = args![scope];
    let mut wanted = "workspace = $1".to_owned();
    let mut also = |condition: &str, value: Arg| {
        args.push(value);
        wanted += &format!(" AND {condition} ${}", args.len());
    };
    let columns = [
        ("actor =", filter.actor.as_deref().map(Arg::from)),
        ("agent =", filter.agent.map(Arg::from)),
        ("run =", filter.run.map(Arg::from)),
        ("tool =", filter.tool.as_deref().map(Arg::from)),
        ("target =", filter.target.as_deref().map(Arg::from)),
        ("verdict =", filter.verdict.as_deref().map(Arg::from)),
        ("is_error =", filter.is_error.map(Arg::from)),
        ("time >=", filter.since.map(Arg::from)),
        ("time <", filter.until.map(Arg::from)),
        ("time <=", filter.before.map(|place| Arg::from(place.time))),
    ];
    for (condition, value) in columns {
        if let Some(value) = value {
            also(condition, value);
        }
    }
    if !filter.kinds.is_empty() {
        let first = args.len() + 1;
        args.extend(filter.kinds.iter().map(Arg::from));
        let places: Vec<_> = (first..=args.len()).map(|at| format!("${at}")).collect();
        wanted += &format!(" AND kind IN ({})", places.join(", "));
    }
    if let Some(place) = filter.before {
        let first = args.len() + 1;
        args.extend(args![place.time, place.stream, place.seq]);
        wanted += &format!(" AND (time, stream, seq) < (${first}, ${}, ${})", first + 1, first + 2);
    }
    args.push(limit.into());
    let last = args.len();
    let order = "time DESC, stream DESC, seq DESC";
    (format!("SELECT {COLUMNS} FROM audit WHERE {wanted} ORDER BY {order} LIMIT ${last}"), args)
}

fn read(mut row: Row) -> Result<AuditRow, StoreError> {
    Ok(AuditRow {
        stream: row.take()?,
        seq: row.take()?,
        time: row.take()?,
        kind: row.take()?,
        actor: row.take()?,
        agent: row.take()?,
        run: row.take()?,
        tool: row.take()?,
        target: row.take()?,
        verdict: row.take()?,
        is_error: row.take()?,
    })
}

#[cfg(test)]
mod tests {
    use super::MOVED;
    use crate::{Durability, Sealing, Store};

    #[tokio::test]
    async fn the_runs_that_moved_are_found_without_a_look_at_all_the_others() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.db");
        Store::open_sqlite(&file, Durability::Full, Sealing::Off).await.unwrap().close().await;
        let reader = rusqlite::Connection::open(&file).unwrap();
        let mut plan = reader.prepare(&format!("EXPLAIN QUERY PLAN {MOVED}")).unwrap();
        let steps = plan.query_map(["ws_1", "0", "", "9"], |row| row.get::<_, String>(3)).unwrap();
        let steps = steps.collect::<Result<Vec<_>, _>>().unwrap().join("\n");
        for index in [
            "runs_open (workspace=? AND id>?)",
            "runs_kept (workspace=? AND ended_at>?)",
            "runs_erased (workspace=? AND erased_at>?)",
        ] {
            assert!(steps.contains(index), "{index} is not used:\n{steps}");
        }
    }
}
