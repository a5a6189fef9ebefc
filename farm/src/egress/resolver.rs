//! Names to addresses: the system's name servers and hosts file, or the operator's name servers.
//!
//! Invariant: an answer is used at most [`MAX_TTL`], and at most [`MAX_ANSWERS`] answers are kept; a
//! failure of the name server is an error, never an absent name, and is not kept. Not here: which
//! answers may be used (rules), and keeping to one answer for a job (traffic).

use std::{net::IpAddr, time::Duration};

use hickory_resolver::{
    TokioResolver,
    config::{
        ConnectionConfig, LookupIpStrategy, NameServerConfig, ProtocolConfig, ResolverConfig, ResolverOpts,
    },
    net::{DnsError, NetError, runtime::TokioRuntimeProvider},
    proto::{
        op::ResponseCode,
        rr::{Name, RecordType},
    },
};
use tokio::time::timeout;

use super::settings::NameServer;
use crate::StartError;

/// Answers that are kept.
const MAX_ANSWERS: u64 = 4_096;
/// A host that was moved should be found at its new address within minutes.
const MAX_TTL: Duration = Duration::from_mins(5);
/// A name that was just made should be found soon.
const MAX_NOT_FOUND_TTL: Duration = Duration::from_secs(30);
/// With its retries, a lookup may take this long: well below the deadline of a job, so that an outage of
/// the name server is reported as one.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(10);
/// More addresses than this are no help in reaching a host, but they are all judged.
pub(super) const MOST_DIALLED: usize = 8;

/// Asks name servers.
#[derive(Clone)]
pub(super) struct Resolver(TokioResolver);

/// No name server gave an answer: none was reached in time, or it answered with a failure of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no name server answered")]
pub(super) struct NameServerFailed;

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
        options.cache_size = MAX_ANSWERS;
        options.positive_max_ttl = Some(MAX_TTL);
        options.negative_max_ttl = Some(MAX_NOT_FOUND_TTL);
        builder.build().map(Self).map_err(StartError::Resolver)
    }

    /// Every address of a name; none if a name server says that there is no such name, or none for it.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, NameServerFailed> {
        // As it stands in the URL, which is ASCII by now: there are hosts with an underscore.
        let Ok(name) = Name::from_ascii(name) else { return Ok(Vec::new()) };
        timeout(LOOKUP_TIMEOUT, self.lookup(name)).await.unwrap_or_else(|_| {
            tracing::warn!("a name server did not answer in time");
            Err(NameServerFailed)
        })
    }

    async fn lookup(&self, name: Name) -> Result<Vec<IpAddr>, NameServerFailed> {
        match self.0.lookup_ip(name.clone()).await {
            Ok(found) => return Ok(found.iter().collect()),
            Err(error) if !says_not_found(&error) => return Err(failed(&error)),
            Err(_) => {}
        }
        // Only the error of one of several lookups comes back: that of IPv4, of the last name of the search
        // list. The others must say the same. What a name server said before comes from the cache.
        let mut absolute = name;
        absolute.set_fqdn(true);
        let mut addresses = Vec::new();
        for kind in [RecordType::A, RecordType::AAAA] {
            match self.0.lookup(absolute.clone(), kind).await {
                Ok(found) => {
                    addresses.extend(found.answers().iter().filter_map(|record| record.data.ip_addr()));
                }
                Err(error) if !says_not_found(&error) => return Err(failed(&error)),
                Err(_) => {}
            }
        }
        Ok(addresses)
    }
}

/// Whether a name server answered, and said that the name does not exist or has no such address.
fn says_not_found(error: &NetError) -> bool {
    let NetError::Dns(DnsError::NoRecordsFound(answer)) = error else { return false };
    matches!(answer.response_code, ResponseCode::NXDomain | ResponseCode::NoError)
}

fn failed(error: &NetError) -> NameServerFailed {
    tracing::warn!(%error, "a name server failed");
    NameServerFailed
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

#[cfg(test)]
pub(super) mod tests {
    use std::{
        collections::HashMap,
        net::SocketAddr,
        sync::{Arc, Mutex},
    };

    use tokio::{net::UdpSocket, task::JoinHandle};

    use super::*;

    /// What a name server of these tests does with a question.
    #[derive(Debug, Clone, Copy)]
    pub(in crate::egress) enum Reply {
        /// This response code, without an address.
        Code(ResponseCode),
        /// This address, if it is of the kind that was asked for.
        Address(IpAddr),
        /// Nothing at all.
        Silence,
    }

    type Replies = Arc<Mutex<HashMap<(String, RecordType), Reply>>>;

    /// A name server on loopback. What it does not know does not exist.
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

        /// The same for both kinds of addresses.
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
                let record = Record::from_rdata(question.name().clone(), 0, RData::from(*address));
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
    async fn an_outage_is_told_from_an_absent_name() {
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
            // A host that has IPv6 only, of which nothing is known then.
            ("only-six-fails.test", NO_DATA, Reply::Code(ResponseCode::ServFail), failed()),
        ] {
            server.put(name, RecordType::A, v4);
            server.put(name, RecordType::AAAA, v6);
            assert_eq!(server.resolver().resolve(name).await, expected, "{name}");
        }
        assert_eq!(server.resolver().resolve("not a name").await, absent());
    }

    // The clock is ahead whenever nothing else is to be done, so a silent server costs no time.
    #[tokio::test(start_paused = true)]
    async fn a_silent_server_and_none_at_all_are_outages() {
        let server = FakeNameServer::start().await;
        server.put_both("silent.test", Reply::Silence);
        let began = tokio::time::Instant::now();
        assert_eq!(server.resolver().resolve("silent.test").await, Err(NameServerFailed));
        assert!(began.elapsed() <= LOOKUP_TIMEOUT + Duration::from_millis(10), "{:?}", began.elapsed());
        let none = Resolver(with_servers(&[]).build().unwrap());
        assert_eq!(none.resolve("any.test").await, Err(NameServerFailed));
    }

    #[tokio::test]
    async fn an_outage_is_not_kept() {
        let server = FakeNameServer::start().await;
        let resolver = server.resolver();
        server.put_both("later.test", Reply::Code(ResponseCode::ServFail));
        assert_eq!(resolver.resolve("later.test").await, Err(NameServerFailed));
        server.put("later.test", RecordType::A, ADDRESS);
        assert_eq!(resolver.resolve("later.test").await, Ok(vec!["1.2.3.4".parse().unwrap()]));
    }
}
