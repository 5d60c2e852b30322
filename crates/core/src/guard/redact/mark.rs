//! The marks that stand where secrets were: what is one, and what is left of a text without them. Whoever writes beside a
//! mark, or writes something that only begins like one, hides nothing by it.

use std::borrow::Cow;
use std::ops::Range;

/// What stands before the kind where a secret was.
pub(super) const MARK: &str = "[REDACTED:";

/// The longest name of a kind, and the most digits of a length: what goes on longer is no mark of ours.
const LONGEST: usize = 24;

/// The bytes of the mark that a text begins with.
fn length(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(MARK)?;
    let kind = rest.bytes().take(LONGEST).take_while(|b| b.is_ascii_lowercase() || *b == b'_').count();
    let behind = rest.get(kind..).filter(|_| kind > 0)?;
    let size = behind.strip_prefix(':').unwrap_or_default();
    let digits = size.bytes().take(LONGEST).take_while(u8::is_ascii_digit).count();
    let sized = if digits > 0 { digits + 1 } else { 0 };
    behind.get(sized..)?.starts_with(']').then_some(MARK.len() + kind + sized + 1)
}

/// Where the marks of a text stand, in order.
pub(super) fn spans(text: &str) -> Vec<Range<usize>> {
    let begins = text.match_indices(MARK);
    begins.filter_map(|(at, _)| Some(at..at + length(text.get(at..)?)?)).collect()
}

/// The text without its marks.
pub(super) fn without(text: &str) -> Cow<'_, str> {
    let spans = spans(text);
    if spans.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        rest.push_str(text.get(at..span.start).unwrap_or_default());
        at = span.end;
    }
    rest.push_str(text.get(at..).unwrap_or_default());
    Cow::Owned(rest)
}

/// Whether there is nothing but marks and blanks. Looks no further than the first other sign.
pub(super) fn nothing_else(text: &str) -> bool {
    let mut rest = text.trim_start();
    while let Some(length) = length(rest) {
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    rest.is_empty()
}

/// The range with the whole of a mark that it begins or ends inside of: half a mark is never replaced.
pub(super) fn widened(range: &Range<usize>, spans: &[Range<usize>]) -> Range<usize> {
    let inside = |at: usize| {
        let next = spans.get(spans.partition_point(|span| span.end <= at))?;
        (next.start < at).then_some(next)
    };
    let start = inside(range.start).map_or(range.start, |mark| mark.start);
    start..inside(range.end).map_or(range.end, |mark| mark.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_a_kind_in_brackets_with_or_without_a_length() {
        for mark in ["[REDACTED:password]", "[REDACTED:private_key]", "[REDACTED:password:12]", "[REDACTED:x]"] {
            assert_eq!(length(mark), Some(mark.len()), "{mark}");
            assert_eq!(without(&format!("a{mark}b{mark}")), "ab");
            assert!(nothing_else(&format!(" {mark}\n{mark} ")) && !nothing_else(&format!("{mark}.")));
        }
        for none in [
            "[REDACTED]",
            "[REDACTED:]",
            "[REDACTED:hunter2]",
            "[REDACTED:password",
            "[REDACTED:password:]",
            "[REDACTED:password:x]",
            "[REDACTED:correct horse battery]",
            "[REDACTED:abcdefghijklmnopqrstuvwxyz]",
        ] {
            assert_eq!(length(none), None, "{none}");
            assert!(matches!(without(none), Cow::Borrowed(_)) && !nothing_else(none));
        }
        assert!(nothing_else(" \n"));
    }

    #[test]
    fn a_range_takes_the_marks_at_its_ends_whole() {
        let text = "a[REDACTED:x]b[REDACTED:y]c";
        let spans = spans(text);
        assert_eq!(spans, [1..13, 14..26]);
        assert_eq!(widened(&(0..27), &spans), 0..27);
        assert_eq!(widened(&(1..13), &spans), 1..13);
        assert_eq!(widened(&(2..14), &spans), 1..14);
        assert_eq!(widened(&(13..15), &spans), 13..26);
        assert_eq!(widened(&(4..5), &spans), 1..13);
    }
}
