//! One transaction for many appends: each guarded by its own row, all written with a handful of set statements. Decides
//! nothing beyond who was first.

use std::collections::HashMap;

use adjutant_core::id::{ChatId, NodeId, RunId};
use adjutant_core::run::chain::{Head, StreamId};

use crate::StoreError;
use crate::admission;
use crate::agents;
use crate::db::{Db, Dialect, Text, Tx};
use crate::fault;
use crate::kept::Writes;
use crate::keys;
use crate::lent::within;
use crate::meta;
use crate::postgres;
use crate::prepare::{Guard, Prepared};
use crate::provider_keys;
use crate::purses;
use crate::rates;
use crate::removal;
use crate::row::{Change, Doing, Writer};
use crate::rules;
use crate::statements::{
    APPROVALS, AUDIT, BLOCKS, CALLS, EVENTS, MARKS, MODEL_CALLS, MOVE_TIP, NEW_STREAM, OLD_STREAM, REFS, RESULTS,
    RULES, STAND, START, SUPERSEDE, UPDATE, UPDATE_AND_RELEASE,
};
use crate::tenants;
use crate::value::{Args, args};
use crate::waiting;

/// What became of a batch: who passed, and what to tell others.
pub(crate) struct Committed {
    pub(crate) verdicts: Vec<Result<(), StoreError>>,
    pub(crate) changes: Vec<Change>,
    /// How many rows each statement touched.
    pub(crate) touched: Vec<Result<u64, StoreError>>,
}

/// A statement that is written beside appends. No answer that is kept is read from what it changes.
pub(crate) struct Statement {
    pub(crate) sql: Text,
    pub(crate) args: Args,
}

/// How much a batch is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Everybody is expected to pass, so the guards are only counted.
    Hopeful,
    /// Somebody did not pass: each guard is read before it is written.
    Careful,
}

/// Writes a batch in which each stream, and each chat with a start, occurs once. An error means that nothing was written, or,
/// when the database does not answer any more, that nobody knows: whoever appends reads the log to find out.
pub(crate) async fn commit(
    db: &Db,
    batch: &[Box<Prepared>],
    statements: &[Statement],
) -> Result<Committed, StoreError> {
    let committing = async {
        if let Some(committed) = attempt(db, batch, statements, Mode::Hopeful).await? {
            return Ok(committed);
        }
        let committed = attempt(db, batch, statements, Mode::Careful).await?;
        committed.ok_or_else(|| StoreError::other("a row changed while it was held"))
    };
    match db.dialect() {
        Dialect::Sqlite => committing.await,
        // Everybody's appends wait behind this one: a connection that went dead must not hold them up for long.
        Dialect::Postgres => within(postgres::PATIENCE, committing).await,
    }
}

async fn attempt(
    db: &Db,
    batch: &[Box<Prepared>],
    statements: &[Statement],
    mode: Mode,
) -> Result<Option<Committed>, StoreError> {
    let mut tx = db.begin_append(writes(batch)).await?;
    match write_all(&mut tx, batch, statements, mode).await {
        Ok(Some(committed)) => {
            reached(batch, "commit.before");
            tx.commit().await?;
            reached(batch, "commit.after");
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

/// Whether a batch sets something up beside what runs do.
fn writes(batch: &[Box<Prepared>]) -> Writes {
    let sets_up = |append: &Prepared| append.doing.is_some() || !append.rules.is_empty();
    if batch.iter().any(|append| sets_up(append)) { Writes::Anything } else { Writes::Work }
}

/// A point that is counted by appends, which are the same on both databases; a statement by itself is none.
fn reached(batch: &[Box<Prepared>], point: &str) {
    if !batch.is_empty() {
        fault::point(point);
    }
}

async fn write_all(
    tx: &mut Tx,
    batch: &[Box<Prepared>],
    statements: &[Statement],
    mode: Mode,
) -> Result<Option<Committed>, StoreError> {
    let Some(mut committed) = write(tx, batch, mode).await? else { return Ok(None) };
    for Statement { sql, args } in statements {
        match tx.run(sql.clone(), args.clone()).await {
            // A row that cannot be is that statement's own affair: it changed nothing, and the others go on.
            touched @ (Ok(_) | Err(StoreError::Conflict(_))) => committed.touched.push(touched),
            Err(other) => return Err(other),
        }
    }
    Ok(Some(committed))
}

/// None when more is wrong than this mode can tell apart.
async fn write(tx: &mut Tx, batch: &[Box<Prepared>], mode: Mode) -> Result<Option<Committed>, StoreError> {
    let stale = || Err(StoreError::Stale { fenced: false });
    let mut verdicts: Vec<Result<(), StoreError>> = batch.iter().map(|_| stale()).collect();
    if tx.dialect() == Dialect::Postgres {
        rules::take_turns(tx, batch).await?;
    }
    start(tx, batch, &mut verdicts).await?;
    if !update(tx, batch, &mut verdicts, mode).await? {
        return Ok(None);
    }
    extend_streams(tx, batch, &mut verdicts).await?;
    carry_out(tx, batch, &verdicts).await?;

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
    tx.run_set(&RULES, &written(|append| &append.rules)).await?;
    tx.run_set(&AUDIT, &written(|append| &append.audit)).await?;
    tx.run_set(&MARKS, &written(|append| &append.marks)).await?;
    tx.run_set(&MODEL_CALLS, &written(|append| &append.model_calls)).await?;

    let winners = || batch.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_ok()).map(|(append, _)| append);
    let mut changes: Vec<Change> = winners().map(|append| Change::of(append.writer, append.stream)).collect();
    if winners().any(|append| append.due) {
        changes.push(Change::Due);
    }
    Ok(Some(Committed { verdicts, changes, touched: Vec::new() }))
}

pub(crate) type Verdicts = [Result<(), StoreError>];

async fn start(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Result<(), StoreError> {
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
async fn update(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts, mode: Mode) -> Result<bool, StoreError> {
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
        take(tx, batch, verdicts).await?;
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
    if moved != (keep.len() + release.len()) as u64 {
        return Ok(false);
    }
    // Always after the runs are held: whoever takes them in the other order would wait for whoever does not.
    if mode == Mode::Hopeful {
        take(tx, batch, verdicts).await?;
    }
    Ok(mode == Mode::Careful || updates.iter().all(|(_, at)| verdicts[*at].is_ok()))
}

/// Holds the appends to the policy they were concluded from, and takes what they need from purses and rates; one that does not get all of it does not pass. Purses are looked at
/// first and changed last, so that a call without money takes no room in a rate.
async fn take(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Result<(), StoreError> {
    rules::hold_to(tx, batch, verdicts).await?;
    let held = purses::hold(tx, batch, verdicts).await?;
    purses::spend(&held, batch, verdicts);
    rates::take(tx, batch, verdicts).await?;
    purses::keep(tx, &held, batch, verdicts).await
}

/// Reads where the runs stand, and says which appends pass and why the others do not.
async fn judge(
    tx: &mut Tx,
    batch: &[Box<Prepared>],
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

/// Does what is recorded. Where it cannot be done the whole batch fails, and is tried again one by one.
async fn carry_out(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &Verdicts) -> Result<(), StoreError> {
    for (append, _) in batch.iter().zip(verdicts).filter(|(_, verdict)| verdict.is_ok()) {
        match &append.doing {
            Some(Doing::SaveAgent(row)) => agents::save(tx, row, row.version.saturating_sub(1)).await?,
            Some(Doing::DeleteAgent(id, version)) => agents::delete(tx, append.scope, *id, *version).await?,
            Some(Doing::RemoveRule(id)) => rules::remove(tx, append.scope, *id).await?,
            Some(Doing::Admit(change)) => admission::admit(tx, change).await?,
            Some(Doing::Key(change)) => provider_keys::change(tx, append.scope, change).await?,
            Some(Doing::ReplaceMaster(keys)) => keys::replace_master(tx, keys).await?,
            Some(Doing::AddNotebook(row)) => tenants::add_notebook(tx, row).await?,
            Some(Doing::RenameNotebook(id, slug)) => tenants::rename_notebook(tx, append.scope, *id, slug).await?,
            Some(Doing::RemoveNotebook(id)) => removal::remove_notebook(tx, append.scope, *id).await?,
            Some(Doing::CloseWorkspace(id)) => removal::close_workspace(tx, *id).await?,
            Some(Doing::AddWorkspace(new)) => tenants::add_tenant(tx, new).await?,
            Some(Doing::SaveWorkspace(row)) => tenants::save_workspace(tx, row).await?,
            Some(Doing::StartWaiting(run)) => waiting::become_run(tx, append.scope, *run).await?,
            Some(Doing::Halt(switch)) => meta::turn(tx, switch).await?,
            Some(Doing::Spend(spends)) => purses::change(tx, spends).await?,
            None => {}
        }
    }
    Ok(())
}

async fn extend_streams(tx: &mut Tx, batch: &[Box<Prepared>], verdicts: &mut Verdicts) -> Result<(), StoreError> {
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
