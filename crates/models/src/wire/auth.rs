//! What proves to a provider who calls. A credential knows the hosts it may go to and is attached to nothing else (K4).

use std::fmt;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::google::{self, Account, TokenSource};
use super::sigv4;
use crate::ModelError;
use crate::vendor::Vendor;

/// A key and where it may go.
#[derive(Clone)]
pub struct ApiKey {
    secret: SecretString,
    hosts: Vec<String>,
}

impl ApiKey {
    /// A key for the address it is configured with, whichever that is: the operator wrote both into one place.
    #[must_use]
    pub const fn for_its_address(secret: SecretString) -> Self {
        Self { secret, hosts: Vec::new() }
    }

    /// A key that somebody brought, for the hosts it was kept for; none where it is no text.
    #[must_use]
    pub fn brought(value: &[u8], hosts: &[String]) -> Option<Self> {
        let secret = SecretString::from(std::str::from_utf8(value).ok()?);
        Some(Self { secret, hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect() })
    }

    /// A key that goes to these hosts and to no other.
    #[must_use]
    pub fn for_hosts(secret: SecretString, hosts: &[&str]) -> Self {
        Self { secret, hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect() }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// An access key of Amazon's.
#[derive(Clone)]
pub struct AwsKey {
    /// Its public half.
    pub access: String,
    /// Its secret half.
    pub secret: SecretString,
    /// What goes with a key that was lent for a while.
    pub session: Option<SecretString>,
}

impl fmt::Debug for AwsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AwsKey")
    }
}

/// What proves who calls.
#[derive(Debug, Clone)]
pub enum Credential {
    /// Nothing: a server at home.
    None,
    /// A key.
    Key(ApiKey),
    /// An access key that signs each request.
    Aws(AwsKey),
    /// The text of a service-account or application-default file, for which tokens are asked.
    Google(SecretString),
}

impl Credential {
    /// Shows what is secret about it.
    pub(crate) fn show(&self, show: &mut dyn FnMut(&str)) {
        match self {
            Self::None => {}
            Self::Key(key) => show(key.secret.expose_secret()),
            Self::Aws(key) => {
                show(key.secret.expose_secret());
                key.session.iter().for_each(|session| show(session.expose_secret()));
            }
            Self::Google(file) => google::secrets(file.expose_secret(), show),
        }
    }
}

/// A credential that fits its provider.
pub(super) enum Auth {
    None,
    Header { name: HeaderName, value: HeaderValue, secret: SecretString, hosts: Vec<String> },
    Aws { key: AwsKey, region: String, host: String },
    Google { tokens: TokenSource, host: String },
}

impl Auth {
    /// Checks a credential against the provider it is for.
    pub(super) fn new(
        vendor: &Vendor,
        credential: Credential,
        region: Option<String>,
        base: &Url,
    ) -> Result<Self, String> {
        let host = base.host_str().unwrap_or_default().to_ascii_lowercase();
        match credential {
            Credential::None => Ok(Self::None),
            Credential::Key(ApiKey { secret, mut hosts }) => {
                if hosts.is_empty() {
                    hosts.push(host.clone());
                }
                if !hosts.contains(&host) {
                    let hosts = hosts.join(", ");
                    return Err(format!("its key is for {hosts} and is not sent to {host}; give it a key of its own"));
                }
                let (name, text) = vendor.protocol.key_header(secret.expose_secret());
                let mut value = HeaderValue::from_str(&text)
                    .map_err(|_| "its key holds characters that no key has (a line break, perhaps)".to_owned())?;
                value.set_sensitive(true);
                Ok(Self::Header { name, value, secret, hosts })
            }
            Credential::Aws(key) => {
                let region = region.ok_or_else(|| "it needs a region".to_owned())?;
                Ok(Self::Aws { key, region, host })
            }
            Credential::Google(file) => {
                let account = Account::read(file.expose_secret())?;
                Ok(Self::Google { tokens: TokenSource::new(account), host })
            }
        }
    }

    /// Adds what proves who calls to the headers of a request.
    pub(super) async fn attach(
        &self,
        headers: &mut HeaderMap,
        url: &Url,
        body: &[u8],
        client: &reqwest::Client,
        now: jiff::Timestamp,
    ) -> Result<(), ModelError> {
        let target = url.host_str().unwrap_or_default();
        let elsewhere = || ModelError::broken("a key is not sent to a host it is not for");
        match self {
            Self::None => {}
            Self::Header { name, value, hosts, .. } => {
                if !hosts.iter().any(|host| host == target) {
                    return Err(elsewhere());
                }
                headers.insert(name, value.clone());
            }
            Self::Aws { key, region, host } => {
                if host != target {
                    return Err(elsewhere());
                }
                sigv4::sign(headers, url, body, key, region, now)?;
            }
            Self::Google { tokens, host } => {
                if host != target {
                    return Err(elsewhere());
                }
                let token = tokens.token(client, now).await?;
                let bearer = format!("Bearer {}", token.expose_secret());
                let mut value = HeaderValue::from_str(&bearer)
                    .map_err(|_| ModelError::broken("the token of the account cannot be sent"))?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
        }
        Ok(())
    }

    /// Whether it proves anything.
    pub(super) const fn has_key(&self) -> bool {
        match self {
            Self::None => false,
            Self::Header { .. } | Self::Aws { .. } | Self::Google { .. } => true,
        }
    }

    /// The text without the secret, should a provider have sent it back.
    pub(super) fn redact(&self, text: &str) -> String {
        let secret = match self {
            Self::Header { secret, .. } => secret.expose_secret(),
            Self::Aws { key, .. } => key.secret.expose_secret(),
            Self::None | Self::Google { .. } => "",
        };
        if secret.is_empty() { text.to_owned() } else { text.replace(secret, "[REDACTED:credential]") }
    }
}
