//! A provider's address, protocol, credential and patience, checked when the configuration is loaded.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use adjutant_core::limits::{MODEL_SILENCE, MODEL_TIMEOUT};
use url::Url;

use super::auth::{Auth, Credential};
use crate::ModelError;
use crate::protocol::Protocol;
use crate::vendor::{Habits, KeyPlace, Vendor, bedrock_profile, only_responses};

/// Calls that a provider may have at once unless the operator says otherwise.
pub const CALLS_AT_ONCE: NonZeroUsize = match NonZeroUsize::new(64) {
    Some(calls) => calls,
    None => NonZeroUsize::MIN,
};

/// How long to wait for what. Slow local models may need more than the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// For the whole answer.
    pub total: Duration,
    /// For its first byte.
    pub first_byte: Duration,
    /// Between two pieces.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { total: MODEL_TIMEOUT, first_byte: MODEL_SILENCE, idle: MODEL_SILENCE }
    }
}

/// A provider that is reached over the network, as the operator configured it.
#[derive(Debug, Clone)]
pub struct RemoteConfig {
    /// Whose protocol and habits it has.
    pub vendor: &'static Vendor,
    /// Its address; none is the vendor's own.
    pub base_url: Option<String>,
    /// What proves who calls.
    pub credential: Credential,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// The region (Bedrock) or location (Vertex AI).
    pub region: Option<String>,
    /// The project (Vertex AI); none is the one of the account.
    pub project: Option<String>,
    /// The version of the interface (Azure OpenAI).
    pub api_version: Option<String>,
    /// Calls that it may have at once, whoever makes them and with which key.
    pub calls_at_once: NonZeroUsize,
}

impl RemoteConfig {
    /// A provider of this vendor, at its own address and without a key.
    #[must_use]
    pub fn new(vendor: &'static Vendor) -> Self {
        Self {
            vendor,
            base_url: None,
            credential: Credential::None,
            timeouts: Timeouts::default(),
            region: None,
            project: None,
            api_version: None,
            calls_at_once: CALLS_AT_ONCE,
        }
    }
}

/// A provider.
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) vendor: &'static Vendor,
    /// How it differs from its protocol.
    pub(crate) habits: Habits,
    /// What every path begins with; without a slash at its end.
    base: Url,
    pub(super) timeouts: Timeouts,
    pub(super) auth: Auth,
    api_version: Option<String>,
    region: Option<String>,
    pub(crate) calls_at_once: NonZeroUsize,
}

impl Provider {
    /// Checks the configuration of a provider.
    pub(crate) fn new(name: &str, config: RemoteConfig) -> Result<Self, ModelError> {
        let broken = |why: &str| ModelError::broken(format!("provider `{name}`: {why}"));
        let vendor = config.vendor;
        let base = match &config.base_url {
            Some(base) => base.clone(),
            None if vendor.key == KeyPlace::Required && matches!(config.credential, Credential::None) => {
                return Err(broken("it needs a key, or the base_url of a server that wants none"));
            }
            None => vendor.address(&config).map_err(broken)?,
        };
        let mut base = Url::parse(&base).map_err(|_| broken("its base_url is not an address"))?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(broken("its base_url has to begin with http:// or https://"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            return Err(broken("its base_url holds a name or password; use api_key"));
        }
        base.set_fragment(None);
        base.set_query(None);
        let region = config.region.clone();
        let auth = Auth::new(vendor, config.credential, config.region, &base).map_err(|why| broken(&why))?;
        let RemoteConfig { timeouts, api_version, calls_at_once, .. } = config;
        let habits = vendor.habits_at(base.host_str().unwrap_or_default());
        Ok(Self { name: name.to_owned(), vendor, habits, base, timeouts, auth, api_version, region, calls_at_once })
    }

    /// Whether nobody is asked to pay for its models.
    pub(crate) const fn is_free(&self) -> bool {
        self.vendor.free && !self.auth.has_key()
    }

    /// The host it is reached at.
    pub(crate) fn host(&self) -> Option<String> {
        self.base.host_str().map(str::to_ascii_lowercase)
    }

    /// What it speaks about this model: some of OpenAI's are not behind the door that most are.
    pub(super) fn protocol(&self, model: &str) -> Protocol {
        let at_home = self.host().as_deref() == self.vendor.host();
        match self.vendor.protocol {
            Protocol::Chat if self.vendor.kind == "openai" && at_home && only_responses(model) => Protocol::Responses,
            protocol => protocol,
        }
    }

    /// Where a request for this model goes.
    pub(super) fn endpoint(&self, model: &str) -> Result<Url, ModelError> {
        let protocol = self.protocol(model);
        match (protocol, &self.region) {
            (Protocol::Bedrock, Some(region)) => self.at(&protocol.path(&bedrock_profile(model, region))),
            (_, _) => self.at(&protocol.path(model)),
        }
    }

    /// A path below its address.
    pub(super) fn at(&self, path: &str) -> Result<Url, ModelError> {
        let base = self.base.as_str().trim_end_matches('/');
        let text = match (self.vendor.protocol, &self.api_version) {
            (Protocol::AzureChat, version) => {
                let version = version.as_deref().unwrap_or(AZURE_VERSION);
                format!("{base}/{path}?api-version={}", encoded(version))
            }
            (_, _) => format!("{base}/{path}"),
        };
        Url::parse(&text).map_err(|_| ModelError::broken(format!("provider `{}`: no address for the model", self.name)))
    }

    /// Where it lists its models.
    pub(super) fn list(&self) -> Result<Url, ModelError> {
        let none = || ModelError::broken(format!("provider `{}` has no list of models that it shows here", self.name));
        let path = self.vendor.list_path().ok_or_else(none)?;
        let base = format!("{}/", self.base.as_str().trim_end_matches('/'));
        Url::parse(&base).and_then(|base| base.join(path)).map_err(|_| none())
    }

    /// The text without the key, should a provider have sent it back.
    pub(super) fn redact(&self, text: &str) -> String {
        self.auth.redact(text)
    }
}

/// The version of Azure's interface that is asked for when none is configured.
const AZURE_VERSION: &str = "2024-10-21";

/// A text as one segment of a path: everything that is not a plain letter or digit is escaped.
pub(crate) fn encoded(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("%{byte:02X}"));
        }
    }
    written
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("name", &self.name)
            .field("host", &self.base.host_str())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::ApiKey;

    fn endpoint(kind: &str, base_url: Option<&str>, region: Option<&str>, model: &str) -> String {
        let key = ApiKey::for_its_address(SecretString::from("sk-secret"));
        let config = RemoteConfig {
            base_url: base_url.map(str::to_owned),
            region: region.map(str::to_owned),
            credential: Credential::Key(key),
            ..RemoteConfig::new(Vendor::of(kind).unwrap())
        };
        Provider::new("local", config).unwrap().endpoint(model).unwrap().path().to_owned()
    }

    #[test]
    fn what_openai_has_only_behind_its_responses_is_asked_there_and_nowhere_else() {
        let path = |model: &str| endpoint("openai", None, None, model);
        for only in ["gpt-5.1-codex-max", "gpt-5-pro", "o3-pro", "gpt-5-pro-2025-10-06", "o3-deep-research"] {
            assert_eq!(path(only), "/v1/responses", "{only}");
        }
        for usual in ["gpt-5.4", "gpt-5-mini", "o4-mini", "gpt-4.1-2025-04-14"] {
            assert_eq!(path(usual), "/v1/chat/completions", "{usual}");
        }
        let proxy = endpoint("openai", Some("https://proxy.example.com/v1"), None, "gpt-5-codex");
        assert_eq!(proxy, "/v1/chat/completions", "what stands before it has its own ways");
        assert_eq!(endpoint("openrouter", None, None, "openai/gpt-5-codex"), "/api/v1/chat/completions");
    }

    #[test]
    fn anthropics_models_at_bedrock_are_asked_in_the_part_of_the_world_of_the_region() {
        let asked = |region: &str, model: &str| {
            let path = endpoint("bedrock", None, Some(region), model);
            path.split('/').nth(2).unwrap_or_default().replace("%3A", ":")
        };
        let sonnet = "anthropic.claude-sonnet-4-5-20250929-v1:0";
        for (region, world) in [
            ("us-east-1", "us"),
            ("eu-central-1", "eu"),
            ("ap-northeast-1", "jp"),
            ("ap-south-1", "global"),
            ("us-gov-west-1", "us-gov"),
        ] {
            assert_eq!(asked(region, sonnet), format!("{world}.{sonnet}"));
        }
        for as_it_is in
            ["eu.anthropic.claude-sonnet-5", "amazon.nova-pro-v1:0", "anthropic.claude-3-haiku-20240307-v1:0"]
        {
            assert_eq!(asked("us-east-1", as_it_is), as_it_is);
        }
    }
}
