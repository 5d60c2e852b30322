//! Authorization and cookie headers (S2), on a line of their own, in a quoted argument, or as a field of JSON.

use std::ops::Range;

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

/// Finds the credentials in the content of a header. Returns where to go on if it has been read to its end.
pub(super) fn find(text: &str, header: Header, content: Range<usize>, found: &mut Vec<Found>) -> Option<usize> {
    match header {
        Header::Authorization => authorization(text, content, found),
        Header::Cookie | Header::SetCookie => cookie(text, content, header == Header::SetCookie, found),
    }
}

/// The content of a header whose value begins here: in its own quotes, up to the quote that opened before its name, or to
/// the end of the line.
pub(super) fn content(text: &str, at: usize, opened: Option<char>) -> Option<Range<usize>> {
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
    let is_credential = match (known, one_word) {
        (true, true) => true,
        // Parameters; else a sentence about the scheme.
        (true, false) => credential.contains('=') && value::looks_drawn(credential),
        (false, true) => credential.len() >= 6 && value::looks_drawn(credential),
        (false, false) => false,
    };
    if !is_credential
        || value::is_placeholder(credential)
        || (scheme.is_empty() && value::is_listed(SCHEMES, credential))
    {
        return None;
    }
    found.push(Found { range: content.end - credential.len()..content.end, kind: "authorization" });
    Some(content.end)
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
