//! The jobs that have slots, and which job may have one next.
//!
//! A job that runs for long would keep its slot from all others, so it makes room: as many further slots
//! as there are long jobs are given out, at most as many again as there are slots. An account with a long
//! job in the last five minutes is expected to have another, and the jobs of all such accounts together
//! hold at most as many slots as there are. While other accounts wait, one account gets no more than half
//! of the slots.
//!
//! A job that takes much CPU time is heavy, and those of its account in the next five minutes are expected to
//! be.

use std::{collections::HashMap, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// How long an account whose job was long or heavy is expected to have another.
const MEMORY: Duration = Duration::from_mins(5);
/// Most accounts that are remembered.
const MAX_ACCOUNTS: usize = 1_024;

/// The jobs that have slots.
#[derive(Debug)]
pub(super) struct RunningJobs {
    slots: usize,
    running: HashMap<u64, Running>,
    next_id: u64,
    /// Accounts with a job that was long or heavy.
    accounts: HashMap<AccountId, LatestJobs>,
}

/// When the latest jobs of their kind ended that an account has had.
#[derive(Debug, Clone, Copy, Default)]
struct LatestJobs {
    long: Option<Instant>,
    heavy: Option<Instant>,
}

impl LatestJobs {
    fn had_long(&self) -> bool {
        self.long.is_some_and(is_recent)
    }

    fn had_heavy(&self) -> bool {
        self.heavy.is_some_and(is_recent)
    }
}

fn is_recent(ended: Instant) -> bool {
    ended.elapsed() < MEMORY
}

/// A job that has a slot.
#[derive(Debug)]
struct Running {
    account: AccountId,
    since: Instant,
    /// What jobs of its account were lately.
    expected: JobKind,
    /// What it is so far.
    seen: JobKind,
}

/// What a job takes.
#[derive(Debug, Clone, Copy, Default)]
struct JobKind {
    /// It runs for long.
    long: bool,
    /// It takes much CPU time.
    heavy: bool,
}

impl RunningJobs {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, running: HashMap::new(), next_id: 0, accounts: HashMap::new() }
    }

    /// How many jobs have slots.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Notes that a job runs for long.
    pub(super) fn mark_long(&mut self, id: u64) {
        if let Some(job) = self.running.get_mut(&id) {
            job.seen.long = true;
        }
    }

    /// Notes that a job takes much CPU time.
    pub(super) fn mark_heavy(&mut self, id: u64) {
        if let Some(job) = self.running.get_mut(&id) {
            job.seen.heavy = true;
        }
    }

    /// Whether a job is heavy, or expected to be.
    pub(super) fn is_heavy(&self, id: u64) -> bool {
        self.running.get(&id).is_some_and(|job| job.seen.heavy || job.expected.heavy)
    }

    /// Takes a job back that has not begun.
    pub(super) fn cancel(&mut self, id: u64) {
        self.running.remove(&id);
    }

    /// Whether a job of this account may run now. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let long = self.running.values().filter(|job| job.seen.long || job.expected.long).count();
        let of_account = self.running.values().filter(|job| job.account == *account).count();
        let share = (self.slots / 2).max(1);
        self.running.len() < self.slots + long.min(self.slots)
            && !(others_wait && of_account >= share)
            && !(long >= self.slots && self.is_long_account(account))
    }

    fn latest(&self, account: &AccountId) -> LatestJobs {
        self.accounts.get(account).copied().unwrap_or_default()
    }

    fn is_long_account(&self, account: &AccountId) -> bool {
        self.latest(account).had_long()
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let latest = self.latest(&account);
        let job = Running {
            account,
            since: Instant::now(),
            expected: JobKind { long: latest.had_long(), heavy: latest.had_heavy() },
            seen: JobKind::default(),
        };
        self.running.insert(id, job);
        id
    }

    /// Ends a job and returns how long it had its slot.
    pub(super) fn end(&mut self, id: u64) -> Option<Duration> {
        let ended = self.running.remove(&id)?;
        // A short job of an account says nothing about its next one: hostile pages differ.
        if ended.seen.long || ended.seen.heavy {
            if self.accounts.len() >= MAX_ACCOUNTS {
                self.accounts.retain(|_, jobs| jobs.had_long() || jobs.had_heavy());
            }
            if self.accounts.len() < MAX_ACCOUNTS || self.accounts.contains_key(&ended.account) {
                let latest = self.accounts.entry(ended.account).or_default();
                let now = Some(Instant::now());
                latest.long = now.filter(|_| ended.seen.long).or(latest.long);
                latest.heavy = now.filter(|_| ended.seen.heavy).or(latest.heavy);
            }
        }
        Some(ended.since.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(number: usize) -> AccountId {
        AccountId::from_text(number.to_string())
    }

    fn run_long(jobs: &mut RunningJobs, account: &AccountId) {
        let id = jobs.start(account.clone());
        jobs.mark_long(id);
        jobs.end(id).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_with_long_jobs_are_remembered_for_a_while_and_in_number() {
        let mut jobs = RunningJobs::new(1);
        (0..MAX_ACCOUNTS).for_each(|number| run_long(&mut jobs, &account(number)));
        let newcomer = account(MAX_ACCOUNTS);
        run_long(&mut jobs, &newcomer);
        assert!(!jobs.is_long_account(&newcomer), "there is no room");
        tokio::time::advance(MEMORY / 2).await;
        // The one that goes on stays, and those that do not make room.
        run_long(&mut jobs, &account(0));
        tokio::time::advance(MEMORY / 2).await;
        run_long(&mut jobs, &newcomer);
        assert!(jobs.is_long_account(&newcomer) && jobs.is_long_account(&account(0)));
        assert!(!jobs.is_long_account(&account(1)));
        assert_eq!(jobs.accounts.len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_heavy_job_that_is_short_says_nothing_about_long_ones() {
        let mut jobs = RunningJobs::new(1);
        let id = jobs.start(account(0));
        jobs.mark_heavy(id);
        jobs.end(id).unwrap();
        assert!(!jobs.is_long_account(&account(0)));
        let next = jobs.start(account(0));
        assert!(jobs.is_heavy(next));
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_expected_to_be_heavy_only_after_a_heavy_job() {
        let mut jobs = RunningJobs::new(1);
        run_long(&mut jobs, &account(0));
        let second = jobs.start(account(0));
        assert!(!jobs.is_heavy(second));
        jobs.mark_long(second);
        jobs.mark_heavy(second);
        assert!(jobs.is_heavy(second));
        jobs.end(second).unwrap();
        let third = jobs.start(account(0));
        assert!(jobs.is_heavy(third) && jobs.is_long_account(&account(0)));
        jobs.end(third).unwrap();
        tokio::time::advance(MEMORY).await;
        let fourth = jobs.start(account(0));
        assert!(!jobs.is_heavy(fourth));
    }
}
