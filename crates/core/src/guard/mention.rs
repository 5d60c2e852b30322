//! Mentions (M1-M4): which handles a text names, and which agents that starts. Quoted and quoted-out text names nobody.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use super::markdown;

/// Characters of a handle (M1).
pub const HANDLE_CHARS: usize = 39;
/// Agents that may have led to one another before a chain stops starting more (M4).
pub const MAX_HOPS: usize = 3;
/// Agents that one text starts (M4).
pub const TRIGGERS: usize = 5;

/// Letters of scripts that are written without blanks, so that they end a word as a blank would (M2).
static UNSPACED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Hangul}]$").ok());

/// Who wrote a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthorKind {
    /// A member.
    Human,
    /// An agent.
    Agent,
    /// Someone outside: mail, a web hook.
    External,
    /// The server itself.
    System,
}

/// A text that may start agents.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// Who wrote it.
    pub author: AuthorKind,
    /// The author's own handle, if there is one.
    pub author_handle: Option<&'a str>,
    /// The text.
    pub text: &'a str,
    /// What it was before an edit.
    pub before: Option<&'a str>,
    /// The agents whose texts led here, oldest first.
    pub chain: &'a [String],
    /// How long such a chain may get; [`MAX_HOPS`] unless a workspace says less.
    pub max_hops: usize,
}

/// A handle that can be mentioned.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The handle.
    pub handle: &'a str,
    /// Whether it may be started.
    pub active: bool,
}

/// The known handles a text mentions, as they are known, once each, in order.
#[must_use]
pub fn mentions<'a>(text: &str, known: &[Known<'a>]) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    let named = handles(text).into_iter().filter_map(|handle| find(handle, known));
    named.map(|known| known.handle).filter(|handle| seen.insert(*handle)).collect()
}

/// The handles that a text starts, in order (M4).
#[must_use]
pub fn triggers<'a>(post: &Post<'_>, known: &[Known<'a>]) -> Vec<&'a str> {
    let may_start = match post.author {
        AuthorKind::Human | AuthorKind::Agent => true,
        AuthorKind::External | AuthorKind::System => false,
    };
    if !may_start || post.chain.len() >= post.max_hops {
        return Vec::new();
    }
    let before = post.before.map(|text| mentions(text, known)).unwrap_or_default();
    let is = |handle: &str, other: &str| handle.eq_ignore_ascii_case(other);
    let starts = |handle: &&str| {
        find(handle, known).is_some_and(|known| known.active)
            && !post.author_handle.is_some_and(|author| is(author, handle))
            && !post.chain.iter().any(|earlier| is(earlier, handle))
            && !before.contains(handle)
    };
    mentions(post.text, known).into_iter().filter(starts).take(TRIGGERS).collect()
}

fn find<'k, 'a>(handle: &str, known: &'k [Known<'a>]) -> Option<&'k Known<'a>> {
    known.iter().find(|known| known.handle.eq_ignore_ascii_case(handle))
}

/// Every handle the text addresses, known or not.
fn handles(text: &str) -> Vec<&str> {
    let live = markdown::live(text);
    let at_signs = text.match_indices('@').filter(|(at, _)| live.get(*at) == Some(&true));
    at_signs.filter_map(|(at, _)| handle_at(text, at)).collect()
}

/// The handle behind the `@` at this place, if both of its borders are borders (M1, M2).
fn handle_at(text: &str, at: usize) -> Option<&str> {
    let (before, after) = (text.get(..at)?, text.get(at + 1..)?);
    if before.chars().next_back().is_some_and(|c| is_word(c) || "_.@/\\-+%=&#$".contains(c)) {
        return None;
    }
    let run = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(after.len());
    let (run, rest) = after.split_at(run);
    let mut rest = rest.chars();
    let ends = match rest.next() {
        Some('@') => false,
        Some('.' | '/') => !rest.next().is_some_and(|c| matches!(group(c), Some(Group::Letter | Group::Digit))),
        Some(c) => !is_word(c),
        None => true,
    };
    let handle = run.trim_end_matches(['-', '_']);
    let valid = handle.starts_with(|c: char| c.is_ascii_alphanumeric()) && handle.len() <= HANDLE_CHARS;
    (ends && valid).then_some(handle)
}

/// What a word is made of.
enum Group {
    Letter,
    Digit,
    Mark,
    Format,
}

fn is_word(c: char) -> bool {
    group(c).is_some()
}

fn group(c: char) -> Option<Group> {
    if c.is_ascii() {
        return match c {
            'a'..='z' | 'A'..='Z' => Some(Group::Letter),
            '0'..='9' => Some(Group::Digit),
            _ => None,
        };
    }
    match c.general_category_group() {
        GeneralCategoryGroup::Letter if is_unspaced(c) => None,
        GeneralCategoryGroup::Letter => Some(Group::Letter),
        GeneralCategoryGroup::Number => Some(Group::Digit),
        GeneralCategoryGroup::Mark => Some(Group::Mark),
        GeneralCategoryGroup::Other if c.general_category() == GeneralCategory::Format => Some(Group::Format),
        GeneralCategoryGroup::Other
        | GeneralCategoryGroup::Punctuation
        | GeneralCategoryGroup::Symbol
        | GeneralCategoryGroup::Separator => None,
    }
}

fn is_unspaced(letter: char) -> bool {
    UNSPACED.as_ref().is_some_and(|script| script.is_match(letter.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWN: [Known<'static>; 8] = {
        const fn known(handle: &'static str) -> Known<'static> {
            Known { handle, active: true }
        }
        [
            known("scribe"),
            known("bot"),
            known("bot-2"),
            known("ops_team"),
            known("a"),
            known("ada"),
            known("Mixed"),
            Known { handle: "asleep", active: false },
        ]
    };

    fn named(text: &str) -> Vec<&'static str> {
        mentions(text, &KNOWN)
    }

    #[track_caller]
    fn each(texts: &[&str], expected: &[&str]) {
        for text in texts {
            assert_eq!(named(text), expected, "{text:?}");
        }
    }

    #[test]
    fn m1_the_longest_run_is_the_handle() {
        each(&["@bot please", "please @bot", "@BOT", "@Bot-", "@bot__", "@bot-_-", "hey\n@bot\n"], &["bot"]);
        each(&["@bot-2", "@BOT-2-"], &["bot-2"]);
        each(&["@bot-3", "@botx", "@bots", "@bot_2", "@_bot", "@-bot", "@", "@ bot", "@unknown"], &[]);
        each(&["@mixed"], &["Mixed"]);
        each(&["@bot @bot @scribe @BOT"], &["bot", "scribe"]);
    }

    #[test]
    fn m1_a_handle_has_at_most_39_characters() {
        let long = "x".repeat(39);
        let longer = "x".repeat(40);
        let known = [Known { handle: &long, active: true }, Known { handle: &longer, active: true }];
        assert_eq!(mentions(&format!("@{long} @{longer}"), &known), [long.as_str()]);
        assert_eq!(mentions(&format!("@{long}--"), &known), [long.as_str()]);
    }

    #[test]
    fn m2_the_sign_stands_at_a_border() {
        each(
            &[
                "x@bot", "1@bot", "é@bot", "_@bot", ".@bot", "@@bot", "/@bot", "\\@bot", "-@bot", "+@bot", "%@bot",
                "=@bot",
            ],
            &[],
        );
        each(&["&@bot", "#@bot", "$@bot", "e\u{301}@bot", "\u{200D}@bot", "\u{AD}@bot", "٣@bot", "ж@bot"], &[]);
        each(
            &["(@bot)", "\"@bot\"", "*@bot*", "**@bot**", ",@bot,", ":@bot:", "!@bot!", "~@bot~", "|@bot|", "['@bot']"],
            &["bot"],
        );
        each(&["你好@bot你好", "カー@botです", "안녕@bot안녕", "、@bot。", "👋@bot👋"], &["bot"]);
    }

    #[test]
    fn m2_the_handle_ends_at_a_border() {
        each(
            &["@bot@x", "@boté", "@bot\u{301}", "@bot\u{200B}", "@bot.com", "@bot/repo", "@bot.1", "@bot/é", "@bot-é"],
            &[],
        );
        each(
            &["@bot.", "@bot/", "@bot. Then", "@bot...", "@bot./x", "@bot's", "@bot:x", "@bot,x", "@bot.你"],
            &["bot"],
        );
    }

    #[test]
    fn m3_code_names_nobody() {
        each(&["```\n@bot\n```", "~~~ x\n@bot\n~~~", "```\n@bot", "````\n```\n@bot\n````", "  ```\n@bot\n  ```"], &[]);
        each(&["```\nx\n```\n@bot", "~~~\n```\n~~~\n@bot", "```\nx\n`````\n@bot", "```a`b\n@bot"], &["bot"]);
        each(&["```\n``` x\n@bot\n```", "```\n~~~\n@bot", "```x\r\n@bot\r\n```"], &[]);
        each(&["`@bot`", "``@bot``", "`` ` @bot ``", "`a\n@bot`", "``` @bot ```"], &[]);
        each(
            &["`@bot", "`a\n\n@bot`", "`@bot``", "\\`@bot\\`", "`a`@bot`b`", "`a\n \t\n@bot`", "`\r\n\r\n@bot`"],
            &["bot"],
        );
        each(&["    @bot", "\t@bot", "-     @bot"], &["bot"]);
    }

    #[test]
    fn m3_quotes_comments_and_addresses_name_nobody() {
        each(&["> @bot", ">@bot", "  > @bot", "a\n> @bot", ">> @bot"], &[]);
        each(&["> x\n@bot", "a > @bot", "> ```\n@bot"], &["bot"]);
        each(&["<!-- @bot -->", "a <!--\n\n@bot\n--> b", "<!-- @bot", "<!--@bot-->"], &[]);
        each(
            &["<!-- x -->@bot", "<!--\n```\n-->\n@bot", "```\n<!--\n```\n@bot", "a <!-- @bot", "`<!--` @bot -->"],
            &["bot"],
        );
        each(
            &[
                "https://x.org/(@bot)",
                "see http://x.org/,@bot",
                "ssh://(@bot",
                "mailto:(@bot",
                "MAILTO:'@bot'",
                "www.x.org/(@bot)",
            ],
            &[],
        );
        each(
            &["https://x.org/ @bot", "(https://x.org)@bot", "<https://x.org>@bot", "http:@bot", "a://\n@bot"],
            &["bot"],
        );
        each(&["bob@bot.org", "mail bob@bot"], &[]);
    }

    fn post(text: &str) -> Post<'_> {
        Post {
            author: AuthorKind::Human,
            author_handle: Some("ada"),
            text,
            before: None,
            chain: &[],
            max_hops: MAX_HOPS,
        }
    }

    #[test]
    fn m4_known_active_others_are_started() {
        assert_eq!(triggers(&post("@bot @asleep @ada @nobody @scribe"), &KNOWN), ["bot", "scribe"]);
        assert_eq!(triggers(&Post { author_handle: Some("BOT"), ..post("@bot") }, &KNOWN), [""; 0]);
        assert_eq!(triggers(&Post { author_handle: None, ..post("@bot") }, &KNOWN), ["bot"]);
    }

    #[test]
    fn m4_external_and_system_authors_start_nobody() {
        for author in [AuthorKind::External, AuthorKind::System] {
            assert_eq!(triggers(&Post { author, ..post("@bot") }, &KNOWN), [""; 0]);
        }
        assert_eq!(triggers(&Post { author: AuthorKind::Agent, ..post("@bot") }, &KNOWN), ["bot"]);
    }

    #[test]
    fn m4_a_chain_neither_turns_back_nor_grows_for_ever() {
        let chain = |handles: &[&str]| handles.iter().map(|handle| (*handle).to_owned()).collect::<Vec<_>>();
        let started = |earlier: &[&str], max_hops| {
            triggers(&Post { chain: &chain(earlier), max_hops, ..post("@bot @scribe") }, &KNOWN)
        };
        assert_eq!(started(&["Bot"], 3), ["scribe"]);
        assert_eq!(started(&["x", "y"], 3), ["bot", "scribe"]);
        assert_eq!(started(&["x", "y", "z"], 3), [""; 0]);
        assert_eq!(started(&["x"], 1), [""; 0]);
    }

    #[test]
    fn m4_at_most_five_are_started() {
        let names: Vec<String> = (0..8).map(|n| format!("n{n}")).collect();
        let known: Vec<_> = names.iter().map(|handle| Known { handle, active: true }).collect();
        let text = names.iter().fold(String::new(), |text, name| format!("{text} @{name}"));
        assert_eq!(triggers(&post(&text), &known), ["n0", "n1", "n2", "n3", "n4"]);
        assert_eq!(mentions(&text, &known).len(), 8);
    }

    #[test]
    fn m4_an_edit_starts_only_who_was_not_there_before() {
        let edited = |before| triggers(&Post { before: Some(before), ..post("@bot @scribe") }, &KNOWN);
        assert_eq!(edited("@BOT"), ["scribe"]);
        assert_eq!(edited("`@bot`"), ["bot", "scribe"]);
        assert_eq!(edited("@scribe @bot"), [""; 0]);
    }

    #[test]
    fn hostile_texts_end_soon() {
        let runs: String = (1..700).map(|n| format!("{} ", "`".repeat(n))).collect();
        for text in [
            runs.as_str(),
            &"a <!-- ".repeat(100_000),
            &"a\n<!-- ".repeat(50_000),
            &"`<!--".repeat(50_000),
            &"@".repeat(200_000),
            &"[a](".repeat(50_000),
        ] {
            assert_eq!(named(text), [""; 0]);
        }
        assert_eq!(named(&"a://".repeat(100_000)), [""; 0]);
        assert_eq!(named(&"> \n```\n".repeat(50_000)), [""; 0]);
    }

    proptest! {
        #[test]
        fn mentions_are_known_once_each_and_stand_in_the_text(
            text in "(@bot|@a|[ab`~<>!@/:.\\n -]|```\\n|<!--|-->|\\PC){0,30}"
        ) {
            let found = named(&text);
            for (index, handle) in found.iter().enumerate() {
                prop_assert!(!found[..index].contains(handle));
                let written = format!("@{}", handle.to_ascii_lowercase());
                prop_assert!(text.to_ascii_lowercase().contains(&written));
            }
            prop_assert!(triggers(&post(&text), &KNOWN).iter().all(|handle| found.contains(handle)));
            prop_assert_eq!(named(&format!("```\n{}", text.replace(['`', '~'], ""))), [""; 0]);
        }
    }
}
