//! What one job does on the network.
//!
//! Invariant: a host has the addresses it had when the job first asked for it, so that a name
//! cannot be public when it is judged and something else when it is dialled; a job that has used up
//! its share gets nothing more. Left to others: dialling (dial), whose connection it is (gate).

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use platen_shared::refusal::Refusal;
use tokio::{sync::OnceCell, time::Instant};
use url::{Host, Url};

use super::{Egress, dial::DialError, resolver::MOST_DIALLED, rules::ByName, verdict::Verdict};

type Place = (Host<String>, u16);

/// One job's account.
#[derive(Debug)]
pub(crate) struct Traffic {
    egress: Egress,
    job: String,
    until: Instant,
    connections: AtomicU32,
    bytes: AtomicU64,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// What names resolved to.
    names: HashMap<String, Arc<OnceCell<Arc<[IpAddr]>>>>,
    /// What was denied for where it is.
    denied: HashSet<Place>,
    /// Why the latest connection failed; none if it did not.
    failure: Option<Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Denied,
    NotFound,
    Refused,
    Other,
}

/// A decision.
#[derive(Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    /// The address that decided it.
    address: Option<IpAddr>,
    /// Where to dial, if it may be dialled.
    pub(super) addresses: Vec<IpAddr>,
}

impl Traffic {
    pub(super) fn new(egress: Egress, job: &str) -> Self {
        let until = Instant::now() + egress.0.limits.time;
        Self {
            egress,
            job: job.to_owned(),
            until,
            connections: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            seen: Mutex::default(),
        }
    }

    /// Judges where the job's own URL leads, before a browser is bothered with it. Says nothing if
    /// all is well: the connection will.
    pub(crate) async fn judge(&self, url: &Url) -> Result<(), Refusal> {
        let Some(place) = place(url) else { return Ok(()) };
        let decision = self.consider(&place.0, place.1).await;
        if decision.verdict.allows() {
            return Ok(());
        }
        self.settle(&place, &decision);
        Err(self.refusal(url.host_str().unwrap_or_default()).unwrap_or(Refusal::Broken))
    }

    /// Why the page that was navigated to last did not come, if it is the network's doing.
    pub(crate) fn refusal(&self, host: &str) -> Option<Refusal> {
        let host = host.to_owned();
        self.seen().failure.map(|failure| match failure {
            Failure::Denied => Refusal::AddressNotPublic { host },
            Failure::NotFound => Refusal::NameNotFound { host },
            Failure::Refused => Refusal::ConnectionRefused { host },
            Failure::Other => Refusal::ConnectionFailed { host },
        })
    }

    /// Whether a connection there was denied for where it leads.
    pub(crate) fn denied(&self, url: &Url) -> bool {
        place(url).is_some_and(|place| self.seen().denied.contains(&place))
    }

    /// When its connections are cut.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// The guard.
    pub(super) fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Decides on a connection, and makes the decision known.
    pub(super) async fn decide(&self, place: &Place) -> Decision {
        let limits = self.egress.0.limits;
        let asked = self.connections.fetch_add(1, Ordering::Relaxed);
        let refuse = |verdict| Decision { verdict, address: None, addresses: Vec::new() };
        let decision = if asked >= limits.connections {
            // Once is enough to be told of a page that asks a million times.
            if asked > limits.connections {
                self.egress.0.metrics.egress_decided(Verdict::TooMany.name());
                return refuse(Verdict::TooMany);
            }
            refuse(Verdict::TooMany)
        } else if Instant::now() >= self.until {
            refuse(Verdict::TooLate)
        } else if self.bytes.load(Ordering::Relaxed) >= limits.bytes {
            refuse(Verdict::TooMuch)
        } else {
            self.consider(&place.0, place.1).await
        };
        self.settle(place, &decision);
        decision
    }

    /// Notes how dialling went that had been decided on.
    pub(super) fn dialled(&self, error: Option<&DialError>) {
        self.seen().failure = error.map(|error| match error {
            DialError::Refused(_) => Failure::Refused,
            _ => Failure::Other,
        });
    }

    /// Counts bytes; false when they are too many.
    pub(super) fn count(&self, bytes: usize, host: &Place) -> bool {
        let most = self.egress.0.limits.bytes;
        let bytes = bytes as u64;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.egress.0.metrics.egress_bytes(bytes);
        if before < most && before + bytes >= most {
            self.egress.report(&self.job, &host.0, host.1, None, Verdict::TooMuch);
        }
        before + bytes < most
    }

    fn settle(&self, place: &Place, decision: &Decision) {
        let Decision { verdict, address, .. } = *decision;
        self.egress.report(&self.job, &place.0, place.1, address, verdict);
        let mut seen = self.seen();
        if verdict.denies_the_place() {
            seen.denied.insert(place.clone());
        }
        seen.failure = match verdict {
            verdict if verdict.allows() => None,
            verdict if verdict.denies_the_place() => Some(Failure::Denied),
            Verdict::NotFound => Some(Failure::NotFound),
            _ => Some(Failure::Other),
        };
    }

    async fn consider(&self, host: &Host<String>, port: u16) -> Decision {
        let rules = &self.egress.0.rules;
        let (addresses, trust) = match rules.by_name(host, port) {
            ByName::Denied(verdict) => return Decision { verdict, address: None, addresses: Vec::new() },
            ByName::Addresses(addresses, trust) => (addresses.into(), trust),
            ByName::Resolve(name, trust) => (self.resolve(&name).await, trust),
        };
        let (mut verdict, mut address) = rules.by_addresses(&addresses, trust);
        if verdict.allows()
            && let Some((own, own_address)) = self.own(&addresses, port, verdict)
        {
            (verdict, address) = (own, Some(own_address));
        }
        let addresses = if verdict.allows() {
            addresses.iter().copied().take(MOST_DIALLED).collect()
        } else {
            Vec::new()
        };
        Decision { verdict, address, addresses }
    }

    /// Why none of these may be reached for being this machine's own.
    fn own(&self, addresses: &[IpAddr], port: u16, verdict: Verdict) -> Option<(Verdict, IpAddr)> {
        let own_port = self.egress.own_ports().contains(&port);
        // The kernel need only be asked about strangers: what the operator allows may be here.
        if !own_port && verdict == Verdict::Operator {
            return None;
        }
        let address = addresses.iter().copied().find(|&address| is_own(address))?;
        Some((if own_port { Verdict::OwnPort } else { Verdict::OwnAddress }, address))
    }

    async fn resolve(&self, name: &str) -> Arc<[IpAddr]> {
        let cell = Arc::clone(self.seen().names.entry(name.to_owned()).or_default());
        let resolving = async { self.egress.0.resolver.resolve(name).await.into() };
        Arc::clone(cell.get_or_init(|| resolving).await)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(url: &Url) -> Option<Place> {
    Some((url.host()?.to_owned(), url.port_or_known_default()?))
}

/// Whether an address is this machine's: the kernel answers from it what is sent to it. Sends
/// nothing.
fn is_own(address: IpAddr) -> bool {
    if address.is_loopback() || address.is_unspecified() {
        return true;
    }
    let any: IpAddr = match address {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let from = std::net::UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    from.is_ok_and(|from| from.ip() == address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_knows_its_own_addresses() {
        for own in ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0"] {
            assert!(is_own(own.parse().unwrap()), "{own}");
        }
        assert!(!is_own("1.1.1.1".parse().unwrap()));
    }
}
