//! Live pieces between nodes: whoever follows a run that another node drives asks for them, and only then they are sent, many
//! together. They may be lost: the durable event replaces them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use adjutant_core::id::{RunId, WorkspaceId};
use adjutant_core::message::Delta;
use adjutant_store::{Listen, Live};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::engine::{Engine, lock};
use crate::spoken::{Piece, units};

/// How long a node is told of a run's pieces after it asked for them.
const WATCHED: Duration = Duration::from_secs(30);
/// How often whoever follows a run asks again.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// How long pieces are gathered before they are sent together.
const GATHER: Duration = Duration::from_millis(100);
/// How long a run that is followed from its start may take to find its node: most are driven where they were asked for.
const SETTLE: Duration = Duration::from_millis(50);
/// Bytes of text in one note.
const NOTE: usize = 2_000;

/// How long all of an answer is on its way before it is asked for again.
const WHOLE: Duration = Duration::from_secs(1);

/// One stretch of an answer: the turn, whether it is reasoning, where it begins, and the text.
type Said = (u32, bool, usize, String);

/// What is asked for and what is to be sent.
#[derive(Default)]
pub(crate) struct Relay {
    watched: Mutex<HashMap<RunId, Instant>>,
    /// All of an answer, for those who asked; before what is for everybody, which goes on from there.
    whole: Mutex<BTreeMap<(RunId, String), Vec<Said>>>,
    outgoing: Mutex<BTreeMap<RunId, Vec<Said>>>,
    said: Notify,
    /// Runs of which the beginning was not heard here.
    wanted: Mutex<HashSet<RunId>>,
    followed: Notify,
}

impl Relay {
    /// Somebody began to follow a run, or something of it was missed.
    pub(crate) fn want(&self, run: RunId) {
        if lock(&self.wanted).insert(run) {
            self.followed.notify_one();
        }
    }

    /// Another node asks for what was said so far in a run, and for what comes.
    pub(crate) fn begin(&self, run: RunId, by: String, so_far: &[Piece]) {
        let said: Vec<_> = so_far.iter().map(stretch).collect();
        if !said.is_empty() {
            lock(&self.whole).insert((run, by), said);
            self.said.notify_one();
        }
    }

    pub(crate) fn watch(&self, run: RunId) {
        let mut watched = lock(&self.watched);
        let now = Instant::now();
        watched.retain(|_, until| *until >= now);
        watched.insert(run, now + WATCHED);
    }

    /// A piece of a run that is driven here. Costs a look at an almost always empty map.
    pub(crate) fn say(&self, run: RunId, piece: &Piece) {
        let until = lock(&self.watched).get(&run).copied();
        if until.is_none_or(|until| until < Instant::now()) {
            return;
        }
        self.put(run, piece);
    }

    fn put(&self, run: RunId, piece: &Piece) {
        let (turn, thinking, at, text) = stretch(piece);
        let mut outgoing = lock(&self.outgoing);
        let said = outgoing.entry(run).or_default();
        let goes_on = |(turn, form, at, said): &&mut Said| {
            (*turn, *form) == (piece.turn, thinking) && said.len() < NOTE / 2 && *at + units(said) == piece.at
        };
        match said.last_mut().filter(goes_on) {
            Some(last) => last.3.push_str(&text),
            None => said.push((turn, thinking, at, text)),
        }
        drop(outgoing);
        self.said.notify_one();
    }
}

fn stretch(piece: &Piece) -> Said {
    match &piece.delta {
        Delta::Text(text) => (piece.turn, false, piece.at, text.clone()),
        Delta::Thinking(text) => (piece.turn, true, piece.at, text.clone()),
    }
}

/// Passes pieces between nodes until it is dropped.
pub(crate) async fn relay(engine: Engine) {
    tokio::join!(hear(&engine), send(&engine), ask(&engine));
}

async fn hear(engine: &Engine) {
    let mut notes = engine.store().live();
    loop {
        match notes.recv().await {
            Ok(Live::Watched(run)) => engine.feed().relay.watch(run),
            Ok(Live::Wanted { run, by }) => engine.feed().tell_all(run, by),
            Ok(Live::Said { workspace, run, sealed }) if engine.feed().is_followed(run) => {
                // What does not open or cannot be read is only live: the log has the whole.
                let Ok(bytes) = engine.store().open_note(workspace, run, sealed).await else { continue };
                let Ok((turn, thinking, at, text)) = serde_json::from_slice::<Said>(&bytes) else { continue };
                let delta = if thinking { Delta::Thinking(text) } else { Delta::Text(text) };
                engine.feed().hear(run, &Piece { turn, at, delta });
            }
            Ok(Live::Said { .. }) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

async fn send(engine: &Engine) {
    let relay = &engine.feed().relay;
    let mut homes: HashMap<RunId, WorkspaceId> = HashMap::new();
    loop {
        relay.said.notified().await;
        tokio::time::sleep(GATHER).await;
        let whole = std::mem::take(&mut *lock(&relay.whole));
        let outgoing = std::mem::take(&mut *lock(&relay.outgoing));
        homes.retain(|run, _| outgoing.contains_key(run));
        let whole = whole.into_iter().map(|((run, by), said)| (run, Some(by), said));
        for (run, to, said) in whole.chain(outgoing.into_iter().map(|(run, said)| (run, None, said))) {
            if let std::collections::hash_map::Entry::Vacant(home) = homes.entry(run) {
                match engine.store().find_run(run).await {
                    Ok(Some(workspace)) => drop(home.insert(workspace)),
                    Ok(None) | Err(_) => continue,
                }
            }
            let Some(workspace) = homes.get(&run) else { continue };
            for said in said.into_iter().flat_map(cut) {
                let Ok(bytes) = serde_json::to_vec(&said) else { continue };
                if let Err(error) = engine.store().say(*workspace, run, &bytes, to.as_deref()).await {
                    tracing::debug!(%run, %error, "live pieces did not reach the other nodes");
                }
            }
        }
    }
}

/// Parts of a text that fit into a note each, even where every letter is written as an escape.
fn cut((turn, thinking, mut at, text): Said) -> Vec<Said> {
    let mut parts = vec![String::new()];
    for letter in text.chars() {
        match parts.last_mut().filter(|part| part.len() + letter.len_utf8() <= NOTE / 4) {
            Some(part) => part.push(letter),
            None => parts.push(letter.to_string()),
        }
    }
    let placed = parts.into_iter().map(|part| {
        let from = at;
        at += units(&part);
        (turn, thinking, from, part)
    });
    placed.collect()
}

async fn ask(engine: &Engine) {
    let relay = &engine.feed().relay;
    let mut asked: HashMap<RunId, Instant> = HashMap::new();
    let mut begun: HashMap<RunId, Instant> = HashMap::new();
    loop {
        // Somebody new, or time to ask again.
        let pause = if begun.is_empty() { ASK_AGAIN } else { WHOLE };
        if tokio::time::timeout(pause, relay.followed.notified()).await.is_ok() {
            tokio::time::sleep(SETTLE).await;
        }
        let now = Instant::now();
        let runs: Vec<_> = engine.feed().followed().into_iter().filter(|run| !engine.claims().drives(*run)).collect();
        begun.retain(|_, at| *at + WHOLE > now);
        let whole = {
            let mut wanted = lock(&relay.wanted);
            wanted.retain(|run| runs.contains(run));
            // What was just asked for is on its way; if it does not come, it is asked for again.
            let whole: Vec<_> = wanted.iter().copied().filter(|run| !begun.contains_key(run)).collect();
            wanted.retain(|run| begun.contains_key(run));
            whole
        };
        asked.retain(|run, at| runs.contains(run) && *at + ASK_AGAIN > now);
        let onwards: Vec<_> = runs.into_iter().filter(|run| !asked.contains_key(run) && !whole.contains(run)).collect();
        for (runs, listen) in [(whole, Listen::FromTheStart), (onwards, Listen::Onwards)] {
            if runs.is_empty() {
                continue;
            }
            match engine.store().watch(&runs, listen).await {
                Ok(()) => {
                    asked.extend(runs.iter().map(|run| (*run, now)));
                    if listen == Listen::FromTheStart {
                        begun.extend(runs.iter().map(|run| (*run, now)));
                    }
                }
                Err(error) => tracing::debug!(%error, "other nodes were not asked for live pieces"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_into_notes_that_fit_and_loses_nothing() {
        let text = "\u{1}süß ".repeat(3_000);
        let parts = cut((3, false, 7, text.clone()));
        assert!(parts.iter().all(|part| serde_json::to_vec(part).unwrap().len() < 3_500), "{}", parts.len());
        let mut next = 7;
        for (_, _, at, part) in &parts {
            assert_eq!(*at, next);
            next += units(part);
        }
        assert_eq!(parts.into_iter().map(|(_, _, _, part)| part).collect::<String>(), text);
    }
}
