//! Which addresses are public (U7), and the networks an operator may open beside them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network in CIDR form. A plain address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u8,
}

/// The text is not a network: not an address, a length out of range, or bits set behind the length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a network is written as in 10.0.0.0/8, with nothing set behind its length")]
pub struct BadNetwork;

/// The IPv4 networks that are not public (U7).
const NOT_PUBLIC_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// The only IPv6 network with public addresses. All mapped, compatible and NAT64 forms lie outside it.
const GLOBAL_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The networks in [`GLOBAL_V6`] that are not public (U7): protocol assignments with Teredo, documentation, 6to4.
const NOT_PUBLIC_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether the address is one of the public internet (U7).
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|(base, bits)| holds_v4(*base, *bits, address)),
        IpAddr::V6(address) => {
            holds_v6(GLOBAL_V6.0, GLOBAL_V6.1, address)
                && !NOT_PUBLIC_V6.iter().any(|(base, bits)| holds_v6(*base, *bits, address))
        }
    }
}

fn holds_v4(base: Ipv4Addr, bits: u8, address: Ipv4Addr) -> bool {
    let host = u32::MAX.checked_shr(bits.into()).unwrap_or(0);
    (base.to_bits() | host) == (address.to_bits() | host)
}

fn holds_v6(base: Ipv6Addr, bits: u8, address: Ipv6Addr) -> bool {
    let host = u128::MAX.checked_shr(bits.into()).unwrap_or(0);
    (base.to_bits() | host) == (address.to_bits() | host)
}

impl Network {
    /// Whether the address lies in the network. An IPv4 network never holds an IPv6 address, however it is written.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => holds_v4(base, self.bits, address),
            (IpAddr::V6(base), IpAddr::V6(address)) => holds_v6(base, self.bits, address),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

impl std::str::FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let (base, length) = text.split_once('/').map_or((text, None), |(base, length)| (base, Some(length)));
        let base: IpAddr = base.parse().map_err(|_| BadNetwork)?;
        let longest = if base.is_ipv4() { 32 } else { 128 };
        let bits = match length {
            None => longest,
            Some(length) if length.bytes().all(|b| b.is_ascii_digit()) => length.parse().map_err(|_| BadNetwork)?,
            Some(_) => return Err(BadNetwork),
        };
        let clean = match base {
            IpAddr::V4(base) => base.to_bits() & u32::MAX.checked_shr(bits.into()).unwrap_or(0) == 0,
            IpAddr::V6(base) => base.to_bits() & u128::MAX.checked_shr(bits.into()).unwrap_or(0) == 0,
        };
        if bits <= longest && clean { Ok(Self { base, bits }) } else { Err(BadNetwork) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn u7_the_edges_of_every_network_that_is_not_public() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("168.63.129.16", "168.63.129.16"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
        ] {
            let (first, last): (Ipv4Addr, Ipv4Addr) = (first.parse().unwrap(), last.parse().unwrap());
            assert!(!is_public(first.into()) && !is_public(last.into()), "{first}-{last}");
            for outside in [first.to_bits().checked_sub(1), last.to_bits().checked_add(1)].into_iter().flatten() {
                assert!(is_public(Ipv4Addr::from_bits(outside).into()), "{}", Ipv4Addr::from_bits(outside));
            }
        }
    }

    #[test]
    fn u7_ipv6_is_public_only_inside_its_global_network() {
        for text in [
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:93.184.215.14",
            "::93.184.215.14",
            "64:ff9b::5db8:d70e",
            "64:ff9b:1::1",
            "100::1",
            "1fff:ffff::1",
            "2001::1",
            "2001:0:53aa:64c:0:0:a247:28f1",
            "2001:1ff:ffff::1",
            "2001:db8::1",
            "2001:db8:ffff::1",
            "2002:7f00:1::1",
            "2002:5db8:d70e::1",
            "3fff::1",
            "3fff:fff:ffff::1",
            "4000::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(ip(text)), "{text}");
        }
        for text in ["2000::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2606:2800::1", "3fff:1000::1"]
        {
            assert!(is_public(ip(text)), "{text}");
        }
    }

    #[test]
    fn u6_a_network_holds_its_own_kind_only() {
        let network: Network = "10.0.0.0/8".parse().unwrap();
        assert!(
            network.holds(ip("10.255.0.1")) && !network.holds(ip("11.0.0.1")) && !network.holds(ip("::ffff:10.0.0.1"))
        );
        let one: Network = "127.0.0.1".parse().unwrap();
        assert!(one.holds(ip("127.0.0.1")) && !one.holds(ip("127.0.0.2")));
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.holds(ip("255.1.2.3")) && !all.holds(ip("::1")));
        assert!("fd00::/8".parse::<Network>().unwrap().holds(ip("fd12::1")));
    }

    #[test]
    fn u6_a_broken_network_is_none() {
        for text in
            ["", "10.0.0.0/33", "10.0.0.1/8", "::1/129", "10.0.0.0/", "10.0.0.0/+8", "10/8", "x/8", "10.0.0.0/8/8", "*"]
        {
            assert_eq!(text.parse::<Network>(), Err(BadNetwork), "{text}");
        }
    }
}
