//! How a run begins: everything a request to the model needs beside the events that follow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{Content, Hash};
use crate::guard::policy::Autonomy;
use crate::id::{AgentId, ChatId, KeyId, NotebookId, RunId, UserId, WorkspaceId};
use crate::label::Labels;
use crate::money::MicroUsd;
use crate::options::ModelOptions;
use crate::routing::Strategy;
use crate::safety::Standings;

/// What a run is built on: another run's transcript up to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// The run.
    pub run: RunId,
    /// Its last event that counts.
    pub seq: u64,
}

/// Limits of one run, fixed when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunLimits {
    /// Model turns.
    pub turns: u32,
    /// Tool calls.
    pub tool_calls: u32,
    /// Output tokens of one model call.
    pub output_tokens: u32,
    /// Bytes of context handed to the model.
    pub context_bytes: u64,
}

/// A file that came with a message, as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attachment {
    /// Where it is in the notebook.
    pub path: String,
    /// What it is: `text/plain`, or the type of a picture.
    pub media_type: String,
    /// Its text, or the bytes of a picture in base64.
    pub content: Content,
    /// What it adds to the run's labels.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
}

impl Attachment {
    /// Whether only a model that sees can use it.
    #[must_use]
    pub fn is_image(&self) -> bool {
        self.media_type.starts_with("image/")
    }
}

/// The run was asked for. Everything a request to the model needs, beside the events, is here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunStarted {
    /// The run.
    pub run: RunId,
    /// Its tenant.
    pub workspace: WorkspaceId,
    /// Its chat.
    pub chat: ChatId,
    /// Its agent.
    pub agent: AgentId,
    /// The version of the agent.
    pub agent_version: u64,
    /// The hash of the agent's configuration.
    pub policy: Hash,
    /// Its notebook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notebook: Option<NotebookId>,
    /// The person it acts for.
    pub initiator: UserId,
    /// What started it.
    pub trigger: String,
    /// The transcript it is built on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Base>,
    /// The run it replaces, after an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<RunId>,
    /// What the person said; none for a fork that goes on from its base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_message: Option<Content>,
    /// What came with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The model, resolved.
    pub model: String,
    /// Those that may stand in for it, in order, resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// How the model was chosen, where the agent left it open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<Strategy>,
    /// What the run may cost; none is no limit of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<MicroUsd>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// How the model is asked beyond that.
    #[serde(default, skip_serializing_if = "ModelOptions::is_empty")]
    pub options: ModelOptions,
    /// The stored key that whoever started it named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The JSON Schema that the answer has to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<String>,
    /// Instructions of its own, in place of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Content>,
    /// The composed system prompt.
    pub system_prompt: Content,
    /// The tool definitions: a JSON list.
    pub tools: Content,
    /// Labels of the transcript it is built on.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// Its limits.
    pub limits: RunLimits,
    /// Its own autonomy, where that is lower than the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autonomy: Option<Autonomy>,
    /// Whether effects are real.
    #[serde(default)]
    pub effects: Effects,
    /// Whether the model is shown outputs that nobody here wrote within a frame. What was recorded before there was one does not
    /// say, and is shown as it was then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quoted: bool,
    /// Whether what goes over the wire in its model calls is kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub debug: bool,
    /// How what keeps it safe stood then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub safety: Standings,
    /// IANA time zone of the workspace then.
    pub time_zone: String,
    /// Free fields of the caller, never shown to a model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The trace that asked for it, in the form of the W3C header; none where nobody watches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
}

impl RunStarted {
    /// The run it was made from: what it takes the place of, or what it goes on from without a message of its own.
    #[must_use]
    pub fn parent(&self) -> Option<RunId> {
        let forked = || self.base.filter(|_| self.user_message.is_none()).map(|base| base.run);
        self.supersedes.or_else(forked)
    }
}

/// Whether a run acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// It acts.
    #[default]
    Live,
    /// It only reads; everything else is answered "not run".
    Dry,
}
