//! A page that is leased to one job.
//!
//! Invariant: a page that is not released for reuse is closed, however the job ends, and the job's browser is freed only
//! after that. A browser that does not close a page in time is killed.

use std::time::Duration;

use platen_shared::id::AccountId;
use tokio::{runtime::Handle, time::timeout};

use super::{job_error::JobError, reset};
use crate::{
    page::Page,
    pool::{Lease, PageRequest},
};

/// A reset takes 10 ms. A page that takes longer than this is closed.
const RESET_TIMEOUT: Duration = Duration::from_secs(2);

/// A leased page; closed when dropped.
#[derive(Debug)]
pub(super) struct PageLease {
    /// `None` after the lease was dropped or released.
    held: Option<Held>,
    runtime: Handle,
}

#[derive(Debug)]
struct Held {
    page: Page,
    browser: Lease,
}

impl PageLease {
    /// Takes an idle page of the browser or opens one. Cancellation-safe: the opening then continues in the
    /// background, and the page is closed.
    pub(super) async fn take(browser: Lease, request: &PageRequest) -> Result<Self, JobError> {
        let runtime = Handle::current();
        if let Some(page) = browser.page(request) {
            return Ok(Self { held: Some(Held { page, browser }), runtime });
        }
        let opening = tokio::spawn(async move {
            let page = browser.open().await?;
            Ok(Self { held: Some(Held { page, browser }), runtime })
        });
        opening.await.map_err(JobError::Opening)?
    }

    /// The page and its browser.
    pub(super) fn page(&mut self) -> (&mut Page, &Lease) {
        let held = self.held.as_mut().expect("held until dropped or released");
        (&mut held.page, &held.browser)
    }

    /// Ends the lease of a page that may be reused: if it is worth keeping for the account's next job, the
    /// page is reset in the background. `is_static` says that the page cannot change any more.
    pub(super) fn release(mut self, account: AccountId, is_static: bool) {
        let Some(mut held) = self.held.take_if(|held| held.browser.is_worth_keeping(&account, &held.page))
        else {
            return;
        };
        self.runtime.spawn(async move {
            let resetting = reset::reset(&mut held.page, held.browser.browser(), is_static);
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
    }
}

impl Drop for PageLease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.runtime.spawn(held.close());
        }
    }
}
