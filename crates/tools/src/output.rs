//! Text for the model: never longer than the tool promised, and never cut without saying so.

use adjutant_core::content::Hash;

/// The text, cut at a line (or at least a character) to fit into `cap` bytes together with a last line that says how much
/// is missing, and the hash of all of it: what is recorded proves what there was.
pub(crate) fn capped(text: String, cap: usize) -> String {
    /// Bytes kept free for the line that tells of the cut.
    const NOTE_BYTES: usize = 160;
    if text.len() <= cap {
        return text;
    }
    let mut end = cap.saturating_sub(NOTE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // A whole line is worth more than a few more characters, unless the line is most of the text.
    if let Some(line) = text[..end].rfind('\n').filter(|line| *line >= end / 2) {
        end = line;
    }
    let (kept, rest) = text.split_at(end);
    let (all, hash) = (text.len(), Hash::of(text.as_bytes()));
    format!("{kept}\n… {} more bytes are not shown; all {all} have the hash {hash}", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_ends_with_a_line_that_says_how_much_is_missing() {
        let text = "0123456789\n".repeat(30);
        let cut = capped(text.clone(), 300);
        assert!(cut.len() <= 300, "{}", cut.len());
        let (kept, note) = cut.rsplit_once('\n').unwrap();
        assert!(text.starts_with(kept));
        let (rest, hash) = (text.len() - kept.len(), Hash::of(text.as_bytes()));
        assert_eq!(note, format!("… {rest} more bytes are not shown; all 330 have the hash {hash}"));
        assert_eq!(capped("short".to_owned(), 300), "short");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        for cap in 161..200 {
            let cut = capped("ä".repeat(200), cap);
            assert!(cut.len() <= cap && cut.contains("more bytes"), "{cut}");
        }
    }
}
