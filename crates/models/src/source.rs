//! Where models come from: by name, with what is known about them. Anything that finds a model by its name is a source, a
//! plain function too.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use adjutant_core::routing::{DEFAULT, STAND_INS, Strategy, Wanted};

use crate::catalog::ModelFacts;
use crate::registry::DEMO;
use crate::router::{Candidate, Choice, Needs, choose};
use crate::{ApiKey, Model, ModelError, Vendor};

/// Models that a strategy names to stand in, where nobody else did. One whose whole point is the order names as many as there may
/// be.
const CHOSEN_STAND_INS: usize = 3;

/// A model that can be used here, and how it has been.
#[derive(Debug, Clone)]
pub struct Offer {
    /// `provider/model`, the provider by its name here.
    pub name: String,
    /// What is known about it.
    pub facts: ModelFacts,
    /// How long it took lately until the first piece of an answer.
    pub first_piece: Option<Duration>,
    /// How long its provider is still left alone.
    pub resting: Option<Duration>,
    /// Whether its provider does not serve it any more: it can be named, and nothing of ours chooses it.
    pub retired: bool,
    /// Whether only a key that somebody brought opens it.
    pub by_key: bool,
}

/// Whether a provider has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// The operator's.
    Operator,
    /// It wants none.
    NotNeeded,
    /// It wants one, and the operator has none.
    Missing,
}

/// What is known about a provider.
#[derive(Debug, Clone)]
pub struct ProviderFacts {
    /// Its name here: what a model's name begins with.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// The host it is reached at, where that is known.
    pub host: Option<String>,
    /// Whether it has a key.
    pub key: KeyState,
    /// The variables its key is usually in.
    pub key_env: &'static [&'static str],
    /// Its models that are known.
    pub models: usize,
    /// Calls that it may have at once.
    pub calls_at_once: Option<usize>,
    /// How long it is still left alone, because it failed.
    pub resting: Option<Duration>,
    /// Whether it was found on this machine, and not configured.
    pub detected: bool,
}

/// Finds models.
///
/// To implement one: `model` is enough. Without `facts` no price is known, and without `offers` no strategy has a choice.
pub trait ModelSource: Send + Sync {
    /// The model of this name.
    ///
    /// # Errors
    /// `UnknownModel` when there is none.
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError>;

    /// What is known about a model of this name.
    fn facts(&self, name: &str) -> Option<ModelFacts> {
        let _ = name;
        None
    }

    /// The model of this name, called with a key that somebody brought in place of the operator's.
    ///
    /// # Errors
    /// When there is no such model, or it takes no key, or the key may not go to its address.
    fn model_with(&self, name: &str, key: BroughtKey) -> Result<Arc<dyn Model>, ModelError> {
        let _ = key;
        Err(unknown(name, ", its provider takes no key of yours".to_owned()))
    }

    /// The providers there are, and those that somebody may bring a key for.
    fn about_providers(&self) -> Vec<ProviderFacts> {
        Vec::new()
    }

    /// The kind of a provider, where it has one.
    fn kind_of(&self, provider: &str) -> Option<&'static str> {
        let _ = provider;
        None
    }

    /// The host that keys of a provider go to; none where it takes no key.
    fn host(&self, provider: &str) -> Option<String> {
        let _ = provider;
        None
    }

    /// Shows the secrets that the operator's providers are called with, so that they can be kept out of what is recorded.
    fn credentials(&self, show: &mut dyn FnMut(&str)) {
        let _ = show;
    }

    /// The models of a provider that are known and talk, the cheapest first.
    fn cheapest(&self, provider: &str) -> Vec<String> {
        let _ = provider;
        Vec::new()
    }

    /// Whether a model of this name can be asked.
    ///
    /// # Errors
    /// `UnknownModel` when it cannot.
    fn reachable(&self, name: &str) -> Result<(), ModelError> {
        self.model(name).map(drop)
    }

    /// The models that can be used here, as far as they are known.
    fn offers(&self) -> Vec<Offer> {
        Vec::new()
    }

    /// The models of a provider that only a key of somebody's own opens, as far as they are known.
    fn offers_with_key(&self, provider: &str) -> Vec<Offer> {
        let _ = provider;
        Vec::new()
    }
}

impl<F> ModelSource for F
where
    F: Fn(&str) -> Result<Arc<dyn Model>, ModelError> + Send + Sync,
{
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self(name)
    }
}

/// A key that somebody brought.
pub struct BroughtKey {
    /// Its id: what fails with it is held against it, not against the keys of others.
    pub id: String,
    /// The key, for the hosts it was kept for.
    pub key: ApiKey,
}

/// A source with the providers that stored keys open beside the operator's.
pub struct WithKeys<'a> {
    /// The operator's.
    pub source: &'a dyn ModelSource,
    /// The providers that there are keys for.
    pub providers: Vec<String>,
    /// Those whose models may be asked.
    pub allowed: Allowed,
}

/// The providers whose models may be asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Allowed {
    /// All of them.
    #[default]
    All,
    /// These, by their names here.
    These(BTreeSet<String>),
}

impl Allowed {
    /// Whether a model may be asked. The built-in one tells nobody anything, so it always may.
    #[must_use]
    pub fn admits(&self, model: &str) -> bool {
        let provider = model.split('/').next().unwrap_or_default();
        match self {
            Self::All => true,
            Self::These(names) => provider == DEMO || names.contains(provider),
        }
    }

    /// Why a model may not be asked.
    #[must_use]
    pub fn refusal(model: &str) -> ModelError {
        let provider = model.split('/').next().unwrap_or_default();
        unknown(model, format!(" here: the workspace does not allow the provider `{provider}`"))
    }
}

impl ModelSource for WithKeys<'_> {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.source.model(name)
    }

    fn facts(&self, name: &str) -> Option<ModelFacts> {
        self.source.facts(name)
    }

    fn kind_of(&self, provider: &str) -> Option<&'static str> {
        self.source.kind_of(provider)
    }

    fn offers(&self) -> Vec<Offer> {
        let mut providers: Vec<&str> = self.providers.iter().map(String::as_str).collect();
        providers.sort_unstable();
        providers.dedup();
        let opened = providers.into_iter().flat_map(|provider| self.source.offers_with_key(provider));
        let opened = opened.map(|offer| Offer { by_key: true, ..offer });
        self.source.offers().into_iter().chain(opened).filter(|offer| self.allowed.admits(&offer.name)).collect()
    }

    fn reachable(&self, name: &str) -> Result<(), ModelError> {
        let opened = |provider: &str| self.providers.iter().any(|known| known == provider);
        match name.split_once('/') {
            Some(_) if !self.allowed.admits(name) => Err(Allowed::refusal(name)),
            Some((provider, rest)) if !rest.is_empty() && opened(provider) && self.source.host(provider).is_some() => {
                Ok(())
            }
            Some(_) | None => self.source.reachable(name),
        }
    }
}

/// The models of a run: the one to ask, and those that may stand in for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineup {
    /// The one to ask.
    pub model: String,
    /// Those that may stand in for it, in order.
    pub fallbacks: Vec<String>,
    /// Why it was chosen, where it was left open.
    pub choice: Option<Choice>,
}

/// Chooses the models of a run.
///
/// # Errors
/// When a model is not known, may mean several, or none can do what is needed.
pub fn lineup(
    source: &dyn ModelSource,
    wanted: &Wanted,
    default_model: &str,
    needs: &Needs,
) -> Result<Lineup, ModelError> {
    let offers = source.offers();
    // Whoever names a model, or leaves it to the default, gets that one and those that they name: no strategy sends what is
    // said to somebody else.
    let choice = match wanted.open() {
        Some(strategy) if !offers.is_empty() => {
            let none = |none: crate::router::NoChoice| unknown(strategy.word(), format!(", {none}"));
            Some(chosen(&offers, needs, strategy).map_err(none)?)
        }
        Some(_) | None => None,
    };
    let model = match &choice {
        Some(choice) => choice.model.clone(),
        None if wanted.open().is_some() || wanted.model == DEFAULT => named(source, &offers, default_model)?,
        None => named(source, &offers, &wanted.model)?,
    };
    let mut fallbacks: Vec<String> = if wanted.fallbacks.is_empty() {
        choice.iter().flat_map(|choice| stand_ins(choice, &model)).collect()
    } else {
        // One that is not here, or not any more, cannot stand in; the others can.
        let retired = |name: &String| offers.iter().any(|offer| offer.retired && offer.name == *name);
        let here = wanted.fallbacks.iter().filter_map(|name| named(source, &offers, name).ok());
        here.filter(|name| !retired(name)).collect()
    };
    let mut seen = vec![model.clone()];
    fallbacks.retain(|name| {
        let new = !seen.contains(name);
        seen.push(name.clone());
        new
    });
    Ok(Lineup { model, fallbacks, choice })
}

/// What a strategy would choose now, with its reasons.
///
/// # Errors
/// When no model can do what is needed.
pub fn chosen(offers: &[Offer], needs: &Needs, strategy: Strategy) -> Result<Choice, crate::router::NoChoice> {
    let candidates: Vec<_> = offers.iter().map(Candidate::of).collect();
    choose(&candidates, needs, strategy)
}

/// The best of other providers, one of each.
fn stand_ins(choice: &Choice, model: &str) -> Vec<String> {
    let provider = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
    let mut used = vec![provider(model)];
    let mut found = Vec::new();
    for ranked in &choice.ranked {
        let whose = provider(&ranked.model);
        if !used.contains(&whose) {
            used.push(whose);
            found.push(ranked.model.clone());
        }
    }
    found.truncate(match choice.strategy {
        Strategy::Fallback => STAND_INS,
        Strategy::Cheapest | Strategy::Fastest | Strategy::Smartest | Strategy::Balanced => CHOSEN_STAND_INS,
    });
    found
}

/// The whole name of a model: as it is, or found by its bare name among those that are known here.
fn named(source: &dyn ModelSource, offers: &[Offer], name: &str) -> Result<String, ModelError> {
    let missing = match source.reachable(name) {
        Ok(()) => return Ok(name.to_owned()),
        Err(missing) => missing,
    };
    if let Some(ours) = in_our_words(name).filter(|ours| source.reachable(ours).is_ok()) {
        return Ok(ours);
    }
    let is_meant = |offer: &&Offer| {
        let own = &offer.facts.model;
        own == name || own.rsplit_once('/').is_some_and(|(_, short)| short == name)
    };
    let found: Vec<_> = offers.iter().filter(is_meant).map(|offer| offer.name.clone()).collect();
    match &found[..] {
        [] => Err(missing),
        [one] => Ok(one.clone()),
        several => Err(unknown(name, format!(": it may be {}", several.join(", ")))),
    }
}

/// The same model by our word for its provider, where it is written by another, such as `google/…` or `together_ai/…`.
fn in_our_words(name: &str) -> Option<String> {
    let (provider, rest) = name.split_once('/')?;
    let vendor = Vendor::of(provider).filter(|vendor| vendor.kind != provider)?;
    Some(format!("{}/{rest}", vendor.kind))
}

fn unknown(model: &str, hint: String) -> ModelError {
    ModelError::UnknownModel { model: model.to_owned(), hint }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::demo::Demo;

    /// Knows these names of the catalog, and the demo.
    struct Shelf(&'static [(&'static str, &'static str)]);

    impl ModelSource for Shelf {
        fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
            let known = name == "demo/guide" || self.0.iter().any(|(here, _)| *here == name);
            if known { Ok(Arc::new(Demo::default())) } else { Err(unknown(name, String::new())) }
        }

        fn offers(&self) -> Vec<Offer> {
            let offer = |(name, known): &(&str, &str)| Offer {
                name: (*name).to_owned(),
                facts: Catalog::built_in().find(known, |_| true).unwrap().clone(),
                first_piece: None,
                resting: None,
                retired: *name == "old/gpt-4",
                by_key: false,
            };
            self.0.iter().map(offer).collect()
        }
    }

    const SHELF: Shelf = Shelf(&[
        ("anthropic/claude-opus-4-8", "anthropic/claude-opus-4-8"),
        ("work/gpt-5.4-mini", "openai/gpt-5.4-mini"),
        ("play/gpt-5.4-mini", "openai/gpt-5.4-mini"),
        ("deepseek/deepseek-flash", "deepseek/deepseek-flash"),
        ("old/gpt-4", "openai/gpt-4"),
    ]);

    fn wanted(model: &str, fallbacks: &[&str], strategy: Option<Strategy>) -> Wanted {
        let fallbacks = fallbacks.iter().map(|name| (*name).to_owned()).collect();
        Wanted { model: model.to_owned(), fallbacks, strategy }
    }

    fn lined_up(wanted: &Wanted) -> Result<Vec<String>, String> {
        let found = lineup(&SHELF, wanted, "demo/guide", &Needs::default()).map_err(|error| error.to_string())?;
        Ok(std::iter::once(found.model).chain(found.fallbacks).collect())
    }

    #[test]
    fn a_bare_name_is_enough_where_it_means_one_model() {
        assert_eq!(lined_up(&wanted("deepseek-flash", &[], None)).unwrap(), ["deepseek/deepseek-flash"]);
        assert_eq!(
            lined_up(&wanted("gpt-5.4-mini", &[], None)).unwrap_err(),
            "model `gpt-5.4-mini` is not known: it may be work/gpt-5.4-mini, play/gpt-5.4-mini"
        );
        assert_eq!(lined_up(&wanted("default", &[], None)).unwrap(), ["demo/guide"]);
    }

    #[test]
    fn a_provider_is_known_by_the_words_of_others_where_none_here_is_called_like_that() {
        const ANY: &str = "deepseek/deepseek-flash";
        let shelf = Shelf(&[
            ("gemini/x", ANY),
            ("vertex/x", ANY),
            ("together/org/x", ANY),
            ("fireworks/x", ANY),
            ("azure/x", ANY),
            ("ollama/x", ANY),
            ("custom/x", ANY),
        ]);
        for (written, ours) in [
            ("google/x", "gemini/x"),
            ("vertex_ai/x", "vertex/x"),
            ("together_ai/org/x", "together/org/x"),
            ("fireworks_ai/x", "fireworks/x"),
            ("azure_ai/x", "azure/x"),
            ("ollama_chat/x", "ollama/x"),
            ("custom/x", "custom/x"),
        ] {
            let found = lineup(&shelf, &wanted(written, &[], None), "demo/guide", &Needs::default()).unwrap();
            assert_eq!(found.model, ours, "{written}");
        }
        assert!(lined_up(&wanted("google/x", &[], None)).unwrap_err().contains("`google/x`"));
    }

    #[test]
    fn those_that_stand_in_are_the_ones_that_are_here_each_once() {
        let named = wanted("deepseek-flash", &["nowhere/x", "deepseek/deepseek-flash", "work/gpt-5.4-mini"], None);
        assert_eq!(lined_up(&named).unwrap(), ["deepseek/deepseek-flash", "work/gpt-5.4-mini"]);
    }

    #[test]
    fn a_strategy_chooses_and_names_others_of_other_providers() {
        let cheap = lined_up(&wanted("auto", &[], Some(Strategy::Cheapest))).unwrap();
        assert_eq!(cheap[0], "deepseek/deepseek-flash");
        assert_eq!(cheap.len(), 4, "one of each of the other providers: {cheap:?}");
        let balanced = lined_up(&wanted("auto", &[], None)).unwrap();
        assert_eq!(balanced, lined_up(&wanted("auto", &[], Some(Strategy::Balanced))).unwrap());
        let own = lined_up(&wanted("auto", &["work/gpt-5.4-mini"], Some(Strategy::Cheapest))).unwrap();
        assert_eq!(
            own,
            ["deepseek/deepseek-flash", "work/gpt-5.4-mini"],
            "those that are named stand in, and no others"
        );
        let none = lineup(&Shelf(&[]), &wanted("auto", &[], Some(Strategy::Cheapest)), "demo/guide", &Needs::default());
        assert_eq!(none.unwrap().model, "demo/guide", "where there is nothing to choose from");
        let images = Needs { images: true, structured: true, input: 90_000_000, ..Needs::default() };
        assert!(lineup(&SHELF, &wanted("auto", &[], Some(Strategy::Cheapest)), "demo/guide", &images).is_err());
    }

    #[test]
    fn a_retired_model_is_asked_where_it_is_named_and_chosen_by_nothing() {
        assert_eq!(lined_up(&wanted("gpt-4", &[], None)).unwrap(), ["old/gpt-4"], "its provider decides");
        let stands_in = wanted("deepseek-flash", &["old/gpt-4", "work/gpt-5.4-mini"], None);
        assert_eq!(lined_up(&stands_in).unwrap(), ["deepseek/deepseek-flash", "work/gpt-5.4-mini"]);
        for strategy in Strategy::ALL {
            let chosen = lined_up(&wanted("auto", &[], Some(strategy))).unwrap();
            assert!(!chosen.contains(&"old/gpt-4".to_owned()), "{strategy:?}: {chosen:?}");
        }
    }

    #[test]
    fn the_strategy_fallback_tries_all_providers_in_their_order() {
        let shelf = Shelf(&[
            ("mistral/mistral-large-4", "mistral/mistral-large-4"),
            ("groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-120b"),
            ("deepseek/deepseek-flash", "deepseek/deepseek-flash"),
            ("gemini/gemini-3.8-flash", "gemini/gemini-3.8-flash"),
            ("openai/gpt-6-sol", "openai/gpt-6-sol"),
            ("anthropic/claude-opus-5", "anthropic/claude-opus-5"),
        ]);
        let order = |strategy| {
            let found = lineup(&shelf, &wanted("auto", &[], Some(strategy)), "demo/guide", &Needs::default()).unwrap();
            let all = std::iter::once(found.model).chain(found.fallbacks);
            all.filter_map(|name| name.split('/').next().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(order(Strategy::Fallback), ["anthropic", "openai", "gemini", "deepseek", "groq", "mistral"]);
        assert_eq!(order(Strategy::Smartest).len(), 1 + CHOSEN_STAND_INS);
    }

    #[test]
    fn a_model_that_is_named_is_asked_alone_whatever_the_strategy() {
        let named = wanted("work/gpt-5.4-mini", &[], Some(Strategy::Smartest));
        assert_eq!(lined_up(&named).unwrap(), ["work/gpt-5.4-mini"]);
        assert_eq!(lined_up(&wanted("default", &[], Some(Strategy::Smartest))).unwrap(), ["demo/guide"]);
    }
}
