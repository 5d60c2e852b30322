//! Blocks between BEGIN and END (S2, S3): private keys are secrets, an unclosed one to the end of the text; public keys and
//! certificates are not, whatever their letters happen to spell.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{Found, mark, value};

static BEGIN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-{4,5} ?BEGIN ([A-Z0-9 ]{1,64}?) ?-{4,5}").ok());
static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"-{4,5} ?END ").ok());

/// What an END ends with here.
const END_WORD: &str = "END ";

/// The private lines of a PuTTY key file.
static PUTTY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"Private-Lines: [0-9]{1,3}\s+((?:[A-Za-z0-9+/=]{20,}\s*)+)").ok());

/// What a label says of a block that is public, so that its letters are left alone.
const PUBLIC: &[&str] = &["PUBLIC KEY", "CERTIFICATE", "SIGNATURE", "PARAMETERS", "CRL", "MESSAGE"];

/// Letters in a row from which on a body holds a key, whatever says beside them that something was left out.
const KEY_RUN: usize = 16;
/// The same where capitals and small letters are mixed, as they are in no word.
const MIXED_RUN: usize = 12;
/// Signs of the check sum that stands on the last line of an OpenPGP block, behind a sign of its own.
const CHECK_SUM: usize = 4;

/// Whether a body holds what such blocks hold and nothing else: an assignment is none of it.
fn is_encoded(body: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
    let between = |c: char| c.is_whitespace() || matches!(c, '\\' | '"' | ',');
    body.split(['\n', '\u{2028}']).all(|line| {
        let line = line.trim_matches(between);
        let sum = line.strip_prefix('=').filter(|sum| sum.len() == CHECK_SUM);
        let text = sum.unwrap_or(line.trim_end_matches(|c| c == '=' || between(c)));
        text.chars().all(|c| letter(c) || between(c))
    })
}

/// Whether a body only says that a key would stand there.
fn is_stand_in(body: &str) -> bool {
    let bare = mark::without(body);
    let is_key = |run: &str| {
        let drawn = run.contains(|c| !matches!(c, 'x' | 'X'));
        let small = run.bytes().any(|b| b.is_ascii_lowercase());
        let mixed = small && run.bytes().skip(1).any(|b| b.is_ascii_uppercase());
        drawn && run.len() >= if mixed { MIXED_RUN } else { KEY_RUN }
    };
    let holds_key = || bare.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '/')).any(is_key);
    !bare.contains(char::is_alphanumeric) || (value::is_masked(bare.trim()) && !holds_key())
}

/// Finds private keys; returns where public blocks stand, in order.
pub(super) fn find(text: &str, found: &mut Vec<Found>) -> Vec<Range<usize>> {
    let mut public = Vec::new();
    let (Some(begin), Some(end)) = (BEGIN.as_ref(), END.as_ref()) else { return public };
    // All of them at once: to search anew behind every BEGIN would read the same text again and again.
    let ends: Vec<Range<usize>> = end.find_iter(text).map(|end| end.range()).collect();
    let mut next = 0;
    let mut at = 0;
    while let Some(head) = begin.captures_at(text, at) {
        let (Some(whole), Some(label)) = (head.get(0), head.get(1)) else { break };
        while ends.get(next).is_some_and(|end| end.end - END_WORD.len() < whole.end()) {
            next += 1;
        }
        let close = ends.get(next);
        let body = whole.end()..close.map_or(text.len(), |close| close.start.max(whole.end()));
        at = whole.end();
        if label.as_str().contains("PRIVATE KEY") {
            at = body.end;
            let inner = text.get(body.clone()).unwrap_or_default();
            let start = body.start + (inner.len() - inner.trim_start().len());
            let trimmed = inner.trim();
            if !is_stand_in(trimmed) {
                found.push(Found { range: start..start + trimmed.len(), kind: "private_key" });
            }
        } else if close.is_some()
            && PUBLIC.iter().any(|public| label.as_str().contains(public))
            && text.get(body.clone()).is_some_and(is_encoded)
        {
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
