//! Which hosts a component may send requests to: `allowed_outbound_hosts`, with Spin's semantics.
//!
//! Invariant: a request that no rule allows is denied. A rule is compared with scheme, host and port as the
//! request has them, before names are resolved: `localhost` is not `127.0.0.1`.

use std::ops::Range;

use http::Uri;
use url::Host;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidRule {
    #[error("has no scheme: write scheme://host:port, where * matches any")]
    NoScheme,
    #[error("has a scheme other than http, https and *")]
    Scheme,
    /// Spin has this kind of host.
    #[error("names a kind of host that platen up does not provide (itself, another component, a network)")]
    HostKind,
    #[error("has no valid host: a name, an address, *, or *.domain")]
    Host,
    #[error("has no valid port: a number, a range such as 8000..8010, or *")]
    Port,
    #[error("has a path: write scheme://host:port")]
    Path,
}

/// All rules of one component.
#[derive(Debug, Default)]
pub(crate) struct AllowedHosts(Vec<Rule>);

impl AllowedHosts {
    /// Adds a rule. One that is empty because a variable is not set allows nothing.
    pub(crate) fn allow(&mut self, rule: &str) -> Result<(), InvalidRule> {
        if !matches!(rule, "" | "http://" | "https://") {
            self.0.push(Rule::parse(rule)?);
        }
        Ok(())
    }

    /// Whether a request to this URI may be sent.
    pub(crate) fn allows(&self, uri: &Uri) -> bool {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
        // A URI with user information is refused below, because parsers disagree about its host.
        let Ok(host) = Host::parse(authority.host()) else { return false };
        let Some(port) = authority.port_u16().or_else(|| default_port(scheme)) else { return false };
        !authority.as_str().contains('@')
            && self.0.iter().any(|rule| {
                rule.scheme.as_ref().is_none_or(|only| only == scheme)
                    && rule.host.matches(&host)
                    && rule.port.as_ref().is_none_or(|only| only.contains(&u32::from(port)))
            })
    }
}

#[derive(Debug)]
struct Rule {
    scheme: Option<String>,
    host: HostRule,
    port: Option<Range<u32>>,
}

#[derive(Debug)]
enum HostRule {
    Any,
    /// The suffix with its leading dot.
    SubdomainOf(String),
    Only(Host),
}

impl HostRule {
    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::SubdomainOf(suffix), Host::Domain(name)) => name.ends_with(suffix),
            (Self::SubdomainOf(_), _) => false,
            (Self::Only(only), host) => only == host,
        }
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, InvalidRule> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(InvalidRule::NoScheme)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // Before the check for a path, because a network has a slash as well.
        if rest.starts_with('{') || rest.split_once('/').is_some_and(|(host, _)| is_address(host)) {
            return Err(InvalidRule::HostKind);
        }
        if rest.contains('/') {
            return Err(InvalidRule::Path);
        }
        // The colons of [::1] belong to the host.
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (rest, None),
        };
        let port = match port {
            Some("*") => None,
            Some(port) => Some(parse_port(port)?),
            None => {
                let port = u32::from(default_port(scheme).ok_or(InvalidRule::Port)?);
                Some(port..port + 1)
            }
        };
        let scheme = match scheme {
            "*" => None,
            "http" | "https" => Some(scheme.to_owned()),
            _ => return Err(InvalidRule::Scheme),
        };
        Ok(Self { scheme, host: parse_host(host)?, port })
    }
}

fn parse_host(text: &str) -> Result<HostRule, InvalidRule> {
    if text == "*" {
        return Ok(HostRule::Any);
    }
    if matches!(text, "self" | "self.alt") || text.ends_with(".spin.internal") {
        return Err(InvalidRule::HostKind);
    }
    let domain = text.strip_prefix("*.");
    match Host::parse(domain.unwrap_or(text)).map_err(|_| InvalidRule::Host)? {
        Host::Domain(name) if name.contains('*') => Err(InvalidRule::Host),
        Host::Domain(name) if domain.is_some() => Ok(HostRule::SubdomainOf(format!(".{name}"))),
        _ if domain.is_some() => Err(InvalidRule::Host),
        host => Ok(HostRule::Only(host)),
    }
}

fn parse_port(text: &str) -> Result<Range<u32>, InvalidRule> {
    let number = |text: &str| text.parse::<u16>().map(u32::from).map_err(|_| InvalidRule::Port);
    match text.split_once("..") {
        // As in Spin, the end is exclusive.
        Some((start, end)) => Ok(number(start)?..number(end)?),
        None => number(text).map(|port| port..port + 1),
    }
}

fn is_address(text: &str) -> bool {
    text.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok()
}

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_its_hosts_and_no_others() {
        for (rule, allowed, denied) in [
            (
                "http://127.0.0.1:3001",
                &["http://127.0.0.1:3001/v1/jobs", "http://127.0.0.1:3001"][..],
                &[
                    "http://127.0.0.1:3002/",
                    "http://127.0.0.1/",
                    "https://127.0.0.1:3001/",
                    "http://localhost:3001/",
                    "http://[::1]:3001/",
                    "http://127.0.0.1:3001@evil.example/",
                    "http://user@127.0.0.1:3001/",
                ][..],
            ),
            ("http://localhost:80", &["http://localhost/", "http://LOCALHOST:80/"], &["http://127.0.0.1/"]),
            (
                "https://farm.example/",
                &["https://farm.example/a", "https://farm.example:443/"],
                &["http://farm.example/", "https://farm.example.evil/", "https://a.farm.example/"],
            ),
            (
                "http://[::1]:8080",
                &["http://[::1]:8080/", "http://[0:0::1]:8080/"],
                &["http://[::2]:8080/", "http://[::1]/"],
            ),
            ("http://[::1]", &["http://[::1]/"], &["http://[::1]:81/"]),
            (
                "https://*.example.com",
                &["https://a.example.com/", "https://a.b.example.com/"],
                &["https://example.com/", "https://badexample.com/", "https://1.2.3.4/"],
            ),
            (
                "*://localhost:*",
                &["http://localhost:1/", "https://localhost:65535/"],
                &["http://localhost.example/"],
            ),
            ("https://*", &["https://a/", "https://1.1.1.1/"], &["http://a/", "https://a:444/"]),
            (
                "http://a:8000..8002",
                &["http://a:8000/", "http://a:8001/"],
                &["http://a:8002/", "http://a:7999/"],
            ),
            ("", &[], &["http://a/"]),
            ("http://", &[], &["http://a/"]),
        ] {
            let mut hosts = AllowedHosts::default();
            hosts.allow(rule).unwrap();
            for uri in allowed {
                assert!(hosts.allows(&uri.parse().unwrap()), "{rule} should allow {uri}");
            }
            for uri in denied {
                assert!(!hosts.allows(&uri.parse().unwrap()), "{rule} should deny {uri}");
            }
        }
        assert!(!AllowedHosts::default().allows(&"/relative".parse().unwrap()));
    }

    #[test]
    fn an_invalid_rule_is_refused_with_its_reason() {
        for (rule, problem) in [
            ("farm.example:80", InvalidRule::NoScheme),
            ("*", InvalidRule::NoScheme),
            ("redis://a:6379", InvalidRule::Scheme),
            ("*://a", InvalidRule::Port),
            ("http://a:port", InvalidRule::Port),
            ("http://a:70000", InvalidRule::Port),
            ("http://a:80/path", InvalidRule::Path),
            ("http://self", InvalidRule::HostKind),
            ("http://edge.spin.internal", InvalidRule::HostKind),
            ("http://*.spin.internal", InvalidRule::HostKind),
            ("http://10.0.0.0/8", InvalidRule::HostKind),
            ("http://{a,b}", InvalidRule::HostKind),
            ("http://a.*.b", InvalidRule::Host),
            ("http://*.1.2.3.4", InvalidRule::Host),
            ("http:// x", InvalidRule::Host),
        ] {
            assert_eq!(AllowedHosts::default().allow(rule), Err(problem), "{rule}");
        }
    }
}
