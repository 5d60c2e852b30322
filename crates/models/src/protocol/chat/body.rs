//! From our request to the protocol's. Pure. Arguments of past calls go back as the very text the model wrote.

use std::borrow::Cow;

use adjutant_core::message::{Message, Part, Role, told};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::protocol::shapes::{WireCall, WirePart, WireTool};
use crate::protocol::{Asked, Flow};
use crate::vendor::{Counting, LimitName, Reasoning};
use crate::wire::talk::{IdForm, outcome, wire_id};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Form<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// The form of the answer.
#[derive(Serialize)]
struct Form<'a> {
    r#type: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    schema: &'a RawValue,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: Said<'a>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Cow<'a, str>,
    },
}

/// Text alone stays a text, because not every server knows parts.
#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<WirePart<'a>>),
}

/// The bytes to post.
pub(crate) fn body(asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let Asked { request, model, habits, temperature, schema, flow, .. } = *asked;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(WireMessage::System { content: request.system.text() });
    }
    let person = request.messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    for (at, message) in request.messages.iter().enumerate() {
        let reasoning = if at > person { habits.reasoning } else { Reasoning::Dropped };
        push(message, habits.ids, reasoning, &mut messages);
    }
    let body = Body {
        model,
        messages,
        tools: WireTool::all(&request.tools),
        max_tokens: (habits.limit == LimitName::MaxTokens).then_some(request.max_tokens),
        max_completion_tokens: (habits.limit == LimitName::MaxCompletionTokens).then_some(request.max_tokens),
        temperature,
        response_format: schema
            .map(|schema| Form { r#type: "json_schema", json_schema: NamedSchema { name: "answer", schema } }),
        stream: flow == Flow::Pieces,
        // Whoever answers in one piece counts by itself, and may refuse the question.
        stream_options: (flow == Flow::Pieces && habits.counting == Counting::Asked)
            .then_some(StreamOptions { include_usage: true }),
    };
    serde_json::to_vec(&body)
}

fn push<'a>(message: &'a Message, ids: IdForm, reasoning: Reasoning, wire: &mut Vec<WireMessage<'a>>) {
    let (mut texts, mut images, mut thoughts, mut calls) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => texts.push(text.text()),
            Part::Image { media_type, data, .. } => images.push(WirePart::image(media_type, data)),
            Part::Thinking { text, .. } => thoughts.push(text.text()),
            Part::Call { id, name, arguments } => calls.push(WireCall::new(id, ids, name, arguments)),
            Part::Result { id, output, is_error, frame, .. } => {
                let content = outcome(told(output, frame.as_deref()), *is_error);
                wire.push(WireMessage::Tool { tool_call_id: wire_id(id, ids), content });
            }
        }
    }
    let content = joined(texts);
    match message.role {
        Role::User | Role::Tool if !images.is_empty() => {
            let mut parts: Vec<_> = content.into_iter().map(|text| WirePart::Text { text }).collect();
            parts.append(&mut images);
            wire.push(WireMessage::User { content: Said::Parts(parts) });
        }
        Role::User | Role::Tool => {
            wire.extend(content.map(|content| WireMessage::User { content: Said::Text(content) }));
        }
        Role::Assistant if content.is_none() && calls.is_empty() => {}
        Role::Assistant => {
            let reasoning_content = match reasoning {
                Reasoning::SentBack => joined(thoughts),
                Reasoning::Dropped => None,
            };
            wire.push(WireMessage::Assistant { content, reasoning_content, tool_calls: calls });
        }
    }
}

fn joined(mut texts: Vec<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    match texts.len() {
        0 => None,
        1 => texts.pop(),
        _ => Some(Cow::Owned(texts.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use adjutant_core::label::Labels;
    use adjutant_core::message::{ModelRequest, RawCall};
    use serde_json::{Value, json};

    use super::*;
    use crate::vendor::Vendor;
    use crate::view::tests::{answer, continue_with, request, with_tools};

    fn built(request: &ModelRequest, kind: &str) -> Value {
        let Vendor { kind: vendor, habits, .. } = *Vendor::of(kind).unwrap();
        let (temperature, samples, reasons) = (request.temperature, true, true);
        let (model, schema, flow) = ("org/model-high", None, Flow::Pieces);
        let asked = Asked { request, vendor, model, habits, temperature, samples, reasons, schema, flow };
        serde_json::from_slice(&body(&asked).unwrap()).unwrap()
    }

    #[test]
    fn a_conversation_is_written_in_the_words_of_the_protocol() {
        let mut asked = with_tools(request(&["one", "two"]), &[("look", &["path"])]);
        let mut said = answer("Let me see.");
        let raw = r#"{ "path": "/a", "path": "/b" }"#;
        for arguments in [raw, "", "[1]", "{oops"] {
            said.calls.push(RawCall { id: None, name: "look".into(), arguments: arguments.into() });
        }
        continue_with(&mut asked, &said, &[("fine", false), ("not found", true), ("x", false), ("y", false)]);
        let thinking = Part::Thinking { text: "hm".into(), signature: None };
        asked.messages.push(Message { role: Role::Assistant, parts: vec![thinking] });
        let call = |at: u32, arguments: &str| json!({"id": format!("call_2_{at}"), "type": "function", "function": {"name": "look", "arguments": arguments}});
        let tool = |at: u32, content: &str| json!({"role": "tool", "tool_call_id": format!("call_2_{at}"), "content": content});
        let schema = json!({"type": "object", "properties": {"path": {}}});
        assert_eq!(
            built(&asked, "compatible"),
            json!({
                "model": "org/model-high",
                "messages": [
                    {"role": "system", "content": "Be kind."},
                    {"role": "user", "content": "one"},
                    {"role": "user", "content": "two"},
                    {"role": "assistant", "content": "Let me see.", "tool_calls": [
                        call(0, raw),
                        call(1, "{}"),
                        call(2, r#"{"unreadable_arguments":"[1]"}"#),
                        call(3, r#"{"unreadable_arguments":"{oops"}"#),
                    ]},
                    tool(0, "fine"), tool(1, "Error: not found"), tool(2, "x"), tool(3, "y"),
                ],
                "tools": [{"type": "function", "function": {"name": "look", "description": "", "parameters": schema}}],
                "max_tokens": 100,
                "stream": true,
                "stream_options": {"include_usage": true},
            })
        );
    }

    #[test]
    fn the_original_wants_another_name_for_the_limit() {
        let mut asked = request(&["one"]);
        asked.temperature = Some(0.5);
        let body = built(&asked, "openai");
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(100), &Value::Null));
        assert_eq!(body["temperature"], 0.5);
        assert!(body.get("tools").is_none());
    }

    #[test]
    fn habits_of_providers_are_kept() {
        let mut asked = request(&["earlier"]);
        let mut said = answer("");
        said.calls.push(RawCall { id: None, name: "look".into(), arguments: "{}".into() });
        for _ in 0..2 {
            continue_with(&mut asked, &said, &[("seen", false)]);
            let thinking = Part::Thinking { text: "hm".into(), signature: None };
            let at = asked.messages.len() - 2;
            asked.messages[at].parts.insert(0, thinking);
            asked.messages.push(Message::text(Role::User, "more"));
        }
        asked.messages.pop();
        let plain = built(&asked, "compatible");
        assert!(!plain.to_string().contains("hm"));
        assert_eq!(plain["messages"][2]["tool_calls"][0]["id"], "call_1_0");
        let mistral = built(&asked, "mistral");
        let id = mistral["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
        assert_eq!((id.len(), &mistral["messages"][3]["tool_call_id"]), (9, &json!(id)));
        assert!(mistral.get("stream_options").is_none());
        let deepseek = built(&asked, "deepseek");
        assert_eq!(deepseek["messages"][2]["reasoning_content"], Value::Null, "of a question that is answered");
        assert_eq!(deepseek["messages"][5]["reasoning_content"], "hm");
    }

    #[test]
    fn an_image_is_sent_beside_the_text() {
        let mut asked = request(&["What is this?"]);
        let image = Part::Image { media_type: "image/png".into(), data: "iVBORw==".into(), labels: Labels::NONE };
        asked.messages[0].parts.push(image);
        assert_eq!(
            built(&asked, "openai")["messages"][1]["content"],
            json!([
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}},
            ])
        );
    }
}
