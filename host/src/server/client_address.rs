//! The address by which clients are limited.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An IPv4 address, or the /64 network of an IPv6 address, because a client chooses the rest of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        })
    }
}

impl From<SocketAddr> for ClientAddress {
    fn from(address: SocketAddr) -> Self {
        address.ip().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_clients_are_grouped_by_network() {
        let of = |text: &str| ClientAddress::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8:0:1::1"), of("2001:db8:0:1:ffff::2"));
        assert_ne!(of("2001:db8:0:1::1"), of("2001:db8:0:2::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
    }
}
