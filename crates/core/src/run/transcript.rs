//! What the model is shown: a function of the log. Total: any prefix of any log gives a list a provider accepts.

use std::sync::Arc;

use crate::content::Content;
use crate::label::Labels;
use crate::message::{Message, ModelRequest, Part, Role};
use crate::run::event::{EndStatus, ThoughtForm};
use crate::run::state::{Call, State, Turn};
use crate::tool::ToolDefinition;

/// What a part costs beside its text: role, ids, punctuation.
const PART_BYTES: u64 = 32;
/// A result shorter than this is not worth leaving out.
const WORTH_DROPPING: u64 = 128;

/// The messages of one run.
#[must_use]
pub fn messages(state: &State) -> Vec<Message> {
    let Some(start) = &state.start else { return Vec::new() };
    let mut messages: Vec<_> = start.user_message.iter().map(|text| Message::text(Role::User, text.clone())).collect();
    for turn in state.turns.iter().filter(|turn| turn.answered.is_some()) {
        messages.push(spoken(turn));
        if !turn.calls.is_empty() {
            messages.push(Message { role: Role::Tool, parts: turn.calls.iter().map(result).collect() });
        }
    }
    let unanswered = messages.last().is_none_or(|last| last.role != Role::Assistant);
    if let Some(status) = state.end_status().filter(|_| unanswered) {
        let how = match status {
            EndStatus::Completed => "it had nothing to say",
            EndStatus::Failed => "it failed",
            EndStatus::Cancelled => "it was cancelled",
        };
        messages.push(Message::text(Role::Assistant, format!("[This run ended without an answer: {how}.]")));
    }
    messages
}

fn spoken(turn: &Turn) -> Message {
    let mut parts = Vec::new();
    for thought in &turn.thoughts {
        let text = thought.text.clone();
        parts.push(match thought.form {
            ThoughtForm::Reasoning => Part::Thinking { text, signature: thought.signature.clone() },
            ThoughtForm::Text => Part::Text { text, labels: Labels::NONE },
        });
    }
    parts.extend(
        turn.said
            .iter()
            .filter(|text| !text.is_empty())
            .map(|text| Part::Text { text: text.clone(), labels: Labels::NONE }),
    );
    parts.extend(turn.calls.iter().map(|call| Part::Call {
        id: call.id.clone(),
        name: call.tool.clone(),
        arguments: call.arguments.clone(),
    }));
    if parts.iter().all(|part| matches!(part, Part::Thinking { .. })) {
        parts.push(Part::Text { text: Content::from("[no answer]"), labels: Labels::NONE });
    }
    Message { role: Role::Assistant, parts }
}

fn result(call: &Call) -> Part {
    let (output, is_error, labels) = match &call.ended {
        Some((ended, _, _)) if !ended.output.is_empty() => (ended.output.clone(), ended.is_error, ended.labels),
        Some((ended, _, _)) => (Content::from("[no output]"), ended.is_error, ended.labels),
        None => (Content::from("[no result yet]"), true, Labels::NONE),
    };
    Part::Result { id: call.id.clone(), name: call.tool.clone(), output, is_error, labels }
}

/// The context does not fit the model's window, whatever is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the context needs {needed} bytes and the window has {window}")]
pub struct Overflow {
    /// What is needed at the least.
    pub needed: u64,
    /// What there is.
    pub window: u64,
}

/// Builds the request for the next model call of a run, and says how many bytes were left out.
///
/// # Errors
/// When the task and its latest results alone do not fit.
pub fn request(
    state: &State,
    base: &[Message],
    tools: &Arc<Vec<ToolDefinition>>,
) -> Result<(ModelRequest, u64), Overflow> {
    let empty = Content::default();
    let (model, system, limits, temperature) = match &state.start {
        Some(start) => (start.model.clone(), &start.system_prompt, Some(start.limits), start.temperature),
        None => (String::new(), &empty, None, None),
    };
    let tool_bytes = state.start.as_ref().map_or(0, |start| start.tools.len());
    let window = limits.map_or(u64::MAX, |limits| limits.context_bytes);
    let all: Vec<_> = base.iter().cloned().chain(messages(state)).collect();
    let before = size(&all);
    let fitted = fit(all, window.saturating_sub(system.len() + tool_bytes), window)?;
    let dropped = before.saturating_sub(size(&fitted));
    let request = ModelRequest {
        model,
        system: system.clone(),
        tools: Arc::clone(tools),
        messages: fitted,
        max_tokens: limits.map_or(0, |limits| limits.output_tokens),
        temperature,
    };
    Ok((request, dropped))
}

/// The bytes of a list of messages, as they count against the window.
#[must_use]
pub fn size(messages: &[Message]) -> u64 {
    messages.iter().map(message_size).sum()
}

fn message_size(message: &Message) -> u64 {
    message.parts.iter().map(|part| part.content().len() + PART_BYTES).sum()
}

/// Leaves out what does not fit: first old tool outputs, oldest first, then the oldest whole turns, with one line that says
/// so. The task, the latest results, and call/result pairs stay (rule P2).
fn fit(mut messages: Vec<Message>, room: u64, window: u64) -> Result<Vec<Message>, Overflow> {
    let mut total = size(&messages);
    let newest = messages.iter().rposition(|message| message.role == Role::Tool);
    for (index, message) in messages.iter_mut().enumerate() {
        if total <= room || Some(index) == newest {
            break;
        }
        total -= drop_outputs(message);
    }
    if total <= room {
        return Ok(messages);
    }
    let mut left_out = 0;
    while total > room {
        let task = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        let next_user = messages.iter().skip(1).position(|message| message.role == Role::User).map(|at| at + 1);
        // Before the task whole exchanges go; after it, the oldest pair of call and result, but never the newest.
        let range = match next_user.filter(|at| task > 0 && *at <= task) {
            Some(end) => 0..end,
            None if messages.len() > task + 3 => task + 1..task + 3,
            None => return Err(Overflow { needed: window - room + total, window }),
        };
        left_out += range.len();
        total -= messages.drain(range).map(|message| message_size(&message)).sum::<u64>();
    }
    let note = Part::Text {
        text: Content::new(format!("[{left_out} earlier messages were left out to fit the window.]")),
        labels: Labels::NONE,
    };
    if let Some(first) = messages.iter_mut().find(|message| message.role == Role::User) {
        first.parts.insert(0, note);
    }
    Ok(messages)
}

fn drop_outputs(message: &mut Message) -> u64 {
    let mut saved = 0;
    for part in &mut message.parts {
        let Part::Result { output, .. } = part else { continue };
        let note = Content::new(format!("[output of {} bytes dropped]", output.len()));
        if output.len() > WORTH_DROPPING {
            saved += output.len() - note.len();
            *output = note;
        }
    }
    saved
}

/// What a provider would refuse.
///
/// # Errors
/// Says which message and why.
pub fn check(messages: &[Message]) -> Result<(), String> {
    let mut open: Vec<&crate::id::CallId> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let at = |why: &str| Err(format!("message {index}: {why}"));
        if message.parts.is_empty() {
            return at("it is empty");
        }
        if !open.is_empty() && message.role != Role::Tool {
            return at("calls without results come before it");
        }
        if index == 0 && message.role != Role::User {
            return at("the first message is not the user's");
        }
        match message.role {
            Role::User | Role::Assistant if index > 0 && messages[index - 1].role == message.role => {
                return at("the same speaker twice in a row");
            }
            Role::User => {}
            Role::Assistant => {
                open = message
                    .parts
                    .iter()
                    .filter_map(|part| if let Part::Call { id, .. } = part { Some(id) } else { None })
                    .collect();
            }
            Role::Tool => {
                let results: Vec<_> = message
                    .parts
                    .iter()
                    .filter_map(|part| if let Part::Result { id, .. } = part { Some(id) } else { None })
                    .collect();
                if results != open || results.len() != message.parts.len() {
                    return at("the results are not those of the calls before it");
                }
                open.clear();
            }
        }
    }
    if open.is_empty() { Ok(()) } else { Err("the last calls have no results".to_owned()) }
}
