//! What a person wants from the demo model, told from the words they used. The earliest phrase decides, so that
//! "remember to tidy the shed" is about remembering.

use super::tidy::Extent;

/// The things the demo model understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Intent {
    /// Put the notes in order.
    Tidy(Extent),
    /// Say what the notes say.
    Summarise(Keep),
    /// Find something in them.
    Search(String),
    /// Name the files.
    Files,
    /// Say what is in one of them.
    Read(String),
    /// Make a new one about something.
    Create(String),
    /// Keep a fact.
    Remember(String),
    /// Say what was kept.
    Recall,
    /// Explain itself.
    Help,
    /// Be polite.
    Greet,
    /// Be polite at the end.
    Thanks,
    /// None of these.
    Other,
}

/// What to do with a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Only say it.
    Say,
    /// Write it into a note as well.
    Save,
}

#[derive(Clone, Copy)]
enum Kind {
    Tidy,
    Summarise,
    Save,
    Search,
    Files,
    Read,
    Create,
    Remember,
    Recall,
    Help,
}

const PHRASES: &[(&str, Kind)] = &[
    ("tidy", Kind::Tidy),
    ("clean up", Kind::Tidy),
    ("spelling", Kind::Tidy),
    ("fix", Kind::Tidy),
    ("correct", Kind::Tidy),
    ("summar", Kind::Summarise),
    ("sum up", Kind::Summarise),
    ("save", Kind::Save),
    ("search", Kind::Search),
    ("find", Kind::Search),
    ("look for", Kind::Search),
    ("look up", Kind::Search),
    ("what files", Kind::Files),
    ("which files", Kind::Files),
    ("what notes", Kind::Files),
    ("which notes", Kind::Files),
    ("list", Kind::Files),
    ("files are here", Kind::Files),
    ("what is here", Kind::Files),
    ("what's here", Kind::Files),
    ("what is in here", Kind::Files),
    ("what's in here", Kind::Files),
    ("read", Kind::Read),
    ("open", Kind::Read),
    ("show me", Kind::Read),
    ("create", Kind::Create),
    ("new note", Kind::Create),
    ("make a note", Kind::Create),
    ("write a note", Kind::Create),
    ("add a note", Kind::Create),
    ("remember", Kind::Remember),
    ("what do you remember", Kind::Recall),
    ("do you remember", Kind::Recall),
    ("what did i tell you", Kind::Recall),
    ("what do you know", Kind::Recall),
    ("what can you do", Kind::Help),
    ("who are you", Kind::Help),
    ("what are you", Kind::Help),
    ("help", Kind::Help),
];

/// Words between a phrase and what it is about.
const FILLERS: &[&str] = &[
    "a", "an", "the", "that", "this", "me", "my", "our", "all", "for", "about", "on", "note", "file", "notes", "files",
    "new", "please", "called", "named", "in", "up", "mentions", "of",
];

impl Intent {
    /// Reads what a person said, after what the model had said before.
    pub(super) fn of(said: &str, before: &str) -> Self {
        let lower = said.to_ascii_lowercase();
        let Some((end, kind)) = earliest(&lower) else {
            return Self::polite(&lower, before);
        };
        let rest = &said[end..];
        match kind {
            Kind::Tidy => Self::Tidy(extent(&lower)),
            Kind::Summarise if has_word(&lower, &["save", "write", "store", "keep"]) => Self::Summarise(Keep::Save),
            Kind::Summarise => Self::Summarise(Keep::Say),
            Kind::Save => Self::Summarise(Keep::Save),
            Kind::Search => Self::Search(topic(rest)),
            Kind::Files => Self::Files,
            Kind::Read if topic(rest).is_empty() => Self::Files,
            Kind::Read => Self::Read(topic(rest)),
            Kind::Create => Self::Create(topic(rest)),
            Kind::Remember => Self::Remember(fact(rest)),
            Kind::Recall => Self::Recall,
            Kind::Help => Self::Help,
        }
    }

    fn polite(lower: &str, before: &str) -> Self {
        if has_word(lower, &["yes", "ok", "okay", "sure", "do"]) && before.contains("save the summary") {
            Self::Summarise(Keep::Save)
        } else if has_word(lower, &["thanks", "thank"]) {
            Self::Thanks
        } else if has_word(lower, &["hi", "hello", "hey", "morning", "evening", "greetings"]) || lower.trim().is_empty()
        {
            Self::Greet
        } else {
            Self::Other
        }
    }
}

/// Where the earliest phrase ends, and its kind; of two that begin together the longer.
fn earliest(lower: &str) -> Option<(usize, Kind)> {
    let starts = |at: usize| !lower[..at].ends_with(|letter: char| letter.is_alphanumeric());
    let found = PHRASES.iter().filter_map(|(phrase, kind)| {
        let at = lower.match_indices(phrase).map(|(at, _)| at).find(|at| starts(*at))?;
        Some((at, phrase.len(), *kind))
    });
    let (at, len, kind) = found.min_by_key(|(at, len, _)| (*at, std::cmp::Reverse(*len)))?;
    // The phrase may be the beginning of a word (`summar`ise), whose end is no topic.
    let tail = lower[at + len..].find(|letter: char| !letter.is_alphanumeric()).unwrap_or(lower.len() - at - len);
    Some((at + len + tail, kind))
}

fn has_word(lower: &str, words: &[&str]) -> bool {
    lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| words.contains(&word))
}

fn extent(lower: &str) -> Extent {
    let only = has_word(lower, &["only", "just"]) || !lower.contains("tidy") && !lower.contains("clean up");
    if only && has_word(lower, &["spelling", "typos", "typo", "slips"]) {
        Extent::Spelling
    } else if has_word(lower, &["keep", "leave"]) && lower.contains("done") {
        Extent::KeepDone
    } else {
        Extent::All
    }
}

/// What a phrase is about: without fillers before it and marks around it.
fn topic(rest: &str) -> String {
    let mut rest = bare(rest);
    loop {
        let (word, after) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        if word.is_empty() || !FILLERS.contains(&word.to_ascii_lowercase().as_str()) {
            return rest.to_owned();
        }
        rest = bare(after);
    }
}

fn fact(rest: &str) -> String {
    let rest = bare(rest);
    let stripped = ["that ", "to "].iter().find_map(|filler| rest.strip_prefix(filler));
    stripped.unwrap_or(rest).trim().to_owned()
}

fn bare(text: &str) -> &str {
    let mark =
        |letter: char| matches!(letter, '"' | '\'' | '`' | ':' | ',' | '?' | '!' | '“' | '”') || letter.is_whitespace();
    text.trim_matches(mark).trim_end_matches(['.', '…']).trim_end_matches(mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_phrase_decides() {
        let text = |text: &str| text.to_owned();
        for (said, intent) in [
            ("tidy the welcome notes", Intent::Tidy(Extent::All)),
            ("Please tidy up, but keep the done items", Intent::Tidy(Extent::KeepDone)),
            ("only fix the spelling", Intent::Tidy(Extent::Spelling)),
            ("Fix the typos in ideas.md", Intent::Tidy(Extent::Spelling)),
            ("Summarize my notes", Intent::Summarise(Keep::Say)),
            ("save the summary", Intent::Summarise(Keep::Save)),
            ("summarise everything and save it", Intent::Summarise(Keep::Save)),
            ("search for \"long table\"", Intent::Search(text("long table"))),
            ("Can you find lemon?", Intent::Search(text("lemon"))),
            ("what files are here?", Intent::Files),
            ("what is in here?", Intent::Files),
            ("show me the recipe.md", Intent::Read(text("recipe.md"))),
            ("create a note about winter tyres.", Intent::Create(text("winter tyres"))),
            ("make a note called Birds", Intent::Create(text("Birds"))),
            ("remember to tidy the shed", Intent::Remember(text("tidy the shed"))),
            ("Remember that tea is green!", Intent::Remember(text("tea is green"))),
            ("What do you remember?", Intent::Recall),
            ("what can you do", Intent::Help),
            ("Hello there", Intent::Greet),
            ("thank you", Intent::Thanks),
            ("yes", Intent::Other),
            ("prove the Riemann hypothesis", Intent::Other),
        ] {
            assert_eq!(Intent::of(said, ""), intent, "{said}");
        }
        assert_eq!(Intent::of("yes please", "say: save the summary"), Intent::Summarise(Keep::Save));
    }
}
