//! A short summary of notes made of their own sentences: for each note the one that says most.

use std::collections::HashMap;

/// Letters of the shortest word that carries meaning often enough to count.
const SHORTEST_WORD: usize = 4;
/// Characters of a sentence in a summary; longer ones are cut.
const SENTENCE: usize = 220;
/// How much more a word of the title counts.
const TITLE_WORD: f64 = 2.0;
/// Words that are long enough and still say nothing.
const EMPTY_WORDS: &[&str] = &[
    "about", "after", "again", "also", "because", "been", "before", "being", "every", "from", "have", "into", "last",
    "like", "many", "more", "most", "much", "must", "only", "other", "over", "same", "should", "some", "such", "than",
    "that", "their", "them", "then", "there", "they", "this", "until", "very", "were", "what", "when", "where",
    "which", "will", "with", "would", "your",
];

/// A summary of these notes (path and text), as Markdown.
pub(super) fn summary(notes: &[(String, String)]) -> String {
    let parsed: Vec<_> = notes.iter().map(|(path, text)| (path, Note::read(path, text))).collect();
    let mut counts: HashMap<String, u32> = HashMap::new();
    for word in parsed.iter().flat_map(|(_, note)| &note.sentences).flat_map(|sentence| words(sentence)) {
        *counts.entry(word).or_default() += 1;
    }
    let mut text = String::new();
    for (path, note) in &parsed {
        text.push_str(&format!("- **{}** (`{path}`): ", note.title));
        let open = match note.open {
            0 => None,
            1 => Some("one open item".to_owned()),
            count => Some(format!("{count} open items")),
        };
        let parts: Vec<_> = note.best(&counts).map(cut).into_iter().chain(open).collect();
        text.push_str(if parts.is_empty() { "empty" } else { "" });
        text.push_str(&parts.join(" · "));
        text.push('\n');
    }
    text
}

struct Note {
    title: String,
    sentences: Vec<String>,
    open: usize,
}

impl Note {
    fn read(path: &str, text: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut note = Self { title: name.to_owned(), sentences: Vec::new(), open: 0 };
        let mut paragraph = String::new();
        let (mut front, mut code, mut titled) = (false, false, false);
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line == "---" && (at == 0 || front) {
                front = at == 0;
            } else if line.starts_with("```") || line.starts_with("~~~") {
                code = !code;
            } else if front || code {
            } else if let Some(heading) = line.strip_prefix('#') {
                note.take(&mut paragraph);
                if !titled {
                    note.title = heading.trim_start_matches('#').trim().to_owned();
                    titled = true;
                }
            } else if let Some(item) = item(line) {
                note.take(&mut paragraph);
                note.open += usize::from(item.starts_with("[ ]"));
                paragraph.push_str(if item.starts_with('[') { "" } else { item });
            } else if line.is_empty() {
                note.take(&mut paragraph);
            } else {
                paragraph.push(' ');
                paragraph.push_str(line);
            }
        }
        note.take(&mut paragraph);
        note
    }

    /// Splits what was gathered into sentences.
    fn take(&mut self, paragraph: &mut String) {
        let text = std::mem::take(paragraph);
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.match_indices(['.', '!', '?']).map(|(at, mark)| at + mark.len());
            let end = end.into_iter().find(|end| rest[*end..].starts_with([' ', ')'])).unwrap_or(rest.len());
            let (sentence, after) = rest.split_at(end);
            self.sentences.push(sentence.trim().to_owned());
            rest = after.trim();
        }
    }

    /// The sentence that says most: its words come up often or stand in the title, and it stands early. Long sentences
    /// win less than they would by their length, and questions last, because they tell nothing.
    fn best(&self, counts: &HashMap<String, u32>) -> Option<&str> {
        let title = words(&self.title);
        let score = |at: usize, sentence: &str| {
            let words = words(sentence);
            let worth = |word: &String| {
                f64::from(counts.get(word).copied().unwrap_or(0)) + if title.contains(word) { TITLE_WORD } else { 0.0 }
            };
            let sum: f64 = words.iter().map(worth).sum();
            let length = f64::from(u32::try_from(words.len()).unwrap_or(u32::MAX)).sqrt().max(1.0);
            let early = 1.0 + 0.5 / f64::from(u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1));
            if sentence.ends_with('?') { 0.0 } else { sum / length * early }
        };
        let scored = self.sentences.iter().enumerate().map(|(at, sentence)| (score(at, sentence), sentence));
        scored.min_by(|a, b| b.0.total_cmp(&a.0)).map(|(_, sentence)| sentence.as_str())
    }
}

/// The text of a list item.
fn item(line: &str) -> Option<&str> {
    if let Some(text) = line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")) {
        return Some(text.trim());
    }
    let (number, text) = line.split_once(". ")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.trim())
}

fn words(sentence: &str) -> Vec<String> {
    let words = sentence.split(|letter: char| !letter.is_alphabetic()).map(str::to_lowercase);
    words.filter(|word| word.chars().count() >= SHORTEST_WORD && !EMPTY_WORDS.contains(&word.as_str())).collect()
}

fn cut(sentence: &str) -> String {
    match sentence.char_indices().nth(SENTENCE) {
        None => sentence.to_owned(),
        Some((at, _)) => format!("{}…", sentence[..at].trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_made_of_the_notes_own_sentences() {
        let note = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let text = summary(&[
            note(
                "/a.md",
                "---\nx: y\n---\n# Bees\n\nIt was warm in May. What then? Hives hold honey, and bees\nmake honey.",
            ),
            note("/b.md", "- [ ] one\n- [x] two\n- [ ] three"),
            note("/c.md", ""),
        ]);
        assert_eq!(
            text,
            "- **Bees** (`/a.md`): Hives hold honey, and bees make honey.\n\
             - **b.md** (`/b.md`): 2 open items\n\
             - **c.md** (`/c.md`): empty\n"
        );
    }
}
