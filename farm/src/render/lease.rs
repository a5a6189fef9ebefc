//! A page in the hands of one job.
//!
//! Invariant: a page that was not handed back clean is closed, whatever becomes of the job, and the
//! job's slot is free only after that. A browser that does not close a page in time is killed.
//! Left to others: which page it is (pool), what cleans it (reset).

use std::{sync::Arc, time::Duration};

use platen_shared::id::AccountId;
use tokio::{runtime::Handle, time::timeout};

use super::{JobError, reset};
use crate::{
    admission::Slot,
    page::{Page, PageError},
    pool::Loan,
};

/// A reset takes 10 ms. A page that holds it up is not worth waiting for.
const RESET_LIMIT: Duration = Duration::from_secs(2);

/// A page, closed when dropped.
#[derive(Debug)]
pub(super) struct Lease {
    /// There until it is dropped or handed back.
    held: Option<Held>,
    runtime: Handle,
}

#[derive(Debug)]
struct Held {
    page: Page,
    loan: Loan,
    slot: Arc<Slot>,
}

impl Lease {
    /// Takes a page from the loan's browser: the account's own, one that was made ahead, or a new
    /// one. Whoever stops waiting for it leaves nothing behind: the opening goes on by itself, and
    /// what it opened is closed again.
    pub(super) async fn take(
        loan: Loan,
        slot: Arc<Slot>,
        account: &AccountId,
        reuse: bool,
    ) -> Result<Self, JobError> {
        let runtime = Handle::current();
        if let Some(page) = loan.page(account, reuse) {
            return Ok(Self { held: Some(Held { page, loan, slot }), runtime });
        }
        let opening = tokio::spawn(async move {
            let page = loan.open().await?;
            Ok(Self { held: Some(Held { page, loan, slot }), runtime })
        });
        opening.await.map_err(JobError::Opening)?
    }

    /// The page, and the browser it is in.
    pub(super) fn page(&mut self) -> (&mut Page, &Loan) {
        let held = self.held.as_mut().expect("held until dropped or handed back");
        (&mut held.page, &held.loan)
    }

    /// Cleans the page and keeps it for the account's next job, if one is to be expected, off the way
    /// of this one's file.
    pub(super) fn hand_back(mut self, account: AccountId) {
        let Some(mut held) = self.held.take_if(|held| held.loan.is_worth_keeping(&account, &held.page))
        else {
            return;
        };
        self.runtime.spawn(async move {
            let reset = timeout(RESET_LIMIT, reset::reset(&mut held.page)).await;
            if matches!(reset, Ok(Ok(true))) {
                held.loan.keep(account, held.page).await;
                held.loan.refill();
            } else {
                held.close().await;
            }
        });
    }
}

impl Held {
    async fn close(self) {
        self.loan.close(self.page).await;
        self.loan.refill();
        drop((self.loan, self.slot));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            self.runtime.spawn(held.close());
        }
    }
}

impl From<PageError> for JobError {
    fn from(error: PageError) -> Self {
        match error {
            PageError::Cdp(error) => Self::Cdp(error),
            PageError::Gate(error) => Self::Gate(error),
            PageError::Crashed => Self::Stale,
            PageError::Hangs => Self::Stuck,
        }
    }
}
