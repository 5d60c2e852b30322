//! Front matter: the YAML between two `---` lines at the top of a text. It is edited line by line, so that keys nobody
//! named, comments, order and the body stay byte for byte; what comes out is read again and compared before it is believed.

use serde_json::{Map, Value};

use super::yaml;
use crate::limits;

/// Why a front matter cannot be read or edited. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Malformed {
    /// There is no second `---` line.
    #[error("the front matter that begins in line 1 is never closed with a `---` line")]
    Unclosed,
    /// It is not YAML, or not a mapping.
    #[error("the front matter is malformed: {0}")]
    Yaml(String),
    /// A line that cannot be edited safely.
    #[error("line {0} of the front matter is not a plain `key: value` line, so it is left alone")]
    Line(usize),
    /// The edit would change something else.
    #[error("the front matter uses YAML (anchors, merged or repeated keys) that cannot be edited safely")]
    Entangled,
    /// A name that cannot be a property.
    #[error("`{0}` cannot be the name of a property (1 to 128 bytes, one line, no control characters)")]
    Name(String),
}

/// A text, taken apart at its front matter. The three parts together are the text.
struct Parts<'a> {
    /// The byte order mark, if any, and the opening line.
    opening: &'a str,
    /// The lines between.
    block: &'a str,
    /// The closing line and the body.
    rest: &'a str,
}

/// The properties of a text; none where it has no front matter.
pub(super) fn properties(text: &str) -> Result<Map<String, Value>, Malformed> {
    match take_apart(text)? {
        Some(parts) => yaml::mapping(parts.block).map_err(Malformed::Yaml),
        None => Ok(Map::new()),
    }
}

/// The front matter of a text with its two `---` lines, and the body after it; none where it has no front matter.
pub(super) fn split(text: &str) -> Result<Option<(&str, &str)>, Malformed> {
    Ok(take_apart(text)?.map(|parts| {
        let closing = parts.rest.split_inclusive('\n').next().unwrap_or_default().len();
        text.split_at(parts.opening.len() + parts.block.len() + closing)
    }))
}

/// The text with some properties set and others removed. A text without front matter gets one.
pub(super) fn edit(text: &str, set: &Map<String, Value>, remove: &[String]) -> Result<String, Malformed> {
    for name in set.keys().chain(remove) {
        check_name(name)?;
    }
    let Some(parts) = take_apart(text)? else {
        return Ok(add(text, set));
    };
    let now = yaml::mapping(parts.block).map_err(Malformed::Yaml)?;
    let mut wanted = now.clone();
    remove.iter().for_each(|name| drop(wanted.remove(name)));
    wanted.extend(set.iter().map(|(name, value)| (name.clone(), value.clone())));
    if wanted == now {
        return Ok(text.to_owned());
    }
    let ending = ending_of(parts.opening);
    let mut block = String::with_capacity(parts.block.len());
    let mut seen = Vec::new();
    for piece in pieces(parts.block)? {
        match piece {
            Piece::Other(lines) => block.push_str(lines),
            Piece::Entry { name, lines, .. } if now.get(&name) == wanted.get(&name) => {
                block.push_str(lines);
                seen.push(name);
            }
            Piece::Entry { name, lines, value_at } => {
                if let Some(value) = wanted.get(&name) {
                    block.push_str(&rewritten(lines, value_at, value, ending));
                }
                seen.push(name);
            }
        }
    }
    for (name, value) in set.iter().filter(|(name, _)| !seen.contains(name)) {
        block.push_str(&format!("{}: {}{ending}", yaml::scalar(name), yaml::inline(value)));
    }
    // What was written must say exactly what was asked, else the lines did not mean what they seemed to.
    if yaml::mapping(&block).ok().as_ref() != Some(&wanted) {
        return Err(Malformed::Entangled);
    }
    Ok([parts.opening, &block, parts.rest].concat())
}

fn check_name(name: &str) -> Result<(), Malformed> {
    let fits = (1..=limits::PROPERTY_NAME_BYTES).contains(&name.len());
    let clean = !name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{FEFF}'));
    if fits && clean && name.trim() == name { Ok(()) } else { Err(Malformed::Name(name.escape_debug().to_string())) }
}

/// A new front matter before a text that has none.
fn add(text: &str, set: &Map<String, Value>) -> String {
    if set.is_empty() {
        return text.to_owned();
    }
    let ending = ending_of(text.split_inclusive('\n').next().unwrap_or_default());
    let (mark, body) = text.split_at(text.len() - without_mark(text).len());
    let mut out = format!("{mark}---{ending}");
    for (name, value) in set {
        out.push_str(&format!("{}: {}{ending}", yaml::scalar(name), yaml::inline(value)));
    }
    out.push_str(&format!("---{ending}{body}"));
    out
}

fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{FEFF}').unwrap_or(text)
}

fn ending_of(line: &str) -> &'static str {
    if line.ends_with("\r\n") { "\r\n" } else { "\n" }
}

fn take_apart(text: &str) -> Result<Option<Parts<'_>>, Malformed> {
    let mut lines = without_mark(text).split_inclusive('\n');
    if lines.next().is_none_or(|first| first.trim_end() != "---") {
        return Ok(None);
    }
    let start = text.find('\n').map_or(text.len(), |at| at + 1);
    let mut end = start;
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            let (opening, after) = text.split_at(start);
            let (block, rest) = after.split_at(end - start);
            return Ok(Some(Parts { opening, block, rest }));
        }
        end += line.len();
    }
    Err(Malformed::Unclosed)
}

/// Some lines of a front matter.
enum Piece<'a> {
    /// Blank lines and comments between entries.
    Other(&'a str),
    /// A property with all the lines of its value.
    Entry { name: String, lines: &'a str, value_at: usize },
}

/// The block as entries and what lies between them; together they are the block.
fn pieces(block: &str) -> Result<Vec<Piece<'_>>, Malformed> {
    let mut pieces = Vec::new();
    // The open entry: its name, where it begins, where its value begins.
    let mut open: Option<(String, usize, usize)> = None;
    // Up to where lines are known to belong to the open entry, or are already in a piece.
    let mut sure = 0;
    let mut at = 0;
    for (number, line) in block.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() || text.starts_with('#') {
            // It belongs to the entry before it only if more lines of that entry follow.
        } else if continues(text) {
            if open.is_none() {
                return Err(Malformed::Line(number + 1));
            }
            sure = at + line.len();
        } else {
            let (name, value_at) = key_of(text).ok_or(Malformed::Line(number + 1))?;
            close(block, &mut pieces, &mut open, sure);
            if sure < at {
                pieces.push(Piece::Other(&block[sure..at]));
            }
            open = Some((name, at, value_at));
            sure = at + line.len();
        }
        at += line.len();
    }
    close(block, &mut pieces, &mut open, sure);
    if sure < at {
        pieces.push(Piece::Other(&block[sure..]));
    }
    Ok(pieces)
}

fn close<'a>(block: &'a str, pieces: &mut Vec<Piece<'a>>, open: &mut Option<(String, usize, usize)>, end: usize) {
    if let Some((name, start, value_at)) = open.take() {
        pieces.push(Piece::Entry { name, lines: &block[start..end], value_at });
    }
}

/// Whether a line belongs to the value above it: it is indented, an item of a list, or the end of a bracket.
fn continues(line: &str) -> bool {
    line.starts_with([' ', '\t', ']', '}']) || line.starts_with("- ") || line == "-"
}

/// The name before the colon of a line, and where the value begins.
fn key_of(line: &str) -> Option<(String, usize)> {
    let (name, colon) = if line.starts_with('"') {
        let end = closing_quote(line)?;
        (serde_json::from_str(&line[..=end]).ok()?, end + 1)
    } else if line.starts_with('\'') {
        let end = closing_quote(line)?;
        (line[1..end].replace("''", "'"), end + 1)
    } else {
        let special = ['&', '*', '!', '|', '>', '%', '@', '`', '{', '[', ',', '?'];
        if line.starts_with(special) {
            return None;
        }
        let colon = line.match_indices(':').map(|(at, _)| at).find(|at| ends_key(&line[at + 1..]))?;
        (line[..colon].trim_end().to_owned(), colon)
    };
    let colon = colon + line[colon..].find(|c: char| c != ' ' && c != '\t')?;
    (line[colon..].starts_with(':') && ends_key(&line[colon + 1..])).then_some((name, colon + 1))
}

fn ends_key(after: &str) -> bool {
    after.is_empty() || after.starts_with([' ', '\t'])
}

/// Where the quote that a text begins with is closed.
fn closing_quote(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' && quote == '"' {
            characters.next();
        } else if c == quote {
            if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') {
                characters.next();
            } else {
                return Some(at);
            }
        }
    }
    None
}

/// An entry with another value; the name, the blanks after the colon and a comment at the end of the line stay.
fn rewritten(lines: &str, value_at: usize, value: &Value, ending: &str) -> String {
    let first = lines.split_inclusive('\n').next().unwrap_or_default().trim_end_matches(['\n', '\r']);
    let (head, tail) = first.split_at(value_at);
    let old = tail.trim_start();
    let comment = comment_in(tail).map_or("", |at| &tail[at..]);
    let gap = if old.is_empty() || old.starts_with('#') { " " } else { &tail[..tail.len() - old.len()] };
    format!("{head}{gap}{}{comment}{ending}", yaml::inline(value))
}

/// Where the comment of a value begins, with the blanks before it.
fn comment_in(value: &str) -> Option<usize> {
    let quotes = value.trim_start().starts_with(['"', '\'', '[', '{']);
    let mut blank_from = Some(0);
    let mut at = 0;
    while let Some(c) = value[at..].chars().next() {
        match c {
            ' ' | '\t' => blank_from = blank_from.or(Some(at)),
            '#' if blank_from.is_some() => return blank_from,
            '"' | '\'' if quotes => {
                at += closing_quote(&value[at..])?;
                blank_from = None;
            }
            _ => blank_from = None,
        }
        at += c.len_utf8();
    }
    None
}

#[cfg(test)]
#[path = "front_matter_tests.rs"]
mod tests;
