//! What Anthropic's models take, by their names: Adjutant meets models that are newer than its table, and those refuse the whole
//! request for a word that their elders wanted. Whatever a name does not say is as it is with the newest.

/// When a model thinks, and how it is asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thought {
    /// Only when it is given tokens for it.
    ByTokens,
    /// Only when it is asked to, as much as it finds right.
    Asked,
    /// Unless it is told not to.
    Usual,
    /// Whatever it is told.
    Always,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Opus,
    Sonnet,
    Haiku,
    Other,
}

/// One of Anthropic's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claude {
    family: Family,
    version: (u32, u32),
}

impl Claude {
    /// The model of this name, wherever it runs; none where it is somebody else's.
    pub(crate) fn of(model: &str) -> Option<Self> {
        let (before, name) = model.split_once("claude-")?;
        if !before.is_empty() && !before.ends_with(['.', '/']) {
            return None;
        }
        let words: Vec<&str> = name.split(['-', '@', ':']).collect();
        let family = match () {
            () if words.contains(&"opus") => Family::Opus,
            () if words.contains(&"sonnet") => Family::Sonnet,
            () if words.contains(&"haiku") => Family::Haiku,
            () => Family::Other,
        };
        // A day is a number, too, but no version; the oldest wrote `v2`.
        let number = |word: &&str| word.trim_start_matches('v').parse::<u32>().ok().filter(|number| *number < 1000);
        let major = words.iter().position(|word| number(word).is_some());
        let version = major.and_then(|at| {
            let minor = words.get(at + 1).filter(|word| !word.starts_with('v')).and_then(number);
            Some((number(words.get(at)?)?, minor.unwrap_or(0)))
        });
        Some(Self { family, version: version.unwrap_or((u32::MAX, 0)) })
    }

    /// Whether it is at least of this version.
    pub(crate) fn since(self, major: u32, minor: u32) -> bool {
        self.version >= (major, minor)
    }

    /// Whether it is one of the largest that are sold to everybody.
    pub(crate) fn is_opus(self) -> bool {
        self.family == Family::Opus
    }

    /// Whether it has a name that is neither of the three known sizes.
    pub(crate) fn is_other(self) -> bool {
        self.family == Family::Other
    }

    /// When it thinks.
    pub(crate) fn thought(self) -> Thought {
        match self.family {
            _ if !self.since(4, 6) => Thought::ByTokens,
            Family::Opus | Family::Sonnet | Family::Haiku if !self.since(5, 0) => Thought::Asked,
            Family::Opus | Family::Sonnet if !self.since(5, 1) => Thought::Usual,
            Family::Haiku if !self.since(5, 6) => Thought::Usual,
            Family::Opus | Family::Sonnet | Family::Haiku | Family::Other => Thought::Always,
        }
    }

    /// Whether it takes a temperature, and what goes with it.
    pub(crate) fn samples(self) -> bool {
        !self.since(4, 7)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_how_a_model_thinks_and_whether_it_takes_a_temperature() {
        let known = |name: &str| Claude::of(name).map(|claude| (claude.thought(), claude.samples()));
        for (name, thought, samples) in [
            ("claude-3-haiku-20240307", Thought::ByTokens, true),
            ("claude-3-7-sonnet-20250219", Thought::ByTokens, true),
            ("claude-opus-4-20250514", Thought::ByTokens, true),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Thought::ByTokens, true),
            ("anthropic.claude-v2", Thought::ByTokens, true),
            ("claude-haiku-4-5", Thought::ByTokens, true),
            ("anthropic.claude-opus-4-6-v1", Thought::Asked, true),
            ("claude-sonnet-4-6", Thought::Asked, true),
            ("claude-opus-4-8", Thought::Asked, false),
            ("claude-opus-5", Thought::Usual, false),
            ("claude-sonnet-5-20260601", Thought::Usual, false),
            ("claude-haiku-5-5", Thought::Usual, false),
            ("claude-sonnet-5-5", Thought::Always, false),
            ("claude-opus-5-5", Thought::Always, false),
            ("claude-fable-5", Thought::Always, false),
            ("claude-opus-9", Thought::Always, false),
            ("claude-something", Thought::Always, false),
        ] {
            assert_eq!(known(name), Some((thought, samples)), "{name}");
        }
        for other in ["some-model", "glm-5", "my-claude-5", "gpt-5"] {
            assert_eq!(Claude::of(other), None, "{other}");
        }
    }
}
