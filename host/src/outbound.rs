//! Which hosts a component may send requests to: `allowed_outbound_hosts`, of which each is one origin.
//!
//! Invariant: a request that no rule allows is denied. A rule is compared with scheme, host and port as the
//! request has them, before names are resolved: `localhost` is not `127.0.0.1`.

use http::Uri;
use url::{Host, Url};

/// Spin also has wildcards, ranges of ports and hosts of other kinds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not scheme://host[:port] with the scheme http or https")]
pub(crate) struct InvalidRule;

/// Scheme, host and port of each origin that one component may reach.
#[derive(Debug, Default)]
pub(crate) struct AllowedHosts(Vec<(String, Host, u16)>);

impl AllowedHosts {
    /// Adds a rule. One that is empty because a variable is not set allows nothing.
    pub(crate) fn allow(&mut self, rule: &str) -> Result<(), InvalidRule> {
        if matches!(rule, "" | "http://" | "https://") {
            return Ok(());
        }
        let url = Url::parse(rule).map_err(|_| InvalidRule)?;
        let rest = rule.trim_end_matches('/').split_once("://").map(|(_, rest)| rest);
        let is_origin = rest.is_some_and(|rest| !rest.contains(['/', '\\', '?', '#', '@', '*']));
        match (url.scheme(), url.host(), url.port_or_known_default()) {
            (scheme @ ("http" | "https"), Some(host), Some(port)) if is_origin => {
                self.0.push((scheme.to_owned(), host.to_owned(), port));
                Ok(())
            }
            _ => Err(InvalidRule),
        }
    }

    /// Whether a request to this URI may be sent.
    pub(crate) fn allows(&self, uri: &Uri) -> bool {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return false };
        // Parsers disagree about the host of a URI with user information.
        if authority.as_str().contains('@') {
            return false;
        }
        let Ok(host) = Host::parse(authority.host()) else { return false };
        let port = authority.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        self.0.iter().any(|allowed| *allowed == (scheme.to_owned(), host.clone(), port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_allows_its_origin_and_no_other() {
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
        for rule in [
            "farm.example:80",
            "*",
            "http://*",
            "https://*.example.com",
            "redis://a:6379",
            "http://a:port",
            "http://a:70000",
            "http://a:8000..8002",
            "http://a:80/path",
            "http://u@a",
            "http://10.0.0.0/8",
        ] {
            assert_eq!(AllowedHosts::default().allow(rule), Err(InvalidRule), "{rule}");
        }
    }
}
