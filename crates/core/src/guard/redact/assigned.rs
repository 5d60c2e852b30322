//! Values assigned to names that promise a secret (S2): in configuration, code, JSON, YAML, queries, flags and markup.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::extent::{STOPS, begins_pair, is_entity, line_from, quoted_at, separates};
use super::header::{self, Header};
use super::name::{self, Promise};
use super::{Found, argument, below, value};

/// Bytes of a name that are looked at: its end says what it is.
const NAME_BYTES: usize = 100;
/// Blanks between a name, its sign and its value.
pub(super) const BLANKS: usize = 64;
/// Bytes of an unquoted word from which on it is a secret without being looked at further: no word of prose or code is as
/// long, and looking again and again at the same long word would not be linear.
pub(super) const LONG_WORD: usize = 512;
/// Bytes of a block that are looked at; one that begins as a secret is taken to its end.
const BLOCK_BYTES: usize = 16 << 10;
/// Items of a list that are looked at.
pub(super) const ITEMS: usize = 64;

/// Words behind a flag in a sentence about it.
const ABOUT_FLAGS: &str = "\
    flag option argument parameter and for with when must can file should then from instead";

/// What stands between a name and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// `=` right at the name and the value.
    Tight,
    /// `=` with blanks around it.
    Equals,
    /// `:`.
    Colon,
    /// A blank, behind the name of a flag.
    Flag,
    /// The border of two items of a list, behind the name of a flag.
    Item,
    /// The word `is`, in a sentence.
    Is,
    /// The end of an opening tag.
    Tag,
}

/// A name with a sign behind it.
struct Assignment<'a> {
    name: &'a str,
    start: usize,
    sign: Sign,
    /// Whether the name stood in quotes of its own, as in JSON.
    quoted_name: bool,
    /// Where the value begins.
    value: usize,
}

/// A value that may be a secret.
struct Value {
    range: Range<usize>,
    quoted: bool,
}

/// Secrets that follow words instead of signs: commands and statements.
static COMMANDS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"(?i)\bidentified\s{1,9}by\s{1,9}'([^'\n]{1,200})'",
        r"(?i)\bpassword\s{1,9}'([^'\n]{1,200})'",
        r"(?i)\blogin\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(\S{1,200})",
        r#"(?:^|\s)(?:-u|--user|--proxy-user)[ =]["']?[^\s:"']{1,100}:([^\s"'/][^\s"']{0,200})"#,
        r#"\bsshpass\s{1,9}-p\s{0,9}["']?([^\s"']{1,200})"#,
    ]
    .into_iter()
    .filter_map(|command| Regex::new(command).ok())
    .collect()
});

pub(super) fn find(text: &str, found: &mut Vec<Found>) {
    let mut at = 0;
    let mut previous: Option<Range<usize>> = None;
    let mut headers = header::Reader::default();
    while let Some(skip) = text.get(at..).and_then(|rest| rest.find(|c: char| c.is_ascii_alphanumeric() || c == '_')) {
        let start = at + skip;
        let rest = text.get(start..).unwrap_or_default();
        let run =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.')).unwrap_or(rest.len());
        let name = rest.get(..run).unwrap_or_default().trim_end_matches(['-', '.']);
        let end = start + name.len();
        at = start + run;
        if let Some(assignment) = assignment(text, name, start) {
            let before =
                previous.clone().filter(|word| text.get(word.end..start) == Some(" ")).and_then(|word| text.get(word));
            let header = if headers.reads(start) { header_contents(text, &assignment) } else { None };
            let behind = match header {
                Some((header, contents)) => headers.read(text, header, contents, found),
                None => judge(text, &assignment, before, found),
            };
            at = at.max(behind.unwrap_or(at));
        } else if name.eq_ignore_ascii_case("bearer") {
            header::bearer(text, end, found);
        }
        previous = Some(start..end);
    }
    for command in COMMANDS.iter() {
        let secrets = command.captures_iter(text).filter_map(|secret| secret.get(1));
        let secrets = secrets.filter(|secret| !value::is_placeholder(secret.as_str()));
        found.extend(secrets.map(|secret| Found { range: secret.range(), kind: "password" }));
    }
}

/// Looks at what is assigned. Returns where to go on if the value was a secret.
fn judge(text: &str, assignment: &Assignment<'_>, before: Option<&str>, found: &mut Vec<Found>) -> Option<usize> {
    let tail = assignment.name.len().saturating_sub(NAME_BYTES);
    let name = assignment.name.get(tail..)?;
    let in_query = text.get(..assignment.start)?.ends_with(['?', '&', ';']) && assignment.sign == Sign::Tight;
    let promise = name::promise(name, before, in_query)?;
    let annotated = if assignment.sign == Sign::Colon { behind_type(text, assignment.value) } else { None };
    let (sign, at) = annotated.map_or((assignment.sign, assignment.value), |at| (Sign::Equals, at));
    let taken = match sign {
        Sign::Colon | Sign::Equals | Sign::Tight => in_block(text, assignment, sign, promise, at)
            .or_else(|| in_list(text, at, promise, found))
            .or_else(|| on_next_line(text, assignment, sign, promise, at)),
        Sign::Flag | Sign::Item | Sign::Is | Sign::Tag => None,
    };
    let range = taken.or_else(|| on_line(text, assignment, sign, promise, at))?;
    let behind = range.end;
    found.push(Found { range, kind: promise.kind() });
    Some(behind)
}

/// A secret that stands behind its name.
fn on_line(text: &str, assignment: &Assignment<'_>, sign: Sign, promise: Promise, at: usize) -> Option<Range<usize>> {
    let value = match value_at(text, at, assignment, sign)? {
        // Words in a row go on to the end of the line.
        value if promise == Promise::Phrase && !value.quoted => {
            Value { range: line_from(text, value.range.start), quoted: true }
        }
        value => value,
    };
    if is_secret(text, assignment, sign, promise, &value) {
        let end = if value.quoted { value.range.end } else { tail(text, assignment, sign, &value.range, usize::MAX) };
        return Some(value.range.start..end);
    }
    // What is too short to be a secret may be the beginning of one.
    let head = text.get(value.range.clone()).filter(|head| !value.quoted && head.chars().count() < 4)?;
    let end = tail(text, assignment, sign, &value.range, LONG_WORD);
    let whole = Value { range: value.range.start..end, quoted: false };
    let drawn = !value::is_placeholder(head) && value::looks_drawn(text.get(whole.range.clone())?);
    (drawn && is_secret(text, assignment, sign, promise, &whole)).then_some(whole.range)
}

fn is_secret(text: &str, assignment: &Assignment<'_>, sign: Sign, promise: Promise, value: &Value) -> bool {
    let Some(secret) = text.get(value.range.clone()) else { return false };
    if sign == Sign::Item && !argument::is_value(text, &value.range) {
        return false;
    }
    (!value.quoted && secret.len() >= LONG_WORD)
        || (is_value(promise, secret, value.quoted)
            && (value.quoted || is_meant(text, assignment, sign, &value.range, promise)))
}

/// Whether a text can be the secret that a name promises.
pub(super) fn is_value(promise: Promise, secret: &str, quoted: bool) -> bool {
    !value::is_placeholder(secret) && !secret.starts_with("-----BEGIN") && value::fits(promise, secret, quoted)
}

/// Whether what stands under this name is a secret.
pub(super) fn promises(name: &str) -> bool {
    name::promise(name, None, false).is_some()
}

/// What the whole of a text is, if it is a secret where it stands under this name.
pub(super) fn kind_under(name: &str, text: &str) -> Option<&'static str> {
    let promise = name::promise(name, None, false)?;
    is_value(promise, text, true).then(|| promise.kind())
}

/// A secret in a block of YAML.
fn in_block(text: &str, assignment: &Assignment<'_>, sign: Sign, promise: Promise, at: usize) -> Option<Range<usize>> {
    let block = |most| below::block(text, assignment.start, at, most).filter(|_| sign == Sign::Colon);
    let secret = is_value(promise, text.get(block(BLOCK_BYTES)?)?, true);
    if secret { block(usize::MAX) } else { None }
}

/// A secret on the line below its name: in quotes, or as the one word there.
fn on_next_line(
    text: &str,
    assignment: &Assignment<'_>,
    sign: Sign,
    promise: Promise,
    at: usize,
) -> Option<Range<usize>> {
    let at = below::next_line(text, assignment.start, at, assignment.quoted_name)?;
    let value = value_at(text, at, assignment, sign)?;
    let secret = text.get(value.range.clone())?;
    let behind = text.get(value.range.end..)?.trim_start_matches(['"', '\'', '`']);
    let word = sign == Sign::Colon && (promise == Promise::Password || value::looks_drawn(secret));
    let meant = !skip_blanks(behind).starts_with(':') && (value.quoted || word);
    (meant && is_secret(text, assignment, sign, promise, &value)).then_some(value.range)
}

/// The secrets in a list of quoted texts. All but the last one are put to what was found.
fn in_list(text: &str, at: usize, promise: Promise, found: &mut Vec<Found>) -> Option<Range<usize>> {
    let mut rest = text.get(at..)?.strip_prefix('[')?;
    let mut last: Option<Range<usize>> = None;
    for _ in 0..ITEMS {
        let at = text.len() - rest.trim_start().len();
        let Some(item) = quoted_at(text, at, true).flatten() else { break };
        let secret = text.get(item.clone())?;
        // Lists hold names of secrets, too.
        let meant = promise == Promise::Password || value::looks_drawn(secret);
        if meant && !value::is_code(secret) && is_value(promise, secret, true) {
            found.extend(last.replace(item.clone()).map(|range| Found { range, kind: promise.kind() }));
        }
        let behind = text.get(item.end..)?.trim_start_matches(['\\', '"', '\'', '`']);
        let Some(next) = behind.trim_start().strip_prefix(',') else { break };
        rest = next;
    }
    last
}

/// The header a name stands for, with its content; in a list there are several.
fn header_contents(text: &str, assignment: &Assignment<'_>) -> Option<(Header, Vec<Range<usize>>)> {
    let header = Header::of(assignment.name)?;
    let opened = quote_before(text, assignment.start).filter(|_| !assignment.quoted_name);
    let mut contents = header::contents(text, assignment.value, opened)?;
    // In JSON what stands there without quotes is no text, and ends where the next field begins.
    if let [content] = contents.as_mut_slice()
        && assignment.quoted_name
        && content.start == assignment.value
    {
        let length = text.get(content.clone())?.find([',', '}', ']', '"']);
        content.end = length.map_or(content.end, |length| content.start + length);
    }
    Some((header, contents))
}

/// The sign behind a name, if there is one that assigns.
fn assignment<'a>(text: &str, name: &'a str, start: usize) -> Option<Assignment<'a>> {
    let end = start + name.len();
    let rest = text.get(end..)?;
    let quoted = rest.trim_start_matches('\\').strip_prefix(['"', '\'', '`']);
    let quoted_name = quoted.is_some() && quote_before(text, start).is_some();
    let mut rest = if quoted_name { quoted? } else { rest };
    if quoted_name {
        rest = rest.strip_prefix(']').unwrap_or(rest);
    }
    rest =
        rest.strip_prefix("?:").or_else(|| rest.strip_prefix("!:")).map_or(rest, |_| rest.get(1..).unwrap_or_default());
    let make = |sign, value: &str| Some(Assignment { name, start, sign, quoted_name, value: text.len() - value.len() });
    let spaced = skip_blanks(rest);
    if let Some(value) = spaced.strip_prefix('=').map(|value| value.trim_start_matches(['=', '>', '~'])) {
        let tight = spaced.len() == rest.len() && !value.starts_with([' ', '\t']);
        return make(if tight { Sign::Tight } else { Sign::Equals }, skip_blanks(value));
    }
    if let Some(value) = spaced.strip_prefix(":=") {
        return make(Sign::Equals, skip_blanks(value));
    }
    if let Some(value) = spaced.strip_prefix(':').filter(|value| !value.starts_with([':', '/'])) {
        return make(Sign::Colon, skip_blanks(value));
    }
    if let Some(value) = spaced.strip_prefix("is ").filter(|_| spaced.len() < rest.len()) {
        return make(Sign::Is, skip_blanks(value.strip_prefix(": ").unwrap_or(value)));
    }
    let before = text.get(..start)?;
    if rest.starts_with(' ') && before.ends_with('-') && !quoted_name {
        return make(Sign::Flag, skip_blanks(rest));
    }
    if let Some(item) = argument::next_item(rest).filter(|_| before.ends_with('-')) {
        return make(Sign::Item, item);
    }
    if before.ends_with('<') {
        return rest.strip_prefix('>').and_then(|value| make(Sign::Tag, value));
    }
    None
}

fn skip_blanks(text: &str) -> &str {
    let blanks = text.bytes().take(BLANKS).take_while(|b| matches!(b, b' ' | b'\t')).count();
    text.get(blanks..).unwrap_or_default()
}

/// The quote right before a name, backslashes or not.
fn quote_before(text: &str, start: usize) -> Option<char> {
    text.get(..start)?.chars().next_back().filter(|c| matches!(c, '"' | '\'' | '`'))
}

/// Where the value begins if a type stands between the colon and an equals sign.
fn behind_type(text: &str, at: usize) -> Option<usize> {
    let line = text.get(at..)?;
    let equals =
        line.bytes().take(48).position(|b| matches!(b, b'=' | b'"' | b'\'' | b'\n' | b',' | b';' | b'{' | b'('))?;
    let value = line.get(equals..)?.strip_prefix('=').filter(|value| !value.starts_with(['=', '>']))?;
    line.get(..equals)?.ends_with(' ').then(|| text.len() - skip_blanks(value).len())
}

fn value_at(text: &str, at: usize, assignment: &Assignment<'_>, sign: Sign) -> Option<Value> {
    let rest = text.get(at..)?;
    if sign == Sign::Tag {
        let length = rest.find(['<', '\n'])?;
        return rest.get(length..)?.starts_with("</").then_some(Value { range: at..at + length, quoted: true });
    }
    let unprefixed = rest.trim_start_matches(|c: char| "fFbBrRuU@".contains(c));
    let prefix = rest.len() - unprefixed.len();
    let start = if prefix <= 2 && unprefixed.starts_with(['"', '\'', '`']) { at + prefix } else { at };
    if let Some(range) = quoted_at(text, start, assignment.quoted_name) {
        return range.map(|range| Value { range, quoted: true });
    }
    // A value that opens a bracket and closes it again refers to something.
    let closes = [('<', '>'), ('[', ']'), ('{', '}'), ('(', ')')];
    let opened = rest.trim_start_matches(['$', '#', '%', '@']).chars().next();
    let closed = |close: char| rest.bytes().take(200).take_while(|b| *b != b'\n').any(|b| char::from(b) == close);
    if closes.iter().any(|(open, close)| opened == Some(*open) && closed(*close)) {
        return None;
    }
    // In the style of the environment the value is the rest of the word, whatever it holds.
    let shouted = sign == Sign::Tight
        && assignment.name.bytes().all(|b| !b.is_ascii_lowercase())
        && is_line_start(text, assignment.start);
    let stops = if shouted { "" } else { STOPS };
    // In a URL the fragment ends the query.
    let in_url = text.get(..assignment.start)?.ends_with(['?', '&']);
    let length =
        rest.find(|c: char| c.is_whitespace() || stops.contains(c) || (in_url && c == '#')).unwrap_or(rest.len());
    let word = rest.get(..length)?;
    let word = if shouted { word } else { word.trim_end_matches(['.', ':', '!', '?', '\\']) };
    (!word.is_empty()).then_some(Value { range: at..at + word.len(), quoted: false })
}

/// Where an unquoted value ends that goes on behind a sign which separates nothing there, at most so many bytes further.
fn tail(text: &str, assignment: &Assignment<'_>, sign: Sign, head: &Range<usize>, most: usize) -> usize {
    let before = text.get(..assignment.start).unwrap_or_default();
    let in_url = before.ends_with(['?', '&']);
    let in_list = before.ends_with([',', '(', '[', '{']) || before.ends_with(", ");
    let alone = !assignment.quoted_name && is_line_start(text, assignment.start);
    let rest = text.get(head.end..).unwrap_or_default();
    let ends = |(at, c): (usize, char)| {
        let behind = rest.get(at + c.len_utf8()..).unwrap_or_default();
        match c {
            '&' => in_url || behind.starts_with('&') || is_entity(behind) || begins_pair(behind),
            ',' => in_list || separates(behind),
            ';' => !alone || sign != Sign::Colon || separates(behind),
            c if STOPS.contains(c) => !alone,
            c => c.is_whitespace() || (in_url && c == '#') || at >= most,
        }
    };
    let length = rest.char_indices().find(|at| ends(*at)).map_or(rest.len(), |(at, _)| at);
    let more = rest.get(..length).unwrap_or_default();
    head.end + more.trim_end_matches(|c| STOPS.contains(c) || matches!(c, '.' | ':' | '!' | '?' | '\\')).len()
}

/// Whether an unquoted value was meant as one: neither a name of code nor a word of prose.
fn is_meant(text: &str, assignment: &Assignment<'_>, sign: Sign, range: &Range<usize>, promise: Promise) -> bool {
    let word = text.get(range.clone()).unwrap_or_default();
    let behind = text.get(range.end..).unwrap_or_default();
    let whole_word = sign == Sign::Tight && assignment.name.bytes().all(|b| !b.is_ascii_lowercase());
    let calls = word.find(['(', '[']).is_some_and(|at| {
        let called = word.get(..at).unwrap_or_default().trim_start_matches('$');
        called.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    });
    let name_of_code =
        value::is_code(word) || word.starts_with(['&', '*']) || behind.starts_with('<') || (calls && !whole_word);
    if name_of_code {
        return false;
    }
    let rest = behind.trim_start_matches([' ', '\t', '.', '!']);
    let ends = rest.is_empty() || rest.starts_with(|c: char| c.is_whitespace() || "#/;,)}]>|&\"'`\\".contains(c));
    match sign {
        Sign::Tight | Sign::Item => true,
        Sign::Flag => !word.starts_with('-') && !value::is_listed(ABOUT_FLAGS, word),
        Sign::Is => value::looks_drawn(word),
        Sign::Equals => ends || value::looks_drawn(word),
        Sign::Colon => {
            let begins = assignment.quoted_name || begins_clause(text, assignment.start);
            (ends && (begins || promise == Promise::Password)) || value::looks_drawn(word)
        }
        Sign::Tag => true,
    }
}

fn is_line_start(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    // A short look back is enough for what may stand before a name on its line.
    let from =
        (before.len().saturating_sub(BLANKS)..=before.len()).find(|from| before.is_char_boundary(*from)).unwrap_or(0);
    let near = before.get(from..).unwrap_or_default();
    let line = near.rsplit(['\n', '\u{2028}']).next().unwrap_or_default();
    (from == 0 || line.len() < near.len()) && matches!(line.trim_start(), "" | "export " | "set " | "ENV " | "- ")
}

/// Whether a name begins a line, an entry or a quoted header, rather than standing in a sentence.
fn begins_clause(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let blanks = before.bytes().rev().take(BLANKS).take_while(|b| matches!(b, b' ' | b'\t')).count();
    let before = before.get(..before.len() - blanks).unwrap_or_default();
    before.is_empty() || before.ends_with(|c: char| c.is_whitespace() || "{,(;[|&?\"'`-".contains(c))
}
