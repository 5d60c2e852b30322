//! The models of an instance, from what the configuration says. A provider without its key is left out, not guessed.

use std::sync::Arc;

use adjutant_engine::models::{ApiKey, Credential, Models, ProviderConfig, ProviderKind, RemoteConfig, Vendor};
use adjutant_engine::{ModelSource, provider_client};

use crate::config::{Kind, Provider};
use crate::failure::Failure;

/// Makes the models of these providers, and the built-in one.
pub(crate) fn models(providers: &[Provider]) -> Result<ModelSource, Failure> {
    let mut configs = Vec::new();
    for provider in providers.iter().filter(|provider| provider.missing.is_none()) {
        configs.push(ProviderConfig { name: provider.name.clone(), kind: kind(provider)? });
    }
    let client = provider_client().map_err(|error| Failure::other(format!("No connection can be made: {error}.")))?;
    let models =
        Models::new(configs, client).map_err(|error| Failure::usage(format!("The models cannot be used: {error}.")))?;
    Ok(Arc::new(move |name| models.resolve(name)))
}

fn kind(provider: &Provider) -> Result<ProviderKind, Failure> {
    Ok(match &provider.kind {
        Kind::OpenAi { base_url, key, .. } => {
            let vendor = Vendor::of("openai").ok_or_else(|| Failure::other("There is no kind `openai`."))?;
            let key = key.clone().map(|key| Credential::Key(ApiKey::for_its_address(key)));
            let credential = key.unwrap_or(Credential::None);
            ProviderKind::Remote(RemoteConfig { base_url: base_url.clone(), credential, ..RemoteConfig::new(vendor) })
        }
        Kind::Scripted(path) => {
            let script = std::fs::read_to_string(path).map_err(|error| {
                Failure::usage(format!(
                    "The script of provider `{}` cannot be read: {}: {error}.",
                    provider.name,
                    path.display()
                ))
            })?;
            ProviderKind::Scripted { script }
        }
    })
}
