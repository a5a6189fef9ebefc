//! Which IP addresses a render may reach: a pure function from an address to a verdict.
//!
//! Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries, and the IPv6 address space registry
//! for unassigned blocks. Invariant: connections are made to [`Verdict::Public`] only. An IPv6 address
//! that embeds an IPv4 address is public only if the embedded address is. Other rules for
//! addresses hold for all that [`reached`] gives.

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

/// The verdict for an address: that of the first of its [`reached`] addresses that is not public.
#[must_use]
pub fn classify(address: IpAddr) -> Verdict {
    let mut verdicts = reached(address).map(range_of);
    verdicts.find(|verdict| !verdict.is_public()).unwrap_or(Verdict::Public)
}

/// All addresses that packets to an address may reach: the IPv4 addresses inside it, where a translator or the end of a
/// tunnel sends them on, and then the address itself. An IPv4-mapped address is no other than the IPv4 address.
pub fn reached(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let itself = address.to_canonical();
    let bits = if let IpAddr::V6(address) = itself { u128::from(address) } else { 0 };
    embedded_v4(bits).map(IpAddr::V4).chain([itself])
}

/// The verdict for an address as that of one range, whatever is inside it. Reached addresses have one each.
#[must_use]
pub fn range_of(address: IpAddr) -> Verdict {
    match address {
        IpAddr::V4(address) => range_of_v4(address),
        IpAddr::V6(address) => range_of_v6(address),
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

fn range_of_v4(address: Ipv4Addr) -> Verdict {
    V4.iter()
        .find(|(base, prefix, _)| (u32::from(address) ^ u32::from(*base)) >> (32 - prefix) == 0)
        .map_or(Verdict::Public, |&(_, _, verdict)| verdict)
}

/// The first match wins.
const V6: &[(u128, u32, Verdict)] = &[
    (0, 128, Verdict::Unspecified),
    (1, 128, Verdict::Loopback),
    // Where it leads depends on the address inside it.
    (0x0064_ff9b << 96, 96, Verdict::Public),
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

fn range_of_v6(address: Ipv6Addr) -> Verdict {
    let bits = u128::from(address);
    V6.iter()
        .find(|(base, prefix, _)| (bits ^ base).checked_shr(128 - prefix).unwrap_or(0) == 0)
        .map_or(Verdict::Reserved, |&(_, _, verdict)| verdict)
}

/// The IPv4 addresses inside a compatible, translated (`::ffff:0:a.b.c.d`), NAT64, 6to4, Teredo or ISATAP address.
/// One address can be several of these.
fn embedded_v4(bits: u128) -> impl Iterator<Item = Ipv4Addr> {
    #[allow(clippy::cast_possible_truncation, reason = "only the low 32 bits are meant")]
    let low = |bits: u128| Ipv4Addr::from(bits as u32);
    let nat64 = bits >> 32 == 0x0064_ff9b << 64;
    let local_nat64 = bits >> 80 == 0x0064_ff9b_0001;
    let six_to_four = bits >> 112 == 0x2002;
    let teredo = bits >> 96 == 0x2001_0000;
    let isatap = (bits >> 32) & 0xfdff_ffff == 0x0000_5efe;
    // IPv4-compatible (RFC 4291), which `::` and `::1` are not, and IPv4-translated (RFC 2765).
    let compatible = bits >> 32 == 0 && bits > 1 || bits >> 32 == 0xffff_0000;
    // A site chooses the length of its prefix: the IPv4 address is in the last 32 bits, or after 48, 56 or 64 bits and
    // around the octet u (RFC 6052, 2.2). At the other places there are mostly zeros, and no host is in 0.0.0.0/8.
    let without_u = bits >> 64 << 56 | bits & (u128::MAX >> 72);
    let local = [bits, without_u >> 40, without_u >> 32, without_u >> 24]
        .map(low)
        .into_iter()
        .filter(move |address| local_nat64 && address.octets()[0] != 0);
    [
        (nat64 || compatible || isatap, low(bits)),
        (six_to_four, low(bits >> 80)),
        // Teredo inverts the bits of the client's address, and not those of the server's (RFC 4380).
        (teredo, low(!bits)),
        (teredo, low(bits >> 64)),
    ]
    .into_iter()
    .filter_map(|(holds, address)| holds.then_some(address))
    .chain(local)
}

#[cfg(test)]
mod tests;
