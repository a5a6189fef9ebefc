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
pub(super) mod tests {
    use std::{
        collections::HashMap,
        net::SocketAddr,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use tokio::{net::UdpSocket, task::JoinHandle};

    use super::*;

    /// How the fake name server answers a query.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::egress) enum Reply {
        /// With this response code and no record.
        Code(ResponseCode),
        /// With this address if its record type is the requested one, else with no record.
        Address(IpAddr),
        Silence,
    }

    type Replies = Arc<Mutex<HashMap<(String, RecordType), Reply>>>;

    /// A name server on loopback. It answers queries for unknown names with `NXDOMAIN`.
    pub(in crate::egress) struct FakeNameServer {
        address: SocketAddr,
        replies: Replies,
        task: JoinHandle<()>,
    }

    impl Drop for FakeNameServer {
        fn drop(&mut self) {
            self.task.abort();
        }
    }

    impl FakeNameServer {
        pub(in crate::egress) async fn start() -> Self {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            let (address, replies) = (socket.local_addr().unwrap(), Replies::default());
            let known = Arc::clone(&replies);
            let task = tokio::spawn(async move {
                let mut buffer = [0; 512];
                while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                    let answer = answer(&buffer[..length], &known.lock().unwrap());
                    if let Some(answer) = answer {
                        socket.send_to(&answer, from).await.unwrap();
                    }
                }
            });
            Self { address, replies, task }
        }

        pub(in crate::egress) fn put(&self, name: &str, kind: RecordType, reply: Reply) {
            self.replies.lock().unwrap().insert((name.to_owned(), kind), reply);
        }

        /// Sets the reply for A and AAAA queries.
        pub(in crate::egress) fn put_both(&self, name: &str, reply: Reply) {
            self.put(name, RecordType::A, reply);
            self.put(name, RecordType::AAAA, reply);
        }

        pub(in crate::egress) fn setting(&self) -> NameServer {
            self.address.to_string().parse().unwrap()
        }

        fn resolver(&self) -> Resolver {
            Resolver::new(&[self.setting()]).unwrap()
        }
    }

    fn answer(query: &[u8], replies: &HashMap<(String, RecordType), Reply>) -> Option<Vec<u8>> {
        use hickory_resolver::proto::{
            op::Message,
            rr::{RData, Record},
        };
        let query = Message::from_vec(query).unwrap();
        let question = query.queries[0].clone();
        let name = question.name().to_ascii().trim_end_matches('.').to_ascii_lowercase();
        let mut response = query.into_response();
        match replies.get(&(name, question.query_type())).unwrap_or(&Reply::Code(ResponseCode::NXDomain)) {
            Reply::Silence => return None,
            Reply::Code(code) => response.metadata.response_code = *code,
            Reply::Address(address) => {
                let record = Record::from_rdata(question.name().clone(), 300, RData::from(*address));
                if record.record_type() == question.query_type() {
                    response.add_answer(record);
                }
            }
        }
        Some(response.to_vec().unwrap())
    }

    const ADDRESS: Reply = Reply::Address(IpAddr::V4(std::net::Ipv4Addr::new(1, 2, 3, 4)));
    const NO_DATA: Reply = Reply::Code(ResponseCode::NoError);

    #[tokio::test]
    async fn an_outage_is_not_an_absent_name() {
        let server = FakeNameServer::start().await;
        let found = || Ok(vec!["1.2.3.4".parse().unwrap()]);
        let (absent, failed) = (|| Ok(Vec::new()), || Err(NameServerFailed));
        for (name, v4, v6, expected) in [
            ("found.test", ADDRESS, NO_DATA, found()),
            ("six-fails.test", ADDRESS, Reply::Code(ResponseCode::ServFail), found()),
            ("no-data.test", NO_DATA, NO_DATA, absent()),
            (
                "absent.test",
                Reply::Code(ResponseCode::NXDomain),
                Reply::Code(ResponseCode::NXDomain),
                absent(),
            ),
            (
                "servfail.test",
                Reply::Code(ResponseCode::ServFail),
                Reply::Code(ResponseCode::ServFail),
                failed(),
            ),
            (
                "refused.test",
                Reply::Code(ResponseCode::Refused),
                Reply::Code(ResponseCode::Refused),
                failed(),
            ),
            // A host with IPv6 addresses only, which are then unknown.
            ("only-six-fails.test", NO_DATA, Reply::Code(ResponseCode::ServFail), failed()),
        ] {
            server.put(name, RecordType::A, v4);
            server.put(name, RecordType::AAAA, v6);
            assert_eq!(server.resolver().resolve(name).await, expected, "{name}");
        }
        assert_eq!(server.resolver().resolve("not a name").await, absent());
    }

    // The paused clock advances whenever all tasks are idle, so the timeouts take no real time.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_and_a_missing_server_are_outages() {
        let server = FakeNameServer::start().await;
        server.put_both("silent.test", Reply::Silence);
        let start = tokio::time::Instant::now();
        assert_eq!(server.resolver().resolve("silent.test").await, Err(NameServerFailed));
        assert!(start.elapsed() <= HOST_TIMEOUT + Duration::from_millis(10), "{:?}", start.elapsed());
        let none = Resolver(with_servers(&[]).build().unwrap());
        assert_eq!(none.resolve("any.test").await, Err(NameServerFailed));
    }

    #[tokio::test]
    async fn no_answer_is_kept() {
        let server = FakeNameServer::start().await;
        let resolver = server.resolver();
        let address = |last| IpAddr::from([1, 2, 3, last]);
        for last in 0..3 {
            server.put_both("page.test", Reply::Address(address(last)));
            assert_eq!(resolver.resolve("page.test").await, Ok(vec![address(last)]));
        }
        server.put_both("page.test", Reply::Code(ResponseCode::NXDomain));
        assert_eq!(resolver.resolve("page.test").await, Ok(Vec::new()));
        server.put_both("page.test", ADDRESS);
        assert_eq!(resolver.resolve("page.test").await, Ok(vec![address(4)]));
    }
}
