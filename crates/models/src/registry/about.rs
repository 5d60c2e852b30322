//! What there is to know about providers: which there are, whether they have a key, how they are doing; and which are found on
//! this machine without anybody having configured them.

use std::net::IpAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{DEMO, Entry, Models};
use crate::catalog::{Catalog, ModelFacts};
use crate::protocol::Protocol;
use crate::wire::Provider;
use crate::wire::list;
use crate::wire::provider::RemoteConfig;
use crate::{KeyPlace, KeyState, ModelError, ProviderFacts, VENDORS, Vendor};

impl Models {
    /// Looks whether a server of this kind runs at an address of this machine, and if it does, knows it and its models from now
    /// on. Nothing is asked where a provider of this kind or name is configured.
    ///
    /// # Errors
    /// When it does not answer within `patience`, or the address is not of this machine.
    pub async fn detect(&self, kind: &'static Vendor, address: &str, patience: Duration) -> Result<usize, ModelError> {
        if self.entry(kind.kind).is_some() || self.remotes.values().any(|config| config.vendor == kind) {
            return Err(ModelError::broken(format!("a provider of the kind `{}` is configured", kind.kind)));
        }
        let config = RemoteConfig { base_url: Some(address.to_owned()), ..RemoteConfig::new(kind) };
        let provider = Arc::new(Provider::new(kind.kind, config)?);
        let local = provider.host().is_some_and(|host| {
            let bare = host.trim_matches(['[', ']']);
            bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        });
        if !local {
            return Err(ModelError::broken(format!("{address} is not of this machine")));
        }
        let late = |_| ModelError::Timeout { what: "list its models", limit: patience };
        let asking = list::listed(&provider, &self.client, (self.clock)());
        let found = tokio::time::timeout(patience, asking).await.map_err(late)??;
        let count = found.len();
        let found = found.into_iter().map(|listed| (kind.kind, listed));
        self.found.write().unwrap_or_else(PoisonError::into_inner).extend(found);
        self.set_catalog((*self.catalog()).clone());
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.insert(kind.kind.to_owned(), Entry::Remote(provider));
        Ok(count)
    }

    /// The providers there are, and those that somebody may bring a key for.
    pub(super) fn all_about(&self) -> Vec<ProviderFacts> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut found: Vec<_> = entries.iter().map(|(name, entry)| self.about(name, entry)).collect();
        let unkeyed = self.remotes.iter().filter(|(name, _)| !entries.contains_key(*name));
        found.extend(unkeyed.map(|(name, config)| self.vendors(name, config.vendor)));
        // Whoever has a key may bring it, without a line in the configuration.
        let bare = VENDORS.iter().filter(|vendor| vendor.base_url.is_some() && vendor.key == KeyPlace::Required);
        let new: Vec<_> = bare.filter(|vendor| !found.iter().any(|known| known.name == vendor.kind)).collect();
        found.extend(new.into_iter().map(|vendor| self.vendors(vendor.kind, vendor)));
        found
    }

    /// The models of a provider that are known: those that the operator lists, or else those of the catalog. Of what is rented at
    /// Azure the built-in table knows the prices, and nobody knows what is deployed: of that only a document counts.
    pub(super) fn known(&self, provider: &str, vendor: &Vendor) -> Vec<ModelFacts> {
        let (catalog, kind) = (self.catalog(), Catalog::kind_of(vendor.kind));
        let listed = self.remotes.get(provider).map(|config| config.models.as_slice()).unwrap_or_default();
        if !listed.is_empty() {
            let facts = |name: &String| {
                let known = self.listed_facts(vendor, name, 100).unwrap_or_else(|| ModelFacts::unknown(kind, name));
                ModelFacts { provider: kind.to_owned(), model: name.clone(), ..known }
            };
            return listed.iter().map(facts).collect();
        }
        let ours = Catalog::built_in().version();
        let is_there = |facts: &&ModelFacts| vendor.protocol != Protocol::AzureChat || facts.version != ours;
        catalog.models().filter(|facts| facts.provider == kind).filter(is_there).cloned().collect()
    }

    fn about(&self, name: &str, entry: &Entry) -> ProviderFacts {
        let own = |kind: &'static str, title: &'static str| ProviderFacts {
            name: name.to_owned(),
            kind,
            title,
            host: None,
            key: KeyState::NotNeeded,
            key_env: &[],
            models: 1,
            calls_at_once: None,
            resting: None,
            detected: false,
        };
        match entry {
            Entry::Demo(_) => own(DEMO, "The built-in model"),
            Entry::Scripted(_) => own("scripted", "A script"),
            Entry::Remote(remote) => ProviderFacts {
                host: remote.host(),
                key: if remote.has_key() { KeyState::Operator } else { KeyState::NotNeeded },
                calls_at_once: Some(remote.calls_at_once.get()),
                detected: !self.remotes.contains_key(name),
                ..self.vendors(name, remote.vendor)
            },
        }
    }

    /// What a vendor is, without anybody's key.
    fn vendors(&self, name: &str, vendor: &Vendor) -> ProviderFacts {
        ProviderFacts {
            name: name.to_owned(),
            kind: vendor.kind,
            title: vendor.title,
            host: vendor.host().map(str::to_owned),
            key: KeyState::Missing,
            key_env: vendor.key_env,
            models: self.known(name, vendor).len(),
            calls_at_once: None,
            resting: self.health.resting(name),
            detected: false,
        }
    }
}
