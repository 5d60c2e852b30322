//! Anthropic's messages: blocks of text, reasoning and calls, each begun, filled and ended by events of its own.
//!
//! Reasoning goes back exactly as it came, with its signature, because the model refuses to go on without it. The prompt is
//! marked for the provider's cache: in an agent's loop each request repeats the one before.

pub(super) mod schema;

use std::borrow::Cow;
use std::collections::BTreeMap;

use adjutant_core::message::{FinishReason, Part, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Asked, Reader};
use crate::wire::draft::{Draft, Place, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{IdForm, Mark, Side, Turn, readable_object, turns, wire_id};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    stream: bool,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    Thinking {
        thinking: Cow<'a, str>,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: Cow<'a, str>,
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let system = request.system.text();
    let mut messages = Vec::new();
    for turn in turns(request) {
        messages.push(message(&turn, asked.model)?);
    }
    if let Some(last) = messages.last_mut().and_then(|message: &mut WireMessage<'_>| message.content.last_mut()) {
        last.cache_control = Some(CacheControl { r#type: "ephemeral" });
    }
    let tools = request.tools.iter().map(|tool| WireTool {
        name: &tool.name,
        description: &tool.description,
        input_schema: &tool.schema,
    });
    let cached =
        |text| Block { content: Content::Text { text }, cache_control: Some(CacheControl { r#type: "ephemeral" }) };
    serde_json::to_vec(&Body {
        model: asked.model,
        max_tokens: request.max_tokens,
        system: Some(system).filter(|text| !text.trim().is_empty()).map(cached).into_iter().collect(),
        messages,
        tools: tools.collect(),
        temperature: asked.temperature,
        output_config: asked
            .schema
            .filter(|schema| schema::is_plain(schema))
            .map(|schema| OutputConfig { format: Format { r#type: "json_schema", schema } }),
        stream: true,
    })
}

fn message<'a>(turn: &Turn<'a>, model: &str) -> Result<WireMessage<'a>, serde_json::Error> {
    let mut blocks = Vec::new();
    for part in &turn.parts {
        if let Some(content) = content(part, model)? {
            blocks.push(Block { content, cache_control: None });
        }
    }
    if blocks.is_empty() {
        let content = Content::Text { text: Cow::Borrowed("[nothing]") };
        blocks.push(Block { content, cache_control: None });
    }
    let role = match turn.side {
        Side::User => "user",
        Side::Model => "assistant",
    };
    Ok(WireMessage { role, content: blocks })
}

fn content<'a>(part: &'a Part, model: &str) -> Result<Option<Content<'a>>, serde_json::Error> {
    Ok(match part {
        // A block of blanks is refused.
        Part::Text { text, .. } => {
            Some(text.text()).filter(|text| !text.trim().is_empty()).map(|text| Content::Text { text })
        }
        Part::Image { media_type, data, .. } => {
            Some(Content::Image { source: Source { r#type: "base64", media_type, data: data.text() } })
        }
        Part::Thinking { text, signature } => {
            let signature = signature.as_deref();
            let hidden = Mark::AnthropicHidden.read(signature, model).map(|data| Content::RedactedThinking { data });
            hidden.or_else(|| {
                let signature = Mark::Anthropic.read(signature, model)?;
                Some(Content::Thinking { thinking: text.text(), signature })
            })
        }
        Part::Call { id, name, arguments } => {
            let input = readable_object(arguments.text())?;
            Some(Content::ToolUse { id: wire_id(id, IdForm::Word), name, input })
        }
        Part::Result { id, output, is_error, frame, .. } => Some(Content::ToolResult {
            tool_use_id: wire_id(id, IdForm::Word),
            content: told(output, frame.as_deref()),
            is_error: *is_error,
        }),
    })
}

/// One event of any kind. Flat, because arguments have to be kept as they are written, and what is read by its kind first
/// loses that.
#[derive(Deserialize)]
struct Event {
    r#type: String,
    index: Option<u64>,
    message: Option<Started>,
    content_block: Option<Begun>,
    delta: Option<Piece>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Started {
    model: Option<String>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Begun {
    r#type: String,
    text: Option<String>,
    thinking: Option<String>,
    data: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Piece {
    r#type: Option<String>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

/// What the output is made of.
#[derive(Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

/// A block that is open.
#[derive(Debug)]
enum Open {
    Thinking { place: Place, signed: bool },
    Call { place: Place, input: String, filled: bool },
}

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct AnthropicReader {
    model: String,
    open: BTreeMap<u64, Open>,
    /// The parts of the input, which this provider counts apart.
    fresh: u64,
    usage: TokenUsage,
}

impl AnthropicReader {
    /// For an answer of this model.
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    fn count(&mut self, usage: &Usage, draft: &mut Draft) {
        self.fresh = usage.input_tokens.unwrap_or(self.fresh);
        self.usage.cached = usage.cache_read_input_tokens.unwrap_or(self.usage.cached);
        self.usage.cache_write = usage.cache_creation_input_tokens.unwrap_or(self.usage.cache_write);
        self.usage.output = usage.output_tokens.unwrap_or(self.usage.output);
        let thought = usage.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens);
        self.usage.reasoning = thought.unwrap_or(self.usage.reasoning);
        self.usage.input = self.fresh.saturating_add(self.usage.cached).saturating_add(self.usage.cache_write);
        draft.count(self.usage);
    }

    fn begin(&mut self, index: u64, block: Begun, draft: &mut Draft) -> Result<(), Rejected> {
        match block.r#type.as_str() {
            "text" => draft.say(&block.text.unwrap_or_default())?,
            "thinking" => {
                let place = draft.begin_thinking()?;
                draft.think(place, &block.thinking.unwrap_or_default())?;
                self.open.insert(index, Open::Thinking { place, signed: false });
            }
            "redacted_thinking" => {
                let place = draft.begin_thinking()?;
                draft.sign(place, &Mark::AnthropicHidden.prefix(&self.model))?;
                draft.sign(place, &block.data.unwrap_or_default())?;
            }
            "tool_use" => {
                let place = draft.begin_call(block.id, block.name.unwrap_or_default())?;
                let input = block.input.map_or_else(|| "{}".to_owned(), |input| input.get().to_owned());
                self.open.insert(index, Open::Call { place, input, filled: false });
            }
            _ => {}
        }
        Ok(())
    }

    fn fill(&mut self, index: u64, piece: Piece, draft: &mut Draft) -> Result<(), Rejected> {
        let kind = piece.r#type.as_deref().unwrap_or_default();
        match (kind, self.open.get_mut(&index)) {
            ("text_delta", _) => draft.say(&piece.text.unwrap_or_default()),
            ("thinking_delta", Some(Open::Thinking { place, .. })) => {
                draft.think(*place, &piece.thinking.unwrap_or_default())
            }
            ("signature_delta", Some(Open::Thinking { place, signed })) => {
                if !std::mem::replace(signed, true) {
                    draft.sign(*place, &Mark::Anthropic.prefix(&self.model))?;
                }
                draft.sign(*place, &piece.signature.unwrap_or_default())
            }
            ("input_json_delta", Some(Open::Call { place, filled, .. })) => {
                let text = piece.partial_json.unwrap_or_default();
                *filled |= !text.is_empty();
                draft.add_arguments(*place, &text)
            }
            // A piece of a block that is not there would be lost, and the answer would not be whole.
            ("thinking_delta" | "signature_delta", _) => Err(Rejected::Unreadable),
            // Calls of the provider's own tools come this way too; their blocks are not opened.
            (_, _) => Ok(()),
        }
    }

    fn close(&mut self, index: u64, draft: &mut Draft) -> Result<(), Rejected> {
        match self.open.remove(&index) {
            // Arguments that came in one piece stand at the beginning of the block.
            Some(Open::Call { place, input, filled: false }) => draft.add_arguments(place, &input),
            Some(Open::Call { .. } | Open::Thinking { .. }) | None => Ok(()),
        }
    }
}

impl Reader for AnthropicReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        let event: Event = serde_json::from_slice(&frame.data)?;
        let index = event.index.unwrap_or(0);
        match event.r#type.as_str() {
            "message_start" => {
                let message = event.message.ok_or(Rejected::Unreadable)?;
                draft.served_by(&message.model.unwrap_or_default());
                if let Some(usage) = &message.usage {
                    self.count(usage, draft);
                }
            }
            "content_block_start" => self.begin(index, event.content_block.ok_or(Rejected::Unreadable)?, draft)?,
            "content_block_delta" => self.fill(index, event.delta.ok_or(Rejected::Unreadable)?, draft)?,
            "content_block_stop" => self.close(index, draft)?,
            "message_delta" => {
                if let Some(usage) = &event.usage {
                    self.count(usage, draft);
                }
                if let Some(reason) = event.delta.and_then(|delta| delta.stop_reason) {
                    draft.finish(finish(&reason));
                }
            }
            "message_stop" => draft.end(),
            "error" => return Err(Rejected::fault(Fault::from_value(&event.error.unwrap_or_default()))),
            _ => {}
        }
        Ok(())
    }
}

/// What the provider's word for the end means.
pub(super) fn finish(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" | "tool_use" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::Refusal,
        _ => FinishReason::Error,
    }
}

#[cfg(test)]
mod tests;
