//! The transcript that a run is built on. What earlier runs of a chat said never changes, so it is worked out once and kept
//! for a while; only erasing ends it, and that is asked of the store each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::message::Message;
use adjutant_core::run::event::Base;
use adjutant_core::run::state::State;
use adjutant_core::run::transcript;
use adjutant_store::Link;

use crate::engine::{Engine, lock};
use crate::error::EngineError;
use crate::log::decode;

/// Runs a transcript is built on at the most, so that a chain of forks cannot be followed for ever.
const BASES: usize = 10_000;
/// Runs that are read together.
const TOGETHER: u32 = 128;
/// Bytes of transcripts that are kept, counted as a model counts them.
const KEPT: u64 = 16 * 1024 * 1024;
/// What a run is counted as beside its texts.
const OVERHEAD: u64 = 512;

/// What one run says to those that are built on it.
#[derive(Clone)]
struct Said {
    messages: Arc<[Message]>,
    size: u64,
    base: Option<Base>,
}

impl Said {
    fn of(state: &State) -> Self {
        let messages = transcript::messages(state);
        let size = transcript::size(&messages);
        Self { messages: messages.into(), size, base: state.start.as_ref().and_then(|start| start.base) }
    }
}

/// Where something was said: a run up to one of its events.
type Place = (WorkspaceId, RunId, u64);

/// What was worked out lately. Bounded; what is not used goes first.
#[derive(Default)]
pub(crate) struct Bases(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    said: HashMap<Place, Used>,
    bytes: u64,
    clock: u64,
}

struct Used {
    said: Said,
    /// The workspace had seen so many erasures when it was read.
    erasures: u64,
    at: u64,
}

impl Bases {
    fn get(&self, place: Place, erasures: u64) -> Option<Said> {
        let mut kept = lock(&self.0);
        kept.clock += 1;
        let now = kept.clock;
        let used = kept.said.get_mut(&place).filter(|used| used.erasures == erasures)?;
        used.at = now;
        Some(used.said.clone())
    }

    fn put(&self, place: Place, erasures: u64, said: &Said) {
        let mut kept = lock(&self.0);
        kept.clock += 1;
        let used = Used { said: said.clone(), erasures, at: kept.clock };
        let before = kept.said.insert(place, used).map_or(0, |before| before.said.size + OVERHEAD);
        kept.bytes = kept.bytes + said.size + OVERHEAD - before;
        if kept.bytes > KEPT {
            kept.forget_half();
        }
    }
}

impl Kept {
    fn forget_half(&mut self) {
        let mut times: Vec<u64> = self.said.values().map(|used| used.at).collect();
        times.sort_unstable();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        self.said.retain(|_, used| used.at > middle);
        self.bytes = self.said.values().map(|used| used.said.size + OVERHEAD).sum();
    }
}

impl Engine {
    /// The transcript a run is built on, newest first and only as far as the window reaches.
    pub(crate) async fn base_messages(
        &self,
        workspace: WorkspaceId,
        mut base: Option<Base>,
        window: u64,
    ) -> Result<Vec<Message>, EngineError> {
        if base.is_none() {
            return Ok(Vec::new());
        }
        let erasures = self.store().erasures(workspace).await?;
        let mut parts: Vec<Said> = Vec::new();
        let mut room = window;
        let mut read = Vec::new().into_iter();
        while let Some(Base { run, seq }) = base.filter(|_| parts.len() < BASES) {
            let place = (workspace, run, seq);
            let said = match self.bases().get(place, erasures) {
                Some(said) => said,
                None => {
                    let mut link = read.find(|link: &Link| link.run == run);
                    if link.is_none() {
                        read = self.store().branch(workspace, run, seq, TOGETHER).await?.into_iter();
                        link = read.find(|link: &Link| link.run == run);
                    }
                    let Some(link) = link else { break };
                    // What was erased is no longer part of the conversation.
                    let Some(state) = readable(folded(&link))? else { break };
                    let said = Said::of(&state);
                    self.bases().put(place, erasures, &said);
                    said
                }
            };
            base = said.base;
            let size = said.size;
            parts.push(said);
            if size >= room {
                break;
            }
            room -= size;
        }
        Ok(parts.iter().rev().flat_map(|said| said.messages.iter().cloned()).collect())
    }

    /// The state at the end of a run that another is to be built on.
    pub(crate) async fn tip_state(&self, workspace: WorkspaceId, run: RunId, seq: u64) -> Result<State, EngineError> {
        let erasures = self.store().erasures(workspace).await?;
        let state = state_at(self, workspace, run, seq).await?;
        self.bases().put((workspace, run, seq), erasures, &Said::of(&state));
        Ok(state)
    }
}

fn folded(link: &Link) -> Result<State, EngineError> {
    let mut state = State::default();
    for entry in &link.entries {
        let event = decode(link.run, entry)?;
        state.apply(&event, entry.seq, entry.time).map_err(|bad| EngineError::impossible(link.run, &bad))?;
    }
    Ok(state)
}

fn readable(state: Result<State, EngineError>) -> Result<Option<State>, EngineError> {
    match state {
        Err(EngineError::Erased { .. }) => Ok(None),
        other => other.map(Some),
    }
}

/// The state of a run after one of its events.
pub(crate) async fn state_at(
    engine: &Engine,
    workspace: WorkspaceId,
    run: RunId,
    seq: u64,
) -> Result<State, EngineError> {
    let mut state = State::default();
    for recorded in engine.recorded(workspace, run, 0, Some(seq)).await? {
        state.apply(&recorded.event, recorded.seq, recorded.at).map_err(|bad| EngineError::impossible(run, &bad))?;
    }
    Ok(state)
}
