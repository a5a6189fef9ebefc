//! The jobs that have a browser.
//!
//! Invariant: accounts with long jobs do not have all browsers. For five minutes after a long job of an account its
//! jobs count as long from their start, and start only while fewer jobs are long than there are slots. Each long job
//! allows one more job to run, so as many browsers are left for other accounts.

use std::{collections::HashMap, fmt::Debug, sync::Arc, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// A browser that jobs can have.
pub(crate) trait PoolMember: Debug {
    type Request: Debug;
    type Rank: Ord;

    fn account(request: &Self::Request) -> &AccountId;

    fn is_usable(&self) -> bool;

    /// Whether it keeps a page that the job may use.
    fn keeps_page(&self, request: &Self::Request) -> bool;

    /// The browser with the lowest rank is preferred.
    fn rank(&self, request: &Self::Request) -> Self::Rank;

    fn begin_job(&self);
}

const LONG_ACCOUNT_TIME: Duration = Duration::from_mins(5);

#[derive(Debug)]
pub(super) struct Running<B> {
    pub(super) slots: usize,
    jobs: HashMap<u64, Job<B>>,
    next_id: u64,
    /// When the latest long job of an account began to be long.
    long_accounts: HashMap<AccountId, Instant>,
}

#[derive(Debug)]
struct Job<B> {
    account: AccountId,
    browser: Arc<B>,
    is_long: bool,
}

impl<B> Running<B> {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, jobs: HashMap::new(), next_id: 0, long_accounts: HashMap::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    fn long_jobs(&self) -> usize {
        self.jobs.values().filter(|job| job.is_long).count()
    }

    /// Jobs beyond the slots that may run.
    pub(super) fn max_extra(&self) -> usize {
        self.long_jobs().min(self.slots)
    }

    pub(super) fn may_any_run(&self) -> bool {
        self.len() < self.slots + self.max_extra()
    }

    /// Whether a job of this account may run. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let of_account = || self.jobs.values().filter(|job| job.account == *account).count();
        self.may_any_run()
            && !(others_wait && of_account() >= (self.slots / 2).max(1))
            && !(self.is_long_account(account) && self.long_jobs() >= self.slots)
    }

    fn is_long_account(&self, account: &AccountId) -> bool {
        self.long_accounts.get(account).is_some_and(is_recent)
    }

    pub(super) fn has(&self, browser: &Arc<B>) -> bool {
        self.jobs.values().any(|job| Arc::ptr_eq(&job.browser, browser))
    }

    pub(super) fn start(&mut self, account: AccountId, browser: Arc<B>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let is_long = self.is_long_account(&account);
        self.jobs.insert(id, Job { account, browser, is_long });
        id
    }

    pub(super) fn end(&mut self, id: u64) {
        self.jobs.remove(&id);
    }

    pub(super) fn mark_long(&mut self, id: u64) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.is_long = true;
        self.long_accounts.retain(|_, since| is_recent(since));
        self.long_accounts.insert(job.account.clone(), Instant::now());
    }
}

impl<B: PoolMember> Running<B> {
    /// Whether a new job is to wait because running jobs have the browsers that keep a page for it. A page that is not
    /// opened saves more CPU time than the wait costs, unless CPUs are idle meanwhile, as is likely while less than half of
    /// the slots are used.
    pub(super) fn have_page_of(&self, request: &B::Request, browsers: &[Arc<B>]) -> bool {
        let keeps_page = |browser: &&Arc<B>| browser.is_usable() && browser.keeps_page(request);
        let mut keeping = browsers.iter().filter(keeps_page).peekable();
        self.len() >= (self.slots / 2).max(1)
            && keeping.peek().is_some()
            && keeping.all(|browser| self.has(browser))
    }
}

fn is_recent(since: &Instant) -> bool {
    since.elapsed() < LONG_ACCOUNT_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn accounts_with_long_jobs_leave_browsers_for_others() {
        let mut running = Running::new(2);
        let accounts = ["a", "b", "c", "good"].map(AccountId::from_text);
        let [a, b, c, good] = &accounts;
        let start = |running: &mut Running<()>, account: &AccountId| {
            assert!(running.may_run(account, true));
            running.start(account.clone(), Arc::new(()))
        };
        let jobs = [a, b].map(|account| start(&mut running, account));
        assert!(!running.may_run(good, true));
        for job in jobs {
            running.mark_long(job);
        }
        // At most twice the slots.
        let jobs = [jobs[0], jobs[1], start(&mut running, c), start(&mut running, good)];
        assert!(!running.may_run(good, false));
        running.mark_long(jobs[2]);
        for job in jobs {
            running.end(job);
        }
        // Their next jobs count as long from the start.
        let jobs = [a, b].map(|account| start(&mut running, account));
        assert_eq!((running.may_run(c, true), running.may_run(good, true)), (false, true));
        for job in jobs {
            running.end(job);
        }
        tokio::time::advance(LONG_ACCOUNT_TIME).await;
        let jobs = [a, b].map(|account| start(&mut running, account));
        assert!(!running.may_run(good, true));
        // Only recent ones are remembered.
        running.mark_long(jobs[0]);
        assert_eq!(running.long_accounts.len(), 1);
    }
}
