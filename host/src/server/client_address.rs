//! The address by which clients are limited and take turns.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName};

/// An IPv4 address, or the /64 network of an IPv6 address, because a client chooses the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClientAddress(IpAddr);

impl ClientAddress {
    /// The address of the peer, or the one in the header in which the operator's reverse proxy sends it. Proxies append theirs to
    /// what a client has sent, so the last entry counts.
    pub(super) fn of(headers: &HeaderMap, proxy_header: Option<&HeaderName>, peer: SocketAddr) -> Self {
        let last = proxy_header.and_then(|name| headers.get_all(name).iter().next_back());
        let entry = last.and_then(|value| value.to_str().ok()?.rsplit(',').next());
        entry.and_then(|entry| entry.trim().parse().ok()).unwrap_or(peer.ip()).into()
    }
}

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn ipv6_clients_are_grouped_by_network() {
        assert_eq!(address("2001:db8:0:1::1"), address("2001:db8:0:1:ffff::2"));
        assert_ne!(address("2001:db8:0:1::1"), address("2001:db8:0:2::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
        assert_ne!(address("192.0.2.1"), address("192.0.2.2"));
    }

    #[test]
    fn only_the_configured_header_is_believed_and_only_its_last_entry() {
        let peer = "192.0.2.9:1".parse().unwrap();
        let name = HeaderName::from_static("x-forwarded-for");
        let of = |values: &[&str], proxy_header| {
            let headers = values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect();
            ClientAddress::of(&headers, proxy_header, peer)
        };
        assert_eq!(of(&["192.0.2.1"], None), address("192.0.2.9"));
        for (values, expected) in [
            (&["192.0.2.1"][..], "192.0.2.1"),
            (&["192.0.2.1, 192.0.2.2"], "192.0.2.2"),
            (&["192.0.2.1", "192.0.2.3"], "192.0.2.3"),
            (&["192.0.2.1, x"], "192.0.2.9"),
            (&[], "192.0.2.9"),
        ] {
            assert_eq!(of(values, Some(&name)), address(expected), "{values:?}");
        }
    }
}
