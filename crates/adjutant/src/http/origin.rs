//! Where a request comes from: the other end of the connection, or whom a proxy that the operator trusts names.

use std::net::{IpAddr, SocketAddr};

use adjutant_core::guard::address::Network;
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::request::Parts;

use super::problem::{Kind, Problem};
use super::server::Server;

const FORWARDED: &str = "x-forwarded-for";

/// The address that a request counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin(pub(super) IpAddr);

impl FromRequestParts<Server> for Origin {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, server: &Server) -> Result<Self, Problem> {
        let from = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let ConnectInfo(from) =
            from.ok_or_else(|| Problem::new(Kind::Internal, "A request came from nowhere. Nothing was done."))?;
        Ok(Self::of(from.ip(), &parts.headers, &server.place.proxies))
    }
}

impl Origin {
    /// Each proxy adds the address it was called from at the end. So it is read from there, and the first that is no proxy of
    /// ours is the client: what stands before it is the client's own word, and worth nothing.
    fn of(peer: IpAddr, headers: &HeaderMap, proxies: &[Network]) -> Self {
        let trusted = |address: IpAddr| proxies.iter().any(|network| network.holds(address));
        let mut client = peer.to_canonical();
        if !trusted(client) {
            return Self(client);
        }
        let lines = headers.get_all(FORWARDED).iter().map(|line| line.to_str().unwrap_or_default());
        let named: Vec<&str> = lines.flat_map(|line| line.split(',')).collect();
        for name in named.into_iter().rev() {
            let Some(address) = address(name.trim()) else { break };
            client = address;
            if !trusted(client) {
                break;
            }
        }
        Self(client)
    }
}

/// An address, as proxies write it: with a port or without.
fn address(text: &str) -> Option<IpAddr> {
    let plain = text.parse::<IpAddr>().ok();
    let bare = || text.strip_prefix('[')?.strip_suffix(']')?.parse::<IpAddr>().ok();
    let with_port = || text.parse::<SocketAddr>().ok().map(|address| address.ip());
    plain.or_else(bare).or_else(with_port).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(peer: &str, forwarded: &[&str], proxies: &str) -> String {
        let networks: Vec<Network> = proxies.split_whitespace().map(|text| text.parse().unwrap()).collect();
        let headers = forwarded.iter().map(|line| (FORWARDED.parse().unwrap(), line.parse().unwrap())).collect();
        Origin::of(peer.parse().unwrap(), &headers, &networks).0.to_string()
    }

    #[test]
    fn only_a_proxy_that_is_trusted_says_who_asks() {
        assert_eq!(of("192.0.2.9", &["203.0.113.1"], ""), "192.0.2.9");
        assert_eq!(of("192.0.2.9", &["203.0.113.1"], "10.0.0.0/8"), "192.0.2.9", "a stranger's word");
        assert_eq!(of("10.0.0.2", &["203.0.113.1"], "10.0.0.0/8"), "203.0.113.1");
        assert_eq!(of("::ffff:10.0.0.2", &["203.0.113.1"], "10.0.0.0/8"), "203.0.113.1");
        assert_eq!(of("10.0.0.2", &[], "10.0.0.0/8"), "10.0.0.2");
    }

    #[test]
    fn what_a_client_put_before_the_proxies_counts_for_nothing() {
        let proxies = "127.0.0.1 10.0.0.0/8";
        assert_eq!(of("127.0.0.1", &["198.51.100.7, 203.0.113.1, 10.0.0.3"], proxies), "203.0.113.1");
        assert_eq!(of("127.0.0.1", &["198.51.100.7", "203.0.113.1"], proxies), "203.0.113.1");
        assert_eq!(of("127.0.0.1", &["198.51.100.7, nonsense"], proxies), "127.0.0.1");
        assert_eq!(of("127.0.0.1", &["10.0.0.4, 10.0.0.3"], proxies), "10.0.0.4", "one of ours asks");
        assert_eq!(of("127.0.0.1", &["203.0.113.1:4711"], proxies), "203.0.113.1");
        assert_eq!(of("127.0.0.1", &["[2001:db8::1]:4711"], proxies), "2001:db8::1");
    }
}
