//! The kinds of providers that are known by name: address, protocol, where the key comes from, and how each differs from the
//! protocol it speaks. One table; whatever is not in it and speaks chat completions is `compatible`.

mod habits;

use std::borrow::Cow;

use secrecy::ExposeSecret as _;

use self::habits::{COMPATIBLE, ORIGINAL};
pub(crate) use self::habits::{Charge, Counting, Habits, LimitName, OutputCount, Reasoning};
use crate::claude::Claude;
use crate::protocol::Protocol;
use crate::wire::auth::Credential;
use crate::wire::google::project_of;
use crate::wire::provider::{RemoteConfig, encoded};
use crate::wire::talk::IdForm;

/// Whether a provider wants a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPlace {
    /// It answers nobody without one.
    Required,
    /// A server at home may have one.
    Optional,
}

/// A kind of provider.
#[derive(Debug, PartialEq, Eq)]
pub struct Vendor {
    /// Its word in the configuration (`kind`), and the provider's name where only a key is there.
    pub kind: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// What it speaks.
    pub protocol: Protocol,
    /// Its address; none where every customer has another.
    pub base_url: Option<&'static str>,
    /// The variables its key is usually in, best first.
    pub key_env: &'static [&'static str],
    /// Whether it wants a key.
    pub key: KeyPlace,
    /// Whether it makes embeddings.
    pub embeds: bool,
    /// Whether nobody is asked to pay for it as long as it wants no key: it computes where it runs. Others may stand in
    /// front of somebody who sends bills.
    pub free: bool,
    pub(crate) habits: Habits,
}

/// A vendor with a key, an address and the habits of most.
const fn hosted(
    kind: &'static str,
    title: &'static str,
    base_url: &'static str,
    key_env: &'static [&'static str],
) -> Vendor {
    let (protocol, key) = (Protocol::Chat, KeyPlace::Required);
    let base_url = Some(base_url);
    Vendor { kind, title, protocol, base_url, key_env, key, embeds: true, free: false, habits: COMPATIBLE }
}

/// A server that people run themselves.
const fn own(kind: &'static str, title: &'static str, base_url: Option<&'static str>) -> Vendor {
    let (protocol, key) = (Protocol::Chat, KeyPlace::Optional);
    Vendor { kind, title, protocol, base_url, key_env: &[], key, embeds: true, free: true, habits: COMPATIBLE }
}

/// Every kind there is, in the order in which they are tried when one fails.
pub const VENDORS: &[Vendor] = &[
    Vendor {
        protocol: Protocol::Anthropic,
        embeds: false,
        ..hosted("anthropic", "Anthropic", "https://api.anthropic.com/v1", &["ANTHROPIC_API_KEY"])
    },
    Vendor { habits: ORIGINAL, ..hosted("openai", "OpenAI", "https://api.openai.com/v1", &["OPENAI_API_KEY"]) },
    Vendor {
        protocol: Protocol::Responses,
        ..hosted("openai-responses", "OpenAI (responses)", "https://api.openai.com/v1", &[])
    },
    Vendor {
        protocol: Protocol::Gemini,
        ..hosted(
            "gemini",
            "Google Gemini",
            "https://generativelanguage.googleapis.com/v1beta",
            &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        )
    },
    Vendor {
        habits: Habits { reasoning: Reasoning::SentBack, ..COMPATIBLE },
        embeds: false,
        ..hosted("deepseek", "DeepSeek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"])
    },
    Vendor { embeds: false, ..hosted("groq", "Groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]) },
    Vendor {
        // It refuses fields it does not know, and ids that are not nine letters and digits.
        habits: Habits { counting: Counting::ByItself, ids: IdForm::Nine, ..COMPATIBLE },
        ..hosted("mistral", "Mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"])
    },
    Vendor {
        habits: Habits { output: OutputCount::WithoutReasoning, ..COMPATIBLE },
        embeds: false,
        ..hosted("xai", "xAI", "https://api.x.ai/v1", &["XAI_API_KEY"])
    },
    Vendor {
        protocol: Protocol::Cohere,
        ..hosted("cohere", "Cohere", "https://api.cohere.com/v2", &["COHERE_API_KEY", "CO_API_KEY"])
    },
    hosted("together", "Together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"]),
    hosted("fireworks", "Fireworks", "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"]),
    Vendor {
        habits: Habits { counting: Counting::ByItself, ..COMPATIBLE },
        embeds: false,
        ..hosted("perplexity", "Perplexity", "https://api.perplexity.ai", &["PERPLEXITY_API_KEY"])
    },
    Vendor {
        // What an answer costs depends on whom it asks.
        habits: Habits { charge: Charge::Said, ..COMPATIBLE },
        ..hosted("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"])
    },
    Vendor {
        habits: Habits { counting: Counting::ByItself, reasoning: Reasoning::SentBack, ..COMPATIBLE },
        ..hosted("zhipu", "Zhipu", "https://open.bigmodel.cn/api/paas/v4", &["ZHIPU_API_KEY", "BIGMODEL_API_KEY"])
    },
    Vendor {
        // The same maker for the rest of the world: another company, and other keys.
        habits: Habits { counting: Counting::ByItself, reasoning: Reasoning::SentBack, ..COMPATIBLE },
        embeds: false,
        ..hosted("zai", "Z.ai", "https://api.z.ai/api/paas/v4", &["ZAI_API_KEY"])
    },
    Vendor {
        habits: Habits { reasoning: Reasoning::SentBack, ..COMPATIBLE },
        embeds: false,
        ..hosted("moonshot", "Moonshot", "https://api.moonshot.ai/v1", &["MOONSHOT_API_KEY"])
    },
    Vendor { embeds: false, ..hosted("cerebras", "Cerebras", "https://api.cerebras.ai/v1", &["CEREBRAS_API_KEY"]) },
    Vendor {
        kind: "azure",
        title: "Azure OpenAI",
        protocol: Protocol::AzureChat,
        base_url: None,
        key_env: &["AZURE_OPENAI_API_KEY"],
        key: KeyPlace::Required,
        embeds: true,
        free: false,
        habits: ORIGINAL,
    },
    Vendor {
        kind: "vertex",
        title: "Google Vertex AI",
        protocol: Protocol::Gemini,
        base_url: None,
        key_env: &[],
        key: KeyPlace::Required,
        embeds: true,
        free: false,
        habits: COMPATIBLE,
    },
    Vendor {
        kind: "bedrock",
        title: "Amazon Bedrock",
        protocol: Protocol::Bedrock,
        base_url: None,
        key_env: &["AWS_BEARER_TOKEN_BEDROCK"],
        key: KeyPlace::Required,
        embeds: true,
        free: false,
        habits: COMPATIBLE,
    },
    Vendor { protocol: Protocol::Ollama, ..own("ollama", "Ollama", Some("http://127.0.0.1:11434")) },
    own("llama-cpp", "llama.cpp", Some("http://127.0.0.1:8080/v1")),
    own("vllm", "vLLM", Some("http://127.0.0.1:8000/v1")),
    own("lm-studio", "LM Studio", Some("http://127.0.0.1:1234/v1")),
    Vendor { free: false, ..own("litellm", "LiteLLM proxy", Some("http://127.0.0.1:4000/v1")) },
    Vendor { free: false, ..own("compatible", "OpenAI-compatible server", None) },
];

/// The parts of the world that Bedrock's inference profiles are for: what their names begin with.
pub(crate) const BEDROCK_REGIONS: [&str; 9] = ["us", "us-gov", "eu", "apac", "jp", "au", "ca", "sa", "global"];

/// The name under which a model of Bedrock is asked from a region. Many answer nobody who does not say in which part of the
/// world; what is asked in Europe stays there, as it does elsewhere where there is a profile for it.
pub(crate) fn bedrock_profile<'a>(model: &'a str, region: &str) -> Cow<'a, str> {
    match bedrock_world(model, region) {
        Some(world) => Cow::Owned(format!("{world}.{model}")),
        None => Cow::Borrowed(model),
    }
}

fn bedrock_world(model: &str, region: &str) -> Option<&'static str> {
    let part = match region {
        "ap-northeast-1" | "ap-northeast-3" => "jp",
        "ap-southeast-2" | "ap-southeast-4" => "au",
        asia if asia.starts_with("ap-") => "apac",
        gov if gov.starts_with("us-gov-") => "us-gov",
        us if us.starts_with("us-") => "us",
        eu if eu.starts_with("eu-") => "eu",
        _ => "global",
    };
    if let Some(claude) = Claude::of(model).filter(|_| model.starts_with("anthropic.")) {
        // Those of the third generation are still rented by region.
        return claude.since(4, 0).then_some(match part {
            "jp" | "au" | "apac" if !claude.since(4, 5) => "apac",
            // Not every size is in every country.
            "jp" if claude.is_opus() && !claude.since(4, 7) => "global",
            "au" if claude.is_opus() && !claude.since(4, 6) => "global",
            "jp" | "au" if claude.is_other() => "global",
            "apac" => "global",
            part => part,
        });
    }
    if model.starts_with("amazon.nova-2-") {
        return Some(if matches!(part, "us" | "eu") { part } else { "global" });
    }
    let everywhere = ["amazon.nova-pro-", "amazon.nova-lite-", "amazon.nova-micro-"];
    if everywhere.iter().any(|name| model.starts_with(name)) {
        return match part {
            "jp" | "au" => Some("apac"),
            "us" | "us-gov" | "eu" | "apac" => Some(part),
            _ => None,
        };
    }
    let american = ["amazon.nova-premier-", "meta.llama3-3-", "meta.llama4-", "deepseek.r1-"];
    american.iter().any(|name| model.starts_with(name)).then_some("us").filter(|_| part == "us")
}

/// What a model of Bedrock costs in a part of the world, in hundredths of what it costs anywhere: whoever wants an answer from
/// nearby pays more. Where prices differ a little from model to model it is the dearest.
pub(crate) fn bedrock_percent(profile: &str) -> u64 {
    let name = profile.rsplit_once('/').map_or(profile, |(_, name)| name);
    let Some((world, model)) = name.split_once('.') else { return 100 };
    let nearby = BEDROCK_REGIONS.contains(&world) && world != "global";
    match world {
        _ if !nearby => 100,
        _ if model.starts_with("amazon.nova-2-") => 110,
        "eu" if model.starts_with("amazon.nova-") => 132,
        "apac" if model.starts_with("amazon.nova-") => 106,
        "us-gov" if model.starts_with("amazon.nova-") => 120,
        _ if !Claude::of(model).is_some_and(|claude| claude.since(4, 5)) => 100,
        "us-gov" => 120,
        _ => 110,
    }
}

/// Whether a model of OpenAI is asked through its responses. Those that reason take no tools in chat completions, or no word about
/// how much to reason beside them; whatever is newer than the names that are known here reasons.
pub(crate) fn by_responses(model: &str) -> bool {
    let name = model.strip_prefix("ft:").unwrap_or(model);
    !["gpt-3", "gpt-4", "chatgpt"].iter().any(|old| name.starts_with(old)) && !name.contains("-chat")
}

/// Whether a deployment at Azure is named after a model that takes no tools in chat completions. A deployment may have any name;
/// one that says nothing is asked as most are.
pub(crate) fn by_responses_at_azure(deployment: &str) -> bool {
    let version = deployment.strip_prefix("gpt-").and_then(|name| name.split('-').next());
    let mut numbers = version.unwrap_or_default().split('.').map(|number| number.parse::<u32>().ok());
    let Some(Some(major)) = numbers.next() else { return false };
    (major, numbers.next().flatten().unwrap_or(0)) >= (5, 4) && by_responses(deployment)
}

impl Vendor {
    /// The vendor with this word.
    #[must_use]
    pub fn of(kind: &str) -> Option<&'static Self> {
        // Other names they are known by.
        let kind = match kind {
            "google" => "gemini",
            "vertex_ai" | "vertex_ai_beta" => "vertex",
            "azure_ai" => "azure",
            "together_ai" => "together",
            "fireworks_ai" => "fireworks",
            "cohere_chat" => "cohere",
            "ollama_chat" => "ollama",
            "hosted_vllm" => "vllm",
            "lm_studio" => "lm-studio",
            "litellm_proxy" => "litellm",
            "local" | "custom" => "compatible",
            other => other,
        };
        VENDORS.iter().find(|vendor| vendor.kind == kind)
    }

    /// The host of its own address: where its well-known key may go, and nowhere else.
    #[must_use]
    pub fn host(&self) -> Option<&'static str> {
        let (_, rest) = self.base_url?.split_once("://")?;
        rest.split(['/', ':']).next()
    }

    /// Where it lists its models, after its address; none where that is at another address, or for others to see.
    pub(crate) fn list_path(&self) -> Option<&'static str> {
        match self.protocol {
            // Google's cloud lists what can be rented, not what is.
            Protocol::Gemini if self.kind == "vertex" => None,
            Protocol::Gemini => Some("models?pageSize=1000"),
            Protocol::Chat | Protocol::Responses => Some("models"),
            Protocol::Anthropic => Some("models?limit=1000"),
            Protocol::Ollama => Some("api/tags"),
            // Only the older version of the interface has one.
            Protocol::Cohere => Some("../v1/models?page_size=1000"),
            Protocol::AzureChat | Protocol::Bedrock => None,
        }
    }

    /// Whether an address is its own, be it the one of a region.
    pub(crate) fn is_at(&self, host: &str) -> bool {
        self.host().is_some_and(|own| host.strip_suffix(own).is_some_and(|part| part.is_empty() || part.ends_with('.')))
    }

    /// Its habits at an address: whoever else speaks OpenAI's protocol does so with fewer words.
    pub(crate) fn habits_at(&self, host: &str) -> Habits {
        if self.habits == ORIGINAL && self.protocol == Protocol::Chat && !self.is_at(host) {
            return COMPATIBLE;
        }
        self.habits
    }

    /// Its address where the operator gave none.
    pub(crate) fn address(&self, config: &RemoteConfig) -> Result<String, &'static str> {
        match (self.base_url, self.protocol, &config.credential) {
            (Some(base), _, _) => Ok(base.to_owned()),
            (None, Protocol::Bedrock, _) => {
                let region = config.region.as_deref().ok_or("it needs a region")?;
                Ok(format!("https://bedrock-runtime.{}.amazonaws.com", encoded(region)))
            }
            (None, Protocol::Gemini, credential) => {
                let of_account = match credential {
                    Credential::Google(file) => project_of(file.expose_secret()),
                    Credential::None | Credential::Key(_) | Credential::Aws(_) => None,
                };
                let project = config.project.clone().or(of_account).ok_or("it needs a project")?;
                let location = config.region.as_deref().unwrap_or("global");
                let host = match location {
                    "global" => "aiplatform.googleapis.com".to_owned(),
                    region => format!("{}-aiplatform.googleapis.com", encoded(region)),
                };
                let (project, location) = (encoded(&project), encoded(location));
                Ok(format!("https://{host}/v1/projects/{project}/locations/{location}/publishers/google"))
            }
            (None, _, _) => Err("it needs a base_url"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kind_has_its_own_word_and_a_real_address() {
        let kinds: BTreeSet<_> = VENDORS.iter().map(|vendor| vendor.kind).collect();
        assert_eq!(kinds.len(), VENDORS.len());
        for vendor in VENDORS {
            assert_eq!(Vendor::of(vendor.kind), Some(vendor));
            if let Some(base) = vendor.base_url {
                let url = url::Url::parse(base).unwrap();
                assert_eq!(url.host_str(), vendor.host(), "{}", vendor.kind);
                let local = vendor.host() == Some("127.0.0.1");
                assert_eq!(local, vendor.key == KeyPlace::Optional, "{}", vendor.kind);
                assert!(local || url.scheme() == "https", "{}", vendor.kind);
            }
        }
        for (word, kind) in [("google", "gemini"), ("vertex_ai", "vertex"), ("custom", "compatible")] {
            assert_eq!(Vendor::of(word).map(|vendor| vendor.kind), Some(kind));
        }
        assert!(Vendor::of("nobody").is_none());
    }

    #[test]
    fn a_well_known_key_is_of_one_vendor_alone() {
        let mut seen = BTreeSet::new();
        assert!(VENDORS.iter().flat_map(|vendor| vendor.key_env).all(|name| seen.insert(*name)), "{seen:?}");
        let host = |name: &str| VENDORS.iter().find(|vendor| vendor.key_env.contains(&name)).and_then(Vendor::host);
        assert_eq!(host("ZAI_API_KEY"), Some("api.z.ai"));
        assert_eq!(host("ZHIPU_API_KEY"), Some("open.bigmodel.cn"));
        assert_eq!(Vendor::of("zai").map(|vendor| vendor.kind), Some("zai"));
    }

    #[test]
    fn addresses_that_differ_from_customer_to_customer_are_put_together() {
        let address = |kind: &str, change: fn(&mut RemoteConfig)| {
            let mut config = RemoteConfig::new(Vendor::of(kind).unwrap());
            change(&mut config);
            config.vendor.address(&config)
        };
        assert_eq!(
            address("bedrock", |config| config.region = Some("eu-west-1".into())).unwrap(),
            "https://bedrock-runtime.eu-west-1.amazonaws.com"
        );
        assert_eq!(
            address("vertex", |config| config.project = Some("p-1".into())).unwrap(),
            "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global/publishers/google"
        );
        let regional = |config: &mut RemoteConfig| {
            config.project = Some("p-1".into());
            config.region = Some("us-east5".into());
        };
        assert!(address("vertex", regional).unwrap().starts_with("https://us-east5-aiplatform.googleapis.com/"));
        for kind in ["bedrock", "vertex", "azure", "compatible"] {
            assert!(address(kind, |_| {}).is_err(), "{kind}");
        }
    }
}
