//! How far a long command is: one line that changes in place, on a screen only.

use super::Context;
use super::output::tell_piece;

/// A line that shows how far something is.
pub(super) struct Line {
    live: bool,
    shown: String,
}

impl Line {
    pub(super) fn new(context: &Context) -> Self {
        Self { live: context.terminal.live, shown: String::new() }
    }

    /// What is under way, how much of it is done, and of how much.
    pub(super) fn show(&mut self, what: &str, done: u64, of: u64) {
        let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
        let line = format!("{what} {percent} %");
        if self.live && line != self.shown {
            tell_piece(&format!("\r\u{1b}[K{line}"));
            self.shown = line;
        }
    }

    /// Takes the line away.
    pub(super) fn end(self) {
        if self.live {
            tell_piece("\r\u{1b}[K");
        }
    }
}
