//! The connections of one job: each is decided on, dialled, counted and logged here.
//!
//! Invariant: within a job a name keeps the addresses of its first lookup, and only addresses that were
//! judged are dialled, so DNS rebinding has no effect. After a limit is reached, the job gets no further
//! connection. Outcomes are kept by host and port: the failure of one is never reported for another.

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use parking_lot::Mutex;
use platen_shared::{address, host_names::HostNames, refusal::Refusal};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use url::{Host, Url};

use super::{
    dial::{DialError, HostStream, dial},
    own_addresses::OwnAddresses,
    policy::{
        Failure, HostDecision, HostPort, Trust, Verdict, judge_addresses, judge_host, judge_without_rules,
    },
    resolver::{NameServerFailed, Resolver},
};
use crate::{config::Config, egress_config::UpstreamProxy, job_progress::PageStarted, metrics::Metrics};

/// What all jobs of a farm share.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) config: Arc<Config>,
    pub(super) resolver: Resolver,
    pub(super) upstream: Option<UpstreamProxy>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) own_addresses: OwnAddresses,
    /// The ports on which the service listens, once for each listener: several can listen on one port, at different
    /// addresses.
    pub(super) own_ports: Mutex<Vec<u16>>,
}

impl Guard {
    fn max_bytes(&self) -> u64 {
        u64::from(self.config.egress.megabytes.get()) * 1_000_000
    }

    pub(super) fn report(&self, job: &str, target: &HostPort, address: Option<IpAddr>, verdict: Verdict) {
        let HostPort { host, port } = target;
        self.metrics.egress.of(verdict).inc();
        let address = address.map(tracing::field::display);
        tracing::info!(job, %host, port, address, verdict = verdict.name(), "egress");
    }

    /// The verdict on a connection, and the address that decided it. The ports of the service come first: the
    /// operator can allow addresses of this machine, but not the service itself.
    fn judge(&self, addresses: &[IpAddr], port: u16, trust: Trust) -> (Verdict, Option<IpAddr>) {
        let is_own = |address| self.own_addresses.contains(address, port);
        if self.own_ports.lock().contains(&port)
            && let Some(own) = addresses.iter().copied().find(|&it| address::reached(it).any(is_own))
        {
            return (Verdict::OwnPort, Some(own));
        }
        judge_addresses(&self.config.egress, addresses, trust, is_own)
    }
}

/// A lookup, shared by all connections of the job that wait for it.
type Lookup = Shared<BoxFuture<'static, Result<Arc<[IpAddr]>, NameServerFailed>>>;

#[derive(Debug)]
pub(crate) struct JobEgress {
    guard: Arc<Guard>,
    name: String,
    /// Hosts that the request has blocked.
    blocked: Arc<[HostNames]>,
    connections: AtomicU32,
    bytes: AtomicU64,
    /// Set when the job's page begins to run.
    pub(crate) page_started: PageStarted,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Lookups that are under way or had an answer.
    lookups: HashMap<String, Lookup>,
    /// Why the latest connection to a host and port failed; `None` if it was made.
    outcomes: HashMap<HostPort, Option<Failure>>,
    /// Where the latest navigation, or its latest redirect, requested the main document.
    document: Option<HostPort>,
}

#[derive(Debug)]
pub(super) struct Decision {
    pub(super) verdict: Verdict,
    /// The address that decided it.
    address: Option<IpAddr>,
    /// The addresses to dial; empty if the connection is denied.
    addresses: Arc<[IpAddr]>,
}

impl From<Verdict> for Decision {
    fn from(verdict: Verdict) -> Self {
        Self { verdict, address: None, addresses: Arc::default() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("the connection is not allowed")]
    Denied,
    #[error("no connection was made")]
    Dial(#[from] DialError),
}

impl JobEgress {
    pub(super) fn new(
        guard: Arc<Guard>,
        name: &str,
        page_started: PageStarted,
        blocked: Arc<[HostNames]>,
    ) -> Self {
        Self {
            guard,
            name: name.to_owned(),
            blocked,
            connections: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            page_started,
            state: Mutex::default(),
        }
    }

    /// The connections of a further attempt of the job, which has a limit of its own. Names keep their addresses.
    pub(crate) fn again(&self) -> Arc<Self> {
        let (page_started, blocked) = (self.page_started.clone(), Arc::clone(&self.blocked));
        let again = Self::new(Arc::clone(&self.guard), &self.name, page_started, blocked);
        again.state.lock().lookups.clone_from(&self.state.lock().lookups);
        Arc::new(again)
    }

    /// Judges the URL of the job before the job gets a browser. Only a denial is logged and counted: the
    /// connection that follows is judged again. Untrusted, its addresses must be public although the operator allows others:
    /// markup of the caller would have the origin of the host.
    pub(crate) async fn judge(&self, url: &Url, trust: Trust) -> Result<(), Refusal> {
        let Some(target) = HostPort::from_url(url) else { return Ok(()) };
        let mut decision = self.evaluate(&target).await;
        if trust == Trust::Untrusted && decision.verdict == Verdict::Operator {
            decision.verdict = judge_without_rules(&decision.addresses);
        }
        let Some(failure) = decision.verdict.failure() else { return Ok(()) };
        self.record(target, &decision);
        Err(failure(url.host_str().unwrap_or_default().to_owned()))
    }

    /// Notes the URL at which the main document is requested: of a navigation, and of each redirect.
    pub(crate) fn document_requested(&self, url: &str) {
        self.state.lock().document = Url::parse(url).ok().as_ref().and_then(HostPort::from_url);
    }

    /// Why the main document of a navigation to `url` could not be loaded, if its latest connection failed.
    /// The refusal names `host`.
    pub(crate) fn document_refusal(&self, url: &Url, host: &str) -> Option<Refusal> {
        let target = self.state.lock().document.clone().or_else(|| HostPort::from_url(url))?;
        let failure = self.state.lock().outcomes.get(&target).copied()??;
        Some(failure(host.to_owned()))
    }

    /// Why the latest connection to the host of a URL failed, if it did.
    pub(crate) fn refusal(&self, url: &Url) -> Option<Refusal> {
        let failure = self.state.lock().outcomes.get(&HostPort::from_url(url)?).copied()??;
        Some(failure(url.host_str().unwrap_or_default().to_owned()))
    }

    /// Whether the request for the render has blocked the host of a URL.
    pub(crate) fn blocks(&self, url: &Url) -> bool {
        url.domain().is_some_and(|name| self.is_blocked(name))
    }

    fn is_blocked(&self, name: &str) -> bool {
        self.blocked.iter().any(|names| names.contain(name))
    }

    pub(super) async fn connect(self: &Arc<Self>, target: HostPort) -> Result<CountingStream, ConnectError> {
        let decision = self.decide(&target).await;
        if !decision.verdict.allows() {
            return Err(ConnectError::Denied);
        }
        let dialled = dial(&decision.addresses, target.port, self.guard.upstream.as_ref()).await;
        self.record_dial(&target, dialled.as_ref().err());
        Ok(CountingStream { stream: dialled?, job: Arc::clone(self), target })
    }

    async fn decide(&self, target: &HostPort) -> Decision {
        let max_connections = self.guard.config.egress.connections.get();
        let earlier = self.connections.fetch_add(1, Ordering::Relaxed);
        if earlier > max_connections {
            // A page can request a million connections; only the first one over the limit is logged.
            self.guard.metrics.egress.of(Verdict::ConnectionLimit).inc();
            return Verdict::ConnectionLimit.into();
        }
        let decision = if earlier == max_connections {
            Verdict::ConnectionLimit.into()
        } else if self.bytes.load(Ordering::Relaxed) >= self.guard.max_bytes() {
            Verdict::ByteLimit.into()
        } else {
            self.evaluate(target).await
        };
        self.record(target.clone(), &decision);
        decision
    }

    pub(super) async fn evaluate(&self, target: &HostPort) -> Decision {
        if let Host::Domain(name) = &target.host
            && self.is_blocked(name)
        {
            return Verdict::Blocked.into();
        }
        let (addresses, trust) = match judge_host(&self.guard.config, target) {
            HostDecision::Denied(verdict) => return verdict.into(),
            HostDecision::Addresses(addresses, trust) => (addresses.into(), trust),
            HostDecision::Lookup(name, trust) => match self.resolve(&name).await {
                Ok(addresses) => (addresses, trust),
                Err(NameServerFailed) => return Verdict::NameServerFailed.into(),
            },
        };
        let (verdict, address) = self.guard.judge(&addresses, target.port, trust);
        let addresses = if verdict.allows() { addresses } else { Arc::default() };
        Decision { verdict, address, addresses }
    }

    /// The addresses that the name had at the job's first lookup.
    async fn resolve(&self, name: &str) -> Result<Arc<[IpAddr]>, NameServerFailed> {
        let begin = || {
            let (resolver, name) = (self.guard.resolver.clone(), name.to_owned());
            async move { resolver.resolve(&name).await.map(Arc::from) }.boxed().shared()
        };
        let lookup = self.state.lock().lookups.entry(name.to_owned()).or_insert_with(begin).clone();
        let found = lookup.clone().await;
        if found.is_err() {
            // An outage says nothing about the name, so the next connection looks it up again.
            let mut state = self.state.lock();
            if state.lookups.get(name).is_some_and(|latest| latest.ptr_eq(&lookup)) {
                state.lookups.remove(name);
            }
        }
        found
    }

    fn record(&self, target: HostPort, decision: &Decision) {
        self.guard.report(&self.name, &target, decision.address, decision.verdict);
        self.state.lock().outcomes.insert(target, decision.verdict.failure());
    }

    fn record_dial(&self, target: &HostPort, error: Option<&DialError>) {
        let failure = error.map(|error| -> Failure {
            match error {
                DialError::Refused(_) => |host| Refusal::ConnectionRefused { host },
                _ => |host| Refusal::ConnectionFailed { host },
            }
        });
        self.state.lock().outcomes.insert(target.clone(), failure);
    }

    /// Counts bytes of a connection to `target`. An error means that the job has used all its bytes.
    fn count(&self, bytes: usize, target: &HostPort) -> io::Result<()> {
        let (bytes, max) = (bytes as u64, self.guard.max_bytes());
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.guard.metrics.egress_bytes.inc_by(bytes);
        if before + bytes < max {
            return Ok(());
        }
        if before < max {
            self.guard.report(&self.name, target, None, Verdict::ByteLimit);
        }
        Err(io::ErrorKind::QuotaExceeded.into())
    }
}

/// A connection whose bytes are counted in both directions, and which fails where the job has used all of
/// its bytes.
#[derive(Debug)]
pub(super) struct CountingStream {
    stream: HostStream,
    job: Arc<JobEgress>,
    target: HostPort,
}

impl CountingStream {
    fn count(&self, bytes: usize) -> io::Result<usize> {
        self.job.count(bytes, &self.target).map(|()| bytes)
    }
}

impl AsyncRead for CountingStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        Poll::Ready(self.count(buffer.filled().len() - before).map(drop))
    }
}

impl AsyncWrite for CountingStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        Poll::Ready(self.count(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, slices))?;
        Poll::Ready(self.count(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
mod tests;
