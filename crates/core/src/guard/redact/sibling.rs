//! Secrets whose name is a value itself (S2): entries of a name and a value, as in the environment of a container, in lists
//! of settings and in forms.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::argument::skip_breaks;
use super::extent::quoted_at;
use super::name::{self, Promise};
use super::{Found, assigned, value};

/// Fields of an entry that are looked at.
const FIELDS: usize = 6;
/// Bytes of a name, with the quotes around it.
const NAME_BYTES: usize = 128;

/// Where an entry may begin: with what it is called, or with what it holds.
static FIRST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?i-u)\b(?:name|key|value)\\{0,8}["']?[ \t]{0,9}[:=]"#).ok());

/// A field with its value.
struct Field<'a> {
    name: &'a str,
    value: Range<usize>,
    quoted: bool,
    /// Where it ends, with its quotes.
    end: usize,
}

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let mut read_to = 0;
    for first in FIRST.iter().flat_map(|first| first.find_iter(text)) {
        if first.start() >= read_to {
            read_to = entry(text, first.start(), found);
        }
    }
}

/// Reads the fields of one entry; returns where they end.
fn entry(text: &str, start: usize, found: &mut Vec<Found>) -> usize {
    let mut at = start;
    let mut promise = None;
    let mut held = None;
    for _ in 0..FIELDS {
        let Some(field) = field(text, at) else { break };
        at = field.end;
        if is_name(field.name) {
            promise = promise.or_else(|| name::promise(text.get(field.value.clone())?, None, false));
        } else if field.name.eq_ignore_ascii_case("value") {
            held = Some(field);
        }
        let behind = text.get(at..).unwrap_or_default();
        let next = skip_breaks(behind);
        let next = next.strip_prefix([',', ';']).map_or(next, skip_breaks);
        at += behind.len() - next.len();
    }
    if let (Some(promise), Some(field)) = (promise, held)
        && is_secret(text, promise, &field)
    {
        found.push(Found { range: field.value, kind: promise.kind() });
    }
    at.max(start + 1)
}

/// Whether a field says what the value beside it is called.
pub(super) fn is_name(field: &str) -> bool {
    field.eq_ignore_ascii_case("name") || field.eq_ignore_ascii_case("key")
}

fn is_secret(text: &str, promise: Promise, field: &Field<'_>) -> bool {
    let Some(secret) = text.get(field.value.clone()) else { return false };
    // A bare word is a secret only where it cannot be a name of code or a word about one.
    let meant =
        field.quoted || (!value::is_code(secret) && (promise == Promise::Password || value::looks_drawn(secret)));
    meant && assigned::is_value(promise, secret, field.quoted)
}

/// The field that begins here.
fn field(text: &str, at: usize) -> Option<Field<'_>> {
    let rest = text.get(at..)?;
    let opened = rest.trim_start_matches(['\\', '"', '\'']);
    let length = opened.bytes().take(NAME_BYTES).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    let name = opened.get(..length).filter(|name| !name.is_empty())?;
    let behind = opened.get(length..)?.trim_start_matches(['\\', '"', '\'']);
    let behind = behind.trim_start_matches([' ', '\t']).strip_prefix([':', '='])?;
    let behind = behind.trim_start_matches([' ', '\t']);
    let at = text.len() - behind.len();
    if let Some(quoted) = quoted_at(text, at, true) {
        let value = quoted?;
        let closed = text.get(value.end..)?.trim_start_matches(['\\', '"', '\'', '`']);
        return Some(Field { name, value, quoted: true, end: text.len() - closed.len() });
    }
    let length = behind.find(|c: char| c.is_whitespace() || ",;{}[]\"'<>`".contains(c)).unwrap_or(behind.len());
    (length > 0).then(|| Field { name, value: at..at + length, quoted: false, end: at + length })
}
