//! Who drives which run: nodes with leases, claims with epochs, and when the next run is due. A lease is a node's, so that
//! renewing it costs one row. Every run that has an owner has a living node, or one whose row is still here.

use std::time::Duration;

use adjutant_core::id::{NodeId, RunId, WorkspaceId};
use adjutant_core::limits::{LEASE, PLACES_PER_FREE};
use adjutant_core::time::Time;

use crate::db::{Dialect, Tx};
use crate::row::{Change, Claim, Claimed};
use crate::value::{Row, args};
use crate::{Store, StoreError, migrate};

/// Milliseconds by the database's own clock.
pub(crate) const fn now(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
        Dialect::Postgres => "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)",
    }
}

/// This program among those that share a database: a newer version is a greater number, and none is nothing. One may meet what a
/// newer one wrote.
pub(crate) const PROGRAM: u64 = 1
    + 1_000_000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
    + 1_000 * number(env!("CARGO_PKG_VERSION_MINOR"))
    + number(env!("CARGO_PKG_VERSION_PATCH"));

const fn number(digits: &str) -> u64 {
    let (bytes, mut number, mut at) = (digits.as_bytes(), 0, 0);
    while at < bytes.len() {
        number = 10 * number + (bytes[at] - b'0') as u64;
        at += 1;
    }
    number
}

fn lease() -> u64 {
    u64::try_from(LEASE.as_millis()).unwrap_or(u64::MAX)
}

/// How many runs of the agent of a run are driven, at all nodes.
macro_rules! driven {
    ($run:literal) => {
        concat!(
            "(SELECT count(*) FROM runs AS driven WHERE driven.workspace = $4 AND driven.agent = ",
            $run,
            ".agent AND driven.owner IS NOT NULL)"
        )
    };
}
/// The oldest that are due and whose agent has a place for one more; of several of one agent, as many as there are places for.
/// What is left of them comes with the next claim.
const CLAIM_SQLITE: &str = concat!(
    "UPDATE runs SET owner = $1, epoch = epoch + 1 WHERE id IN (SELECT id FROM (SELECT id, places, ",
    driven!("waiting"),
    " + row_number() OVER (PARTITION BY agent ORDER BY due, id) AS place FROM (\
     SELECT id, agent, due, places FROM runs WHERE workspace = $4 AND owner IS NULL AND due <= $2 AND beyond < $5 AND ",
    driven!("runs"),
    " < places ORDER BY due, id LIMIT $3) AS waiting) WHERE place <= places) RETURNING id, workspace, epoch, due"
);
/// Picked first and once: inside a condition the planner could pick, and lock, more than the limit.
const CLAIM_POSTGRES: &str = concat!(
    "WITH waiting AS MATERIALIZED (\
     SELECT id, agent, due, places FROM runs WHERE workspace = $4 AND owner IS NULL AND due <= $2 AND beyond < $5 AND ",
    driven!("runs"),
    " < places ORDER BY due, id LIMIT $3 FOR UPDATE SKIP LOCKED), placed AS (SELECT id, places, ",
    driven!("waiting"),
    " + row_number() OVER (PARTITION BY agent ORDER BY due, id) AS place FROM waiting) \
     UPDATE runs SET owner = $1, epoch = epoch + 1 FROM placed WHERE runs.id = placed.id AND placed.place <= placed.places \
     RETURNING runs.id, runs.workspace, runs.epoch, runs.due"
);
/// Whether this node may claim in a workspace now: two that count at once would both take the last place. Nobody waits for it.
const TURN: &str =
    "SELECT CAST(CASE WHEN pg_try_advisory_xact_lock(4703913, hashtext($1)) THEN 1 ELSE 0 END AS BIGINT)";
/// Goes from one workspace to the next by the index, past all the runs between: one that has a hundred thousand parked ones
/// costs as much as one that has a single one.
const WAITING: &str = "WITH RECURSIVE tenants (workspace) AS (\
     SELECT min(workspace) FROM runs WHERE owner IS NULL AND due IS NOT NULL \
     UNION ALL SELECT (SELECT min(runs.workspace) FROM runs WHERE runs.owner IS NULL AND runs.due IS NOT NULL \
     AND runs.workspace > tenants.workspace) FROM tenants WHERE tenants.workspace IS NOT NULL) \
     SELECT workspace, (SELECT count(*) FROM runs WHERE runs.owner = $1 AND runs.workspace = tenants.workspace) \
     FROM tenants WHERE workspace IS NOT NULL AND (SELECT min(runs.due) FROM runs \
     WHERE runs.workspace = tenants.workspace AND runs.owner IS NULL AND runs.due IS NOT NULL) <= $2";
/// Runs that are claimed at a time, at the most: of many that are due at once, other nodes find some, too.
pub(crate) const AT_A_TIME: usize = 64;
const GIVE_BACK: &str = "UPDATE runs SET owner = NULL WHERE owner = $1";

impl Store {
    /// Fills up to `free` places with runs that are due and that nobody alive owns: the workspaces share the places, and of
    /// each the oldest due comes first. Some places stay free for those that have none yet. Of very many only some are taken
    /// at a time: whoever has places left asks again. The node must have joined.
    ///
    /// # Errors
    /// [`StoreError::Stale`] (fenced) when the node itself is not alive: renew, or join again.
    pub async fn claim(&self, node: NodeId, now: Time, free: u32) -> Result<Vec<Claim>, StoreError> {
        Ok(match self.claim_due(node, now, free).await? {
            Claimed::Runs(claims) => claims,
            Claimed::NoneBefore(_) => Vec::new(),
        })
    }

    /// As [`Store::claim`]; where nothing is due, it says when something is.
    ///
    /// # Errors
    /// As [`Store::claim`].
    pub async fn claim_due(&self, node: NodeId, now: Time, free: u32) -> Result<Claimed, StoreError> {
        let sql = sql!(self, memory => memory.claim_due(node, now, free));
        if free == 0 {
            return Ok(Claimed::Runs(Vec::new()));
        }
        // Most polls find nothing; they must not stand in the way of the writer.
        let due = self.next_due().await?;
        if due.is_none_or(|due| due > now) {
            return Ok(Claimed::NoneBefore(due));
        }
        let mut tx = sql.db.begin_work().await?;
        assert_alive(&mut tx, node).await?;
        reap(&mut tx).await?;
        let mut waiting = waiting(&mut tx, node, now).await?;
        let (mut claims, mut left) = (Vec::new(), free);
        while !waiting.is_empty() {
            let driven: Vec<_> = waiting.iter().map(|tenant| tenant.driven).collect();
            let shares = shares(left, AT_A_TIME.saturating_sub(claims.len()), &driven);
            for (tenant, share) in waiting.iter_mut().zip(shares).filter(|(_, share)| *share > 0) {
                let taken = claim_in(&mut tx, node, now, tenant.workspace, share).await?;
                let count = u32::try_from(taken.len()).unwrap_or(share);
                (tenant.driven, left) = (tenant.driven + count, left.saturating_sub(count));
                tenant.done = count < share;
                claims.extend(taken);
            }
            // What one has no use for is shared again among the others.
            let all = waiting.len();
            waiting.retain(|tenant| !tenant.done);
            if waiting.len() == all {
                break;
            }
        }
        tx.commit().await?;
        claims.sort_by_key(|(due, claim): &(Time, Claim)| (*due, claim.run));
        Ok(Claimed::Runs(claims.into_iter().map(|(_, claim)| claim).collect()))
    }

    /// Takes this run, if it is due and nobody alive owns it.
    ///
    /// # Errors
    /// As [`Store::claim`].
    pub async fn claim_run(&self, node: NodeId, now: Time, run: RunId) -> Result<Option<Claim>, StoreError> {
        let sql = sql!(self, memory => memory.claim_run(node, now, run));
        let mut tx = sql.db.begin_work().await?;
        assert_alive(&mut tx, node).await?;
        reap(&mut tx).await?;
        let text = "UPDATE runs SET owner = $1, epoch = epoch + 1 \
                    WHERE id = $3 AND owner IS NULL AND due <= $2 AND beyond < $4 RETURNING id, workspace, epoch";
        let claim =
            tx.row(text, args![node, now, run, PROGRAM]).await?.map(|mut row| read_claim(&mut row)).transpose()?;
        tx.commit().await?;
        Ok(claim)
    }

    /// When the next run is due among those that nobody alive owns and that this program may take up.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn next_due(&self) -> Result<Option<Time>, StoreError> {
        let sql = sql!(self, memory => memory.next_due());
        let text = format!(
            "SELECT min(due) FROM (\
             SELECT min(due) AS due FROM runs WHERE owner IS NULL AND due IS NOT NULL AND beyond < $1 \
             UNION ALL SELECT min(runs.due) AS due FROM nodes JOIN runs ON runs.owner = nodes.id \
             WHERE nodes.expires <= {now} AND runs.owner IS NOT NULL AND beyond < $1) AS dues",
            now = now(sql.db.dialect())
        );
        let row = sql.db.read_one(text, args![PROGRAM]).await?;
        row.map_or(Ok(None), |mut row| row.take())
    }

    /// Whether another node is alive.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn has_others(&self, node: NodeId) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => Ok(false));
        let text = format!("SELECT 1 FROM nodes WHERE id <> $1 AND expires > {} LIMIT 1", now(sql.db.dialect()));
        Ok(sql.db.read_one(text, args![node]).await?.is_some())
    }

    /// How long the first lease of another node still lasts that drives runs, where there may be other nodes. What is due of one
    /// whose lease is over is in [`Store::next_due`].
    ///
    /// # Errors
    /// Those of the database.
    pub async fn next_expiry(&self, node: NodeId) -> Result<Option<Duration>, StoreError> {
        if !self.is_shared() {
            return Ok(None);
        }
        let sql = sql!(self, memory => Ok(None));
        let text = format!(
            "SELECT min(expires) - {now} FROM nodes WHERE id <> $1 AND expires > {now} \
             AND EXISTS (SELECT 1 FROM runs WHERE owner = nodes.id)",
            now = now(sql.db.dialect())
        );
        let row = sql.db.read_one(text, args![node]).await?;
        let left: Option<i64> = row.map_or(Ok(None), |mut row| row.take())?;
        Ok(left.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or(0))))
    }

    /// The runs that this node owns, with the epochs of their claims: the reply to a claim may have been lost.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn owned(&self, node: NodeId) -> Result<Vec<Claim>, StoreError> {
        let sql = sql!(self, memory => memory.owned(node));
        let text = "SELECT id, workspace, epoch FROM runs WHERE owner = $1 ORDER BY id";
        let rows = sql.db.read(text, args![node]).await?;
        rows.into_iter().map(|mut row| read_claim(&mut row)).collect()
    }

    /// Gives a run back without an append. Does nothing when the claim is not ours any more.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn release(&self, node: NodeId, run: RunId, epoch: u64) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.release(node, run, epoch));
        let text = "UPDATE runs SET owner = NULL WHERE id = $1 AND owner = $2 AND epoch = $3";
        if sql.write_work(text, args![run, node, epoch]).await? > 0 {
            self.announce(sql, Change::Due);
        }
        Ok(())
    }

    /// Gives back a run whose log this program cannot follow. Neither it nor an older one takes it up again; a newer one, which
    /// may have written what is not understood here, does.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn leave_to_newer(&self, node: NodeId, run: RunId, epoch: u64) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.leave_to_newer(node, run, epoch));
        let text = "UPDATE runs SET owner = NULL, beyond = $4 WHERE id = $1 AND owner = $2 AND epoch = $3";
        if sql.write_work(text, args![run, node, epoch, PROGRAM]).await? > 0 {
            self.announce(sql, Change::Due);
        }
        Ok(())
    }

    /// Begins a node's life. It starts with nothing: what it owned under this id before is given back.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`] when the database has moved on since it was opened, and this program may not use it now.
    pub async fn join(&self, node: NodeId) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.join(node));
        let mut tx = sql.db.begin_work().await?;
        let text = format!(
            "INSERT INTO nodes (id, expires, schema) VALUES ($1, {now} + $2, $3) \
             ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
            now = now(tx.dialect())
        );
        tx.run(text, args![node, lease(), migrate::KNOWN]).await?;
        // After its row is there: whoever raises this looks at the rows first, and lets nobody in meanwhile.
        migrate::assert_known(&mut tx, migrate::KNOWN).await?;
        tx.run(GIVE_BACK, args![node]).await?;
        tx.commit().await
    }

    /// Prolongs a node's life. No: it was taken for dead, its runs may be others' by now, and it has to join again.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn renew(&self, node: NodeId) -> Result<bool, StoreError> {
        let sql = sql!(self, memory => memory.renew(node));
        // A row that is still here was not reaped, so none of its runs was given away: late is not too late.
        let text = format!("UPDATE nodes SET expires = {now} + $2 WHERE id = $1", now = now(sql.db.dialect()));
        Ok(sql.db.write_lease(text, args![node, lease()]).await? > 0)
    }

    /// Ends a node's life and gives back what it owned.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn leave(&self, node: NodeId) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.leave(node));
        let mut tx = sql.db.begin_work().await?;
        tx.run("DELETE FROM nodes WHERE id = $1", args![node]).await?;
        let given = tx.run(GIVE_BACK, args![node]).await?;
        tx.commit().await?;
        if given > 0 {
            self.announce(sql, Change::Due);
        }
        Ok(())
    }

    /// Takes every node for dead: the data directory is locked by this process, so none can be alive.
    pub(crate) async fn forget_nodes(&self) -> Result<(), StoreError> {
        let sql = sql!(self, memory => memory.forget_nodes());
        let mut tx = sql.db.begin_work().await?;
        tx.run("DELETE FROM nodes", vec![]).await?;
        tx.run("UPDATE runs SET owner = NULL WHERE owner IS NOT NULL", vec![]).await?;
        tx.commit().await
    }
}

/// A workspace that has runs to be claimed.
struct Waiting {
    workspace: WorkspaceId,
    /// How many of its runs the node drives.
    driven: u32,
    /// It has no more to be claimed.
    done: bool,
}

async fn waiting(tx: &mut Tx, node: NodeId, now: Time) -> Result<Vec<Waiting>, StoreError> {
    let rows = tx.rows(WAITING, args![node, now]).await?;
    let read = |mut row: Row| Ok(Waiting { workspace: row.take()?, driven: row.take()?, done: false });
    rows.into_iter().map(read).collect()
}

async fn claim_in(
    tx: &mut Tx,
    node: NodeId,
    now: Time,
    workspace: WorkspaceId,
    share: u32,
) -> Result<Vec<(Time, Claim)>, StoreError> {
    let text = match tx.dialect() {
        Dialect::Sqlite => CLAIM_SQLITE,
        Dialect::Postgres => {
            let turn = tx.row(TURN, args![workspace]).await?;
            if !turn.map_or(Ok(false), |mut row| row.take())? {
                return Ok(Vec::new());
            }
            CLAIM_POSTGRES
        }
    };
    let rows = tx.rows(text, args![node, now, share, workspace, PROGRAM]).await?;
    let read = |mut row: Row| {
        let claim = read_claim(&mut row)?;
        Ok((row.take()?, claim))
    };
    rows.into_iter().map(read).collect()
}

/// How many of the free places each workspace gets: one after the other goes to whoever drives least, `most` in all. Nobody gets
/// one who drives [`PLACES_PER_FREE`] times as many as would stay free, so that however much others have, a newcomer finds room.
pub(crate) fn shares(free: u32, most: usize, driven: &[u32]) -> Vec<u32> {
    let mut shares = vec![0_u32; driven.len()];
    for left in (1..=free).rev().take(most) {
        let least = (0..driven.len()).min_by_key(|tenant| driven[*tenant] + shares[*tenant]);
        match least {
            Some(least) if driven[least] + shares[least] < PLACES_PER_FREE.saturating_mul(left) => shares[least] += 1,
            Some(_) | None => break,
        }
    }
    shares
}

/// Holds the node's row until the claim is committed: whoever reaps it then also sees what it has claimed.
async fn assert_alive(tx: &mut Tx, node: NodeId) -> Result<(), StoreError> {
    let hold = match tx.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => "FOR KEY SHARE",
    };
    let text = format!("SELECT 1 FROM nodes WHERE id = $1 AND expires > {} {hold}", now(tx.dialect()));
    match tx.row(text, args![node]).await? {
        Some(_) => Ok(()),
        None => Err(StoreError::Stale { fenced: true }),
    }
}

/// Buries nodes whose lease has run out and gives back what they owned.
pub(crate) async fn reap(tx: &mut Tx) -> Result<(), StoreError> {
    // Whoever is just being buried, or just claims, is left to whoever is at it: nobody queues up behind that.
    let pass = match tx.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => "FOR UPDATE SKIP LOCKED",
    };
    let dead = format!("SELECT id FROM nodes WHERE expires <= {} {pass}", now(tx.dialect()));
    let text = format!("DELETE FROM nodes WHERE id IN ({dead}) RETURNING id");
    for mut row in tx.rows(text, vec![]).await? {
        let node: NodeId = row.take()?;
        tracing::warn!(%node, "a node was taken for dead; its runs are given to others");
        tx.run(GIVE_BACK, args![node]).await?;
    }
    Ok(())
}

fn read_claim(row: &mut Row) -> Result<Claim, StoreError> {
    Ok(Claim { run: row.take()?, workspace: row.take()?, epoch: row.take()? })
}

#[cfg(test)]
mod tests {
    use super::shares;

    #[test]
    fn places_go_to_whoever_drives_least_and_some_stay_free() {
        let all = usize::MAX;
        assert_eq!(shares(0, all, &[0]), [0]);
        assert_eq!(shares(9, all, &[]), [0; 0]);
        assert_eq!(shares(256, all, &[0]), [224], "an eighth stays free for others");
        assert_eq!(shares(32, all, &[224, 0]), [0, 28], "somebody new comes in at once");
        assert_eq!(shares(4, all, &[224, 28]), [0, 0], "and both leave room for a third");
        assert_eq!(shares(4, all, &[224, 28, 0]), [0, 0, 4]);
        assert_eq!(shares(6, all, &[1, 3]), [4, 2]);
        assert_eq!(shares(1, all, &[6]), [1]);
        assert_eq!(shares(1, all, &[7]), [0]);
    }

    #[test]
    fn of_very_many_only_some_are_taken_at_a_time_and_the_places_are_counted_all_the_same() {
        assert_eq!(shares(1024, 64, &[0]), [64]);
        assert_eq!(shares(1024, 64, &[0, 0]), [32, 32]);
        assert_eq!(shares(512, 64, &[512]), [64], "half of all places is not too much");
        assert_eq!(shares(128, 64, &[896]), [0], "seven eighths are");
        assert_eq!(shares(1024, 0, &[0]), [0]);
    }
}
