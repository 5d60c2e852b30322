//! Reads an answer of the chat completions protocol from its pieces, as careful servers send them and as careless ones do.

use adjutant_core::message::FinishReason;
use adjutant_core::money::TokenUsage;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::protocol::Reader;
use crate::vendor::{Charge, Habits, OutputCount};
use crate::wire::draft::{Draft, Place, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;

/// What comes in place of data when all is said.
const DONE: &[u8] = b"[DONE]";

/// Reads one answer.
#[derive(Debug)]
pub(crate) struct ChatReader {
    habits: Habits,
    calls: Vec<Building>,
}

#[derive(Debug)]
struct Building {
    place: Place,
    index: Option<u64>,
    id: Option<String>,
}

#[derive(Deserialize)]
struct Chunk {
    model: Option<String>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
    x_groq: Option<Groq>,
    error: Option<Value>,
}

/// Where one provider counts.
#[derive(Deserialize)]
struct Groq {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Piece>,
    /// A server that does not stream sends the whole here; one that does may repeat here what it said so far.
    message: Option<Piece>,
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
    /// Reasoning in parts, as Mistral has it.
    thinking: Option<Vec<SpokenPart>>,
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
    /// DeepSeek's name for what came from its cache.
    prompt_cache_hit_tokens: Option<u64>,
    /// Moonshot's.
    cached_tokens: Option<u64>,
    /// Perplexity's place for it.
    reasoning_tokens: Option<u64>,
    /// A LiteLLM proxy's name for what was put into a cache.
    cache_creation_input_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// What OpenRouter took for it, in dollars; with others it may be anything.
    cost: Option<Value>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl ChatReader {
    /// Reads an answer of a provider with these habits.
    pub(crate) const fn new(habits: Habits) -> Self {
        Self { habits, calls: Vec::new() }
    }

    fn add(&mut self, piece: Piece, draft: &mut Draft) -> Result<(), Rejected> {
        let (spoken, thought) = piece.content.map(Spoken::split).unwrap_or_default();
        let thinking = piece.reasoning_content.or(piece.reasoning).filter(|text| !text.is_empty()).unwrap_or(thought);
        if !thinking.is_empty() {
            let place = draft.open_thinking()?;
            draft.think(place, &thinking)?;
        }
        draft.say(&spoken)?;
        draft.refuse(&piece.refusal.unwrap_or_default())?;
        piece.tool_calls.into_iter().flatten().try_for_each(|call| self.add_call(call, draft))
    }

    fn add_call(&mut self, piece: CallPiece, draft: &mut Draft) -> Result<(), Rejected> {
        let id = piece.id.filter(|id| !id.is_empty());
        let function = piece.function.unwrap_or(FunctionPiece { name: None, arguments: None });
        let name = function.name.unwrap_or_default();
        let arguments = match &function.arguments {
            Some(raw) => written(raw).ok_or(Rejected::Unreadable)?,
            None => String::new(),
        };
        let place = match self.open_call(piece.index, id.as_deref(), &name) {
            Some(at) => {
                let building = &mut self.calls[at];
                if let Some(call) = draft.call(building.place) {
                    if call.name.is_empty() {
                        call.name = name;
                    }
                    call.id = call.id.take().or_else(|| id.clone());
                }
                building.id = building.id.take().or(id);
                building.place
            }
            None => {
                let place = draft.begin_call(id.clone(), name)?;
                self.calls.push(Building { place, index: piece.index, id });
                place
            }
        };
        draft.add_arguments(place, &arguments)
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
}

impl Reader for ChatReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        if frame.data == DONE {
            draft.end();
            return Ok(());
        }
        let chunk: Chunk = serde_json::from_slice(&frame.data)?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Rejected::fault(Fault::from_value(&error)));
        }
        draft.served_by(chunk.model.as_deref().unwrap_or_default());
        if let Some(usage) = chunk.usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            if let (Charge::Said, Some(dollars)) = (self.habits.charge, usage.cost.as_ref().and_then(Value::as_f64)) {
                draft.charge(dollars);
            }
            draft.count(usage.count(self.habits.output));
        }
        // We ask for one answer; a second one would be mixed into the first.
        let choice = chunk.choices.into_iter().flatten().find(|choice| choice.index.unwrap_or(0) == 0);
        let Some(choice) = choice else { return Ok(()) };
        if let Some(piece) = choice.delta.or(choice.message) {
            self.add(piece, draft)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            draft.finish(match reason.as_str() {
                "stop" | "tool_calls" | "function_call" => FinishReason::Stop,
                "length" | "model_length" => FinishReason::Length,
                "content_filter" | "sensitive" => FinishReason::ContentFilter,
                _ => FinishReason::Error,
            });
        }
        Ok(())
    }
}

impl Spoken {
    /// What is said, and what is thought.
    fn split(self) -> (String, String) {
        let parts = match self {
            Self::Text(text) => return (text, String::new()),
            Self::Parts(parts) => parts,
        };
        let (mut said, mut thought) = (String::new(), String::new());
        for part in parts {
            said.extend(part.text);
            thought.extend(part.thinking.into_iter().flatten().filter_map(|part| part.text));
        }
        (said, thought)
    }
}

impl Usage {
    fn count(self, output: OutputCount) -> TokenUsage {
        let prompt = self.prompt_tokens_details;
        let cached = prompt.as_ref().and_then(|details| details.cached_tokens);
        let cached = cached.or(self.prompt_cache_hit_tokens).or(self.cached_tokens);
        let cache_write = prompt.and_then(|details| details.cache_write_tokens).or(self.cache_creation_input_tokens);
        let details = self.completion_tokens_details.and_then(|details| details.reasoning_tokens);
        let reasoning = details.or(self.reasoning_tokens).unwrap_or(0);
        let on_top = match output {
            OutputCount::WithReasoning => 0,
            OutputCount::WithoutReasoning => reasoning,
        };
        TokenUsage {
            input: self.prompt_tokens.unwrap_or(0),
            output: self.completion_tokens.unwrap_or(0).saturating_add(on_top),
            cached: cached.unwrap_or(0),
            reasoning,
            cache_write: cache_write.unwrap_or(0),
        }
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
