//! One transaction for many appends: each guarded by its own row, all written with a handful of set statements. Decides
//! nothing beyond who was first.

use std::collections::HashMap;
use std::sync::LazyLock;

use adjutant_core::id::{ChatId, NodeId, RunId};
use adjutant_core::run::chain::{Head, StreamId};

use crate::StoreError;
use crate::db::{Db, Dialect, Tx};
use crate::fault;
use crate::postgres;
use crate::prepare::{Guard, Prepared};
use crate::row::{Change, Writer};
use crate::set::Kind::{Bytes, Int, Text};
use crate::set::{Kind, SetSql};
use crate::value::{Args, args};

/// What became of a batch: who passed, and what to tell others.
pub(crate) struct Committed {
    pub(crate) verdicts: Vec<Result<(), StoreError>>,
    pub(crate) changes: Vec<Change>,
}

const STATE: [(&str, Kind); 12] = [
    ("status", Text),
    ("due", Int),
    ("updated_at", Int),
    ("ended_at", Int),
    ("turns", Int),
    ("calls", Int),
    ("tokens_input", Int),
    ("tokens_output", Int),
    ("tokens_cached", Int),
    ("tokens_reasoning", Int),
    ("cost", Int),
    ("summary", Bytes),
];

const RUN: [(&str, Kind); 17] = [
    ("workspace", Text),
    ("id", Text),
    ("chat", Text),
    ("agent", Text),
    ("agent_version", Int),
    ("notebook", Text),
    ("base_run", Text),
    ("base_seq", Int),
    ("parent", Text),
    ("initiator", Text),
    ("trigger", Text),
    ("created_at", Int),
    ("superseded_by", Text),
    ("head_seq", Int),
    ("head_hash", Bytes),
    ("owner", Text),
    ("epoch", Int),
];

static MOVE_TIP: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &[("workspace", Text), ("chat", Text), ("run", Text), ("expected", Text)],
        "UPDATE chats SET tip = v.run FROM {rows} \
         WHERE chats.workspace = v.workspace AND chats.id = v.chat AND chats.tip IS NOT DISTINCT FROM v.expected \
         AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = v.run) RETURNING chats.id",
    )
});

static START: LazyLock<SetSql> =
    LazyLock::new(|| SetSql::insert("runs", &[&RUN[..], &STATE[..]].concat(), "ON CONFLICT DO NOTHING RETURNING id"));

/// As [`START`], but a run that is there gets the columns that follow from its log; who owns it does not.
pub(crate) static REBUILD: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [&RUN[..], &STATE[..]].concat();
    let set: Vec<_> = columns
        .iter()
        .filter(|(name, _)| !["workspace", "id", "owner", "epoch"].contains(name))
        .map(|(name, _)| format!("\"{name}\" = excluded.\"{name}\""))
        .collect();
    let conflict = format!("ON CONFLICT (workspace, id) DO UPDATE SET {}", set.join(", "));
    SetSql::insert("runs", &columns, &conflict)
});

static SUPERSEDE: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &[("workspace", Text), ("chat", Text), ("first", Text), ("run", Text)],
        "UPDATE runs SET superseded_by = v.run FROM {rows} WHERE runs.workspace = v.workspace AND runs.chat = v.chat \
         AND runs.id >= v.first AND runs.id <> v.run AND runs.superseded_by IS NULL",
    )
});

/// The run goes on, and its owner keeps it.
static UPDATE: LazyLock<SetSql> = LazyLock::new(|| update_sql(""));

/// The run goes on, and nobody owns it any more. Apart from [`UPDATE`] because SQLite rewrites the index of every column
/// that a statement names.
static UPDATE_AND_RELEASE: LazyLock<SetSql> = LazyLock::new(|| update_sql("owner = NULL, "));

fn update_sql(release: &str) -> SetSql {
    let guard = [
        ("workspace", Text),
        ("run", Text),
        ("expected_seq", Int),
        ("expected_hash", Bytes),
        ("by_node", Text),
        ("by_epoch", Int),
        ("head_seq", Int),
        ("head_hash", Bytes),
    ];
    let columns = [&guard[..], &STATE[..]].concat();
    let state = STATE.map(|(name, _)| format!("{name} = v.{name}")).join(", ");
    let set = format!("SET {release}head_seq = v.head_seq, head_hash = v.head_hash, {state}");
    let guard = "runs.workspace = v.workspace AND runs.id = v.run AND runs.head_seq = v.expected_seq \
                 AND runs.head_hash = v.expected_hash \
                 AND (v.by_node IS NULL OR (runs.owner = v.by_node AND runs.epoch = v.by_epoch))";
    SetSql::by_dialect(
        &columns,
        &format!("UPDATE runs {set} FROM {{rows}} WHERE {guard}"),
        // The rows are locked in one order on all nodes, so that two batches never wait for each other.
        &format!(
            "WITH v AS MATERIALIZED (SELECT * FROM {{rows}}), held AS MATERIALIZED (\
             SELECT r.id FROM runs r JOIN v ON r.workspace = v.workspace AND r.id = v.run \
             ORDER BY r.id FOR NO KEY UPDATE OF r) \
             UPDATE runs {set} FROM v JOIN held ON held.id = v.run WHERE {guard}"
        ),
    )
}

/// Where runs stand, held until the transaction ends.
static STAND: LazyLock<SetSql> = LazyLock::new(|| {
    let text = "SELECT runs.id, runs.head_seq, runs.head_hash, runs.owner, runs.epoch FROM {rows} \
                JOIN runs ON runs.workspace = v.workspace AND runs.id = v.run ORDER BY runs.id";
    let columns = [("workspace", Text), ("run", Text)];
    SetSql::by_dialect(&columns, text, &format!("{text} FOR NO KEY UPDATE OF runs"))
});

const STREAM: [(&str, Kind); 6] = [
    ("workspace", Text),
    ("stream", Text),
    ("head_seq", Int),
    ("head_hash", Bytes),
    ("expected_seq", Int),
    ("expected_hash", Bytes),
];

static NEW_STREAM: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &STREAM,
        "INSERT INTO streams (workspace, stream, head_seq, head_hash) \
         SELECT workspace, stream, head_seq, head_hash FROM {rows} WHERE true ON CONFLICT DO NOTHING RETURNING stream",
    )
});

static OLD_STREAM: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &STREAM,
        "UPDATE streams SET head_seq = v.head_seq, head_hash = v.head_hash FROM {rows} \
         WHERE streams.workspace = v.workspace AND streams.stream = v.stream \
         AND streams.head_seq = v.expected_seq AND streams.head_hash = v.expected_hash RETURNING streams.stream",
    )
});

static EVENTS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [
        ("workspace", Text),
        ("stream", Text),
        ("seq", Int),
        ("kind", Text),
        ("time", Int),
        ("body_hash", Bytes),
        ("body", Bytes),
        ("hash", Bytes),
    ];
    SetSql::insert("events", &columns, "")
});

static REFS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [("workspace", Text), ("stream", Text), ("hash", Bytes)];
    SetSql::insert("block_refs", &columns, "ON CONFLICT DO NOTHING")
});

pub(crate) static BLOCKS: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::insert("blocks", &[("workspace", Text), ("hash", Bytes), ("bytes", Bytes)], "ON CONFLICT DO NOTHING")
});

pub(crate) static APPROVALS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [
        ("workspace", Text),
        ("id", Text),
        ("run", Text),
        ("chat", Text),
        ("agent", Text),
        ("call", Text),
        ("kind", Text),
        ("status", Text),
        ("tool", Text),
        ("created_at", Int),
        ("expires_at", Int),
        ("decided_at", Int),
        ("card", Bytes),
    ];
    SetSql::insert(
        "approvals",
        &columns,
        "ON CONFLICT (workspace, id) DO UPDATE SET status = excluded.status, expires_at = excluded.expires_at, \
         decided_at = excluded.decided_at, card = excluded.card",
    )
});

pub(crate) static CALLS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [
        ("workspace", Text),
        ("run", Text),
        ("call", Text),
        ("tool", Text),
        ("target", Text),
        ("verdict", Text),
        ("attempts", Int),
        ("proposed_at", Int),
        ("started_at", Int),
    ];
    SetSql::insert(
        "calls",
        &columns,
        "ON CONFLICT (workspace, run, call) DO UPDATE SET target = excluded.target, verdict = excluded.verdict, \
         attempts = excluded.attempts, started_at = excluded.started_at",
    )
});

/// A plain insert: the second result of a call is an error, and its append fails alone.
pub(crate) static RESULTS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [("workspace", Text), ("run", Text), ("call", Text), ("seq", Int), ("at", Int), ("is_error", Int)];
    SetSql::insert("results", &columns, "")
});

/// How much a batch is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Everybody is expected to pass, so the guards are only counted. Asking each row costs SQLite a change of threads.
    Hopeful,
    /// Somebody did not pass: each guard is read before it is written.
    Careful,
}

/// Writes a batch in which each stream, and each chat with a start, occurs once. An error means that nothing was written.
pub(crate) async fn commit(db: &Db, batch: &[Prepared], me: &str) -> Result<Committed, StoreError> {
    if let Some(committed) = attempt(db, batch, me, Mode::Hopeful).await? {
        return Ok(committed);
    }
    let committed = attempt(db, batch, me, Mode::Careful).await?;
    committed.ok_or_else(|| StoreError::other("a row changed while it was held"))
}

async fn attempt(db: &Db, batch: &[Prepared], me: &str, mode: Mode) -> Result<Option<Committed>, StoreError> {
    let mut tx = db.begin_append().await?;
    match write(&mut tx, batch, me, mode).await {
        Ok(Some(committed)) => {
            fault::point("commit.before");
            tx.commit().await?;
            fault::point("commit.after");
            Ok(Some(committed))
        }
        Ok(None) => {
            tx.roll_back().await?;
            Ok(None)
        }
        Err(error) => {
            // The connection is given back only when the transaction is gone; that it failed is already known.
            let _ = tx.roll_back().await;
            Err(error)
        }
    }
}

/// None when more is wrong than this mode can tell apart.
async fn write(tx: &mut Tx, batch: &[Prepared], me: &str, mode: Mode) -> Result<Option<Committed>, StoreError> {
    let stale = || Err(StoreError::Stale { fenced: false });
    let mut verdicts: Vec<Result<(), StoreError>> = batch.iter().map(|_| stale()).collect();
    start(tx, batch, &mut verdicts).await?;
    if !update(tx, batch, &mut verdicts, mode).await? {
        return Ok(None);
    }
    extend_streams(tx, batch, &mut verdicts).await?;

    let written = |rows: fn(&Prepared) -> &Vec<Args>| {
        let winners = batch.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok());
        winners.flat_map(move |(append, _)| rows(append)).collect::<Vec<&Args>>()
    };
    tx.run_set(&EVENTS, &written(|append| &append.events)).await?;
    // References first: erasing locks them out, so that a block that is found here cannot be erased any more.
    tx.run_set(&REFS, &written(|append| &append.refs)).await?;
    tx.run_set(&BLOCKS, &written(|append| &append.blocks)).await?;
    tx.run_set(&APPROVALS, &written(|append| &append.approvals)).await?;
    tx.run_set(&CALLS, &written(|append| &append.calls)).await?;
    tx.run_set(&RESULTS, &written(|append| &append.results)).await?;

    let winners = || batch.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(append, _)| append);
    let mut changes: Vec<Change> = winners().map(|append| Change::Stream(append.stream)).collect();
    if winners().any(|append| append.due) {
        changes.push(Change::Due);
    }
    if tx.dialect() == Dialect::Postgres {
        for payload in postgres::payloads(me, &changes) {
            tx.run("SELECT pg_notify($1, $2)", args![postgres::CHANNEL, payload]).await?;
        }
    }
    Ok(Some(Committed { verdicts, changes }))
}

type Verdicts = [Result<(), StoreError>];

async fn start(tx: &mut Tx, batch: &[Prepared], verdicts: &mut Verdicts) -> Result<(), StoreError> {
    let mut chats: HashMap<ChatId, usize> = HashMap::new();
    let mut runs: HashMap<RunId, usize> = HashMap::new();
    let mut tips = Vec::new();
    let mut free = Vec::new();
    for (at, append) in batch.iter().enumerate() {
        if let Guard::Start { run, chat, tip, .. } = &append.guard {
            runs.insert(*run, at);
            match tip {
                Some(tip) => {
                    chats.insert(*chat, at);
                    tips.push((*chat, tip));
                }
                None => free.push(at),
            }
        }
    }
    if runs.is_empty() {
        return Ok(());
    }
    tips.sort_by_key(|(chat, _)| *chat);
    let tips: Vec<&Args> = tips.into_iter().map(|(_, row)| row).collect();
    let mut moved = Vec::new();
    for mut row in tx.rows_set(&MOVE_TIP, &tips).await? {
        let at = chats.get(&row.take::<ChatId>()?);
        moved.push(*at.ok_or_else(|| StoreError::Corrupt("a chat nobody asked for".into()))?);
    }
    let mut rows = Vec::new();
    let mut supersede = Vec::new();
    for at in moved.iter().chain(&free) {
        if let Guard::Start { row, supersede: old, .. } = &batch[*at].guard {
            rows.push(row);
            supersede.extend(old);
        }
    }
    for mut row in tx.rows_set(&START, &rows).await? {
        if let Some(at) = runs.get(&row.take::<RunId>()?) {
            verdicts[*at] = Ok(());
        }
    }
    if moved.iter().any(|at| verdicts[*at].is_err()) {
        // The tip was moved for a run that somebody inserted in between: this transaction must not stand.
        return Err(StoreError::Stale { fenced: false });
    }
    tx.run_set(&SUPERSEDE, &supersede).await.map(drop)
}

/// Moves the runs that go on; false when not all of them passed and nobody can say which.
async fn update(tx: &mut Tx, batch: &[Prepared], verdicts: &mut Verdicts, mode: Mode) -> Result<bool, StoreError> {
    let mut updates: Vec<(RunId, usize)> = Vec::with_capacity(batch.len());
    for (at, append) in batch.iter().enumerate() {
        if let Guard::Update { run, .. } = &append.guard {
            updates.push((*run, at));
            verdicts[at] = Ok(());
        }
    }
    updates.sort_unstable();
    if mode == Mode::Careful {
        judge(tx, batch, &updates, verdicts).await?;
    }
    let (mut keep, mut release) = (Vec::new(), Vec::new());
    for (_, at) in updates.iter().filter(|(_, at)| verdicts[*at].is_ok()) {
        match &batch[*at].guard {
            Guard::Update { row, release: false, .. } => keep.push(row),
            Guard::Update { row, release: true, .. } => release.push(row),
            Guard::Start { .. } | Guard::NewStream(_) | Guard::OldStream(_) => {}
        }
    }
    let moved = tx.run_set(&UPDATE, &keep).await? + tx.run_set(&UPDATE_AND_RELEASE, &release).await?;
    Ok(moved == (keep.len() + release.len()) as u64)
}

/// Reads where the runs stand, and says which appends pass and why the others do not.
async fn judge(
    tx: &mut Tx,
    batch: &[Prepared],
    updates: &[(RunId, usize)],
    verdicts: &mut Verdicts,
) -> Result<(), StoreError> {
    let keys: Vec<Args> = updates.iter().map(|(run, at)| args![batch[*at].scope, *run]).collect();
    let mut stands = HashMap::new();
    for mut row in tx.rows_set(&STAND, &keys.iter().collect::<Vec<_>>()).await? {
        let run: RunId = row.take()?;
        let head = Head { seq: row.take()?, hash: row.take()? };
        let (owner, epoch): (Option<NodeId>, u64) = (row.take()?, row.take()?);
        stands.insert(run, (head, owner, epoch));
    }
    for (run, at) in updates {
        let append = &batch[*at];
        verdicts[*at] = match stands.get(run) {
            None => Err(StoreError::NotFound),
            Some((head, owner, epoch)) => {
                let fenced = match append.writer {
                    Writer::Owner { node, epoch: mine } => *owner != Some(node) || *epoch != mine,
                    Writer::Command => false,
                };
                if fenced || *head != append.expected { Err(StoreError::Stale { fenced }) } else { Ok(()) }
            }
        };
    }
    Ok(())
}

async fn extend_streams(tx: &mut Tx, batch: &[Prepared], verdicts: &mut Verdicts) -> Result<(), StoreError> {
    let mut streams: HashMap<StreamId, usize> = HashMap::new();
    let (mut new, mut old) = (Vec::new(), Vec::new());
    for (at, append) in batch.iter().enumerate() {
        match &append.guard {
            Guard::NewStream(row) => new.push(row),
            Guard::OldStream(row) => old.push(row),
            Guard::Start { .. } | Guard::Update { .. } => continue,
        }
        streams.insert(append.stream, at);
    }
    let mut grown = tx.rows_set(&NEW_STREAM, &new).await?;
    grown.extend(tx.rows_set(&OLD_STREAM, &old).await?);
    for mut row in grown {
        if let Some(at) = streams.get(&row.take::<StreamId>()?) {
            verdicts[*at] = Ok(());
        }
    }
    Ok(())
}
