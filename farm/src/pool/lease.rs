//! What a job does with its browser.

use std::sync::Arc;

use platen_shared::id::AccountId;

use super::{Lease, pooled_browser::PageRequest};
use crate::{
    browser::Browser,
    metrics::{PageSource, Waiting},
    page::{Page, PageError},
};

impl Lease {
    pub(crate) fn browser(&self) -> &Browser {
        &self.pooled.browser
    }

    /// Identifies the browser in its pool for as long as it exists.
    pub(crate) fn browser_id(&self) -> usize {
        Arc::as_ptr(&self.pooled).addr()
    }

    /// Requests that the browser is replaced when its successor is ready.
    pub(crate) fn recycle(&self) {
        self.pooled.recycle();
    }

    /// Kills the browser; `reason` is logged.
    pub(crate) fn kill(&self, reason: &'static str) {
        self.pooled.kill(reason);
    }

    /// An idle page: one that the account has used, or else a spare one.
    pub(crate) fn page(&self, request: &PageRequest) -> Option<Page> {
        loop {
            let mut idle = self.pooled.idle_pages.lock();
            let warm = idle.warm(&request.account, |page| request.fits(page));
            let source = if warm.is_some() { PageSource::Warm } else { PageSource::Spare };
            let mut page = warm.or_else(|| idle.spare())?;
            drop(idle);
            if page.is_alive() {
                self.pooled.metrics.page_given(source);
                return Some(page);
            }
            let pooled = Arc::clone(&self.pooled);
            tokio::spawn(async move { pooled.close(page).await });
        }
    }

    /// Opens a page for a job that got no idle one. Must be polled to completion, or the page stays open.
    pub(crate) async fn open(&self) -> Result<Page, PageError> {
        let page = self.pooled.open().await?;
        self.pooled.metrics.page_given(PageSource::Opened);
        Ok(page)
    }

    /// Records a job of the account; true if the account's next job is likely soon and may use the page.
    pub(crate) fn is_worth_keeping(&self, account: &AccountId, page: &Page) -> bool {
        self.pooled.recent.record(account) && page.jobs < self.pooled.config.page_jobs.get()
    }

    /// Keeps a page that was reset for the account that has used it.
    pub(crate) async fn keep(&self, account: AccountId, page: Page) {
        let evicted = self.pooled.idle_pages.lock().keep(account, page);
        if let Some(page) = evicted {
            self.close(page).await;
        }
    }

    pub(crate) async fn close(&self, page: Page) {
        self.pooled.close(page).await;
    }

    pub(crate) fn waited(&self, waiting: Waiting) {
        self.pooled.metrics.job_waited(waiting);
    }

    /// Opens a spare page in the background, if the browser has none.
    pub(crate) fn refill(&self) {
        self.pooled.refill();
    }
}
