//! The pattern that filters a listing: the wildcards of the scope (`*`, `?`, `[ab]`, `**` as a whole segment), so that
//! there is one set of rules to learn.

use adjutant_core::guard::path::NotePath;
use adjutant_core::guard::pattern::NamePattern;

use crate::limits::PATTERN_CHARS;

/// A pattern for names, or with a slash for paths below the listed folder.
#[derive(Debug)]
pub(super) struct Pattern {
    segments: Vec<Segment>,
    about: About,
}

#[derive(Debug)]
enum Segment {
    /// `**`: any number of folders, also none.
    Folders,
    Name(NamePattern),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// The last name alone.
    Names,
    /// The whole path below the folder.
    Paths,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.chars().count() > PATTERN_CHARS {
            return Err(format!("it has more than {PATTERN_CHARS} characters"));
        }
        let segments = text.split('/').filter(|segment| !segment.is_empty()).map(|segment| match segment {
            "**" => Ok(Segment::Folders),
            name => NamePattern::parse(name).map(Segment::Name).map_err(|error| error.to_string()),
        });
        let segments: Vec<Segment> = segments.collect::<Result<_, _>>()?;
        if segments.is_empty() {
            return Err("it is empty".to_owned());
        }
        let about = if text.contains('/') || text == "**" { About::Paths } else { About::Names };
        Ok(Self { segments, about })
    }

    /// Whether something below a folder matches.
    pub(super) fn matches(&self, folder: &NotePath, path: &NotePath) -> bool {
        let names: Vec<&str> = match self.about {
            About::Names => path.name().into_iter().collect(),
            About::Paths => path.segments().skip(folder.segments().count()).collect(),
        };
        self.match_names(&names)
    }

    /// Segment by segment; after a mismatch the latest `**` takes one folder more, so the work stays bounded by the product
    /// of the two lengths.
    fn match_names(&self, names: &[&str]) -> bool {
        let (mut segment, mut name) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while name < names.len() {
            match self.segments.get(segment) {
                Some(Segment::Folders) => {
                    retry = Some((segment + 1, name));
                    segment += 1;
                }
                Some(Segment::Name(pattern)) if pattern.matches(names[name]) => {
                    segment += 1;
                    name += 1;
                }
                Some(Segment::Name(_)) | None => match retry {
                    Some((after, from)) => {
                        retry = Some((after, from + 1));
                        (segment, name) = (after, from + 1);
                    }
                    None => return false,
                },
            }
        }
        self.segments[segment..].iter().all(|segment| matches!(segment, Segment::Folders))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        let folder = NotePath::parse("/notes").unwrap();
        Pattern::parse(pattern).unwrap().matches(&folder, &NotePath::parse(path).unwrap())
    }

    #[test]
    fn a_pattern_without_a_slash_is_about_the_name() {
        assert!(matches("*.md", "/notes/a.md") && matches("*.md", "/notes/x/y/a.md"));
        assert!(matches("[ab]?.md", "/notes/a1.md") && !matches("[ab]?.md", "/notes/c1.md"));
        assert!(!matches("*.md", "/notes/a.txt"));
    }

    #[test]
    fn a_pattern_with_a_slash_is_about_the_path_below_the_folder() {
        assert!(matches("x/*.md", "/notes/x/a.md") && !matches("x/*.md", "/notes/x/y/a.md"));
        assert!(matches("**/*.md", "/notes/a.md") && matches("**/*.md", "/notes/x/y/a.md"));
        assert!(matches("x/**/a.md", "/notes/x/a.md") && matches("x/**/z/*", "/notes/x/y/z/z/a"));
        assert!(matches("x/**", "/notes/x/y") && !matches("x/**", "/notes/z/y"));
    }

    #[test]
    fn a_broken_pattern_is_refused_with_its_reason() {
        for bad in ["", "/", "[a", "a**", "[z-a]", "a\\b"] {
            assert!(Pattern::parse(bad).is_err(), "{bad}");
        }
        assert!(Pattern::parse(&"a".repeat(257)).is_err());
    }
}
