//! The browsers: a fixed number of slots, in each of which a supervisor task keeps one browser running,
//! and as many further slots whose browsers are started on demand, while long jobs hold the others.
//!
//! Invariant: a job has a browser to itself. A browser that died is replaced; one that has had its
//! number of jobs stays in its slot until its successor is ready, and goes when its last job is done.
//! While a heavy job runs beside others, one browser more is started than jobs need.
//! Nothing is polled: a supervisor sleeps until its browser's pipe ends or it wants a successor.

mod backoff;
mod idle_pages;
mod pooled_browser;
mod recent_accounts;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::timeout,
};

pub(crate) use self::pooled_browser::{BrowserLease, PageRequest};
use self::{backoff::Backoff, pooled_browser::PooledBrowser, recent_accounts::RecentAccounts};
use crate::{
    browser::{LaunchError, Launcher},
    metrics::{BrowserEnd, Metrics},
};

/// How long a browser that was started on demand is kept without a job.
const ON_DEMAND_IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// How long a job waits for a browser that runs before another one is started.
const DEMAND_DELAY: Duration = Duration::from_millis(100);

/// How a pool is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Browsers that always run.
    pub(crate) browsers: usize,
    /// Jobs after which a browser is replaced.
    pub(crate) recycle_after: u32,
    /// Pages that a browser keeps for accounts.
    pub(crate) warm_pages: usize,
    /// Jobs after which a page is replaced.
    pub(crate) page_jobs: u32,
}

impl Layout {
    /// Pages to have ready in each browser: as many as may be asked for at once.
    const SPARE_PAGES: usize = 1;
}

/// Notifies those who wait for a browser.
#[derive(Debug, Clone, Default)]
struct Changes(Arc<watch::Sender<()>>);

impl Changes {
    fn notify(&self) {
        self.0.send_replace(());
    }
}

/// The browsers of a farm.
#[derive(Debug)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
    /// Aborted with the pool.
    supervisors: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Shared {
    launcher: Launcher,
    layout: Layout,
    recent: Arc<RecentAccounts>,
    metrics: Arc<Metrics>,
    /// Those that always have a browser, then those on demand.
    slots: Mutex<Vec<BrowserSlot>>,
    /// Wakes one supervisor of a slot on demand.
    demand: Notify,
    /// Every browser that may still run, so that the last of them can be ended.
    all: Mutex<Vec<Weak<PooledBrowser>>>,
    /// A slot has changed, or a lease has ended.
    changes: Changes,
}

#[derive(Debug, Default)]
struct BrowserSlot {
    pooled: Option<Arc<PooledBrowser>>,
    /// Why the latest start failed.
    failure: Option<LaunchError>,
    /// A browser is being started on demand.
    starting: bool,
}

impl BrowserSlot {
    /// The browser, unless it is dead and its supervisor has yet to notice.
    fn usable(&self) -> Option<&Arc<PooledBrowser>> {
        self.pooled.as_ref().filter(|pooled| pooled.is_usable())
    }

    /// The browser, if a job can have it now.
    fn free(&self) -> Option<&Arc<PooledBrowser>> {
        self.usable().filter(|pooled| !pooled.is_leased())
    }
}

impl Pool {
    /// Starts the browsers and returns when the first is ready.
    ///
    /// # Errors
    /// Why one of them failed, when all did.
    pub(crate) async fn start(
        launcher: Launcher,
        layout: Layout,
        metrics: Arc<Metrics>,
    ) -> Result<Self, LaunchError> {
        let shared = Arc::new(Shared {
            launcher,
            layout,
            // The page of an account after which as many others had jobs was evicted anyway.
            recent: Arc::new(RecentAccounts::new(2 * layout.browsers * layout.warm_pages)),
            metrics,
            slots: Mutex::new((0..2 * layout.browsers).map(|_| BrowserSlot::default()).collect()),
            demand: Notify::new(),
            all: Mutex::default(),
            changes: Changes::default(),
        });
        let mut supervisors = JoinSet::new();
        for slot in 0..layout.browsers {
            supervisors.spawn(Arc::clone(&shared).supervise(slot));
            supervisors.spawn(Arc::clone(&shared).supervise_on_demand(layout.browsers + slot));
        }
        supervisors.spawn(Arc::clone(&shared).keep_reserve());
        let pool = Self { shared, supervisors: Mutex::new(supervisors) };
        if pool.shared.until(|slots| slots.iter().find_map(BrowserSlot::usable).map(|_| ())).await.is_some() {
            return Ok(pool);
        }
        let failure = pool.shared.slots().iter_mut().find_map(|slot| slot.failure.take());
        pool.close().await;
        Err(failure.expect("without a browser, every start has failed"))
    }

    /// Leases a browser, waiting for one while one runs or can be started: preferably one with a page
    /// for the job, and not the one with the id `avoid`. `None` when there is no browser and none can be
    /// started.
    pub(crate) async fn lease(
        &self,
        request: &PageRequest<'_>,
        avoid: Option<usize>,
    ) -> Option<BrowserLease> {
        let shared = &self.shared;
        let find = |slots: &[BrowserSlot]| {
            let free = slots.iter().filter_map(BrowserSlot::free);
            let best = free.min_by_key(|pooled| {
                (avoid == Some(Arc::as_ptr(pooled).addr()), !pooled.has_page_for(request), pooled.jobs())
            });
            best.map(PooledBrowser::lease)
        };
        // One that closes the page of an earlier try is free sooner than another could be started.
        if let Ok(leased) = timeout(DEMAND_DELAY, shared.until(find)).await {
            return leased;
        }
        shared.demand.notify_one();
        shared.until(find).await
    }

    /// How many of the browsers that should always run are ready.
    pub(crate) fn ready(&self) -> usize {
        let slots = self.shared.slots();
        slots[..self.shared.layout.browsers].iter().filter(|slot| slot.usable().is_some()).count()
    }

    /// Name and version of the browsers.
    pub(crate) fn product(&self) -> String {
        let slots = self.shared.slots();
        let pooled = slots.iter().find_map(|slot| slot.pooled.as_ref());
        pooled.map(|pooled| pooled.browser.product().to_owned()).unwrap_or_default()
    }

    /// Whether frames are drawn on command.
    pub(crate) fn draws_on_command(&self) -> bool {
        let slots = self.shared.slots();
        slots.iter().filter_map(|slot| slot.pooled.as_ref()).any(|pooled| pooled.browser.draws_on_command())
    }

    /// Ends every browser and returns when the last one's processes and profile are gone.
    pub(crate) async fn close(&self) {
        let mut supervisors =
            std::mem::take(&mut *self.supervisors.lock().unwrap_or_else(PoisonError::into_inner));
        supervisors.shutdown().await;
        self.shared.slots().iter_mut().for_each(|slot| slot.pooled = None);
        let all = std::mem::take(&mut *self.shared.all.lock().unwrap_or_else(PoisonError::into_inner));
        for pooled in all.iter().filter_map(Weak::upgrade) {
            pooled.browser.kill();
        }
        self.shared.launcher.close().await;
    }
}

impl Shared {
    fn slots(&self) -> MutexGuard<'_, Vec<BrowserSlot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, slot: usize, change: impl FnOnce(&mut BrowserSlot)) {
        change(&mut self.slots()[slot]);
        self.changes.notify();
    }

    /// Waits until `find` finds something, or until there is no browser and every start has failed.
    async fn until<T>(&self, find: impl Fn(&[BrowserSlot]) -> Option<T>) -> Option<T> {
        let mut changed = self.changes.0.subscribe();
        loop {
            changed.borrow_and_update();
            {
                let slots = self.slots();
                if let Some(found) = find(&slots) {
                    return Some(found);
                }
                let none_runs = slots.iter().all(|slot| slot.usable().is_none());
                if none_runs && slots[..self.layout.browsers].iter().all(|slot| slot.failure.is_some()) {
                    return None;
                }
            }
            if changed.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Keeps a browser running in a slot, until it is aborted.
    async fn supervise(self: Arc<Self>, slot: usize) {
        let mut old: Option<Arc<PooledBrowser>> = None;
        let mut backoff = Backoff::default();
        loop {
            let new = self.successor(slot, old.as_deref(), &mut backoff).await;
            self.change(slot, |slot| {
                *slot = BrowserSlot { pooled: Some(Arc::clone(&new)), ..BrowserSlot::default() }
            });
            new.refill();
            // The old one goes with its last job.
            drop(old.take());
            tokio::select! {
                () = new.browser.closed() => {
                    self.change(slot, |slot| slot.pooled = None);
                    self.report(&new);
                    if new.jobs() == 0 {
                        backoff.wait().await;
                    } else {
                        backoff = Backoff::default();
                    }
                }
                () = new.wants_successor() => {
                    self.metrics.browser_ended(BrowserEnd::Recycled);
                    old = Some(new);
                }
            }
        }
    }

    /// Starts a browser in a slot when one is wanted, and ends it when it was idle for a while.
    async fn supervise_on_demand(self: Arc<Self>, slot: usize) {
        loop {
            self.demand.notified().await;
            self.slots()[slot].starting = true;
            let launched = self.launch().await;
            self.slots()[slot].starting = false;
            let new = match launched {
                Ok(new) => new,
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "a browser did not start");
                    Backoff::default().wait().await;
                    continue;
                }
            };
            self.change(slot, |slot| slot.pooled = Some(Arc::clone(&new)));
            new.refill();
            let died = tokio::select! {
                () = new.browser.closed() => true,
                () = new.wants_successor() => false,
                () = self.is_idle(&new) => false,
            };
            self.change(slot, |slot| slot.pooled = None);
            if died {
                self.report(&new);
            } else {
                self.metrics.browser_ended(BrowserEnd::Recycled);
            }
        }
    }

    /// Has a browser started in advance while heavy jobs hold all the others, so that a job of another
    /// account does not wait until one is started.
    async fn keep_reserve(self: Arc<Self>) {
        let mut changed = self.changes.0.subscribe();
        while changed.changed().await.is_ok() {
            let slots = self.slots();
            let has_heavy =
                slots.iter().filter_map(BrowserSlot::usable).any(|pooled| pooled.is_low_priority());
            if has_heavy && slots.iter().all(|slot| slot.free().is_none() && !slot.starting) {
                self.demand.notify_one();
            }
        }
    }

    /// Completes when a browser has had no job for a while.
    async fn is_idle(&self, pooled: &PooledBrowser) {
        let mut changed = self.changes.0.subscribe();
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

    /// Starts the next browser for a slot, and takes the old one out should it die meanwhile.
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
                self.change(slot, |slot| slot.pooled = None);
                launching.await
            }
        }
    }

    /// Starts a browser, again and again until one is ready.
    async fn launch_until_ready(&self, slot: usize, backoff: &mut Backoff) -> Arc<PooledBrowser> {
        loop {
            match self.launch().await {
                Ok(pooled) => return pooled,
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "a browser did not start");
                    self.change(slot, |slot| slot.failure = Some(error));
                }
            }
            backoff.wait().await;
        }
    }

    async fn launch(&self) -> Result<Arc<PooledBrowser>, LaunchError> {
        let launched = self.launcher.launch().await;
        let browser = launched.inspect_err(|_| self.metrics.browser_ended(BrowserEnd::StartFailed))?;
        self.metrics.browser_started();
        tracing::debug!(product = browser.product(), "a browser is ready");
        let pooled = Arc::new(PooledBrowser::new(
            browser,
            self.layout,
            Arc::clone(&self.recent),
            Arc::clone(&self.metrics),
            self.changes.clone(),
        ));
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|pooled| pooled.strong_count() > 0);
        all.push(Arc::downgrade(&pooled));
        Ok(pooled)
    }

    fn report(&self, dead: &PooledBrowser) {
        if dead.is_killed() {
            self.metrics.browser_ended(BrowserEnd::Killed);
        } else {
            self.metrics.browser_ended(BrowserEnd::Died);
            tracing::warn!(
                jobs = dead.jobs(),
                stderr_tail = dead.browser.stderr_tail(),
                "a browser died and is replaced"
            );
        }
    }
}

async fn closed(browser: Option<&PooledBrowser>) {
    match browser {
        Some(pooled) => pooled.browser.closed().await,
        None => std::future::pending().await,
    }
}
