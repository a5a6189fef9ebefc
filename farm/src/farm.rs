//! The farm itself: what is behind a handle, and one job from arrival to end.
//!
//! Invariant: a job ends by its deadline, is tried at most [`MAX_ATTEMPTS`] times, and holds its slot
//! until its last page is gone.

use std::{error::Error, future::Future, io, sync::Arc, time::Duration};

use axum::Router;
use bytes::Bytes;
use platen_shared::{
    format::OutputFormat,
    job::{RenderJob, Source},
    limits,
    refusal::Refusal,
};
use tokio::{
    net::TcpListener,
    time::{Instant, timeout, timeout_at},
};

use crate::{
    Config, FarmToken, MetricsRegistry, StartError,
    admission::{Admission, Slot},
    browser::Launcher,
    cancellation::PageStarted,
    egress::{Egress, JobEgress},
    http,
    metrics::{self, Metrics},
    pool::{Layout, PageRequest, Pool},
    render::{self, Clock, JobError},
};

/// A job whose renderer or browser was lost is tried once more, on another browser.
const MAX_ATTEMPTS: u32 = 2;
/// Pages that may be found dead or not open before a job begins, until no browser counts as available.
const MAX_STALE_PAGES: u32 = 4;
/// Longest time a job may be given; a caller's larger number is a mistake or an attack.
const MAX_DEADLINE: Duration = Duration::from_hours(1);
/// How long running jobs may take to end when the farm shuts down: one deadline and a little for
/// cleaning up.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(limits::DEADLINE_MS + 5_000);

/// A running farm: a cheap handle, cloned at will. Browsers are killed and reaped when the last
/// handle is gone; [`Farm::shutdown`] does so in good order.
#[derive(Debug, Clone)]
pub struct Farm {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    admission: Admission,
    pool: Pool,
    egress: Egress,
    metrics: Arc<Metrics>,
    registry: MetricsRegistry,
}

/// A rendered file.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The file.
    pub bytes: Bytes,
    /// What it is.
    pub format: OutputFormat,
    /// How long it waited for a slot.
    pub waited: Duration,
    /// How long it took once it had one.
    pub rendered_in: Duration,
}

impl Farm {
    /// Starts the browsers and returns as soon as one of them is ready; the others follow.
    ///
    /// # Errors
    /// [`StartError`] when no browser can be started with these settings.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_with_metrics(config, &MetricsRegistry::default()).await
    }

    /// As [`Farm::start`], with the metrics in the registry of the process. A registry takes one farm.
    ///
    /// # Errors
    /// As [`Farm::start`].
    pub async fn start_with_metrics(config: Config, registry: &MetricsRegistry) -> Result<Self, StartError> {
        let browsers = config.browser_count().get();
        let layout = Layout {
            browsers,
            recycle_after: config.recycle_after.get(),
            warm_pages: config.warm_pages,
            page_jobs: config.page_jobs.get(),
        };
        let admission = Admission::new(browsers, config.queue);
        let metrics = Arc::new(registry.register(Metrics::register));
        let egress = Egress::new(&config, Arc::clone(&metrics))?;
        let launcher = Launcher::new(config, egress.clone(), Arc::clone(&metrics)).await?;
        let pool = Pool::start(launcher, layout, Arc::clone(&metrics)).await.map_err(StartError::Launch)?;
        let drawing = if pool.draws_on_command() { "on command" } else { "by itself" };
        tracing::info!(browsers, product = pool.product(), drawing, "the farm is ready");
        let inner = Arc::new(Inner { admission, pool, egress, metrics, registry: registry.clone() });
        let sampled = Arc::downgrade(&inner);
        let sample = move || sampled.upgrade().map(|inner| (inner.admission.occupancy(), inner.pool.ready()));
        registry.register(|registry| metrics::register_gauges(registry, sample));
        Ok(Self { inner })
    }

    /// Renders one job within `time_left` of real time. Dropping the future cancels the job and
    /// frees its slot.
    ///
    /// # Errors
    /// [`Refusal`], whose cause has been logged.
    pub async fn render(&self, job: &RenderJob, time_left: Duration) -> Result<Rendered, Refusal> {
        self.render_as("", job, time_left).await
    }

    /// As [`Farm::render`], for a job with a name by which the log tells what its page asked for.
    ///
    /// # Errors
    /// [`Refusal`], whose cause has been logged.
    pub async fn render_as(
        &self,
        name: &str,
        job: &RenderJob,
        time_left: Duration,
    ) -> Result<Rendered, Refusal> {
        self.render_observed(name, job, time_left, &PageStarted::default()).await
    }

    /// As [`Farm::render_as`], for a caller who asks whether the page had begun to run, also when it has
    /// dropped the future.
    pub(crate) async fn render_observed(
        &self,
        name: &str,
        job: &RenderJob,
        time_left: Duration,
        page_started: &PageStarted,
    ) -> Result<Rendered, Refusal> {
        let mut tally = Tally { metrics: &self.inner.metrics, outcome: metrics::CLIENT_DISCONNECTED };
        let result = self.inner.render(name, job, time_left.min(MAX_DEADLINE), page_started).await;
        let result =
            result.map_err(|refusal| if page_started.get() { refusal } else { refusal.before_page_ran() });
        tally.outcome = result.as_ref().map_or_else(Refusal::code, |_| metrics::RENDERED);
        result
    }

    /// The farm's HTTP interface: `POST /v1/jobs` for holders of `token`, `GET /healthz`,
    /// `GET /readyz`, `GET /metrics`.
    pub fn router(&self, token: FarmToken) -> Router {
        http::router(self.clone(), token)
    }

    /// Serves [`Farm::router`] until `shutdown` completes, then shuts down as [`Farm::shutdown`]
    /// does, refusing new jobs meanwhile, and returns.
    ///
    /// # Errors
    /// When the listener breaks.
    pub async fn serve(
        &self,
        listener: TcpListener,
        token: FarmToken,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        if let Ok(address) = listener.local_addr() {
            self.forbid_port(address.port());
        }
        let served = http::serve(listener, self.router(token), shutdown, self.drain()).await;
        self.shutdown().await;
        served
    }

    /// Keeps pages away from a port of this machine, even where the operator allows its address: one on
    /// which the service itself listens.
    pub fn forbid_port(&self, port: u16) {
        self.inner.egress.forbid_port(port);
    }

    /// Takes no more jobs, waits for the running ones (at most one job's deadline), ends the
    /// browsers and returns when nothing of them is left.
    pub async fn shutdown(&self) {
        self.drain().await;
        self.inner.pool.close().await;
    }

    /// Takes no more jobs and waits for the running ones.
    async fn drain(&self) {
        self.inner.admission.drain();
        if timeout(DRAIN_TIMEOUT, self.inner.admission.idle()).await.is_err() {
            tracing::warn!("jobs still run after the longest deadline; the farm ends without them");
        }
    }

    /// Whether a job sent now would be taken.
    pub(crate) fn is_ready(&self) -> bool {
        self.inner.pool.ready() > 0 && !self.inner.admission.is_draining()
    }

    /// The metrics of this process as text.
    pub(crate) fn metrics(&self) -> String {
        self.inner.registry.encode()
    }
}

impl Inner {
    async fn render(
        &self,
        name: &str,
        job: &RenderJob,
        time_left: Duration,
        page_started: &PageStarted,
    ) -> Result<Rendered, Refusal> {
        let arrived = Instant::now();
        let deadline = arrived + time_left;
        let slot = self.admission.admit(&job.account, deadline).await?;
        let admitted = Instant::now();
        self.metrics.job_admitted(admitted - arrived);
        let traffic = self.egress.traffic(name, page_started.clone());
        if let Source::Url(url) = &job.source {
            let judged = timeout_at(deadline, traffic.judge(url.as_url())).await;
            // No page has run, and only the name server can have taken so long.
            judged.map_err(|_| Refusal::NameServerFailed)??;
        }
        let bytes = self.attempt(job, &traffic, Arc::new(slot), deadline).await?;
        let rendered_in = admitted.elapsed();
        let format = job.output.format();
        self.metrics.job_rendered(format, rendered_in);
        Ok(Rendered { bytes, format, waited: admitted - arrived, rendered_in })
    }

    async fn attempt(
        &self,
        job: &RenderJob,
        traffic: &Arc<JobEgress>,
        slot: Arc<Slot>,
        deadline: Instant,
    ) -> Result<Bytes, Refusal> {
        let request = PageRequest {
            account: &job.account,
            reuse: matches!(job.source, Source::Html(_)),
            scale_factor: job.viewport.device_scale_factor,
        };
        let (mut attempt, mut stale, mut clock, mut avoid) = (1, 0, Clock::Virtual, None);
        loop {
            let leased = timeout_at(deadline, self.pool.lease(&request, avoid)).await;
            let Ok(Some(browser)) = leased else {
                return Err(if attempt == 1 { Refusal::NoBrowser } else { Refusal::Broken });
            };
            let id = browser.id();
            let rendered = render::render(job, browser, &slot, traffic, deadline, clock).await;
            let error = match rendered {
                Ok(bytes) => return Ok(bytes),
                Err(JobError::Refused(refusal)) => return Err(refusal),
                Err(JobError::Stale) => {
                    stale += 1;
                    tracing::warn!(stale, "there was no living page for a job");
                    if stale >= MAX_STALE_PAGES {
                        return Err(if attempt == 1 { Refusal::NoBrowser } else { Refusal::Broken });
                    }
                    continue;
                }
                Err(JobError::NeedsRealTime) if clock == Clock::Virtual => {
                    self.metrics.job_needs_real_time();
                    clock = Clock::Real;
                    continue;
                }
                // It would take the next browser down as well.
                Err(JobError::BrowserCrashed) => {
                    tracing::warn!("a page crashed its browser");
                    return Err(Refusal::PageCrashed);
                }
                Err(error) => error,
            };
            let again = attempt < MAX_ATTEMPTS;
            tracing::warn!(error = &error as &dyn Error, attempt, again, "a render failed");
            if !again {
                return Err(match error {
                    JobError::Crashed => Refusal::PageCrashed,
                    _ => Refusal::Broken,
                });
            }
            self.metrics.job_retried();
            (attempt, avoid) = (attempt + 1, Some(id));
        }
    }
}

/// Counts a job when it ends, also when its caller has hung up.
struct Tally<'a> {
    metrics: &'a Metrics,
    outcome: &'static str,
}

impl Drop for Tally<'_> {
    fn drop(&mut self) {
        self.metrics.job_ended(self.outcome);
    }
}
