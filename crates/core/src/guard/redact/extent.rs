//! Where a value ends: the signs that separate it from what follows, and the quotes around it.

use std::ops::Range;

use super::assigned::{BLANKS, LONG_WORD};

/// Signs that end a word where they separate it from something.
pub(super) const STOPS: &str = "\"'`,;<>)}]&|";

/// The rest of a line, up to a length no phrase exceeds.
pub(super) fn line_from(text: &str, start: usize) -> Range<usize> {
    let rest = text.get(start..).unwrap_or_default();
    let length: usize = rest
        .chars()
        .take(LONG_WORD)
        .take_while(|c| !matches!(c, '\n' | '\r' | '"' | '\u{2028}'))
        .map(char::len_utf8)
        .sum();
    start..start + rest.get(..length).unwrap_or_default().trim_end().len()
}

/// Whether a comma before this ends an item rather than standing inside of one.
pub(super) fn separates(behind: &str) -> bool {
    let next = behind.chars().next();
    next.is_none_or(|c| c.is_whitespace() || STOPS.contains(c) || matches!(c, '\\' | '{' | '[' | '('))
        || begins_pair(behind)
}

/// Whether a text begins with a name and its value.
pub(super) fn begins_pair(text: &str) -> bool {
    let name =
        text.bytes().take(BLANKS).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')).count();
    name > 0 && text.get(name..).is_some_and(|rest| rest.starts_with(['=', ':']))
}

/// Whether an ampersand before this begins a character of HTML.
pub(super) fn is_entity(behind: &str) -> bool {
    let name = behind.bytes().take(10).take_while(|b| b.is_ascii_alphanumeric() || *b == b'#').count();
    name > 1 && behind.get(name..).is_some_and(|rest| rest.starts_with(';'))
}

/// A value in quotes; `Some(None)` if the quote closes a text that began before the name.
#[expect(clippy::option_option, reason = "no quote and a quote that opens nothing are answered differently")]
pub(super) fn quoted_at(text: &str, at: usize, surely_opens: bool) -> Option<Option<Range<usize>>> {
    let rest = text.get(at..)?;
    let behind = rest.trim_start_matches('\\');
    let slashes = rest.len() - behind.len();
    let quote = behind.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let start = at + slashes + 1;
    let inner = text.get(start..)?;
    if let Some(inner) = inner.strip_prefix(quote).and_then(|inner| inner.strip_prefix(quote)) {
        let length = inner.find(quote).unwrap_or(inner.len());
        return Some(Some(start + 2..start + 2 + length));
    }
    let opens = surely_opens || !inner.starts_with(|c: char| c.is_whitespace() || ",;)]}+.:".contains(c));
    if !opens || inner.is_empty() {
        return Some(None);
    }
    let mut escapes = 0;
    let mut go_on = 0;
    // Where the text ends if what looked like a quote inside of it was none.
    let mut closed = None;
    for (offset, c) in inner.char_indices() {
        // The closing quote carries as many backslashes as the opening one; in plain quotes an even number escapes itself.
        let closes = c == quote && offset >= go_on && (escapes == slashes || (slashes == 0 && escapes % 2 == 0));
        if closes {
            let end = start + offset - if slashes == 0 { 0 } else { escapes };
            let joint = if slashes == 0 && offset > 0 { joint(inner.get(offset..)?, quote) } else { None };
            let Some(joint) = joint else { return Some(Some(start..end)) };
            closed = closed.or(Some(end));
            go_on = offset + joint;
        }
        if c == '\n' {
            return Some(Some(start..closed.unwrap_or(start + offset)));
        }
        escapes = if c == '\\' { escapes + 1 } else { 0 };
    }
    Some(Some(start..closed.unwrap_or(text.len())))
}

/// How many bytes stand for a quote inside of quotes: twice the quote, and what shells know instead.
fn joint(text: &str, quote: char) -> Option<usize> {
    let twice = text.chars().take_while(|c| *c == quote).take(2).count() == 2;
    let shell = || [r"'\''", r#"'"'"'"#].into_iter().find(|joint| quote == '\'' && text.starts_with(joint));
    if twice { Some(2) } else { shell().map(str::len) }
}
