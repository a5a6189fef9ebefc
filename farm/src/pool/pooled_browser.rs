//! A browser of the pool, with its spare page.
//!
//! Invariant: a used page is kept for its own account or closed. A browser that does not open or close pages is
//! killed.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use platen_program::error_chain;
use platen_shared::{id::AccountId, job::RenderJob};
use tokio::sync::Notify;

use super::{
    running::PoolMember,
    warm_pages::{PAGE_BYTES, WarmPage, WarmPages},
};
use crate::{
    browser::Browser,
    config::Config,
    metrics::{Metrics, PageSource},
    page::{Page, PageError, PageKind, Reader},
};

/// Consecutive renderer crashes while pages are opened, after which the browser is replaced.
const MAX_OPEN_CRASHES: u32 = 3;

/// Jobs of a page. A new page costs about 60 ms of CPU, which is 0.25 ms per job, and bounds the memory that a renderer
/// process leaks.
const MAX_PAGE_JOBS: u32 = 250;

/// Jobs of a page whose documents have addresses. Its renderer grows by 0.3 MiB per job, also if its garbage is collected.
const MAX_ADDRESS_JOBS: u32 = 50;

/// The idle pages that a job may use.
#[derive(Debug, Clone)]
pub(crate) struct PageRequest {
    pub(crate) account: AccountId,
    /// Whether the job may use a page again, and leave its page for the next one. A warm page would be wasted on a job whose page
    /// is closed afterwards.
    pub(crate) reuse: bool,
    pub(crate) kind: PageKind,
    pub(crate) reader: Reader,
    pub(crate) avoid: Option<usize>,
}

impl PageRequest {
    pub(crate) fn new(job: &RenderJob, reuse: bool) -> Self {
        let scale_factor = job.options.viewport.device_scale_factor;
        Self {
            account: job.account.clone(),
            reuse,
            kind: PageKind { scale_factor, has_address: job.has_address() },
            reader: Reader::of(&job.options),
            avoid: None,
        }
    }

    /// Whether the job may use this page, which its account has used before.
    pub(super) fn fits(&self, page: &Page) -> bool {
        self.reuse
            && page.kind.is_none_or(|kind| kind == self.kind)
            && (page.jobs == 0 || page.overrides.reader == self.reader)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// It takes jobs.
    #[default]
    Serving,
    /// It takes jobs until its successor is ready.
    Recycling,
    /// The farm killed it.
    Killed,
}

pub(super) type SharedWarmPages = Arc<Mutex<WarmPages<KeptPage>>>;

/// A page that no account has used. There is one at most, because a browser has one job at a time.
#[derive(Debug, Default)]
struct SparePage {
    page: Option<Page>,
    is_opening: bool,
}

#[derive(Debug)]
pub(super) struct KeptPage {
    page: Page,
    browser: Weak<PooledBrowser>,
}

/// A browser in a slot, or one that was replaced and still has a job.
#[derive(Debug)]
pub(crate) struct PooledBrowser {
    pub(crate) browser: Browser,
    status: Mutex<Status>,
    /// Notified when its state becomes [`State::Recycling`].
    pub(super) recycling: Notify,
    spare: Mutex<SparePage>,
    warm: SharedWarmPages,
    config: Arc<Config>,
    pub(crate) metrics: Arc<Metrics>,
}

#[derive(Debug, Default)]
struct Status {
    state: State,
    jobs: u32,
    open_crashes: u32,
}

impl PooledBrowser {
    pub(super) fn new(
        browser: Browser,
        config: Arc<Config>,
        warm: SharedWarmPages,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            browser,
            status: Mutex::default(),
            recycling: Notify::new(),
            spare: Mutex::default(),
            warm,
            config,
            metrics,
        }
    }

    /// Requests that it is replaced when its successor is ready.
    pub(crate) fn recycle(&self) {
        let mut status = self.status.lock();
        if status.state == State::Serving {
            status.state = State::Recycling;
            self.recycling.notify_one();
        }
    }

    pub(super) fn has_spare_page(&self) -> bool {
        self.spare.lock().page.is_some()
    }

    /// Jobs so far, including the current one.
    pub(super) fn jobs(&self) -> u32 {
        self.status.lock().jobs
    }

    pub(super) fn is_killed(&self) -> bool {
        self.status.lock().state == State::Killed
    }

    /// Completes when it has exited. It is killed when its network service exits, because its pages then have no
    /// proxy.
    pub(super) async fn exited(&self) {
        tokio::select! {
            biased;
            () = self.browser.connection.closed() => return,
            () = self.browser.network_service_exited() => self.kill("its network service has exited"),
        }
        self.browser.connection.closed().await;
    }

    /// Opens a page. Must be polled to completion, or the page stays open.
    pub(super) async fn open(&self) -> Result<Page, PageError> {
        let opened = Page::open(&self.browser).await;
        match &opened {
            Ok(_) => {
                self.metrics.pages_opened.inc();
                self.status.lock().open_crashes = 0;
            }
            Err(PageError::Timeout) => self.kill("it does not open a page"),
            Err(PageError::Crashed) => {
                let mut status = self.status.lock();
                status.open_crashes += 1;
                let crashes = status.open_crashes;
                drop(status);
                tracing::warn!(crashes, "renderer crashed while a page was opened");
                if crashes >= MAX_OPEN_CRASHES {
                    self.kill("its renderers crash while pages are opened");
                }
            }
            Err(PageError::Cdp(_) | PageError::ProxyPort(_)) => {}
        }
        opened
    }

    pub(crate) async fn close(&self, page: Page) {
        self.metrics.pages_closed.inc();
        if let Err(error) = page.close(&self.browser).await {
            tracing::warn!(error = error_chain(&error), "page was not closed");
            self.kill("it does not close a page");
        }
    }

    pub(crate) fn kill(&self, reason: &'static str) {
        if std::mem::replace(&mut self.status.lock().state, State::Killed) != State::Killed {
            tracing::warn!(reason, product = self.browser.product, "killing a browser and replacing it");
            self.browser.kill();
        }
    }

    /// Opens a spare page in the background, if the browser has none.
    pub(crate) fn refill(self: &Arc<Self>) {
        let mut spare = self.spare.lock();
        if !self.is_usable() || spare.page.is_some() || spare.is_opening {
            return;
        }
        spare.is_opening = true;
        drop(spare);
        let pooled = Arc::clone(self);
        tokio::spawn(async move {
            let page = pooled.open().await;
            if let Err(error) = &page {
                // Only a debug message: a job that needs a page gets the same error and logs it.
                tracing::debug!(error = error_chain(error), "spare page was not opened");
            }
            *pooled.spare.lock() = SparePage { page: page.ok(), is_opening: false };
        });
    }

    /// Identifies it in its pool for as long as it exists.
    pub(crate) fn id(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// An idle page: one that the account has used, or else a spare one.
    pub(crate) fn idle_page(self: &Arc<Self>, request: &PageRequest) -> Option<Page> {
        loop {
            let warm = self.warm.lock().take(&request.account, self.id(), |kept| request.fits(&kept.page));
            let source = if warm.is_some() { PageSource::Warm } else { PageSource::Spare };
            let mut page = warm.map(|kept| kept.page).or_else(|| self.spare.lock().page.take())?;
            if page.is_alive() && !page.proxy.was_used_without_job() {
                self.metrics.pages.of(source).inc();
                return Some(page);
            }
            let pooled = Arc::clone(self);
            tokio::spawn(async move { pooled.close(page).await });
        }
    }

    /// Opens a page for a job that got no idle one. Must be polled to completion, or the page stays open.
    pub(crate) async fn open_for_job(&self) -> Result<Page, PageError> {
        let page = self.open().await?;
        self.metrics.pages.of(PageSource::Opened).inc();
        Ok(page)
    }

    /// Records a job of the account; true if the account's next job is likely soon and may use the page.
    pub(crate) fn is_worth_keeping(&self, account: &AccountId, page: &Page) -> bool {
        let has_address = page.kind.is_some_and(|kind| kind.has_address);
        let max_jobs = if has_address { MAX_ADDRESS_JOBS } else { MAX_PAGE_JOBS };
        self.warm.lock().record(account) && page.jobs < max_jobs
    }

    /// Keeps a page that was reset, with this many bytes of heap, for the account that has used it.
    pub(crate) fn keep(self: &Arc<Self>, account: AccountId, page: Page, heap_bytes: u64) {
        let kept = KeptPage { page, browser: Arc::downgrade(self) };
        let warm = WarmPage { account, browser: self.id(), page: kept, bytes: PAGE_BYTES + heap_bytes };
        let evicted = self.warm.lock().keep(warm);
        for WarmPage { page: KeptPage { page, browser }, .. } in evicted {
            // Not awaited: it may hang, and this browser is for the next job.
            if let Some(browser) = browser.upgrade() {
                tokio::spawn(async move { browser.close(page).await });
            }
        }
    }

    pub(super) async fn close_warm_pages(&self) {
        let warm = self.warm.lock().remove_of(self.id());
        for kept in warm {
            self.close(kept.page).await;
        }
    }
}

impl Drop for PooledBrowser {
    fn drop(&mut self) {
        self.warm.lock().remove_of(self.id());
    }
}

impl PoolMember for PooledBrowser {
    type Request = PageRequest;
    type Rank = (bool, bool, u32);

    fn account(request: &PageRequest) -> &AccountId {
        &request.account
    }

    fn is_usable(&self) -> bool {
        self.status.lock().state != State::Killed && !self.browser.connection.is_closed()
    }

    fn keeps_page(&self, request: &PageRequest) -> bool {
        let fits = |kept: &KeptPage| request.fits(&kept.page);
        self.warm.lock().has(&request.account, self.id(), fits)
    }

    fn rank(&self, request: &PageRequest) -> Self::Rank {
        (request.avoid == Some(self.id()), !self.keeps_page(request), self.jobs())
    }

    fn begin_job(&self) {
        let mut status = self.status.lock();
        status.jobs += 1;
        let is_last = status.jobs == self.config.recycle_after.get();
        drop(status);
        if is_last {
            self.recycle();
        }
    }
}
