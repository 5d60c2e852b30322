//! URLs (U1-U4): odd texts are refused before the one parse; what is parsed is what is checked, resolved, connected and
//! logged. Which URLs an agent may reach is the business of the host policy.

use std::fmt;
use std::net::IpAddr;

use super::path::{is_invisible, shown};
use super::scope::Denied;

/// Characters of a URL (U1): browsers and servers agree on no more.
pub const URL_CHARS: usize = 8192;
/// Bytes of a host name, and of one label in it: the limits of the domain name system.
const HOST_BYTES: usize = 253;
const LABEL_BYTES: usize = 63;

/// An `http` or `https` URL without user information, whose host means what it shows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Url(url::Url);

impl Url {
    /// Reads a URL as a person or a model wrote it.
    ///
    /// # Errors
    /// Fails on every spelling that two readers might understand differently (U1-U4).
    pub fn parse(text: &str) -> Result<Self, Denied> {
        check_characters(text)?;
        let authority = authority(text).ok_or_else(|| refuse("U1", "the URL does not begin with scheme://host"))?;
        if authority.is_empty() {
            return Err(refuse("U1", "the URL names no host"));
        }
        if authority.contains('%') {
            return Err(refuse("U1", "the host holds a percent code"));
        }
        if authority.contains('@') {
            return Err(refuse("U2", "the URL holds a user name or a password"));
        }
        let parsed = url::Url::parse(text).map_err(|error| refuse("U1", format!("the URL cannot be read: {error}")))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(refuse("U2", "only https and http URLs are known"));
        }
        check_host(raw_host(authority), &parsed)?;
        Ok(Self(parsed))
    }

    /// Reads the `Location` of a redirect, which may be relative to this URL.
    ///
    /// # Errors
    /// Fails as [`Url::parse`] does.
    pub fn join(&self, location: &str) -> Result<Self, Denied> {
        check_characters(location)?;
        if location.starts_with("//") {
            return Self::parse(&format!("{}:{location}", self.0.scheme()));
        }
        // A colon before any slash, query or fragment belongs to a scheme.
        let first = location.find([':', '/', '?', '#']).and_then(|at| location.get(at..));
        if first.is_some_and(|rest| rest.starts_with(':')) {
            return Self::parse(location);
        }
        let joined = self.0.join(location).map_err(|error| refuse("U1", format!("the URL cannot be read: {error}")))?;
        // Nothing above lets a relative location change the host; if a parser ever disagrees, it is refused.
        if joined.host() != self.0.host() {
            return Err(refuse("U1", "the redirect hides another host"));
        }
        Ok(Self(joined))
    }

    /// The text of the parsed URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// The host: a lower-case ASCII name, or an address (an IPv6 one without brackets).
    #[must_use]
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']')
    }

    /// The address, if the host is one.
    #[must_use]
    pub fn literal(&self) -> Option<IpAddr> {
        match self.0.host()? {
            url::Host::Ipv4(address) => Some(address.into()),
            url::Host::Ipv6(address) => Some(address.into()),
            url::Host::Domain(_) => None,
        }
    }

    /// The port, written or the scheme's own.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or_default()
    }

    /// The normalised path.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.path()
    }

    /// Whether scheme, host and port are the same.
    #[must_use]
    pub fn same_origin(&self, other: &Self) -> bool {
        (self.scheme(), self.0.host(), self.port()) == (other.scheme(), other.0.host(), other.port())
    }
}

/// What U1 refuses on the raw text, before any parser could drop or fold it.
fn check_characters(text: &str) -> Result<(), Denied> {
    if text.chars().nth(URL_CHARS).is_some() {
        return Err(refuse("U1", format!("the URL is longer than {URL_CHARS} characters")));
    }
    match text.chars().find(|c| *c == '\\' || c.is_whitespace() || is_invisible(*c)) {
        Some(bad) => Err(refuse("U1", format!("the URL holds {}", shown(bad)))),
        None => Ok(()),
    }
}

/// What stands between `scheme://` and the next `/`, `?` or `#`.
fn authority(text: &str) -> Option<&str> {
    let (scheme, rest) = text.split_once("://")?;
    let named = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    if named { rest.split(['/', '?', '#']).next() } else { None }
}

/// The host as it was written, without its port.
fn raw_host(authority: &str) -> &str {
    match authority.split_once(']') {
        Some((address, _)) => address.trim_start_matches('['),
        None => authority.split_once(':').map_or(authority, |(host, _)| host),
    }
}

fn check_host(raw: &str, parsed: &url::Url) -> Result<(), Denied> {
    match parsed.host() {
        None => Err(refuse("U1", "the URL names no host")),
        // Brackets hold an address and nothing else, so the parser has read all of it.
        Some(url::Host::Ipv6(_)) => Ok(()),
        Some(url::Host::Ipv4(address)) if raw == address.to_string() => Ok(()),
        Some(url::Host::Ipv4(address)) => {
            Err(refuse("U4", format!("the host is another spelling of the address {address}; write it plainly")))
        }
        Some(url::Host::Domain(name)) => check_name(raw, name),
    }
}

/// Holds the name as it was written against the name it became.
fn check_name(raw: &str, name: &str) -> Result<(), Denied> {
    if name.ends_with('.') {
        return Err(refuse("U3", "the host ends with a dot"));
    }
    let letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let fits = |label: &str| !label.is_empty() && label.len() <= LABEL_BYTES && label.bytes().all(letter);
    if name.len() > HOST_BYTES || !name.split('.').all(fits) {
        return Err(refuse("U3", "the host is not a valid name"));
    }
    // Label by label: one written in ASCII must have stayed, any other must have become `xn--`. So neither look-alike
    // letters nor look-alike dots can turn into a name that nobody wrote.
    let kept = |(written, became): (&str, &str)| {
        if written.is_ascii() { written.eq_ignore_ascii_case(became) } else { became.starts_with("xn--") }
    };
    if raw.split('.').count() != name.split('.').count() || !raw.split('.').zip(name.split('.')).all(kept) {
        return Err(refuse("U3", format!("the host is a look-alike of {name}")));
    }
    Ok(())
}

/// The form a host name is compared in; none for what no host can be. Used for the entries of a policy.
pub(super) fn comparable(entry: &str) -> Option<String> {
    let url = Url::parse(&format!("https://{entry}/")).ok()?;
    // Anything besides the name (a port, a path) would be ignored silently, so it makes the entry void.
    let plain = url.0.port().is_none() && url.path() == "/" && !entry.contains([':', '/', '?', '#']);
    (plain && url.literal().is_none()).then(|| url.host().to_owned())
}

fn refuse(rule: &'static str, reason: impl Into<String>) -> Denied {
    Denied::firm(rule, "invalid_url", reason.into())
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rule(text: &str) -> &'static str {
        Url::parse(text).map_or_else(|denied| denied.rule, |_| "ok")
    }

    #[test]
    fn u1_odd_texts_are_refused_before_they_are_parsed() {
        for text in [
            "https://example.org/a b",
            " https://example.org/",
            "https://example.org/ ",
            "https://example.org/\t",
            "https://exa\nmple.org/",
            "https://example.org/\0",
            "https://example.org\\@evil.org/",
            "https:\\\\example.org/",
            "https://example.org/a\\b",
            "https://exam\u{AD}ple.org/",
            "https://exam\u{200B}ple.org/",
            "https://example.org/\u{202E}x",
            "https://example.org/\u{A0}",
            "https://example.org/\u{3000}",
            "https://example.org/\u{2028}",
            "https://example.org/\u{FEFF}",
            "\u{FEFF}https://example.org/",
            "https://example.org/\u{E0041}",
            "https://example.org/\u{85}",
        ] {
            assert_eq!(rule(text), "U1", "{text:?}");
        }
        let long = format!("https://example.org/{}", "é".repeat(URL_CHARS - 20));
        assert_eq!((rule(&long), rule(&format!("{long}é"))), ("ok", "U1"));
    }

    #[test]
    fn u1_there_is_a_scheme_and_an_authority() {
        for text in [
            "",
            "example.org",
            "//example.org/",
            "/a",
            "https:example.org",
            "https:/example.org",
            "https:///example.org",
            "https://",
            "https:////example.org",
            "https://?x",
            "https://#x",
            "://example.org",
            "1https://example.org",
            "ht tps://example.org",
            "?u=https://example.org",
        ] {
            assert_eq!(rule(text), "U1", "{text:?}");
        }
        for text in ["https://exa%6dple.org/", "https://example.org%2f/", "https://[fe80::1%25eth0]/", "https://%31/"] {
            assert_eq!(rule(text), "U1", "{text:?}");
        }
        for text in
            ["https://[::1/", "https://example.org:99999/", "https://exa<mple.org/", "https://[]/", "https://:443/"]
        {
            assert_eq!(rule(text), "U1", "{text:?}");
        }
    }

    #[test]
    fn u2_only_http_without_user_information() {
        for text in [
            "ftp://example.org/",
            "file://etc/passwd",
            "gopher://example.org/",
            "javascript://example.org/",
            "ws://example.org/",
        ] {
            assert_eq!(rule(text), "U2", "{text:?}");
        }
        for text in
            ["https://a@example.org/", "https://a:b@example.org/", "https://@example.org/", "https://:@example.org/"]
        {
            assert_eq!(rule(text), "U2", "{text:?}");
        }
        assert_eq!(rule("HTTPS://Example.ORG/a@b?c@d"), "ok");
    }

    #[test]
    fn u3_a_name_that_folds_to_another_is_refused() {
        for text in [
            "https://ｅxample.org/",
            "https://ⓔxample.org/",
            "https://example。org/",
            "https://example．org/",
            "https://bücher。example.org/",
            "https://\u{212A}.example.org/",
            "https://ſ.example.org/",
            "https://exam︀ple.org/",
            "https://𝐞xample.org/",
            "https://example.org./",
            "https://example.org.:443/",
            "https://example..org/",
            "https://.example.org/",
            "https://bücher.example.org./",
            "https://①②⑦.⓪.⓪.①/",
        ] {
            assert!(matches!(rule(text), "U3" | "U4"), "{text:?} {}", rule(text));
        }
        let label = "a".repeat(64);
        assert_eq!(rule(&format!("https://{label}.org/")), "U3");
        assert_eq!(
            (rule("https://*.example.org/"), rule("https://a'b.org/"), rule("https://a_b-c.org/")),
            ("U3", "U3", "ok")
        );
        assert_eq!(rule(&format!("https://{}org/", "aaaaaaaaa.".repeat(26))), "U3");
        assert_eq!(Url::parse("https://Bücher.Example.org/").unwrap().host(), "xn--bcher-kva.example.org");
        assert_eq!(Url::parse("https://XN--bcher-kva.example.org/").unwrap().host(), "xn--bcher-kva.example.org");
        assert_eq!(rule("https://xn--a.example.org/"), "U1");
        let dotted = Url::parse("https://example.org./").map_err(|denied| denied.reason);
        assert_eq!(dotted, Err("the host ends with a dot".to_owned()));
    }

    #[test]
    fn u4_an_address_is_spelt_plainly_or_not_at_all() {
        for text in [
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://2130706433/",
            "https://127.1/",
            "https://127.0.1/",
            "https://0x7f000001/",
            "https://127.0.0.1./",
            "https://127.0.0.01/",
            "https://0/",
            "https://0x0/",
            "https://１27.0.0.1/",
            "https://93.184.55054/",
            "https://0x5d.184.215.14/",
        ] {
            assert_eq!(rule(text), "U4", "{text:?}");
        }
        assert_eq!(rule("https://1.2.3.4.5/"), "U1");
        assert_eq!(rule("https://256.1.1.1/"), "U1");
        assert_eq!(Url::parse("https://127.0.0.1/").unwrap().literal(), Some("127.0.0.1".parse().unwrap()));
        assert_eq!(
            Url::parse("https://[::FFFF:7f00:1]/").unwrap().literal(),
            Some("::ffff:127.0.0.1".parse().unwrap())
        );
        assert_eq!(Url::parse("https://[2606:2800::1]:8443/").unwrap().host(), "2606:2800::1");
    }

    #[test]
    fn u8_a_location_is_read_as_strictly_as_a_url() {
        let base = Url::parse("https://example.org/a/b?x#y").unwrap();
        let join =
            |location: &str| base.join(location).map_or_else(|denied| denied.rule.to_owned(), |url| url.to_string());
        assert_eq!(join("/c"), "https://example.org/c");
        assert_eq!(join("c:1/x"), "U1");
        assert_eq!(join("c"), "https://example.org/a/c");
        assert_eq!(join("./c:d"), "https://example.org/a/c:d");
        assert_eq!(join("?q=https://x"), "https://example.org/a/b?q=https://x");
        assert_eq!(join("../../c"), "https://example.org/c");
        assert_eq!(join("//evil.org/x"), "https://evil.org/x");
        assert_eq!(join("HTTP://example.org/"), "http://example.org/");
        for location in
            ["https:/evil.org", "https:evil.org", "/\\evil.org", "\\\\evil.org", "///evil.org", "/a b", "/\u{200B}"]
        {
            assert_eq!(join(location), "U1", "{location}");
        }
        assert_eq!(join("//a@evil.org"), "U2");
        assert_eq!(join("//evil.org."), "U3");
        assert_eq!(join("//0x7f.1"), "U4");
    }

    proptest! {
        #[test]
        fn what_is_accepted_shows_its_own_host(
            text in "https?://([a-zA-Z0-9.@:%\\[\\]\\\\/?#_-]|[éß。．ｅⓔ\u{AD}\u{200D}]){0,24}|\\PC{0,30}",
            location in "[a-z/:.?#@\\\\%-]{0,12}",
        ) {
            if let Ok(url) = Url::parse(&text) {
                prop_assert_eq!(Url::parse(url.as_str()), Ok(url.clone()));
                prop_assert!(url.host().is_ascii() && !url.host().contains(['@', '/', '%', '\\']));
                prop_assert!(matches!(url.scheme(), "http" | "https"));
                prop_assert!(!url.host().is_empty());
                if text.is_ascii() {
                    let host = if url.literal().is_some_and(|a| a.is_ipv6()) { "[" } else { url.host() };
                    prop_assert!(text.to_ascii_lowercase().contains(host), "{} does not show {}", text, host);
                }
                if let Ok(next) = url.join(&location) {
                    prop_assert_eq!(Url::parse(next.as_str()), Ok(next));
                }
            }
        }
    }
}
