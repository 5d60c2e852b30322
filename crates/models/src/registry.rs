//! The providers of an instance by name, and the way from a model's name (`provider/rest`) to the thing that answers. A
//! configuration that cannot work is refused here, when it is loaded, not when the first run needs it.

mod about;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use secrecy::SecretString;

use crate::catalog::{self, Catalog, ModelFacts, Prices};
use crate::demo::Demo;
use crate::health::{Health, Place, Watched, with_key};
use crate::protocol::Flow;
use crate::wire::list::{self, Listed};
use crate::wire::provider::{RemoteConfig, percent};
use crate::wire::{Clock, Provider, Remote, Takes};
use crate::{
    ApiKey, BroughtKey, Credential, KeyPlace, Model, ModelError, ModelSource, Offer, ProviderFacts, Scripted, Vendor,
};

/// The name of the built-in provider.
pub(crate) const DEMO: &str = "demo";
/// The one model it has.
const GUIDE: &str = "guide";

/// One provider as the operator configured it.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The part of a model's name before the first slash.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
    /// What its models cost, where the operator knows better than the catalog.
    pub prices: Option<Prices>,
}

/// The kinds of providers there are.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// A provider that is reached over the network.
    Remote(Box<RemoteConfig>),
    /// Answers from a script.
    Scripted {
        /// The text of the script (not the name of its file).
        script: String,
    },
}

#[derive(Clone)]
enum Entry {
    Demo(Arc<Demo>),
    Remote(Arc<Provider>),
    Scripted(Arc<Scripted>),
}

/// The providers of this instance.
pub struct Models {
    /// Those that are configured, and what was found on this machine since.
    entries: RwLock<BTreeMap<String, Entry>>,
    /// What the operator says that models of a provider cost, and the version of that.
    prices: BTreeMap<String, (Prices, String)>,
    remotes: BTreeMap<String, RemoteConfig>,
    catalog: RwLock<Arc<Catalog>>,
    /// The models that servers on this machine list, by the kind of the server.
    found: RwLock<Vec<(&'static str, Listed)>>,
    client: reqwest::Client,
    clock: Clock,
    health: Health,
}

impl Models {
    /// Takes the configuration and the client every provider is called with.
    ///
    /// # Errors
    /// `Broken` when a provider cannot work as it is configured.
    pub fn new(config: Vec<ProviderConfig>, client: reqwest::Client) -> Result<Self, ModelError> {
        let mut entries = BTreeMap::from([(DEMO.to_owned(), Entry::Demo(Arc::new(Demo::default())))]);
        let (mut own_prices, mut remotes) = (BTreeMap::new(), BTreeMap::new());
        for ProviderConfig { name, kind, prices } in config {
            check_name(&name)?;
            own_prices.extend(prices.map(|prices| (name.clone(), versioned(prices))));
            let entry = match kind {
                ProviderKind::Remote(config) => {
                    remotes.insert(name.clone(), (*config).clone());
                    Entry::Remote(Arc::new(Provider::new(&name, *config)?))
                }
                ProviderKind::Scripted { script } => Entry::Scripted(Arc::new(
                    Scripted::parse(&script)
                        .map_err(|error| ModelError::broken(format!("provider `{name}`: {error}")))?,
                )),
            };
            if entries.insert(name.clone(), entry).is_some() {
                return Err(ModelError::broken(format!("provider `{name}` is there twice")));
            }
        }
        Ok(Self { entries: RwLock::new(entries), prices: own_prices, remotes, ..Self::built_in(client) })
    }

    /// Knows a provider that nobody can use without a key of their own, because the operator has none for it.
    #[must_use]
    pub fn with_unkeyed(mut self, name: &str, config: RemoteConfig, prices: Option<Prices>) -> Self {
        self.prices.extend(prices.map(|prices| (name.to_owned(), versioned(prices))));
        self.remotes.insert(name.to_owned(), RemoteConfig { credential: Credential::None, ..config });
        self
    }

    /// Only the built-in provider.
    #[must_use]
    pub fn built_in(client: reqwest::Client) -> Self {
        let demo = Entry::Demo(Arc::new(Demo::default()));
        let clock: Clock = Arc::new(jiff::Timestamp::now);
        Self {
            entries: RwLock::new(BTreeMap::from([(DEMO.to_owned(), demo)])),
            prices: BTreeMap::new(),
            remotes: BTreeMap::new(),
            catalog: RwLock::new(Arc::new(Catalog::built_in().clone())),
            found: RwLock::default(),
            client,
            clock,
            health: Health::default(),
        }
    }

    /// Finds the model of this name: the provider before the first slash, its own name for the model after it.
    ///
    /// # Errors
    /// `UnknownModel` when there is no such provider, or none such of its models.
    pub fn resolve(&self, model: &str) -> Result<Arc<dyn Model>, ModelError> {
        let unknown = |hint: String| ModelError::UnknownModel { model: model.to_owned(), hint };
        let names = || self.providers().join(", ");
        let Some((provider, rest)) = model.split_once('/').filter(|(_, rest)| !rest.is_empty()) else {
            return Err(unknown(format!("; write it as provider/model (providers: {})", names())));
        };
        match self.entry(provider) {
            None => Err(unknown(format!(", there is no provider `{provider}` (providers: {})", names()))),
            Some(Entry::Demo(demo)) if rest == GUIDE => Ok(demo as Arc<dyn Model>),
            Some(Entry::Demo(_)) => Err(unknown(format!(", the built-in one is `{DEMO}/{GUIDE}`"))),
            Some(Entry::Remote(provider)) => Ok(self.remote(Arc::clone(&provider), provider.name.clone(), model, rest)),
            Some(Entry::Scripted(scripted)) => Ok(scripted as Arc<dyn Model>),
        }
    }

    fn entry(&self, provider: &str) -> Option<Entry> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(provider).cloned()
    }

    /// A model over the network. What fails is held against `watched`.
    fn remote(&self, provider: Arc<Provider>, watched: String, model: &str, rest: &str) -> Arc<dyn Model> {
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let catalog = self.catalog();
        let facts = catalog.get(provider.vendor.kind, rest);
        let flow = if facts.is_some_and(|facts| facts.abilities.whole) { Flow::Whole } else { Flow::Pieces };
        let facts = facts.filter(|facts| !facts.abilities.unknown);
        let takes = Takes {
            // What a name says holds for models that nobody has put into a table yet.
            temperature: match provider.claude(rest) {
                Some(claude) => claude.samples(),
                None => facts.map_or(!provider.reasons(rest), |facts| !facts.abilities.fixed_temperature),
            },
            reasoning: facts.is_none_or(|facts| facts.abilities.reasoning),
            // Servers that anybody can run take one for every model.
            schema: facts.map_or(provider.vendor.key == KeyPlace::Optional, |facts| facts.abilities.structured),
            flow,
        };
        let (name, at_once) = (provider.name.clone(), provider.calls_at_once);
        let place = Place { provider: name, at_once, watched, model: model.to_owned() };
        let retired = self.listed_facts(provider.vendor, rest, 100).and_then(|facts| facts.retired);
        let remote = Remote::new(provider, client, clock, rest.to_owned(), takes).until(retired);
        Arc::new(Watched::new(Arc::new(remote), self.health.clone(), place))
    }

    /// The models of a provider that are known.
    fn offers_of(&self, provider: &str, vendor: &Vendor) -> Vec<Offer> {
        let today = self.today();
        let offer = |known: ModelFacts| {
            let name = format!("{provider}/{}", known.model);
            let facts = self.facts(&name).unwrap_or(known);
            let (first_piece, resting) = (self.health.first_piece(&name), self.health.resting(provider));
            let retired = facts.retired_by(today).is_some();
            Offer { name, facts, first_piece, resting, retired, by_key: false }
        };
        self.known(provider, vendor).into_iter().map(offer).collect()
    }

    /// What the catalog knows about a model, at the price that is asked for it here.
    fn listed_facts(&self, vendor: &Vendor, model: &str, percent: u64) -> Option<ModelFacts> {
        let known = self.catalog().get(vendor.kind, model).cloned()?;
        // Who rents out the models of others has days of its own.
        let retired = known.retired.filter(|_| known.provider == Catalog::kind_of(vendor.kind));
        Some(ModelFacts { prices: known.prices.at_percent(percent), retired, ..known })
    }

    fn today(&self) -> Date {
        (self.clock)().to_zoned(TimeZone::UTC).date()
    }

    /// A provider as it is configured, or as its vendor is known.
    fn config_of(&self, provider: &str) -> Option<RemoteConfig> {
        let known = || Vendor::of(provider).filter(|vendor| vendor.kind == provider && vendor.base_url.is_some());
        self.remotes.get(provider).cloned().or_else(|| known().map(RemoteConfig::new))
    }

    fn with_key(&self, provider: &str, key: ApiKey) -> Result<Provider, ModelError> {
        let unknown = || ModelError::UnknownModel { model: provider.to_owned(), hint: ", it takes no key".to_owned() };
        let config = self.config_of(provider).ok_or_else(unknown)?;
        Provider::new(provider, RemoteConfig { credential: Credential::Key(key), ..config })
    }

    /// What is known about models now.
    #[must_use]
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Knows this from now on, beside what was found on this machine.
    pub fn set_catalog(&self, mut catalog: Catalog) {
        for (kind, listed) in &*self.found.read().unwrap_or_else(PoisonError::into_inner) {
            catalog.note(kind, &listed.model, listed.window, listed.longest_output);
        }
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(catalog);
    }

    /// How the providers are doing.
    #[must_use]
    pub const fn health(&self) -> &Health {
        &self.health
    }

    /// The kind of a provider, for what the catalog knows about its models; none for those that are built in.
    #[must_use]
    pub fn kind(&self, provider: &str) -> Option<&'static str> {
        match self.entry(provider)? {
            Entry::Remote(provider) => Some(provider.vendor.kind),
            Entry::Demo(_) | Entry::Scripted(_) => None,
        }
    }

    /// The models of a provider, by its own word.
    ///
    /// # Errors
    /// When it has no list, or does not show it.
    pub async fn listed(&self, provider: &str) -> Result<Vec<Listed>, ModelError> {
        match self.entry(provider) {
            Some(Entry::Remote(remote)) => list::listed(&remote, &self.client, (self.clock)()).await,
            Some(Entry::Demo(_) | Entry::Scripted(_)) | None => {
                Err(ModelError::broken(format!("provider `{provider}` is not reached over the network from here")))
            }
        }
    }

    /// The models of a provider, by its own word, asked with a key that somebody brought.
    ///
    /// # Errors
    /// When it takes no key, or has no list, or does not show it.
    pub async fn listed_with(&self, provider: &str, key: ApiKey) -> Result<Vec<Listed>, ModelError> {
        list::listed(&self.with_key(provider, key)?, &self.client, (self.clock)()).await
    }

    /// The names of the providers that are reached over the network, sorted.
    #[must_use]
    pub fn remotes(&self) -> Vec<String> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let remote = |(name, entry): (&String, &Entry)| matches!(entry, Entry::Remote(_)).then(|| name.clone());
        entries.iter().filter_map(remote).collect()
    }

    /// The names of the providers, sorted.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

impl ModelSource for Models {
    fn model(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        self.resolve(name)
    }

    fn facts(&self, name: &str) -> Option<ModelFacts> {
        let (provider, rest) = name.split_once('/')?;
        let (known, free) = match self.entry(provider) {
            Some(Entry::Demo(_)) => return Some(ModelFacts::free(DEMO, GUIDE)),
            Some(Entry::Remote(remote)) => {
                (self.listed_facts(remote.vendor, rest, remote.percent(rest)), remote.is_free())
            }
            Some(Entry::Scripted(_)) => (None, true),
            None => {
                let config = self.config_of(provider)?;
                let percent = percent(config.vendor, config.region.as_deref(), rest);
                (self.listed_facts(config.vendor, rest, percent), false)
            }
        };
        let unpriced = known.as_ref().is_none_or(|facts| !facts.prices.is_known());
        let facts = || known.clone().unwrap_or_else(|| ModelFacts::unknown(provider, rest));
        match self.prices.get(provider) {
            Some((prices, version)) => Some(facts().costing(prices.clone(), version)),
            None if free && unpriced => Some(facts().free_without_key()),
            None => known,
        }
    }

    fn model_with(&self, name: &str, key: BroughtKey) -> Result<Arc<dyn Model>, ModelError> {
        let hint = || "; write it as provider/model".to_owned();
        let unknown = || ModelError::UnknownModel { model: name.to_owned(), hint: hint() };
        let (provider, rest) = name.split_once('/').filter(|(_, rest)| !rest.is_empty()).ok_or_else(unknown)?;
        let watched = with_key(provider, &key.id);
        Ok(self.remote(Arc::new(self.with_key(provider, key.key)?), watched, name, rest))
    }

    fn host(&self, provider: &str) -> Option<String> {
        // Any key shows where keys would go.
        self.with_key(provider, ApiKey::for_its_address(SecretString::from("any"))).ok()?.host()
    }

    fn kind_of(&self, provider: &str) -> Option<&'static str> {
        let brought = || self.config_of(provider).filter(|_| self.entry(provider).is_none());
        self.kind(provider).or_else(|| brought().map(|config| config.vendor.kind))
    }

    fn credentials(&self, show: &mut dyn FnMut(&str)) {
        for config in self.remotes.values() {
            config.credential.show(show);
        }
    }

    fn cheapest(&self, provider: &str) -> Vec<String> {
        let Some(config) = self.config_of(provider) else { return Vec::new() };
        let today = self.today();
        let can_talk = |facts: &ModelFacts| !facts.abilities.embeds && facts.retired_by(today).is_none();
        let mut talks = self.known(provider, config.vendor);
        talks.retain(can_talk);
        talks.sort_by_key(|facts| facts.prices.bound(1000, 1000).map_or(u64::MAX, |cost| cost.0));
        talks.into_iter().map(|facts| format!("{provider}/{}", facts.model)).collect()
    }

    fn offers(&self) -> Vec<Offer> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner).clone();
        let remote = |(provider, entry): (String, Entry)| match entry {
            Entry::Remote(remote) => self.offers_of(&provider, remote.vendor),
            Entry::Demo(_) | Entry::Scripted(_) => Vec::new(),
        };
        entries.into_iter().flat_map(remote).collect()
    }

    fn about_providers(&self) -> Vec<ProviderFacts> {
        self.all_about()
    }

    fn offers_with_key(&self, provider: &str) -> Vec<Offer> {
        match self.config_of(provider) {
            // With the operator's key it is offered already.
            Some(_) if self.entry(provider).is_some() => Vec::new(),
            Some(config) => self.offers_of(provider, config.vendor),
            None => Vec::new(),
        }
    }
}

/// Prices that the operator wrote, with the version that says which: two that differ have two.
fn versioned(prices: Prices) -> (Prices, String) {
    let version = catalog::version("configuration", prices.written().as_bytes());
    (prices, version)
}

/// A name is the first part of a model's name, so it holds no slash, and it is typed by people, so it holds no
/// surprise.
fn check_name(name: &str) -> Result<(), ModelError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
        return Err(ModelError::broken(format!(
            "provider name `{}`: use 1 to 64 of a-z, 0-9, `-`, `_` and `.`",
            name.escape_debug()
        )));
    }
    if name == DEMO {
        return Err(ModelError::broken(format!("provider name `{DEMO}` belongs to the built-in provider")));
    }
    Ok(())
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.providers()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::KeyState;
    use crate::catalog::{PriceTier, Rate};

    fn client() -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::new()
    }

    fn config(name: &str, kind: ProviderKind) -> ProviderConfig {
        ProviderConfig { name: name.to_owned(), kind, prices: None }
    }

    fn scripted(script: &str) -> ProviderKind {
        ProviderKind::Scripted { script: script.to_owned() }
    }

    fn remote(kind: &str, base_url: Option<&str>, credential: Credential) -> ProviderKind {
        let vendor = Vendor::of(kind).unwrap();
        let base_url = base_url.map(str::to_owned);
        ProviderKind::Remote(Box::new(RemoteConfig { base_url, credential, ..RemoteConfig::new(vendor) }))
    }

    fn openai(base_url: Option<&str>, key: Option<&str>) -> ProviderKind {
        let key = key.map(|key| ApiKey::for_its_address(SecretString::from(key)));
        remote("openai", base_url, key.map_or(Credential::None, Credential::Key))
    }

    fn why(result: Result<Arc<dyn Model>, ModelError>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_model_is_cut_at_its_first_slash() {
        let local = config("local", openai(Some("http://127.0.0.1:8080/v1"), None));
        let models = Models::new(vec![local, config("test", scripted("- text: hi"))], client()).unwrap();
        for known in ["demo/guide", "local/org/some-model:7b", "test/anything"] {
            assert!(models.resolve(known).is_ok(), "{known}");
        }
        assert_eq!(
            why(models.resolve("gpt")),
            "model `gpt` is not known; write it as provider/model (providers: demo, local, test)"
        );
        assert!(why(models.resolve("other/x")).contains("there is no provider `other`"));
        assert!(why(models.resolve("demo/other")).contains("`demo/guide`"));
        assert!(models.resolve("local/").is_err());
        assert!(Models::built_in(client()).resolve("demo/guide").is_ok());
    }

    #[test]
    fn a_provider_that_cannot_work_is_refused_when_it_is_loaded() {
        let refused = |configs: Vec<ProviderConfig>| Models::new(configs, client()).unwrap_err().to_string();
        assert!(refused(vec![config("demo", scripted("[]"))]).contains("built-in"));
        assert!(refused(vec![config("a/b", scripted("[]"))]).contains("a/b"));
        assert!(refused(vec![config("a", scripted("[]")), config("a", scripted("[]"))]).contains("twice"));
        assert!(refused(vec![config("a", scripted("- txet: hi"))]).starts_with("provider `a`: "));
        assert!(refused(vec![config("a", openai(None, None))]).contains("base_url"));
        assert!(refused(vec![config("a", openai(Some("ftp://host/v1"), None))]).contains("base_url"));
        assert!(refused(vec![config("a", openai(Some("http://me:pw@host/v1"), None))]).contains("api_key"));
    }

    #[test]
    fn a_key_is_never_configured_for_a_host_it_is_not_for() {
        let key = || Credential::Key(ApiKey::for_hosts(SecretString::from("sk-secret"), &["api.openai.com"]));
        let elsewhere = config("a", remote("openai", Some("https://example.com/v1"), key()));
        let error = Models::new(vec![elsewhere], client()).unwrap_err().to_string();
        assert!(error.contains("is not sent to example.com") && !error.contains("sk-secret"), "{error}");
        let home = config("a", remote("openai", Some("https://API.openai.com/v1"), key()));
        assert!(Models::new(vec![home], client()).is_ok());
    }

    #[test]
    fn prices_that_differ_have_versions_that_differ() {
        let priced = |rate: u64| {
            let base = PriceTier { input: Some(Rate(rate)), ..PriceTier::default() };
            let prices = Some(Prices { base, over: Vec::new() });
            let config = ProviderConfig { prices, ..config("lab", openai(Some("http://127.0.0.1:9/v1"), None)) };
            Models::new(vec![config], client()).unwrap().facts("lab/any").unwrap().version
        };
        assert!(priced(7).starts_with("configuration-"), "{}", priced(7));
        assert_eq!(priced(7), priced(7));
        assert_ne!(priced(7), priced(8));
    }

    #[tokio::test]
    async fn a_provider_that_fails_with_all_keys_that_people_brought_is_seen_to_rest() {
        use crate::DeltaSink;
        use crate::view::tests::request;
        use crate::wire::testing::{Reply, serve};

        let (base, _seen) = serve(vec![Reply::error(429, &[("retry-after", "90")], "{}")]).await;
        let lab = RemoteConfig { base_url: Some(base), ..RemoteConfig::new(Vendor::of("mistral").unwrap()) };
        let models = Models::built_in(client()).with_unkeyed("lab", lab, None);
        let resting = || {
            let about = models.about_providers().into_iter().find(|facts| facts.name == "lab").unwrap();
            let offered = models.offers_with_key("lab");
            (about.resting.is_some(), offered.iter().all(|offer| offer.resting.is_some()))
        };
        assert_eq!(resting(), (false, false));
        let key = ApiKey::for_its_address(SecretString::from("sk-secret"));
        let brought = BroughtKey { id: "key_1".to_owned(), key };
        let model = models.model_with("lab/mistral-small-latest", brought).unwrap();
        model.answer(&request(&["hi"]), &DeltaSink::none()).await.unwrap_err();
        assert_eq!(resting(), (true, true));
    }

    fn on(day: &str, models: Models) -> Models {
        let noon: jiff::Timestamp = format!("{day}T12:00:00Z").parse().unwrap();
        Models { clock: Arc::new(move || noon), ..models }
    }

    #[test]
    fn a_retired_model_is_listed_as_such_and_tests_no_key() {
        let key = |name: &str| ApiKey::for_its_address(SecretString::from(name));
        let groq = config("groq", remote("groq", None, Credential::Key(key("sk-a"))));
        let azure = RemoteConfig {
            base_url: Some("http://127.0.0.1:9".to_owned()),
            ..RemoteConfig::new(Vendor::of("azure").unwrap())
        };
        let azure = config(
            "azure",
            ProviderKind::Remote(Box::new(RemoteConfig { credential: Credential::Key(key("sk-b")), ..azure })),
        );
        let models = || Models::new(vec![groq.clone(), azure.clone()], client()).unwrap();
        let llama = "groq/llama-3.1-8b-instant";
        let retired = |models: &Models| models.offers().into_iter().find(|offer| offer.name == llama).unwrap().retired;
        let before = on("2026-08-15", models());
        assert_eq!((retired(&before), before.cheapest("groq")[0].as_str()), (false, llama));
        let after = on("2026-08-16", models());
        assert!(retired(&after) && !after.cheapest("groq").contains(&llama.to_owned()), "{:?}", after.cheapest("groq"));
        assert!(after.resolve(llama).is_ok() && after.facts(llama).unwrap().prices.is_known(), "who names it may try");
        assert_eq!(after.facts("azure/gpt-4").unwrap().retired, None, "another's days are not Azure's");
    }

    #[tokio::test]
    async fn a_provider_that_does_not_know_a_retired_model_is_explained() {
        use crate::DeltaSink;
        use crate::view::tests::request;
        use crate::wire::testing::{Reply, serve};

        let gone = r#"{"error": {"code": "model_decommissioned", "type": "invalid_request_error", "message": "no"}}"#;
        let (base, _seen) = serve(vec![Reply::error(400, &[], gone), Reply::error(400, &[], gone)]).await;
        let lab = config("lab", remote("groq", Some(&base), Credential::None));
        let models = on("2026-11-18", Models::new(vec![lab], client()).unwrap());
        let (asked, sink) = (request(&["hi"]), DeltaSink::none());
        let old = models.resolve("lab/llama-3.1-8b-instant").unwrap().answer(&asked, &sink).await.unwrap_err();
        assert_eq!(
            old.to_string(),
            "model `lab/llama-3.1-8b-instant` is not known to the provider any more: it was retired on 2026-08-16, choose another"
        );
        let other = models.resolve("lab/other").unwrap().answer(&asked, &sink).await.unwrap_err();
        assert_eq!(other.to_string(), "model `lab/other` is not known to the provider (HTTP 400)");
    }

    #[tokio::test]
    async fn a_model_that_answers_in_one_piece_is_asked_for_one() {
        use crate::DeltaSink;
        use crate::view::tests::request;
        use crate::wire::testing::{Reply, serve};

        let json = [("content-type", "application/json")];
        let said = r#"{"model":"w-1","choices":[{"index":0,"message":{"role":"assistant","content":"All of it."},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#;
        let gemini = r#"{"candidates":[{"content":{"parts":[{"text":"All of it."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3},"modelVersion":"w-1"}"#;
        for (kind, reply, path, stream) in [
            ("vllm", said, "/chat/completions", Some(false)),
            ("gemini", gemini, "/models/whole:generateContent", None),
        ] {
            let (base, mut seen) = serve(vec![Reply::error(200, &json, reply)]).await;
            let models =
                Models::new(vec![config("lab", remote(kind, Some(&base), Credential::None))], client()).unwrap();
            let document = format!(r#"{{"{kind}": {{"models": {{"whole": {{"streaming": false}}}}}}}}"#);
            models.set_catalog({
                let mut catalog = Catalog::default();
                catalog.import(document.as_bytes(), "v").unwrap();
                catalog
            });
            assert!(!models.facts("lab/whole").unwrap().streams());
            let answer =
                models.resolve("lab/whole").unwrap().answer(&request(&["hi"]), &DeltaSink::none()).await.unwrap();
            assert_eq!((answer.text.as_str(), answer.usage.unwrap().output), ("All of it.", 3), "{kind}");
            let seen = seen.recv().await.unwrap();
            assert_eq!(
                (seen.path.as_str(), seen.body.get("stream")),
                (path, stream.map(Into::into).as_ref()),
                "{kind}"
            );
            assert!(seen.body.get("stream_options").is_none(), "{kind}: {}", seen.body);
            assert_eq!(seen.headers["accept"], "application/json", "{kind}");
        }
    }

    #[test]
    fn of_azure_only_what_the_operator_or_a_document_names_is_offered() {
        let names = |models: &Models| models.offers().into_iter().map(|offer| offer.name).collect::<Vec<_>>();
        let key = || Credential::Key(ApiKey::for_its_address(SecretString::from("sk-a")));
        let azure = || config("cloud", remote("azure", Some("https://lab.openai.azure.com"), key()));
        let models = Models::new(vec![azure()], client()).unwrap();
        assert!(names(&models).is_empty(), "nobody knows what is deployed: {:?}", names(&models));
        assert!(models.cheapest("cloud").is_empty() && models.resolve("cloud/gpt-4o").is_ok());
        assert!(models.facts("cloud/gpt-4o").unwrap().prices.is_known(), "what is named has its price");
        models.set_catalog({
            let mut catalog = Catalog::built_in().clone();
            catalog.import(br#"{"azure": {"models": {"gpt-4o": {"tool_call": true}}}}"#, "v").unwrap();
            catalog
        });
        assert_eq!(names(&models), ["cloud/gpt-4o"]);
        let listed = RemoteConfig {
            base_url: Some("https://lab.openai.azure.com".to_owned()),
            credential: key(),
            models: vec!["gpt-5.4-mini".to_owned(), "prod".to_owned()],
            ..RemoteConfig::new(Vendor::of("azure").unwrap())
        };
        let models =
            Models::new(vec![config("cloud", ProviderKind::Remote(Box::new(listed.clone())))], client()).unwrap();
        assert_eq!(names(&models), ["cloud/gpt-5.4-mini", "cloud/prod"]);
        let offers = models.offers();
        assert!(offers[0].facts.prices.is_known() && offers[1].facts.abilities.unknown);
        assert_eq!(models.about_providers().iter().find(|facts| facts.name == "cloud").unwrap().models, 2);
        let brought = Models::built_in(client()).with_unkeyed("cloud", listed, None);
        assert_eq!(brought.offers_with_key("cloud").len(), 2);
    }

    #[tokio::test]
    async fn a_provider_that_only_a_brought_key_opens_lists_its_models_with_it() {
        use crate::wire::testing::{Reply, serve};

        let (base, mut seen) = serve(vec![Reply::error(200, &[], r#"{"data":[{"id":"new"}]}"#)]).await;
        let lab = RemoteConfig { base_url: Some(base), ..RemoteConfig::new(Vendor::of("mistral").unwrap()) };
        let models = Models::built_in(client()).with_unkeyed("lab", lab, None);
        assert!(models.listed("lab").await.is_err(), "the operator has no key for it");
        let key = || ApiKey::for_its_address(SecretString::from("sk-brought"));
        assert_eq!(models.listed_with("lab", key()).await.unwrap()[0].model, "new");
        assert_eq!(seen.recv().await.unwrap().headers["authorization"], "Bearer sk-brought");
        assert!(models.listed_with("nobody", key()).await.is_err());
    }

    #[test]
    fn a_strategy_may_choose_what_only_a_brought_key_opens_and_nothing_else() {
        use adjutant_core::routing::{AUTO, Strategy, Wanted};

        use crate::router::Needs;
        use crate::source::{Allowed, WithKeys, lineup};

        let local = config("local", openai(Some("http://127.0.0.1:8080/v1"), None));
        let own = RemoteConfig::new(Vendor::of("mistral").unwrap());
        let models = Models::new(vec![local], client()).unwrap().with_unkeyed("lab", own, None);
        let wanted = Wanted { model: AUTO.to_owned(), strategy: Some(Strategy::Cheapest), fallbacks: Vec::new() };
        let needs = Needs { tools: true, ..Needs::default() };
        let chosen = |providers: &[&str]| {
            let providers = providers.iter().map(|name| (*name).to_owned()).collect();
            let source = WithKeys { source: &models, providers, allowed: Allowed::All };
            let found: std::collections::BTreeSet<String> =
                source.offers().iter().filter_map(|offer| offer.name.split('/').next().map(str::to_owned)).collect();
            let lineup = lineup(&source, &wanted, "demo/guide", &needs).unwrap();
            let all = std::iter::once(lineup.model).chain(lineup.fallbacks);
            let used: Vec<_> = all.filter_map(|name| name.split('/').next().map(str::to_owned)).collect();
            assert!(used.iter().all(|provider| found.contains(provider)), "{used:?}");
            found.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(chosen(&[]), ["local"]);
        assert_eq!(chosen(&["lab", "deepseek", "lab", "nobody", "demo", "local"]), ["deepseek", "lab", "local"]);
    }

    #[test]
    fn a_server_of_ones_own_costs_nothing_until_it_wants_a_key_or_has_a_price() {
        let own = |kind: &str, credential| remote(kind, Some("http://127.0.0.1:9/v1"), credential);
        let key = Credential::Key(ApiKey::for_its_address(SecretString::from("sk-secret")));
        let priced = ProviderConfig {
            prices: Some(Prices { base: PriceTier { input: Some(Rate(7)), ..PriceTier::default() }, over: Vec::new() }),
            ..config("priced", own("ollama", Credential::None))
        };
        let configs = vec![
            config("home", own("llama-cpp", Credential::None)),
            config("cloud", own("ollama", key)),
            config("proxy", own("litellm", Credential::None)),
            config("script", scripted("- text: hi")),
            priced,
        ];
        let models = Models::new(configs, client()).unwrap();
        let input = |name: &str| models.facts(name).and_then(|facts| facts.prices.base.input);
        assert_eq!((input("home/any"), input("script/any")), (Some(Rate(0)), Some(Rate(0))));
        assert_eq!((input("cloud/any"), input("proxy/any"), input("priced/any")), (None, None, Some(Rate(7))));
        let by_key = |name: &str| models.facts(name).is_some_and(|facts| facts.is_free_without_key());
        assert!(by_key("home/any") && !by_key("priced/any"), "whoever shows a key may be sent a bill");
        assert!(!models.facts("priced/any").unwrap().is_blind(), "a price says nothing about pictures");
        models.set_catalog({
            let mut catalog = Catalog::default();
            catalog.import(br#"{"llama-cpp": {"models": {"any": {"limit": {"context": 9}}}}}"#, "v").unwrap();
            catalog
        });
        let listed = models.facts("home/any").unwrap();
        assert_eq!((listed.window, listed.prices.base.input), (Some(9), Some(Rate(0))));
    }

    #[test]
    fn bedrock_asks_more_for_an_answer_from_nearby_than_from_anywhere() {
        let bedrock = |region: &str| {
            let key = ApiKey::for_its_address(SecretString::from("sk-secret"));
            let kind = ProviderKind::Remote(Box::new(RemoteConfig {
                region: Some(region.to_owned()),
                credential: Credential::Key(key),
                ..RemoteConfig::new(Vendor::of("bedrock").unwrap())
            }));
            Models::new(vec![config("aws", kind)], client()).unwrap()
        };
        let sonnet = "aws/anthropic.claude-sonnet-4-5-20250929-v1:0";
        let price = |models: &Models, name: &str| {
            let base = models.facts(name).unwrap().prices.base;
            (base.input.unwrap().0, base.cached.map(|rate| rate.0), base.output.unwrap().0)
        };
        let europe = bedrock("eu-central-1");
        assert_eq!(price(&europe, sonnet), (3_300_000, Some(330_000), 16_500_000));
        assert_eq!(price(&bedrock("ap-south-1"), sonnet), (3_000_000, Some(300_000), 15_000_000), "anywhere");
        assert_eq!(price(&bedrock("us-gov-west-1"), sonnet).0, 3_600_000);
        assert_eq!(price(&europe, "aws/global.anthropic.claude-sonnet-4-5-20250929-v1:0").0, 3_000_000, "by its name");
        assert_eq!(price(&bedrock("us-east-1"), "aws/amazon.nova-pro-v1:0").0, 800_000);
        assert!(price(&europe, "aws/amazon.nova-pro-v1:0").0 >= 1_050_000);
        let offers = europe.offers();
        let offered = offers.iter().find(|offer| offer.name == sonnet).unwrap();
        assert_eq!(offered.facts.prices.base.input, Some(Rate(3_300_000)), "the choice is made by the same price");
    }

    #[tokio::test]
    async fn a_server_on_this_machine_is_found_with_its_models_and_nobody_is_asked_elsewhere() {
        use crate::wire::testing::{Reply, serve};

        let ollama = Vendor::of("ollama").unwrap();
        let tags = r#"{"models":[{"name":"qwen3:8b"},{"name":"gemma3"}]}"#;
        let (base, mut seen) = serve(vec![Reply::error(200, &[("content-type", "application/json")], tags)]).await;
        let models = Models::built_in(client());
        assert!(models.resolve("ollama/gemma3").is_err());
        for elsewhere in ["http://192.0.2.1:11434", "http://ollama.example.com"] {
            let refused = models.detect(ollama, elsewhere, Duration::from_secs(5)).await.unwrap_err();
            assert!(refused.to_string().contains("not of this machine"), "{refused}");
        }
        assert_eq!(models.detect(ollama, &base, Duration::from_secs(5)).await.unwrap(), 2);
        assert_eq!(seen.recv().await.unwrap().path, "/api/tags");
        assert!(models.resolve("ollama/gemma3").is_ok());
        let names: Vec<_> = models.offers().into_iter().map(|offer| offer.name).collect();
        assert_eq!(names, ["ollama/gemma3", "ollama/qwen3:8b"]);
        assert_eq!(models.facts("ollama/gemma3").unwrap().prices.base.input, Some(Rate(0)), "it computes here");
        models.set_catalog(Catalog::built_in().clone());
        let about = models.about_providers().into_iter().find(|facts| facts.name == "ollama").unwrap();
        assert_eq!(
            (about.detected, about.models, about.key),
            (true, 2, KeyState::NotNeeded),
            "also once another catalog was taken"
        );
        let own = config("mine", remote("ollama", Some("http://127.0.0.1:9"), Credential::None));
        let configured = Models::new(vec![own], client()).unwrap();
        let refused = configured.detect(ollama, &base, Duration::from_secs(5)).await.unwrap_err();
        assert!(refused.to_string().contains("is configured"), "{refused}");
    }

    #[test]
    fn it_is_told_which_providers_there_are_and_whether_they_have_a_key() {
        let lab = RemoteConfig::new(Vendor::of("mistral").unwrap());
        let configs = vec![config("openai", openai(None, Some("sk-secret"))), config("test", scripted("- text: hi"))];
        let models = Models::new(configs, client()).unwrap().with_unkeyed("lab", lab, None);
        let about = models.about_providers();
        let key = |name: &str| about.iter().find(|facts| facts.name == name).map(|facts| facts.key);
        assert_eq!(
            (key("openai"), key("test"), key("demo")),
            (Some(KeyState::Operator), Some(KeyState::NotNeeded), Some(KeyState::NotNeeded))
        );
        assert_eq!(
            (key("lab"), key("anthropic"), key("vllm")),
            (Some(KeyState::Missing), Some(KeyState::Missing), None)
        );
        let openai = about.iter().find(|facts| facts.name == "openai").unwrap();
        assert!(openai.models > 10 && openai.host.as_deref() == Some("api.openai.com"), "{openai:?}");
        assert!(!format!("{about:?}").contains("sk-secret"));
    }

    #[test]
    fn a_key_alone_is_enough_for_the_well_known_address() {
        let models = Models::new(vec![config("openai", openai(None, Some("sk-secret")))], client()).unwrap();
        assert!(models.resolve("openai/gpt-5").is_ok());
        assert!(!format!("{models:?}").contains("secret"));
    }
}
