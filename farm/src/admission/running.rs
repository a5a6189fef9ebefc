//! The jobs that have slots, and which job may have one next.
//!
//! A job that runs for long would keep its slot from all others, so it makes room: as many further slots
//! as there are long jobs are given out, at most as many again as there are slots. An account with a long
//! job in the last five minutes is expected to have another, and the jobs of all such accounts together
//! hold at most as many slots as there are. While other accounts wait, one account gets no more than half
//! of the slots.
//!
//! A job that takes much CPU time meanwhile is heavy, and the next ones of its account are expected to be.

use std::{collections::HashMap, time::Duration};

use platen_shared::id::AccountId;
use tokio::time::Instant;

/// How long an account whose job ran for long is expected to do so again.
const LONG_MEMORY: Duration = Duration::from_mins(5);
/// Most accounts with long jobs that are remembered.
const MAX_LONG_ACCOUNTS: usize = 1_024;

/// The jobs that have slots.
#[derive(Debug)]
pub(super) struct RunningJobs {
    slots: usize,
    running: HashMap<u64, Running>,
    next_id: u64,
    /// Accounts with a job that ran for long, and the latest one.
    long_accounts: HashMap<AccountId, LongJob>,
}

/// The latest long job of an account.
#[derive(Debug, Clone, Copy)]
struct LongJob {
    ended: Instant,
    heavy: bool,
}

impl LongJob {
    fn is_recent(&self) -> bool {
        self.ended.elapsed() < LONG_MEMORY
    }
}

/// A job that has a slot.
#[derive(Debug)]
struct Running {
    account: AccountId,
    since: Instant,
    /// It is expected to run for long, because a job of its account did.
    expected_long: bool,
    /// It has run for long.
    long: bool,
    /// It has taken much CPU time, or is expected to.
    heavy: bool,
}

impl RunningJobs {
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, running: HashMap::new(), next_id: 0, long_accounts: HashMap::new() }
    }

    /// How many jobs have slots.
    pub(super) fn len(&self) -> usize {
        self.running.len()
    }

    /// Notes that a job runs for long.
    pub(super) fn mark_long(&mut self, id: u64) {
        if let Some(job) = self.running.get_mut(&id) {
            job.long = true;
        }
    }

    /// Notes that a job takes much CPU time.
    pub(super) fn mark_heavy(&mut self, id: u64) {
        if let Some(job) = self.running.get_mut(&id) {
            job.heavy = true;
        }
    }

    /// Whether a job is heavy, or expected to be.
    pub(super) fn is_heavy(&self, id: u64) -> bool {
        self.running.get(&id).is_some_and(|job| job.heavy)
    }

    /// Takes a job back that has not begun.
    pub(super) fn cancel(&mut self, id: u64) {
        self.running.remove(&id);
    }

    /// Whether a job of this account may run now. `others_wait` says that other accounts' jobs wait.
    pub(super) fn may_run(&self, account: &AccountId, others_wait: bool) -> bool {
        let long = self.running.values().filter(|job| job.long || job.expected_long).count();
        let of_account = self.running.values().filter(|job| job.account == *account).count();
        let share = (self.slots / 2).max(1);
        self.running.len() < self.slots + long.min(self.slots)
            && !(others_wait && of_account >= share)
            && !(long >= self.slots && self.is_long_account(account))
    }

    /// The latest long job of an account, if it ended lately.
    fn recent(&self, account: &AccountId) -> Option<&LongJob> {
        self.long_accounts.get(account).filter(|job| job.is_recent())
    }

    fn is_long_account(&self, account: &AccountId) -> bool {
        self.recent(account).is_some()
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let recent = self.recent(&account);
        let (expected_long, heavy) = (recent.is_some(), recent.is_some_and(|job| job.heavy));
        self.running
            .insert(id, Running { account, since: Instant::now(), expected_long, long: false, heavy });
        id
    }

    /// Ends a job and returns how long it had its slot.
    pub(super) fn end(&mut self, id: u64) -> Option<Duration> {
        let ended = self.running.remove(&id)?;
        // A short job of an account says nothing about its next one: hostile pages differ.
        if ended.long {
            if self.long_accounts.len() >= MAX_LONG_ACCOUNTS {
                self.long_accounts.retain(|_, job| job.is_recent());
            }
            if self.long_accounts.len() < MAX_LONG_ACCOUNTS || self.is_long_account(&ended.account) {
                self.long_accounts
                    .insert(ended.account, LongJob { ended: Instant::now(), heavy: ended.heavy });
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
        (0..MAX_LONG_ACCOUNTS).for_each(|number| run_long(&mut jobs, &account(number)));
        let newcomer = account(MAX_LONG_ACCOUNTS);
        run_long(&mut jobs, &newcomer);
        assert!(!jobs.is_long_account(&newcomer), "there is no room");
        tokio::time::advance(LONG_MEMORY / 2).await;
        // The one that goes on stays, and those that do not make room.
        run_long(&mut jobs, &account(0));
        tokio::time::advance(LONG_MEMORY / 2).await;
        run_long(&mut jobs, &newcomer);
        assert!(jobs.is_long_account(&newcomer) && jobs.is_long_account(&account(0)));
        assert!(!jobs.is_long_account(&account(1)));
        assert_eq!(jobs.long_accounts.len(), 2);
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
        assert!(jobs.is_heavy(third));
        jobs.cancel(third);
        tokio::time::advance(LONG_MEMORY).await;
        let fourth = jobs.start(account(0));
        assert!(!jobs.is_heavy(fourth));
    }
}
