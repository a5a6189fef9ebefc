//! A page that one job has.
//!
//! Invariant: a page that was not handed back is closed, whatever becomes of the job, and the job's slot
//! and browser are free only after that. A browser that does not close a page in time is killed.

use std::{sync::Arc, time::Duration};

use platen_shared::id::AccountId;
use tokio::{runtime::Handle, time::timeout};

use super::{JobError, reset};
use crate::{
    admission::Slot,
    page::{Page, PageError},
    pool::{BrowserLease, PageRequest},
};

/// A reset takes 10 ms. A page that holds it up is not worth waiting for.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// A page, closed when dropped.
#[derive(Debug)]
pub(super) struct PageLease {
    /// There until it is dropped or handed back.
    held: Option<Held>,
    runtime: Handle,
}

#[derive(Debug)]
struct Held {
    page: Page,
    browser: BrowserLease,
    slot: Arc<Slot>,
}

impl PageLease {
    /// Takes a page of the browser: one of the account's own, one that was opened ahead, or a new one.
    /// May be cancelled: the opening then goes on by itself, and what it opened is closed again.
    pub(super) async fn take(
        browser: BrowserLease,
        slot: Arc<Slot>,
        request: &PageRequest<'_>,
    ) -> Result<Self, JobError> {
        let runtime = Handle::current();
        if let Some(page) = browser.page(request) {
            return Ok(Self { held: Some(Held { page, browser, slot }), runtime });
        }
        let opening = tokio::spawn(async move {
            let page = browser.open().await?;
            Ok(Self { held: Some(Held { page, browser, slot }), runtime })
        });
        opening.await.map_err(JobError::Opening)?
    }

    /// The page, and the browser it is in.
    pub(super) fn page(&mut self) -> (&mut Page, &BrowserLease) {
        let held = self.held.as_mut().expect("held until dropped or handed back");
        (&mut held.page, &held.browser)
    }

    /// Resets the page and keeps it for the account's next job, if one is to be expected, after this
    /// job's file has been returned. `is_still` says that nothing goes on in the page.
    pub(super) fn hand_back(mut self, account: AccountId, is_still: bool) {
        let Some(mut held) = self.held.take_if(|held| held.browser.is_worth_keeping(&account, &held.page))
        else {
            return;
        };
        self.runtime.spawn(async move {
            let resetting = reset::reset(&mut held.page, held.browser.browser(), is_still);
            if matches!(timeout(RESET_TIMEOUT, resetting).await, Ok(Ok(true))) {
                held.browser.keep(account, held.page).await;
                held.browser.refill();
            } else {
                held.close().await;
            }
        });
    }
}

impl Held {
    async fn close(self) {
        self.browser.close(self.page).await;
        self.browser.refill();
        drop((self.browser, self.slot));
    }
}

impl Drop for PageLease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.runtime.spawn(held.close());
        }
    }
}

impl From<PageError> for JobError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::PageProxy(error) => Self::PageProxy(error),
            // The job has not begun, so none of these counts as an attempt to render it.
            PageError::Cdp(_) | PageError::Crashed | PageError::Hangs => Self::Stale,
        }
    }
}
