//! A conversation as messages of the OpenAI API: a list that a provider takes as it is. Every call stands in the answer that asked
//! for it, and every result behind it, also of what was denied or rejected.

use adjutant_core::message::{Message, Part, Role, told};
use serde_json::{Value, json};

pub(super) fn messages(conversation: &[Message]) -> Vec<Value> {
    conversation.iter().flat_map(message).collect()
}

fn message(message: &Message) -> Vec<Value> {
    match message.role {
        Role::User => vec![json!({"role": "user", "content": said(message)})],
        Role::Assistant => {
            let calls: Vec<Value> = message.parts.iter().filter_map(call).collect();
            let mut answer = json!({"role": "assistant", "content": said(message)});
            if !calls.is_empty() {
                answer["tool_calls"] = calls.into();
            }
            vec![answer]
        }
        Role::Tool => message.parts.iter().filter_map(result).collect(),
    }
}

/// The texts of a message as one. What a model thought is for its own provider, and a picture is only named.
fn said(message: &Message) -> Option<String> {
    let texts = message.parts.iter().filter_map(|part| match part {
        Part::Text { text, .. } => Some(text.text().into_owned()),
        Part::Image { media_type, .. } => Some(format!("[A picture: {media_type}]")),
        Part::Thinking { .. } | Part::Call { .. } | Part::Result { .. } => None,
    });
    texts.reduce(|before, text| format!("{before}\n{text}"))
}

fn call(part: &Part) -> Option<Value> {
    let Part::Call { id, name, arguments } = part else { return None };
    let function = json!({"name": name, "arguments": arguments.text()});
    Some(json!({"id": id, "type": "function", "function": function}))
}

fn result(part: &Part) -> Option<Value> {
    let Part::Result { id, output, frame, .. } = part else { return None };
    Some(json!({"role": "tool", "tool_call_id": id, "content": told(output, frame.as_deref())}))
}
