//! The redactor (S1-S5): finds secrets in text that is about to leave and puts `[REDACTED:kind]` in their place, leaving
//! everything else byte for byte. Linear in the text. The second line of defence: the first is a type that cannot be
//! printed.

mod argument;
mod assigned;
mod below;
mod extent;
mod fields;
mod header;
mod held;
mod mark;
mod name;
mod number;
mod pem;
mod shape;
mod sibling;
mod value;
mod view;
mod web;

use std::borrow::Cow;
use std::ops::Range;

pub use fields::redact_value;
pub(crate) use held::MARK as CREDENTIAL;
pub use held::{Held, TooMuch};
use mark::MARK;
use view::View;

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

/// What stands where a secret was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Its kind: `[REDACTED:password]`.
    Kind,
    /// Its kind and how many characters it has, for somebody who decides about it: `[REDACTED:password:12]`.
    Sized,
}

/// The text without its secrets.
#[must_use]
pub fn redact(text: &str, mode: Mode) -> Cow<'_, str> {
    redact_as(text, mode, Form::Kind)
}

/// The same, with this in place of a secret.
#[must_use]
pub fn redact_as(text: &str, mode: Mode, form: Form) -> Cow<'_, str> {
    let mut clean = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let found = find(&clean, mode);
        if found.is_empty() {
            break;
        }
        clean = Cow::Owned(replaced(&clean, &found, form));
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
    sibling::find(seen, &mut found);
    number::find(seen, &mut found);
    match mode {
        Mode::Standard => {}
        Mode::Strict => {
            web::find_mail(seen, &mut found);
            number::find_phones(seen, &mut found);
        }
    }
    let marks = mark::spans(seen);
    found.retain_mut(|secret| {
        let hidden = is_inside(&public, &secret.range);
        secret.range = mark::widened(&secret.range, &marks);
        !hidden && seen.get(secret.range.clone()).is_some_and(|secret| !mark::nothing_else(secret))
    });
    let merged = merged(found);
    merged.into_iter().map(|secret| Found { range: view.original(&secret.range), kind: secret.kind }).collect()
}

/// Whether a range lies in one of these zones, which are in order and apart from each other.
fn is_inside(zones: &[Range<usize>], range: &Range<usize>) -> bool {
    let next = zones.get(zones.partition_point(|zone| zone.end < range.end));
    next.is_some_and(|zone| zone.start <= range.start && range.end <= zone.end)
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

/// Whether a text holds what [`Form::Sized`] puts in place of a secret: it was copied from where it was hidden.
#[must_use]
pub fn was_hidden(text: &str) -> bool {
    text.split(MARK).skip(1).any(|rest| {
        let mark = rest.split_once(']').and_then(|(mark, _)| mark.split_once(':'));
        mark.is_some_and(|(_, size)| !size.is_empty() && size.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn replaced(text: &str, found: &[Found], form: Form) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut at = 0;
    for secret in found {
        clean.push_str(text.get(at..secret.range.start).unwrap_or_default());
        clean.push_str(MARK);
        clean.push_str(secret.kind);
        if form == Form::Sized {
            let hidden = text.get(secret.range.clone()).unwrap_or_default();
            clean.push_str(&format!(":{}", hidden.chars().count()));
        }
        clean.push(']');
        at = secret.range.end;
    }
    clean.push_str(text.get(at..).unwrap_or_default());
    clean
}

#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod tests;
