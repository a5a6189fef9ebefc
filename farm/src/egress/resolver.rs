//! Resolves names by the system's name servers and hosts file, or by the operator's name servers.
//!
//! Invariant: no answer is kept, so the time of a lookup tells no account for what another one has asked. A failure
//! of a name server is an error, never an absent name.

use std::net::IpAddr;

use hickory_resolver::{
    TokioResolver,
    config::{LookupIpStrategy, NameServerConfig, ResolverConfig},
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RecordType},
    },
};
use tokio::time::timeout;

use super::HOST_TIMEOUT;
use crate::egress_config::NameServer;

#[derive(Debug, Clone)]
pub(super) struct Resolver(TokioResolver);

/// No name server answered in time, or the answer was a failure such as `SERVFAIL` or `REFUSED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no name server answered")]
pub(super) struct NameServerFailed;

impl Resolver {
    /// Uses `servers`, or those of the system if the list is empty.
    pub(super) fn new(servers: &[NameServer]) -> Result<Self, NetError> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().unwrap_or_else(|error| {
                // A machine without a network can still render markup.
                tracing::warn!(%error, "cannot read the system's name servers; using only its hosts file");
                with_servers(&[])
            })
        } else {
            with_servers(servers)
        };
        let options = builder.options_mut();
        // Both families, because one address that is not public denies the host.
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = 0;
        builder.build().map(Self)
    }

    /// All addresses of a name; empty if a name server answers that the name does not exist or has none.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, NameServerFailed> {
        // The URL parser has made the name ASCII. `from_ascii` also accepts underscores.
        let Ok(name) = Name::from_ascii(name) else { return Ok(Vec::new()) };
        timeout(HOST_TIMEOUT, self.lookup(name)).await.unwrap_or_else(|_| {
            tracing::warn!("a name server did not answer in time");
            Err(NameServerFailed)
        })
    }

    async fn lookup(&self, name: Name) -> Result<Vec<IpAddr>, NameServerFailed> {
        match self.0.lookup_ip(name.clone()).await {
            Ok(found) => return Ok(found.iter().collect()),
            Err(error) if !is_not_found(&error) => return Err(failed(&error)),
            Err(_) => {}
        }
        // `lookup_ip` returns the error of one of several lookups: of IPv4, with the last name of the search
        // list. The name is absent only if the other lookups agree.
        let mut absolute = name;
        absolute.set_fqdn(true);
        let mut addresses = Vec::new();
        for kind in [RecordType::A, RecordType::AAAA] {
            match self.0.lookup(absolute.clone(), kind).await {
                Ok(found) => {
                    addresses.extend(found.answers().iter().filter_map(|record| record.data.ip_addr()));
                }
                Err(error) if !is_not_found(&error) => return Err(failed(&error)),
                Err(_) => {}
            }
        }
        Ok(addresses)
    }
}

/// Whether a name server answered that the name does not exist or has no such record.
fn is_not_found(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(answer)) = error else { return false };
    matches!(answer.response_code, ResponseCode::NXDomain | ResponseCode::NoError)
}

fn failed(error: &NetError) -> NameServerFailed {
    tracing::warn!(%error, "a name server failed");
    NameServerFailed
}

fn with_servers(servers: &[NameServer]) -> hickory_resolver::ResolverBuilder<TokioRuntimeProvider> {
    let servers = servers.iter().map(|NameServer(address)| {
        let mut server = NameServerConfig::udp_and_tcp(address.ip());
        server.connections.iter_mut().for_each(|connection| connection.port = address.port());
        server
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use platen_harness::dns::{self, A, AAAA, NO_SUCH_NAME, REFUSED, SERVER_FAILURE};
    use tokio::net::UdpSocket;

    use super::*;

    fn resolver(server: &dns::NameServer) -> Resolver {
        Resolver::new(&[NameServer(server.address())]).unwrap()
    }

    #[tokio::test]
    async fn an_outage_is_not_an_absent_name() {
        let server = dns::NameServer::start().await.unwrap();
        let found = || Ok(vec!["1.2.3.4".parse().unwrap()]);
        let (absent, failed) = (|| Ok(Vec::new()), || Err(NameServerFailed));
        for (name, addresses, codes, expected) in [
            ("found.test", &["1.2.3.4"][..], &[][..], found()),
            ("six-fails.test", &["1.2.3.4"], &[(AAAA, SERVER_FAILURE)], found()),
            ("no-data.test", &[], &[], absent()),
            ("absent.test", &[], &[(A, NO_SUCH_NAME), (AAAA, NO_SUCH_NAME)], absent()),
            ("servfail.test", &[], &[(A, SERVER_FAILURE), (AAAA, SERVER_FAILURE)], failed()),
            ("refused.test", &[], &[(A, REFUSED), (AAAA, REFUSED)], failed()),
            // A host with IPv6 addresses only, which are then unknown.
            ("only-six-fails.test", &[], &[(AAAA, SERVER_FAILURE)], failed()),
        ] {
            server.put(name, addresses);
            server.fail_with(name, codes);
            assert_eq!(resolver(&server).resolve(name).await, expected, "{name}");
        }
        assert_eq!(resolver(&server).resolve("not a name").await, absent());
    }

    // The paused clock advances whenever all tasks are idle, so the timeouts take no real time.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_and_a_missing_server_are_outages() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let resolver = Resolver::new(&[NameServer(silent.local_addr().unwrap())]).unwrap();
        let start = tokio::time::Instant::now();
        assert_eq!(resolver.resolve("silent.test").await, Err(NameServerFailed));
        assert!(start.elapsed() <= HOST_TIMEOUT + Duration::from_millis(10), "{:?}", start.elapsed());
        let none = Resolver(with_servers(&[]).build().unwrap());
        assert_eq!(none.resolve("any.test").await, Err(NameServerFailed));
    }

    #[tokio::test]
    async fn no_answer_is_kept() {
        let server = dns::NameServer::start().await.unwrap();
        let resolver = resolver(&server);
        for address in ["1.2.3.1", "1.2.3.2"] {
            server.put("page.test", &[address]);
            assert_eq!(resolver.resolve("page.test").await, Ok(vec![address.parse().unwrap()]));
            server.fail_with("page.test", &[(A, NO_SUCH_NAME), (AAAA, NO_SUCH_NAME)]);
            assert_eq!(resolver.resolve("page.test").await, Ok(Vec::new()));
        }
    }
}
