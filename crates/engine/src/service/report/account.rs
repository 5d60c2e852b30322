//! What a run's document says beside its answer: who began it and with what, what it waited for, what went wrong on the way,
//! and what the guard made of it. All of it is read from the log.

use std::collections::BTreeMap;

use adjutant_core::content::Hash;
use adjutant_core::guard::judge::Decision;
use adjutant_core::id::RunId;
use adjutant_core::label::Labels;
use adjutant_core::options::ToolChoice;
use adjutant_core::run::event::{Actor, Effects, Event, ModelFailed, RunStarted};
use adjutant_core::run::state::State;
use adjutant_core::safety::Standings;
use adjutant_core::time::Time;
use adjutant_core::tool::{Resource, ResourceAction};
use serde::Serialize;

use crate::env::millis;
use crate::log::Recorded;

/// What there is to say of a run beside its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Account {
    /// What it wrote into what its agent remembers.
    pub memory_deltas: Vec<MemoryDelta>,
    /// What went wrong on the way.
    pub diagnostics: Diagnostics,
    /// The run it was made from: forked, edited, or extended after a limit.
    pub parent_run_id: Option<RunId>,
    /// What the guard made of it.
    pub enforcement: Enforcement,
    /// What was tried again.
    pub retry_info: RetryInfo,
    /// The seed that its model was given.
    pub seed: Option<u64>,
    /// Whether its first answer had to use a tool, where that was said.
    pub tool_choice: Option<ToolChoice>,
    /// Whether the same request would be answered the same.
    pub deterministic: bool,
    /// The files that came with its message, by path.
    pub attachments: BTreeMap<String, AttachmentReport>,
    /// Who began it.
    pub initiated_by: Actor,
    /// What began it: `message`, …
    pub trigger: String,
    /// The task it works on.
    pub task_id: Option<String>,
    /// When it was put into the queue.
    pub queued_at: Time,
    /// Free fields of whoever began it.
    pub metadata: BTreeMap<String, String>,
}

/// Something that an agent remembers, and that the run changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryDelta {
    /// Its name.
    pub id: String,
    /// What was done.
    pub op: ResourceAction,
    /// Whose it is.
    pub scope: &'static str,
    /// The hash of what was there before.
    pub before_hash: Option<Hash>,
    /// The hash of what is there now.
    pub after_hash: Option<Hash>,
}

/// What went wrong on the way.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Diagnostics {
    /// Sentences for people.
    pub warnings: Vec<String>,
    /// The trace it belongs to.
    pub traces: Vec<String>,
    /// Whether something old was left out so that a request fitted its model.
    pub truncated: bool,
}

/// What the guard made of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Enforcement {
    /// Whether its effects are real.
    pub effects: Effects,
    /// Calls that ran unasked.
    pub allowed: usize,
    /// Calls that a person was asked about.
    pub asked: usize,
    /// Calls that were refused unasked.
    pub denied: usize,
    /// What it has seen.
    pub labels: Seen,
    /// How what keeps it safe stood when it began.
    pub safety: Standings,
}

/// What a run has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// A tenant's own data.
    pub private: bool,
    /// Content that no member wrote.
    pub untrusted: bool,
}

impl From<Labels> for Seen {
    fn from(labels: Labels) -> Self {
        Self { private: labels.private, untrusted: labels.untrusted }
    }
}

/// What was tried again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RetryInfo {
    /// Model calls that failed.
    pub attempts: usize,
    /// Why the last of them did.
    pub last_error: Option<String>,
}

/// A file that came with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttachmentReport {
    /// What it is.
    pub media_type: String,
    /// The hash of what it held then.
    pub hash: Hash,
}

impl Account {
    pub(super) fn of(start: RunStarted, state: &State, recorded: &[Recorded], parent: Option<RunId>) -> Self {
        let failures: Vec<&ModelFailed> = recorded.iter().filter_map(|item| failed(&item.event)).collect();
        let dropped = |item: &Recorded| matches!(&item.event, Event::ModelRequested(body) if body.dropped > 0);
        let resources = recorded.iter().filter_map(|item| ended(&item.event)).flatten();
        Self {
            memory_deltas: resources.filter(|made| made.kind == "kv").map(MemoryDelta::of).collect(),
            diagnostics: Diagnostics {
                warnings: failures.iter().map(|failure| failure.message.clone()).collect(),
                traces: start.traceparent.into_iter().collect(),
                truncated: recorded.iter().any(dropped),
            },
            parent_run_id: parent,
            enforcement: Enforcement::of(start.effects, start.safety, state),
            retry_info: RetryInfo {
                attempts: failures.len(),
                last_error: failures.last().map(|failure| failure.message.clone()),
            },
            seed: start.options.seed.map(u64::from),
            tool_choice: start.options.tool_choice,
            deterministic: false,
            attachments: start
                .attachments
                .into_iter()
                .map(|file| (file.path, AttachmentReport { media_type: file.media_type, hash: file.content.hash() }))
                .collect(),
            initiated_by: Actor::User(start.initiator),
            trigger: start.trigger,
            task_id: None,
            queued_at: state.started_at,
            metadata: start.metadata,
        }
    }
}

fn failed(event: &Event) -> Option<&ModelFailed> {
    match event {
        Event::ModelFailed(body) => Some(body),
        _ => None,
    }
}

fn ended(event: &Event) -> Option<&[Resource]> {
    match event {
        Event::CallEnded(body) => Some(&body.resources),
        _ => None,
    }
}

impl MemoryDelta {
    fn of(made: &Resource) -> Self {
        Self {
            id: made.path.clone(),
            op: made.action,
            scope: "agent",
            before_hash: made.before,
            after_hash: made.after,
        }
    }
}

impl Enforcement {
    fn of(effects: Effects, safety: Standings, state: &State) -> Self {
        let calls: Vec<_> = state.turns.iter().flat_map(|turn| turn.calls.iter()).collect();
        let asked = calls.iter().filter(|call| call.approval.is_some()).count();
        let unasked = calls.iter().filter(|call| call.approval.is_none()).filter_map(|call| call.judged.as_ref());
        let unasked: Vec<_> = unasked.map(|judged| judged.verdict.decision).collect();
        let count = |wanted: Decision| unasked.iter().filter(|decision| **decision == wanted).count();
        let (allowed, denied) = (count(Decision::Allow), count(Decision::Deny));
        Self { effects, allowed, asked, denied, labels: state.labels.into(), safety }
    }
}

/// How long a run stood still because a person had to say something, or because it was held.
pub(super) fn waited(recorded: &[Recorded]) -> u64 {
    let (mut items, mut held, mut since, mut sum) = (Vec::new(), false, None::<Time>, 0);
    for item in recorded {
        match &item.event {
            Event::ApprovalAsked(body) => items.push(body.approval),
            Event::CallInDoubt(body) => items.push(body.approval),
            Event::ApprovalDecided(body) => items.retain(|known| *known != body.approval),
            Event::InDoubtResolved(body) => items.retain(|known| *known != body.approval),
            Event::Paused(_) => held = true,
            Event::Resumed(_) => held = false,
            Event::RunEnded(_) => (items, held) = (Vec::new(), false),
            _ => {}
        }
        match (since, held || !items.is_empty()) {
            (None, true) => since = Some(item.at),
            (Some(from), false) => (since, sum) = (None, sum + millis(item.at.since(from))),
            (None, false) | (Some(_), true) => {}
        }
    }
    sum
}
