//! How a provider may differ from the chat completions protocol as the original speaks it. Words alone: what they mean on the wire
//! is where requests are written and answers read.

use crate::wire::talk::IdForm;

/// How the limit of output tokens is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitName {
    /// `max_completion_tokens`: the original, whose newer models refuse the old name.
    MaxCompletionTokens,
    /// `max_tokens`: everyone else, of whom many do not know the new one.
    MaxTokens,
}

/// Whether a count of tokens has to be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counting {
    /// With `stream_options`.
    Asked,
    /// It comes by itself, and the question may be refused.
    ByItself,
}

/// What becomes of reasoning in text form that a model showed before a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reasoning {
    /// It has no place in the protocol.
    Dropped,
    /// It goes back as `reasoning_content` until the person speaks again; without it the next call is refused or worse.
    SentBack,
}

/// Whether the count of output holds the reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputCount {
    /// As in the original.
    WithReasoning,
    /// The reasoning comes on top.
    WithoutReasoning,
}

/// Whether a provider says what it took for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Charge {
    /// It does not, or not in a way to rely on.
    Unsaid,
    /// In dollars, as `cost` beside the tokens.
    Said,
}

/// How a provider differs from the chat completions protocol as the original speaks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Habits {
    pub(crate) limit: LimitName,
    pub(crate) counting: Counting,
    pub(crate) ids: IdForm,
    pub(crate) reasoning: Reasoning,
    pub(crate) output: OutputCount,
    pub(crate) charge: Charge,
}

/// Those of most.
pub(super) const COMPATIBLE: Habits = Habits {
    limit: LimitName::MaxTokens,
    counting: Counting::Asked,
    ids: IdForm::Word,
    reasoning: Reasoning::Dropped,
    output: OutputCount::WithReasoning,
    charge: Charge::Unsaid,
};

/// Those of the original.
pub(super) const ORIGINAL: Habits = Habits { limit: LimitName::MaxCompletionTokens, ..COMPATIBLE };
