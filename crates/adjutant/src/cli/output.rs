//! Writing: answers and documents to standard output, everything else to standard error. A reader that went away is no
//! reason to stop: a run goes on without its viewers.

use std::io::Write;

use serde_json::Value;

use crate::log_queue::Writer;

/// A line for whoever reads the result.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// A piece of text for whoever reads the result, at once.
pub(crate) fn say_piece(piece: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(piece.as_bytes()).and_then(|()| out.flush());
}

/// One document of a finite command.
pub(crate) fn document(value: &Value) {
    say(&serde_json::to_string_pretty(value).unwrap_or_default());
}

/// A line for the person at the terminal.
pub(crate) fn tell(line: &str) {
    let _ = Writer.write_all(format!("{line}\n").as_bytes());
}

/// A piece of a line for the person at the terminal, at once.
pub(crate) fn tell_piece(piece: &str) {
    let _ = Writer.write_all(piece.as_bytes());
}
