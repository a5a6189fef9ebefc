//! The jobs that have slots, and which job may have one next.
//!
//! A job that runs for long would keep its slot from all others, so it makes room: as many further slots
//! as there are long jobs are given out, at most as many again as there are slots. An account with a long
//! job in the last five minutes is expected to have another, and the jobs of all such accounts together
//! hold at most as many slots as there are. While other accounts wait, one account gets no more than half
//! of the slots.

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
    /// Accounts with a job that ran for long, and when the latest one ended.
    long_accounts: HashMap<AccountId, Instant>,
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

    fn is_long_account(&self, account: &AccountId) -> bool {
        self.long_accounts.get(account).is_some_and(|ended| ended.elapsed() < LONG_MEMORY)
    }

    /// Starts a job and returns its id.
    pub(super) fn start(&mut self, account: AccountId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        let expected_long = self.is_long_account(&account);
        self.running.insert(id, Running { account, since: Instant::now(), expected_long, long: false });
        id
    }

    /// Ends a job and returns how long it had its slot.
    pub(super) fn end(&mut self, id: u64) -> Option<Duration> {
        let ended = self.running.remove(&id)?;
        // A short job of an account says nothing about its next one: hostile pages differ.
        if ended.long {
            if self.long_accounts.len() >= MAX_LONG_ACCOUNTS {
                self.long_accounts.retain(|_, ended| ended.elapsed() < LONG_MEMORY);
            }
            if self.long_accounts.len() < MAX_LONG_ACCOUNTS || self.is_long_account(&ended.account) {
                self.long_accounts.insert(ended.account, Instant::now());
            }
        }
        Some(ended.since.elapsed())
    }
}
