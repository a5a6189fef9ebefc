//! The browsers: a fixed number of slots, in each of which a task keeps one browser running, and as many
//! further slots whose browsers are started on demand while long jobs hold the others.
//!
//! Invariant: a browser has one job at a time. A browser that exits is replaced. After its number of jobs a
//! browser stays in its slot until its successor is ready, and ends with its last job.

mod backoff;
mod idle_pages;
mod pooled_browser;
mod recent_accounts;
mod slots;
mod supervisor;

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{task::JoinSet, time::timeout};

pub(crate) use self::pooled_browser::{BrowserLease, PageRequest};
use self::{pooled_browser::PooledBrowser, slots::BrowserSlot, supervisor::Supervisor};
use crate::{
    Config,
    browser::Launcher,
    error::LaunchError,
    metrics::{Metrics, PoolState},
};

/// How long a job waits for a running browser before another one is started.
const DEMAND_DELAY: Duration = Duration::from_millis(100);

/// The browsers of a farm.
#[derive(Debug)]
pub(crate) struct Pool {
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
        for slot in 0..browsers {
            tasks.spawn(Arc::clone(&supervisor).supervise(slot));
            tasks.spawn(Arc::clone(&supervisor).supervise_on_demand(browsers + slot));
        }
        let pool = Self { supervisor, tasks: Mutex::new(tasks) };
        let slots = &pool.supervisor.slots;
        let first = slots.wait_for(|slots| slots.iter().find_map(BrowserSlot::usable).cloned()).await;
        if let Some(PooledBrowser { browser, .. }) = first.as_deref() {
            let begin_frame_control = browser.has_begin_frame_control;
            tracing::info!(product = browser.product, begin_frame_control, "first browser is ready");
            return Ok(pool);
        }
        let failure = slots.lock().iter_mut().find_map(|slot| slot.failure.take());
        pool.close().await;
        Err(failure.expect("without a browser, every start has failed"))
    }

    /// Leases a browser, and waits for one while one runs or can be started. It prefers a browser with a page
    /// for the job, and avoids the one with the id `avoid`. `None` if no browser runs and none can be
    /// started.
    pub(crate) async fn lease(
        &self,
        request: &PageRequest<'_>,
        avoid: Option<usize>,
    ) -> Option<BrowserLease> {
        let slots = &self.supervisor.slots;
        let find = |slots: &[BrowserSlot]| {
            let free = slots.iter().filter_map(BrowserSlot::free);
            let best = free.min_by_key(|pooled| {
                (avoid == Some(Arc::as_ptr(pooled).addr()), !pooled.has_page_for(request), pooled.jobs())
            });
            best.map(PooledBrowser::lease)
        };
        // A browser that is closing the page of the previous job is free sooner than a new one is started.
        if let Ok(leased) = timeout(DEMAND_DELAY, slots.wait_for(find)).await {
            return leased;
        }
        self.supervisor.demand.notify_one();
        slots.wait_for(find).await
    }

    /// What the metrics say about the browsers that run.
    pub(crate) fn state(&self) -> PoolState {
        self.supervisor.state()
    }

    /// Browsers that can take jobs, of those that always run.
    pub(crate) fn ready(&self) -> usize {
        self.supervisor.slots.ready()
    }

    /// Ends all browsers, and completes when their processes and profiles are removed.
    pub(crate) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
        self.supervisor.close().await;
    }
}
