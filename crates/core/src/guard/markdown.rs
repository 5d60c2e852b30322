//! Which parts of a markdown text speak (M3): not code, quotes, comments or addresses. Not a markdown parser: only what
//! decides whether a mention counts, in linear time.

use std::collections::HashMap;

/// For each byte of the text, whether it speaks.
pub(super) fn live(text: &str) -> Vec<bool> {
    let mut scan = Scan { text, live: vec![true; text.len()], last_comment_end: text.rfind("-->") };
    scan.blocks();
    scan.live
}

struct Scan<'a> {
    text: &'a str,
    live: Vec<bool>,
    /// Where the last `-->` of the text stands: beyond it no comment ends, and none is looked for.
    last_comment_end: Option<usize>,
}

/// What the beginning of a line makes of it.
enum Line<'a> {
    Blank,
    Quote,
    /// A comment that is never closed: it hides the rest of the text, as it does on the page.
    OpenComment,
    /// A fence of so many of this character.
    Fence(&'a str),
    Text,
}

impl<'a> Scan<'a> {
    /// Goes through fences, quotes and paragraphs.
    fn blocks(&mut self) {
        let mut at = 0;
        while at < self.text.len() {
            let (end, next) = self.line(at);
            match self.kind(at, end) {
                Line::Blank => at = next,
                Line::OpenComment => at = self.mute(at, self.text.len()),
                Line::Quote => at = self.mute(at, next),
                Line::Fence(fence) => {
                    let close = self.fence_end(next, fence);
                    at = self.mute(at, close);
                }
                Line::Text => at = self.paragraph(at),
            }
        }
    }

    fn kind(&self, start: usize, end: usize) -> Line<'a> {
        let line = self.slice(start, end).trim_matches([' ', '\t']);
        if line.trim().is_empty() {
            return Line::Blank;
        }
        if line.starts_with('>') {
            return Line::Quote;
        }
        if line.starts_with("<!--") && self.last_comment_end.is_none_or(|last| last < start) {
            return Line::OpenComment;
        }
        for mark in ['`', '~'] {
            let info = line.trim_start_matches(mark);
            let fence = line.strip_suffix(info).unwrap_or_default();
            // Behind backticks another backtick makes it a code span.
            if fence.len() >= 3 && !(mark == '`' && info.contains('`')) {
                return Line::Fence(fence);
            }
        }
        Line::Text
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// Marks a part as not speaking; returns its end.
    fn mute(&mut self, from: usize, to: usize) -> usize {
        if let Some(part) = self.live.get_mut(from..to) {
            part.fill(false);
        }
        to
    }

    /// The end of the line that begins here, and the beginning of the next.
    fn line(&self, from: usize) -> (usize, usize) {
        let rest = self.slice(from, self.text.len());
        match rest.find(['\n', '\r']) {
            None => (self.text.len(), self.text.len()),
            Some(end) => (from + end, from + end + if rest.get(end..end + 2) == Some("\r\n") { 2 } else { 1 }),
        }
    }

    /// Where the block of an opened fence ends: behind its closing line, or with the text.
    fn fence_end(&self, mut at: usize, fence: &str) -> usize {
        while at < self.text.len() {
            let (end, next) = self.line(at);
            let line = self.slice(at, end).trim_matches([' ', '\t']);
            if line.len() >= fence.len() && line.bytes().all(|b| fence.as_bytes().first() == Some(&b)) {
                return next;
            }
            at = next;
        }
        self.text.len()
    }

    /// Goes through the text of a paragraph: code spans, comments, addresses. Returns where blocks go on; a comment may
    /// lead past the paragraph's own end, into the middle of a line.
    fn paragraph(&mut self, start: usize) -> usize {
        let mut start = start;
        loop {
            let end = self.paragraph_end(start);
            match self.inline(start, end) {
                // Back at a border of lines, the next line decides by its own beginning.
                next if next <= end || self.is_line_start(next) => return next.max(end),
                next => start = next,
            }
        }
    }

    fn is_line_start(&self, at: usize) -> bool {
        at >= self.text.len() || self.slice(0, at).ends_with(['\n', '\r'])
    }

    /// The beginning of the first following line that is not text.
    fn paragraph_end(&self, start: usize) -> usize {
        let (_, mut at) = self.line(start);
        while at < self.text.len() {
            let (end, next) = self.line(at);
            match self.kind(at, end) {
                Line::Blank | Line::Quote | Line::OpenComment | Line::Fence(_) => break,
                Line::Text => at = next,
            }
        }
        at
    }

    fn inline(&mut self, start: usize, end: usize) -> usize {
        let runs = Backticks::of(self.slice(start, end), start);
        let mut at = start;
        while at < end {
            let rest = self.slice(at, end);
            let Some(skip) = rest.find(['`', '<', ':', '\\', 'w', 'W', 'm', 'M']) else { return end };
            at += skip;
            let rest = self.slice(at, end);
            if rest.starts_with('`') {
                let length = rest.len() - rest.trim_start_matches('`').len();
                match runs.next(length, at + length) {
                    Some(close) => at = self.mute(at, close + length),
                    None => at += length,
                }
            } else if rest.starts_with("<!--") {
                match self.comment_end(at) {
                    Some(close) => at = self.mute(at, close),
                    None => at += 4,
                }
            } else if rest.starts_with('\\') {
                // An escaped sign opens nothing.
                at += 1 + rest.chars().nth(1).filter(char::is_ascii_punctuation).map_or(0, char::len_utf8);
            } else if self.address_begins(at, rest) {
                at = self.mute(at, at + address_length(rest));
            } else {
                at += 1;
            }
        }
        at
    }

    /// Where the comment that begins here ends.
    fn comment_end(&self, at: usize) -> Option<usize> {
        self.last_comment_end.filter(|last| *last >= at + 4)?;
        self.slice(at + 4, self.text.len()).find("-->").map(|found| at + 4 + found + 3)
    }

    /// Whether an address stands here: `://` behind a scheme, `mailto:` or `www.` at the beginning of a word.
    fn address_begins(&self, at: usize, rest: &str) -> bool {
        let before = self.slice(0, at).chars().next_back();
        let prefixed = |prefix: &str| rest.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix));
        if rest.starts_with("://") {
            return before.is_some_and(|c| c.is_ascii_alphanumeric())
                && !rest.chars().nth(3).is_none_or(char::is_whitespace);
        }
        (prefixed("mailto:") || prefixed("www.")) && !before.is_some_and(char::is_alphanumeric)
    }
}

/// An address ends at a blank, a bracket or quote that closes it, or a parenthesis it did not open.
fn address_length(rest: &str) -> usize {
    let mut open = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return at,
            ')' => open -= 1,
            '<' | '>' | '"' | '`' => return at,
            blank if blank.is_whitespace() => return at,
            _ => {}
        }
    }
    rest.len()
}

/// The runs of backticks of a paragraph by their length, so that each opening finds its closing at once.
struct Backticks(HashMap<usize, Vec<usize>>);

impl Backticks {
    fn of(text: &str, start: usize) -> Self {
        let mut runs: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut at = 0;
        while let Some(skip) = text.get(at..).and_then(|rest| rest.find('`')) {
            at += skip;
            let rest = text.get(at..).unwrap_or_default();
            let length = rest.len() - rest.trim_start_matches('`').len();
            runs.entry(length).or_default().push(start + at);
            at += length;
        }
        Self(runs)
    }

    /// The first run of this length from here on.
    fn next(&self, length: usize, from: usize) -> Option<usize> {
        let places = self.0.get(&length)?;
        places.get(places.partition_point(|place| *place < from)).copied()
    }
}
