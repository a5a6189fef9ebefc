//! Which IP addresses a render may reach: one pure function from an address to a verdict.
//!
//! Source: the IANA IPv4 and IPv6 Special-Purpose Address Registries, and the IPv6 address space
//! registry for what is not handed out at all. Invariant: only [`Verdict::Public`] may be dialled;
//! an IPv6 form that embeds an IPv4 address is never better than what it embeds. Left to others:
//! resolving names, dialling, and any exception an operator makes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is. One variant for each reason to refuse it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// `169.254/16`, `fe80::/10`: where cloud metadata services live (RFC 3927, RFC 4291).
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
    /// `100::/64` and `100:0:0:1::/64`, which discard or stand for nothing (RFC 6666, RFC 9780).
    Discard,
    /// `64:ff9b:1::/48`, a site's own translation prefix (RFC 8215).
    LocalTranslation,
    /// `5f00::/16`, segment routing identifiers (RFC 9602).
    SegmentRouting,
    /// `240/4`, and every IPv6 block not given out as global unicast (RFC 1112, RFC 4291).
    Reserved,
}

impl Verdict {
    /// Whether a render may reach the address.
    #[must_use]
    pub fn is_public(self) -> bool {
        self == Self::Public
    }
}

/// Judges one address.
#[must_use]
pub fn classify(address: IpAddr) -> Verdict {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// First match wins, so a narrower range stands before the one it lies in.
const V4: &[(Ipv4Addr, u32, Verdict)] = &[
    (Ipv4Addr::UNSPECIFIED, 8, Verdict::Unspecified),
    (Ipv4Addr::new(10, 0, 0, 0), 8, Verdict::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, Verdict::SharedNat),
    (Ipv4Addr::new(127, 0, 0, 0), 8, Verdict::Loopback),
    (Ipv4Addr::new(169, 254, 0, 0), 16, Verdict::LinkLocal),
    (Ipv4Addr::new(172, 16, 0, 0), 12, Verdict::Private),
    (Ipv4Addr::new(192, 0, 0, 0), 24, Verdict::ProtocolAssignment),
    (Ipv4Addr::new(192, 0, 2, 0), 24, Verdict::Documentation),
    (Ipv4Addr::new(192, 88, 99, 0), 24, Verdict::SixToFourRelay),
    (Ipv4Addr::new(192, 168, 0, 0), 16, Verdict::Private),
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

/// First match wins. Forms that embed an IPv4 address are looked at before this table.
const V6: &[(u128, u32, Verdict)] = &[
    (0, 128, Verdict::Unspecified),
    (1, 128, Verdict::Loopback),
    (0x0064_ff9b_0001 << 80, 48, Verdict::LocalTranslation),
    (0x0100 << 112, 64, Verdict::Discard),
    (0x0100_0000_0000_0001 << 64, 64, Verdict::Discard),
    (0x2001_0002_0000 << 80, 48, Verdict::Benchmarking),
    (0x2001_0db8 << 96, 32, Verdict::Documentation),
    (0x2001 << 112, 23, Verdict::ProtocolAssignment),
    (0x3fff << 112, 20, Verdict::Documentation),
    (0x5f00 << 112, 16, Verdict::SegmentRouting),
    (0xfc00 << 112, 7, Verdict::UniqueLocal),
    (0xfe80 << 112, 10, Verdict::LinkLocal),
    (0xfec0 << 112, 10, Verdict::SiteLocal),
    (0xff00 << 112, 8, Verdict::Multicast),
    // Global unicast is 2000::/3; all the rest is not given out.
    (0x2000 << 112, 3, Verdict::Public),
    (0, 0, Verdict::Reserved),
];

fn classify_v6(address: Ipv6Addr) -> Verdict {
    let bits = u128::from(address);
    let from_table = V6
        .iter()
        .find(|(base, prefix, _)| (bits ^ base).checked_shr(128 - prefix).unwrap_or(0) == 0)
        .map_or(Verdict::Reserved, |&(_, _, verdict)| verdict);
    match embedded_v4(bits).map(classify_v4) {
        // What is inside says more than the wrapper, and decides where the wrapper is harmless.
        Some(inner) if !inner.is_public() && bits > 1 => inner,
        Some(inner) if is_nat64(bits) || is_mapped(bits) => inner,
        _ => from_table,
    }
}

fn is_mapped(bits: u128) -> bool {
    bits >> 32 == 0xffff
}

fn is_nat64(bits: u128) -> bool {
    bits >> 32 == 0x0064_ff9b << 64
}

/// The IPv4 address inside a mapped, compatible, translated (`::ffff:0:a.b.c.d`), NAT64, 6to4,
/// Teredo or ISATAP address.
fn embedded_v4(bits: u128) -> Option<Ipv4Addr> {
    #[allow(clippy::cast_possible_truncation, reason = "the low 32 bits are what is wanted")]
    let low = |bits: u128| Ipv4Addr::from(bits as u32);
    let top16 = bits >> 112;
    let isatap = (bits >> 32) & 0xfdff_ffff == 0x0000_5efe;
    if is_mapped(bits) || is_nat64(bits) || bits >> 80 == 0x0064_ff9b_0001 {
        Some(low(bits))
    } else if bits >> 32 == 0 || bits >> 32 == 0xffff_0000 {
        // IPv4-compatible (RFC 4291) and IPv4-translated (RFC 2765).
        Some(low(bits))
    } else if top16 == 0x2002 {
        Some(low(bits >> 80))
    } else if bits >> 96 == 0x2001_0000 {
        // Teredo stores the client's address inverted (RFC 4380).
        Some(low(!bits))
    } else if isatap {
        Some(low(bits))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn addresses_are_judged_by_what_they_are_and_what_they_embed() {
        use Verdict::{
            Benchmarking, Broadcast, Discard, Documentation, LinkLocal, LocalTranslation, Loopback,
            Multicast, Private, ProtocolAssignment, Public, Reserved, SegmentRouting, SharedNat, SiteLocal,
            SixToFourRelay, UniqueLocal, Unspecified,
        };
        let table: &[(&str, Verdict)] = &[
            ("0.0.0.0", Unspecified),
            ("0.255.255.255", Unspecified),
            ("1.0.0.0", Public),
            ("9.255.255.255", Public),
            ("10.0.0.0", Private),
            ("10.255.255.255", Private),
            ("11.0.0.0", Public),
            ("100.63.255.255", Public),
            ("100.64.0.0", SharedNat),
            ("100.100.100.200", SharedNat),
            ("100.127.255.255", SharedNat),
            ("100.128.0.0", Public),
            ("126.255.255.255", Public),
            ("127.0.0.0", Loopback),
            ("127.255.255.255", Loopback),
            ("128.0.0.0", Public),
            ("169.253.255.255", Public),
            ("169.254.169.254", LinkLocal),
            ("169.255.0.0", Public),
            ("172.15.255.255", Public),
            ("172.16.0.0", Private),
            ("172.31.255.255", Private),
            ("172.32.0.0", Public),
            ("191.255.255.255", Public),
            ("192.0.0.0", ProtocolAssignment),
            ("192.0.0.255", ProtocolAssignment),
            ("192.0.1.0", Public),
            ("192.0.2.1", Documentation),
            ("192.0.3.0", Public),
            ("192.88.98.255", Public),
            ("192.88.99.1", SixToFourRelay),
            ("192.88.100.0", Public),
            ("192.167.255.255", Public),
            ("192.168.0.0", Private),
            ("192.168.255.255", Private),
            ("192.169.0.0", Public),
            ("198.17.255.255", Public),
            ("198.18.0.0", Benchmarking),
            ("198.19.255.255", Benchmarking),
            ("198.20.0.0", Public),
            ("198.51.99.255", Public),
            ("198.51.100.7", Documentation),
            ("198.51.101.0", Public),
            ("203.0.112.255", Public),
            ("203.0.113.0", Documentation),
            ("203.0.114.0", Public),
            ("223.255.255.255", Public),
            ("224.0.0.0", Multicast),
            ("239.255.255.255", Multicast),
            ("240.0.0.0", Reserved),
            ("255.255.255.254", Reserved),
            ("255.255.255.255", Broadcast),
            ("::", Unspecified),
            ("::1", Loopback),
            ("::2", Unspecified),
            ("::127.0.0.1", Loopback),
            ("::8.8.8.8", Reserved),
            ("::ffff:127.0.0.1", Loopback),
            ("::ffff:10.0.0.1", Private),
            ("::ffff:8.8.8.8", Public),
            ("::ffff:0:10.0.0.1", Private),
            ("::ffff:0:8.8.8.8", Reserved),
            ("64:ff9b::169.254.169.254", LinkLocal),
            ("64:ff9b::8.8.8.8", Public),
            ("64:ff9b:0:0:0:1:808:808", Reserved),
            ("64:ff9b:1::8.8.8.8", LocalTranslation),
            ("64:ff9b:1::10.0.0.1", Private),
            ("100::1", Discard),
            ("100:0:0:1::1", Discard),
            ("100:0:0:2::1", Reserved),
            ("1fff:ffff::1", Reserved),
            ("2000::1", Public),
            // Teredo holds the inverse of its client's address: 0.0.0.1 stands for 255.255.255.254.
            ("2001::1", Reserved),
            ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", ProtocolAssignment),
            ("2001:1ff:ffff::1", ProtocolAssignment),
            ("2001:200::1", Public),
            ("2001:2::1", Benchmarking),
            ("2001:4860:4860::8888", Public),
            ("2001:db7:ffff::1", Public),
            ("2001:db8::1", Documentation),
            ("2001:db9::1", Public),
            ("2002:7f00:1::", Loopback),
            ("2002:a9fe:a9fe::1", LinkLocal),
            ("2002:808:808::1", Public),
            ("2606:4700::1", Public),
            ("2606:4700::5efe:10.0.0.1", Private),
            ("2606:4700::200:5efe:192.168.1.1", Private),
            ("2606:4700::5efe:8.8.8.8", Public),
            ("3ffe:ffff::1", Public),
            ("3fff::1", Documentation),
            ("3fff:fff:ffff::1", Documentation),
            ("3fff:1000::1", Public),
            ("4000::1", Reserved),
            ("5eff:ffff::1", Reserved),
            ("5f00::1", SegmentRouting),
            ("5f01::1", Reserved),
            ("fbff:ffff::1", Reserved),
            ("fc00::1", UniqueLocal),
            ("fd00:ec2::254", UniqueLocal),
            ("fdff:ffff::1", UniqueLocal),
            ("fe00::1", Reserved),
            ("fe7f:ffff::1", Reserved),
            ("fe80::1", LinkLocal),
            ("febf:ffff::1", LinkLocal),
            ("fec0::1", SiteLocal),
            ("feff:ffff::1", SiteLocal),
            ("ff00::1", Multicast),
            ("ff02::1", Multicast),
            ("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", Multicast),
        ];
        for (text, expected) in table {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(classify(address), *expected, "{text}");
        }
    }
}
