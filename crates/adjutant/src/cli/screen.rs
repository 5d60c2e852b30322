//! The view of a run while it goes on: lines of JSON for programs; for a person the answer on standard output and the steps
//! on standard error, with one line that moves where the terminal can do that.

use adjutant_core::message::Delta;

use super::output::{say, say_piece, tell, tell_piece};
use super::steps::Steps;
use super::terminal::{Terminal, clean, cut};
use crate::wire::WireEvent;

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For a person.
    Text,
    /// One line of JSON for each event.
    Json,
}

/// The view of one run.
pub(crate) struct Screen {
    terminal: Terminal,
    format: Format,
    steps: Steps,
    doing: Option<String>,
    frame: usize,
    /// Whether the line that moves is there now.
    drawn: bool,
    /// What of the present turn is on the screen already.
    streamed: String,
}

impl Screen {
    pub(crate) fn new(terminal: Terminal, format: Format) -> Self {
        Self { terminal, format, steps: Steps::default(), doing: None, frame: 0, drawn: false, streamed: String::new() }
    }

    /// Learns from an event that is not shown again.
    pub(crate) fn skip(&mut self, event: &WireEvent) {
        let _ = self.steps.line(event, self.terminal.err);
    }

    /// Shows a durable event.
    pub(crate) fn event(&mut self, event: &WireEvent) {
        match self.format {
            Format::Json => say(&serde_json::to_string(event).unwrap_or_default()),
            Format::Text => self.text(event),
        }
    }

    fn text(&mut self, event: &WireEvent) {
        self.clear();
        let mut on_screen = false;
        match &*event.event {
            "answer" => self.answer(event.text("content")),
            "thinking" if event.text("kind") == "text" => {
                on_screen = self.is_streamed(event.text("content"));
                self.end_stream();
            }
            "retrying" | "error" => self.end_stream(),
            _ => {}
        }
        let line = self.steps.line(event, self.terminal.err);
        if let Some(line) = line.filter(|_| !on_screen) {
            tell(&line);
        }
        if let Some(doing) = self.steps.doing(event) {
            self.doing = Some(doing);
        }
        if matches!(&*event.event, "interaction_complete" | "approval_required") {
            self.doing = None;
        }
    }

    /// The answer. Whole where it goes to a file or a program; on a screen only what is not there yet.
    fn answer(&mut self, text: &str) {
        if self.is_streamed(text) {
            return self.end_stream();
        }
        self.end_stream();
        say(&if self.terminal.screen_out { clean(text) } else { text.to_owned() });
    }

    fn is_streamed(&self, text: &str) -> bool {
        !self.streamed.is_empty() && self.streamed.trim_end() == text.trim_end()
    }

    fn end_stream(&mut self) {
        if !self.streamed.is_empty() {
            say("");
            self.streamed.clear();
        }
    }

    /// Shows a live piece of what the model writes.
    pub(crate) fn piece(&mut self, piece: &Delta) {
        // Only a screen shows text before it is known to be the answer; what goes elsewhere is the answer and nothing else.
        if self.format == Format::Json || !self.terminal.screen_out {
            return;
        }
        match piece {
            Delta::Text(text) => {
                self.clear();
                self.doing = None;
                self.streamed.push_str(text);
                say_piece(&clean(text));
            }
            Delta::Thinking(_) => self.doing = Some("thinking".to_owned()),
        }
    }

    /// Says something of our own, above the line that moves.
    pub(crate) fn note(&mut self, line: &str) {
        self.clear();
        tell(line);
    }

    /// Ends the line that moves, for example before a question.
    pub(crate) fn still(&mut self) {
        self.clear();
        self.doing = None;
    }

    /// Draws the line that moves. A run that is done at once never shows it.
    pub(crate) fn tick(&mut self) {
        // What the model is writing stands where the line would be.
        if self.format == Format::Json || !self.terminal.live || !self.streamed.is_empty() {
            return;
        }
        if let Some(doing) = &self.doing {
            self.frame = (self.frame + 1) % FRAMES.len();
            let line = cut(&clean(doing), self.terminal.width.saturating_sub(4));
            tell_piece(&format!("\r\u{1b}[K{} {}", FRAMES[self.frame], self.terminal.err.dim(&line)));
            self.drawn = true;
        }
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            tell_piece("\r\u{1b}[K");
        }
    }
}
