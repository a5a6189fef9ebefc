//! Which IP addresses a render may reach: a pure function from an address to a verdict.
//!
//! Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries, and the IPv6 address space registry
//! for unassigned blocks. Invariant: connections are made to [`Verdict::Public`] only. An IPv6 address
//! that embeds an IPv4 address is public only if the embedded address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strum::IntoStaticStr;

/// The kind of an address: public, or the reason to refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Verdict {
    /// Globally reachable unicast.
    Public,
    /// `0.0.0.0/8`, `::` ("this host on this network", RFC 791, RFC 4291).
    Unspecified,
    /// `127.0.0.0/8`, `::1` (RFC 1122, RFC 4291).
    Loopback,
    /// `10/8`, `172.16/12`, `192.168/16` (RFC 1918).
    Private,
    /// `100.64/10`, shared by carrier-grade NAT (RFC 6598).
    SharedNat,
    /// `169.254/16`, `fe80::/10`: the range of cloud metadata services (RFC 3927, RFC 4291).
    LinkLocal,
    /// `fc00::/7` (RFC 4193).
    UniqueLocal,
    /// `fec0::/10`, deprecated but still routed inside some sites (RFC 3879).
    SiteLocal,
    /// `224/4`, `ff00::/8` (RFC 5771, RFC 4291).
    Multicast,
    /// `255.255.255.255` (RFC 919).
    Broadcast,
    /// Documentation ranges (RFC 5737, RFC 3849, RFC 9637).
    Documentation,
    /// `198.18/15`, `2001:2::/48` (RFC 2544, RFC 5180).
    Benchmarking,
    /// `192.0.0.0/24` and `2001::/23`: protocol assignments, Teredo among them (RFC 6890).
    ProtocolAssignment,
    /// `192.88.99.0/24`, the withdrawn 6to4 relay anycast (RFC 7526).
    SixToFourRelay,
    /// `192.31.196.0/24`, `192.175.48.0/24`, `2001:4:112::/48`, `2620:4f:8000::/48`: sinks for DNS
    /// queries about private addresses (RFC 7534, RFC 7535).
    As112,
    /// `192.52.193.0/24`, `2001:3::/32`: multicast tunnels (RFC 7450).
    MulticastTunnel,
    /// `100::/64`, discard-only, and `100:0:0:1::/64`, the dummy prefix (RFC 6666, RFC 9780).
    Discard,
    /// `64:ff9b:1::/48`, local-use IPv4/IPv6 translation (RFC 8215).
    LocalTranslation,
    /// `5f00::/16`, segment routing identifiers (RFC 9602).
    SegmentRouting,
    /// `240/4`, and every IPv6 block that is not assigned as global unicast (RFC 1112, RFC 4291).
    Reserved,
}

impl Verdict {
    /// Whether a render may reach the address.
    #[must_use]
    pub fn is_public(self) -> bool {
        self == Self::Public
    }

    /// The name in metrics and log lines, in snake case.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The verdict for one address.
#[must_use]
pub fn classify(address: IpAddr) -> Verdict {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// The first match wins, so a range precedes every range that contains it.
const V4: &[(Ipv4Addr, u32, Verdict)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, Verdict::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Verdict::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Verdict::SharedNat),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Verdict::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Verdict::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Verdict::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Verdict::ProtocolAssignment),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Verdict::Documentation),
    (Ipv4Addr::new(192, 31, 196, 0), 24, Verdict::As112),
    (Ipv4Addr::new(192, 52, 193, 0), 24, Verdict::MulticastTunnel),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Verdict::SixToFourRelay),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Verdict::Private),
    (Ipv4Addr::new(192, 175, 48, 0), 24, Verdict::As112),
    (Ipv4Addr::new(198, 18, 0, 0), 15, Verdict::Benchmarking),
    (Ipv4Addr::new(198, 51, 100, 0), 24, Verdict::Documentation),
    (Ipv4Addr::new(203, 0, 113, 0), 24, Verdict::Documentation),
    (Ipv4Addr::new(224, 0, 0, 0), 4, Verdict::Multicast),
    (Ipv4Addr::BROADCAST, 32, Verdict::Broadcast),
    (Ipv4Addr::new(240, 0, 0, 0), 4, Verdict::Reserved),
];

fn classify_v4(address: Ipv4Addr) -> Verdict {
    V4.iter()
        .find(|(base, prefix, _)| (u32::from(address) ^ u32::from(*base)) >> (32 - prefix) == 0)
        .map_or(Verdict::Public, |&(_, _, verdict)| verdict)
}

/// The first match wins. Addresses that embed an IPv4 address are examined before this table.
const V6: &[(u128, u32, Verdict)] = &[
    (0, 128, Verdict::Unspecified),
    (1, 128, Verdict::Loopback),
    (0x0064_ff9b_0001 << 80, 48, Verdict::LocalTranslation),
    (0x0100 << 112, 64, Verdict::Discard),
    (0x0100_0000_0000_0001 << 64, 64, Verdict::Discard),
    (0x2001_0002_0000 << 80, 48, Verdict::Benchmarking),
    (0x2001_0003 << 96, 32, Verdict::MulticastTunnel),
    (0x2001_0004_0112 << 80, 48, Verdict::As112),
    (0x2001_0db8 << 96, 32, Verdict::Documentation),
    (0x2001 << 112, 23, Verdict::ProtocolAssignment),
    (0x2620_004f_8000 << 80, 48, Verdict::As112),
    (0x3fff << 112, 20, Verdict::Documentation),
    (0x5f00 << 112, 16, Verdict::SegmentRouting),
    (0xfc00 << 112, 7, Verdict::UniqueLocal),
    (0xfe80 << 112, 10, Verdict::LinkLocal),
    (0xfec0 << 112, 10, Verdict::SiteLocal),
    (0xff00 << 112, 8, Verdict::Multicast),
    // Global unicast is 2000::/3; the rest is not assigned.
    (0x2000 << 112, 3, Verdict::Public),
    (0, 0, Verdict::Reserved),
];

fn classify_v6(address: Ipv6Addr) -> Verdict {
    let bits = u128::from(address);
    let from_table = V6
        .iter()
        .find(|(base, prefix, _)| (bits ^ base).checked_shr(128 - prefix).unwrap_or(0) == 0)
        .map_or(Verdict::Reserved, |&(_, _, verdict)| verdict);
    let mut inner = embedded_v4(bits).map(classify_v4);
    // `::` and `::1` embed no address.
    match inner.find(|inner| !inner.is_public()) {
        // The verdict of the embedded address is more specific than that of its prefix.
        Some(inner) if bits > 1 => inner,
        None if is_nat64(bits) || is_mapped(bits) => Verdict::Public,
        _ => from_table,
    }
}

fn is_mapped(bits: u128) -> bool {
    bits >> 32 == 0xffff
}

fn is_nat64(bits: u128) -> bool {
    bits >> 32 == 0x0064_ff9b << 64
}

/// The IPv4 addresses inside a mapped, compatible, translated (`::ffff:0:a.b.c.d`), NAT64, 6to4,
/// Teredo or ISATAP address. One address can be several of these.
fn embedded_v4(bits: u128) -> impl Iterator<Item = Ipv4Addr> {
    #[allow(clippy::cast_possible_truncation, reason = "only the low 32 bits are meant")]
    let low = |bits: u128| Ipv4Addr::from(bits as u32);
    let local_translation = bits >> 80 == 0x0064_ff9b_0001;
    let six_to_four = bits >> 112 == 0x2002;
    let teredo = bits >> 96 == 0x2001_0000;
    let isatap = (bits >> 32) & 0xfdff_ffff == 0x0000_5efe;
    // IPv4-compatible (RFC 4291) and IPv4-translated (RFC 2765).
    let compatible = bits >> 32 == 0 || bits >> 32 == 0xffff_0000;
    [
        (is_mapped(bits) || is_nat64(bits) || compatible || isatap, low(bits)),
        // A site chooses the length of its prefix (RFC 6052 2.2), so the IPv4 address is in the last
        // 32 bits or around the octet u, which is zero.
        (local_translation, low(bits)),
        (local_translation, low(((bits >> 64 & 0xffff) << 16) | (bits >> 40 & 0xffff))),
        (six_to_four, low(bits >> 80)),
        // Teredo inverts the bits of the client's address, and not those of the server's (RFC 4380).
        (teredo, low(!bits)),
        (teredo, low(bits >> 64)),
    ]
    .into_iter()
    .filter_map(|(holds, address)| holds.then_some(address))
}

#[cfg(test)]
mod tests;
