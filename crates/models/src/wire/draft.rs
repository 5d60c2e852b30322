//! An answer while it is being put together, the same for every protocol. Pure, and bounded: whoever sends without end is
//! refused. Arguments of calls are joined as the text they are; nothing here reads them, so that whoever judges a call sees
//! what the model wrote, doubled keys and all.

use adjutant_core::message::{FinishReason, ModelAnswer, RawCall, Thinking};
use adjutant_core::money::{MicroUsd, TokenUsage};

use super::fault::Fault;
use crate::{DeltaSink, Detail, ModelError};

/// Bytes of one whole answer: far above what the longest output of any model needs.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Calls of one answer. More than a turn may hold, so that the surplus is seen and refused by name, but not without
/// end.
const CALLS: usize = 256;
/// Dollars that one answer may have cost, if a provider is to be believed.
const DEAREST: f64 = 10_000.0;
/// Blocks of reasoning in one answer.
const THOUGHTS: usize = 1024;

/// Why a piece was not taken.
#[derive(Debug)]
pub(crate) enum Rejected {
    /// It is not what the protocol says.
    Unreadable,
    /// The answer is longer than any answer.
    TooLong,
    /// The provider says that it failed.
    Fault(Box<Fault>),
}

impl From<serde_json::Error> for Rejected {
    fn from(_: serde_json::Error) -> Self {
        Self::Unreadable
    }
}

impl Rejected {
    /// The provider says that it failed.
    pub(crate) fn fault(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }

    /// The error this is.
    pub(crate) fn into_error(self, model: &str, redact: impl Fn(&str) -> String) -> ModelError {
        match self {
            Self::Unreadable => ModelError::Truncated { reason: "a piece of it was not readable" },
            Self::TooLong => {
                ModelError::Unknown { reason: "its answer has no end", status: None, detail: Detail::default() }
            }
            Self::Fault(fault) => fault.into_error(model, redact),
        }
    }
}

/// Where a call or a block of reasoning is in the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place(usize);

/// What is known of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    deltas: DeltaSink,
    provider: String,
    text: String,
    thinking: Vec<Thinking>,
    refused: bool,
    calls: Vec<RawCall>,
    usage: Option<TokenUsage>,
    charged: Option<MicroUsd>,
    finish: Option<FinishReason>,
    ended: bool,
    served: Option<String>,
    bytes: usize,
}

impl Draft {
    /// An empty one of a provider, whose pieces go to `deltas` as they come.
    pub(crate) fn new(deltas: DeltaSink, provider: &str) -> Self {
        Self { deltas, provider: provider.to_owned(), ..Self::default() }
    }

    /// Adds text.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Rejected> {
        self.grow(text.len())?;
        self.text.push_str(text);
        self.deltas.text(text);
        Ok(())
    }

    /// Adds text with which the model declines.
    pub(crate) fn refuse(&mut self, text: &str) -> Result<(), Rejected> {
        self.refused |= !text.is_empty();
        self.say(text)
    }

    /// Begins a block of reasoning, which comes after all that was said and called so far.
    pub(crate) fn begin_thinking(&mut self) -> Result<Place, Rejected> {
        let after_calls = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        self.add_thinking(Thinking { after_text: self.text.len(), after_calls, ..Thinking::default() })
    }

    /// The last block of reasoning that nobody signed, or a new one: for protocols in which it has no place of its own.
    pub(crate) fn open_thinking(&mut self) -> Result<Place, Rejected> {
        match self.thinking.last() {
            Some(last) if last.signature.is_none() => Ok(Place(self.thinking.len() - 1)),
            Some(_) | None => self.add_thinking(Thinking::default()),
        }
    }

    /// A proof that says itself what it belongs to.
    pub(crate) fn prove(&mut self, proof: String) -> Result<(), Rejected> {
        self.grow(proof.len())?;
        self.add_thinking(Thinking { signature: Some(proof), ..Thinking::default() })?;
        Ok(())
    }

    fn add_thinking(&mut self, thinking: Thinking) -> Result<Place, Rejected> {
        if self.thinking.len() >= THOUGHTS {
            return Err(Rejected::TooLong);
        }
        self.thinking.push(thinking);
        Ok(Place(self.thinking.len() - 1))
    }

    /// Adds to a block of reasoning.
    pub(crate) fn think(&mut self, at: Place, text: &str) -> Result<(), Rejected> {
        self.grow(text.len())?;
        if let Some(thinking) = self.thinking.get_mut(at.0) {
            thinking.text.push_str(text);
        }
        self.deltas.thinking(text);
        Ok(())
    }

    /// Adds to the proof of a block of reasoning.
    pub(crate) fn sign(&mut self, at: Place, proof: &str) -> Result<(), Rejected> {
        self.grow(proof.len())?;
        if let Some(thinking) = self.thinking.get_mut(at.0) {
            thinking.signature.get_or_insert_default().push_str(proof);
        }
        Ok(())
    }

    /// Begins a call.
    pub(crate) fn begin_call(&mut self, id: Option<String>, name: String) -> Result<Place, Rejected> {
        if self.calls.len() >= CALLS {
            return Err(Rejected::TooLong);
        }
        self.grow(name.len() + id.as_ref().map_or(0, String::len))?;
        self.deltas.written(&name);
        let id = id.filter(|id| !id.is_empty());
        self.calls.push(RawCall { id, name, arguments: String::new() });
        Ok(Place(self.calls.len() - 1))
    }

    /// Adds to the arguments of a call.
    pub(crate) fn add_arguments(&mut self, at: Place, text: &str) -> Result<(), Rejected> {
        self.grow(text.len())?;
        if let Some(call) = self.calls.get_mut(at.0) {
            call.arguments.push_str(text);
        }
        self.deltas.written(text);
        Ok(())
    }

    /// The call at this place.
    pub(crate) fn call(&mut self, at: Place) -> Option<&mut RawCall> {
        self.calls.get_mut(at.0)
    }

    /// How many calls there are.
    pub(crate) const fn calls(&self) -> usize {
        self.calls.len()
    }

    /// Takes a count of tokens; the last one wins, because some count with every piece. A count of nothing is none, because
    /// that is what servers send that do not count.
    pub(crate) fn count(&mut self, usage: TokenUsage) {
        if usage.input > 0 || usage.output > 0 {
            self.usage = Some(usage);
            self.deltas.counted(usage);
        }
    }

    /// Notes which model answers; the first word counts.
    pub(crate) fn served_by(&mut self, model: &str) {
        if self.served.is_none() && !model.is_empty() && self.grow(model.len()).is_ok() {
            self.served = Some(model.to_owned());
            self.deltas.served_by(&format!("{}/{model}", self.provider));
        }
    }

    /// The provider gave a reason for the end: the answer is complete, though a count may follow.
    pub(crate) fn finish(&mut self, reason: FinishReason) {
        self.finish = Some(reason);
    }

    /// Nothing follows.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// Takes what the provider says that it took, in dollars; what is no amount is passed over.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is checked to lie between nothing and the most that is believed"
    )]
    pub(crate) fn charge(&mut self, dollars: f64) {
        if (0.0..=DEAREST).contains(&dollars) {
            // A millionth of the smallest unit is the error of the number, not money.
            self.charged = Some(MicroUsd((dollars * 1e6 - 1e-6).ceil().max(0.0) as u64));
        }
    }

    /// Whether the provider said that the answer is complete. The end of the stream alone says nothing.
    pub(crate) const fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether nothing follows.
    pub(crate) const fn is_ended(&self) -> bool {
        self.ended
    }

    /// The whole answer; `asked` names the model if the provider does not.
    pub(crate) fn into_answer(self, asked: &str) -> Result<ModelAnswer, ModelError> {
        let Some(finish) = self.finish else {
            return Err(ModelError::Truncated { reason: "the stream ended before the answer did" });
        };
        let finish = match finish {
            // The presence of calls decides: providers are known that say `stop` beside them.
            FinishReason::Stop | FinishReason::ToolCalls if !self.calls.is_empty() => FinishReason::ToolCalls,
            FinishReason::Stop | FinishReason::ToolCalls if self.refused => FinishReason::Refusal,
            FinishReason::Stop | FinishReason::ToolCalls => FinishReason::Stop,
            FinishReason::Length | FinishReason::ContentFilter | FinishReason::Refusal | FinishReason::Error => finish,
        };
        let empty = |thinking: &Thinking| thinking.text.is_empty() && thinking.signature.is_none();
        Ok(ModelAnswer {
            thinking: self.thinking.into_iter().filter(|thinking| !empty(thinking)).collect(),
            text: self.text,
            calls: with_unique_ids(self.calls),
            usage: self.usage,
            charged: self.charged,
            finish,
            served_model: format!("{}/{}", self.provider, self.served.as_deref().unwrap_or(asked)),
        })
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Rejected> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES { Err(Rejected::TooLong) } else { Ok(()) }
    }
}

/// An id that another call of the same answer has is no id: whoever records the calls then makes one.
fn with_unique_ids(mut calls: Vec<RawCall>) -> Vec<RawCall> {
    let mut seen = std::collections::HashSet::new();
    for call in &mut calls {
        call.id = call.id.take().filter(|id| seen.insert(id.clone()));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_without_a_reason_for_its_end_is_no_answer() {
        let mut draft = Draft::default();
        draft.say("so far").unwrap();
        draft.end();
        assert_eq!(draft.into_answer("m").unwrap_err().class(), "truncated");
    }

    #[test]
    fn a_doubled_id_is_taken_from_the_second_call() {
        let mut draft = Draft::default();
        for _ in 0..2 {
            draft.begin_call(Some("same".to_owned()), "look".to_owned()).unwrap();
        }
        draft.finish(FinishReason::Stop);
        let answer = draft.into_answer("m").unwrap();
        let ids: Vec<_> = answer.calls.iter().map(|call| call.id.as_deref()).collect();
        assert_eq!((ids, answer.finish), (vec![Some("same"), None], FinishReason::ToolCalls));
    }

    #[test]
    fn whoever_sends_without_end_is_refused() {
        let mut draft = Draft::default();
        let block = "x".repeat(ANSWER_BYTES);
        assert!(draft.say(&block).is_ok() && draft.say("x").is_err());
        let mut draft = Draft::default();
        assert!((0..CALLS).all(|_| draft.begin_call(None, String::new()).is_ok()));
        assert!(draft.begin_call(None, String::new()).is_err());
    }
}
