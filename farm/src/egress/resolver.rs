//! Names to addresses: the system's name servers and hosts file, or the operator's name servers.
//!
//! Invariant: an answer is used at most [`LONGEST`], and at most [`MOST`] answers are kept. Left to
//! others: which answers may be used (rules), and keeping to one answer for a job (traffic).

use std::{net::IpAddr, time::Duration};

use hickory_resolver::{
    TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ProtocolConfig, ResolverConfig, ResolverOpts,
    },
    net::runtime::TokioRuntimeProvider,
    proto::rr::Name,
};

use super::settings::NameServer;
use crate::StartError;

/// Answers that are kept.
const MOST: u64 = 4_096;
/// Whoever moves a host wants to be found there within minutes.
const LONGEST: Duration = Duration::from_mins(5);
/// A name that was just made should be found soon.
const LONGEST_NOT_FOUND: Duration = Duration::from_secs(30);
/// More addresses than this are no help in reaching a host, but they are all judged.
pub(super) const MOST_DIALLED: usize = 8;

/// Asks name servers.
#[derive(Clone)]
pub(super) struct Resolver(TokioResolver);

impl std::fmt::Debug for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolver")
    }
}

impl Resolver {
    /// A resolver that asks `servers`, or those of the system if there are none.
    pub(super) fn new(servers: &[NameServer]) -> Result<Self, StartError> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().unwrap_or_else(|error| {
                // A machine without a network renders markup all the same.
                tracing::warn!(%error, "the system's name servers are not known; only its hosts file is used");
                with_servers(&[])
            })
        } else {
            with_servers(servers)
        };
        let options = builder.options_mut();
        // Both, because one address that is not public spoils the other ones.
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = MOST;
        options.positive_max_ttl = Some(LONGEST);
        options.negative_max_ttl = Some(LONGEST_NOT_FOUND);
        builder.build().map(Self).map_err(StartError::Resolver)
    }

    /// Every address of a name; none if there is no such name.
    pub(super) async fn resolve(&self, name: &str) -> Vec<IpAddr> {
        // As it stands in the URL, which is ASCII by now: there are hosts with an underscore.
        let Ok(name) = Name::from_ascii(name) else { return Vec::new() };
        match self.0.lookup_ip(name).await {
            Ok(found) => found.iter().collect(),
            Err(error) => {
                tracing::debug!(%error, "a host name was not resolved");
                Vec::new()
            }
        }
    }
}

fn with_servers(servers: &[NameServer]) -> hickory_resolver::ResolverBuilder<TokioRuntimeProvider> {
    let servers = servers.iter().map(|server| {
        let address = server.address();
        let connections = [ProtocolConfig::Udp, ProtocolConfig::Tcp].map(|protocol| {
            let mut connection = ConnectionConfig::new(protocol);
            connection.port = address.port();
            connection
        });
        NameServerConfig::new(address.ip(), true, connections.into())
    });
    let config = ResolverConfig::from_name_servers(servers.collect());
    let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    *builder.options_mut() = ResolverOpts::default();
    builder
}
