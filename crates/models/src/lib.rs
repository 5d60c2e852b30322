//! Talking to models: one trait, a registry of providers, and the models that need no provider (demo, scripted,
//! recorded). This crate calls providers and nothing else: it stores nothing, runs no tool, reads no file and no
//! environment, and never builds an HTTP client of its own.

pub mod catalog;
pub mod chain;
mod claude;
pub mod demo;
mod error;
mod health;
mod notes;
mod protocol;
mod recorded;
mod registry;
pub mod retry;
pub mod router;
pub mod scripted;
mod source;
mod tape;
pub mod tokens;
mod vendor;
mod view;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::limits::MODEL_TIMEOUT;
use adjutant_core::message::{Delta, ModelAnswer, ModelRequest};
use adjutant_core::money::TokenUsage;
use async_trait::async_trait;
use tokio::sync::mpsc;

pub use error::{Detail, ModelError};
pub use health::Health;
pub use notes::{Noted, Notes};
pub use protocol::Protocol;
pub use protocol::embed::{Embedded, Purpose};
pub use recorded::{Recorded, Recording};
pub use registry::{Models, ProviderConfig, ProviderKind};
pub use scripted::Scripted;
pub use source::{Allowed, BroughtKey, KeyState, Lineup, ModelSource, Offer, ProviderFacts, WithKeys, chosen, lineup};
pub use tape::Tape;
pub use vendor::{KeyPlace, VENDORS, Vendor};
pub use wire::auth::{ApiKey, AwsKey, Credential};
pub use wire::list::Listed;
pub use wire::provider::{CALLS_AT_ONCE, RemoteConfig, Timeouts};

/// Something that answers requests.
///
/// To implement one, `answer` is enough: send pieces to `deltas` as they come, then return the whole answer. Return an answer only when the
/// provider said that it is complete. Cancelling is dropping the future, so hold nothing that outlives it. Texts of the
/// request have to be loaded (`ModelRequest::missing` is empty) before it gets here.
#[async_trait]
pub trait Model: Send + Sync {
    /// Answers one request.
    async fn answer(&self, request: &ModelRequest, deltas: &DeltaSink) -> Result<ModelAnswer, ModelError>;

    /// How long an answer may take in all.
    fn patience(&self) -> Duration {
        MODEL_TIMEOUT
    }

    /// Texts that one call of [`embed`](Self::embed) may be given.
    fn texts_at_once(&self) -> usize {
        1
    }

    /// Makes vectors of texts. Most models that answer make none.
    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Embedded, ModelError> {
        let _ = (texts, purpose);
        Err(ModelError::broken("this model makes no embeddings; use one that does"))
    }
}

/// Where live pieces of an answer go. Cheap to clone; pieces for nobody cost nothing.
#[derive(Clone, Default)]
pub struct DeltaSink {
    listen: Option<Arc<dyn Fn(Delta) + Send + Sync>>,
    tape: Option<Tape>,
    notes: Option<Notes>,
}

impl DeltaSink {
    /// Nobody listens.
    #[must_use]
    pub const fn none() -> Self {
        Self { listen: None, tape: None, notes: None }
    }

    /// Calls `listen` for each piece. It is called on the task that reads the answer, so it must not block.
    pub fn new(listen: impl Fn(Delta) + Send + Sync + 'static) -> Self {
        Self { listen: Some(Arc::new(listen)), ..Self::none() }
    }

    /// A sink and the end it flows to. The queue needs no bound of its own because one answer is bounded; a receiver
    /// that is gone is no reason to stop the answer.
    #[must_use]
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Delta>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let listen = move |delta| {
            let _ = sender.send(delta);
        };
        (Self::new(listen), receiver)
    }

    /// A sink that hands everything on here and calls `notice` before each piece.
    #[must_use]
    pub fn noticing(&self, notice: impl Fn() + Send + Sync + 'static) -> Self {
        let (hand_on, tape, notes) = (self.listen.clone(), self.tape.clone(), self.notes.clone());
        let listen = move |delta| {
            notice();
            if let Some(listen) = &hand_on {
                listen(delta);
            }
        };
        Self { tape, notes, ..Self::new(listen) }
    }

    /// The same, and what goes over the wire is kept here.
    #[must_use]
    pub fn taped(self, tape: Option<Tape>) -> Self {
        Self { tape, ..self }
    }

    /// The same, and what is heard of the answer is noted here.
    #[must_use]
    pub fn noted(self, notes: Notes) -> Self {
        Self { notes: Some(notes), ..self }
    }

    /// Notes which model answers, `provider/model`; the last word counts.
    pub fn served_by(&self, model: &str) {
        if let Some(notes) = &self.notes {
            notes.served_by(model);
        }
    }

    /// Notes what the provider counts so far; the last word counts.
    pub fn counted(&self, usage: TokenUsage) {
        if let Some(notes) = &self.notes {
            notes.counted(usage);
        }
    }

    /// Notes a piece that nobody is shown: the name or arguments of a call.
    pub(crate) fn written(&self, piece: &str) {
        if let Some(notes) = &self.notes {
            notes.came(piece);
        }
    }

    /// Where what goes over the wire is kept, if somebody wants it.
    pub(crate) const fn tape(&self) -> Option<&Tape> {
        self.tape.as_ref()
    }

    /// Hands on a piece of text.
    pub fn text(&self, piece: &str) {
        self.send(piece, Delta::Text);
    }

    /// Hands on a piece of reasoning.
    pub fn thinking(&self, piece: &str) {
        self.send(piece, Delta::Thinking);
    }

    fn send(&self, piece: &str, kind: fn(String) -> Delta) {
        self.written(piece);
        if let Some(listen) = &self.listen
            && !piece.is_empty()
        {
            listen(kind(piece.to_owned()));
        }
    }
}

impl fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.listen.is_some() { "DeltaSink(listening)" } else { "DeltaSink(nobody)" })
    }
}
