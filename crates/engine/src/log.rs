//! A run's log in memory: what is durable, what is about to be written, and the state they fold to.

mod contents;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use adjutant_core::budget::{Overspent, Spend};
use adjutant_core::content::Hash;
use adjutant_core::guard::rate::{Taking, UsedUp};
use adjutant_core::guard::redact::Held;
use adjutant_core::id::{CallId, NotebookId, RunId, WorkspaceId};
use adjutant_core::run::chain::{Entry, Head, StreamId};
use adjutant_core::run::event::{Class, Event};
use adjutant_core::run::state::State;
use adjutant_core::time::Time;
use adjutant_store::row::{Append, MarkRow, ModelCallRow, RuleRow, RunChange, Under, Writer};
use adjutant_store::{Store, StoreError};

use self::contents::in_use;
pub(crate) use self::contents::{blocks_of, texts};
use crate::audit::run_rows;
use crate::env::Env;
use crate::error::EngineError;
use crate::meter::Tally;
use crate::projection;
use crate::rates::Limited;
use crate::service::rules;
use crate::spending;

/// Events read from the store at a time.
const PAGE: u32 = 512;

/// One event with its place and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its place in the log.
    pub seq: u64,
    /// When it was recorded.
    pub at: Time,
    /// What happened.
    pub event: Event,
}

/// What became of a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flushed {
    /// Everything is durable.
    Written,
    /// A command came in between: the facts are kept, what was concluded has to be concluded again.
    Rebased,
    /// Somebody else drives the run now.
    Fenced,
    /// The log holds more than commands that we did not write: it has to be read afresh.
    Overtaken,
}

/// What was found in the log beyond what we knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// Nothing, or what was asked of the run.
    Up,
    /// Somebody else's facts and decisions, or our own that came late.
    Overtaken,
}

/// The log of one run.
pub(crate) struct RunLog {
    store: Store,
    env: Env,
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
    /// The fold of everything durable and everything pending.
    pub(crate) state: State,
    /// The durable head.
    pub(crate) head: Head,
    pending: Vec<Pending>,
    /// What was written last, for whoever follows the run.
    written: Vec<Recorded>,
    blocks: HashMap<Hash, Vec<u8>>,
    /// What was kept and is durable: it is not written again.
    kept: HashSet<Hash>,
    /// The credentials that nothing here may hold.
    held: Arc<Held>,
    /// Contents of files to mark with the next append.
    marks: BTreeSet<MarkRow>,
    /// What found no room in its rate, by its call; none stands for the model call.
    pub(crate) limited: BTreeMap<Option<CallId>, Limited>,
    /// The purse that had too little in it for the model call.
    pub(crate) overspent: Option<Overspent>,
    /// The policy that the calls of the next append were judged by.
    pub(crate) under: Option<Under>,
}

/// An event that is about to be written. It is encoded once: an append that is tried again must be the same to the last
/// byte, or its first attempt could not be told from somebody else's.
struct Pending {
    event: Event,
    at: Time,
    body: Vec<u8>,
    /// What it takes from rates.
    taking: Option<Taking>,
    /// What it changes in purses.
    spends: Vec<Spend>,
    /// The model call that is over with it.
    model_call: Option<ModelCallRow>,
}

impl RunLog {
    /// Reads a whole log.
    pub(crate) async fn load(
        store: &Store,
        env: &Env,
        workspace: WorkspaceId,
        run: RunId,
    ) -> Result<Self, EngineError> {
        let mut log = Self {
            store: store.clone(),
            env: env.clone(),
            workspace,
            run,
            state: State::default(),
            head: Head::START,
            pending: Vec::new(),
            written: Vec::new(),
            blocks: HashMap::new(),
            kept: HashSet::new(),
            held: Arc::default(),
            marks: BTreeSet::new(),
            limited: BTreeMap::new(),
            overspent: None,
            under: None,
        };
        log.catch_up().await?;
        log.load_texts().await?;
        Ok(log)
    }

    /// Loads the texts that are acted on or shown in lists: what was said, the arguments of open calls, the last answer.
    pub(crate) async fn load_texts(&mut self) -> Result<(), EngineError> {
        let missing: Vec<_> = in_use(&mut self.state).iter().filter_map(|content| content.missing()).collect();
        let loaded = texts(&self.store, self.workspace, &missing).await?;
        for content in in_use(&mut self.state) {
            if let Some(text) = content.missing().and_then(|hash| loaded.get(&hash)) {
                content.fill(text);
            }
        }
        Ok(())
    }

    /// Reads what others have appended. Only right while nothing is pending.
    pub(crate) async fn catch_up(&mut self) -> Result<Caught, EngineError> {
        let mut caught = Caught::Up;
        loop {
            let entries = self.store.events(self.workspace, StreamId::Run(self.run), self.head.seq, PAGE).await?;
            let last = entries.len() < PAGE as usize;
            for entry in entries {
                self.head = entry
                    .follows(self.head)
                    .map_err(|broken| EngineError::BadLog { run: self.run, why: broken.to_string() })?;
                let event = decode(self.run, &entry)?;
                if event.class() != Class::Command {
                    caught = Caught::Overtaken;
                }
                self.state
                    .apply(&event, entry.seq, entry.time)
                    .map_err(|bad| EngineError::impossible(self.run, &bad))?;
            }
            if last {
                return Ok(caught);
            }
        }
    }

    /// Takes these credentials out of whatever is pushed from now on.
    pub(crate) fn hold(&mut self, held: Arc<Held>) {
        self.held = held;
    }

    /// Adds an event to what will be written next.
    pub(crate) fn push(&mut self, event: impl Into<Event>) -> Result<(), EngineError> {
        let at = self.env.now();
        self.push_at(event.into(), at)
    }

    /// The same for an event that takes from rates: it is written only if there is room.
    pub(crate) fn push_taking(&mut self, event: impl Into<Event>, taking: Option<Taking>) -> Result<(), EngineError> {
        self.push(event)?;
        if let Some(pending) = self.pending.last_mut() {
            pending.taking = taking;
        }
        Ok(())
    }

    /// The same for an event that changes purses: it is written only if the money is there.
    pub(crate) fn push_spending(
        &mut self,
        event: impl Into<Event>,
        taking: Option<Taking>,
        spends: Vec<Spend>,
    ) -> Result<(), EngineError> {
        self.push_taking(event, taking)?;
        if let Some(pending) = self.pending.last_mut() {
            pending.spends = spends;
        }
        Ok(())
    }

    fn push_at(&mut self, event: Event, at: Time) -> Result<(), EngineError> {
        let (event, body) = event
            .encode_without(&self.held, self.env.random())
            .map_err(|bad| EngineError::BadLog { run: self.run, why: bad.to_string() })?;
        let seq = self.head.seq + self.pending.len() as u64 + 1;
        let (spends, model_call) = spending::of_event(&self.state, &event, at);
        self.state.apply(&event, seq, at).map_err(|bad| EngineError::impossible(self.run, &bad))?;
        self.pending.push(Pending { event, at, body, taking: None, spends, model_call });
        Ok(())
    }

    /// Keeps a content that the next events refer to.
    pub(crate) fn keep(&mut self, bytes: Vec<u8>) {
        let hash = Hash::of(&bytes);
        if !self.kept.contains(&hash) {
            self.blocks.insert(hash, bytes);
        }
    }

    /// Marks a content of a file with the next append. One that is marked and never written does no harm.
    pub(crate) fn mark(&mut self, notebook: NotebookId, path: String, hash: Hash) {
        self.marks.insert(MarkRow { notebook, path, hash });
    }

    /// What was written last.
    pub(crate) fn take_written(&mut self) -> Vec<Recorded> {
        std::mem::take(&mut self.written)
    }

    /// Whether everything is durable.
    pub(crate) fn is_flushed(&self) -> bool {
        self.pending.is_empty()
    }

    /// What is pending, with its times.
    pub(crate) fn pending(&self) -> Vec<(Time, Event)> {
        self.pending.iter().map(|pending| (pending.at, pending.event.clone())).collect()
    }

    /// What there is to count of what is pending.
    pub(crate) fn tally(&self) -> Tally {
        self.pending.iter().map(|pending| &pending.event).collect()
    }

    /// Writes what is pending, in one transaction. `release` also gives the run back.
    pub(crate) async fn flush(&mut self, writer: Writer, release: bool) -> Result<Flushed, EngineError> {
        if self.pending.is_empty() && !release {
            return Ok(Flushed::Written);
        }
        let entries = self.entries();
        let expected = entries.last().map_or(self.head, Entry::head);
        let append = Append {
            workspace: self.workspace,
            stream: StreamId::Run(self.run),
            expected: self.head,
            writer,
            blocks: self.blocks_to_write(),
            run: Some(RunChange::Update { state: projection::run_state(&self.state), release }),
            approvals: projection::approval_rows(&self.state, self.pending.iter().map(|pending| &pending.event)),
            calls: projection::call_rows(&self.state, self.pending.iter().map(|pending| &pending.event)),
            rules: self.rules_to_write()?,
            audit: run_rows(&self.state, self.numbered()),
            marks: self.marks.iter().cloned().collect(),
            takings: self.pending.iter().filter_map(|pending| pending.taking.clone()).collect(),
            model_calls: self.pending.iter().filter_map(|pending| pending.model_call.clone()).collect(),
            doing: None,
            under: self.under.clone(),
            spends: self.pending.iter().flat_map(|pending| pending.spends.clone()).collect(),
            entries,
        };
        // Nothing that is pending is forgotten before it is known to be durable.
        match self.store.append(append).await {
            Ok(head) => {
                self.written(head);
                Ok(Flushed::Written)
            }
            Err(StoreError::Stale { fenced }) => self.after_stale(expected, fenced).await,
            Err(StoreError::UsedUp(refused)) => {
                let now = self.env.now();
                let limited = refused.iter().filter_map(|used| Some((self.taker(used)?, Limited::new(used, now))));
                let limited = limited.collect();
                self.start_over().await?;
                self.limited = limited;
                Ok(Flushed::Rebased)
            }
            Err(StoreError::Overspent(refused)) => {
                self.start_over().await?;
                // What was to be pointed out twice is left out; only money that is not there is a reason to hold.
                self.overspent = refused.into_iter().find(|over| over.needed.0 > 0);
                Ok(Flushed::Rebased)
            }
            Err(other) => Err(other.into()),
        }
    }

    fn written(&mut self, head: Head) {
        let numbers = self.head.seq + 1..;
        let recorded = |(seq, Pending { event, at, .. })| Recorded { seq, at, event };
        self.written = numbers.zip(self.pending.drain(..)).map(recorded).collect();
        self.head = head;
        self.marks.clear();
        self.under = None;
        self.kept.extend(self.blocks.drain().map(|(hash, _)| hash));
    }

    /// An append was refused. Either it had been written after all (its answer was lost), or somebody was faster.
    async fn after_stale(&mut self, expected: Head, fenced: bool) -> Result<Flushed, EngineError> {
        let entries = self.store.events(self.workspace, StreamId::Run(self.run), self.head.seq, PAGE).await?;
        if !self.pending.is_empty() && entries.iter().any(|entry| entry.head() == expected) {
            // The hash covers a random salt, so an equal head is this very append: only its answer was lost.
            self.written(expected);
            return Ok(match self.catch_up().await? {
                _ if fenced => Flushed::Fenced,
                Caught::Up => Flushed::Written,
                Caught::Overtaken => Flushed::Overtaken,
            });
        }
        if fenced {
            return Ok(Flushed::Fenced);
        }
        self.start_over().await?;
        Ok(Flushed::Rebased)
    }

    /// Whose event a refused taking belongs to.
    fn taker(&self, used: &UsedUp) -> Option<Option<CallId>> {
        let taking = self.pending.iter().filter(|pending| pending.taking.is_some()).nth(used.taking)?;
        match &taking.event {
            Event::CallStarted(body) => Some(Some(body.call.clone())),
            Event::ModelRequested(_) => Some(None),
            _ => None,
        }
    }

    /// Reads the log afresh and keeps what happened meanwhile; what was concluded has to be concluded again.
    async fn start_over(&mut self) -> Result<(), EngineError> {
        let mut fresh = Self::load(&self.store, &self.env, self.workspace, self.run).await?;
        fresh.blocks = std::mem::take(&mut self.blocks);
        fresh.marks = std::mem::take(&mut self.marks);
        fresh.held = Arc::clone(&self.held);
        for Pending { event, at, .. } in std::mem::take(&mut self.pending) {
            if event.class() == Class::Fact {
                fresh.push_if_it_fits(event, at)?;
            }
        }
        *self = fresh;
        Ok(())
    }

    /// Adds a fact after a lost race. One that cannot follow any more is in the log in another form: an append of ours that
    /// counted as failed was written after all, late.
    fn push_if_it_fits(&mut self, event: Event, at: Time) -> Result<(), EngineError> {
        match self.push_at(event, at) {
            Err(EngineError::BadLog { run, why }) => {
                tracing::warn!(%run, why, "what happened is in the log already");
                Ok(())
            }
            other => other,
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, Time, &Event)> {
        let numbers = self.head.seq + 1..;
        numbers.zip(&self.pending).map(|(seq, pending)| (seq, pending.at, &pending.event))
    }

    fn entries(&self) -> Vec<Entry> {
        let mut head = self.head;
        let mut entries = Vec::with_capacity(self.pending.len());
        for Pending { event, at, body, .. } in &self.pending {
            let entry = Entry::next(StreamId::Run(self.run), head, event.kind(), *at, body.clone());
            head = entry.head();
            entries.push(entry);
        }
        entries
    }

    /// The rules that decisions made: they are written with them, or not at all.
    fn rules_to_write(&self) -> Result<Vec<RuleRow>, EngineError> {
        let decided = self.pending.iter().filter_map(|pending| match &pending.event {
            Event::ApprovalDecided(body) => body.rule.as_deref(),
            _ => None,
        });
        decided.map(|rule| rules::row(self.workspace, rule)).collect()
    }
}

/// Reads one stored event. An erased body leaves nothing to read.
pub(crate) fn decode(run: RunId, entry: &Entry) -> Result<Event, EngineError> {
    let body = entry.body.as_deref().ok_or(EngineError::Erased { run })?;
    Event::decode(&entry.kind, body).map_err(|bad| EngineError::bad_event(run, &bad))
}
