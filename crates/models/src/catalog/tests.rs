//! The built-in table is readable and large enough, models are found by the names people use, and documents are taken whole
//! or not at all.

use std::collections::BTreeSet;

use adjutant_core::money::{MicroUsd, TokenUsage};

use super::*;

fn anybody(_: &str) -> bool {
    true
}

#[test]
fn the_built_in_table_is_readable_and_every_provider_in_it_is_known() {
    let catalog = parse::table(TABLE).unwrap();
    let providers: BTreeSet<_> = catalog.models().map(|facts| facts.provider.as_str()).collect();
    assert!(catalog.models().count() >= 150, "{}", catalog.models().count());
    assert!(providers.len() >= 15, "{providers:?}");
    assert!(providers.iter().all(|provider| Vendor::of(provider).is_some()), "{providers:?}");
    assert_eq!(catalog.version(), "2026-11-18");
    for facts in catalog.models() {
        let name = facts.name();
        let PriceTier { input, cached, cache_write, output, .. } = facts.prices.base;
        assert!(facts.window.is_some_and(|window| facts.longest_output.unwrap_or(0) <= window), "{name}");
        assert!(input.is_none_or(|input| input.0 > 0) && output.is_none_or(|output| output.0 > 0), "{name}");
        assert!(cached <= input && cache_write.is_none_or(|write| Some(write) >= input), "{name}");
        assert!(facts.abilities.embeds || output >= input, "{name}");
        for (_, over) in &facts.prices.over {
            assert!(over.input > input && over.output > output, "{name}");
        }
    }
}

#[test]
fn a_model_is_found_by_its_full_name_and_by_its_bare_one_where_that_is_enough() {
    let catalog = Catalog::built_in();
    assert_eq!(catalog.find("anthropic/claude-sonnet-5", anybody).unwrap().name(), "anthropic/claude-sonnet-5");
    assert_eq!(catalog.find("claude-opus-4-1", anybody).unwrap().provider, "anthropic");
    assert_eq!(catalog.find("google/gemini-2.5-pro", anybody).unwrap().provider, "gemini", "another word for it");
    assert_eq!(catalog.get("openai-responses", "gpt-5.4").unwrap().provider, "openai");
    let only = |provider: &str| provider == "azure";
    assert_eq!(catalog.find("gpt-4o", only).unwrap().provider, "azure");
    let Err(NotFound::Ambiguous { candidates, .. }) = catalog.find("gpt-4o", anybody) else { panic!("two have it") };
    assert_eq!(candidates, ["azure/gpt-4o", "openai/gpt-4o"]);
    let Err(NotFound::Ambiguous { candidates, .. }) = catalog.find("gpt-oss-120b", anybody) else { panic!("many") };
    assert!(candidates.contains(&"groq/openai/gpt-oss-120b".to_owned()), "{candidates:?}");
    assert_eq!(catalog.find("nobody", anybody), Err(NotFound::Unknown("nobody".to_owned())));
    assert!(catalog.find("anthropic/claude-sonnet-5", only).is_err(), "a provider that is not allowed has nothing");
}

#[test]
fn providers_that_rent_out_the_same_models_are_named_together() {
    let catalog =
        parse::table("provider one two\nm 9 9 t 1 - - 2\nover 5 2 - - 4\nprovider three\nn 9 9 t 1 - - 2").unwrap();
    let (one, two) = (catalog.get("one", "m").unwrap(), catalog.get("two", "m").unwrap());
    assert_eq!((one.name(), two.name()), ("one/m".to_owned(), "two/m".to_owned()));
    assert_eq!((one.prices.over.len(), two.prices.over.len()), (1, 1));
    assert!(catalog.get("two", "n").is_none());
    let glm = |provider: &str| Catalog::built_in().get(provider, "glm-5.2").map(|facts| facts.prices.clone());
    assert!(glm("zai").is_some() && glm("zai") == glm("zhipu"));
}

#[test]
fn a_retired_model_keeps_its_prices_and_is_retired_from_its_day_on() {
    let facts = Catalog::built_in().get("openai", "o3-mini-2025-01-31").unwrap();
    let day = |day: &str| day.parse().unwrap();
    assert_eq!(facts.retired_by(day("2026-10-22")), None);
    assert_eq!(facts.retired_by(day("2026-10-23")), Some(day("2026-10-23")));
    assert!(facts.prices.is_known(), "what it did is priced again by it");
    for (provider, model) in [("anthropic", "claude-opus-4-20250514"), ("groq", "llama-3.1-8b-instant")] {
        assert!(Catalog::built_in().get(provider, model).unwrap().retired_by(day("2026-11-18")).is_some(), "{model}");
    }
    assert_eq!(Catalog::built_in().get("anthropic", "claude-haiku-5-5").unwrap().retired, None);
    let last = |provider: &str, model: &str| Catalog::built_in().get(provider, model).unwrap().retired;
    for sonar in ["sonar", "sonar-pro", "sonar-reasoning-pro", "sonar-deep-research"] {
        assert_eq!(last("perplexity", sonar), Some(day("2026-09-27")), "{sonar}");
    }
    assert_eq!(last("mistral", "mistral-large-2411"), Some(day("2026-05-31")));
}

#[test]
fn a_use_is_priced_by_class_and_names_the_state_of_the_prices() {
    let facts = Catalog::built_in().find("anthropic/claude-sonnet-4-5", anybody).unwrap();
    let usage = TokenUsage { input: 1320, output: 89, cached: 1000, reasoning: 0, cache_write: 300 };
    let cost = facts.cost(&usage).unwrap();
    assert_eq!((cost.amount, cost.version.as_str()), (MicroUsd(60 + 300 + 1125 + 1335), "2026-11-18"));
    let unknown = Catalog::built_in().find("perplexity/sonar", anybody).unwrap();
    assert_eq!(unknown.cost(&usage), None);
}

#[test]
fn a_line_that_is_not_understood_makes_the_table_unreadable() {
    for bad in [
        "m 1 1 t 1 1 1 1",
        "provider p\nm 1 1 t 1 1 1",
        "provider p\nm 1 1 x 1 1 1 1",
        "provider p\nm 1 1 t 1 1 1 free",
        "provider p\nm 1 1 t 1 1 1 1 smart 11",
        "provider p\nm 1 1 t 1 1 1 1 retired soon",
        "provider p\nm 1 1 t 1 1 1 1\nm 1 1 t 1 1 1 1",
        "over 5 1 1 1 1",
    ] {
        assert!(parse::table(bad).is_err(), "{bad}");
    }
}

const DOCUMENT: &str = r#"{
  "google": {"id": "google", "name": "Google", "env": ["X"], "models": {
    "gemini-2.5-pro": {"id": "gemini-2.5-pro", "name": "x", "attachment": true, "reasoning": true, "temperature": true,
      "tool_call": true, "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
      "limit": {"context": 1048576, "output": 65536},
      "cost": {"input": 1.5, "output": 11, "cache_read": 0.15, "context_over_200k": {"input": 3, "output": 16}}}}},
  "fireworks-ai": {"models": {
    "new": {"tool_call": false, "temperature": false, "limit": {"context": 0},
      "cost": {"input": 0.1, "output": 0.2, "tiers": [{"input": 0.3, "output": 0.4, "tier": {"size": 1000}}]}},
    "secret": {"limit": {"context": 10, "output": 5}}}}
}"#;

#[test]
fn a_document_is_laid_over_what_was_known() {
    let mut catalog = Catalog::built_in().clone();
    assert_eq!(catalog.import(DOCUMENT.as_bytes(), "mine"), Ok(3));
    let gemini = catalog.get("gemini", "gemini-2.5-pro").unwrap();
    assert_eq!((gemini.version.as_str(), gemini.grade), ("mine", 8), "our grade stays");
    assert!(gemini.retired.is_some(), "and so does its last day");
    assert!(gemini.abilities.documents && !gemini.abilities.audio);
    let usage = |input| TokenUsage { input, ..TokenUsage::default() };
    assert_eq!(gemini.prices.cost(&usage(200_000)), Some(MicroUsd(300_000)));
    assert_eq!(gemini.prices.cost(&usage(300_000)), Some(MicroUsd(900_000)));
    let new = catalog.get("fireworks", "new").unwrap();
    assert_eq!((new.window, new.abilities.fixed_temperature, new.prices.over[0].0), (None, true, 1000));
    assert_eq!(catalog.get("fireworks", "secret").unwrap().cost(&usage(1)), None);
    assert!(catalog.get("anthropic", "claude-sonnet-5").is_some(), "what it does not name stays");
}

#[test]
fn a_version_tells_which_prices_were_meant() {
    assert_eq!(version("synced", b"{}"), version("synced", b"{}"));
    assert_ne!(version("synced", b"{}"), version("synced", b"{} "));
    assert_eq!(version("synced", b"{}").len(), "synced-".len() + 8);
}

#[test]
fn a_document_that_cannot_be_is_refused_whole() {
    let mut catalog = Catalog::built_in().clone();
    let before = catalog.clone();
    for bad in [
        "",
        "[]",
        "{\"a\":{}}",
        "{\"a\":{\"models\":{\"m\":{\"cost\":{\"input\":-1}}}}}",
        "{\"a\":{\"models\":{\"m\":{\"cost\":{\"input\":1e9}}}}}",
    ] {
        assert!(catalog.import(bad.as_bytes(), "x").is_err(), "{bad}");
    }
    assert_eq!(catalog, before);
}

#[test]
fn a_dated_state_of_a_model_is_that_model_and_azure_rents_out_openais() {
    let catalog = Catalog::built_in();
    let name = |provider: &str, model: &str| catalog.get(provider, model).map(|facts| facts.model.as_str());
    assert_eq!(name("openai", "gpt-4.1-2025-04-14"), Some("gpt-4.1"));
    assert_eq!(name("openai", "gpt-4o-2024-11-20"), Some("gpt-4o-2024-11-20"), "what is listed itself comes first");
    assert_eq!(name("anthropic", "claude-sonnet-4-6-20260217"), Some("claude-sonnet-4-6"));
    assert_eq!(name("azure", "gpt-4.1-nano-2025-04-14"), Some("gpt-4.1-nano"));
    for strange in
        ["gpt-4.1-2025-04", "gpt-4.1-20250", "-20250414", "gpt-4.1-mini-99999999", "ü-2025-04-14", "2025-04-14"]
    {
        assert_eq!(name("openai", strange), None, "{strange}");
    }
}

#[test]
fn a_model_that_only_a_list_named_can_do_what_nobody_denied() {
    let mut catalog = Catalog::built_in().clone();
    let document = br#"{"openai": {"models": {"new": {"limit": {"context": 9}}, "said": {"tool_call": false}}}}"#;
    catalog.import(document, "v").unwrap();
    let facts = |model: &str| catalog.get("openai", model).unwrap();
    assert!(facts("new").abilities.unknown && !facts("new").is_blind());
    assert!(!facts("said").abilities.unknown && facts("said").is_blind());
}

#[test]
fn a_profile_of_bedrock_is_the_model_it_leads_to() {
    let catalog = Catalog::built_in();
    let name = |model: &str| catalog.get("bedrock", model).map(|facts| facts.model.as_str());
    let arn = "arn:aws:bedrock:eu-west-1:1234:inference-profile/eu.anthropic.claude-sonnet-5";
    for profile in ["us.anthropic.claude-sonnet-5", "global.anthropic.claude-sonnet-5", arn] {
        assert_eq!(name(profile), Some("anthropic.claude-sonnet-5"), "{profile}");
    }
    assert_eq!(name("us.meta.llama3-3-70b-instruct-v1:0"), Some("meta.llama3-3-70b-instruct-v1:0"));
    assert_eq!(name("mars.anthropic.claude-sonnet-5"), None);
}
