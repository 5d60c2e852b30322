//! The log in memory: all or nothing, guarded like the databases' appends.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use adjutant_core::budget::spend_all;
use adjutant_core::content::Hash;
use adjutant_core::guard::rate::take_all;
use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::run::chain::{Entry, Head, StreamId};

use super::audit::order;
use super::{Fault, FaultPoint, Memory, MemoryConfig, Shared, State, lock};
use crate::StoreError;
use crate::branch::Link;
use crate::prepare::{check, makes_due};
use crate::row::{Append, Block, CallRow, Change, Doing, RunChange, RunRow, Writer};
use crate::runs::ERASED;
use crate::seal::Scope;

impl Memory {
    pub(crate) async fn append(&self, append: Append) -> Result<Head, StoreError> {
        // As with a real database, others may get in between the call and the commit.
        tokio::task::yield_now().await;
        let commit = Commit::new(append)?;
        let fault = (self.config.faults)(&commit.point);
        let unheard = |_| Err(StoreError::unavailable("simulated: the reply was lost"));
        match fault {
            Fault::None => commit.make(&self.shared, &self.config),
            Fault::FailBefore => Err(StoreError::unavailable("simulated: nothing was written")),
            Fault::Full => Err(StoreError::file(std::io::ErrorKind::StorageFull.into())),
            Fault::Broken => Err(StoreError::other("simulated: the disk failed")),
            Fault::LostReply => commit.make(&self.shared, &self.config).and_then(unheard),
            Fault::SlowReply(time) => {
                let answer = commit.make(&self.shared, &self.config);
                tokio::time::sleep(time).await;
                answer
            }
            Fault::Twice => {
                let again = commit.clone();
                let _ = commit.make(&self.shared, &self.config);
                // Somebody may come in between, too.
                tokio::task::yield_now().await;
                again.make(&self.shared, &self.config)
            }
            Fault::Late(time) => {
                let (shared, config) = (Arc::clone(&self.shared), self.config.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    // Nobody waits for the answer any more.
                    let _ = commit.make(&shared, &config);
                });
                Err(StoreError::unavailable("simulated: it may be written later"))
            }
        }
    }

    pub(crate) fn events(
        &self,
        workspace: WorkspaceId,
        stream: StreamId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let state = self.state();
        let entries = state.events.get(&(scope, stream)).map_or(&[][..], Vec::as_slice);
        let rest = usize::try_from(after).ok().and_then(|after| entries.get(after..)).unwrap_or_default();
        Ok(rest.iter().take(limit as usize).cloned().collect())
    }

    pub(crate) fn branch(
        &self,
        workspace: WorkspaceId,
        run: RunId,
        seq: u64,
        limit: u32,
    ) -> Result<Vec<Link>, StoreError> {
        let mut links = Vec::new();
        let mut next = Some((run, seq));
        for _ in 0..limit {
            let Some((run, seq)) = next else { break };
            let mut entries = self.events(workspace, StreamId::Run(run), 0, u32::MAX)?;
            entries.retain(|entry| entry.seq <= seq);
            if !entries.is_empty() {
                links.push(Link { run, entries });
            }
            let state = self.state();
            next = state.runs.get(&run).filter(|row| row.workspace == workspace).and_then(|row| row.base);
        }
        Ok(links)
    }

    pub(crate) fn erasures(&self, workspace: WorkspaceId) -> Result<u64, StoreError> {
        let state = self.state();
        state.assert_workspace(workspace)?;
        Ok(state.erasures.get(&workspace).copied().unwrap_or_default())
    }

    pub(crate) fn blocks(&self, workspace: WorkspaceId, hashes: &[Hash]) -> Result<HashMap<Hash, Vec<u8>>, StoreError> {
        let state = self.state();
        let block = |hash: &Hash| state.blocks.get(&(Scope::Workspace(workspace), *hash)).map(|b| (*hash, b.clone()));
        Ok(hashes.iter().filter_map(block).collect())
    }

    pub(crate) fn put_blocks(&self, workspace: WorkspaceId, blocks: Vec<Block>) -> Result<(), StoreError> {
        let mut state = self.state();
        state.assert_workspace(workspace)?;
        state.put_blocks(Scope::Workspace(workspace), blocks);
        Ok(())
    }

    pub(crate) fn erase_bodies(&self, workspace: WorkspaceId, stream: StreamId) -> Result<u64, StoreError> {
        let scope = Scope::of(workspace, stream).ok_or(StoreError::NotFound)?;
        let mut state = self.state();
        *state.erasures.entry(workspace).or_default() += 1;
        let bodies = state.events.get_mut(&(scope, stream)).into_iter().flatten();
        let erased = bodies.filter_map(|entry| entry.body.take()).count();
        let mine: Vec<_> = state.refs.iter().filter(|key| key.0 == scope && key.2 == stream).copied().collect();
        for key in mine {
            state.refs.remove(&key);
            if !state.refs.iter().any(|other| (other.0, other.1) == (key.0, key.1)) {
                state.blocks.remove(&(key.0, key.1));
            }
        }
        if let StreamId::Run(run) = stream {
            if let Some(row) = state.runs.get_mut(&run).filter(|row| row.workspace == workspace) {
                ERASED.clone_into(&mut row.state.summary);
            }
            for row in state.approvals.values_mut().filter(|row| row.workspace == workspace && row.run == run) {
                ERASED.clone_into(&mut row.card);
            }
            for row in state.calls.values_mut().filter(|row| row.workspace == workspace && row.run == run) {
                row.target = None;
            }
            let mine = state.audit.iter_mut().filter(|(key, row)| key.0 == scope && row.run == Some(run));
            mine.for_each(|(_, row)| row.target = None);
        }
        Ok(erased as u64)
    }
}

/// An append that was found to be in order.
#[derive(Clone)]
struct Commit {
    append: Append,
    scope: Scope,
    head: Head,
    due: bool,
    point: FaultPoint,
}

impl Commit {
    fn new(append: Append) -> Result<Self, StoreError> {
        let scope = Scope::of(append.workspace, append.stream).ok_or(StoreError::NotFound)?;
        let (head, due) = (check(&append)?, makes_due(&append));
        let point = FaultPoint {
            stream: append.stream,
            writer: append.writer,
            after: append.expected.seq,
            events: append.entries.len(),
            release: matches!(append.run, Some(RunChange::Update { release: true, .. })),
        };
        Ok(Self { append, scope, head, due, point })
    }

    fn make(self, shared: &Shared, config: &MemoryConfig) -> Result<Head, StoreError> {
        let Self { append, scope, head, due, point } = self;
        let written = {
            let mut state = lock(&shared.state);
            let spends = match &append.doing {
                Some(Doing::Spend(spends)) => spends,
                _ => &append.spends,
            };
            let taken = guard(&state, scope, &append)
                .and_then(|()| state.hold_to(append.workspace, append.under.as_ref()))
                .and_then(|()| spend_all(&state.purses, spends).map_err(StoreError::Overspent))
                .and_then(|purses| {
                    let rates =
                        take_all(&state.rates, &append.takings, Some((config.clock)())).map_err(StoreError::UsedUp)?;
                    Ok((purses, rates))
                });
            taken.map(|(purses, rates)| {
                (state.purses, state.rates) = (purses, rates);
                write(&mut state, scope, head, append);
            })
        };
        let answer = written.map(|()| head);
        (config.seen)(&point, &answer);
        if answer.is_ok() {
            shared.tell(Change::of(point.writer, point.stream));
            if due {
                shared.tell(Change::Due);
            }
        }
        answer
    }
}

/// Refuses what the databases refuse, before anything is changed.
fn guard(state: &State, scope: Scope, append: &Append) -> Result<(), StoreError> {
    if let Scope::Workspace(workspace) = scope {
        state.assert_workspace(workspace)?;
    }
    let stale = StoreError::Stale { fenced: false };
    match (append.stream, &append.run) {
        (StreamId::Run(run), Some(RunChange::Start { row, tip, .. })) => {
            if state.runs.contains_key(&run) {
                return Err(stale);
            }
            let gone = |notebook| !state.notebooks.contains_key(&(append.workspace, notebook));
            if row.notebook.is_some_and(gone) {
                return Err(stale);
            }
            let chat = state.chats.get(&(append.workspace, row.chat));
            if tip.advance && chat.is_none_or(|chat| chat.tip != tip.expected) {
                return Err(stale);
            }
        }
        (StreamId::Run(run), Some(RunChange::Update { .. })) => {
            let row = state.runs.get(&run).filter(|row| row.workspace == append.workspace);
            let row = row.ok_or(StoreError::NotFound)?;
            let fenced = match append.writer {
                Writer::Owner { node, epoch } => row.owner != Some(node) || row.epoch != epoch,
                Writer::Command => false,
            };
            if fenced || row.head != append.expected {
                return Err(StoreError::Stale { fenced });
            }
        }
        (stream, _) => {
            let head = state.streams.get(&(scope, stream)).copied().unwrap_or(Head::START);
            if head != append.expected {
                return Err(stale);
            }
        }
    }
    if let Some(doing) = &append.doing {
        state.may_do(append.workspace, doing)?;
    }
    let mut ended = BTreeSet::new();
    for row in new_results(append) {
        let key = (row.run, row.call.clone());
        if state.results.contains_key(&key) || !ended.insert(key) {
            return Err(StoreError::Conflict(format!("call {} has its result", row.call)));
        }
    }
    Ok(())
}

/// The results that this append's own events bring.
fn new_results(append: &Append) -> impl Iterator<Item = &CallRow> {
    let expected = append.expected.seq;
    append.calls.iter().filter(move |row| row.ended.is_some_and(|end| end.seq > expected))
}

fn write(state: &mut State, scope: Scope, head: Head, append: Append) {
    for row in new_results(&append) {
        if let Some(end) = row.ended {
            state.results.insert((row.run, row.call.clone()), end);
        }
    }
    if let Some(doing) = append.doing {
        state.carry_out(append.workspace, doing);
    }
    for row in append.model_calls {
        state.model_calls.entry((row.log, row.turn, row.attempt)).or_insert(row);
    }
    for row in append.calls {
        state.calls.insert((row.run, row.call.clone()), CallRow { ended: None, ..row });
    }
    state.marks.extend(append.marks.into_iter().map(|row| (append.workspace, row)));
    for row in append.rules {
        state.rules.entry((row.workspace, row.id)).or_insert(row);
    }
    for row in append.audit {
        state.audit.insert((scope, order(row.place())), row);
    }
    for row in append.approvals {
        state.approvals.insert((row.workspace, row.id), row);
    }
    match (append.stream, append.run) {
        (StreamId::Run(run), Some(RunChange::Start { row, tip, places })) => {
            if let Some(first) = tip.supersedes {
                let old = state.runs.range_mut(first..).map(|(_, old)| old);
                for old in old.filter(|old| old.workspace == row.workspace && old.chat == row.chat) {
                    old.superseded_by.get_or_insert(run);
                }
            }
            if let Some(chat) = state.chats.get_mut(&(row.workspace, row.chat)).filter(|_| tip.advance) {
                chat.tip = Some(run);
            }
            state.places.insert(run, places);
            state.runs.insert(run, RunRow { head, owner: None, epoch: 0, superseded_by: None, ..*row });
        }
        (StreamId::Run(run), Some(RunChange::Update { state: new, release })) => {
            if let Some(row) = state.runs.get_mut(&run) {
                row.head = head;
                row.state = new;
                row.owner = row.owner.filter(|_| !release);
            }
        }
        (stream, _) => {
            state.streams.insert((scope, stream), head);
        }
    }
    for block in &append.blocks {
        state.refs.insert((scope, block.hash, append.stream));
    }
    state.put_blocks(scope, append.blocks);
    state.events.entry((scope, append.stream)).or_default().extend(append.entries);
}

impl State {
    fn put_blocks(&mut self, scope: Scope, blocks: Vec<Block>) {
        for block in blocks {
            self.blocks.entry((scope, block.hash)).or_insert(block.bytes);
        }
    }
}
