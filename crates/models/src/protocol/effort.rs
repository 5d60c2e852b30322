//! How much each model can be told to think: the words it takes for that, or the tokens. Most refuse the whole request for a word
//! that others take, so this goes by the model, and where nothing is known by what the vendor's models have in common.

use std::cmp::Reverse;

use adjutant_core::options::Effort::{self, High, Low, Max, Medium, Minimal, None as Off, Xhigh};

use crate::vendor::by_responses;

/// How a model is told how much to think. One that has neither words nor tokens nor a switch is told nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dial {
    /// The words it takes, from the least to the most.
    pub(super) words: &'static [Effort],
    /// Whether a field beside them turns thinking on and off.
    pub(super) switch: bool,
    /// The tokens it may be given.
    pub(super) tokens: Option<Tokens>,
}

/// The tokens that a model may be given to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) least: u32,
    pub(super) most: u32,
    /// Whether it may be given none.
    pub(super) off: bool,
}

const NOTHING: Dial = Dial { words: &[], switch: false, tokens: None };
/// What is said is handed on: nobody knows better. Beyond `high` there is no word that all who speak this know.
const AS_SAID: Dial = words(&[Off, Minimal, Low, Medium, High]);
const THREE: Dial = words(&[Low, Medium, High]);
const SWITCH: Dial = Dial { switch: true, ..NOTHING };

const fn words(words: &'static [Effort]) -> Dial {
    Dial { words, ..NOTHING }
}

const fn tokens(least: u32, most: u32, off: bool) -> Dial {
    Dial { tokens: Some(Tokens { least, most, off }), ..NOTHING }
}

impl Dial {
    /// The word that is nearest to what is wanted; of two that are as near, the one for more. Whoever wants some thought is not
    /// given none, and whoever wants none is given as little as there is.
    pub(super) fn nearest(self, wanted: Effort) -> Option<Effort> {
        let thinks = |word: &&Effort| wanted == Off || **word != Off;
        let distance = |word: &Effort| ((*word as usize).abs_diff(wanted as usize), Reverse(*word));
        self.words.iter().filter(thinks).copied().min_by_key(distance)
    }
}

/// What a model of a vendor takes.
pub(super) fn dial(vendor: &str, model: &str) -> Dial {
    let name = model.rsplit('/').next().unwrap_or(model);
    match vendor {
        "openai" | "openai-responses" | "azure" => openai(name),
        "gemini" | "vertex" => gemini(name),
        "xai" => xai(name),
        "mistral" => mistral(name),
        "deepseek" => deepseek(name),
        "zhipu" | "zai" => zhipu(name),
        "moonshot" => moonshot(name),
        "groq" | "cerebras" if name.contains("gpt-oss") => THREE,
        // `default` is its only other word, and what it does unasked.
        "groq" if name.contains("qwen") => words(&[Off]),
        "groq" | "cerebras" => NOTHING,
        "perplexity" => words(&[Minimal, Low, Medium, High]),
        // It finds the nearest itself.
        "openrouter" => words(&[Off, Minimal, Low, Medium, High, Xhigh]),
        _ => AS_SAID,
    }
}

/// Two numbers at the beginning of what follows the name of a family.
fn version(rest: &str) -> Option<(u32, u32)> {
    let number = rest.split(['-', ':', '@']).next()?;
    let (major, minor) = number.split_once('.').unwrap_or((number, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn openai(name: &str) -> Dial {
    if name.contains("gpt-oss") {
        return THREE;
    }
    if !by_responses(name) {
        return NOTHING;
    }
    if name.strip_prefix('o').is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit())) {
        return THREE;
    }
    let Some(version) = name.strip_prefix("gpt-").and_then(version) else {
        // A deployment may have any name.
        return words(&[Off, Minimal, Low, Medium, High, Xhigh]);
    };
    let has = |word: &str| name.split('-').any(|part| part == word);
    match version {
        (5, 0) if has("pro") => words(&[High]),
        (5, 0 | 1) if has("codex") && !has("max") => THREE,
        (5, 0) => words(&[Minimal, Low, Medium, High]),
        (5, 1) if has("max") => words(&[Low, Medium, High, Xhigh]),
        (5, 1) => words(&[Off, Low, Medium, High]),
        (5, 2..=5) if has("pro") => words(&[Medium, High, Xhigh]),
        (5, 2..=5) if has("codex") => words(&[Low, Medium, High, Xhigh]),
        (5, 2..=5) => words(&[Off, Low, Medium, High, Xhigh]),
        (5, 6..) | (6, 0) => words(&[Off, Low, Medium, High, Xhigh, Max]),
        _ => words(&[Low, Medium, High, Xhigh, Max]),
    }
}

fn gemini(name: &str) -> Dial {
    let Some(rest) = name.strip_prefix("gemini-") else {
        // Google's open models are told by their prompt; of other names nothing is known.
        return if name.starts_with("gemma") { NOTHING } else { tokens(0, u32::MAX, true) };
    };
    let flash = name.contains("flash");
    match version(rest) {
        Some((2, 5)) if name.contains("flash-lite") => tokens(512, 24_576, true),
        Some((2, 5)) if flash => tokens(1, 24_576, true),
        Some((2, 5)) => tokens(128, 32_768, false),
        Some((0..=2, _)) => NOTHING,
        Some((3, 0)) if !flash => words(&[Low, High]),
        Some((3, 0..=5)) if flash => words(&[Minimal, Low, Medium, High]),
        Some(_) | None => THREE,
    }
}

fn xai(name: &str) -> Dial {
    // It has minor versions that are older than smaller ones.
    let old = ["grok-4.20", "grok-4-", "grok-3", "grok-2"];
    match name.strip_prefix("grok-").and_then(version) {
        _ if name.starts_with("grok-3-mini") => words(&[Low, High]),
        Some(_) if old.iter().any(|old| name.starts_with(old)) => NOTHING,
        Some((4, 3)) => words(&[Off, Low, Medium, High]),
        Some((4, 5)) => THREE,
        Some(version) if version > (4, 5) => words(&[Low, Medium, High, Xhigh]),
        // Those that are known by a name refuse every word.
        Some(_) | None => NOTHING,
    }
}

fn mistral(name: &str) -> Dial {
    let adjustable = ["mistral-small", "mistral-medium"].iter().any(|family| name.starts_with(family));
    if adjustable { words(&[Off, High]) } else { NOTHING }
}

fn deepseek(name: &str) -> Dial {
    match name {
        "deepseek-chat" | "deepseek-reasoner" => NOTHING,
        flash if flash.contains("flash") => Dial { words: &[Low, High, Max], ..SWITCH },
        _ => Dial { words: &[High, Max], ..SWITCH },
    }
}

fn zhipu(name: &str) -> Dial {
    match name.strip_prefix("glm-").and_then(version) {
        Some(version) if version >= (5, 3) => words(&[Low, High, Max]),
        Some((5, 2)) => Dial { words: &[Low, Medium, High, Xhigh, Max], ..SWITCH },
        Some(_) | None => SWITCH,
    }
}

fn moonshot(name: &str) -> Dial {
    match name.strip_prefix("kimi-k").and_then(version) {
        Some((3.., _)) => words(&[Low, High, Max]),
        Some((2, 5 | 6)) => SWITCH,
        Some(_) | None => NOTHING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    const ALL: [Effort; 7] = [Off, Minimal, Low, Medium, High, Xhigh, Max];

    #[test]
    fn every_model_of_the_catalog_is_told_only_words_that_it_takes() {
        for facts in Catalog::built_in().models().filter(|facts| facts.abilities.reasoning) {
            let dial = dial(&facts.provider, &facts.model);
            assert!(dial.words.is_sorted(), "{}", facts.name());
            for wanted in ALL {
                let word = dial.nearest(wanted);
                assert!(word.is_none_or(|word| dial.words.contains(&word)), "{} {wanted:?}", facts.name());
                assert!(wanted == Off || word != Some(Off), "{} {wanted:?}", facts.name());
            }
        }
    }

    /// What a model is told where each effort is wanted, from none to the most; `-` is nothing.
    fn told(vendor: &str, model: &str) -> String {
        let dial = dial(vendor, model);
        let words: Vec<_> = ALL.map(|wanted| dial.nearest(wanted).map_or("-", Effort::word)).into();
        words.join(" ")
    }

    #[test]
    fn each_family_has_its_own_words() {
        let three = "low low low medium high high high";
        for (vendor, model, words) in [
            ("openai", "gpt-5", "minimal minimal low medium high high high"),
            ("openai", "gpt-5-mini-2025-08-07", "minimal minimal low medium high high high"),
            ("azure", "gpt-5-mini", "minimal minimal low medium high high high"),
            ("openai", "gpt-5-pro", "high high high high high high high"),
            ("openai", "gpt-5-codex", three),
            ("openai", "gpt-5.1", "none low low medium high high high"),
            ("openai", "gpt-5.1-codex-max", "low low low medium high xhigh xhigh"),
            ("openai-responses", "gpt-5.4", "none low low medium high xhigh xhigh"),
            ("openai", "gpt-5.2-pro", "medium medium medium medium high xhigh xhigh"),
            ("openai", "gpt-5.6-terra", "none low low medium high xhigh max"),
            ("openai", "gpt-6.1-sol", "low low low medium high xhigh max"),
            ("openai", "gpt-9", "low low low medium high xhigh max"),
            ("openai", "o4-mini", three),
            ("openai", "gpt-5.3-chat-latest", "- - - - - - -"),
            ("azure", "our-deployment", "none minimal low medium high xhigh xhigh"),
            ("xai", "grok-4.7", "low low low medium high xhigh xhigh"),
            ("xai", "grok-4.5", three),
            ("xai", "grok-4.3", "none low low medium high high high"),
            ("xai", "grok-4.20-0309-reasoning", "- - - - - - -"),
            ("xai", "grok-build-0.1", "- - - - - - -"),
            ("xai", "grok-4-1-fast-reasoning", "- - - - - - -"),
            ("gemini", "gemini-3.1-pro-preview", three),
            ("gemini", "gemini-3-pro-preview", "low low low high high high high"),
            ("vertex", "gemini-3.5-flash", "minimal minimal low medium high high high"),
            ("gemini", "gemini-4-argon", three),
            ("gemini", "gemini-2.5-pro", "- - - - - - -"),
            ("groq", "openai/gpt-oss-120b", three),
            ("groq", "qwen/qwen3-32b", "none - - - - - -"),
            ("mistral", "mistral-small-latest", "none high high high high high high"),
            ("mistral", "magistral-medium-latest", "- - - - - - -"),
            ("deepseek", "deepseek-v4-pro", "high high high high high max max"),
            ("zai", "glm-5.3", "low low low high high max max"),
            ("zhipu", "glm-4.7", "- - - - - - -"),
            ("moonshot", "kimi-k3", "low low low high high max max"),
            ("compatible", "anything", "none minimal low medium high high high"),
        ] {
            assert_eq!(told(vendor, model), words, "{vendor}/{model}");
        }
    }

    #[test]
    fn older_models_of_google_are_told_by_tokens_in_their_range() {
        let range = |model: &str| dial("gemini", model).tokens.map(|tokens| (tokens.least, tokens.most, tokens.off));
        assert_eq!(range("gemini-2.5-pro"), Some((128, 32_768, false)));
        assert_eq!(range("gemini-2.5-flash"), Some((1, 24_576, true)));
        assert_eq!(range("gemini-2.5-flash-lite"), Some((512, 24_576, true)));
        for model in ["gemini-3.8-flash", "gemini-4-argon", "gemini-2.0-flash", "gemma-4-31b-it"] {
            assert_eq!(range(model), None, "{model}");
        }
    }
}
