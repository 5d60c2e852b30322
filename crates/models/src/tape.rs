//! What went over the wire in one model call, for whoever asked to see it: as text, without keys, and never more than so much.

use std::sync::{Arc, Mutex, PoisonError};

use adjutant_core::limits::TAPE_BYTES;

/// Keeps what is sent and what comes. Cheap to clone; clones keep the same.
#[derive(Debug, Clone, Default)]
pub struct Tape(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    text: String,
    /// Bytes that found no room.
    left_out: usize,
}

impl Tape {
    /// What was kept, a line for each thing that went (`>`) or came (`<`); none where nothing did.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let note = match kept.left_out {
            0 => String::new(),
            bytes => format!("[{bytes} bytes more were not kept.]\n"),
        };
        Some(format!("{}{note}", kept.text)).filter(|text| !text.is_empty())
    }

    /// Keeps what is sent. Half of the room stays for the answer.
    pub(crate) fn sent(&self, text: &str) {
        self.add("> ", text, TAPE_BYTES / 2);
    }

    /// Keeps what came.
    pub(crate) fn came(&self, text: &str) {
        self.add("< ", text, TAPE_BYTES);
    }

    fn add(&self, mark: &str, text: &str, most: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = most.saturating_sub(kept.text.len() + mark.len() + 1);
        let end = text.floor_char_boundary(room);
        kept.left_out += text.len() - end;
        if end > 0 {
            kept.text.extend([mark, &text[..end], "\n"]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_the_answer_finds_some() {
        let tape = Tape::default();
        assert_eq!(tape.text(), None);
        tape.sent(&"ä".repeat(TAPE_BYTES));
        tape.came("answer");
        tape.came(&"x".repeat(TAPE_BYTES));
        tape.came("lost");
        let text = tape.text().unwrap();
        assert!(text.len() < TAPE_BYTES + 64, "{}", text.len());
        assert!(text.starts_with("> ä") && text.contains("\n< answer\n< x"));
        let kept = text.matches('ä').count() * 2 + text.matches('x').count();
        assert!(text.ends_with(&format!("\n[{} bytes more were not kept.]\n", 3 * TAPE_BYTES + 4 - kept)));
    }
}
