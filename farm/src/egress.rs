//! The egress guard: the only way from a page to the network.
//!
//! Chromium has no name server and one proxy. Each page has its own proxy port (`page_proxy`), bound to the
//! job that has the page. The job decides on each connection, dials it and counts its bytes (`job`). It uses
//! the rules (`policy`), name lookups (`resolver`), the addresses of this machine (`own_addresses`) and
//! connections (`dial`). Each of these files uses only files that are named after it.
//!
//! Invariant: no packet goes to an address that the verdict does not allow, even if a name has other
//! addresses later. No connection serves two jobs or outlives its job. Each decision is logged and counted.

mod dial;
mod job;
mod own_addresses;
mod page_proxy;
mod policy;
mod resolver;

use std::{io, sync::Arc, time::Duration};

use parking_lot::Mutex;
use platen_shared::host_names::HostNames;
use secrecy::ExposeSecret as _;
use url::Url;

use self::{
    job::Guard,
    own_addresses::OwnAddresses,
    policy::{HostPort, Verdict},
    resolver::Resolver,
};
pub(crate) use self::{job::JobEgress, page_proxy::PageProxy, policy::Trust};
use crate::{
    config::Config, egress_config::UpstreamProxy, error::StartError, job_progress::PageStarted,
    metrics::Metrics,
};

/// The time for one lookup of a name with its retries, and for dialling all addresses of a host. Well below the deadline of a job, so
/// that an outage is reported as such.
const HOST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(crate) struct Egress(Arc<Guard>);

impl Egress {
    pub(crate) fn new(config: Arc<Config>, metrics: Arc<Metrics>) -> Result<Self, StartError> {
        let proxy = config.egress.proxy.as_ref().map_or("", |proxy| proxy.expose_secret());
        let proxy =
            platen_program::secret_from("PLATEN_EGRESS_PROXY", proxy, config.egress.proxy_file.as_deref())?;
        Ok(Self(Arc::new(Guard {
            resolver: Resolver::new(&config.egress.dns).map_err(StartError::Resolver)?,
            upstream: proxy.as_ref().map(UpstreamProxy::parse).transpose()?,
            config,
            metrics,
            own_addresses: OwnAddresses::open().map_err(StartError::OwnAddresses)?,
            own_ports: Mutex::default(),
        })))
    }

    /// Opens a proxy for a page. It denies every request while no job is bound to it.
    pub(crate) async fn page_proxy(&self) -> io::Result<PageProxy> {
        PageProxy::open(Arc::clone(&self.0), Verdict::NoJob).await
    }

    /// Opens a proxy that denies every request, for the requests of the browser itself.
    pub(crate) async fn browser_proxy(&self) -> io::Result<PageProxy> {
        PageProxy::open(Arc::clone(&self.0), Verdict::Browser).await
    }

    /// Begins the time and the counters of a job, which may not connect to some hosts. `page_started` is set when the job's
    /// page begins to run.
    pub(crate) fn job(&self, name: &str, page_started: PageStarted, blocked: &[HostNames]) -> Arc<JobEgress> {
        Arc::new(JobEgress::new(Arc::clone(&self.0), name, page_started, blocked.into()))
    }

    /// The options that would allow connections to a URL, as on a command line; `None` if they are allowed, or if no option
    /// allows them that is not set.
    pub(crate) async fn missing_options(&self, url: &Url) -> Option<String> {
        let target = HostPort::from_url(url)?;
        let decision = self.job("", PageStarted::default(), &[]).evaluate(&target).await;
        policy::missing_options(&self.0.config.egress, &target, decision.verdict)
    }

    pub(crate) fn forbid_port(&self, port: u16) {
        self.0.own_ports.lock().push(port);
    }
}
