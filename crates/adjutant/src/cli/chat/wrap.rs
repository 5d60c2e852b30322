//! Text folded to the width of the screen, and made safe on the way: what is not cleaned cannot become a line.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthChar;

use crate::cli::terminal::clean;

/// Spaces that a tab stands for.
const TAB: &str = "    ";

/// Text in one look. The only way from somebody's text to the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    text: String,
    style: Style,
}

impl Piece {
    pub(super) fn new(text: &str, style: Style) -> Self {
        Self { text: clean(text).replace('\t', TAB), style }
    }
}

/// What stands before the first line and before those that follow it.
#[derive(Debug, Clone, Default)]
pub(super) struct Margin {
    pub(super) first: String,
    pub(super) rest: String,
    pub(super) style: Style,
}

impl Margin {
    pub(super) fn new(first: &str, rest: &str, style: Style) -> Self {
        Self { first: first.to_owned(), rest: rest.to_owned(), style }
    }
}

/// Columns of a text.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|letter| letter.width().unwrap_or(0)).sum()
}

/// Pieces as lines of a width: folded between words where that is possible, within a word where it is not.
pub(super) fn wrap(pieces: &[Piece], width: usize, margin: &Margin) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(columns(&margin.first).max(columns(&margin.rest))).max(1);
    let letters = pieces.iter().flat_map(|piece| piece.text.chars().map(|letter| (letter, piece.style)));
    let folded = fold(letters, inner).into_iter().enumerate();
    folded
        .map(|(index, letters)| {
            let before = if index == 0 { &margin.first } else { &margin.rest };
            let margin = (!before.is_empty()).then(|| Span::styled(before.clone(), margin.style));
            Line::from(margin.into_iter().chain(joined(letters)).collect::<Vec<_>>())
        })
        .collect()
}

type Letter = (char, Style);

fn fold(letters: impl Iterator<Item = Letter>, width: usize) -> Vec<Vec<Letter>> {
    let (mut lines, mut line, mut used) = (Vec::new(), Vec::<Letter>::new(), 0);
    let mut space = None;
    for (letter, style) in letters {
        if letter == '\n' {
            lines.push(std::mem::take(&mut line));
            (used, space) = (0, None);
            continue;
        }
        let wide = letter.width().unwrap_or(0);
        if used + wide > width && !line.is_empty() {
            let rest = match space {
                // The space itself is where the line ends.
                _ if letter == ' ' => Vec::new(),
                Some(at) => {
                    let rest = line.split_off(at + 1);
                    line.pop();
                    rest
                }
                None => Vec::new(),
            };
            lines.push(std::mem::replace(&mut line, rest));
            used = line.iter().map(|(letter, _)| letter.width().unwrap_or(0)).sum();
            space = None;
            if letter == ' ' {
                continue;
            }
        }
        if letter == ' ' && !line.is_empty() {
            space = Some(line.len());
        }
        line.push((letter, style));
        used += wide;
    }
    lines.push(line);
    lines
}

/// Letters side by side that look alike, as one.
fn joined(letters: Vec<Letter>) -> Vec<Span<'static>> {
    let mut spans: Vec<(String, Style)> = Vec::new();
    for (letter, style) in letters {
        match spans.last_mut() {
            Some((text, same)) if *same == style => text.push(letter),
            Some(_) | None => spans.push((letter.to_string(), style)),
        }
    }
    spans.into_iter().map(|(text, style)| Span::styled(text, style)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize, margin: &Margin) -> Vec<String> {
        wrap(&[Piece::new(text, Style::new())], width, margin).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_line_is_folded_between_words_and_a_long_word_within() {
        assert_eq!(shown("one two three", 8, &Margin::default()), ["one two", "three"]);
        assert_eq!(shown("abcdefghij", 4, &Margin::default()), ["abcd", "efgh", "ij"]);
        assert_eq!(shown("a\n\n b", 4, &Margin::default()), ["a", "", " b"]);
        let margin = Margin::new("• ", "  ", Style::new());
        assert_eq!(shown("one two three", 9, &margin), ["• one two", "  three"]);
    }

    #[test]
    fn wide_letters_take_two_columns() {
        assert_eq!(shown("日本語", 4, &Margin::default()), ["日本", "語"]);
    }

    #[test]
    fn nothing_that_steers_a_terminal_becomes_a_line() {
        assert_eq!(shown("a\u{1b}[2Jb\u{7}", 40, &Margin::default()), ["a\\u{1b}[2Jb\\u{7}"]);
    }
}
