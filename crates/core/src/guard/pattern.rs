//! Folder and name patterns (P9-P12): our own matcher, segment by segment, because common ones let `*` cross `/`, match
//! dot files and expand braces. Linear in the path for each pattern segment; nothing here can blow up.

use unicode_normalization::UnicodeNormalization;

use super::path::{self, NotePath, PATH_BYTES, SEGMENTS};

/// A folder pattern: what it names is granted, with everything below it (P11).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    segments: Vec<Segment>,
}

/// A pattern for the last name of a path (P15): the same wildcards, without the dot rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern(Segment);

/// Why a pattern is broken. A broken pattern matches nothing and may not be saved (P9).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// There is no text.
    #[error("the pattern is empty; the whole notebook is \"/\"")]
    Empty,
    /// A segment is `.` or `..`.
    #[error("\".\" and \"..\" mean nothing in a pattern")]
    Dots,
    /// A segment begins with `!`.
    #[error("a pattern cannot take back what another grants, so no name in it may begin with \"!\"")]
    Negation,
    /// A backslash.
    #[error("a backslash is not an escape; put the character into brackets, as in [[]")]
    Backslash,
    /// `[` without `]`.
    #[error("a \"[\" is never closed")]
    UnclosedClass,
    /// `[]` or `[!]`.
    #[error("the brackets \"[]\" name no character")]
    EmptyClass,
    /// `[^`.
    #[error("\"[^\" is not known; \"[!\" excludes characters")]
    Caret,
    /// `[z-a]`.
    #[error("a range in brackets runs backwards")]
    ReversedRange,
    /// `**` beside other text in its segment, or in a pattern for names.
    #[error("\"**\" must stand alone between two slashes")]
    GluedStars,
    /// A segment begins or ends with a blank.
    #[error("a name in the pattern begins or ends with a blank")]
    Blank,
    /// A segment ends with a dot, which no path does.
    #[error("a name in the pattern ends with a dot, which no path does")]
    TrailingDot,
    /// A character no path may hold.
    #[error("the pattern holds {}, which no path may hold", path::shown(*.0))]
    Character(char),
    /// A percent code no path may hold.
    #[error("the pattern holds the percent code \"{0}\", which no path may hold")]
    PercentCode(String),
    /// A slash in a pattern for names.
    #[error("a file type is about the name alone and holds no \"/\"")]
    Slash,
    /// More than a path could match.
    #[error("the pattern is longer than any path")]
    TooLong,
    /// Not a pattern at all: a number, a list, an unknown field.
    #[error("an entry is a pattern, or an object with \"path\" and \"operations\"")]
    NotAPattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// Plain text.
    Literal(Box<str>),
    /// Text with wildcards.
    Glob(Vec<Token>),
    /// `**`: any number of folders.
    Folders,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    Run,
    Class { negated: bool, ranges: Vec<(char, char)> },
}

/// The segments of a path, cut once and then held against many patterns.
pub(super) struct Cut<'a> {
    segments: [&'a str; SEGMENTS],
    len: usize,
    /// The index behind the last segment that begins with a dot: from there on a tree grant reaches.
    clear_from: usize,
}

impl<'a> Cut<'a> {
    pub(super) fn new(path: &'a NotePath) -> Self {
        let mut cut = Self { segments: [""; SEGMENTS], len: 0, clear_from: 0 };
        for (slot, segment) in cut.segments.iter_mut().zip(path.segments()) {
            *slot = segment;
            cut.len += 1;
            if is_hidden(segment) {
                cut.clear_from = cut.len;
            }
        }
        cut
    }

    /// Whether a name in the path begins with a dot.
    pub(super) const fn has_hidden(&self) -> bool {
        self.clear_from > 0
    }

    fn names(&self) -> &[&'a str] {
        self.segments.get(..self.len).unwrap_or_default()
    }
}

fn is_hidden(segment: &str) -> bool {
    segment.starts_with('.')
}

impl Pattern {
    /// Reads a folder pattern.
    ///
    /// # Errors
    /// Fails when the pattern is broken (P9).
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = normal(text)?;
        let segments = text.split('/').filter(|s| !s.is_empty()).map(Segment::parse).collect::<Result<Vec<_>, _>>()?;
        if segments.len() > SEGMENTS {
            return Err(PatternError::TooLong);
        }
        // A lone `*` or `**` is the whole notebook, its root included (P11).
        let whole = matches!(segments.as_slice(), [only] if only.is_everything());
        Ok(Self { segments: if whole { Vec::new() } else { segments } })
    }

    /// The pattern that grants exactly this path and its tree, or as near as the pattern language comes.
    #[must_use]
    pub fn naming(path: &NotePath) -> String {
        let name = |segment: &str| {
            let escaped = segment.replace('[', "[[]");
            escaped.strip_prefix('!').map_or(escaped.clone(), |rest| format!("?{rest}"))
        };
        if path.is_root() {
            return "/".to_owned();
        }
        path.segments().fold(String::new(), |pattern, segment| pattern + "/" + &name(segment))
    }

    /// Whether the pattern grants the path: it names it, or a folder above it (P11), with nothing hidden below that (P12).
    #[must_use]
    pub fn grants(&self, path: &NotePath) -> bool {
        self.grants_cut(&Cut::new(path))
    }

    /// Whether the last, wildcard segment of the pattern ranges over the entries of this folder (P13).
    #[must_use]
    pub fn ranges_over(&self, folder: &NotePath) -> bool {
        self.ranges_over_cut(&Cut::new(folder))
    }

    pub(super) fn grants_cut(&self, path: &Cut<'_>) -> bool {
        // What is left below the end of a match must hold no hidden segment.
        self.ends(&self.segments, path) >> path.clear_from != 0
    }

    /// Whether the pattern names the path or a folder above it, hidden or not.
    pub(super) fn leads_to_cut(&self, path: &Cut<'_>) -> bool {
        self.ends(&self.segments, path) != 0
    }

    pub(super) fn ranges_over_cut(&self, folder: &Cut<'_>) -> bool {
        match self.segments.split_last() {
            Some((Segment::Glob(_) | Segment::Folders, above)) => self.ends(above, folder) >> folder.len & 1 == 1,
            Some((Segment::Literal(_), _)) | None => false,
        }
    }

    /// Whether it could grant something in this folder, at any depth: it grants the folder, or a path that it names leads
    /// through it.
    pub(super) fn may_hold_cut(&self, folder: &Cut<'_>) -> bool {
        let leads = |above: usize| {
            let above = self.segments.get(..above).unwrap_or_default();
            self.ends(above, folder) >> folder.len & 1 == 1
        };
        self.grants_cut(folder) || (0..self.segments.len()).any(leads)
    }

    /// Where a match of these pattern segments may end in the path: bit n stands for "behind the first n names". Following
    /// all ends at once keeps the work bounded, however many `**` there are.
    fn ends(&self, segments: &[Segment], path: &Cut<'_>) -> u128 {
        let mut ends: u128 = 1;
        for (index, segment) in segments.iter().enumerate() {
            ends = match segment {
                Segment::Folders => {
                    // The last segment of a whole pattern stands for contents, so it takes at least one name.
                    let none = if index + 1 == self.segments.len() { 0 } else { ends };
                    none | spread(ends, path)
                }
                Segment::Literal(_) | Segment::Glob(_) => step(ends, path, segment),
            };
            if ends == 0 {
                break;
            }
        }
        ends
    }
}

/// One name further from each end, where the segment matches it.
fn step(ends: u128, path: &Cut<'_>, segment: &Segment) -> u128 {
    let mut left = ends;
    let mut next = 0;
    while left != 0 {
        let at = left.trailing_zeros();
        left &= left - 1;
        if path.names().get(at as usize).is_some_and(|name| segment.matches(name)) {
            next |= 1 << (at + 1);
        }
    }
    next
}

/// One or more names further from each end, over names that are not hidden.
fn spread(ends: u128, path: &Cut<'_>) -> u128 {
    let mut next: u128 = 0;
    for (at, name) in path.names().iter().enumerate() {
        if (ends | next) >> at & 1 == 1 && !is_hidden(name) {
            next |= 1 << (at + 1);
        }
    }
    next
}

impl NamePattern {
    /// Reads a pattern for names.
    ///
    /// # Errors
    /// Fails when the pattern is broken (P9) or holds a slash (P15).
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let text = normal(text)?;
        if text.contains('/') {
            return Err(PatternError::Slash);
        }
        match Segment::parse(&text)? {
            Segment::Folders => Err(PatternError::GluedStars),
            segment @ (Segment::Literal(_) | Segment::Glob(_)) => Ok(Self(segment)),
        }
    }

    /// Whether the name matches; a leading dot is a character like any other here.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.0 {
            Segment::Literal(text) => **text == *name,
            Segment::Glob(tokens) => glob(tokens, name),
            Segment::Folders => false,
        }
    }
}

fn normal(text: &str) -> Result<String, PatternError> {
    if text.is_empty() {
        return Err(PatternError::Empty);
    }
    if text.len() > PATH_BYTES {
        return Err(PatternError::TooLong);
    }
    Ok(text.nfc().collect())
}

impl Segment {
    fn parse(text: &str) -> Result<Self, PatternError> {
        if text == "**" {
            return Ok(Self::Folders);
        }
        if text == "." || text == ".." {
            return Err(PatternError::Dots);
        }
        if text.starts_with('!') {
            return Err(PatternError::Negation);
        }
        if text.starts_with(char::is_whitespace) || text.ends_with(char::is_whitespace) {
            return Err(PatternError::Blank);
        }
        if text.ends_with('.') {
            return Err(PatternError::TrailingDot);
        }
        if let Some(code) = path::percent_code(text) {
            return Err(PatternError::PercentCode(code.to_owned()));
        }
        let tokens = tokens(text)?;
        let plain = |token: &Token| matches!(token, Token::Char(_));
        Ok(if tokens.iter().all(plain) { Self::Literal(text.into()) } else { Self::Glob(tokens) })
    }

    fn is_everything(&self) -> bool {
        match self {
            Self::Folders => true,
            Self::Glob(tokens) => matches!(tokens.as_slice(), [Token::Run]),
            Self::Literal(_) => false,
        }
    }

    /// Whether one name matches; only a literal dot matches a leading dot (P10, P12).
    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Literal(text) => **text == *name,
            Self::Glob(tokens) => (!is_hidden(name) || tokens.first() == Some(&Token::Char('.'))) && glob(tokens, name),
            // Any number of names is not one name; `spread` follows them.
            Self::Folders => false,
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, PatternError> {
    let mut tokens = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        tokens.push(match c {
            '*' if tokens.last() == Some(&Token::Run) => return Err(PatternError::GluedStars),
            '*' => Token::Run,
            '?' => Token::One,
            '[' => class(&mut rest)?,
            '\\' => return Err(PatternError::Backslash),
            bad if path::is_forbidden(bad) => return Err(PatternError::Character(bad)),
            plain => Token::Char(plain),
        });
    }
    Ok(tokens)
}

/// The rest of a class, up to and with its `]`.
fn class(rest: &mut std::str::Chars<'_>) -> Result<Token, PatternError> {
    let mut after = rest.clone();
    let negated = match after.next() {
        Some('^') => return Err(PatternError::Caret),
        Some('!') => {
            *rest = after;
            true
        }
        Some(_) | None => false,
    };
    let mut ranges = Vec::new();
    loop {
        let first = match rest.next() {
            None => return Err(PatternError::UnclosedClass),
            Some(']') if ranges.is_empty() => return Err(PatternError::EmptyClass),
            Some(']') => return Ok(Token::Class { negated, ranges }),
            Some('\\') => return Err(PatternError::Backslash),
            Some(bad) if path::is_invisible(bad) => return Err(PatternError::Character(bad)),
            Some(first) => first,
        };
        // A `-` is a range only between two characters; before the `]` it stands for itself.
        let mut ahead = rest.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some('\\')) => return Err(PatternError::Backslash),
            (Some('-'), Some(last)) if last != ']' => {
                if first > last {
                    return Err(PatternError::ReversedRange);
                }
                ranges.push((first, last));
                *rest = ahead;
            }
            (_, _) => ranges.push((first, first)),
        }
    }
}

/// Matches a whole name. On a dead end only the last `*` takes one character more: earlier ones need not be tried again.
fn glob(tokens: &[Token], name: &str) -> bool {
    let mut at = 0;
    let mut rest = name.chars();
    let mut retry: Option<(usize, std::str::Chars<'_>)> = None;
    loop {
        match tokens.get(at) {
            None if rest.as_str().is_empty() => return true,
            None => {}
            Some(Token::Run) => {
                at += 1;
                if at == tokens.len() {
                    return true;
                }
                retry = Some((at, rest.clone()));
                continue;
            }
            Some(token @ (Token::Char(_) | Token::One | Token::Class { .. })) => {
                let mut ahead = rest.clone();
                if ahead.next().is_some_and(|c| token.takes(c)) {
                    at += 1;
                    rest = ahead;
                    continue;
                }
            }
        }
        let Some((after, mut from)) = retry else { return false };
        if from.next().is_none() {
            return false;
        }
        at = after;
        rest = from.clone();
        retry = Some((after, from));
    }
}

impl Token {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One | Self::Run => true,
            Self::Class { negated, ranges } => ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *negated,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> NotePath {
        NotePath::parse(text).unwrap()
    }

    fn grants(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}")).grants(&path(text))
    }

    #[test]
    fn p9_a_broken_pattern_is_told_apart_and_named() {
        use PatternError as E;
        for (text, error) in [
            ("", E::Empty),
            ("..", E::Dots),
            ("/a/../b", E::Dots),
            ("./a", E::Dots),
            ("!/drafts", E::Negation),
            ("/!drafts", E::Negation),
            ("/a\\*", E::Backslash),
            ("/a[\\]]", E::Backslash),
            ("/a[b-\\]", E::Backslash),
            ("/a[", E::UnclosedClass),
            ("/[a", E::UnclosedClass),
            ("/[!", E::UnclosedClass),
            ("/[a/b]", E::UnclosedClass),
            ("/[]", E::EmptyClass),
            ("/[]a]", E::EmptyClass),
            ("/[!]", E::EmptyClass),
            ("/[!]a]", E::EmptyClass),
            ("/[^a]", E::Caret),
            ("/[z-a]", E::ReversedRange),
            ("/[a-cz-x]", E::ReversedRange),
            ("/a**", E::GluedStars),
            ("/**.md", E::GluedStars),
            ("/a/x**y/b", E::GluedStars),
            ("/***", E::GluedStars),
            ("/?**", E::GluedStars),
            (" /drafts", E::Blank),
            ("/drafts ", E::Blank),
            ("/a /b", E::Blank),
            ("/a\u{A0}", E::Blank),
            ("/a\n", E::Blank),
            (" ", E::Blank),
            ("/a.", E::TrailingDot),
            ("/a:b", E::Character(':')),
            ("/a\u{202E}b", E::Character('\u{202E}')),
            ("/a\u{2215}b", E::Character('\u{2215}')),
            ("/[\u{200B}]", E::Character('\u{200B}')),
            ("/a%2fb", E::PercentCode("%2f".to_owned())),
        ] {
            assert_eq!(Pattern::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn p9_a_pattern_is_no_longer_than_a_path() {
        assert!(Pattern::parse(&"/a".repeat(SEGMENTS)).is_ok());
        for more in [1, 2] {
            assert_eq!(Pattern::parse(&"/a".repeat(SEGMENTS + more)), Err(PatternError::TooLong));
        }
        let of_length = |bytes: usize| "a".repeat(bytes);
        assert!(Pattern::parse(&of_length(PATH_BYTES)).is_ok() && NamePattern::parse(&of_length(PATH_BYTES)).is_ok());
        for more in [1, 2] {
            assert_eq!(Pattern::parse(&of_length(PATH_BYTES + more)), Err(PatternError::TooLong));
            assert_eq!(NamePattern::parse(&of_length(PATH_BYTES + more)), Err(PatternError::TooLong));
        }
    }

    #[test]
    fn p10_patterns_are_anchored_and_slashes_at_the_ends_do_not_matter() {
        for pattern in ["/drafts", "drafts", "drafts/", "/drafts/", "//drafts//"] {
            assert!(grants(pattern, "/drafts/a.md"), "{pattern}");
            assert!(!grants(pattern, "/x/drafts/a.md"), "{pattern}");
            assert!(!grants(pattern, "/drafts-evil/a.md"), "{pattern}");
            assert!(!grants(pattern, "/Drafts/a.md"), "{pattern}");
        }
    }

    #[test]
    fn p10_no_wildcard_crosses_a_slash() {
        assert!(!grants("/a*c", "/a/c"));
        assert!(!grants("/a?c", "/a/c"));
        assert!(!grants("/a[!x]c", "/a/c"));
        assert!(!grants("/notes/*.md", "/notes/sub/a.md"));
        assert!(!grants("/*/x", "/a/b/x"));
    }

    #[test]
    fn p10_wildcards_match_what_they_say() {
        assert!(grants("/a*", "/a") && grants("/a*c", "/abbc") && !grants("/a*c", "/abb"));
        assert!(grants("/?", "/文") && !grants("/?", "/ab") && !grants("/a?", "/a"));
        assert!(grants("/[ab]", "/b") && !grants("/[ab]", "/c") && !grants("/[ab]", "/ab"));
        assert!(grants("/[a-c]", "/b") && !grants("/[a-c]", "/d"));
        assert!(grants("/[!a-c]", "/d") && !grants("/[!a-c]", "/a"));
        assert!(grants("/[a-]", "/-") && grants("/[-a]", "/-") && grants("/[[]", "/[") && grants("/x]", "/x]"));
        assert!(grants("/[!!]", "/a") && !grants("/[!!]", "/!"));
        assert!(grants("/[é-ö]x", "/öx"));
        assert!(grants("/[a-a]", "/a") && !grants("/[a-a]", "/b"));
    }

    #[test]
    fn p10_two_stars_are_any_number_of_folders() {
        assert!(grants("/a/**/b", "/a/b") && grants("/a/**/b", "/a/x/b") && grants("/a/**/b", "/a/x/y/b/c"));
        assert!(!grants("/a/**/b", "/a/x/c") && !grants("/a/**/b", "/b"));
        assert!(grants("**/*.md", "/x.md") && grants("**/*.md", "/a/b/x.md") && !grants("**/*.md", "/a/b/x.txt"));
        assert!(grants("/a/**/**/b/**", "/a/b/c") && !grants("/a/**/**/b/**", "/a/b"));
        // Two ways lead to the same name, and neither takes the other back.
        assert!(grants("/**/a/**/b", "/a/a/b") && grants("/**/a/**/c", "/a/a/b/c"));
    }

    #[test]
    fn p10_other_signs_are_literal() {
        assert!(grants("/{a,b}", "/{a,b}") && !grants("/{a,b}", "/a"));
        assert!(grants("/a+(b)$", "/a+(b)$") && !grants("/a+", "/aa"));
        assert!(grants("/a!b", "/a!b") && grants("/a.b", "/a.b") && !grants("/a.b", "/axb"));
        assert!(grants("/a%20b", "/a%20b") && !grants("/a%20b", "/a b"));
    }

    #[test]
    fn p6_patterns_are_composed_as_paths_are() {
        assert!(grants("/cafe\u{301}", "/caf\u{e9}") && grants("/caf\u{e9}", "/cafe\u{301}"));
        assert!(grants("/caf?", "/cafe\u{301}"));
    }

    #[test]
    fn p11_a_match_grants_the_thing_and_its_tree() {
        assert!(grants("/drafts", "/drafts") && grants("/drafts", "/drafts/a") && grants("/drafts", "/drafts/a/b/c"));
        for pattern in ["/experiments/*", "/experiments/**"] {
            assert!(grants(pattern, "/experiments/a") && grants(pattern, "/experiments/a/b/c"));
            assert!(!grants(pattern, "/experiments"), "{pattern}");
        }
        assert!(grants("/notes/*.md", "/notes/a.md") && !grants("/notes/*.md", "/notes"));
        for pattern in ["/", "*", "**", "/*", "/**", "//", "/*/"] {
            assert!(grants(pattern, "/") && grants(pattern, "/a") && grants(pattern, "/a/b/c"), "{pattern}");
        }
    }

    #[test]
    fn p12_only_a_literal_dot_reaches_hidden_names() {
        for pattern in ["/", "*", "**", "/a", "/a/*", "/a/**", "/a/**/x", "/a/?x", "/a/[.]x", "/a/[!b]x", "**/x"] {
            assert!(!grants(pattern, "/a/.x"), "{pattern}");
            assert!(!grants(pattern, "/a/.x/x"), "{pattern}");
            assert!(!grants(pattern, "/a/b/.x"), "{pattern}");
        }
        assert!(grants("/a/.x", "/a/.x") && grants("/a/.x", "/a/.x/y") && grants("/a/.*", "/a/.x"));
        assert!(grants("/**/.x", "/a/b/.x") && grants("/.x/**", "/.x/y") && grants("/.e*", "/.env"));
        assert!(!grants("/a/.x", "/a/.x/.y") && !grants("/.x/*", "/.x/.y"));
        assert!(!grants("/**/x", "/.h/x"));
    }

    #[test]
    fn p13_a_last_wildcard_ranges_over_its_folder() {
        let ranges = |pattern: &str, text: &str| Pattern::parse(pattern).unwrap().ranges_over(&path(text));
        assert!(ranges("/experiments/*", "/experiments") && ranges("/experiments/**", "/experiments"));
        assert!(ranges("/notes/*.md", "/notes") && ranges("/notes/[ab]", "/notes") && ranges("*.md", "/"));
        assert!(!ranges("/notes/a.md", "/notes") && !ranges("/a/*/b", "/a") && !ranges("/a/*/b", "/a/x"));
        assert!(!ranges("/notes/*.md", "/") && !ranges("/notes/*.md", "/notes/sub"));
        assert!(ranges("/a/**/*.md", "/a") && ranges("/a/**/*.md", "/a/b/c") && !ranges("/a/**/*.md", "/a/.b"));
        assert!(ranges("/*/x*", "/a") && !ranges("/*/x*", "/"));
    }

    #[test]
    fn p15_a_name_pattern_knows_no_dot_rule_and_no_slash() {
        let matches = |pattern: &str, name: &str| NamePattern::parse(pattern).unwrap().matches(name);
        assert!(matches("*.md", "a.md") && matches("*.md", ".md") && matches("*", ".env") && matches("?env", ".env"));
        assert!(!matches("*.md", "a.MD") && !matches("*.md", "a.md.exe") && matches("README", "README"));
        assert_eq!(NamePattern::parse("a/*.md"), Err(PatternError::Slash));
        assert_eq!(NamePattern::parse("/"), Err(PatternError::Slash));
        assert_eq!(NamePattern::parse("**.md"), Err(PatternError::GluedStars));
        assert_eq!(NamePattern::parse("**"), Err(PatternError::GluedStars));
        assert_eq!(NamePattern::parse(""), Err(PatternError::Empty));
    }

    #[test]
    fn the_pattern_that_names_a_path_grants_it() {
        for text in ["/", "/a/b.md", "/.env", "/a[1]/x", "/!a/b!"] {
            let pattern = Pattern::naming(&path(text));
            assert!(grants(&pattern, text), "{pattern}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends_soon() {
        let pattern = format!("/{}b", "*a".repeat(120));
        assert!(!grants(&pattern, &format!("/{}", "a".repeat(255))));
        let pattern = "/**/*a*a*a*b".repeat(16);
        assert!(!grants(&pattern, &"/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(64)));
    }

    /// The rules written down as plainly as possible, slow and recursive.
    mod slow {
        fn hidden(name: &str) -> bool {
            name.starts_with('.')
        }

        pub(super) fn grants(pattern: &[&str], path: &[&str]) -> bool {
            if pattern == ["*"] || pattern == ["**"] {
                return !path.iter().any(|name| hidden(name));
            }
            (0..=path.len())
                .any(|cut| exact(pattern, &path[..cut], true) && !path[cut..].iter().any(|name| hidden(name)))
        }

        pub(super) fn lists(pattern: &[&str], path: &[&str]) -> bool {
            match pattern.split_last() {
                Some((last, above)) if last.contains(['*', '?', '[']) => {
                    pattern.len() > 1 && exact(above, path, false)
                        || pattern.len() == 1 && path.is_empty() && *last != "*" && *last != "**"
                }
                _ => false,
            }
        }

        fn exact(pattern: &[&str], path: &[&str], to_the_end: bool) -> bool {
            match (pattern, path) {
                ([], _) => path.is_empty(),
                (["**"], []) => !to_the_end,
                (["**", more @ ..], []) => exact(more, path, to_the_end),
                (["**", more @ ..], [name, rest @ ..]) => {
                    let skip = !more.is_empty() || !to_the_end;
                    (skip && exact(more, path, to_the_end))
                        || (!hidden(name) && (exact(pattern, rest, to_the_end) || exact(more, rest, to_the_end)))
                }
                ([_, ..], []) => false,
                ([one, more @ ..], [name, rest @ ..]) => {
                    let dots = !hidden(name) || one.starts_with('.');
                    let one: Vec<char> = one.chars().collect();
                    let name: Vec<char> = name.chars().collect();
                    dots && text(&one, &name) && exact(more, rest, to_the_end)
                }
            }
        }

        fn text(pattern: &[char], name: &[char]) -> bool {
            match (pattern, name) {
                ([], _) => name.is_empty(),
                (['*', more @ ..], _) => (0..=name.len()).any(|cut| text(more, &name[cut..])),
                (_, []) => false,
                (['?', more @ ..], [_, rest @ ..]) => text(more, rest),
                (['[', '!', a, ']', more @ ..], [c, rest @ ..]) => a != c && text(more, rest),
                (['[', a, '-', z, ']', more @ ..], [c, rest @ ..]) => (a..=z).contains(&c) && text(more, rest),
                (['[', a, ']', more @ ..], [c, rest @ ..]) => a == c && text(more, rest),
                ([p, more @ ..], [c, rest @ ..]) => p == c && text(more, rest),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn the_matcher_agrees_with_the_plain_rules(
            pattern in prop::collection::vec("\\*\\*|\\.?([ab]|\\*|\\?|\\[!a\\]|\\[a-b\\]|\\[b\\]){1,4}", 1..5),
            path in prop::collection::vec("\\.?[ab]{1,3}", 0..6),
        ) {
            prop_assume!(pattern.iter().all(|s| s == "**" || !s.contains("**")));
            let parsed = Pattern::parse(&pattern.join("/")).unwrap();
            let note = NotePath::parse(&format!("/{}", path.join("/"))).unwrap();
            let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
            let path: Vec<&str> = path.iter().map(String::as_str).collect();
            prop_assert_eq!(parsed.grants(&note), slow::grants(&pattern, &path));
            prop_assert_eq!(parsed.ranges_over(&note), slow::lists(&pattern, &path));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "[a-b.*?!\\[\\]^/ \\\\-]{0,12}|\\PC{0,12}", path in "[a-b./-]{1,12}") {
            if let (Ok(pattern), Ok(path)) = (Pattern::parse(&text), NotePath::parse(&path)) {
                let _ = (pattern.grants(&path), pattern.ranges_over(&path));
            }
            let _ = NamePattern::parse(&text);
        }
    }
}
