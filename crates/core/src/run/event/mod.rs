//! The events of a run, in their stored form. A body gains fields only with a default; a kind never changes meaning.

mod approval;
mod call;
mod end;
mod filter;
mod model;
mod start;

pub use approval::{Actor, ApprovalAsked, ApprovalDecided, ApprovalKind, Decision, GrantScope, Risk};
pub use call::{
    CallEnded, CallInDoubt, CallJudged, CallProposed, CallStarted, Decided, DoubtOutcome, InDoubtResolved, Standing,
    StartedAgain,
};
pub use end::{
    BudgetAlerted, CancelAsked, Cancelled, EndStatus, Errored, LabelsRaised, PauseReason, Paused, Resumed, RunEnded,
};
pub use filter::ContentFiltered;
pub use model::{ModelAnswered, ModelFailed, ModelRequested, Said, Thought, ThoughtForm};
pub use start::{Attachment, Base, Effects, RunLimits, RunStarted};

use std::borrow::Cow;

use crate::content::{Content, Hash};
use crate::guard::redact::Held;

/// What an event is, which decides what becomes of it when an append loses a race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Somebody asked for something; any node may record it.
    Command,
    /// Something happened outside; it is never dropped.
    Fact,
    /// We concluded something; it is concluded again after a lost race.
    Decision,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident $kind:literal;)*) => {
        /// One entry in a run's log.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "events are handled one at a time; a box would only be in the way")]
        pub enum Event {$( $(#[$doc])* $name($name), )*}

        impl Event {
            /// The stored name of the kind.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                match self {$( Self::$name(_) => $kind, )*}
            }

            /// Every stored kind.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            fn json(&self) -> Result<String, serde_json::Error> {
                match self {$( Self::$name(body) => serde_json::to_string(body), )*}
            }

            /// Reads a stored event.
            ///
            /// # Errors
            /// An unknown kind, or a body that is not of its kind: the run must stop, not guess.
            pub fn decode(kind: &str, body: &[u8]) -> Result<Self, BadEvent> {
                match kind {
                    $( $kind => serde_json::from_slice(body).map(Self::$name)
                        .map_err(|source| BadEvent::Body { kind: $kind, source }), )*
                    _ => Err(BadEvent::UnknownKind(kind.to_owned())),
                }
            }
        }

        $( impl From<$name> for Event {
            fn from(body: $name) -> Self { Self::$name(body) }
        } )*
    };
}

events! {
    /// The run was asked for.
    RunStarted "run_started";
    /// A model call is about to be made.
    ModelRequested "model_requested";
    /// The model thought, or spoke before calling tools.
    Thought "thought";
    /// The model gave its final answer.
    Said "said";
    /// A model call ended well.
    ModelAnswered "model_answered";
    /// A model call failed.
    ModelFailed "model_failed";
    /// The model asked for a tool call.
    CallProposed "call_proposed";
    /// The guard judged a call.
    CallJudged "call_judged";
    /// A person is asked.
    ApprovalAsked "approval_asked";
    /// A person (or the clock) decided.
    ApprovalDecided "approval_decided";
    /// A tool call is about to be made.
    CallStarted "call_started";
    /// A call has its one result.
    CallEnded "call_ended";
    /// A started call may or may not have happened.
    CallInDoubt "call_in_doubt";
    /// A person said what became of a call in doubt.
    InDoubtResolved "in_doubt_resolved";
    /// The run has seen content of a new kind.
    LabelsRaised "labels_raised";
    /// A content filter changed, held back or labelled a text.
    ContentFiltered "content_filtered";
    /// Spending has reached an amount that somebody wanted to hear of.
    BudgetAlerted "budget_alerted";
    /// The run holds.
    Paused "paused";
    /// The run goes on.
    Resumed "resumed";
    /// Somebody asked to cancel.
    CancelAsked "cancel_asked";
    /// The run was cancelled.
    Cancelled "cancelled";
    /// Something went wrong that ends the run.
    Errored "errored";
    /// The run is over.
    RunEnded "run_ended";
}

/// A stored event that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum BadEvent {
    /// A newer version wrote it.
    #[error("the log holds an event of the unknown kind `{0}`; it was written by a newer version")]
    UnknownKind(String),
    /// The body is not what its kind says.
    #[error("the log holds a `{kind}` event that cannot be read")]
    Body {
        /// The kind.
        kind: &'static str,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// A JSON object with a random salt as its first field.
pub(crate) fn salted(json: &str, salt: [u8; 16]) -> Vec<u8> {
    let mut body = String::with_capacity(json.len() + 48);
    body.push_str("{\"salt\":\"");
    for byte in salt {
        body.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        body.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    body.push('"');
    if json.len() > 2 {
        body.push(',');
    }
    body.push_str(&json[1..]);
    body.into_bytes()
}

impl Event {
    /// The stored body: JSON with a random salt first, so that a hash of a short body tells nothing.
    ///
    /// # Errors
    /// When a body cannot be written as JSON.
    pub fn encode(&self, salt: [u8; 16]) -> Result<Vec<u8>, serde_json::Error> {
        Ok(salted(&self.json()?, salt))
    }

    /// What becomes of the event when its append loses a race.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::RunStarted(_) | Self::InDoubtResolved(_) | Self::CancelAsked(_) => Class::Command,
            Self::ApprovalDecided(ApprovalDecided { by, .. }) | Self::Resumed(Resumed { by, .. }) => match by {
                Actor::User(_) | Actor::Rule(_) => Class::Command,
                // That a time has come is concluded, not asked for.
                Actor::Clock => Class::Decision,
            },
            Self::Paused(paused) => match paused.reason {
                PauseReason::Person => Class::Command,
                PauseReason::Budget | PauseReason::Rate => Class::Decision,
            },
            Self::Thought(_)
            | Self::Said(_)
            | Self::ModelAnswered(_)
            | Self::ModelFailed(_)
            | Self::CallProposed(_)
            | Self::CallInDoubt(_)
            | Self::LabelsRaised(_)
            | Self::ContentFiltered(_) => Class::Fact,
            Self::CallEnded(ended) => {
                if ended.allowed {
                    Class::Fact
                } else {
                    Class::Decision
                }
            }
            Self::ModelRequested(_)
            | Self::BudgetAlerted(_)
            | Self::CallJudged(_)
            | Self::ApprovalAsked(_)
            | Self::CallStarted(_)
            | Self::Cancelled(_)
            | Self::Errored(_)
            | Self::RunEnded(_) => Class::Decision,
        }
    }

    /// The blocks the event refers to: long texts, and what was there before a change.
    #[must_use]
    pub fn blocks(&self) -> Vec<Hash> {
        let mut blocks: Vec<_> = self.contents().into_iter().filter_map(Content::block).collect();
        if let Self::CallEnded(body) = self {
            blocks.extend(body.resources.iter().filter_map(|made| made.before));
        }
        blocks
    }

    /// The event without the credentials that are held here. One of them that is also a word of the log's own, such as an
    /// id, is only taken out of texts: what cannot be read again would be no event.
    #[must_use]
    pub fn without(self, held: &Held) -> Self {
        let event = self.with_clean_texts(held);
        let clean = event.json().ok().and_then(|json| event.clean(&json, held));
        clean.unwrap_or(event)
    }

    /// The event without the credentials that are held here, and its stored form: written down once where there are none, as
    /// nearly always.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn encode_without(self, held: &Held, salt: [u8; 16]) -> Result<(Self, Vec<u8>), serde_json::Error> {
        let event = self.with_clean_texts(held);
        let json = event.json()?;
        match event.clean(&json, held) {
            None => Ok((event, salted(&json, salt))),
            Some(clean) => clean.encode(salt).map(|body| (clean, body)),
        }
    }

    fn with_clean_texts(mut self, held: &Held) -> Self {
        for content in self.contents_mut() {
            if let Some(Cow::Owned(clean)) = content.loaded().map(|text| held.clean(text)) {
                *content = Content::new(clean);
            }
        }
        self
    }

    /// What this event is without what is held, if any of that is in it.
    fn clean(&self, json: &str, held: &Held) -> Option<Self> {
        let body = held.clean_json(json)?;
        let mut clean = Self::decode(self.kind(), &body).ok()?;
        for (new, old) in clean.contents_mut().into_iter().zip(self.contents()) {
            if let Some(text) = old.loaded() {
                new.fill(text);
            }
        }
        Some(clean)
    }

    /// The texts it holds, to be filled or changed.
    #[must_use]
    pub fn contents_mut(&mut self) -> Vec<&mut Content> {
        match self {
            Self::RunStarted(body) => {
                let attached = body.attachments.iter_mut().map(|attached| &mut attached.content);
                let composed = [&mut body.system_prompt, &mut body.tools];
                let said = body.user_message.iter_mut().chain(&mut body.instructions);
                said.chain(composed).chain(attached).collect()
            }
            Self::Thought(body) => vec![&mut body.text],
            Self::Said(body) => vec![&mut body.text],
            Self::CallProposed(body) => vec![&mut body.arguments],
            Self::ApprovalAsked(body) => std::iter::once(&mut body.arguments).chain(&mut body.diff).collect(),
            Self::ApprovalDecided(body) => body.arguments.iter_mut().collect(),
            Self::CallStarted(body) => vec![&mut body.arguments],
            Self::CallEnded(body) => vec![&mut body.output],
            Self::CallInDoubt(body) => body.arguments.iter_mut().collect(),
            Self::InDoubtResolved(body) => body.result.iter_mut().collect(),
            Self::RunEnded(body) => vec![&mut body.result],
            Self::ModelAnswered(ModelAnswered { frames, .. }) | Self::ModelFailed(ModelFailed { frames, .. }) => {
                frames.iter_mut().collect()
            }
            Self::ModelRequested(_)
            | Self::CallJudged(_)
            | Self::LabelsRaised(_)
            | Self::ContentFiltered(_)
            | Self::BudgetAlerted(_)
            | Self::Paused(_)
            | Self::Resumed(_)
            | Self::CancelAsked(_)
            | Self::Cancelled(_)
            | Self::Errored(_) => Vec::new(),
        }
    }

    /// The texts of the event that may live in blocks.
    pub fn contents(&self) -> Vec<&Content> {
        match self {
            Self::RunStarted(body) => {
                let attached = body.attachments.iter().map(|attached| &attached.content);
                let said = body.user_message.iter().chain(&body.instructions);
                said.chain([&body.system_prompt, &body.tools]).chain(attached).collect()
            }
            Self::Thought(body) => vec![&body.text],
            Self::Said(body) => vec![&body.text],
            Self::CallProposed(body) => vec![&body.arguments],
            Self::ApprovalAsked(body) => std::iter::once(&body.arguments).chain(&body.diff).collect(),
            Self::ApprovalDecided(body) => body.arguments.iter().collect(),
            Self::CallStarted(body) => vec![&body.arguments],
            Self::CallEnded(body) => vec![&body.output],
            Self::CallInDoubt(body) => body.arguments.iter().collect(),
            Self::InDoubtResolved(body) => body.result.iter().collect(),
            Self::RunEnded(body) => vec![&body.result],
            Self::ModelAnswered(ModelAnswered { frames, .. }) | Self::ModelFailed(ModelFailed { frames, .. }) => {
                frames.iter().collect()
            }
            Self::ModelRequested(_)
            | Self::CallJudged(_)
            | Self::LabelsRaised(_)
            | Self::ContentFiltered(_)
            | Self::BudgetAlerted(_)
            | Self::Paused(_)
            | Self::Resumed(_)
            | Self::CancelAsked(_)
            | Self::Cancelled(_)
            | Self::Errored(_) => Vec::new(),
        }
    }
}
