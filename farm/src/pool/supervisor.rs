//! The tasks that start, replace and end the browsers of a pool.
//!
//! Nothing is polled: a task sleeps until its browser's pipe closes, or its browser is to be replaced.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{
    backoff::Backoff,
    pooled_browser::PooledBrowser,
    recent_accounts::RecentAccounts,
    slots::{BrowserSlot, Slots},
};
use crate::{
    Config,
    browser::Launcher,
    error::{LaunchError, error_chain},
    metrics::{BrowserEnd, Metrics, PoolState},
};

/// How long a browser that was started on demand is kept without a job.
const ON_DEMAND_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Starts, replaces and ends the browsers of a pool.
#[derive(Debug)]
pub(super) struct Supervisor {
    launcher: Launcher,
    config: Arc<Config>,
    recent: Arc<RecentAccounts>,
    metrics: Arc<Metrics>,
    pub(super) slots: Slots,
    /// Wakes the task of an empty slot, if there is one, whose browser is started on demand.
    pub(super) demand: Notify,
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
            config,
            metrics,
            slots: Slots::new(browsers),
            demand: Notify::new(),
            started: Mutex::default(),
        }
    }

    /// Ends all browsers, and completes when their processes and profiles are removed. The other tasks of
    /// the supervisor must have been stopped before.
    pub(super) async fn close(&self) {
        self.slots.lock().iter_mut().for_each(|slot| slot.pooled = None);
        let started = std::mem::take(&mut *self.started.lock());
        for pooled in started.iter().filter_map(Weak::upgrade) {
            pooled.browser.kill();
        }
        self.launcher.close().await;
    }

    pub(super) fn state(&self) -> PoolState {
        let running: Vec<Arc<PooledBrowser>> = self.started.lock().iter().filter_map(Weak::upgrade).collect();
        let mut state = PoolState { ready: self.slots.ready(), ..PoolState::default() };
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
            let new = self.successor(slot, old.as_deref(), &mut backoff).await;
            let ready = Instant::now();
            self.slots.change(slot, |slot| {
                *slot = BrowserSlot { pooled: Some(Arc::clone(&new)), ..BrowserSlot::default() }
            });
            new.refill();
            // If the old browser has a job, it ends with that.
            drop(old.take());
            tokio::select! {
                () = new.exited() => {
                    self.slots.change(slot, |slot| slot.pooled = None);
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

    /// Starts a browser in a slot on demand, and ends it after [`ON_DEMAND_IDLE_TIMEOUT`] without a job.
    /// Never completes.
    pub(super) async fn supervise_on_demand(self: Arc<Self>, slot: usize) {
        let mut backoff = Backoff::default();
        loop {
            self.demand.notified().await;
            let new = match self.launch().await {
                Ok(new) => new,
                Err(error) => {
                    tracing::error!(error = error_chain(&error), "browser did not start");
                    backoff.wait().await;
                    continue;
                }
            };
            backoff = Backoff::default();
            self.slots.change(slot, |slot| slot.pooled = Some(Arc::clone(&new)));
            new.refill();
            let exited = tokio::select! {
                () = new.exited() => true,
                () = new.recycling.notified() => false,
                () = self.idle(&new) => false,
            };
            self.slots.change(slot, |slot| slot.pooled = None);
            if exited {
                self.report_exit(&new);
            } else {
                self.metrics.browser_ended(BrowserEnd::Recycled);
            }
        }
    }

    /// Completes when a browser has had no job for [`ON_DEMAND_IDLE_TIMEOUT`].
    async fn idle(&self, pooled: &PooledBrowser) {
        let mut changed = self.slots.changes.subscribe();
        loop {
            let jobs = pooled.jobs();
            tokio::time::sleep(ON_DEMAND_IDLE_TIMEOUT).await;
            if pooled.is_leased() {
                let _ = changed.wait_for(|()| !pooled.is_leased()).await;
            } else if pooled.jobs() == jobs {
                return;
            }
        }
    }

    /// Starts the next browser for a slot, and removes the old one from it if that exits meanwhile.
    async fn successor(
        &self,
        slot: usize,
        old: Option<&PooledBrowser>,
        backoff: &mut Backoff,
    ) -> Arc<PooledBrowser> {
        let launching = self.launch_until_ready(slot, backoff);
        tokio::pin!(launching);
        tokio::select! {
            new = &mut launching => new,
            () = closed(old) => {
                self.slots.change(slot, |slot| slot.pooled = None);
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
                    self.slots.change(slot, |slot| slot.failure = Some(error));
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
            self.slots.changes.clone(),
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

/// Completes when the browser has exited; never if there is none.
async fn closed(browser: Option<&PooledBrowser>) {
    match browser {
        Some(pooled) => pooled.exited().await,
        None => std::future::pending().await,
    }
}
