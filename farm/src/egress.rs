//! Which hosts a page may reach.
//!
//! Every HTTP request of a page is held until its host's addresses were resolved and judged; one
//! address that is not public is enough to refuse the host, unless the operator said where the
//! host is. Invariant: a host that was refused is not asked for by the page itself, nor by its
//! frames, nor through a redirect. Not covered: requests of workers, `WebSocket`s, and a name whose
//! address changes between this judgement and Chromium's own look-up.

use std::{net::IpAddr, sync::Arc};

use platen_shared::{address, url_rule};
use url::{Host, Url};

use crate::config::Resolve;

/// What is known of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Judgement {
    /// May be reached.
    Allowed,
    /// Has an address that is not public.
    NotPublic,
    /// Has no address.
    NotFound,
}

/// The judge: a cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Egress {
    known: Arc<[Resolve]>,
}

impl Egress {
    /// A judge who takes the operator's word on the hosts in `known`.
    pub(crate) fn new(known: &[Resolve]) -> Self {
        Self { known: known.into() }
    }

    /// Judges where a URL leads. Asks the system's resolver.
    pub(crate) async fn judge(&self, url: &Url) -> Judgement {
        let addresses: Vec<IpAddr> = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => {
                if self.is_known(name) {
                    return Judgement::Allowed;
                }
                if url_rule::is_local_name(name) {
                    return Judgement::NotPublic;
                }
                let port = url.port_or_known_default().unwrap_or(0);
                match tokio::net::lookup_host((name, port)).await {
                    Ok(found) => found.map(|socket| socket.ip()).collect(),
                    Err(error) => {
                        tracing::debug!(%error, "a host name was not resolved");
                        Vec::new()
                    }
                }
            }
            None => Vec::new(),
        };
        judge_addresses(&addresses)
    }

    fn is_known(&self, name: &str) -> bool {
        // Exactly so: Chromium is told the same names, and looks `name.` up elsewhere.
        self.known.iter().any(|rule| rule.host().eq_ignore_ascii_case(name))
    }
}

fn judge_addresses(addresses: &[IpAddr]) -> Judgement {
    if addresses.is_empty() {
        Judgement::NotFound
    } else if addresses.iter().all(|address| address::classify(*address).is_public()) {
        Judgement::Allowed
    } else {
        Judgement::NotPublic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn judge(url: &str) -> Judgement {
        let known = ["intranet.test=10.0.0.7".parse().unwrap()];
        Egress::new(&known).judge(&Url::parse(url).unwrap()).await
    }

    #[tokio::test]
    async fn literal_addresses_and_local_names_are_judged_without_asking() {
        assert_eq!(judge("http://1.1.1.1/").await, Judgement::Allowed);
        for url in [
            "http://127.0.0.1/",
            "http://0x7f000001/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/",
            "http://localhost/",
            "http://a.localhost./",
        ] {
            assert_eq!(judge(url).await, Judgement::NotPublic, "{url}");
        }
    }

    #[tokio::test]
    async fn a_host_the_operator_placed_is_allowed() {
        assert_eq!(judge("http://intranet.test:8080/x").await, Judgement::Allowed);
        assert_eq!(judge("http://INTRANET.test/x").await, Judgement::Allowed);
    }

    #[test]
    fn one_address_that_is_not_public_spoils_the_rest() {
        let addresses: Vec<IpAddr> = vec!["1.1.1.1".parse().unwrap(), "10.0.0.1".parse().unwrap()];
        assert_eq!(judge_addresses(&addresses), Judgement::NotPublic);
        assert_eq!(judge_addresses(&addresses[..1]), Judgement::Allowed);
        assert_eq!(judge_addresses(&[]), Judgement::NotFound);
    }
}
