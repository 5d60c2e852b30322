//! The address that others know the server by.

use std::fmt;

/// The address that others know the server by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    /// Whether it is https.
    pub(crate) secure: bool,
    /// The name, without the port.
    pub(crate) host: String,
    port: Option<u16>,
}

impl PublicUrl {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (secure, rest) = match text.strip_prefix("https://") {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix("http://")?),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (rest, None),
        };
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '-');
        let fine = !host.is_empty() && host.chars().all(plain);
        fine.then(|| Self { secure, host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
