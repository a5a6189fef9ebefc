//! The browsers, and the jobs that wait for one: a fixed number of slots, in each of which a task keeps one browser
//! running, and as many further browsers that are started while jobs wait and long ones run.
//!
//! Invariant: a browser has one job at a time, so frames, scripts and crashes of a page cannot affect another job. A
//! browser that exits is replaced. After its number of jobs a browser stays in its slot until its successor is ready,
//! and ends with its last job.

mod pooled_browser;
mod queue;
mod running;
mod spare_pages;
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

use self::{
    pooled_browser::{PooledBrowser, SharedWarmPages},
    queue::JobQueue,
    warm_pages::WarmPages,
};
pub(crate) use self::{
    pooled_browser::PageRequest,
    queue::{can_end_by, has_time},
};
use crate::{
    Config,
    browser::Launcher,
    error::LaunchError,
    metrics::{BrowserEnd, Metrics, PoolState},
};

/// After a start that has failed, and from the start of a browser that has exited without a job, until the next start.
const RESTART_DELAY: Duration = Duration::from_secs(2);
/// How often it is checked whether a browser beyond the slots still has jobs.
const EXTRA_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// A browser that one job has until this is dropped.
pub(crate) type Lease = queue::Lease<PooledBrowser>;

/// The browsers of a farm.
#[derive(Debug)]
pub(crate) struct Pool {
    /// Gives browsers to jobs.
    pub(crate) queue: JobQueue<PooledBrowser>,
    supervisor: Arc<Supervisor>,
    /// Aborted when the pool is dropped.
    tasks: Mutex<JoinSet<()>>,
}

impl Pool {
    /// Starts the browsers and returns when the first is ready.
    ///
    /// # Errors
    /// The error of one start, if all have failed.
    pub(crate) async fn start(
        launcher: Launcher,
        config: Arc<Config>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LaunchError> {
        let browsers = config.browser_count().get();
        let supervisor = Arc::new(Supervisor::new(launcher, config, metrics));
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&supervisor).keep_spare_pages());
        for slot in 0..browsers {
            tasks.spawn(Arc::clone(&supervisor).supervise(slot));
            tasks.spawn(Arc::clone(&supervisor).supervise_extra());
        }
        let queue = supervisor.queue.clone();
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

    /// What the metrics say about the browsers that run.
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
            state.spare_pages += pooled.spare_pages();
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

/// Starts and replaces the browsers of a pool.
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
    fn new(launcher: Launcher, config: Arc<Config>, metrics: Arc<Metrics>) -> Self {
        let browsers = config.browser_count().get();
        Self {
            launcher,
            warm: Arc::new(Mutex::new(WarmPages::new(config.warm_bytes()))),
            queue: JobQueue::new(browsers, config.queue),
            config,
            metrics,
            started: Mutex::default(),
        }
    }

    /// All browsers that still run.
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

    /// Keeps a browser running in a slot. Never completes.
    async fn supervise(self: Arc<Self>, slot: usize) {
        let mut old: Option<Arc<PooledBrowser>> = None;
        loop {
            let new = self.successor(slot, old.as_ref()).await;
            let ready = Instant::now();
            // If the old browser has a job, it ends with that.
            self.queue.state().started(slot, old.take().as_ref(), &new);
            tokio::select! {
                () = new.exited() => {
                    self.queue.state().remove(&new);
                    self.report_exit(&new);
                    if new.jobs() == 0 {
                        sleep_until(ready + RESTART_DELAY).await;
                    }
                }
                () = new.recycling.notified() => {
                    self.metrics.browser_ended(BrowserEnd::Recycled);
                    old = Some(new);
                }
            }
        }
    }

    /// Starts a browser for each permit of the queue, and ends it when it has had no job for a while. Never completes.
    async fn supervise_extra(self: Arc<Self>) {
        let demand = Arc::clone(&self.queue.state().demand);
        loop {
            if let Ok(permit) = demand.acquire().await {
                permit.forget();
            }
            match self.launch().await {
                Ok(new) => {
                    self.queue.state().add(&new);
                    let exited = tokio::select! {
                        () = new.exited() => true,
                        () = new.recycling.notified() => false,
                        () = idle(&new) => false,
                    };
                    self.queue.state().remove(&new);
                    if exited {
                        self.report_exit(&new);
                    } else {
                        self.metrics.browser_ended(BrowserEnd::Recycled);
                    }
                }
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "browser did not start");
                    sleep(RESTART_DELAY).await;
                }
            }
            let mut state = self.queue.state();
            state.extra -= 1;
            state.dispatch();
        }
    }

    /// Starts the next browser for a slot, and removes the old one if that exits meanwhile.
    async fn successor(&self, slot: usize, old: Option<&Arc<PooledBrowser>>) -> Arc<PooledBrowser> {
        let launching = self.launch_until_ready(slot);
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

    /// Starts a browser, and retries until one is ready.
    async fn launch_until_ready(&self, slot: usize) -> Arc<PooledBrowser> {
        loop {
            match self.launch().await {
                Ok(pooled) => return pooled,
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "browser did not start");
                    self.queue.state().start_failed(slot, error);
                }
            }
            sleep(RESTART_DELAY).await;
        }
    }

    async fn launch(&self) -> Result<Arc<PooledBrowser>, LaunchError> {
        let launched = self.launcher.launch().await;
        let browser = launched.inspect_err(|_| self.metrics.browser_ended(BrowserEnd::StartFailed))?;
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
        Ok(pooled)
    }

    fn report_exit(&self, exited: &PooledBrowser) {
        if exited.is_killed() {
            self.metrics.browser_ended(BrowserEnd::Killed);
        } else {
            self.metrics.browser_ended(BrowserEnd::Died);
            tracing::warn!(
                jobs = exited.jobs(),
                stderr_tail = exited.browser.stderr_tail(),
                "browser exited unexpectedly; replacing it"
            );
        }
    }
}

/// Completes when a browser has had no job between two checks.
async fn idle(pooled: &PooledBrowser) {
    let mut jobs = None;
    // A lease ends long before the next check.
    while jobs.replace(pooled.jobs()) != Some(pooled.jobs()) {
        sleep(EXTRA_IDLE_TIMEOUT).await;
    }
}
