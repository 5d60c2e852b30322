//! One transaction for many appends: each guarded by its own row, all written with a handful of set statements. Decides
//! nothing beyond who was first.

use std::collections::HashMap;
use std::sync::LazyLock;

use adjutant_core::id::{ChatId, NodeId, RunId};
use adjutant_core::run::chain::StreamId;

use crate::StoreError;
use crate::db::{Db, Dialect, Tx};
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

static UPDATE: LazyLock<SetSql> = LazyLock::new(|| {
    let guard = [
        ("workspace", Text),
        ("run", Text),
        ("expected_seq", Int),
        ("expected_hash", Bytes),
        ("by_node", Text),
        ("by_epoch", Int),
        ("release", Int),
        ("head_seq", Int),
        ("head_hash", Bytes),
    ];
    let columns = [&guard[..], &STATE[..]].concat();
    let state = STATE.map(|(name, _)| format!("{name} = v.{name}")).join(", ");
    let set = format!(
        "SET head_seq = v.head_seq, head_hash = v.head_hash, \
         owner = CASE WHEN v.release = 1 THEN NULL ELSE runs.owner END, {state}"
    );
    let guard = "runs.workspace = v.workspace AND runs.id = v.run AND runs.head_seq = v.expected_seq \
                 AND runs.head_hash = v.expected_hash \
                 AND (v.by_node IS NULL OR (runs.owner = v.by_node AND runs.epoch = v.by_epoch)) RETURNING runs.id";
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

/// Writes a batch in which each stream, and each chat with a start, occurs once. An error means that nothing was written.
pub(crate) async fn commit(db: &Db, batch: &[Prepared], me: &str) -> Result<Committed, StoreError> {
    let mut tx = db.begin_append().await?;
    match write(&mut tx, batch, me).await {
        Ok(committed) => {
            tx.commit().await?;
            Ok(committed)
        }
        Err(error) => {
            // The connection is given back only when the transaction is gone; that it failed is already known.
            let _ = tx.roll_back().await;
            Err(error)
        }
    }
}

async fn write(tx: &mut Tx, batch: &[Prepared], me: &str) -> Result<Committed, StoreError> {
    let mut passed = vec![false; batch.len()];
    start(tx, batch, &mut passed).await?;
    update(tx, batch, &mut passed).await?;
    extend_streams(tx, batch, &mut passed).await?;

    let written = |rows: fn(&Prepared) -> &Vec<Args>| {
        let winners = batch.iter().zip(&passed).filter(|(_, passed)| **passed);
        winners.flat_map(move |(append, _)| rows(append)).collect::<Vec<&Args>>()
    };
    tx.run_set(&EVENTS, &written(|append| &append.events)).await?;
    // References first: erasing locks them out, so that a block that is found here cannot be erased any more.
    tx.run_set(&REFS, &written(|append| &append.refs)).await?;
    tx.run_set(&BLOCKS, &written(|append| &append.blocks)).await?;
    tx.run_set(&APPROVALS, &written(|append| &append.approvals)).await?;
    tx.run_set(&CALLS, &written(|append| &append.calls)).await?;
    tx.run_set(&RESULTS, &written(|append| &append.results)).await?;

    let mut verdicts = Vec::with_capacity(batch.len());
    let mut changes = Vec::with_capacity(batch.len() + 1);
    let mut due = false;
    for (append, passed) in batch.iter().zip(passed) {
        if passed {
            changes.push(Change::Stream(append.stream));
            due |= append.due;
            verdicts.push(Ok(()));
        } else {
            verdicts.push(Err(why_refused(tx, append).await?));
        }
    }
    if due {
        changes.push(Change::Due);
    }
    if tx.dialect() == Dialect::Postgres {
        for payload in postgres::payloads(me, &changes) {
            tx.run("SELECT pg_notify($1, $2)", args![postgres::CHANNEL, payload]).await?;
        }
    }
    Ok(Committed { verdicts, changes })
}

async fn start(tx: &mut Tx, batch: &[Prepared], passed: &mut [bool]) -> Result<(), StoreError> {
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
            passed[*at] = true;
        }
    }
    if moved.iter().any(|at| !passed[*at]) {
        // The tip was moved for a run that somebody inserted in between: this transaction must not stand.
        return Err(StoreError::Stale { fenced: false });
    }
    tx.run_set(&SUPERSEDE, &supersede).await
}

async fn update(tx: &mut Tx, batch: &[Prepared], passed: &mut [bool]) -> Result<(), StoreError> {
    let mut rows: Vec<(RunId, usize, &Args)> = Vec::with_capacity(batch.len());
    for (at, append) in batch.iter().enumerate() {
        if let Guard::Update { run, row } = &append.guard {
            rows.push((*run, at, row));
        }
    }
    rows.sort_by_key(|(run, ..)| *run);
    let set: Vec<&Args> = rows.iter().map(|(_, _, row)| *row).collect();
    for mut row in tx.rows_set(&UPDATE, &set).await? {
        let run = row.take::<RunId>()?;
        if let Ok(at) = rows.binary_search_by_key(&run, |(run, ..)| *run) {
            passed[rows[at].1] = true;
        }
    }
    Ok(())
}

async fn extend_streams(tx: &mut Tx, batch: &[Prepared], passed: &mut [bool]) -> Result<(), StoreError> {
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
            passed[*at] = true;
        }
    }
    Ok(())
}

async fn why_refused(tx: &mut Tx, append: &Prepared) -> Result<StoreError, StoreError> {
    let Guard::Update { run, .. } = &append.guard else { return Ok(StoreError::Stale { fenced: false }) };
    let sql = "SELECT owner, epoch FROM runs WHERE workspace = $1 AND id = $2";
    let Some(mut row) = tx.row(sql, args![append.scope, run]).await? else { return Ok(StoreError::NotFound) };
    let (owner, epoch): (Option<NodeId>, u64) = (row.take()?, row.take()?);
    Ok(StoreError::Stale {
        fenced: match append.writer {
            Writer::Owner { node, epoch: mine } => owner != Some(node) || epoch != mine,
            Writer::Command => false,
        },
    })
}
