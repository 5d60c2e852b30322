//! Which model an agent asks for: by name, several in order, or by a strategy that chooses.

use serde::{Deserialize, Serialize};

/// How to choose a model where the agent leaves the choice open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The lowest cost of a call like the one expected.
    Cheapest,
    /// The shortest measured time to the first piece of an answer.
    Fastest,
    /// The best grade.
    Smartest,
    /// Grade and cost, each by its place among the others.
    Balanced,
    /// The order of providers in which they stand in for each other.
    Fallback,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cheapest, Self::Fastest, Self::Smartest, Self::Balanced, Self::Fallback];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Fastest => "fastest",
            Self::Smartest => "smartest",
            Self::Balanced => "balanced",
            Self::Fallback => "fallback",
        }
    }

    /// The strategy with this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.word() == word)
    }
}

/// What a person writes under `model`: a name, a strategy, or several names of which the later stand in for the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ModelChoice {
    /// `default`, `auto`, a strategy, a bare name or `provider/model`.
    One(String),
    /// The first, and those that may stand in for it, in order.
    InOrder(Vec<String>),
}

impl From<&str> for ModelChoice {
    fn from(name: &str) -> Self {
        Self::One(name.to_owned())
    }
}

/// The model of agents that name none.
pub const DEFAULT: &str = "default";
/// The model of agents that leave the choice to a strategy.
pub const AUTO: &str = "auto";
/// Models that may stand in for one at the most: more would only make a failure slower.
pub const STAND_INS: usize = 8;

/// What an agent asks for, put in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// `default`, `auto`, a bare name or `provider/model`.
    pub model: String,
    /// Those that may stand in for it, in order.
    pub fallbacks: Vec<String>,
    /// How to choose where the model is `auto`; otherwise it means nothing.
    pub strategy: Option<Strategy>,
}

impl Wanted {
    /// How to choose, where the choice is left open.
    #[must_use]
    pub fn open(&self) -> Option<Strategy> {
        (self.model == AUTO).then(|| self.strategy.unwrap_or(Strategy::Balanced))
    }

    /// Puts together what may be written in three places.
    ///
    /// # Errors
    /// The field that cannot be used, and what would be right.
    pub fn of(
        choice: Option<ModelChoice>,
        fallbacks: Option<Vec<String>>,
        routing: Option<Strategy>,
    ) -> Result<Self, (&'static str, &'static str)> {
        let mut names = match choice {
            None => vec![DEFAULT.to_owned()],
            Some(ModelChoice::One(name)) => vec![name],
            Some(ModelChoice::InOrder(names)) => names,
        };
        names.extend(fallbacks.unwrap_or_default());
        let mut names = names.into_iter();
        let Some(mut model) = names.next() else { return Err(("model", "name at least one model")) };
        let fallbacks: Vec<_> = names.collect();
        let strategy = Strategy::of(&model).or(routing);
        if Strategy::of(&model).is_some() {
            AUTO.clone_into(&mut model);
        }
        let is_name =
            |name: &String| !name.trim().is_empty() && name.len() <= 200 && !name.contains(char::is_whitespace);
        if !is_name(&model) {
            return Err(("model", "write a model, a list of models, auto, a strategy, or default"));
        }
        let usable = |name: &String| is_name(name) && name != AUTO && Strategy::of(name).is_none();
        if fallbacks.len() > STAND_INS || !fallbacks.iter().all(usable) {
            return Err(("fallback_models", "name up to 8 models"));
        }
        Ok(Self { model, fallbacks, strategy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_list_is_a_model_and_those_that_stand_in_for_it() {
        let listed = ModelChoice::InOrder(names(&["a/one", "b/two"]));
        let wanted = Wanted::of(Some(listed), Some(names(&["c/three"])), None).unwrap();
        assert_eq!((wanted.model.as_str(), wanted.fallbacks), ("a/one", names(&["b/two", "c/three"])));
    }

    #[test]
    fn a_strategy_leaves_the_model_open() {
        let wanted = Wanted::of(Some("cheapest".into()), None, None).unwrap();
        assert_eq!((wanted.model.as_str(), wanted.open()), (AUTO, Some(Strategy::Cheapest)));
        let auto = Wanted::of(Some("auto".into()), None, Some(Strategy::Fastest)).unwrap();
        assert_eq!(auto.open(), Some(Strategy::Fastest));
        assert_eq!(Wanted::of(Some("auto".into()), None, None).unwrap().open(), Some(Strategy::Balanced));
        for named in [Some("a/one".into()), None] {
            let named = Wanted::of(named, None, Some(Strategy::Cheapest)).unwrap();
            assert_eq!((named.open(), named.strategy), (None, Some(Strategy::Cheapest)), "{}", named.model);
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        assert_eq!(Wanted::of(Some("".into()), None, None).unwrap_err().0, "model");
        assert_eq!(Wanted::of(Some(ModelChoice::InOrder(vec![])), None, None).unwrap_err().0, "model");
        for bad in [names(&["cheapest"]), names(&["auto"]), names(&["x"; 9]), names(&["a b"])] {
            assert_eq!(Wanted::of(None, Some(bad), None).unwrap_err().0, "fallback_models");
        }
    }
}
