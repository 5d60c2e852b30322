//! A provider's address, protocol, credential and patience, checked when the configuration is loaded.

use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use adjutant_core::limits::{MODEL_SILENCE, MODEL_TIMEOUT};
use url::Url;

use super::auth::{Auth, Credential};
use crate::ModelError;
use crate::claude::Claude;
use crate::protocol::{Flow, Protocol};
use crate::vendor::{Habits, KeyPlace, Vendor, bedrock_percent, bedrock_profile, by_responses, by_responses_at_azure};

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
    /// Its models, by the operator's word; none are those that the catalog knows. At Azure they are its deployments.
    pub models: Vec<String>,
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
            models: Vec::new(),
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

    /// Whether it is shown a key, or another proof.
    pub(crate) const fn has_key(&self) -> bool {
        self.auth.has_key()
    }

    /// The host it is reached at.
    pub(crate) fn host(&self) -> Option<String> {
        self.base.host_str().map(str::to_ascii_lowercase)
    }

    /// What it speaks about this model: OpenAI's models that reason are asked through another door than the older ones.
    pub(super) fn protocol(&self, model: &str) -> Protocol {
        let at_home = self.base.host_str().is_some_and(|host| self.vendor.is_at(host));
        match self.vendor.protocol {
            Protocol::Chat if self.vendor.kind == "openai" && at_home && by_responses(model) => Protocol::Responses,
            Protocol::AzureChat if by_responses_at_azure(model) => Protocol::Responses,
            protocol => protocol,
        }
    }

    /// Whether this is one of Anthropic's models, spoken to in words that know them.
    pub(crate) fn claude(&self, model: &str) -> Option<Claude> {
        let known = matches!(self.vendor.protocol, Protocol::Anthropic | Protocol::Bedrock);
        Claude::of(model).filter(|_| known)
    }

    /// Whether this is one of OpenAI's models that reason, which take no temperature.
    pub(crate) fn reasons(&self, model: &str) -> bool {
        let openai = matches!(self.vendor.kind, "openai" | "openai-responses");
        let at_home = self.base.host_str().is_some_and(|host| self.vendor.is_at(host));
        match self.vendor.protocol {
            Protocol::AzureChat => by_responses_at_azure(model),
            Protocol::Chat | Protocol::Responses => openai && at_home && by_responses(model),
            Protocol::Anthropic | Protocol::Gemini | Protocol::Ollama | Protocol::Cohere | Protocol::Bedrock => false,
        }
    }

    /// What this model costs here, in hundredths of what it costs anywhere.
    pub(crate) fn percent(&self, model: &str) -> u64 {
        percent(self.vendor, self.region.as_deref(), model)
    }

    /// Where a request for this model goes.
    pub(super) fn endpoint(&self, model: &str, flow: Flow) -> Result<Url, ModelError> {
        let protocol = self.protocol(model);
        match (protocol, &self.region) {
            (Protocol::Bedrock, Some(region)) => self.at(&protocol.path(&bedrock_profile(model, region), flow)),
            // Azure's door to the responses is the same for all deployments and has no versions.
            (Protocol::Responses, _) if self.vendor.protocol == Protocol::AzureChat => {
                self.below(&format!("openai/v1/{}", protocol.path(model, flow)))
            }
            // So is its newer one to chat completions; behind the older one a version knows the models of its time alone.
            (Protocol::AzureChat, _) if self.api_version.is_none() => {
                self.below(&format!("openai/v1/{}", Protocol::Chat.path(model, flow)))
            }
            (_, _) => self.at(&protocol.path(model, flow)),
        }
    }

    /// A path below its address.
    pub(super) fn at(&self, path: &str) -> Result<Url, ModelError> {
        match (self.vendor.protocol, &self.api_version) {
            (Protocol::AzureChat, version) => {
                let version = version.as_deref().unwrap_or(AZURE_VERSION);
                self.below(&format!("{path}?api-version={}", encoded(version)))
            }
            (_, _) => self.below(path),
        }
    }

    fn below(&self, path: &str) -> Result<Url, ModelError> {
        let text = format!("{}/{path}", self.base.as_str().trim_end_matches('/'));
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

/// What a model costs at a provider, in hundredths of what it costs anywhere.
pub(crate) fn percent(vendor: &Vendor, region: Option<&str>, model: &str) -> u64 {
    match (vendor.protocol, region) {
        (Protocol::Bedrock, Some(region)) => bedrock_percent(&bedrock_profile(model, region)),
        (Protocol::Bedrock, None) => bedrock_percent(model),
        (_, _) => 100,
    }
}

/// The version of Azure's interface that is asked for embeddings when none is configured: they have not changed since.
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
        Provider::new("local", config).unwrap().endpoint(model, Flow::Pieces).unwrap().path().to_owned()
    }

    #[test]
    fn openais_models_that_reason_are_asked_by_responses_there_and_nowhere_else() {
        let path = |model: &str| endpoint("openai", None, None, model);
        for reasons in [
            "gpt-5.4",
            "gpt-5-mini",
            "gpt-5.6-sol",
            "gpt-6-astra",
            "gpt-9",
            "o4-mini",
            "o3-pro",
            "gpt-5-pro-2025-10-06",
            "o3-deep-research",
        ] {
            assert_eq!(path(reasons), "/v1/responses", "{reasons}");
        }
        for usual in ["gpt-4.1-2025-04-14", "gpt-4o", "gpt-3.5-turbo", "gpt-5.3-chat-latest", "ft:gpt-4o-mini:lab::1"] {
            assert_eq!(path(usual), "/v1/chat/completions", "{usual}");
        }
        let europe = Some("https://eu.api.openai.com/v1");
        assert_eq!(endpoint("openai", europe, None, "gpt-5.4"), "/v1/responses");
        let lookalike = Some("https://notapi.openai.com/v1");
        assert_eq!(endpoint("openai", lookalike, None, "gpt-5.4"), "/v1/chat/completions");
        let proxy = endpoint("openai", Some("https://proxy.example.com/v1"), None, "gpt-5-codex");
        assert_eq!(proxy, "/v1/chat/completions", "what stands before it has its own ways");
        assert_eq!(endpoint("openrouter", None, None, "openai/gpt-5-codex"), "/api/v1/chat/completions");
    }

    #[test]
    fn deployments_named_after_models_that_take_no_tools_in_chat_completions_are_asked_by_responses() {
        let base = Some("https://lab.openai.azure.com");
        let path = |model: &str| endpoint("azure", base, None, model);
        for reasons in ["gpt-5.4", "gpt-5.6-sol", "gpt-6-luna", "gpt-6.1-terra"] {
            assert_eq!(path(reasons), "/openai/v1/responses", "{reasons}");
        }
        for usual in ["gpt-5", "gpt-5.2", "gpt-4.1", "gpt-4o", "o3", "prod", "gpt-"] {
            assert_eq!(path(usual), "/openai/v1/chat/completions", "{usual}");
        }
    }

    #[test]
    fn azure_is_asked_without_a_version_unless_the_operator_names_one() {
        let address = |api_version: Option<&str>, model: &str| {
            let config = RemoteConfig {
                base_url: Some("https://lab.openai.azure.com/".to_owned()),
                credential: Credential::Key(ApiKey::for_its_address(SecretString::from("sk-secret"))),
                api_version: api_version.map(str::to_owned),
                ..RemoteConfig::new(Vendor::of("azure").unwrap())
            };
            let url = Provider::new("local", config).unwrap().endpoint(model, Flow::Pieces).unwrap();
            url.as_str().strip_prefix("https://lab.openai.azure.com").unwrap().to_owned()
        };
        assert_eq!(address(None, "o3"), "/openai/v1/chat/completions");
        let dated = address(Some("2025-04-01-preview"), "our o3");
        assert_eq!(dated, "/openai/deployments/our%20o3/chat/completions?api-version=2025-04-01-preview");
        for version in [None, Some("2024-10-21")] {
            assert_eq!(address(version, "gpt-5.4"), "/openai/v1/responses", "it takes no tools otherwise");
        }
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
            ["eu.anthropic.claude-sonnet-5", "openai.gpt-oss-20b-1:0", "anthropic.claude-3-haiku-20240307-v1:0"]
        {
            assert_eq!(asked("us-east-1", as_it_is), as_it_is);
        }
        for (region, model, profile) in [
            ("ap-northeast-1", "anthropic.claude-opus-4-6-v1", "global.anthropic.claude-opus-4-6-v1"),
            ("ap-northeast-1", "anthropic.claude-opus-4-8", "jp.anthropic.claude-opus-4-8"),
            ("ap-southeast-2", "anthropic.claude-fable-5", "global.anthropic.claude-fable-5"),
            ("ap-south-1", "anthropic.claude-sonnet-4-20250514-v1:0", "apac.anthropic.claude-sonnet-4-20250514-v1:0"),
            ("eu-west-1", "amazon.nova-pro-v1:0", "eu.amazon.nova-pro-v1:0"),
            ("ap-southeast-2", "amazon.nova-lite-v1:0", "apac.amazon.nova-lite-v1:0"),
            ("ca-central-1", "amazon.nova-2-lite-v1:0", "global.amazon.nova-2-lite-v1:0"),
            ("us-west-2", "meta.llama4-scout-17b-instruct-v1:0", "us.meta.llama4-scout-17b-instruct-v1:0"),
            ("us-west-2", "deepseek.r1-v1:0", "us.deepseek.r1-v1:0"),
            ("eu-west-1", "meta.llama4-scout-17b-instruct-v1:0", "meta.llama4-scout-17b-instruct-v1:0"),
        ] {
            assert_eq!(asked(region, model), profile, "{region}");
        }
    }
}
