//! Arguments of programs in lists (S2): the item behind a flag is its value.

use std::ops::Range;

use super::assigned::{self, BLANKS};

/// The name of a flag that promises a secret, if the text is one and nothing else.
pub(super) fn promising_flag(item: &str) -> Option<&str> {
    let name = item.strip_prefix('-')?.trim_start_matches('-');
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'));
    Some(name).filter(|name| plain && assigned::promises(name))
}

/// What follows the name of a flag from the quote on that opens the next item of its list.
pub(super) fn next_item(behind_name: &str) -> Option<&str> {
    let quoted = |text: &str| text.trim_start_matches('\\').starts_with(['"', '\'']);
    let behind = behind_name.trim_start_matches('\\').strip_prefix(['"', '\''])?;
    let item = skip_breaks(skip_breaks(behind).strip_prefix(',')?);
    quoted(item).then_some(item)
}

/// Whether the item behind a flag is its value: neither another flag, nor the name of the next field of an object.
pub(super) fn is_value(text: &str, item: &Range<usize>) -> bool {
    let behind = text.get(item.end..).unwrap_or_default().trim_start_matches(['\\', '"', '\'']);
    !text.get(item.clone()).unwrap_or_default().starts_with('-') && !skip_breaks(behind).starts_with(':')
}

/// The text behind its blanks and line breaks.
pub(super) fn skip_breaks(text: &str) -> &str {
    let blanks: usize = text.chars().take(BLANKS).take_while(|c| c.is_whitespace()).map(char::len_utf8).sum();
    text.get(blanks..).unwrap_or_default()
}
