//! The rules: from a host, a port and the host's addresses to a verdict.
//!
//! Invariant: pure. A denial of the operator's stands above all; what he allows or places stands
//! above what addresses are; of several addresses the worst decides. Left to others: resolving.

use std::net::IpAddr;

use platen_shared::{address, url_rule};
use url::Host;

use super::{
    settings::{HostPattern, Ports},
    verdict::Verdict,
};
use crate::config::Resolve;

/// The operator's word on hosts, addresses and ports.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) known: Vec<Resolve>,
    pub(super) allow: Vec<HostPattern>,
    pub(super) deny: Vec<HostPattern>,
    pub(super) ports: Ports,
}

/// What a host's name alone tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ByName {
    /// It may not be reached.
    Denied(Verdict),
    /// It depends on the addresses: these.
    Addresses(Vec<IpAddr>, Trust),
    /// It depends on the addresses that this name has.
    Resolve(String, Trust),
}

/// How far the operator vouches for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Not at all.
    Stranger,
    /// Wherever it is.
    Allowed,
}

impl Rules {
    /// Judges a host by its name and the port.
    pub(super) fn by_name(&self, host: &Host<String>, port: u16) -> ByName {
        let name = match host {
            Host::Ipv4(address) => return self.literal((*address).into(), port),
            Host::Ipv6(address) => return self.literal((*address).into(), port),
            Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
        };
        if self.deny.iter().any(|place| place.is_host(&name)) {
            return ByName::Denied(Verdict::DeniedHost);
        }
        // The operator has said where it is, so he has been there: every port.
        let known: Vec<IpAddr> =
            self.known.iter().filter(|rule| rule.host() == name).map(Resolve::address).collect();
        if !known.is_empty() {
            return ByName::Addresses(known, Trust::Allowed);
        }
        let is_allowed = self.allow.iter().any(|place| place.is_host(&name));
        // A name that can only mean this network is denied on every port, and that says more.
        if !is_allowed && url_rule::is_local_name(&name) {
            return ByName::Denied(Verdict::LocalName);
        }
        if !self.ports.contains(port) {
            return ByName::Denied(Verdict::Port);
        }
        ByName::Resolve(name, if is_allowed { Trust::Allowed } else { Trust::Stranger })
    }

    fn literal(&self, address: IpAddr, port: u16) -> ByName {
        match self.by_address(address, Trust::Stranger) {
            verdict if verdict.allows() && !self.ports.contains(port) => ByName::Denied(Verdict::Port),
            _ => ByName::Addresses(vec![address], Trust::Stranger),
        }
    }

    /// Judges all addresses of a host: the first that may not be reached, or the first of all.
    pub(super) fn by_addresses(&self, addresses: &[IpAddr], trust: Trust) -> (Verdict, Option<IpAddr>) {
        let mut judged = addresses.iter().map(|&address| (self.by_address(address, trust), Some(address)));
        let Some(first) = judged.next() else { return (Verdict::NotFound, None) };
        std::iter::once(first).chain(judged).find(|(verdict, _)| !verdict.allows()).unwrap_or(first)
    }

    fn by_address(&self, address: IpAddr, trust: Trust) -> Verdict {
        // A network is the same network in its IPv6 clothes.
        let forms = [address, address.to_canonical()];
        let has =
            |places: &[HostPattern]| forms.iter().any(|&form| places.iter().any(|place| place.has(form)));
        if has(&self.deny) {
            return Verdict::DeniedAddress;
        }
        if trust == Trust::Allowed || has(&self.allow) {
            return Verdict::Operator;
        }
        match address::classify(address) {
            address::Verdict::Public => Verdict::Public,
            reason => Verdict::NotPublic(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        let places = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Rules {
            known: vec!["placed.test=10.0.0.7".parse().unwrap(), "denied.test=10.0.0.8".parse().unwrap()],
            allow: places(&["allowed.test", "*.below.test", "172.16.5.0/24", "wiki.internal"]),
            deny: places(&["denied.test", "*.evil.test", "9.9.9.0/24", "172.16.5.9"]),
            ports: "80,443".parse().unwrap(),
        }
    }

    /// The verdict on a host at port 80 or another, where every name has these addresses.
    fn judge(host: &str, port: u16, addresses: &[&str]) -> Verdict {
        let rules = rules();
        match rules.by_name(&Host::parse(host).unwrap(), port) {
            ByName::Denied(verdict) => verdict,
            ByName::Addresses(addresses, trust) => rules.by_addresses(&addresses, trust).0,
            ByName::Resolve(_, trust) => {
                let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
                rules.by_addresses(&addresses, trust).0
            }
        }
    }

    #[test]
    fn each_reason_has_its_verdict() {
        use address::Verdict::{LinkLocal, Loopback, Private, SharedNat, UniqueLocal};
        let public: &[&str] = &["1.1.1.1", "2606:4700::1"];
        let table: &[(&str, u16, &[&str], Verdict)] = &[
            ("example.test", 80, public, Verdict::Public),
            ("example.test.", 443, public, Verdict::Public),
            ("example.test", 22, public, Verdict::Port),
            ("example.test", 80, &[], Verdict::NotFound),
            ("example.test", 80, &["1.1.1.1", "10.0.0.1"], Verdict::NotPublic(Private)),
            ("example.test", 80, &["2606:4700::1", "1.1.1.1", "fd00::1"], Verdict::NotPublic(UniqueLocal)),
            ("example.test", 80, &["::ffff:127.0.0.1"], Verdict::NotPublic(Loopback)),
            ("example.test", 80, &["1.1.1.1", "9.9.9.9"], Verdict::DeniedAddress),
            ("example.test", 80, &["172.16.5.1"], Verdict::Operator),
            ("example.test", 80, &["::ffff:172.16.5.1"], Verdict::Operator),
            ("example.test", 80, &["172.16.5.9"], Verdict::DeniedAddress),
            ("example.test", 80, &["172.16.5.1", "172.16.6.1"], Verdict::NotPublic(Private)),
            ("1.1.1.1", 80, &[], Verdict::Public),
            ("1.1.1.1", 25, &[], Verdict::Port),
            ("127.0.0.1", 25, &[], Verdict::NotPublic(Loopback)),
            ("2130706433", 80, &[], Verdict::NotPublic(Loopback)),
            ("0x7f.1", 80, &[], Verdict::NotPublic(Loopback)),
            ("169.254.169.254", 80, &[], Verdict::NotPublic(LinkLocal)),
            ("100.100.100.200", 80, &[], Verdict::NotPublic(SharedNat)),
            ("[fd00:ec2::254]", 80, &[], Verdict::NotPublic(UniqueLocal)),
            ("172.16.5.1", 80, &[], Verdict::Operator),
            ("172.16.5.1", 81, &[], Verdict::Port),
            ("[::ffff:9.9.9.9]", 80, &[], Verdict::DeniedAddress),
            ("localhost", 80, public, Verdict::LocalName),
            ("localhost", 22, public, Verdict::LocalName),
            ("a.LOCALHOST.", 80, public, Verdict::LocalName),
            ("metadata.google.internal", 80, public, Verdict::LocalName),
            ("wiki.internal", 80, &["10.1.1.1"], Verdict::Operator),
            ("allowed.test", 80, &["10.1.1.1"], Verdict::Operator),
            ("allowed.test", 80, &["1.1.1.1"], Verdict::Operator),
            ("allowed.test", 81, &["10.1.1.1"], Verdict::Port),
            ("allowed.test", 80, &["172.16.5.9"], Verdict::DeniedAddress),
            ("not-allowed.test", 80, &["10.1.1.1"], Verdict::NotPublic(Private)),
            ("a.below.test", 80, &["10.1.1.1"], Verdict::Operator),
            ("below.test", 80, &["10.1.1.1"], Verdict::NotPublic(Private)),
            ("placed.test", 8123, &[], Verdict::Operator),
            ("PLACED.test.", 80, &[], Verdict::Operator),
            ("denied.test", 80, public, Verdict::DeniedHost),
            ("x.evil.test", 80, public, Verdict::DeniedHost),
        ];
        for (host, port, addresses, expected) in table {
            assert_eq!(judge(host, *port, addresses), *expected, "{host}:{port} {addresses:?}");
        }
    }
}
