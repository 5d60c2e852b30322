//! Ollama's own chat: one JSON document per line, calls with their arguments as JSON.
//!
//! The window has to be asked for: without it the server takes a small one and silently forgets the beginning of a long
//! conversation.

use std::borrow::Cow;

use adjutant_core::message::{FinishReason, Message, Part, Role, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shapes::WireTool;
use super::{Asked, Reader};
use crate::tokens;
use crate::wire::draft::{Draft, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{outcome, readable_object};

/// The smallest and the largest window that is asked for, in tokens. It grows by doubling, because the server loads the
/// model anew for each size.
const WINDOW_LEAST: u64 = 8 * 1024;
const WINDOW_MOST: u64 = 128 * 1024;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    options: Options,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'a RawValue>,
    stream: bool,
}

#[derive(Serialize)]
struct Options {
    num_predict: u32,
    num_ctx: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize, Default)]
struct WireMessage<'a> {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

#[derive(Serialize)]
struct WireCall<'a> {
    function: WireCalled<'a>,
}

#[derive(Serialize)]
struct WireCalled<'a> {
    name: &'a str,
    arguments: Box<RawValue>,
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        let content = request.system.text().into_owned();
        messages.push(WireMessage { role: "system", content, ..WireMessage::default() });
    }
    for message in &request.messages {
        push(message, &mut messages)?;
    }
    let needed = tokens::probable(request).saturating_add(u64::from(request.max_tokens));
    serde_json::to_vec(&Body {
        model: asked.model,
        messages,
        tools: WireTool::all(&request.tools),
        options: Options {
            num_predict: request.max_tokens,
            num_ctx: needed.clamp(WINDOW_LEAST, WINDOW_MOST).next_power_of_two(),
            temperature: asked.temperature,
        },
        format: asked.schema,
        stream: true,
    })
}

fn push<'a>(message: &'a Message, wire: &mut Vec<WireMessage<'a>>) -> Result<(), serde_json::Error> {
    let role = match message.role {
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut said = WireMessage { role, ..WireMessage::default() };
    for part in &message.parts {
        match part {
            Part::Text { text, .. } if said.content.is_empty() => said.content = text.text().into_owned(),
            Part::Text { text, .. } => said.content.push_str(&format!("\n{}", text.text())),
            Part::Image { data, .. } => said.images.push(data.text()),
            Part::Thinking { text, .. } => said.thinking.push_str(&text.text()),
            Part::Call { name, arguments, .. } => {
                let arguments = readable_object(arguments.text())?;
                said.tool_calls.push(WireCall { function: WireCalled { name, arguments } });
            }
            Part::Result { name, output, is_error, frame, .. } => wire.push(WireMessage {
                role: "tool",
                content: outcome(told(output, frame.as_deref()), *is_error).into_owned(),
                tool_name: Some(name),
                ..WireMessage::default()
            }),
        }
    }
    if !said.content.is_empty() || !said.images.is_empty() || !said.tool_calls.is_empty() {
        wire.push(said);
    }
    Ok(())
}

#[derive(Deserialize)]
struct Line {
    model: Option<String>,
    message: Option<Said>,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Option<u64>,
    eval_count: Option<u64>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
    thinking: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: Option<String>,
    function: Called,
}

#[derive(Deserialize)]
struct Called {
    name: Option<String>,
    arguments: Option<Box<RawValue>>,
}

/// Reads one answer.
#[derive(Debug)]
pub(super) struct OllamaReader;

impl Reader for OllamaReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        let line: Line = serde_json::from_slice(&frame.data)?;
        if let Some(error) = line.error.filter(|error| !error.is_null()) {
            return Err(Rejected::fault(Fault::from_value(&error)));
        }
        draft.served_by(line.model.as_deref().unwrap_or_default());
        if let Some(said) = line.message {
            let thinking = said.thinking.unwrap_or_default();
            if !thinking.is_empty() {
                let place = draft.open_thinking()?;
                draft.think(place, &thinking)?;
            }
            draft.say(&said.content.unwrap_or_default())?;
            for call in said.tool_calls.into_iter().flatten() {
                let place = draft.begin_call(call.id, call.function.name.unwrap_or_default())?;
                draft.add_arguments(place, call.function.arguments.as_ref().map_or("{}", |text| text.get()))?;
            }
        }
        if line.done == Some(true) {
            let (input, output) = (line.prompt_eval_count.unwrap_or(0), line.eval_count.unwrap_or(0));
            draft.count(TokenUsage { input, output, ..TokenUsage::default() });
            draft.finish(match line.done_reason.as_deref() {
                Some("stop") | None => FinishReason::Stop,
                Some("length") => FinishReason::Length,
                Some(_) => FinishReason::Error,
            });
            draft.end();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
