//! OpenAI's responses: a list of items (messages, calls, reasoning) instead of messages. Nothing is kept at the provider;
//! reasoning comes back sealed and is handed over again, so that the model does not think everything twice.

use std::borrow::Cow;
use std::collections::BTreeMap;

use adjutant_core::message::{FinishReason, Message, Part, Role, told};
use adjutant_core::money::TokenUsage;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Asked, Reader};
use crate::vendor::by_responses;
use crate::wire::draft::{Draft, Place, Rejected};
use crate::wire::fault::Fault;
use crate::wire::frame::Frame;
use crate::wire::talk::{IdForm, Mark, outcome, readable, wire_id};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: Cow<'a, str>,
    input: Vec<Item<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<TextForm<'a>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    store: bool,
    stream: bool,
}

/// The form of the answer.
#[derive(Serialize)]
struct TextForm<'a> {
    format: Form<'a>,
}

#[derive(Serialize)]
struct Form<'a> {
    r#type: &'static str,
    name: &'static str,
    schema: &'a RawValue,
    strict: bool,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message { role: &'static str, content: Vec<Spoken<'a>> },
    Reasoning { id: &'a str, summary: Vec<Spoken<'a>>, encrypted_content: &'a str },
    FunctionCall { call_id: Cow<'a, str>, name: &'a str, arguments: Cow<'a, str> },
    FunctionCallOutput { call_id: Cow<'a, str>, output: Cow<'a, str> },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Spoken<'a> {
    InputText { text: Cow<'a, str> },
    InputImage { image_url: String },
    OutputText { text: Cow<'a, str> },
    SummaryText { text: Cow<'a, str> },
}

/// The bytes to post.
pub(super) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let request = asked.request;
    let tools = request.tools.iter().map(|tool| WireTool {
        r#type: "function",
        name: &tool.name,
        description: &tool.description,
        parameters: &tool.schema,
        strict: false,
    });
    let mut input = Vec::new();
    request.messages.iter().for_each(|message| push(message, asked.model, &mut input));
    serde_json::to_vec(&Body {
        model: asked.model,
        instructions: request.system.text(),
        input,
        tools: tools.collect(),
        max_output_tokens: request.max_tokens,
        temperature: asked.temperature,
        text: asked
            .schema
            .map(|schema| TextForm { format: Form { r#type: "json_schema", name: "answer", schema, strict: false } }),
        include: if by_responses(asked.model) { &["reasoning.encrypted_content"] } else { &[] },
        store: false,
        stream: true,
    })
}

fn push<'a>(message: &'a Message, model: &str, items: &mut Vec<Item<'a>>) {
    let mut content = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => content.push(match message.role {
                Role::User | Role::Tool => Spoken::InputText { text: text.text() },
                Role::Assistant => Spoken::OutputText { text: text.text() },
            }),
            Part::Image { media_type, data, .. } => {
                let image_url = format!("data:{media_type};base64,{}", data.text());
                content.push(Spoken::InputImage { image_url });
            }
            Part::Thinking { text, signature } => {
                let proof = Mark::OpenAi.read(signature.as_deref(), model).and_then(|proof| proof.split_once(':'));
                if let Some((id, encrypted_content)) = proof {
                    flush(message.role, &mut content, items);
                    let text = Some(text.text()).filter(|text| !text.is_empty());
                    let summary = text.map(|text| Spoken::SummaryText { text }).into_iter().collect();
                    items.push(Item::Reasoning { id, summary, encrypted_content });
                }
            }
            Part::Call { id, name, arguments } => {
                flush(message.role, &mut content, items);
                let arguments = readable(arguments.text());
                items.push(Item::FunctionCall { call_id: wire_id(id, IdForm::Word), name, arguments });
            }
            Part::Result { id, output, is_error, frame, .. } => {
                let output = outcome(told(output, frame.as_deref()), *is_error);
                items.push(Item::FunctionCallOutput { call_id: wire_id(id, IdForm::Word), output });
            }
        }
    }
    flush(message.role, &mut content, items);
}

fn flush<'a>(role: Role, content: &mut Vec<Spoken<'a>>, items: &mut Vec<Item<'a>>) {
    if content.is_empty() {
        return;
    }
    let role = match role {
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    items.push(Item::Message { role, content: std::mem::take(content) });
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    output_index: Option<u64>,
    delta: Option<Value>,
    item: Option<ItemRead>,
    response: Option<Response>,
    code: Option<Value>,
    message: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ItemRead {
    r#type: String,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
}

#[derive(Deserialize)]
struct Response {
    model: Option<String>,
    usage: Option<Usage>,
    error: Option<Value>,
    incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// An item that is open.
#[derive(Debug)]
enum Open {
    Thinking(Place),
    Call { place: Place, filled: bool },
}

/// Reads one answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesReader {
    model: String,
    open: BTreeMap<u64, Open>,
}

impl ResponsesReader {
    /// For an answer of this model.
    pub(super) fn new(model: &str) -> Self {
        Self { model: model.to_owned(), ..Self::default() }
    }

    fn begin(&mut self, index: u64, item: ItemRead, draft: &mut Draft) -> Result<(), Rejected> {
        match item.r#type.as_str() {
            "function_call" => {
                let place = draft.begin_call(item.call_id, item.name.unwrap_or_default())?;
                self.open.insert(index, Open::Call { place, filled: false });
            }
            "reasoning" => {
                let place = draft.begin_thinking()?;
                self.open.insert(index, Open::Thinking(place));
            }
            _ => {}
        }
        Ok(())
    }

    fn add_arguments(&mut self, index: u64, text: &str, draft: &mut Draft) -> Result<(), Rejected> {
        match self.open.get_mut(&index) {
            Some(Open::Call { place, filled }) => {
                *filled |= !text.is_empty();
                draft.add_arguments(*place, text)
            }
            Some(Open::Thinking(_)) | None => Err(Rejected::Unreadable),
        }
    }

    fn think(&self, index: u64, text: &str, draft: &mut Draft) -> Result<(), Rejected> {
        match self.open.get(&index) {
            Some(Open::Thinking(place)) => draft.think(*place, text),
            Some(Open::Call { .. }) | None => Err(Rejected::Unreadable),
        }
    }

    fn close(&mut self, index: u64, item: ItemRead, draft: &mut Draft) -> Result<(), Rejected> {
        match self.open.remove(&index) {
            Some(Open::Call { place, filled: false }) => {
                draft.add_arguments(place, item.arguments.as_deref().unwrap_or_default())
            }
            Some(Open::Thinking(place)) => match (item.id, item.encrypted_content) {
                (Some(id), Some(sealed)) => {
                    draft.sign(place, &format!("{}{id}:{sealed}", Mark::OpenAi.prefix(&self.model)))
                }
                (_, _) => Ok(()),
            },
            Some(Open::Call { filled: true, .. }) | None => Ok(()),
        }
    }

    fn end(response: Option<Response>, finish: FinishReason, draft: &mut Draft) {
        if let Some(response) = response {
            draft.served_by(response.model.as_deref().unwrap_or_default());
            if let Some(usage) = response.usage {
                draft.count(usage.count());
            }
        }
        draft.finish(finish);
        draft.end();
    }
}

impl Reader for ResponsesReader {
    fn take(&mut self, frame: &Frame, draft: &mut Draft) -> Result<(), Rejected> {
        let event: Event = serde_json::from_slice(&frame.data)?;
        let index = event.output_index.unwrap_or(0);
        let delta = event.delta.as_ref().and_then(Value::as_str).unwrap_or_default();
        match event.r#type.as_str() {
            "response.output_item.added" => {
                let item = event.item.ok_or(Rejected::Unreadable)?;
                self.begin(index, item, draft)
            }
            "response.output_text.delta" => draft.say(delta),
            "response.refusal.delta" => draft.refuse(delta),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(index, delta, draft)
            }
            "response.function_call_arguments.delta" => self.add_arguments(index, delta, draft),
            "response.output_item.done" => {
                let item = event.item.ok_or(Rejected::Unreadable)?;
                self.close(index, item, draft)
            }
            "response.completed" => {
                Self::end(event.response, FinishReason::Stop, draft);
                Ok(())
            }
            "response.incomplete" => {
                let details = event.response.as_ref().and_then(|response| response.incomplete_details.as_ref());
                let finish = match details.and_then(|details| details.reason.as_deref()) {
                    Some("max_output_tokens") => FinishReason::Length,
                    Some("content_filter") => FinishReason::ContentFilter,
                    Some(_) | None => FinishReason::Error,
                };
                Self::end(event.response, finish, draft);
                Ok(())
            }
            "response.failed" => {
                let error = event.response.and_then(|response| response.error).unwrap_or(Value::Null);
                Err(Rejected::fault(Fault::from_value(&error)))
            }
            "error" => {
                let flat = serde_json::json!({"code": event.code, "message": event.message});
                Err(Rejected::fault(Fault::from_value(event.error.as_ref().unwrap_or(&flat))))
            }
            _ => Ok(()),
        }
    }
}

impl Usage {
    fn count(self) -> TokenUsage {
        TokenUsage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cached: self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens).unwrap_or(0),
            reasoning: self.output_tokens_details.and_then(|details| details.reasoning_tokens).unwrap_or(0),
            cache_write: self.input_tokens_details.and_then(|details| details.cache_write_tokens).unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests;
