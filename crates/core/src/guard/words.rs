//! Short names and spans of time, as people write them.

use std::collections::BTreeMap;

use crate::limits;

/// A short name made from a name.
#[must_use]
pub fn slug_of(name: &str) -> String {
    let mut slug = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.ends_with('-') && !slug.is_empty() {
            slug.push('-');
        }
    }
    slug.truncate(39);
    slug.trim_end_matches('-').to_owned()
}

/// Whether a short name can be mentioned as a handle.
#[must_use]
pub fn is_slug(slug: &str) -> bool {
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (1..=39).contains(&slug.len())
        && slug.bytes().all(|byte| fine(byte) || byte == b'-' || byte == b'_')
        && slug.bytes().next().is_some_and(fine)
        && slug.bytes().last().is_some_and(fine)
}

/// Whether free fields are few and short enough to be kept.
#[must_use]
pub fn is_metadata(fields: &BTreeMap<String, String>) -> bool {
    let short = |(key, value): (&String, &String)| {
        (1..=limits::METADATA_KEY_BYTES).contains(&key.len()) && value.len() <= limits::METADATA_VALUE_BYTES
    };
    fields.len() <= limits::METADATA_KEYS && fields.iter().all(short)
}

/// Seconds of a span such as `90s`, `15m`, `24h`, `30d`.
#[must_use]
pub fn parse_seconds(text: &str) -> Option<u64> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = digits.parse().ok()?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Seconds as such a span, in the largest unit that says them whole; a single day is `24h`.
#[must_use]
pub fn span_of(seconds: u64) -> String {
    let whole = |unit: u64| seconds >= unit && seconds.is_multiple_of(unit);
    if seconds > 86_400 && whole(86_400) {
        format!("{}d", seconds / 86_400)
    } else if whole(3600) {
        format!("{}h", seconds / 3600)
    } else if whole(60) {
        format!("{}m", seconds / 60)
    } else {
        format!("{seconds}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_said_in_the_largest_unit_that_fits_and_read_again() {
        for (seconds, span) in
            [(59, "59s"), (90, "90s"), (5400, "90m"), (86_400, "24h"), (172_800, "2d"), (90_000, "25h")]
        {
            assert_eq!((span_of(seconds).as_str(), parse_seconds(span)), (span, Some(seconds)));
        }
    }
}
