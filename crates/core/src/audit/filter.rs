//! The words of an audit search: `agent:guide tool:write_file verdict:deny path:/drafts/** since:7d "some text"`. Pure: what
//! "now" is comes from the caller, and names are looked up by it.

use std::time::Duration;

use crate::audit::Deed;
use crate::guard::pattern::Pattern;
use crate::run::event::Event;
use crate::time::Time;

/// What an audit search asks for. Every word narrows it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// The agent's id or short name.
    pub agent: Option<String>,
    /// The run's id.
    pub run: Option<String>,
    /// Who did it: a name or an id.
    pub by: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// `allow`, `ask` or `deny`.
    pub verdict: Option<String>,
    /// `ok` or `error`.
    pub failed: Option<bool>,
    /// Kinds of entries.
    pub kinds: Vec<String>,
    /// The path that a call touches.
    pub path: Option<PathWanted>,
    /// Not before this moment.
    pub since: Option<Time>,
    /// Before this moment.
    pub until: Option<Time>,
    /// Texts that must all occur, whatever their case.
    pub texts: Vec<String>,
}

/// A pattern over paths, with the meaning it has in a scope.
#[derive(Debug, Clone)]
pub struct PathWanted {
    text: String,
    pattern: Pattern,
}

impl PartialEq for PathWanted {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl PathWanted {
    /// Whether a path is meant.
    #[must_use]
    pub fn admits(&self, path: &str) -> bool {
        crate::guard::path::NotePath::parse(path).is_ok_and(|path| self.pattern.grants(&path))
    }
}

/// The names that stand before a colon.
const NAMES: [&str; 12] =
    ["agent", "run", "by", "tool", "verdict", "decision", "outcome", "kind", "path", "since", "until", "text"];

/// Reads a search. Words are separated by blanks; a word in double quotes holds blanks, and `\"` and `\\` inside it.
///
/// # Errors
/// Says which word cannot be used, and which could.
pub fn parse(text: &str, now: Time) -> Result<Wanted, String> {
    let mut wanted = Wanted::default();
    for Word { name, value } in words(text)? {
        match name {
            Some(name) => wanted.narrow(&name, value, now)?,
            None => wanted.texts.push(value.to_lowercase()),
        }
    }
    Ok(wanted)
}

/// One word of a search.
struct Word {
    name: Option<String>,
    value: String,
}

fn words(text: &str) -> Result<Vec<Word>, String> {
    let mut words = Vec::new();
    let mut letters = text.chars().peekable();
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        if letters.peek().is_none() {
            return Ok(words);
        }
        let (mut name, mut value, mut quoted, mut bare) = (None, String::new(), false, true);
        while let Some(letter) = letters.next() {
            match letter {
                '"' if quoted => quoted = false,
                '"' => {
                    quoted = true;
                    bare = false;
                }
                '\\' if quoted => value.extend(letters.next()),
                letter if letter.is_whitespace() && !quoted => break,
                ':' if bare && name.is_none() => name = Some(std::mem::take(&mut value)),
                letter => value.push(letter),
            }
        }
        if quoted {
            return Err("a double quote is not closed".to_owned());
        }
        words.push(Word { name, value });
    }
}

impl Wanted {
    /// Narrows the search by one name and what it has to be, which may hold anything.
    ///
    /// # Errors
    /// Says why that cannot be searched for.
    pub fn narrow(&mut self, name: &str, value: String, now: Time) -> Result<(), String> {
        if value.is_empty() {
            return Err(format!("`{name}:` says nothing"));
        }
        match name {
            "agent" => once(&mut self.agent, name, value),
            "run" => once(&mut self.run, name, value),
            "by" => once(&mut self.by, name, value),
            "tool" => once(&mut self.tool, name, value),
            "verdict" | "decision" => once(&mut self.verdict, name, verdict(&value)?),
            "outcome" => once(&mut self.failed, name, outcome(&value)?),
            "kind" => {
                self.kinds.push(kind(&value)?);
                Ok(())
            }
            "path" => once(&mut self.path, name, path(value)?),
            "since" => once(&mut self.since, name, moment(&value, now)?),
            "until" => once(&mut self.until, name, moment(&value, now)?),
            "text" => {
                self.texts.push(value.to_lowercase());
                Ok(())
            }
            _ => Err(format!("there is no `{name}:`; there are {}", NAMES.join(":, ") + ":")),
        }
    }
}

fn once<T>(place: &mut Option<T>, name: &str, value: T) -> Result<(), String> {
    if place.replace(value).is_some() { Err(format!("`{name}:` is said twice")) } else { Ok(()) }
}

fn verdict(word: &str) -> Result<String, String> {
    match word {
        "allow" | "allowed" => Ok("allow".to_owned()),
        "ask" | "asked" => Ok("ask".to_owned()),
        "deny" | "denied" => Ok("deny".to_owned()),
        _ => Err(format!("`verdict:{word}` is none of allow, ask, deny")),
    }
}

fn outcome(word: &str) -> Result<bool, String> {
    match word {
        "ok" => Ok(false),
        "error" => Ok(true),
        _ => Err(format!("`outcome:{word}` is neither ok nor error")),
    }
}

fn kind(word: &str) -> Result<String, String> {
    let known = Event::KINDS.iter().copied().chain(Deed::ALL.iter().map(|deed| deed.kind())).chain(["day_closed"]);
    match known.into_iter().find(|kind| *kind == word) {
        Some(kind) => Ok(kind.to_owned()),
        None => Err(format!("there is no `kind:{word}`")),
    }
}

fn path(text: String) -> Result<PathWanted, String> {
    match Pattern::parse(&text) {
        Ok(pattern) => Ok(PathWanted { text, pattern }),
        Err(bad) => Err(format!("`path:{text}` is not a pattern: {bad}")),
    }
}

/// A moment: `7d`, `36h`, `90m` ago, a day (`2026-11-15`), or a time of RFC 3339.
///
/// # Errors
/// When it is none of them.
pub fn moment(text: &str, now: Time) -> Result<Time, String> {
    let ago = |number: &str, unit: u64| {
        let seconds = number.parse::<u64>().ok()?.checked_mul(unit)?;
        let millis = i64::try_from(Duration::from_secs(seconds).as_millis()).ok()?;
        now.millis().checked_sub(millis).map(Time::from_millis)
    };
    let found = match text.char_indices().next_back() {
        Some((at, 'd')) => ago(&text[..at], 24 * 60 * 60),
        Some((at, 'h')) => ago(&text[..at], 60 * 60),
        Some((at, 'm')) => ago(&text[..at], 60),
        Some(_) if text.len() == 10 => format!("{text}T00:00:00Z").parse().ok(),
        Some(_) => text.parse().ok(),
        None => None,
    };
    found.ok_or_else(|| format!("`{text}` is not a moment; use 7d, 36h, 90m, 2026-11-15 or 2026-11-15T08:00:00Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_763_251_200_000);

    fn read(text: &str) -> Wanted {
        parse(text, NOW).unwrap()
    }

    #[test]
    fn every_word_narrows_the_search() {
        let wanted = read(
            r#"agent:guide tool:write_file verdict:denied path:/drafts/** since:7d kind:call_ended "Two words" one"#,
        );
        assert_eq!((wanted.agent.as_deref(), wanted.tool.as_deref()), (Some("guide"), Some("write_file")));
        assert_eq!(
            (wanted.verdict.as_deref(), wanted.kinds.as_slice()),
            (Some("deny"), &["call_ended".to_owned()][..])
        );
        assert_eq!(wanted.since, Some(Time::from_millis(NOW.millis() - 7 * 24 * 60 * 60 * 1000)));
        assert_eq!(wanted.texts, ["two words", "one"]);
        let path = wanted.path.unwrap();
        assert!(path.admits("/drafts/a/b.md") && !path.admits("/draft/a.md") && !path.admits("/notes/a.md"));
    }

    #[test]
    fn a_quoted_word_is_a_text_whatever_it_holds() {
        assert_eq!(read(r#""tool:x" text:"a \"b\" \\c""#).texts, ["tool:x", r#"a "b" \c"#]);
        assert_eq!(read(r#"run:"run_1""#).run.as_deref(), Some("run_1"));
        assert_eq!(read("  "), Wanted::default());
        assert_eq!(read("until:2025-11-15T08:00:00Z").until, Some("2025-11-15T08:00:00Z".parse().unwrap()));
        assert_eq!(read("since:2025-11-16").since, Some(NOW));
    }

    #[test]
    fn what_cannot_be_meant_is_refused_and_named() {
        let cases = [
            ("colour:red", "there is no `colour:`"),
            ("tool:", "says nothing"),
            ("tool:a tool:b", "said twice"),
            ("verdict:maybe", "none of allow"),
            ("outcome:bad", "neither ok nor error"),
            ("kind:nothing", "there is no `kind:nothing`"),
            ("since:soon", "not a moment"),
            ("since:99999999999999999999d", "not a moment"),
            ("path:/a/../b", "not a pattern"),
            ("\"open", "not closed"),
        ];
        for (text, why) in cases {
            let refused = parse(text, NOW).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
