//! A browser in its seat: the pages it has waiting, and its loans.
//!
//! Invariant: a page that has been used goes back to its own account or is closed, and a browser that
//! does not open or close pages is killed. Left to others: which browser a job gets, and when one is
//! replaced (pool).

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering},
};

use platen_shared::id::AccountId;
use tokio::sync::Notify;

use super::{Layout, regulars::Regulars, shelf::Shelf};
use crate::{
    browser::Browser,
    metrics::{Metrics, PageSource, Waiting},
    page::{Page, PageError},
};

/// A browser in its seat, or one that has left it and still has jobs.
#[derive(Debug)]
pub(super) struct Seated {
    pub(super) browser: Browser,
    running: AtomicUsize,
    taken: AtomicU32,
    served: Notify,
    condemned: AtomicBool,
    /// Takes no more jobs, and goes as soon as there is another.
    shunned: AtomicBool,
    shelf: Mutex<Shelf>,
    layout: Layout,
    regulars: Arc<Regulars>,
    metrics: Arc<Metrics>,
}

impl Seated {
    pub(super) fn new(
        browser: Browser,
        layout: Layout,
        regulars: Arc<Regulars>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            browser,
            running: AtomicUsize::new(0),
            taken: AtomicU32::new(0),
            served: Notify::new(),
            condemned: AtomicBool::new(false),
            shunned: AtomicBool::new(false),
            shelf: Mutex::new(Shelf::new(layout.warm_pages)),
            layout,
            regulars,
            metrics,
        }
    }

    /// Whether it takes jobs.
    pub(super) fn is_usable(&self) -> bool {
        !self.condemned.load(Ordering::Relaxed)
            && !self.shunned.load(Ordering::Relaxed)
            && !self.browser.is_closed()
    }

    /// How good a place it is for a job of the account's; the least is the best. A page of the
    /// account's saves more than an idle browser, of which the cores know nothing.
    pub(super) fn rank(&self, account: &AccountId) -> (bool, usize) {
        (!self.shelf().knows(account), self.running.load(Ordering::Relaxed))
    }

    /// Lends it for one job.
    pub(super) fn lend(self: &Arc<Self>) -> Loan {
        self.running.fetch_add(1, Ordering::Relaxed);
        if self.taken.fetch_add(1, Ordering::Relaxed) + 1 == self.layout.recycle_after {
            self.served.notify_one();
        }
        Loan(Arc::clone(self))
    }

    /// Completes when it has had its jobs and wants a successor.
    pub(super) async fn served(&self) {
        self.served.notified().await;
    }

    /// Jobs it has taken.
    pub(super) fn taken(&self) -> u32 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether the farm has killed it.
    pub(super) fn is_condemned(&self) -> bool {
        self.condemned.load(Ordering::Relaxed)
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a page. Must be polled to its end.
    async fn open(&self) -> Result<Page, PageError> {
        let opened = Page::open(&self.browser).await;
        if matches!(opened, Err(PageError::Hangs)) {
            self.condemn("it opens no page");
        }
        opened
    }

    async fn close(&self, page: Page) {
        if let Err(error) = page.close(&self.browser).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "a page was not closed");
            self.condemn("it does not close a page");
        }
    }

    fn condemn(&self, why: &'static str) {
        if !self.condemned.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, product = self.browser.product(), "a browser is killed and replaced");
            self.browser.kill();
        }
    }

    /// Opens the spare pages that are missing, beside everything else.
    pub(super) fn refill(self: &Arc<Self>) {
        if !self.is_usable() {
            return;
        }
        for _ in 0..self.shelf().missing(self.layout.spares()) {
            let seated = Arc::clone(self);
            tokio::spawn(async move {
                let page = seated.open().await;
                if let Err(error) = &page {
                    // Whoever needs a page meets the same error, and reports it.
                    tracing::debug!(error = error as &dyn std::error::Error, "a spare page was not opened");
                }
                seated.shelf().opened(page.ok());
            });
        }
    }
}

/// A browser on loan for one job.
#[derive(Debug)]
pub(crate) struct Loan(Arc<Seated>);

impl Loan {
    /// The browser.
    pub(crate) fn browser(&self) -> &Browser {
        &self.0.browser
    }

    /// Has the browser replaced once a fresh one is up; its jobs may finish.
    pub(crate) fn retire(&self) {
        self.0.served.notify_one();
    }

    /// As [`Loan::retire`], and gives the browser no more jobs meanwhile.
    pub(crate) fn shun(&self) {
        if !self.0.shunned.swap(true, Ordering::Relaxed) {
            tracing::warn!("a browser is replaced because one of its pages holds up the others");
        }
        self.0.served.notify_one();
    }

    /// Ends a browser that does not do what it should; its other jobs are tried elsewhere.
    pub(crate) fn condemn(&self, why: &'static str) {
        self.0.condemn(why);
    }

    /// A page that is ready: the account's own if `reuse`, or else one that nobody has used.
    pub(crate) fn page(&self, account: &AccountId, reuse: bool) -> Option<Page> {
        loop {
            let mut waiting = self.0.shelf();
            let warm = if reuse { waiting.warm(account, Page::is_on_time) } else { None };
            let source = if warm.is_some() { PageSource::Warm } else { PageSource::Spare };
            let mut page = warm.or_else(|| waiting.spare())?;
            drop(waiting);
            if page.lives() {
                self.0.metrics.page_given(source);
                return Some(page);
            }
            let seated = Arc::clone(&self.0);
            tokio::spawn(async move { seated.close(page).await });
        }
    }

    /// Opens a page for a job that found none. Must be polled to its end.
    pub(crate) async fn open(&self) -> Result<Page, PageError> {
        let page = self.0.open().await?;
        self.0.metrics.page_given(PageSource::Opened);
        Ok(page)
    }

    /// Notes a job of an account's that has used its page well; true if the page is worth keeping.
    pub(crate) fn is_worth_keeping(&self, account: &AccountId, page: &Page) -> bool {
        self.0.regulars.greet(account) && page.jobs < self.0.layout.page_jobs
    }

    /// Keeps a page that has been reset for the account that has used it.
    pub(crate) async fn keep(&self, account: AccountId, page: Page) {
        let out = self.0.shelf().keep(account, page);
        if let Some(page) = out {
            self.close(page).await;
        }
    }

    /// Closes a page.
    pub(crate) async fn close(&self, page: Page) {
        self.0.close(page).await;
    }

    /// Notes how a job has waited.
    pub(crate) fn waited(&self, waiting: Waiting) {
        self.0.metrics.job_waited(waiting);
    }

    /// Has spare pages opened where some have been taken.
    pub(crate) fn refill(&self) {
        self.0.refill();
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
