//! The tasks that start, replace and end the browsers of a pool.
//!
//! Nothing is polled: a task sleeps until its browser's pipe closes, or its browser is to be replaced.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use platen_program::error_chain;
use tokio::time::Instant;

use super::{idle_pages::RecentAccounts, pooled_browser::PooledBrowser, queue::JobQueue};
use crate::{
    Config,
    browser::Launcher,
    error::LaunchError,
    metrics::{BrowserEnd, Metrics, PoolState},
};

/// How often it is checked whether a browser beyond the slots still has jobs.
const EXTRA_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Starts, replaces and ends the browsers of a pool.
#[derive(Debug)]
pub(super) struct Supervisor {
    launcher: Launcher,
    config: Arc<Config>,
    recent: Arc<RecentAccounts>,
    metrics: Arc<Metrics>,
    pub(super) queue: JobQueue<PooledBrowser>,
    /// All browsers that may still run, so that [`Supervisor::close`] can end them.
    started: Mutex<Vec<Weak<PooledBrowser>>>,
}

impl Supervisor {
    pub(super) fn new(launcher: Launcher, config: Arc<Config>, metrics: Arc<Metrics>) -> Self {
        let browsers = config.browser_count().get();
        Self {
            launcher,
            // After jobs of this many other accounts, an account's page has been evicted in any case.
            recent: Arc::new(RecentAccounts::new(2 * browsers * config.warm_pages)),
            queue: JobQueue::new(browsers, config.queue),
            config,
            metrics,
            started: Mutex::default(),
        }
    }

    /// Ends all browsers, and completes when their processes and profiles are removed. The other tasks of
    /// the supervisor must have been stopped before.
    pub(super) async fn close(&self) {
        self.queue.state().browsers.clear();
        let started = std::mem::take(&mut *self.started.lock());
        for pooled in started.iter().filter_map(Weak::upgrade) {
            pooled.browser.kill();
        }
        self.launcher.close().await;
    }

    pub(super) fn state(&self) -> PoolState {
        let running: Vec<Arc<PooledBrowser>> = self.started.lock().iter().filter_map(Weak::upgrade).collect();
        let mut state = PoolState { ready: self.queue.ready(), ..PoolState::default() };
        for pooled in running {
            let (warm, spare) = pooled.idle_pages();
            state.warm_pages += warm;
            state.spare_pages += spare;
            state.memory_bytes += pooled.browser.memory_bytes();
        }
        state
    }

    /// Keeps a browser running in a slot. Never completes.
    pub(super) async fn supervise(self: Arc<Self>, slot: usize) {
        let mut old: Option<Arc<PooledBrowser>> = None;
        let mut backoff = Backoff::default();
        loop {
            let new = self.successor(slot, old.as_ref(), &mut backoff).await;
            let ready = Instant::now();
            // If the old browser has a job, it ends with that.
            self.queue.state().started(slot, old.take().as_ref(), &new);
            new.refill();
            tokio::select! {
                () = new.exited() => {
                    self.queue.state().remove(&new);
                    self.report_exit(&new);
                    backoff.wait_after_exit(ready.elapsed(), new.jobs()).await;
                }
                () = new.recycling.notified() => {
                    self.metrics.browser_ended(BrowserEnd::Recycled);
                    old = Some(new);
                }
            }
        }
    }

    /// Starts a browser for each permit of the queue, and ends it when it has had no job for a while. Never completes.
    pub(super) async fn supervise_extra(self: Arc<Self>) {
        let demand = Arc::clone(&self.queue.state().demand);
        let mut backoff = Backoff::default();
        loop {
            if let Ok(permit) = demand.acquire().await {
                permit.forget();
            }
            match self.launch().await {
                Ok(new) => {
                    backoff = Backoff::default();
                    self.queue.state().add(&new);
                    new.refill();
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
                    backoff.wait().await;
                }
            }
            let mut state = self.queue.state();
            state.extra -= 1;
            state.dispatch();
        }
    }

    /// Starts the next browser for a slot, and removes the old one if that exits meanwhile.
    async fn successor(
        &self,
        slot: usize,
        old: Option<&Arc<PooledBrowser>>,
        backoff: &mut Backoff,
    ) -> Arc<PooledBrowser> {
        let launching = self.launch_until_ready(slot, backoff);
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
    async fn launch_until_ready(&self, slot: usize, backoff: &mut Backoff) -> Arc<PooledBrowser> {
        loop {
            match self.launch().await {
                Ok(pooled) => return pooled,
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "browser did not start");
                    self.queue.state().start_failed(slot, error);
                }
            }
            backoff.wait().await;
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
            Arc::clone(&self.recent),
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
        tokio::time::sleep(EXTRA_IDLE_TIMEOUT).await;
    }
}

/// Delay after the first failed start; it doubles with each further one.
const MIN_DELAY: Duration = Duration::from_millis(250);
/// More frequent retries only cost CPU on a machine that cannot start browsers.
const MAX_DELAY: Duration = Duration::from_secs(15);

/// A browser that ran for this long has not failed to start.
const MIN_UPTIME: Duration = Duration::from_secs(5);

/// The delay before a browser is started after failures: a start that failed, or a browser that exited soon.
pub(super) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(MIN_DELAY)
    }
}

impl Backoff {
    /// Waits before the successor of a browser that has exited. There is no delay if it had jobs or ran for a while.
    pub(super) async fn wait_after_exit(&mut self, uptime: Duration, jobs: u32) {
        if jobs > 0 || uptime >= MIN_UPTIME {
            *self = Self::default();
        } else {
            self.wait().await;
        }
    }

    pub(super) async fn wait(&mut self) {
        let delay = self.0;
        self.0 = (delay * 2).min(MAX_DELAY);
        tokio::time::sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_delay_grows_only_while_browsers_exit_soon_after_their_start() {
        let mut backoff = Backoff::default();
        for doubled in [1, 2, 4, 8] {
            let before = Instant::now();
            backoff.wait_after_exit(Duration::from_secs(1), 0).await;
            assert_eq!(before.elapsed(), MIN_DELAY * doubled);
        }
        for (uptime, jobs) in [(MIN_UPTIME, 0), (Duration::ZERO, 1)] {
            let before = Instant::now();
            backoff.wait_after_exit(uptime, jobs).await;
            assert_eq!(before.elapsed(), Duration::ZERO);
            backoff.wait().await;
            assert_eq!(before.elapsed(), MIN_DELAY);
        }
    }
}
