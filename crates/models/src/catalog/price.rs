//! Prices by class of token, and what a use costs. Whole numbers: a price is so many millionths of a micro-dollar for a
//! token, so that a dollar for a million tokens is a million of them.

use adjutant_core::money::{MicroUsd, TokenUsage};

/// Millionths of a micro-dollar for one token; the number of micro-dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// Digits after the point that a price may have.
    const DIGITS: usize = 6;

    /// Reads dollars for a million tokens, exactly.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > Self::DIGITS {
            return None;
        }
        let part: u64 = format!("{part:0<6}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part).map(Self)
    }

    /// Dollars for a million tokens.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "display only; sums are kept as integers")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// What each class of token costs; none is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PriceTier {
    /// Input that is read for the first time.
    pub input: Option<Rate>,
    /// Input from the provider's cache.
    pub cached: Option<Rate>,
    /// Input that is put into the cache.
    pub cache_write: Option<Rate>,
    /// Output.
    pub output: Option<Rate>,
    /// Reasoning, where it is not priced as output.
    pub reasoning: Option<Rate>,
}

impl PriceTier {
    /// The sum, in millionths of a micro-dollar. A class without a price of its own costs what the class it is part of
    /// costs; one that is used and has no price at all makes the sum unknown.
    fn sum(&self, usage: &TokenUsage) -> Option<u128> {
        let cached = usage.cached.min(usage.input);
        let written = usage.cache_write.min(usage.input - cached);
        let fresh = usage.input - cached - written;
        let reasoning = usage.reasoning.min(usage.output);
        let classes = [
            (fresh, self.input),
            (cached, self.cached.or(self.input)),
            (written, self.cache_write.or(self.input)),
            (usage.output - reasoning, self.output),
            (reasoning, self.reasoning.or(self.output)),
        ];
        classes
            .into_iter()
            .filter(|(tokens, _)| *tokens > 0)
            .try_fold(0_u128, |sum, (tokens, rate)| Some(sum + u128::from(tokens) * u128::from(rate?.0)))
    }

    fn most(&self, input: u64, output: u64) -> Option<u128> {
        // What there is none of needs no price: embeddings have no output.
        let most = |tokens: u64, rate: Option<Rate>, other: Option<Rate>| match tokens {
            0 => Some(0),
            _ => rate.map(|rate| u128::from(tokens) * u128::from(other.map_or(rate, |other| other.max(rate)).0)),
        };
        Some(most(input, self.input, self.cache_write)? + most(output, self.output, self.reasoning)?)
    }
}

/// The prices of a model, which may rise for long requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prices {
    /// As a rule.
    pub base: PriceTier,
    /// For requests with more input tokens than this, longest first.
    pub over: Vec<(u64, PriceTier)>,
}

impl Prices {
    /// Those of a model that costs nothing.
    #[must_use]
    pub fn nothing() -> Self {
        let nothing = Some(Rate(0));
        Self { base: PriceTier { input: nothing, output: nothing, ..PriceTier::default() }, over: Vec::new() }
    }

    /// The same at so many hundredths, rounded up.
    #[must_use]
    pub(crate) fn at_percent(self, percent: u64) -> Self {
        if percent == 100 {
            return self;
        }
        let rate = |rate: Option<Rate>| rate.map(|rate| Rate(rate.0.saturating_mul(percent).div_ceil(100)));
        let tier = |tier: PriceTier| PriceTier {
            input: rate(tier.input),
            cached: rate(tier.cached),
            cache_write: rate(tier.cache_write),
            output: rate(tier.output),
            reasoning: rate(tier.reasoning),
        };
        Self { base: tier(self.base), over: self.over.into_iter().map(|(over, at)| (over, tier(at))).collect() }
    }

    /// All of it as one text: what differs in anything differs in it.
    pub(crate) fn written(&self) -> String {
        let tiers = std::iter::once((0, self.base)).chain(self.over.iter().copied());
        let line = |(over, tier): (u64, PriceTier)| {
            let PriceTier { input, cached, cache_write, output, reasoning } = tier;
            let rates = [input, cached, cache_write, output, reasoning];
            let rates = rates.map(|rate| rate.map_or_else(|| "-".to_owned(), |rate| rate.0.to_string()));
            format!("{over} {}\n", rates.join(" "))
        };
        tiers.map(line).collect()
    }

    /// What a use costs, rounded up; none where a price is not known.
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> Option<MicroUsd> {
        self.tier(usage.input).sum(usage).map(micros)
    }

    /// The most a call with so much input and output can cost.
    #[must_use]
    pub fn bound(&self, input: u64, output: u64) -> Option<MicroUsd> {
        let reached = self.over.iter().filter(|(over, _)| input > *over).map(|(_, tier)| tier);
        let mut most = self.base.most(input, output)?;
        for tier in reached {
            most = most.max(tier.most(input, output)?);
        }
        Some(micros(most))
    }

    /// Whether a call can be priced at all.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.base.input.is_some()
    }

    fn tier(&self, input: u64) -> &PriceTier {
        let reached = self.over.iter().filter(|(over, _)| input > *over).max_by_key(|(over, _)| *over);
        reached.map_or(&self.base, |(_, tier)| tier)
    }
}

fn micros(sum: u128) -> MicroUsd {
    MicroUsd(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// An amount and the state of the prices it was reckoned with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    /// How much.
    pub amount: MicroUsd,
    /// By which prices.
    pub version: String,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tier(input: &str, cached: &str, cache_write: &str, output: &str) -> PriceTier {
        let rate = |text: &str| Rate::parse(text);
        PriceTier {
            input: rate(input),
            cached: rate(cached),
            cache_write: rate(cache_write),
            output: rate(output),
            reasoning: None,
        }
    }

    #[test]
    fn prices_are_read_exactly() {
        assert_eq!(Rate::parse("0.003625"), Some(Rate(3625)));
        assert_eq!(Rate::parse("18.75"), Some(Rate(18_750_000)));
        assert_eq!(Rate::parse("0"), Some(Rate(0)));
        for bad in ["", "-", "-1", ".5", "1.1234567", "1e3", "99999999999999999999"] {
            assert_eq!(Rate::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn each_class_of_tokens_has_its_price() {
        let prices = Prices { base: tier("3", "0.3", "3.75", "15"), over: Vec::new() };
        let usage =
            TokenUsage { input: 1_000_000, output: 100_000, cached: 600_000, reasoning: 0, cache_write: 200_000 };
        assert_eq!(prices.cost(&usage), Some(MicroUsd(600_000 + 180_000 + 750_000 + 1_500_000)));
        let one = TokenUsage { cached: 1, input: 1, ..TokenUsage::default() };
        assert_eq!(prices.cost(&one), Some(MicroUsd(1)), "a part of a micro-dollar is a whole one");
    }

    #[test]
    fn what_has_no_price_makes_the_cost_unknown_and_never_nothing() {
        let usage = TokenUsage { input: 10, output: 10, ..TokenUsage::default() };
        assert_eq!(Prices::default().cost(&usage), None);
        let half = Prices { base: tier("1", "-", "-", "-"), over: Vec::new() };
        assert_eq!((half.cost(&usage), half.bound(10, 10)), (None, None));
        assert_eq!(half.bound(10, 0), Some(MicroUsd(10)), "what there is none of needs no price");
        let cached = TokenUsage { input: 10, cached: 10, ..TokenUsage::default() };
        assert_eq!(half.cost(&cached), Some(MicroUsd(10)), "cached input costs at the most what fresh input does");
        assert_eq!(Prices::default().cost(&TokenUsage::default()), Some(MicroUsd::ZERO), "no use costs nothing");
    }

    #[test]
    fn long_requests_have_prices_of_their_own() {
        let prices = Prices { base: tier("1", "-", "-", "2"), over: vec![(200_000, tier("2", "-", "-", "4"))] };
        let usage = |input| TokenUsage { input, ..TokenUsage::default() };
        assert_eq!(prices.cost(&usage(200_000)), Some(MicroUsd(200_000)));
        assert_eq!(prices.cost(&usage(200_001)), Some(MicroUsd(400_002)));
    }

    proptest! {
        #[test]
        fn no_use_costs_more_than_its_bound(
            input in 0_u64..1_000_000, output in 0_u64..200_000,
            cached in 0_u64..1_500_000, cache_write in 0_u64..1_500_000, reasoning in 0_u64..300_000,
        ) {
            let mut base = tier("3", "0.3", "3.75", "15");
            base.reasoning = Rate::parse("20");
            let prices = Prices { base, over: vec![(200_000, tier("6", "0.6", "7.5", "22.5"))] };
            let usage = TokenUsage { input, output, cached, reasoning, cache_write };
            prop_assert!(prices.cost(&usage) <= prices.bound(input, output));
        }
    }
}
