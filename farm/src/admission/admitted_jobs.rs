//! The jobs that have slots, and which account may get the next one.
//!
//! - Each long job allows one more job to run, up to twice the number of slots.
//! - For five minutes after a long job, the jobs of its account are expected to be long. They start only
//!   while fewer jobs are long or expected to be than the number of slots.
//! - While other accounts wait, an account gets at most half of the slots.

use std::{collections::HashMap, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// How long after a long job those of its account are expected to be long.
const EXPECTATION_TIMEOUT: Duration = Duration::from_mins(5);
/// Accounts that are remembered.
const MAX_ACCOUNTS: usize = 1_024;

/// The jobs that have slots.
#[derive(Debug)]
pub(super) struct AdmittedJobs {
    pub(super) slots: usize,
    jobs: HashMap<u64, AdmittedJob>,
    next_id: u64,
    /// When the latest long job of an account ended, for accounts with a recent one.
    accounts: HashMap<AccountId, Instant>,
}

#[derive(Debug)]
struct AdmittedJob {
    account: AccountId,
    since: Instant,
    /// It runs for a long time, or is expected to because a recent job of its account did.
    may_be_long: bool,
    /// It has run for a long time.
    is_long: bool,
    /// It did not end by its deadline.
    is_late: bool,
}

/// A job that has given its slot back.
#[derive(Debug)]
pub(super) struct EndedJob {
    /// How long it had its slot.
    pub(super) held: Duration,
    /// It did not end by its deadline.
    pub(super) was_late: bool,
}

impl AdmittedJobs {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, jobs: HashMap::new(), next_id: 0, accounts: HashMap::new() }
    }

    /// Number of jobs that have slots.
    pub(super) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn mark_long(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            (job.may_be_long, job.is_long) = (true, true);
        }
    }

    pub(super) fn mark_late(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.is_late = true;
        }
    }

    /// Removes a job that has not started.
    pub(super) fn cancel(&mut self, id: u64) {
        self.jobs.remove(&id);
    }

    /// Whether a job of this account may run now. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let long = self.jobs.values().filter(|job| job.may_be_long).count();
        let of_account = self.jobs.values().filter(|job| job.account == *account).count();
        let share = (self.slots / 2).max(1);
        self.jobs.len() < self.slots + long.min(self.slots)
            && !(others_wait && of_account >= share)
            && !(long >= self.slots && self.is_expected_long(account))
    }

    fn is_expected_long(&self, account: &AccountId) -> bool {
        self.accounts.get(account).is_some_and(is_recent)
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let may_be_long = self.is_expected_long(&account);
        let job = AdmittedJob { account, since: Instant::now(), may_be_long, is_long: false, is_late: false };
        self.jobs.insert(id, job);
        id
    }

    /// Removes a job.
    pub(super) fn end(&mut self, id: u64) -> Option<EndedJob> {
        let ended = self.jobs.remove(&id)?;
        // A short job does not end the expectation, because an account may alternate between kinds of jobs.
        if ended.is_long {
            if self.accounts.len() >= MAX_ACCOUNTS {
                self.accounts.retain(|_, latest| is_recent(latest));
            }
            if self.accounts.len() < MAX_ACCOUNTS || self.accounts.contains_key(&ended.account) {
                self.accounts.insert(ended.account, Instant::now());
            }
        }
        Some(EndedJob { held: ended.since.elapsed(), was_late: ended.is_late })
    }
}

fn is_recent(ended: &Instant) -> bool {
    ended.elapsed() < EXPECTATION_TIMEOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: usize) -> AccountId {
        AccountId::from_text(number.to_string())
    }

    fn run_long(jobs: &mut AdmittedJobs, account: &AccountId) {
        let id = jobs.start(account.clone());
        jobs.mark_long(id);
        jobs.end(id).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_with_long_jobs_are_remembered_for_a_limited_time_and_number() {
        let mut jobs = AdmittedJobs::new(1);
        (0..MAX_ACCOUNTS).for_each(|number| run_long(&mut jobs, &account(number)));
        let newcomer = account(MAX_ACCOUNTS);
        run_long(&mut jobs, &newcomer);
        assert!(!jobs.is_expected_long(&newcomer), "all entries are taken");
        tokio::time::advance(EXPECTATION_TIMEOUT / 2).await;
        // An account with another long job stays, and the others expire.
        run_long(&mut jobs, &account(0));
        tokio::time::advance(EXPECTATION_TIMEOUT / 2).await;
        run_long(&mut jobs, &newcomer);
        assert!(jobs.is_expected_long(&newcomer) && jobs.is_expected_long(&account(0)));
        assert!(!jobs.is_expected_long(&account(1)));
        assert_eq!(jobs.accounts.len(), 2);
    }
}
