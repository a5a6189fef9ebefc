//! The farm: its public handle, and the life of a job from its arrival to its result.
//!
//! Invariant: a job ends by its deadline, is attempted at most [`MAX_ATTEMPTS`] times, and holds its browser
//! until its page is closed or reset. No page starts that cannot end by the deadline.
//!
//! The futures for other crates are boxed, so that their code is compiled here, and not in each program that awaits them.

use std::{
    borrow::Cow,
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
use platen_program::{MetricsRegistry, error_chain};
use platen_shared::{
    job::{RenderJob, Source},
    refusal::Refusal,
};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::{
    browser::Launcher,
    config::Config,
    egress::{Egress, JobEgress, Trust},
    error::{JobError, StartError},
    fill::Filling,
    folder::Folder,
    job_progress::{JobProgress, Phase, Phases},
    metrics::{self, Metrics, OutcomeGuard},
    pool::{Lease, PageRequest, Pool, has_time},
    render::{self, Clock, Rendered, Site},
};

/// A job whose renderer or browser failed is tried once more, on another browser, if it can come as far in time.
const MAX_ATTEMPTS: u32 = 2;
/// How often a job may find its page crashed, or fail to open one, before it starts.
const MAX_MISSING_PAGES: u32 = 4;

/// Handle of a running farm; clones share the farm. When the last clone is dropped, the browsers are
/// killed and reaped. [`Farm::shutdown`] waits for running jobs first.
#[derive(Debug, Clone)]
pub struct Farm {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    pool: Pool,
    egress: Egress,
    filling: Filling,
    metrics: Arc<Metrics>,
    registry: MetricsRegistry,
    drain_timeout: Duration,
}

/// What the metrics say about the browsers that run, of a farm that has not ended.
#[derive(Debug)]
struct Gauges(Weak<Inner>);

impl Collector for Gauges {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.upgrade().map_or(Ok(()), |inner| inner.pool.state().encode(encoder))
    }
}

/// Whether a farm accepts jobs. Does not keep the farm running.
#[derive(Debug, Clone)]
pub struct Readiness {
    inner: Weak<Inner>,
}

impl Readiness {
    /// Whether the farm runs, is not shutting down and has a browser.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.inner.upgrade().is_some_and(|inner| Farm { inner }.is_ready())
    }
}

impl Farm {
    /// Starts the browsers and returns when the first is ready; the others start in the background.
    ///
    /// # Errors
    /// [`StartError`] if no browser can be started with these settings.
    #[must_use]
    pub fn start(config: Config) -> BoxFuture<'static, Result<Self, StartError>> {
        Self::start_with_metrics(config, MetricsRegistry::default())
    }

    /// The same as [`Farm::start`], with the metrics in the registry of the process. A registry takes one farm.
    ///
    /// # Errors
    /// Those of [`Farm::start`].
    #[must_use]
    pub fn start_with_metrics(
        config: Config,
        registry: MetricsRegistry,
    ) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::start_in(config, registry))
    }

    async fn start_in(mut config: Config, registry: MetricsRegistry) -> Result<Self, StartError> {
        // Read once, because the number of cores and the limits of memory can change.
        config.browsers = Some(config.browser_count());
        config.page_memory = Some(config.page_memory_mib());
        let config = Arc::new(config);
        let browsers = config.browser_count().get();
        let drain_timeout = config.drain_timeout();
        let metrics = Arc::new(registry.register(Metrics::register));
        let egress = Egress::new(Arc::clone(&config), Arc::clone(&metrics))?;
        let launcher = Launcher::new(Arc::clone(&config), egress.clone()).await?;
        let filling = Filling::new(&config);
        let pool = Pool::start(launcher, config, Arc::clone(&metrics)).await.map_err(StartError::Launch)?;
        tracing::info!(browsers, "farm is ready");
        let registered = registry.clone();
        let inner = Arc::new(Inner { pool, egress, filling, metrics, registry: registered, drain_timeout });
        let sampled = Arc::downgrade(&inner);
        registry.register(|registry| {
            registry.sub_registry_with_prefix(metrics::PREFIX).register_collector(Box::new(Gauges(sampled)));
        });
        Ok(Self { inner })
    }

    /// Renders one job within `time_left` of wall-clock time. Dropping the future cancels the job.
    ///
    /// # Errors
    /// [`Refusal`]; the farm has logged its cause.
    #[must_use]
    pub fn render<'a>(
        &'a self,
        job: &'a RenderJob,
        time_left: Duration,
    ) -> BoxFuture<'a, Result<Rendered, Refusal>> {
        let deadline = Instant::now() + time_left;
        Box::pin(async move { self.render_observed(job, None, deadline, &JobProgress::default()).await })
    }

    /// Renders like [`Farm::render`] a job with the files of a folder beside its markup, which has an address then.
    ///
    /// # Errors
    /// Those of [`Farm::render`].
    #[must_use]
    pub fn render_in_folder<'a>(
        &'a self,
        mut job: RenderJob,
        folder: &'a Folder,
        time_left: Duration,
    ) -> BoxFuture<'a, Result<Rendered, Refusal>> {
        let deadline = Instant::now() + time_left;
        job.options.assets.get_or_insert_default();
        Box::pin(
            async move { self.render_observed(&job, Some(folder), deadline, &JobProgress::default()).await },
        )
    }

    /// Renders like [`Farm::render`]. The caller can read `progress` after dropping the future.
    pub(crate) async fn render_observed(
        &self,
        job: &RenderJob,
        folder: Option<&Folder>,
        deadline: Instant,
        progress: &JobProgress,
    ) -> Result<Rendered, Refusal> {
        let mut guard = OutcomeGuard {
            metrics: &self.inner.metrics,
            outcome: metrics::CLIENT_DISCONNECTED,
            phases: &progress.phases,
        };
        let mut result = self.inner.render(job, folder, deadline, progress).await;
        if !progress.page.get() {
            result = result.map_err(Refusal::before_page_ran);
        }
        guard.outcome = result.as_ref().map_or_else(Refusal::code, |_| metrics::RENDERED);
        result
    }

    /// The options of the egress guard that are missing to reach a URL, as on a command line: `--egress-allow 10.0.0.1`. `None`
    /// if it can be reached, or if none of them allows it.
    #[must_use]
    pub fn missing_options<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Option<String>> {
        Box::pin(self.inner.egress.missing_options(url))
    }

    /// Denies pages a port of this machine on which the service listens, even where the operator allows
    /// the address.
    pub fn forbid_port(&self, port: u16) {
        self.inner.egress.forbid_port(port);
    }

    /// Rejects new jobs, waits for the others for at most the drain timeout, ends the
    /// browsers, and returns when their processes and profiles are removed.
    #[must_use]
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.drain().await;
            self.close().await;
        })
    }

    /// Rejects new jobs and waits for the others. Returns the time at which the drain timeout ends.
    pub(crate) async fn drain(&self) -> Instant {
        let end = Instant::now() + self.inner.drain_timeout;
        self.inner.pool.queue.drain();
        if timeout_at(end, self.inner.pool.queue.idle()).await.is_err() {
            tracing::warn!("jobs are still running after the drain timeout; shutting down without them");
        }
        end
    }

    pub(crate) async fn close(&self) {
        self.inner.pool.close().await;
    }

    /// The job with its template filled.
    pub(crate) async fn fill(&self, job: &RenderJob, deadline: Instant) -> Result<RenderJob, Refusal> {
        self.inner.filled(job, deadline).await.map(Cow::into_owned)
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.inner.pool.queue.ready() > 0 && !self.inner.pool.queue.is_draining()
    }

    /// A handle to ask whether the farm accepts jobs.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        Readiness { inner: Arc::downgrade(&self.inner) }
    }

    pub(crate) fn metrics(&self) -> String {
        self.inner.registry.encode()
    }
}

impl Inner {
    /// The job without a template.
    async fn filled<'j>(&self, job: &'j RenderJob, deadline: Instant) -> Result<Cow<'j, RenderJob>, Refusal> {
        let Source::Jinja(template) = &job.source else { return Ok(Cow::Borrowed(job)) };
        let filled = timeout_at(deadline, self.filling.fill(job, template)).await;
        filled.unwrap_or(Err(Refusal::Deadline)).map(Cow::Owned)
    }

    async fn render(
        &self,
        job: &RenderJob,
        folder: Option<&Folder>,
        deadline: Instant,
        progress: &JobProgress,
    ) -> Result<Rendered, Refusal> {
        let is_template = matches!(job.source, Source::Jinja(_));
        let filling = is_template.then(|| progress.phases.enter(Phase::Fill));
        let job = &*self.filled(job, deadline).await?;
        drop(filling);
        let request = PageRequest::new(job, render::may_reuse_page(job));
        let queueing = progress.phases.enter(Phase::Queue);
        let lease = self.pool.queue.lease(request.clone(), deadline).await?;
        drop(queueing);
        let admitted = Instant::now();
        self.metrics.wait_seconds.observe(progress.queued().unwrap_or_default().as_secs_f64());
        progress.set_admitted();
        let job_egress = self.egress.job(&progress.name, progress.page.clone(), &job.options.block_hosts);
        let address = match &job.source {
            Source::Url(url) => Some((url, Trust::Operator)),
            Source::Html(_) | Source::Jinja(_) => {
                job.options.base_url.as_ref().map(|url| (url, Trust::Untrusted))
            }
        };
        if let Some((url, trust)) = address {
            let judged = timeout_at(deadline, job_egress.judge(url.as_url(), trust)).await;
            // Judging waits for the name server only.
            judged.map_err(|_| Refusal::NameServerFailed)??;
        }
        let document = Document { job, site: Site::of(job, folder) };
        let rendering =
            self.render_with_retries(&document, request, lease, job_egress, deadline, &progress.phases);
        // The one limit of all that a job does in its browser. What it leaves unfinished ends after the answer.
        let rendered = timeout_at(deadline, rendering).await.unwrap_or(Err(Refusal::Deadline));
        let rendered = rendered?;
        let seconds = admitted.elapsed().as_secs_f64();
        self.metrics.render_seconds.of(rendered.format.extension()).observe(seconds);
        Ok(rendered)
    }

    async fn render_with_retries(
        &self,
        document: &Document<'_>,
        mut request: PageRequest,
        mut lease: Lease,
        mut job_egress: Arc<JobEgress>,
        deadline: Instant,
        phases: &Phases,
    ) -> Result<Rendered, Refusal> {
        let no_browser = |attempt| if attempt == 1 { Refusal::NoBrowser } else { Refusal::Broken };
        let (mut attempt, mut missing_pages, mut clock) = (1, 0, Clock::Virtual);
        let Document { job, site } = document;
        let (job, site) = (*job, site.as_ref());
        loop {
            let (id, started) = (lease.id(), Instant::now());
            let context = render::JobContext { job, site, egress: &job_egress, deadline, clock, phases };
            let error = match render::render(&context, &request, lease).await {
                Ok(file) => return Ok(file),
                Err(JobError::Refused(refusal)) => return Err(refusal),
                Err(error) => error,
            };
            match error {
                JobError::NoPage => {
                    missing_pages += 1;
                    tracing::warn!(missing_pages, "no page for a job");
                    if missing_pages >= MAX_MISSING_PAGES {
                        return Err(no_browser(attempt));
                    }
                }
                JobError::NeedsRealTime if clock == Clock::Virtual => {
                    if !has_time(deadline, render::real_wait(job)) {
                        return Err(Refusal::Deadline);
                    }
                    self.metrics.real_time_retries.inc();
                    (clock, job_egress) = (Clock::Real, job_egress.again());
                }
                error => {
                    let retry = attempt < MAX_ATTEMPTS
                        && !error.is_of_page()
                        && has_time(deadline, started.elapsed());
                    tracing::warn!(error = error_chain(&error), attempt, retry, "render failed");
                    if !retry {
                        return Err(error.into_refusal());
                    }
                    self.metrics.retries.inc();
                    (attempt, request.avoid, job_egress) = (attempt + 1, Some(id), job_egress.again());
                }
            }
            let _leasing = phases.enter(Phase::Lease);
            let again = self.pool.queue.lease_again(request.clone(), deadline).await;
            lease = again.map_err(|_| no_browser(attempt))?;
        }
    }
}

/// A job, and the address of its markup.
struct Document<'a> {
    job: &'a RenderJob,
    site: Option<Site<'a>>,
}
