//! The line that is typed on: a text and a place in it. Knows nothing of what is done with it.

/// A text that is being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Composer {
    text: String,
    /// Where the next letter goes, in bytes.
    at: usize,
}

impl Composer {
    pub(super) fn of(text: &str) -> Self {
        Self { text: text.to_owned(), at: text.len() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What stands before the place.
    pub(super) fn before(&self) -> &str {
        &self.text[..self.at]
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Hands the text over and begins anew.
    pub(super) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    pub(super) fn backspace(&mut self) {
        if self.at > 0 {
            self.left();
            self.delete();
        }
    }

    pub(super) fn delete(&mut self) {
        if self.at < self.text.len() {
            self.text.remove(self.at);
        }
    }

    pub(super) fn delete_word(&mut self) {
        let kept = self.before().trim_end();
        let start =
            kept.rfind(char::is_whitespace).map_or(0, |at| at + kept[at..].chars().next().map_or(1, char::len_utf8));
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    /// Takes away what stands before the place on its line.
    pub(super) fn delete_to_start(&mut self) {
        let start = self.line_start();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    pub(super) fn left(&mut self) {
        self.at -= self.before().chars().next_back().map_or(0, char::len_utf8);
    }

    pub(super) fn right(&mut self) {
        self.at += self.text[self.at..].chars().next().map_or(0, char::len_utf8);
    }

    pub(super) fn home(&mut self) {
        self.at = self.line_start();
    }

    pub(super) fn end(&mut self) {
        self.at = self.text[self.at..].find('\n').map_or(self.text.len(), |more| self.at + more);
    }

    fn line_start(&self) -> usize {
        self.before().rfind('\n').map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_go_where_the_place_is() {
        let mut line = Composer::of("Grße");
        line.left();
        line.left();
        line.insert("ü");
        assert_eq!((line.text(), line.before()), ("Grüße", "Grü"));
        line.backspace();
        line.delete();
        assert_eq!(line.text(), "Gre");
        line.home();
        line.backspace();
        line.insert("un");
        line.end();
        line.right();
        line.insert("t");
        assert_eq!(line.text(), "unGret");
    }

    #[test]
    fn a_word_or_a_line_goes_at_once() {
        let mut line = Composer::of("one two  ");
        line.delete_word();
        assert_eq!(line.text(), "one ");
        line.delete_word();
        line.delete_word();
        assert_eq!(line.text(), "");
        let mut lines = Composer::of("above\nbelow");
        lines.delete_to_start();
        assert_eq!(lines.text(), "above\n");
        assert_eq!((lines.take().as_str(), lines.is_empty()), ("above\n", true));
    }
}
