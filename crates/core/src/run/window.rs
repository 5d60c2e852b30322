//! Fitting a conversation into a model's window: what is left out, in which order, and what never is (rule P2). Counts
//! bytes by the length of texts only, so that it comes out the same whether they are loaded or not.

use crate::content::Content;
use crate::label::Labels;
use crate::message::{Message, Part, Role};

/// What a part costs beside its texts: role, type, punctuation.
const PART_BYTES: u64 = 32;
/// What a picture costs: a large one counts as about two thousand tokens, however many bytes it has.
const IMAGE_BYTES: u64 = 8 * 1024;
/// A result shorter than this is not worth leaving out.
const WORTH_DROPPING: u64 = 128;
/// The most the line that says what was left out can cost.
const NOTE_BYTES: u64 = PART_BYTES + 80;

/// The context does not fit the model's window, whatever is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the context needs {needed} bytes and the window has {window}")]
pub struct Overflow {
    /// What is needed at the least.
    pub needed: u64,
    /// What there is.
    pub window: u64,
}

/// The bytes of a list of messages, as they count against the window.
#[must_use]
pub fn size(messages: &[Message]) -> u64 {
    messages.iter().map(message_size).sum()
}

fn message_size(message: &Message) -> u64 {
    message.parts.iter().map(part_size).sum()
}

fn part_size(part: &Part) -> u64 {
    let beside = match part {
        Part::Text { .. } => 0,
        Part::Image { .. } => return IMAGE_BYTES + PART_BYTES,
        Part::Thinking { signature, .. } => signature.as_ref().map_or(0, String::len),
        Part::Call { id, name, .. } | Part::Result { id, name, .. } => id.as_str().len() + name.len(),
    };
    let framed = if let Part::Result { frame: Some(frame), .. } = part { frame.len() } else { 0 };
    part.content().len() + framed + beside as u64 + PART_BYTES
}

/// Leaves out what does not fit beside the `fixed` bytes of system prompt and tools: first old tool outputs, oldest first;
/// then the oldest exchanges; then the oldest pairs of call and result after the task, with one line that says so; and only
/// when nothing else is left, outputs of the newest results. The task and the pairing of call and result stay.
pub(super) fn fit(mut messages: Vec<Message>, fixed: u64, window: u64) -> Result<Vec<Message>, Overflow> {
    let mut total = fixed.saturating_add(size(&messages));
    let newest = messages.iter().rposition(|message| message.role == Role::Tool);
    for message in messages.iter_mut().take(newest.unwrap_or(0)) {
        if total <= window {
            return Ok(messages);
        }
        total -= drop_outputs(message, u64::MAX);
    }
    if total <= window {
        return Ok(messages);
    }
    let task = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let too_long = |total: u64| total + NOTE_BYTES > window;
    let mut first = 0;
    while too_long(total) && first < task {
        let exchange = messages[first..task].iter().skip(1).position(|message| message.role == Role::User);
        let next = exchange.map_or(task, |at| first + 1 + at);
        total -= size(&messages[first..next]);
        first = next;
    }
    let mut resume = task + 1;
    while too_long(total) && messages.len() > resume + 2 {
        total -= size(&messages[resume..resume + 2]);
        resume += 2;
    }
    let left_out = first + (resume - task - 1);
    let note = if left_out == 0 { 0 } else { NOTE_BYTES };
    let is_kept = |at: &usize| (first..=task).contains(at) || *at >= resume;
    if let Some(last) = newest.filter(|at| is_kept(at) && total + note > window) {
        total -= drop_outputs(&mut messages[last], total + note - window);
    }
    if total + note > window {
        return Err(Overflow { needed: total + note, window });
    }
    messages.drain((task + 1).min(messages.len())..resume.min(messages.len()));
    messages.drain(..first);
    if left_out > 0
        && let Some(message) = messages.iter_mut().find(|message| message.role == Role::User)
    {
        let text = Content::new(format!("[{left_out} earlier messages were left out to fit the window.]"));
        message.parts.insert(0, Part::Text { text, labels: Labels::NONE });
    }
    Ok(messages)
}

/// Leaves out outputs of a message, oldest first, until enough is saved; says how much was.
fn drop_outputs(message: &mut Message, enough: u64) -> u64 {
    let mut saved = 0;
    for part in &mut message.parts {
        match part {
            Part::Result { output, frame, .. } if saved < enough && output.len() > WORTH_DROPPING => {
                let note = Content::new(format!("[output of {} bytes dropped]", output.len()));
                // What is left are our own words.
                saved += output.len() - note.len() + frame.take().map_or(0, |frame| frame.len());
                *output = note;
            }
            Part::Result { .. }
            | Part::Text { .. }
            | Part::Image { .. }
            | Part::Thinking { .. }
            | Part::Call { .. } => {}
        }
    }
    saved
}
