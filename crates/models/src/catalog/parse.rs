//! Reads the built-in table. Strict: a line that is not understood makes the whole table unreadable, which a test would show.

use super::price::{PriceTier, Prices, Rate};
use super::{Abilities, Catalog, ModelFacts};

/// Reads the table.
///
/// # Errors
/// The first line that is not understood.
pub(super) fn table(text: &str) -> Result<Catalog, String> {
    let mut catalog = Catalog::default();
    let mut providers = Vec::new();
    let mut last = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let bad = || format!("line {}: {line}", number + 1);
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with('#') => {}
            ["version", version] => version.clone_into(&mut catalog.version),
            ["provider", ref names @ ..] if !names.is_empty() => {
                providers = names.iter().map(|name| (*name).to_owned()).collect();
            }
            ["over", over, ref prices @ ..] if !last.is_empty() => {
                let over = over.parse().map_err(|_| bad())?;
                let tier = tier(prices).ok_or_else(bad)?;
                for key in &last {
                    catalog.models.get_mut(key).ok_or_else(bad)?.prices.over.push((over, tier));
                }
            }
            [model, window, output, abilities, ref rest @ ..] if rest.len() >= 4 && !providers.is_empty() => {
                let (prices, extra) = rest.split_at(4);
                let facts = ModelFacts {
                    window: count(window).ok_or_else(bad)?,
                    longest_output: count(output).ok_or_else(bad)?,
                    abilities: able(abilities).ok_or_else(bad)?,
                    prices: Prices { base: tier(prices).ok_or_else(bad)?, over: Vec::new() },
                    version: catalog.version.clone(),
                    ..ModelFacts::unknown("", model)
                };
                let facts = with_extra(facts, extra).ok_or_else(bad)?;
                last.clear();
                for provider in &providers {
                    let key = (provider.clone(), model.to_owned());
                    let facts = ModelFacts { provider: provider.clone(), ..facts.clone() };
                    if catalog.models.insert(key.clone(), facts).is_some() {
                        return Err(bad());
                    }
                    last.push(key);
                }
            }
            [..] => return Err(bad()),
        }
    }
    Ok(catalog)
}

fn count(word: &str) -> Option<Option<u64>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}

fn rate(word: &str) -> Option<Option<Rate>> {
    if word == "-" { Some(None) } else { Rate::parse(word).map(Some) }
}

fn tier(words: &[&str]) -> Option<PriceTier> {
    let [input, cached, cache_write, output] = words else { return None };
    Some(PriceTier {
        input: rate(input)?,
        cached: rate(cached)?,
        cache_write: rate(cache_write)?,
        output: rate(output)?,
        reasoning: None,
    })
}

fn with_extra(mut facts: ModelFacts, words: &[&str]) -> Option<ModelFacts> {
    for pair in words.chunks(2) {
        match pair {
            ["smart", grade] => facts.grade = grade.parse().ok().filter(|grade| (1..=10).contains(grade))?,
            ["retired", day] => facts.retired = Some(day.parse().ok()?),
            ["reasoning", price] => facts.prices.base.reasoning = rate(price)?,
            _ => return None,
        }
    }
    Some(facts)
}

fn able(word: &str) -> Option<Abilities> {
    let mut abilities = Abilities::default();
    for letter in word.chars().filter(|letter| *letter != '-') {
        let ability = match letter {
            't' => &mut abilities.tools,
            'i' => &mut abilities.images,
            'p' => &mut abilities.documents,
            'a' => &mut abilities.audio,
            'v' => &mut abilities.video,
            'r' => &mut abilities.reasoning,
            's' => &mut abilities.structured,
            'n' => &mut abilities.fixed_temperature,
            'e' => &mut abilities.embeds,
            'w' => &mut abilities.whole,
            _ => return None,
        };
        *ability = true;
    }
    Some(abilities)
}
