//! What is known about models: windows, abilities and prices. The built-in table is a file of this crate; a document in the
//! form of models.dev can be laid over it. What is not known is unknown, never nothing.

mod import;
mod parse;
mod price;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use adjutant_core::content::Hash;
use jiff::civil::Date;

pub use self::import::BadDocument;
pub use self::price::{Cost, PriceTier, Prices, Rate};
use crate::vendor::{BEDROCK_REGIONS, Vendor};

/// The table that comes with the program.
const TABLE: &str = include_str!("../../catalog.txt");
/// The version of prices that no provider made.
const BUILT_IN_PRICES: &str = "built-in";
/// The version of prices of what nobody is asked to pay for.
const FREE: &str = "free";
/// Letters of a hash that tell one state of prices from another.
const VERSION_LETTERS: usize = 8;
/// The grade of a model nobody graded.
const MIDDLE_GRADE: u8 = 5;

/// The version of prices that somebody brought: whose they are, and enough of a hash to tell which were meant.
#[must_use]
pub fn version(whose: &str, prices: &[u8]) -> String {
    let hash = Hash::of(prices).to_string();
    format!("{whose}-{}", &hash[..VERSION_LETTERS])
}

/// What a model can do beyond text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each ability is there or not, whatever the others are")]
pub struct Abilities {
    /// It calls tools.
    pub tools: bool,
    /// It sees images.
    pub images: bool,
    /// It reads documents.
    pub documents: bool,
    /// It hears.
    pub audio: bool,
    /// It sees films.
    pub video: bool,
    /// It reasons before it answers.
    pub reasoning: bool,
    /// It can be held to a schema.
    pub structured: bool,
    /// It refuses to be given a temperature.
    pub fixed_temperature: bool,
    /// It makes vectors and does not talk.
    pub embeds: bool,
    /// Its answers come in one piece; where nobody says so, they come in pieces.
    pub whole: bool,
    /// Nobody said what it can do: whoever names it is believed, and no strategy chooses it for a need.
    pub unknown: bool,
}

/// What is known about one model of one provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// The kind of provider.
    pub provider: String,
    /// The provider's name for the model.
    pub model: String,
    /// Tokens of question and answer together.
    pub window: Option<u64>,
    /// Tokens of an answer at the most.
    pub longest_output: Option<u64>,
    /// What it can do.
    pub abilities: Abilities,
    /// What it costs.
    pub prices: Prices,
    /// A rough grade from 1 to 10, our own judgement.
    pub grade: u8,
    /// The day from which its provider does not serve it any more, be it still to come.
    pub retired: Option<Date>,
    /// The state its prices are of.
    pub version: String,
}

impl ModelFacts {
    /// A model that calls tools and costs nothing.
    #[must_use]
    pub fn free(provider: &str, model: &str) -> Self {
        let abilities = Abilities { tools: true, ..Abilities::default() };
        Self { abilities, ..Self::unknown(provider, model).costing(Prices::nothing(), BUILT_IN_PRICES) }
    }

    /// A model of which nothing is known.
    #[must_use]
    pub fn unknown(provider: &str, model: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: model.to_owned(),
            window: None,
            longest_output: None,
            abilities: Abilities { unknown: true, ..Abilities::default() },
            prices: Prices::default(),
            grade: MIDDLE_GRADE,
            retired: None,
            version: String::new(),
        }
    }

    /// The same at these prices.
    #[must_use]
    pub fn costing(self, prices: Prices, version: &str) -> Self {
        Self { prices, version: version.to_owned(), ..self }
    }

    /// The same where it runs on a server that asks nobody for a key, and so sends nobody a bill.
    #[must_use]
    pub fn free_without_key(self) -> Self {
        self.costing(Prices::nothing(), FREE)
    }

    /// Whether it costs nothing only as long as it is called without a key.
    #[must_use]
    pub fn is_free_without_key(&self) -> bool {
        self.version == FREE
    }

    /// Whether it is known to see no images.
    #[must_use]
    pub const fn is_blind(&self) -> bool {
        !self.abilities.unknown && !self.abilities.images
    }

    /// The day on which its provider stopped serving it, where that day has come.
    #[must_use]
    pub fn retired_by(&self, today: Date) -> Option<Date> {
        self.retired.filter(|day| *day <= today)
    }

    /// `provider/model`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Whether answers come in pieces: those of nearly all do that talk.
    #[must_use]
    pub const fn streams(&self) -> bool {
        !self.abilities.embeds && !self.abilities.whole
    }

    /// What a use of this model costs, if its prices are known.
    #[must_use]
    pub fn cost(&self, usage: &adjutant_core::money::TokenUsage) -> Option<Cost> {
        let amount = self.prices.cost(usage)?;
        Some(Cost { amount, version: self.version.clone() })
    }
}

/// Why no model was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// Nobody has it.
    #[error("model `{0}` is not in the catalog")]
    Unknown(String),
    /// Several providers have one of this name.
    #[error("model `{name}` is offered by several providers: {}", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it may mean, sorted.
        candidates: Vec<String>,
    },
}

/// What is known about models.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Catalog {
    version: String,
    models: BTreeMap<(String, String), ModelFacts>,
}

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| parse::table(TABLE).unwrap_or_default());

impl Catalog {
    /// The table that comes with the program.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Which state of the world the table is of.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All models, by provider and name.
    pub fn models(&self) -> impl Iterator<Item = &ModelFacts> {
        self.models.values()
    }

    /// The kind under which the models of a provider are listed.
    #[must_use]
    pub fn kind_of(provider: &str) -> &str {
        let provider = Vendor::of(provider).map_or(provider, |vendor| vendor.kind);
        // The responses protocol is another door to the same models.
        if provider == "openai-responses" { "openai" } else { provider }
    }

    /// The model of this provider with this name, be it the name of one of its dated states.
    #[must_use]
    pub fn get(&self, provider: &str, model: &str) -> Option<&ModelFacts> {
        let kind = Self::kind_of(provider);
        let exact = |name: &str| {
            let of = |kind: &str| self.models.get(&(kind.to_owned(), name.to_owned()));
            // Azure rents out the same models, at the same prices.
            of(kind).or_else(|| if kind == "azure" { of("openai") } else { None })
        };
        let model = if kind == "bedrock" { without_region(model) } else { model };
        exact(model).or_else(|| undated(model).and_then(exact))
    }

    /// The model a person means: `provider/model`, or its bare name where one provider of those allowed has it.
    ///
    /// # Errors
    /// When nobody has it, or several do: then with what it may mean.
    pub fn find(&self, name: &str, allowed: impl Fn(&str) -> bool) -> Result<&ModelFacts, NotFound> {
        let exact = name.split_once('/').and_then(|(provider, model)| self.get(provider, model));
        if let Some(facts) = exact.filter(|facts| allowed(&facts.provider)) {
            return Ok(facts);
        }
        let is_meant = |facts: &&ModelFacts| {
            let short = facts.model.rsplit_once('/').map_or(facts.model.as_str(), |(_, short)| short);
            (facts.model == name || short == name) && allowed(&facts.provider)
        };
        let mut found = self.models().filter(is_meant);
        match (found.next(), found.next()) {
            (None, _) => Err(NotFound::Unknown(name.to_owned())),
            (Some(facts), None) => Ok(facts),
            (Some(first), Some(second)) => {
                let candidates = [first, second].into_iter().chain(found).map(ModelFacts::name).collect();
                Err(NotFound::Ambiguous { name: name.to_owned(), candidates })
            }
        }
    }

    /// Notes a model of which only its name is known, and perhaps its size; what is known of it stays.
    pub(crate) fn note(&mut self, provider: &str, model: &str, window: Option<u64>, longest_output: Option<u64>) {
        let key = (Self::kind_of(provider).to_owned(), model.to_owned());
        let facts = || ModelFacts { window, longest_output, ..ModelFacts::unknown(&key.0, &key.1) };
        self.models.entry(key.clone()).or_insert_with(facts);
    }

    /// Lays a document in the form of models.dev over this table: what it says about a model replaces what was known.
    ///
    /// # Errors
    /// When the document is not of that form; then nothing is taken from it.
    pub fn import(&mut self, document: &[u8], version: &str) -> Result<usize, BadDocument> {
        let found = import::read(document, version)?;
        let count = found.len();
        for mut facts in found {
            let key = (facts.provider.clone(), facts.model.clone());
            // Such a document says neither how good a model is nor until when there is one.
            if let Some(known) = self.models.get(&key) {
                (facts.grade, facts.retired) = (known.grade, known.retired);
            }
            self.models.insert(key, facts);
        }
        Ok(count)
    }
}

/// The name of one of Bedrock's models without the part of the world that answers, be it the long name of a profile.
fn without_region(model: &str) -> &str {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    name.split_once('.').filter(|(region, _)| BEDROCK_REGIONS.contains(region)).map_or(name, |(_, rest)| rest)
}

/// The name of a model without the day that its state is of: `-2026-11-17`, `-20261117` or `@20261117`.
pub(crate) fn undated(model: &str) -> Option<&str> {
    let at = |length: usize| model.len().checked_sub(length).and_then(|at| model.split_at_checked(at));
    let is_day = |day: &str| {
        let digits: String = day.chars().filter(char::is_ascii_digit).collect();
        digits.len() == 8 && digits.starts_with("20")
    };
    let long = at("-2026-11-17".len()).filter(|(_, day)| {
        let bytes = day.as_bytes();
        bytes[0] == b'-' && bytes[5] == b'-' && bytes[8] == b'-' && is_day(day)
    });
    let short = at("-20261117".len()).filter(|(_, day)| day.starts_with(['-', '@']) && is_day(day));
    long.or(short).map(|(name, _)| name).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
