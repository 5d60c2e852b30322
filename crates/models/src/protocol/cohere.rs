//! Cohere's chat, version 2: messages and calls much like everyone's, events of its own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use adjutant_core::message::{FinishReason, Message, Part, Role, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::shapes::{WireCall, WirePart, WireTool};
use super::{Asked, Reader};
use crate::wire::draft::{Draft, Place, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{IdForm, outcome, wire_id};

const DONE: &[u8] = b"[DONE]";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Form<'a>>,
    stream: bool,
}

/// The form of the answer.
#[derive(Serialize)]
struct Form<'a> {
    r#type: &'static str,
    json_schema: &'a RawValue,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Vec<WirePart<'a>>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        content: Vec<WirePart<'a>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(WireMessage::System { content: request.system.text() });
    }
    request.messages.iter().for_each(|message| push(message, &mut messages));
    serde_json::to_vec(&Body {
        model: asked.model,
        messages,
        tools: WireTool::all(&request.tools),
        max_tokens: request.max_tokens,
        temperature: asked.temperature,
        response_format: asked.schema.map(|schema| Form { r#type: "json_object", json_schema: schema }),
        stream: true,
    })
}

fn push<'a>(message: &'a Message, wire: &mut Vec<WireMessage<'a>>) {
    let (mut content, mut tool_calls) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => content.push(WirePart::Text { text: text.text() }),
            Part::Image { media_type, data, .. } => content.push(WirePart::image(media_type, data)),
            Part::Thinking { .. } => {}
            Part::Call { id, name, arguments } => {
                tool_calls.push(WireCall::new(id, IdForm::Word, name, arguments));
            }
            Part::Result { id, output, is_error, frame, .. } => {
                let content = outcome(told(output, frame.as_deref()), *is_error);
                wire.push(WireMessage::Tool { tool_call_id: wire_id(id, IdForm::Word), content });
            }
        }
    }
    match message.role {
        Role::User | Role::Tool if content.is_empty() => {}
        Role::User | Role::Tool => wire.push(WireMessage::User { content }),
        Role::Assistant if content.is_empty() && tool_calls.is_empty() => {}
        Role::Assistant => wire.push(WireMessage::Assistant { content, tool_calls }),
    }
}

#[derive(Deserialize)]
struct Event {
    r#type: Option<String>,
    index: Option<u64>,
    delta: Option<Delta>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct Delta {
    message: Option<Said>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<Value>,
    tool_plan: Option<String>,
    tool_calls: Option<Value>,
}

#[derive(Deserialize)]
struct Usage {
    billed_units: Option<Count>,
    tokens: Option<Count>,
    cached_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct Count {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
}

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct CohereReader {
    calls: BTreeMap<u64, Place>,
}

impl CohereReader {
    fn said(&mut self, index: u64, said: &Said, draft: &mut Draft) -> Result<(), Rejected> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let thought = [said.tool_plan.clone(), said.content.as_ref().map(|part| text(part.get("thinking")))];
        for thought in thought.into_iter().flatten().filter(|thought| !thought.is_empty()) {
            let place = draft.open_thinking()?;
            draft.think(place, &thought)?;
        }
        draft.say(&text(said.content.as_ref().and_then(|part| part.get("text"))))?;
        let Some(call) = &said.tool_calls else { return Ok(()) };
        let function = call.get("function");
        let name = text(function.and_then(|function| function.get("name")));
        let arguments = text(function.and_then(|function| function.get("arguments")));
        let place = match self.calls.get(&index) {
            Some(place) if name.is_empty() => *place,
            Some(_) | None => {
                let id = call.get("id").and_then(Value::as_str).map(str::to_owned);
                let place = draft.begin_call(id, name)?;
                self.calls.insert(index, place);
                place
            }
        };
        draft.add_arguments(place, &arguments)
    }
}

impl Reader for CohereReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        if frame.data == DONE {
            draft.end();
            return Ok(());
        }
        let event: Event = serde_json::from_slice(&frame.data)?;
        let index = event.index.unwrap_or(0);
        match (event.r#type.as_deref(), event.delta) {
            (
                Some("content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start" | "tool-call-delta"),
                delta,
            ) => {
                let said = delta.and_then(|delta| delta.message).ok_or(Rejected::Unreadable)?;
                self.said(index, &said, draft)
            }
            (Some("message-end"), delta) => {
                let delta = delta.ok_or(Rejected::Unreadable)?;
                if delta.finish_reason.as_deref() == Some("ERROR") {
                    let fault = Fault::from_code("server_error", &delta.error.unwrap_or_default());
                    return Err(Rejected::fault(fault));
                }
                if let Some(usage) = delta.usage {
                    draft.count(usage.count());
                }
                draft.finish(finish(delta.finish_reason.as_deref().unwrap_or_default()));
                draft.end();
                Ok(())
            }
            (None, _) => Err(Rejected::fault(Fault::from_code("unknown", &event.message.unwrap_or_default()))),
            (Some(_), _) => Ok(()),
        }
    }
}

fn finish(reason: &str) -> FinishReason {
    match reason {
        "COMPLETE" | "STOP_SEQUENCE" | "TOOL_CALL" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "ERROR_TOXIC" => FinishReason::ContentFilter,
        _ => FinishReason::Error,
    }
}

impl Usage {
    /// What is billed, where it is said: that is what prices are for.
    fn count(self) -> TokenUsage {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a float becomes the nearest count there is, and never wraps"
        )]
        let whole = |number: Option<f64>| number.unwrap_or(0.0).max(0.0) as u64;
        let count = self.billed_units.or(self.tokens);
        TokenUsage {
            input: whole(count.as_ref().and_then(|count| count.input_tokens)),
            output: whole(count.as_ref().and_then(|count| count.output_tokens)),
            cached: whole(self.cached_tokens),
            ..TokenUsage::default()
        }
    }
}

#[cfg(test)]
mod tests;
