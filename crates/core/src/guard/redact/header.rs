//! Authorization and cookie headers (S2), on a line of their own, in a quoted argument, or as a field of JSON.

use std::ops::Range;

use super::argument::skip_breaks;
use super::assigned::ITEMS;
use super::extent::begins_pair;
use super::{Found, value};

/// Schemes of the Authorization header. What follows one of them is the credential.
const SCHEMES: &str = "\
    bearer basic digest token apikey api-key key negotiate ntlm aws4-hmac-sha256 hawk oauth dpop gnap signature hoba \
    mutual vapid scram-sha-1 scram-sha-256 sharedkey sharedaccesssignature splunk genie-key bot jwt ghtoken";

/// A header that carries credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    Authorization,
    Cookie,
    SetCookie,
}

impl Header {
    pub(super) fn of(name: &str) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("authorization") || is("proxy-authorization") || is("x-authorization") {
            Some(Self::Authorization)
        } else if is("cookie") {
            Some(Self::Cookie)
        } else if is("set-cookie") {
            Some(Self::SetCookie)
        } else {
            None
        }
    }
}

/// Headers in one line that are looked at: more of them would read the same line again and again.
const IN_A_LINE: usize = 8;

/// Reads headers to the end of their line, so that names in a line that was read are no headers of their own, unless a
/// credential ended before it.
#[derive(Default)]
pub(super) struct Reader {
    line_end: usize,
    read_to: usize,
    in_line: usize,
}

impl Reader {
    /// Whether a name that begins here may be a header.
    pub(super) const fn reads(&self, start: usize) -> bool {
        start >= self.read_to
    }

    /// Finds the credentials in the contents of a header. Returns where to go on if they have been read to their end.
    pub(super) fn read(
        &mut self,
        text: &str,
        header: Header,
        contents: Vec<Range<usize>>,
        found: &mut Vec<Found>,
    ) -> Option<usize> {
        let line_end = contents.last().map_or(0, |content| content.end);
        self.in_line =
            if contents.first().is_some_and(|first| first.start < self.line_end) { self.in_line + 1 } else { 0 };
        self.line_end = self.line_end.max(line_end);
        let behind = contents.into_iter().filter_map(|content| find(text, header, content, found)).last();
        self.read_to = behind.filter(|_| self.in_line < IN_A_LINE).unwrap_or(line_end);
        behind
    }
}

fn find(text: &str, header: Header, content: Range<usize>, found: &mut Vec<Found>) -> Option<usize> {
    match header {
        Header::Authorization => authorization(text, content, found),
        Header::Cookie | Header::SetCookie => cookie(text, content, header == Header::SetCookie, found),
    }
}

/// The contents of a header whose value begins here: one, or those of a list of quoted texts.
pub(super) fn contents(text: &str, at: usize, opened: Option<char>) -> Option<Vec<Range<usize>>> {
    let mut list = Vec::new();
    let mut rest = text.get(at..).and_then(|rest| rest.strip_prefix('[')).map(skip_breaks);
    while let Some(item) =
        rest.filter(|item| list.len() < ITEMS && item.trim_start_matches('\\').starts_with(['"', '\'']))
    {
        let Some(inner) = content(text, text.len() - item.len(), None) else { break };
        let behind = text.get(inner.end..).unwrap_or_default().trim_start_matches(['\\', '"', '\'', ' ']);
        rest = skip_breaks(behind).strip_prefix(',').map(skip_breaks);
        list.push(inner);
    }
    if list.is_empty() { content(text, at, opened).map(|content| vec![content]) } else { Some(list) }
}

/// The content of a header whose value begins here: in its own quotes, up to the quote that opened before its name, or to
/// the end of the line.
fn content(text: &str, at: usize, opened: Option<char>) -> Option<Range<usize>> {
    let rest = text.get(at..)?;
    let unquoted = rest.trim_start_matches(|c: char| "fFbBrRuU@".contains(c));
    let prefix = if unquoted.starts_with(['"', '\'', '`', '\\']) { rest.len() - unquoted.len() } else { 0 };
    let rest = rest.get(prefix..)?;
    let at = at + prefix;
    let behind = rest.trim_start_matches('\\');
    let own = behind.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let (start, quote) = match (own, opened) {
        // The quote that opened before the name closes here: there is no value.
        (Some(own), Some(opened)) if own == opened => return None,
        (Some(own), _) => (at + rest.len() - behind.len() + 1, Some(own)),
        (None, opened) => (at, opened),
    };
    let inner = text.get(start..)?;
    let length =
        inner.find(|c: char| c == '\n' || c == '\r' || c == '\u{2028}' || Some(c) == quote).unwrap_or(inner.len());
    let content = inner.get(..length)?.trim_end_matches('\\').trim_end();
    let blanks = content.len() - content.trim_start().len();
    Some(start + blanks..start + content.len())
}

/// The credential of an Authorization header; the scheme stays. Returns where to go on if there was one.
fn authorization(text: &str, content: Range<usize>, found: &mut Vec<Found>) -> Option<usize> {
    let value = text.get(content.clone())?;
    let (scheme, credential) = value.split_once(char::is_whitespace).unwrap_or(("", value));
    let credential = credential.trim();
    let known = value::is_listed(SCHEMES, scheme);
    let one_word = !credential.contains(char::is_whitespace);
    let (start, secret) = match (known, one_word) {
        (true, true) => (content.end - credential.len(), credential),
        (true, false) => (content.end - credential.len(), first_word(credential).or_else(|| parameters(credential))?),
        (false, true) if credential.len() >= 6 && value::looks_drawn(credential) => {
            (content.end - credential.len(), credential)
        }
        (false, _) => (content.start, unnamed(value)?),
    };
    if value::is_placeholder(secret) || (scheme.is_empty() && value::is_listed(SCHEMES, secret)) {
        return None;
    }
    let range = start..start + secret.len();
    let behind = range.end;
    found.push(Found { range, kind: "authorization" });
    Some(behind)
}

/// Parameters of a scheme; anything else is a sentence about it.
fn parameters(credential: &str) -> Option<&str> {
    (credential.contains('=') && value::looks_drawn(credential)).then_some(credential)
}

/// The credential behind a scheme where the line goes on with something else: a word that no sentence holds.
fn first_word(credential: &str) -> Option<&str> {
    let word = word_of(credential)?;
    let pairs = word.bytes().zip(word.bytes().skip(1));
    let turns = pairs.filter(|(a, b)| a.is_ascii_lowercase() != b.is_ascii_lowercase()).count();
    // Names such as JavaScript turn less often between capitals and small letters.
    let drawn = value::looks_drawn(word) || (word.len() >= 8 && (turns >= 4 || word.ends_with('=')));
    let parameter = word.trim_end_matches('=').contains('=');
    (drawn && !parameter).then_some(word)
}

/// A credential without a scheme, where another header or an argument follows it.
fn unnamed(value: &str) -> Option<&str> {
    let word = word_of(value).filter(|word| word.len() >= 6 && value::looks_drawn(word) && !word.contains('='))?;
    let behind = value.split_once(char::is_whitespace)?.1.trim_start();
    let argument = behind.strip_prefix('-').is_some_and(|flag| flag.starts_with(|c: char| !c.is_whitespace()));
    (argument || begins_pair(behind)).then_some(word)
}

/// The first word, without what ends an item behind it.
fn word_of(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    Some(word.trim_end_matches([',', ';', '}', ')', ']', '>', '|', '"', '\''])).filter(|word| !word.is_empty())
}

/// The values of cookies; their names and attributes stay.
fn cookie(text: &str, content: Range<usize>, first_only: bool, found: &mut Vec<Found>) -> Option<usize> {
    let line = text.get(content.clone())?;
    let mut at = content.start;
    for (index, pair) in line.split(';').enumerate() {
        let start = at;
        at += pair.len() + 1;
        let Some((name, value)) = pair.split_once('=') else { continue };
        if name.trim().is_empty() || name.trim().contains(char::is_whitespace) || (first_only && index > 0) {
            break;
        }
        let trimmed = value.trim().trim_matches(['"', '\\']);
        if !value::is_placeholder(trimmed) {
            let offset = start + name.len() + 1 + value.find(trimmed).unwrap_or(0);
            found.push(Found { range: offset..offset + trimmed.len(), kind: "cookie" });
        }
    }
    // The line is read; what looks like an assignment in it has been judged.
    line.contains('=').then_some(content.end)
}

/// A bearer token outside of a header.
pub(super) fn bearer(text: &str, at: usize, found: &mut Vec<Found>) {
    let rest = text.get(at..).unwrap_or_default();
    let token = rest.trim_start_matches([' ', '\t']);
    let start = at + rest.len() - token.len();
    let letter = |c: char| c.is_ascii_alphanumeric() || "._~+/=-".contains(c);
    let length = token.find(|c: char| !letter(c)).unwrap_or(token.len());
    let token = token.get(..length).unwrap_or_default().trim_end_matches(['.', '-']);
    if start > at && start - at < 4 && token.len() >= 8 && value::looks_drawn(token) && !value::is_placeholder(token) {
        found.push(Found { range: start..start + token.len(), kind: "authorization" });
    }
}
