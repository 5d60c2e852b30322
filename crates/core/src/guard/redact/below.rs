//! Values that stand below their name (S2): the blocks of YAML, and what follows on the next line.

use std::ops::Range;

use super::assigned::BLANKS;

/// Bytes of a comment behind a name.
const COMMENT: usize = 256;

/// The text of a block whose sign stands here: all lines below that are further in than the name, or so many bytes of them.
pub(super) fn block(text: &str, name: usize, at: usize, most: usize) -> Option<Range<usize>> {
    let column = column(text, name)?;
    let header = text.get(at..)?.strip_prefix(['|', '>'])?.trim_start_matches(['+', '-', '1', '2', '3', '4']);
    let (first, escaped) = line_below(text, text.len() - header.len())?;
    let mut range: Option<Range<usize>> = None;
    let mut at = first;
    for line in text.get(first..)?.split_inclusive(is_break) {
        // Inside of JSON the block ends with the text it stands in.
        let end = line.find(['"', '\n']).filter(|_| escaped);
        let content = line.get(..end.unwrap_or(line.len()))?.trim_end();
        let indent = content.len() - content.trim_start_matches([' ', '\t']).len();
        if !content.is_empty() {
            if indent <= column || at - first > most {
                break;
            }
            range = Some(range.map_or(at + indent, |range| range.start)..at + content.len());
        }
        if end.is_some() {
            break;
        }
        at += line.len();
    }
    range
}

/// Where the next line begins to say something, if this one ends here and the next stands further in than the name; in JSON
/// it may stand anywhere.
pub(super) fn next_line(text: &str, name: usize, at: usize, quoted_name: bool) -> Option<usize> {
    let (next, _) = line_below(text, at)?;
    let line = text.get(next..)?;
    let indent = line.bytes().take(BLANKS).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let inside = column(text, name).is_some_and(|column| indent > column);
    let quoted = quoted_name && line.get(indent..)?.starts_with(['"', '\'']);
    (inside || quoted).then_some(next + indent)
}

/// Where the line below begins, and whether its break is an escape, if nothing more is said on the line from here on.
fn line_below(text: &str, at: usize) -> Option<(usize, bool)> {
    let rest = text.get(at..)?;
    let said = rest.trim_start_matches([' ', '\t', '\r']);
    let comment = if said.starts_with('#') { COMMENT } else { 0 };
    let comment: usize = said.chars().take(comment).take_while(|c| !is_break(*c)).map(char::len_utf8).sum();
    let mut behind = said.get(comment..)?.chars();
    let sign = behind.next().filter(|c| is_break(*c))?;
    Some((text.len() - behind.as_str().len(), sign != '\n'))
}

/// How far in a name stands that begins its line, be it in quotes or an item of a list; the beginning of a quoted text is
/// the beginning of a line.
fn column(text: &str, name: usize) -> Option<usize> {
    let before = text.get(..name)?;
    let outside = before.strip_suffix(['"', '\'']);
    let before = outside.unwrap_or(before);
    let prefix = before.bytes().rev().take(BLANKS).take_while(|b| matches!(b, b' ' | b'\t' | b'-')).count();
    let line = before.get(..before.len() - prefix)?;
    let begins = line.is_empty() || line.ends_with(is_break);
    if begins { Some(prefix) } else { outside.map(|_| 0) }
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{2028}')
}
