//! What one job does on the network.
//!
//! Invariant: a host has the addresses it had when the job first asked for it, so that a name
//! cannot be public when it is judged and something else when it is dialled; a job that has used up
//! its share gets nothing more; the outcome of a connection is kept by host and port, so that the
//! failure of one host never stands for another's. Not here: dialling (dial), whose connection it is
//! (proxy).

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use platen_shared::refusal::Refusal;
use tokio::time::Instant;
use url::{Host, Url};

use super::{
    Egress,
    dial::DialError,
    resolver::{MOST_DIALLED, NameServerFailed},
    rules::ByName,
    verdict::{Failure, Verdict},
};
use crate::cancellation::PageStarted;

type HostPort = (Host<String>, u16);
/// A lookup, shared by all connections of the job that wait for it.
type Lookup = Shared<BoxFuture<'static, Result<Arc<[IpAddr]>, NameServerFailed>>>;

/// One job's account.
#[derive(Debug)]
pub(crate) struct JobEgress {
    egress: Egress,
    job: String,
    until: Instant,
    connections: AtomicU32,
    bytes: AtomicU64,
    page_started: PageStarted,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Lookups of names: those under way, and those that had an answer.
    names: HashMap<String, Lookup>,
    /// Why the latest connection to a host and port failed; none if it was made.
    outcomes: HashMap<HostPort, Option<Failure>>,
    /// Where the main document was asked for last: the URL of the latest navigation, or of its redirect.
    document: Option<HostPort>,
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

impl JobEgress {
    pub(super) fn new(egress: Egress, job: &str, page_started: PageStarted) -> Self {
        let until = Instant::now() + egress.0.limits.time;
        Self {
            egress,
            job: job.to_owned(),
            until,
            connections: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            page_started,
            seen: Mutex::default(),
        }
    }

    /// Judges where the job's own URL leads, before it takes a browser. Says nothing if all is well: the
    /// connection will.
    pub(crate) async fn judge(&self, url: &Url) -> Result<(), Refusal> {
        let Some(target) = host_port(url) else { return Ok(()) };
        let decision = self.consider(&target.0, target.1).await;
        let Some(failure) = decision.verdict.failure() else { return Ok(()) };
        self.settle(&target, &decision);
        Err(failure.refusal(url.host_str().unwrap_or_default()))
    }

    /// Notes where the main document is asked for: by a navigation, and by each redirect of it.
    pub(crate) fn document_requested(&self, url: &str) {
        self.seen().document = Url::parse(url).ok().as_ref().and_then(host_port);
    }

    /// Why the main document of a navigation to `url` did not come, if it is the network's doing: the
    /// outcome of the connection to where the last redirect led. The caller reads about `host`.
    pub(crate) fn document_refusal(&self, url: &Url, host: &str) -> Option<Refusal> {
        let seen = self.seen();
        let target = seen.document.clone().or_else(|| host_port(url))?;
        let failure = (*seen.outcomes.get(&target)?)?;
        Some(failure.refusal(host))
    }

    /// Notes that the job's page begins to run.
    pub(crate) fn start_page(&self) {
        self.page_started.set();
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
    pub(super) async fn decide(&self, target: &HostPort) -> Decision {
        let limits = self.egress.0.limits;
        let asked = self.connections.fetch_add(1, Ordering::Relaxed);
        let refuse = |verdict| Decision { verdict, address: None, addresses: Vec::new() };
        let decision = if asked >= limits.connections {
            // A page may ask a million times; one line in the log is enough.
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
            self.consider(&target.0, target.1).await
        };
        self.settle(target, &decision);
        decision
    }

    /// Notes how dialling went that had been decided on.
    pub(super) fn dialled(&self, target: &HostPort, error: Option<&DialError>) {
        let failure = error.map(|error| match error {
            DialError::Refused(_) => Failure::Refused,
            _ => Failure::Other,
        });
        self.seen().outcomes.insert(target.clone(), failure);
    }

    /// Counts bytes; false when they are too many.
    pub(super) fn count(&self, bytes: usize, host: &HostPort) -> bool {
        let most = self.egress.0.limits.bytes;
        let bytes = bytes as u64;
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.egress.0.metrics.egress_bytes(bytes);
        if before < most && before + bytes >= most {
            self.egress.report(&self.job, &host.0, host.1, None, Verdict::TooMuch);
        }
        before + bytes < most
    }

    fn settle(&self, target: &HostPort, decision: &Decision) {
        let Decision { verdict, address, .. } = *decision;
        self.egress.report(&self.job, &target.0, target.1, address, verdict);
        self.seen().outcomes.insert(target.clone(), verdict.failure());
    }

    async fn consider(&self, host: &Host<String>, port: u16) -> Decision {
        let rules = &self.egress.0.rules;
        let refuse = |verdict| Decision { verdict, address: None, addresses: Vec::new() };
        let (addresses, trust) = match rules.by_name(host, port) {
            ByName::Denied(verdict) => return refuse(verdict),
            ByName::Addresses(addresses, trust) => (addresses.into(), trust),
            ByName::Resolve(name, trust) => match self.resolve(&name).await {
                Ok(addresses) => (addresses, trust),
                Err(NameServerFailed) => return refuse(Verdict::NameServerFailed),
            },
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
        let own_port = self.egress.0.own_ports.contains(port);
        // What the operator allows may be here, except for the service itself.
        if !own_port && verdict == Verdict::Operator {
            return None;
        }
        let own = &self.egress.0.own_addresses;
        let address = addresses.iter().copied().find(|&address| own.contains(address))?;
        Some((if own_port { Verdict::OwnPort } else { Verdict::OwnAddress }, address))
    }

    async fn resolve(&self, name: &str) -> Result<Arc<[IpAddr]>, NameServerFailed> {
        let begin = || {
            let (resolver, name) = (self.egress.0.resolver.clone(), name.to_owned());
            async move { resolver.resolve(&name).await.map(Arc::from) }.boxed().shared()
        };
        let lookup = self.seen().names.entry(name.to_owned()).or_insert_with(begin).clone();
        let found = lookup.clone().await;
        if found.is_err() {
            // It says nothing about the name, so the next connection asks again.
            let mut seen = self.seen();
            if seen.names.get(name).is_some_and(|kept| kept.ptr_eq(&lookup)) {
                seen.names.remove(name);
            }
        }
        found
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn host_port(url: &Url) -> Option<HostPort> {
    Some((url.host()?.to_owned(), url.port_or_known_default()?))
}

#[cfg(test)]
mod tests;
