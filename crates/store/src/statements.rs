//! The statements of an append: what is written for many appends at once. Text only; who passes is decided elsewhere.

use std::sync::LazyLock;

use crate::db::Dialect;
use crate::rates;
use crate::set::Kind::{Bytes, Int, Text};
use crate::set::{Kind, SetSql};

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

const RUN: [(&str, Kind); 18] = [
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
    ("bytes", Int),
];

/// On PostgreSQL it also takes the turn of [`take_turns`](crate::rules::take_turns), before it holds any row: a statement of its
/// own would cost each start a trip. What follows it sees whatever was committed until then.
pub(crate) static MOVE_TIP: LazyLock<SetSql> = LazyLock::new(|| {
    let wanted = "chats.workspace = v.workspace AND chats.id = v.chat AND chats.tip IS NOT DISTINCT FROM v.expected \
                  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = v.run) RETURNING chats.id";
    SetSql::by_dialect(
        &[("workspace", Text), ("chat", Text), ("run", Text), ("expected", Text)],
        &format!("UPDATE chats SET tip = v.run FROM {{rows}} WHERE {wanted}"),
        &format!(
            "WITH turn AS MATERIALIZED (SELECT pg_advisory_xact_lock_shared(4703912)) \
             UPDATE chats SET tip = v.run FROM {{rows}}, turn WHERE {wanted}"
        ),
    )
});

/// A run starts where it can work: in a workspace that is there, on a notebook that is there, or on none.
pub(crate) static START: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [&RUN[..], &STATE[..], &[("places", Int)]].concat();
    let names = columns.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let values = columns.iter().map(|(name, _)| format!("v.{name}")).collect::<Vec<_>>().join(", ");
    let there = "EXISTS (SELECT 1 FROM workspaces w WHERE w.id = v.workspace AND w.closed_at IS NULL) \
                 AND (v.notebook IS NULL OR EXISTS (\
                 SELECT 1 FROM notebooks n WHERE n.workspace = v.workspace AND n.id = v.notebook)) \
                 ON CONFLICT DO NOTHING RETURNING id";
    SetSql::by_dialect(
        &columns,
        &format!("INSERT INTO runs ({names}) SELECT {values} WHERE {there}"),
        &format!("INSERT INTO runs ({names}) SELECT {names} FROM {{rows}} WHERE {there}"),
    )
});

/// As [`START`], but a run that is there gets the columns that follow from its log; who owns it does not.
pub(crate) static REBUILD: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [&RUN[..], &STATE[..]].concat();
    let set: Vec<_> = columns
        .iter()
        .filter(|(name, _)| !["workspace", "id", "owner", "epoch", "bytes"].contains(name))
        .map(|(name, _)| format!("\"{name}\" = excluded.\"{name}\""))
        .collect();
    let conflict = format!("ON CONFLICT (workspace, id) DO UPDATE SET {}", set.join(", "));
    SetSql::insert("runs", &columns, &conflict)
});

pub(crate) static SUPERSEDE: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &[("workspace", Text), ("chat", Text), ("first", Text), ("run", Text)],
        "UPDATE runs SET superseded_by = v.run FROM {rows} WHERE runs.workspace = v.workspace AND runs.chat = v.chat \
         AND runs.id >= v.first AND runs.id <> v.run AND runs.superseded_by IS NULL",
    )
});

/// The run goes on, and its owner keeps it.
pub(crate) static UPDATE: LazyLock<SetSql> = LazyLock::new(|| update_sql(""));

/// The run goes on, and nobody owns it any more. Apart from [`UPDATE`] because SQLite rewrites the index of every column
/// that a statement names.
pub(crate) static UPDATE_AND_RELEASE: LazyLock<SetSql> = LazyLock::new(|| update_sql("owner = NULL, "));

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
        ("added", Int),
    ];
    let columns = [&guard[..], &STATE[..]].concat();
    let state = STATE.map(|(name, _)| format!("{name} = v.{name}")).join(", ");
    let set =
        format!("SET {release}head_seq = v.head_seq, head_hash = v.head_hash, bytes = runs.bytes + v.added, {state}");
    let guard = "runs.workspace = v.workspace AND runs.id = v.run AND runs.head_seq = v.expected_seq \
                 AND runs.head_hash = v.expected_hash \
                 AND (v.by_node IS NULL OR (runs.owner = v.by_node AND runs.epoch = v.by_epoch))";
    SetSql::by_dialect(
        &columns,
        &format!("UPDATE runs {set} WHERE {guard}"),
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
pub(crate) static STAND: LazyLock<SetSql> = LazyLock::new(|| {
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

pub(crate) static NEW_STREAM: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &STREAM,
        "INSERT INTO streams (workspace, stream, head_seq, head_hash) \
         SELECT workspace, stream, head_seq, head_hash FROM {rows} WHERE true ON CONFLICT DO NOTHING RETURNING stream",
    )
});

pub(crate) static OLD_STREAM: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::new(
        &STREAM,
        "UPDATE streams SET head_seq = v.head_seq, head_hash = v.head_hash FROM {rows} \
         WHERE streams.workspace = v.workspace AND streams.stream = v.stream \
         AND streams.head_seq = v.expected_seq AND streams.head_hash = v.expected_hash RETURNING streams.stream",
    )
});

pub(crate) static EVENTS: LazyLock<SetSql> = LazyLock::new(|| {
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

pub(crate) static REFS: LazyLock<SetSql> = LazyLock::new(|| {
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

/// One that is there already stays: an approval writes its rule once, also when its append is tried again.
pub(crate) static RULES: LazyLock<SetSql> = LazyLock::new(|| {
    let columns =
        [("workspace", Text), ("id", Text), ("agent", Text), ("run", Text), ("expires_at", Int), ("body", Bytes)];
    SetSql::insert("rules", &columns, "ON CONFLICT DO NOTHING")
});

pub(crate) static AUDIT: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [
        ("workspace", Text),
        ("time", Int),
        ("stream", Text),
        ("seq", Int),
        ("kind", Text),
        ("actor", Text),
        ("agent", Text),
        ("run", Text),
        ("tool", Text),
        ("target", Text),
        ("verdict", Text),
        ("is_error", Int),
    ];
    SetSql::insert("audit", &columns, "ON CONFLICT DO NOTHING")
});

/// What counts for runs: as many rows for each as there are rules, or one.
pub(crate) static COUNTING: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [("workspace", Text), ("run", Text), ("agent", Text), ("person", Text), ("now", Int)];
    SetSql::new(&columns, &format!("SELECT v.run, {COUNTS} FROM {{rows}} {COUNTING_BY} ORDER BY v.run, rules.id"))
});

/// The columns of what counts, by [`COUNTING_BY`].
pub(crate) const COUNTS: &str = "agents.version, workspaces.version, \
    CASE WHEN users.active = 1 THEN members.role END, \
    CASE WHEN EXISTS (SELECT 1 FROM instance WHERE instance.key IN ('stop instance', 'stop ' || v.workspace)) \
    THEN 1 ELSE 0 END, rules.id, rules.expires_at";

/// What counts for an agent and a person `v`.
pub(crate) const COUNTING_BY: &str = "JOIN agents ON agents.workspace = v.workspace AND agents.id = v.agent \
    JOIN workspaces ON workspaces.id = agents.workspace \
    LEFT JOIN members ON members.workspace = agents.workspace AND members.person = v.person \
    LEFT JOIN users ON users.id = members.person \
    LEFT JOIN rules ON rules.workspace = agents.workspace AND (rules.agent IS NULL OR rules.agent = agents.id) \
    AND (rules.expires_at IS NULL OR rules.expires_at > v.now)";

/// What is kept under keys, held until the transaction ends. On PostgreSQL a key that is new is made first: two nodes that
/// see none would both begin afresh.
pub(crate) static HOLD_RATES: LazyLock<SetSql> = LazyLock::new(|| {
    let [sqlite, postgres] = [Dialect::Sqlite, Dialect::Postgres].map(rates::clock);
    SetSql::by_dialect(
        &[("key", Text)],
        &format!("SELECT rates.key, rates.scheduled, {sqlite} FROM {{rows}} JOIN rates ON rates.key = v.key"),
        &format!(
            "INSERT INTO rates (key, scheduled) SELECT v.key, 0 FROM {{rows}} ORDER BY v.key \
             ON CONFLICT (key) DO UPDATE SET scheduled = rates.scheduled RETURNING key, scheduled, {postgres}"
        ),
    )
});

pub(crate) static KEEP_RATES: LazyLock<SetSql> = LazyLock::new(|| {
    let conflict = "ON CONFLICT (key) DO UPDATE SET scheduled = excluded.scheduled";
    SetSql::insert("rates", &[("key", Text), ("scheduled", Int)], conflict)
});

pub(crate) static MARKS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [("workspace", Text), ("notebook", Text), ("path", Text), ("hash", Bytes)];
    SetSql::insert("file_marks", &columns, "ON CONFLICT DO NOTHING")
});

/// Held as [`HOLD_RATES`] are.
pub(crate) static HOLD_PURSES: LazyLock<SetSql> = LazyLock::new(|| {
    SetSql::by_dialect(
        &[("key", Text)],
        "SELECT purses.key, purses.spent, purses.raised, purses.alerted FROM {rows} JOIN purses ON purses.key = v.key",
        "INSERT INTO purses (key, spent, raised, alerted) SELECT v.key, 0, 0, 0 FROM {rows} ORDER BY v.key \
         ON CONFLICT (key) DO UPDATE SET spent = purses.spent RETURNING key, spent, raised, alerted",
    )
});

pub(crate) static KEEP_PURSES: LazyLock<SetSql> = LazyLock::new(|| {
    let conflict = "ON CONFLICT (key) DO UPDATE SET spent = excluded.spent, raised = excluded.raised, \
                    alerted = excluded.alerted";
    SetSql::insert("purses", &[("key", Text), ("spent", Int), ("raised", Int), ("alerted", Int)], conflict)
});

/// One that is there already stays: an attempt is over once.
pub(crate) static MODEL_CALLS: LazyLock<SetSql> = LazyLock::new(|| {
    let columns = [
        ("workspace", Text),
        ("log", Text),
        ("turn", Int),
        ("attempt", Int),
        ("agent", Text),
        ("person", Text),
        ("key", Text),
        ("model", Text),
        ("served", Text),
        ("at", Int),
        ("outcome", Text),
        ("tokens_input", Int),
        ("tokens_output", Int),
        ("tokens_cached", Int),
        ("tokens_reasoning", Int),
        ("tokens_cache_write", Int),
        ("estimated", Int),
        ("cost", Int),
        ("price_version", Text),
        ("ms", Int),
    ];
    SetSql::insert("model_calls", &columns, "ON CONFLICT DO NOTHING")
});
