//! Amazon Bedrock's `converse` as a stream: one form for the models of many makers, in binary frames.

use std::borrow::Cow;
use std::collections::BTreeMap;

use adjutant_core::message::{FinishReason, Part, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::anthropic::schema;
use super::{Asked, Reader};
use crate::wire::draft::{Draft, Place, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{IdForm, Mark, Side, Turn, readable_object, turns, wire_id};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Text<'a>>,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig<'a>>,
    inference_config: InferenceConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OutputConfig<'a> {
    text_format: TextFormat<'a>,
}

#[derive(Serialize)]
struct TextFormat<'a> {
    r#type: &'static str,
    structure: Structure<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structure<'a> {
    json_schema: NamedSchema<'a>,
}

/// The schema stands in it as a text.
#[derive(Serialize)]
struct NamedSchema<'a> {
    schema: &'a str,
    name: &'static str,
}

#[derive(Serialize)]
struct Text<'a> {
    text: Cow<'a, str>,
}

#[derive(Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Block<'a> {
    Text(Cow<'a, str>),
    Image {
        format: &'a str,
        source: Source<'a>,
    },
    ReasoningContent(Reasoning<'a>),
    #[serde(rename_all = "camelCase")]
    ToolUse {
        tool_use_id: Cow<'a, str>,
        name: &'a str,
        input: Box<RawValue>,
    },
    #[serde(rename_all = "camelCase")]
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Text<'a>>,
        status: &'static str,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    bytes: Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Reasoning<'a> {
    ReasoningText { text: Cow<'a, str>, signature: &'a str },
    RedactedContent(&'a str),
}

#[derive(Serialize)]
struct ToolConfig<'a> {
    tools: Vec<WireTool<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WireTool<'a> {
    tool_spec: ToolSpec<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolSpec<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: InputSchema<'a>,
}

#[derive(Serialize)]
struct InputSchema<'a> {
    json: &'a Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let mut messages = Vec::new();
    for turn in turns(request) {
        messages.push(message(&turn, asked.model)?);
    }
    let tools: Vec<_> = request
        .tools
        .iter()
        .map(|tool| ToolSpec {
            name: &tool.name,
            description: &tool.description,
            input_schema: InputSchema { json: &tool.schema },
        })
        .map(|tool_spec| WireTool { tool_spec })
        .collect();
    let system = Some(request.system.text()).filter(|text| !text.trim().is_empty());
    let schema = asked.schema.filter(|schema| schema::is_plain(schema));
    serde_json::to_vec(&Body {
        system: system.map(|text| Text { text }).into_iter().collect(),
        messages,
        tool_config: (!tools.is_empty()).then_some(ToolConfig { tools }),
        inference_config: InferenceConfig { max_tokens: request.max_tokens, temperature: asked.temperature },
        output_config: schema.map(|schema| {
            let json_schema = NamedSchema { schema: schema.get(), name: "answer" };
            OutputConfig { text_format: TextFormat { r#type: "json_schema", structure: Structure { json_schema } } }
        }),
    })
}

fn message<'a>(turn: &Turn<'a>, model: &str) -> Result<WireMessage<'a>, serde_json::Error> {
    let mut content = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text { text, .. } if text.text().trim().is_empty() => {}
            Part::Text { text, .. } => content.push(Block::Text(text.text())),
            Part::Image { media_type, data, .. } => {
                let format = media_type.strip_prefix("image/").unwrap_or(media_type);
                content.push(Block::Image { format, source: Source { bytes: data.text() } });
            }
            Part::Thinking { text, signature } => {
                let hidden = Mark::AnthropicHidden.read(signature.as_deref(), model).map(Reasoning::RedactedContent);
                let signed = Mark::Anthropic.read(signature.as_deref(), model);
                let signed = signed.map(|signature| Reasoning::ReasoningText { text: text.text(), signature });
                content.extend(hidden.or(signed).map(Block::ReasoningContent));
            }
            Part::Call { id, name, arguments } => {
                let input = readable_object(arguments.text())?;
                content.push(Block::ToolUse { tool_use_id: wire_id(id, IdForm::Word), name, input });
            }
            Part::Result { id, output, is_error, frame, .. } => content.push(Block::ToolResult {
                tool_use_id: wire_id(id, IdForm::Word),
                content: vec![Text { text: told(output, frame.as_deref()) }],
                status: if *is_error { "error" } else { "success" },
            }),
        }
    }
    if content.is_empty() {
        content.push(Block::Text(Cow::Borrowed("[nothing]")));
    }
    let role = match turn.side {
        Side::User => "user",
        Side::Model => "assistant",
    };
    Ok(WireMessage { role, content })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockEvent {
    content_block_index: Option<u64>,
    start: Option<Start>,
    delta: Option<Delta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start {
    tool_use: Option<ToolStart>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolStart {
    tool_use_id: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta {
    text: Option<String>,
    tool_use: Option<ToolDelta>,
    reasoning_content: Option<ReasoningDelta>,
}

#[derive(Deserialize)]
struct ToolDelta {
    input: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningDelta {
    text: Option<String>,
    signature: Option<String>,
    redacted_content: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stopped {
    stop_reason: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(alias = "Message")]
    message: Option<String>,
}

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct BedrockReader {
    model: String,
    calls: BTreeMap<u64, (Place, bool)>,
    thoughts: BTreeMap<u64, (Place, bool)>,
}

impl BedrockReader {
    /// For an answer of this model.
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    fn fill(&mut self, index: u64, delta: Delta, draft: &mut Draft) -> Result<(), Rejected> {
        draft.say(&delta.text.unwrap_or_default())?;
        if let Some(tool) = delta.tool_use {
            let (place, filled) = self.calls.get_mut(&index).ok_or(Rejected::Unreadable)?;
            let text = tool.input.unwrap_or_default();
            *filled |= !text.is_empty();
            draft.add_arguments(*place, &text)?;
        }
        let Some(reasoning) = delta.reasoning_content else { return Ok(()) };
        let (place, signed) = match self.thoughts.get(&index) {
            Some(open) => *open,
            None => (draft.begin_thinking()?, false),
        };
        draft.think(place, &reasoning.text.unwrap_or_default())?;
        let proofs = [(Mark::Anthropic, reasoning.signature), (Mark::AnthropicHidden, reasoning.redacted_content)];
        let mut is_signed = signed;
        for (mark, proof) in proofs.into_iter().filter_map(|(mark, proof)| Some((mark, proof?))) {
            if !std::mem::replace(&mut is_signed, true) {
                draft.sign(place, &mark.prefix(&self.model))?;
            }
            draft.sign(place, &proof)?;
        }
        self.thoughts.insert(index, (place, is_signed));
        Ok(())
    }
}

impl Reader for BedrockReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        if let Some(exception) = frame.kind.strip_prefix('!') {
            let said: Option<Exception> = serde_json::from_slice(&frame.data).ok();
            let message = said.and_then(|said| said.message).unwrap_or_default();
            return Err(Rejected::fault(Fault::from_code(exception, &message)));
        }
        match frame.kind.as_str() {
            "contentBlockStart" => {
                let event: BlockEvent = serde_json::from_slice(&frame.data)?;
                if let Some(tool) = event.start.and_then(|start| start.tool_use) {
                    let place = draft.begin_call(tool.tool_use_id, tool.name.unwrap_or_default())?;
                    self.calls.insert(event.content_block_index.unwrap_or(0), (place, false));
                }
            }
            "contentBlockDelta" => {
                let event: BlockEvent = serde_json::from_slice(&frame.data)?;
                let delta = event.delta.ok_or(Rejected::Unreadable)?;
                self.fill(event.content_block_index.unwrap_or(0), delta, draft)?;
            }
            "contentBlockStop" => {
                let event: BlockEvent = serde_json::from_slice(&frame.data)?;
                if let Some((place, false)) = self.calls.remove(&event.content_block_index.unwrap_or(0)) {
                    draft.add_arguments(place, "{}")?;
                }
            }
            "messageStop" => {
                let event: Stopped = serde_json::from_slice(&frame.data)?;
                draft.finish(finish(event.stop_reason.as_deref().unwrap_or_default()));
            }
            "metadata" => {
                let event: Metadata = serde_json::from_slice(&frame.data)?;
                if let Some(usage) = event.usage {
                    draft.count(usage.count());
                }
                // It is the last one.
                if draft.is_complete() {
                    draft.end();
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn finish(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" | "tool_use" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "guardrail_intervened" | "content_filtered" => FinishReason::ContentFilter,
        _ => FinishReason::Error,
    }
}

impl Usage {
    /// What comes from the cache and what goes there is counted apart.
    fn count(self) -> TokenUsage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let cache_write = self.cache_write_input_tokens.unwrap_or(0);
        let fresh = self.input_tokens.unwrap_or(0);
        TokenUsage {
            input: fresh.saturating_add(cached).saturating_add(cache_write),
            output: self.output_tokens.unwrap_or(0),
            cached,
            reasoning: 0,
            cache_write,
        }
    }
}

#[cfg(test)]
mod tests;
