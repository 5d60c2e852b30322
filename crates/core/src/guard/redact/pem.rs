//! Blocks between BEGIN and END (S2, S3): private keys are secrets, an unclosed one to the end of the text; public keys and
//! certificates are not, whatever their letters happen to spell.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Found, value};

static BEGIN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-{4,5} ?BEGIN ([A-Z0-9 ]{1,64}?) ?-{4,5}").ok());
static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-{4,5} ?END ").ok());

/// The private lines of a PuTTY key file.
static PUTTY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"Private-Lines: [0-9]{1,3}\s+((?:[A-Za-z0-9+/=]{20,}\s*)+)").ok());

/// Whether a body holds what such blocks hold and nothing else.
fn is_encoded(body: &str) -> bool {
    body.chars()
        .all(|c| c.is_ascii_alphanumeric() || c.is_whitespace() || matches!(c, '+' | '/' | '=' | '\\' | '"' | ','))
}

/// Finds private keys; returns where public blocks stand.
pub(super) fn find(text: &str, found: &mut Vec<Found>) -> Vec<Range<usize>> {
    let mut public = Vec::new();
    let (Some(begin), Some(end)) = (BEGIN.as_ref(), END.as_ref()) else { return public };
    // Known once: without an END behind it, no block is closed, and none has to be searched for.
    let last_end = text.rfind("END ").unwrap_or(0);
    let mut at = 0;
    while let Some(head) = begin.captures_at(text, at) {
        let (Some(whole), Some(label)) = (head.get(0), head.get(1)) else { break };
        let close = if whole.end() < last_end { end.find_at(text, whole.end()) } else { None };
        let body = whole.end()..close.map_or(text.len(), |close| close.start());
        at = whole.end();
        if label.as_str().contains("PRIVATE KEY") {
            at = body.end;
            let inner = text.get(body.clone()).unwrap_or_default();
            let start = body.start + (inner.len() - inner.trim_start().len());
            let trimmed = inner.trim();
            if !value::is_masked(trimmed) && trimmed.contains(char::is_alphanumeric) {
                found.push(Found { range: start..start + trimmed.len(), kind: "private_key" });
            }
        } else if close.is_some() && text.get(body.clone()).is_some_and(is_encoded) {
            at = body.end;
            public.push(body);
        }
    }
    let putty = PUTTY.iter().flat_map(|lines| lines.captures_iter(text)).filter_map(|lines| lines.get(1));
    found.extend(putty.map(|lines| Found {
        range: lines.start()..lines.start() + lines.as_str().trim_end().len(),
        kind: "private_key",
    }));
    public
}
