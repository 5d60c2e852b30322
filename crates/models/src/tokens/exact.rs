//! The tokenizers that OpenAI publishes, for the models that are known to have them; a model of which nobody says so is not
//! guessed at. A vocabulary is unpacked when the first text is counted, which takes a moment: never on a thread that serves
//! others.

use std::sync::LazyLock;

use tiktoken::{CoreBpe, encoding};

use crate::catalog::Catalog;

static O200K: LazyLock<CoreBpe> = LazyLock::new(encoding::o200k_base);
static CL100K: LazyLock<CoreBpe> = LazyLock::new(encoding::cl100k_base);

/// How the names of models begin that have the newer vocabulary, and the older one where they have not.
const NEWER: &[&str] = &["gpt-4o", "chatgpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "o1", "o3", "o4"];
const OLDER: &[&str] = &["gpt-4", "gpt-3.5", "gpt-35", "text-embedding-3", "text-embedding-ada"];

/// What tokens there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Vocabulary {
    O200k,
    Cl100k,
}

impl Vocabulary {
    /// The one that a model has, if that is known.
    pub(super) fn of(kind: &str, model: &str) -> Option<Self> {
        let model = model.to_ascii_lowercase();
        let name = model.rsplit('/').next().unwrap_or_default();
        // Bedrock names the maker before a dot, and what was tuned its base after a colon.
        let name = ["openai.", "ft:"].into_iter().find_map(|before| name.strip_prefix(before)).unwrap_or(name);
        // Its weights are for everybody, so it has its vocabulary wherever it runs.
        if name.starts_with("gpt-oss") {
            return Some(Self::O200k);
        }
        let theirs = matches!(Catalog::kind_of(kind), "openai" | "azure") || model.starts_with("openai/");
        let begins = |names: &[&str]| {
            let rest = |known: &&str| name.strip_prefix(*known);
            names.iter().filter_map(rest).any(|rest| rest.is_empty() || rest.starts_with(['-', '.', ':']))
        };
        match theirs {
            true if begins(NEWER) => Some(Self::O200k),
            true if begins(OLDER) => Some(Self::Cl100k),
            true | false => None,
        }
    }

    /// Tokens of a text. What looks like a mark of the provider is text, as it is to the provider.
    pub(super) fn count(self, text: &str) -> u64 {
        let tokens = match self {
            Self::O200k => &O200K,
            Self::Cl100k => &CL100K,
        };
        tokens.count(text) as u64
    }
}

/// Tokens of a text for a model of a provider of this kind, where its tokenizer is built in.
#[must_use]
pub fn exact(kind: &str, model: &str, text: &str) -> Option<u64> {
    Vocabulary::of(kind, model).map(|vocabulary| vocabulary.count(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_the_vocabulary_that_is_known_of_it_and_no_other() {
        use Vocabulary::{Cl100k, O200k};
        for (kind, model, vocabulary) in [
            ("openai", "gpt-4o-mini", Some(O200k)),
            ("openai-responses", "gpt-5.4", Some(O200k)),
            ("openai", "o3", Some(O200k)),
            ("openai", "ft:gpt-4o-mini:lab::1", Some(O200k)),
            ("azure", "gpt-4.1", Some(O200k)),
            ("openrouter", "openai/gpt-5.5", Some(O200k)),
            ("groq", "openai/gpt-oss-120b", Some(O200k)),
            ("fireworks", "accounts/fireworks/models/gpt-oss-20b", Some(O200k)),
            ("bedrock", "openai.gpt-oss-120b-1:0", Some(O200k)),
            ("ollama", "gpt-oss:20b", Some(O200k)),
            ("openai", "gpt-4-turbo", Some(Cl100k)),
            ("azure", "gpt-35-turbo", Some(Cl100k)),
            ("openai", "text-embedding-3-small", Some(Cl100k)),
            ("openai", "gpt-6-sol", None),
            ("openai", "o300", None),
            ("azure", "our-deployment", None),
            ("compatible", "gpt-4o", None),
            ("anthropic", "claude-opus-5", None),
        ] {
            assert_eq!(Vocabulary::of(kind, model), vocabulary, "{kind}/{model}");
        }
    }

    #[test]
    fn texts_are_counted_as_openai_counts_them() {
        // As tiktoken-rs counts them, too.
        for (text, newer, older) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("Adjutant acts only on your authority.", 9, 9),
            ("Grüße aus München 🌍", 7, 8),
            ("你好,世界", 3, 6),
            ("<|endoftext|>", 7, 7),
        ] {
            let counted = |model| exact("openai", model, text);
            assert_eq!((counted("gpt-5"), counted("gpt-4")), (Some(newer), Some(older)), "{text}");
        }
        assert_eq!(exact("anthropic", "claude-opus-5", "hello"), None);
    }
}
