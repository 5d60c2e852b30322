//! Connects to what an agent may reach and to nothing else: a name is looked up once, every address it has is judged, and
//! the connection goes to one of them (N2 to N6). Redirects are decisions of their own. No cookie, key or connection
//! outlives its request, so that no agent profits from another's.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use adjutant_core::guard::address::{Network, is_public};
use adjutant_core::guard::host::{Body, HostPolicy, Method, NetCaps, Redirect, Url};
use adjutant_core::guard::scope::Denied;
use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};

use crate::limits::{NET_BODY_BYTES, NET_CONNECT, NET_IDLE, NET_TIMEOUT};

/// Headers that say how a message is carried, or to whom: they are the connection's own.
const CARRYING: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Finds addresses.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// Every address of a name.
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>>;

    /// Where to connect for an address that was judged: there. Tests, which may not go there, say otherwise.
    fn route(&self, judged: SocketAddr) -> SocketAddr {
        judged
    }
}

/// Asks the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// The door to the network.
#[derive(Clone)]
pub struct Connector {
    lookup: Arc<dyn Lookup>,
    /// Networks that are not public and that the operator opened to agents.
    private: Vec<Network>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("private", &self.private).finish_non_exhaustive()
    }
}

impl Default for Connector {
    /// Public addresses only, by the system's look-up.
    fn default() -> Self {
        Self::new(Arc::new(SystemLookup), Vec::new())
    }
}

/// A request of an agent.
#[derive(Debug, Clone)]
pub struct Request {
    /// What it does.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// `Name: value` each.
    pub headers: Vec<String>,
    /// What it carries.
    pub body: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Where it came from, after redirects.
    pub url: String,
    /// The status.
    pub status: u16,
    /// What it says it is.
    pub content_type: Option<String>,
    /// Where it points to, if it is a redirect that was not followed.
    pub location: Option<String>,
    /// Its body, or the beginning of it.
    pub body: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

/// Why there is no answer. The texts reach the model: they name no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetError {
    /// It is not allowed.
    #[error("{}.", refusal(.0))]
    Denied(Denied),
    /// It makes no sense.
    #[error("{0}.")]
    Malformed(String),
    /// No connection came about; nothing was sent.
    #[error("{0}.")]
    Unreachable(String),
    /// It broke off after something was sent.
    #[error("{0}.")]
    Broken(String),
}

/// A refusal in words that do not tell what a name of the house leads to.
fn refusal(denied: &Denied) -> String {
    match denied.code {
        "not_public" => "That host does not lead to a public address".to_owned(),
        _ => format!("That is not allowed: {}", denied.reason),
    }
}

impl From<Denied> for NetError {
    fn from(denied: Denied) -> Self {
        Self::Denied(denied)
    }
}

impl Connector {
    /// A door that looks names up this way and also leads to these networks, for agents that may go there.
    #[must_use]
    pub fn new(lookup: Arc<dyn Lookup>, private: Vec<Network>) -> Self {
        Self { lookup, private }
    }

    /// Networks that are not public and open to agents whose hosts lie there.
    #[must_use]
    pub fn opened(&self) -> &[Network] {
        &self.private
    }

    /// Sends a request, if the hosts allow it, and reads the answer. What only reads is followed to where it moved; what
    /// sends is not.
    ///
    /// # Errors
    /// One variant for each reaction.
    pub async fn send(&self, hosts: &HostPolicy, request: Request) -> Result<Answer, NetError> {
        let Request { method, mut url, headers, body } = request;
        let mut headers = parse_headers(&headers)?;
        let caps = NetCaps { read: true, write: !method.is_reading() };
        hosts.check_url(&url, method, caps)?;
        for followed in 0.. {
            let client = self.client(hosts, &url).await?;
            let mut asking = client.request(verb(method), url.as_str()).headers(headers.clone());
            if let Some(body) = &body {
                asking = asking.body(body.clone());
            }
            let response = asking.send().await.map_err(|error| failure(&url, &error))?;
            let location = location(&response);
            match location {
                Some(location) if method.is_reading() => {
                    let redirect = Redirect { from: &url, location: &location, followed, method, body: Body::None };
                    let next = hosts.check_redirect(redirect, caps)?;
                    if !next.same_origin(&url) {
                        headers.clear();
                    }
                    url = next;
                }
                location => return read(&url, response, location).await,
            }
        }
        Err(NetError::Malformed("It was redirected too often".to_owned()))
    }

    /// A client for one request to one host, which knows the addresses that were judged and no others.
    async fn client(&self, hosts: &HostPolicy, url: &Url) -> Result<reqwest::Client, NetError> {
        let answers = match url.literal() {
            Some(_) => Vec::new(),
            None => self.look_up(url).await?,
        };
        let judged = hosts.check_addresses(url, &answers)?;
        let closed = |address: &&SocketAddr| {
            !is_public(address.ip()) && !self.private.iter().any(|network| network.holds(address.ip()))
        };
        if let Some(address) = judged.iter().find(closed) {
            let reason = format!("{} leads to {address}, which this server does not open to agents", url.host());
            return Err(Denied { rule: "U7", code: "not_public", reason, smallest_grant: None }.into());
        }
        let routed: Vec<SocketAddr> = judged.into_iter().map(|address| self.lookup.route(address)).collect();
        let client = reqwest::Client::builder();
        #[cfg(target_os = "linux")]
        let client = client.tcp_user_timeout(crate::limits::NET_UNHEARD);
        client
            .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .resolve_to_addrs(url.host(), &routed)
            .dns_resolver(Arc::new(Nowhere))
            .pool_max_idle_per_host(0)
            .connect_timeout(NET_CONNECT)
            .read_timeout(NET_IDLE)
            .timeout(NET_TIMEOUT)
            .build()
            .map_err(|_| NetError::Unreachable("No connection can be made from here".to_owned()))
    }

    async fn look_up(&self, url: &Url) -> Result<Vec<IpAddr>, NetError> {
        let unknown = || NetError::Unreachable(format!("{} was not found", url.host()));
        let asked = tokio::time::timeout(NET_CONNECT, self.lookup.addresses(url.host())).await;
        asked.map_err(|_| unknown())?.map_err(|_| unknown())
    }
}

/// Looks nothing up: the addresses are known, and a second look-up could give others (U6).
struct Nowhere;

impl reqwest::dns::Resolve for Nowhere {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        Box::pin(async { Err("not looked up again".into()) })
    }
}

fn verb(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Head => reqwest::Method::HEAD,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

fn parse_headers(lines: &[String]) -> Result<HeaderMap, NetError> {
    let mut headers = HeaderMap::new();
    for line in lines {
        let malformed = || NetError::Malformed(format!("`{line}` is no header; write `Name: value`"));
        let (name, value) = line.split_once(':').ok_or_else(malformed)?;
        let name: HeaderName = name.trim().parse().map_err(|_| malformed())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| malformed())?;
        if CARRYING.contains(&name.as_str()) {
            return Err(NetError::Malformed(format!("The header `{name}` is set by the connection itself")));
        }
        headers.append(name, value);
    }
    Ok(headers)
}

/// Where a redirect points to.
fn location(response: &reqwest::Response) -> Option<String> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let text = response.headers().get(LOCATION).filter(|_| redirects)?;
    // What is no text is refused where it is judged.
    Some(String::from_utf8_lossy(text.as_bytes()).into_owned())
}

async fn read(url: &Url, mut response: reqwest::Response, location: Option<String>) -> Result<Answer, NetError> {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).map(str::to_owned);
    let (status, mut body, mut cut) = (response.status().as_u16(), Vec::new(), false);
    while !cut {
        let Some(piece) = response.chunk().await.map_err(|error| failure(url, &error))? else { break };
        let room = NET_BODY_BYTES - body.len();
        cut = piece.len() > room;
        body.extend_from_slice(&piece[..piece.len().min(room)]);
    }
    Ok(Answer { url: url.as_str().to_owned(), status, content_type, location, body, cut })
}

fn failure(url: &Url, error: &reqwest::Error) -> NetError {
    let host = url.host();
    if error.is_connect() {
        NetError::Unreachable(format!("{host} could not be reached"))
    } else if error.is_timeout() {
        NetError::Broken(format!("{host} did not answer in time"))
    } else {
        NetError::Broken(format!("The connection to {host} broke off"))
    }
}
