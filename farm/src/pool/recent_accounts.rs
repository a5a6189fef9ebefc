//! Accounts with a recent job.
//!
//! A reset takes 8 to 10 ms of CPU, a seventh of a new account's job, and is wasted if the account has no
//! further job before its page is evicted. So a page is kept from the account's second recent job on. This
//! is the admission policy of caches such as `TinyLFU` (Einziger et al., 2017).

use std::collections::VecDeque;

use parking_lot::Mutex;
use platen_shared::id::AccountId;

/// The accounts with the latest jobs.
#[derive(Debug)]
pub(super) struct RecentAccounts {
    /// The most recent last.
    accounts: Mutex<VecDeque<AccountId>>,
    max: usize,
}

impl RecentAccounts {
    /// Remembers at most `max` accounts.
    pub(super) fn new(max: usize) -> Self {
        Self { accounts: Mutex::default(), max }
    }

    /// Records a job of an account; true if at most `max - 1` other accounts had jobs since its previous one.
    pub(super) fn record(&self, account: &AccountId) -> bool {
        let mut accounts = self.accounts.lock();
        let index = accounts.iter().rposition(|known| known == account);
        let known = index.and_then(|index| accounts.remove(index));
        let is_recent = known.is_some();
        accounts.push_back(known.unwrap_or_else(|| account.clone()));
        if accounts.len() > self.max {
            accounts.pop_front();
        }
        is_recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_with_a_second_job_soon_is_recent() {
        let recent = RecentAccounts::new(2);
        let record = |name: &str| recent.record(&AccountId::from_text(name));
        assert!(!record("a"));
        assert!(record("a"));
        assert!(!record("b"));
        assert!(record("a"));
        assert!(!record("c"));
        assert!(!record("b"));
        assert!(record("c"));
    }
}
