//! What is recorded of a model call: that it is about to be made, what the model said, how it ended.

use serde::{Deserialize, Serialize};

use crate::content::{Content, Hash};
use crate::id::KeyId;
use crate::message::FinishReason;
use crate::money::{MicroUsd, TokenUsage};
use crate::time::Time;

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
    /// What it can cost at the most, put aside in `purses`; none where the price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<MicroUsd>,
    /// The purses it was put aside in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub purses: Vec<String>,
    /// The stored key it is made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyId>,
    /// The state of the prices that it was put aside by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_version: Option<String>,
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
    /// How many calls of the turn came before it: providers want it back in its place.
    #[serde(default, skip_serializing_if = "is_none_yet")]
    pub after_calls: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_none_yet(number: &u32) -> bool {
    *number == 0
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
    /// The state of the prices that the cost was reckoned with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_version: Option<String>,
    /// Why it stopped.
    pub finish: FinishReason,
    /// The model that answered.
    pub served_model: String,
    /// How long it took.
    pub ms: u64,
    /// How long its first piece took; none where it came in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_ms: Option<u64>,
    /// Why the answer does not fit the schema of the run; the model is asked again, or the run fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// What went over the wire, where the run keeps it: without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Content>,
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
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The model that the next attempt asks instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether a piece of the answer was shown before it failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// What it is counted as: nobody can say what a lost answer cost, so it counts as all that was put aside for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MicroUsd>,
    /// What went over the wire, where the run keeps it: without keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Content>,
    /// The model that began to answer, where it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_model: Option<String>,
    /// Tokens, as far as something was heard of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Whether some of the tokens are our estimate because the provider did not say.
    #[serde(default, skip_serializing_if = "is_false")]
    pub estimated: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}
