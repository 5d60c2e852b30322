//! From our request to the protocol's. Pure. Arguments of past calls go back as the very text the model wrote.

use std::borrow::Cow;

use adjutant_core::message::{Message, ModelRequest, Part, Role};
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::provider::Dialect;

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
    stream: bool,
    stream_options: StreamOptions,
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
        content: Cow<'a, str>,
    },
    Assistant {
        content: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<WireCall<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

#[derive(Serialize)]
struct WireCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: WireCalled<'a>,
}

#[derive(Serialize)]
struct WireCalled<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

#[derive(Serialize)]
struct WireTool<'a> {
    r#type: &'static str,
    function: WireFunction<'a>,
}

#[derive(Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

/// The bytes to post. `model` is the provider's own name for the model.
pub(super) fn build(request: &ModelRequest, model: &str, dialect: Dialect) -> Result<Vec<u8>, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        messages.push(WireMessage::System { content: request.system.text() });
    }
    request.messages.iter().for_each(|message| push(message, &mut messages));
    let tools = request.tools.iter().map(|tool| WireTool {
        r#type: "function",
        function: WireFunction { name: &tool.name, description: &tool.description, parameters: &tool.schema },
    });
    let body = Body {
        model,
        messages,
        tools: tools.collect(),
        max_tokens: (dialect == Dialect::Compatible).then_some(request.max_tokens),
        max_completion_tokens: (dialect == Dialect::Original).then_some(request.max_tokens),
        temperature: request.temperature,
        stream: true,
        stream_options: StreamOptions { include_usage: true },
    };
    serde_json::to_vec(&body)
}

fn push<'a>(message: &'a Message, wire: &mut Vec<WireMessage<'a>>) {
    let mut texts = Vec::new();
    let mut calls = Vec::new();
    for part in &message.parts {
        match part {
            Part::Text { text, .. } => texts.push(text.text()),
            // The protocol has no place for reasoning of earlier turns.
            Part::Thinking { .. } => {}
            Part::Call { id, name, arguments } => calls.push(WireCall {
                id: id.as_str(),
                r#type: "function",
                function: WireCalled { name, arguments: readable(arguments.text()) },
            }),
            Part::Result { id, output, is_error, .. } => {
                let output = output.text();
                // The protocol has no flag for failure, so the text has to say it.
                let content = if *is_error { Cow::Owned(format!("Error: {output}")) } else { output };
                wire.push(WireMessage::Tool { tool_call_id: id.as_str(), content });
            }
        }
    }
    let content = match texts.len() {
        0 => None,
        1 => texts.pop(),
        _ => Some(Cow::Owned(texts.join("\n"))),
    };
    match message.role {
        Role::User | Role::Tool => wire.extend(content.map(|content| WireMessage::User { content })),
        Role::Assistant if content.is_none() && calls.is_empty() => {}
        Role::Assistant => wire.push(WireMessage::Assistant { content, tool_calls: calls }),
    }
}

/// The arguments as they are if they are JSON. Servers that read the arguments of past calls fail for good on a text
/// that is none, so such a text is put into an object: the model still sees what it wrote, and the run can go on.
fn readable(arguments: Cow<'_, str>) -> Cow<'_, str> {
    if arguments.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(&arguments).is_ok() {
        return arguments;
    }
    if arguments.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    Cow::Owned(serde_json::json!({ "unreadable_arguments": arguments }).to_string())
}

#[cfg(test)]
mod tests {
    use adjutant_core::message::RawCall;
    use serde_json::json;

    use super::*;
    use crate::view::tests::{answer, continue_with, request, with_tools};

    fn built(request: &ModelRequest, dialect: Dialect) -> Value {
        serde_json::from_slice(&build(request, "org/model-high", dialect).unwrap()).unwrap()
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
            built(&asked, Dialect::Compatible),
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
        let body = built(&asked, Dialect::Original);
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(100), &Value::Null));
        assert_eq!(body["temperature"], 0.5);
        assert!(body.get("tools").is_none());
    }
}
