//! Chooses a model where the agent leaves the choice open. Pure: what is known comes in, the choice and the reasons for it
//! come out as data.

use std::time::Duration;

use adjutant_core::money::MicroUsd;
use adjutant_core::options::{Abilities, Ability};
pub use adjutant_core::routing::Strategy;
use serde::Serialize;

use crate::catalog::ModelFacts;
use crate::source::Offer;
use crate::vendor::VENDORS;

/// What the model has to be able to do, and what a call is expected to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each need is there or not, whatever the others are")]
pub struct Needs {
    /// Call tools.
    pub tools: bool,
    /// See images.
    pub images: bool,
    /// Keep to a schema.
    pub structured: bool,
    /// Reason.
    pub reasoning: bool,
    /// Tokens of input that are expected; the window has to hold them and the output.
    pub input: u64,
    /// Tokens of output that are expected.
    pub output: u64,
}

impl Default for Needs {
    fn default() -> Self {
        Self { tools: false, images: false, structured: false, reasoning: false, input: 4000, output: 1000 }
    }
}

impl Needs {
    /// The same, and able to do all this.
    #[must_use]
    pub fn and(self, abilities: &Abilities) -> Self {
        let asked = |ability| abilities.contains(&ability);
        Self {
            tools: self.tools || asked(Ability::Tools),
            images: self.images || asked(Ability::Images),
            structured: self.structured || asked(Ability::Structured),
            reasoning: self.reasoning || asked(Ability::Reasoning),
            ..self
        }
    }

    /// Whether the model has to be able to do anything but talk.
    const fn something(&self) -> bool {
        self.tools || self.images || self.structured || self.reasoning
    }
}

/// A model that might be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// `provider/model`, the provider by its name here.
    pub name: &'a str,
    /// What is known about it.
    pub facts: &'a ModelFacts,
    /// How fast it has been.
    pub first_piece: Option<Duration>,
    /// How long its provider is still left alone.
    pub resting: Option<Duration>,
    /// Whether its provider does not serve it any more.
    pub retired: bool,
}

impl<'a> Candidate<'a> {
    /// What is offered, as a candidate.
    #[must_use]
    pub fn of(offer: &'a Offer) -> Self {
        let Offer { name, facts, first_piece, resting, retired, .. } = offer;
        Self { name, facts, first_piece: *first_piece, resting: *resting, retired: *retired }
    }
}

/// Why a model was not considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Lack {
    /// It calls no tools.
    Tools,
    /// It sees no images.
    Images,
    /// It cannot be held to a schema.
    Structured,
    /// It does not reason.
    Reasoning,
    /// It does not talk.
    Talk,
    /// Nobody knows what it can do.
    Unknown,
    /// Its provider does not serve it any more.
    Retired,
    /// What is expected does not fit its window or its longest output.
    Room {
        /// Tokens that are needed.
        needed: u64,
        /// Tokens there are.
        has: u64,
    },
    /// Its provider failed lately.
    Resting {
        /// Seconds until it is tried again.
        seconds: u64,
    },
}

/// A model in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ranked {
    /// `provider/model`.
    pub model: String,
    /// Its grade from 1 to 10.
    pub grade: u8,
    /// What the expected call costs, none where the price is not known.
    pub cost_microusd: Option<u64>,
    /// How fast it has been, none where nobody measured.
    pub first_piece_ms: Option<u64>,
    /// What the order was made by; the lowest comes first.
    pub points: u64,
}

/// A choice with its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// The model to use.
    pub model: String,
    /// How it was chosen.
    pub strategy: Strategy,
    /// All that could have been chosen, best first.
    pub ranked: Vec<Ranked>,
    /// All that could not, and what they lack.
    pub left_out: Vec<LeftOut>,
}

/// A model that could not be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// `provider/model`.
    pub model: String,
    /// Why.
    #[serde(flatten)]
    pub lack: Lack,
}

/// Nothing can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize)]
#[error("no model fits: {} were looked at and each lacks something", left_out.len())]
pub struct NoChoice {
    /// What each lacks.
    pub left_out: Vec<LeftOut>,
}

/// Chooses.
///
/// # Errors
/// When no candidate can do what is needed.
pub fn choose(candidates: &[Candidate<'_>], needs: &Needs, strategy: Strategy) -> Result<Choice, NoChoice> {
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for candidate in candidates {
        match lack(candidate, needs) {
            Some(lack) => left_out.push(LeftOut { model: candidate.name.to_owned(), lack }),
            None => fit.push(candidate),
        }
    }
    let costs: Vec<_> = fit.iter().map(|candidate| cost(candidate, needs)).collect();
    let mut ranked: Vec<_> = fit
        .iter()
        .zip(&costs)
        .map(|(candidate, cost)| {
            let facts = candidate.facts;
            Ranked {
                model: candidate.name.to_owned(),
                grade: facts.grade,
                cost_microusd: cost.map(|cost| cost.0),
                first_piece_ms: candidate.first_piece.map(millis),
                points: points(candidate, *cost, &fit, &costs, strategy),
            }
        })
        .collect();
    // What is equal in points is ordered by cost, then grade, then name, so that the same facts give the same choice.
    ranked.sort_by(|a, b| {
        let key =
            |ranked: &Ranked| (ranked.points, ranked.cost_microusd.unwrap_or(u64::MAX), 10 - ranked.grade.min(10));
        key(a).cmp(&key(b)).then_with(|| a.model.cmp(&b.model))
    });
    match ranked.first() {
        Some(best) => Ok(Choice { model: best.model.clone(), strategy, ranked, left_out }),
        None => Err(NoChoice { left_out }),
    }
}

fn lack(candidate: &Candidate<'_>, needs: &Needs) -> Option<Lack> {
    let abilities = candidate.facts.abilities;
    let room = |needed: u64, has: Option<u64>| has.filter(|has| needed > *has).map(|has| Lack::Room { needed, has });
    let lacking = [
        (candidate.retired, Lack::Retired),
        (abilities.embeds, Lack::Talk),
        (abilities.unknown && needs.something(), Lack::Unknown),
        (needs.tools && !abilities.tools, Lack::Tools),
        (needs.images && !abilities.images, Lack::Images),
        (needs.structured && !abilities.structured, Lack::Structured),
        (needs.reasoning && !abilities.reasoning, Lack::Reasoning),
    ];
    lacking
        .into_iter()
        .find_map(|(lacks, lack)| lacks.then_some(lack))
        .or_else(|| room(needs.input.saturating_add(needs.output), candidate.facts.window))
        .or_else(|| room(needs.output, candidate.facts.longest_output))
        .or_else(|| candidate.resting.map(|left| Lack::Resting { seconds: left.as_secs().max(1) }))
}

fn cost(candidate: &Candidate<'_>, needs: &Needs) -> Option<MicroUsd> {
    candidate.facts.prices.bound(needs.input, needs.output)
}

/// What the order is made by: the lowest comes first. What is not known comes after all that is.
fn points(
    candidate: &Candidate<'_>,
    own_cost: Option<MicroUsd>,
    fit: &[&Candidate<'_>],
    costs: &[Option<MicroUsd>],
    strategy: Strategy,
) -> u64 {
    let worse_grade = |grade: u8| u64::from(10 - grade.min(10));
    match strategy {
        Strategy::Cheapest => own_cost.map_or(u64::MAX, |cost| cost.0),
        Strategy::Fastest => candidate.first_piece.map_or(u64::MAX, millis),
        Strategy::Smartest => worse_grade(candidate.facts.grade),
        Strategy::Balanced => {
            let key = |cost: Option<MicroUsd>| cost.map_or(u64::MAX, |cost| cost.0);
            let cheaper = costs.iter().filter(|cost| key(**cost) < key(own_cost)).count();
            let smarter = fit.iter().filter(|other| other.facts.grade > candidate.facts.grade).count();
            (cheaper + smarter) as u64
        }
        Strategy::Fallback => {
            let provider = &candidate.facts.provider;
            let at = VENDORS.iter().position(|vendor| vendor.kind == provider).unwrap_or(VENDORS.len());
            at as u64 * 100 + worse_grade(candidate.facts.grade)
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalog;

    fn candidate(name: &str) -> Candidate<'static> {
        let facts = Catalog::built_in().find(name, |_| true).unwrap();
        Candidate { name: facts.name().leak(), facts, first_piece: None, resting: None, retired: false }
    }

    fn order(candidates: &[Candidate<'_>], needs: &Needs, strategy: Strategy) -> Vec<String> {
        choose(candidates, needs, strategy).unwrap().ranked.into_iter().map(|ranked| ranked.model).collect()
    }

    const OPUS: &str = "anthropic/claude-opus-4-8";
    const MINI: &str = "openai/gpt-5.4-mini";
    const FLASH: &str = "gemini/gemini-3.1-flash-lite";
    const CHAT: &str = "fireworks/accounts/fireworks/models/deepseek-v4-flash";
    const SONAR: &str = "perplexity/sonar";

    #[test]
    fn each_strategy_orders_by_what_it_is_named_for() {
        let mut all = [OPUS, MINI, FLASH, CHAT].map(candidate);
        let needs = Needs::default();
        assert_eq!(order(&all, &needs, Strategy::Cheapest), [CHAT, FLASH, MINI, OPUS]);
        assert_eq!(order(&all, &needs, Strategy::Smartest), [OPUS, MINI, CHAT, FLASH]);
        assert_eq!(order(&all, &needs, Strategy::Fallback), [OPUS, MINI, FLASH, CHAT]);
        all[0].first_piece = Some(Duration::from_millis(300));
        all[1].first_piece = Some(Duration::from_millis(200));
        assert_eq!(order(&all, &needs, Strategy::Fastest), [MINI, OPUS, CHAT, FLASH], "unmeasured come last");
        assert_eq!(order(&all, &needs, Strategy::Balanced)[0], CHAT);
    }

    #[test]
    fn what_a_model_lacks_is_said() {
        let mut all =
            ["openai/text-embedding-3-small", SONAR, "groq/qwen/qwen3-32b", MINI, OPUS].map(candidate).to_vec();
        all[4].resting = Some(Duration::from_secs(12));
        all.push(Candidate { retired: true, ..candidate("openai/gpt-4.1-nano") });
        let needs = Needs { tools: true, images: true, ..Needs::default() };
        let choice = choose(&all, &needs, Strategy::Cheapest).unwrap();
        assert_eq!(choice.model, MINI);
        assert_eq!(
            serde_json::to_value(&choice.left_out).unwrap(),
            json!([
                {"model": "openai/text-embedding-3-small", "reason": "talk"},
                {"model": SONAR, "reason": "tools"},
                {"model": "groq/qwen/qwen3-32b", "reason": "images"},
                {"model": OPUS, "reason": "resting", "seconds": 12},
                {"model": "openai/gpt-4.1-nano", "reason": "retired"},
            ])
        );
        let long = Needs { input: 300_000, output: 200_000, ..Needs::default() };
        let none = choose(&all[3..4], &long, Strategy::Cheapest).unwrap_err();
        assert_eq!(none.left_out[0].lack, Lack::Room { needed: 500_000, has: 400_000 });
    }

    #[test]
    fn an_unknown_price_is_never_the_cheapest() {
        let all = [SONAR, OPUS].map(candidate);
        let choice = choose(&all, &Needs::default(), Strategy::Cheapest).unwrap();
        assert_eq!(choice.model, OPUS);
        assert_eq!(choice.ranked[1].cost_microusd, None);
    }

    #[test]
    fn every_strategy_has_its_word() {
        assert!(Strategy::ALL.into_iter().all(|strategy| Strategy::of(strategy.word()) == Some(strategy)));
        assert_eq!(Strategy::of("best"), None);
    }
}
