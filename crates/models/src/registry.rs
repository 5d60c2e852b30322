//! The providers of an instance by name, and the way from a model's name (`provider/rest`) to the thing that answers. A
//! configuration that cannot work is refused here, when it is loaded, not when the first run needs it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use secrecy::SecretString;

use crate::demo::Demo;
use crate::openai::{OpenAi, Provider, Timeouts};
use crate::{Model, ModelError, Scripted};

/// The name of the built-in provider.
const DEMO: &str = "demo";
/// The one model it has.
const GUIDE: &str = "guide";

/// One provider as the operator configured it.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// The part of a model's name before the first slash.
    pub name: String,
    /// What it is.
    pub kind: ProviderKind,
}

/// The kinds of providers there are.
#[derive(Debug, Clone)]
pub enum ProviderKind {
    /// Anything that speaks the chat completions protocol: the original, llama.cpp, vLLM, LM Studio, Ollama's `/v1`.
    OpenAi {
        /// The address up to and with `/v1`; none is the original, which needs a key.
        base_url: Option<String>,
        /// The key, if the server wants one.
        api_key: Option<SecretString>,
        /// How long to wait for what.
        timeouts: Timeouts,
    },
    /// Answers from a script.
    Scripted {
        /// The text of the script (not the name of its file).
        script: String,
    },
}

enum Entry {
    Demo(Arc<Demo>),
    OpenAi(Arc<Provider>),
    Scripted(Arc<Scripted>),
}

/// The providers of this instance.
pub struct Models {
    entries: BTreeMap<String, Entry>,
    client: reqwest::Client,
}

impl Models {
    /// Takes the configuration and the client every provider is called with.
    ///
    /// # Errors
    /// `Broken` when a provider cannot work as it is configured.
    pub fn new(config: Vec<ProviderConfig>, client: reqwest::Client) -> Result<Self, ModelError> {
        let mut entries = BTreeMap::from([(DEMO.to_owned(), Entry::Demo(Arc::new(Demo::default())))]);
        for ProviderConfig { name, kind } in config {
            check_name(&name)?;
            let entry = match kind {
                ProviderKind::OpenAi { base_url, api_key, timeouts } => {
                    Entry::OpenAi(Arc::new(Provider::new(&name, base_url.as_deref(), api_key, timeouts)?))
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
        Ok(Self { entries, client })
    }

    /// Only the built-in provider.
    #[must_use]
    pub fn built_in(client: reqwest::Client) -> Self {
        let demo = Entry::Demo(Arc::new(Demo::default()));
        Self { entries: BTreeMap::from([(DEMO.to_owned(), demo)]), client }
    }

    /// Finds the model of this name: the provider before the first slash, its own name for the model after it.
    ///
    /// # Errors
    /// `UnknownModel` when there is no such provider, or none such of its models.
    pub fn resolve(&self, model: &str) -> Result<Arc<dyn Model>, ModelError> {
        let unknown = |hint: String| ModelError::UnknownModel { model: model.to_owned(), hint };
        let names = || self.providers().collect::<Vec<_>>().join(", ");
        let Some((provider, rest)) = model.split_once('/').filter(|(_, rest)| !rest.is_empty()) else {
            return Err(unknown(format!("; write it as provider/model (providers: {})", names())));
        };
        match self.entries.get(provider) {
            None => Err(unknown(format!(", there is no provider `{provider}` (providers: {})", names()))),
            Some(Entry::Demo(demo)) if rest == GUIDE => Ok(Arc::clone(demo) as Arc<dyn Model>),
            Some(Entry::Demo(_)) => Err(unknown(format!(", the built-in one is `{DEMO}/{GUIDE}`"))),
            Some(Entry::OpenAi(provider)) => {
                Ok(Arc::new(OpenAi::new(Arc::clone(provider), self.client.clone(), rest.to_owned())))
            }
            Some(Entry::Scripted(scripted)) => Ok(Arc::clone(scripted) as Arc<dyn Model>),
        }
    }

    /// The names of the providers, sorted.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }
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
        f.debug_set().entries(self.entries.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> reqwest::Client {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::new()
    }

    fn config(name: &str, kind: ProviderKind) -> ProviderConfig {
        ProviderConfig { name: name.to_owned(), kind }
    }

    fn scripted(script: &str) -> ProviderKind {
        ProviderKind::Scripted { script: script.to_owned() }
    }

    fn openai(base_url: Option<&str>, key: Option<&str>) -> ProviderKind {
        let api_key = key.map(SecretString::from);
        ProviderKind::OpenAi { base_url: base_url.map(str::to_owned), api_key, timeouts: Timeouts::default() }
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
    fn a_key_alone_is_enough_for_the_well_known_address() {
        let models = Models::new(vec![config("openai", openai(None, Some("sk-secret")))], client()).unwrap();
        assert!(models.resolve("openai/gpt-5").is_ok());
        assert!(!format!("{models:?}").contains("secret"));
    }
}
