//! A browser of the pool: its idle pages and its lease.
//!
//! Invariant: at most one job has it at a time, so no page's frame, script or crash meets another job in
//! its process; a page that was used goes back to its own account or is closed; a browser that does not
//! open or close pages is killed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platen_shared::{id::AccountId, job::DeviceScaleFactor};
use tokio::sync::Notify;

use super::{Changes, Layout, idle_pages::IdlePages, recent_accounts::RecentAccounts};
use crate::{
    browser::{BackgroundBrowser, Browser},
    metrics::{Metrics, PageSource, Waiting},
    page::{Page, PageError},
};

/// Renderers that may die one after the other while pages are opened, before their browser is replaced.
const MAX_OPEN_CRASHES: u32 = 3;

/// Which idle page a job may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageRequest<'a> {
    pub(crate) account: &'a AccountId,
    /// Whether a page of the account's own may be used again: not by a job that loads an origin, which
    /// closes its page afterwards.
    pub(crate) reuse: bool,
    pub(crate) scale_factor: DeviceScaleFactor,
}

impl PageRequest<'_> {
    /// Whether a page may be used again by this job: conditions that hold for a whole process must be
    /// the same.
    fn fits(&self, page: &Page) -> bool {
        self.reuse && page.scale_factor.is_none_or(|factor| factor == self.scale_factor)
    }
}

/// What a browser is to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It takes jobs.
    Serving,
    /// It takes jobs until its successor is ready.
    Recycling,
    /// The farm has killed it.
    Killed,
}

/// A browser in its slot, or one that has left it and still has a job.
#[derive(Debug)]
pub(super) struct PooledBrowser {
    pub(super) browser: Browser,
    status: Mutex<Status>,
    /// Notified when it wants a successor.
    wants_successor: Notify,
    idle_pages: Mutex<IdlePages>,
    layout: Layout,
    recent: Arc<RecentAccounts>,
    metrics: Arc<Metrics>,
    changes: Changes,
}

#[derive(Debug)]
struct Status {
    state: State,
    leased: bool,
    jobs: u32,
    open_crashes: u32,
    /// Its priority was lowered because its job is heavy.
    low_priority: Option<BackgroundBrowser>,
}

impl PooledBrowser {
    pub(super) fn new(
        browser: Browser,
        layout: Layout,
        recent: Arc<RecentAccounts>,
        metrics: Arc<Metrics>,
        changes: Changes,
    ) -> Self {
        Self {
            browser,
            status: Mutex::new(Status {
                state: State::Serving,
                leased: false,
                jobs: 0,
                open_crashes: 0,
                low_priority: None,
            }),
            wants_successor: Notify::new(),
            idle_pages: Mutex::new(IdlePages::new(layout.warm_pages)),
            layout,
            recent,
            metrics,
            changes,
        }
    }

    /// Whether it can take jobs.
    pub(super) fn is_usable(&self) -> bool {
        self.status().state != State::Killed && !self.browser.is_closed()
    }

    /// Whether a job has it.
    pub(super) fn is_leased(&self) -> bool {
        self.status().leased
    }

    /// Whether its job runs at a low priority.
    pub(super) fn is_low_priority(&self) -> bool {
        self.status().low_priority.is_some()
    }

    /// Whether it has an idle page that the job may use again.
    pub(super) fn has_page_for(&self, request: &PageRequest<'_>) -> bool {
        self.idle_pages().has_warm(request.account, |page| request.fits(page))
    }

    /// Leases it for one job. It must not be leased.
    pub(super) fn lease(self: &Arc<Self>) -> BrowserLease {
        let mut status = self.status();
        debug_assert!(!status.leased, "one job a browser");
        status.leased = true;
        status.jobs += 1;
        if status.jobs == self.layout.recycle_after {
            status.state = State::Recycling;
            self.wants_successor.notify_one();
        }
        drop(status);
        BrowserLease(Arc::clone(self))
    }

    /// Completes when it wants a successor.
    pub(super) async fn wants_successor(&self) {
        self.wants_successor.notified().await;
    }

    /// Jobs it has had.
    pub(super) fn jobs(&self) -> u32 {
        self.status().jobs
    }

    /// Whether the farm has killed it.
    pub(super) fn is_killed(&self) -> bool {
        self.status().state == State::Killed
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn idle_pages(&self) -> MutexGuard<'_, IdlePages> {
        self.idle_pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a page. Must be polled to its end.
    async fn open(&self) -> Result<Page, PageError> {
        let opened = Page::open(&self.browser).await;
        match &opened {
            Ok(_) => self.status().open_crashes = 0,
            Err(PageError::Hangs) => self.kill("it opens no page"),
            Err(PageError::Crashed) => {
                let crashes = {
                    let mut status = self.status();
                    status.open_crashes += 1;
                    status.open_crashes
                };
                tracing::warn!(crashes, "a renderer died while a page was opened");
                if crashes >= MAX_OPEN_CRASHES {
                    self.kill("its renderers die while pages are opened");
                }
            }
            Err(PageError::Cdp(_) | PageError::PageProxy(_)) => {}
        }
        opened
    }

    async fn close(&self, page: Page) {
        if let Err(error) = page.close(&self.browser).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a page was not closed");
            self.kill("it does not close a page");
        }
    }

    fn kill(&self, reason: &'static str) {
        if std::mem::replace(&mut self.status().state, State::Killed) != State::Killed {
            tracing::warn!(reason, product = self.browser.product(), "a browser is killed and replaced");
            self.browser.kill();
        }
    }

    /// Opens a spare page if there is none, in the background.
    pub(super) fn refill(self: &Arc<Self>) {
        if !self.is_usable() {
            return;
        }
        for _ in 0..self.idle_pages().missing(Layout::SPARE_PAGES) {
            let pooled = Arc::clone(self);
            tokio::spawn(async move {
                let page = pooled.open().await;
                if let Err(error) = &page {
                    // A job that needs a page meets the same error and reports it.
                    tracing::debug!(error = error as &dyn std::error::Error, "a spare page was not opened");
                }
                pooled.idle_pages().opened(page.ok());
            });
        }
    }
}

/// A browser that one job has, until it is dropped.
#[derive(Debug)]
pub(crate) struct BrowserLease(Arc<PooledBrowser>);

impl BrowserLease {
    /// The browser.
    pub(crate) fn browser(&self) -> &Browser {
        &self.0.browser
    }

    /// What tells this browser from the others of its pool, living or dead.
    pub(crate) fn id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Has the browser replaced once its successor is ready.
    pub(crate) fn recycle(&self) {
        let mut status = self.0.status();
        if status.state == State::Serving {
            status.state = State::Recycling;
            self.0.wants_successor.notify_one();
        }
    }

    /// Lowers the priority of the browser until the lease ends.
    pub(crate) fn lower_priority(&self) {
        let background = self.browser().lower_priority();
        self.0.status().low_priority = Some(background);
        self.0.changes.notify();
    }

    /// Ends a browser that does not do what it should.
    pub(crate) fn kill(&self, reason: &'static str) {
        self.0.kill(reason);
    }

    /// A page that is ready: one of the account's own, or else one that was never used.
    pub(crate) fn page(&self, request: &PageRequest<'_>) -> Option<Page> {
        loop {
            let mut idle = self.0.idle_pages();
            let warm = idle.warm(request.account, |page| request.fits(page));
            let source = if warm.is_some() { PageSource::Warm } else { PageSource::Spare };
            let mut page = warm.or_else(|| idle.spare())?;
            drop(idle);
            if page.is_alive() {
                self.0.metrics.page_given(source);
                return Some(page);
            }
            let pooled = Arc::clone(&self.0);
            tokio::spawn(async move { pooled.close(page).await });
        }
    }

    /// Opens a page for a job that found none. Must be polled to its end.
    pub(crate) async fn open(&self) -> Result<Page, PageError> {
        let page = self.0.open().await?;
        self.0.metrics.page_given(PageSource::Opened);
        Ok(page)
    }

    /// Records a job of an account's that has used its page well; true if the page is worth keeping.
    pub(crate) fn is_worth_keeping(&self, account: &AccountId, page: &Page) -> bool {
        self.0.recent.record(account) && page.jobs < self.0.layout.page_jobs
    }

    /// Keeps a page that has been reset for the account that has used it.
    pub(crate) async fn keep(&self, account: AccountId, page: Page) {
        let evicted = self.0.idle_pages().keep(account, page);
        if let Some(page) = evicted {
            self.close(page).await;
        }
    }

    /// Closes a page.
    pub(crate) async fn close(&self, page: Page) {
        self.0.close(page).await;
    }

    /// Records how a job has waited.
    pub(crate) fn waited(&self, waiting: Waiting) {
        self.0.metrics.job_waited(waiting);
    }

    /// Has a spare page opened where one was taken.
    pub(crate) fn refill(&self) {
        self.0.refill();
    }
}

impl Drop for BrowserLease {
    fn drop(&mut self) {
        // It no longer is in the background when the next job may have it.
        let had_low_priority = self.0.status().low_priority.take().is_some();
        if had_low_priority && !self.browser().restore_priority() {
            self.recycle();
        }
        self.0.status().leased = false;
        self.0.changes.notify();
    }
}
