//! The jobs that have a browser.

use std::{collections::HashMap, sync::Arc, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// The jobs that have a browser.
#[derive(Debug)]
pub(super) struct Running<B> {
    pub(super) slots: usize,
    jobs: HashMap<u64, Job<B>>,
    next_id: u64,
}

#[derive(Debug)]
struct Job<B> {
    account: AccountId,
    browser: Arc<B>,
    since: Instant,
    is_long: bool,
}

impl<B> Running<B> {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, jobs: HashMap::new(), next_id: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Jobs beyond the slots that may run.
    pub(super) fn max_extra(&self) -> usize {
        self.jobs.values().filter(|job| job.is_long).count().min(self.slots)
    }

    /// Whether a further job may run.
    pub(super) fn may_any_run(&self) -> bool {
        self.len() < self.slots + self.max_extra()
    }

    /// Whether a job of this account may run. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let of_account = || self.jobs.values().filter(|job| job.account == *account).count();
        self.may_any_run() && !(others_wait && of_account() >= (self.slots / 2).max(1))
    }

    pub(super) fn has(&self, browser: &Arc<B>) -> bool {
        self.jobs.values().any(|job| Arc::ptr_eq(&job.browser, browser))
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId, browser: Arc<B>) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let job = Job { account, browser, since: Instant::now(), is_long: false };
        self.jobs.insert(id, job);
        id
    }

    /// Removes a job, and returns how long it had its browser.
    pub(super) fn end(&mut self, id: u64) -> Option<Duration> {
        self.jobs.remove(&id).map(|job| job.since.elapsed())
    }

    pub(super) fn mark_long(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.is_long = true;
        }
    }
}
