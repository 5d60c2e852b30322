//! The text as a reader would take it in (S5): without invisible characters, with escapes undone, and with the way back to
//! the bytes it came from.

use std::borrow::Cow;
use std::ops::Range;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

/// What an escaped line break or tab becomes: a blank that ends words, but no line.
const ESCAPED_BLANK: char = '\u{2028}';

pub(super) struct View<'a> {
    text: Cow<'a, str>,
    /// For each byte of the view the bytes of the original its character came from; empty if the view is the original.
    origins: Vec<(usize, usize)>,
}

impl<'a> View<'a> {
    pub(super) fn of(original: &'a str) -> Self {
        let plain = |c: char| c != '\\' && !is_unseen(c);
        let Some(first) = original.find(|c| !plain(c)) else {
            return Self { text: Cow::Borrowed(original), origins: Vec::new() };
        };
        let mut text = String::with_capacity(original.len());
        let mut origins = Vec::with_capacity(original.len());
        let mut add = |c: char, from: usize, to: usize| {
            text.push(c);
            origins.resize(text.len(), (from, to));
        };
        for (at, c) in original.char_indices().take_while(|(at, _)| *at < first) {
            add(c, at, at + c.len_utf8());
        }
        let mut at = first;
        while let Some(c) = original.get(at..).and_then(|rest| rest.chars().next()) {
            let rest = original.get(at..).unwrap_or_default();
            let (seen, length) = if c == '\\' { escape(rest) } else { (Some(c), c.len_utf8()) };
            match seen {
                // The backslashes themselves, if nothing was escaped that matters here.
                Some('\\') => (at..at + length).for_each(|at| add('\\', at, at + 1)),
                Some(c) if !is_unseen(c) => add(c, at, at + length),
                Some(_) | None => {}
            }
            at += length;
        }
        Self { text: Cow::Owned(text), origins }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The bytes of the original that a part of the view came from.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.origins.get(range.start);
        let last = range.end.checked_sub(1).and_then(|last| self.origins.get(last));
        match (first, last) {
            (Some((start, _)), Some((_, end))) => *start..*end,
            (_, _) => range.clone(),
        }
    }
}

/// What an escape stands for and how many bytes it takes. Any number of backslashes counts as one: text that was escaped
/// twice is still read by someone. Quotes stay as they are, because their backslashes tell which of them belong together.
fn escape(rest: &str) -> (Option<char>, usize) {
    let behind = rest.trim_start_matches('\\');
    let slashes = rest.len() - behind.len();
    let code = behind
        .strip_prefix('u')
        .and_then(|code| code.get(..4))
        .filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
    if let Some(c) = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
        return (Some(c), slashes + 5);
    }
    match behind.chars().next() {
        Some('n' | 'r' | 't') => (Some(ESCAPED_BLANK), slashes + 1),
        Some('/') => (Some('/'), slashes + 1),
        Some(_) | None => (Some('\\'), slashes),
    }
}

/// Whether a reader sees nothing: format characters with the zero-width ones and soft hyphens, joiners, selectors.
fn is_unseen(c: char) -> bool {
    !c.is_ascii()
        && (c.general_category() == GeneralCategory::Format || matches!(c, '\u{34F}' | '\u{FE00}'..='\u{FE0F}'))
}
