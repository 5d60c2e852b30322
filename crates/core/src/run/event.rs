//! The events of a run, in their stored form. A body gains fields only with a default; a kind never changes meaning.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::{Content, Hash};
use crate::guard::judge::Verdict;
use crate::id::{AgentId, ApprovalId, CallId, ChatId, NotebookId, RunId, UserId, WorkspaceId};
use crate::label::Labels;
use crate::message::FinishReason;
use crate::money::{MicroUsd, TokenUsage};
use crate::time::Time;
use crate::tool::{Prepared, Recovery, Resource, Target};

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

impl Event {
    /// The stored body: JSON with a random salt first, so that a hash of a short body tells nothing.
    ///
    /// # Errors
    /// When a body cannot be written as JSON.
    pub fn encode(&self, salt: [u8; 16]) -> Result<Vec<u8>, serde_json::Error> {
        let json = self.json()?;
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
        Ok(body.into_bytes())
    }

    /// What becomes of the event when its append loses a race.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::RunStarted(_)
            | Self::ApprovalDecided(_)
            | Self::InDoubtResolved(_)
            | Self::CancelAsked(_)
            | Self::Resumed(_) => Class::Command,
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
            | Self::LabelsRaised(_) => Class::Fact,
            Self::CallEnded(ended) => {
                if ended.allowed {
                    Class::Fact
                } else {
                    Class::Decision
                }
            }
            Self::ModelRequested(_)
            | Self::CallJudged(_)
            | Self::ApprovalAsked(_)
            | Self::CallStarted(_)
            | Self::Cancelled(_)
            | Self::Errored(_)
            | Self::RunEnded(_) => Class::Decision,
        }
    }

    /// The texts of the event that may live in blocks.
    pub fn contents(&self) -> Vec<&Content> {
        match self {
            Self::RunStarted(body) => body.user_message.iter().chain([&body.system_prompt, &body.tools]).collect(),
            Self::Thought(body) => vec![&body.text],
            Self::Said(body) => vec![&body.text],
            Self::CallProposed(body) => vec![&body.arguments],
            Self::ApprovalAsked(body) => std::iter::once(&body.arguments).chain(&body.diff).collect(),
            Self::ApprovalDecided(body) => body.arguments.iter().collect(),
            Self::CallStarted(body) => vec![&body.arguments],
            Self::CallEnded(body) => vec![&body.output],
            Self::InDoubtResolved(body) => body.result.iter().collect(),
            Self::RunEnded(body) => vec![&body.result],
            Self::ModelRequested(_)
            | Self::ModelAnswered(_)
            | Self::ModelFailed(_)
            | Self::CallJudged(_)
            | Self::CallInDoubt(_)
            | Self::LabelsRaised(_)
            | Self::Paused(_)
            | Self::Resumed(_)
            | Self::CancelAsked(_)
            | Self::Cancelled(_)
            | Self::Errored(_) => Vec::new(),
        }
    }
}

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
    /// The model, resolved.
    pub model: String,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The composed system prompt.
    pub system_prompt: Content,
    /// The tool definitions: a JSON list.
    pub tools: Content,
    /// Labels of the transcript it is built on.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// Its limits.
    pub limits: RunLimits,
    /// Whether effects are real.
    #[serde(default)]
    pub effects: Effects,
    /// IANA time zone of the workspace then.
    pub time_zone: String,
    /// Free fields of the caller, never shown to a model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
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

/// A model call is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelRequested {
    /// The turn, from 1.
    pub turn: u32,
    /// The attempt at this turn, from 1.
    pub attempt: u32,
    /// The model.
    pub model: String,
    /// The hash of the request: how replay proves that it is the same.
    pub request: Hash,
    /// Bytes of old content left out to fit the window.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The model thought, or spoke before calling tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Thought {
    /// The turn.
    pub turn: u32,
    /// Reasoning or text.
    pub form: ThoughtForm,
    /// What it thought.
    pub text: Content,
    /// The provider's proof that the reasoning is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// What a thought is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThoughtForm {
    /// The provider's reasoning.
    Reasoning,
    /// Text before tool calls.
    Text,
}

/// The model gave its final answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// The turn.
    pub turn: u32,
    /// The answer.
    pub text: Content,
}

/// A model call ended well. It follows the thoughts and the answer, and precedes the calls of its turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswered {
    /// The turn.
    pub turn: u32,
    /// How many calls follow.
    pub calls: u32,
    /// Tokens.
    pub usage: TokenUsage,
    /// Whether the tokens are our estimate because the provider did not say.
    #[serde(default)]
    pub estimated: bool,
    /// What it cost; none where the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// The model that answered.
    pub served_model: String,
    /// How long it took.
    pub ms: u64,
}

/// A model call failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFailed {
    /// The turn.
    pub turn: u32,
    /// The attempt.
    pub attempt: u32,
    /// What kind of failure: `rate_limited`, `timeout`, `lost`, …
    pub class: String,
    /// What happened, fit for a client.
    pub message: String,
    /// When the next attempt is due; none when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Time>,
}

/// The model asked for a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallProposed {
    /// The turn.
    pub turn: u32,
    /// The call.
    pub call: CallId,
    /// The tool, as the model wrote it.
    pub tool: String,
    /// The arguments, as the model wrote them.
    pub arguments: Content,
}

/// The guard judged a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallJudged {
    /// The call.
    pub call: CallId,
    /// The verdict with its deciding rule.
    pub verdict: Verdict,
    /// The hash of the policy it was judged under.
    pub policy: Hash,
    /// What the tool saw before, if the call came that far. The judgement depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepared: Option<Prepared>,
}

/// What an approval is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalKind {
    /// A tool call.
    Call,
    /// A call that may or may not have happened.
    InDoubt,
    /// More money.
    Budget,
}

/// A person is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalAsked {
    /// The approval.
    pub approval: ApprovalId,
    /// What it is about.
    pub kind: ApprovalKind,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that would run.
    pub arguments: Content,
    /// One line: what would happen.
    pub summary: String,
    /// What would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Content>,
    /// What the approval is bound to.
    pub fingerprint: Hash,
    /// The state of the target the person sees.
    #[serde(default, skip_serializing_if = "Target::is_empty")]
    pub target: Target,
    /// `low`, `medium` or `high`.
    pub risk: Risk,
    /// Why it asks.
    pub reason: String,
    /// The rule that asks.
    pub rule: String,
    /// What the run has seen so far.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// How far an approval may reach.
    pub allowed_scopes: Vec<GrantScope>,
    /// When silence counts as no.
    pub expires_at: Time,
}

/// How much harm a call can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It can be taken back and makes something new.
    Low,
    /// It can be taken back.
    Medium,
    /// It cannot be taken back.
    High,
}

/// How far an approval reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// This call.
    Once,
    /// Calls of the same tool in the same folder, for the rest of the run.
    Run,
}

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Run it.
    Approve,
    /// Run it with these arguments instead.
    Edit,
    /// Do not run it; this is the answer.
    Respond,
    /// Do not run it.
    Reject,
    /// Do not run it and end the run.
    Stop,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "id", rename_all = "snake_case")]
pub enum Actor {
    /// A person.
    User(UserId),
    /// The clock: it expired.
    Clock,
    /// A rule that was given with the command.
    Rule(String),
}

/// A person (or the clock) decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalDecided {
    /// The approval.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// The decision.
    pub decision: Decision,
    /// Who decided.
    pub by: Actor,
    /// How far it reaches.
    pub scope: GrantScope,
    /// The arguments to run instead, after an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Content>,
    /// What the person added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A tool call is about to be made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallStarted {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// The arguments that run.
    pub arguments: Content,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The idempotency key.
    pub key: Hash,
    /// What becomes of it if its end is never recorded.
    pub recovery: Recovery,
    /// The state of the target before.
    #[serde(default, skip_serializing_if = "Target::is_empty")]
    pub target: Target,
    /// The state it is meant to leave behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intended: Option<Target>,
}

/// A call has its one result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallEnded {
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: String,
    /// What the model reads.
    pub output: Content,
    /// Whether it failed or was refused.
    pub is_error: bool,
    /// Whether it was allowed to run.
    pub allowed: bool,
    /// The rule that stopped it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// How long it took.
    #[serde(default)]
    pub ms: u64,
    /// What its output adds to the run's labels.
    #[serde(default, skip_serializing_if = "Labels::is_none")]
    pub labels: Labels,
    /// What it created, changed or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resource>,
}

/// A started call may or may not have happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallInDoubt {
    /// The call.
    pub call: CallId,
    /// The inbox item that asks a person.
    pub approval: ApprovalId,
    /// The tool.
    pub tool: String,
    /// What is known.
    pub message: String,
}

/// What became of a call in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtOutcome {
    /// It happened.
    Happened,
    /// It did not: run it.
    Run,
    /// Leave it.
    Abandon,
}

/// A person said what became of a call in doubt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InDoubtResolved {
    /// The inbox item.
    pub approval: ApprovalId,
    /// The call.
    pub call: CallId,
    /// What became of it.
    pub outcome: DoubtOutcome,
    /// Its result, if it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Content>,
    /// Who said so.
    pub by: Actor,
}

/// The run has seen content of a new kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelsRaised {
    /// What was added.
    pub labels: Labels,
    /// Where it came from.
    pub source: String,
}

/// Why a run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseReason {
    /// Somebody asked.
    Person,
    /// A budget is used up.
    Budget,
    /// A rate is used up.
    Rate,
}

/// The run holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    /// Why.
    pub reason: PauseReason,
    /// When it goes on by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// The run goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// Who said so.
    pub by: Actor,
}

/// Somebody asked to cancel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CancelAsked {
    /// Who.
    pub by: Actor,
    /// Why.
    pub reason: String,
}

/// The run was cancelled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cancelled {
    /// Why.
    pub reason: String,
}

/// Something went wrong that ends the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Errored {
    /// The machine's word.
    pub code: String,
    /// What happened, what was not done, what to do next.
    pub message: String,
    /// Whether starting again may help.
    #[serde(default)]
    pub retryable: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum EndStatus {
    /// With an answer.
    Completed,
    /// With an error.
    Failed,
    /// By request.
    Cancelled,
}

/// The run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunEnded {
    /// How.
    pub status: EndStatus,
    /// The answer, or the last text.
    pub result: Content,
    /// Tokens in all.
    pub usage: TokenUsage,
    /// Money in all.
    pub cost: MicroUsd,
    /// Files it created, changed or deleted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files_modified: Vec<String>,
}
