//! The decision on a connection: from a host, its port and its addresses to a verdict.
//!
//! Invariant: pure functions. What the operator denies overrides what the operator allows, which overrides
//! the class of an address. One address that may not be reached denies the host; so does one that packets to an
//! address may reach, such as an IPv4 address inside it.

use std::{
    iter,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use hyper::Uri;
use platen_shared::{address, refusal::Refusal, url_rule};
use strum::IntoStaticStr;
use url::{Host, Url};

use crate::{
    config::Config,
    egress_config::{EgressConfig, HostPattern},
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct HostPort {
    pub(super) host: Host<String>,
    pub(super) port: u16,
}

impl HostPort {
    pub(super) fn from_url(url: &Url) -> Option<Self> {
        Some(Self { host: url.host()?.to_owned(), port: url.port_or_known_default()? })
    }

    /// Reads the target of a proxy request; the default port is 80.
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
    /// The request for the render has blocked the host.
    Blocked,
    Port,
    NoJob,
    /// The browser itself sent the request, not a page.
    Browser,
    #[strum(serialize = "too_many")]
    ConnectionLimit,
    #[strum(serialize = "too_much")]
    ByteLimit,
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
            Self::Blocked => |_| Refusal::HostBlocked,
            Self::Port => |host| Refusal::PortNotAllowed { host },
            Self::NotFound => |host| Refusal::NameNotFound { host },
            Self::NameServerFailed => |_| Refusal::NameServerFailed,
            Self::NoJob | Self::Browser | Self::ConnectionLimit | Self::ByteLimit => {
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
pub(crate) enum Trust {
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
    let loopback = if trust == Trust::Untrusted { allowed_loopback(rules, &name) } else { Vec::new() };
    // Before the port, because it is denied on every port.
    if trust == Trust::Untrusted && loopback.is_empty() && url_rule::is_local_name(&name) {
        return HostDecision::Denied(Verdict::LocalName);
    }
    if !rules.ports.contains(port) {
        return HostDecision::Denied(Verdict::Port);
    }
    if loopback.is_empty() {
        HostDecision::Lookup(name, trust)
    } else {
        HostDecision::Addresses(loopback, trust)
    }
}

/// The addresses of the name `localhost` that the operator allows; none for any other name.
fn allowed_loopback(rules: &EgressConfig, name: &str) -> Vec<IpAddr> {
    let is_allowed = |address: &IpAddr| rules.allow.iter().any(|pattern| pattern.matches_address(*address));
    let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()].into_iter();
    addresses.filter(|address| name == "localhost" && is_allowed(address)).collect()
}

/// The options that would allow a connection to which the rules have led to a verdict, as on a command line.
pub(super) fn missing_options(rules: &EgressConfig, target: &HostPort, verdict: Verdict) -> Option<String> {
    let needs_allow = matches!(verdict, Verdict::NotPublic(_) | Verdict::LocalName | Verdict::OwnAddress);
    if !needs_allow && verdict != Verdict::Port {
        return None;
    }
    let reached = |address| address::reached(address).map(|it| it.to_string()).collect::<Vec<_>>().join(",");
    let host = match &target.host {
        Host::Domain(name) => name.trim_end_matches('.').to_owned(),
        Host::Ipv4(address) => reached(IpAddr::V4(*address)),
        Host::Ipv6(address) => reached(IpAddr::V6(*address)),
    };
    let allow = needs_allow.then(|| format!("--egress-allow {host}"));
    let ports = (!rules.ports.contains(target.port))
        .then(|| format!("--egress-ports {},{}", rules.ports, target.port));
    Some(allow.into_iter().chain(ports).collect::<Vec<_>>().join(" "))
}

fn judge_literal(rules: &EgressConfig, address: IpAddr, port: u16) -> HostDecision {
    if judge_address(rules, address, Trust::Untrusted, |_| false).allows() && !rules.ports.contains(port) {
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
    let mut judged =
        addresses.iter().map(|&address| (judge_address(rules, address, trust, &is_own), Some(address)));
    let Some(first) = judged.next() else { return (Verdict::NotFound, None) };
    iter::once(first).chain(judged).find(|(verdict, _)| !verdict.allows()).unwrap_or(first)
}

/// The verdict on addresses that the operator allows, as if the operator had said nothing about them.
pub(super) fn judge_without_rules(addresses: &[IpAddr]) -> Verdict {
    judge_addresses(&EgressConfig::default(), addresses, Trust::Untrusted, |_| false).0
}

/// The verdict on all that packets to an address may reach: one that is denied denies it, and none is allowed because
/// another one is.
fn judge_address(
    rules: &EgressConfig,
    address: IpAddr,
    trust: Trust,
    is_own: impl Fn(IpAddr) -> bool,
) -> Verdict {
    let matches = |patterns: &[HostPattern], address| patterns.iter().any(|it| it.matches_address(address));
    if address::reached(address).any(|reached| matches(&rules.deny, reached)) {
        return Verdict::DeniedAddress;
    }
    if trust == Trust::Operator {
        return Verdict::Operator;
    }
    let mut verdict = Verdict::Public;
    for reached in address::reached(address) {
        if matches(&rules.allow, reached) {
            verdict = Verdict::Operator;
            continue;
        }
        match address::range_of(reached) {
            address::Verdict::Public if is_own(reached) => return Verdict::OwnAddress,
            address::Verdict::Public => {}
            reason => return Verdict::NotPublic(reason),
        }
    }
    verdict
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;

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
