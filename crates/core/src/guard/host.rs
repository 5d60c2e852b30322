//! The host policy (U2-U10): which URLs an agent may reach, by which method, at which addresses. Pure: look-ups happen
//! elsewhere and their answers come in as data, so that the connector and the offline check use the same code.

mod written;

use std::net::{IpAddr, SocketAddr};

use super::address::{Network, is_public};
use super::location::comparable;
pub use super::location::{URL_CHARS, Url};
use super::rule::HeldUrls;
use super::scope::Denied;
use serde::{Deserialize, Serialize};
pub(super) use written::hosts_or_policy;
pub use written::{HostSpec, Port};

/// Redirects that are followed for one request (U8).
pub const REDIRECTS: usize = 5;

/// Names that mean the house itself or its own network (U5).
const HOUSE_NAMES: &[&str] = &["localhost", "local", "internal", "home.arpa"];

/// A host policy made ready for many questions.
#[derive(Debug, Clone)]
pub struct HostPolicy {
    hosts: Vec<Host>,
    schemes: Vec<String>,
    ports: Option<Vec<u16>>,
    allow_private: Vec<Network>,
    path_prefix: Option<String>,
    elsewhere: Elsewhere,
    held: HeldUrls,
}

/// Which other hosts of a policy a server may redirect to. Only what was asked for was judged by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elsewhere {
    /// All of them.
    Anywhere,
    /// None.
    Nowhere,
}

/// One entry of the host list.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    /// Every public name.
    Any,
    /// The sub-domains of a name, not the name itself; kept with its leading dot.
    Below(String),
    /// One name.
    Name(String),
    /// One address.
    Address(IpAddr),
}

/// The methods there are (U9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Fetches.
    Get,
    /// Fetches the headers only.
    Head,
    /// Sends.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

/// What an agent may do on the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NetCaps {
    /// `network_read`.
    pub read: bool,
    /// `network_write`.
    pub write: bool,
}

/// A server's answer that leads elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct Redirect<'a> {
    /// Where the answer came from.
    pub from: &'a Url,
    /// Where it leads, as the server wrote it.
    pub location: &'a str,
    /// How many redirects this request has followed before this one.
    pub followed: usize,
    /// The method that will be sent there.
    pub method: Method,
    /// Whether a body would be sent there.
    pub body: Body,
}

/// Whether a request carries a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// It does.
    Some,
    /// It does not.
    None,
}

impl HostPolicy {
    /// Makes a policy ready. Entries that are broken match nothing.
    #[must_use]
    pub fn compile(spec: &HostSpec) -> Self {
        let networks = spec.allow_private.iter().flatten();
        Self {
            hosts: spec.hosts.iter().flatten().filter_map(|entry| Host::parse(entry)).collect(),
            schemes: spec.schemes.clone().unwrap_or_else(|| vec!["https".to_owned()]),
            ports: spec.ports.as_ref().map(|ports| ports.iter().filter_map(Port::number).collect()),
            allow_private: networks.filter_map(|text| text.parse().ok()).collect(),
            path_prefix: spec.path_prefix.clone(),
            elsewhere: Elsewhere::Anywhere,
            held: HeldUrls::default(),
        }
    }

    /// The same policy for one call, whose servers may redirect to these other hosts only, and to nothing that standing rules
    /// hold: they judged what was asked for.
    #[must_use]
    pub fn redirecting(self, elsewhere: Elsewhere, held: HeldUrls) -> Self {
        Self { elsewhere, held, ..self }
    }

    /// Judges a request before anything is looked up.
    ///
    /// # Errors
    /// Fails with the deciding rule when the policy does not allow it.
    pub fn check_url(&self, url: &Url, method: Method, caps: NetCaps) -> Result<(), Denied> {
        check_method(method, caps)?;
        if !self.schemes.iter().any(|scheme| scheme == url.scheme()) {
            let reason = format!("{} URLs are not allowed", url.scheme());
            return Err(deny("U2", "scheme", reason, format!("schemes: \"{}\"", url.scheme())));
        }
        self.check_host(url)?;
        let own = [if url.scheme() == "https" { 443 } else { 80 }];
        if !self.ports.as_deref().unwrap_or(&own).contains(&url.port()) {
            let reason = format!("port {} is not allowed", url.port());
            return Err(deny("U2", "port", reason, format!("ports: {}", url.port())));
        }
        self.check_path(url)
    }

    /// Judges the addresses a look-up gave, or the host itself if it is an address. The request may be sent to no other
    /// address, and no second look-up may be made for it (U6).
    ///
    /// # Errors
    /// Fails when there is no address or one of them is neither public nor opened by the policy.
    pub fn check_addresses(&self, url: &Url, answers: &[IpAddr]) -> Result<Vec<SocketAddr>, Denied> {
        let literal = url.literal();
        let addresses = literal.as_ref().map_or(answers, std::slice::from_ref);
        if addresses.is_empty() {
            return Err(Denied::firm("U6", "no_address", format!("{} has no address", url.host())));
        }
        for address in addresses {
            if !is_public(*address) && !self.allow_private.iter().any(|network| network.holds(*address)) {
                let reason = format!("{} leads to {address}, which is not a public address", url.host());
                return Err(deny("U7", "not_public", reason, format!("allow_private: \"{address}\"")));
            }
        }
        Ok(addresses.iter().map(|address| SocketAddr::new(*address, url.port())).collect())
    }

    /// Judges a redirect as a request of its own (U8). Its addresses are looked up and judged anew.
    ///
    /// # Errors
    /// Fails with the deciding rule when it may not be followed.
    pub fn check_redirect(&self, redirect: Redirect<'_>, caps: NetCaps) -> Result<Url, Denied> {
        if redirect.followed >= REDIRECTS {
            let reason = format!("the server redirects more than {REDIRECTS} times");
            return Err(Denied::firm("U8", "too_many_redirects", reason));
        }
        let to = redirect.from.join(redirect.location)?;
        if redirect.from.scheme() == "https" && to.scheme() != "https" {
            return Err(Denied::firm("U8", "downgrade", "the server redirects from https to http".to_owned()));
        }
        if redirect.body == Body::Some && !to.same_origin(redirect.from) {
            let reason = format!("the server redirects a request with a body to {}", to.host());
            return Err(Denied::firm("U8", "body_to_another_origin", reason));
        }
        self.check_url(&to, redirect.method, caps)?;
        // What listens at another port is another server; only the own port of https stands for that of http.
        let own = |url: &Url| if url.scheme() == "http" && url.port() == 80 { 443 } else { url.port() };
        let stays = to.host() == redirect.from.host() && own(&to) == own(redirect.from);
        if (!stays && self.elsewhere == Elsewhere::Nowhere) || self.held.holds(&to) {
            let place = match (stays, to.host() == redirect.from.host()) {
                (true, _) => format!("another page of {}", to.host()),
                (false, true) => format!("port {} of {}", to.port(), to.host()),
                (false, false) => to.host().to_owned(),
            };
            let reason = format!("the server redirects to {place}, which has to be called by itself");
            return Err(Denied::firm("U8", "not_judged", reason));
        }
        Ok(to)
    }

    fn check_host(&self, url: &Url) -> Result<(), Denied> {
        let host = url.host();
        let grant = || format!("hosts: \"{host}\"");
        if let Some(address) = url.literal() {
            if self.hosts.contains(&Host::Address(address)) {
                return Ok(());
            }
            return Err(deny("U4", "host", format!("the address {host} is not listed"), grant()));
        }
        let exact = self.hosts.iter().any(|entry| matches!(entry, Host::Name(name) if name == host));
        if is_house_name(host) {
            if exact && !self.allow_private.is_empty() {
                return Ok(());
            }
            let reason = format!(
                "{host} is a name of this machine or its own network; it needs an entry of its own and allow_private"
            );
            return Err(deny("U5", "house_name", reason, format!("{}, allow_private", grant())));
        }
        if exact || self.hosts.iter().any(|entry| entry.covers(host)) {
            return Ok(());
        }
        let reason = if self.hosts.is_empty() {
            "no host is allowed".to_owned()
        } else {
            format!("{host} is not an allowed host")
        };
        Err(deny("U3", "host", reason, grant()))
    }

    fn check_path(&self, url: &Url) -> Result<(), Denied> {
        let Some(prefix) = &self.path_prefix else { return Ok(()) };
        if hides_slash(url.path()) {
            let reason = "the path holds an encoded slash or backslash".to_owned();
            return Err(Denied::firm("U10", "path_prefix", reason));
        }
        let inside = prefix.starts_with('/')
            && url
                .path()
                .strip_prefix(prefix.trim_end_matches('/'))
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if inside {
            return Ok(());
        }
        let reason = format!("the path {} does not lie below {prefix}", url.path());
        Err(deny("U10", "path_prefix", reason, format!("path_prefix: \"{}\"", url.path())))
    }
}

fn check_method(method: Method, caps: NetCaps) -> Result<(), Denied> {
    let (allowed, cap) = match method {
        Method::Get | Method::Head => (caps.read, "network_read"),
        Method::Post | Method::Put | Method::Patch | Method::Delete => (caps.write, "network_write"),
    };
    if allowed {
        return Ok(());
    }
    Err(deny("U9", "capability", format!("the agent may not use {method}: it lacks {cap}"), cap.to_owned()))
}

/// Whether a server could find a slash or backslash in the path that the comparison does not see, also behind several
/// layers of percent codes.
fn hides_slash(path: &str) -> bool {
    path.match_indices('%').any(|(at, _)| {
        let mut rest = path.get(at + 1..).unwrap_or_default();
        while let Some(inner) = rest.strip_prefix("25") {
            rest = inner;
        }
        rest.get(..2).is_some_and(|code| code.eq_ignore_ascii_case("2f") || code.eq_ignore_ascii_case("5c"))
    })
}

fn is_house_name(host: &str) -> bool {
    let under = |name: &&str| host.strip_suffix(*name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !host.contains('.') || HOUSE_NAMES.iter().any(under)
}

fn deny(rule: &'static str, code: &'static str, reason: String, grant: String) -> Denied {
    Denied::grantable(rule, code, reason, grant)
}

impl Host {
    fn parse(entry: &str) -> Option<Self> {
        if entry == "*" {
            return Some(Self::Any);
        }
        let inner = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']'));
        if let Ok(address) = inner.unwrap_or(entry).parse::<IpAddr>() {
            // An IPv4 address in brackets is nothing anyone would write on purpose.
            return (inner.is_none() || address.is_ipv6()).then_some(Self::Address(address));
        }
        match entry.strip_prefix("*.") {
            Some(name) => comparable(name).map(|name| Self::Below(format!(".{name}"))),
            None => comparable(entry).map(Self::Name),
        }
    }

    /// Whether a wildcard entry covers the name.
    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(name) => host.ends_with(name.as_str()),
            Self::Name(_) | Self::Address(_) => false,
        }
    }
}

impl Method {
    /// The method of this exact name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "GET" => Some(Self::Get),
            "HEAD" => Some(Self::Head),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "PATCH" => Some(Self::Patch),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }

    /// Whether it only fetches.
    #[must_use]
    pub const fn is_reading(self) -> bool {
        match self {
            Self::Get | Self::Head => true,
            Self::Post | Self::Put | Self::Patch | Self::Delete => false,
        }
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const READ: NetCaps = NetCaps { read: true, write: false };
    const BOTH: NetCaps = NetCaps { read: true, write: true };

    fn policy(spec: Value) -> HostPolicy {
        HostPolicy::compile(&serde_json::from_value(spec).unwrap())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn code<T>(answer: Result<T, Denied>) -> String {
        answer.map_or_else(|denied| format!("{} {}", denied.rule, denied.code), |_| "ok".to_owned())
    }

    fn get(policy: &HostPolicy, url: &str) -> String {
        code(Url::parse(url).and_then(|url| policy.check_url(&url, Method::Get, READ)))
    }

    #[test]
    fn u2_only_listed_schemes_and_ports() {
        let plain = policy(json!({"hosts": ["example.org"]}));
        assert_eq!(get(&plain, "https://example.org/"), "ok");
        assert_eq!(get(&plain, "https://example.org:443/"), "ok");
        assert_eq!(get(&plain, "http://example.org/"), "U2 scheme");
        assert_eq!(get(&plain, "https://example.org:8443/"), "U2 port");
        assert_eq!(get(&plain, "https://example.org:80/"), "U2 port");
        let both = policy(json!({"hosts": ["example.org"], "schemes": ["http", "https"]}));
        assert_eq!(
            (get(&both, "http://example.org/"), get(&both, "http://example.org:443/")),
            ("ok".into(), "U2 port".into())
        );
        let ports = policy(json!({"hosts": ["example.org"], "ports": [8443]}));
        assert_eq!(
            (get(&ports, "https://example.org:8443/"), get(&ports, "https://example.org/")),
            ("ok".into(), "U2 port".into())
        );
        for spec in [
            json!({"hosts": ["example.org"], "schemes": []}),
            json!({"hosts": ["example.org"], "schemes": ["HTTPS"]}),
            json!({"hosts": ["example.org"], "schemes": "https"}),
        ] {
            assert_eq!(get(&policy(spec.clone()), "https://example.org/"), "U2 scheme", "{spec}");
        }
        for ports in [json!([]), json!("443"), json!(["443"]), json!([70000])] {
            assert_eq!(
                get(&policy(json!({"hosts": ["example.org"], "ports": ports})), "https://example.org/"),
                "U2 port"
            );
        }
    }

    #[test]
    fn u3_no_list_is_no_host() {
        for spec in [json!({}), json!({"hosts": null}), json!({"hosts": []}), json!({"hosts": "*"})] {
            assert_eq!(get(&policy(spec), "https://example.org/"), "U3 host");
        }
    }

    #[test]
    fn u3_an_entry_is_a_name_its_sub_domains_or_everything_public() {
        let below = policy(json!({"hosts": ["*.example.org"]}));
        assert_eq!(get(&below, "https://a.example.org/"), "ok");
        assert_eq!(get(&below, "https://a.b.example.org/"), "ok");
        for url in [
            "https://example.org/",
            "https://evilexample.org/",
            "https://example.org.evil.com/",
            "https://a.example.com/",
        ] {
            assert_eq!(get(&below, url), "U3 host", "{url}");
        }
        let any = policy(json!({"hosts": ["*"]}));
        assert_eq!(get(&any, "https://anything.example.net/"), "ok");
        let exact = policy(json!({"hosts": ["API.Example.org", "Bücher.example.org"]}));
        assert_eq!(get(&exact, "https://api.EXAMPLE.org/"), "ok");
        assert_eq!(get(&exact, "https://bücher.example.org/"), "ok");
        assert_eq!(get(&exact, "https://xn--bcher-kva.example.org/"), "ok");
        assert_eq!(get(&exact, "https://x.api.example.org/"), "U3 host");
    }

    #[test]
    fn u3_any_other_entry_matches_nothing_and_is_not_saved() {
        for entry in [
            json!("*.*.org"),
            json!("api.*.org"),
            json!("*example.org"),
            json!("**"),
            json!("*."),
            json!(".example.org"),
            json!("https://api.example.org"),
            json!("api.example.org:443"),
            json!("api.example.org/"),
            json!("api.example.org."),
            json!("a@api.example.org"),
            json!(" api.example.org"),
            json!("api.example.org "),
            json!(""),
            json!(5),
            json!(null),
            json!("ａpi.example.org"),
            json!("api.example.org?"),
            json!("api.example.org#"),
            json!("*.api.example.org:443"),
            json!("[[2606:4700::1111]]"),
            json!("[2606:4700::1111"),
            json!("2606:4700::1111]"),
            json!("[[::1]]"),
            json!("[::1"),
            json!("[93.184.215.14]"),
        ] {
            let spec: HostSpec = serde_json::from_value(json!({"hosts": [entry]})).unwrap();
            assert!(HostPolicy::compile(&spec).hosts.is_empty(), "{entry}");
            assert_eq!(spec.problems().len(), 1, "{entry}");
        }
    }

    #[test]
    fn u4_an_address_needs_its_own_entry() {
        for hosts in [json!(["*"]), json!(["*.1.1"]), json!(["1.1.1.2"])] {
            assert_eq!(get(&policy(json!({"hosts": hosts})), "https://1.1.1.1/"), "U4 host");
        }
        let listed = policy(json!({"hosts": ["1.1.1.1", "2606:4700::1111", "[2606:4700::2222]"]}));
        for url in ["https://1.1.1.1/", "https://[2606:4700::1111]/", "https://[2606:4700:0::2222]/"] {
            assert_eq!(get(&listed, url), "ok", "{url}");
        }
        assert_eq!(get(&listed, "https://0x1.1.1.1/"), "U4 invalid_url");
        for entry in ["0x7f.1", "2130706433", "127.1", "[127.0.0.1]", "010.0.0.1", "::1]"] {
            assert!(policy(json!({"hosts": [entry]})).hosts.is_empty(), "{entry}");
        }
    }

    #[test]
    fn u4_a_listed_address_must_still_be_public_or_opened() {
        let url = Url::parse("https://127.0.0.1/").unwrap();
        let listed = policy(json!({"hosts": ["127.0.0.1"]}));
        assert_eq!(code(listed.check_addresses(&url, &[ip("1.1.1.1")])), "U7 not_public");
        let opened = policy(json!({"hosts": ["127.0.0.1"], "allow_private": ["127.0.0.0/8"]}));
        assert_eq!(opened.check_addresses(&url, &[]), Ok(vec!["127.0.0.1:443".parse().unwrap()]));
        let mapped = Url::parse("https://[::ffff:127.0.0.1]/").unwrap();
        assert_eq!(code(opened.check_addresses(&mapped, &[])), "U7 not_public");
    }

    #[test]
    fn u5_names_of_the_house_need_an_exact_entry_and_allow_private() {
        for name in ["localhost", "printer", "nas.local", "a.internal", "x.home.arpa", "a.localhost", "internal"] {
            let url = format!("https://{name}/");
            assert_eq!(get(&policy(json!({"hosts": ["*"], "allow_private": ["10.0.0.0/8"]})), &url), "U5 house_name");
            assert_eq!(get(&policy(json!({"hosts": [name]})), &url), "U5 house_name");
            assert_eq!(get(&policy(json!({"hosts": [name], "allow_private": []})), &url), "U5 house_name");
            assert_eq!(get(&policy(json!({"hosts": [name], "allow_private": ["nonsense"]})), &url), "U5 house_name");
            assert_eq!(get(&policy(json!({"hosts": [name], "allow_private": ["10.0.0.0/8"]})), &url), "ok");
        }
        let below = policy(json!({"hosts": ["*.internal", "*.local"], "allow_private": ["10.0.0.0/8"]}));
        assert_eq!(get(&below, "https://a.internal/"), "U5 house_name");
        assert_eq!(get(&policy(json!({"hosts": ["*"]})), "https://notlocal.example/"), "ok");
        assert_eq!(get(&policy(json!({"hosts": ["*"]})), "https://mylocalhost.example.org/"), "ok");
    }

    #[test]
    fn u6_one_bad_answer_refuses_the_request() {
        let url = Url::parse("https://example.org:443/").unwrap();
        let plain = policy(json!({"hosts": ["*"]}));
        let two = [ip("93.184.215.14"), ip("2606:2800::1")];
        assert_eq!(plain.check_addresses(&url, &two).unwrap().len(), 2);
        assert_eq!(code(plain.check_addresses(&url, &[ip("93.184.215.14"), ip("10.0.0.1")])), "U7 not_public");
        assert_eq!(code(plain.check_addresses(&url, &[ip("::ffff:93.184.215.14")])), "U7 not_public");
        assert_eq!(code(plain.check_addresses(&url, &[])), "U6 no_address");
        let opened = policy(json!({"hosts": ["*"], "allow_private": ["10.0.0.0/8"]}));
        assert_eq!(code(opened.check_addresses(&url, &[ip("93.184.215.14"), ip("10.0.0.1")])), "ok");
        assert_eq!(code(opened.check_addresses(&url, &[ip("10.0.0.1"), ip("192.168.0.1")])), "U7 not_public");
    }

    fn follow(policy: &HostPolicy, from: &str, location: &str, followed: usize, body: Body) -> String {
        let from = Url::parse(from).unwrap();
        let method = if body == Body::Some { Method::Post } else { Method::Get };
        code(policy.check_redirect(Redirect { from: &from, location, followed, method, body }, BOTH))
    }

    #[test]
    fn u8_a_redirect_is_a_fresh_check() {
        let both = policy(json!({"hosts": ["a.example.org", "b.example.org"], "schemes": ["https", "http"]}));
        let from = "https://a.example.org/x";
        assert_eq!(follow(&both, from, "/y", 0, Body::None), "ok");
        assert_eq!(follow(&both, from, "https://b.example.org/", 4, Body::None), "ok");
        assert_eq!(follow(&both, from, "https://b.example.org/", 5, Body::None), "U8 too_many_redirects");
        assert_eq!(follow(&both, from, "https://c.example.org/", 0, Body::None), "U3 host");
        assert_eq!(follow(&both, from, "http://a.example.org/", 0, Body::None), "U8 downgrade");
        assert_eq!(follow(&both, "http://a.example.org/", "https://a.example.org/", 0, Body::None), "ok");
        assert_eq!(follow(&both, "http://a.example.org/", "/y", 0, Body::None), "ok");
        assert_eq!(follow(&both, from, "https://127.0.0.1/", 0, Body::None), "U4 host");
        assert_eq!(follow(&both, from, "file:///etc/passwd", 0, Body::None), "U1 invalid_url");
        assert_eq!(follow(&both, from, "https://x@b.example.org/", 0, Body::None), "U2 invalid_url");
    }

    #[test]
    fn u8_a_redirect_stays_where_a_person_said_yes_to() {
        let both = policy(json!({"hosts": ["a.example.org", "c.example.org"]}));
        let from = "https://a.example.org/x";
        let anywhere = both.clone().redirecting(Elsewhere::Anywhere, HeldUrls::default());
        assert_eq!(follow(&anywhere, from, "https://c.example.org/", 0, Body::None), "ok");
        let nowhere = both.redirecting(Elsewhere::Nowhere, HeldUrls::default());
        assert_eq!(follow(&nowhere, from, "https://c.example.org/", 0, Body::None), "U8 not_judged");
        assert_eq!(follow(&nowhere, from, "/y", 0, Body::None), "ok");
        assert_eq!(follow(&nowhere, from, "https://d.example.org/", 0, Body::None), "U3 host");
    }

    #[test]
    fn u8_another_port_is_another_place_than_a_person_said_yes_to() {
        let spec = json!({"hosts": ["a.example.org"], "schemes": ["https", "http"], "ports": [80, 443, 8443]});
        let from = "https://a.example.org/x";
        let anywhere = policy(spec.clone());
        assert_eq!(follow(&anywhere, from, "https://a.example.org:8443/", 0, Body::None), "ok");
        let nowhere = policy(spec).redirecting(Elsewhere::Nowhere, HeldUrls::default());
        assert_eq!(follow(&nowhere, from, "https://a.example.org:8443/", 0, Body::None), "U8 not_judged");
        assert_eq!(follow(&nowhere, from, "https://a.example.org:443/y", 0, Body::None), "ok");
        // A server that leads from http to its own https only makes it safer.
        assert_eq!(follow(&nowhere, "http://a.example.org/x", "https://a.example.org/x", 0, Body::None), "ok");
        for (from, to) in [
            ("http://a.example.org/x", "https://a.example.org:8443/"),
            ("http://a.example.org:8443/x", "https://a.example.org/"),
        ] {
            assert_eq!(follow(&nowhere, from, to, 0, Body::None), "U8 not_judged", "{from} to {to}");
        }
    }

    #[test]
    fn u8_a_body_never_goes_to_another_origin() {
        let spec = json!({"hosts": ["*.example.org"], "schemes": ["https", "http"], "ports": [80, 443, 8443]});
        let wide = policy(spec);
        let from = "https://a.example.org/x";
        assert_eq!(follow(&wide, from, "/y", 0, Body::Some), "ok");
        assert_eq!(follow(&wide, from, "https://A.example.org:443/y", 0, Body::Some), "ok");
        for location in ["https://b.example.org/", "https://a.example.org:8443/", "//b.example.org/"] {
            assert_eq!(follow(&wide, from, location, 0, Body::Some), "U8 body_to_another_origin", "{location}");
        }
        assert_eq!(
            follow(&wide, "http://a.example.org/", "https://a.example.org/", 0, Body::Some),
            "U8 body_to_another_origin"
        );
    }

    #[test]
    fn u9_reading_and_writing_are_two_capabilities() {
        let url = Url::parse("https://example.org/").unwrap();
        let plain = policy(json!({"hosts": ["example.org"]}));
        let write = NetCaps { read: false, write: true };
        for (name, reading) in
            [("GET", true), ("HEAD", true), ("POST", false), ("PUT", false), ("PATCH", false), ("DELETE", false)]
        {
            let method = Method::parse(name).unwrap();
            assert_eq!((method.to_string().as_str(), method.is_reading()), (name, reading));
            assert_eq!(code(plain.check_url(&url, method, if reading { READ } else { write })), "ok");
            assert_eq!(code(plain.check_url(&url, method, if reading { write } else { READ })), "U9 capability");
            assert_eq!(code(plain.check_url(&url, method, NetCaps::default())), "U9 capability");
        }
        for name in ["get", "Post", "OPTIONS", "CONNECT", "TRACE", "", "GET "] {
            assert_eq!(Method::parse(name), None, "{name}");
        }
    }

    #[test]
    fn u10_the_path_lies_below_the_prefix() {
        for prefix in ["/v1", "/v1/"] {
            let bound = policy(json!({"hosts": ["example.org"], "path_prefix": prefix}));
            for path in ["/v1", "/v1/", "/v1/x", "/a/../v1/x", "/v1?x=%2f", "/v1/%20"] {
                assert_eq!(get(&bound, &format!("https://example.org{path}")), "ok", "{path}");
            }
            for path in [
                "/v10",
                "/v1x/y",
                "/V1/x",
                "/",
                "",
                "/v1/../admin",
                "/v1/%2e%2e/admin",
                "/v1/.%2E/admin",
                "//v1/x",
                "/v1%2fx",
                "/v1/..%2fadmin",
                "/v1/%5c..",
                "/v1/%252f",
                "/v1/%25255Cx",
                "/%76%31/x",
            ] {
                assert_eq!(get(&bound, &format!("https://example.org{path}")), "U10 path_prefix", "{path}");
            }
        }
        for prefix in ["", "v1"] {
            assert_eq!(
                get(&policy(json!({"hosts": ["example.org"], "path_prefix": prefix})), "https://example.org/v1"),
                "U10 path_prefix"
            );
        }
        assert_eq!(get(&policy(json!({"hosts": ["example.org"], "path_prefix": "/"})), "https://example.org/x"), "ok");
        assert_eq!(get(&policy(json!({"hosts": ["example.org"]})), "https://example.org/a%2Fb"), "ok");
    }

    #[test]
    fn a_broken_policy_says_what_is_wrong() {
        let spec: HostSpec = serde_json::from_value(
            json!({"hosts": ["ok.org", "a b"], "schemes": ["ftp"], "ports": [443, "443", 70000, null],
                "allow_private": ["10.0.0.1/8"], "path_prefix": "x"}),
        )
        .unwrap();
        let fields: Vec<_> = spec.problems().into_iter().map(|bad| bad.field).collect();
        let ports = ["ports[1]", "ports[2]", "ports[3]"];
        let expected = [&["hosts[1]", "schemes[0]"][..], &ports, &["allow_private[0]", "path_prefix"]].concat();
        assert_eq!(fields, expected);
        let alone: HostSpec = serde_json::from_value(json!({"hosts": ["ok.org"], "ports": "443"})).unwrap();
        assert_eq!(alone.problems().len(), 1);
        assert_eq!(serde_json::to_value(&spec).unwrap()["ports"], json!([443, "443", 70000, null]), "kept as written");
        assert!(serde_json::from_value::<HostSpec>(json!({"host": ["a.org"]})).is_err());
    }
}
