//! What is wider, or emptier, than it may be meant (rule C1): said where agents and settings are looked at, refused nowhere.

use std::net::IpAddr;

use adjutant_core::guard::policy::AgentConfig;
use adjutant_core::guard::scope::FolderEntry;

use reqwest::Url;

use crate::config::{Config, Kind};

/// What to look at twice in an agent.
pub(crate) fn of_agent(agent: &AgentConfig) -> Vec<String> {
    let hosts = &agent.allowed_hosts;
    let listed = hosts.hosts.as_deref().unwrap_or_default();
    let folders = agent.scope.folders.as_deref();
    let pattern = |entry: &FolderEntry| match entry {
        FolderEntry::Pattern(pattern) => Some(pattern.clone()),
        FolderEntry::Narrowed(narrowed) => Some(narrowed.path.clone()),
        FolderEntry::Broken(_) => None,
    };
    let whole = folders.into_iter().flatten().filter_map(pattern).find(|pattern| {
        let name = pattern.trim_matches('/');
        name.is_empty() || name == "*" || name == "**"
    });
    let changes = agent.can_write || agent.can_create || agent.can_delete;
    let mut said = Vec::new();
    let mut say = |is: bool, text: String| said.extend(is.then_some(text));
    if let Some(whole) = whole {
        let what = if changes { "read and changed" } else { "read" };
        say(true, format!("scope.folders: `{whole}` is the whole notebook; all of it can be {what}"));
    }
    let everywhere = agent.scope.notebooks.iter().flatten().any(|name| name == "*");
    say(everywhere && changes, "scope.notebooks: `*` is every notebook, also those that are made later".to_owned());
    for (field, is_empty) in [
        ("scope.notebooks", agent.scope.notebooks.as_ref().is_some_and(Vec::is_empty)),
        ("scope.folders", folders.is_some_and(<[FolderEntry]>::is_empty)),
        ("scope.file_types", agent.scope.file_types.as_ref().is_some_and(Vec::is_empty)),
        ("scope.operations", agent.scope.operations.as_ref().is_some_and(|list| list.is_empty())),
        ("categories", agent.categories.is_empty()),
        ("allowed_hosts", hosts.hosts.as_ref().is_some_and(Vec::is_empty)),
        ("toolsets", agent.toolsets.is_empty() && agent.tools.is_empty()),
    ] {
        say(is_empty, format!("{field}: an empty list grants nothing"));
    }
    say(listed.iter().any(|host| host == "*"), "allowed_hosts: `*` is every public host".to_owned());
    let plain = hosts.schemes.iter().flatten().any(|scheme| scheme == "http");
    say(plain, "allowed_hosts.schemes: over plain http others can read and change what goes by".to_owned());
    for network in hosts.allow_private.iter().flatten() {
        say(true, format!("allowed_hosts.allow_private: {network} is not public; what is in it trusts who is in it"));
    }
    let alone = agent.autonomy == adjutant_core::guard::policy::Autonomy::Full && (changes || !listed.is_empty());
    say(alone, "autonomy: with `full` nothing asks".to_owned());
    said
}

/// What to look at twice in the settings.
pub(crate) fn of_config(config: &Config) -> Vec<String> {
    let mut said = Vec::new();
    let listen = config.listen.value;
    let is_https = config.public_url.as_ref().is_some_and(|url| url.value.secure);
    if !listen.ip().is_loopback() && !is_https {
        said.push(format!("listen: {listen} is reached from other machines, over plain http"));
    }
    if config.public_url.is_some() && listen.ip().is_loopback() && config.trusted_proxies.is_none() {
        said.push("trusted_proxies: none, so all who come by a proxy count as one when passwords are tried".to_owned());
    }
    for network in config.allow_private.iter().flat_map(|setting| &setting.value) {
        said.push(format!("allow_private: {network} is not public; agents whose hosts lie there may reach it"));
    }
    for provider in &config.providers {
        let address = match &provider.kind {
            Kind::Remote(remote) => remote.base_url.as_deref().and_then(|text| Url::parse(text).ok()),
            Kind::Scripted(_) => None,
        };
        if let Some(url) = address.filter(|url| url.scheme() == "http" && !is_here(url)) {
            let host = url.host_str().unwrap_or_default();
            said.push(format!("providers.{}: {host} is called over plain http; others can read it", provider.name));
        }
    }
    said
}

fn is_here(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
