//! What would change, for a person: one line with counts, and a unified diff.

use similar::{ChangeTag, TextDiff};

use crate::limits::DIFF_TIME;
use crate::notebook::text_of;

/// The difference between two states of a file or a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The counts: lines where both sides are text, else bytes.
    pub(crate) counts: String,
    /// The unified diff; none where one side is not text.
    pub(crate) unified: Option<String>,
}

/// Compares what was there (none: nothing) with what will be (none: nothing).
pub(crate) fn compare(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Difference {
    let (Ok(old), Ok(new)) = (text_of(before.unwrap_or_default()), text_of(after.unwrap_or_default())) else {
        return Difference { counts: bytes(before, after), unified: None };
    };
    // A line ends with a line feed and with nothing else: a lone carriage return must not put a new line into an old one.
    let (old, new): (Vec<_>, Vec<_>) = (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let diff = TextDiff::configure().timeout(DIFF_TIME).newline_terminated(true).diff_slices(&old, &new);
    let (mut added, mut removed) = (0_usize, 0_usize);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => added += 1,
            ChangeTag::Delete => removed += 1,
            ChangeTag::Equal => {}
        }
    }
    let side = |content: Option<&[u8]>| if content.is_some() { path } else { "/dev/null" };
    // Whole, however long: what is not shown must not be approved (rule A3).
    let unified = diff.unified_diff().header(side(before), side(after)).to_string();
    Difference { counts: lines(before, after, added, removed), unified: Some(unified) }
}

fn lines(before: Option<&[u8]>, after: Option<&[u8]>, added: usize, removed: usize) -> String {
    match (before, after) {
        (None, _) => format!("+{added}"),
        (_, None) => format!("−{removed}"),
        (Some(_), Some(_)) => format!("+{added} −{removed}"),
    }
}

fn bytes(before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    match (before, after) {
        (None, None) => String::new(),
        (None, Some(new)) => format!("+{} bytes", new.len()),
        (Some(old), None) => format!("−{} bytes", old.len()),
        (Some(old), Some(new)) => format!("{} → {} bytes", old.len(), new.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_carriage_return_ends_no_line() {
        let got = compare("/a", Some(b"one\n"), Some(b"one\r+two\n"));
        assert_eq!(got.unified.as_deref(), Some("--- /a\n+++ /a\n@@ -1 +1 @@\n-one\n+one\r+two\n"));
    }

    #[test]
    fn a_changed_text_gives_counts_and_a_unified_diff() {
        let got = compare("/todo.md", Some(b"# Todo\n- milk\n- tea\n"), Some(b"# Todo\n- milk\n- bread\n- jam\n"));
        assert_eq!(got.counts, "+2 −1");
        let expected = "--- /todo.md\n+++ /todo.md\n@@ -1,3 +1,4 @@\n # Todo\n - milk\n-- tea\n+- bread\n+- jam\n";
        assert_eq!(got.unified.as_deref(), Some(expected));
    }

    #[test]
    fn a_new_text_is_shown_whole_and_a_deleted_one_too() {
        let new = compare("/new.md", None, Some(b"one\ntwo"));
        assert_eq!(new.counts, "+2");
        let expected = "--- /dev/null\n+++ /new.md\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n";
        assert_eq!(new.unified.as_deref(), Some(expected));
        let gone = compare("/old.md", Some(b"one\n"), None);
        assert_eq!(gone.counts, "−1");
        assert_eq!(gone.unified.as_deref(), Some("--- /old.md\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"));
    }

    #[test]
    fn bytes_that_are_not_text_are_counted_and_not_shown() {
        let got = compare("/a.bin", Some(b"\xff\x00"), Some(b"text\n"));
        assert_eq!((got.counts.as_str(), got.unified), ("2 → 5 bytes", None));
    }

    #[test]
    fn a_long_diff_is_shown_to_its_last_line() {
        let new = format!("{}the end\n", "a line of text\n".repeat(40_000));
        let got = compare("/long.md", None, Some(new.as_bytes()));
        assert!(got.unified.unwrap().ends_with("+the end\n"));
        assert_eq!(got.counts, "+40001");
    }
}
