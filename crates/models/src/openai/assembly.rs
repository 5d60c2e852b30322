//! Puts an answer together from its pieces. Pure. Arguments of calls are joined as the text they are: nothing here
//! reads them, so that whoever judges a call sees what the model wrote, doubled keys and all.

use adjutant_core::message::{FinishReason, ModelAnswer, RawCall, Thinking};
use adjutant_core::money::TokenUsage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault::Fault;
use crate::{DeltaSink, Detail, ModelError};

/// Bytes of one whole answer: far above what the longest output of any model needs.
const ANSWER_BYTES: usize = 8 * 1024 * 1024;
/// Calls of one answer. More than a turn may hold, so that the surplus is seen and refused by name, but not without
/// end.
const CALLS: usize = 256;

/// What is known of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    text: String,
    thinking: String,
    refused: bool,
    calls: Vec<Building>,
    usage: Option<TokenUsage>,
    finish: Option<String>,
    served: Option<String>,
    bytes: usize,
}

/// Why a piece was not taken.
#[derive(Debug)]
pub(super) enum Rejected {
    /// It is not what the protocol says.
    Unreadable,
    /// The answer is longer than any answer.
    TooLong,
    /// The provider says that it failed.
    Fault(Fault),
}

#[derive(Debug)]
struct Building {
    index: Option<u64>,
    id: Option<String>,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    /// A server that does not stream sends the whole as `message`.
    #[serde(alias = "message")]
    delta: Option<Piece>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Piece {
    content: Option<Spoken>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallPiece>>,
}

/// Text, or text in parts as some servers have it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Spoken {
    Text(String),
    Parts(Vec<SpokenPart>),
}

#[derive(Deserialize)]
struct SpokenPart {
    text: Option<String>,
}

#[derive(Deserialize)]
struct CallPiece {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionPiece>,
}

#[derive(Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    /// A string that holds JSON; some servers send the JSON itself, which is then taken as it is written.
    arguments: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl Assembly {
    /// Takes the next piece.
    pub(super) fn take(&mut self, data: &[u8], deltas: &DeltaSink) -> Result<(), Rejected> {
        let chunk: Chunk = serde_json::from_slice(data).map_err(|_| Rejected::Unreadable)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Rejected::Fault(Fault::from_value(&error)));
        }
        self.served = self.served.take().or(chunk.model.filter(|model| !model.is_empty()));
        // The last count wins: some count with every piece.
        self.usage = chunk.usage.and_then(Usage::count).or(self.usage);
        // We ask for one answer; a second one would be mixed into the first.
        let choice = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = choice else { return Ok(()) };
        if let Some(piece) = choice.delta {
            self.add(piece, deltas)?;
        }
        self.finish = choice.finish_reason.filter(|reason| !reason.is_empty()).or(self.finish.take());
        Ok(())
    }

    /// Whether the provider said that the answer is complete. The end of the stream alone says nothing.
    pub(super) const fn is_complete(&self) -> bool {
        self.finish.is_some()
    }

    fn add(&mut self, piece: Piece, deltas: &DeltaSink) -> Result<(), Rejected> {
        if let Some(thinking) = piece.reasoning_content.or(piece.reasoning) {
            self.grow(thinking.len())?;
            self.thinking.push_str(&thinking);
            deltas.thinking(&thinking);
        }
        let spoken = piece.content.map(Spoken::text).unwrap_or_default();
        let refusal = piece.refusal.unwrap_or_default();
        self.refused |= !refusal.is_empty();
        for text in [spoken, refusal] {
            self.grow(text.len())?;
            self.text.push_str(&text);
            deltas.text(&text);
        }
        piece.tool_calls.into_iter().flatten().try_for_each(|call| self.add_call(call))
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Rejected> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > ANSWER_BYTES { Err(Rejected::TooLong) } else { Ok(()) }
    }

    fn add_call(&mut self, piece: CallPiece) -> Result<(), Rejected> {
        let id = piece.id.filter(|id| !id.is_empty());
        let function = piece.function.unwrap_or(FunctionPiece { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let arguments = match &function.arguments {
            Some(raw) => written(raw).ok_or(Rejected::Unreadable)?,
            None => String::new(),
        };
        self.grow(name.len() + arguments.len() + id.as_ref().map_or(0, String::len))?;
        match self.open_call(piece.index, id.as_deref(), &name) {
            Some(at) => {
                let call = &mut self.calls[at];
                call.arguments.push_str(&arguments);
                if call.name.is_empty() {
                    call.name = name;
                }
                call.id = call.id.take().or(id);
            }
            None if self.calls.len() >= CALLS => return Err(Rejected::TooLong),
            None => self.calls.push(Building { index: piece.index, id, name, arguments }),
        }
        Ok(())
    }

    /// The call a piece goes on with. The index tells, where there is one; but servers are known that give every call
    /// the same index, and others that give every piece of a call a new id, so only a new id with a name begins a new
    /// call.
    fn open_call(&self, index: Option<u64>, id: Option<&str>, name: &str) -> Option<usize> {
        let at = match index {
            Some(index) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[at];
        let begins = !name.is_empty()
            && match (id, &call.id) {
                (Some(new), Some(old)) => new != old,
                (_, _) => index.is_none(),
            };
        (!begins).then_some(at)
    }

    /// The whole answer; `provider` and `asked` name the model if the provider does not.
    pub(super) fn answer(self, provider: &str, asked: &str) -> Result<ModelAnswer, ModelError> {
        let Some(finish) = self.finish else {
            return Err(ModelError::Truncated { reason: "the stream ended before the answer did" });
        };
        let calls: Vec<_> = self
            .calls
            .into_iter()
            .map(|call| RawCall { id: call.id, name: call.name, arguments: call.arguments })
            .collect();
        let finish = match finish.as_str() {
            "stop" | "tool_calls" | "function_call" if !calls.is_empty() => FinishReason::ToolCalls,
            "stop" | "tool_calls" | "function_call" if self.refused => FinishReason::Refusal,
            "stop" | "tool_calls" | "function_call" => FinishReason::Stop,
            "length" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            _ => FinishReason::Error,
        };
        let thinking = (!self.thinking.is_empty()).then_some(Thinking { text: self.thinking, signature: None });
        Ok(ModelAnswer {
            thinking: thinking.into_iter().collect(),
            text: self.text,
            calls,
            usage: self.usage,
            finish,
            served_model: format!("{provider}/{}", self.served.as_deref().unwrap_or(asked)),
        })
    }
}

impl Rejected {
    /// The error this is.
    pub(super) fn into_error(self, model: &str, redact: impl Fn(&str) -> String) -> ModelError {
        match self {
            Self::Unreadable => ModelError::Truncated { reason: "a piece of it was not readable" },
            Self::TooLong => {
                ModelError::Unknown { reason: "its answer has no end", status: None, detail: Detail::default() }
            }
            Self::Fault(fault) => fault.into_error(model, redact),
        }
    }
}

impl Spoken {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Parts(parts) => parts.into_iter().filter_map(|part| part.text).collect(),
        }
    }
}

impl Usage {
    /// The count; a count of nothing is none, because that is what servers send that do not count.
    fn count(self) -> Option<TokenUsage> {
        let usage = TokenUsage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0),
            cached: self.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
            reasoning: self.completion_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
        };
        (usage.input > 0 || usage.output > 0).then_some(usage)
    }
}

/// The text of arguments: the string's, or the JSON as it is written.
fn written(raw: &RawValue) -> Option<String> {
    match raw.get() {
        "null" => Some(String::new()),
        text if text.starts_with('"') => serde_json::from_str(text).ok(),
        text => Some(text.to_owned()),
    }
}
