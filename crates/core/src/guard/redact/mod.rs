//! The redactor (S1-S5): finds secrets in text that is about to leave and puts `[REDACTED:kind]` in their place, leaving
//! everything else byte for byte. Linear in the text. The second line of defence: the first is a type that cannot be
//! printed.

mod assigned;
mod header;
mod name;
mod number;
mod pem;
mod shape;
mod value;
mod view;
mod web;

use std::borrow::Cow;
use std::ops::Range;

use view::View;

/// What stands before the kind where a secret was. A text that begins like this is never a secret itself (S1).
const MARK: &str = "[REDACTED:";

/// Rounds until nothing more changes. One does in practice; more make sure that applying it twice changes nothing (S1).
const ROUNDS: usize = 4;

/// How much counts as a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Credentials and numbers that are like credentials. Mail addresses stay: an audit must say who was mailed.
    #[default]
    #[serde(alias = "default")]
    Standard,
    /// Mail addresses and phone numbers too.
    Strict,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it stands, in bytes.
    pub range: Range<usize>,
    /// What it is.
    pub kind: &'static str,
}

/// The text without its secrets.
#[must_use]
pub fn redact(text: &str, mode: Mode) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let found = find(&clean, mode);
        if found.is_empty() {
            break;
        }
        clean = Cow::Owned(replaced(&clean, &found));
    }
    clean
}

/// The secrets of a text, in order, none overlapping another.
#[must_use]
pub fn find(text: &str, mode: Mode) -> Vec<Found> {
    let view = View::of(text);
    let seen = view.text();
    let mut found = Vec::new();
    let public = pem::find(seen, &mut found);
    shape::find(seen, &mut found);
    web::find(seen, &mut found);
    assigned::find(seen, &mut found);
    number::find(seen, &mut found);
    match mode {
        Mode::Standard => {}
        Mode::Strict => {
            web::find_mail(seen, &mut found);
            number::find_phones(seen, &mut found);
        }
    }
    found.retain(|secret| !is_empty_or_marked(seen, secret) && !public.iter().any(|zone| holds(zone, &secret.range)));
    let merged = merged(found);
    merged.into_iter().map(|secret| Found { range: view.original(&secret.range), kind: secret.kind }).collect()
}

fn holds(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn is_empty_or_marked(text: &str, secret: &Found) -> bool {
    text.get(secret.range.clone()).is_none_or(|value| value.trim().is_empty() || value.contains(MARK))
}

/// Joins what overlaps. The detectors run from the most to the least specific, and the sort is stable, so a known shape
/// gives its kind to the value it is assigned as.
fn merged(mut found: Vec<Found>) -> Vec<Found> {
    found.sort_by_key(|secret| secret.range.start);
    let mut merged: Vec<Found> = Vec::with_capacity(found.len());
    for secret in found {
        match merged.last_mut() {
            Some(last) if secret.range.start < last.range.end => last.range.end = last.range.end.max(secret.range.end),
            Some(_) | None => merged.push(secret),
        }
    }
    merged
}

fn replaced(text: &str, found: &[Found]) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for secret in found {
        clean.push_str(text.get(at..secret.range.start).unwrap_or_default());
        clean.push_str(MARK);
        clean.push_str(secret.kind);
        clean.push(']');
        at = secret.range.end;
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    clean
}

#[cfg(test)]
mod tests;
