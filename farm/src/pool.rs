//! The browsers, and the jobs that wait for one: a browser for each slot, and as many further ones while jobs wait and
//! long ones run. Browsers end when they have had no job for some minutes, except the first, and start again when jobs wait.
//!
//! Invariant: a browser has one job at a time, so frames, scripts and crashes of a page cannot affect another job. A
//! browser that exits is replaced. After its number of jobs a browser stays in its slot until its successor is ready,
//! and ends with its last job.

mod pooled_browser;
mod queue;
mod running;
mod state;
mod warm_pages;

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use platen_program::error_chain;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

pub(crate) use self::{
    pooled_browser::PageRequest,
    queue::{can_end_by, has_time},
};
use self::{
    pooled_browser::{PooledBrowser, SharedWarmPages},
    queue::JobQueue,
    warm_pages::WarmPages,
};
use crate::{
    browser::{Browser, Launcher},
    config::Config,
    error::LaunchError,
    metrics::{BrowserEnd, Metrics, PoolState},
};

/// The pause after a start that has failed, and from the start of a browser that has exited without a job, until the next start.
const RESTART_DELAY: Duration = Duration::from_secs(2);

/// A browser that one job has until this is dropped.
pub(crate) type Lease = queue::Lease<PooledBrowser>;

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) queue: JobQueue<PooledBrowser>,
    supervisor: Arc<Supervisor>,
    /// Aborted when the pool is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Pool {
    /// Starts the browsers and returns when the first is ready.
    /// Fails with the error of one start, if all have failed.
    pub(crate) async fn start(
        launcher: Launcher,
        config: Arc<Config>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LaunchError> {
        let browsers = config.browser_count().get();
        let queue_timeout = Duration::from_secs(config.queue_timeout.get().into());
        let queue = JobQueue::new(browsers, config.queue, queue_timeout);
        let supervisor = Arc::new(Supervisor {
            launcher,
            warm: Arc::new(Mutex::new(WarmPages::new(config.warm_bytes()))),
            queue: queue.clone(),
            config,
            metrics,
            started: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&supervisor).keep_spare_pages());
        for index in 0..2 * browsers {
            tasks.spawn(Arc::clone(&supervisor).supervise(index));
        }
        let pool = Self { queue, supervisor, tasks: Mutex::new(tasks) };
        match pool.queue.first().await {
            Ok(first) => {
                let begin_frame_control = first.browser.has_begin_frame_control;
                tracing::info!(
                    product = first.browser.product,
                    begin_frame_control,
                    "first browser is ready"
                );
                Ok(pool)
            }
            Err(error) => {
                pool.close().await;
                Err(error)
            }
        }
    }

    pub(crate) fn state(&self) -> PoolState {
        let mut state = PoolState {
            occupancy: self.queue.occupancy(),
            longest_wait: self.queue.longest_wait(),
            ready: self.queue.ready(),
            warm_pages: self.supervisor.warm.lock().len(),
            spare_pages: 0,
            memory_bytes: 0,
        };
        for pooled in self.supervisor.started() {
            state.spare_pages += usize::from(pooled.has_spare_page());
            state.memory_bytes += pooled.browser.memory_bytes();
        }
        state
    }

    /// Ends all browsers, and completes when their processes and profiles are removed.
    pub(crate) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
        self.queue.state().browsers.clear();
        self.supervisor.started().iter().for_each(|pooled| pooled.browser.kill());
        self.supervisor.launcher.close().await;
    }
}

#[derive(Debug)]
struct Supervisor {
    launcher: Launcher,
    config: Arc<Config>,
    warm: SharedWarmPages,
    metrics: Arc<Metrics>,
    queue: JobQueue<PooledBrowser>,
    started: Mutex<Vec<Weak<PooledBrowser>>>,
}

impl Supervisor {
    fn started(&self) -> Vec<Arc<PooledBrowser>> {
        self.started.lock().iter().filter_map(Weak::upgrade).collect()
    }

    /// Opens the missing spare pages of all browsers while no job has one: at other times they would take the CPU from jobs,
    /// which open their pages themselves at the same cost. Never completes.
    async fn keep_spare_pages(self: Arc<Self>) {
        let mut changes = self.queue.state().changes.subscribe();
        loop {
            self.queue.idle().await;
            self.started().iter().for_each(PooledBrowser::refill);
            let _ = changes.changed().await;
        }
    }

    /// Keeps a browser running until it is idle, from the start if it is one of the slots', else from when jobs ask for
    /// it. The first one is kept at all times. Never completes.
    async fn supervise(self: Arc<Self>, index: usize) {
        let demand = Arc::clone(&self.queue.state().demand);
        let mut is_wanted = index < self.config.browser_count().get();
        let mut old: Option<Arc<PooledBrowser>> = None;
        loop {
            if !is_wanted && let Ok(permit) = demand.acquire().await {
                permit.forget();
            }
            is_wanted = true;
            let Some(new) = self.successor(index, old.as_ref()).await else {
                self.queue.state().end_until_demand(index, None);
                is_wanted = false;
                continue;
            };
            let ready = Instant::now();
            // If the old browser has a job, it ends with that.
            self.queue.state().started(index, old.take().as_ref(), &new);
            tokio::select! {
                () = new.exited() => {
                    self.queue.state().remove(&new);
                    self.report_exit(&new);
                    if new.jobs() == 0 {
                        sleep_until(ready + RESTART_DELAY).await;
                    }
                }
                () = new.recycling.notified() => {
                    self.metrics.browser_ends.of(BrowserEnd::Recycled).inc();
                    old = Some(new);
                }
                () = self.until_idle(index, &new) => {
                    self.queue.state().end_until_demand(index, Some(&new));
                    self.metrics.browser_ends.of(BrowserEnd::Idle).inc();
                    is_wanted = false;
                }
            }
        }
    }

    /// Completes when a browser has had no job between two checks. The first one closes its warm pages instead.
    async fn until_idle(&self, index: usize, pooled: &Arc<PooledBrowser>) {
        let mut jobs = pooled.jobs();
        loop {
            sleep(self.config.idle_check_interval).await;
            let had_jobs = std::mem::replace(&mut jobs, pooled.jobs()) != jobs;
            if had_jobs || self.queue.state().running.has(pooled) {
                continue;
            }
            if index > 0 {
                return;
            }
            pooled.close_warm_pages().await;
        }
    }

    /// Starts a browser, and removes the one that it replaces if that exits meanwhile. `None` if it replaces none, does
    /// not start, and is not the first.
    async fn successor(&self, index: usize, old: Option<&Arc<PooledBrowser>>) -> Option<Arc<PooledBrowser>> {
        let launching = self.launch_until_ready(index, index > 0 && old.is_none());
        tokio::pin!(launching);
        let Some(old) = old else { return launching.await };
        tokio::select! {
            new = &mut launching => new,
            () = old.exited() => {
                self.queue.state().remove(old);
                launching.await
            }
        }
    }

    /// Starts a browser, and tries again after failures until one is ready, unless it is to be tried `once`.
    async fn launch_until_ready(&self, index: usize, once: bool) -> Option<Arc<PooledBrowser>> {
        loop {
            match self.launcher.launch().await {
                Ok(browser) => return Some(self.started_browser(browser)),
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "browser did not start");
                    self.metrics.browser_ends.of(BrowserEnd::StartFailed).inc();
                    self.queue.state().start_failed(index, error);
                }
            }
            sleep(RESTART_DELAY).await;
            if once {
                return None;
            }
        }
    }

    fn started_browser(&self, browser: Browser) -> Arc<PooledBrowser> {
        self.metrics.browser_starts.inc();
        tracing::debug!(product = browser.product, "browser is ready");
        let pooled = Arc::new(PooledBrowser::new(
            browser,
            Arc::clone(&self.config),
            Arc::clone(&self.warm),
            Arc::clone(&self.metrics),
        ));
        let mut started = self.started.lock();
        started.retain(|pooled| pooled.strong_count() > 0);
        started.push(Arc::downgrade(&pooled));
        pooled
    }

    fn report_exit(&self, exited: &PooledBrowser) {
        if exited.is_killed() {
            self.metrics.browser_ends.of(BrowserEnd::Killed).inc();
        } else {
            self.metrics.browser_ends.of(BrowserEnd::Died).inc();
            tracing::warn!(
                jobs = exited.jobs(),
                stderr_tail = exited.browser.stderr_tail(),
                "browser exited unexpectedly; replacing it"
            );
        }
    }
}
