//! The decision on a connection: from a host, its port and its addresses to a verdict.
//!
//! Invariant: pure functions. What the operator denies overrides what the operator allows, which overrides
//! the class of an address. One address that may not be reached denies the host.

use std::{iter, net::IpAddr};

use hyper::Uri;
use platen_shared::{address, refusal::Refusal, url_rule};
use strum::IntoStaticStr;
use url::{Host, Url};

use crate::{Config, EgressConfig, HostPattern};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HostPort {
    pub(super) host: Host<String>,
    pub(super) port: u16,
}

impl HostPort {
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        Some(Self { host: url.host()?.to_owned(), port: url.port_or_known_default()? })
    }

    /// From the target of a proxy request; the default port is 80.
    pub(super) fn from_uri(uri: &Uri) -> Option<Self> {
        Some(Self { host: Host::parse(uri.host()?).ok()?, port: uri.port_u16().unwrap_or(80) })
    }
}

/// Whether a connection is made, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(super) enum Verdict {
    /// Allowed: all addresses are public.
    Public,
    /// Allowed: the operator allows the host or the address.
    Operator,
    #[strum(transparent)]
    NotPublic(address::Verdict),
    /// The name can only be one of this machine or network.
    LocalName,
    /// An address of this machine. Services may trust connections from inside.
    OwnAddress,
    /// A port of this machine on which the service itself listens.
    OwnPort,
    DeniedHost,
    DeniedAddress,
    Port,
    NoJob,
    /// The browser itself sent the request, not a page.
    Browser,
    #[strum(serialize = "too_many")]
    ConnectionLimit,
    #[strum(serialize = "too_much")]
    ByteLimit,
    #[strum(serialize = "too_late")]
    TimeLimit,
    NotFound,
    NameServerFailed,
}

/// Why there is no connection, as the caller is informed of it: the refusal that names the host.
pub(super) type Failure = fn(String) -> Refusal;

impl Verdict {
    pub(super) fn allows(self) -> bool {
        self.failure().is_none()
    }

    /// `None` if the connection is allowed.
    pub(super) fn failure(self) -> Option<Failure> {
        let refusal: Failure = match self {
            Self::Public | Self::Operator => return None,
            Self::NotPublic(_)
            | Self::LocalName
            | Self::OwnAddress
            | Self::OwnPort
            | Self::DeniedHost
            | Self::DeniedAddress => |host| Refusal::AddressNotPublic { host },
            Self::Port => |host| Refusal::PortNotAllowed { host },
            Self::NotFound => |host| Refusal::NameNotFound { host },
            Self::NameServerFailed => |_| Refusal::NameServerFailed,
            Self::NoJob | Self::Browser | Self::ConnectionLimit | Self::ByteLimit | Self::TimeLimit => {
                |host| Refusal::ConnectionFailed { host }
            }
        };
        Some(refusal)
    }

    pub(super) fn name(self) -> &'static str {
        self.into()
    }
}

/// What follows from the host and the port alone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostDecision {
    Denied(Verdict),
    /// Depends on these addresses.
    Addresses(Vec<IpAddr>, Trust),
    /// Depends on the addresses of this name.
    Lookup(String, Trust),
}

/// Whether the operator allows a host at every address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Untrusted,
    Operator,
}

pub(super) fn judge_host(config: &Config, target: &HostPort) -> HostDecision {
    let (rules, port) = (&config.egress, target.port);
    let name = match &target.host {
        Host::Ipv4(address) => return judge_literal(rules, (*address).into(), port),
        Host::Ipv6(address) => return judge_literal(rules, (*address).into(), port),
        Host::Domain(name) => name.trim_end_matches('.').to_ascii_lowercase(),
    };
    let matches = |patterns: &[HostPattern]| patterns.iter().any(|pattern| pattern.matches_name(&name));
    if matches(&rules.deny) {
        return HostDecision::Denied(Verdict::DeniedHost);
    }
    // `--resolve` names a host on purpose, so it allows every port.
    let resolved: Vec<IpAddr> =
        config.resolve.iter().filter(|rule| rule.host == name).map(|rule| rule.address).collect();
    if !resolved.is_empty() {
        return HostDecision::Addresses(resolved, Trust::Operator);
    }
    let trust = if matches(&rules.allow) { Trust::Operator } else { Trust::Untrusted };
    // Before the port, because it is denied on every port.
    if trust == Trust::Untrusted && url_rule::is_local_name(&name) {
        return HostDecision::Denied(Verdict::LocalName);
    }
    if !rules.ports.contains(port) {
        return HostDecision::Denied(Verdict::Port);
    }
    HostDecision::Lookup(name, trust)
}

fn judge_literal(rules: &EgressConfig, address: IpAddr, port: u16) -> HostDecision {
    if judge_address(rules, address, Trust::Untrusted).allows() && !rules.ports.contains(port) {
        return HostDecision::Denied(Verdict::Port);
    }
    HostDecision::Addresses(vec![address], Trust::Untrusted)
}

/// The verdict on the first address that may not be reached, else on the first address. `is_own` tells whether an
/// address is one of this machine.
pub(super) fn judge_addresses(
    rules: &EgressConfig,
    addresses: &[IpAddr],
    trust: Trust,
    is_own: impl Fn(IpAddr) -> bool,
) -> (Verdict, Option<IpAddr>) {
    let mut judged = addresses.iter().map(|&address| match judge_address(rules, address, trust) {
        Verdict::Public if is_own(address) => (Verdict::OwnAddress, Some(address)),
        verdict => (verdict, Some(address)),
    });
    let Some(first) = judged.next() else { return (Verdict::NotFound, None) };
    iter::once(first).chain(judged).find(|(verdict, _)| !verdict.allows()).unwrap_or(first)
}

fn judge_address(rules: &EgressConfig, address: IpAddr, trust: Trust) -> Verdict {
    // An IPv4-mapped address also matches the patterns for its IPv4 address.
    let forms = [address, address.to_canonical()];
    let matches = |patterns: &[HostPattern]| {
        patterns.iter().any(|pattern| forms.iter().any(|&form| pattern.matches_address(form)))
    };
    if matches(&rules.deny) {
        return Verdict::DeniedAddress;
    }
    if trust == Trust::Operator || matches(&rules.allow) {
        return Verdict::Operator;
    }
    match address::classify(address) {
        address::Verdict::Public => Verdict::Public,
        reason => Verdict::NotPublic(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let patterns = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Config {
            resolve: ["resolved.test=10.0.0.7", "denied.test=10.0.0.8", "denied-address.test=9.9.9.9"]
                .map(|rule| rule.parse().unwrap())
                .into(),
            egress: EgressConfig {
                allow: patterns(&["allowed.test", "*.below.test", "172.16.5.0/24", "wiki.internal"]),
                deny: patterns(&["denied.test", "*.evil.test", "9.9.9.0/24", "172.16.5.9"]),
                ports: "80,443".parse().unwrap(),
                ..EgressConfig::default()
            },
            ..Config::default()
        }
    }

    /// The verdict on `host` and `port`, where a lookup of any name returns `addresses`.
    fn judge(host: &str, port: u16, addresses: &[&str]) -> Verdict {
        let config = config();
        match judge_host(&config, &HostPort { host: Host::parse(host).unwrap(), port }) {
            HostDecision::Denied(verdict) => verdict,
            HostDecision::Addresses(addresses, trust) => judge_resolved(&config, &addresses, trust),
            HostDecision::Lookup(_, trust) => {
                let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
                judge_resolved(&config, &addresses, trust)
            }
        }
    }

    fn judge_resolved(config: &Config, addresses: &[IpAddr], trust: Trust) -> Verdict {
        judge_addresses(&config.egress, addresses, trust, |address| address == OWN).0
    }

    const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(8, 8, 8, 8));

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
            ("example.test", 80, &["1.1.1.1", "8.8.8.8"], Verdict::OwnAddress),
            ("example.test", 80, &["172.16.5.1", "8.8.8.8"], Verdict::OwnAddress),
            ("allowed.test", 80, &["8.8.8.8"], Verdict::Operator),
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
            ("resolved.test", 8123, &[], Verdict::Operator),
            ("denied-address.test", 80, &[], Verdict::DeniedAddress),
            ("RESOLVED.test.", 80, &[], Verdict::Operator),
            ("denied.test", 80, public, Verdict::DeniedHost),
            ("x.evil.test", 80, public, Verdict::DeniedHost),
        ];
        for (host, port, addresses, expected) in table {
            assert_eq!(judge(host, *port, addresses), *expected, "{host}:{port} {addresses:?}");
        }
    }

    #[test]
    fn each_verdict_has_a_name_and_a_refusal() {
        for (verdict, name, code) in [
            (Verdict::Public, "public", None),
            (Verdict::Operator, "operator", None),
            (Verdict::NotPublic(address::Verdict::Private), "private", Some("address_not_public")),
            (Verdict::LocalName, "local_name", Some("address_not_public")),
            (Verdict::OwnAddress, "own_address", Some("address_not_public")),
            (Verdict::OwnPort, "own_port", Some("address_not_public")),
            (Verdict::DeniedHost, "denied_host", Some("address_not_public")),
            (Verdict::DeniedAddress, "denied_address", Some("address_not_public")),
            (Verdict::Port, "port", Some("port_not_allowed")),
            (Verdict::NotFound, "not_found", Some("name_not_found")),
            (Verdict::NameServerFailed, "name_server_failed", Some("name_server_failed")),
            (Verdict::NoJob, "no_job", Some("connection_failed")),
            (Verdict::Browser, "browser", Some("connection_failed")),
            (Verdict::ConnectionLimit, "too_many", Some("connection_failed")),
            (Verdict::ByteLimit, "too_much", Some("connection_failed")),
            (Verdict::TimeLimit, "too_late", Some("connection_failed")),
        ] {
            let refusal = verdict.failure().map(|refusal| refusal("a.test".to_owned()));
            assert_eq!((verdict.name(), refusal.as_ref().map(Refusal::code)), (name, code));
            assert_eq!(verdict.allows(), code.is_none());
        }
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_target_is_judged(target in "(http://)?([a-z0-9.%-]{0,12}|\\[[0-9a-f:.]{0,20}\\]|0x[0-9a-f]{1,8}|[0-9]{1,10})(:[0-9]{0,6})?(/.{0,4})?") {
            let Ok(uri) = target.parse::<Uri>() else { return Ok(()) };
            let Some(target) = HostPort::from_uri(&uri) else { return Ok(()) };
            match judge_host(&Config::default(), &target) {
                HostDecision::Denied(_) => {}
                HostDecision::Addresses(addresses, trust) => {
                    judge_addresses(&EgressConfig::default(), &addresses, trust, |_| false);
                }
                // Only a name is looked up: an address in another notation must not be one.
                HostDecision::Lookup(name, _) => prop_assert!(name.parse::<IpAddr>().is_err()),
            }
        }
    }
}
