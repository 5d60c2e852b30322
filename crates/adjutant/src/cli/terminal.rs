//! What the terminal can do, colours, and text made safe to print. Whatever a model or a file says may hold commands for the
//! terminal, so nothing of theirs is printed to one before it went through [`clean`].

use std::io::IsTerminal;

use adjutant_core::guard::path::is_invisible;

use crate::config::Environment;

/// Lines of an unknown terminal.
const WIDTH: usize = 80;

/// What the terminal of this process can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terminal {
    /// A person can be asked: they read standard error and type on standard input.
    pub(crate) interactive: bool,
    /// Standard output is a screen.
    pub(crate) screen_out: bool,
    /// Standard error is a screen that takes movement.
    pub(crate) live: bool,
    /// Colours for standard output.
    pub(crate) out: Style,
    /// Colours for standard error.
    pub(crate) err: Style,
    /// Its columns.
    pub(crate) width: usize,
}

impl Terminal {
    pub(crate) fn of_process(env: &Environment) -> Self {
        let plain = env.wants_plain();
        let (input, out, err) =
            (std::io::stdin().is_terminal(), std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        let style = |is_terminal: bool| if is_terminal && !plain { Style::Coloured } else { Style::Plain };
        let width = terminal_size::terminal_size().map_or(WIDTH, |(width, _)| usize::from(width.0));
        Self {
            interactive: input && err,
            screen_out: out,
            live: err && !plain,
            out: style(out),
            err: style(err),
            width: width.max(20),
        }
    }
}

/// Whether colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// They are.
    Coloured,
    /// They are not.
    Plain,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        match self {
            Self::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Plain => text.to_owned(),
        }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// A unified diff with all of it visible, its added and removed lines coloured.
    pub(crate) fn diff(self, diff: &str) -> Vec<String> {
        // Not `lines`, which would leave out a carriage return, and with it what changes nothing else.
        diff.split_terminator('\n')
            .map(|line| {
                let shown = visible(line);
                match line.chars().next() {
                    Some('+') if !line.starts_with("+++ ") => self.good(&shown),
                    Some('-') if !line.starts_with("--- ") => self.bad(&shown),
                    Some('@') => self.paint("36", &shown),
                    Some('+' | '-' | '\\') => self.dim(&shown),
                    Some(_) | None => shown,
                }
            })
            .collect()
    }
}

/// Text that cannot steer a terminal: control characters, and those that turn the direction of text around, are written out.
pub(crate) fn clean(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        let turns =
            matches!(letter, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match letter {
            '\n' | '\t' => cleaned.push(letter),
            _ if letter.is_control() || turns => cleaned.extend(letter.escape_unicode()),
            _ => cleaned.push(letter),
        }
    }
    cleaned
}

/// The same on one line.
pub(crate) fn one_line(text: &str) -> String {
    clean(text.trim()).split(['\n', '\t']).map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Text that a person decides about: whatever cannot be seen is written out, so that nothing hides in it (rule A3).
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            _ if is_invisible(letter) => shown.extend(letter.escape_unicode()),
            _ => shown.push(letter),
        }
    }
    shown
}

/// A line cut to a number of characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
    }
}

/// Rows in columns, each as wide as its widest cell.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>], style: Style) -> Vec<String> {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &[String]| {
        let padded = cells
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    std::iter::once(style.dim(&line(&head))).chain(rows.iter().map(|row| line(row))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_line_endings_alone_can_be_seen() {
        assert_eq!(Style::Plain.diff("-a\r\n+a\n"), ["-a\\u{d}", "+a"]);
    }

    #[test]
    fn nothing_that_is_printed_can_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[2Jb\u{9b}c\rd"), "a\\u{1b}[2Jb\\u{9b}c\\u{d}d");
        assert_eq!(clean("safe \u{202e}drowssap"), "safe \\u{202e}drowssap");
        assert_eq!(clean("Grüße\n\tzwei"), "Grüße\n\tzwei");
        assert_eq!(one_line("  a\n\n b\tc "), "a b c");
    }

    #[test]
    fn nothing_hides_in_what_a_person_decides_about() {
        let hidden = "pay\u{200b}pal \u{e0041}\u{ad}\u{feff}\u{2028}\u{202e}x\r";
        assert_eq!(visible(hidden), "pay\\u{200b}pal \\u{e0041}\\u{ad}\\u{feff}\\u{2028}\\u{202e}x\\u{d}");
        assert_eq!(Style::Plain.diff("+a\u{200b}b\n"), ["+a\\u{200b}b"]);
        assert_eq!(visible("Grüße 👍🏽\n\tzwei"), "Grüße 👍🏽\n\tzwei");
    }

    #[test]
    fn a_diff_is_coloured_by_its_lines() {
        let diff = "--- /a\n+++ /a\n@@ -1 +1 @@\n-x\n+y\u{1b}[1m\n z\n";
        assert_eq!(Style::Plain.diff(diff), ["--- /a", "+++ /a", "@@ -1 +1 @@", "-x", "+y\\u{1b}[1m", " z"]);
        let coloured = Style::Coloured.diff(diff);
        assert_eq!(coloured[3], "\u{1b}[31m-x\u{1b}[0m");
        assert_eq!(coloured[4], "\u{1b}[32m+y\\u{1b}[1m\u{1b}[0m");
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells() {
        let rows = [vec!["run_1".to_owned(), "DONE".to_owned()], vec!["r".to_owned(), String::new()]];
        assert_eq!(table(&["ID", "STATUS"], &rows, Style::Plain), ["ID     STATUS", "run_1  DONE", "r"]);
        assert_eq!(cut("abcdef", 4), "abc…");
    }
}
