//! What things look like: with colours, or, for those who do not want any, with weight alone.

use ratatui::style::{Color, Modifier, Style};

use crate::cli::terminal;

/// How a line is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it is.
    Plain,
    /// Beside the point.
    Quiet,
    Good,
    Bad,
    /// Somebody should look.
    Warn,
}

/// Which looks there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    coloured: bool,
}

impl Theme {
    pub(super) fn of(style: terminal::Style) -> Self {
        Self { coloured: style == terminal::Style::Coloured }
    }

    fn colour(self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }

    pub(super) fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain => Style::new(),
            Tone::Quiet => self.quiet(),
            Tone::Good => self.colour(Color::Green),
            Tone::Bad => self.colour(Color::Red),
            Tone::Warn => self.colour(Color::Yellow),
        }
    }

    pub(super) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn you(self) -> Style {
        self.colour(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    pub(super) fn heading(self) -> Style {
        self.colour(Color::Magenta).add_modifier(Modifier::BOLD)
    }

    pub(super) fn code(self) -> Style {
        if self.coloured { Style::new().fg(Color::Yellow) } else { Style::new().add_modifier(Modifier::BOLD) }
    }

    pub(super) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// A line of a difference.
    pub(super) fn diff(self, line: &str) -> Style {
        match line.chars().next() {
            Some('+') if !line.starts_with("+++ ") => self.tone(Tone::Good),
            Some('-') if !line.starts_with("--- ") => self.tone(Tone::Bad),
            Some('@') => self.colour(Color::Cyan),
            Some('+' | '-' | '\\') => self.quiet(),
            Some(_) | None => Style::new(),
        }
    }
}
