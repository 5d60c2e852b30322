//! The models of an instance, from what the configuration says. A provider without its key is left out, not guessed.

use std::path::Path;
use std::sync::Arc;

use adjutant_engine::models::catalog::Catalog;
use adjutant_engine::models::{ApiKey, Credential, Models, ProviderConfig, ProviderKind, RemoteConfig, Scripted};
use adjutant_engine::provider_client;
use secrecy::SecretString;

use super::catalog::synced;
use crate::config::{Kind, Proof, Provider, Remote};
use crate::failure::Failure;

/// Makes the models of these providers, and the built-in one.
pub(crate) fn models(providers: &[Provider], catalog: &Path) -> Result<Arc<Models>, Failure> {
    let mut configs = Vec::new();
    for provider in providers.iter().filter(|provider| provider.missing.is_none()) {
        let prices = provider.prices.clone();
        configs.push(ProviderConfig { name: provider.name.clone(), kind: kind(provider)?, prices });
    }
    let client = provider_client().map_err(|error| Failure::other(format!("No connection can be made: {error}.")))?;
    let mut models =
        Models::new(configs, client).map_err(|error| Failure::usage(format!("The models cannot be used: {error}.")))?;
    // Somebody may bring a key for what the operator has none for.
    for provider in providers.iter().filter(|provider| provider.missing.is_some()) {
        if let Kind::Remote(remote) = &provider.kind {
            models = models.with_unkeyed(&provider.name, config(remote, Credential::None), provider.prices.clone());
        }
    }
    if let Ok(bytes) = std::fs::read(catalog) {
        let mut known = Catalog::built_in().clone();
        match known.import(&bytes, &synced(&bytes)) {
            Ok(_) => models.set_catalog(known),
            Err(error) => {
                tracing::warn!(%error, file = %catalog.display(), "the catalog cannot be used; the built-in one is");
            }
        }
    }
    Ok(Arc::new(models))
}

fn kind(provider: &Provider) -> Result<ProviderKind, Failure> {
    Ok(match &provider.kind {
        Kind::Remote(remote) => {
            ProviderKind::Remote(Box::new(config(remote, credential(&provider.name, &remote.proof)?)))
        }
        Kind::Scripted(path) => {
            let script = read(&provider.name, "script", path)?;
            let bad = |error| Failure::usage(format!("{}: {error}.", path.display()));
            Scripted::parse(&script).map_err(bad)?;
            ProviderKind::Scripted { script }
        }
    })
}

fn config(remote: &Remote, credential: Credential) -> RemoteConfig {
    RemoteConfig {
        base_url: remote.base_url.clone(),
        credential,
        region: remote.region.clone(),
        project: remote.project.clone(),
        api_version: remote.api_version.clone(),
        models: remote.models.clone(),
        calls_at_once: remote.calls_at_once,
        timeouts: remote.timeouts,
        ..RemoteConfig::new(remote.vendor)
    }
}

fn credential(provider: &str, proof: &Proof) -> Result<Credential, Failure> {
    Ok(match proof {
        Proof::None => Credential::None,
        Proof::Key { key, .. } => Credential::Key(ApiKey::for_its_address(key.clone())),
        Proof::Aws(key) => Credential::Aws(key.clone()),
        Proof::Google(file) => Credential::Google(SecretString::from(read(provider, "account", file)?)),
    })
}

fn read(provider: &str, what: &str, path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!("The {what} of provider `{provider}` cannot be read: {}: {error}.", path.display()))
    })
}
