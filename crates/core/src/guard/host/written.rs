//! A host policy as people write and store it. Loading never fails on a broken entry, because it then grants nothing and
//! spoils no other; saving must ask [`HostSpec::problems`] first.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::Host;
use crate::guard::address::Network;
use crate::guard::scope::BadPattern;
use crate::guard::spec;

/// A host policy as it is written and stored. A list that is missing grants nothing, but `schemes` and `ports`, which then
/// mean https on its own port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// `name`, `*.name` for every sub-domain, an address, or `*` for every public name.
    #[serde(default, deserialize_with = "texts")]
    pub hosts: Option<Vec<String>>,
    /// `https`, `http`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "texts")]
    pub schemes: Option<Vec<String>>,
    /// Ports; the scheme's own if missing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ports")]
    pub ports: Option<Vec<Port>>,
    /// Networks that are not public and may be reached all the same.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "texts")]
    pub allow_private: Option<Vec<String>>,
    /// What the path must begin with, at a segment border.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
}

/// One entry of `ports`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Port {
    /// A port.
    Number(u16),
    /// Anything else: it opens nothing.
    Broken(Value),
}

impl Port {
    pub(super) const fn number(&self) -> Option<u16> {
        match self {
            Self::Number(port) => Some(*port),
            Self::Broken(_) => None,
        }
    }
}

impl HostSpec {
    /// Every entry that is broken. A policy with problems must not be saved.
    #[must_use]
    pub fn problems(&self) -> Vec<BadPattern> {
        let bad = |field: String, entry: &str, reason: &str| BadPattern {
            field,
            entry: entry.to_owned(),
            reason: reason.to_owned(),
        };
        let host_reason = "a host is a name, *.name, an address, or * alone";
        let hosts = self.hosts.iter().flatten().enumerate().filter(|(_, entry)| Host::parse(entry).is_none());
        let hosts = hosts.map(|(index, entry)| bad(format!("hosts[{index}]"), entry, host_reason));
        let schemes =
            self.schemes.iter().flatten().enumerate().filter(|(_, s)| !matches!(s.as_str(), "http" | "https"));
        let schemes =
            schemes.map(|(index, entry)| bad(format!("schemes[{index}]"), entry, "a scheme is https or http"));
        let ports = self.ports.iter().flatten().enumerate().filter_map(|(index, port)| match port {
            Port::Number(_) => None,
            Port::Broken(entry) => {
                Some(bad(format!("ports[{index}]"), &entry.to_string(), "a port is a number from 0 to 65535"))
            }
        });
        let networks = self.allow_private.iter().flatten().enumerate().filter_map(|(index, entry)| {
            entry
                .parse::<Network>()
                .err()
                .map(|error| bad(format!("allow_private[{index}]"), entry, &error.to_string()))
        });
        let prefix = self.path_prefix.iter().filter(|prefix| !prefix.starts_with('/'));
        let prefix = prefix.map(|entry| bad("path_prefix".to_owned(), entry, "a path prefix begins with \"/\""));
        hosts.chain(schemes).chain(ports).chain(networks).chain(prefix).collect()
    }
}

/// Reads a policy, or a list that stands for a policy of these hosts and nothing else said.
pub(in crate::guard) fn hosts_or_policy<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<HostSpec>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if value.is_null() {
        return Ok(None);
    }
    let policy = if value.is_array() { serde_json::json!({"hosts": value}) } else { value };
    serde_json::from_value(policy).map(Some).map_err(serde::de::Error::custom)
}

/// No host, scheme or network begins with a blank.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<String>>, D::Error> {
    spec::texts(deserializer, ' ')
}

/// Reads a list of ports. What is not a port is kept as it is: it opens nothing and fails a save.
fn ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Port>>, D::Error> {
    let port = |item| serde_json::from_value(item).map_err(serde::de::Error::custom);
    match spec::list(deserializer)? {
        None => Ok(None),
        Some(Ok(items)) => items.into_iter().map(port).collect::<Result<_, _>>().map(Some),
        Some(Err(other)) => Ok(Some(vec![Port::Broken(other)])),
    }
}
