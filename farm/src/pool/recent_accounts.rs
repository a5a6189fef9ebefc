//! Accounts that have had a job recently.
//!
//! Resetting a page is wasted where its account has no further job before the page is evicted: 8 to 10 ms
//! of CPU, a seventh of what a job of a new account costs. So a page is kept from the second
//! job on, if the first was not too long ago. The idea is that of caches which admit only what has been
//! asked for before (Einziger et al., `TinyLFU`, 2017).

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use platen_shared::id::AccountId;

/// The accounts whose jobs were the latest.
#[derive(Debug)]
pub(super) struct RecentAccounts {
    /// The latest at the back.
    seen: Mutex<VecDeque<AccountId>>,
    max: usize,
}

impl RecentAccounts {
    /// Remembers at most `max` accounts.
    pub(super) fn new(max: usize) -> Self {
        Self { seen: Mutex::default(), max }
    }

    /// Notes a job of an account's; true if it has had one before, and few others have since.
    pub(super) fn record(&self, account: &AccountId) -> bool {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let index = seen.iter().rposition(|known| known == account);
        let known = index.and_then(|index| seen.remove(index));
        let is_recent = known.is_some();
        seen.push_back(known.unwrap_or_else(|| account.clone()));
        if seen.len() > self.max {
            seen.pop_front();
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
