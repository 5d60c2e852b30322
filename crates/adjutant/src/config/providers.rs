//! The providers of models: those that the file names, and those whose well-known key is in the environment. Keys are read
//! from variables and never stored.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use adjutant_core::guard::policy::parse_seconds;
use adjutant_engine::models::catalog::{PriceTier, Prices, Rate};
use adjutant_engine::models::{AwsKey, CALLS_AT_ONCE, KeyPlace, Protocol, Timeouts, VENDORS, Vendor};
use secrecy::SecretString;

use super::Origin;
use super::file::WrittenProvider;
use super::reader::Reader;
use crate::suggest;

const SCRIPTED: &str = "scripted";
/// Seconds that an answer may take: as long as a run may.
const LONGEST: u64 = 24 * 60 * 60;

/// A provider of models.
#[derive(Debug, Clone)]
pub(crate) struct Provider {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) origin: Origin,
    /// Why it cannot be used now.
    pub(crate) missing: Option<String>,
    /// What its models cost, where the operator says so.
    pub(crate) prices: Option<Prices>,
}

/// What a provider is.
#[derive(Debug, Clone)]
pub(crate) enum Kind {
    /// Reached over the network.
    Remote(Box<Remote>),
    /// Answers from a script.
    Scripted(PathBuf),
}

/// A provider that is reached over the network.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) vendor: &'static Vendor,
    pub(crate) base_url: Option<String>,
    pub(crate) proof: Proof,
    pub(crate) region: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) api_version: Option<String>,
    /// Its models, where the operator lists them.
    pub(crate) models: Vec<String>,
    /// Calls that it may have at once.
    pub(crate) calls_at_once: NonZeroUsize,
    /// How long to wait for what.
    pub(crate) timeouts: Timeouts,
}

/// What proves to a provider who calls, and where it was found.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    None,
    Key {
        key: SecretString,
        from: String,
    },
    Aws(AwsKey),
    /// A service-account or application-default file.
    Google(PathBuf),
}

impl Reader<'_> {
    pub(super) fn providers(&mut self) -> Vec<Provider> {
        let file = self.file;
        let mut providers: Vec<_> = file.providers.iter().filter_map(|written| self.provider(written)).collect();
        for vendor in VENDORS.iter().filter(|vendor| vendor.base_url.is_some()) {
            if let Some((key, from)) = self.well_known(vendor)
                && !providers.iter().any(|provider| provider.name == vendor.kind)
            {
                let origin = Origin::Env(from.clone());
                let proof = Proof::Key { key, from };
                let remote = Remote {
                    vendor,
                    base_url: None,
                    proof,
                    region: None,
                    project: None,
                    api_version: None,
                    models: Vec::new(),
                    calls_at_once: CALLS_AT_ONCE,
                    timeouts: Timeouts::default(),
                };
                let (name, kind) = (vendor.kind.to_owned(), Kind::Remote(Box::new(remote)));
                providers.push(Provider { name, kind, origin, missing: None, prices: None });
            }
        }
        providers
    }

    fn provider(&mut self, written: &WrittenProvider) -> Option<Provider> {
        let origin = Origin::File(self.file.path.clone(), written.line);
        let text = |key: &str| written.keys.get(key).map(|value| value.text.clone());
        let kind = match text("kind") {
            Some(kind) if kind == SCRIPTED => {
                self.forbid(
                    written,
                    &[
                        "base_url",
                        "api_key_env",
                        "region",
                        "project",
                        "api_version",
                        "models",
                        "credentials_file",
                        "calls_at_once",
                        "timeout",
                        "first_byte_timeout",
                        "idle_timeout",
                    ],
                );
                let Some(script) = text("script") else {
                    self.refuse(written, "it needs script = \"FILE\"");
                    return None;
                };
                Kind::Scripted(self.beside(&script))
            }
            Some(kind) => {
                let Some(vendor) = Vendor::of(&kind) else {
                    let kinds: Vec<_> = VENDORS.iter().map(|vendor| vendor.kind).chain([SCRIPTED]).collect();
                    self.refuse(written, &format!("unknown kind `{kind}`, {}", suggest::advice(&kind, &kinds)));
                    return None;
                };
                return self.remote(written, vendor, origin);
            }
            None => {
                self.refuse(written, "it needs a kind, such as \"anthropic\", \"openai\", \"ollama\" or \"scripted\"");
                return None;
            }
        };
        let prices = self.prices(written);
        Some(Provider { name: written.name.clone(), kind, origin, missing: None, prices })
    }

    fn remote(&mut self, written: &WrittenProvider, vendor: &'static Vendor, origin: Origin) -> Option<Provider> {
        self.forbid(written, &["script"]);
        let text = |key: &str| written.keys.get(key).map(|value| value.text.clone());
        let (base_url, named) = (text("base_url"), text("api_key_env"));
        if base_url.is_none() && vendor.kind == "compatible" {
            self.refuse(written, "it needs base_url");
            return None;
        }
        let file = text("credentials_file").map(|file| self.beside(&file));
        let (proof, missing) = match (named, file) {
            (Some(from), _) => match self.env.get(&from) {
                Some(key) => (Proof::Key { key: SecretString::from(key), from }, None),
                None => (Proof::None, Some(format!("the variable {from} is not set"))),
            },
            (None, Some(file)) => (Proof::Google(file), None),
            (None, None) => self.usual_proof(vendor, base_url.as_deref()),
        };
        let region = text("region").or_else(|| match vendor.protocol {
            Protocol::Bedrock => {
                let known = self.env.get("AWS_REGION").or_else(|| self.env.get("AWS_DEFAULT_REGION"));
                known.map(str::to_owned)
            }
            _ => None,
        });
        let (project, api_version) = (text("project"), text("api_version"));
        let (calls_at_once, timeouts) = (self.calls_at_once(written), self.timeouts(written));
        let models = text("models").unwrap_or_default();
        let models = models.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let remote = Remote { vendor, base_url, proof, region, project, api_version, models, calls_at_once, timeouts };
        let kind = Kind::Remote(Box::new(remote));
        let prices = self.prices(written);
        Some(Provider { name: written.name.clone(), kind, origin, missing, prices })
    }

    fn calls_at_once(&mut self, written: &WrittenProvider) -> NonZeroUsize {
        let Some(value) = written.keys.get("calls_at_once") else { return CALLS_AT_ONCE };
        value.text.parse().unwrap_or_else(|_| {
            self.refuse(written, "`calls_at_once` has to be a number from 1 on");
            CALLS_AT_ONCE
        })
    }

    /// How long to wait. Whoever waits longer for the first byte waits as long for the whole, if nothing else is said.
    fn timeouts(&mut self, written: &WrittenProvider) -> Timeouts {
        let usual = Timeouts::default();
        let mut span = |key: &str| {
            let text = written.keys.get(key).map(|value| value.text.clone())?;
            let span = parse_seconds(&text).filter(|seconds| (1..=LONGEST).contains(seconds)).map(Duration::from_secs);
            if span.is_none() {
                self.refuse(written, &format!("`{key}` has to be a span from 1s to 24h, such as \"10m\""));
            }
            span
        };
        let (total, first, idle) = (span("timeout"), span("first_byte_timeout"), span("idle_timeout"));
        let (first_byte, idle) = (first.unwrap_or(usual.first_byte), idle.unwrap_or(usual.idle));
        Timeouts { total: total.unwrap_or_else(|| usual.total.max(first_byte).max(idle)), first_byte, idle }
    }

    /// The prices that the operator wrote: dollars for a million tokens, as texts, so that they are exact.
    fn prices(&mut self, written: &WrittenProvider) -> Option<Prices> {
        let mut rate = |key: &str| {
            let text = written.keys.get(key).map(|value| value.text.clone())?;
            let rate = Rate::parse(&text);
            if rate.is_none() {
                self.refuse(written, &format!("`{key}` has to be dollars for a million tokens, such as \"0.25\""));
            }
            rate
        };
        let (input, output) = (rate("input_usd"), rate("output_usd"));
        if input.is_some() != output.is_some() {
            self.refuse(written, "input_usd and output_usd belong together");
        }
        let base = PriceTier { input: Some(input?), output: Some(output?), ..PriceTier::default() };
        Some(Prices { base, over: Vec::new() })
    }

    /// What a vendor's own tools would use. A well-known key goes to the vendor's own address only (design K4).
    fn usual_proof(&self, vendor: &'static Vendor, base_url: Option<&str>) -> (Proof, Option<String>) {
        let elsewhere = base_url.is_some() && vendor.base_url.is_some();
        if let Some((key, from)) = self.well_known(vendor).filter(|_| !elsewhere) {
            return (Proof::Key { key, from }, None);
        }
        if vendor.protocol == Protocol::Bedrock
            && let (Some(access), Some(secret)) =
                (self.env.get("AWS_ACCESS_KEY_ID"), self.env.get("AWS_SECRET_ACCESS_KEY"))
        {
            let session = self.env.get("AWS_SESSION_TOKEN").map(SecretString::from);
            return (
                Proof::Aws(AwsKey { access: access.to_owned(), secret: SecretString::from(secret), session }),
                None,
            );
        }
        if vendor.kind == "vertex"
            && let Some(file) = self.env.get("GOOGLE_APPLICATION_CREDENTIALS")
        {
            return (Proof::Google(PathBuf::from(file)), None);
        }
        let missing = match (vendor.key, vendor.key_env.first()) {
            // At another address there may be a server of one's own that wants none.
            (KeyPlace::Optional, _) => None,
            (KeyPlace::Required, _) if elsewhere => None,
            (KeyPlace::Required, Some(name)) => Some(format!("neither api_key_env nor the variable {name} is set")),
            (KeyPlace::Required, None) => Some("it has no credential (see the page about models)".to_owned()),
        };
        (Proof::None, missing)
    }

    fn well_known(&self, vendor: &Vendor) -> Option<(SecretString, String)> {
        let found = vendor.key_env.iter().find_map(|name| Some((self.env.get(name)?, name)));
        found.map(|(key, name)| (SecretString::from(key), (*name).to_owned()))
    }

    /// A file that the configuration names, from the folder it lies in.
    fn beside(&self, file: &str) -> PathBuf {
        self.file.path.parent().unwrap_or(Path::new("")).join(file)
    }

    fn refuse(&mut self, written: &WrittenProvider, why: &str) {
        let (path, line, name) = (self.file.path.display(), written.line, &written.name);
        self.problems.push(format!("{path}:{line}: provider `{name}`: {why}"));
    }

    fn forbid(&mut self, written: &WrittenProvider, keys: &[&str]) {
        for key in keys.iter().filter(|key| written.keys.contains_key(**key)) {
            self.refuse(written, &format!("`{key}` does not belong to its kind"));
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Remote(remote) => {
                let at = remote.base_url.as_deref().unwrap_or("the well-known address");
                write!(f, "{} at {at}", remote.vendor.kind)?;
                match &remote.proof {
                    Proof::None => {}
                    Proof::Key { from, .. } => write!(f, ", key from {from}")?,
                    Proof::Aws(_) => f.write_str(", key from AWS_ACCESS_KEY_ID")?,
                    Proof::Google(file) => write!(f, ", account from {}", file.display())?,
                }
            }
            Kind::Scripted(path) => write!(f, "scripted by {}", path.display())?,
        }
        match &self.missing {
            Some(why) => write!(f, " (off: {why})"),
            None => Ok(()),
        }
    }
}
