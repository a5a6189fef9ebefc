//! The jobs that have slots, and which account may get the next one.
//!
//! - Each long job allows one more job to run, up to twice the number of slots.
//! - For five minutes after a long job, the jobs of its account are expected to be long. They start only
//!   while fewer jobs are long or expected to be than the number of slots.
//! - While other accounts wait, an account gets at most half of the slots.
//! - For five minutes after a heavy job, the jobs of its account are expected to be heavy.

use std::{collections::HashMap, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// How long after a long or heavy job those of its account are expected to be so.
const EXPECTATION_TIMEOUT: Duration = Duration::from_mins(5);
/// Accounts that are remembered.
const MAX_ACCOUNTS: usize = 1_024;

/// The jobs that have slots.
#[derive(Debug)]
pub(super) struct AdmittedJobs {
    pub(super) slots: usize,
    jobs: HashMap<u64, AdmittedJob>,
    next_id: u64,
    /// Accounts with a recent job that was long or heavy.
    accounts: HashMap<AccountId, LatestJobs>,
}

/// When the latest long and the latest heavy job of an account ended.
#[derive(Debug, Clone, Copy, Default)]
struct LatestJobs {
    long: Option<Instant>,
    heavy: Option<Instant>,
}

impl LatestJobs {
    /// The kinds of the account's recent jobs, which its next ones are expected to have.
    fn recent(&self) -> JobKind {
        let is_recent = |ended: Instant| ended.elapsed() < EXPECTATION_TIMEOUT;
        JobKind { long: self.long.is_some_and(is_recent), heavy: self.heavy.is_some_and(is_recent) }
    }
}

#[derive(Debug)]
struct AdmittedJob {
    account: AccountId,
    since: Instant,
    /// By recent jobs of its account.
    expected: JobKind,
    /// By the job itself so far.
    observed: JobKind,
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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct JobKind {
    /// The job runs for a long time.
    long: bool,
    /// The job takes much CPU time.
    heavy: bool,
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
            job.observed.long = true;
        }
    }

    pub(super) fn mark_late(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.is_late = true;
        }
    }

    pub(super) fn mark_heavy(&mut self, id: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.observed.heavy = true;
        }
    }

    /// Whether a job is heavy, or expected to be.
    pub(super) fn is_heavy(&self, id: u64) -> bool {
        self.jobs.get(&id).is_some_and(|job| job.observed.heavy || job.expected.heavy)
    }

    /// Removes a job that has not started.
    pub(super) fn cancel(&mut self, id: u64) {
        self.jobs.remove(&id);
    }

    /// Whether a job of this account may run now. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let long = self.jobs.values().filter(|job| job.observed.long || job.expected.long).count();
        let of_account = self.jobs.values().filter(|job| job.account == *account).count();
        let share = (self.slots / 2).max(1);
        self.jobs.len() < self.slots + long.min(self.slots)
            && !(others_wait && of_account >= share)
            && !(long >= self.slots && self.expected(account).long)
    }

    fn expected(&self, account: &AccountId) -> JobKind {
        self.accounts.get(account).map(LatestJobs::recent).unwrap_or_default()
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let expected = self.expected(&account);
        let job = AdmittedJob {
            account,
            since: Instant::now(),
            expected,
            observed: JobKind::default(),
            is_late: false,
        };
        self.jobs.insert(id, job);
        id
    }

    /// Removes a job.
    pub(super) fn end(&mut self, id: u64) -> Option<EndedJob> {
        let ended = self.jobs.remove(&id)?;
        // A short job does not end the expectation, because an account may alternate between kinds of jobs.
        if ended.observed.long || ended.observed.heavy {
            if self.accounts.len() >= MAX_ACCOUNTS {
                self.accounts.retain(|_, latest| latest.recent() != JobKind::default());
            }
            if self.accounts.len() < MAX_ACCOUNTS || self.accounts.contains_key(&ended.account) {
                let latest = self.accounts.entry(ended.account).or_default();
                let now = Some(Instant::now());
                latest.long = now.filter(|_| ended.observed.long).or(latest.long);
                latest.heavy = now.filter(|_| ended.observed.heavy).or(latest.heavy);
            }
        }
        Some(EndedJob { held: ended.since.elapsed(), was_late: ended.is_late })
    }
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
        assert!(!jobs.expected(&newcomer).long, "all entries are taken");
        tokio::time::advance(EXPECTATION_TIMEOUT / 2).await;
        // An account with another long job stays, and the others expire.
        run_long(&mut jobs, &account(0));
        tokio::time::advance(EXPECTATION_TIMEOUT / 2).await;
        run_long(&mut jobs, &newcomer);
        assert!(jobs.expected(&newcomer).long && jobs.expected(&account(0)).long);
        assert!(!jobs.expected(&account(1)).long);
        assert_eq!(jobs.accounts.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_heavy_job_does_not_make_its_account_long() {
        let mut jobs = AdmittedJobs::new(1);
        let id = jobs.start(account(0));
        jobs.mark_heavy(id);
        jobs.end(id).unwrap();
        assert!(!jobs.expected(&account(0)).long);
        let next = jobs.start(account(0));
        assert!(jobs.is_heavy(next));
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_expected_to_be_heavy_only_after_a_heavy_job() {
        let mut jobs = AdmittedJobs::new(1);
        run_long(&mut jobs, &account(0));
        let second = jobs.start(account(0));
        assert!(!jobs.is_heavy(second));
        jobs.mark_long(second);
        jobs.mark_heavy(second);
        assert!(jobs.is_heavy(second));
        jobs.end(second).unwrap();
        let third = jobs.start(account(0));
        assert!(jobs.is_heavy(third) && jobs.expected(&account(0)).long);
        jobs.end(third).unwrap();
        tokio::time::advance(EXPECTATION_TIMEOUT).await;
        let fourth = jobs.start(account(0));
        assert!(!jobs.is_heavy(fourth));
    }
}
