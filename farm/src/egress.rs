//! The egress guard: the one way from a page to the network.
//!
//! Chromium is told of no name server and of one proxy only: this one. Each page has a port of it
//! (proxy) that knows whose job it is. A connection is asked for by host and port; the host is
//! resolved here, once for a job, all its addresses are judged (rules), and one of those that were
//! judged is dialled (dial). Plain HTTP is forwarded (forward), all else is a tunnel.
//!
//! Invariant: no packet goes where the verdict does not allow it, whatever a name resolves to next;
//! no connection serves two jobs; none outlives its job; each decision leaves one line in the log
//! and one count. Left to others: which job has which page (render), what the caller is told (load).

mod counting_stream;
mod dial;
mod forward;
mod job_egress;
mod own;
mod page_proxy;
mod resolver;
mod rules;
mod settings;
mod upstream;
mod verdict;

use std::{io, net::IpAddr, sync::Arc};

use url::Host;

pub(crate) use self::{job_egress::JobEgress, page_proxy::PageProxy};
use self::{
    own::{OwnAddresses, OwnPorts},
    resolver::Resolver,
    rules::Rules,
    upstream::Upstream,
    verdict::Verdict,
};
pub use self::{
    settings::{EgressConfig, HostPattern, InvalidHostPattern, InvalidPorts, NameServer, Ports},
    upstream::InvalidUpstream,
};
use crate::{Config, StartError, cancellation::PageStarted, metrics::Metrics};

/// The guard: a cheap handle.
#[derive(Debug, Clone)]
pub(crate) struct Egress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: Rules,
    resolver: Resolver,
    upstream: Option<Upstream>,
    limits: Limits,
    metrics: Arc<Metrics>,
    own_addresses: OwnAddresses,
    own_ports: OwnPorts,
}

/// What one job may do.
#[derive(Debug, Clone, Copy)]
struct Limits {
    connections: u32,
    bytes: u64,
    time: std::time::Duration,
}

impl Egress {
    /// A guard with these settings.
    pub(crate) fn new(config: &Config, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let settings = &config.egress;
        let rules = Rules {
            known: config.resolve.clone(),
            allow: settings.allow.clone(),
            deny: settings.deny.clone(),
            ports: settings.ports.clone(),
        };
        let limits = Limits {
            connections: settings.connections.get(),
            bytes: u64::from(settings.megabytes.get()) * 1_000_000,
            time: std::time::Duration::from_secs(settings.seconds.get().into()),
        };
        let upstream = settings.proxy.as_ref().map(Upstream::parse).transpose()?;
        let resolver = Resolver::new(&settings.dns)?;
        Ok(Self(Arc::new(Inner {
            rules,
            resolver,
            upstream,
            limits,
            metrics,
            own_addresses: OwnAddresses::watch().map_err(StartError::OwnAddresses)?,
            own_ports: OwnPorts::default(),
        })))
    }

    /// Opens a port for a page.
    pub(crate) async fn proxy(&self) -> io::Result<PageProxy> {
        PageProxy::open(self, Verdict::NoJob).await
    }

    /// Opens a port for what browsers ask for of their own accord, through which nothing gets.
    pub(crate) async fn dead_end(&self) -> io::Result<PageProxy> {
        PageProxy::open(self, Verdict::Browser).await
    }

    /// The account of a job that begins; `page_started` is set when its page does.
    pub(crate) fn traffic(&self, job: &str, page_started: PageStarted) -> Arc<JobEgress> {
        Arc::new(JobEgress::new(self.clone(), job, page_started))
    }

    /// Keeps pages away from a port on which the service listens.
    pub(crate) fn forbid_port(&self, port: u16) {
        self.0.own_ports.add(port);
    }

    /// Counts a decision and writes it down.
    fn report(&self, job: &str, host: &Host<String>, port: u16, address: Option<IpAddr>, verdict: Verdict) {
        self.0.metrics.egress_decided(verdict.name());
        let address = address.map(tracing::field::display);
        tracing::info!(job, %host, port, address, verdict = verdict.name(), "egress");
    }
}
